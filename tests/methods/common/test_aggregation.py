"""Algorithm 1 of the paper, against a reference implementation."""

from hypothesis import given
from hypothesis import strategies as st

from knowhalu.methods.common.combine import Thresholds, aggregate_judgments, needs_second_opinion
from knowhalu.types import Judgment, KnowledgeForm, Label

confidences = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.5, 1.0]))
labels = st.sampled_from(Label)
thresholds = st.builds(Thresholds, confidences, confidences)


def judgments(form):
    return st.builds(Judgment, form=st.just(form), label=labels, confidence=confidences, rationale=st.just("because"))


bases, supplements = judgments(KnowledgeForm.STRUCTURED), judgments(KnowledgeForm.UNSTRUCTURED)


def reference(base, p_base, other, p_other, delta1, delta2):
    """Return the label as Algorithm 1 does."""
    if base == "INCONCLUSIVE":
        final = other
    elif p_base < delta1 and p_other > delta2:
        final = other
    else:
        final = base
    return final


@given(bases, supplements, thresholds)
def test_aggregation_follows_algorithm_1(base, supplement, t):
    expected = reference(base.label, base.confidence, supplement.label, supplement.confidence, t.delta1, t.delta2)
    chosen = aggregate_judgments(base, supplement, t)
    assert chosen.label == expected
    assert chosen in (base, supplement)


@given(bases, supplements, thresholds)
def test_a_second_opinion_only_when_needed_changes_nothing(base, supplement, t):
    lazy = aggregate_judgments(base, supplement, t) if needs_second_opinion(base, t) else base
    assert lazy == aggregate_judgments(base, supplement, t)


@given(bases, supplements, thresholds)
def test_a_confident_base_judgment_is_kept(base, supplement, t):
    if base.label is not Label.INCONCLUSIVE and base.confidence >= t.delta1:
        assert aggregate_judgments(base, supplement, t) == base
        assert not needs_second_opinion(base, t)


def test_thresholds_are_strict():
    def judgment(label, confidence):
        return Judgment(form=KnowledgeForm.STRUCTURED, label=label, confidence=confidence, rationale="")

    t = Thresholds(0.5, 0.8)
    at_delta1, under = judgment("CORRECT", 0.5), judgment("CORRECT", 0.49)
    at_delta2, over = judgment("INCORRECT", 0.8), judgment("INCORRECT", 0.81)
    assert aggregate_judgments(at_delta1, over, t) is at_delta1
    assert aggregate_judgments(under, at_delta2, t) is under
    assert aggregate_judgments(under, over, t) is over
    unsure = judgment("INCONCLUSIVE", 1.0)
    assert aggregate_judgments(unsure, judgment("INCONCLUSIVE", 0.0), t).confidence == 0.0


@given(bases, supplements, thresholds)
def test_an_unmeasured_base_asks_the_other_form_and_an_unmeasured_supplement_overrides_only_inconclusive(base, supplement, t):
    blank = base.model_copy(update={"confidence": None, "p_supported": None})
    assert needs_second_opinion(blank, t) is (t.delta1 > 0 or base.label is Label.INCONCLUSIVE)
    other = supplement.model_copy(update={"confidence": None, "p_supported": None})
    assert aggregate_judgments(base, other, t) is (other if base.label is Label.INCONCLUSIVE else base)
    assert aggregate_judgments(blank, supplement, t).label is (
        supplement.label
        if base.label is Label.INCONCLUSIVE or (t.delta1 > 0 and supplement.confidence > t.delta2)
        else base.label
    )
