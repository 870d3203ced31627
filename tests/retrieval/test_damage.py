"""Damage: every flipped bit is found, nothing broken or foreign is opened, and a killed build leaves no index."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from knowhalu.errors import IndexFormatError
from knowhalu.retrieval.build import build_index
from knowhalu.retrieval.index import FaissIndex, read_info, verify
from knowhalu.retrieval.manifest import MANIFEST, FileEntry, Manifest
from knowhalu.retrieval.store import FILES
from tests.retrieval.conftest import WordEmbedder, records, same_paths

ALL = (*FILES, VECTORS, MANIFEST)


def change_manifest(folder: Path, **changes: object) -> None:
    """Write a manifest with other values that is sealed like a true one."""
    made = read_info(folder)
    (folder / MANIFEST).write_bytes(made.model_copy(update=changes).sealed().to_bytes())


def test_an_intact_index_has_no_problems(folder: Path) -> None:
    """The check does not cry wolf."""
    assert verify(folder) == []


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("place", [0.0, 0.3, 0.6, 1.0])
@pytest.mark.parametrize("bit", [0, 5])
def test_verify_finds_every_flipped_bit(folder: Path, name: str, place: float, bit: int) -> None:
    """One bit in any file, anywhere, is a problem that names the file."""
    data = bytearray((folder / name).read_bytes())
    data[int(place * (len(data) - 1))] ^= 1 << bit
    (folder / name).write_bytes(data)
    assert any(name in problem for problem in verify(folder))


@pytest.mark.parametrize("name", ALL)
def test_a_truncated_or_missing_file_is_refused(folder: Path, words: WordEmbedder, name: str) -> None:
    """Opening compares sizes, so half a copy never opens."""
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(data[:-1])
    with pytest.raises(IndexFormatError, match=name if name == MANIFEST else rf"{name}: has \d+ bytes, not \d+"):
        FaissIndex.open(folder, words)
    (folder / name).unlink()
    with pytest.raises(IndexFormatError, match=f"{name}.*missing|missing.*{name}|{name} is missing"):
        FaissIndex.open(folder, words)


def test_a_stranger_in_the_folder_is_reported(folder: Path) -> None:
    """A file that the manifest does not know is a problem."""
    (folder / "extra.bin").write_bytes(b"x")
    assert [p for p in verify(folder) if "does not belong" in p]


def test_another_embedder_is_refused_with_both_names(folder: Path) -> None:
    """Vectors of two models do not mix."""
    with pytest.raises(IndexFormatError, match="built with the embedder 'words'.*not with 'other'.*Open it with 'words'"):
        FaissIndex.open(folder, WordEmbedder("other"))
    with pytest.raises(IndexFormatError, match="32 dimensions.*16 dimensions"):
        FaissIndex.open(folder, WordEmbedder("words", 16))


def test_a_renamed_embedder_with_the_same_weights_is_welcome(folder: Path, words: WordEmbedder) -> None:
    """What counts is the fingerprint."""
    words.name = "moved"
    assert len(FaissIndex.open(folder, words)) == 12


def test_names_that_lead_out_of_the_folder_are_refused(folder: Path, words: WordEmbedder) -> None:
    """Neither a path in the manifest nor a link may reach another file."""
    outside = folder.parent / "outside.bin"
    (folder / "texts.bin").rename(outside)
    (folder / "texts.bin").symlink_to(outside)
    with pytest.raises(IndexFormatError, match="leads out of the index folder"):
        FaissIndex.open(folder, words)
    outside.rename(folder / "texts.bin")
    files = dict(read_info(folder).files)
    files["../outside.bin"] = files.pop("texts.bin")
    change_manifest(folder, files=files)
    with pytest.raises(IndexFormatError, match="lists other files"):
        FaissIndex.open(folder, words)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"format": 2}, "format"), ({"extra": 1}, "extra"), ({"metric": "l2"}, "metric"), ({"seal": "0" * 64}, "changed")],
)
def test_a_manifest_of_another_kind_is_refused(
    folder: Path, words: WordEmbedder, changes: dict[str, object], message: str
) -> None:
    """Unknown versions and fields say so; nothing is guessed."""
    path = folder / MANIFEST
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(IndexFormatError, match=f"{MANIFEST}.*{message}"):
        FaissIndex.open(folder, words)


@pytest.mark.parametrize("count", [11, 13, 2**40, 2**62])
def test_false_counts_never_reach_the_allocator(folder: Path, words: WordEmbedder, count: int) -> None:
    """A sealed manifest with wrong counts is compared with the sizes of the files."""
    counts = read_info(folder).counts.model_copy(update={"passages": count})
    change_manifest(folder, counts=counts)
    with pytest.raises(IndexFormatError):
        FaissIndex.open(folder, words)
    assert verify(folder)


def test_a_hostile_vector_file_never_reaches_faiss(folder: Path, words: WordEmbedder) -> None:
    """A file with the right size and hash but another head is refused."""
    data = bytearray((folder / VECTORS).read_bytes())
    data[8:16] = (2**50).to_bytes(8, "little")
    (folder / VECTORS).write_bytes(data)
    with pytest.raises(IndexFormatError, match="not a flat FAISS file"):
        FaissIndex.open(folder, words)


@pytest.mark.parametrize("name", ["texts.offsets", "documents.offsets", "spans.bin", "texts.bin", "documents.bin"])
def test_search_in_a_damaged_store_says_so(folder: Path, words: WordEmbedder, name: str) -> None:
    """Bytes that make no sense are an error of the index, not a wrong passage or a crash."""
    size = (folder / name).stat().st_size
    data = bytearray((folder / name).read_bytes())
    data[8 : size - 8] = b"\xff" * (size - 16)
    (folder / name).write_bytes(data)
    with pytest.raises(IndexFormatError, match="damaged"):
        FaissIndex.open(folder, words).search(["iceberg"], 12)


@pytest.mark.parametrize("document", [-1, 12, 2**40])
def test_a_passage_of_no_document_is_never_shown_as_anothers(folder: Path, words: WordEmbedder, document: int) -> None:
    """A wrong document number is damage, though it could be read from the other end."""
    spans = np.fromfile(folder / "spans.bin", dtype="<i8").reshape(-1, 4)
    spans[:, 0] = document
    spans.tofile(folder / "spans.bin")
    with pytest.raises(IndexFormatError, match="belongs to no document"):
        FaissIndex.open(folder, words).search(["iceberg"], 1)


def test_an_empty_file_is_no_list_of_numbers(folder: Path, words: WordEmbedder) -> None:
    """A manifest that agrees with an empty file does not open it."""
    (folder / "spans.bin").write_bytes(b"")
    files = {**Manifest.model_validate_json((folder / MANIFEST).read_bytes()).files}
    (folder / "spans.bin").write_bytes(b"x" * files["spans.bin"].size)
    files["spans.bin"] = FileEntry(size=0, sha256="0" * 64)
    change_manifest(folder, files=files)
    (folder / "spans.bin").write_bytes(b"")
    with pytest.raises(IndexFormatError, match=r"spans\.bin: 0 bytes"):
        FaissIndex.open(folder, words)


def test_no_index_at_all_names_the_command(tmp_path: Path, words: WordEmbedder) -> None:
    """A missing folder is answered with how to make one."""
    with pytest.raises(IndexFormatError, match="knowhalu index build"):
        FaissIndex.open(tmp_path / "nowhere", words)


KILLED = """
import os, signal, sys
from pathlib import Path
from knowhalu.retrieval.build import BATCH, build_index
from knowhalu.retrieval.sources import SourceRecord
from tests.retrieval.conftest import WordEmbedder

class Fatal(WordEmbedder):
    def encode(self, texts, *, query=False):
        if len(self.calls) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(texts)

rows = (SourceRecord(str(i), "", f"token{i}", "") for i in range(3 * BATCH))
build_index(rows, Path(sys.argv[1]), Fatal())
"""


def test_a_killed_build_leaves_no_half_index(tmp_path: Path, words: WordEmbedder) -> None:
    """After SIGKILL in the second batch there is no index; a forced build then clears the leftovers away."""
    out = tmp_path / "index"
    done = subprocess.run([sys.executable, "-c", KILLED, str(out)], env=same_paths(), check=False)
    assert done.returncode == -9 and not out.exists() and len(list(tmp_path.iterdir())) == 1
    build_index(records(), out, words, force=True)
    assert [p.name for p in tmp_path.iterdir()] == ["index"] and verify(out) == []


def test_a_failing_build_clears_up_and_keeps_the_old_index(folder: Path, words: WordEmbedder) -> None:
    """Whatever stops a build, the index that was there stays as it was."""
    before = (folder / MANIFEST).read_bytes()

    class Stopped(WordEmbedder):
        def encode(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(records(), folder, Stopped(), force=True)
    assert (folder / MANIFEST).read_bytes() == before and [p.name for p in folder.parent.iterdir()] == ["index"]
