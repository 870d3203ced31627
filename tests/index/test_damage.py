"""Damage: every flipped bit is detected, and no damaged or foreign file is opened."""

import errno
import hashlib
import json
import mmap
import random
import resource
import shutil
import struct
from pathlib import Path

import pytest

from knowhalu.errors import IndexFormatError
from knowhalu.index.build import build_index
from knowhalu.index.container import HEAD_BYTES, SPARE_OPEN_FILES, SectionFile, make_head
from knowhalu.index.extension import verify_index
from knowhalu.index.manifest import MANIFEST_FILE, Chunking, Manifest, describe_file, read_index_info, read_manifest
from knowhalu.index.update import delete_documents
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import WordEmbedder, records

KINDS = ("passages", "vectors", "edits", "search", MANIFEST_FILE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give an index with a file of every kind: two shards, a FAISS file and edits."""
    out, words = tmp_path_factory.mktemp("made") / "index", WordEmbedder()
    build_index(records(), out, words, factory="IVF2,SQ8", shard=7)
    delete_documents(["d3"], out)
    return out


@pytest.fixture
def damaged(made: Path, tmp_path: Path) -> Path:
    """Give a copy of it to damage."""
    return Path(shutil.copytree(made, tmp_path / "index"))


def file_of(folder: Path, kind: str) -> Path:
    """Return the first file of a kind."""
    return sorted(folder.glob(f"{kind}*"))[0]


def change_manifest(folder: Path, **changes: object) -> None:
    """Write a manifest with other values that is sealed like a true one."""
    made = read_index_info(folder)
    (folder / MANIFEST_FILE).write_bytes(made.model_copy(update=changes).sealed().to_bytes())


def test_an_intact_index_has_no_problems(folder: Path) -> None:
    """The check does not cry wolf."""
    assert verify_index(folder) == []


def test_an_index_of_very_many_shards_opens(made: Path) -> None:
    """Every opened file counts against a limit that is low on many machines and may be raised."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    path = file_of(made, "passages")
    with path.open("rb") as file:
        resource.setrlimit(resource.RLIMIT_NOFILE, (file.fileno() + SPARE_OPEN_FILES + 20, limits[1]))
    try:
        opened = [SectionFile(path, "passages") for _ in range(2 * SPARE_OPEN_FILES)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len({s.digest for s in opened}) == 1


def test_too_many_open_files_are_not_reported_as_damage(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the limit, not the index."""

    def refuse(*given: object, **named: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(IndexFormatError, match="Too many open files.*ulimit -n") as caught:
        SectionFile(file_of(made, "passages"), "passages")
    assert "damaged" not in str(caught.value)


def test_verify_finds_every_flipped_bit(damaged: Path) -> None:
    """One bit in any file, anywhere, is a problem that names the file; so is one in each byte of a head."""
    check_flips(damaged, 60)
    for kind in KINDS[:3]:
        path = file_of(damaged, kind)
        for place in range(128):
            assert flipped(damaged, path, place, place % 8)


@pytest.mark.slow
def test_verify_finds_a_thousand_flipped_bits(damaged: Path) -> None:
    """The same for many more places."""
    check_flips(damaged, 1000)


def check_flips(folder: Path, count: int) -> None:
    """Flip random bits, each file as often as its size makes it likely and every file at least a few times."""
    draw, files = random.Random(4), sorted(folder.iterdir())
    chosen = files * 4 + draw.choices(files, [f.stat().st_size for f in files], k=count)
    for path in chosen:
        assert flipped(folder, path, draw.randrange(path.stat().st_size), draw.randrange(8)), path


def flipped(folder: Path, path: Path, place: int, bit: int) -> bool:
    """Tell whether `verify_index` names a file with a flipped bit; the file is restored afterwards."""
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)
    found = verify_index(folder)
    data[place] ^= 1 << bit
    path.write_bytes(data)
    return any(path.name in problem for problem in found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_truncated_grown_or_missing_file_is_refused(damaged: Path, words: WordEmbedder, kind: str) -> None:
    """Opening compares sizes, so half a copy never opens."""
    path = file_of(damaged, kind)
    data = path.read_bytes()
    for other in (data[:-1], data + b"\0"):
        path.write_bytes(other)
        with pytest.raises(IndexFormatError, match=kind if kind == MANIFEST_FILE else rf"{path.name}: has \d+ bytes, not \d+"):
            FaissIndex.open(damaged, words)
    path.unlink()
    with pytest.raises(IndexFormatError, match=f"{path.name}.*missing|{path.name} is missing"):
        FaissIndex.open(damaged, words)


@pytest.mark.parametrize("kind", ["passages", "vectors"])
def test_a_swapped_shard_is_refused(damaged: Path, words: WordEmbedder, kind: str) -> None:
    """A whole file of the right size in the place of another has another hash in its head."""
    build_index(records(), damaged.with_name("other"), words, shard=7, chunking=Chunking(titles=False, words=101))
    path = file_of(damaged, kind)
    others = [p for p in sorted(damaged.with_name("other").glob(f"{kind}*")) if p.stat().st_size == path.stat().st_size]
    data = bytearray((others or [path])[0].read_bytes())
    data[90] ^= 0 if others and others[0].name != path.name else 1
    path.write_bytes(data)
    with pytest.raises(IndexFormatError, match="another file than the index was made with"):
        FaissIndex.open(damaged, words)


def test_an_unknown_file_in_the_folder_is_reported(folder: Path) -> None:
    """A file that the manifest does not know is a problem."""
    (folder / "extra.bin").write_bytes(b"x")
    assert [p for p in verify_index(folder) if "does not belong" in p]


def test_a_different_embedder_is_refused_with_both_names(folder: Path) -> None:
    """Vectors of two models do not mix."""
    with pytest.raises(IndexFormatError, match="built with the embedder 'words'.*not with 'other'.*Open it with 'words'"):
        FaissIndex.open(folder, WordEmbedder("other"))
    with pytest.raises(IndexFormatError, match="32 dimensions.*16 dimensions"):
        FaissIndex.open(folder, WordEmbedder("words", 16))


def test_a_renamed_embedder_with_the_same_weights_is_accepted(folder: Path, words: WordEmbedder) -> None:
    """What counts is the fingerprint."""
    words.name = "moved"
    assert len(FaissIndex.open(folder, words)) == 12


@pytest.mark.parametrize("kind", KINDS[:4])
def test_paths_and_links_out_of_the_folder_are_refused(damaged: Path, words: WordEmbedder, kind: str) -> None:
    """Neither a path in the manifest nor a link may reach another file."""
    path, outside = file_of(damaged, kind), damaged.parent / "outside.bin"
    path.rename(outside)
    path.symlink_to(outside)
    with pytest.raises(IndexFormatError, match="leads out of the index folder"):
        FaissIndex.open(damaged, words)
    path.unlink()
    outside.rename(path)
    text = (damaged / MANIFEST_FILE).read_text().replace(path.name, f"../{path.name}")
    (damaged / MANIFEST_FILE).write_bytes(Manifest.model_validate_json(text).sealed().to_bytes())
    with pytest.raises(IndexFormatError, match="lists other files"):
        FaissIndex.open(damaged, words)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 1}, "format"),
        ({"format": 3}, "format"),
        ({"extra": 1}, "extra"),
        ({"metric": "l2"}, "metric"),
        ({"normalised": False}, "normalised"),
        ({"seal": "0" * 64}, "changed"),
    ],
)
def test_a_manifest_of_another_format_is_refused(
    folder: Path, words: WordEmbedder, changes: dict[str, object], message: str
) -> None:
    """Unknown versions and fields say so; nothing is guessed."""
    path = folder / MANIFEST_FILE
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(IndexFormatError, match=f"{MANIFEST_FILE}.*{message}"):
        FaissIndex.open(folder, words)


@pytest.mark.parametrize("count", [11, 13, 2**40])
@pytest.mark.parametrize("field", ["rows", "documents", "echoes"])
def test_wrong_counts_in_a_manifest_are_refused(folder: Path, words: WordEmbedder, field: str, count: int) -> None:
    """A sealed manifest with wrong counts is compared with the files."""
    shards = read_index_info(folder).shards
    change_manifest(folder, shards=(shards[0].model_copy(update={field: count}),))
    with pytest.raises(IndexFormatError, match="holds"):
        FaissIndex.open(folder, words)
    assert verify_index(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"storage": "float16"}, "not a complete file of float16"), ({"embedder": {"dimension": 16}}, "vectors of length 16")],
)
def test_vectors_of_another_type_are_refused(folder: Path, words: WordEmbedder, changes: dict, message: str) -> None:
    """What the manifest says of the numbers is compared with the file of numbers."""
    if "embedder" in changes:
        changes = {"embedder": read_index_info(folder).embedder.model_copy(update=changes["embedder"])}
        words.dimension = 16
    change_manifest(folder, **changes)
    with pytest.raises(IndexFormatError, match=message):
        FaissIndex.open(folder, words)


def sealed_again(folder: Path, path: Path, data: bytes) -> None:
    """Put other bytes in the place of a file, with a manifest that agrees with them, as an attacker would."""
    if path.suffix == ".bin":
        lengths = [n for n in struct.unpack_from("<8q", data, 16)]
        data = make_head(data[8:16].decode().strip(), lengths, hashlib.sha256(data[HEAD_BYTES:]).digest()) + data[HEAD_BYTES:]
    path.write_bytes(data)
    entry = describe_file(path)
    new = f"{path.name.partition('-')[0]}-{entry.sha256[:16]}{path.suffix}"
    path.rename(folder / new)
    made = read_manifest(folder).model_dump_json().replace(path.name, new)
    manifest = Manifest.model_validate_json(made)
    files = manifest.files | {new: entry}
    (folder / MANIFEST_FILE).write_bytes(manifest.model_copy(update={"files": dict(sorted(files.items()))}).sealed().to_bytes())


@pytest.mark.parametrize("section", range(8))
def test_search_in_a_crafted_store_raises_an_index_error(folder: Path, words: WordEmbedder, section: int) -> None:
    """Numbers that make no sense are an error of the index, not a wrong passage, a crash or a read beyond the file."""
    path = file_of(folder, "passages")
    data = bytearray(path.read_bytes())
    lengths = struct.unpack_from("<8q", data, 16)
    start = HEAD_BYTES + sum(lengths[:section])
    data[start : start + lengths[section]] = b"\xff" * lengths[section]
    sealed_again(folder, path, bytes(data))
    if section in (0, 3, 5):  # keys are not read in a search, and this index has no echoes
        assert len(FaissIndex.open(folder, words).search(["iceberg"], 12)[0]) == 12
        return
    with pytest.raises(IndexFormatError, match="damaged"):
        FaissIndex.open(folder, words).search(["iceberg"], 12)
    assert section in (6, 7) or verify_index(folder)


@pytest.mark.parametrize("document", [-1, 12, 2**40])
def test_a_passage_with_an_invalid_document_is_refused(folder: Path, words: WordEmbedder, document: int) -> None:
    """A wrong document number is damage, though it could be read from the other end."""
    path = file_of(folder, "passages")
    data = bytearray(path.read_bytes())
    at = HEAD_BYTES + struct.unpack_from("<q", data, 16)[0]
    for i in range(12):
        struct.pack_into("<q", data, at + 32 * i, document)
    sealed_again(folder, path, bytes(data))
    with pytest.raises(IndexFormatError, match="belongs to no document"):
        FaissIndex.open(folder, words).search(["iceberg"], 1)


def test_crafted_tombstones_are_refused(damaged: Path, words: WordEmbedder) -> None:
    """Edits name rows and documents that are there, in order."""
    path = file_of(damaged, "edits")
    data = bytearray(path.read_bytes())
    struct.pack_into("<q", data, HEAD_BYTES + 8, 2**40)
    sealed_again(damaged, path, bytes(data))
    with pytest.raises(IndexFormatError, match="names rows or documents that the index does not have"):
        FaissIndex.open(damaged, words)


def test_a_missing_index_names_the_build_command(tmp_path: Path, words: WordEmbedder) -> None:
    """A missing folder is answered with how to make one."""
    with pytest.raises(IndexFormatError, match="knowhalu index build"):
        FaissIndex.open(tmp_path / "nowhere", words)


def test_a_failing_build_keeps_the_old_index(folder: Path, words: WordEmbedder) -> None:
    """Whatever stops a small build, the index that was there stays as it was."""
    before = (folder / MANIFEST_FILE).read_bytes()

    class Stopped(WordEmbedder):
        def encode(self, *_: object, **__: object) -> None:  # type: ignore[override]
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(records(), folder, Stopped(), force=True)
    assert (folder / MANIFEST_FILE).read_bytes() == before and [p.name for p in folder.parent.iterdir()] == ["index"]
