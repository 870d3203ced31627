"""Builds the engine from the settings: the method, its reasoner, and the backends behind them."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import knowhalu
from knowhalu.encoder.backend import PACKAGED_VERIFIER, EncoderBackend
from knowhalu.encoder.score_cache import ScoreCache
from knowhalu.engine.engine import Backends, Engine, R
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.errors import SettingsError
from knowhalu.io.fitted_files import HASHED_FILES, file_hash
from knowhalu.llm.reply_cache import model_identity, with_reply_cache
from knowhalu.methods.common.calibrated import CalibratedMethod, PerSetMethod
from knowhalu.methods.common.protocol import Method
from knowhalu.profiles import Profile, read_profile, settings_for_set
from knowhalu.prompts.examples import prompt_family_hash
from knowhalu.registry import METHODS, REASONERS, REVISION_FAMILY, REWRITERS, import_object, llm_backend, method_card
from knowhalu.results import Revision, Verdict
from knowhalu.settings import SERVER_MODES, EncoderOptions, LLMOptions, RetrievalOptions, Settings


class BackendPool:
    """Backends for engines that run one after the other: the last of each kind stays open for whoever wants the same."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Any, Any]] = {}

    def get(self, kind: str, options: Any, make: Callable[[], Any]) -> Any:
        """Return the backend that these options made; one of other options is let go before the next is made."""
        if kind not in self._held or self._held[kind][0] != options:
            self._held.pop(kind, None)
            self._held[kind] = (options, make())
        return self._held[kind][1]


def build_engine(settings: Settings, kept: BackendPool | None = None) -> Engine[Verdict]:
    """Build what the settings name, with backends that are kept, if any.

    Raises SettingsError, ModelError or IndexFormatError where a part cannot be had.
    """
    return _make_engine(settings, build_method(settings), reasoners_of(settings), kept or BackendPool())


def build_reviser(settings: Settings, kept: BackendPool | None = None) -> Engine[Revision]:
    """Build the reviser that the settings name, with the method as its detector; raises as `build_engine` does."""
    method, writes, how = build_method(settings), settings.reasoner, settings.revise.how
    if writes not in REWRITERS:
        raise SettingsError(f"unknown reasoner {writes!r}. Use {' or '.join(f'--reasoner {name}' for name in REWRITERS)}")
    if how != "guarded" and writes != "llm":
        raise SettingsError(f"revise.how {how!r} writes with a language model. Use --reasoner llm, or revise.how=guarded")
    writer = import_object(REWRITERS[writes])(*([settings.llm] if writes == "llm" else []))
    make = (
        "knowhalu.methods.revise.guarded:GuardedRevision"
        if how == "guarded"
        else "knowhalu.methods.revise.rewrite:ResponseRevision"
    )
    return _make_engine(
        settings, import_object(make)(method, writer, settings.revise), {*reasoners_of(settings), writes}, kept or BackendPool()
    )


def build_method(settings: Settings) -> Any:
    """Build a method with its reasoner, and what its profile adds; raises SettingsError for a profile of other parts."""
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


def _check_profile_fits(path: Path, profile: Profile, found: Mapping[str, str]) -> None:
    """Refuse a profile whose verifier or prompts are not those of the run."""
    for name, value in found.items():
        if (fitted := profile.parts.get(name, value)) != value:
            what = f"was fitted with other {name} than this run has" if name == "prompts" else f"was fitted with another {name}"
            cure = "Use those again, or make the profile anew: knowhalu calibrate LABELLED.jsonl -o PROFILE.toml"
            raise SettingsError(f"{path}: {what} ({fitted}, here {value}). {cure}")


def _make_method(settings: Settings) -> Any:
    card, who = method_card(settings.method), reasoner_of(settings)
    options = getattr(settings, card.options)
    if card.stages:
        return import_object(card.make)({name: _make_method(inner) for name, inner in stage_settings(settings).items()}, options)
    if not who:
        return import_object(card.make)(options)
    given = (settings.llm, options) if who == "llm" else (_verifier_folder(settings),)
    return import_object(card.make)(import_object(card.reasoners[who])(*given), options)


def _make_engine(settings: Settings, method: Method[R], thinkers: set[str], kept: BackendPool) -> Engine[R]:
    """Put a method on the backends of those who think, and of the retriever."""
    parts: dict[str, Any] = {}
    if "llm" in thinkers:
        parts["generate"] = kept.get("llm", settings.llm, lambda: _make_llm(settings.llm))
    if "encoder" in thinkers:
        parts["entail"] = kept.get(
            "encoder", settings.encoder, lambda: _make_encoder(_verifier_folder(settings), settings.encoder)
        )
    search = kept.get("search", settings.retrieval, lambda: SearchBackend(settings.retrieval))
    backends = Backends(**parts, search=search, batch=settings.engine.batch)
    return Engine(method, backends, in_flight=settings.engine.in_flight, index=search.seal)


def _make_llm(options: LLMOptions) -> Any:
    return with_reply_cache(llm_backend(options.backend)(options), options)


def _make_encoder(folder: Path, options: EncoderOptions) -> EncoderBackend | ScoreCache:
    backend = EncoderBackend(folder, precision=options.precision, threads=options.threads, tokens=options.tokens)
    return ScoreCache(backend, options.remember) if options.remember else backend


def reasoner_of(settings: Settings) -> str:
    """Return who thinks in a run: "llm", "encoder", or "" where the method needs nobody; raises SettingsError."""
    card = method_card(settings.method)
    if not card.reasoners or settings.reasoner in card.reasoners:
        return settings.reasoner if card.reasoners else ""
    others = " or ".join(f"--reasoner {name}" for name in card.reasoners)
    if settings.reasoner in REASONERS:
        raise SettingsError(f"{settings.method} cannot think with reasoner {settings.reasoner!r}. Use {others}")
    raise SettingsError(f"unknown reasoner {settings.reasoner!r}. Use {others}")


def reasoners_of(settings: Settings) -> set[str]:
    """Return everyone who thinks in a run: whoever the method has, or each of its stages; raises SettingsError."""
    if not method_card(settings.method).stages:
        return {reasoner_of(settings)}
    return {reasoner_of(inner) for inner in stage_settings(settings).values()}


def stage_settings(settings: Settings) -> dict[str, Settings]:
    """Return the settings of the methods that a method of stages puts together, by their stages; empty for other methods.

    Raises SettingsError for a stage that cannot be had.
    """
    card, found = method_card(settings.method), {}
    for stage in card.stages.get(reasoner_of(settings), ()):
        name = getattr(getattr(settings, card.options), stage)
        if not name:
            continue
        who = {"reasoner": stage} if stage in REASONERS else {}
        found[stage] = settings.model_copy(update={"method": name, "profile": None, **who})
        if method_card(name).stages or (stage not in REASONERS and reasoner_of(found[stage])):
            rule = "a method of one stage" if stage in REASONERS else "a rule, in which nobody thinks"
            raise SettingsError(f"{card.options}.{stage}: {name!r} cannot be this stage. Name {rule}; see `knowhalu methods`")
    return found


_RESULT_NEUTRAL_SETTINGS: dict[str, Any] = {
    "engine": True, "profile": True, "allow_fitted": True,
    "encoder": {"folder", "threads", "tokens", "remember"}, "retrieval": {"index", "timeout", "retries"},
    "llm": set(LLMOptions.model_fields) - {"backend", "model", "style", "constrain", "system", "votes", "seed", "precision"},
}  # fmt: skip
"""Settings that do not decide a result: they say how fast and where it is computed, or name what is hashed instead."""


def fingerprint(settings: Settings, *, revises: bool = False) -> dict[str, str]:
    """Return what decides the results of a run: not how fast it runs, nor the options of parts that are not in use."""
    runs = [settings, *stage_settings(settings).values()]
    options = {method_card(run.method).options for run in runs}
    think = reasoners_of(settings) | ({settings.reasoner} if revises else set())
    thinks = _reasoner_hashes(settings)
    if "encoder" in think:
        thinks["verifier"] = verifier_hash(_verifier_folder(settings))
    if revises and settings.reasoner == "llm":
        thinks["revision"] = prompt_family_hash(settings.llm.prompts, REVISION_FAMILY)
    if settings.profile is not None:
        thinks["profile"] = read_profile(settings.profile).seal
    others = {c.options for c in METHODS.values()} - options | {"encoder", "llm"} - think
    others |= set() if revises else {REVISION_FAMILY}
    files = {name: (branch, value) for branch in options for name, value in getattr(settings, branch) if isinstance(value, Path)}
    named = {branch: {name for name, (of, _) in files.items() if of == branch} for branch in options}
    return {
        "version": knowhalu.__version__,
        "settings": settings.model_dump_json(exclude=_RESULT_NEUTRAL_SETTINGS | dict.fromkeys(others, True) | named),
        **thinks,
        **{name: file_hash(path) for name, (_, path) in files.items()},
        "index": index_seal(settings.retrieval),
    }


def llm_identity(settings: Settings, *, revises: bool = False) -> str:
    """Return which language model answers in a run, as far as it can be told without loading one; "" where none thinks.

    Raises BackendError where its server does not answer.
    """
    if "llm" not in reasoners_of(settings) | ({settings.reasoner} if revises else set()):
        return ""
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:  # also inside a notebook's running loop
        who: str = portal.call(model_identity, llm_backend(settings.llm.backend), settings.llm)
    return who


def _reasoner_hashes(settings: Settings) -> dict[str, str]:
    """Return the hashes of the prompts and of the verifier that a run thinks with."""
    found: dict[str, str] = {}
    for run in stage_settings(settings).values() or [settings]:
        who = reasoner_of(run)
        if who == "llm":
            found["prompts"] = prompt_family_hash(settings.llm.prompts, method_card(run.method).options)
        if who == "encoder":
            found["verifier"] = verifier_hash(_verifier_folder(settings))
    return found


def index_seal(options: RetrievalOptions) -> str:
    """Return the seal of the index that is searched, with that of its late part where this is; "none" without an index.

    Raises IndexFormatError where the index cannot be read.
    """
    if options.index is None or options.mode in SERVER_MODES:
        return "none"
    from knowhalu.index.extension import open_parts, open_stored_passages
    from knowhalu.index.manifest import read_manifest

    seal = read_manifest(options.index).seal
    parts = open_parts(open_stored_passages(options.index), "late") if options.mode == "late" else []
    return " ".join([seal, *(part.head.seal for part in parts)])


def _verifier_folder(settings: Settings) -> Path:
    return settings.encoder.folder or PACKAGED_VERIFIER


def verifier_hash(folder: Path) -> str:
    """Return one hash over the files that make a verifier."""
    return hashlib.sha256("".join(file_hash(folder / name) for name in HASHED_FILES).encode()).hexdigest()[:16]
