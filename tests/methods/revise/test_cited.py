"""Revision of a summary with citations: critiques and new wordings rest on the cited papers only, and decide by Algorithm 1."""

import pytest

from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import ReplyError
from knowhalu.methods.options import ReviseOptions
from knowhalu.methods.revise.critique import read_critique
from knowhalu.methods.revise.guarded import GuardedRevision
from knowhalu.methods.revise.rewrite import LLMRewriter, ResponseRevision
from knowhalu.requests import Completion
from knowhalu.results import Failure
from knowhalu.testing import DocumentWords, ScriptedLLM
from knowhalu.types import Document, Sample
from tests.support.revising import Detector

LING = Document(id="ling2009", title="Ling (2009)", text="Creatine improved several tasks of memory in forty adults.")
BENTON = Document(id="benton2010", title="Benton (2010)", text="Creatine improved the memory of vegetarians; wrong recall fell.")
TEXT = "Ling (2009) found wrong memory gains. Benton (2010) found gains in vegetarians."
FIXED = "Ling (2009) found gains. Benton (2010) found gains in vegetarians."
NO = " Nothing is wrong there.\n### Supported: No\n### Revised claim: Ling (2009) found gains."
YES = " All of it is there.\n### Supported: Yes\n### Revised claim: NONE"


class Citing(Detector):
    name = "factored-academic"


def revise(text=TEXT, how="factored", critique=NO, documents=(LING, BENTON), critique_of="flagged", **options):
    """Return the revision, and what the model was shown by stage."""
    asked = []

    def reply(request):
        stage = request.prompt.rpartition("\n")[2]
        asked.append((stage, request.role, request.prompt[request.fixed :]))
        said = critique(request.prompt[request.fixed :]) if callable(critique) else critique
        return {"### Critique:": said, "### Corrected text:": FIXED, "### Rewrite:": "Ling (2009) found gains."}[stage]

    writer, chosen = LLMRewriter(), ReviseOptions(how=how, critique=critique_of, **options)
    method = (GuardedRevision if how == "guarded" else ResponseRevision)(Citing(), writer, chosen)
    backends = Backends(generate=ScriptedLLM(reply), search=DocumentWords())
    (found,) = Engine(method, backends).run([Sample(id="1", response=text, documents=documents)])
    return found, asked


@pytest.mark.parametrize("words", [800, 40])
@pytest.mark.parametrize("how", ["factored", "guarded"])
def test_another_paper_is_shown_neither_to_a_critique_nor_to_a_new_wording(how, words):
    papers = [d.model_copy(update={"text": f"{d.text} It was so. " * 9}) for d in (LING, BENTON)]
    _, asked = revise(how=how, documents=papers, source_words=words)
    (_, _, shown), *_ = [a for a in asked if a[0] != "### Corrected text:"]
    assert "several tasks" in shown and "vegetarians" not in shown.replace(TEXT, "")


def test_a_citation_that_fits_no_paper_is_criticised_by_the_detector_alone():
    found, asked = revise("Hale (2012) found wrong gains. Benton (2010) found gains.")
    (critique,) = found.critiques
    assert [stage for stage, _, _ in asked] == ["### Corrected text:"]
    assert (critique.critique, critique.supported, critique.documents) == ("it is INCORRECT", False, ())


def test_one_call_gives_critique_and_revised_claim_and_both_reach_the_writer():
    found, asked = revise()
    (critique,) = found.critiques
    assert (critique.text, critique.revised, critique.documents) == (TEXT[:37], "Ling (2009) found gains.", ("ling2009",))
    assert TEXT[critique.start : critique.end] == critique.text
    assert [(stage, role) for stage, role, _ in asked] == [("### Critique:", "critic"), ("### Corrected text:", "writer")]
    said = f"“{critique.text}”: Nothing is wrong there. Revised claim: Ling (2009) found gains."
    assert said in asked[1][2]
    assert (found.revised, found.changes[0].why) == (FIXED, "Nothing is wrong there.")


def test_a_sentence_that_its_critique_supports_is_left_alone():
    found, asked = revise(critique=YES)
    assert (found.status, found.revised, len(asked)) == ("unchanged", TEXT, 1)
    assert found.critiques[0].supported and found.before.hallucinated and "every sentence supported" in found.reason


def test_all_judged_sentences_are_criticised_as_published():
    text = "Ling (2009) found some gains. Benton (2010) found gains in vegetarians."
    found, asked = revise(text, critique=lambda prompt: NO if "Ling" in prompt else YES, critique_of="all")
    assert [c.supported for c in found.critiques] == [False, True] and found.before.hallucinated is False
    assert (len(asked), found.revised, found.unflagged_changed) == (3, FIXED, 0)
    assert revise(text)[1] == []  # by default, of a text that the detector passes nothing is criticised


@pytest.mark.parametrize(("reply", "said"), [
    ("It is wrong.", "neither Yes nor No"),
    ("It is wrong.\n### Supported: Partly", "neither Yes nor No"),
    ("It is wrong.\n### Supported: Yes, but only in part", "neither Yes nor No"),
    ("\n### Supported: No", "no critique"),
    (Completion("It is wrong.\n### Supported: No", finish_reason="length"), "cut off"),
])  # fmt: skip
def test_a_critique_without_a_clear_answer_is_never_support(reply, said):
    with pytest.raises(ReplyError, match=said):
        read_critique(reply if isinstance(reply, Completion) else Completion(reply), "A claim.")
    found, _ = revise(critique=reply)
    assert isinstance(found, Failure) and found.stage == "critique"


@pytest.mark.parametrize("claim", ["", "NONE", "A claim.", "..."])
def test_a_revised_claim_that_is_none_or_the_old_one_is_null(claim):
    assert read_critique(Completion(f"Why.\nSupported: No.\nRevised claim: {claim}"), "A claim.") == ("Why.", False, None)
