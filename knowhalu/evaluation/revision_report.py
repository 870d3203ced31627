"""The figures of revisions as tables, notes and JSON, and the export of pairs of texts before and after their revision."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from knowhalu.evaluation.bootstrap import RESAMPLES, Estimate
from knowhalu.evaluation.revisions import RevisionEvaluation, read_revisions
from knowhalu.evaluation.runs import count_errors
from knowhalu.evaluation.tables import ResultTable, as_plain, escape_cell, format_number, format_percent, table_as_markdown
from knowhalu.io.output_files import write_text
from knowhalu.io.samples import read_samples
from knowhalu.methods.revise.critique import join_critiques
from knowhalu.results import Revision, Verdict
from knowhalu.types import Sample

LIKENESS_COLUMNS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L", "bleu4": "BLEU-4", "bertscore": "BERTScore"}
LIKENESS_ROWS = {
    "original": "original, to the reference", "revised": "revised, to the reference", "kept": "revised, to the original",
}  # fmt: skip
STATUSES = ("revised", "unchanged", "refused")


def make_tables(evaluation: RevisionEvaluation) -> list[ResultTable]:
    """Return what became of the texts, hallucinations before and after, and likeness."""
    statuses = (f"{evaluation.statuses.get(status, 0):,}" for status in STATUSES)
    counts = (f"{evaluation.rows:,}", *statuses, f"{sum(evaluation.failures.values()):,}")
    head = ("", "rows", *STATUSES, "no revision", "passed unchanged")
    texts = ResultTable("Texts", head, [("all", *counts, format_percent(evaluation.passed_unchanged))])
    columns = ("", "hallucinations per text, reported", "adjusted", "texts with any", "texts that passed")
    sides = (("before", evaluation.before), ("after", evaluation.after))
    rows = [(name, *_count_cells(figures)) for name, figures in sides]
    tables = [texts, ResultTable("Texts with a revision, before and after it", columns, rows)]
    if evaluation.likeness:
        names = [n for n in LIKENESS_COLUMNS if any(n in scores for scores in evaluation.likeness.values())]
        likeness = [
            (LIKENESS_ROWS[row], *(format_percent(scores[n]) for n in names)) for row, scores in evaluation.likeness.items()
        ]
        tables.append(ResultTable("Likeness", ("", *(LIKENESS_COLUMNS[n] for n in names)), likeness))
    return tables


def _count_cells(figures: dict[str, Estimate]) -> tuple[str, ...]:
    shares = (format_percent(figures[name]) for name in ("with_any", "passed"))
    return format_number(figures["reported"]), format_number(figures["adjusted"]), *shares


def make_notes(evaluation: RevisionEvaluation) -> list[str]:
    """Return what a reader must know of the figures."""
    refused, failed = evaluation.statuses.get("refused", 0), sum(evaluation.failures.values())
    notes = [
        f"With 95 % bootstrap intervals ({RESAMPLES:,} resamples). One detector judged the texts before and after: a revision "
        "that suits it looks better than it is.",
        "passed unchanged: share of all texts with an outcome that the detector calls faithful and that "
        "stayed as they were. The other tables are of the "
        f"texts that have a revised text: {refused:,} refused and {failed:,} failed are in neither row.",
    ]
    if n := evaluation.unchecked:
        notes.append(f"Texts of which nothing was judged before or after are in no number of hallucinations: {n:,}.")
    if (judge := evaluation.judge) is not None:
        notes.append(
            f"adjusted: reported x {judge.precision:.3g} / {judge.recall:.3g}, the precision and recall of the judge; the "
            "intervals do not include the uncertainty of these two."
        )
    else:
        notes.append("adjusted: needs the judge's precision and recall, measured by people (--precision, --recall).")
    if evaluation.likeness:
        encoder = f" BERTScore by {evaluation.scorer}, without rescaling." if evaluation.scorer else ""
        notes.append(f"Likeness compares wording, not truth; texts with a reference: {evaluation.references:,}.{encoder}")
    return notes


def as_markdown(evaluation: RevisionEvaluation) -> str:
    """Return all tables, failures and notes in Markdown."""
    failures = "\n".join(f"- no revision: {n:,} x {escape_cell(reason)}" for reason, n in list(evaluation.failures.items())[:3])
    return "\n\n".join(filter(None, [*map(table_as_markdown, make_tables(evaluation)), failures, *make_notes(evaluation)])) + "\n"


def as_json(evaluation: RevisionEvaluation) -> dict[str, Any]:
    """Return the figures as plain fields, each {value, low, high}."""
    return {**as_plain(evaluation), "notes": make_notes(evaluation)}


def write_pairs(revisions: Path, output: Path, rows: Path | None = None) -> int:
    """Write every revised text with its original and the critique, one on each line; return their number.

    The first line is that of the revisions. With `rows`, a pair also has its question and documents.
    """
    samples = {sample.id: sample for sample in read_samples(rows)} if rows is not None else {}
    with revisions.open(encoding="utf-8") as file:
        lines = [file.readline()]
    outcomes = read_revisions(revisions)
    lines += [_pair(o, samples.get(o.id)) for o in outcomes if isinstance(o, Revision) and o.status == "revised"]
    write_text(output, lines)
    return len(lines) - 1


def _pair(revision: Revision, sample: Sample | None) -> str:
    critiques = [c for c in revision.critiques if not c.supported]
    reasons = (f"- The sentence “{c.text}”: {c.why}" for c in revision.changes if c.text.strip() and c.how != "kept")
    fields = {
        "id": revision.id, "method": revision.method, "how": revision.how, "original": revision.original,
        "revised": revision.revised, "critique": join_critiques(critiques) or "\n".join(reasons),
        "critiques": [c.model_dump() for c in revision.critiques],
        "before": _side(revision.before), "after": _side(revision.after), **dict(_given(sample)),
    }  # fmt: skip
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _side(verdict: Verdict | None) -> dict[str, Any] | None:
    """Return the part of a verdict by which pairs are chosen."""
    if verdict is None:
        return None
    return {"label": verdict.label, "probability": verdict.probability, "hallucinations": count_errors(verdict)}


def _given(sample: Sample | None) -> Iterator[tuple[str, Any]]:
    if sample is not None:
        yield "question", sample.question or sample.meta.get("question")
        yield "documents", [d.model_dump() for d in sample.documents]
        yield "knowledge", list(sample.knowledge)
