#!/usr/bin/env python
"""What the verifier gets wrong on the project's own test claims: by kind of error and of statement, with its surest mistakes.

The texts are the project's own, so they may be shown. Kinds of errors are those that the writers named; statements are sorted by
plain rules (a negation, a number, several sentences), so that each share can be counted again.
"""

import argparse
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import auc, interval, write_results

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.requests import EntailmentPair
from knowhalu.text.sentences import sentences
from knowhalu.training.data_files import read_training_rows
from knowhalu.training.recipes import OWN_DATA


class Claim(NamedTuple):
    """A test claim, its source and the genre of that, what it is, and the kind of its error."""

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
    there = set(re.findall(r"\w+", claim.source.lower()))
    mine = re.findall(r"\w{4,}", claim.text.lower())
    return sum(w not in there for w in mine) / max(1, len(mine))


def claims(name: str, limit: int) -> Iterator[Claim]:
    """Yield the test claims of one of the project's own sets."""
    rows = list(read_training_rows(OWN_DATA / "written" / f"{name}.test.jsonl.gz"))[:limit]
    for row in rows:
        for c in row["claims"]:
            support = " | ".join(c["support"])
            yield Claim(row["document"], c["text"], c["label"] == "supported", c["error_type"] or "", support, row["genre"])


def by_kind(found: list[Claim], supported: Any) -> dict[str, dict[str, Any]]:
    """Return for every kind of error the ROC-AUC of its claims against all supported ones."""
    right = np.array([c.supported for c in found])
    kinds: dict[str, dict[str, Any]] = {}
    for kind in sorted({c.kind for c in found if c.kind}):
        part = right | np.array([c.kind == kind for c in found])
        kinds[kind] = _measured(right[part], supported[part], [c.source for c, p in zip(found, part, strict=True) if p])
    return kinds


def by_rule(found: list[Claim], supported: Any) -> dict[str, dict[str, Any]]:
    """Return the ROC-AUC among the claims that a rule picks."""
    right = np.array([c.supported for c in found])
    picked = {name: np.array([rule(c) for c in found]) for name, rule in RULES.items()}
    measured = {}
    for name, part in picked.items():
        if 0 < right[part].sum() < part.sum():
            measured[name] = _measured(right[part], supported[part], [c.source for c, p in zip(found, part, strict=True) if p])
    return measured


def _measured(right: Any, supported: Any, sources: list[str]) -> dict[str, Any]:
    low, high = interval(lambda i: auc(right[i], supported[i]), sources, draws=400)
    return {"wrong": int((~right).sum()), "right": int(right.sum()), "auc": auc(right, supported), "low": low, "high": high}


def surest(found: list[Claim], supported: Any, most: int = 3) -> dict[str, list[tuple[float, Claim]]]:
    """Return the surest mistakes: wrong claims that look supported, of different kinds, and right ones that look wrong."""
    order = np.argsort(-supported)
    passed: dict[str, tuple[float, Claim]] = {}
    for i in order:
        if not found[i].supported and len(found[i].text.split()) < 40:
            passed.setdefault(found[i].kind, (float(supported[i]), found[i]))
    accused = [(float(supported[i]), found[i]) for i in order[::-1] if found[i].supported and len(found[i].text.split()) < 40]
    return {"passed": list(passed.values())[: 2 * most], "accused": accused[:most]}


def table(result: dict[str, Any], mistakes: dict[str, list[tuple[float, Claim]]]) -> str:
    """Lay out the figures and the mistakes as Markdown."""
    lines = [
        f"P(supported) of the verifier alone on {result['claims']} test claims of `{result['set']}`; AUC {result['auc']:.3f}.",
        "In brackets: 95 % bootstrap interval, claims on one document drawn together.", "",
        "| error | wrong claims | ROC-AUC against all right ones |", "|---|---|---|",
    ]  # fmt: skip
    for name, r in sorted(result["kinds"].items(), key=lambda item: item[1]["auc"]):
        lines.append(f"| {name} | {r['wrong']} | {r['auc']:.3f} [{r['low']:.3f}, {r['high']:.3f}] |")
    lines += ["", "| claims | right | wrong | ROC-AUC |", "|---|---|---|---|"]
    for name, r in result["rules"].items():
        lines.append(f"| {name} | {r['right']} | {r['wrong']} | {r['auc']:.3f} [{r['low']:.3f}, {r['high']:.3f}] |")
    lines += ["", "Wrong claims that it takes for supported:", ""]
    lines += [f'- {p:.2f}, {c.kind}: "{c.text}" The source: "{c.support or "says nothing of it"}"' for p, c in mistakes["passed"]]
    lines += ["", "Right claims that it takes for wrong:", ""]
    lines += [f'- {p:.2f}: "{c.text}" The source: "{c.support}"' for p, c in mistakes["accused"]]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="verifier; default: the shipped one")
    parser.add_argument("--set", choices=("claims", "inference"), default="claims", help="claims on documents, or short ones")
    parser.add_argument("--limit", type=int, default=100_000, help="documents taken")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/failures.json"))
    args = parser.parse_args()
    backend, found = EncoderBackend(args.folder), list(claims(args.set, args.limit))
    supported = np.array([p.supported for p in backend.score([EntailmentPair(c.source, c.text) for c in found])])
    right = np.array([c.supported for c in found])
    result = {
        "set": args.set, "claims": len(found), "auc": auc(right, supported),
        "kinds": by_kind(found, supported), "rules": by_rule(found, supported),
    }  # fmt: skip
    write_results(args.out, result, table(result, surest(found, supported)))
    print(args.out.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
