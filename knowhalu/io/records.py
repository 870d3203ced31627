"""Records: samples read from a user's JSONL or JSON, and outcomes written to one line and read back."""

import gzip
import json
import zlib
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from pydantic import ValidationError

from knowhalu.errors import InputError
from knowhalu.io.samples import parse_sample
from knowhalu.results import Failure, Outcome, Revision, RevisionOutcome, Verdict
from knowhalu.types import META_SAMPLES, META_SET, Sample

R = TypeVar("R", Verdict, Revision)

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class JSONRow(NamedTuple):
    """A parsed row, where it stands, and the id that it has where it names none."""

    place: str
    default_id: str
    fields: Any


def read_samples(path: Path) -> Iterator[Sample]:
    """Yield the samples of a file: JSON Lines (also gzipped), one JSON object, or a JSON array of objects.

    JSON Lines are read line by line; of the rows before, only hashes of their ids are held. Raises InputError naming
    file, line, field and cure.
    """
    seen: dict[bytes, str] = {}
    for place, default_id, fields in read_json_rows(path):
        sample = parse_sample(fields, place, default_id)
        first = seen.setdefault(hash_id(sample.id), place)
        if first is not place:
            where = first.removeprefix(f"{path}, ")
            raise InputError(f"{place}, field 'id': {sample.id!r} is also the id of {where}. Give every row its own id, or none.")
        yield sample
    if not seen:
        raise InputError(f'{path}: holds no samples. Write one JSON object on each line, such as {{"response": "..."}}.')


def read_single_sample(data: bytes, name: str) -> Sample:
    """Read the one sample of a text; raises InputError where there is none, or more than one."""
    content = decode_utf8(data.removeprefix(BYTE_ORDER_MARK), name)
    if not content.strip():
        raise InputError(f'{name}: holds nothing. Write one JSON object, such as {{"response": "..."}}.')
    lines = [line for line in content.split("\n") if line.strip()]
    item = _parse_json(lines[0] if _is_object(lines[0]) else content, name)
    rows = item if isinstance(item, list) else lines if _is_object(lines[0]) else [item]
    if len(rows) != 1:
        raise InputError(f"{name}: holds {len(rows)} samples, not one. For many: knowhalu detect IN -o OUT.")
    return parse_sample(item[0] if isinstance(item, list) else item, name, "item")


def hash_id(name: str) -> bytes:
    """Return a hash that stands for an id where many are held."""
    return blake2b(name.encode("utf-8"), digest_size=16).digest()


def hash_sample(sample: Sample) -> str:
    """Return a short hash of all that decides a sample's verdict."""
    content = sample.model_dump_json(include={"question", "response", "documents", "knowledge"})
    return blake2b(content.encode("utf-8"), digest_size=8).hexdigest()


class InputHashes:
    """The hashes that outcomes name of many samples: all of what is checked, and of `meta` what decides a verdict."""

    def __init__(self) -> None:
        self.contents, self._told = array("Q"), array("I")

    def add(self, sample: Sample) -> None:
        """Note the next sample."""
        told = json.dumps([sample.meta.get(name) for name in (META_SET, META_SAMPLES)], sort_keys=True, default=str)
        self.contents.append(int(hash_sample(sample), 16))
        self._told.append(int(blake2b(told.encode(), digest_size=4).hexdigest(), 16))

    def __getitem__(self, place: int) -> str:
        return f"{self.contents[place]:016x}-{self._told[place]:08x}"

    def is_same(self, place: int, named: Any) -> bool:
        """Tell whether an outcome names this sample as it is; those of older versions say nothing of `meta`."""
        return named in (self[place], f"{self.contents[place]:016x}")


def format_outcome(outcome: Outcome | Revision, content: str = "") -> str:
    """Return an outcome as one line of JSON without its line end; `content` is the hash of the sample it belongs to."""
    line = outcome.model_dump_json()
    return f'{line[:-1]},"input":"{content}"}}' if content else line


def parse_outcome(line: str | bytes) -> Outcome:
    """Read an outcome back from its line; raises InputError where the line is none."""
    return _parse_result(line, Verdict)


def parse_revision(line: str | bytes) -> RevisionOutcome:
    """Read a revision, or a failure, back from its line; raises InputError where the line is none."""
    return _parse_result(line, Revision)


def _parse_result(line: str | bytes, kind: type[R]) -> R | Failure:
    try:
        fields = json.loads(line)
        fields.pop("input", None)
        return (Failure if "stage" in fields else kind).model_validate(fields)
    except (ValueError, TypeError, AttributeError, RecursionError, ValidationError) as error:
        raise InputError(f"not an outcome of KnowHalu: {line[:80]!r} ({type(error).__name__})") from error


def decode_utf8(data: bytes, place: str, offset: int = 0) -> str:
    """Return UTF-8 bytes as text; raises InputError naming the byte, counted from the file's start."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        utf16 = " (it looks like UTF-16)" if offset == 0 and data[:2] in (b"\xff\xfe", b"\xfe\xff") else ""
        raise InputError(f"{place}: not UTF-8 at byte {offset + error.start}{utf16}. Save the file as UTF-8.") from error


def read_json_rows(path: Path) -> Iterator[JSONRow]:
    """Yield the rows of a JSON Lines or JSON file as they are; raises InputError naming file and line where one is not JSON."""
    with _open_maybe_gzipped(path) as file:
        whole = path.name.removesuffix(".gz").endswith(".json") and not _is_json_lines(file)
        if not whole:
            yield from _read_json_lines(file, path)
            return
        content = decode_utf8(file.read().removeprefix(BYTE_ORDER_MARK), str(path))
        if not content.strip():
            return
        item = _parse_json(content, str(path))
        if not isinstance(item, list):
            yield JSONRow(str(path), "line-1", item)
            return
        for number, fields in enumerate(item, 1):
            yield JSONRow(f"{path}, item {number}", f"item-{number}", fields)


def _read_json_lines(file: IO[bytes], path: Path) -> Iterator[JSONRow]:
    offset = 0
    for number, raw in enumerate(file, 1):
        place = f"{path}, line {number}"
        body = raw.removeprefix(BYTE_ORDER_MARK) if number == 1 else raw
        line = decode_utf8(body, place, offset + len(raw) - len(body))
        offset += len(raw)
        if not line.strip():
            continue
        if number == 1 and line.lstrip().startswith("["):
            raise InputError(f"{place}: a JSON array, not an object. Name the file .json, or write one object on each line.")
        yield JSONRow(place, f"line-{number}", _parse_json(line, place))


def _is_json_lines(file: IO[bytes]) -> bool:
    """Tell whether a `.json` file is JSON Lines: its first row is an object by itself and others follow."""
    first = b""
    while not first.strip() and (line := file.readline()):
        first = line.removeprefix(BYTE_ORDER_MARK)
    more = bool(file.readline())
    file.seek(0)
    return more and _is_object(first.decode("utf-8", "replace"))


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _parse_json(content: str, place: str) -> Any:
    try:
        return json.loads(content, object_pairs_hook=_refuse_duplicate_names)
    except json.JSONDecodeError as error:
        at = f"column {error.colno}" if error.lineno == 1 else f"line {error.lineno}, column {error.colno}"
        what = error.msg[:1].lower() + error.msg[1:]
        raise InputError(f"{place}: not JSON ({what} at {at}). Write one JSON object on each line.") from error
    except _DuplicateName as error:
        raise InputError(f"{place}, field {error.args[0]!r}: is given twice. Keep one of them.") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: JSON that is nested too deep or holds too long a number. Write it simpler.") from error


class _DuplicateName(Exception):
    """A name that stands twice in one JSON object; without this the later would silently win."""


def _refuse_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateName(next(n for n in names if names.count(n) > 1))
    return found


@contextmanager
def _open_maybe_gzipped(path: Path) -> Iterator[IO[bytes]]:
    """Open a plain or gzipped file; what the system or gzip says of it becomes an InputError."""
    try:
        with path.open("rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
            plain.seek(0)
            if not zipped:
                yield plain
                return
            with gzip.open(plain) as file:
                yield file  # type: ignore[misc]
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file. Check the path.") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the gzip data ends early or is damaged ({error}). Copy the file again.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error}).") from error
