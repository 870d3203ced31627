"""How well each retrieval mode finds the right passage: recall at 1 and 10 and the mean reciprocal rank.

Builds a real index of each set and searches it through the same code as `knowhalu index search`. Results and a chart are written
to the same folder. The weights of hybrid and reranker were chosen on training splits, not on these sets.
"""

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from charts import draw_grouped_bars
from common import table_lines, write_results

from knowhalu.encoder.embedder import CONFIG_FILE, PACKAGED_LATE_ENCODER, MiniLMEmbedder, load_token_encoder
from knowhalu.engine.search_backend import open_retriever
from knowhalu.index.build import build_index
from knowhalu.index.extension import extend_index, open_stored_passages
from knowhalu.index.late_part import build_late_part
from knowhalu.index.manifest import Chunking
from knowhalu.index.protocols import Retriever
from knowhalu.ingest.sources import SourceRecord
from knowhalu.retrieval.bm25 import build_lexical_part
from knowhalu.retrieval.hybrid import HybridRetriever
from knowhalu.retrieval.late import LateInteractionIndex
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.training.data_files import read_training_rows
from knowhalu.training.late import score_rankings

DEPTH = 100
"""Passages of a ranking that count; a right one below them is missed."""


class Set(NamedTuple):
    """A set of queries: its file, the split that is measured, and further corpora whose passages only distract."""

    name: str
    file: str
    splits: tuple[str, ...]
    distractors: tuple[str, ...] = ()
    bm25: float | None = None


SETS = (
    Set("SciFact dev", "scifact_retrieval", ("dev",), bm25=55.6),
    Set("SQuAD sentences dev", "squad_sentence_retrieval", ("dev",), bm25=57.1),
    Set("XQuAD en", "xquad_en_retrieval", ("dev",), bm25=92.7),
    Set("KnowHalu QA + 2Wiki", "knowhalu_qa_retrieval", ("val", "test"), ("wiki_passages_2wiki",), bm25=95.9),
)


class Gathered(NamedTuple):
    """Records to index and queries whose right passages are among them; equal passages count as one."""

    records: list[SourceRecord]
    rows: list[dict[str, Any]]


def gather(data: Path, chosen: Set, limit: int) -> Gathered:
    """Read a set; of equal passages the first one is kept, as in the builder."""
    rows = [row for row in read_training_rows(data / f"{chosen.file}.jsonl.gz") if row["split"] in chosen.splits]
    rows = rows[:: max(1, len(rows) // limit)][:limit] if limit else rows
    records, first, same = [], {}, {}
    for file in (chosen.file, *chosen.distractors):
        for row in read_training_rows(data / f"{file}.corpus.jsonl.gz"):
            name, title = str(row["doc_id"]), (row.get("title") or "").replace("_", " ")
            text = row["text"]
            same[name] = first.setdefault((title, text), name)
            if same[name] == name:
                records.append(SourceRecord(name, title, text, file))
    return Gathered(records, [{**row, "positives": [same[str(p)] for p in row["positives"]]} for row in rows])


def searchers(folder: Path, encoder: str | None) -> Iterator[tuple[str, Retriever]]:
    """Yield a retriever for each mode, one after the other."""
    embedder = MiniLMEmbedder()
    opened = partial(RetrievalOptions, index=folder)
    dense, words = (open_retriever(opened(mode=mode), embedder) for mode in ("dense", "lexical"))
    yield "dense", dense
    yield "BM25", words
    yield "hybrid, ranks", open_retriever(opened(mode="hybrid", fusion="ranks"), embedder)
    yield "hybrid", open_retriever(opened(mode="hybrid"), embedder)
    yield "hybrid, reranked", open_retriever(opened(mode="hybrid", reranker="verifier"), embedder)
    if encoder is not None:
        tokens = LateInteractionIndex.open(open_stored_passages(folder), load_token_encoder(encoder))
        yield "late interaction", tokens
        yield "late + BM25 + dense", HybridRetriever((dense, words, tokens), depth=DEPTH)


def measure(gathered: Gathered, encoder: str | None) -> dict[str, dict[str, float]]:
    """Build an index in a temporary folder and search it in every mode."""
    by_mode = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "index"
        build_index(gathered.records, folder, MiniLMEmbedder(), chunking=Chunking(words=0))
        stored = open_stored_passages(folder)
        extend_index(stored, "lexical", build_lexical_part)
        if encoder is not None:
            extend_index(stored, "late", partial(build_late_part, encoder=load_token_encoder(encoder)))
        queries = [row["query"] for row in gathered.rows]
        for name, searcher in searchers(folder, encoder):
            started = time.perf_counter()
            ranked = searcher.search(queries, DEPTH)
            seconds = time.perf_counter() - started
            scores = score_rankings([[p.document for p in passages] for passages in ranked], gathered.rows)
            figures = {key: round(100 * value, 2) for key, value in scores._asdict().items()}
            by_mode[name] = {**figures, "ms_per_query": round(1000 * seconds / len(queries), 2)}
            click.echo(f"  {name:22} " + "  ".join(f"{key} {value}" for key, value in by_mode[name].items()))
    return by_mode


def table(report: dict[str, Any]) -> str:
    """Return a table of recall@1, recall@10 and mean reciprocal rank of every set, in percent."""
    modes = _modes(report)
    rows = []
    for name, part in report.items():
        scores = (part["found"].get(mode) for mode in modes)
        cells = ("-" if s is None else " / ".join(f"{s[key]:.1f}" for key in ("recall1", "recall10", "mrr")) for s in scores)
        rows.append([name, str(part["queries"]), f"{part['passages']:,}", *cells])
    return "\n".join(table_lines(["set", "queries", "passages", *modes], rows, names=1)) + "\n"


def _modes(report: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(mode for part in report.values() for mode in part["found"]))


@click.command()
@click.option("--data", required=True, type=click.Path(path_type=Path, exists=True), help="Folder of the retrieval sets.")
@click.option("--limit", default=0, show_default=True, help="Queries of each set at most; 0: all.")
@click.option("--only", multiple=True, help="Sets by the beginning of their name.")
@click.option("--token-encoder", help="Model of late interaction; without: the packaged one, if there is one.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("retrieval.json"), show_default=True)
def main(data: Path, limit: int, only: tuple[str, ...], token_encoder: str | None, out: Path) -> None:
    """Measure every retrieval mode on every set."""
    encoder = token_encoder or ("minilm-late" if (PACKAGED_LATE_ENCODER / CONFIG_FILE).is_file() else None)
    report: dict[str, Any] = {}
    for chosen in SETS:
        if only and not chosen.name.lower().startswith(tuple(o.lower() for o in only)):
            continue
        gathered = gather(data, chosen, limit)
        click.echo(f"{chosen.name}: {len(gathered.rows)} queries, {len(gathered.records)} passages")
        sizes = {"queries": len(gathered.rows), "passages": len(gathered.records)}
        report[chosen.name] = {**sizes, "published_bm25_recall1": chosen.bm25, "found": measure(gathered, encoder)}
        write_results(out, report, table(report))
    groups = {name: {s: v["recall1"] for s, v in part["found"].items()} for name, part in report.items()}
    draw_grouped_bars(out.with_suffix(".svg"), "Right passage at rank 1", groups, _modes(report))
    click.echo(f"wrote {out} and {out.with_suffix('.svg')}")


if __name__ == "__main__":
    main()
