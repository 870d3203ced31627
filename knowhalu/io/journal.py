"""The journal: the output file of a batch, which survives a kill at any moment.

The first line identifies the run; every further line is one outcome. Lines are only appended; an incomplete line left by a kill
is cut off when the run continues; superseded lines are dropped at the end, by writing a new file and renaming it over the old.
"""

import errno
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

from knowhalu.errors import InputError, ResumeError, hide_password

HEAD_PREFIX = b'{"run":'
FSYNC_SECONDS = 1.0
LLM_IDENTITY_FIELD = "llm"
"""The field of the first line that `sign` adds."""
RESTART_HINT = "Nothing was changed. Give another -o, or --restart to start over (the old file is kept under another name)."


class JournalEntry(NamedTuple):
    """An outcome of an earlier run: its place, its fields, and the offset of its line in bytes."""

    place: str
    fields: dict[str, Any]
    offset: int


class OutcomeJournal:
    """An output file, locked by this process from opening to closing."""

    def __init__(self, path: Path, run: Mapping[str, str], *, restart: bool = False) -> None:
        """Open or create the file.

        Raises ResumeError where it is in use or belongs to another run, InputError where it cannot be an output file.
        """
        self.path, self.run = path.resolve(), dict(run)
        self._file = _open_locked(self.path)
        try:
            if restart:
                self._set_aside()
            self._synced = time.monotonic()
            self._first = self._check_head()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> "OutcomeJournal":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[JournalEntry]:
        """Yield the outcomes of earlier runs, and cut off an incomplete last line; call it once, before `append`."""
        offset = self._first
        with self.path.open("rb") as reader:
            reader.seek(offset)
            for number, line in enumerate(reader, 2):
                place = f"{self.path}, line {number}"
                fields = _parse_fields(line)
                if fields is not None:
                    yield JournalEntry(place, fields, offset)
                if not line.endswith(b"\n"):
                    self._end_last_line(offset, whole=fields is not None)
                    return
                if fields is None:
                    raise ResumeError(
                        f"{place}: not an outcome of KnowHalu; the file was changed by another program. {RESTART_HINT}"
                    )
                offset += len(line)

    def sign(self, identity: str) -> None:
        """Write the identity of the language model, if there is one, into the first line; call it after `entries`.

        Raises ResumeError where the file has outcomes of another model.
        """
        signed = {**self.run, LLM_IDENTITY_FIELD: identity}
        changes = list(_describe_changes(self.run, signed))
        if not identity or not changes:
            return
        if os.fstat(self._file.fileno()).st_size > self._first:
            raise ResumeError(f"{self.path}: belongs to another run ({'; '.join(changes)}). {RESTART_HINT}")
        self.run = signed
        self._first = self._begin()

    def append(self, line: str) -> int:
        """Write one line so that it survives a kill of this process; return its offset in bytes."""
        offset = self._file.seek(0, os.SEEK_END)
        _write_all(self._file, line.encode("utf-8") + b"\n")
        if time.monotonic() - self._synced >= FSYNC_SECONDS:
            os.fsync(self._file.fileno())
            self._synced = time.monotonic()
        return offset

    def compact(self, offsets: Iterable[int]) -> None:
        """Keep only the lines at `offsets`, in this order; a kill leaves either the old file or the new one."""
        temporary = self.path.with_name(f".{self.path.name}.compact.tmp")
        new = _open_locked(temporary)
        try:
            new.truncate(0)
            _write_all(new, _format_head(self.run))
            with self.path.open("rb") as reader:
                for offset in offsets:
                    reader.seek(offset)
                    _write_all(new, reader.readline())
            os.fsync(new.fileno())
            os.chmod(temporary, stat.S_IMODE(os.fstat(self._file.fileno()).st_mode))
            os.replace(temporary, self.path)
        except BaseException:
            new.close()
            temporary.unlink(missing_ok=True)
            raise
        self._file.close()
        self._file = new
        _sync_folder(self.path.parent)

    def close(self) -> None:
        """Write everything to disk and close the file."""
        if not self._file.closed:
            os.fsync(self._file.fileno())
            self._file.close()

    def _check_head(self) -> int:
        """Compare the first line with this run, writing it where the file is new; return its length in bytes."""
        self._file.seek(0)
        line = self._file.readline()
        fields = _parse_fields(line)
        if fields is None and not line.endswith(b"\n") and _is_torn_head(line):
            return self._begin()
        run = fields.get("run") if fields is not None else None
        if not isinstance(run, dict):
            raise ResumeError(
                f"{self.path}: exists and is not an output of `knowhalu detect` or `knowhalu revise`. {RESTART_HINT}"
            )
        signed = {name: value for name, value in run.items() if name == LLM_IDENTITY_FIELD}  # `sign` compares it
        if changes := list(_describe_changes(run, self.run | signed)):
            if not self._file.read(1):  # a run that failed before its first outcome has nothing to lose
                return self._begin()
            raise ResumeError(f"{self.path}: belongs to another run ({'; '.join(changes)}). {RESTART_HINT}")
        self.run |= signed
        if not line.endswith(b"\n"):
            self._end_last_line(0, whole=True)
            return len(line) + 1
        return len(line)

    def _begin(self) -> int:
        """Write the first line of a file that holds no outcome; return its length in bytes."""
        self._file.truncate(0)
        self._file.seek(0)
        _write_all(self._file, _format_head(self.run))
        os.fsync(self._file.fileno())
        return self._file.tell()

    def _end_last_line(self, offset: int, *, whole: bool) -> None:
        """End a whole last line, or cut off an incomplete one."""
        if whole:
            self._file.seek(0, os.SEEK_END)
            _write_all(self._file, b"\n")
        else:
            self._file.truncate(offset)

    def _set_aside(self) -> None:
        if os.fstat(self._file.fileno()).st_size == 0:
            return
        names = (self.path.with_name(f"{self.path.name}.old{n or ''}") for n in range(1_000_000))
        os.rename(self.path, next(name for name in names if not name.exists()))
        self._file.close()
        self._file = _open_locked(self.path)


def _open_locked(path: Path) -> IO[bytes]:
    """Open a regular file for reading and writing, without a buffer, and lock it against other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InputError(f"{path}: cannot be written ({error.strerror}). Give another -o.") from error
        file = os.fdopen(descriptor, "r+b", buffering=0) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        if file is None:
            os.close(descriptor)
            raise InputError(f"{path}: is not a regular file, so a run could not be continued. Give another -o.")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise InputError(f"{path}: cannot be locked ({error.strerror}). Give an -o on a local disk.") from error
            raise ResumeError(f"{path}: another process is writing this file. Wait for it, or give another -o.") from error
        # the process that held the lock may have renamed another file over this one meanwhile
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            return file
        file.close()


def _write_all(file: IO[bytes], data: bytes) -> None:
    """Write all of the data: without a buffer, one write may write only some of it."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]


def _format_head(run: Mapping[str, str]) -> bytes:
    return json.dumps({"run": dict(run)}, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"


def _is_torn_head(line: bytes) -> bool:
    """Tell whether this may be the incomplete first line that a kill left, and not the file of another program."""
    return line.startswith(HEAD_PREFIX) or HEAD_PREFIX.startswith(line) or not line.strip(b"\0")


def _parse_fields(line: bytes) -> dict[str, Any] | None:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and ("run" in fields or "id" in fields) else None


def _describe_changes(old: Mapping[str, Any], new: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield a description of each difference; values that are JSON objects, such as the settings, are compared leaf by leaf."""
    for name in sorted({*old, *new}):
        before, after = _parse_nested(old.get(name)), _parse_nested(new.get(name))
        if isinstance(before, dict) and isinstance(after, dict):
            yield from _describe_changes(before, after, f"{above}{name}.")
        elif before != after:
            yield f"{above}{name} was {before}, is {after}"


def _parse_nested(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    value = hide_password(value)  # older versions stored the settings with it
    if not value.startswith("{"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
