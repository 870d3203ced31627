"""Claims about a row of a table in the sources: the row is read alone, and its cells decide where they are certain."""

from collections.abc import Iterator, Mapping, Sequence

from knowhalu.methods.common.judgment_model import logit
from knowhalu.methods.knowhalu.reasons import quoted
from knowhalu.text.blocks import UnitKind, read_tables, read_units
from knowhalu.text.cells import CellCheck, check_cells
from knowhalu.text.overlap import coverage
from knowhalu.text.values import Agreement, topic_of_values
from knowhalu.types import Sample, Step

SETTLED = 0.95
"""P(supported) of a claim that a row of a table confirms."""
CONFLICT = 2.0
"""How surely a row that has another cell contradicts, as `values_differ` counts it."""


def find_row(part: Sample, steps: Sequence[Step]) -> CellCheck | None:
    """Return the row of a table that a claim names; None without one, and where other text is nearer to the claim."""
    asked, texts = part.question or "", dict.fromkeys(_source_texts(part, steps))
    tables = [table for text in texts for table in read_tables(text)]
    checks = [c for t in tables if (c := check_cells(part.response, asked, t)) is not None]
    if not checks or (len(checks) > 1 and len({c.agreement for c in checks}) > 1):
        return None
    check, topic = checks[0], " ".join(topic_of_values(part.response, asked))
    headers = " ".join(c.header.replace("_", " ") for table in tables for c in table[0])
    near = coverage(topic, f"{headers} {check.text}")
    prose = (u.text for text in texts for u in read_units(text) if u.kind not in (UnitKind.TABLE_ROW, UnitKind.HEADING))
    return check if all(coverage(topic, text) <= near for text in prose) else None


def _source_texts(part: Sample, steps: Sequence[Step]) -> Iterator[str]:
    """Yield the given sources whole, as a chunk of a table lacks its header; without any, what was retrieved."""
    yield from part.knowledge
    yield from (d.text for d in part.documents)
    if not part.knowledge and not part.documents:
        yield from (p.text for s in steps for p in s.passages)


def settle_by_row(features: Mapping[str, float], agreement: Agreement | None) -> dict[str, float]:
    """Return the features of a claim that a row confirms or contradicts."""
    if agreement is Agreement.EQUAL:
        support = {n: max(v, logit(SETTLED)) for n, v in features.items() if n.endswith("_supported")}
        return {**features, **support, "values_equal": 1.0, "values_differ": 0.0, "values_missing": 0.0}
    if agreement is Agreement.DIFFERENT:
        return {**features, "values_equal": 0.0, "values_differ": CONFLICT}
    return dict(features)


def row_reason(part: Sample, row: CellCheck, agreement: Agreement) -> str:
    """Return why a row of a table confirms or contradicts."""
    what = "answer" if part.question else "claim"
    if agreement is Agreement.EQUAL:
        return f"supported by the row of the table {quoted(row.text)}"
    return f"the {what} does not agree with “{row.cell}” in the row of the table {quoted(row.text)}"
