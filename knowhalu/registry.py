"""The name tables: what stands behind a name in the settings. Modules are imported when first asked for."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from knowhalu.errors import SettingsError


class MethodCard(NamedTuple):
    """One method: its maker, who can think in it, and what a user should know of it.

    `make` is called with a reasoner and the branch `options` of the settings; without reasoners, with the options alone. A
    reasoner is made from `LLMOptions` and the method's options ("llm"), or from the verifier's folder ("encoder"). Without
    `sources`, it also checks a text that brings none, with no index. A method of `stages` is called with the methods that its
    options of these names hold, by who thinks in them, in place of a reasoner.
    """

    make: str
    options: str
    reasoners: Mapping[str, str]
    does: str
    needs: str
    cost: str
    sources: bool = True
    stages: Mapping[str, tuple[str, ...]] = {}


def _judge_card(name: str, does: str, cost: str, needs: str = "") -> MethodCard:
    make = f"knowhalu.methods.baselines.judge:{name.replace('-', '_')}"
    reasoners = {"llm": "knowhalu.methods.baselines.judge:LLMJudge"}
    return MethodCard(make, "baselines", reasoners, does, needs or _NEEDS_SOURCES, cost, sources=not needs)


_NEEDS_SOURCES = "sources, or an index"
_NEEDS_NOTHING = "nothing; documents of the text are shown"
METHODS: Mapping[str, MethodCard] = {
    "knowhalu": MethodCard(
        make="knowhalu.methods.knowhalu.method:KnowHalu",
        options="knowhalu",
        reasoners={
            "encoder": "knowhalu.methods.knowhalu.encoder:KnowHaluEncoder",
            "llm": "knowhalu.methods.knowhalu.llm:KnowHaluLLM",
        },
        does="off-target check, step-wise queries, knowledge in two forms, judgments joined by their confidence",
        needs=_NEEDS_SOURCES,
        cost="about 2 calls a hop and 2 a judgment; 8 to 40 pairs with the encoder",
    ),
    "conli": MethodCard(
        make="knowhalu.methods.conli.method:CoNLI",
        options="conli",
        reasoners={
            "encoder": "knowhalu.methods.conli.encoder:ConliEncoder",
            "llm": "knowhalu.methods.conli.llm:ConliLLM",
        },
        does="each sentence against the sources as inference, then each entity of the sentences that pass",
        needs=_NEEDS_SOURCES,
        cost="2 calls a sentence and 2 an entity, batched 1 for 8 of them; about 10 pairs a sentence with the encoder",
    ),
    "factored": MethodCard(
        make="knowhalu.methods.factored.method:Factored",
        options="factored",
        reasoners={
            "encoder": "knowhalu.methods.factored.encoder:FactoredEncoder",
            "llm": "knowhalu.methods.factored.llm:FactoredLLM",
        },
        does="the text's claims, each judged alone, and their probabilities of being supported combined into one",
        needs=_NEEDS_SOURCES,
        cost="1 call for 8 sentences and 2 a claim; about 10 pairs a claim with the encoder",
    ),
    "factored-academic": MethodCard(
        make="knowhalu.methods.factored.method:FactoredAcademic",
        options="factored",
        reasoners={
            "encoder": "knowhalu.methods.factored.encoder:FactoredEncoder",
            "llm": "knowhalu.methods.factored.llm:FactoredLLM",
        },
        does="each sentence with citations against the sources that it cites; finds citations that fit none",
        needs="the cited sources, with authors and year in their titles or ids, or in the order of their numbers",
        cost="as factored, for the sentences that cite something",
    ),
    "halueval": _judge_card("halueval", "one label at once, from the model's memory", "1 call", _NEEDS_NOTHING),
    "halueval-knowledge": _judge_card("halueval-knowledge", "one label at once, with knowledge shown", "1 call"),
    "halueval-cot": _judge_card("halueval-cot", "reasons, then one label, from the model's memory", "2 calls", _NEEDS_NOTHING),
    "zero-shot-cot": _judge_card("zero-shot-cot", "reasons by the sources, then one label, without examples", "2 calls"),
    "few-shot": _judge_card("few-shot", "one label at once by the sources, after six examples", "1 call"),
    "factored-single": _judge_card("factored-single", "claims judged in one reply, then one label", "2 calls"),
    "self-consistency": _judge_card(
        "self-consistency", "the majority of 20 judgments of another judge", "20 calls; 40 with reasons"
    ),
    "selfcheck": MethodCard(
        make="knowhalu.methods.baselines.selfcheck:SelfCheck",
        options="baselines",
        reasoners={
            "encoder": "knowhalu.methods.baselines.selfcheck:SelfCheckEncoder",
            "llm": "knowhalu.methods.baselines.selfcheck:SelfCheckLLM",
        },
        does="each piece held against 20 further responses to the same",
        needs="a question or a document; with the encoder, the further responses (meta.samples)",
        cost="20 calls, and 20 for each piece; 20 pairs for each piece with the encoder",
        sources=False,
    ),
    "wikichat": MethodCard(
        make="knowhalu.methods.baselines.wikichat:WikiChat",
        options="baselines",
        reasoners={"llm": "knowhalu.methods.baselines.wikichat:WikiChatLLM"},
        does="claims, evidence by claim, a verdict on each, and the answer from these",
        needs=_NEEDS_SOURCES,
        cost="1 call for each 100 words, 2 for each claim",
    ),
    "cascade": MethodCard(
        make="knowhalu.methods.cascade:Cascade",
        options="cascade",
        reasoners={"encoder": "", "llm": ""},
        does="rules first, then the encoder, and a language model only for what the encoder leaves undecided",
        needs=_NEEDS_SOURCES,
        cost="that of knowhalu with the encoder; with llm also that of knowhalu with it, for the undecided",
        stages={"encoder": ("rules", "encoder"), "llm": ("rules", "encoder", "llm")},
    ),
    "lexical": MethodCard(
        make="knowhalu.methods.baselines.lexical:lexical_baseline",
        options="lexical",
        reasoners={},
        does="what stands word for word in a source, or (if asked for) dates, numbers and names that stand in none; else open",
        needs="sources of the text's own",
        cost="nothing",
    ),
    "trivial-length": MethodCard(
        make="knowhalu.methods.baselines.trivial:length_baseline",
        options="trivial",
        reasoners={},
        does="a rule on the number of words alone: what any detector must clear",
        needs="a border",
        cost="nothing",
        sources=False,
    ),
    "trivial-overlap": MethodCard(
        make="knowhalu.methods.baselines.trivial:overlap_baseline",
        options="trivial",
        reasoners={},
        does="a rule on the share of the text's words that stand in the sources",
        needs=f"a border; {_NEEDS_SOURCES}",
        cost="nothing",
    ),
    "trivial-novelty": MethodCard(
        make="knowhalu.methods.baselines.trivial:novelty_baseline",
        options="trivial",
        reasoners={},
        does="a rule on the share of word pairs, names and numbers that stand in no source",
        needs=f"a border; {_NEEDS_SOURCES}",
        cost="nothing",
    ),
}
REASONERS = ("encoder", "llm")
REWRITERS: Mapping[str, str] = {
    "encoder": "knowhalu.methods.revise.substitution:SubstitutionRewriter",
    "llm": "knowhalu.methods.revise.llm:LLMRewriter",
}
"""Who writes where a text is revised."""
REVISION_FAMILY = "revise"
"""The family of the prompts of revision, and its branch of the settings."""
LLMS: Mapping[str, str] = {
    "server": "knowhalu.llm.server_backend:ServerBackend",
    "transformers": "knowhalu.llm.local.backend:TransformersBackend",
    "vllm": "knowhalu.llm.vllm:VLLMBackend",
}


def method_card(name: str) -> MethodCard:
    """Return the card of a method; raises SettingsError with the nearest known names."""
    return METHODS[_look_up("method", name, METHODS)]


def llm_backend(name: str) -> Any:
    """Return the class of an LLM backend; raises SettingsError with the nearest known names."""
    return import_object(LLMS[_look_up("LLM backend", name, LLMS)])


def import_object(place: str) -> Any:
    """Import what stands at "module:name"."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _look_up(what: str, name: str, table: Mapping[str, Any]) -> str:
    if name not in table:
        near = get_close_matches(name, table, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(f"unknown {what} {name!r}.{hint} Known: {', '.join(sorted(table))}")
    return name
