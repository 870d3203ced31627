"""The formats of documents: how each is known by name or shape, and who reads it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from knowhalu.errors import InputError
from knowhalu.retrieval.packing import BREAKS, PACKED, unpacked, unpacked_name
from knowhalu.retrieval.pdf import read_pdf
from knowhalu.retrieval.readymade import FIELDS
from knowhalu.retrieval.rows import Fields, File, Job, Note, Reader, Row
from knowhalu.retrieval.tables import read_jsonl, read_parquet, read_table
from knowhalu.retrieval.textfiles import read_markdown, read_text
from knowhalu.retrieval.webpage import read_html
from knowhalu.retrieval.wikipedia import read_dump


class Format(NamedTuple):
    """How a format is read, the names of its files without the ending of a packing, and what it is."""

    reader: Reader
    names: str
    about: str
    packed: bool = True


FORMATS = {
    "dpr": Format(read_table, r"psgs_w\d+.*\.tsv", "psgs_w100.tsv: id, text, title"),
    "colbert": Format(read_table, "", "TSV of ColBERT: number, passage, perhaps title; with or without names, raw quotes"),
    "wikichat": Format(read_jsonl, "", "JSON lines or TSV of WikiChat: content with full_section_title, or 'title | passage'"),
    "hotpotqa": Format(read_jsonl, r"wiki_\d\d+", "wiki_00.bz2 files of HotpotQA: title and a list of sentences"),
    "beir": Format(read_jsonl, "", "corpus.jsonl of BEIR: _id, title, text"),
    "kilt": Format(read_jsonl, r"kilt_knowledgesource.*\.json", "knowledge source of KILT: wikipedia_id, wikipedia_title, text"),
    "wikipedia": Format(
        read_dump,
        r".*pages-(?:articles|meta-current).*\.xml(?:-p\d+p\d+)?",
        "XML dump of Wikipedia (*-pages-articles.xml.bz2, multistream or not)",
    ),
    "jsonl": Format(read_jsonl, r".*\.(?:jsonl|ndjson)", "JSON lines (.jsonl, .ndjson)"),
    "tsv": Format(read_table, r".*\.tsv", ".tsv with the names of the columns, or a collection of ColBERT"),
    "csv": Format(read_table, r".*\.csv", ".csv with the names of the columns"),
    "parquet": Format(read_parquet, r".*\.parquet", "Parquet (.parquet)", packed=False),
    "markdown": Format(read_markdown, r".*\.(?:md|markdown)", "Markdown (.md, .markdown)", packed=False),
    "html": Format(read_html, r".*\.(?:html|htm|xhtml)", "HTML pages (.html, .htm, .xhtml)", packed=False),
    "pdf": Format(read_pdf, r".*\.pdf", "PDF (.pdf), a document for each page", packed=False),
    "text": Format(read_text, r".*\.txt", "plain text (.txt)", packed=False),
}
"""All formats, by the names that a user gives; the first whose names fit a file is taken."""
KNOWN = ".jsonl, .tsv, .csv (also .gz, .bz2, .xz or .zst), .parquet, .txt, .md, .html or .pdf files, or a Wikipedia dump"


def format_of(path: Path) -> str | None:
    """Return the format of a file by its name, of XML by its beginning; None for an unknown one."""
    name = unpacked_name(path)
    packed = path.suffix.lower() in PACKED
    for key, known in FORMATS.items():
        if known.names and (known.packed or not packed) and re.fullmatch(known.names, name):
            return key
    return "wikipedia" if name.endswith(".xml") and _is_dump(path) else None


def _is_dump(path: Path) -> bool:
    try:
        with unpacked(path) as (file, _):
            return b"<mediawiki" in file.read(4096)
    except BREAKS:
        return False


def rows_of(file: File, note: Note) -> Iterator[Row | Job]:
    """Read the rows of one file; raises InputError where the format is unknown or the file as a whole cannot be read."""
    kind = file.format or format_of(file.path)
    if kind is None:
        raise InputError(f"{file.path}: unknown kind of file. Give {KNOWN}, or name the format")
    reader = FORMATS[kind].reader
    if kind == "wikichat" and unpacked_name(file.path).endswith(".tsv"):
        reader = read_table
    fields = FIELDS.get(kind, file.fields) if file.fields == Fields() else file.fields
    yield from reader(file._replace(format=kind, fields=fields), note)


def check_format(name: str) -> str:
    """Return the name of a format; raises InputError for an unknown one, with all that are known."""
    if name and name not in FORMATS:
        raise InputError(f"the format {name!r} is unknown. Known are {', '.join(FORMATS)}")
    return name
