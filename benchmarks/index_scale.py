"""How an index scales: clustered vectors of 384 numbers through the real builder, from ten thousand to ten million.

The vectors need no model: a text that is a number names a vector, whose coordinates are hashes of the number and the position, so
that every machine makes the same ones, in any order. Each size is built in one process and searched in another, so that their
memory can be measured separately. Memory is the peak of a process, memory-mapped files included; `own` excludes those, because
the system reclaims their pages when it needs them. Writes JSON, a table and a chart.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
import numpy as np
from charts import draw_log_panels
from common import table_line, write_results
from numpy.typing import NDArray

from knowhalu.index.build import build_index
from knowhalu.index.container import stream_vectors
from knowhalu.index.manifest import Chunking, SearchParameters, read_index_info
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.faiss import FaissIndex

SPREAD = 0.7
"""Length of a vector's difference from the centre of its cluster, which has length 1."""
Floats = NDArray[np.float32]


def _noise(numbers: NDArray[np.uint64], dimension: int, salt: int) -> Floats:
    """Return a hash of each number as a row of about normal coordinates with length 1 on average (splitmix64)."""
    noise = np.empty((len(numbers), dimension), np.float32)
    for start in range(0, len(numbers), 4096):
        part = numbers[start : start + 4096, None]
        mixed = part * np.uint64(dimension) + np.arange(dimension, dtype=np.uint64) + np.uint64(salt << 48)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        halves = mixed.view(np.uint16).reshape(len(part), dimension, 4)
        # the sum of four even draws is close to a normal one
        noise[start : start + 4096] = (halves.sum(axis=2, dtype=np.int64) - 4 * 32767.5) / 37837.0
    return noise / np.float32(dimension**0.5)


class Synthetic:
    """An embedder of numbers: cluster centre plus noise, normalised; a text "5 again" is a query near vector 5."""

    symmetric = True
    name = "synthetic"

    def __init__(self, clusters: int, dimension: int = 384) -> None:
        self.clusters, self.dimension = clusters, dimension
        self.fingerprint = hashlib.sha256(f"synthetic {clusters} {dimension} {SPREAD}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], *, query: bool = False) -> Floats:
        """Return the vectors of some numbers."""
        numbers = np.array([int(t.partition(" ")[0]) for t in texts], np.uint64)
        vectors = _noise(numbers % np.uint64(self.clusters), self.dimension, 1) + SPREAD * _noise(numbers, self.dimension, 2)
        if any(t.endswith("again") for t in texts):
            vectors += 0.5 * SPREAD * _noise(numbers, self.dimension, 3)
        normed: Floats = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return normed


def numbered(count: int) -> Iterator[SourceRecord]:
    """Yield documents whose text is their number."""
    for i in range(count):
        yield SourceRecord(f"n{i}", "", str(i), "")


SIZES = (10_000, 100_000, 1_000_000)
LARGE = 10_000_000
QUERIES = 200
K = 10


def embedder_of(count: int) -> Synthetic:
    """Return the vectors of a corpus of this size: about 500 to a cluster."""
    return Synthetic(clusters=max(20, count // 500))


@contextmanager
def memory() -> Iterator[dict[str, float]]:
    """Measure the peak memory of this process in MiB, with and without memory-mapped files."""
    peak, done = {"all": 0.0, "own": 0.0}, threading.Event()

    def read_status() -> None:
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
        peak["all"] = int(status["VmHWM"].split()[0]) / 1024
        peak["own"] = max(peak["own"], int(status["RssAnon"].split()[0]) / 1024)

    def watch() -> None:
        while not done.wait(0.2):
            read_status()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
        read_status()


def build(count: int, folder: Path, factory: str, storage: str) -> dict[str, object]:
    """Build the index of a size and time it."""
    stages: dict[str, float] = {}
    last = started = time.perf_counter()
    with memory() as used:

        def progress(state: object) -> None:
            nonlocal last
            now = time.perf_counter()
            stages[state.stage] = stages.get(state.stage, 0.0) + now - last  # type: ignore[attr-defined]
            last = now

        index = build_index(
            numbered(count), folder, embedder_of(count), chunking=Chunking(words=0), factory=factory,
            storage=storage, progress=progress,  # type: ignore[arg-type]
        )  # fmt: skip
    size = sum(entry.size for entry in index.files.values())
    seconds = time.perf_counter() - started
    return {"factory": index.factory, "build_seconds": seconds, "stages": stages, "disk_mib": size / 2**20, "build_mib": used}


def exact(folder: Path, queries: np.ndarray) -> np.ndarray:
    """Return the K nearest rows of each query by comparing all vectors."""
    import faiss

    info = read_index_info(folder)
    heap, first = faiss.ResultHeap(len(queries), K, keep_max=True), 0
    paths = [folder / s.vectors for s in info.shards]
    for block in stream_vectors(paths, info.embedder.dimension, info.storage):
        scores, rows = faiss.knn(queries, block, min(K, len(block)), faiss.METRIC_INNER_PRODUCT)
        heap.add_result(scores, rows + first)
        first += len(block)
    heap.finalize()
    return heap.I


def search(count: int, folder: Path, parameters: SearchParameters | None) -> dict[str, object]:
    """Open the index of a size and search it."""
    embedder = embedder_of(count)
    numbers = np.random.default_rng(7).choice(count, 2 * QUERIES, replace=False)
    queries, others = np.split(embedder.encode([f"{i} again" for i in numbers]), 2)
    import faiss  # noqa: F401

    with memory() as used:
        started = time.perf_counter()
        index = FaissIndex.open(folder, embedder, parameters)
        opened = time.perf_counter() - started
        index.nearest(queries[:4], K)
        started = time.perf_counter()
        near = index.nearest(queries, K)
        batch = time.perf_counter() - started
        started = time.perf_counter()
        for query in others:  # the pages that the first ones read are in memory
            index.nearest(query[None], K)
        single = time.perf_counter() - started
    truth = exact(folder, queries)
    recall = float(np.mean([len({*a} & {*b}) / K for a, b in zip(near.rows.tolist(), truth.tolist(), strict=True)]))
    return {
        "open_seconds": opened, "queries_per_second": QUERIES / batch, "queries_per_second_one_by_one": QUERIES / single,
        "recall_at_10": recall, "search_mib": used, "parameters": index.parameters.model_dump(),
    }  # fmt: skip


@click.command()
@click.option("--sizes", default=",".join(map(str, SIZES)), show_default=True, help="Numbers of passages, with commas.")
@click.option("--large", is_flag=True, help=f"Add {LARGE:,} passages; takes hours and 20 GB of disk.")
@click.option("--factory", default="auto", show_default=True)
@click.option("--storage", type=click.Choice(["float32", "float16"]), default="float32", show_default=True)
@click.option("--parameters", help="nprobe,ef_search,refine instead of the index's own.")
@click.option("--work", type=click.Path(path_type=Path), help="Folder for the indexes; they are kept there and used again.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("index_scale.json"), show_default=True)
@click.option("--step", nargs=2, hidden=True)
def main(
    sizes: str, large: bool, factory: str, storage: str, parameters: str | None, work: Path | None, out: Path, step: tuple | None
) -> None:
    """Build and search an index of every size and write what it took."""
    home = work or Path(tempfile.mkdtemp())
    if step:
        count, folder = int(step[1]), home / step[1]
        given = SearchParameters(**dict(zip(("nprobe", "ef_search", "refine"), map(int, parameters.split(",")), strict=True))) \
            if parameters else None  # fmt: skip
        done = build(count, folder, factory, storage) if step[0] == "build" else search(count, folder, given)
        click.echo(json.dumps(done))
        return
    rows = []
    for count in [*map(int, sizes.split(",")), *([LARGE] if large else [])]:
        row: dict[str, object] = {"passages": count}
        for act in ("build", "search"):
            if act == "build" and (home / str(count) / "manifest.json").exists():
                continue
            command = [sys.executable, __file__, "--work", str(home), "--factory", factory, "--storage", storage]
            command += ["--parameters", parameters] if parameters else []
            output = subprocess.run([*command, "--step", act, str(count)], stdout=subprocess.PIPE, text=True, check=True).stdout
            row |= json.loads(output.splitlines()[-1])
        click.echo(json.dumps(row))
        rows.append(row)
        write_results(out, {"dimension": 384, "k": K, "rows": rows}, table(rows))
    plot(rows, out.with_suffix(".svg"))
    if work is None:
        shutil.rmtree(home)


def table(rows: list[dict]) -> str:
    """Return a table of time, memory, disk space, speed and recall for every size."""
    heads = ("passages", "factory", "build, s", "its memory, GB", "disk, GB", "opening, ms", "first queries/s",
             "again, one by one", "recall@10")  # fmt: skip
    lines = [table_line(heads), f"|---:|---|{'---:|' * 7}"]
    for r in rows:
        cells = [f"{r['passages']:,}", r["factory"], f"{r['build_seconds']:,.0f}", f"{r['build_mib']['all'] / 1024:.2f}",
                 f"{r['disk_mib'] / 1024:.1f}", f"{1000 * r['open_seconds']:.0f}", f"{r['queries_per_second']:,.0f}",
                 f"{r['queries_per_second_one_by_one']:,.0f}", f"{r['recall_at_10']:.3f}"]  # fmt: skip
        lines.append(table_line(cells))
    return "\n".join(lines) + "\n"


def plot(rows: list[dict], path: Path) -> None:
    """Draw time, memory, recall and speed over the size."""
    sizes = [row["passages"] for row in rows]
    wanted = {
        "build, seconds": [r.get("build_seconds") for r in rows],
        "memory of the build, MiB": [r.get("build_mib", {}).get("all") for r in rows],
        "recall@10": [r["recall_at_10"] for r in rows],
        "opening, seconds": [r["open_seconds"] for r in rows],
        "queries per second, in a batch": [r["queries_per_second"] for r in rows],
        "memory of the search, MiB": [r["search_mib"]["all"] for r in rows],
    }
    draw_log_panels(path, "passages", sizes, wanted)


if __name__ == "__main__":
    main()
