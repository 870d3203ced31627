"""Trivial baselines, fitted on labelled rows: rules on a feature, and a classifier of the response alone."""

import json
import time
from collections.abc import Iterable, Sequence
from itertools import chain, starmap
from pathlib import Path
from typing import NamedTuple

import numpy as np

import knowhalu
from knowhalu.build import BackendPool, build_engine
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import group_numbers
from knowhalu.evaluation.labelled_rows import LabelledRows, read_labelled_rows
from knowhalu.evaluation.metrics import Flags, Floats, fit_threshold_rule
from knowhalu.evaluation.runs import RunResult, read_run_result
from knowhalu.io.outcomes import format_outcome
from knowhalu.io.output_files import write_text
from knowhalu.io.samples import hash_id, read_samples
from knowhalu.methods.options import TrivialOptions
from knowhalu.results import Segment, Verdict
from knowhalu.settings import Settings
from knowhalu.types import Judgment, Label, Sample

RULES_FILE = "trivial.json"
RESPONSE_ONLY = "response-only"
FOLDS = 5
OTHER_GROUPS = "other groups of the same rows"
"""The rows on which it is trained without others: for each fold the groups of the other folds, with other responses."""


def read_validation_rows(path: Path, rows: LabelledRows) -> LabelledRows:
    """Read the rows to fit on; raises InputError where a compared row is among them, or one of the labels is missing."""
    validation = read_labelled_rows(path)
    shared = validation.contents.keys() & rows.contents.keys()
    if shared:
        example = validation.contents[min(shared)]
        raise InputError(
            f"{path}: {len(shared)} of its rows are compared too (sample {example!r} is one). Fit on rows that are not compared."
        )
    if validation.missing:
        raise InputError(f"{path}: no row is {validation.missing}, so nothing can be fitted on it. Give rows of both labels.")
    return validation


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
    probabilities = _cross_predict(rows) if basis is rows else _predict_from_basis(rows, basis)
    if probabilities is None:
        return None
    head = f'{{"run":{{"version":"{knowhalu.__version__}","method":"{RESPONSE_ONLY}"}}}}'
    outcomes = starmap(_outcome, zip(read_samples(rows.path), probabilities.tolist(), strict=True))
    write_text(output, (f"{line}\n" for line in chain([head], map(format_outcome, outcomes))))
    result = read_run_result(output, rows)
    seconds = (time.perf_counter() - began) / len(rows.gold)
    return ResponseOnlyRun(
        result._replace(cost={**result.cost, "seconds": seconds}), OTHER_GROUPS if basis is rows else str(basis.path)
    )


def _cross_predict(rows: LabelledRows) -> Floats | None:
    """Return the probabilities of all rows, each from a model trained without its group and without its response."""
    from sklearn.model_selection import GroupKFold

    texts, probabilities = _texts(rows), np.full(len(rows.gold), np.nan)
    keys = zip(rows.groups.tolist(), map(_normalise, texts), strict=True)
    groups = group_numbers((("group", group), ("response", text)) for group, text in keys)
    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2:
        return None
    for train, test in GroupKFold(folds).split(rows.gold, rows.gold, groups):
        predicted = _fit_predict([texts[i] for i in train], rows.gold[train], [texts[i] for i in test])
        if predicted is None:
            return None
        probabilities[test] = predicted
    return probabilities


def _predict_from_basis(rows: LabelledRows, basis: LabelledRows) -> Floats | None:
    texts, basis_texts = _texts(rows), _texts(basis)
    compared = set(map(_normalise, texts))
    train = [i for i, text in enumerate(basis_texts) if _normalise(text) not in compared]
    return _fit_predict([basis_texts[i] for i in train], basis.gold[train], texts)


def _texts(rows: LabelledRows) -> list[str]:
    return [sample.response for sample in read_samples(rows.path)]


def _normalise(text: str) -> str:
    return " ".join(text.split()).casefold()


def _fit_predict(train: Sequence[str], gold: Flags, test: Sequence[str]) -> Floats | None:
    """Return P(hallucinated) of texts by a model of others; None where these lack a label, or have no word."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    if gold.all() or not gold.any() or not any(any(c.isalnum() for c in text) for text in train):
        return None
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", sublinear_tf=True, max_features=200_000)
    model = make_pipeline(words, LogisticRegression(class_weight="balanced", max_iter=1000)).fit(train, gold)
    probabilities: Floats = model.predict_proba(test)[:, 1]
    return probabilities


def _outcome(sample: Sample, probability: float) -> Verdict:
    hallucinated = probability > 0.5
    label = Label.INCORRECT if hallucinated else Label.CORRECT
    judgment = Judgment(
        label=label, confidence=max(probability, 1 - probability), p_supported=1 - probability,
        rationale="the words of the response alone",
    )  # fmt: skip
    segment = Segment(
        start=0, end=len(sample.response), text=sample.response, label=label, probability=probability, base=judgment
    )  # fmt: skip
    return Verdict(
        id=sample.id, task=sample.task, method=RESPONSE_ONLY, label=label, hallucinated=hallucinated, kind=None,
        probability=probability, reason=judgment.rationale, segments=(segment,),
    )  # fmt: skip
