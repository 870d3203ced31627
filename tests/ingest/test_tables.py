"""Published collections: detected by name or shape, and read as their own tools read them."""

import bz2
import json
from pathlib import Path

import pytest

from knowhalu.errors import InputError
from knowhalu.index.build import build_index
from knowhalu.index.manifest import Chunking
from knowhalu.ingest.records import FieldNames
from knowhalu.ingest.sources import DocumentReader
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import WordEmbedder

HOTPOT = {"id": "12", "url": "u", "title": "Anarchism", "text": ["Anarchism is an idea.", " It is old."],
          "charoffset": [[[0, 9]]], "text_with_links": ["<a href=\"x\">no</a>"]}  # fmt: skip
KILT = {"_id": "3", "wikipedia_id": "3", "wikipedia_title": "Town", "anchors": [], "categories": "x",
        "text": ["Town\n", "Town is a place.\n", "Section::::History.\n", "BULLET::::- Founded in 1200.\n",
                 "Section::::History:Early years.\n", "It was small.\n"]}  # fmt: skip


def lines(*values: object) -> str:
    """Write JSON lines."""
    return "".join(json.dumps(v) + "\n" for v in values)


CASES = {
    "psgs_w100.tsv": (
        'id\ttext\ttitle\n1\t"He said ""no"" to her."\tAaron\n2\tPlain.\tB\n',
        [("1", "Aaron", 'He said "no" to her.'), ("2", "B", "Plain.")],
    ),
    "collection.tsv": ('0\tThe "presence of\n1\tSecond\n', [("0", "", 'The "presence of'), ("1", "", "Second")]),
    "titled.tsv": ("7\tFirst\tOne\n8\tSecond\tTwo\n", [("7", "One", "First"), ("8", "Two", "Second")]),
    "named.tsv": ("id\tpassage\ttitle\n1\tFirst\tOne\n", [("1", "One", "First")]),
    "blocks.jsonl": (
        lines(
            {"id": 4, "document_title": "Paris", "full_section_title": "Paris > Food", "content": "Bread.", "block_type": "text"}
        ),
        [("4", "Paris > Food", "Bread.")],
    ),
    "old_blocks.jsonl": (
        lines({"id": 4, "article_title": "Paris", "full_section_title": "Paris > Food", "content_string": "Bread."}),
        [("4", "Paris > Food", "Bread.")],
    ),
    "corpus.jsonl": (lines({"_id": "MED-1", "title": "T", "text": "Body.", "metadata": {}}), [("MED-1", "T", "Body.")]),
    "para.jsonl": (lines({"id": "5", "title": "T", "sentences": ["One.", "Two.", ""]}), [("5", "T", "One. Two.")]),
    "AA/wiki_00.bz2": (lines(HOTPOT), [("12", "Anarchism", "Anarchism is an idea. It is old.")]),
    "wiki_01": (
        lines({"id": 12, "title": "T", "text": [["T"], ['<a href="a%20b">A b</a> is it.', " So."], []]}),
        [("12", "T", "T\nA b is it. So.\n")],
    ),
    "kilt_knowledgesource.json": (
        lines(KILT),
        [("3", "Town", "Town is a place.\nHistory\nFounded in 1200.\nEarly years\nIt was small.\n")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_collections_are_detected_by_name_or_shape(tmp_path: Path, name: str) -> None:
    """Ids, titles and texts are theirs, without an option."""
    content, wanted = CASES[name]
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(bz2.compress(content.encode()) if name.endswith(".bz2") else content.encode())
    assert [r[:3] for r in DocumentReader(tmp_path)] == wanted


@pytest.mark.parametrize(
    ("format", "content", "wanted"),
    [
        ("wikichat", "0\tParis > Food | Bread | butter.\n1\tNo title\n",
         [("0", "Paris > Food", "Bread | butter."), ("1", "", "No title")]),
        ("colbert", 'pid\tpassage\n5\t"Raw\n', [("5", "", '"Raw')]),
        ("dpr", 'id\ttext\ttitle\n1\t"A, b"\tT\n', [("1", "T", "A, b")]),
    ],
)  # fmt: skip
def test_a_named_format_overrides_detection(
    tmp_path: Path, format: str, content: str, wanted: list[tuple[str, str, str]]
) -> None:
    """WikiChat joins title and passage; ColBERT knows no quoting."""
    path = tmp_path / "x.tsv"
    path.write_text(content)
    assert [r[:3] for r in DocumentReader(path, format=format)] == wanted


def test_a_named_format_takes_only_its_own_fields(tmp_path: Path) -> None:
    """A file of another kind is a clear error; fields that the user names count more."""
    path = tmp_path / "x.jsonl"
    path.write_text(lines({"a": "b", "body": "c"}))
    with pytest.raises(InputError, match=r"x\.jsonl:1: no field text or sentences \(the record has a, body\)"):
        list(DocumentReader(path, format="hotpotqa"))
    path.write_text(lines({"_id": "1", "mine": "B"}))
    assert [r.text for r in DocumentReader(path, format="beir", fields=FieldNames(text=["mine"]))] == ["B"]


@pytest.mark.parametrize("text", [["a", 5], [["a"], [None]], [["a"], {"b": 1}]])
def test_a_list_that_contains_other_types_than_text_is_a_problem(tmp_path: Path, text: object) -> None:
    """The record is named and can be skipped."""
    (tmp_path / "x.jsonl").write_text(lines({"title": "t", "text": text}, {"text": "fine"}))
    reader = DocumentReader(tmp_path / "x.jsonl", on_error="skip")
    assert [r.text for r in reader] == ["fine"]
    assert "x.jsonl:1: the text is a list that contains" in reader.problems[0]


def test_kilt_sections_become_headings(tmp_path: Path, words: WordEmbedder) -> None:
    """From the file to the passage found, with its section."""
    (tmp_path / "kilt_knowledgesource.json").write_text(lines(KILT))
    (record,) = DocumentReader(tmp_path)
    assert [h.path for h in record.headings] == [("History",), ("History", "Early years")]
    assert [record.text[h.start : h.end] for h in record.headings] == ["History", "Early years"]
    build_index([record], tmp_path / "index", words, chunking=Chunking(words=50))
    ((found,),) = FaissIndex.open(tmp_path / "index", words).search(["small early years"], 1)
    assert (found.title, found.text) == ("Town > History > Early years", "Early years\nIt was small.")
    assert record.text[found.start : found.end] == found.text
