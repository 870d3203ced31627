#!/usr/bin/env python
"""Every method that works with the encoder over labelled sets, beside the trivial rules: figures with intervals, tests, cost.

Stopped and started again, it goes on where it was: the outcomes stay in --work, one folder for each set.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from knowhalu.datasets.loading import open_set
from knowhalu.evaluation.dataset import Evaluation, evaluate
from knowhalu.evaluation.dataset_report import as_json, markdown
from knowhalu.evaluation.report import percent, title_of
from knowhalu.evaluation.specs import parse_specs
from knowhalu.evaluation.subsets import LENGTH_MATCHED
from knowhalu.names import METHODS

SPECS = (
    "knowhalu:encoder",
    "conli-both=conli:encoder[levels=both]",
    "conli-sentence=conli:encoder[levels=sentence]",
    "conli-entity=conli:encoder[levels=entity]",
    "factored-product=factored:encoder[rule=product]",
    "factored-minimum=factored:encoder[rule=minimum]",
    "factored-geometric=factored:encoder[rule=geometric]",
    "factored-calibrated=factored:encoder[rule=calibrated]",
)
"""What is compared; a method with the encoder that is not named here takes part as it is."""
LEFT_OUT = ("factored-academic", "selfcheck")
"""Methods that have nothing to do on these sets: no row has citations, and none has further responses of its model."""
SETS = {
    "qags": "qags_cnndm", "summeval": "summeval_conli", "summedits": "summedits8", "bump": "bump_pairs",
    "knowhalu-qa": "knowhalu_qa_pairs", "knowhalu-summarization": "knowhalu_summ_pairs",
}  # fmt: skip
"""Data sets, and their files in the folder."""
SHOWN = {"macro_f1": "Macro F1", "balanced": "Balanced accuracy", "auc": "ROC-AUC"}


def specs() -> list[str]:
    """Return what is compared."""
    named = {spec.method for spec in parse_specs(SPECS)} | set(LEFT_OUT)
    return [*SPECS, *(f"{n}:encoder" for n, card in METHODS.items() if "encoder" in card.reasoners and n not in named)]


def run(data: Path, name: str, work: Path, limit: int | None, pairs: list[str]) -> Evaluation:
    """Compare all methods on one set."""
    path, said = data / f"{SETS[name]}.jsonl.gz", dict[str, int]()

    def progress(method: str, p: Any) -> None:
        if p.done == p.total or p.done - said.get(method, 0) >= 200:
            said[method] = p.done
            print(f"{name}: {method}: {p.done} of {p.total}, {p.rate:.1f}/s", flush=True)

    return evaluate(open_set(name, path), path, parse_specs(specs()), work / name, pairs=pairs, limit=limit, progress=progress)


def overview(found: Mapping[str, Evaluation]) -> str:
    """Lay out methods against sets and their length-matched rows, for each figure that is shown."""
    results = {name: {r.name: (title_of(r), r.figures) for r in e.comparison.results} for name, e in found.items()}
    for name, e in found.items():
        matched = [s for s in e.subsets if s.name == LENGTH_MATCHED]
        results |= {f"{name}, {s.name}": {r.name: (r.name, r.figures) for r in s.results} for s in matched}
    parts = []
    for figure, title in SHOWN.items():
        lines = [f"| {title} | {' | '.join(results)} |\n|---|{'---:|' * len(results)}"]
        for name in dict.fromkeys(name for by_name in results.values() for name in by_name):
            cells = [percent(by_name[name][1][figure]) if name in by_name else "-" for by_name in results.values()]
            mark = "*" if any(by_name[name][0] != name for by_name in results.values() if name in by_name) else ""
            lines.append(f"| {name}{mark} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    note = "In percent, in brackets the 95 % bootstrap interval. *: fitted on the very rows where a set has no validation split."
    return "\n\n".join([*parts, note])


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the evaluation files")
    parser.add_argument("--only", nargs="*", choices=tuple(SETS), help="sets; default: all")
    parser.add_argument("--limit", type=int, help="rows of a set at most")
    parser.add_argument("--work", type=Path, default=Path(".runs/methods"), help="folder for the outcomes")
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/methods.json"))
    args = parser.parse_args()
    found: dict[str, Evaluation] = {}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    for name in args.only or SETS:
        found[name] = run(args.data, name, args.work, args.limit, args.pairs)
        sections = [overview(found), *(f"##{markdown(e).rstrip()}" for e in found.values())]
        args.out.write_text(json.dumps({n: as_json(e) for n, e in found.items()}, indent=1) + "\n", encoding="utf-8")
        args.out.with_suffix(".md").write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    print(overview(found))


if __name__ == "__main__":
    main()
