#!/usr/bin/env python
"""The whole check on everyday cases: the share of right verdicts by kind, of faithful and of hallucinated responses.

The cases are generated from the project's own words (tests/everyday). What claims nothing and what is not in English must be left
open, for that reason. A kind's interval resamples its pairs.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import make_parser, ranged, table_lines, write_results

from knowhalu.api import Checker
from knowhalu.encoder.options import DEFAULT_VERIFIER, EncoderOptions
from knowhalu.io.output_files import write_text
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from tests.everyday.checking import check_cases, is_right, polarity, shares
from tests.everyday.kinds import KINDS, Case, case_pairs

DRAWS = 1000
"""Draws of the bootstrap."""


def measured(cases: Sequence[Case], right: Sequence[bool]) -> dict[str, Any]:
    """Return the share of right verdicts on the cases of a kind with its interval, and those of its polarities and varieties."""
    pairs = np.array(right, float).reshape(-1, 2).mean(axis=1)
    rng = np.random.default_rng(0)
    low, high = np.quantile([rng.choice(pairs, len(pairs)).mean() for _ in range(DRAWS)], [0.025, 0.975])
    return {"right": float(pairs.mean()), "low": float(low), "high": float(high)} | {
        name: shares(cases, right, key) for name, key in (("polarity", polarity), ("variety", lambda c: c.variety))
    }


def wrong_line(verifier: str, case: Case, verdict: Verdict) -> str:
    """Return a wrongly judged case as a line of JSON."""
    features = {n: round(v, 2) for s in verdict.segments for n, v in s.base.features.items()}
    return json.dumps(
        {"verifier": verifier, **case._asdict(), "verdict": verdict.label, "probability": verdict.probability}
        | {"reason": verdict.reason, "features": features}
    )


def main() -> None:
    """Check the cases of every kind by each verifier."""
    parser = make_parser(__doc__, "everyday.json")
    parser.add_argument("--pairs", type=int, default=40, help="pairs of cases of each kind, default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="seed of the cases, default: %(default)s")
    parser.add_argument("--verifier", nargs="+", default=[DEFAULT_VERIFIER], help="verifiers, default: %(default)s")
    parser.add_argument("--wrong", type=Path, help="file for the wrongly judged cases, as JSON lines")
    args = parser.parse_args()
    results: dict[str, Any] = {}
    wrong: list[str] = []
    by_kind = {kind: [c for pair in case_pairs(kind, args.pairs, args.seed) for c in pair] for kind in KINDS}
    for verifier in args.verifier:
        checker = Checker(Settings(encoder=EncoderOptions(verifier=verifier)))
        results[verifier] = {}
        for kind, cases in by_kind.items():
            verdicts = check_cases(checker, cases)
            right = [is_right(c, v) for c, v in zip(cases, verdicts, strict=True)]
            results[verifier][kind] = measured(cases, right)
            wrong += [wrong_line(verifier, c, v) for c, v, ok in zip(cases, verdicts, right, strict=True) if not ok]
    rows = [[kind, *(ranged(*(results[v][kind][n] for n in ("right", "low", "high"))) for v in results)] for kind in KINDS]
    mean = [f"{np.mean([r['right'] for r in kinds.values()]):.3f}" for kinds in results.values()]
    table = "\n".join(table_lines(["kind", *map(str, results)], [*rows, ["**mean of the kinds**", *mean]], names=1))
    write_results(args.out, {"pairs": args.pairs, "seed": args.seed, "verifiers": results}, table + "\n")
    print(table)
    if args.wrong:
        write_text(args.wrong, "".join(f"{line}\n" for line in wrong))


if __name__ == "__main__":
    main()
