"""Single items of a report: their choice, their order, and their content, with the response in marked pieces."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.io.outcomes import FAILED, FAITHFUL, HALLUCINATED, INCONCLUSIVE, OutcomeTable, read_outcomes_at
from knowhalu.io.samples import read_samples
from knowhalu.results import Evidence, Outcome, Segment, Verdict
from knowhalu.text.probabilities import format_probability
from knowhalu.types import Label, Sample

ITEM_STATES = ("wrong", "abstained", "failed", "right", "hallucinated", "faithful")
"""States of items: the verdict compared with the gold label, or, without a label, the verdict itself."""
STATE_SHARES = {"wrong": 4, "abstained": 2, "failed": 1, "right": 1, "hallucinated": 4, "faithful": 1}
"""Shares of the items for each state; what a state does not use goes to the others, in the order of `ITEM_STATES`."""
MAX_OUTCOME_BYTES = 100_000
"""Size in bytes up to which an outcome is shown with its steps."""
MAX_RESPONSE_CHARS = 20_000
"""Characters of a response that are shown at most."""
SUPPORTED, CONTRADICTED, OPEN = "supported", "contradicted", "open"


class HighlightedText(NamedTuple):
    """Characters of the response with one mark; `evidence` are the numbers, from 1, of the evidence that ends with them."""

    text: str
    mark: str
    evidence: tuple[int, ...] = ()


class HighlightedSegment(NamedTuple):
    """A segment in pieces, with its label; text between segments has none."""

    label: Label | None
    probability: float | None
    pieces: tuple[HighlightedText, ...]


@dataclass(frozen=True)
class ReportItem:
    """One outcome as it is shown; `others` are the verdicts of further methods, `place` is that of the whole outcome."""

    run: str
    method: str
    state: str
    outcome: Outcome
    sample: Sample | None
    stretches: tuple[HighlightedSegment, ...]
    others: tuple[tuple[str, str], ...]
    place: str
    whole: bool

    @property
    def verdict(self) -> Verdict | None:
        """Return the verdict, if there is one."""
        return self.outcome if isinstance(self.outcome, Verdict) else None

    @property
    def why(self) -> str:
        """Return the reason of an inconclusive verdict, or the relation of the sources to a hallucinated text."""
        return str((self.verdict.inconclusive_reason or self.verdict.relation or "") if self.verdict is not None else "")

    @property
    def type(self) -> str:
        """Return the kind of hallucination named by the verdict."""
        return str(self.verdict.kind) if self.verdict is not None and self.verdict.kind is not None else ""


def item_states(table: OutcomeTable, texts: LabelledRows | None) -> NDArray[np.str_]:
    """Return the state of every outcome."""
    hallucinated = table.label == HALLUCINATED
    decided = np.where(hallucinated, "hallucinated", "faithful")
    if texts is not None:
        judged = np.where(hallucinated == texts.gold[table.place], "right", "wrong")
        decided = np.where(texts.labelled[table.place], judged, decided)
    return np.where(table.label == FAILED, "failed", np.where(table.label == INCONCLUSIVE, "abstained", decided))


def choose_items(states: NDArray[np.str_], sureness: NDArray[np.float64], most: int) -> list[int]:
    """Choose at most so many outcomes: wrong ones first, then abstentions, then others; within a state in the order of `_ranked`.

    No state exceeds its share while others have outcomes left, so that every state is shown.
    """
    ranked = {state: _ranked(state, states, sureness) for state in ITEM_STATES}
    total = sum(STATE_SHARES[state] for state in ITEM_STATES if ranked[state])
    taken = {state: ranked[state][: max(1, most * STATE_SHARES[state] // max(1, total))] for state in ITEM_STATES}
    room = most - sum(map(len, taken.values()))
    for state in ITEM_STATES:
        more = ranked[state][len(taken[state]) :][: max(0, room)]
        taken[state] = taken[state] + more
        room -= len(more)
    return [i for state in ITEM_STATES for i in taken[state]][:most]


def _ranked(state: str, states: NDArray[np.str_], sureness: NDArray[np.float64]) -> list[int]:
    """Order the outcomes of a state: the most confident wrong ones first, of other states the least confident ones."""
    members = np.flatnonzero(states == state)
    by = -sureness[members] if state in ("wrong", "hallucinated") else sureness[members]
    return [int(i) for i in members[np.argsort(by, kind="stable")]]


def read_items(
    run: str, texts: LabelledRows | None, outcomes: Mapping[str, OutcomeTable], chosen: Mapping[str, Sequence[int]]
) -> list[ReportItem]:
    """Read the chosen outcomes and their rows again, in the order in which they are shown."""
    places = {int(outcomes[m].place[i]) for m, entries in chosen.items() for i in entries}
    samples = {i: s for i, s in enumerate(read_samples(texts.path)) if i in places} if texts is not None else {}
    labels = {m: _labels_at(table, places) for m, table in outcomes.items()}
    items = []
    for method, entries in chosen.items():
        table, states = outcomes[method], item_states(outcomes[method], texts)
        lines = {at: (raw, outcome) for at, raw, outcome in read_outcomes_at(table.path, (int(table.offset[i]) for i in entries))}
        for entry in entries:
            place, at = int(table.place[entry]), int(table.offset[entry])
            (raw, outcome), sample = lines[at], samples.get(place)
            segments: Sequence[HighlightedSegment] = ()
            if isinstance(outcome, Verdict):
                segments = highlight_segments(sample.response if sample is not None else outcome.response, outcome)
            items.append(
                ReportItem(
                    run=run, method=method, state=str(states[entry]), outcome=outcome, sample=sample, stretches=tuple(segments),
                    others=tuple((other, of[place]) for other, of in labels.items() if other != method and place in of),
                    place=f"{table.path.name}, byte {at:,}", whole=len(raw) <= MAX_OUTCOME_BYTES,
                )
            )  # fmt: skip
    return sorted(items, key=lambda item: ITEM_STATES.index(item.state))


def _labels_at(table: OutcomeTable, places: set[int]) -> dict[int, str]:
    """Return the label of each of these rows in words, a verdict's with its probability."""
    names = {FAITHFUL: "faithful", HALLUCINATED: "hallucinated", INCONCLUSIVE: "abstained", FAILED: "no verdict"}
    labels = {}
    for i in np.flatnonzero(np.isin(table.place, list(places))):
        label, probability = names[int(table.label[i])], float(table.probability[i])
        measured = format_probability(None if np.isnan(probability) else probability)
        labels[int(table.place[i])] = label if table.label[i] == FAILED else f"{label} ({measured})"
    return labels


def item_as_json(item: ReportItem) -> dict[str, Any]:
    """Return an item as plain fields, without the sources."""
    return {
        "run": item.run, "method": item.method, "state": item.state,
        "sample": None if item.sample is None else item.sample.model_dump(mode="json", exclude={"documents", "knowledge"}),
        "outcome": item.outcome.model_dump(mode="json"), "others": dict(item.others), "place": item.place,
    }  # fmt: skip


def highlight_segments(response: str, verdict: Verdict) -> list[HighlightedSegment]:
    """Divide a response into its segments, and these where highlights begin and end; it is cut off at `MAX_RESPONSE_CHARS`.

    A response without segments (an off-target answer) is one piece.
    """
    shown, at = response[:MAX_RESPONSE_CHARS], 0
    segments: list[HighlightedSegment] = []
    evidence = list(enumerate(verdict.evidence, 1))
    for segment in sorted(verdict.segments, key=lambda s: s.start):
        start, end = max(at, segment.start), min(segment.end, len(shown))
        if start >= end:
            continue
        if start > at:
            segments.append(HighlightedSegment(None, None, (HighlightedText(shown[at:start], ""),)))
        of_segment = [(n, e) for n, e in evidence if e.response_start < end and e.response_end > start]
        pieces = tuple(_pieces(shown, start, end, segment, of_segment))
        segments.append(HighlightedSegment(segment.label, segment.probability, pieces))
        at = end
    rest = shown[at:]
    if len(response) > len(shown):
        rest += f" … [{len(response) - len(shown):,} more characters are not shown]"
    label, probability = (None, None) if verdict.segments else (verdict.label, verdict.probability)
    return [*segments, HighlightedSegment(label, probability, (HighlightedText(rest, ""),))] if rest else segments


def _pieces(
    response: str, start: int, end: int, segment: Segment, evidence: Sequence[tuple[int, Evidence]]
) -> Iterator[HighlightedText]:
    marks = [(e.response_start, e.response_end, CONTRADICTED if e.relation == "contradicts" else SUPPORTED) for _, e in evidence]
    marks += [
        (f.start, f.end, CONTRADICTED if f.label is Label.INCORRECT else OPEN)
        for f in segment.findings if f.label is not Label.CORRECT
    ]  # fmt: skip
    cuts = sorted({start, end} | {at for a, b, _ in marks for at in (a, b) if start < at < end})
    for a, b in zip(cuts, cuts[1:], strict=False):
        around = {mark for begin, stop, mark in marks if begin <= a and stop >= b}
        mark = next((m for m in (CONTRADICTED, OPEN, SUPPORTED) if m in around), "")
        ends = tuple(n for n, e in evidence if min(e.response_end, end) == b and e.response_start < b)
        yield HighlightedText(response[a:b], mark, ends)
