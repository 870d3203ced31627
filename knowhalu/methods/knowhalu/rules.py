"""What rules find where a verifier guesses: cells of tables, exchanged roles, and names of code that a documentation lacks."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from knowhalu.methods.common.evidence import META_CODE
from knowhalu.methods.common.judgment_model import SETTLED, logit
from knowhalu.methods.knowhalu.reasons import MAX_NAMED, quoted
from knowhalu.text.blocks import UnitKind, read_tables, read_units
from knowhalu.text.cells import MIN_SHARE, CellCheck, check_cells
from knowhalu.text.code import code_names, confirms_code, confirms_settings, similar_name, simplify_code, unknown_names
from knowhalu.text.findings import find_other_unit
from knowhalu.text.overlap import coverage, find_repeated, text_facts
from knowhalu.text.roles import find_converse, find_exchange
from knowhalu.text.sentences import content_words, sentences
from knowhalu.text.values import Agreement, topic_of_values
from knowhalu.types import Label, Sample, Step

CONFLICT = 2.0
"""How surely a rule contradicts a claim, as `values_differ` counts it."""
_DENIED = {Agreement.EQUAL: Agreement.DIFFERENT, Agreement.DIFFERENT: Agreement.EQUAL}


class RuleFinding(NamedTuple):
    """What a rule finds of a statement, the sentence or row that it finds it in, if any, and why in plain words."""

    agreement: Agreement
    sentence: str
    reason: str

    def denied(self) -> "RuleFinding":
        """Return the finding for the denial of the statement."""
        return self._replace(agreement=_DENIED[self.agreement])

    def decides(self, label: Label) -> bool:
        """Tell whether a label agrees with the rule."""
        return (self.agreement is Agreement.EQUAL) == (label is Label.CORRECT)


def apply_rules(
    part: Sample, stated: Sample, steps: Sequence[Step], row: CellCheck | None, views: Sequence[str], *, affirmed: bool
) -> RuleFinding | None:
    """Return what the rules find of an answer or claim, which affirms or denies what is `stated`; None if nothing.

    They read the row of a table that it names, or else the sentences that the verifier read.
    """
    what = "answer" if stated.question else "claim"
    found = _check_row(row, what) if row is not None else _check_sentences(stated, steps, views, what)
    if found is not None:
        return found if affirmed else found.denied()
    return _check_code(part, list(_source_texts(part, steps)), views)


def _check_code(part: Sample, sources: Sequence[str], views: Sequence[str]) -> RuleFinding | None:
    """Check the names of a line of code or of a call; the sentence that has most of them must be about the question."""
    if unknown := unknown_names(part.response, "\n".join(sources)):
        similar = similar_name(unknown[0], "\n".join(sources))
        instead = f", but {quoted(similar, MAX_NAMED)}" if similar else ""
        return RuleFinding(Agreement.DIFFERENT, "", f"the sources do not mention {quoted(unknown[0], MAX_NAMED)}{instead}")
    names = code_names(part.response, is_line=bool(part.meta.get(META_CODE)))
    if not confirms_code(part.response, names, [s.text for text in sources for s in sentences(text)]):
        return None
    nearest = max(views, key=lambda view: sum(name.strip("-") in view for name in names))
    if part.question and coverage(part.question, nearest) < MIN_SHARE:
        return None
    listed = ", ".join(quoted(name, MAX_NAMED) for name in names)
    return RuleFinding(Agreement.EQUAL, nearest, f"the sources have {listed}: {quoted(nearest)}")


def _check_row(row: CellCheck, what: str) -> RuleFinding | None:
    if row.agreement is Agreement.EQUAL:
        return RuleFinding(row.agreement, row.text, f"supported by the row of the table {quoted(row.text)}")
    if row.agreement is not Agreement.DIFFERENT:
        return None
    reason = f"the {what} does not agree with {quoted(row.cell, MAX_NAMED)} in the row of the table {quoted(row.text)}"
    return RuleFinding(row.agreement, row.text, reason)


def _check_sentences(stated: Sample, steps: Sequence[Step], views: Sequence[str], what: str) -> RuleFinding | None:
    claim = stated.response
    if _names_what_is_asked(stated) and (repeated := find_repeated(claim, _quoted_sentences(steps, views))) is not None:
        return RuleFinding(Agreement.EQUAL, repeated, f"the source says so word for word: {quoted(repeated)}")
    if (other := find_exchange(claim, views)) is not None:
        reason = f"the source has the roles of the {what} the other way round: {quoted(other)}"
        return RuleFinding(Agreement.DIFFERENT, other, reason)
    if (measured := find_other_unit(claim, views)) is not None:
        return RuleFinding(Agreement.DIFFERENT, measured, f"the source has another unit than the {what}: {quoted(measured)}")
    if confirms_settings(claim, views):
        return RuleFinding(Agreement.EQUAL, views[0], f"the sources give the same settings: {quoted(views[0])}")
    if (same := find_converse(claim, views)) is not None:
        return RuleFinding(Agreement.EQUAL, same, f"the source says the same from the other side: {quoted(same)}")
    return None


def _names_what_is_asked(stated: Sample) -> bool:
    """Tell whether a statement can be checked without its question: it has the names and half the words of it, if any."""
    question = stated.question or ""
    return text_facts(question).names <= set(content_words(stated.response)) and coverage(question, stated.response) >= MIN_SHARE


def _quoted_sentences(steps: Sequence[Step], views: Sequence[str]) -> Iterator[str]:
    yield from (q.text for step in steps for q in step.knowledge.quotes)
    yield from views


def settle(features: Mapping[str, float], agreement: Agreement | None) -> dict[str, float]:
    """Return the features of a claim that a rule or a calculation confirms or contradicts."""
    if agreement is None:
        return dict(features)
    if agreement is Agreement.DIFFERENT:
        return {**features, "values_equal": 0.0, "values_differ": CONFLICT}
    support = {n: max(v, logit(SETTLED)) for n, v in features.items() if n.endswith("_supported")}
    return {**features, **support, "values_equal": 1.0, "values_differ": 0.0, "values_missing": 0.0}


def find_row(part: Sample, steps: Sequence[Step]) -> CellCheck | None:
    """Return the row of a table that a claim names; None without one, and where other text is nearer to the claim."""
    asked, texts = part.question or "", dict.fromkeys(_source_texts(part, steps))
    tables = [table for text in texts for table in read_tables(text)]
    checks = [c for t in tables if (c := check_cells(part.response, asked, t)) is not None]
    if not checks or (len(checks) > 1 and len({c.agreement for c in checks}) > 1):
        return None
    # a row without a cell that decides is read alone only where it has most of what is claimed
    check, topic = checks[0], " ".join(topic_of_values(part.response, asked))
    headers = " ".join(c.header.replace("_", " ") for table in tables for c in table[0])
    near = coverage(topic, f"{headers} {check.text}")
    if check.agreement is None and near < MIN_SHARE:
        return None
    prose = (u.text for text in texts for u in read_units(text) if u.kind not in (UnitKind.TABLE_ROW, UnitKind.HEADING))
    return check if all(coverage(topic, text) <= near for text in prose) else None


def without_arguments(part: Sample, steps: Sequence[Step] = ()) -> Sample:
    """Return a claim without the values and variables of its code that its writer may choose."""
    text = simplify_code(part.response, "\n".join(_source_texts(part, steps)))
    return part if text == part.response else part.model_copy(update={"response": text})


def _source_texts(part: Sample, steps: Sequence[Step]) -> Iterator[str]:
    """Yield the given sources whole, as a chunk of a table lacks its header; without any, what was retrieved."""
    yield from part.knowledge
    yield from (d.text for d in part.documents)
    if not part.knowledge and not part.documents:
        yield from (p.text for s in steps for p in s.passages)
