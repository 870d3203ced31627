#!/usr/bin/env python
"""Marked words against gold words: what the verifier's second head marks in wrong claims, and in right ones beside them.

Gold: the words that the writers of the project's own test set named, those by which a wrong summary of BUMP differs from its
right twin, and the unsupported tokens of held-out WiCE claims. Beside it stands a rule: every content word the source lacks.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import interval, make_parser, read, write_results

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.spans import DEFAULT_THRESHOLD
from knowhalu.requests import EntailmentPair
from knowhalu.text.sentences import content_words, words
from knowhalu.training.examples import CharSpan, changed_spans
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.recipes import WICE_TOKENS_FILE
from knowhalu.training.thresholds import wrong_word_flags
from knowhalu.training.written import unsupported_token_spans, wrong_span


class Claim(NamedTuple):
    """A claim, its source, and its wrong stretches: none in a right claim."""

    source: str
    text: str
    wrong: tuple[CharSpan, ...]


def written(data: Path) -> Iterator[Claim]:
    """Yield the written test claims, and those answers that are full sentences."""
    for row in read(data / "written_claims.jsonl.gz"):
        for claim in row["claims"]:
            stretches = () if claim["label"] == "supported" else wrong_span(claim)
            if stretches is not None:
                yield Claim(row["document"], claim["text"], stretches)


def bump(data: Path) -> Iterator[Claim]:
    """Yield both summaries of every pair whose wrong one is hardly more than an edit of the right one."""
    for row in read(data / "bump_pairs.jsonl.gz"):
        right, wrong = row["right_summary"], row["hallucinated_summary"]
        stretches = changed_spans(right, wrong)
        if stretches:
            yield Claim(row["document"], wrong, stretches)
            yield Claim(row["document"], right, ())


def wice(training: Path, data: Path) -> Iterator[Claim]:
    """Yield the held-out claims with unsupported tokens; right ones are not among them."""
    for row in HeldOutRows(training, data).among(read(training / WICE_TOKENS_FILE)):
        if stretches := unsupported_token_spans(row):
            yield Claim(row["source"], row["claim"], stretches)


def novel(claim: Claim) -> list[float]:
    """Mark every content word that the source lacks: the rule to beat."""
    there = set(content_words(claim.source))
    return [float(bool(c := content_words(w.text)) and not set(c) <= there) for w in words(claim.text)]


def measured(claims: Sequence[Claim], doubts: Sequence[Sequence[float]], border: float) -> dict[str, Any]:
    """Return word precision, recall and F1 in wrong claims, hits, and how much of the right claims is marked from a border on."""
    wrong = [(wrong_word_flags(c.text, c.wrong), d) for c, d in zip(claims, doubts, strict=True) if c.wrong]
    right = [d for c, d in zip(claims, doubts, strict=True) if not c.wrong]
    counts = np.array([_counts(g, d, border) for g, d in wrong])

    def f1(i: Any) -> float:
        hit, said, there = counts[i].sum(0)[:3]
        return float(2 * hit / max(1, said + there))

    groups = [str(i) for i in range(len(wrong))]
    hit, said, there = counts.sum(0)[:3]
    low, high = interval(f1, groups)
    first, (at, to) = counts[:, 3], interval(lambda i: float(counts[i, 3].mean()), groups)
    return {
        "wrong": len(wrong), "right": len(right), "precision": float(hit / max(1, said)), "recall": float(hit / there),
        "f1": f1(slice(None)), "f1_low": low, "f1_high": high, "any": float((counts[:, 0] > 0).mean()),
        "first": float(first.mean()), "first_low": at, "first_high": to,
        "chance": float(np.mean([sum(g) / len(g) for g, _ in wrong])),
        "right_marked": float(np.mean([any(v >= border for v in d) for d in right])) if right else None,
    }  # fmt: skip


def _counts(wrong: Sequence[bool], doubts: Sequence[float], border: float) -> tuple[float, float, float, float]:
    """Return words that are marked and wrong, marked, and wrong, and the share of the most doubtful words that are wrong."""
    said = [v >= border for v in doubts]
    best = [w for w, v in zip(wrong, doubts, strict=True) if v == max(doubts)]
    return sum(a and b for a, b in zip(wrong, said, strict=True)), sum(said), sum(wrong), sum(best) / len(best)


def table(found: dict[str, dict[str, dict[str, Any]]], border: float) -> str:
    """Lay out the figures as Markdown."""
    lines = [
        "Words, not characters. *First*: the most doubtful word is a wrong one (*chance*: a word drawn at random is). *Any*: one",
        "wrong word or more is marked. Precision, recall and F1 count the words of wrong claims. *Right, marked*: right ones",
        f"with a mark. In brackets: 95 % bootstrap interval over claims. *Marks*: from {border:.2f} on, as fitted on held-out",
        "sources; *rule*: content words that the source lacks.", "",
        "| set | by | wrong claims | F1 | precision | recall | any | first | chance | right, marked |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, by in found.items():
        for who, r in by.items():
            beside = "-" if r["right_marked"] is None else f"{r['right_marked']:.1%} of {r['right']}"
            cells = [
                name, who, str(r["wrong"]), f"{r['f1']:.3f} [{r['f1_low']:.3f}, {r['f1_high']:.3f}]", f"{r['precision']:.3f}",
                f"{r['recall']:.3f}", f"{r['any']:.1%}", f"{r['first']:.1%} [{r['first_low']:.1%}, {r['first_high']:.1%}]",
                f"{r['chance']:.1%}", beside,
            ]  # fmt: skip
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "spans.json", "data", "training")
    parser.add_argument("--folder", type=Path, help="verifier; default: the shipped one")
    parser.add_argument("--rows", type=int, default=100_000)
    args = parser.parse_args()
    backend = EncoderBackend(args.folder)
    found = {}
    for name, claims in (
        ("written claims", written(args.data)),
        ("BUMP", bump(args.data)),
        ("WiCE, held out", wice(args.training, args.data)),
    ):
        some = [c for c in claims if words(c.text)][: args.rows]
        doubts = backend.unsupported_probabilities([EntailmentPair(c.source, c.text) for c in some])
        kept = [(c, d) for c, d in zip(some, doubts, strict=True) if d]
        some, read = [c for c, _ in kept], [d for _, d in kept]
        by = {
            "marks": (read, backend.span_threshold),
            "marks, from .5 on": (read, DEFAULT_THRESHOLD),
            "rule": ([novel(c) for c in some], DEFAULT_THRESHOLD),
        }
        found[name] = {who: measured(some, said, border) for who, (said, border) in by.items()}
        print(name, json.dumps(found[name]), flush=True)
    write_results(args.out, found, table(found, backend.span_threshold))


if __name__ == "__main__":
    main()
