"""Stored outcomes made up for the tests of calibration."""

import numpy as np

from knowhalu.calibration.tunable import FixedPredictions, make_predictions
from knowhalu.methods.common.verdict import resolve_inconclusive
from knowhalu.results import Segment, Verdict
from knowhalu.types import Judgment, KnowledgeForm, Label, Task


def said(ps, gold, open_=()):
    """Make what was said of rows: their P, gold by 1 and 0, and the places that are left open."""
    p, gold = np.array(ps, dtype=float), np.array(gold, dtype=bool)
    left = np.isin(np.arange(len(p)), open_)
    return make_predictions(gold, p > 0.5, left, p)


def fixed(ps, gold, open_=()):
    return FixedPredictions(said(ps, gold, open_))


def judgment(form, label, confidence):
    supported = {Label.CORRECT: confidence, Label.INCORRECT: 1 - confidence, Label.INCONCLUSIVE: 0.5}[label]
    return Judgment(form=form, label=label, confidence=confidence, p_supported=supported, rationale="")


def segment(base, supplement, task=Task.CLAIM):
    p = 1 - base.p_supported
    return Segment(
        start=0, end=0, text="", label=resolve_inconclusive(base.label, task), probability=p, base=base, supplement=supplement
    )


def fields_of(segments, task=Task.CLAIM, **more):
    verdict = Verdict(id="1", task=task, method="m", label=Label.CORRECT, hallucinated=False, kind=None, probability=0.25,
                      reason="", segments=tuple(segments))  # fmt: skip
    return verdict.model_copy(update=more).model_dump(mode="json")


UNSTRUCTURED, STRUCTURED = KnowledgeForm.UNSTRUCTURED, KnowledgeForm.STRUCTURED
