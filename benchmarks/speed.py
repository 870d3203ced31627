#!/usr/bin/env python
"""Speed of the whole pipeline beside the verifier's own forward passes on the same pairs, taken in turn in one run."""

import argparse
import json
import statistics
import time
from pathlib import Path

from common import paper_pairs

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
    """Pass requests on and keep every shared call, so that the same calls can be made again without the pipeline."""

    def __init__(self, backend: EncoderBackend) -> None:
        self.backend, self.calls = backend, list[list[Entail]]()

    def answer_many(self, requests: list[Entail]) -> list[object]:
        """Answer and remember."""
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.json"))
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
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"{result['answers_per_second']:.1f} answers/s; the pipeline takes {ratio:.3f} times the verifier's own forward passes")


if __name__ == "__main__":
    main()
