"""Kills builds and changes of an index at random lines of our code, and starts them again; run by the kill tests.

Each try is a forked process that is killed by SIGKILL, so no handler can clean up after it.
"""

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from knowhalu.index.build import build_index
from knowhalu.index.compact import compact_index
from knowhalu.index.extension import verify_index
from knowhalu.index.update import add_documents, delete_documents
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.faiss import FaissIndex
from tests.support.indexing import WordEmbedder

ROWS = [SourceRecord(f"r{i}", f"t{i % 9}", f"Bees dance. Word{i % 50} falls and so on.", "") for i in range(60)]
NEW = [SourceRecord(f"r{i}", "new", f"Rain number{i} falls.", "") for i in range(50, 90)]
EMBEDDER = WordEmbedder(dimension=8)


def build(out: Path) -> None:
    """Build an index of several shards with a FAISS file."""
    build_index(ROWS, out, EMBEDDER, shard=13, factory="IVF2,SQ8")


def add(out: Path) -> None:
    """Add and replace documents."""
    add_documents(NEW, out, EMBEDDER)


def delete(out: Path) -> None:
    """Delete documents."""
    delete_documents(["r1", "r2"], out)


ACTS: dict[str, tuple[list[Callable], Callable]] = {
    "build": ([], build),
    "add": ([build], add),
    "delete": ([build, add], delete),
    "compact": ([build, add, delete], compact_index),
}


def in_fork(act: Callable, out: Path, kill_at: int | None = None) -> tuple[int, int]:
    """Do something in another process that is killed at a line of our code; return its status and the lines it ran."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        count = 0

        def trace(frame, event, _):
            nonlocal count
            if not any(f"knowhalu/{room}/" in frame.f_code.co_filename for room in ("index", "ingest", "io", "retrieval")):
                return None
            count += event == "line"
            if count == kill_at:
                os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        try:
            act(out)
            sys.settrace(None)
            os.write(write, str(count).encode())
            os._exit(0)
        except BaseException as error:  # noqa: BLE001 - the parent reads the status
            sys.stderr.write(f"{error!r}\n")
            os._exit(1)
    os.close(write)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(read) as report:
        return status, int(report.read() or 0)


def files(out: Path) -> dict[str, bytes]:
    """Read an index."""
    return {p.name: p.read_bytes() for p in out.iterdir()}


def described(index: dict[str, bytes]) -> tuple[str, object]:
    """Return content hash and counts of a manifest."""
    manifest = json.loads(index["manifest.json"])
    return manifest["content"], manifest["counts"]


def one_try(act: Callable, start: Path, expected: list[dict[str, bytes]], kill_at: list[int], home: Path) -> None:
    """Kill an act at each of some lines, one after the other, and let it finish."""
    out = home / "index"
    if start.exists():
        shutil.copytree(start, out)
    for line in kill_at:
        status, _ = in_fork(act, out, line)
        assert status in (0, -9) or files(out) == expected[-1], status
        if (out / "manifest.json").exists():
            # the index is in one of the two states and can be searched
            assert (out / "manifest.json").read_bytes() in [w["manifest.json"] for w in expected]
            assert len(FaissIndex.open(out, EMBEDDER).search(["bees"], 5)[0]) == 5
            assert all("the next change of the index removes it" in problem for problem in verify_index(out))
        if status >= 0:
            break
    # a process may die after it has done everything, which then needs no repetition
    left = [p for p in home.iterdir() if p != out]
    if not out.exists() or left or files(out) != expected[-1]:
        assert in_fork(act, out)[0] == 0 or files(out) == expected[-1]
    # an addition that was published but not yet cleaned up is repeated, which changes only the generation
    assert files(out) == expected[-1] or (act is add and described(files(out)) == described(expected[-1])), kill_at
    assert verify_index(out) == [] and [p.name for p in home.iterdir()] == ["index"]
    shutil.rmtree(home)


def main(name: str, tries: int, home: Path) -> None:
    """Create the states before and after an act, then kill the act `tries` times."""
    before, act = ACTS[name]
    start, end = home / "start", home / "end/index"
    for step in before:
        step(start)
    end.parent.mkdir()
    if before:
        shutil.copytree(start, end)
    status, lines = in_fork(act, end)
    assert status == 0
    expected = [files(start), files(end)] if before else [files(end)]
    draw = random.Random(name)
    for i in range(tries):
        (home / f"try{i}").mkdir()
        one_try(act, start, expected, [draw.randrange(lines) for _ in range(draw.randint(1, 3))], home / f"try{i}")
    sys.stdout.write(json.dumps({"act": name, "lines": lines, "tries": tries}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
