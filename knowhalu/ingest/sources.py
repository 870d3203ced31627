"""Read documents one record at a time, in any known format.

A broken record is an InputError that names file and line; with `on_error="skip"` it is counted and listed.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from knowhalu.errors import InputError
from knowhalu.ingest.html import read_html
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
from knowhalu.ingest.tables import PRESET_FIELDS, read_jsonl, read_parquet, read_table
from knowhalu.ingest.text import read_markdown, read_pdf, read_text
from knowhalu.ingest.wikipedia import read_dump
from knowhalu.io.compression import COMPRESSED_SUFFIXES, READ_ERRORS, PositionCallback, open_uncompressed, uncompressed_name
from knowhalu.io.keys import KeySet, make_key

MAX_LISTED_PROBLEMS = 1000
"""Problems that are listed; all are counted."""


class SourceRecord(NamedTuple):
    """A document: `where` is its file and line or page, `headings` mark the sections of its text.

    `numbered` means that it has no id of its own, so its id is made of file and line.
    """

    id: str
    title: str
    text: str
    where: str
    headings: tuple[Heading, ...] = ()
    numbered: bool = False


class DocumentReader:
    """An iterable of the records in files and folders, read in bounded memory and in a fixed order.

    `read` and `total` count bytes, for a progress bar; `skipped` and `problems` count and list broken records, `left_out`
    counts by reason those that are not documents (such as redirects), `ignored` lists files of a folder in unknown formats.
    `format` reads all files as one format, `quotes=False` reads quotation marks in TSV and CSV as plain characters, and
    `workers` above 1 is the number of processes that parse Wikipedia, HTML and PDF.
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
        if format and format not in FORMATS:
            raise InputError(f"the format {format!r} is unknown. Known formats are {', '.join(FORMATS)}")
        self.fields, self.on_error, self.quotes = fields or FieldNames(), on_error, quotes
        self.format, self.workers = format, workers
        self.ignored: list[str] = []
        roots = [paths] if isinstance(paths, Path) else list(paths)
        self.files = [pair for path in roots for pair in self._files(path)]
        if not self.files:
            raise InputError(f"{', '.join(map(str, roots)) or 'no path'}: no documents found. Give {KNOWN_FORMATS}, "
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
        """List the files under a path, each with its name in generated ids."""
        if path.is_file():
            return [(path, path.name)]
        if not path.is_dir():
            raise InputError(f"{path}: no such file or folder")
        pairs = [(file, name, bool(self.format or detect_format(file))) for file, name in list_files(path)]
        self.ignored += [str(file) for file, _, is_known in pairs if not is_known]
        return [(file, name) for file, name, is_known in pairs if is_known]

    def __iter__(self) -> Iterator[SourceRecord]:
        """Read all records from the start; a broken one raises InputError, or is counted where `on_error` is "skip"."""
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
            note = partial(self._note_position, before)
            yield from read_source_rows(SourceFile(path, name, self.fields, self.quotes, self.format), note)
            before += size
            self.read = before

    def _note_position(self, before: int, position: int) -> None:
        self.read = before + position

    def _refuse(self, problem: str) -> None:
        if self.on_error == "raise":
            raise InputError(f"{problem}. Correct the record, or skip such records")
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
            names = ", ".join(map(str, row.value)) or "none"
            raise BrokenRecord(f"no field {' or '.join(fields.text)} (the record has {names}); name the field with the text")
        if not text.strip():
            raise BrokenRecord("the text is empty")
        if "\0" in text:
            raise BrokenRecord("the text contains NUL characters; the file may be of another format")
        own_id = (self._field(row.value, fields.id, numbers=True) or "").strip()
        key = own_id or row.fallback_id
        if not self._seen.add(make_key(key)):
            hint = "; give the common parent of folders with equal file names" if key == row.fallback_id else ""
            raise BrokenRecord(f"the id {key!r} is used twice; ids must be unique{hint}")
        title = (self._field(row.value, fields.title) or "").strip()
        return SourceRecord(key, title, text, row.where, row.headings, not own_id)

    @staticmethod
    def _field(value: Mapping[str, Any], names: Sequence[str], *, numbers: bool = False) -> str | None:
        name = next((n for n in names if value.get(n) is not None), None)
        if name is None:
            return None
        content = value[name]
        if numbers and isinstance(content, int) and not isinstance(content, bool):
            content = str(content)
        if not isinstance(content, str):
            raise BrokenRecord(f"the field {name} is {type(content).__name__}, not text")
        try:
            content.encode()
        except UnicodeEncodeError:
            raise BrokenRecord(f"the field {name} is not valid UTF-8; convert the file to UTF-8") from None
        return content


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # reported when the file is read
        return 0


class SourceFormat(NamedTuple):
    """The reader of a format, a pattern for file names without a compression suffix, and a description."""

    reader: FormatReader
    names: str
    about: str
    compressed: bool = True


FORMATS = {
    "dpr": SourceFormat(read_table, r"psgs_w\d+.*\.tsv", "psgs_w100.tsv: id, text, title"),
    "colbert": SourceFormat(read_table, "", "TSV of ColBERT: number, passage, optional title; header optional, raw quotes"),
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
    "tsv": SourceFormat(read_table, r".*\.tsv", ".tsv with a header, or a collection of ColBERT"),
    "csv": SourceFormat(read_table, r".*\.csv", ".csv with a header"),
    "parquet": SourceFormat(read_parquet, r".*\.parquet", "Parquet (.parquet)", compressed=False),
    "markdown": SourceFormat(read_markdown, r".*\.(?:md|markdown)", "Markdown (.md, .markdown)", compressed=False),
    "html": SourceFormat(read_html, r".*\.(?:html|htm|xhtml)", "HTML pages (.html, .htm, .xhtml)", compressed=False),
    "pdf": SourceFormat(read_pdf, r".*\.pdf", "PDF (.pdf), a document for each page", compressed=False),
    "text": SourceFormat(read_text, r".*\.txt", "plain text (.txt)", compressed=False),
}
"""All formats by the name in settings; the first whose pattern matches the name of a file is used."""
KNOWN_FORMATS = ".jsonl, .tsv, .csv (also .gz, .bz2, .xz or .zst), .parquet, .txt, .md, .html or .pdf files, or a Wikipedia dump"


def detect_format(path: Path) -> str | None:
    """Return the format of a file by its name, of XML by its first bytes; None if unknown."""
    name = uncompressed_name(path)
    compressed = path.suffix.lower() in COMPRESSED_SUFFIXES
    for key, known in FORMATS.items():
        if known.names and (known.compressed or not compressed) and re.fullmatch(known.names, name):
            return key
    return "wikipedia" if name.endswith(".xml") and _is_wikipedia_dump(path) else None


def _is_wikipedia_dump(path: Path) -> bool:
    try:
        with open_uncompressed(path) as (file, _):
            return b"<mediawiki" in file.read(4096)
    except READ_ERRORS:
        return False


def read_source_rows(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read the rows of one file; raises InputError where the format is unknown or the file cannot be read at all."""
    kind = file.format or detect_format(file.path)
    if kind is None:
        raise InputError(f"{file.path}: unknown format. Give {KNOWN_FORMATS}, or name the format")
    reader = FORMATS[kind].reader
    if kind == "wikichat" and uncompressed_name(file.path).endswith(".tsv"):
        reader = read_table
    fields = PRESET_FIELDS.get(kind, file.fields) if file.fields == FieldNames() else file.fields
    yield from reader(file._replace(format=kind, fields=fields), note)


def list_files(folder: Path) -> list[tuple[Path, str]]:
    """List the files below a folder with their relative paths, sorted, without hidden ones and without following cycles.

    A broken link is listed, too, so that it is reported when it is read. Raises InputError for a folder that cannot be listed.
    """
    files: list[tuple[Path, str]] = []
    seen = {_folder_identity(folder)}
    folders = [folder]
    while folders:
        parent = folders.pop()
        try:
            entries = sorted(parent.iterdir())
        except OSError as error:
            raise InputError(f"{parent}: cannot be listed ({error.strerror}). Change its permissions") from error
        for path in entries:
            if path.name.startswith("."):
                continue
            if path.is_file() or not path.exists():  # neither sockets nor devices
                files.append((path, path.relative_to(folder).as_posix()))
            elif path.is_dir() and (identity := _folder_identity(path)) not in seen:
                seen.add(identity)
                folders.append(path)
    return sorted(files)


def _folder_identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino
