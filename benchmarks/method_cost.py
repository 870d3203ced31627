#!/usr/bin/env python
"""What each method costs for the same 20 rows, by the engine's own accounting: calls, tokens, tokens that a cache saves, pairs.

The model is a stand-in that answers as the prompts' own examples do, so that every method completes; what it would say
of these rows matters little for the cost. For the academic mode every text cites its source, and the encoder's SelfCheck gets the
other rows' texts as further responses. Tokens are those of the packaged tokenizer. A token counts as cached where a prompt
begins like an earlier one, in whole blocks of 16, as with vLLM's prefix caching and room for everything.
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from common import make_parser, paper_pairs, table_lines, write_results  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from knowhalu.build import BackendPool, build_engine  # noqa: E402
from knowhalu.encoder.options import PACKAGED_VERIFIER  # noqa: E402
from knowhalu.profiles import load_settings  # noqa: E402
from knowhalu.registry import METHODS  # noqa: E402
from knowhalu.requests import Completion, Generate  # noqa: E402
from knowhalu.results import Usage, Verdict  # noqa: E402
from knowhalu.types import Sample  # noqa: E402
from tests.support.imitating import imitated  # noqa: E402

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
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


def prepared(method: str, reasoner: str, samples: list[Sample]) -> list[Sample]:
    """Add what a method requires: a citation of the source, or further responses."""
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
    pool = BackendPool()
    pool.get("llm", settings.llm, Counting)
    outcomes = list(build_engine(settings, pool).run(prepared(method, reasoner, samples)))
    usages = [o.usage for o in outcomes if isinstance(o, Verdict)]
    mean = {n: sum(getattr(u, n) for u in usages) / len(usages) if usages else None for n in Usage.model_fields}
    reasons = sorted({o.reason for o in outcomes if not isinstance(o, Verdict)})
    return {"method": method, "reasoner": reasoner, "verdicts": len(usages), "rows": len(outcomes), **mean, "failures": reasons}


def markdown(costs: list[dict[str, Any]]) -> str:
    """Return the table, and how it was measured."""
    names = ("calls", "prompt_tokens", "cached_tokens", "completion_tokens", "pairs", "searches")
    head = ["method", "reasoner", "verdicts", *(name.replace("_", " ") for name in names)]
    rows = (
        [
            row["method"], row["reasoner"] or "-", f"{row['verdicts']} of {row['rows']}",
            *("-" if row[name] is None else f"{row[name]:,.1f}" for name in names),
        ]
        for row in costs
    )  # fmt: skip
    return "\n".join([*table_lines(head, rows, names=2), "", " ".join((__doc__ or "").split("\n\n", 1)[1].split())]) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "method_cost.json", "data")
    parser.add_argument("--limit", type=int, default=20, help="rows, half of them answers and half summaries")
    parser.add_argument("--only", nargs="*", help="methods; default: all")
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    args = parser.parse_args()
    half = args.limit // 2
    samples = [r.sample for task in ("qa", "summary") for r in paper_pairs(args.data, task)[:half]]
    costs = []
    for method in args.only or METHODS:
        for reasoner in METHODS[method].reasoners or ("",):
            costs.append(cost(method, reasoner, samples, args.pairs))
            print({k: v for k, v in costs[-1].items() if k != "failures"}, *costs[-1]["failures"][:2], flush=True)
    write_results(args.out, costs, markdown(costs))


if __name__ == "__main__":
    main()
