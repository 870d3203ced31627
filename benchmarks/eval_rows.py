"""The labelled files of an evaluation folder as samples, with gold labels and the group that must not be split."""

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.datasets.loading import load_samples, open_dataset, recognise_dataset
from knowhalu.evaluation.bootstrap import group_keys, group_numbers
from knowhalu.types import Sample

CLAIM_FILES = """
    nli_cad_snli nli_control fever_symmetric_v2 fm2 feverous_sent wice_claim_oracle scifact healthver qags_cnndm summedits8
    summeval_conli begin
""".split()
PAIR_FILES = ("bump_pairs",)
WRITTEN = ("written_claims", "written_answers")


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
    found = list(load_samples(open_dataset(recognise_dataset(path) or name, path, "all")))
    numbers = group_numbers([source(s)[:200], *group_keys(s)] for s in found)
    return [EvalRow(s, s.label == "faithful", str(number)) for s, number in zip(found, numbers, strict=True)]


def source(sample: Sample) -> str:
    """Return the text that a sample is checked by."""
    return "\n".join([*(d.text for d in sample.documents), *sample.knowledge])


def paper_pairs(folder: Path, task: str, split: str = "test") -> list[EvalRow]:
    """Return the KnowHalu paper's own rows: task "qa" (given knowledge), "qa_index" (none) or "summary"."""
    name, file = ("knowhalu-summarization", "summ") if task == "summary" else ("knowhalu-qa", "qa")
    found = load_samples(open_dataset(name, folder / f"knowhalu_{file}_pairs.jsonl.gz", split))
    bare = {"knowledge": ()} if task == "qa_index" else {}
    return [EvalRow(s.model_copy(update=bare), s.label == "faithful", s.meta["pair"]) for s in found]
