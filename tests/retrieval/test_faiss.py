"""Building and dense search of an index: results, their places, and reproducible files."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.encoder.embedder import MiniLMEmbedder
from knowhalu.errors import IndexFormatError, InputError
from knowhalu.index.build import BuildProgress, build_index
from knowhalu.index.embedding import PASSAGES_PER_CALL
from knowhalu.index.extension import verify_index
from knowhalu.index.manifest import Chunking, read_index_info
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import FACTS, QUESTIONS, WordEmbedder, records


def test_questions_find_the_sentence_that_answers_them(tmp_path: Path, minilm: MiniLMEmbedder) -> None:
    """The real model puts the right sentence first."""
    build_index(records(), tmp_path / "index", minilm)
    found = FaissIndex.open(tmp_path / "index", minilm).search(list(QUESTIONS), 2)
    assert [passages[0].title for passages in found] == list(QUESTIONS.values())
    assert all(0.2 < p[0].score <= 1.0 for p in found)


def test_scores_are_the_cosines_of_title_and_text(folder: Path, words: WordEmbedder) -> None:
    """The title is embedded with the text but is not part of it."""
    (found,) = FaissIndex.open(folder, words).search(["the Titanic"], 1)
    vectors = words.encode(["the Titanic", f"Titanic. {FACTS['Titanic']}"])
    assert found[0].text == FACTS["Titanic"] and found[0].score == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-6)


def test_without_titles_only_the_text_is_embedded(tmp_path: Path, words: WordEmbedder) -> None:
    """The option changes what is embedded, not what is shown."""
    build_index(records(), tmp_path / "index", words, chunking=Chunking(titles=False))
    assert sorted(words.calls[-1]) == sorted(FACTS.values())
    assert FaissIndex.open(tmp_path / "index", words).search(["bees"], 1)[0][0].title == "Honey bee"


TEXTS = st.text(st.sampled_from("ab é𝄞日.\n \t!?"), min_size=1, max_size=200).filter(lambda t: t.strip())


@settings(max_examples=30, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5, unique=True), st.integers(0, 6))
def test_every_passage_quotes_its_document(tmp_path_factory: pytest.TempPathFactory, texts: list[str], limit: int) -> None:
    """Whatever the text, `text == document[start:end]` and no word is lost but duplicates."""
    out = tmp_path_factory.mktemp("any") / "index"
    sources = [SourceRecord(str(i), f"title {i}", text, "") for i, text in enumerate(texts)]
    made = build_index(sources, out, WordEmbedder(dimension=4), chunking=Chunking(words=limit))
    (found,) = FaissIndex.open(out, WordEmbedder(dimension=4)).search(["a"], 10_000)
    assert made.counts.duplicates + len(found) >= len(texts) and verify_index(out) == []
    for p in found:
        assert texts[int(p.document)][p.start : p.end] == p.text
    if limit == 0:
        assert sorted(p.text for p in found) == sorted(texts)


def test_long_documents_are_split_and_numbered(tmp_path: Path, words: WordEmbedder) -> None:
    """Passages keep to the limit and are numbered within their document."""
    text = " ".join(f"Sentence number {i} is about item{i}." for i in range(50))
    build_index([SourceRecord("long", "", text, "")], tmp_path / "index", words, chunking=Chunking(words=20))
    (found,) = FaissIndex.open(tmp_path / "index", words).search(["item7"], 100)
    assert sorted(int(p.id.removeprefix("long#")) for p in found) == list(range(1, len(found) + 1)) and len(found) == 17
    assert max(len(p.text.split()) for p in found) <= 20 and "item7." in found[0].text


def test_equal_passages_are_kept_once(tmp_path: Path, words: WordEmbedder) -> None:
    """Title and text together make a passage: the same words under another title stay."""
    rows = [("A", "An actor."), ("A", "An actor."), ("B", "An actor.")]
    made = build_index([SourceRecord(str(i), *row, "") for i, row in enumerate(rows)], tmp_path / "index", words)
    assert (made.counts.documents, made.counts.passages, made.counts.duplicates) == (3, 2, 1)


def test_many_batches_stay_in_order_and_report_progress(tmp_path: Path, words: WordEmbedder) -> None:
    """Passages and vectors do not shift against each other at the ends of batches."""
    batch = PASSAGES_PER_CALL
    count, seen = 2 * batch + 10, list[BuildProgress]()
    sources = (SourceRecord(f"r{i}", "", f"token{i}", "") for i in range(count))
    build_index(sources, tmp_path / "index", words, progress=seen.append)
    asked = [f"token{i}" for i in (0, batch - 1, batch, 2 * batch, count - 1)]
    assert [p[0].text for p in FaissIndex.open(tmp_path / "index", words).search(asked, 1)] == asked
    assert [s.done for s in seen if s.stage == "embedding"] == [batch, 2 * batch, count] and seen[-1].total == count


def test_two_builds_have_the_same_bytes(tmp_path: Path, words: WordEmbedder) -> None:
    """Equal input gives equal bytes, the manifest included."""
    a, b = (build_index(records(), tmp_path / name, words) for name in "ab")
    assert a == b and (tmp_path / "a/manifest.json").read_bytes() == (tmp_path / "b/manifest.json").read_bytes()


def test_an_index_is_not_replaced_unless_forced(folder: Path, words: WordEmbedder) -> None:
    """The old index stays whole; force puts the new one in its place."""
    with pytest.raises(IndexFormatError, match="exists already.*force"):
        build_index(records({"One": "Only one."}), folder, words)
    assert read_index_info(folder).counts.passages == len(FACTS)
    build_index(records({"One": "Only one."}), folder, words, force=True)
    assert read_index_info(folder).counts.passages == 1 and [p.name for p in folder.parent.iterdir()] == ["index"]


def test_force_replaces_nothing_but_an_index(tmp_path: Path, words: WordEmbedder) -> None:
    """A folder of the user's own files is safe."""
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(IndexFormatError, match="not an index"):
        build_index(records(), tmp_path, words, force=True)
    (tmp_path / "manifest.json").write_text('{"name": "my web app"}')
    with pytest.raises(IndexFormatError, match="not an index"):
        build_index(records(), tmp_path, words, force=True)
    assert (tmp_path / "thesis.txt").exists() and "web app" in (tmp_path / "manifest.json").read_text()


def test_no_documents_is_an_error_and_leaves_nothing(tmp_path: Path, words: WordEmbedder) -> None:
    """An empty index is never made."""
    with pytest.raises(InputError, match="no document"):
        build_index([], tmp_path / "index", words)
    assert list(tmp_path.iterdir()) == []
