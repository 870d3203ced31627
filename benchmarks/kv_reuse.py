#!/usr/bin/env python
"""Whole checks with the key-value states of prompt prefixes reused, compared with checks that compute every prompt in full.

The model has random weights: the measurement depends on its shape alone. Every check makes the requests of KnowHalu: extract,
then in each hop a query and the knowledge from passages, then the judgment and its label. Each of the four prompts begins
with a fixed part of its own and grows at its end. Three ways answer the same requests in turn, in one process:

- `no reuse`: no reuse, each prompt computed from its first token, one at a time, as published scripts do
- `one by one`: prefixes reused, one check at a time
- `together`: prefixes reused, all checks concurrently, as the engine does

On a GPU:  python benchmarks/kv_reuse.py --device cuda --shape 7b --dtype bf16
"""

import argparse
import json
import platform
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from charts import draw_horizontal_bars
from common import write_results

from knowhalu.llm.local.backend import TransformersBackend
from knowhalu.llm.options import LLMOptions
from knowhalu.requests import Completion, Generate

ROOT = Path(__file__).resolve().parents[1]
LABELS = (" it cor rect", " in cor rect", " in con clusive")
STAGES = ("extract", "query", "knowledge", "judge")
REPLIES = {"extract": 20, "query": 30, "knowledge": 40, "judge": 40}
"""Tokens of a reply of each stage."""
SHAPES = {
    "small": {"hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 8, "num_attention_heads": 8},
    "7b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32},
}
"""Llama shapes; in both, four query heads share one key head, as in Mistral 7B."""
NAMES = {
    "no reuse": "no prefix reuse",
    "one by one": "prefixes kept, one check at a time",
    "together": "prefixes kept, checks side by side",
}
GOALS = {"speed-up": 8.0, "computed_over_new": 1.1, "logit_difference": 1e-4}


def words(draw_from: random.Random, count: int) -> str:
    """Return a text of `count` tokens."""
    return " ".join(f"w{draw_from.randrange(31_000)}" for _ in range(count))


@dataclass
class Script:
    """The requests of all checks, round by round. The replies in them are drawn at random, the same for all ways."""

    checks: int
    fixed: int
    hops: int
    fixed_parts: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fixed_parts = {s: words(random.Random(s), self.fixed) for s in STAGES}

    def rounds(self) -> Iterator[tuple[str, list[Generate]]]:
        """Yield the requests that all checks make at the same time, and the stage that makes them."""
        source = [random.Random(i) for i in range(self.checks)]
        sample = [words(r, 40) for r in source]  # question and answer
        grown = list(sample)
        yield "extract", [self._request("extract", s) for s in sample]
        for _ in range(self.hops):
            yield "query", [self._request("query", g) for g in grown]
            queries = [words(r, REPLIES["query"]) for r in source]
            passages = [words(r, 150) for r in source]
            yield "knowledge", [self._request("knowledge", f"{p} {q}") for p, q in zip(passages, queries, strict=True)]
            grown = [f"{g} {q} {words(r, REPLIES['knowledge'])}" for g, q, r in zip(grown, queries, source, strict=True)]
        yield "judge", [self._request("judge", g) for g in grown]
        reasoned = [f"{g} {words(r, REPLIES['judge'])} judgment" for g, r in zip(grown, source, strict=True)]
        yield "label", [self._request("judge", g, LABELS) for g in reasoned]

    def _request(self, stage: str, tail: str, choices: tuple[str, ...] = ()) -> Generate:
        fixed = self.fixed_parts[stage] + " "
        return Generate(fixed + tail, fixed=len(fixed), stop=("### ",), max_tokens=REPLIES[stage], choices=choices)


def tokenizer() -> Any:
    """Make a tokenizer in which every word is a token."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    special = ["<unk>", "it", "cor", "rect", "in", "con", "clusive", "judgment"]
    known = {w: i for i, w in enumerate([*special, *(f"w{i}" for i in range(32_000 - len(special)))])}
    words_as_tokens = Tokenizer(models.WordLevel(known, unk_token="<unk>"))
    words_as_tokens.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words_as_tokens, unk_token="<unk>")


def model(shape: str, device: str, dtype: torch.dtype) -> Any:
    """Make a Llama with random weights, always the same ones."""
    from transformers import LlamaConfig, LlamaForCausalLM

    sizes = SHAPES[shape]
    config = LlamaConfig(
        vocab_size=32_000, num_key_value_heads=sizes["num_attention_heads"] // 4, max_position_embeddings=32_768,
        bos_token_id=None, eos_token_id=None, initializer_range=0.04, **sizes,
    )  # fmt: skip
    torch.manual_seed(0)
    torch.set_default_dtype(dtype)
    with torch.device(device):
        llama = LlamaForCausalLM(config)
    torch.set_default_dtype(torch.float32)
    return llama.eval()


@dataclass
class Way:
    """One way to answer, its seconds by stage, and its replies."""

    llm: TransformersBackend
    alone: bool
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    replies: list[Completion] = field(default_factory=list)

    def answer(self, stage: str, requests: Sequence[Generate]) -> None:
        """Answer the requests of one round and measure the time."""
        synchronize()
        start = time.perf_counter()
        replies = [self.llm.answer_many([r])[0] for r in requests] if self.alone else self.llm.answer_many(requests)
        synchronize()
        self.seconds[stage] += time.perf_counter() - start
        for reply in replies:
            if not isinstance(reply, Completion):
                raise SystemExit(f"a request failed: {reply}")
            self.replies.append(reply)

    def result(self, checks: int) -> dict[str, Any]:
        """Return the seconds, and the computed tokens of prompts."""
        total = sum(self.seconds.values())
        return {
            "seconds": round(total, 3), "seconds_per_check": round(total / checks, 4),
            "seconds_by_stage": {s: round(t, 3) for s, t in self.seconds.items()},
            "prompt_tokens": sum(r.prompt_tokens for r in self.replies),
            "computed_prompt_tokens": sum(r.prompt_tokens - r.cached_tokens for r in self.replies),
            "generated_tokens": sum(r.completion_tokens for r in self.replies), "tokens_through_the_model": self.llm.computed,
        }  # fmt: skip


def synchronize() -> None:
    """Wait for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def new_tokens(contexts: Sequence[tuple[int, ...]]) -> int:
    """Count the tokens that no earlier prompt shares as its prefix: the minimum that any reuse has to compute."""
    tree: dict[int, Any] = {}
    count = 0
    for tokens in contexts:
        node = tree
        for token in tokens:
            if token not in node:
                node[token], count = {}, count + 1
            node = node[token]
    return count


@torch.inference_mode()
def logit_difference(kept: TransformersBackend, recomputing: TransformersBackend, requests: Sequence[Generate]) -> float:
    """Return the largest difference of any logit after the labels' contexts, and one after the other of all their tokens."""
    assert kept.together is not None
    contexts = [kept.framing.frame(r).context for r in requests]
    _, read = kept.together.contexts.read(contexts)
    return max(float((r.logits - recomputing.alone.read(c)[0][0]).abs().max()) for r, c in zip(read, contexts, strict=True))


def compared(ways: dict[str, Way], script: Script, labels: Sequence[Generate]) -> dict[str, Any]:
    """Compare the answers of all ways with those of recomputing."""
    recomputing, kept = ways["no reuse"], ways["together"]
    contexts = [kept.llm.framing.frame(r).context for _, requests in script.rounds() for r in requests]
    new = new_tokens(contexts)
    pairs = [(a, b) for w in ways.values() for a, b in zip(recomputing.replies, w.replies, strict=True)]
    label_pairs = [(a, b) for a, b in pairs if a.choices]
    return {
        "new_tokens": new,
        "computed_over_new": round(sum(r.prompt_tokens - r.cached_tokens for r in kept.replies) / new, 4),
        "same_labels": sum(a.text == b.text for a, b in label_pairs) / len(label_pairs),
        "same_replies": sum(a.text == b.text for a, b in pairs) / len(pairs),
        "label_probability_difference": max(abs(a.choices[c] - b.choices[c]) for a, b in label_pairs for c in LABELS),
        "logit_difference": logit_difference(kept.llm, recomputing.llm, labels),
    }


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Run all ways over all rounds, in turn."""
    dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[args.dtype]
    loaded = (model(args.shape, args.device, dtype), tokenizer())
    options = LLMOptions(style="completion", prefix_mb=args.prefix_mb)
    opened = {
        n: TransformersBackend(options, reuse=n != "no reuse", loaded=loaded) for n in ("no reuse", "one by one", "together")
    }
    ways = {n: Way(llm, alone=n != "together") for n, llm in opened.items()}
    for way in ways.values():  # the first pass also allocates memory and selects kernels
        way.llm.answer_many([Generate(words(random.Random(0), 64), max_tokens=4)] * 2)
        way.llm.alone.computed = 0
        if way.llm.together:
            way.llm.together.shared.computed = 0
    script, labels = Script(args.checks, args.fixed, args.hops), list[Generate]()
    for stage, requests in script.rounds():
        for name in random.Random(stage).sample(list(ways), len(ways)):
            ways[name].answer(stage, requests)
        labels = requests
        print(f"{stage:10}" + "".join(f"{n}: {w.seconds[stage]:8.2f} s   " for n, w in ways.items()), file=sys.stderr)
    results = {n: w.result(args.checks) for n, w in ways.items()}
    return {
        "machine": torch.cuda.get_device_name() if args.device == "cuda" else platform.processor() or platform.machine(),
        "threads": torch.get_num_threads(), "torch": torch.__version__, "device": args.device, "dtype": args.dtype,
        "shape": args.shape, "checks": args.checks, "fixed_tokens": args.fixed, "hops": args.hops,
        "calls_per_check": len(ways["no reuse"].replies) / args.checks, "ways": results,
        "speed-up": round(results["no reuse"]["seconds"] / results["together"]["seconds"], 2),
        "speed-up one by one": round(results["no reuse"]["seconds"] / results["one by one"]["seconds"], 2),
        **compared(ways, script, labels),
    }  # fmt: skip


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw seconds and computed prompt tokens of a check as bars."""
    seconds = {NAMES[n]: w["seconds_per_check"] for n, w in result["ways"].items()}
    tokens = {NAMES[n]: w["computed_prompt_tokens"] / result["checks"] for n, w in result["ways"].items()}
    same = "the same labels" if result["same_labels"] == 1 else f"{result['same_labels']:.0%} of the labels the same"
    title = (
        f"{result['speed-up']:.1f} times faster, with {same}: {result['checks']} checks of {result['calls_per_check']:g} calls, "
        f"{result['fixed_tokens']:,} fixed tokens in each prompt\n"
        f"({result['dtype']}, {result['device'].upper()}, random weights)"
    )
    draw_horizontal_bars(path, title, {"seconds for one check": seconds, "prompt tokens computed for one check": tokens})


def main() -> None:
    """Run the benchmark; ends with 1 where a goal is missed, in single precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--shape", choices=tuple(SHAPES), default="small")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--checks", type=int, default=20)
    parser.add_argument("--fixed", type=int, default=3000, help="tokens of each prompt's fixed part")
    parser.add_argument("--hops", type=int, default=3)
    parser.add_argument("--prefix-mb", type=int, default=8192)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/kv_reuse.json, kv_reuse_gpu.json on a GPU")
    parser.add_argument("--plot", type=Path, help="default: docs/kv_reuse.svg for the default run, else none")
    args = parser.parse_args()
    result = measure(args)
    usual = args.device == "cpu" and args.checks == 20 and args.fixed == 3000
    out = args.out or ROOT / "benchmarks/results" / ("kv_reuse_gpu.json" if args.device == "cuda" else "kv_reuse.json")
    missed = [
        *(["speed-up"] if result["speed-up"] < GOALS["speed-up"] else []),
        *(g for g in ("computed_over_new", "logit_difference") if result[g] > GOALS[g]),
        *(["same_labels"] if result["same_labels"] < 1 else []),
    ]
    write_results(out, {**result, "goals": GOALS, "missed": missed})
    if plot := args.plot or (ROOT / "docs/kv_reuse.svg" if usual else None):
        draw(result, plot)
    print(json.dumps({k: v for k, v in result.items() if k != "ways"}, indent=1))
    if missed and args.dtype == "fp32" and usual:
        raise SystemExit(f"goals missed: {', '.join(missed)}")


if __name__ == "__main__":
    main()
