"""The reply cache: what a model once said is kept on disk, so that a changed threshold never repeats a model call.

A reply is found by the sha256 of all that decides it: which model answers and how it is asked, and every field of the
request but `fresh`. It is kept as JSON with a checksum; whatever does not fit its checksum counts as absent. Failures and
blank replies are never kept; one that a reader cannot read is asked for anew by a `fresh` request, whose reply replaces it.
"""

import asyncio
import hashlib
import inspect
import json
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from knowhalu.llm.options import LLMOptions
from knowhalu.llm.sqlite_cache import SQLiteCache, default_cache_folder
from knowhalu.requests import Completion, Generate

CACHE_FORMAT = 1
"""Part of every key; another number makes all that was kept before unfindable."""
KEY_OPTIONS = {"backend", "model", "style", "constrain", "precision", "deterministic"}
"""The options that decide a reply, beside the request and what the backend says of its model."""


def with_reply_cache(backend: Any, options: LLMOptions) -> Any:
    """Put the cache before a backend, blocking or async; return the backend as it is where the options want none.

    A backend may tell which model it has by `identity()`, blocking or async as its answers; for one that does not, the files in
    the folder `model` do. Raises SettingsError where the cache on disk cannot be used.
    """
    if not options.cache:
        return backend
    shelf = SQLiteCache((options.cache_folder or default_cache_folder()) / "replies.sqlite", options.cache_mb * 2**20)
    kind = CachedBackend if hasattr(backend, "answer_many") else CachedAsyncBackend
    return kind(backend, ReplyCache(shelf, options))


class ReplyCache:
    """Replies by request, for one model."""

    def __init__(self, shelf: SQLiteCache, options: LLMOptions) -> None:
        self.shelf = shelf
        self._options = options.model_dump(mode="json", include=KEY_OPTIONS)
        self.folder = Path(options.model).expanduser()

    def key(self, identity: str, request: Generate) -> bytes:
        """Return the digest of all that decides a reply."""
        fields = asdict(request)
        del fields["fresh"]
        decisive = [CACHE_FORMAT, self._options, identity, fields]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).digest()

    def get(self, key: bytes) -> Completion | None:
        """Look a reply up."""
        text = self.shelf.get(key)
        if text is None:
            return None
        try:
            fields = json.loads(text)
            return replace(Completion(**{**fields, "logprobs": tuple(fields["logprobs"])}), reused=True)
        except (ValueError, TypeError, KeyError):
            return None

    def put(self, key: bytes, reply: Completion) -> None:
        """Keep a reply that says something."""
        if reply.text.strip():
            self.shelf.put(key, json.dumps(asdict(reply)))


class CachedBackend:
    """A blocking backend with a memory: only what it has not said before is asked."""

    def __init__(self, backend: Any, memory: ReplyCache) -> None:
        self.backend, self.memory = backend, memory
        self._lock = threading.Lock()
        self._identity: str | None = None

    def answer_many(self, requests: list[Generate]) -> list[Completion | Exception | None]:
        """Answer every request, in order; the same request twice is asked once."""
        keys = [self.memory.key(self._who(), r) for r in requests]
        anew = {k for k, r in zip(keys, requests, strict=True) if r.fresh}
        found: dict[bytes, Completion | Exception | None] = {k: None if k in anew else self.memory.get(k) for k in keys}
        asked = {k: r for k, r in zip(keys, requests, strict=True) if found[k] is None}
        replies = self.backend.answer_many(list(asked.values())) if asked else []
        for key, reply in zip(asked, replies, strict=True):
            found[key] = reply
            if isinstance(reply, Completion):
                self.memory.put(key, reply)
        answers = []
        for key in keys:
            answers.append(found[key])
            if isinstance(reply := found[key], Completion):
                found[key] = replace(reply, reused=True)  # for whoever asks the same in this batch
        return answers

    def _who(self) -> str:
        with self._lock:
            if self._identity is None:
                self._identity = str(_backend_identity(self.backend, self.memory.folder))
            return self._identity


class CachedAsyncBackend:
    """An async backend with a memory; the disk is read and written in other threads."""

    def __init__(self, backend: Any, memory: ReplyCache) -> None:
        self.backend, self.memory = backend, memory
        self._identity: str | None = None

    async def answer(self, request: Generate) -> Completion:
        """Answer one request, from the disk if it was answered before."""
        key = self.memory.key(await self._who(), request)
        if not request.fresh and (kept := await asyncio.to_thread(self.memory.get, key)) is not None:
            return kept
        reply: Completion = await self.backend.answer(request)
        await asyncio.to_thread(self.memory.put, key, reply)
        return reply

    async def close(self) -> None:
        """Close the backend."""
        if hasattr(self.backend, "close"):
            await self.backend.close()

    async def _who(self) -> str:
        if self._identity is None:
            told = _backend_identity(self.backend, self.memory.folder)
            self._identity = str(await told if inspect.isawaitable(told) else told)
        return self._identity


def _backend_identity(backend: Any, folder: Path) -> Any:
    if hasattr(backend, "identity"):
        return backend.identity()
    if not folder.is_dir() or folder == Path():
        return ""
    # other weights under the same names have another time of writing
    stats = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
    return json.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])


async def model_identity(backend: Any | None, options: LLMOptions) -> str:
    """Return name and hash of the model that answers, by a backend with `identity` or by the files of the model's folder.

    Raises BackendError where the server does not answer.
    """
    try:
        told = _backend_identity(backend, Path(options.model).expanduser())
        said = str(await told if inspect.isawaitable(told) else told)
    finally:
        if backend is not None:
            await backend.close()
    try:
        name = options.model or json.loads(said)["model"]
    except (ValueError, KeyError, TypeError):
        name = ""
    return f"{Path(name).name} {hashlib.sha256(said.encode()).hexdigest()[:16]}"
