#!/usr/bin/env python
"""What each method costs for the same 20 rows, by the engine's own accounting: calls, tokens, tokens that a cache saves, pairs.

The model is a stand-in that answers as the prompts' own examples do, so that every method comes to its end; what it would say
of these rows matters little for the cost. For the academic mode every text cites its source, and the encoder's SelfCheck gets the
other rows' texts as further responses. Tokens are those of the packaged tokenizer. A token counts as cached where a prompt
begins like an earlier one, in whole blocks of 16, as with vLLM's prefix caching and room for everything.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from common import paper_pairs  # noqa: E402
from tests.methods.imitating import imitated  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from knowhalu.build import BackendPool, build_engine  # noqa: E402
from knowhalu.encoder.options import PACKAGED_VERIFIER  # noqa: E402
from knowhalu.profiles import load_settings  # noqa: E402
from knowhalu.registry import METHODS  # noqa: E402
from knowhalu.requests import Completion, Generate  # noqa: E402
from knowhalu.results import Usage, Verdict  # noqa: E402
from knowhalu.types import Sample  # noqa: E402

BLOCK = 16
NEEDED = {"trivial": ("trivial.threshold=0.5",)}
"""Settings without which the methods of a branch refuse to be made."""


class Counting:
    """A stand-in for a model that counts tokens, and what a prefix cache would save of them."""

    def __init__(self) -> None:
        self.tokenizer = Tokenizer.from_file(str(PACKAGED_VERIFIER / "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self._seen: set[int] = set()

    def answer_many(self, requests: list[Generate]) -> list[Completion]:
        """Answer every request, in order."""
        return [self._answer(r) for r in requests]

    def _answer(self, request: Generate) -> Completion:
        reply = imitated(request)
        tokens = self._tokens(request.system + request.prompt + request.prefill)
        blocks, before = [], 0
        for i in range(0, len(tokens) - BLOCK + 1, BLOCK):
            before = hash((before, *tokens[i : i + BLOCK]))
            blocks.append(before)
        known = next((n for n, block in enumerate(blocks) if block not in self._seen), len(blocks))
        self._seen.update(blocks)
        return Completion(
            reply.text, choices=reply.choices, logprobs=reply.logprobs, prompt_tokens=len(tokens),
            cached_tokens=min(known * BLOCK, len(tokens) - 1), completion_tokens=len(self._tokens(reply.text)),
        )  # fmt: skip

    def _tokens(self, text: str) -> list[int]:
        found: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return found


def prepared(method: str, reasoner: str, samples: list[Sample]) -> list[Sample]:
    """Give the rows what a method cannot do without: a citation of their source, or further responses."""
    if method == "factored-academic":
        return [Sample(id=s.id, response=f"{s.response.rstrip('.')} [1].", documents=s.documents or s.knowledge) for s in samples]
    if (method, reasoner) == ("selfcheck", "encoder"):
        texts = [s.response for s in samples]
        return [s.model_copy(update={"meta": {"samples": texts[:i] + texts[i + 1 :]}}) for i, s in enumerate(samples)]
    return samples


def cost(method: str, reasoner: str, samples: list[Sample], pairs: list[str]) -> dict[str, Any]:
    """Check all rows by one method; return what one cost on average."""
    more = [*NEEDED.get(METHODS[method].options, ()), *([f"reasoner={reasoner}"] if reasoner else [])]
    settings = load_settings(pairs=[f"method={method}", *more, *pairs])
    kept = BackendPool()
    kept.get("llm", settings.llm, Counting)
    outcomes = list(build_engine(settings, kept).run(prepared(method, reasoner, samples)))
    told = [o for o in outcomes if isinstance(o, Verdict)]
    mean = {n: sum(getattr(o.usage, n) for o in told) / len(told) if told else None for n in Usage.model_fields}
    reasons = sorted({o.reason for o in outcomes if not isinstance(o, Verdict)})
    return {"method": method, "reasoner": reasoner, "verdicts": len(told), "rows": len(outcomes), **mean, "failures": reasons}


def markdown(found: list[dict[str, Any]]) -> str:
    """Lay out the table."""
    names = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "pairs", "searches")
    head = f"| method | reasoner | verdicts | {' | '.join(n.replace('_', ' ') for n in names)} |"
    rule = f"|---|---|---:|{'---:|' * len(names)}"
    lines = [
        f"| {row['method']} | {row['reasoner'] or '-'} | {row['verdicts']} of {row['rows']} | "
        + " | ".join("-" if row[n] is None else f"{row[n]:,.1f}" for n in names) + " |"
        for row in found
    ]  # fmt: skip
    return "\n".join([head, rule, *lines, "", " ".join((__doc__ or "").split("\n\n", 1)[1].split())]) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--limit", type=int, default=20, help="rows, half of them answers and half summaries")
    parser.add_argument("--only", nargs="*", help="methods; default: all")
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks/results/method_cost.json")
    args = parser.parse_args()
    half = args.limit // 2
    samples = [r.sample for task in ("qa", "summary") for r in paper_pairs(args.data, task)[:half]]
    found = []
    for method in args.only or METHODS:
        for reasoner in METHODS[method].reasoners or ("",):
            found.append(cost(method, reasoner, samples, args.pairs))
            print({k: v for k, v in found[-1].items() if k != "failures"}, *found[-1]["failures"][:2], flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    args.out.with_suffix(".md").write_text(markdown(found), encoding="utf-8")


if __name__ == "__main__":
    main()
