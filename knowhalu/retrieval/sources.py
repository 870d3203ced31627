"""Reading documents, one record at a time, from whatever they lie in: the formats are in `formats`.

A record that cannot be used is an InputError that names file and line; with `on_error="skip"` it is counted and listed.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from knowhalu.errors import InputError
from knowhalu.retrieval.formats import KNOWN, check_format, format_of, rows_of
from knowhalu.retrieval.keys import KeySet, key_of
from knowhalu.retrieval.parallel import done
from knowhalu.retrieval.rows import Broken, Fields, File, Heading, Job, LeftOut, Row
from knowhalu.retrieval.walking import files_below

LISTED = 1000
"""How many problems are kept in words; all are counted."""


class SourceRecord(NamedTuple):
    """A document as it was read; `where` names its file and line or page, `headings` the sections of its text.

    It is `numbered` where it has no id of its own, so that its file and line stand for one.
    """

    id: str
    title: str
    text: str
    where: str
    headings: tuple[Heading, ...] = ()
    numbered: bool = False


class Sources:
    """An iterable of the records in files and folders, read in bounded memory and in a fixed order.

    `read` and `total` count bytes, for a progress bar; `skipped` and `problems` tell which records were broken, `left_out`
    counts by reason those that are no documents (such as redirects), `ignored` lists files of a folder that are of no
    known kind. `format` reads all files as one format, `quotes=False` takes quotation marks in TSV and CSV for plain
    characters, and with `workers` above 1 that many processes parse Wikipedia, HTML and PDF.
    """

    def __init__(
        self,
        paths: Sequence[Path] | Path,
        *,
        fields: Fields | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        quotes: bool = True,
        format: str = "",
        workers: int = 1,
    ) -> None:
        self.fields, self.on_error, self.quotes = fields or Fields(), on_error, quotes
        self.format, self.workers = check_format(format), workers
        self.ignored: list[str] = []
        given = [paths] if isinstance(paths, Path) else list(paths)
        self.files = [pair for path in given for pair in self._files(path)]
        if not self.files:
            raise InputError(f"{', '.join(map(str, given)) or 'no path'}: no documents found. Give {KNOWN}, "
                             "or a folder with such files")  # fmt: skip
        self.sizes = [_size(path) for path, _ in self.files]
        self.total = sum(self.sizes)
        self._reset()

    def _reset(self) -> None:
        self.read = self.skipped = 0
        self.problems: list[str] = []
        self.left_out: Counter[str] = Counter()
        self._seen = KeySet()

    def _files(self, path: Path) -> list[tuple[Path, str]]:
        """List the files under a path, each with the name its records are known by."""
        if path.is_file():
            return [(path, path.name)]
        if not path.is_dir():
            raise InputError(f"{path}: no such file or folder")
        found = files_below(path)
        known = [bool(self.format or format_of(file)) for file, _ in found]
        self.ignored += [str(file) for (file, _), is_known in zip(found, known, strict=True) if not is_known]
        return [pair for pair, is_known in zip(found, known, strict=True) if is_known]

    def __iter__(self) -> Iterator[SourceRecord]:
        """Read all records from the start; raises InputError, or only counts where `on_error` is "skip"."""
        self._reset()
        for row in done(self._rows(), self.workers):
            if isinstance(row.value, LeftOut):
                self.left_out[row.value.reason] += 1
                continue
            try:
                yield self._record(row)
            except Broken as problem:
                self._refuse(f"{row.where}: {problem}")

    def _rows(self) -> Iterator[Row | Job]:
        before = 0
        for (path, name), size in zip(self.files, self.sizes, strict=True):
            yield from rows_of(File(path, name, self.fields, self.quotes, self.format), self._at(before))
            before += size
            self.read = before

    def _at(self, before: int) -> Callable[[int], None]:
        def note(position: int) -> None:
            self.read = before + position

        return note

    def _refuse(self, problem: str) -> None:
        if self.on_error == "raise":
            raise InputError(f"{problem}. Mend the record, or skip such records")
        self.skipped += 1
        if len(self.problems) < LISTED:
            self.problems.append(problem)

    def _record(self, row: Row) -> SourceRecord:
        assert not isinstance(row.value, LeftOut)
        if isinstance(row.value, Broken):
            raise row.value
        fields = row.fields
        text = self._field(row.value, fields.text)
        if text is None:
            has = ", ".join(map(str, row.value)) or "none"
            raise Broken(f"no field {' or '.join(fields.text)} (it has {has}); name the one that holds the text")
        if not text.strip():
            raise Broken("the text is empty")
        if "\0" in text:
            raise Broken("the text has NUL characters in it, so it is no text; is the file of another kind?")
        own = (self._field(row.value, fields.id, numbers=True) or "").strip()
        key = own or row.fallback_id
        if not self._seen.add(key_of(key)):
            cure = "; of folders with files of one name give the folder above them all" if key == row.fallback_id else ""
            raise Broken(f"the id {key!r} was there before; ids must differ{cure}")
        title = (self._field(row.value, fields.title) or "").strip()
        return SourceRecord(key, title, text, row.where, row.headings, not own)

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


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it is missed when it is read
        return 0
