#!/usr/bin/env python
"""What the verifier gets wrong on the project's own test claims: by kind of error and of statement, with its worst mistakes.

The texts are the project's own, so they may be shown. Kinds of errors are those that the writers named; statements are classified
by simple rules (a negation, a number, several sentences), so that each share can be reproduced.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import auc, interval, make_parser, ranged, table_lines, write_results

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.requests import EntailmentPair
from knowhalu.text.sentences import sentences
from knowhalu.training.data_files import read_training_rows
from knowhalu.training.recipes import OWN_DATA


class Claim(NamedTuple):
    """A test claim with its source, its label and kind of error, the passages that support it, and the genre of the source."""

    source: str
    text: str
    supported: bool
    kind: str
    support: str
    genre: str


RULES: dict[str, Callable[[Claim], bool]] = {
    "with a number": lambda c: bool(re.search(r"\d", c.text)),
    "with a negation": lambda c: bool(re.search(r"(?i)\b(?:not|no|never|none|without|nor)\b|n['’]t\b", c.text)),  # noqa: RUF001
    "of several sentences": lambda c: len(sentences(c.text)) > 1,
    "of at most seven words": lambda c: len(c.text.split()) <= 7,
    "needs two places of its source": lambda c: " | " in c.support,
    "of other words than its source": lambda c: _novelty(c) >= 0.5,
    "its source has 60 words or more": lambda c: len(c.source.split()) >= 60,
    "its source is an abstract": lambda c: "abstract" in c.genre or "study" in c.genre,
    "its source is encyclopedic": lambda c: "encyclopedia" in c.genre,
}


def _novelty(claim: Claim) -> float:
    source_words = set(re.findall(r"\w+", claim.source.lower()))
    words = re.findall(r"\w{4,}", claim.text.lower())
    return sum(word not in source_words for word in words) / max(1, len(words))


def claims(name: str, limit: int) -> Iterator[Claim]:
    """Yield the test claims of one of the project's own sets."""
    rows = list(read_training_rows(OWN_DATA / "written" / f"{name}.test.jsonl.gz"))[:limit]
    for row in rows:
        for c in row["claims"]:
            support = " | ".join(c["support"])
            yield Claim(row["document"], c["text"], c["label"] == "supported", c["error_type"] or "", support, row["genre"])


def by_kind(tested: list[Claim], scores: Any) -> dict[str, dict[str, Any]]:
    """Return for every kind of error the ROC-AUC of its claims against all supported ones."""
    right = np.array([c.supported for c in tested])
    kinds = sorted({c.kind for c in tested if c.kind})
    return {kind: _measured(tested, scores, right | np.array([c.kind == kind for c in tested])) for kind in kinds}


def by_rule(tested: list[Claim], scores: Any) -> dict[str, dict[str, Any]]:
    """Return the ROC-AUC among the claims that a rule selects, where they have both labels."""
    right = np.array([c.supported for c in tested])
    parts = {name: np.array([rule(c) for c in tested]) for name, rule in RULES.items()}
    return {name: _measured(tested, scores, part) for name, part in parts.items() if 0 < right[part].sum() < part.sum()}


def _measured(tested: list[Claim], scores: Any, part: Any) -> dict[str, Any]:
    """Return the ROC-AUC of some claims with its interval, claims on one document drawn together."""
    chosen = [claim for claim, is_chosen in zip(tested, part, strict=True) if is_chosen]
    right, supported = np.array([c.supported for c in chosen]), scores[part]
    low, high = interval(lambda i: auc(right[i], supported[i]), [c.source for c in chosen], draws=400)
    return {"wrong": int((~right).sum()), "right": int(right.sum()), "auc": auc(right, supported), "low": low, "high": high}


def worst_mistakes(tested: list[Claim], scores: Any, most: int = 3) -> dict[str, list[tuple[float, Claim]]]:
    """Return wrong claims that look supported, of different kinds, and right ones that look wrong, the most certain first."""
    ordered = [(float(scores[i]), tested[i]) for i in np.argsort(-scores) if len(tested[i].text.split()) < 40]
    passed: dict[str, tuple[float, Claim]] = {}
    for score, claim in ordered:
        if not claim.supported:
            passed.setdefault(claim.kind, (score, claim))
    accused = [(score, claim) for score, claim in ordered[::-1] if claim.supported]
    return {"passed": list(passed.values())[: 2 * most], "accused": accused[:most]}


def table(result: dict[str, Any], mistakes: dict[str, list[tuple[float, Claim]]]) -> str:
    """Return the figures and the mistakes as Markdown."""
    lines = [
        f"P(supported) of the verifier alone on {result['claims']} test claims of `{result['set']}`; AUC {result['auc']:.3f}.",
        "In brackets: 95 % bootstrap interval, claims on one document drawn together.", "",
    ]  # fmt: skip
    kinds = sorted(result["kinds"].items(), key=lambda item: item[1]["auc"])
    by_error = ([name, str(r["wrong"]), ranged(r["auc"], r["low"], r["high"])] for name, r in kinds)
    lines += [*table_lines(["error", "wrong claims", "ROC-AUC against all right ones"], by_error), ""]
    rules = result["rules"].items()
    by_rules = ([name, str(r["right"]), str(r["wrong"]), ranged(r["auc"], r["low"], r["high"])] for name, r in rules)
    lines += table_lines(["claims", "right", "wrong", "ROC-AUC"], by_rules)
    lines += ["", "Wrong claims that it takes for supported:", ""]
    lines += [f'- {p:.2f}, {c.kind}: "{c.text}" The source: "{c.support or "says nothing of it"}"' for p, c in mistakes["passed"]]
    lines += ["", "Right claims that it takes for wrong:", ""]
    lines += [f'- {p:.2f}: "{c.text}" The source: "{c.support}"' for p, c in mistakes["accused"]]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "failures.json")
    parser.add_argument("--folder", type=Path, help="verifier; default: the shipped one")
    parser.add_argument("--set", choices=("claims", "inference"), default="claims", help="claims on documents, or short ones")
    parser.add_argument("--limit", type=int, default=100_000, help="documents taken")
    args = parser.parse_args()
    backend, tested = EncoderBackend(args.folder), list(claims(args.set, args.limit))
    scores = np.array([p.supported for p in backend.score([EntailmentPair(c.source, c.text) for c in tested])])
    result = {
        "set": args.set, "claims": len(tested), "auc": auc(np.array([c.supported for c in tested]), scores),
        "kinds": by_kind(tested, scores), "rules": by_rule(tested, scores),
    }  # fmt: skip
    write_results(args.out, result, table(result, worst_mistakes(tested, scores)))
    print(args.out.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
