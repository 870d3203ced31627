"""The registry: methods, LLM backends, retrievers, data sets and verifiers by name, built in or from an installed extension.

A built-in is written as "module:Class" and imported when it is first used. An extension is an entry point in one of the groups
`knowhalu.methods`, `.llms`, `.retrievers`, `.datasets` and `.verifiers`. A name may also be an import path, "module:Class".
Names come from settings and commands only; nothing that is read from rows or stored outcomes is looked up here.
"""

import re
import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from knowhalu.errors import KnowHaluError, SettingsError, hide_password
from knowhalu.io.fitted_files import file_hash

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal["methods", "llms", "retrievers", "datasets", "verifiers"]
"""A group of entry points, without its prefix `knowhalu.`."""
KIND_NAMES: Mapping[Kind, str] = {
    "methods": "method", "llms": "LLM backend", "retrievers": "retriever", "datasets": "data set", "verifiers": "verifier",
}  # fmt: skip
_BASES: Mapping[Kind, str] = {"methods": "Method", "llms": "LLMBackend", "retrievers": "RetrieverBackend"}
"""The base classes, in `knowhalu.extend`, of the kinds that have options."""
_METHOD_ATTRIBUTES = ("name", "Options", "check", "reasoners", "needs", "cost", "needs_sources", "stages")
_IMPORT_PATH = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


class MethodCard(NamedTuple):
    """A method: how it is made, which reasoners it has, and what a user should know about it.

    `make` is called with a reasoner and the branch `options` of the settings; without reasoners, with the options alone. A
    reasoner is made from `LLMOptions` and the method's options ("llm"), or from the verifier's folder ("encoder"). A method with
    `stages` is called with the methods that its options of these names hold, by stage, in place of a reasoner. The `make` of an
    extension is its class, a subclass of `knowhalu.extend.Method`. Without `needs_sources`, the method also checks a text that
    brings no source where there is no index.
    """

    make: str | type[Any]
    options: str
    reasoners: Mapping[str, str]
    about: str
    needs: str
    cost: str
    needs_sources: bool = True
    stages: Mapping[str, tuple[str, ...]] = {}


def _family_card(family: str, method: str, reasoner: str, about: str, cost: str, needs: str = "") -> MethodCard:
    package = f"knowhalu.methods.{family}"
    reasoners = {"encoder": f"{package}.encoder:{reasoner}Encoder", "llm": f"{package}.llm:{reasoner}LLM"}
    return MethodCard(f"{package}.method:{method}", family, reasoners, about, needs or _NEEDS_SOURCES, cost)


def _judge_card(name: str, about: str, cost: str, needs: str = "") -> MethodCard:
    make = f"knowhalu.methods.baselines.judge:{name.replace('-', '_')}"
    reasoners = {"llm": "knowhalu.methods.baselines.judge:LLMJudge"}
    return MethodCard(make, "baselines", reasoners, about, needs or _NEEDS_SOURCES, cost, needs_sources=not needs)


def _wikichat_card(form: str, about: str, cost: str) -> MethodCard:
    make = f"knowhalu.methods.baselines.wikichat{'_' if form else ''}{form.lower()}:WikiChat{form}"
    return MethodCard(make, "baselines", {"llm": f"{make}LLM"}, about, _NEEDS_SOURCES, cost)


def _rule_card(rule: str, about: str, *, needs_sources: bool = True) -> MethodCard:
    make, needs = f"knowhalu.methods.baselines.rules:{rule}_baseline", "a threshold (trivial.threshold)"
    needs = f"{needs}; {_NEEDS_SOURCES}" if needs_sources else needs
    return MethodCard(make, "trivial", {}, about, needs, "nothing", needs_sources)


_NEEDS_SOURCES = "sources, or an index"
_NEEDS_NOTHING = "nothing; documents that come with the text are in the prompt"
METHODS: Mapping[str, MethodCard] = {
    "knowhalu": _family_card(
        "knowhalu", "KnowHalu", "KnowHalu",
        about="off-target check, step-wise queries, knowledge in two forms, judgments combined by their confidence",
        cost="about 2 calls a hop and 2 a judgment; 8 to 40 pairs with the encoder",
    ),
    "conli": _family_card(
        "conli", "CoNLI", "Conli",
        about="entailment of each sentence by the sources, then of each entity in the sentences that pass",
        cost="2 calls a sentence and 2 an entity, batched 1 for 8 of them; about 10 pairs a sentence with the encoder",
    ),
    "factored": _family_card(
        "factored", "Factored", "Factored",
        about="claim decomposition: each claim judged alone, and the probabilities of support combined into one",
        cost="1 call for 8 sentences and 2 a claim; about 10 pairs a claim with the encoder",
    ),
    "factored-academic": _family_card(
        "factored", "FactoredAcademic", "Factored",
        about="each sentence with citations against the sources that it cites; finds citations that match no source",
        needs="the cited sources, with authors and year in their titles or ids, or in the order of their numbers",
        cost="as factored, for the sentences that cite something",
    ),
    "halueval": _judge_card("halueval", "one label at once, from the model's memory", "1 call", _NEEDS_NOTHING),
    "halueval-knowledge": _judge_card("halueval-knowledge", "one label at once, with the knowledge in the prompt", "1 call"),
    "halueval-cot": _judge_card("halueval-cot", "reasons, then one label, from the model's memory", "2 calls", _NEEDS_NOTHING),
    "zero-shot-cot": _judge_card("zero-shot-cot", "reasons from the sources, then one label, without examples", "2 calls"),
    "zero-shot-memory": _judge_card("zero-shot-memory", "as zero-shot-cot, from the model's memory", "2 calls", _NEEDS_NOTHING),
    "few-shot": _judge_card("few-shot", "one label at once from the sources, after six examples", "1 call"),
    "factored-single": _judge_card("factored-single", "claims judged in one reply, then one label", "2 calls"),
    "self-consistency": _judge_card("self-consistency", "the majority of 20 judgments of a judge", "20 calls; 40 with reasons"),
    "selfcheck": MethodCard(
        make="knowhalu.methods.baselines.selfcheck:SelfCheck", options="baselines",
        reasoners={"encoder": "knowhalu.methods.baselines.selfcheck:SelfCheckEncoder",
                   "llm": "knowhalu.methods.baselines.selfcheck:SelfCheckLLM"},
        about="each segment compared with 20 further responses to the same prompt",
        needs="a question or a document; with the encoder, the further responses (meta.samples)",
        cost="20 calls, and 20 for each segment; 20 pairs for each segment with the encoder", needs_sources=False,
    ),
    "wikichat": _wikichat_card("", "claims, each judged by its own evidence", "1 call for each 100 words, 2 for each claim"),
    "wikichat-loop": _wikichat_card("Loop", "a judgment from memory, then by its claims that hold", "6 calls, 2 for each claim"),
    "cascade": MethodCard(
        make="knowhalu.methods.cascade:Cascade", options="cascade", reasoners={"encoder": "", "llm": ""},
        about="rules first, then the encoder, and a language model only for texts that the encoder leaves undecided",
        needs=_NEEDS_SOURCES, cost="that of knowhalu with the encoder; with llm also that of knowhalu with it, if undecided",
        stages={"encoder": ("rules", "encoder"), "llm": ("rules", "encoder", "llm")},
    ),
    "lexical": MethodCard(
        make="knowhalu.methods.baselines.rules:LexicalBaseline", options="lexical", reasoners={},
        about="sentences copied from a source, optionally dates, numbers and names that no source has; otherwise inconclusive",
        needs="sources that come with the text", cost="nothing",
    ),
    "trivial-length": _rule_card(
        "length", "a rule on the number of words alone: a baseline that any detector must beat", needs_sources=False
    ),
    "trivial-overlap": _rule_card("overlap", "a rule on the share of the text's words that occur in the sources"),
    "trivial-novelty": _rule_card("novelty", "a rule on the share of word pairs, names and numbers that occur in no source"),
}  # fmt: skip
REASONERS = ("encoder", "llm")
REWRITERS: Mapping[str, str] = {
    "encoder": "knowhalu.methods.revise.substitution:SubstitutionRewriter",
    "llm": "knowhalu.methods.revise.rewrite:LLMRewriter",
}
"""The classes that rewrite a text, by reasoner."""
REVISION_FAMILY = "revise"
"""The family of the prompts of revision, and its branch of the settings."""
LLMS: Mapping[str, str] = {
    "server": "knowhalu.llm.server_backend:ServerBackend",
    "transformers": "knowhalu.llm.local.backend:TransformersBackend",
    "vllm": "knowhalu.llm.vllm:VLLMBackend",
}
RETRIEVERS = ("dense", "lexical", "hybrid", "late", "http", "qdrant")
"""The built-in modes of retrieval; `knowhalu.engine.search_backend` opens them."""
VERIFIERS = ("small", "base")  # `knowhalu.encoder.models` finds their folders
_BUILT_IN: Mapping[Kind, Mapping[str, Any]] = {
    "methods": METHODS, "llms": LLMS, "retrievers": dict.fromkeys(RETRIEVERS), "verifiers": dict.fromkeys(VERIFIERS),
}  # fmt: skip


def method_card(name: str) -> MethodCard:
    """Return the card of a method; raises SettingsError with the nearest known names."""
    return METHODS[name] if name in METHODS else _extension_card(load_extension("methods", name))


def all_methods() -> tuple[dict[str, MethodCard], list[SettingsError]]:
    """Return the cards of all methods, built in and installed, and the errors of extensions that cannot be imported."""
    cards, errors = dict(METHODS), []
    for name in _entry_points("methods"):
        try:
            cards[name] = method_card(name)
        except SettingsError as error:
            errors.append(error)
    return cards, errors


@cache
def _extension_card(method: Any) -> MethodCard:
    if missing := [name for name in _METHOD_ATTRIBUTES if not hasattr(method, name)]:
        raise SettingsError(f"{method!r} is no method, as it has no {missing[0]!r}. Make it a subclass of knowhalu.extend.Method")
    reasoners = dict.fromkeys(method.reasoners, "")
    return MethodCard(
        method, extension_branch(method), reasoners, method.about, method.needs, method.cost, method.needs_sources, method.stages
    )


def llm_backend(name: str) -> Any:
    """Return the class of an LLM backend; raises SettingsError with the nearest known names."""
    return import_object(LLMS[name]) if name in LLMS else load_extension("llms", name)


def known_names(kind: Kind) -> list[str]:
    """List the built-in names of a kind, then those of installed extensions; imports none of them."""
    return [*_BUILT_IN.get(kind, ()), *_entry_points(kind)]


def is_import_path(name: str) -> bool:
    """Tell whether a name has the form "module:Class"."""
    return _IMPORT_PATH.fullmatch(name) is not None


def is_known(kind: Kind, name: str) -> bool:
    """Tell whether a name is built in, an import path or an installed extension; imports none of them."""
    return name in _BUILT_IN.get(kind, ()) or is_import_path(name) or name in _entry_points(kind)


@cache
def load_extension(kind: Kind, name: str) -> Any:
    """Import an extension by the name of its entry point, or by its import path.

    Raises SettingsError, with the nearest names or naming its distribution, where there is none or it cannot be imported.
    """
    point = _entry_points(kind).get(name)
    if point is None and not is_import_path(name):
        known = known_names(kind)
        hint = f" Did you mean {near[0]!r}?" if (near := get_close_matches(name, known, 1)) else ""
        raise SettingsError(f"unknown {KIND_NAMES[kind]} {name!r}.{hint} Known: {', '.join(sorted(known)) or 'none'}")
    if len(points := _all_entry_points(kind).get(name, [])) > 1:
        packages = " and ".join(sorted(map(_package, points)))
        raise SettingsError(f"the packages {packages} each have a {KIND_NAMES[kind]} {name!r}. Remove all but one of them")
    source, remedy = _describe_extension(kind, name), "Write it as module:Class, with a module that Python can import"
    if point is not None:
        remedy = f"Repair the package, or remove it: pip uninstall {_package(point)}"
    try:
        extension = import_object(name) if point is None else point.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an extension may raise anything while it is imported
        raise SettingsError(f"the {source} cannot be imported ({type(error).__name__}: {error}). {remedy}") from error
    if point is not None and kind in _BASES and extension_branch(extension) != name:
        raise SettingsError(f"the {source} calls itself {extension.name!r}. Its `name` and its entry point must be the same")
    if kind in _BASES and not (isinstance(extension, type) and isinstance(getattr(extension, "Options", None), type)):
        raise SettingsError(f"the {source} is no class with `Options`. Make it a subclass of knowhalu.extend.{_BASES[kind]}")
    return extension


def make_extension(kind: Kind, name: str, *given: Any, **options: Any) -> Any:
    """Make an object of an extension's class.

    Raises SettingsError, naming its distribution, where its `__init__` raises anything but an error of this library.
    """
    extension = load_extension(kind, name)
    try:
        return extension(*given, **options)
    except KnowHaluError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - an extension may raise anything while it is made
        problem = f"the {_describe_extension(kind, name)} cannot be made ({type(error).__name__}: {error})"
        remedy = f"Check its settings, {extension_branch(extension)}.NAME, or report this to the authors of the extension"
        raise SettingsError(hide_password(f"{problem}. {remedy}")) from error


def _describe_extension(kind: Kind, name: str) -> str:
    point = _entry_points(kind).get(name)
    return f"{KIND_NAMES[kind]} {name!r}" + (f" of the installed package {_package(point)!r}" if point is not None else "")


def _package(point: "EntryPoint") -> str:
    return point.dist.name if point.dist else point.module


def ignored_extensions(kind: Kind, built_in: Iterable[str] | None = None) -> list[str]:
    """Return a line on each installed extension that has the name of a built-in, which is used in its place."""
    names = set(_BUILT_IN.get(kind, ()) if built_in is None else built_in)
    ignored = [point for name, points in _all_entry_points(kind).items() if name in names for point in points]
    why = "is not used, as a built-in one has its name"
    return [f"the {KIND_NAMES[kind]} {p.name!r} of the installed package {_package(p)!r} {why}" for p in ignored]


def extension_branch(extension: Any) -> str:
    """Return the name of an extension, which is that of its branch of the settings; raises SettingsError where it has none."""
    name = getattr(extension, "name", None)
    if not isinstance(name, str) or not name:
        raise SettingsError(f"{extension!r} is no extension of KnowHalu: it has no `name`. See docs/extending.md")
    return name


def extension_options(name: str, used: Mapping[Kind, str] = {}) -> Any:
    """Return the `Options` of the extension with this name, or None where there is no such extension.

    `used` are the names in use by kind, of which import paths are looked at as well.
    """
    extensions = []
    for kind in _BASES:
        given = used.get(kind, "")
        if name in _entry_points(kind):
            extensions.append(load_extension(kind, name))
        elif is_import_path(given) and extension_branch(load_extension(kind, given)) == name:
            extensions.append(load_extension(kind, given))
    if len(extensions) > 1:
        raise SettingsError(f"{len(extensions)} installed extensions have the name {name!r}. Remove all but one of them")
    return extensions[0].Options if extensions else None


def extension_version(kind: Kind, name: str) -> str:
    """Return which code an extension has: its package with its version, and a hash of the module's file."""
    point, extension = _entry_points(kind).get(name), load_extension(kind, name)
    package = f"{point.dist.name} {point.dist.version}" if point is not None and point.dist else name
    file = getattr(sys.modules.get(extension.__module__), "__file__", None)
    return f"{package} {file_hash(Path(file)) if file else 'unknown'}"


@cache
def _entry_points(kind: Kind) -> "Mapping[str, EntryPoint]":
    """List the entry points of a kind by name, without those that have the name of a built-in; reading all of them is slow."""
    return {name: points[0] for name, points in _all_entry_points(kind).items() if name not in _BUILT_IN.get(kind, ())}


@cache
def _all_entry_points(kind: Kind) -> "Mapping[str, list[EntryPoint]]":
    from importlib.metadata import entry_points

    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=f"knowhalu.{kind}"):
        points.setdefault(point.name, []).append(point)
    return points


def import_object(place: str) -> Any:
    """Import the object at "module:name"."""
    module, _, attributes = place.partition(":")
    return attrgetter(attributes)(import_module(module))
