"""The contract of every method with each of its reasoners: one verdict or one failure for any input."""

import hashlib
from functools import cache
from types import SimpleNamespace

import pytest

from knowhalu.build import build_method
from knowhalu.engine.engine import Backends, Engine
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.errors import BackendError
from knowhalu.io.outcomes import format_outcome, parse_outcome
from knowhalu.profiles import load_settings
from knowhalu.registry import METHODS, method_card
from knowhalu.requests import Completion
from knowhalu.results import Failure, Verdict
from knowhalu.testing import ScriptedEncoder, ScriptedLLM
from knowhalu.text.sentences import word_count
from knowhalu.types import HallucinationKind, Label, Relation
from tests.support.hostile import BARE, LONG, SAMPLES
from tests.support.imitating import imitated
from tests.support.indexing import WordEmbedder

NEEDED = {name: ("trivial.threshold=0.5",) for name in METHODS if method_card(name).options == "trivial"}
"""Settings without which a method refuses to be made."""
EVERYONE = [(name, who) for name, card in METHODS.items() for who in card.reasoners or ("",)]
SAID = {Label.CORRECT: {False}, Label.INCORRECT: {True}, Label.INCONCLUSIVE: {None}}
TELLS_HOW = {
    "knowhalu",
    "conli",
    "factored",
    "factored-academic",
    "wikichat",
    "few-shot",
    "factored-single",
    "lexical",
    "cascade",
}
"""Methods that hold a text against sources, and know a word for what these leave open."""
every_method = pytest.mark.parametrize(("name", "who"), EVERYONE, ids=[f"{n}-{w}" if w else n for n, w in EVERYONE])


def scored(pair):
    """Make up probabilities that depend on the pair, and favour nothing."""
    a, b, c = (1 + x for x in hashlib.sha256(repr(pair).encode("utf-8", "replace")).digest()[:3])
    return a / (a + b + c), b / (a + b + c), c / (a + b + c)


@cache
def made(name, who):
    """Make a method once: its prompts are loaded then."""
    settings = load_settings(pairs=[f"method={name}", *([f"reasoner={who}"] if who else []), *NEEDED.get(name, ())])
    return build_method(settings)


def run(name, who, samples, *, llm=imitated, encoder=scored):
    """Check samples; return the outcomes and what was asked."""
    searcher = SearchBackend(load_settings().retrieval)
    vars(searcher)["embedder"] = WordEmbedder()
    asked = SimpleNamespace(llm=ScriptedLLM(llm), encoder=ScriptedEncoder(encoder))
    backends = Backends(
        entail=asked.encoder if who == "encoder" or method_card(name).stages else None,
        generate=asked.llm if who == "llm" else None, search=searcher,
    )  # fmt: skip
    outcomes = list(Engine(made(name, who), backends).run(samples))
    assert [o.id for o in outcomes] == [s.id for s in samples]
    for outcome in outcomes:
        assert parse_outcome(format_outcome(outcome)) == outcome
        if isinstance(outcome, Failure):
            assert outcome.stage not in ("internal", "") and outcome.reason, outcome
    return outcomes, asked


def assert_exact(sample, verdict):
    """Every offset names the very text that it claims to name."""
    sources = {d.id: d.text for d in sample.documents} | {f"knowledge-{i}": k for i, k in enumerate(sample.knowledge, 1)}
    length = len(sample.response)
    for segment in verdict.segments:
        assert segment.text == sample.response[segment.start : segment.end]
        for judgment in filter(None, (segment.base, segment.supplement)):
            for step in judgment.steps:
                passages = {p.id: p for p in step.passages}
                assert all(p.text == sources[p.document][p.start : p.end] for p in step.passages)
                assert all(q.text == passages[q.passage].text[q.start : q.end] for q in step.knowledge.quotes)
        for finding in segment.findings:
            assert 0 <= finding.start <= finding.end <= length
    for evidence in verdict.evidence:
        assert 0 <= evidence.response_start <= evidence.response_end <= length
        at = evidence.document_start
        assert evidence.quote == sources[evidence.document][at : at + len(evidence.quote)]


def assert_has_its_reasons(verdict, name):
    """What is open says why, and nothing else does; what is wrong by the sources says how they stand to it."""
    for told in (verdict, *verdict.segments):
        assert (told.inconclusive_reason is not None) == (told.label is Label.INCONCLUSIVE), told
        assert told.relation is None or told.label is Label.INCORRECT
    for judgment in (j for s in verdict.segments for j in (s.base, s.supplement) if j is not None):
        assert judgment.inconclusive_reason is not None or judgment.label is not Label.INCONCLUSIVE, judgment
    wrong = verdict.label is Label.INCORRECT and verdict.kind is not HallucinationKind.OFF_TARGET
    if wrong and name in TELLS_HOW and any(s.label is Label.INCORRECT for s in verdict.segments):
        assert verdict.relation in (Relation.CONTRADICTION, Relation.NEUTRAL)


def assert_is_a_verdict(sample, verdict, name):
    assert isinstance(verdict, Verdict)
    assert (verdict.method, verdict.task) == (name, sample.task)
    assert 0.0 <= verdict.probability <= 1.0
    assert verdict.hallucinated in SAID[verdict.label] and verdict.reason
    assert verdict.kind is None or verdict.hallucinated
    assert_has_its_reasons(verdict, name)
    assert_exact(sample, verdict)


@every_method
def test_every_text_gets_one_verdict_or_one_failure_with_a_reason(name, who):
    outcomes, _ = run(name, who, SAMPLES)
    for sample, outcome in zip(SAMPLES, outcomes, strict=True):
        if isinstance(outcome, Verdict):
            assert_is_a_verdict(sample, outcome, name)
    told = [o for o in outcomes if isinstance(o, Verdict)]
    assert told or _needs_more_than_a_source(outcomes), outcomes[0]


def _needs_more_than_a_source(outcomes):
    """Tell whether all failed for want of something in `meta`, such as samples that a model drew before."""
    return all("meta" in o.reason for o in outcomes)


@every_method
def test_without_any_source_a_failure_names_the_remedy(name, who):
    outcomes, _ = run(name, who, BARE)
    for sample, outcome in zip(BARE, outcomes, strict=True):
        if isinstance(outcome, Failure):
            assert any(word in outcome.reason for word in ("--index", "documents", "knowledge", "source", "meta")), outcome
        else:
            assert_is_a_verdict(sample, outcome, name)


@every_method
@pytest.mark.parametrize("sample", LONG, ids=[s.id for s in LONG])
def test_long_texts_end_and_ask_no_more_than_their_length_allows(name, who, sample):
    (outcome,), asked = run(name, who, [sample])
    if isinstance(outcome, Verdict):
        assert_is_a_verdict(sample, outcome, name)
    requests = len(asked.llm.history) + len(asked.encoder.history)
    assert requests <= 100 + 5 * word_count(sample.response)


@every_method
def test_the_same_text_gets_the_same_verdict_whatever_is_checked_beside_it(name, who):
    alone, _ = run(name, who, SAMPLES[:2])
    beside, _ = run(name, who, SAMPLES[:6])
    assert [o.model_copy(update={"seconds": {}}) if isinstance(o, Verdict) else o for o in alone] == [
        o.model_copy(update={"seconds": {}}) if isinstance(o, Verdict) else o for o in beside[:2]
    ]


FEW = SAMPLES[:7]


def asked_nobody(verdict):
    """Tell whether a rule decided: where nothing was asked, no reply can have become a label."""
    return not verdict.usage.calls and not verdict.usage.pairs


def fails(*_):
    raise BackendError("generate", "the server is down. Start it")


def garbage(request):
    return Completion("\x00%% }{ ### ### ::\n\n((((" + "lorem " * 9)


def nothing(request):
    return Completion("")


def cut_off(request):
    said = "By what the knowledge says of this text, its judgment has to be that of " if request.choices else "CORRECT "
    return Completion(said * 9, finish_reason="length")


@every_method
def test_a_backend_that_does_not_answer_is_a_failure_and_never_a_label(name, who):
    outcomes, _ = run(name, who, FEW, llm=fails, encoder=fails)
    for sample, outcome in zip(FEW, outcomes, strict=True):
        assert isinstance(outcome, Failure) or asked_nobody(outcome), f"{sample.id}: {outcome}"
        assert isinstance(outcome, Verdict) or outcome.reason == "the server is down. Start it" or "meta" in outcome.reason


@pytest.mark.parametrize("name", [n for n, w in EVERYONE if w == "llm"])
@pytest.mark.parametrize("reply", [garbage, nothing, cut_off])
def test_an_unreadable_reply_is_a_failure_and_never_a_label(name, reply):
    outcomes, asked = run(name, "llm", FEW, llm=reply)
    for sample, outcome in zip(FEW, outcomes, strict=True):
        assert isinstance(outcome, Failure) or not outcome.usage.calls, f"{sample.id}: {outcome}"
    assert len(asked.llm.history) <= 100 * len(FEW)


@pytest.mark.parametrize("name", [n for n, w in EVERYONE if w == "llm"])
def test_labels_come_from_the_choices_alone_where_the_rest_is_garbage(name):
    def reply(request):
        return imitated(request) if request.choices else garbage(request)

    outcomes, _ = run(name, "llm", SAMPLES, llm=reply)
    for sample, outcome in zip(SAMPLES, outcomes, strict=True):
        if isinstance(outcome, Verdict):
            assert_is_a_verdict(sample, outcome, name)
