"""What the benchmarks share: options, labelled rows with their groups, metrics with intervals, and files of results."""

import argparse
import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from knowhalu.datasets.loading import load_samples, open_dataset, recognise_dataset
from knowhalu.evaluation.bootstrap import group_keys, group_numbers
from knowhalu.io.output_files import write_text
from knowhalu.text.overlap import coverage
from knowhalu.types import Sample

CLAIM_FILES = """
    nli_cad_snli nli_control fever_symmetric_v2 fm2 feverous_sent wice_claim_oracle scifact healthver qags_cnndm summedits8
    summeval_conli begin
""".split()
PAIR_FILES = ("bump_pairs",)
WRITTEN = ("written_claims", "written_answers")
DEVELOPMENT = ("expertqa_dev", "factcheckgpt_dev")
"""Sets to develop with: sentences of long answers, and claims of answers, with what a search of the web found."""
RESULTS = Path("benchmarks/results")
FOLDERS = {
    "data": "folder with the evaluation files",
    "training": "folder with the training files",
    "runs": "folder that `knowhalu eval all` left",
}
"""Folders that several benchmarks read, and their help texts."""
Array = NDArray[np.float64]


def make_parser(doc: str | None, result: str, *folders: str) -> argparse.ArgumentParser:
    """Return a parser with the option `--out`, a file of `RESULTS` by default, and those of `FOLDERS` that are required."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in folders:
        parser.add_argument(f"--{name}", type=Path, required=True, help=FOLDERS[name])
    parser.add_argument("--out", type=Path, default=RESULTS / result, help="file of the results, default: %(default)s")
    return parser


class EvalRow(NamedTuple):
    """A sample, whether it is faithful, and its group: rows of one group are not independent."""

    sample: Sample
    faithful: bool
    group: str


def read(path: Path) -> list[dict[str, Any]]:
    """Read gzipped JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def sample(key: str, source: str, response: str, question: str | None = None) -> Sample:
    """Make a sample; a source of more than 120 words is searched as a document, a shorter one is read whole."""
    long = len(source.split()) > 120
    return Sample.model_validate(
        {"id": key, "response": response, "question": question, "documents" if long else "knowledge": [source]}
    )


def rows_of(folder: Path, name: str) -> list[EvalRow]:
    """Return the rows of one evaluation file, of all its splits; sources that begin alike are one group, and so is a claim."""
    path = folder / f"{name}.jsonl.gz"
    samples = list(load_samples(open_dataset(recognise_dataset(path) or name, path, "all")))
    numbers = group_numbers([source(s)[:200], *group_keys(s)] for s in samples)
    return [EvalRow(s, s.label == "faithful", str(number)) for s, number in zip(samples, numbers, strict=True)]


def source(sample: Sample) -> str:
    """Return the text that a sample is checked against."""
    return "\n".join([*(d.text for d in sample.documents), *sample.knowledge])


def paper_pairs(folder: Path, task: str, split: str = "test") -> list[EvalRow]:
    """Return the KnowHalu paper's own rows: task "qa" or "summary"."""
    name, file = ("knowhalu-summarization", "summ") if task == "summary" else ("knowhalu-qa", "qa")
    samples = load_samples(open_dataset(name, folder / f"knowhalu_{file}_pairs.jsonl.gz", split))
    return [EvalRow(s, s.label == "faithful", s.meta["pair"]) for s in samples]


def redrawn(groups: Sequence[str], draws: int, rng: np.random.Generator) -> Iterator[NDArray[np.intp]]:
    """Yield `draws` resamples of the groups with replacement, as row numbers; all rows of a group are drawn together."""
    numbers: dict[str, list[int]] = {}
    for i, g in enumerate(groups):
        numbers.setdefault(g, []).append(i)
    members = [np.array(m) for m in numbers.values()]
    for _ in range(draws):
        yield np.concatenate([members[j] for j in rng.integers(0, len(members), len(members))])


def interval(
    metric: Callable[[NDArray[np.intp]], float], groups: Sequence[str], draws: int = 1000, seed: int = 0
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a metric over row numbers; rows of one group are drawn together."""
    values = [metric(drawn) for drawn in redrawn(groups, draws, np.random.default_rng(seed))]
    low, high = np.nanpercentile(values, [2.5, 97.5])
    return float(low), float(high)


def auc(faithful: NDArray[np.bool_], scores: Array) -> float:
    """Return the ROC-AUC of faithful against hallucinated rows; NaN where one class is missing."""
    return float(roc_auc_score(faithful, scores)) if 0 < faithful.sum() < len(faithful) else float("nan")


def balanced(faithful: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> float:
    """Return the balanced accuracy; NaN where one class is missing."""
    return float(balanced_accuracy_score(faithful, predicted)) if 0 < faithful.sum() < len(faithful) else float("nan")


FOLDS = 5


def trivial(samples: Sequence[Sample], faithful: NDArray[np.bool_], groups: Sequence[str]) -> tuple[float, float]:
    """Return balanced accuracy and AUC of a logistic regression on length and word overlap (5 grouped folds of these rows).

    Both are NaN where a sample has fewer groups than folds.
    """
    if len(set(groups)) < FOLDS:
        return float("nan"), float("nan")
    features = []
    for sample in samples:
        words, text = len(sample.response.split()), " ".join([*(d.text for d in sample.documents), *sample.knowledge])
        features.append([words, np.log1p(words), coverage(sample.response, text), len(text.split())])
    x = np.array(features)
    scores = np.zeros(len(samples))
    for train, test in GroupKFold(FOLDS).split(x, faithful, groups):
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced")).fit(x[train], faithful[train])
        scores[test] = model.predict_proba(x[test])[:, 1]
    return balanced(faithful, scores >= 0.5), auc(faithful, scores)


def length_rule(train: tuple[Array, NDArray[np.bool_]], test: tuple[Array, NDArray[np.bool_]]) -> tuple[float, float]:
    """Fit "more than n words is hallucinated" on one split; return n and the average accuracy on the other."""
    lengths, faithful = train
    best = max(sorted({float(v) for v in lengths}), key=lambda n: balanced(faithful, lengths <= n))
    return best, balanced(test[1], test[0] <= best)


def ranged(value: float, low: float, high: float, spec: str = ".3f") -> str:
    """Return a figure with its interval."""
    return f"{value:{spec}} [{low:{spec}}, {high:{spec}}]"


def table_line(cells: Iterable[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table_lines(head: Sequence[str], rows: Iterable[Iterable[str]], names: int | None = None) -> list[str]:
    """Return the lines of a Markdown table; columns after the first `names` are aligned right, none without."""
    left = len(head) if names is None else names
    return [table_line(head), "|" + "---|" * left + "---:|" * (len(head) - left), *map(table_line, rows)]


def write_results(path: Path, results: Any, table: str | None = None) -> None:
    """Write results as JSON, and their table, if there is one, as Markdown beside it."""
    write_text(path, json.dumps(results, indent=1) + "\n")
    if table is not None:
        write_text(path.with_suffix(".md"), table)
