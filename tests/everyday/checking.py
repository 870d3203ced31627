"""The whole check of everyday cases, and which verdicts are right."""

from collections.abc import Callable, Iterable, Sequence

from knowhalu.api import Checker
from knowhalu.results import Verdict
from knowhalu.types import InconclusiveReason, Sample
from tests.everyday.cases import Case, Expected


def sample_of(case: Case, number: int) -> Sample:
    """Make a sample of a case, its documents as given knowledge."""
    return Sample.model_validate(
        {"id": str(number), "response": case.response, "question": case.question, "knowledge": list(case.documents)}
    )


def check_cases(checker: Checker, cases: Sequence[Case]) -> list[Verdict]:
    """Check cases, in their order; raises RuntimeError where one fails."""
    samples = [sample_of(case, number) for number, case in enumerate(cases)]
    found: dict[str, Verdict] = {}
    for outcome in checker.stream(samples):
        if not isinstance(outcome, Verdict):
            raise RuntimeError(f"{cases[int(outcome.id)].response!r}: {outcome}")
        found[outcome.id] = outcome
    return [found[s.id] for s in samples]


def is_right(case: Case, verdict: Verdict) -> bool:
    """Tell whether a verdict is what is expected; left open is right only for the reason that is."""
    reasons = {Expected.NOTHING: InconclusiveReason.NOTHING_TO_CHECK, Expected.FOREIGN: InconclusiveReason.LANGUAGE}
    if case.expected in reasons:
        return verdict.hallucinated is None and verdict.inconclusive_reason is reasons[case.expected]
    return verdict.hallucinated is (case.expected is Expected.HALLUCINATED)


def polarity(case: Case) -> str:
    """Return the column of a table in which a case is counted."""
    return "hallucinated" if case.expected is Expected.HALLUCINATED else "faithful"


def shares(cases: Iterable[Case], right: Iterable[bool], key: Callable[[Case], str]) -> dict[str, float]:
    """Return the share of right verdicts of the cases with each key."""
    counted: dict[str, list[bool]] = {}
    for case, ok in zip(cases, right, strict=True):
        counted.setdefault(key(case), []).append(ok)
    return {name: sum(oks) / len(oks) for name, oks in sorted(counted.items())}
