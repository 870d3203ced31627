"""By what the rows of a comparison are parted: what a row says of itself, and what a method's verdict on it looks like."""

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from knowhalu.types import SET, TYPE, Sample
from knowhalu.verdicts import Verdict

ROW_TRAITS = {"type": "Type of error", "set": "Set", "words": "Words of the text"}
VERDICT_TRAITS = {"steps": "Steps of the check", "segments": "Segments of the text", "forms": "Forms of knowledge"}
TITLES: Mapping[str, str] = {**ROW_TRAITS, **VERDICT_TRAITS}
"""Keys of breakdowns, and what they are called."""
MOST = 20
"""Parts of one key at most; the rarest beyond are put together."""
OTHERS = "others"


class RowTraits(NamedTuple):
    """What a row says of itself: `meta.type` and `meta.set`, where it has them, and the number of words of its response."""

    type: str | None
    set: str | None
    words: int


class VerdictTraits(NamedTuple):
    """What a verdict looks like: its steps of both forms, its segments, and whether both forms of knowledge agree."""

    steps: int
    segments: int
    forms: str


def traits_of(sample: Sample) -> RowTraits:
    """Return the traits of a row."""
    named = (sample.meta.get(name) for name in (TYPE, SET))
    kind, group = (str(value) if isinstance(value, str | int) and str(value).strip() else None for value in named)
    return RowTraits(kind, group, len(sample.response.split()))


def traits_of_verdict(verdict: Verdict) -> VerdictTraits:
    """Return the traits of a verdict."""
    judgments = [j for s in verdict.segments for j in (s.base, s.supplement) if j is not None]
    agree = {s.forms_agree for s in verdict.segments} - {None}
    forms = "disagree" if False in agree else "agree" if agree else "only one was judged by"
    return VerdictTraits(sum(len(j.steps) for j in judgments), len(verdict.segments), forms)


def named_parts(key: str, values: Sequence[Hashable]) -> list[str | None]:
    """Return the name of the part that each value belongs to; None where it has none.

    Words are parted in thirds, numbers of steps and segments at fixed borders.
    """
    if key == "words":
        return _thirds([int(str(v)) for v in values])
    if key in ("steps", "segments"):
        return [_counted(int(str(v))) for v in values]
    known = [None if v is None else str(v) for v in values]
    names, sizes = np.unique([v for v in known if v is not None] or [""], return_counts=True)
    kept = {str(names[i]) for i in np.argsort(-sizes, kind="stable")[:MOST]}
    return [v if v is None or v in kept else OTHERS for v in known]


def _thirds(numbers: Sequence[int]) -> list[str | None]:
    low, high = np.quantile(numbers, (1 / 3, 2 / 3), method="lower")
    third = [0 if n <= low else 1 if n <= high else 2 for n in numbers]
    members = [[n for n, t in zip(numbers, third, strict=True) if t == part] for part in range(3)]
    names = [f"{min(m)} to {max(m)}" if m and min(m) < max(m) else str(min(m, default="")) for m in members]
    return [names[t] for t in third]


def _counted(number: int) -> str:
    return str(number) if number <= 2 else "3 to 5" if number <= 5 else "6 and more"
