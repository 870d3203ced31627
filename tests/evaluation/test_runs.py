"""Runs: specifications of methods, flagged spans and counted errors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import InputError, SettingsError
from knowhalu.evaluation.labelled_rows import gold_spans, merge_spans
from knowhalu.evaluation.runs import MethodSpec, count_errors, flagged_spans, parse_specs, span_overlap
from knowhalu.results import Evidence, Finding, Segment, Verdict
from knowhalu.types import Judgment, Label, Sample, Task

TEXT = "Gagarin flew in 1960. He flew for 48 minutes."


def finding(start, end, label="INCORRECT"):
    return Finding(unit="claim", start=start, end=end, text=TEXT[start:end], label=label, p_supported=0.1, reason="")


def against(start, end, relation="contradicts"):
    return Evidence(
        response_start=start, response_end=end, relation=relation, probability=0.9, passage="p", title="", quote="q", start=0,
        end=1, document="d", document_start=0,
    )  # fmt: skip


def segment(start, end, label="INCORRECT", **found):
    base = Judgment(label=label, confidence=0.9, rationale="")
    return Segment(start=start, end=end, text=TEXT[start:end], label=label, probability=0.9, base=base, **found)


def verdict(*segments, label="INCORRECT"):
    return Verdict(
        id="a", task=Task.CLAIM, method="m", label=label, hallucinated=label == "INCORRECT", kind=None, probability=0.9,
        reason="", segments=segments,
    )  # fmt: skip


def test_incorrect_segment_is_flagged_as_a_whole():
    found = verdict(segment(0, 21, "CORRECT", evidence=(against(16, 20),)), segment(22, 45))
    assert (flagged_spans(found), count_errors(found)) == ([(22, 45)], 1)


def test_contradicting_evidence_flags_its_characters_only():
    found = verdict(segment(0, 21, evidence=(against(16, 20), against(0, 7, "supports"))), segment(22, 45))
    assert (flagged_spans(found), count_errors(found)) == ([(16, 20), (22, 45)], 2)


def test_incorrect_findings_flag_their_contradicted_characters():
    found = verdict(
        segment(0, 45, findings=(finding(0, 21), finding(22, 45), finding(25, 29, "CORRECT")), evidence=(against(34, 36),))
    )
    assert (flagged_spans(found), count_errors(found)) == ([(0, 21), (34, 36)], 2)


def test_off_target_answer_is_one_error_without_spans_and_inconclusive_is_none():
    assert (flagged_spans(verdict()), count_errors(verdict())) == ([], 1)
    open_ = verdict(segment(0, 45, "INCONCLUSIVE", findings=(finding(0, 4, "INCONCLUSIVE"),)), label="INCONCLUSIVE")
    assert (flagged_spans(open_), count_errors(open_)) == ([], 0)
    assert count_errors(verdict(label=Label.CORRECT)) == 0


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(lambda s: (min(s), max(s))), max_size=6)


@given(spans, spans)
def test_overlap_counts_characters(one, other):
    def characters(stretches):
        return {c for start, end in stretches for c in range(start, end)}

    first, second = merge_spans(one), merge_spans(other)
    assert characters(first) == characters(one)
    assert all(a[1] < b[0] for a, b in zip(first, first[1:], strict=False))
    ours, theirs = characters(one), characters(other)
    assert span_overlap(first, second) == (len(ours & theirs), len(ours), len(theirs))


def test_gold_spans_of_a_sample():
    def sample(label="hallucinated", **meta):
        return Sample(id="a", response="0123456789", label=label, meta=meta)

    assert gold_spans(sample(spans=[[4, 6], [1, 2], [5, 8]]), "f") == [(1, 2), (4, 8)]
    assert gold_spans(sample(), "f") is None
    assert gold_spans(sample("faithful"), "f") == []
    for wrong in ([[3, 11]], [[5, 2]], [["1", 2]], [[1, 2, 3]], "1-2", [[True, 2]]):
        with pytest.raises(InputError, match=r"f, sample 'a', field 'meta.spans': not spans of its 10 characters"):
            gold_spans(sample(spans=wrong), "f")


@pytest.mark.parametrize(("text", "spec"), [
    ("knowhalu", MethodSpec("knowhalu", "knowhalu")),
    ("knowhalu:llm", MethodSpec("knowhalu-llm", "knowhalu", "llm")),
    ("knowhalu[delta1=0.5, llm.votes=3]", 
     MethodSpec("knowhalu-delta1-0.5-llm.votes-3", "knowhalu", None, ("knowhalu.delta1=0.5", "llm.votes=3"))),
    ("a=knowhalu:encoder[off_target=false]", MethodSpec("a", "knowhalu", "encoder", ("knowhalu.off_target=false",))),
])  # fmt: skip
def test_spec_has_a_name_a_reasoner_and_settings(text, spec):
    assert parse_specs([text]) == [spec]


def test_specs_are_separated_by_commas_outside_brackets():
    assert [s.name for s in parse_specs(["knowhalu, b=knowhalu[delta1=1,delta2=1]", "trivial-length"])] == [
        "knowhalu",
        "b",
        "trivial-length",
    ]


def test_settings_of_a_spec_take_precedence():
    settings = parse_specs(["knowhalu:encoder[delta1=0.5]"])[0].settings(
        None, ["knowhalu.delta1=0.1", "knowhalu.delta2=0.2", "reasoner=llm"]
    )
    assert (settings.knowhalu.delta1, settings.knowhalu.delta2, settings.reasoner) == (0.5, 0.2, "encoder")


@pytest.mark.parametrize(("texts", "said"), [
    (["knowhallu"], "Did you mean 'knowhalu'"), ([" , "], "no method is named"), (["know halu"], "is no method. Write it as"),
    (["knowhalu[delta1]"], "is no setting of a method"), (["knowhalu[method=x]"], "is no setting of a method"),
    (["knowhalu,knowhalu"], "two methods would be called 'knowhalu'"), (["A=knowhalu,a=knowhalu"], "two methods would be called"),
    (["trivial-length=knowhalu"], "'trivial-length' is the name of a method"),
])  # fmt: skip
def test_invalid_spec_is_refused_with_the_syntax(texts, said):
    with pytest.raises(SettingsError) as told:
        parse_specs(texts)
    assert said in str(told.value)


def test_invalid_setting_is_refused_with_the_method():
    with pytest.raises(SettingsError, match=r"^b: .*knowhalu.nosuch: no such setting"):
        parse_specs(["b=knowhalu[nosuch=1]"])[0].settings(None, [])
    with pytest.raises(SettingsError, match=r"^knowhalu-me: unknown reasoner 'me'. Use knowhalu:encoder or knowhalu:llm"):
        parse_specs(["knowhalu:me"])[0].settings(None, [])
