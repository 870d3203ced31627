"""Single items of a report: their choice, their order, and their content."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.io.outcomes import (
    FAILED,
    FAITHFUL,
    HALLUCINATED,
    INCONCLUSIVE,
    OutcomeTable,
    read_outcomes_at,
)
from knowhalu.report.highlight import HighlightedSegment, highlight_segments
from knowhalu.report.run_files import read_samples_at
from knowhalu.results import Outcome, Verdict
from knowhalu.types import Sample

ITEM_STATES = ("wrong", "abstained", "failed", "right", "hallucinated", "faithful")
"""States of items: the verdict compared with the gold label, or, without a label, the verdict itself."""
STATE_SHARES = {"wrong": 4, "abstained": 2, "failed": 1, "right": 1, "hallucinated": 4, "faithful": 1}
"""Shares of the items for each state; what a state does not use goes to the others, in the order of `ITEM_STATES`."""
MAX_OUTCOME_BYTES = 100_000
"""Size in bytes up to which an outcome is shown with its steps."""


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


def item_states(found: OutcomeTable, texts: LabelledRows | None) -> NDArray[np.str_]:
    """Return the state of every outcome."""
    hallucinated = found.label == HALLUCINATED
    decided = np.where(hallucinated, "hallucinated", "faithful")
    if texts is not None:
        judged = np.where(hallucinated == texts.gold[found.place], "right", "wrong")
        decided = np.where(texts.labelled[found.place], judged, decided)
    return np.where(found.label == FAILED, "failed", np.where(found.label == INCONCLUSIVE, "abstained", decided))


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
    samples = dict(read_samples_at(texts.path, places)) if texts is not None else {}
    said = {m: _labels_at(found, places) for m, found in outcomes.items()}
    items = []
    for method, entries in chosen.items():
        found, states = outcomes[method], item_states(outcomes[method], texts)
        lines = {
            at: (line, outcome) for at, line, outcome in read_outcomes_at(found.path, (int(found.offset[i]) for i in entries))
        }
        for entry in entries:
            place, at = int(found.place[entry]), int(found.offset[entry])
            others = tuple((other, of[place]) for other, of in said.items() if other != method and place in of)
            where = f"{found.path.name}, byte {at:,}"
            items.append(_item(run, method, str(states[entry]), lines[at], samples.get(place), others, where))
    return sorted(items, key=lambda item: ITEM_STATES.index(item.state))


def _item(
    run: str, method: str, state: str, line: tuple[bytes, Outcome], sample: Sample | None, others: tuple[tuple[str, str], ...],
    place: str,
) -> ReportItem:  # fmt: skip
    raw, outcome = line
    stretches: Sequence[HighlightedSegment] = ()
    if isinstance(outcome, Verdict):
        stretches = highlight_segments(sample.response if sample is not None else outcome.response, outcome)
    return ReportItem(run, method, state, outcome, sample, tuple(stretches), others, place, len(raw) <= MAX_OUTCOME_BYTES)


def _labels_at(found: OutcomeTable, places: set[int]) -> dict[int, str]:
    names = {
        FAITHFUL: "faithful",
        HALLUCINATED: "hallucinated",
        INCONCLUSIVE: "abstained",
        FAILED: "no verdict",
    }
    there = np.flatnonzero(np.isin(found.place, list(places)))
    return {int(found.place[i]): _label_text(names[int(found.label[i])], float(found.probability[i])) for i in there}


def _label_text(said: str, probability: float) -> str:
    return said if np.isnan(probability) else f"{said} ({probability:.2f})"


def item_as_json(item: ReportItem) -> dict[str, Any]:
    """Return an item as plain fields, without the sources."""
    return {
        "run": item.run, "method": item.method, "state": item.state,
        "sample": None if item.sample is None else item.sample.model_dump(mode="json", exclude={"documents", "knowledge"}),
        "outcome": item.outcome.model_dump(mode="json"), "others": dict(item.others), "place": item.place,
    }  # fmt: skip
