"""A bounded store of texts by key on disk, shared by several processes: one SQLite file in WAL mode."""

import hashlib
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from knowhalu.errors import BackendError, SettingsError

APPLICATION_ID = 0x4B48524C
"""The application id that marks the SQLite file as a reply cache."""
SCHEMA_VERSION = 1
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
        self._retry_while_locked(lambda: self._connection.execute("PRAGMA journal_mode = WAL"))
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if not application:
            self._connection.executescript(
                f"BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION};"
                f"{SCHEMA} COMMIT;"
            )

    def _retry_while_locked(self, call: Callable[[], object]) -> None:
        """Call until the file is unlocked: SQLite does not wait by itself when the journal mode changes."""
        until = time.monotonic() + WAIT_SECONDS
        while True:
            try:
                call()
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
        given = Path(os.environ.get("XDG_CACHE_HOME") or "")
        base = given if given.is_absolute() else Path.home() / ".cache"
    return base / "knowhalu"
