"""`knowhalu eval revisions`: the figures of a finished job of `knowhalu revise`, and the export of its pairs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from knowhalu.cli.options import FILE_PATH
from knowhalu.errors import InputError

if TYPE_CHECKING:
    from knowhalu.evaluation.revisions import JudgeAccuracy

OUTPUT_PATH = click.Path(dir_okay=False, path_type=Path)
SHARE = click.FloatRange(0, 1, min_open=True)
MARKDOWN, JSON = ".md", ".json"


@click.command()
@click.argument("file", metavar="REVISIONS", type=FILE_PATH)
@click.option(
    "--rows", type=FILE_PATH, help="The rows that were revised, with references (meta.reference, or the other of a pair)."
)
@click.option("--precision", type=SHARE, help="Share of the judge's reported hallucinations that people found real.")
@click.option("--recall", type=SHARE, help="Share of the real hallucinations that the judge reports; the paper takes 1.")
@click.option(
    "--bertscore", "encoder", metavar="FOLDER",
    help="Also compute BERTScore with the encoder of this folder, or with the packaged one: minilm.",
)  # fmt: skip
@click.option("--layer", type=click.IntRange(min=1), help="Layer of the encoder for BERTScore; default: the last one.")
@click.option("--pairs", type=OUTPUT_PATH, help="JSONL file for the revised texts with their originals and critiques.")
@click.option("--out", "-o", type=OUTPUT_PATH, help="File for the figures, .md or .json.")
def revisions(
    file: Path, rows: Path | None, precision: float | None, recall: float | None, encoder: str | None, layer: int | None,
    pairs: Path | None, out: Path | None,
) -> None:  # fmt: skip
    """Evaluate REVISIONS, an output of `knowhalu revise IN -o REVISIONS`.

    Prints what became of the texts, the share that passed unchanged, hallucinations per text before and after (as reported, and
    adjusted by the judge's precision and recall), and ROUGE, BLEU and BERTScore. Nothing is revised or downloaded.
    """
    from knowhalu.cli.show import make_console
    from knowhalu.cli.tables import show_tables
    from knowhalu.evaluation.bert_score import BertScorer
    from knowhalu.evaluation.revision_report import as_json, as_markdown, make_notes, make_tables, write_pairs
    from knowhalu.evaluation.revisions import evaluate_revisions
    from knowhalu.evaluation.tables import as_json_text
    from knowhalu.io.output_files import write_text

    judge = _judge(precision, recall)
    if layer is not None and encoder is None:
        raise InputError("--layer is that of the encoder for BERTScore. Give --bertscore FOLDER too.")
    if out is not None and out.suffix not in (MARKDOWN, JSON):
        raise InputError(f"{out}: the file must end in {MARKDOWN} or {JSON}. Give another -o.")
    for path in (out, pairs):
        if path is not None and path.exists():
            raise InputError(f"{path}: the file exists. Nothing was changed. Give another name.")
    scorer = BertScorer(encoder, layer) if encoder is not None else None
    evaluation = evaluate_revisions(file, rows=rows, judge=judge, scorer=scorer)
    console = make_console()
    show_tables(console, make_tables(evaluation), ())
    for line in make_notes(evaluation):
        console.print(line, style="dim")
    if out is not None:
        write_text(out, as_json_text(as_json(evaluation)) if out.suffix == JSON else as_markdown(evaluation))
        click.echo(f"written: {out}")
    if pairs is not None:
        count = write_pairs(file, pairs, rows)
        click.echo(f"written: {pairs} ({count:,} pairs)")


def _judge(precision: float | None, recall: float | None) -> "JudgeAccuracy | None":
    """Return the accuracy of the judge; raises InputError where only one of the two is given."""
    from knowhalu.evaluation.revisions import JudgeAccuracy

    if precision is None and recall is None:
        return None
    if precision is None or recall is None:
        raise InputError("--precision and --recall adjust a number together. Give both, as measured for this judge.")
    return JudgeAccuracy(precision, recall)
