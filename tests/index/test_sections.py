"""Sections in an index: a document with several sections is replaced, deleted and compacted as one document."""

from pathlib import Path

from knowhalu.index.build import build_index
from knowhalu.index.compact import compact_index
from knowhalu.index.extension import verify_index
from knowhalu.index.manifest import Chunking
from knowhalu.index.update import add_documents, delete_documents
from knowhalu.ingest.records import Heading
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import WordEmbedder, records

CUTTING = Chunking(words=4, overlap=1)


def town(*sections: str) -> SourceRecord:
    """Make a document of sections, each a heading of one word and its text."""
    text, headings = "", []
    for section in sections:
        name = section.partition("\n")[0]
        headings.append(Heading(len(text), len(text) + len(name), (name,)))
        text += section + "\n"
    return SourceRecord("town", "Town", text, "test", tuple(headings))


def found(folder: Path, words: WordEmbedder) -> dict[str, tuple[str, str]]:
    """Return title and text of all passages of the town by their ids."""
    (passages,) = FaissIndex.open(folder, words).search(["town"], 1000)
    return {p.id: (p.title, p.text) for p in passages if p.document == "town"}


def test_sections_follow_updates_of_their_document(tmp_path: Path, words: WordEmbedder) -> None:
    """Built in shards of three passages, replaced, compacted and deleted."""
    first = town("Past\nIt began here. It grew fast.", "Food\nBread is good. Butter is better.", "Past\nAgain it began.")
    build_index([*records(), first], tmp_path / "a", words, chunking=CUTTING, shard=3)
    shown = found(tmp_path / "a", words)
    assert {title for title, _ in shown.values()} == {"Town > Past", "Town > Food"}
    assert len(shown) == len(set(shown)) >= 5
    second = town("Food\nCheese is best.", "Sport\nThey run.")
    add_documents([second], tmp_path / "a", words)
    build_index([*records(), second], tmp_path / "b", words, chunking=CUTTING, shard=3)
    assert found(tmp_path / "a", words) == found(tmp_path / "b", words)
    assert {title for title, _ in found(tmp_path / "a", words).values()} == {"Town > Food", "Town > Sport"}
    compact_index(tmp_path / "a")
    assert found(tmp_path / "a", words) == found(tmp_path / "b", words) and not verify_index(tmp_path / "a")
    delete_documents(["town"], tmp_path / "a")
    assert not found(tmp_path / "a", words)
