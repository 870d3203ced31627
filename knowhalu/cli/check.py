"""`knowhalu check`, `detect` and `revise`: check or revise one text, or every row of a file."""

import sys
from pathlib import Path
from typing import Any, NoReturn, Unpack

import click
from click.exceptions import Exit

from knowhalu.api import Checker, Reviser
from knowhalu.cli.main import EXIT_ERROR, exit_on_interrupt
from knowhalu.cli.options import (
    FILE_PATH,
    SettingOptions,
    make_settings,
    with_cache,
    with_fitted,
    with_index,
    with_method,
    with_profile,
    with_settings,
    with_text,
)
from knowhalu.cli.show import make_console, show_outcome
from knowhalu.cli.show_revision import show_revision
from knowhalu.errors import InputError
from knowhalu.io.outcomes import format_outcome
from knowhalu.io.rows import BYTE_ORDER_MARK, decode_utf8
from knowhalu.io.samples import parse_sample, read_single_sample
from knowhalu.results import Failure, Outcome, RevisionOutcome
from knowhalu.types import Sample

EXIT_FAITHFUL, EXIT_HALLUCINATED, EXIT_INCONCLUSIVE = 0, 1, 3
EXIT_CODES = {False: EXIT_FAITHFUL, True: EXIT_HALLUCINATED, None: EXIT_INCONCLUSIVE}
"""Exit codes by `hallucinated`."""
RESPONSE_OPTIONS = ("answer", "summary", "claim")
OUTPUT_PATH = click.Path(path_type=Path)


@click.command()
@click.argument("item", required=False, metavar="[FILE|-]")
@with_text
@with_method
@with_profile
@with_index
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as one line of JSON.")
@click.option("--steps", is_flag=True, help="Show every query, the retrieved passages and the knowledge from them.")
@with_cache
@with_settings
def check(item: str | None, text: dict[str, Any], as_json: bool, steps: bool, **given: Unpack[SettingOptions]) -> NoReturn:
    """Check one answer, summary or claim, and show the evidence.

    Give the text by options, or as one JSON object in FILE or on standard input (fields: question, response, documents,
    knowledge). The evidence comes from --knowledge, from --document, or else from --index.

    Exit code: 0 faithful, 1 hallucinated, 3 inconclusive, 2 an error or no verdict.
    """
    checker = Checker(make_settings(given))
    sample = read_input_sample(item, text, needs_sources=checker.needs_sources)
    outcome = checker.check(sample)
    if as_json:
        click.echo(format_outcome(outcome).encode("utf-8"))
    else:
        show_outcome(make_console(), sample, outcome, steps=steps)
    raise Exit(verdict_exit_code(outcome))


def verdict_exit_code(outcome: Outcome) -> int:
    """Return the exit code for an outcome."""
    return EXIT_ERROR if isinstance(outcome, Failure) else EXIT_CODES[outcome.hallucinated]


@click.command()
@click.argument("input", metavar="IN", type=FILE_PATH)
@click.option("--out", "-o", "output", required=True, type=OUTPUT_PATH, help="JSONL file for the outcomes.")
@with_method
@with_fitted
@with_index
@click.option("--restart", is_flag=True, help="Start from the beginning; the old OUT is kept as OUT.old.")
@click.option("--keep-failures", is_flag=True, help="Do not retry rows that got no verdict in an earlier run.")
@with_cache
@with_settings
def detect(input: Path, output: Path, restart: bool, keep_failures: bool, **given: Unpack[SettingOptions]) -> None:
    """Check every row of IN (JSONL, also gzipped, or a JSON array) and write one line for each to OUT.

    All rows are validated before the first is checked. A stopped job continues when the same command is run again. Rows have
    the fields response (or answer, summary, claim) and optionally id, question, documents, knowledge, label, kind, meta.
    """
    checker = Checker(make_settings(given))
    from knowhalu import batch
    from knowhalu.cli.tables import RESUME_HINT, show_progress, show_summary

    with exit_on_interrupt(RESUME_HINT.format(output)), show_progress(make_console(stderr=True)) as report:
        summary = batch.detect(checker, input, output, restart=restart, retry_failures=not keep_failures, progress=report)
    show_summary(make_console(), summary)
    click.echo(f"outcomes: {output}")


@click.command()
@click.argument("item", required=False, metavar="[IN|FILE|-]")
@with_text
@with_method
@click.option("--out", "-o", "output", type=OUTPUT_PATH, help="JSONL file for the revisions of all rows of IN.")
@with_index
@click.option("--how", help="guarded (each change is checked), conli, factored or self-correction.")
@click.option("--json", "as_json", is_flag=True, help="Print the revision as one line of JSON.")
@click.option("--restart", is_flag=True, help="With -o: start from the beginning; the old OUT is kept as OUT.old.")
@click.option("--keep-failures", is_flag=True, help="With -o: do not retry rows that failed in an earlier run.")
@with_cache
@with_settings
def revise(
    item: str | None, text: dict[str, Any], output: Path | None, how: str | None, as_json: bool, restart: bool,
    keep_failures: bool, **given: Unpack[SettingOptions],
) -> None:  # fmt: skip
    """Correct or drop what the sources do not support, and show each change with its reason and evidence.

    Give one text by options, or as one JSON object in FILE or on standard input, as to `knowhalu check`. With -o, every row of
    IN is revised into one line of OUT; as with `knowhalu detect`, a stopped job continues when the same command is run again.

    Exit code for one text: 0 the shown text is supported, 1 the revision is refused or the text still hallucinated,
    3 inconclusive, 2 an error or no revision.
    """
    if how is not None:
        given["pairs"] = (*given["pairs"], f"revise.how={how}")
    reviser = Reviser(make_settings(given))
    if output is not None:
        input = _input_file(item, text, as_json)
        from knowhalu import batch
        from knowhalu.cli.tables import RESUME_HINT, show_progress, show_summary

        with exit_on_interrupt(RESUME_HINT.format(output)), show_progress(make_console(stderr=True)) as report:
            summary = batch.revise(reviser, input, output, restart=restart, retry_failures=not keep_failures, progress=report)
        show_summary(make_console(), summary, "revised")
        click.echo(f"revisions: {output}")
        return
    if restart or keep_failures:
        raise InputError("--restart and --keep-failures need -o OUT. Give it, or leave them out.")
    sample = read_input_sample(item, text, needs_sources=reviser.needs_sources)
    outcome = reviser.revise(sample)
    if as_json:
        click.echo(format_outcome(outcome).encode("utf-8"))
    else:
        show_revision(make_console(), sample, outcome)
    raise Exit(revision_exit_code(outcome))


def revision_exit_code(outcome: RevisionOutcome) -> int:
    """Return the exit code for a revision."""
    if isinstance(outcome, Failure):
        return EXIT_ERROR
    return EXIT_HALLUCINATED if outcome.after is None else EXIT_CODES[outcome.after.hallucinated]


def _input_file(item: str | None, text: dict[str, Any], as_json: bool) -> Path:
    """Return the input file of a job; raises InputError where the text is given in another way."""
    if item in (None, "-") or as_json or any(text.values()):
        raise InputError("-o needs a file of rows, and neither a text by options nor --json: knowhalu revise IN -o OUT.")
    path = Path(str(item))
    if not path.is_file():
        raise InputError(f"{path}: this file does not exist. Check the path.")
    return path


def read_input_sample(item: str | None, text: dict[str, Any], *, needs_sources: bool) -> Sample:
    """Read the sample from the options, a file or standard input; raises InputError where it has no sources but needs them."""
    any_option = text["documents"] or text["knowledge"] or any(text[n] is not None for n in ("question", *RESPONSE_OPTIONS))
    if item is not None and any_option:
        raise InputError(f"{item}: give the text either as a file or by options, not both.")
    if any_option:
        sample = sample_of(text)
    elif item is None and sys.stdin.isatty():
        raise InputError("there is no text to check. Give -q and -a, --summary, --claim, or a JSON file; see --help.")
    else:
        sample = read_single_sample(_read_bytes(item or "-"), "standard input" if item in (None, "-") else str(item))
    if needs_sources and not sample.documents and not sample.knowledge:
        raise InputError(
            "there is no source to check the text against. Give --knowledge TEXT, --document FILE or --index FOLDER."
        )
    return sample


def sample_of(text: dict[str, Any]) -> Sample:
    """Make the sample of the options; raises InputError where they do not give one text."""
    responses = [f"--{name}" for name in RESPONSE_OPTIONS if text[name] is not None]
    if len(responses) != 1:
        got = " and ".join(responses) or "none"
        raise InputError(f"give exactly one of --answer, --summary, --claim (got {got}).")
    knowledge = [_read_text(k[1:]) if k.startswith("@") else k for k in text["knowledge"]]
    if [*text["documents"], *text["knowledge"]].count("-") + list(text["knowledge"]).count("@-") > 1:
        raise InputError("standard input can be read only once. Give the other texts as files.")
    documents = [{"text": _read_text(d), **({"id": Path(d).name} if d != "-" else {})} for d in text["documents"]]
    if len({d.get("id") for d in documents}) < len(documents):
        # files of the same name in two folders are distinguished by their paths
        documents = [{**d, "id": path} for d, path in zip(documents, text["documents"], strict=True)]
    return parse_sample({**text, "documents": documents, "knowledge": knowledge}, "the command line", "item")


def _read_text(file: str) -> str:
    return decode_utf8(_read_bytes(file).removeprefix(BYTE_ORDER_MARK), "standard input" if file == "-" else file)


def _read_bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}).") from error
