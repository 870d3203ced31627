"""The work folder of an index in which every change is prepared, with its lock and its journal.

The journal has a line that describes the job, then one for each finished step. Killed work resumes from there when the same job
is started again. One process works at a time; the kernel releases the lock of a process that dies.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from knowhalu.errors import IndexFormatError
from knowhalu.index.manifest import INDEX_FILE_NAME, MANIFEST_FILE, Manifest

JOURNAL_FILE = "journal.jsonl"
FORMAT_1_FILES = {"texts.bin", "texts.offsets", "documents.bin", "documents.offsets", "spans.bin", "vectors.faiss"}


class IndexTransaction:
    """Unfinished work on the index `out`, locked from opening to closing; use it as a context manager."""

    def __init__(self, out: Path, job: Callable[[], dict[str, Any]], *, restart: bool = False) -> None:
        """Lock and open the work folder; `job` describes the change and is called once the index is locked.

        Unfinished work of another job is discarded if it is cheap or `restart` is set; else this raises IndexFormatError.
        """
        self.out, self._restart = out, restart
        self.published: Manifest | None = None
        """The result of this very job where a killed process had finished and this one published it."""
        self.folder = out.with_name(f".{out.name}.building")
        out.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(lock_index(out))
            self.steps = self._read(job)
            self._lock = stack.pop_all()

    def _read(self, job: Callable[[], dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the finished steps of this job; clear the folder where it is of another job."""
        job_line, steps = _read_journal(self.folder / JOURNAL_FILE)
        if steps and "publish" in steps[-1]:
            manifest = Manifest.model_validate_json(steps[-1]["publish"])
            self._roll_forward(manifest, steps[-1]["moves"])
            self.job = job()
            self.published, job_line = manifest if job_line == self.job else None, None
        else:
            self.job = job()
        self._command = (job_line or self.job)["command"]
        if job_line != self.job:
            if job_line is not None:
                changes = (
                    f"{k} was {job_line.get(k)}, now {self.job.get(k)}"
                    for k in sorted({*job_line, *self.job})
                    if job_line.get(k) != self.job.get(k)
                )
                self.refuse(f"it was started with other settings ({', '.join(changes)})")
            self.clear()
            return []
        return steps

    @property
    def is_precious(self) -> bool:
        """Return whether the finished work is expensive to repeat; copying is not."""
        return self._command != "compact" and (
            any(self.folder.glob("*.vectors")) or len(list(self.folder.glob("*.passages"))) > 1
        )

    def refuse(self, why: str) -> None:
        """Raise IndexFormatError for unfinished work that cannot be resumed, unless it may be discarded."""
        if self.is_precious and not self._restart:
            raise IndexFormatError(
                f"{self.out}: there is unfinished work on this index, and {why}. Run the same command as before to finish it, "
                "or use --force to discard it"
            )

    def clear(self) -> None:
        """Start over with an empty folder and journal."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.steps = []
        self._command = self.job["command"]
        self.note(self.job)

    def note(self, step: dict[str, Any]) -> None:
        """Append a finished step to the journal."""
        with (self.folder / JOURNAL_FILE).open("ab") as file:
            file.write(json.dumps(step, ensure_ascii=False).encode() + b"\n")
            file.flush()
            # a step lost in a power failure is only repeated, but a publication must be completed
            if "publish" in step:
                os.fsync(file.fileno())

    def publish(self, manifest: Manifest, moves: dict[str, str]) -> None:
        """Move finished and synced files to their names in the index folder, and switch the manifest to them.

        Once the journal has this step it is completed, if necessary by the next process that changes the index.
        """
        self.note({"publish": manifest.model_dump_json(), "moves": moves})
        self._roll_forward(manifest, moves)

    def _roll_forward(self, manifest: Manifest, moves: dict[str, str]) -> None:
        self.out.mkdir(exist_ok=True)
        for name, final in moves.items():
            if (self.folder / name).exists():
                os.replace(self.folder / name, self.out / final)
        new = self.folder / MANIFEST_FILE
        manifest.write(new)
        _sync(self.out)
        os.replace(new, self.out / MANIFEST_FILE)
        _sync(self.out)
        for path in self.out.iterdir():
            if path.name not in manifest.files and (INDEX_FILE_NAME.fullmatch(path.name) or path.name in FORMAT_1_FILES):
                path.unlink()
        # the journal is removed last: it describes the rest of the folder
        for path in self.folder.iterdir():
            if path.name != JOURNAL_FILE:
                path.unlink()
        shutil.rmtree(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self.is_precious:
            shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()


@contextlib.contextmanager
def lock_index(out: Path) -> Iterator[None]:
    """Hold the lock of an index; raises IndexFormatError where another process holds it."""
    path = out.resolve().with_name(f".{out.resolve().name}.lock")
    lock = _take_lock(path, out)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        lock.close()


def _take_lock(path: Path, out: Path) -> IO[bytes]:
    """Take the lock of an index; raises IndexFormatError where another process has it."""
    while True:
        file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b", buffering=0)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = file.read(32).decode(errors="replace").strip()
            file.close()
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise IndexFormatError(f"{path}: cannot be locked ({error.strerror}). Keep the index on a local disk") from error
            raise IndexFormatError(f"{out}: process {owner or 'unknown'} is changing this index. Wait until it ends") from error
        # the last owner may have removed the file after we opened it
        if path.exists() and os.path.samestat(os.fstat(file.fileno()), path.stat()):
            file.truncate(0)
            file.write(str(os.getpid()).encode())
            return file
        file.close()


def _read_journal(path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Read the job and the steps of a journal; truncate an incomplete last line, as a kill leaves it."""
    if not path.is_file():
        return None, []
    lines, size = [], 0
    for line in path.read_bytes().splitlines(keepends=True):
        try:
            lines.append(json.loads(line))
        except ValueError:
            break
        if not line.endswith(b"\n"):
            lines.pop()
            break
        size += len(line)
    os.truncate(path, size)
    return (lines[0], lines[1:]) if lines else (None, [])


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
