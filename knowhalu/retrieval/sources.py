"""Reading documents, one record at a time, from whatever they lie in: JSONL, TSV, CSV, Parquet, text files, folders of these.

A record that cannot be used is an InputError that names file and line; with `on_error="skip"` it is counted and listed.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from knowhalu.errors import InputError
from knowhalu.retrieval.rows import Broken, Fields, Row, rows_of, suffix_of

LISTED = 1000
"""How many problems are kept in words; all are counted."""


class SourceRecord(NamedTuple):
    """A document as it was read; `where` names its file and line."""

    id: str
    title: str
    text: str
    where: str


class Sources:
    """An iterable of the records in files and folders, read in bounded memory and in a fixed order.

    `read` and `total` count bytes, for a progress bar; `skipped` and `problems` tell what was left out, `ignored` which
    files of a folder are of no known kind. `quotes=False` takes quotation marks in TSV and CSV for plain characters.
    """

    def __init__(
        self,
        paths: Sequence[Path] | Path,
        *,
        fields: Fields | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        quotes: bool = True,
    ) -> None:
        self.fields, self.on_error, self.quotes = fields or Fields(), on_error, quotes
        self.ignored: list[str] = []
        given = [paths] if isinstance(paths, Path) else list(paths)
        self.files = [pair for path in given for pair in self._files(path)]
        if not self.files:
            raise InputError(f"{', '.join(map(str, given)) or 'no path'}: no documents found. Give .jsonl, .tsv, .csv, "
                             ".parquet, .txt or .md files, or a folder with such files")  # fmt: skip
        self.total = sum(path.stat().st_size for path, _ in self.files)
        self._reset()

    def _reset(self) -> None:
        self.read = self.skipped = 0
        self.problems: list[str] = []
        self._seen: set[bytes] = set()

    def _files(self, path: Path) -> list[tuple[Path, str]]:
        """List the files under a path, each with the name its records are known by."""
        if path.is_file():
            return [(path, path.name)]
        if not path.is_dir():
            raise InputError(f"{path}: no such file or folder")
        found = []
        for file in sorted(p for p in path.rglob("*") if p.is_file()):
            inner = file.relative_to(path)
            if any(part.startswith(".") for part in inner.parts):
                continue
            if suffix_of(file) is None:
                self.ignored.append(str(file))
            else:
                found.append((file, inner.as_posix()))
        return found

    def __iter__(self) -> Iterator[SourceRecord]:
        """Read all records from the start; raises InputError, or only counts where `on_error` is "skip"."""
        self._reset()
        done = 0
        for path, name in self.files:
            for row in rows_of(path, name, self.fields, quotes=self.quotes, note=self._at(done)):
                try:
                    yield self._record(row)
                except Broken as problem:
                    self._refuse(f"{row.where}: {problem}")
            done += path.stat().st_size
            self.read = done

    def _at(self, done: int) -> Callable[[int], None]:
        def note(position: int) -> None:
            self.read = done + position

        return note

    def _refuse(self, problem: str) -> None:
        if self.on_error == "raise":
            raise InputError(f"{problem}. Mend the record, or skip such records")
        self.skipped += 1
        if len(self.problems) < LISTED:
            self.problems.append(problem)

    def _record(self, row: Row) -> SourceRecord:
        if isinstance(row.value, Broken):
            raise row.value
        fields = Fields() if row.plain else self.fields
        text = self._field(row.value, fields.text)
        if text is None:
            has = ", ".join(map(str, row.value)) or "none"
            raise Broken(f"no field {' or '.join(fields.text)} (it has {has}); name the one that holds the text")
        if not text.strip():
            raise Broken("the text is empty")
        key = (self._field(row.value, fields.id, numbers=True) or "").strip() or row.fallback_id
        digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
        if digest in self._seen:
            raise Broken(f"the id {key!r} was there before; ids must differ")
        self._seen.add(digest)
        return SourceRecord(key, (self._field(row.value, fields.title) or "").strip(), text, row.where)

    @staticmethod
    def _field(value: Mapping[str, Any], names: Sequence[str], *, numbers: bool = False) -> str | None:
        name = next((n for n in names if value.get(n) is not None), None)
        if name is None:
            return None
        found = value[name]
        if numbers and isinstance(found, int) and not isinstance(found, bool):
            found = str(found)
        if not isinstance(found, str):
            raise Broken(f"the field {name} is {type(found).__name__}, not text")
        try:
            found.encode()
        except UnicodeEncodeError:
            raise Broken(f"the field {name} is not valid UTF-8; convert the file to UTF-8") from None
        return found
