"""The parts of an index folder: built where missing, kept where current, verified with the index."""

import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from knowhalu.errors import IndexFormatError
from knowhalu.index.build import build_index
from knowhalu.index.compact import compact_index
from knowhalu.index.extension import (
    ShardRows,
    StoredPassages,
    covered_runs,
    extend_index,
    open_parts,
    open_stored_passages,
    part_states,
    verify_index,
)
from knowhalu.index.late_part import build_late_part, is_late_part_current
from knowhalu.index.transaction import lock_index
from knowhalu.index.update import add_documents, delete_documents
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.bm25 import LexicalIndex, build_lexical_part
from tests.support.indexing import FACTS, WordEmbedder, records
from tests.support.searching import WordVectors, facts

NONE = np.zeros(0, np.int64)


def parts(folder: Path, kind: str = "lexical") -> list[str]:
    return sorted(path.name for path in (folder / kind).iterdir())


def test_a_part_is_rebuilt_only_if_damaged_or_outdated(folder: Path):
    stored, late = open_stored_passages(folder), WordVectors()
    build, fits = partial(build_late_part, encoder=late), partial(is_late_part_current, encoder=late, bits=4)
    assert [extend_index(stored, "lexical", build_lexical_part), extend_index(stored, "lexical", build_lexical_part)] == [12, 0]
    assert [extend_index(stored, "late", build, fits), extend_index(stored, "late", build, fits)] == [12, 0]
    other = WordVectors(24)
    assert (
        extend_index(
            stored, "late", partial(build_late_part, encoder=other), partial(is_late_part_current, encoder=other, bits=4)
        )
        == 12
    )
    next((folder / "lexical").glob("*/rows.bin")).write_bytes(b"")
    assert extend_index(stored, "lexical", build_lexical_part) == 12
    assert verify_index(folder) == []


def test_extending_reads_only_new_shards_and_removes_old_parts(tmp_path: Path):
    passages = facts()
    first = StoredPassages(tmp_path, type(passages)(passages[:7]), (ShardRows("a", 7),), NONE)
    assert extend_index(first, "lexical", build_lexical_part) == 7
    (kept,) = parts(tmp_path)
    second = StoredPassages(tmp_path, passages, (ShardRows("a", 7), ShardRows("b", 5)), np.array([11]))
    with pytest.raises(IndexFormatError, match=f"up to date for 7 of 12.*index extend {tmp_path} --lexical"):
        open_parts(second, "lexical")
    assert extend_index(second, "lexical", build_lexical_part) == 5
    assert kept in parts(tmp_path) and len(parts(tmp_path)) == 2
    found = LexicalIndex.open(second).search(["penicillin", "iceberg"], 3)
    assert [[p.title for p in f] for f in found] == [["Penicillin"], []]
    third = StoredPassages(tmp_path, passages, (ShardRows("a", 7), ShardRows("c", 5)), NONE)
    assert extend_index(third, "lexical", build_lexical_part) == 5
    assert kept in parts(tmp_path) and len(parts(tmp_path)) == 2


def test_many_small_additions_leave_few_parts(tmp_path: Path):
    passages = facts()
    for count in range(1, 13):
        shards = tuple(ShardRows(str(i), 1) for i in range(count))
        stored = StoredPassages(tmp_path, type(passages)(passages[:count]), shards, NONE)
        extend_index(stored, "lexical", build_lexical_part)
        assert len(parts(tmp_path)) <= 4 and sum(run.rows for run in covered_runs(stored, "lexical")) == count
    assert LexicalIndex.open(stored).search(["iceberg"], 1)[0][0].title == "Titanic"


def test_deleting_keeps_parts_and_adding_needs_an_extension(folder: Path, words: WordEmbedder):
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    before = parts(folder)
    delete_documents(["d12"], folder)
    assert LexicalIndex.open(open_stored_passages(folder)).search(["iceberg"], 3) == [[]]
    assert parts(folder) == before and [s.covered for s in part_states(open_stored_passages(folder))] == [12]
    added = [SourceRecord(f"n{i}", "", f"Iceberg number {i} melts.", "") for i in range(12)]
    add_documents(added, folder, words)
    with pytest.raises(IndexFormatError, match="outdated lexical part.*Update it"):
        LexicalIndex.open(open_stored_passages(folder))
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    found = LexicalIndex.open(open_stored_passages(folder)).search(["iceberg"], 20)[0]
    assert {p.document for p in found} == {r.id for r in added}
    compact_index(folder)
    with pytest.raises(IndexFormatError, match="outdated lexical part"):
        LexicalIndex.open(open_stored_passages(folder))
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    assert LexicalIndex.open(open_stored_passages(folder)).search(["iceberg"], 20) == [found]
    assert verify_index(folder) == []


def test_extending_uses_the_present_state_of_the_index(folder: Path, words: WordEmbedder):
    """Else the part that another process made meanwhile would be removed for one of the rows of before."""
    opened = open_stored_passages(folder)
    add_documents([SourceRecord("new", "", "Iceberg again.", "")], folder, words)
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    assert extend_index(opened, "lexical", build_lexical_part) == 0
    assert len(LexicalIndex.open(open_stored_passages(folder)).search(["iceberg"], 20)[0]) == 2


def test_a_part_under_a_wrong_name_is_refused(folder: Path, tmp_path: Path, words: WordEmbedder):
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    build_index(records(dict(reversed(FACTS.items()))), tmp_path / "other", words)
    extend_index(open_stored_passages(tmp_path / "other"), "lexical", build_lexical_part)
    (ours,), (theirs,) = (list((f / "lexical").iterdir()) for f in (folder, tmp_path / "other"))
    for path in ours.iterdir():
        path.write_bytes((theirs / path.name).read_bytes())
    with pytest.raises(IndexFormatError, match="other passages than the index has now"):
        LexicalIndex.open(open_stored_passages(folder))
    (problem,) = verify_index(folder)
    assert "under a wrong name" in problem


def test_verify_checks_the_parts(folder: Path):
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    path = next((folder / "lexical").glob("*/counts.bin"))
    data = bytearray(path.read_bytes())
    data[0] ^= 4
    path.write_bytes(data)
    (folder / "lexical" / "stray").mkdir()
    (folder / "more").mkdir()
    assert [problem.split(": ")[0] for problem in verify_index(folder)] == [
        str(folder / "more"), str(path), str(folder / "lexical" / "stray")
    ]  # fmt: skip


def test_a_linked_part_folder_is_refused(folder: Path, tmp_path: Path):
    extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
    os.rename(folder / "lexical", tmp_path / "elsewhere")
    (folder / "lexical").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IndexFormatError, match="leads out of the index"):
        LexicalIndex.open(open_stored_passages(folder))
    assert any(problem.startswith(f"{folder / 'lexical'}:") for problem in verify_index(folder))
    assert "leads out" in part_states(open_stored_passages(folder))[0].problem


def test_a_locked_index_is_not_extended(folder: Path):
    with lock_index(folder), pytest.raises(IndexFormatError, match="is changing this index"):
        extend_index(open_stored_passages(folder), "lexical", build_lexical_part)
