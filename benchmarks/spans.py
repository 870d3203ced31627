#!/usr/bin/env python
"""Marked words compared with gold words: what the verifier's second head marks in wrong claims, and in right ones.

Gold: the words that the writers of the project's own test set named, those by which a wrong summary of BUMP differs from its
right twin, and the unsupported tokens of held-out WiCE claims. The baseline is a rule: every content word the source lacks.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import interval, make_parser, ranged, read, table_line, write_results

from knowhalu.encoder.external import open_verifier
from knowhalu.encoder.verifier import DEFAULT_THRESHOLD
from knowhalu.requests import EntailmentPair
from knowhalu.text.sentences import content_words, words
from knowhalu.training.examples import CharSpan, changed_spans, unsupported_token_spans, wrong_span
from knowhalu.training.fitting import wrong_word_flags
from knowhalu.training.holdout import HeldOutRows
from knowhalu.training.recipes import WICE_TOKENS_FILE


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
    source_words = set(content_words(claim.source))
    return [float(bool(c := content_words(w.text)) and not set(c) <= source_words) for w in words(claim.text)]


def measured(claims: Sequence[Claim], doubts: Sequence[Sequence[float]], threshold: float) -> dict[str, Any]:
    """Return word precision, recall and F1 in wrong claims, hits, and how many right claims are marked, at a threshold."""
    wrong = [(wrong_word_flags(c.text, c.wrong), d) for c, d in zip(claims, doubts, strict=True) if c.wrong]
    right = [d for c, d in zip(claims, doubts, strict=True) if not c.wrong]
    counts = np.array([_counts(g, d, threshold) for g, d in wrong])

    def f1(i: Any) -> float:
        hits, marked, gold = counts[i].sum(0)[:3]
        return float(2 * hits / max(1, marked + gold))

    groups = [str(i) for i in range(len(wrong))]
    hits, marked, gold = counts.sum(0)[:3]
    low, high = interval(f1, groups)
    first, (first_low, first_high) = counts[:, 3], interval(lambda i: float(counts[i, 3].mean()), groups)
    return {
        "wrong": len(wrong), "right": len(right), "precision": float(hits / max(1, marked)), "recall": float(hits / gold),
        "f1": f1(slice(None)), "f1_low": low, "f1_high": high, "any": float((counts[:, 0] > 0).mean()),
        "first": float(first.mean()), "first_low": first_low, "first_high": first_high,
        "chance": float(np.mean([sum(g) / len(g) for g, _ in wrong])),
        "right_marked": float(np.mean([any(v >= threshold for v in d) for d in right])) if right else None,
    }  # fmt: skip


def _counts(wrong: Sequence[bool], doubts: Sequence[float], threshold: float) -> tuple[float, float, float, float]:
    """Return words that are marked and wrong, marked, and wrong, and the share of the most doubtful words that are wrong."""
    marked = [v >= threshold for v in doubts]
    best = [w for w, v in zip(wrong, doubts, strict=True) if v == max(doubts)]
    return sum(a and b for a, b in zip(wrong, marked, strict=True)), sum(marked), sum(wrong), sum(best) / len(best)


def table(results: dict[str, dict[str, dict[str, Any]]], threshold: float) -> str:
    """Return the table with its explanation."""
    lines = [
        "Words, not characters. *First*: the most doubtful word is a wrong one (*chance*: a word drawn at random is). *Any*: one",
        "wrong word or more is marked. Precision, recall and F1 count the words of wrong claims. *Right, marked*: right ones",
        f"with a mark. In brackets: 95 % bootstrap interval over claims. *Marks*: from {threshold:.2f} on, as fitted on held-out",
        "sources; *rule*: content words that the source lacks.", "",
        "| set | by | wrong claims | F1 | precision | recall | any | first | chance | right, marked |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for name, by in results.items():
        for who, r in by.items():
            right_marked = "-" if r["right_marked"] is None else f"{r['right_marked']:.1%} of {r['right']}"
            lines.append(table_line([
                name, who, str(r["wrong"]), ranged(r["f1"], r["f1_low"], r["f1_high"]), f"{r['precision']:.3f}",
                f"{r['recall']:.3f}", f"{r['any']:.1%}", ranged(r["first"], r["first_low"], r["first_high"], ".1%"),
                f"{r['chance']:.1%}", right_marked,
            ]))  # fmt: skip
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "spans.json", "data", "training")
    parser.add_argument("--folder", type=Path, help="verifier; default: the shipped one")
    parser.add_argument("--rows", type=int, default=100_000)
    args = parser.parse_args()
    backend, results = open_verifier(args.folder), {}
    sets = {"written claims": written(args.data), "BUMP": bump(args.data), "WiCE, held out": wice(args.training, args.data)}
    for name, claims in sets.items():
        tested = [c for c in claims if words(c.text)][: args.rows]
        probabilities = backend.unsupported_probabilities([EntailmentPair(c.source, c.text) for c in tested])
        read = [(claim, doubts) for claim, doubts in zip(tested, probabilities, strict=True) if doubts]
        tested, marks = [claim for claim, _ in read], [doubts for _, doubts in read]
        by = {
            "marks": (marks, backend.span_threshold),
            "marks, from .5 on": (marks, DEFAULT_THRESHOLD),
            "rule": ([novel(c) for c in tested], DEFAULT_THRESHOLD),
        }
        results[name] = {who: measured(tested, doubts, threshold) for who, (doubts, threshold) in by.items()}
        print(name, json.dumps(results[name]), flush=True)
    write_results(args.out, results, table(results, backend.span_threshold))


if __name__ == "__main__":
    main()
