"""Comparisons: read back from their file, or made of one outcome file with gold labels, so that both are shown alike."""

from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from knowhalu.errors import InputError
from knowhalu.evaluation.comparison import Against, Comparison, Result
from knowhalu.evaluation.figures import FIGURES, Said, counts, figures
from knowhalu.evaluation.intervals import Figure, draws, with_intervals
from knowhalu.methods.trivial import probability
from knowhalu.report.outcomes import Outcomes
from knowhalu.report.rows import HALLUCINATED, UNKNOWN, Texts
from knowhalu.scoring import best_border

T = TypeVar("T", Against, Comparison, Result)
AGAIN = "Run the same `knowhalu compare` again; its outcomes are kept."
LENGTH = "trivial-length"


def read_comparison(given: dict[str, Any], path: Path) -> Comparison:
    """Make a comparison of the fields of its file; raises InputError where they are not those of one."""
    try:
        results = tuple(_result(result) for result in given["results"])
        tests = tuple(_known(Against, {**t, "difference": Figure(**t["difference"])}) for t in given["tests"])
        # breakdowns are read apart: knowhalu.report.parts
        return _known(Comparison, {**given, "results": results, "tests": tests, "notes": tuple(given["notes"]), "breakdowns": ()})
    except (KeyError, TypeError) as error:
        raise InputError(f"{path}: not a comparison of KnowHalu ({type(error).__name__}: {error}). {AGAIN}") from error


def check_still_true(comparison: Comparison, outcomes: dict[str, Outcomes], texts: Texts, path: Path) -> None:
    """Compare the figures of a file with its outcomes; raises InputError where these have changed since it was written."""
    for result in comparison.results:
        entries, said = outcomes[result.name].against(texts.gold)
        now = figures(counts(said).sum(axis=0))
        same = all(np.isclose(now[name], _number(result.figures[name].value), equal_nan=True) for name in ("tpr", "tnr"))
        if len(entries) != result.rows or not same:
            raise InputError(f"{path}: is older than the outcomes of {result.name}. {AGAIN}")


def of_outcomes(name: str, found: Outcomes, texts: Texts) -> Comparison | None:
    """Compare one method with gold labels, beside the best rule on length for the same rows; None where no row has a label."""
    entries, said = found.against(texts.gold)
    if not len(entries):
        return None
    places = found.place[entries]
    drawn = draws(int(texts.groups.max()) + 1)
    used = {k: n / max(1, int(found.verdicts.sum())) for k, n in found.usage.items()}
    cost: dict[str, float | None] = {**used, "seconds": None}
    own = Result(
        name, found.method, "", (), len(entries), found.failures, with_intervals(said, texts.groups[places], drawn), cost
    )
    length = _by_length(said, texts.words[places])
    notes = []
    rules: list[Result] = []
    if length is not None:
        rule = with_intervals(length, texts.groups[places], drawn)
        rules = [Result(LENGTH, LENGTH, "", (), len(entries), {}, rule, dict.fromkeys(cost), "the same rows")]
        notes.append(f"{LENGTH} is fitted on these very rows: an upper bound of what length alone gets.")
    known = texts.gold[texts.gold != UNKNOWN]
    if len(known) < len(texts.gold):
        notes.append(f"Figures are of the {len(known):,} rows with a gold label; {len(texts.gold) - len(known):,} have none.")
    hallucinated, groups = int((known == HALLUCINATED).sum()), len(np.unique(texts.groups[texts.gold != UNKNOWN]))
    return Comparison(str(texts.path), len(known), hallucinated, groups, (own, *rules), (), tuple(notes))


def _by_length(said: Said, words: np.ndarray[Any, np.dtype[np.int64]]) -> Said | None:
    border = best_border(zip(said.gold.tolist(), words.tolist(), strict=True))
    if border is None:
        return None
    distance = (words - border.at) * (1 if border.over else -1)
    p = np.array([probability(d, border.at) for d in distance.tolist()])
    return Said(said.gold, distance > 0, np.zeros(len(words), dtype=np.bool_), p)


def _result(given: dict[str, Any]) -> Result:
    figures_of = {name: Figure(None) for name in FIGURES} | {k: Figure(**v) for k, v in given["figures"].items()}
    return _known(Result, {**given, "settings": tuple(given["settings"]), "figures": figures_of})


def _known(kind: type[T], given: dict[str, Any]) -> T:
    """Make a record of the fields that it has; a file of another version may hold more."""
    return kind(**{f.name: given[f.name] for f in fields(kind) if f.name in given})


def _number(value: float | None) -> float:
    return float("nan") if value is None else value
