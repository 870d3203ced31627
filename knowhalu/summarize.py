"""Write summaries: every question of a file, with its papers, becomes a row with a summary for `knowhalu detect` and `revise`."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from knowhalu.batch import RunProgress
from knowhalu.build import build_summary_writer, llm_name
from knowhalu.errors import InputError
from knowhalu.io.output_files import write_text
from knowhalu.io.rows import read_json_rows
from knowhalu.io.samples import RESPONSE_FIELDS, hash_id, parse_sample
from knowhalu.methods.factored.citations import source_documents
from knowhalu.methods.revise.summary import WrittenSummary
from knowhalu.results import Failure
from knowhalu.settings import Settings
from knowhalu.types import Sample


class SummaryCounts(NamedTuple):
    """The rows of a job, those that got a summary, and the reasons why others did not."""

    rows: int
    written: int
    failures: dict[str, int]
    seconds: float


def summarize(
    settings: Settings, input: Path, output: Path, *, progress: Callable[[RunProgress], None] | None = None
) -> SummaryCounts:
    """Write a row with a summary for every question of `input`; rows without one are left out and counted.

    The file is written whole or not at all. Replies come from the reply cache where the job ran before. Raises InputError for a
    row that has no question or no papers, where `output` exists, and where no summary was written at all.
    """
    if output.exists():
        raise InputError(f"{output}: the file exists. Nothing was changed. Give another -o.")
    questions = {sample.id: sample for sample in read_questions(input)}
    engine = build_summary_writer(settings)
    writer = llm_name(settings.model_copy(update={"llm": settings.llm_of("writer")}))
    lines, failures, began = [], Counter[str](), time.perf_counter()
    with closing(engine.run(questions.values(), ordered=True)) as outcomes:
        for done, outcome in enumerate(outcomes, 1):
            if isinstance(outcome, Failure):
                failures[f"{outcome.stage}: {outcome.reason}"[:160]] += 1
            else:
                lines.append(_line(questions[outcome.id], outcome, writer))
            if progress is not None:
                failed, seconds = failures.total(), time.perf_counter() - began
                progress(RunProgress(done, len(questions), 0, failed, seconds))
    if not lines:
        raise InputError(f"{input}: no summary could be written ({next(iter(failures))}). Nothing was written.")
    write_text(output, lines)
    return SummaryCounts(len(questions), len(lines), dict(failures.most_common()), time.perf_counter() - began)


def read_questions(path: Path) -> Iterator[Sample]:
    """Yield rows with a question and papers; the question stands in for the response, which is yet to be written.

    Raises InputError naming file, line, field and remedy.
    """
    seen: set[bytes] = set()
    for place, default_id, fields in read_json_rows(path):
        given = fields if isinstance(fields, dict) else {}
        if present := [name for name in RESPONSE_FIELDS if given.get(name) is not None]:
            raise InputError(f"{place}, field {present[0]!r}: the row has a text already. Check it: knowhalu detect IN -o OUT.")
        if not given.get("question"):
            raise InputError(f"{place}, field 'question': is missing. Give the question that the summary answers.")
        sample = parse_sample({**given, "response": given["question"]}, place, default_id)
        if not source_documents(sample):
            raise InputError(f"{place}, field 'documents': is missing. Give the papers, as a list of {{title, text}}.")
        if hash_id(sample.id) in seen:
            raise InputError(f"{place}, field 'id': {sample.id!r} is the id of two rows. Give every row its own, or none.")
        seen.add(hash_id(sample.id))
        yield sample
    if not seen:
        raise InputError(f'{path}: holds no questions. Write one object on each line: {{"question": "...", "documents": [...]}}.')


def _line(sample: Sample, written: WrittenSummary, writer: str) -> str:
    """Return the row of a summary; its question moves to `meta`, since the claims of a summary are checked without it."""
    row = {
        "id": sample.id, "summary": written.summary,
        "documents": [document.model_dump() for document in source_documents(sample)],
        "meta": {**sample.meta, "question": sample.question, "written_by": writer, "cited": list(written.cited)},
    }  # fmt: skip
    return json.dumps(row, ensure_ascii=False) + "\n"
