"""Changing an index: after additions, replacements and deletions it searches and compacts like a rebuilt one."""

import fcntl
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from knowhalu.errors import IndexFormatError, InputError
from knowhalu.index.build import build_index
from knowhalu.index.compact import compact_index
from knowhalu.index.extension import extend_index, open_stored_passages, verify_index
from knowhalu.index.manifest import Chunking, SearchParameters, read_index_info
from knowhalu.index.update import add_documents, delete_documents
from knowhalu.ingest.records import Heading
from knowhalu.ingest.sources import DocumentReader, SourceRecord
from knowhalu.retrieval.bm25 import LexicalIndex, build_lexical_part
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import WordEmbedder, records

WORDS = WordEmbedder(dimension=8)
SENTENCE = st.sampled_from(["Bees dance.", "Ice melts.", "Bees dance and ice melts.", "Rain falls."])
TEXT = st.lists(SENTENCE, min_size=1, max_size=4).map(" ".join)
HEADINGS = st.sampled_from([(), (Heading(0, 4, ("Part",)),), (Heading(0, 4, ("Part", "with\0zeros")),)])
RECORD = st.builds(
    SourceRecord, st.sampled_from("abcdef"), st.sampled_from(["", "Title"]), TEXT, st.just(""), HEADINGS, st.just(False)
)
BATCH = st.lists(RECORD, min_size=1, max_size=4, unique_by=lambda r: r.id)
SCRIPT = st.lists(st.one_of(BATCH, st.sets(st.sampled_from("abcdef"), min_size=1, max_size=3)), max_size=5)
OPTIONS = {"chunking": Chunking(words=3), "shard": 5}


def bytes_of(folder: Path) -> dict[str, bytes]:
    """Read all files of an index."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def answers(folder: Path, embedder: WordEmbedder = WORDS, **more: object) -> list:
    """Search for a few things, near and far, for few and for all."""
    index = FaissIndex.open(folder, embedder, **more)
    asked = ["bees dance", "melting ice", "Title", "nothing of the kind"]
    return [index.search(asked, k) for k in (1, 3, 100)]


def by_words(folder: Path) -> list:
    """Search for the same by the words alone."""
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    index = LexicalIndex.open(open_stored_passages(folder))
    return [index.search(["bees dance", "melting ice", "Title", "nothing of the kind"], k) for k in (1, 3, 100)]


@settings(max_examples=15, deadline=None)
@given(first=BATCH, script=SCRIPT)
def test_a_changed_index_equals_a_rebuilt_one(tmp_path_factory, first, script):
    """A few edit scripts."""
    check_script(tmp_path_factory.mktemp("edits"), first, script)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(first=BATCH, script=SCRIPT)
def test_a_changed_index_equals_a_rebuilt_one_in_many_scripts(tmp_path_factory, first, script):
    """The same for many."""
    check_script(tmp_path_factory.mktemp("edits"), first, script)


def check_script(home: Path, first: list[SourceRecord], script: list) -> None:
    """Same passages, scores and order, same counts and content; compacted, the same bytes."""
    build_index(first, home / "edited", WORDS, **OPTIONS)
    documents = {r.id: r for r in first}
    for step in script:
        if isinstance(step, set):
            if gone := step & documents.keys():
                delete_documents(sorted(gone), home / "edited")
            documents = {i: r for i, r in documents.items() if i not in step}
        else:
            add_documents(step, home / "edited", WORDS)
            documents = {i: r for i, r in documents.items() if i not in {s.id for s in step}} | {r.id: r for r in step}
        assert read_index_info(home / "edited").counts.documents == len(documents)
    assert verify_index(home / "edited") == []
    if not documents:
        assert answers(home / "edited") == [[[]] * 4] * 3
        with pytest.raises(InputError, match="nothing to compact"):
            compact_index(home / "edited")
        return
    build_index(documents.values(), home / "rebuilt", WORDS, **OPTIONS)
    edited, rebuilt = read_index_info(home / "edited"), read_index_info(home / "rebuilt")
    assert answers(home / "edited") == answers(home / "rebuilt")
    assert by_words(home / "edited") == by_words(home / "rebuilt")
    assert (edited.counts, edited.content) == (rebuilt.counts, rebuilt.content)
    compact_index(home / "edited")
    assert bytes_of(home / "edited") == bytes_of(home / "rebuilt")


def test_a_replaced_document_is_found_by_its_new_text_only(folder: Path, words: WordEmbedder) -> None:
    """The id stays, the old text is gone, and the generation counts up."""
    before = read_index_info(folder)
    add_documents([SourceRecord("d12", "Titanic", "The wreck lies at 3,800 metres.", "")], folder, words)
    found = FaissIndex.open(folder, words).search(["Titanic iceberg wreck"], 100)[0]
    assert [p.text for p in found if p.title == "Titanic"] == ["The wreck lies at 3,800 metres."] and len(found) == 12
    after = read_index_info(folder)
    assert (before.generation, after.generation) == (1, 2) and before.content != after.content
    add_documents([r for r in records() if r.id == "d12"], folder, words)
    assert read_index_info(folder).content == before.content and read_index_info(folder).seal != before.seal


def test_the_last_document_with_an_id_wins(folder: Path, words: WordEmbedder) -> None:
    """In one addition as in two."""
    rows = [SourceRecord("x", "", f"version {i} of this", "") for i in range(3)]
    made = add_documents(rows, folder, words)
    assert made.counts.documents == 13
    assert [p.text for p in FaissIndex.open(folder, words).search(["version"], 20)[0] if p.document == "x"] == [
        "version 2 of this"
    ]


def test_records_without_an_id_replace_others_only_on_request(tmp_path: Path, words: WordEmbedder) -> None:
    """Two files of one name have nothing else in common."""
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "part.jsonl").write_text(f'{{"text": "bees {name}"}}\n{{"id": "own", "text": "ice {name}"}}\n')
    build_index(DocumentReader(tmp_path / "a"), tmp_path / "index", words)
    before, replaced = bytes_of(tmp_path / "index"), list[int]()
    with pytest.raises(
        InputError, match=r"b.part\.jsonl:1: has no id, and its file and line, 'part\.jsonl:1'.*--id-field.*--replace"
    ):
        add_documents(DocumentReader(tmp_path / "b"), tmp_path / "index", words, on_replaced=replaced.append)
    assert bytes_of(tmp_path / "index") == before and not replaced
    add_documents(DocumentReader(tmp_path / "b"), tmp_path / "index", words, replace=True, on_replaced=replaced.append)
    assert read_index_info(tmp_path / "index").counts.documents == 2 and replaced == [2]
    delete_documents(["part.jsonl:1"], tmp_path / "index")
    (tmp_path / "b" / "part.jsonl").write_text('{"text": "bees anew"}\n')
    assert add_documents(DocumentReader(tmp_path / "b"), tmp_path / "index", words).counts.documents == 2


def test_a_shared_passage_survives_in_the_other_document(tmp_path: Path, words: WordEmbedder) -> None:
    """The second home of a duplicate takes over, with its own id and offsets."""
    rows = [SourceRecord("a", "", "Bees dance. Ice melts.", ""), SourceRecord("b", "", "Rain falls. Bees dance.", "")]
    build_index(rows, tmp_path / "index", words, chunking=Chunking(words=2))
    delete_documents(["a"], tmp_path / "index")
    (found,) = FaissIndex.open(tmp_path / "index", words).search(["bees dance"], 10)
    assert [(p.id, p.text, p.start, p.end) for p in found] == [("b#2", "Bees dance.", 12, 23), ("b#1", "Rain falls.", 0, 11)]


def test_nothing_is_embedded_twice(folder: Path, words: WordEmbedder) -> None:
    """Adding a document again, even after it was deleted, finds its vectors where they are."""
    delete_documents(["d1", "d2"], folder)
    words.calls.clear()
    add_documents(records(), folder, words)
    compact_index(folder)
    assert words.calls == [] and len(FaissIndex.open(folder, words)) == 12


def test_an_unknown_id_changes_nothing(folder: Path) -> None:
    """All ids must be there; the message names those that are not."""
    before = bytes_of(folder)
    with pytest.raises(InputError, match="no document 'gone'"):
        delete_documents(["d1", "gone"], folder)
    assert bytes_of(folder) == before
    with pytest.raises(InputError, match="no document.*udcff.*UTF-8"):
        delete_documents(["d1", "\udcff"], folder)
    delete_documents(["d1"], folder)
    with pytest.raises(InputError, match="no document 'd1'"):
        delete_documents(["d1"], folder)


def test_a_different_embedder_or_concurrent_writer_is_refused(folder: Path, words: WordEmbedder) -> None:
    """Vectors of two models do not mix, and two changes at once do not meet; a lock of a dead process is none."""
    with pytest.raises(IndexFormatError, match="built with the embedder 'words'.*not with 'other'"):
        add_documents(records(), folder, WordEmbedder("other"))
    lock = folder.with_name(".index.lock")
    with lock.open("wb") as held:
        held.write(b"4321")
        held.flush()
        fcntl.flock(held, fcntl.LOCK_EX)
        for change in (lambda: delete_documents(["d1"], folder), lambda: add_documents(records(), folder, words),
                       lambda: compact_index(folder), lambda: build_index(records(), folder, words, force=True)):  # fmt: skip
            with pytest.raises(IndexFormatError, match="process 4321 is changing this index"):
                change()
    delete_documents(["d1"], folder)
    assert [p.name for p in folder.parent.iterdir()] == ["index"]


def test_an_open_index_can_be_searched_during_a_change(folder: Path, words: WordEmbedder) -> None:
    """What was opened stays what it was, though its files are replaced."""
    opened, before = FaissIndex.open(folder, words), answers(folder, words)
    delete_documents(["d1"], folder)
    delete_documents(["d2", "d3"], folder)
    compact_index(folder)
    assert [opened.search(["bees dance", "melting ice", "Title", "nothing of the kind"], k) for k in (1, 3, 100)] == before
    assert len(FaissIndex.open(folder, words)) == 9


@pytest.mark.parametrize("factory", ["IVF4,SQ8", "IVF4,PQ4x4", "HNSW8", "IVF4,Flat", "OPQ4,IVF4,PQ4x4"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_approximate_indexes_can_be_changed(tmp_path: Path, factory: str) -> None:
    """Searched widely enough each factory finds what an exact search finds, before and after changes, and compacts alike."""
    embedder, wide = WordEmbedder(dimension=8), SearchParameters(nprobe=4, ef_search=400, refine=400)
    rows = [SourceRecord(f"r{i}", "", f"word{i} word{i % 7} bees dance", "") for i in range(300)]
    build_index(rows, tmp_path / "index", embedder, factory=factory, shard=70)
    build_index(rows, tmp_path / "flat", embedder, factory="Flat")
    assert answers(tmp_path / "index", embedder, parameters=wide) == answers(tmp_path / "flat", embedder)
    new = [SourceRecord(f"r{i}", "", f"word{i} ice", "") for i in range(250, 330)]
    for name in ("index", "flat"):
        add_documents(new, tmp_path / name, embedder)
        delete_documents([f"r{i}" for i in range(40)], tmp_path / name)
    assert answers(tmp_path / "index", embedder, parameters=wide) == answers(tmp_path / "flat", embedder)
    assert verify_index(tmp_path / "index") == [] and read_index_info(tmp_path / "index").factory == factory
    compact_index(tmp_path / "index")
    left = [r for r in rows[40:250]] + new
    build_index(left, tmp_path / "fresh", embedder, factory=factory, shard=70)
    assert bytes_of(tmp_path / "index") == bytes_of(tmp_path / "fresh")


def test_scores_do_not_depend_on_the_neighbours(tmp_path: Path) -> None:
    """Many equal and nearly equal vectors are ranked alike in one shard and in many."""
    embedder = WordEmbedder(dimension=8)
    rows = [SourceRecord(f"r{i}", f"t{i}", "bees dance" + " and" * (i % 3), "") for i in range(500)]
    for name, shard in (("one", 1000), ("many", 7)):
        build_index(rows, tmp_path / name, embedder, chunking=Chunking(titles=False), shard=shard)
    vectors = np.concatenate([embedder.encode(["bees"])] * 30 + [embedder.encode([r.text]) for r in rows[:3]])
    one, many = (FaissIndex.open(tmp_path / n, embedder).nearest(vectors, 9) for n in ("one", "many"))
    assert np.array_equal(one.rows, many.rows) and np.array_equal(one.scores, many.scores)
    assert one.rows[0].tolist() == list(range(9))


def test_many_small_additions_leave_few_files(folder: Path, words: WordEmbedder) -> None:
    """Small shards are joined as they come, and nothing is lost by it."""
    for i in range(40):
        add_documents([SourceRecord(f"n{i}", "", f"token{i} again", "")], folder, words)
    made = read_index_info(folder)
    assert len(made.shards) <= 8 and made.generation == 41 and verify_index(folder) == []
    build_index(records() + [SourceRecord(f"n{i}", "", f"token{i} again", "") for i in range(40)], folder.with_name("b"), words)
    assert answers(folder, words) == answers(folder.with_name("b"), words)
    assert made.content == read_index_info(folder.with_name("b")).content
