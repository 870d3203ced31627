"""Rows that are put together from two files of one folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from knowhalu.datasets.reading import Reader, id_of
from knowhalu.datasets.rows import read_rows
from knowhalu.errors import InputError
from knowhalu.records import Row


def ragtruth_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of RAGTruth's responses with the fields of their sources; raises InputError where a source is missing."""
    if "source_info" in next((row.fields for row in read_rows(path)), {}):
        yield from read_rows(path)  # already put together
        return
    beside = _beside(path, "source_info.jsonl")
    sources = {Reader(row).key("source_id"): row.fields for row in read_rows(beside)}
    for row in read_rows(path):
        reader = Reader(row)
        name = reader.key("source_id")
        if name not in sources:
            reader.fault("source_id", f"{name!r:.40} is not in {beside.name}", "Take both files from the same release")
        wanted = {n: sources[name].get(n) for n in ("task_type", "source_info")}
        yield row._replace(fields={**row.fields, **wanted})


def scifact_rows(path: Path) -> Iterator[Row]:
    """Yield the rows of SciFact's claims with the texts of their abstracts; raises InputError where one is missing."""
    beside = _beside(path, "corpus.jsonl")
    corpus = {Reader(row).key("doc_id"): _abstract(row) for row in read_rows(beside)}
    for row in read_rows(path):
        reader = Reader(row)
        names = dict.fromkeys([*(id_of(v) or str(v) for v in reader.items("cited_doc_ids")), *reader.inner("evidence").fields])
        for name in names:
            if name not in corpus:
                reader.fault("cited_doc_ids", f"{name!r:.40} is not in {beside.name}", "Take both files from the same release")
        found: Mapping[str, Any] = {**row.fields, "abstracts": {name: corpus[name] for name in names}}
        yield row._replace(fields=found)


def _abstract(row: Row) -> str:
    reader = Reader(row)
    return "\n".join(filter(None, (reader.maybe("title"), " ".join(reader.texts("abstract")))))


def _beside(path: Path, name: str) -> Path:
    for found in (path.with_name(name), path.with_name(f"{name}.gz")):
        if found.exists():
            return found
    raise InputError(f"{path}: its texts are in {name}, which is not beside it. Put both files into one folder.")
