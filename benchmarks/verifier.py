#!/usr/bin/env python
"""The verifier alone on the twelve sets that no trivial rule solves: ROC-AUC, and balanced accuracy at one threshold.

No pipeline, no features, no fit: (source, claim) in, P(supported) out; of several windows of a source the best counts. The
threshold is chosen on held-out training sources, the same for every set. Of several folders the last is also compared with the
first: the gain on the same rows, by a paired bootstrap in which rows of one source are drawn together.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from charts import draw_learning_curve
from common import (
    Array,
    EvalRow,
    auc,
    balanced,
    interval,
    make_parser,
    ranged,
    redrawn,
    rows_of,
    source,
    table_line,
    trivial,
    write_results,
)

from knowhalu.encoder.backend import EncoderBackend
from knowhalu.encoder.external import open_verifier
from knowhalu.requests import EntailmentPair
from knowhalu.training.examples import SUPPORTED
from knowhalu.training.holdout import HeldOutRows, draw_examples
from knowhalu.training.recipes import RECIPES

SETS = """
    summedits8 wice_claim_oracle fm2 fever_symmetric_v2 bump_pairs healthver scifact qags_cnndm nli_control nli_cad_snli
    written_claims written_answers
""".split()
FITTED = (
    "FEVER dev claims", "Fool Me Twice", "WiCE", "SciFact train", "FIB summaries, edited", "written claims", "written answers",
)  # fmt: skip
"""Recipes on whose held-out examples the threshold is chosen, each with the same weight."""
DRAWS = 1000
"""Draws of the bootstrap."""


def sampled(data: Path, name: str, limit: int) -> list[EvalRow]:
    """Return up to `limit` rows of a set, the same each time; pairs of BUMP stay together."""
    rows = rows_of(data, name)
    if len(rows) <= limit:
        return rows
    step = 2 if name == "bump_pairs" else 1
    chosen = sorted(np.random.default_rng(0).permutation(len(rows) // step)[: limit // step])
    return [rows[step * i + j] for i in chosen for j in range(step)]


def scores(backend: EncoderBackend, rows: Sequence[EvalRow]) -> Array:
    """Return P(supported) of every row."""
    pairs = [EntailmentPair(source(r.sample), r.sample.response, r.sample.question) for r in rows]
    return np.array([p.supported for p in backend.score(pairs)])


def choose_threshold(backend: EncoderBackend, held: HeldOutRows, limit: int = 150) -> float:
    """Choose P(supported) with the best mean balanced accuracy over held-out training examples."""
    parts = []
    for recipe in (r for r in RECIPES if r.name in FITTED):
        examples = [e for e in islice(draw_examples(recipe, held.of), limit) if e.premise]
        probabilities = backend.score([EntailmentPair(e.premise, e.claim, e.question or None) for e in examples])
        gold = np.array([e.target == SUPPORTED for e in examples])
        if 0 < gold.sum() < gold.size:  # few unseen rows of a set may all be of one class
            parts.append((gold, np.array([p.supported for p in probabilities])))
    grid = np.arange(0.02, 0.99, 0.02)
    return float(max(grid, key=lambda g: np.mean([balanced(gold, s >= g) for gold, s in parts])))


def measured(
    folder: Path | None, tested: Mapping[str, Sequence[EvalRow]], held: HeldOutRows
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Measure one verifier on all sets; returns its results, and its scores."""
    backend = open_verifier(folder)
    threshold = choose_threshold(backend, held)
    results: dict[str, Any] = {"threshold": threshold, "sets": {}}
    scored = {name: scores(backend, rows) for name, rows in tested.items()}
    for name, rows in tested.items():
        faithful, supported, groups = np.array([r.faithful for r in rows]), scored[name], [r.group for r in rows]
        low, high = interval(lambda i, f=faithful, s=supported: auc(f[i], s[i]), groups)  # type: ignore[misc]
        results["sets"][name] = {
            "rows": len(rows), "auc": auc(faithful, supported), "low": low, "high": high,
            "balanced": balanced(faithful, supported >= threshold),
            "trivial": trivial([r.sample for r in rows], faithful, groups)[1],
        }  # fmt: skip
        print(f"{name:20} {results['sets'][name]['auc']:.3f}", flush=True)
    for key in ("auc", "balanced", "trivial"):
        results[f"mean_{key}"] = float(np.mean([s[key] for s in results["sets"].values()]))
    print(f"{'mean':20} {results['mean_auc']:.3f}  balanced {results['mean_balanced']:.3f}", flush=True)
    return results, scored


def gains(tested: Mapping[str, Sequence[EvalRow]], first: Mapping[str, Array], last: Mapping[str, Array]) -> dict[str, Any]:
    """Return the gain in ROC-AUC of the last over the first on every set, with its interval, and on their mean."""
    gold = {name: np.array([r.faithful for r in rows]) for name, rows in tested.items()}

    def gain(name: str, drawn: Any) -> float:
        return auc(gold[name][drawn], last[name][drawn]) - auc(gold[name][drawn], first[name][drawn])

    resampled = {
        name: np.array([gain(name, d) for d in redrawn([r.group for r in rows], DRAWS, np.random.default_rng(0))])
        for name, rows in tested.items()
    }
    resampled["mean"] = np.mean(list(resampled.values()), axis=0)
    value = {name: gain(name, slice(None)) for name in tested}
    value["mean"] = float(np.mean(list(value.values())))
    return {name: [value[name], *map(float, np.nanpercentile(values, [2.5, 97.5]))] for name, values in resampled.items()}


def table(results: Mapping[str, Mapping[str, Any]], gain: Mapping[str, Sequence[float]]) -> str:
    """Return a table with the sets as lines and the verifiers as columns, and the gain of the last over the first."""
    names = list(results)
    last = results[names[-1]]
    columns = [cell for name in names for cell in (name, "BA")] + ["gain"] * bool(gain)
    paired = " *Gain*: of the last verifier over the first, on the same draws." if gain else ""
    lines = [
        "ROC-AUC of P(supported), balanced accuracy (BA) at one threshold for all sets, chosen on held-out training sources. In",
        f"brackets: 95 % bootstrap interval, rows of one source drawn together.{paired}",
        "*Trivial*: length and word overlap, fitted on the very rows (5 grouped folds).", "",
        f"| set | rows | trivial | {' | '.join(columns)} |", "|---" * (3 + len(columns)) + "|",
    ]  # fmt: skip
    more = {name: [ranged(*values, spec="+.3f")] for name, values in gain.items()}
    for name in SETS:
        cells = [cell for n in names for cell in _cells(results[n]["sets"][name])]
        start = [name, str(last["sets"][name]["rows"]), f"{last['sets'][name]['trivial']:.3f}"]
        lines.append(table_line([*start, *cells, *more.get(name, ())]))
    means = [f"{results[n][f'mean_{key}']:.3f}" for n in names for key in ("auc", "balanced")]
    lines.append(table_line(["**mean**", "", f"{last['mean_trivial']:.3f}", *means, *more.get("mean", ())]))
    return "\n".join(lines) + "\n"


def _cells(row: Mapping[str, float]) -> tuple[str, str]:
    return ranged(row["auc"], row["low"], row["high"]), f"{row['balanced']:.3f}"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "verifier.json", "data", "training")
    parser.add_argument("--folder", action="append", default=[], help="NAME=FOLDER of a verifier; default: the shipped one")
    parser.add_argument("--rows", type=int, default=100_000, help="rows taken of a set, the same for every verifier")
    parser.add_argument("--curve", type=Path, help="SVG file of the learning curve; NAME is then the million tokens seen")
    args = parser.parse_args()
    chosen = dict(f.split("=", 1) for f in args.folder) or {"shipped": None}
    tested = {name: sampled(args.data, name, args.rows) for name in SETS}
    held, results, scored = HeldOutRows(args.training, args.data), {}, []
    for name, folder in chosen.items():
        results[name], of_verifier = measured(Path(folder) if folder else None, tested, held)
        scored.append(of_verifier)
    gain = gains(tested, scored[0], scored[-1]) if len(scored) > 1 else {}
    write_results(args.out, {"verifiers": results, "gain": gain}, table(results, gain))
    if args.curve:
        draw_learning_curve(args.curve, {float(name): result for name, result in results.items()}, SETS)


if __name__ == "__main__":
    main()
