#!/usr/bin/env python
"""A language model behind an OpenAI-compatible server, with KnowHalu and with other methods, on the same rows of several sets.

One run of KnowHalu by both forms of knowledge gives three lines: each form alone, and both together. The other methods are the
judge by one prompt, HaluEval's judge with knowledge, Factored Verification, CoNLI, the encoder, and the cascade from the encoder
to the model; beside them are the trivial rules. Of a set of pairs, half of the rows are length-matched where it has so many.

Outcomes stay in `--work`, one folder for each set, so the same command continues an interrupted run. Replies are not cached, so
that calls, tokens and seconds are those of every check; `--set engine.in_flight=1` checks one text after another.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import DEVELOPMENT, make_parser, table_lines, write_results

from knowhalu.datasets.card import DatasetCard
from knowhalu.datasets.catalog import dataset_card
from knowhalu.datasets.loading import VALIDATION, load_samples, open_dataset, recognise_dataset
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate, group_keys, group_numbers
from knowhalu.evaluation.compare import MethodResult
from knowhalu.evaluation.dataset import DatasetEvaluation, FitSource, evaluate_dataset
from knowhalu.evaluation.labelled_rows import write_samples
from knowhalu.evaluation.past_runs import metrics_by_form, read_past_run
from knowhalu.evaluation.result_tables import write_results as write_comparison
from knowhalu.evaluation.runs import parse_specs
from knowhalu.evaluation.slices import LENGTH_MATCHED, length_matched, matching_features
from knowhalu.evaluation.tables import format_cost, format_percent
from knowhalu.io.rows import read_json_rows
from knowhalu.io.samples import SAMPLE_FIELDS, parse_sample
from knowhalu.types import KnowledgeForm, Sample

METHODS = {
    "knowhalu": "knowhalu-both=knowhalu:llm[second_opinion=always]",
    "judge": "few-shot:llm",
    "halueval": "halueval-knowledge:llm",
    "factored": "factored:llm",
    "conli": "conli:llm",
    "encoder": "knowhalu:encoder",
    "cascade": "cascade:llm",
}
"""The compared methods by a short name; the first one is what the others are tested against."""
SETS = ("knowhalu_qa_pairs", "knowhalu_summ_pairs", *DEVELOPMENT)
"""Files of the evaluation data that are measured by default."""
OWN_ROWS = "samples"
"""The data set of rows as `knowhalu detect` takes them."""
RULES = ("trivial-length", "trivial-overlap", "trivial-novelty")
FIGURES = {"tpr": "right on hallucinated", "tnr": "right on faithful", "average": "Avg Acc", "inconclusive": "INCONCLUSIVE"}
COSTS = {"calls": "calls", "prompt_tokens": "prompt tokens", "cached_tokens": "cached tokens", "seconds": "seconds"}


class Line(NamedTuple):
    """A line of the table: metrics of a method, the rows that have them, failures, and what a check costs on average."""

    method: str
    rows: int
    figures: Mapping[str, Estimate]
    failures: int = 0
    cost: Mapping[str, float | None] = {}
    matched: Estimate = Estimate(None)
    sequential: bool = False


def read(path: Path) -> tuple[DatasetCard, list[Sample]]:
    """Return the card and the samples of a data set, or of a file of labelled rows, whose further fields go into `meta`."""
    if (kind := recognise_dataset(path)) not in (None, OWN_ROWS):
        source = open_dataset(kind, path)
        return source.card, list(load_samples(source))
    samples = []
    for place, name, fields in read_json_rows(path):
        further = {key: value for key, value in fields.items() if key not in SAMPLE_FIELDS}
        known = {key: value for key, value in fields.items() if key not in further}
        samples.append(parse_sample({**known, "meta": {**fields.get("meta", {}), **further}}, place, name))
    return dataset_card(OWN_ROWS), samples


def chosen(card: DatasetCard, samples: Sequence[Sample], limit: int) -> list[Sample]:
    """Return so many rows in a fixed random order of their groups: half of them length-matched, where a set has pairs."""
    features = matching_features(samples)
    matched = set(length_matched(card, features).tolist()) if features.are_paired else set()
    groups = group_numbers(group_keys(s) for s in samples)
    rank = np.random.default_rng(0).permutation(int(groups.max()) + 1)[groups]
    order = np.argsort(rank, kind="stable").tolist()
    alike = [i for i in order if i in matched][: limit // 4 * 2]
    rest = [i for i in order if i not in matched][: limit - len(alike)]
    return [samples[i] for i in sorted((*alike, *rest))]


def validation(card: DatasetCard, path: Path, target: Path) -> Path | None:
    """Write the rows that the trivial rules are fitted on; None where the set has no validation split."""
    if card.name == OWN_ROWS:
        return None
    try:
        return write_samples(load_samples(open_dataset(card, path, VALIDATION[0])), target)
    except InputError:
        return None


def evaluated(path: Path, work: Path, args: Any) -> DatasetEvaluation:
    """Run all methods on the chosen rows of one file, or continue to; write the comparison into its folder."""
    name = path.name.partition(".")[0]
    own, samples = read(path)
    rows = write_samples(chosen(own, samples, args.rows), work / f"{name}.jsonl")
    fit = validation(own, path, work / f"{name}.validation.jsonl")
    card = dataset_card(OWN_ROWS).model_copy(update={"name": name, "task": own.task})
    pairs = [f'llm.url="{args.url}"', "llm.cache=false", *([f'llm.model="{args.model}"'] if args.model else []), *args.pairs]
    reported: dict[str, int] = {}

    def progress(method: str, p: Any) -> None:
        if p.done == p.total or p.done - reported.get(method, 0) >= 10:
            reported[method] = p.done
            print(f"{name}: {method}: {p.done} of {p.total}", flush=True)

    evaluation = evaluate_dataset(
        open_dataset(card, rows), rows, parse_specs(METHODS[m] for m in args.methods), work / name,
        fit=FitSource(fit) if fit else None, pairs=pairs, progress=progress,
    )  # fmt: skip
    write_comparison(evaluation, work / name)
    return evaluation


def lines(evaluation: DatasetEvaluation, folder: Path) -> Iterator[Line]:
    """Yield the line of every method and rule, and of each form of knowledge alone."""
    matched = next((s for s in evaluation.subsets if s.name == LENGTH_MATCHED), None)
    run = read_past_run(folder)
    for result in evaluation.comparison.results:
        if result.name not in (*evaluation.asked, *RULES):
            continue
        alike = matched.of(result.name) if matched else None
        if result.method == "knowhalu" and "knowhalu.second_opinion=always" in result.settings:
            (past,) = [r for r in run.results if r.name == result.name and r.whole]
            for form in KnowledgeForm:
                if (alone := metrics_by_form(run, past, form)) is not None:
                    yield Line(
                        f"{result.method}:{result.reasoner}, {form}", alone[1], alone[0], evaluation.comparison.rows - alone[1]
                    )
        yield Line(
            _title(result), result.rows, result.figures, sum(result.failures.values()), result.cost,
            alike.figures["average"] if alike else Estimate(None), result.sequential,
        )  # fmt: skip
    yield Line("always hallucinated", evaluation.comparison.rows, {
        name: Estimate(value) for name, value in {"tpr": 1.0, "tnr": 0.0, "average": 0.5, "inconclusive": 0.0}.items()
    })  # fmt: skip


def _title(result: MethodResult) -> str:
    both = ", both forms" if "knowhalu.second_opinion=always" in result.settings else ""
    return f"{result.method}:{result.reasoner}{both}" if result.reasoner else result.title


def table(by_set: Mapping[str, Sequence[Line]]) -> str:
    """Return one table of all sets."""
    head = ["set", "method", "rows", *FIGURES.values(), "Avg Acc, length-matched", "failures", *COSTS.values()]
    rows = [
        [
            name, line.method, str(line.rows), *(format_percent(line.figures[figure]) for figure in FIGURES),
            format_percent(line.matched), str(line.failures), *(format_cost(cost, line.cost.get(cost)) for cost in COSTS),
        ]
        for name, of_set in by_set.items() for line in of_set
    ]  # fmt: skip
    note = (
        "In percent, with 95 % bootstrap intervals; calls, tokens and seconds for each check. A text that is left open is right "
        "for neither label. A form of knowledge alone is of the run by both forms, whose cost is in their line."
    )
    return "\n".join([*table_lines(head, rows, names=2), "", note]) + "\n"


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "real_model.json", "data")
    parser.add_argument("--url", required=True, help="address of the server, such as http://127.0.0.1:8000/v1")
    parser.add_argument("--model", default="", help="name of the model, where the server has several")
    parser.add_argument("--sets", nargs="*", default=list(SETS), help="names of files in --data, default: %(default)s")
    parser.add_argument("--file", nargs="*", type=Path, default=[], help="further files of labelled rows")
    parser.add_argument("--rows", type=int, default=200, help="rows of a set at most, default: %(default)s")
    parser.add_argument("--methods", nargs="*", choices=tuple(METHODS), default=list(METHODS), help="methods, default: all")
    parser.add_argument("--work", type=Path, default=Path(".runs/real_model"), help="folder for the outcomes")
    parser.add_argument("--set", dest="pairs", action="append", default=[], help="a setting, as for knowhalu compare")
    args = parser.parse_args()
    by_set: dict[str, list[Line]] = {}
    model = ""
    for path in (*(args.data / f"{name}.jsonl.gz" for name in args.sets), *args.file):
        name = path.name.partition(".")[0]
        by_set[name] = list(lines(evaluated(path, args.work, args), args.work / name))
        makers = {r.maker for r in read_past_run(args.work / name).results if r.maker.startswith("llm:")}
        model = next(iter(sorted(makers)), model)
        fields = {name: [_fields(line) for line in of_set] for name, of_set in by_set.items()}
        write_results(args.out, {"model": model, "methods": {m: METHODS[m] for m in args.methods}, "sets": fields}, table(by_set))
    print(model, table(by_set), sep="\n\n")


def _fields(line: Line) -> dict[str, Any]:
    figures = {name: line.figures[name]._asdict() for name in FIGURES}
    return {**line._asdict(), "figures": figures, "cost": dict(line.cost), "matched": line.matched._asdict()}


if __name__ == "__main__":
    main()
