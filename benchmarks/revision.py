#!/usr/bin/env python
"""Revision of hallucinated summaries whose faithful twin is known: what is removed, repaired, kept, and how near it comes.

BUMP has one written error in each text, so its sentences can be followed; the KnowHalu paper's summaries are written freely,
so only texts are compared. The faithful twins are revised too: what is lost there is the price.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from eval_rows import read, sample
from metrics import interval
from revision_measures import Fate, fate, likeness, passed_but_changed, rouge_l
from revision_tables import markdown

from knowhalu.api import Reviser
from knowhalu.profiles import load_settings
from knowhalu.results import Revision

SEEN = 60
"""Pairs of BUMP (of a fixed order) that were looked at while the rules of substitution were written; see `pairs_of`."""
SETS = {"bump": "bump_pairs", "summary": "knowhalu_summ_pairs"}


class Pair(NamedTuple):
    """A document, a faithful summary of it and a hallucinated one, with the type of its error."""

    document: str
    faithful: str
    hallucinated: str
    error: str


class Revised(NamedTuple):
    """A pair, and the revisions of both of its sides."""

    pair: Pair
    wrong: Revision
    right: Revision


def pairs_of(folder: Path, name: str, limit: int) -> list[Pair]:
    """Return the pairs of a file, or a fixed sample of them; of BUMP without all pairs on documents that were seen."""
    rows = [r for r in read(folder / f"{SETS[name]}.jsonl.gz") if name == "bump" or r["split"] == "test"]
    if name == "bump":
        seen = {rows[i]["document"] for i in np.random.default_rng(0).permutation(len(rows))[:SEEN]}
        rows = [r for r in rows if r["document"] not in seen]
    if len(rows) > limit:
        rows = [rows[i] for i in sorted(np.random.default_rng(0).permutation(len(rows))[:limit])]
    return [
        Pair(r["document"], r["right_summary"], r["hallucinated_summary"], r.get("error_type", "").removesuffix(" Error"))
        for r in rows
    ]


def revised(pairs: Sequence[Pair], settings: Sequence[str]) -> tuple[list[Revised], float]:
    """Revise both sides of all pairs; returns them and texts a second."""
    reviser = Reviser(load_settings(pairs=settings))
    texts = [
        sample(f"{i}-{s}", p.document, t) for i, p in enumerate(pairs) for s, t in (("h", p.hallucinated), ("r", p.faithful))
    ]
    reviser.revise(texts[0])
    start = time.perf_counter()
    found = list(reviser.stream(texts))
    rate = len(texts) / (time.perf_counter() - start)
    for outcome in found:
        if not isinstance(outcome, Revision):
            raise SystemExit(f"a revision failed: {outcome}")
    both = [f for f in found if isinstance(f, Revision)]
    return [Revised(p, w, r) for p, w, r in zip(pairs, both[::2], both[1::2], strict=True)], rate


def measured(rows: Sequence[Revised], *, by_sentence: bool) -> dict[str, Any]:
    """Return all measures of some pairs, each with its interval; texts on one document are drawn together."""
    groups = [r.pair.document[:200] for r in rows]

    def share(part: Sequence[float], whole: Sequence[float]) -> list[float]:
        a, b = np.array(part, dtype=float), np.array(whole, dtype=float)
        metric: Callable[[Any], float] = lambda i: float(a[i].sum() / b[i].sum()) if b[i].sum() else float("nan")  # noqa: E731
        return [metric(np.arange(len(a))), *interval(metric, groups)]

    def mean(values: Sequence[float]) -> list[float]:
        return share(values, [1.0] * len(values))

    left = ["" if r.wrong.revised is None else r.wrong.revised for r in rows]
    result: dict[str, Any] = {
        "pairs": len(rows),
        "statuses": {s: sum(r.wrong.status == s for r in rows) for s in ("revised", "unchanged", "refused")},
        "twin_statuses": {s: sum(r.right.status == s for r in rows) for s in ("revised", "unchanged", "refused")},
        "passed_but_changed": sum(passed_but_changed(v) for r in rows for v in (r.wrong, r.right)),
        "rouge_l_before": mean([rouge_l(r.wrong.original, r.pair.faithful) for r in rows]),
        "rouge_l_after": mean([rouge_l(t, r.pair.faithful) for t, r in zip(left, rows, strict=True)]),
        "words_before": mean([likeness(r.wrong.original, r.pair.faithful) for r in rows]),
        "words_after": mean([likeness(t, r.pair.faithful) for t, r in zip(left, rows, strict=True)]),
        "p_before": mean([r.wrong.before.probability for r in rows]),
        "p_after": mean([r.wrong.after.probability if r.wrong.after else 0.0 for r in rows]),
        "twin_words_kept": mean([likeness(r.right.revised or "", r.pair.faithful) for r in rows]),
    }
    some = [r for r in rows if r.wrong.status == "revised"]
    for name, score in (("rouge_l", rouge_l), ("words", likeness)):
        gains = [score(r.wrong.revised or "", r.pair.faithful) - score(r.wrong.original, r.pair.faithful) for r in some]
        result[f"{name}_gain_of_revised"] = float(np.mean(gains)) if gains else float("nan")
    return result | (_by_sentence(rows, share) if by_sentence else {})


def _by_sentence(rows: Sequence[Revised], share: Callable[[Sequence[float], Sequence[float]], list[float]]) -> dict[str, Any]:
    """Return what became of the wrong sentences, of the faithful ones beside them, and of those of the faithful twins."""
    fates: list[Fate] = [fate(r.wrong, r.pair.faithful) for r in rows]
    twins = [fate(r.right, r.pair.faithful) for r in rows]
    wrong, flagged = [f.wrong for f in fates], [f.flagged for f in fates]
    mended = [f.removed + f.repaired for f in fates]
    return {
        "wrong_sentences": sum(wrong),
        "flagged": share(flagged, wrong),
        "removed": share([f.removed for f in fates], wrong),
        "repaired": share([f.repaired for f in fates], wrong),
        "altered": share([f.altered for f in fates], wrong),
        "removed_or_repaired": share(mended, wrong),
        "repaired_of_flagged": share([f.repaired for f in fates], flagged),
        "faithful_kept": share([f.kept for f in fates], [f.faithful for f in fates]),
        "twin_kept": share([f.kept for f in twins], [f.faithful for f in twins]),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--only", nargs="*", choices=[*SETS], default=[*SETS])
    parser.add_argument("--limit", type=int, default=100_000, help="pairs of each set at most")
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/revision.json"))
    args = parser.parse_args()
    result: dict[str, Any] = {}
    for name in args.only:
        rows, rate = revised(pairs_of(args.data, name, args.limit), args.pairs)
        by_sentence = name == "bump"
        types = sorted({r.pair.error for r in rows} - {""})
        result[name] = {"all": measured(rows, by_sentence=by_sentence) | {"texts_per_second": rate}} | {
            t: measured([r for r in rows if r.pair.error == t], by_sentence=by_sentence) for t in types
        }
        print(f"{name}: {len(rows)} pairs, {rate:.1f} texts/s", flush=True)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(result, indent=1) + "\n")
    table = markdown(result)
    args.out.with_suffix(".md").write_text(table)
    print(table)
    changed = sum(part["all"]["passed_but_changed"] for part in result.values())
    if changed:
        raise SystemExit(f"{changed} sentences changed that the detector had passed")


if __name__ == "__main__":
    main()
