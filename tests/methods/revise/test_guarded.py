"""Guarded revision, branch by branch, with a scripted detector and writer."""

from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.methods.revise.edits import ProposedRewrite, editable_spans
from knowhalu.results import Failure, Revision
from knowhalu.text.edits import apply_edits
from knowhalu.types import HallucinationKind, Label
from tests.support.revising import Detector, Writer, by_words, revise, verdict

BAD = "Mars has wrong moons."
TEXT = f"Mars is red. {BAD} It is cold."


def hows(found):
    return [c.how for c in found.changes]


def test_supported_text_is_unchanged():
    found = revise("Mars is red.\nIt is cold.\n")
    assert (found.status, found.revised, found.changes, found.diff) == ("unchanged", "Mars is red.\nIt is cold.\n", (), "")
    assert found.after == found.before


def test_a_wording_that_passes_the_detector_replaces_the_sentence():
    found = revise(TEXT, {BAD: ["Mars has two moons."]})
    assert (found.status, found.revised) == ("revised", "Mars is red. Mars has two moons. It is cold.")
    (change,) = found.changes
    assert (change.how, change.start, change.text, change.new) == ("rewritten", 13, BAD, "Mars has two moons.")
    assert (change.before, change.after, change.why) == (1.0, 0.0, "it is INCORRECT")
    assert [e.relation for e in change.evidence] == ["contradicts"]
    assert found.original[change.evidence[0].response_start : change.evidence[0].response_end] == BAD
    assert [found.revised[e.response_start : e.response_end] for e in change.support] == ["Mars has two moons."]
    assert "-Mars has wrong moons.\n+Mars has two moons." in found.diff
    assert found.after.hallucinated is False


def test_substitution_and_rewording_are_reported_apart():
    writer = Writer({BAD: ["Mars has two moons."]}, how="substituted")
    assert hows(revise(TEXT, writer=writer)) == ["substituted"]


def test_a_wording_that_is_still_wrong_is_undone_and_the_next_is_tried():
    writer = Writer({BAD: ["Mars has other wrong moons.", "Mars has two moons."]})
    found = revise(TEXT, writer=writer)
    assert found.revised == "Mars is red. Mars has two moons. It is cold."
    assert [refused for _, refused in writer.asked] == [(), ("Mars has other wrong moons.",)]


def test_a_sentence_without_any_supported_wording_is_dropped():
    found = revise(TEXT, {BAD: ["Still wrong moons."]})
    assert (found.status, found.revised, hows(found)) == ("revised", "Mars is red. It is cold.", ["dropped"])
    assert found.changes[0].why == "it is INCORRECT; no wording was found that the sources support"


def test_no_more_wordings_are_tried_than_the_options_allow():
    writer = Writer({BAD: [f"Wrong {i}." for i in range(9)]})
    revise(TEXT, writer=writer, rounds=2)
    assert len(writer.asked) == 2


def test_a_revision_without_any_sentence_is_refused():
    found = revise(f"{BAD} This is unsure.")
    assert (found.status, found.revised, found.after) == ("refused", None, None)
    assert found.reason == "the sources support none of it: it is INCORRECT"
    assert hows(found) == ["dropped", "dropped"]


def test_inconclusive_sentences_are_revised_or_kept_by_option():
    text = "Mars is red. This is unsure."
    assert revise(text).revised == "Mars is red."
    found = revise(text, inconclusive=False)
    assert (found.status, found.revised) == ("unchanged", text)
    assert "left as they are" in found.reason


def test_a_sentence_flagged_below_the_threshold_is_kept():
    text = "Mars is red. This is perhaps wrong. All is wrong."
    assert revise(text).revised == "Mars is red. This is perhaps wrong."
    assert revise(text, threshold=0.6).revised == "Mars is red."
    found = revise("Mars is red. This is perhaps wrong.")
    assert (found.status, found.before.hallucinated) == ("unchanged", True) and "left as they are" in found.reason


def test_an_inconclusive_wording_is_refused():
    assert revise(TEXT, {BAD: ["Mars has unsure moons."]}, inconclusive=False).revised == "Mars is red. It is cold."


def test_an_answer_that_misses_the_question_is_refused():
    found = revise("It is beside the point.", question="Which planet is red?")
    assert (found.status, found.revised, found.changes) == ("refused", None, ())
    assert "does not answer the question" in found.reason


def test_the_remaining_text_must_still_answer_the_question():
    class Answers(Detector):
        def check(self, sample):
            if sample.question and "Mars" not in sample.response:
                return verdict(sample, Label.INCORRECT, (), HallucinationKind.OFF_TARGET)
            return (yield from super().check(sample))

    text = "It is Mars by a wrong count. It is cold."
    found = revise(text, detector=Answers(), question="Which planet?")
    assert (found.status, found.reason) == ("refused", "what the sources support of it does not answer the question")
    better = {"It is Mars by a wrong count.": ["It is Mars."]}
    assert revise(text, better, detector=Answers(), question="Which planet?").revised == "It is Mars. It is cold."


def test_a_drop_that_makes_another_sentence_worse_is_undone():
    text = "There first was wrong water. The ice came later. It is cold."
    found = revise(text)
    assert (found.status, found.revised, hows(found)) == ("unchanged", text, ["kept"])
    assert found.changes[0].why.endswith("without it, the detector would flag “The ice came later.”")
    assert found.after.hallucinated is True


def test_a_wording_that_makes_another_sentence_worse_is_replaced_by_the_next():
    text = "There first was wrong water. The ice came later."
    script = {"There first was wrong water.": ["There was water.", "There first was water."]}
    found = revise(text, script)
    assert found.revised == "There first was water. The ice came later."


def test_of_sentences_that_share_a_segment_those_supported_by_themselves_stay():
    found = revise(TEXT, detector=Detector(size=3))
    assert found.revised == "Mars is red. It is cold."
    assert hows(found) == ["kept", "dropped", "kept"]
    assert "read by itself" in found.changes[0].why


def test_a_segment_flagged_only_as_a_whole_keeps_all_its_sentences_flagged():
    def judge(sentence, text):
        return Label.INCORRECT if text.count(".") > 1 and "left" in text and "right" in text else Label.CORRECT

    found = revise("It goes left. It goes right.", detector=Detector(judge, size=2))
    assert (found.status, hows(found)) == ("refused", ["dropped", "dropped"])


def test_a_new_neighbour_in_a_segment_does_not_make_a_sentence_worse():
    def judge(sentence, text):  # joint readings of these two are beyond the detector, each alone is not
        odd = "Two is here." in text and "Four is here." in text and "Three" not in text
        return Label.INCORRECT if odd and sentence in ("Two is here.", "Four is here.") else by_words(sentence, text)

    class Pairs(Detector):
        def _segment(self, text, group):
            joint = " ".join(s.text for s in group)
            found = super()._segment(joint, editable_spans(joint))
            start, end = group[0].start, group[-1].end
            evidence = tuple(e.model_copy(update={"response_start": start, "response_end": end}) for e in found.evidence)
            return found.model_copy(update={"start": start, "end": end, "text": text[start:end], "evidence": evidence})

    text = "One is here. Two is here. Three is wrong. Four is here."
    found = revise(text, detector=Pairs(judge, size=2))
    assert found.revised == "One is here. Two is here. Four is here."


def test_a_text_flagged_only_as_a_whole_is_a_refused_revision():
    class Vague(Detector):
        def check(self, sample):
            yield from ()
            return verdict(sample, Label.INCORRECT, ())

    found = revise("Mars is red.", detector=Vague())
    assert (found.status, found.reason) == (
        "refused", "the method 'scripted' flags the text (all is INCORRECT), but none of its sentences",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["Mars is broken.", f"{BAD} It is cold."])
def test_a_detector_that_fails_fails_the_revision(text):
    found = revise(text, {BAD: ["Mars is broken."]})
    assert isinstance(found, Failure)
    assert (found.stage, found.reply) == ("judge", "gibberish")


def test_an_item_of_a_list_keeps_its_mark():
    found = revise("- Mars is red.\n- A wrong thing.\n", {"A wrong thing.": ["A right thing."]})
    assert found.revised == "- Mars is red.\n- A right thing.\n"


@pytest.mark.parametrize("proposal", ["", "  ", BAD])
def test_an_empty_or_equal_wording_is_none(proposal):
    assert hows(revise(TEXT, {BAD: [proposal]})) == ["dropped"]


def test_a_sentence_alone_is_checked_without_the_question_it_need_not_answer():
    asked = []

    class Noting(Detector):
        def check(self, sample):
            asked.append((sample.response, sample.question))
            return (yield from super().check(sample))

    revise(TEXT, {BAD: ["Mars has two moons."]}, detector=Noting(), question="Which planet?")
    assert ("Mars has two moons.", None) in asked
    assert all(question == "Which planet?" for text, question in asked if text.startswith("Mars is red"))


def test_ten_thousand_words_take_a_few_readings_of_the_whole():
    text = " ".join(f"Fact {i} is right here. Fact {i} is wrong here." for i in range(1000))
    detector = Detector()
    found = revise(
        text, {f"Fact {i} is wrong here.": [f"Fact {i} is mended here."] for i in range(0, 1000, 2)}, detector=detector
    )
    assert found.revised.count("mended") == 500 and found.revised.count("right") == 1000 and "wrong" not in found.revised
    assert sum(len(checked) > 10_000 for checked in detector.checked) == 2


SENTENCES = [f"The {w} {v}." for w in ("cat", "dog", "ship", "tree") for v in ("sleeps", "sails")]
sentences = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6)
gaps = st.lists(st.sampled_from([" ", "\n", "\n\n", "  "]), min_size=6, max_size=6)


def arbitrary(seed):
    """Make a detector's judgment: it depends on the sentence, and a little on the text that it stands in."""
    return lambda sentence, text: list(Label)[(crc32(f"{sentence}{len(text) // 40}".encode()) ^ seed) % 7 % 3]


@given(sentences, gaps, st.integers(0, 2**20), st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(max_examples=150)
def test_sentences_that_passed_never_change(parts, gap, seed, size, rounds, inconclusive):
    text = "".join(p + g for p, g in zip(parts, gap, strict=False))
    script = {s: [SENTENCES[(i + seed) % 8], f"A new {i}.", f"An other {i}."] for i, s in enumerate(SENTENCES)}
    detector = Detector(arbitrary(seed), size)
    found = revise(text, script, detector=detector, rounds=rounds, inconclusive=inconclusive)
    assert len(detector.checked) <= 1 + len(parts) * (rounds + 2) + rounds + 3
    bad = {Label.INCORRECT, *([Label.INCONCLUSIVE] if inconclusive else [])}
    flagged = [s for s in found.before.segments if s.label in bad]
    passed = [u for u in editable_spans(text) if not any(s.start < u.end and u.start < s.end for s in flagged)]
    touched = [c for c in found.changes if c.text != c.new]
    assert not [u for u in passed for c in touched if c.start < u.end and u.start < c.end]
    if found.status == "refused":
        assert found.revised is None and found.reason
        return
    assert apply_edits(text, found.edits) == found.revised
    shift = 0
    for change in touched:  # a new wording stands only where the detector passes it in the text that came out
        start, end = change.start + shift, change.start + shift + len(change.new)
        assert found.revised[start:end] == change.new
        assert not change.new or all(s.label is Label.CORRECT for s in found.after.segments if s.start < end and start < s.end)
        shift += len(change.new) - len(change.text)


@given(st.text(max_size=60).filter(lambda t: t.strip()), st.text(max_size=20), st.integers(0, 2**20))
def test_hostile_text_is_revised_or_refused(text, proposal, seed):
    class Any(Writer):
        def propose(self, fault, sources, refused):
            yield from ()
            return (ProposedRewrite(proposal, "rewritten"),)

    found = revise(text, detector=Detector(arbitrary(seed)), writer=Any())
    assert isinstance(found, Revision), found
    assert found.revised is None or apply_edits(text, found.edits) == found.revised
