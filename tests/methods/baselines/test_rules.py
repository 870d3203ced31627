"""Trivial rules: their measures, their decisions by a threshold, and refused settings."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.api import Checker
from knowhalu.build import build_engine, fingerprint
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import SettingsError
from knowhalu.methods.baselines.rules import (
    TRIVIAL_RULES,
    TrivialBaseline,
    length_baseline,
    source_novelty,
    source_overlap,
    threshold_probability,
)
from knowhalu.methods.options import TrivialOptions
from knowhalu.profiles import load_settings
from knowhalu.types import Label, Sample

SOURCE = "The lighthouse at Carn Point was built in 1871 by Mara Quill. It stands on granite."


@pytest.mark.parametrize(("response", "share"), [
    ("Mara Quill built the lighthouse.", 1.0), ("Mara Quill painted the harbour.", 0.5), ("Nobody swims.", 0.0), ("!!!", 1.0),
    ("The of and", 1.0),
])  # fmt: skip
def test_overlap_is_the_share_of_content_words_that_the_source_has(response, share):
    assert source_overlap(response, SOURCE) == pytest.approx(share)


@pytest.mark.parametrize(("response", "share"), [
    ("It was built in 1871.", 0.0),  # the pair (built, 1871) and the number stand there
    ("It was built in 1872.", 1.0),
    ("Then came Bert Quill.", 3 / 4),  # two pairs and one of two names are new
    ("granite", 0.0), ("marble", 1.0), ("!!!", 0.0),
])  # fmt: skip
def test_novelty_is_the_share_of_pairs_names_and_numbers_that_no_source_has(response, share):
    assert source_novelty(response, SOURCE) == pytest.approx(share)


def check(name, sample, **options):
    (outcome,) = Engine(TrivialBaseline(TRIVIAL_RULES[name], TrivialOptions(**options)), Backends()).run([sample])
    return outcome


@pytest.mark.parametrize(("words", "direction", "label"), [
    (3, None, Label.CORRECT), (4, None, Label.CORRECT), (5, None, Label.INCORRECT),
    (3, "under", Label.INCORRECT), (4, "under", Label.CORRECT), (5, "under", Label.CORRECT),
])  # fmt: skip
def test_a_text_at_the_threshold_is_faithful_and_one_beyond_is_not(words, direction, label):
    verdict = check("trivial-length", Sample(id="1", response=" ".join(["word"] * words)), threshold=4, direction=direction)
    assert verdict.label is label
    assert verdict.hallucinated is (label is Label.INCORRECT)
    assert (verdict.probability > 0.5) is verdict.hallucinated
    assert (verdict.probability == 0.5) is (words == 4)
    assert verdict.segments[0].base.features == {"trivial-length": words}
    assert (verdict.kind, verdict.segments[0].base.confidence_source) == (None, "none")


@given(st.floats(-50, 50), st.floats(-50, 50), st.floats(-20, 20))
def test_the_probability_grows_with_the_distance_and_stays_between_0_and_1(one, other, border):
    low, high = sorted((one, other))
    assert 0 < threshold_probability(low, border) <= threshold_probability(high, border) < 1
    assert threshold_probability(0.0, border) == 0.5


def test_the_question_is_a_source_and_so_are_titles():
    sample = Sample(
        id="1", question="Who built it?", response="Quill built it", documents=({"text": "By Mara.", "title": "Quill"},)
    )
    assert check("trivial-overlap", sample, threshold=0.9).hallucinated is False


def test_a_rule_without_a_threshold_fails_with_the_remedy_before_any_row():
    with pytest.raises(SettingsError, match=r"trivial-length has no threshold.*--fit VALIDATION.jsonl.*trivial.threshold=NUMBER"):
        length_baseline(TrivialOptions())
    with pytest.raises(SettingsError, match="both given"):
        length_baseline(TrivialOptions(threshold=3, rule=__file__))


def test_a_fitted_file_gives_threshold_and_direction(tmp_path):
    file = tmp_path / "trivial.json"
    file.write_text(json.dumps({"trivial-length": {"threshold": 2, "direction": "under"}}))
    settings = load_settings(pairs=["method=trivial-length", f"trivial.rule={file}"])
    assert Checker(settings).check(Sample(id="1", response="one")).hallucinated is True
    first = fingerprint(settings)
    file.write_text(json.dumps({"trivial-length": {"threshold": 3, "direction": "over"}}))
    moved = tmp_path / "other.json"
    moved.write_text(file.read_text())
    assert fingerprint(load_settings(pairs=["method=trivial-length", f"trivial.rule={moved}"]))["rule"] != first["rule"]


def test_the_former_name_of_the_threshold_is_read(tmp_path):
    file = tmp_path / "trivial.json"
    file.write_text(json.dumps({"trivial-length": {"border": 2, "direction": "under"}}))
    for pair in (f"trivial.rule={file}", "trivial.border=2"):
        verdict = Checker(load_settings(pairs=["method=trivial-length", pair])).check(Sample(id="1", response="one two three"))
        assert verdict.hallucinated is (pair == "trivial.border=2")


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"trivial-length": {"threshold": "x"}}', '{"trivial-length": {"threshold": NaN, "direction": "over"}}',
    '{"trivial-length": {"threshold": 1, "direction": "up"}}',
])  # fmt: skip
def test_a_file_that_holds_no_rule_is_refused_with_its_name(tmp_path, text):
    file = tmp_path / "trivial.json"
    file.write_text(text)
    with pytest.raises(SettingsError, match=r"trivial.json: holds no rule for trivial-length .*Fit it again"):
        length_baseline(TrivialOptions(rule=file))


def test_a_rule_without_a_source_fails_with_the_remedy():
    engine = build_engine(load_settings(pairs=["method=trivial-overlap", "trivial.threshold=0.5"]))
    (outcome,) = engine.run([Sample(id="1", response="Mara built it.")])
    assert (outcome.stage, "--index FOLDER" in outcome.reason) == ("retrieval", True)
