"""The reply cache: replies of a model on disk, so that a changed threshold never repeats a model call.

The store is one SQLite file in WAL mode, of bounded size, that several processes share. The key of a reply is the sha256 of
everything that determines it: the model, the options, and every field of the request but `bypass_cache`. A reply is stored as
JSON with a checksum; an entry that does not match its checksum counts as absent. Failures and blank replies are never stored. A
request with `bypass_cache` is always sent, and its reply replaces the stored one.
"""

import asyncio
import hashlib
import inspect
import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from knowhalu.errors import BackendError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.requests import Completion, Generate

CACHE_FORMAT = 3
"""Part of every key; a new number invalidates all entries."""
KEY_OPTIONS = {"backend", "model", "style", "constrain", "precision", "deterministic"}
"""The options that determine a reply, beside the request and the identity of the model."""
NEW_KEY_OPTIONS = {"dialect", "thinking_tokens", "lora", "engine"}
"""Such options that are part of a key where they are set, so that replies stored before they existed are found."""
APPLICATION_ID = 0x4B48524C
"""The application id that marks the SQLite file as a reply cache."""
SCHEMA_VERSION = 1
DEFAULTS = asdict(Completion(""))
TOUCH_SECONDS = 600.0
"""The last use of a text is recorded no more often than this, so that reading seldom writes."""
WAIT_SECONDS = 30.0
DELETE_CACHE_HINT = (
    "Delete the file (the model can generate its replies again), set another llm.cache_folder, or set llm.cache=false"
)
SCHEMA = """
CREATE TABLE IF NOT EXISTS texts (key BLOB PRIMARY KEY, text TEXT NOT NULL, digest BLOB NOT NULL, used REAL NOT NULL);
CREATE INDEX IF NOT EXISTS texts_by_use ON texts (used);
"""


class SQLiteCache:
    """Texts by key; the least recently used are dropped where the store is full."""

    def __init__(self, path: Path, limit: int, clock: Callable[[], float] = time.time) -> None:
        """Open or create the file; `limit` is in bytes. Raises SettingsError where it is damaged or another program's."""
        self.path, self.limit, self._clock = path, limit, clock
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise SettingsError(f"{path}: the reply cache cannot be opened ({error}). {DELETE_CACHE_HINT}") from error
        try:
            self._prepare()
        except sqlite3.Error as error:
            self._connection.close()
            raise SettingsError(f"{path}: the reply cache cannot be read ({error}). {DELETE_CACHE_HINT}") from error
        except SettingsError:
            self._connection.close()
            raise

    def get(self, key: bytes) -> str | None:
        """Return the text; None where there is none, or where it does not match its digest."""
        with self._locked() as connection:
            row = connection.execute("SELECT text, digest, used FROM texts WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            text, digest, used = row
            if not isinstance(text, str) or digest != _digest(key, text):
                connection.execute("DELETE FROM texts WHERE key = ?", (key,))
                return None
            if self._clock() - used > TOUCH_SECONDS:
                connection.execute("UPDATE texts SET used = ? WHERE key = ?", (self._clock(), key))
            return text

    def put(self, key: bytes, text: str) -> None:
        """Store a text, and drop others until the limit holds."""
        with self._locked() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(
                    "INSERT OR REPLACE INTO texts VALUES (?, ?, ?, ?)", (key, text, _digest(key, text), self._clock())
                )
                while self._size() > self.limit and self._drop_some():
                    pass
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._connection.close()

    def _prepare(self) -> None:
        self._connection.execute("BEGIN")  # one consistent read: another process may be creating the file
        (application,) = self._connection.execute("PRAGMA application_id").fetchone()
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._connection.execute("COMMIT")
        if (application, version) != (APPLICATION_ID, SCHEMA_VERSION) and (application or version or tables):
            problem = "of another version of KnowHalu" if application == APPLICATION_ID else "not a reply cache of KnowHalu"
            raise SettingsError(f"{self.path}: this file is {problem}. {DELETE_CACHE_HINT}")
        self._set_journal_mode()
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if not application:
            self._connection.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
                f"{SCHEMA} COMMIT;"
            )

    def _set_journal_mode(self) -> None:
        """Try until the file is unlocked: SQLite does not wait by itself when the journal mode changes."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    @contextmanager
    def _locked(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                raise BackendError("generate", f"{self.path}: the reply cache failed ({error}). {DELETE_CACHE_HINT}") from error

    def _size(self) -> int:
        """Return the bytes in use; free pages are reused, so the file does not outgrow the limit."""
        pages, free, size = (
            self._connection.execute(f"PRAGMA {n}").fetchone()[0] for n in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)

    def _drop_some(self) -> bool:
        """Drop the least recently used twentieth; return whether there was anything to drop."""
        (count,) = self._connection.execute("SELECT count(*) FROM texts").fetchone()
        if count <= 1:
            return False
        oldest = "SELECT key FROM texts ORDER BY used LIMIT ?"
        self._connection.execute(f"DELETE FROM texts WHERE key IN ({oldest})", (max(1, count // 20),))
        return True


def _digest(key: bytes, text: str) -> bytes:
    return hashlib.sha256(key + text.encode("utf-8", "surrogatepass")).digest()[:16]


def default_cache_folder() -> Path:
    """Return the user's cache folder for KnowHalu."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif os.name == "nt":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or "")
        if not base.is_absolute():
            base = Path.home() / ".cache"
    return base / "knowhalu"


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
        self._options |= options.model_dump(mode="json", include=NEW_KEY_OPTIONS, exclude_defaults=True)
        self.folder = Path(options.model).expanduser()

    def key(self, identity: str, request: Generate) -> bytes:
        """Return the digest of everything that determines a reply."""
        fields = asdict(request)
        del fields["bypass_cache"], fields["role"]
        fields["begun"] = fields.pop("prefill")  # the name of the field in the keys of stored replies
        if not request.turns:  # as in the keys of replies that were stored before there were turns
            del fields["turns"]
        decisive = [CACHE_FORMAT, self._options, identity, fields]
        return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).digest()

    def get(self, key: bytes) -> Completion | None:
        """Return the stored reply; None where there is none."""
        if (text := self.store.get(key)) is None:
            return None
        try:
            fields = json.loads(text)
            return replace(Completion(**{**fields, "logprobs": tuple(fields["logprobs"])}), reused=True)
        except (ValueError, TypeError, KeyError):
            return None

    def put(self, key: bytes, reply: Completion) -> None:
        """Store a reply, unless it is blank; of its log-probabilities only the sum, as they would take most of the space."""
        if reply.text.strip():
            summed = replace(reply, logprobs=(sum(reply.logprobs),) if reply.logprobs else ())
            fields = {name: value for name, value in asdict(summed).items() if name == "logprobs" or value != DEFAULTS[name]}
            self.store.put(key, json.dumps(fields, separators=(",", ":")))


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
            answers.append(reply := replies[key])
            if isinstance(reply, Completion):
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


async def model_identity(backend: Any | None, options: LLMOptions) -> str:
    """Return name and hash of the model that answers, by a backend with `identity` or by the files of the model's folder.

    No model is loaded. Raises BackendError where the server does not answer.
    """
    try:
        result = _backend_identity(backend, Path(options.model).expanduser())
        identity = str(await result if inspect.isawaitable(result) else result)
    finally:
        if backend is not None:
            await backend.close()
    try:
        name = options.model or json.loads(identity)["model"]
    except (ValueError, KeyError, TypeError):
        name = ""
    return f"{Path(name).name} {hashlib.sha256(identity.encode()).hexdigest()[:16]}"
