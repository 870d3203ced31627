"""Builds the engine from the settings: the method, its reasoner, and the backends behind them."""

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import knowhalu
from knowhalu.demonstrations import family_hash
from knowhalu.encoder.service import PACKAGED, EncoderBackend
from knowhalu.engine import Backends, Engine
from knowhalu.llm.replies import remembered
from knowhalu.names import resolve
from knowhalu.options import SERVED, LLMOptions, RetrievalOptions, Settings
from knowhalu.searching import Searcher


def build_engine(settings: Settings) -> Engine:
    """Build what the settings name; raises SettingsError, ModelError or IndexFormatError where a part cannot be had."""
    search = Searcher(settings.retrieval)
    if settings.reasoner == "llm":
        reasoner = resolve("reasoner", "llm")(settings.llm, settings.knowhalu.formulation)
        generate = remembered(resolve("llm", settings.llm.backend)(settings.llm), settings.llm)
        backends = Backends(generate=generate, search=search, batch=settings.engine.batch)
    else:
        encoder, folder = settings.encoder, _verifier(settings)
        reasoner = resolve("reasoner", settings.reasoner)(folder)
        entail = EncoderBackend(folder, precision=encoder.precision, threads=encoder.threads, tokens=encoder.tokens)
        backends = Backends(entail=entail, search=search, batch=settings.engine.batch)
    method = resolve("method", settings.method)(reasoner, settings.knowhalu)
    return Engine(method, backends, in_flight=settings.engine.in_flight, index=search.seal)


_SPEED_AND_PLACE: dict[str, Any] = {
    "engine": True, "encoder": {"folder", "threads", "tokens"}, "retrieval": {"index", "timeout", "retries"},
    "llm": set(LLMOptions.model_fields) - {"backend", "model", "style", "constrain", "system", "votes", "seed", "precision"},
}  # fmt: skip
"""Settings that do not decide a result: they say how fast and where it is computed, or name what is hashed instead."""


def fingerprint(settings: Settings) -> dict[str, str]:
    """Return what decides the results of a run; how fast it runs is left out, and so are the options of who does not think."""
    by_llm = settings.reasoner == "llm"
    thinker = {"prompts": family_hash(settings.llm.prompts)} if by_llm else {"verifier": folder_hash(_verifier(settings))}
    return {
        "version": knowhalu.__version__,
        "settings": settings.model_dump_json(exclude=_SPEED_AND_PLACE | {"encoder" if by_llm else "llm": True}),
        **thinker,
        "index": index_seal(settings.retrieval),
    }


def index_seal(options: RetrievalOptions) -> str:
    """Return the seal of the index that is searched, with that of its late part where this is; "none" without an index.

    Raises IndexFormatError where the index cannot be read.
    """
    if options.index is None or options.mode in SERVED:
        return "none"
    from knowhalu.retrieval.manifest import read_manifest
    from knowhalu.retrieval.stored import open_parts, open_stored

    seal = read_manifest(options.index).seal
    parts = open_parts(open_stored(options.index), "late") if options.mode == "late" else []
    return " ".join([seal, *(part.head.seal for part in parts)])


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
