#!/usr/bin/env python
"""Pairs of BUMP, a faithful summary and the same with one small error: how often the faithful one has the higher score, by type.

A pair of equal scores counts half; the share of such pairs is shown. *Overlap* is the share of a summary's content words that are
in the document.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import Array, EvalRow, interval, make_parser, ranged, rows_of, source, table_lines, write_results
from numpy.typing import NDArray
from quality import judged
from verifier import scores

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.methods.baselines.rules import source_overlap
from knowhalu.results import Verdict


def won(rows: Sequence[EvalRow], supported: Array) -> dict[str, Any]:
    """Return the share of pairs whose faithful side is scored higher, with its interval, and by type of error."""
    pairs: dict[str, dict[bool, int]] = defaultdict(dict)
    for i, row in enumerate(rows):
        pairs[str(row.sample.meta["pair"])][row.faithful] = i
    whole = {key: sides for key, sides in pairs.items() if len(sides) == 2}
    gain = np.array([supported[s[True]] - supported[s[False]] for s in whole.values()])
    groups = np.array([rows[s[True]].group for s in whole.values()])
    hit = (np.sign(gain) + 1) / 2
    kinds: dict[str, list[int]] = defaultdict(list)
    for number, sides in enumerate(whole.values()):
        kinds[str(rows[sides[False]].sample.meta.get("type", "?")).removesuffix(" Error")].append(number)
    return {
        "equal": float((gain == 0).mean()), **_share(hit, groups),
        "kinds": {k: _share(hit[v], groups[v]) for k, v in sorted(kinds.items()) if len(v) > 1},
    }  # fmt: skip


def _share(hit: Array, groups: NDArray[np.str_]) -> dict[str, float]:
    low, high = interval(lambda i: float(hit[i].mean()), groups.tolist())
    return {"pairs": len(hit), "won": float(hit.mean()), "low": low, "high": high}


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return a table with the types of error as lines and the scores as columns."""
    first = next(iter(results.values()))
    explanation = [
        "Share of pairs whose faithful summary is scored higher than the one with an error; equal scores count half. In",
        "brackets: 95 % bootstrap interval, pairs of one document drawn together.", "",
    ]  # fmt: skip
    rows = [
        [kind, str(part["pairs"]), *(_cell(r["kinds"][kind]) for r in results.values())] for kind, part in first["kinds"].items()
    ]
    rows.append(["**all**", str(first["pairs"]), *map(_cell, results.values())])
    lines = [*explanation, *table_lines(["type of error", "pairs", *results], rows)]
    equal = " | ".join(f"{r['equal']:.1%}" for r in results.values())
    lines.append(f"| equal scores | | {equal} |")
    return "\n".join(lines) + "\n"


def _cell(part: Mapping[str, float]) -> str:
    return ranged(part["won"], part["low"], part["high"], ".1%")


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "pairs.json", "data")
    parser.add_argument("--folder", action="append", default=[], help="NAME=FOLDER of a verifier; default: the shipped one")
    parser.add_argument("--runs", type=Path, help="folder of `knowhalu eval all`, for the whole judgment")
    args = parser.parse_args()
    rows, verdicts = rows_of(args.data, "bump_pairs"), list[Verdict]()
    if args.runs:
        rows, verdicts = judged(args.runs, "bump_pairs", rows)
    scored = {"overlap": np.array([source_overlap(r.sample.response, source(r.sample)) for r in rows])}
    for name, folder in (f.split("=", 1) for f in args.folder or ["verifier alone="]):
        scored[name] = scores(EncoderBackend(Path(folder) if folder else None), rows)
    if verdicts:
        scored["whole judgment"] = np.array([1 - v.probability for v in verdicts])
    results = {name: won(rows, values) for name, values in scored.items()}
    write_results(args.out, results, table(results))
    print(args.out.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
