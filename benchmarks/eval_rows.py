"""The labelled files of an evaluation folder as samples, with gold labels and the group that must not be split."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.datasets.loading import load, open_set
from knowhalu.types import Sample

CLAIM_FILES = """
    nli_cad_snli nli_control fever_symmetric_v2 fm2 feverous_sent wice_claim_oracle scifact healthver qags_cnndm summedits8
    summeval_conli begin
""".split()
PAIR_FILES = ("bump_pairs",)
WRITTEN = ("written_claims", "written_answers")


class EvalRow(NamedTuple):
    """A sample, whether it is faithful, and its source."""

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
    """Return the rows of one evaluation file."""
    return list(_rows(folder, name))


def _rows(folder: Path, name: str) -> Iterator[EvalRow]:
    for i, row in enumerate(read(folder / f"{name}.jsonl.gz")):
        if name in CLAIM_FILES:
            yield EvalRow(sample(f"{name}-{i}", row["source"], row["claim"]), row["label"] == "supported", row["source"][:200])
        elif name in PAIR_FILES:
            for key, faithful in (("right_summary", True), ("hallucinated_summary", False)):
                yield EvalRow(sample(f"{name}-{i}-{key[0]}", row["document"], row[key]), faithful, row["document"][:200])
        elif name == "written_claims":
            for j, c in enumerate(row["claims"]):
                yield EvalRow(sample(f"{name}-{i}-{j}", row["document"], c["text"]), c["label"] == "supported", row["id"])
        elif name == "written_answers":
            for j, a in enumerate(row["answers"]):
                made = Sample.model_validate(
                    {"id": f"{name}-{i}-{j}", "response": a["text"], "question": row["question"], "knowledge": [row["knowledge"]]}
                )
                yield EvalRow(made, a["label"] in ("correct", "refusal"), row["id"])


def paper_pairs(folder: Path, task: str, split: str = "test") -> list[EvalRow]:
    """Return the KnowHalu paper's own rows: task "qa" (given knowledge), "qa_index" (none) or "summary"."""
    name, file = ("knowhalu-summarization", "summ") if task == "summary" else ("knowhalu-qa", "qa")
    found = load(open_set(name, folder / f"knowhalu_{file}_pairs.jsonl.gz", split))
    bare = {"knowledge": ()} if task == "qa_index" else {}
    return [EvalRow(s.model_copy(update=bare), s.label == "faithful", s.meta["pair"]) for s in found]
