#!/usr/bin/env python
"""Speed of the whole pipeline compared with the verifier's own forward passes on the same pairs, measured in turn in one run."""

import statistics
import time
from collections.abc import Sequence

from common import make_parser, paper_pairs, write_results

from knowhalu.build import build_engine
from knowhalu.encoder.backend import EncoderBackend
from knowhalu.engine.batcher import Batcher
from knowhalu.engine.engine import Backends, Engine
from knowhalu.methods.knowhalu.method import KnowHalu
from knowhalu.requests import Entail
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from knowhalu.types import Sample


class Recorder:
    """An encoder backend that records its calls, so that they can be repeated without the pipeline."""

    def __init__(self, backend: EncoderBackend) -> None:
        self.backend, self.calls = backend, list[list[Entail]]()

    def answer_many(self, requests: Sequence[Entail]) -> list[object]:
        """Answer requests and record them."""
        self.calls.append(list(requests))
        return list(self.backend.answer_many(requests))


def forward(backend: EncoderBackend, calls: list[list[Entail]]) -> float:
    """Time the verifier alone: tokenizing, batching and the model, on recorded calls."""
    start = time.perf_counter()
    for requests in calls:
        backend.answer_many(requests)
    return time.perf_counter() - start


def pipeline(engine: Engine, samples: list[Sample]) -> float:
    """Time the whole pipeline."""
    start = time.perf_counter()
    outcomes = list(engine.run(samples))
    seconds = time.perf_counter() - start
    if not all(isinstance(o, Verdict) for o in outcomes):
        raise SystemExit("a check failed; see `knowhalu detect`")
    return seconds


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "speed.json", "data")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    samples = [r.sample for r in paper_pairs(args.data, "qa")][: args.rows]

    built = build_engine(Settings())
    method, backend = built.method, EncoderBackend()
    assert isinstance(method, KnowHalu)
    recorder = Recorder(backend)
    pipeline(Engine(method, Backends(entail=recorder)), samples)
    whole, alone = [], []
    for _ in range(args.rounds):
        backend.clear_cache()
        whole.append(pipeline(Engine(method, Backends(entail=backend)), samples))
        backend.clear_cache()
        alone.append(forward(backend, recorder.calls))
    ratio = statistics.median(w / a for w, a in zip(whole, alone, strict=True))
    result = {
        "answers": len(samples), "answers_per_second": len(samples) / statistics.median(whole), "pipeline_seconds": whole,
        "forward_seconds": alone, "pipeline_over_forward": ratio, "batch_limit": Batcher(backend).limit,
    }  # fmt: skip
    write_results(args.out, result)
    print(f"{result['answers_per_second']:.1f} answers/s; the pipeline takes {ratio:.3f} times the verifier's own forward passes")


if __name__ == "__main__":
    main()
