"""Trivial baselines, fitted on labelled rows and compared with every method, and the warnings that follow from them."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import knowhalu
from knowhalu.build import BackendPool, build_engine
from knowhalu.datasets.card import DatasetCard
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate, group_numbers
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.evaluation.metrics import Flags, Floats, fit_threshold_rule
from knowhalu.evaluation.runs import Comparison, MethodResult, RunResult, read_run_result
from knowhalu.evaluation.subsets import LENGTH_MATCHED, Subset
from knowhalu.io.outcomes import format_outcome
from knowhalu.io.output_files import write_text
from knowhalu.io.samples import hash_id, read_samples
from knowhalu.methods.baselines.rules import TRIVIAL_RULES
from knowhalu.methods.options import TrivialOptions
from knowhalu.results import Segment, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Judgment, Label, Sample

RULES_FILE = "trivial.json"
RESPONSE_ONLY = "response-only"
FOLDS = 5
OTHER_GROUPS = "other groups of the same rows"
"""The rows on which it is trained without others: for each fold the groups of the other folds, with other responses."""
SOLVED_THRESHOLD = 0.75
"""Average accuracy from which on a rule counts as solving a set; chance is 0.5."""
LENGTH_RULE = "trivial-length"


def read_validation_rows(path: Path, rows: LabelledRows) -> LabelledRows:
    """Read the rows to fit on; raises InputError where a compared row is among them, or one of the labels is missing."""
    found = read_labelled_rows(path)
    shared = found.contents.keys() & rows.contents.keys()
    if shared:
        example = found.contents[min(shared)]
        raise InputError(
            f"{path}: {len(shared)} of its rows are compared too (sample {example!r} is one). Fit on rows that are not compared."
        )
    if found.missing:
        raise InputError(f"{path}: no row is {found.missing}, so nothing can be fitted on it. Give rows of both labels.")
    return found


def fit_rules(names: Iterable[str], rows: LabelledRows, settings: Settings, folder: Path, pool: BackendPool) -> Path:
    """Fit trivial rules on rows and write them to a file in `folder`; return its path."""
    rules = {}
    for name in names:
        values = _values(name, rows, settings, pool)
        fitted = fit_threshold_rule(values)
        if fitted is None:
            raise InputError(f"{rows.path}: {name} could not be computed for rows of both labels. Give the rows sources.")
        rules[name] = {
            "threshold": fitted.at, "direction": "over" if fitted.over else "under", "rows": len(values),
            "average": fitted.score.average,
        }  # fmt: skip
    path = folder / RULES_FILE
    path.write_text(json.dumps(rules, indent=1) + "\n", encoding="utf-8")
    return path


def _values(name: str, rows: LabelledRows, settings: Settings, pool: BackendPool) -> list[tuple[bool, float]]:
    """Compute the feature of a rule for every row that has it."""
    engine = build_engine(settings.model_copy(update={"method": name, "trivial": TrivialOptions(threshold=0.0)}), pool)
    return [
        (bool(rows.gold[rows.places[hash_id(outcome.id)]]), outcome.segments[0].base.features[name])
        for outcome in engine.run(read_samples(rows.path)) if isinstance(outcome, Verdict)
    ]  # fmt: skip


class ResponseOnlyRun(NamedTuple):
    """Its predictions, and the rows on which it was learned."""

    result: RunResult
    fitted: str


def run_response_only(rows: LabelledRows, basis: LabelledRows, output: Path) -> ResponseOnlyRun | None:
    """Train a logistic regression on the words and word pairs of responses, and predict the labels of the rows with it.

    It is trained on `basis`, or, where that is the rows themselves, for each fold on the groups of the other folds. No response
    that it predicts is among those it was trained on, whatever the row: the labels of repeated responses could be looked up.
    The outcomes are written to `output`. Returns None where a label or a second group is missing.
    """
    began = time.perf_counter()
    found = _cross_predict(rows) if basis is rows else _predict_from_basis(rows, basis)
    if found is None:
        return None
    _write(output, read_samples(rows.path), found)
    result = read_run_result(output, rows)
    seconds = (time.perf_counter() - began) / len(rows.gold)
    return ResponseOnlyRun(
        result._replace(cost={**result.cost, "seconds": seconds}), OTHER_GROUPS if basis is rows else str(basis.path)
    )


def _model() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", sublinear_tf=True, max_features=200_000)
    return make_pipeline(words, LogisticRegression(class_weight="balanced", max_iter=1000))


def _cross_predict(rows: LabelledRows) -> Floats | None:
    """Return the probabilities of all rows, each from a model trained without its group and without its response."""
    from sklearn.model_selection import GroupKFold

    texts, found = _texts(rows), np.full(len(rows.gold), np.nan)
    keys = zip(rows.groups.tolist(), map(_normalise, texts), strict=True)
    groups = group_numbers((("group", group), ("response", text)) for group, text in keys)
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2:
        return None
    for learn, ask in GroupKFold(folds).split(rows.gold, rows.gold, groups):
        said = _fit_predict([texts[i] for i in learn], rows.gold[learn], [texts[i] for i in ask])
        if said is None:
            return None
        found[ask] = said
    return found


def _predict_from_basis(rows: LabelledRows, basis: LabelledRows) -> Floats | None:
    texts, others = _texts(rows), _texts(basis)
    asked = set(map(_normalise, texts))
    known = [i for i, text in enumerate(others) if _normalise(text) not in asked]
    return _fit_predict([others[i] for i in known], basis.gold[known], texts)


def _normalise(text: str) -> str:
    return " ".join(text.split()).casefold()


def _fit_predict(texts: Sequence[str], gold: Flags, asked: Sequence[str]) -> Floats | None:
    if gold.all() or not gold.any() or not any(any(c.isalnum() for c in text) for text in texts):
        return None
    said: NDArray[np.float64] = _model().fit(texts, gold).predict_proba(asked)[:, 1]
    return said


def _texts(rows: LabelledRows) -> list[str]:
    return [sample.response for sample in read_samples(rows.path)]


def _write(output: Path, samples: Iterable[Sample], probabilities: Floats) -> None:
    """Write the outcomes in the form of every other method, at once."""
    head = f'{{"run":{{"version":"{knowhalu.__version__}","method":"{RESPONSE_ONLY}"}}}}'
    write_text(output, "".join(f"{line}\n" for line in chain([head], _lines(samples, probabilities))))


def _lines(samples: Iterable[Sample], probabilities: Floats) -> Iterator[str]:
    for sample, probability in zip(samples, probabilities.tolist(), strict=True):
        wrong = probability > 0.5
        label = Label.INCORRECT if wrong else Label.CORRECT
        judgment = Judgment(
            label=label, confidence=max(probability, 1 - probability), p_supported=1 - probability,
            rationale="the words of the response alone",
        )  # fmt: skip
        whole = Segment(
            start=0, end=len(sample.response), text=sample.response, label=label, probability=probability, base=judgment
        )  # fmt: skip
        yield format_outcome(
            Verdict(
                id=sample.id, task=sample.task, method=RESPONSE_ONLY, label=label, hallucinated=wrong, kind=None,
                probability=probability, reason=judgment.rationale, segments=(whole,),
            )
        )  # fmt: skip


class BaselineScores(NamedTuple):
    """The figures to read those of a method with: Avg Acc of the best rule, of length alone, and both on length-matched rows.

    A rule that was fitted on the same rows gives an upper bound.
    """

    rule: str | None
    rule_fitted: str | None
    rule_average: Estimate
    length_average: Estimate
    matched_average: Estimate
    matched_length_average: Estimate


def baseline_results(comparison: Comparison) -> list[MethodResult]:
    """Return the results of the baselines, the best first."""
    found = [r for r in comparison.results if r.name == r.method and r.method in (*TRIVIAL_RULES, RESPONSE_ONLY)]
    return sorted(found, key=lambda r: -(r.figures["average"].value or 0.0))


def baseline_scores(comparison: Comparison, subsets: Sequence[Subset]) -> dict[str, BaselineScores]:
    """Return the baseline scores of every method by its name; unknown figures are empty."""
    rules = baseline_results(comparison)
    matched = next((s for s in subsets if s.name == LENGTH_MATCHED), None)
    best = rules[0] if rules else None
    length = next((r for r in rules if r.method == LENGTH_RULE), None)
    return {
        result.name: BaselineScores(
            rule=best.name if best else None,
            rule_fitted=best.fitted if best else None,
            rule_average=_average(best),
            length_average=_average(length),
            matched_average=_average_on(matched, result.name),
            matched_length_average=_average_on(matched, length.name if length else LENGTH_RULE),
        )
        for result in comparison.results
    }


def withhold_figures(comparison: Comparison, found: Mapping[str, BaselineScores]) -> tuple[Comparison, list[str]]:
    """Remove the figures of methods that lack a length rule or a length-matched figure.

    Returns the comparison without them, and the names of these methods.
    """
    bare = [name for name, b in found.items() if b.length_average.value is None or b.matched_average.value is None]
    kept_results = tuple(
        replace(r, figures=dict.fromkeys(r.figures, Estimate(None))) if r.name in bare else r for r in comparison.results
    )
    tests = tuple(replace(t, difference=Estimate(None)) if t.name in bare else t for t in comparison.tests)
    return replace(comparison, results=kept_results, tests=tests), bare


def baseline_warnings(comparison: Comparison, card: DatasetCard, subsets: Sequence[Subset], bare: int) -> Iterator[str]:
    """Yield the warnings that a reader of the figures needs, the most serious first."""
    rules = baseline_results(comparison)
    solved = [rule for rule in rules if (_average(rule).value or 0.0) >= SOLVED_THRESHOLD]
    if solved:
        names = ", ".join(f"{rule.title} {100 * (_average(rule).value or 0.0):.1f} %" for rule in solved)
        yield (
            f"Trivial rules solve this set: {names} average accuracy ({SOLVED_THRESHOLD:.0%} or more). "
            "A method may get as much without detecting errors."
        )
    if card.derived:
        yield (
            f"This set is derived from {card.derived}, whose wrong responses were generated and differ in length and style. Its "
            "figures must not be reported without the length rule and the length-matched rows."
        )  # fmt: skip
    yield from _methods_below_best_rule(comparison, rules)
    yield from _rules_solving_matched_rows(subsets, rules)
    if card.pairs and not any(s.name == LENGTH_MATCHED for s in subsets):
        yield "No pair of these rows is length-matched, so nothing can be said about responses of equal length."
    if bare:
        yield f"{bare:,} rows bring no sources: their verdicts depend on the index or on the memory of the model."
    if not any(rule.method == RESPONSE_ONLY for rule in rules):
        yield f"{RESPONSE_ONLY} was not run: it needs rows of both labels and two groups that share no response."


def _methods_below_best_rule(comparison: Comparison, rules: Sequence[MethodResult]) -> Iterator[str]:
    """Yield a warning for each method whose interval is not above the figure of the best rule."""
    best = _average(rules[0]).value if rules else None
    names = {rule.name for rule in rules}
    for result in comparison.results:
        figure = _average(result)
        if result.name in names or best is None or figure.value is None:
            continue
        lower = figure.value if figure.low is None else figure.low
        if lower <= best:
            what = "does not beat" if figure.value <= best else "does not clearly beat"
            shares = f"{100 * figure.value:.1f} % against {100 * best:.1f} %"
            yield f"{result.name} {what} {rules[0].name}: {shares} average accuracy."


def _rules_solving_matched_rows(subsets: Sequence[Subset], rules: Sequence[MethodResult]) -> Iterator[str]:
    """Yield a warning for rules that solve even the length-matched rows."""
    matched = next((s for s in subsets if s.name == LENGTH_MATCHED), None)
    found = {rule.name: _average_on(matched, rule.name).value or 0.0 for rule in rules}
    solved = {name: value for name, value in found.items() if value >= SOLVED_THRESHOLD}
    if solved:
        names = ", ".join(f"{name} {100 * value:.1f} %" for name, value in solved.items())
        yield f"The length-matched rows are solved by other rules: {names} average accuracy."


def _average(result: MethodResult | None) -> Estimate:
    return result.figures["average"] if result is not None else Estimate(None)


def _average_on(matched: Subset | None, name: str) -> Estimate:
    found = matched.of(name) if matched is not None else None
    return found.figures["average"] if found is not None else Estimate(None)
