"""Parts of an index: arrays are read as they were written, and changed files are refused before use."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import IndexFormatError
from knowhalu.index.container import HEAD_BYTES
from knowhalu.index.part import PART_MANIFEST_FILE, IndexPart, PartManifest, PartWriter


def write(folder, **arrays):
    with PartWriter(folder, "lexical") as out:
        for name, rows in (arrays or {"lengths": np.arange(6)}).items():
            out.add(name, rows, "<i4")
        return out.finish("content", 6, {"terms": "t"})


def reseal(folder, **changes):
    """Change the manifest as an attacker would, who can compute a seal."""
    raw = json.loads((folder / PART_MANIFEST_FILE).read_text())
    raw |= changes
    PartManifest.model_validate_json(json.dumps(raw)).sealed().write(folder / PART_MANIFEST_FILE)


def test_arrays_keep_type_and_shape(tmp_path):
    with PartWriter(tmp_path / "p", "late") as out:
        out.add("codes", np.arange(4).reshape(2, 2), "<i8")
        out.add("codes", np.arange(2).reshape(1, 2), "<i8")
        out.add("empty", np.zeros(0), "<f4")
        out.finish("c", 3, {})
    part = IndexPart(tmp_path / "p", "late", "c")
    assert part.array("codes", "<i8", None, 2).tolist() == [[0, 1], [2, 3], [0, 1]]
    assert part.array("empty", "<f4", None).shape == (0,)
    assert not part.array("codes", "<i8", 3, 2).flags.writeable and part.problems() == []


def test_a_failed_write_keeps_the_old_part_and_a_new_one_replaces_it(tmp_path):
    write(tmp_path / "p")
    with pytest.raises(RuntimeError), PartWriter(tmp_path / "p", "lexical") as out:
        out.add("lengths", np.arange(9), "<i4")
        raise RuntimeError("killed")
    assert len(IndexPart(tmp_path / "p", "lexical").array("lengths", "<i4", None)) == 6
    write(tmp_path / "p", lengths=np.arange(3))
    assert len(IndexPart(tmp_path / "p", "lexical").array("lengths", "<i4", None)) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


@given(st.data())
def test_every_flipped_bit_is_found(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("part") / "p"
    write(folder)
    path = folder / data.draw(st.sampled_from([PART_MANIFEST_FILE, "lengths.bin"]))
    content = bytearray(path.read_bytes())
    bit = data.draw(st.integers(0, 8 * len(content) - 1))
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)
    try:
        assert any("lengths.bin" in problem for problem in IndexPart(folder, "lexical").problems())
    except IndexFormatError as error:
        assert "extend FOLDER --lexical" in str(error)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: (f / PART_MANIFEST_FILE).unlink(), "no lexical part"),
        (lambda f: (f / PART_MANIFEST_FILE).write_text("{}"), "damaged"),
        (lambda f: (f / PART_MANIFEST_FILE).write_bytes(b"x" * 70_000), "larger than 65536 bytes"),
        (lambda f: (f / "lengths.bin").unlink(), "missing"),
        (lambda f: (f / "lengths.bin").write_bytes(b"1234"), "has 4 bytes, not 152"),
        (lambda f: os.truncate(f / "lengths.bin", 151), "has 151 bytes"),
        (lambda f: reseal(f, kind="late"), "is a late part"),
        (lambda f: reseal(f, content="other"), "other passages"),
        (lambda f: (f / PART_MANIFEST_FILE).write_text((f / PART_MANIFEST_FILE).read_text() + " "), "changed after"),
    ],
)
def test_a_damaged_part_is_refused_with_a_remedy(tmp_path, damage, message):
    write(tmp_path / "p")
    damage(tmp_path / "p")
    with pytest.raises(IndexFormatError, match=f"{message}.*extend FOLDER --lexical"):
        IndexPart(tmp_path / "p", "lexical", "content")


def test_an_array_linked_out_of_the_folder_is_refused(tmp_path):
    write(tmp_path / "p")
    (tmp_path / "p" / "lengths.bin").rename(tmp_path / "outside")
    (tmp_path / "p" / "lengths.bin").symlink_to(tmp_path / "outside")
    with pytest.raises(IndexFormatError, match="leads out of the index folder"):
        IndexPart(tmp_path / "p", "lexical")


@pytest.mark.parametrize("name", ["../lengths", "a/b", "A", ""])
def test_an_array_name_that_is_a_path_is_refused(tmp_path, name):
    write(tmp_path / "p")
    raw = json.loads((tmp_path / "p" / PART_MANIFEST_FILE).read_text())
    raw["arrays"] = {name: raw["arrays"]["lengths"]}
    (tmp_path / "p" / PART_MANIFEST_FILE).write_text(json.dumps(raw))
    with pytest.raises(IndexFormatError, match="part.json"):
        IndexPart(tmp_path / "p", "lexical")


@pytest.mark.parametrize(("kind", "shape"), [("<i8", (3,)), ("<i4", (3, 2)), ("<i4", (2**62,)), ("<i4", (7,))])
def test_a_manifest_with_wrong_shapes_is_refused(tmp_path, kind, shape):
    write(tmp_path / "p")
    raw = json.loads((tmp_path / "p" / PART_MANIFEST_FILE).read_text())
    reseal(tmp_path / "p", arrays={"lengths": {**raw["arrays"]["lengths"], "type": kind, "shape": shape}})
    with pytest.raises(IndexFormatError):
        IndexPart(tmp_path / "p", "lexical").array("lengths", "<i4", 6)


def test_an_unknown_file_of_a_part_is_reported(tmp_path):
    write(tmp_path / "p")
    (tmp_path / "p" / "more.bin").write_bytes(b"")
    assert IndexPart(tmp_path / "p", "lexical").problems() == [f"{tmp_path / 'p' / 'more.bin'}: does not belong to the index"]


def test_a_part_of_format_1_is_read(tmp_path):
    """Its arrays have no head; content, shapes and hashes are the same."""
    write(tmp_path / "p", lengths=np.arange(6), empty=np.zeros(0))
    for path in (tmp_path / "p").glob("*.bin"):
        path.write_bytes(path.read_bytes()[HEAD_BYTES:])
    reseal(tmp_path / "p", format=1)
    part = IndexPart(tmp_path / "p", "lexical", "content")
    assert part.array("lengths", "<i4", 6).tolist() == list(range(6)) and part.array("empty", "<i4", None).shape == (0,)
    assert part.problems() == []
    (tmp_path / "p" / "lengths.bin").write_bytes(bytes(24))
    assert len(part.problems()) == 1
