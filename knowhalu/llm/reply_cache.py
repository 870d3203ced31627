"""The reply cache: replies of a model on disk, so that a changed threshold never repeats a model call.

The key of a reply is the sha256 of everything that determines it: the model, the options, and every field of the request but
`bypass_cache`. A reply is stored as JSON with a checksum; an entry that does not match its checksum counts as absent. Failures
and blank replies are never stored. A request with `bypass_cache` is always sent, and its reply replaces the stored one.
"""

import asyncio
import hashlib
import inspect
import json
import threading
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from knowhalu.llm.sqlite_cache import SQLiteCache, default_cache_folder
from knowhalu.requests import Completion, Generate
from knowhalu.settings import LLMOptions

CACHE_FORMAT = 1
"""Part of every key; a new number invalidates all entries."""
KEY_OPTIONS = {"backend", "model", "style", "constrain", "precision", "deterministic"}
"""The options that determine a reply, beside the request and the identity of the model."""


def with_reply_cache(backend: Any, options: LLMOptions) -> Any:
    """Wrap a backend, blocking or async, with the cache; return it unchanged where the options disable the cache.

    A backend may identify its model by `identity()`, blocking or async; otherwise the files in the folder `llm.model` do.
    Raises SettingsError where the cache on disk cannot be used.
    """
    if not options.cache:
        return backend
    store = SQLiteCache((options.cache_folder or default_cache_folder()) / "replies.sqlite", options.cache_mb * 2**20)
    kind = CachedBackend if hasattr(backend, "answer_many") else CachedAsyncBackend
    return kind(backend, ReplyCache(store, options))


class ReplyCache:
    """Replies by request, for one set of options."""

    def __init__(self, store: SQLiteCache, options: LLMOptions) -> None:
        self.store = store
        self._options = options.model_dump(mode="json", include=KEY_OPTIONS)
        self.folder = Path(options.model).expanduser()

    def key(self, identity: str, request: Generate) -> bytes:
        """Return the digest of everything that determines a reply."""
        fields = asdict(request)
        del fields["bypass_cache"]
        fields["begun"] = fields.pop("prefill")  # the name of the field in the keys of stored replies
        decisive = [CACHE_FORMAT, self._options, identity, fields]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).digest()

    def get(self, key: bytes) -> Completion | None:
        """Return the stored reply; None where there is none."""
        text = self.store.get(key)
        if text is None:
            return None
        try:
            fields = json.loads(text)
            return replace(Completion(**{**fields, "logprobs": tuple(fields["logprobs"])}), reused=True)
        except (ValueError, TypeError, KeyError):
            return None

    def put(self, key: bytes, reply: Completion) -> None:
        """Store a reply, unless it is blank."""
        if reply.text.strip():
            self.store.put(key, json.dumps(asdict(reply)))


class CachedBackend:
    """A blocking backend with a cache: only requests without a stored reply are sent."""

    def __init__(self, backend: Any, cache: ReplyCache) -> None:
        self.backend, self.cache = backend, cache
        self._lock = threading.Lock()
        self._identity: str | None = None

    def answer_many(self, requests: list[Generate]) -> list[Completion | Exception | None]:
        """Answer every request, in order; equal requests are sent once."""
        keys = [self.cache.key(self._model_identity(), r) for r in requests]
        bypassed = {k for k, r in zip(keys, requests, strict=True) if r.bypass_cache}
        replies: dict[bytes, Completion | Exception | None] = {k: None if k in bypassed else self.cache.get(k) for k in keys}
        missing = {k: r for k, r in zip(keys, requests, strict=True) if replies[k] is None}
        generated = self.backend.answer_many(list(missing.values())) if missing else []
        for key, reply in zip(missing, generated, strict=True):
            replies[key] = reply
            if isinstance(reply, Completion):
                self.cache.put(key, reply)
        answers = []
        for key in keys:
            answers.append(replies[key])
            if isinstance(reply := replies[key], Completion):
                replies[key] = replace(reply, reused=True)  # for an equal request later in this batch
        return answers

    def _model_identity(self) -> str:
        with self._lock:
            if self._identity is None:
                self._identity = str(_backend_identity(self.backend, self.cache.folder))
            return self._identity


class CachedAsyncBackend:
    """An async backend with a cache; the disk is read and written in other threads."""

    def __init__(self, backend: Any, cache: ReplyCache) -> None:
        self.backend, self.cache = backend, cache
        self._identity: str | None = None

    async def answer(self, request: Generate) -> Completion:
        """Answer one request, from the cache if its reply is stored."""
        key = self.cache.key(await self._model_identity(), request)
        if not request.bypass_cache and (stored := await asyncio.to_thread(self.cache.get, key)) is not None:
            return stored
        reply: Completion = await self.backend.answer(request)
        await asyncio.to_thread(self.cache.put, key, reply)
        return reply

    async def close(self) -> None:
        """Close the backend."""
        if hasattr(self.backend, "close"):
            await self.backend.close()

    async def _model_identity(self) -> str:
        if self._identity is None:
            identity = _backend_identity(self.backend, self.cache.folder)
            self._identity = str(await identity if inspect.isawaitable(identity) else identity)
        return self._identity


def _backend_identity(backend: Any, folder: Path) -> Any:
    if hasattr(backend, "identity"):
        return backend.identity()
    if not folder.is_dir() or folder == Path():
        return ""
    # other weights under the same file names have another modification time
    stats = [(file.name, file.stat()) for file in sorted(folder.iterdir()) if file.is_file()]
    return json.dumps([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])


async def model_identity(kind: Any, options: LLMOptions) -> str:
    """Return name and hash of the model behind a kind of backend: from the server's list of models, or the model's folder.

    No model is loaded. Raises BackendError where the server does not answer.
    """
    backend = kind(options) if hasattr(kind, "identity") else None
    try:
        result = _backend_identity(backend, Path(options.model).expanduser())
        identity = str(await result if inspect.isawaitable(result) else result)
    finally:
        if backend is not None:
            await backend.close()
    name = options.model or (json.loads(identity)["model"] if identity else "")
    return f"{Path(name).name} {hashlib.sha256(identity.encode()).hexdigest()[:16]}"
