"""Single items: which are shown, in which order, and what of each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knowhalu.report.highlight import Stretch, marked_stretches, rebuilt_response
from knowhalu.report.outcomes import FAILED, FAITHFUL, OPEN, WRONG, Outcomes, lines_at
from knowhalu.report.runs import HALLUCINATED, UNKNOWN, Texts, samples_at
from knowhalu.results import Outcome, Verdict
from knowhalu.types import Sample

STATES = ("wrong", "abstained", "failed", "right", "hallucinated", "faithful")
"""How an item stands to its gold label; where it has none, what was said of it."""
SHARES = {"wrong": 4, "abstained": 2, "failed": 1, "right": 1, "hallucinated": 4, "faithful": 1}
"""Parts of the sample that each state may fill; what it does not fill, others do, in the order of `STATES`."""
LARGEST = 100_000
"""Bytes of an outcome up to which its steps are shown."""


@dataclass(frozen=True)
class Item:
    """One outcome as it is shown. `others` is what further methods said of the row; `place` says where the whole outcome is."""

    run: str
    method: str
    state: str
    outcome: Outcome
    sample: Sample | None
    stretches: tuple[Stretch, ...]
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
        return str((self.verdict.open or self.verdict.relation or "") if self.verdict is not None else "")

    @property
    def type(self) -> str:
        """Return the kind of hallucination that the verdict names."""
        return str(self.verdict.kind) if self.verdict is not None and self.verdict.kind is not None else ""


def states_of(found: Outcomes, texts: Texts | None) -> NDArray[np.str_]:
    """Name the state of every outcome."""
    gold = texts.gold[found.place] if texts is not None else np.full(len(found.place), UNKNOWN)
    said_wrong, said = found.said == WRONG, np.where(found.said == WRONG, "hallucinated", "faithful")
    judged = np.where(said_wrong == (gold == HALLUCINATED), "right", "wrong")
    decided = np.where(gold == UNKNOWN, said, judged)
    return np.where(found.said == FAILED, "failed", np.where(found.said == OPEN, "abstained", decided))


def choose(states: NDArray[np.str_], sureness: NDArray[np.float64], most: int) -> list[int]:
    """Choose at most so many outcomes: wrong ones first, then unsure ones, then others; within a state as `_ranked` puts them.

    No state takes more than its share while others have some left, so that each can be looked at.
    """
    ranked = {state: _ranked(state, states, sureness) for state in STATES}
    total = sum(SHARES[state] for state in STATES if ranked[state])
    taken = {state: ranked[state][: max(1, most * SHARES[state] // max(1, total))] for state in STATES}
    room = most - sum(map(len, taken.values()))
    for state in STATES:
        more = ranked[state][len(taken[state]) :][: max(0, room)]
        taken[state] = taken[state] + more
        room -= len(more)
    return [i for state in STATES for i in taken[state]][:most]


def _ranked(state: str, states: NDArray[np.str_], sureness: NDArray[np.float64]) -> list[int]:
    """Put outcomes of a state in order: surely wrong ones first, of the others those that were least sure."""
    members = np.flatnonzero(states == state)
    by = -sureness[members] if state in ("wrong", "hallucinated") else sureness[members]
    return [int(i) for i in members[np.argsort(by, kind="stable")]]


def read_items(
    run: str, texts: Texts | None, outcomes: Mapping[str, Outcomes], chosen: Mapping[str, Sequence[int]]
) -> list[Item]:
    """Read the chosen outcomes and their rows once more, in the order in which they are shown."""
    places = {int(outcomes[m].place[i]) for m, entries in chosen.items() for i in entries}
    samples = dict(samples_at(texts.path, places)) if texts is not None else {}
    said = {m: _said_at(found, places) for m, found in outcomes.items()}
    items = []
    for method, entries in chosen.items():
        found, states = outcomes[method], states_of(outcomes[method], texts)
        lines = {at: (line, outcome) for at, line, outcome in lines_at(found.path, (int(found.offset[i]) for i in entries))}
        for entry in entries:
            place, at = int(found.place[entry]), int(found.offset[entry])
            others = tuple((other, of[place]) for other, of in said.items() if other != method and place in of)
            where = f"{found.path.name}, byte {at:,}"
            items.append(_item(run, method, str(states[entry]), lines[at], samples.get(place), others, where))
    return sorted(items, key=lambda item: STATES.index(item.state))


def _item(
    run: str, method: str, state: str, line: tuple[bytes, Outcome], sample: Sample | None, others: tuple[tuple[str, str], ...],
    place: str,
) -> Item:  # fmt: skip
    raw, outcome = line
    stretches: Sequence[Stretch] = ()
    if isinstance(outcome, Verdict):
        stretches = marked_stretches(sample.response if sample is not None else rebuilt_response(outcome), outcome)
    return Item(run, method, state, outcome, sample, tuple(stretches), others, place, len(raw) <= LARGEST)


def _said_at(found: Outcomes, places: set[int]) -> dict[int, str]:
    names = {FAITHFUL: "faithful", WRONG: "hallucinated", OPEN: "abstained", FAILED: "no verdict"}
    there = np.flatnonzero(np.isin(found.place, list(places)))
    return {int(found.place[i]): _words(names[int(found.said[i])], float(found.probability[i])) for i in there}


def _words(said: str, probability: float) -> str:
    return said if np.isnan(probability) else f"{said} ({probability:.2f})"


def as_fields(item: Item) -> dict[str, Any]:
    """Return an item as plain fields; texts that stand in the row are given once."""
    return {
        "run": item.run, "method": item.method, "state": item.state,
        "sample": None if item.sample is None else item.sample.model_dump(mode="json", exclude={"documents", "knowledge"}),
        "outcome": item.outcome.model_dump(mode="json"), "others": dict(item.others), "place": item.place,
    }  # fmt: skip
