#!/usr/bin/env python
"""Speed, memory and cold start of the verifiers `small` and `base`, and of `base` with `small` for single sentences.

Each is run in a process of its own, in turn, for several rounds: from the start of Python to the first verdict, then answers with
given knowledge one after the other and all at once. Quality is compared by `set_by_set.py`.
"""

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from common import make_parser, rows_of, table_line, write_results

SIZES = {"small": ("small", "same"), "base": ("base", "same"), "base with small": ("base", "small")}
"""Verifier and verifier of single sentences, by name."""
SOURCES = ("knowhalu_qa_pairs", "expertqa_dev")
MEBIBYTE_OF_KIB = 1024


def measured(verifier: str, sentences: str, data: Path, count: int, started: float) -> dict[str, float]:
    """Measure one size in this process; the cold start counts from when the process was `started`."""
    from knowhalu.api import Checker
    from knowhalu.encoder.options import EncoderOptions
    from knowhalu.settings import Settings

    checker = Checker(Settings(encoder=EncoderOptions.model_validate({"verifier": verifier, "sentences": sentences})))
    checker.check(response="The mill opened in 1950.", knowledge=["The mill opened in 1950."]).unwrap()
    figures = {"cold": time.time() - started}
    for name in SOURCES:
        samples = [r.sample for r in Random(0).sample(rows_of(data, name), count)]
        start = time.perf_counter()
        list(checker.stream(samples))
        figures[name] = count / (time.perf_counter() - start)
    return figures | {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEBIBYTE_OF_KIB}


def in_process(name: str, data: Path, count: int) -> dict[str, float]:
    """Measure one size in a process of its own."""
    command = [sys.executable, __file__, "--data", str(data), "--rows", str(count), "--only", name, "--started", str(time.time())]
    found: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )
    return found


def table(results: dict[str, Sequence[dict[str, float]]]) -> str:
    """Return a table of the medians, with the least and the most of the speeds."""
    lines = [
        "| verifier | cold start (s) | QA answers/s | claims with web evidence/s | memory (MB) |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, rounds in results.items():
        cells = [name, f"{statistics.median(r['cold'] for r in rounds):.1f}"]
        for source in SOURCES:
            speeds = [r[source] for r in rounds]
            cells.append(f"{statistics.median(speeds):.1f} ({min(speeds):.1f}, {max(speeds):.1f})")
        lines.append(table_line([*cells, f"{max(r['memory'] for r in rounds):,.0f}"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "sizes.json", "data")
    parser.add_argument("--rows", type=int, default=40, help="rows of each set")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=SIZES, help="measure this one in this process")
    parser.add_argument("--started", type=float, help="time at which this process was started")
    args = parser.parse_args()
    if args.only:
        print(json.dumps(measured(*SIZES[args.only], args.data, args.rows, args.started)))
        return
    results: dict[str, Any] = {name: [] for name in SIZES}
    for _ in range(args.rounds):
        for name in SIZES:
            results[name].append(in_process(name, args.data, args.rows))
            print(name, results[name][-1], flush=True)
    write_results(args.out, {"rows": args.rows, "sizes": results}, table(results))
    print(table(results))


if __name__ == "__main__":
    main()
