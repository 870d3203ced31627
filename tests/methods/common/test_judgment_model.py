"""The features of a claim, one worked example each, and the file of their weights."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.encoder.options import PACKAGED_VERIFIER
from knowhalu.errors import ModelError
from knowhalu.methods.common.judgment_model import (
    BY_SMALL,
    FEATURES,
    OPPOSING,
    REPORTED,
    SUPPORTING,
    JudgmentModel,
    Reading,
    SentenceScores,
    SupportBySteps,
    WindowScores,
    denied_features,
    judgment_features,
    logit,
    speaking_window,
)
from knowhalu.requests import Probabilities
from knowhalu.types import KnowledgeForm, Sample

UNREAD = Probabilities(0.0, 0.0, 1.0)
EVEN, YES, NO = Probabilities(0.4, 0.3, 0.3), Probabilities(0.9, 0.06, 0.04), Probabilities(0.06, 0.9, 0.04)
NOBODY: frozenset[str] = frozenset()


def features(claim, *windows, question=None, names=NOBODY, scores=None, plain=None, joined=None, sentences=(), small=None):
    """Return the features of a claim with one sentence for each window; probabilities that are not given are even."""
    scores = scores or (EVEN,) * len(windows)
    sentences = sentences or [(w, UNREAD, 0.0) for w in windows]
    reading = Reading(WindowScores(scores, plain or scores, joined), tuple(SentenceScores(*s) for s in sentences), small=small)
    return judgment_features(Sample(response=claim, question=question), windows, reading, names)[0]


def test_every_feature_but_that_of_the_topic_is_computed():
    small = WindowScores((YES,), (NO,), None)
    found = features("A claim.", "A source.", small=small)
    assert set(found) == FEATURES | set(REPORTED) - {"on_topic"}
    assert [found[name] for name in BY_SMALL] == [logit(s.supported) for s in (YES, NO, YES)]
    assert set(features("A claim.", "A source.")) == set(found) - set(BY_SMALL)


def test_the_window_that_speaks_of_the_subject_counts_and_not_one_that_supports_more():
    claim, names = "Mara Quill wrote Blue Lamp.", frozenset({"mara", "quill", "blue", "lamp"})
    windows = ("Mara Quill wrote plays.", "Mara Quill never saw the play Blue Lamp.")
    found = features(claim, *windows, names=names, scores=(YES, NO))
    assert found["window_supported"] == logit(NO.supported) and found["window_contradicted"] == logit(NO.contradicted)
    reading = Reading(WindowScores((YES, NO), (YES, NO), None), ())
    assert speaking_window(reading, windows, names) == 1 and speaking_window(reading, windows, NOBODY) == 0


def test_the_names_of_the_question_count_before_those_of_the_answer():
    names, windows = frozenset({"mara", "ada"}), ("Mara built the tower.", "Ada built the mill.")
    reading = Reading(WindowScores((NO, YES), (NO, YES), None), ())
    assert speaking_window(reading, windows, names, "What did Mara build?") == 0
    said = [(windows[0], NO, 0.5), (windows[1], YES, 0.5)]
    found = features("Ada built it.", *windows, question="Who helped Mara?", names=names, scores=(NO, YES), sentences=said)
    assert found["window_supported"] == found["sentence_supported"] == logit(NO.supported)


@pytest.mark.parametrize(("plain", "capped"), [(EVEN, True), (YES, False)])
def test_two_steps_that_refute_limit_a_support_that_is_not_sure(plain, capped):
    by = SupportBySteps("Mara", ("Mara built it.", "Mara was born in Ulm."), 0.04, 0.9)
    reading = Reading(WindowScores((YES,), (plain,), None), (SentenceScores("It was built.", YES, 0.5),), by)
    found, _ = judgment_features(Sample(response="In Bern.", question="Where was she born?"), ("Mara.",), reading, NOBODY)
    names = ("window_supported", "sentence_supported", "joined_supported")
    assert {found[n] for n in names} == {logit(1 - by.refuted if capped else YES.supported)}


def test_scores_with_the_question_and_without_it_are_kept_apart():
    found = features("In 1871.", "It was built in 1871.", scores=(EVEN,), plain=(YES,))
    assert (found["window_supported"], found["plain_supported"]) == (logit(EVEN.supported), logit(YES.supported))


def test_a_sentence_on_another_name_supports_nothing():
    read = (("Ada Lane leads Kestrel Foods.", NO, 0.5), ("Tom Arden leads Norvik.", YES, 0.5))
    found = features("Tom Arden leads Kestrel Foods.", "A source.", names=frozenset({"kestrel", "food"}), sentences=read)
    assert found["sentence_supported"] == logit(NO.supported)


def test_only_sentences_with_half_of_the_words_may_contradict_and_any_may_support():
    far, near = ("Far.", NO, 0.4), ("Near.", YES, 0.2)
    found = features("A claim.", "A source.", sentences=(far, near))
    assert found["sentence_contradicted"] == logit(0.0) and found["sentence_supported"] == logit(YES.supported)
    assert features("A claim.", "A source.", sentences=(("Near.", NO, 0.6),))["sentence_contradicted"] == logit(NO.contradicted)


def test_sentences_of_several_sources_support_at_least_as_much_as_the_window():
    for joined, expected in ((None, EVEN), (NO, EVEN), (YES, YES)):
        assert features("A claim.", "A source.", joined=joined)["joined_supported"] == logit(expected.supported)


def test_words_are_covered_by_any_source_and_those_of_the_question_are_not_fresh():
    found = features("The tall tower fell.", "A tower stood.", "It is tall.", question="Which tower fell?")
    assert found["coverage"] == pytest.approx(2 / 3) and found["fresh_covered"] == 1
    assert features("The old tower fell.", "A tower stood.", question="Which tower fell?")["fresh_covered"] == 0


def test_a_name_that_the_speaking_window_lacks_is_missing():
    found = features("Anna Weiss built it.", "Anna Schwarz built it.", names=frozenset({"anna", "weiss"}))
    assert found["names_missing"] == 0.5


@pytest.mark.parametrize(
    ("claim", "source", "expected"),
    [
        ("It has 1,240 members.", "The club has 1240 members.", "values_equal"),
        ("It has a dozen members.", "The club has 12 members.", "values_equal"),
        ("It has 1,420 members.", "The club has 1240 members.", "values_differ"),
        ("It opened in 1902.", "The club opened in 1871.", "values_differ"),
        ("It has 1,240 members.", "The club has members.", "values_missing"),
        ("It has members.", "The club has 1240 members.", None),
        ("The mill ran for 22 years.", "The mill ran from 1890 to 1912.", "values_equal"),
        ("Membership of the club grew by 200.", "Membership of the club rose from 1,000 to 1,200.", "values_equal"),
    ],
)
def test_a_value_is_equal_different_or_missing(claim, source, expected):
    found = features(claim, source)
    assert [n for n in ("values_equal", "values_differ", "values_missing") if found[n]] == ([expected] if expected else [])


def test_a_result_that_the_values_of_the_source_refute_differs_surely():
    for source in ("The mill ran from 1890 to 1912.", "The mill on the Carn river ran from 1890 to 1912 and made paper."):
        assert features("The mill ran for 12 years.", source)["values_differ"] == 1
        assert features("The mill ran for 22 years.", source)["values_differ"] == 0


def test_a_value_differs_only_from_that_of_the_sentence_nearest_to_its_topic():
    source = ("The Carn tower was built in 1871.", "The Penmor mill was built in 1902.")
    assert features("The Carn tower was built in 1902.", *source)["values_differ"] == 1
    assert features("The Penmor mill was built in 1902.", *source)["values_differ"] == 0
    assert features("The old tower in Penmor fell in 1902.", source[0])["values_differ"] == 0
    assert features("The Carn tower cost 2.5 billion euros.", "The Carn tower cost 2.5 million euros.")["values_differ"] == 2


@pytest.mark.parametrize(("source", "conflict"), [("The mill close in 1911.", 1.0), ("The mill did not close in 1911.", 0.0)])
def test_a_confirmed_value_contradicts_a_denial_unless_the_source_denies_too(source, conflict):
    statement = features("The mill close in 1911.", source)
    assert denied_features(statement, source)["values_differ"] == conflict


@given(st.lists(st.floats(0, 1), min_size=2, max_size=2).map(sorted))
def test_more_support_never_lowers_a_supporting_feature_nor_raises_an_opposing_one(shares):
    found = []
    for p in shares:
        scores = Probabilities(p, 1 - p, 0.0)
        read = (("It has 12 rooms.", scores, 1.0),)
        small = WindowScores((scores,), (scores,), scores)
        found.append(
            features("It has 12 rooms.", "It has 12 rooms.", scores=(scores,), joined=scores, sentences=read, small=small)
        )
    for less, more in pairwise(found):
        assert all(more[n] >= less[n] for n in SUPPORTING) and all(more[n] <= less[n] for n in OPPOSING)


@given(st.text(max_size=300), st.text(max_size=300), st.text(max_size=60))
def test_features_are_finite_for_any_text(claim, source, question):
    found, _ = judgment_features(
        Sample.model_construct(response=claim, question=question),
        (source,),
        Reading(WindowScores((EVEN,), (EVEN,), None), (SentenceScores(source, EVEN, 1.0),)),
        NOBODY,
    )
    assert all(-10 <= v <= 10 for v in found.values())


@given(st.floats(0, 1))
def test_log_odds_are_odd_and_bounded(p):
    assert -6 <= logit(p) <= 6
    assert logit(p) == pytest.approx(-logit(1 - p), abs=1e-3)


@pytest.mark.parametrize("name", [f"{task}.{form}" for task in ("claim", "answer") for form in KnowledgeForm])
def test_the_packaged_weights_have_the_signs_of_their_features(name):
    weights = JudgmentModel(PACKAGED_VERIFIER).weights(*name.split(".")).weights
    assert weights and all(w >= 0 if n in SUPPORTING else w <= 0 and n in OPPOSING for n, w in weights.items())


def judgment(folder, weights):
    fit = {"bias": 0.0, "cut": 0.0, "weights": weights}
    data = {"weights": {f"claim.{form}": fit for form in KnowledgeForm}, "thresholds": {"claim": [0.0, 1.0]}}
    (folder / "judgment.json").write_text(json.dumps(data))
    return JudgmentModel(folder)


@pytest.mark.parametrize("name", ["moon_phase", "joint_supported", "asked_supported", "numbers_missing"])
def test_a_file_with_an_unknown_feature_or_one_of_an_older_version_is_one_clear_error(tmp_path, name):
    with pytest.raises(ModelError, match=rf"judgment\.json.*unknown feature '{name}'.*fit_judgment"):
        judgment(tmp_path, {"window_supported": 1.0, name: 1.0})


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weights": {"claim.structured": {}}, "thresholds": {}}'])
def test_a_damaged_file_is_one_clear_error(tmp_path, text):
    (tmp_path / "judgment.json").write_text(text)
    with pytest.raises(ModelError, match=r"judgment\.json.*fit_judgment"):
        JudgmentModel(tmp_path)


def test_a_folder_without_judgment_weights_is_a_clear_error(tmp_path):
    with pytest.raises(ModelError, match=r"judgment\.json.*fit_judgment"):
        JudgmentModel(tmp_path)
