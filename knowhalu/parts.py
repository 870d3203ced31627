"""Builds the engine from the settings: the method, its reasoner, and the backends behind them."""

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import knowhalu
from knowhalu.demonstrations import family_hash
from knowhalu.encoder.service import PACKAGED, EncoderBackend
from knowhalu.engine import Backends, Engine
from knowhalu.errors import SettingsError
from knowhalu.llm.replies import remembered
from knowhalu.names import METHODS, REASONERS, imported, llm_backend, method_card
from knowhalu.options import EncoderOptions, LLMOptions, Settings
from knowhalu.searching import Searcher


class Kept:
    """Backends for engines that run one after the other: the last of each kind stays open for whoever wants the same."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[Any, Any]] = {}

    def get(self, kind: str, options: Any, make: Callable[[], Any]) -> Any:
        """Return the backend that these options made; one of other options is let go before the next is made."""
        if kind not in self._held or self._held[kind][0] != options:
            self._held.pop(kind, None)
            self._held[kind] = (options, make())
        return self._held[kind][1]


def build_engine(settings: Settings, kept: Kept | None = None) -> Engine:
    """Build what the settings name, with backends that are kept, if any.

    Raises SettingsError, ModelError or IndexFormatError where a part cannot be had.
    """
    kept = kept or Kept()
    card = method_card(settings.method)
    who, options = thinker(settings), getattr(settings, card.options)
    parts: dict[str, Any] = {}
    arguments: tuple[Any, ...] = (options,)
    if who == "llm":
        arguments = (imported(card.reasoners[who])(settings.llm, options), options)
        parts["generate"] = kept.get("llm", settings.llm, lambda: _llm(settings.llm))
    elif who == "encoder":
        folder = _verifier(settings)
        arguments = (imported(card.reasoners[who])(folder), options)
        parts["entail"] = kept.get("encoder", settings.encoder, lambda: _encoder(folder, settings.encoder))
    searcher = kept.get("search", settings.retrieval, lambda: Searcher(settings.retrieval))
    backends = Backends(**parts, search=searcher, batch=settings.engine.batch)
    return Engine(imported(card.make)(*arguments), backends, in_flight=settings.engine.in_flight)


def _llm(options: LLMOptions) -> Any:
    return remembered(llm_backend(options.backend)(options), options)


def _encoder(folder: Path, options: EncoderOptions) -> EncoderBackend:
    return EncoderBackend(folder, precision=options.precision, threads=options.threads, tokens=options.tokens)


def thinker(settings: Settings) -> str:
    """Return who thinks in a run: "llm", "encoder", or "" where the method needs nobody; raises SettingsError."""
    card = method_card(settings.method)
    if not card.reasoners or settings.reasoner in card.reasoners:
        return settings.reasoner if card.reasoners else ""
    others = " or ".join(f"--set reasoner={name}" for name in card.reasoners)
    if settings.reasoner in REASONERS:
        raise SettingsError(f"{settings.method} cannot think with reasoner {settings.reasoner!r}. Use {others}")
    raise SettingsError(f"unknown reasoner {settings.reasoner!r}. Use {others}")


_SPEED_AND_PLACE: dict[str, Any] = {
    "engine": True, "encoder": {"folder", "threads", "tokens"}, "retrieval": {"index"},
    "llm": set(LLMOptions.model_fields) - {"backend", "model", "style", "constrain", "system", "votes", "seed", "precision"},
}  # fmt: skip
"""Settings that do not decide a result: they say how fast and where it is computed, or name what is hashed instead."""


def fingerprint(settings: Settings) -> dict[str, str]:
    """Return what decides the results of a run: not how fast it runs, nor the options of methods and thinkers not in use."""
    index = settings.retrieval.index
    who, card = thinker(settings), method_card(settings.method)
    thinks: dict[str, str] = {}
    if who == "llm":
        thinks = {"prompts": family_hash(settings.llm.prompts, card.options)}
    elif who == "encoder":
        thinks = {"verifier": folder_hash(_verifier(settings))}
    options = getattr(settings, card.options)
    files = {name: value for name, value in options if isinstance(value, Path)}
    others = {c.options for c in METHODS.values()} - {card.options} | {"encoder", "llm"} - {who}
    return {
        "version": knowhalu.__version__,
        "settings": settings.model_dump_json(exclude=_SPEED_AND_PLACE | dict.fromkeys(others, True) | {card.options: set(files)}),
        **thinks,
        **{name: file_hash(path) for name, path in files.items()},
        "index": file_hash(index / "manifest.json") if index else "none",
    }


def _verifier(settings: Settings) -> Path:
    return settings.encoder.folder or PACKAGED


def folder_hash(folder: Path) -> str:
    """Return one hash over the files that make a verifier."""
    parts = [file_hash(folder / name) for name in ("model.safetensors", "config.json", "tokenizer.json", "judgment.json")]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


@lru_cache(maxsize=64)
def file_hash(path: Path) -> str:
    """Return the first 16 hexadecimal digits of a file's sha256; "missing" where there is none."""
    if not path.is_file():
        return "missing"
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
