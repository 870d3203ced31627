#!/usr/bin/env python
"""Speed of the verifier's service compared with two usual ways to judge the same pairs, measured in turn in one run.

- its own weights in sentence-transformers' `CrossEncoder` with its defaults: fp32, batches of 32, its own tokenizing and padding;
- a model of the size of RoBERTa-large in fp32, with random weights, on fewer of the pairs: the same tokens, sorted by length,
  a few at a time (`TOGETHER`), padded to their longest.

The pairs are those that the pipeline asks for drawn rows of the evaluation files.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import torch
from common import make_parser, rows_of, write_results
from padded_context import FILES
from speed import Recorder

from knowhalu.build import build_method
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.bert import translate_weight_name
from knowhalu.encoder.device import in_one_thread
from knowhalu.engine.engine import Backends, Engine
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.requests import EntailmentPair
from knowhalu.settings import Settings
from knowhalu.types import Sample

ROWS_OF_EACH = 8
"""Rows of each file that the pipeline is run on for its pairs."""
TOGETHER = 4
"""Neighbours in length that the large model reads in one batch."""
GOALS = {"cross_encoder": 3.0, "roberta_large": 15.0}
NAMES = {
    "cross_encoder": "the same weights in sentence-transformers' `CrossEncoder`, fp32",
    "roberta_large": "RoBERTa-large's size (24 layers of 1024), fp32, random weights",
}
Timed = Callable[[], float]


def draw_pairs(data: Path, backend: EncoderBackend, count: int, seed: int) -> list[EntailmentPair]:
    """Draw from the distinct pairs that the pipeline requests for some rows of each file."""
    draw, samples = Random(seed), list[Sample]()
    for name in FILES:
        samples += [r.sample for r in draw.sample(rows_of(data, name), ROWS_OF_EACH)]
    recorder, settings = Recorder(backend), Settings()
    backends = Backends(entail=recorder, search=SearchBackend(settings.retrieval))
    list(Engine(build_method(settings), backends).run(samples))
    pairs = dict.fromkeys(pair for call in recorder.calls for request in call for pair in request.pairs)
    return draw.sample(list(pairs), min(count, len(pairs)))


def second(pair: EntailmentPair) -> str:
    """Return what is put beside the premise: the claim, after its question if it has one."""
    return f"{pair.question} {pair.claim}" if pair.question else pair.claim


@in_one_thread
def cross_encoder(backend: EncoderBackend, folder: Path) -> Any:
    """Load the verifier's weights as a `CrossEncoder`; its head is new, which takes the same time."""
    from sentence_transformers import CrossEncoder
    from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

    shape = backend.model.encoder.shape
    model = BertForSequenceClassification(BertConfig(**vars(shape), num_labels=3))
    own = {name: value.float() for name, value in backend.model.encoder.state_dict().items()}
    theirs = {name: own[mine] for name in model.state_dict() if (mine := translate_weight_name(name)) in own}
    if len(theirs) != len(own):
        raise SystemExit(f"only {len(theirs)} of {len(own)} weights were found in the library's model")
    model.load_state_dict(theirs, strict=False)
    model.save_pretrained(folder)
    special = {"unk_token": "[UNK]", "sep_token": "[SEP]", "pad_token": "[PAD]", "cls_token": "[CLS]"}
    names = ["input_ids", "token_type_ids", "attention_mask"]
    PreTrainedTokenizerFast(
        tokenizer_object=backend.vocabulary.tokenizer, model_max_length=512, model_input_names=names, **special
    ).save_pretrained(folder)
    return CrossEncoder(str(folder), device="cpu", local_files_only=True)


@in_one_thread
def roberta_large() -> Any:
    """Make a model of RoBERTa-large's sizes."""
    from transformers import RobertaConfig, RobertaForSequenceClassification

    sizes = RobertaConfig(
        vocab_size=50265, hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
        max_position_embeddings=514, type_vocab_size=1, num_labels=3,
    )  # fmt: skip
    return RobertaForSequenceClassification(sizes).eval()


@torch.inference_mode()
def forward(model: Any, backend: EncoderBackend, pairs: Sequence[EntailmentPair]) -> None:
    """Judge pairs by a model of the library, on the verifier's tokens, like lengths together."""
    rows = sorted((w.tokens for w in backend._window_rows(pairs)), key=lambda t: len(t.ids))
    for start in range(0, len(rows), TOGETHER):
        part = rows[start : start + TOGETHER]
        ids, mask, _ = backend.vocabulary.batch(part, len(part[-1].ids))
        model(input_ids=ids, attention_mask=mask)


def timed(backend: EncoderBackend, work: Callable[[], Any], pairs: int) -> Timed:
    """Return a measurement of pairs a second; nothing is kept from the one before."""

    @in_one_thread
    def measure() -> float:
        backend.clear_cache()
        start = time.perf_counter()
        work()
        return pairs / (time.perf_counter() - start)

    return measure


def spread(backend: EncoderBackend, pairs: Sequence[EntailmentPair], count: int) -> list[EntailmentPair]:
    """Take neighbours at equal steps of length, so that few have the lengths of all and hardly any padding."""
    order = sorted(pairs, key=lambda p: sum(map(len, backend.vocabulary.pieces([p.premise, second(p)]))))
    runs = count // TOGETHER
    firsts = [(2 * i + 1) * len(order) // (2 * runs) - TOGETHER // 2 for i in range(runs)]
    return [order[first + i] for first in firsts for i in range(TOGETHER)]


def rounds(ways: dict[str, Timed], count: int) -> dict[str, list[float]]:
    """Measure all ways in turn, `count` times, after one that does not count."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(count + 1):
        for name, measure in ways.items():
            rate = measure()
            if number:
                rates[name].append(rate)
    return rates


def figures(rates: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return by how much the service is faster than each other way, round by round: median, least and most."""
    compared = {}
    for name, goal in GOALS.items():
        ratios = [ours / theirs for ours, theirs in zip(rates["service"], rates[name], strict=True)]
        compared[name] = {
            "pairs_per_second": statistics.median(rates[name]), "times": statistics.median(ratios), "least": min(ratios),
            "most": max(ratios), "goal": goal,
        }  # fmt: skip
    return compared


def markdown(result: dict[str, Any]) -> str:
    """Return the table with its explanation."""
    lines = [
        f"{result['pairs']} pairs that the pipeline asks for, median {result['median_tokens']:.0f} tokens; RoBERTa-large's",
        f"size on {result['few_pairs']} of them, neighbours at equal steps of length. {result['rounds']} rounds, all in turn,",
        f"threads: {result['threads']}. The service runs in {result['precision']}.",
        "",
        "| | pairs/s | the service is faster by (least, most) | goal |",
        "|---|---|---|---|",
        f"| the service | {result['service_pairs_per_second']:.0f} | 1 | |",
    ]
    for name, row in result["others"].items():
        times = f"{row['times']:.1f} ({row['least']:.1f}, {row['most']:.1f})"
        lines.append(f"| {NAMES[name]} | {row['pairs_per_second']:.1f} | {times} | {row['goal']:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "encoder_speed.json", "data")
    parser.add_argument("--pairs", type=int, default=320)
    parser.add_argument("--few", type=int, default=24, help=f"pairs for the large model, a multiple of {TOGETHER}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, help="threads of all ways; one, where others use the cores too")
    args = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    backend = EncoderBackend(threads=args.threads)
    pairs = draw_pairs(args.data, backend, args.pairs, args.seed)
    few = spread(backend, pairs, args.few)
    with tempfile.TemporaryDirectory() as folder:
        crossed, large = cross_encoder(backend, Path(folder)), roberta_large()
    texts = [(p.premise, second(p)) for p in pairs]
    ways = {
        "service": timed(backend, lambda: backend.score(pairs), len(pairs)),
        "cross_encoder": timed(backend, lambda: crossed.predict(texts, show_progress_bar=False), len(pairs)),
        "roberta_large": timed(backend, lambda: forward(large, backend, few), len(few)),
    }
    rates = rounds(ways, args.rounds)
    result = {
        "pairs": len(pairs), "few_pairs": len(few), "rounds": args.rounds, "seed": args.seed,
        "median_tokens": statistics.median(len(w.tokens.ids) for w in backend._window_rows(pairs)),
        "threads": torch.get_num_threads(),
        "precision": str(next(backend.model.parameters()).dtype).removeprefix("torch."),
        "service_pairs_per_second": statistics.median(rates["service"]), "others": figures(rates), "rates": rates,
    }  # fmt: skip
    write_results(args.out, result, markdown(result))
    print(markdown(result), end="")


if __name__ == "__main__":
    main()
