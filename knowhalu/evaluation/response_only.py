"""What the words of the responses alone give away: a detector that never sees a source or a question."""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import knowhalu
from knowhalu.evaluation.bootstrap import group_numbers
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.metrics import Flags, Floats
from knowhalu.evaluation.runs import RunResult, read_run_result
from knowhalu.io.records import format_outcome, read_samples
from knowhalu.results import Segment, Verdict
from knowhalu.types import Judgment, Label, Sample

RESPONSE_ONLY = "response-only"
FOLDS = 5
OTHER_GROUPS = "other groups of the same rows"
"""What it is learned on where there are no other rows: each fold on the groups of the other folds, which share no response."""


class ResponseOnlyRun(NamedTuple):
    """What it said, and on which rows it was learned."""

    told: RunResult
    fitted: str


def run_response_only(rows: LabelledRows, basis: LabelledRows, output: Path) -> ResponseOnlyRun | None:
    """Learn a logistic regression on the words and word pairs of responses, and say what it makes of the rows.

    It learns on `basis`, or, where that is the rows themselves, for each fold on the groups of the others. A response that it is
    asked about it has never learned, whatever the row: labels of responses that return could be looked up. The outcomes are
    written to `output`. Returns None where it cannot be had: a label or a second group is missing.
    """
    began = time.perf_counter()
    found = _cross_predict(rows) if basis is rows else _predict_from_basis(rows, basis)
    if found is None:
        return None
    _write(output, read_samples(rows.path), found)
    told = read_run_result(output, rows)
    seconds = (time.perf_counter() - began) / len(rows.gold)
    return ResponseOnlyRun(
        told._replace(cost={**told.cost, "seconds": seconds}), OTHER_GROUPS if basis is rows else str(basis.path)
    )


def _model() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+", sublinear_tf=True, max_features=200_000)
    return make_pipeline(words, LogisticRegression(class_weight="balanced", max_iter=1000))


def _cross_predict(rows: LabelledRows) -> Floats | None:
    """Return the probabilities of all rows, each from a model that saw no row of its group, nor its response in another."""
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
    beside = output.with_name(f".{output.name}.tmp")
    head = f'{{"run":{{"version":"{knowhalu.__version__}","method":"{RESPONSE_ONLY}"}}}}'
    with beside.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in chain([head], _lines(samples, probabilities)))
    os.replace(beside, output)


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
