"""The index compared with the libraries below it: the builder with the bare model, a search with bare FAISS, in turn.

For a search both get the same vectors, FAISS in memory and ours from a memory map. With an approximate factory FAISS refines with
IndexRefineFlat as many candidates as we do. A search is timed from the text of a query, as users wait for it: both
embed it with the packaged embedder, and both return row numbers. It is also timed from the vector. All shares are the
other's time divided by ours: 1 is as fast.
"""

import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from index_scale import Synthetic, numbered

from knowhalu.encoder.embedder import MiniLMEmbedder
from knowhalu.index.build import build_index
from knowhalu.index.manifest import Chunking
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.faiss import FaissIndex

K = 10
WORDS = "river mountain the of a in and city built year old museum king war found near water people small large first".split()


def make_passages(count: int, seed: int = 0) -> list[str]:
    """Write `count` passages of 15 to 40 words from a small vocabulary."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(15, 40))) + f" {i}." for i in range(count)]


def seconds_of_builder(passages: list[str], embedder: MiniLMEmbedder) -> float:
    """Build an index of the passages and return the seconds it took."""
    records = (SourceRecord(str(i), "", text, "benchmark") for i, text in enumerate(passages))
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        build_index(records, Path(folder) / "index", embedder, chunking=Chunking(words=100))
        return time.perf_counter() - started


def seconds_of_embedder(passages: list[str], embedder: MiniLMEmbedder) -> float:
    """Encode the passages in one call and return the seconds it took."""
    started = time.perf_counter()
    embedder.encode(passages)
    return time.perf_counter() - started


def throughput(passages: int, rounds: int) -> dict[str, Any]:
    """Compare the builder with the bare model on the same passages."""
    embedder, texts = MiniLMEmbedder(), make_passages(passages)
    seconds_of_builder(texts[:64], embedder)
    pairs = [(seconds_of_builder(texts, embedder), seconds_of_embedder(texts, embedder)) for _ in range(rounds)]
    ours, model = (min(seconds) for seconds in zip(*pairs, strict=True))  # other work can only add to a time
    return {
        "passages": passages, "builder_per_second": passages / ours, "model_per_second": passages / model, "share": model / ours,
        "rounds": [model / ours for ours, model in pairs],
    }  # fmt: skip


def bare(index: FaissIndex, vectors: np.ndarray, factory: str) -> Callable[[np.ndarray], Any]:
    """Return a search by FAISS alone."""
    import faiss

    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    if factory == "Flat":
        return lambda queries: flat.search(queries, K)
    file = next(index.folder.glob("search-*"))
    inner, parameters = faiss.read_index(str(file)), index.parameters
    if "IVF" in factory:
        faiss.extract_index_ivf(inner).nprobe = parameters.nprobe
    else:
        inner.hnsw.efSearch = max(parameters.ef_search, K * parameters.refine)
    refined = faiss.IndexRefineFlat(inner, faiss.swig_ptr(vectors))
    refined.k_factor = parameters.refine

    def search(queries: np.ndarray) -> Any:
        assert inner.ntotal == len(vectors)  # FAISS only points to both, so both must live on
        return refined.search(queries, K)

    return search


def latency(count: int, factory: str, times: int) -> list[dict[str, Any]]:
    """Compare searches of one query and of many, call by call in turn."""
    embedder, reader, rows = Synthetic(max(20, count // 500)), MiniLMEmbedder(), []
    with tempfile.TemporaryDirectory() as folder:
        build_index(numbered(count), Path(folder) / "index", embedder, chunking=Chunking(words=0), factory=factory)
        index = FaissIndex.open(Path(folder) / "index", embedder)
        theirs = bare(index, embedder.encode([str(i) for i in range(count)]), factory)
        for size, calls in ((1, 5 * times), (64, times)):
            vectors = embedder.encode([f"{i * 37 % count} again" for i in range(size)])
            texts = [" ".join(text.split()[:12]) for text in make_passages(size)]
            ours = partial(index.nearest, k=K)
            rows.append(
                {
                    "passages": count, "factory": factory, "queries": size,
                    "from_text": in_turn(reading(ours, reader, texts, vectors), reading(theirs, reader, texts, vectors), calls),
                    "from_vector": in_turn(partial(ours, vectors), partial(theirs, vectors), calls),
                }
            )  # fmt: skip
    return rows


def reading(
    search: Callable[[np.ndarray], Any], reader: MiniLMEmbedder, texts: list[str], vectors: np.ndarray
) -> Callable[[], Any]:
    """Return a search that first embeds its texts, and then searches for the vectors that the synthetic index has."""

    def both() -> Any:
        reader.encode(texts, query=True)
        return search(vectors)

    return both


def in_turn(ours: Callable[[], Any], theirs: Callable[[], Any], times: int) -> dict[str, float]:
    """Time both `times` times, one after the other; the medians, and the share of theirs in ours."""
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(times + 3):
        both = list(zip((ours, theirs), seconds, strict=True))
        for search, taken in both if turn % 2 else both[::-1]:
            started = time.perf_counter()
            search()
            if turn >= 3:  # the first calls read pages and fill caches, so they count for neither
                taken.append(time.perf_counter() - started)
    mine, other = map(statistics.median, seconds)
    return {"ours_ms": 1000 * mine, "faiss_ms": 1000 * other, "share": other / mine}


@click.command()
@click.option("--passages", default=2000, show_default=True, help="Passages that are embedded; 0 leaves this out.")
@click.option("--sizes", default="10000,100000", show_default=True, help="Sizes of the indexes that are searched.")
@click.option("--factories", default="Flat;HNSW32;IVF256,SQ8", show_default=True, help="Factories, with semicolons.")
@click.option("--rounds", default=5, show_default=True, help="Times that the passages are embedded.")
@click.option("--times", default=40, show_default=True, help="Times that 64 queries are searched; a single one 5 times as often.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("index_speed.json"), show_default=True)
def main(passages: int, sizes: str, factories: str, rounds: int, times: int, out: Path) -> None:
    """Measure and write both comparisons."""
    results: dict[str, Any] = {"builder": throughput(passages, rounds) if passages else None, "search": []}
    click.echo(json.dumps(results["builder"]))
    for count in map(int, filter(None, sizes.split(","))):
        for factory in factories.split(";"):
            for row in latency(count, factory, times):
                results["search"].append(row)
                click.echo(json.dumps(row))
    out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
