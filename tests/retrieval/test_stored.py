"""The parts of an index folder: made where they are missing, kept where they are right, checked with the index."""

from functools import partial
from pathlib import Path

import pytest

from knowhalu.errors import IndexFormatError
from knowhalu.retrieval.index import verify
from knowhalu.retrieval.late_build import build_late, is_current
from knowhalu.retrieval.lexical import LexicalIndex
from knowhalu.retrieval.lexical_build import build_lexical
from knowhalu.retrieval.stored import Stored, Stretch, extend, open_parts, open_stored
from tests.retrieval.searching import WordVectors, facts


def test_a_part_is_built_once_and_again_only_where_it_must_be(folder: Path):
    stored, late = open_stored(folder), WordVectors()
    build, fits = partial(build_late, encoder=late), partial(is_current, encoder=late, bits=4)
    assert [extend(stored, "lexical", build_lexical), extend(stored, "lexical", build_lexical)] == [1, 0]
    assert [extend(stored, "late", build, fits), extend(stored, "late", build, fits)] == [1, 0]
    other = WordVectors(24)
    assert extend(stored, "late", partial(build_late, encoder=other), partial(is_current, encoder=other, bits=4)) == 1
    next((folder / "lexical").glob("*/rows.bin")).write_bytes(b"")
    assert extend(stored, "lexical", build_lexical) == 1
    assert verify(folder) == []


def test_only_new_stretches_are_built_and_gone_ones_removed(tmp_path: Path):
    passages = facts()
    first = Stored(tmp_path, passages, (Stretch("a", "1", 5), Stretch("b", "2", 7)))
    assert extend(first, "lexical", build_lexical) == 2
    kept = (tmp_path / "lexical" / "a" / "part.json").stat().st_ino
    second = Stored(tmp_path, passages, (Stretch("a", "1", 5), Stretch("c", "3", 7)), deleted=(11,))
    with pytest.raises(IndexFormatError, match="no lexical part.*extend"):
        open_parts(second, "lexical")
    assert extend(second, "lexical", build_lexical) == 1
    assert sorted(p.name for p in (tmp_path / "lexical").iterdir()) == ["a", "c"]
    assert (tmp_path / "lexical" / "a" / "part.json").stat().st_ino == kept
    found = LexicalIndex.open(second).search(["penicillin", "iceberg"], 3)
    assert [[p.title for p in f] for f in found] == [["Penicillin"], []]


def test_a_part_of_another_index_is_refused(folder: Path):
    stored = open_stored(folder)
    extend(stored, "lexical", build_lexical)
    changed = stored._replace(stretches=(stored.stretches[0]._replace(content="other"),))
    with pytest.raises(IndexFormatError, match="other passages than the index has now"):
        LexicalIndex.open(changed)


def test_verify_looks_into_the_parts(folder: Path):
    extend(open_stored(folder), "lexical", build_lexical)
    path = next((folder / "lexical").glob("*/counts.bin"))
    data = bytearray(path.read_bytes())
    data[0] ^= 4
    path.write_bytes(data)
    (folder / "lexical" / "stray").mkdir()
    assert [problem.split(": ")[0] for problem in verify(folder)] == [str(path), str(folder / "lexical" / "stray")]
