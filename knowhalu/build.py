"""Builds the engine from the settings: the method, its reasoner, and the backends. Models are imported where they are made."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import knowhalu
from knowhalu.encoder.models import judge_card, light_folder, verifier_folder
from knowhalu.engine.engine import Backends, Engine, R
from knowhalu.engine.pool import BackendPool as BackendPool
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.errors import SettingsError, hide_password
from knowhalu.io.fitted_files import file_hash
from knowhalu.io.verifier_file import VerifierCard
from knowhalu.llm.options import LLMOptions
from knowhalu.llm.reply_cache import model_identity, with_reply_cache
from knowhalu.methods.common.calibrated import CalibratedMethod, PerSetMethod
from knowhalu.methods.common.judgment_model import verifier_hash
from knowhalu.methods.common.protocol import Method
from knowhalu.profiles import Profile, read_profile, settings_for_set
from knowhalu.prompts.examples import prompt_family_hash
from knowhalu.registry import (
    LLMS,
    METHODS,
    REASONERS,
    RETRIEVERS,
    REVISION_FAMILY,
    REWRITERS,
    Kind,
    extension_branch,
    extension_version,
    import_object,
    llm_backend,
    load_extension,
    make_extension,
    method_card,
)
from knowhalu.results import Revision, Verdict
from knowhalu.retrieval.options import SERVER_MODES, RetrievalOptions
from knowhalu.settings import ROLES, Settings

if TYPE_CHECKING:
    from knowhalu.encoder.judge import AsyncJudge, BlockingJudge
    from knowhalu.encoder.score_cache import PairScorer
    from knowhalu.methods.revise.summary import WrittenSummary


def build_engine(settings: Settings, pool: BackendPool | None = None) -> Engine[Verdict]:
    """Build the engine that the settings describe, with the backends of a pool where it has them.

    Raises SettingsError, ModelError or IndexFormatError where a part cannot be made.
    """
    return _make_engine(settings, build_method(settings), reasoners_of(settings), pool or BackendPool())


def build_reviser(settings: Settings, pool: BackendPool | None = None) -> Engine[Revision]:
    """Build the reviser that the settings describe, with the method as its detector; raises as `build_engine` does."""
    method, reasoner, how = build_method(settings), settings.reasoner, settings.revise.how
    if reasoner not in REWRITERS:
        raise SettingsError(f"unknown reasoner {reasoner!r}. Use {' or '.join(f'--reasoner {name}' for name in REWRITERS)}")
    if how != "guarded" and reasoner != "llm":
        raise SettingsError(f"revise.how {how!r} writes with a language model. Use --reasoner llm, or revise.how=guarded")
    writer = import_object(REWRITERS[reasoner])(*([settings.llm_of("writer")] if reasoner == "llm" else []))
    critic = [import_object("knowhalu.methods.revise.critique:Critic")(settings.llm_of("critic"))] if how == "factored" else []
    strategy = "guarded:GuardedRevision" if how == "guarded" else "rewrite:ResponseRevision"
    reviser = import_object(f"knowhalu.methods.revise.{strategy}")(method, writer, settings.revise, *critic)
    return _make_engine(settings, reviser, {*reasoners_of(settings), reasoner}, pool or BackendPool())


def build_summary_writer(settings: Settings) -> "Engine[WrittenSummary]":
    """Build the engine that writes summaries with the language model of the writer; raises SettingsError or ModelError."""
    settings = settings.model_copy(update={"llm": settings.llm_of("writer"), "writer_llm": None})
    writer = import_object("knowhalu.methods.revise.summary:SummaryWriter")(settings.llm)
    return _make_engine(settings, writer, {"llm"}, BackendPool())


def build_method(settings: Settings) -> Any:
    """Build a method with its reasoner, calibrated by its profile.

    Raises SettingsError where the profile was fitted with another verifier or other prompts.
    """
    if settings.profile is None:
        return _make_method(settings)
    path, profile = settings.profile, read_profile(settings.profile)
    _check_profile_fits(path, profile, _reasoner_hashes(settings))
    whole = CalibratedMethod(_make_method(settings), profile.decision)
    sets = {
        name: CalibratedMethod(_make_method(settings_for_set(settings, fit, path)), fit.decision)
        for name, fit in profile.sets.items()
    }
    return PerSetMethod(whole, sets) if sets else whole


def _check_profile_fits(path: Path, profile: Profile, hashes: Mapping[str, str]) -> None:
    """Refuse a profile whose verifier or prompts are not those of the run."""
    for name, value in hashes.items():
        if (fitted := profile.parts.get(name, value)) != value:
            what = f"was fitted with other {name} than this run has" if name == "prompts" else f"was fitted with another {name}"
            again = "Set that verifier again (--set verifier=NAME)" if name == "verifier" else "Use those again"
            remedy = f"{again}, or make the profile again: knowhalu calibrate LABELLED.jsonl -o PROFILE.toml"
            raise SettingsError(f"{path}: {what} ({fitted}, here {value}). {remedy}")


def _make_method(settings: Settings) -> Any:
    card, reasoner = method_card(settings.method), reasoner_of(settings)
    options = settings.method_options(card)
    stages = {name: _make_method(inner) for name, inner in stage_settings(settings).items()}
    if not isinstance(card.make, str):
        return make_extension("methods", settings.method, options, reasoner=reasoner, methods=stages)
    make = import_object(card.make)
    if card.stages:
        return make(stages, options)
    if not reasoner:
        return make(options)
    given = (settings.llm, options) if reasoner == "llm" else (verifier_folder(settings.encoder),)
    return make(import_object(card.reasoners[reasoner])(*given), options)


def _make_engine(settings: Settings, method: Method[R], reasoners: set[str], pool: BackendPool) -> Engine[R]:
    """Connect a method to the backends of its reasoners and to the retriever."""
    models: dict[str, Any] = {}
    if "llm" in reasoners:
        models["generate"] = _llm_from_pool("llm", settings, pool)
        models["roles"] = {role: _llm_from_pool(role, of, pool) for role, of in settings.by_role().items()}
    if "encoder" in reasoners:
        card = judge_card(settings.encoder)
        options = (settings.encoder, _llm_options(settings) if card else None)
        models["entail"] = pool.get("encoder", options, lambda: _make_judge(card, settings) if card else _make_encoder(settings))
    options = _retriever_options(settings)
    search = pool.get("search", (settings.retrieval, options), lambda: SearchBackend(settings.retrieval, options))
    backends = Backends(**models, search=search, batch=settings.engine.batch)
    return Engine(method, backends, in_flight=settings.engine.in_flight, index=search.seal)


def _llm_from_pool(kind: str, settings: Settings, pool: BackendPool) -> Any:
    return pool.get(kind, _llm_options(settings), lambda: with_reply_cache(_make_llm_backend(settings), settings.llm))


def _llm_options(settings: Settings) -> tuple[Any, ...]:
    """Return the options of the LLM backend: those of an extension, and the branch `llm`."""
    if settings.llm.backend in LLMS:
        return (settings.llm,)
    kind = llm_backend(settings.llm.backend)
    return settings.branch(extension_branch(kind), kind.Options), settings.llm


def _make_llm_backend(settings: Settings) -> Any:
    name, kind = settings.llm.backend, llm_backend(settings.llm.backend)
    if name in LLMS:
        return kind(settings.llm)
    if not (hasattr(kind, "answer") or hasattr(kind, "answer_many")):
        raise SettingsError(f"llm.backend {name!r} has neither `answer` nor `answer_many`. See docs/extending.md")
    return make_extension("llms", name, *_llm_options(settings))


def _make_encoder(settings: Settings) -> "PairScorer":
    from knowhalu.encoder.paired import open_encoder

    return open_encoder(settings.encoder)


def _make_judge(card: VerifierCard, settings: Settings) -> "BlockingJudge | AsyncJudge":
    from knowhalu.encoder.judge import make_judge

    if settings.llm.style == "auto":
        settings = settings.model_copy(update={"llm": settings.llm.model_copy(update={"style": card.style})})
    return make_judge(card, with_reply_cache(_make_llm_backend(settings), settings.llm), settings.encoder.remember)


def _all_reasoners(settings: Settings, *, revises: bool = False) -> set[str]:
    """Return the reasoners whose settings decide a result: with a judge as verifier, also the language model's."""
    reasoners = reasoners_of(settings) | ({settings.reasoner} if revises else set())
    return reasoners | ({"llm"} if "encoder" in reasoners and judge_card(settings.encoder) is not None else set())


def _retriever_options(settings: Settings) -> Any:
    """Return the options of a retriever that is an extension; None for the built-in ones."""
    if settings.retrieval.mode in RETRIEVERS:
        return None
    kind = load_extension("retrievers", settings.retrieval.mode)
    return settings.branch(extension_branch(kind), kind.Options)


def reasoner_of(settings: Settings) -> str:
    """Return the reasoner of a run, "llm" or "encoder", or "" where the method is a rule; raises SettingsError."""
    card = method_card(settings.method)
    if not card.reasoners or settings.reasoner in card.reasoners:
        return settings.reasoner if card.reasoners else ""
    others = " or ".join(f"--reasoner {name}" for name in card.reasoners)
    if settings.reasoner in REASONERS:
        raise SettingsError(f"{settings.method} does not support the reasoner {settings.reasoner!r}. Use {others}")
    raise SettingsError(f"unknown reasoner {settings.reasoner!r}. Use {others}")


def reasoners_of(settings: Settings) -> set[str]:
    """Return all reasoners of a run: that of its method, or those of its stages; raises SettingsError."""
    if not method_card(settings.method).stages:
        return {reasoner_of(settings)}
    return {reasoner_of(inner) for inner in stage_settings(settings).values()}


def stage_settings(settings: Settings) -> dict[str, Settings]:
    """Return the settings of the methods that a method with stages combines, by stage; empty for other methods.

    Raises SettingsError for a stage that cannot be made.
    """
    card, stages = method_card(settings.method), {}
    for stage in card.stages.get(reasoner_of(settings), ()):
        if not (name := getattr(settings.method_options(card), stage)):
            continue
        reasoner = {"reasoner": stage} if stage in REASONERS else {}
        stages[stage] = settings.model_copy(update={"method": name, "profile": None, **reasoner})
        if method_card(name).stages or (stage not in REASONERS and reasoner_of(stages[stage])):
            rule = "a method of one stage" if stage in REASONERS else "a method without a reasoner"
            raise SettingsError(f"{card.options}.{stage}: {name!r} cannot be this stage. Name {rule}; see `knowhalu methods`")
    return stages


_LLM_RESULT_SETTINGS = {"backend", "model", "style", "constrain", "system", "votes", "seed", "precision", "lora", "engine"}
_RESULT_NEUTRAL_SETTINGS: dict[str, Any] = {
    "engine": True, "profile": True, "allow_fitted": True,
    "encoder": {"verifier", "threads", "tokens", "remember"}, "retrieval": {"index", "timeout", "retries"},
    **dict.fromkeys(("llm", "writer_llm", "critic_llm"), set(LLMOptions.model_fields) - _LLM_RESULT_SETTINGS),
}  # fmt: skip
"""Settings that do not decide a result: they concern speed and place, or name files that are hashed instead."""


def fingerprint(settings: Settings, *, revises: bool = False) -> dict[str, str]:
    """Return all that decides the results of a run, without settings of speed and without the options of unused parts."""
    runs = [settings, *stage_settings(settings).values()]
    branches = {method_card(run.method).options for run in runs}
    reasoners = _all_reasoners(settings, revises=revises)
    hashes = _reasoner_hashes(settings)
    if "encoder" in reasoners:
        hashes["verifier"] = verifier_hash(verifier_folder(settings.encoder), light_folder(settings.encoder))
    if revises and settings.reasoner == "llm":
        folders = dict.fromkeys(settings.llm_of(role).prompts for role in ROLES)
        hashes["revision"] = " ".join(prompt_family_hash(folder, REVISION_FAMILY) for folder in folders)
    if settings.profile is not None:
        hashes["profile"] = read_profile(settings.profile).seal
    extensions = dict(_extensions_in_use(settings, runs, reasoners))
    if extensions:
        hashes["extensions"] = "; ".join(extension_version(*place) for place, _ in extensions.values())
        settings = settings.model_copy(update={name: options for name, (_, options) in extensions.items()})
    unused = {c.options for c in METHODS.values()} - branches | {"encoder", "llm"} - reasoners
    unused |= set() if revises else {REVISION_FAMILY, *(f"{role}_llm" for role in ROLES)}
    unused |= set(settings.model_extra or ()) - set(extensions)
    files = {name: (branch, value) for branch in branches for name, value in getattr(settings, branch) if isinstance(value, Path)}
    hashed = {branch: {name for name, (of, _) in files.items() if of == branch} for branch in branches}
    without = {"llm": _RESULT_NEUTRAL_SETTINGS["llm"] | {name for name in ("lora", "engine") if not getattr(settings.llm, name)}}
    excluded = _RESULT_NEUTRAL_SETTINGS | without | dict.fromkeys(unused, True) | hashed
    return {
        "version": knowhalu.__version__,
        "settings": hide_password(settings.model_dump_json(exclude=excluded)),
        **hashes,
        **{name: file_hash(path) for name, (_, path) in files.items()},
        "index": index_seal(settings),
    }


def _extensions_in_use(
    settings: Settings, runs: list[Settings], reasoners: set[str]
) -> Iterator[tuple[str, tuple[tuple[Kind, str], Any]]]:
    """Yield the branch of each extension that a run uses, with its kind and name, and its options."""
    for run in runs:
        if not isinstance((card := method_card(run.method)).make, str):
            yield card.options, (("methods", run.method), settings.method_options(card))
    if "llm" in reasoners and settings.llm.backend not in LLMS:
        yield extension_branch(llm_backend(settings.llm.backend)), (("llms", settings.llm.backend), _llm_options(settings)[0])
    if (options := _retriever_options(settings)) is not None:
        mode = settings.retrieval.mode
        yield extension_branch(load_extension("retrievers", mode)), (("retrievers", mode), options)


def llm_identity(settings: Settings, *, revises: bool = False) -> str:
    """Return which language models answer in a run, "" without one; raises BackendError where a server does not answer."""
    if "llm" not in _all_reasoners(settings, revises=revises):
        return ""
    roles = settings.by_role() if revises and settings.reasoner == "llm" else {}
    return "; ".join([llm_name(settings), *(f"{role}: {llm_name(of)}" for role, of in roles.items())])


def llm_name(settings: Settings) -> str:
    """Return which language model answers by these settings, as its server or its folder identifies it."""
    from anyio.from_thread import start_blocking_portal

    identifies = hasattr(llm_backend(settings.llm.backend), "identity")
    with start_blocking_portal() as portal:  # also inside a notebook's running loop
        backend = _make_llm_backend(settings) if identifies else None
        return str(portal.call(model_identity, backend, settings.llm))


def _reasoner_hashes(settings: Settings) -> dict[str, str]:
    """Return the hashes of the prompts and of the verifier that a run uses."""
    hashes: dict[str, str] = {}
    for run in stage_settings(settings).values() or [settings]:
        reasoner, card = reasoner_of(run), method_card(run.method)
        if reasoner == "llm" and isinstance(card.make, str):
            hashes["prompts"] = prompt_family_hash(settings.llm.prompts, card.options)
        if reasoner == "encoder":
            hashes["verifier"] = verifier_hash(verifier_folder(settings.encoder), light_folder(settings.encoder))
    return hashes


def index_seal(settings: Settings) -> str:
    """Return the seal of the index that is searched, with that of its late part where it is used; "none" without an index.

    Raises IndexFormatError where the index cannot be read.
    """
    options: RetrievalOptions = settings.retrieval
    if options.mode not in RETRIEVERS:
        return SearchBackend(options, _retriever_options(settings)).seal or "none"
    if options.index is None or options.mode in SERVER_MODES:
        return "none"
    from knowhalu.index.extension import open_parts, open_stored_passages
    from knowhalu.index.manifest import read_manifest

    seal = read_manifest(options.index).seal
    parts = open_parts(open_stored_passages(options.index), "late") if options.mode == "late" else []
    return " ".join([seal, *(part.head.seal for part in parts)])
