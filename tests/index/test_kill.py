"""Kills: after any kill of a build or change the index is intact, and the same command resumes to the same bytes."""

import subprocess
import sys
from pathlib import Path

import pytest

from knowhalu.errors import IndexFormatError
from knowhalu.index.build import build_index
from knowhalu.index.extension import verify_index
from knowhalu.index.manifest import Chunking, read_index_info
from knowhalu.index.update import add_documents
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import WordEmbedder, records, same_paths


def kill(name: str, tries: int, home: Path) -> None:
    """Kill an act at random lines, in a process of its own."""
    command = [sys.executable, "-m", "tests.support.killing", name, str(tries), str(home)]
    done = subprocess.run(command, env=same_paths() | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.parametrize(("act", "tries"), [("build", 6), ("add", 2), ("delete", 2), ("compact", 2)])
def test_killed_work_resumes_to_the_same_bytes(tmp_path: Path, act: str, tries: int) -> None:
    """A few kills of each; the index is the old or the new one at any time."""
    kill(act, tries, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("act", ["build", "add", "delete", "compact"])
def test_fifty_kills(tmp_path: Path, act: str) -> None:
    """The same fifty times."""
    kill(act, 50, tmp_path)


class Dying(WordEmbedder):
    """An embedder that fails after some calls."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.left = calls

    def encode(self, texts, *, query=False):
        """Encode, or fail."""
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().encode(texts)


ROWS = [SourceRecord(f"r{i}", "", f"token{i}", "") for i in range(10)]


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    """Give the place of an index whose build stopped after two of three shards."""
    with pytest.raises(KeyboardInterrupt):
        build_index(ROWS, tmp_path / "index", Dying(2), shard=4)
    assert [p.name for p in tmp_path.iterdir()] == [".index.building"]
    return tmp_path / "index"


def test_finished_shards_are_not_embedded_again(unfinished: Path, words: WordEmbedder) -> None:
    """Only the last shard is left to do, also where the records can be read only once."""
    seen = []
    build_index(iter(ROWS), unfinished, words, shard=4, progress=seen.append)
    assert words.calls == [["token8", "token9"]] and (seen[-1].done, seen[-1].total) == (10, 10)
    assert verify_index(unfinished) == [] and len(FaissIndex.open(unfinished, words)) == 10


CHANGES = [
    ({"records": [*ROWS[:3], *ROWS[4:]]}, "the sources have changed"),
    ({"records": [*ROWS, ROWS[0]._replace(id="more")]}, "the sources have changed"),
    ({"records": ROWS[:9]}, "the sources have changed"),
    ({"records": [*ROWS[:-1], ROWS[-1]._replace(title="Another")]}, "the sources have changed"),
    ({"chunking": Chunking(words=7)}, "chunking was .* now "),
    ({"shard": 5}, "shard was 4, now 5"),
    ({"storage": "float16"}, "storage was float32, now float16"),
    ({"factory": "IVF2,Flat"}, "factory was auto"),
    ({"embedder": WordEmbedder("other")}, "name was words, now other"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[f"{i}-{next(iter(c))}" for i, (c, _) in enumerate(CHANGES)])
def test_unfinished_work_is_never_mixed_with_other_work(unfinished: Path, change: dict, message: str) -> None:
    """Another source, option or embedder is refused and nothing is lost; force drops what was done."""
    asked = {"records": ROWS, "embedder": WordEmbedder(), "shard": 4} | change
    rows, embedder = asked.pop("records"), asked.pop("embedder")
    with pytest.raises(IndexFormatError, match=f"unfinished work.*{message}.*same command.*force"):
        build_index(rows, unfinished, embedder, **asked)
    made = build_index(rows, unfinished, embedder, force=True, **asked)
    fresh = build_index(rows, unfinished.with_name("fresh"), embedder, **asked)
    assert made == fresh and verify_index(unfinished) == []


def test_an_unfinished_addition_is_resumed_and_blocks_other_changes(folder: Path, words: WordEmbedder) -> None:
    """An addition is as safe as a build; the index answers meanwhile."""
    small = folder.with_name("small")
    build_index(records(), small, words, shard=4)
    with pytest.raises(KeyboardInterrupt):
        add_documents(ROWS, small, Dying(2))
    assert len(FaissIndex.open(small, words)) == 12 and read_index_info(small).generation == 1
    with pytest.raises(IndexFormatError, match=r"unfinished work.*command was add, now build"):
        build_index(ROWS, small, words, shard=4, force=False)
    words.calls.clear()
    add_documents(ROWS, small, words)
    assert words.calls == [["token8", "token9"]] and len(FaissIndex.open(small, words)) == 22
