"""The measured figures as Markdown, for the README and the model card, and as lines for the terminal."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, float]
_SETS = """\
Every file is a test file that was not trained on; the decision threshold was fixed beforehand. *Trivial* is a logistic
regression on length and word overlap alone, fitted on the very rows (5 grouped folds). In brackets: 95 % bootstrap
interval, rows of one source or claim drawn together. *Verifier alone*: its P(supported) of source and text, of several
windows the best, without pipeline and judgment; *gain*: of the whole over it, by paired draws.

| set | rows | ROC-AUC | verifier alone | gain | trivial | balanced accuracy | trivial |
|---|---|---|---|---|---|---|---|"""
_PAPER = """\
| the KnowHalu paper's rows | rows | TPR | TNR | Avg Acc | ARP | ARN | length rule |
|---|---|---|---|---|---|---|---|"""


def _ranged(row: Row, name: str, low: str, high: str) -> str:
    return f"{row[name]:.3f} [{row[low]:.3f}, {row[high]:.3f}]"


def set_cells(row: Row) -> list[str]:
    """Return the figures of one evaluation file."""
    return [
        f"{row['rows']:.0f}",
        _ranged(row, "auc", "auc_low", "auc_high"), f"{row['auc_alone']:.3f}",
        f"{row['auc'] - row['auc_alone']:+.3f} [{row['gain_low']:+.3f}, {row['gain_high']:+.3f}]", f"{row['trivial_auc']:.3f}",
        _ranged(row, "balanced", "balanced_low", "balanced_high"), f"{row['trivial_balanced']:.3f}",
    ]  # fmt: skip


def paper_cells(row: Row) -> list[str]:
    """Return the figures of one of the paper's test sets."""
    share = [f"{row[n]:.3f}" for n in ("tpr", "tnr")]
    abstained = [f"{row[n]:.3f}" for n in ("arp", "arn")]
    rule = f"{row['length_rule']:.3f} (> {row['length_rule_words']:.0f} words)"
    return [f"{row['rows']:.0f}", *share, _ranged(row, "avg_acc", "low", "high"), *abstained, rule]


def markdown(sets: Mapping[str, Row], paper: Mapping[str, Row]) -> str:
    """Lay out both tables."""
    lines = [_SETS, *(f"| {n} | {' | '.join(set_cells(r))} |" for n, r in sets.items()), ""]
    lines += [_PAPER, *(f"| {n} | {' | '.join(paper_cells(r))} |" for n, r in paper.items())]
    return "\n".join(lines) + "\n"


def write_results(path: Path, found: Any, table: str) -> None:
    """Write what was found as JSON, and its table as Markdown beside it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for place, text in ((path, json.dumps(found, indent=1) + "\n"), (path.with_suffix(".md"), table)):
        beside = place.with_name(f"{place.name}.new")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, place)
