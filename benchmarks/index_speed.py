"""The index beside the libraries under it: the builder against the bare model, a search against bare FAISS, in turn.

For a search both get the same vectors, FAISS in memory and ours from a memory map. With an approximate factory FAISS refines by
its own means (IndexRefineFlat) as widely as we do. A search is timed from the text of a query on, as users wait for it: both
embed it with the packaged embedder, FAISS ends with row numbers and ours with passages. It is also timed from the vector on, to
row numbers on both sides. All shares are the other's time divided by ours: 1 is as fast.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from embedding import make_passages, seconds_of_builder, seconds_of_embedder
from synthetic import Synthetic, numbered

from knowhalu.encoder.embedder import MiniLMEmbedder
from knowhalu.retrieval.build import build_index
from knowhalu.retrieval.index import FaissIndex
from knowhalu.retrieval.manifest import Chunking
from knowhalu.retrieval.vectors import import_faiss
from knowhalu.types import Passage

K = 10


def throughput(passages: int, rounds: int) -> dict[str, Any]:
    """Compare the builder with the bare model on the same passages."""
    embedder, texts = MiniLMEmbedder(), make_passages(passages)
    seconds_of_builder(texts[:64], embedder)
    pairs = [(seconds_of_builder(texts, embedder), seconds_of_embedder(texts, embedder)) for _ in range(rounds)]
    return {
        "passages": passages,
        "builder_per_second": passages / statistics.median(b for b, _ in pairs),
        "model_per_second": passages / statistics.median(m for _, m in pairs),
        "share": statistics.median(m / b for b, m in pairs),
    }


def bare(index: FaissIndex, vectors: np.ndarray, factory: str) -> Callable[[np.ndarray], Any]:
    """Return a search by FAISS alone."""
    faiss = import_faiss()
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(vectors)
    if factory == "Flat":
        return lambda queries: flat.search(queries, K)
    file = next(index.folder.glob("search-*"))
    inner, asked = faiss.read_index(str(file)), index.parameters
    if "IVF" in factory:
        faiss.extract_index_ivf(inner).nprobe = asked.nprobe
    else:
        inner.hnsw.efSearch = max(asked.ef_search, K * asked.refine)
    refined = faiss.IndexRefineFlat(inner, faiss.swig_ptr(vectors))
    refined.k_factor = asked.refine

    def search(queries: np.ndarray) -> Any:
        assert inner.ntotal == len(vectors)  # FAISS only points to both, so both must live on
        return refined.search(queries, K)

    return search


def latency(count: int, factory: str, rounds: int) -> list[dict[str, Any]]:
    """Compare searches of one query and of many."""
    embedder, reader, found = Synthetic(max(20, count // 500)), MiniLMEmbedder(), []
    with tempfile.TemporaryDirectory() as folder:
        build_index(numbered(count), Path(folder) / "index", embedder, chunking=Chunking(words=0), factory=factory)
        index = FaissIndex.open(Path(folder) / "index", embedder)
        vectors = embedder.encode([str(i) for i in range(count)])
        theirs = bare(index, vectors, factory)
        for size, times in ((1, 50), (64, 5)):
            vectors_of = embedder.encode([f"{i * 37 % count} again" for i in range(size)])
            texts = make_passages(size)

            def embedded(vectors: np.ndarray = vectors_of, texts: list[str] = texts) -> np.ndarray:
                reader.encode([" ".join(t.split()[:12]) for t in texts], query=True)
                return vectors

            ours = {
                "text": (lambda e=embedded: passages_of(index, e()), lambda e=embedded: theirs(e())),
                "vector": (lambda v=vectors_of: index.nearest(v, K), lambda v=vectors_of: theirs(v)),
            }
            row: dict[str, Any] = {"passages": count, "factory": factory, "queries": size}
            for start, (one, other) in ours.items():
                pairs = [(_timed(one, times), _timed(other, times)) for _ in range(rounds)]
                row[f"from_{start}"] = {
                    "ours_ms": 1000 * statistics.median(o for o, _ in pairs),
                    "faiss_ms": 1000 * statistics.median(t for _, t in pairs),
                    "share": statistics.median(t / o for o, t in pairs),
                }
            found.append(row)
    return found


def passages_of(index: FaissIndex, vectors: np.ndarray) -> list[list[Passage]]:
    """Search from vectors to passages, as `FaissIndex.search` does once its queries are embedded."""
    near = index.nearest(vectors, K)
    return [
        [index.store.get(n, s) for n, s in zip(*both, strict=True)]
        for both in zip(near.rows.tolist(), near.scores.tolist(), strict=True)
    ]


def _timed(search: Callable[[], Any], times: int) -> float:
    search()
    started = time.perf_counter()
    for _ in range(times):
        search()
    return (time.perf_counter() - started) / times


@click.command()
@click.option("--passages", default=2000, show_default=True, help="Passages that are embedded; 0 leaves this out.")
@click.option("--sizes", default="10000,100000", show_default=True, help="Sizes of the indexes that are searched.")
@click.option("--factories", default="Flat;HNSW32;IVF1024,SQ8", show_default=True, help="Factories, with semicolons.")
@click.option("--rounds", default=5, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("index_speed.json"), show_default=True)
def main(passages: int, sizes: str, factories: str, rounds: int, out: Path) -> None:
    """Measure and write both comparisons."""
    found: dict[str, Any] = {"builder": throughput(passages, rounds) if passages else None, "search": []}
    click.echo(json.dumps(found["builder"]))
    for count in map(int, filter(None, sizes.split(","))):
        for factory in factories.split(";"):
            for row in latency(count, factory, rounds):
                found["search"].append(row)
                click.echo(json.dumps(row))
    out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
