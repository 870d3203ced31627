"""What a figure must be read with: what rules that know nothing of truth get on the same rows, and warnings."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from knowhalu.datasets.card import DatasetCard
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.compare import Comparison, MethodResult
from knowhalu.evaluation.response_only import RESPONSE_ONLY
from knowhalu.evaluation.subsets import LENGTH_MATCHED, Subset
from knowhalu.evaluation.tables import result_title
from knowhalu.methods.baselines.trivial import TRIVIAL_RULES

SOLVED_THRESHOLD = 0.75
"""Average accuracy from which on a set is said to be solved by a rule; chance is 0.5."""
LENGTH_RULE = "trivial-length"


class BaselineScores(NamedTuple):
    """What stands beside a method's figures: Avg Acc of the best rule, of length alone, and both on length-matched rows.

    A rule that was fitted on the same rows gives an upper bound.
    """

    rule: str | None
    rule_fitted: str | None
    rule_average: Estimate
    length_average: Estimate
    matched_average: Estimate
    matched_length_average: Estimate


def baseline_results(comparison: Comparison) -> list[MethodResult]:
    """Return the results of the rules that know nothing of truth, the best first."""
    found = [r for r in comparison.results if r.name == r.method and r.method in (*TRIVIAL_RULES, RESPONSE_ONLY)]
    return sorted(found, key=lambda r: -(r.figures["average"].value or 0.0))


def baseline_scores(comparison: Comparison, subsets: Sequence[Subset]) -> dict[str, BaselineScores]:
    """Return for every method what its figures are read with; a figure that cannot be given is empty."""
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
    """Take away the figures that would stand alone: of methods with no length rule or no length-matched figure beside them.

    Returns what is left, and the names of the methods whose figures are withheld.
    """
    bare = [name for name, b in found.items() if b.length_average.value is None or b.matched_average.value is None]
    kept = tuple(
        replace(r, figures=dict.fromkeys(r.figures, Estimate(None))) if r.name in bare else r for r in comparison.results
    )
    tests = tuple(replace(t, difference=Estimate(None)) if t.name in bare else t for t in comparison.tests)
    return replace(comparison, results=kept, tests=tests), bare


def baseline_warnings(comparison: Comparison, card: DatasetCard, subsets: Sequence[Subset], bare: int) -> Iterator[str]:
    """Say what is wrong with taking the figures at their face, worst first."""
    rules = baseline_results(comparison)
    solved = [rule for rule in rules if (_average(rule).value or 0.0) >= SOLVED_THRESHOLD]
    if solved:
        told = ", ".join(f"{result_title(rule)} {100 * (_average(rule).value or 0.0):.1f} %" for rule in solved)
        yield (
            f"Rules that know nothing of truth solve this set: {told} average accuracy ({SOLVED_THRESHOLD:.0%} or more). "
            "What a method gets here says little of whether it tells true from false."
        )
    if card.derived:
        yield (
            f"This set is made of {card.derived}, whose wrong responses were generated and differ in length and style. Its "
            "figures are not to be given without the length rule and the length-matched rows beside them."
        )  # fmt: skip
    yield from _methods_below_best_rule(comparison, rules)
    yield from _rules_solving_matched_rows(subsets, rules)
    if card.pairs and not any(s.name == LENGTH_MATCHED for s in subsets):
        yield "No pair of these rows is length-matched, so nothing can be said of a right and a wrong response of equal length."
    if bare:
        yield f"{bare:,} rows bring no sources: what a method says of them comes from its index or its memory."
    if not any(rule.method == RESPONSE_ONLY for rule in rules):
        yield f"{RESPONSE_ONLY} was not run: it needs rows of both labels and two groups that share no response."


def _methods_below_best_rule(comparison: Comparison, rules: Sequence[MethodResult]) -> Iterator[str]:
    """Name the methods whose interval does not stand above what the best rule gets."""
    border = _average(rules[0]).value if rules else None
    names = {rule.name for rule in rules}
    for result in comparison.results:
        figure = _average(result)
        if result.name in names or border is None or figure.value is None:
            continue
        sure = figure.value if figure.low is None else figure.low
        if sure <= border:
            what = "does not clear" if figure.value <= border else "does not surely clear"
            told = f"{100 * figure.value:.1f} % against {100 * border:.1f} %"
            yield f"{result.name} {what} {rules[0].name}: {told} average accuracy."


def _rules_solving_matched_rows(subsets: Sequence[Subset], rules: Sequence[MethodResult]) -> Iterator[str]:
    """Name the rules that solve even rows of which length tells nothing."""
    matched = next((s for s in subsets if s.name == LENGTH_MATCHED), None)
    found = {rule.name: _average_on(matched, rule.name).value or 0.0 for rule in rules}
    solved = {name: value for name, value in found.items() if value >= SOLVED_THRESHOLD}
    if solved:
        told = ", ".join(f"{name} {100 * value:.1f} %" for name, value in solved.items())
        yield f"The length-matched rows are solved by other rules: {told} average accuracy."


def _average(result: MethodResult | None) -> Estimate:
    return result.figures["average"] if result is not None else Estimate(None)


def _average_on(matched: Subset | None, name: str) -> Estimate:
    found = matched.of(name) if matched is not None else None
    return found.figures["average"] if found is not None else Estimate(None)
