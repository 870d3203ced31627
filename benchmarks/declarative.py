#!/usr/bin/env python
"""The verifier alone on questions and answers: as they are, as one statement, and by the mean and the maximum of both.

No judgment is fitted and no threshold set: the score is the verifier's log-odds of support. A question and answer that cannot
be stated keep their raw score. Beside every figure stands what the length of the answer alone tells.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from eval_rows import EvalRow, paper_pairs, rows_of, source
from metrics import Array, auc, interval
from tables import write_results

from knowhalu.declarative import declarative
from knowhalu.encoder.service import EncoderBackend
from knowhalu.reasoners.features import logit
from knowhalu.reasoners.reading import JOINT_WORDS
from knowhalu.reasoners.window import Source, window
from knowhalu.steps import Hypothesis

WAYS = ("raw", "declarative", "mean", "maximum")
NEAR = 2
"""Words by which the two answers of a length-matched pair differ at most."""
_HEAD = """\
ROC-AUC of the verifier alone, its log-odds of support, on questions with answers. *Declarative*: question and answer as one
statement, raw where they cannot be stated. In brackets: 95 % bootstrap interval, rows of one pair or source drawn together.
*Gain*: mean less raw, on the same draws. *Length*: the AUC of "the shorter, the truer". Where a set has more rows, whole pairs
or sources were drawn.

| set | rows | stated | raw | declarative | mean | maximum | gain of the mean | length |
|---|---|---|---|---|---|---|---|---|"""


def premise(row: EvalRow) -> str:
    """Return the stretch of a long source that shares most words with question and answer; a short source as it is."""
    whole = source(row.sample)
    asked = f"{row.sample.question or ''} {row.sample.response}"
    found = window(asked, [Source(whole, [(0, len(whole))])], JOINT_WORDS) if row.sample.documents else None
    return whole if found is None else found[1].text


def matched(rows: list[EvalRow]) -> list[EvalRow]:
    """Keep the pairs whose answers are about as long as each other."""
    words = [len(r.sample.response.split()) for r in rows]
    return [rows[i] for p in range(0, len(rows), 2) if abs(words[p] - words[p + 1]) <= NEAR for i in (p, p + 1)]


def drawn(rows: list[EvalRow], limit: int) -> list[EvalRow]:
    """Draw whole groups until there are `limit` rows, always the same ones."""
    groups = list(dict.fromkeys(r.group for r in rows))
    kept: set[str] = set()
    count = 0
    for i in np.random.default_rng(0).permutation(len(groups)):
        if count >= limit:
            break
        kept.add(groups[i])
        count += sum(r.group == groups[i] for r in rows)
    return [r for r in rows if r.group in kept]


def scored(rows: list[EvalRow], backend: EncoderBackend) -> tuple[dict[str, Array], float]:
    """Return the scores of every row by every way, and the share of rows that could be stated."""
    premises = [premise(r) for r in rows]
    told = [declarative(r.sample.question or "", r.sample.response) for r in rows]
    pairs = [Hypothesis(p, r.sample.response, r.sample.question) for p, r in zip(premises, rows, strict=True)]
    pairs += [Hypothesis(p, t) for p, t in zip(premises, told, strict=True) if t is not None]
    found = iter(logit(p.supported) for p in backend.score(pairs))
    raw = np.array([next(found) for _ in rows])
    stated = np.array([raw[i] if t is None else next(found) for i, t in enumerate(told)])
    scores = {"raw": raw, "declarative": stated, "mean": (raw + stated) / 2, "maximum": np.maximum(raw, stated)}
    return scores, sum(t is not None for t in told) / len(told)


def measured(rows: list[EvalRow], backend: EncoderBackend) -> dict[str, object]:
    """Return the figures of one set with their intervals."""
    faithful, groups = np.array([r.faithful for r in rows]), [r.group for r in rows]
    scores, stated = scored(rows, backend)

    def ranged(metric: Callable[[np.ndarray], float]) -> list[float]:  # type: ignore[type-arg]
        return [round(v, 4) for v in (metric(np.arange(len(rows))), *interval(metric, groups))]

    def by(way: str) -> Callable[[np.ndarray], float]:  # type: ignore[type-arg]
        return lambda i: auc(faithful[i], scores[way][i])

    length = -np.array([float(len(r.sample.response.split())) for r in rows])
    return {
        "rows": len(rows), "stated": round(stated, 4), **{w: ranged(by(w)) for w in WAYS},
        "gain": ranged(lambda i: by("mean")(i) - by("raw")(i)), "length": ranged(lambda i: auc(faithful[i], length[i])),
    }  # fmt: skip


def markdown(found: dict[str, dict[str, object]]) -> str:
    """Lay out the table."""
    lines = [_HEAD]
    for name, row in found.items():
        cells = [f"{v[0]:.3f} [{v[1]:.3f}, {v[2]:.3f}]" for w in (*WAYS, "gain", "length") if isinstance(v := row[w], list)]
        lines.append(f"| {name} | {row['rows']} | {row['stated']:.1%} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--rows", type=int, default=100_000, help="rows drawn of each set")
    parser.add_argument("--folder", type=Path, help="a verifier's folder; left out: the packaged one")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/declarative.json"))
    args = parser.parse_args()
    pairs = paper_pairs(args.data, "qa")
    sets = {"knowhalu_qa_pairs, test": pairs, "knowhalu_qa_pairs, test, length-matched": matched(pairs)}
    sets["written_answers"] = rows_of(args.data, "written_answers")
    backend = EncoderBackend(args.folder, threads=args.threads)
    found = {name: measured(drawn(rows, args.rows), backend) for name, rows in sets.items()}
    write_results(args.out, found, markdown(found))
    print(markdown(found))


if __name__ == "__main__":
    main()
