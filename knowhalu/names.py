"""The name tables: what stands behind a name in the settings. Modules are imported when first asked for."""

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from knowhalu.errors import SettingsError


class MethodCard(NamedTuple):
    """One method: its maker, who can think in it, and what a user should know of it.

    `make` is called with a reasoner and the branch `options` of the settings; without reasoners, with the options alone. A
    reasoner is made from `LLMOptions` and the method's options ("llm"), or from the verifier's folder ("encoder").
    """

    make: str
    options: str
    reasoners: Mapping[str, str]
    does: str
    needs: str
    cost: str


METHODS: Mapping[str, MethodCard] = {
    "knowhalu": MethodCard(
        make="knowhalu.methods.knowhalu:KnowHalu",
        options="knowhalu",
        reasoners={
            "encoder": "knowhalu.reasoners.encoder:EncoderReasoner",
            "llm": "knowhalu.reasoners.llm:LLMReasoner",
        },
        does="off-target check, step-wise queries, knowledge in two forms, judgments joined by their confidence",
        needs="sources of its own, or an index",
        cost="about 2 calls a hop and 2 a judgment; 8 to 40 pairs with the encoder",
    ),
    "trivial-length": MethodCard(
        make="knowhalu.methods.trivial:length", options="trivial", reasoners={},
        does="a rule on the number of words alone: what any detector must clear",
        needs="a border, or rules fitted on labelled rows", cost="nothing",
    ),
    "trivial-overlap": MethodCard(
        make="knowhalu.methods.trivial:overlap", options="trivial", reasoners={},
        does="a rule on the share of the text's words that stand in the sources",
        needs="a border, or rules fitted on labelled rows; sources of its own, or an index", cost="nothing",
    ),
    "trivial-novelty": MethodCard(
        make="knowhalu.methods.trivial:novelty", options="trivial", reasoners={},
        does="a rule on the share of word pairs, names and numbers that stand in no source",
        needs="a border, or rules fitted on labelled rows; sources of its own, or an index", cost="nothing",
    ),
}  # fmt: skip
REASONERS = ("encoder", "llm")
LLMS: Mapping[str, str] = {
    "server": "knowhalu.llm.server:Server",
    "transformers": "knowhalu.llm.transformers:Transformers",
    "vllm": "knowhalu.llm.vllm:VLLM",
}


def method_card(name: str) -> MethodCard:
    """Return the card of a method; raises SettingsError with the nearest known names."""
    return METHODS[_known("method", name, METHODS)]


def llm_backend(name: str) -> Any:
    """Return the class of an LLM backend; raises SettingsError with the nearest known names."""
    return imported(LLMS[_known("LLM backend", name, LLMS)])


def imported(place: str) -> Any:
    """Import what stands at "module:name"."""
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _known(what: str, name: str, table: Mapping[str, Any]) -> str:
    if name not in table:
        near = get_close_matches(name, table, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(f"unknown {what} {name!r}.{hint} Known: {', '.join(sorted(table))}")
    return name
