#!/usr/bin/env python
"""Whether unrelated text changes verdicts: each row is checked against its own source, and against it among 5,000 other words.

The words are whole documents of other rows of the file, put before the source, after it or on both sides as paragraphs of
their own. Every source is checked as a document, even a short one, so that only the added words differ.
"""

import math
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np
from common import EvalRow, make_parser, ranged, rows_of, source, table_line, write_results
from numpy.typing import NDArray

from knowhalu.build import build_method
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.embedder import MiniLMEmbedder
from knowhalu.encoder.score_cache import ScoreCache
from knowhalu.engine.engine import Backends, Engine
from knowhalu.engine.search_backend import SearchBackend
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from knowhalu.types import Document, Sample

FILES = ("wice_claim_oracle", "scifact", "qags_cnndm", "summedits8", "bump_pairs", "written_claims")
SIDES = ("before", "after", "both")
GOAL = 0.02
POOL = 60
"""Documents of a file that are put around its sources."""


class Remembering(MiniLMEmbedder):
    """The default embedder with a cache: the drawn documents occur in many sources."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, NDArray[np.float32]] = {}

    def encode(self, texts: Sequence[str], *, query: bool = False) -> NDArray[np.float32]:
        """Encode texts in order; a text's vector does not depend on its neighbours."""
        new = [t for t in dict.fromkeys(texts) if t not in self._seen]
        self._seen |= dict(zip(new, super().encode(new, query=query), strict=True))
        return np.array([self._seen[t] for t in texts], dtype=np.float32).reshape(len(texts), self.dimension)


def make_engine() -> Engine[Verdict]:
    """Build the engine of the default settings, with caches of the embedder and of the verifier."""
    settings = Settings()
    searcher = SearchBackend(settings.retrieval)
    searcher.__dict__["embedder"] = Remembering()
    return Engine(build_method(settings), Backends(entail=ScoreCache(EncoderBackend(), 1_000_000), search=searcher))


class Change(NamedTuple):
    """What the added words changed in one row."""

    label: bool
    hallucinated: bool
    probability: float


def padding(own: str, others: Sequence[str], words: int, draw: Random) -> str:
    """Put other documents around a source, in a drawn order on a drawn side, until `words` words are added."""
    added: list[str] = []
    room = words
    for other in draw.sample(others, len(others)):
        if room > 0 and other != own:
            added.append(other)
            room -= len(other.split())
    side = draw.choice(SIDES)
    before = {"before": len(added), "after": 0, "both": len(added) // 2}[side]
    return "\n\n".join([*added[:before], own, *added[before:]])


def with_source(sample: Sample, text: str) -> Sample:
    """Give a sample one document as its source."""
    return sample.model_copy(update={"documents": (Document(id="document-1", text=text),), "knowledge": ()})


def wilson(hits: int, of: int, z: float = 1.96) -> tuple[float, float]:
    """Return the 95 % interval of a share."""
    share, slack = hits / of, z * z / of
    middle, half = share + slack / 2, z * math.sqrt((share * (1 - share) + slack / 4) / of)
    return (middle - half) / (1 + slack), (middle + half) / (1 + slack)


def verdicts(engine: Engine[Verdict], samples: Sequence[Sample]) -> list[Verdict]:
    """Check all samples, in order; any failure ends the benchmark."""
    outcomes = list(engine.run(samples, ordered=True))
    checked = [o for o in outcomes if isinstance(o, Verdict)]
    if len(checked) < len(outcomes):
        raise SystemExit(f"{len(outcomes) - len(checked)} checks failed; see `knowhalu detect`")
    return checked


def measured(engine: Engine[Verdict], rows: Sequence[EvalRow], pool: Sequence[str], words: int, draw: Random) -> list[Change]:
    """Check rows with and without other documents around their sources."""
    own = [source(r.sample) for r in rows]
    plain = verdicts(engine, [with_source(r.sample, text) for r, text in zip(rows, own, strict=True)])
    around = [with_source(r.sample, padding(text, pool, words, draw)) for r, text in zip(rows, own, strict=True)]
    return [
        Change(a.label != b.label, a.hallucinated != b.hallucinated, abs(a.probability - b.probability))
        for a, b in zip(plain, verdicts(engine, around), strict=True)
    ]


def summed(changes: Sequence[Change]) -> dict[str, float]:
    """Return the shares of changed verdicts, with their intervals, and the mean change of P(hallucinated)."""
    n = len(changes)
    summary: dict[str, float] = {"rows": n, "mean_change_of_probability": sum(c.probability for c in changes) / n}
    for name, hits in (("labels", sum(c.label for c in changes)), ("hallucinated", sum(c.hallucinated for c in changes))):
        low, high = wilson(hits, n)
        summary |= {f"{name}_changed": hits / n, f"{name}_low": low, f"{name}_high": high}
    return summary


def markdown(result: dict[str, dict[str, float]], words: int) -> str:
    """Return the table with its explanation."""
    lines = [
        f"Every row was checked by its source alone, and by the same source among {words:,} words of other rows' documents",
        "(before it, after it or on both sides). In brackets: 95 % Wilson interval.",
        "",
        "| set | rows | label changed | hallucinated changed | mean change of P(hallucinated) |",
        "|---|---|---|---|---|",
    ]
    for name, row in result.items():
        shares = [ranged(*(row[f"{n}_{key}"] for key in ("changed", "low", "high")), ".1%") for n in ("labels", "hallucinated")]
        lines.append(table_line([name, f"{row['rows']:.0f}", *shares, f"{row['mean_change_of_probability']:.4f}"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "padded_context.json", "data")
    parser.add_argument("--rows", type=int, default=100, help="rows of each file")
    parser.add_argument("--words", type=int, default=5000, help="words that are added to each source")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    engine, result, every = make_engine(), {}, list[Change]()
    for name in FILES:
        draw = Random(f"{args.seed}:{name}")
        rows = rows_of(args.data, name)
        texts = sorted({source(r.sample) for r in rows})
        pool = draw.sample(texts, min(POOL, len(texts)))
        changes = measured(engine, draw.sample(rows, min(args.rows, len(rows))), pool, args.words, draw)
        result[name] = summed(changes)
        every += changes
        print(f"{name:20} {result[name]['labels_changed']:.1%} of {len(changes)} labels changed", flush=True)
    result["all"] = summed(every)
    print(f"{'all':20} {result['all']['labels_changed']:.2%} of {len(every)} labels changed (goal: under {GOAL:.0%})")
    about = {"words": args.words, "seed": args.seed, "goal": GOAL, "sets": result}
    write_results(args.out, about, markdown(result, args.words))


if __name__ == "__main__":
    main()
