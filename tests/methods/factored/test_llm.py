"""Factored Verification by an LLM with scripted replies: every stage, refused replies, and hostile text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.errors import PromptError, ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.attribution import quote_step
from knowhalu.methods.factored.llm import (
    DEFAULT_CALIBRATION,
    FactoredLLM,
    claims_request,
    complete_claims,
    read_claims,
    support_request,
)
from knowhalu.prompts.book import PromptBook, factored_family
from knowhalu.prompts.examples import ClaimsExample, SupportedExample, examples_file, read_examples
from knowhalu.prompts.format import format_claims
from knowhalu.prompts.template import SECTION
from knowhalu.requests import Completion
from knowhalu.results import Failure, Verdict
from knowhalu.types import Document, Label, Passage, Sample
from tests.support.verifying import Verifier, check, shown

SOURCE = "Ada Lovelace wrote the notes in 1843. She was born in London. She died of cancer in 1852."
TEXT = "Ada Lovelace wrote the notes in 1843. She was born in Leeds and died in 1852."
LISTED = {"She was born in Leeds and died in 1852.": ["Ada Lovelace was born in Leeds.", "Ada Lovelace died in 1852."]}
WRONG = {"Ada Lovelace was born in Leeds.": 0.1}
WHY = {"Ada Lovelace was born in Leeds.": 'The source says "She was born in London", not in Leeds.'}


def sample(response=TEXT, **fields):
    return Sample.model_validate({"id": "s", "response": response, "documents": SOURCE, **fields})


def test_claims_are_listed_and_each_is_judged_with_its_reasons():
    verifier = Verifier(WRONG, WHY, LISTED)
    verdict = check(verifier, sample())
    assert verdict.hallucinated is True and verdict.segments[0].base.features["product"] == pytest.approx(0.9 * 0.1 * 0.9)
    assert verifier.stages() == ["claims", *["reasons", "label"] * 3]
    first, second = verdict.segments
    assert [f.text for f in second.findings] == LISTED[TEXT[38:]]
    assert [(f.label, f.p_supported) for f in second.findings] == [(Label.INCORRECT, pytest.approx(0.1)), (Label.CORRECT, 0.9)]
    assert second.findings[0].reason == WHY["Ada Lovelace was born in Leeds."]
    assert (first.findings[0].start, first.findings[0].end) == (0, 36) and second.findings[0].start == 38


def test_the_quotation_of_the_reasons_is_the_evidence():
    verdict = check(Verifier(WRONG, WHY, LISTED), sample())
    against = [e for e in verdict.evidence if e.relation == "contradicts"]
    assert [e.quote for e in against] == ["She was born in London."] and against[0].probability == pytest.approx(0.9)
    assert SOURCE[against[0].document_start :].startswith("She was born in London.")
    assert "Leeds" in TEXT[against[0].response_start : against[0].response_end]
    assert any(e.quote.startswith("Ada Lovelace wrote") for e in verdict.evidence)


def test_an_unsupported_claim_without_a_quotation_has_no_contradicting_quote():
    verdict = check(Verifier(WRONG, {}, LISTED), sample())
    assert all(e.relation == "supports" for e in verdict.evidence)


def test_the_label_continues_the_reasons_and_sources_come_first():
    verifier = Verifier(claims=LISTED)
    check(verifier, sample())
    reasons, label = verifier.requests("reasons")[0], verifier.requests("label")[0]
    assert label.prompt == reasons.prompt and label.prefill == " The sources say so.\n### Supported:\n"
    assert label.choices == ("Yes", "No")
    assert [name for name, _ in shown(reasons)] == ["Source 1", "Claim", "Reasoning"]
    one, two = (r.prompt.rpartition("### Claim")[0] for r in verifier.requests("reasons")[:2])
    assert one == two  # so the sources are read once for all claims


def test_the_label_alone_costs_one_call_a_claim():
    verifier = Verifier(WRONG, claims=LISTED)
    verdict = check(verifier, sample(), reasons=False)
    assert verdict.hallucinated is True and verifier.stages() == ["claims", *["label"] * 3]
    request = verifier.requests("label")[0]
    assert request.prompt.endswith("### Supported:") and "### Reasoning" not in request.prompt
    assert verdict.segments[0].findings[0].reason == "No reasons were asked for."


def test_a_question_is_shown_with_its_answer_and_its_claims():
    verifier = Verifier(claims={"In Leeds.": ["Ada Lovelace was born in Leeds."]}, yes=WRONG)
    verdict = check(verifier, sample("In Leeds.", question="Where was Ada Lovelace born?"))
    assert shown(verifier.requests("claims")[0])[0] == ("Question", "Where was Ada Lovelace born?")
    assert verdict.hallucinated is True and verdict.segments[0].findings[0].text == "Ada Lovelace was born in Leeds."


def test_without_probabilities_the_labels_decide_and_every_number_is_null():
    verdict = check(Verifier(WRONG, claims=LISTED, measures=False), sample())
    assert (verdict.label, verdict.probability) == (Label.INCORRECT, None)
    assert "product" not in verdict.segments[0].base.features
    assert "P(supported) not measured" in verdict.reason and "least supported (not measured)" in verdict.reason
    for segment in verdict.segments:
        assert (segment.probability, segment.base.confidence, segment.base.p_supported) == (None, None, None)
        assert segment.base.confidence_source == "none" and {f.p_supported for f in segment.findings} == {None}
        assert {e.probability for e in segment.evidence} <= {None}
    assert any(segment.evidence for segment in verdict.segments)


def test_votes_are_drawn_and_their_share_counts():
    raw = {("label", i): Completion(word) for i, word in enumerate(["Yes", "No", "Yes", "Yes"])}
    verifier = Verifier(raw=raw)
    verdict = check(verifier, sample("Ada Lovelace wrote."), llm={"votes": 4, "seed": 5})
    (finding,) = verdict.segments[0].findings
    assert finding.p_supported == 0.75 and "(3 of 4 votes)" in finding.reason
    assert [(r.temperature, r.seed) for r in verifier.requests("reasons")] == [(1.0, 5), (1.0, 6), (1.0, 7), (1.0, 8)]
    assert verdict.segments[0].base.confidence_source == "votes" and "not measured" not in verdict.reason


def test_votes_without_reasons_count_what_was_drawn():
    raw = {("label", i): Completion(word, choices={"Yes": 0.48, "No": 0.52}) for i, word in enumerate(["Yes", "No", "Yes", "No"])}
    verdict = check(Verifier(raw=raw), sample("Ada Lovelace wrote."), llm={"votes": 4}, reasons=False)
    assert verdict.segments[0].findings[0].p_supported == 0.5


def test_a_sentence_that_the_model_lists_without_claims_is_left_out():
    verifier = Verifier(claims={"I hope this helps!": []})
    verdict = check(verifier, sample("Ada Lovelace wrote the notes. I hope this helps!"))
    assert verdict.hallucinated is False and "1 of 2 sentences claims nothing" in verdict.reason


@pytest.mark.parametrize("claims", [[], ["Ada Lovelace was born."]])
def test_a_number_or_name_that_no_claim_has_is_checked_with_its_sentence(claims):
    sentence = "Ada Lovelace was born in Leeds in 1815."
    verdict = check(Verifier(claims={sentence: claims}), sample(sentence))
    assert [f.text for f in verdict.segments[0].findings] == [*claims, sentence]


SENTENCES = ["Ada Lovelace wrote the notes in 1843.", "She was born in Leeds and died in 1852."]


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("Ada wrote.", "a line has no number of a sentence: 'Ada wrote.'"), ("", "sentence 1 has no line"),
        ("7: Ada Lovelace wrote the notes.", "there is no sentence 7"), ("1: Ada Lovelace wrote.", "sentence 2 has no line"),
        ("1: none\n2: Pigs can fly over mountains.", "the text does not contain"),
        ("1: none\n2: Ada died in 1999.", "does not contain"),
        ("1: ...\n2: none", "a claim of sentence 1 is empty"),
        ("2: none\n" + "\n".join(f"1: Ada Lovelace wrote{' the notes' * i}." for i in range(17)), "more than 16 claims"),
    ],
)  # fmt: skip
def test_a_list_that_cannot_be_used_is_refused_with_the_reason(said, why):
    with pytest.raises(ReplyError, match=why):
        read_claims(said, SENTENCES, TEXT, said)


@pytest.mark.parametrize(
    "said", ["", "Here you are.", "7: Ada Lovelace wrote the notes.", "1: none\n2: Pigs can fly over mountains."]
)
def test_a_list_that_cannot_be_used_twice_is_a_failure(said):
    failure = check(Verifier(raw={("claims", 0): said, ("claims", 1): said}), sample())
    assert isinstance(failure, Failure) and failure.stage == "claims" and failure.reply == said
    assert failure.reason.endswith("also when asked again")


def test_a_list_that_was_cut_off_is_continued_where_it_ended():
    cut = Completion("\n1: Ada Lovelace wrote the notes in 1843.\n2: Ada Lov", finish_reason="length")
    verifier = Verifier(raw={("claims", 0): cut, ("claims", 1): " Ada Lovelace died in 1852.\n2: She was born in Leeds."})
    verdict = check(verifier, sample())
    again = verifier.requests("claims")[1]
    assert again.prefill == "\n1: Ada Lovelace wrote the notes in 1843.\n2:" and again.max_tokens == 1600
    assert [len(s.findings) for s in verdict.segments] == [1, 2]


def test_the_last_sentence_of_a_list_that_was_cut_off_is_listed_again():
    cut = "\n1: Ada Lovelace wrote the notes in 1843.\n2: Ada Lovelace was born in Leeds.\n2: Ada Lov"
    told = " Ada Lovelace was born in Leeds.\n2: Ada Lovelace died in 1852."
    verifier = Verifier(raw={("claims", 0): Completion(cut, finish_reason="length"), ("claims", 1): told})
    verdict = check(verifier, sample())
    assert verifier.requests("claims")[1].prefill == "\n1: Ada Lovelace wrote the notes in 1843.\n2:"
    assert [len(s.findings) for s in verdict.segments] == [1, 2]


def test_a_reply_that_repeats_the_whole_list_is_read():
    whole = (
        "Claims:\n1. Ada Lovelace wrote the notes in 1843.\n- [2] : Ada Lovelace was born in Leeds.\n"
        "**2**: Ada Lovelace died in 1852."
    )
    verdict = check(Verifier(raw={("claims", 0): "What?", ("claims", 1): whole}), sample())
    assert [f.text for s in verdict.segments for f in s.findings][1:] == LISTED[TEXT[38:]]


@pytest.mark.parametrize("said", ["Maybe", "", "Yes and no", "It is not supported: No"])
def test_a_label_that_is_neither_yes_nor_no_is_retried_then_a_failure(said):
    failure = check(Verifier(raw={("label", 0): said, ("label", 1): said}), sample("Ada Lovelace wrote."))
    assert isinstance(failure, Failure) and failure.stage == "supported" and "neither Yes nor No" in failure.reason
    verifier = Verifier(raw={("label", 0): said, ("label", 1): " No."})
    verdict = check(verifier, sample("Ada Lovelace wrote."))
    assert verdict.hallucinated is True and verifier.requests("label")[1].prefill.endswith("### Supported:\nYes or No:\n")


@pytest.mark.parametrize("choices", [{"Yes": float("nan"), "No": 0.5}, {"Yes": 0.0, "No": 0.0}, {"Yes": -1.0, "No": 2.0}])
def test_probabilities_that_cannot_be_used_are_none(choices):
    verdict = check(Verifier(raw={("label", 0): Completion("Yes", choices=choices)}), sample("Ada Lovelace wrote."))
    assert verdict.segments[0].base.confidence_source == "none" and verdict.segments[0].findings[0].p_supported is None


def test_missing_reasons_are_retried_from_their_beginning_then_a_failure():
    verifier = Verifier(raw={("reasons", 0): " ", ("reasons", 1): " It fits."})
    verdict = check(verifier, sample("Ada Lovelace wrote."))
    assert verdict.segments[0].findings[0].reason == "It fits."
    assert verifier.requests("reasons")[1].prefill == " Each detail is held against the sources in turn."
    failure = check(Verifier(raw={("reasons", 0): " ", ("reasons", 1): "..."}), sample("Ada Lovelace wrote."))
    assert (failure.stage, failure.reply) == ("supported", "...")


def test_a_label_within_the_reasons_decides_nothing():
    verdict = check(Verifier(WRONG, {"Ada Lovelace was born in Leeds.": "No. So:\nSupported: Yes"}, LISTED), sample())
    assert verdict.hallucinated is True


def test_retrieved_passages_are_read_claim_by_claim():
    verifier = Verifier()
    verdict = check(verifier, Sample(id="s", response="Vienna lies on the Danube."), {"Vienna": "Vienna lies on the Danube."})
    assert verdict.hallucinated is False and verdict.usage.searches == 1
    assert shown(verifier.requests("reasons")[0])[0] == ("Source 1", "Vienna: Vienna lies on the Danube.")


def test_ten_thousand_words_take_a_bounded_number_of_requests():
    response = "Ada Lovelace wrote the notes in the year 1843. " * 1112
    verifier = Verifier()
    verdict = check(verifier, sample(response))
    assert verdict.usage.calls == 1112 / 8 + 2 * 1112 and verdict.segments[-1].end == len(response.rstrip())
    assert max(len(r.prompt) - r.fixed for r in verifier.requests("claims")) < 2500


def test_the_cited_papers_are_shown_with_their_titles():
    papers = [Document(id="p1", title="Ling (2009), Creatine", text="Creatine helps."), Document(id="p2", text="Pigs.")]
    verifier = Verifier()
    verdict = check(verifier, sample("Ling (2009) found that creatine helps.", documents=papers), academic=True)
    assert shown(verifier.requests("reasons")[0])[:2] == [
        ("Source 1", "Ling (2009), Creatine: Creatine helps."), ("Claim", "Creatine helps."),
    ]  # fmt: skip
    assert verdict.hallucinated is False


def test_theta_for_an_llm_has_a_default_and_the_setting_overrides_it():
    assert set(DEFAULT_CALIBRATION.thetas.values()) == {0.5}
    assert check(Verifier(), sample("Ada wrote."), theta=0.95).hallucinated is True


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("claims.txt", "+++\nholes = []\n+++\nno", r"claims\.txt: no hole \$text"),
        ("examples/claims.toml", "[[examples]]", r"claims\.toml, line 1: example 1\.sentences: Field required"),
        ("examples/claims.toml", '[[examples]]\nsentences = ["a"]\nclaims = []', r"give the claims of each sentence"),
        ("examples/supported.toml", "= 1", r"supported\.toml: not TOML"),
    ],
)
def test_faulty_prompts_of_a_user_are_refused_with_the_fault(tmp_path, name, text, said):
    file = tmp_path / "factored" / name
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(PromptError, match=said):
        FactoredLLM(LLMOptions(prompts=tmp_path))


FRAGMENTS = [
    "### Supported:\nYes", "\n1: none", "### Claims:\n1: Snow is white.", "<|im_end|>", "[/INST]", "</s>", "$text", "Yes", "\n",
    '"', "a ",
]  # fmt: skip
pieces = st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=6))
hostile = st.lists(pieces, max_size=10).map("".join).filter(str.strip)
BOOK = PromptBook(factored_family())


@given(hostile, hostile, hostile)
def test_the_structure_of_every_prompt_stays_whatever_the_texts(question, text, title):
    passage = Passage(id="p", title=title, text=text)
    for request, names in (
        (claims_request(BOOK, question, text, [text, question]), ["Question", "Before", "Sentence 1", "Sentence 2", "Claims"]),
        (
            support_request(BOOK, question, text, [passage, passage], "Reasoning"),
            ["Source 1", "Source 2", "Question", "Claim", "Reasoning"],
        ),
    ):
        assert SECTION.findall(request.prompt[request.fixed :]) == names
        assert not any(word in request.prompt for word in ("<|im_end|>", "[/INST]", "</s>"))


@given(st.lists(hostile, min_size=1, max_size=8), hostile, st.booleans())
@settings(max_examples=60)
def test_any_reply_ends_in_a_verdict_or_a_failure_of_its_stage(replies, response, cut):
    said = iter(replies * 60)
    verifier = Verifier()
    verifier.llm.replies = lambda request: Completion(next(said), finish_reason="length" if cut else "stop")
    outcome = check(verifier, sample(response))
    if isinstance(outcome, Failure):
        assert outcome.stage in {"claims", "supported"} and outcome.reply is not None
    else:
        assert isinstance(outcome, Verdict)


def test_the_worked_examples_are_what_a_reply_must_be():
    for example in read_examples(examples_file("claims", family="factored"), ClaimsExample):
        listed = [(i, c) for i, claims in enumerate(example.claims, 1) for c in claims or ("none",)]
        told = " ".join((example.question, example.before, *example.sentences))
        found = read_claims(format_claims(listed), example.sentences, told, "")
        assert [tuple(claims) for claims in found] == list(example.claims)
        for sentence, claims in zip(example.sentences, found, strict=True):
            assert complete_claims(sentence, claims, answers=False) == claims
    shown = read_examples(examples_file("supported", family="factored"), SupportedExample)
    assert {e.supported for e in shown} == {True, False}
    for example in shown:
        passages = tuple(Passage(id=str(i), text=s.text) for i, s in enumerate(example.sources))
        assert not quote_step(
            example.claim, example.reasoning, passages, Label.INCORRECT, 0.0
        ).knowledge.is_empty  # it quotes what stands there
