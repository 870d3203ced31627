"""Single items: which are shown, in which order, and what of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.report.highlight import HighlightedSegment, highlight_segments
from knowhalu.report.outcomes import (
    OUTCOME_FAILED,
    OUTCOME_FAITHFUL,
    OUTCOME_HALLUCINATED,
    OUTCOME_INCONCLUSIVE,
    OutcomeTable,
    read_outcomes_at,
)
from knowhalu.report.run_files import HALLUCINATED, NO_LABEL, RowFacts, read_samples_at
from knowhalu.results import Outcome, Verdict
from knowhalu.types import Sample

ITEM_STATES = ("wrong", "abstained", "failed", "right", "hallucinated", "faithful")
"""How an item stands to its gold label; where it has none, what was said of it."""
STATE_SHARES = {"wrong": 4, "abstained": 2, "failed": 1, "right": 1, "hallucinated": 4, "faithful": 1}
"""Parts of the sample that each state may fill; what it does not fill, others do, in the order of `ITEM_STATES`."""
MAX_OUTCOME_BYTES = 100_000
"""Bytes of an outcome up to which its steps are shown."""


@dataclass(frozen=True)
class ReportItem:
    """One outcome as it is shown. `others` is what further methods said of the row; `place` says where the whole outcome is."""

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
        """Return why the text was left open, or how the sources stand to a hallucinated one."""
        return str((self.verdict.inconclusive_reason or self.verdict.relation or "") if self.verdict is not None else "")

    @property
    def type(self) -> str:
        """Return the kind of hallucination that the verdict names."""
        return str(self.verdict.kind) if self.verdict is not None and self.verdict.kind is not None else ""


def item_states(found: OutcomeTable, texts: RowFacts | None) -> NDArray[np.str_]:
    """Name the state of every outcome."""
    gold = texts.gold[found.place] if texts is not None else np.full(len(found.place), NO_LABEL)
    said_wrong, said = (
        found.said == OUTCOME_HALLUCINATED,
        np.where(found.said == OUTCOME_HALLUCINATED, "hallucinated", "faithful"),
    )
    judged = np.where(said_wrong == (gold == HALLUCINATED), "right", "wrong")
    decided = np.where(gold == NO_LABEL, said, judged)
    return np.where(found.said == OUTCOME_FAILED, "failed", np.where(found.said == OUTCOME_INCONCLUSIVE, "abstained", decided))


def choose_items(states: NDArray[np.str_], sureness: NDArray[np.float64], most: int) -> list[int]:
    """Choose at most so many outcomes: wrong ones first, then unsure ones, then others; within a state as `_ranked` puts them.

    No state takes more than its share while others have some left, so that each can be looked at.
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
    """Put outcomes of a state in order: surely wrong ones first, of the others those that were least sure."""
    members = np.flatnonzero(states == state)
    by = -sureness[members] if state in ("wrong", "hallucinated") else sureness[members]
    return [int(i) for i in members[np.argsort(by, kind="stable")]]


def read_items(
    run: str, texts: RowFacts | None, outcomes: Mapping[str, OutcomeTable], chosen: Mapping[str, Sequence[int]]
) -> list[ReportItem]:
    """Read the chosen outcomes and their rows once more, in the order in which they are shown."""
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
        OUTCOME_FAITHFUL: "faithful",
        OUTCOME_HALLUCINATED: "hallucinated",
        OUTCOME_INCONCLUSIVE: "abstained",
        OUTCOME_FAILED: "no verdict",
    }
    there = np.flatnonzero(np.isin(found.place, list(places)))
    return {int(found.place[i]): _label_text(names[int(found.said[i])], float(found.probability[i])) for i in there}


def _label_text(said: str, probability: float) -> str:
    return said if np.isnan(probability) else f"{said} ({probability:.2f})"


def item_as_json(item: ReportItem) -> dict[str, Any]:
    """Return an item as plain fields; texts that stand in the row are given once."""
    return {
        "run": item.run, "method": item.method, "state": item.state,
        "sample": None if item.sample is None else item.sample.model_dump(mode="json", exclude={"documents", "knowledge"}),
        "outcome": item.outcome.model_dump(mode="json"), "others": dict(item.others), "place": item.place,
    }  # fmt: skip
