"""Compare the speed of the index builder with that of the bare embedder on the same passages.

Both run in turn, so that a busy machine slows both alike. Prints the ratio and writes the figures as JSON.
"""

import json
import random
import statistics
import tempfile
import time
from pathlib import Path

import click

from knowhalu.encoder.embedder import MiniLMEmbedder
from knowhalu.index.build import build_index
from knowhalu.index.manifest import Chunking
from knowhalu.ingest.sources import SourceRecord

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


@click.command()
@click.option("--passages", default=320, show_default=True)
@click.option("--rounds", default=3, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("embedding.json"), show_default=True)
def main(passages: int, rounds: int, out: Path) -> None:
    """Measure builder and bare embedder in turn."""
    embedder, texts = MiniLMEmbedder(), make_passages(passages)
    seconds_of_builder(texts[:64], embedder)  # imports and kernels are made ready before the clock starts
    builder, bare = [], []
    for _ in range(rounds):
        builder.append(passages / seconds_of_builder(texts, embedder))
        bare.append(passages / seconds_of_embedder(texts, embedder))
    ratio = statistics.median(b / r for b, r in zip(builder, bare, strict=True))
    found = {"passages": passages, "builder_per_second": builder, "embedder_per_second": bare, "ratio": ratio}
    out.write_text(json.dumps(found, indent=1) + "\n")
    click.echo(
        f"builder {statistics.median(builder):.0f}/s, bare embedder {statistics.median(bare):.0f}/s, ratio {ratio:.3f} -> {out}"
    )


if __name__ == "__main__":
    main()
