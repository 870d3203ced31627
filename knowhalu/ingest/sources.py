"""Reading documents one record at a time, from any format that is known by name or by shape.

A record that cannot be used is an InputError that names file and line; with `on_error="skip"` it is counted and listed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from knowhalu.errors import InputError
from knowhalu.ingest.html import read_html
from knowhalu.ingest.pdf import read_pdf
from knowhalu.ingest.presets import PRESET_FIELDS
from knowhalu.ingest.records import (
    BrokenRecord,
    FieldNames,
    FormatReader,
    Heading,
    ReadJob,
    SkippedRecord,
    SourceFile,
    SourceRow,
    run_jobs,
)
from knowhalu.ingest.tables import read_jsonl, read_parquet, read_table
from knowhalu.ingest.text import read_markdown, read_text
from knowhalu.ingest.wikipedia import read_dump
from knowhalu.io.compression import COMPRESSED_SUFFIXES, READ_ERRORS, PositionCallback, open_uncompressed, uncompressed_name
from knowhalu.io.keys import KeySet, make_key

MAX_LISTED_PROBLEMS = 1000
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


class DocumentReader:
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
        fields: FieldNames | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        quotes: bool = True,
        format: str = "",
        workers: int = 1,
    ) -> None:
        self.fields, self.on_error, self.quotes = fields or FieldNames(), on_error, quotes
        self.format, self.workers = check_format(format), workers
        self.ignored: list[str] = []
        given = [paths] if isinstance(paths, Path) else list(paths)
        self.files = [pair for path in given for pair in self._files(path)]
        if not self.files:
            raise InputError(f"{', '.join(map(str, given)) or 'no path'}: no documents found. Give {KNOWN_FORMATS}, "
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
        found = list_files(path)
        known = [bool(self.format or detect_format(file)) for file, _ in found]
        self.ignored += [str(file) for (file, _), is_known in zip(found, known, strict=True) if not is_known]
        return [pair for pair, is_known in zip(found, known, strict=True) if is_known]

    def __iter__(self) -> Iterator[SourceRecord]:
        """Read all records from the start; raises InputError, or only counts where `on_error` is "skip"."""
        self._reset()
        for row in run_jobs(self._rows(), self.workers):
            if isinstance(row.value, SkippedRecord):
                self.left_out[row.value.reason] += 1
                continue
            try:
                yield self._record(row)
            except BrokenRecord as problem:
                self._refuse(f"{row.where}: {problem}")

    def _rows(self) -> Iterator[SourceRow | ReadJob]:
        before = 0
        for (path, name), size in zip(self.files, self.sizes, strict=True):
            yield from read_source_rows(SourceFile(path, name, self.fields, self.quotes, self.format), self._at(before))
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
        if len(self.problems) < MAX_LISTED_PROBLEMS:
            self.problems.append(problem)

    def _record(self, row: SourceRow) -> SourceRecord:
        assert not isinstance(row.value, SkippedRecord)
        if isinstance(row.value, BrokenRecord):
            raise row.value
        fields = row.fields
        text = self._field(row.value, fields.text)
        if text is None:
            has = ", ".join(map(str, row.value)) or "none"
            raise BrokenRecord(f"no field {' or '.join(fields.text)} (it has {has}); name the one that holds the text")
        if not text.strip():
            raise BrokenRecord("the text is empty")
        if "\0" in text:
            raise BrokenRecord("the text has NUL characters in it, so it is no text; is the file of another kind?")
        own = (self._field(row.value, fields.id, numbers=True) or "").strip()
        key = own or row.fallback_id
        if not self._seen.add(make_key(key)):
            cure = "; of folders with files of one name give the folder above them all" if key == row.fallback_id else ""
            raise BrokenRecord(f"the id {key!r} was there before; ids must differ{cure}")
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
            raise BrokenRecord(f"the field {name} is {type(found).__name__}, not text")
        try:
            found.encode()
        except UnicodeEncodeError:
            raise BrokenRecord(f"the field {name} is not valid UTF-8; convert the file to UTF-8") from None
        return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it is missed when it is read
        return 0


class SourceFormat(NamedTuple):
    """How a format is read, the names of its files without the ending of a packing, and what it is."""

    reader: FormatReader
    names: str
    about: str
    packed: bool = True


FORMATS = {
    "dpr": SourceFormat(read_table, r"psgs_w\d+.*\.tsv", "psgs_w100.tsv: id, text, title"),
    "colbert": SourceFormat(read_table, "", "TSV of ColBERT: number, passage, perhaps title; with or without names, raw quotes"),
    "wikichat": SourceFormat(
        read_jsonl, "", "JSON lines or TSV of WikiChat: content with full_section_title, or 'title | passage'"
    ),
    "hotpotqa": SourceFormat(read_jsonl, r"wiki_\d\d+", "wiki_00.bz2 files of HotpotQA: title and a list of sentences"),
    "beir": SourceFormat(read_jsonl, "", "corpus.jsonl of BEIR: _id, title, text"),
    "kilt": SourceFormat(
        read_jsonl, r"kilt_knowledgesource.*\.json", "knowledge source of KILT: wikipedia_id, wikipedia_title, text"
    ),
    "wikipedia": SourceFormat(
        read_dump,
        r".*pages-(?:articles|meta-current).*\.xml(?:-p\d+p\d+)?",
        "XML dump of Wikipedia (*-pages-articles.xml.bz2, multistream or not)",
    ),
    "jsonl": SourceFormat(read_jsonl, r".*\.(?:jsonl|ndjson)", "JSON lines (.jsonl, .ndjson)"),
    "tsv": SourceFormat(read_table, r".*\.tsv", ".tsv with the names of the columns, or a collection of ColBERT"),
    "csv": SourceFormat(read_table, r".*\.csv", ".csv with the names of the columns"),
    "parquet": SourceFormat(read_parquet, r".*\.parquet", "Parquet (.parquet)", packed=False),
    "markdown": SourceFormat(read_markdown, r".*\.(?:md|markdown)", "Markdown (.md, .markdown)", packed=False),
    "html": SourceFormat(read_html, r".*\.(?:html|htm|xhtml)", "HTML pages (.html, .htm, .xhtml)", packed=False),
    "pdf": SourceFormat(read_pdf, r".*\.pdf", "PDF (.pdf), a document for each page", packed=False),
    "text": SourceFormat(read_text, r".*\.txt", "plain text (.txt)", packed=False),
}
"""All formats, by the names that a user gives; the first whose names fit a file is taken."""
KNOWN_FORMATS = ".jsonl, .tsv, .csv (also .gz, .bz2, .xz or .zst), .parquet, .txt, .md, .html or .pdf files, or a Wikipedia dump"


def detect_format(path: Path) -> str | None:
    """Return the format of a file by its name, of XML by its beginning; None for an unknown one."""
    name = uncompressed_name(path)
    packed = path.suffix.lower() in COMPRESSED_SUFFIXES
    for key, known in FORMATS.items():
        if known.names and (known.packed or not packed) and re.fullmatch(known.names, name):
            return key
    return "wikipedia" if name.endswith(".xml") and _is_wikipedia_dump(path) else None


def _is_wikipedia_dump(path: Path) -> bool:
    try:
        with open_uncompressed(path) as (file, _):
            return b"<mediawiki" in file.read(4096)
    except READ_ERRORS:
        return False


def read_source_rows(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read the rows of one file; raises InputError where the format is unknown or the file as a whole cannot be read."""
    kind = file.format or detect_format(file.path)
    if kind is None:
        raise InputError(f"{file.path}: unknown kind of file. Give {KNOWN_FORMATS}, or name the format")
    reader = FORMATS[kind].reader
    if kind == "wikichat" and uncompressed_name(file.path).endswith(".tsv"):
        reader = read_table
    fields = PRESET_FIELDS.get(kind, file.fields) if file.fields == FieldNames() else file.fields
    yield from reader(file._replace(format=kind, fields=fields), note)


def check_format(name: str) -> str:
    """Return the name of a format; raises InputError for an unknown one, with all that are known."""
    if name and name not in FORMATS:
        raise InputError(f"the format {name!r} is unknown. Known are {', '.join(FORMATS)}")
    return name


def list_files(folder: Path) -> list[tuple[Path, str]]:
    """List the files below a folder, each with its path inside; hidden ones and folders seen before are left out.

    A link that leads nowhere is listed too, so that it is missed when it is read. Raises InputError for a folder that
    cannot be listed.
    """
    found: list[tuple[Path, str]] = []
    seen = {_folder_identity(folder)}
    folders = [folder]
    while folders:
        for path in _list_entries(folders.pop()):
            if path.name.startswith("."):
                continue
            if path.is_file() or not path.exists():  # sockets and devices are no documents
                found.append((path, path.relative_to(folder).as_posix()))
            elif path.is_dir() and (identity := _folder_identity(path)) not in seen:
                seen.add(identity)
                folders.append(path)
    return sorted(found)


def _list_entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror}). Give yourself the right to read it") from error


def _folder_identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino
