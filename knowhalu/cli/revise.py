"""`knowhalu revise`: one text, or with -o every row of a file."""

from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from knowhalu import batch
from knowhalu.api import Reviser
from knowhalu.cli.check import EXIT_ERROR, EXIT_FAITHFUL, EXIT_HALLUCINATED, EXIT_INCONCLUSIVE, read_input_sample
from knowhalu.cli.detect import resume_hint_on_interrupt, show_progress
from knowhalu.cli.options import make_settings, with_cache, with_index, with_method, with_settings, with_text
from knowhalu.cli.show import make_console
from knowhalu.cli.show_revision import show_revision
from knowhalu.cli.tables import show_summary
from knowhalu.errors import InputError
from knowhalu.io.outcomes import format_outcome
from knowhalu.results import Failure, RevisionOutcome


@click.command()
@click.argument("item", required=False, metavar="[IN|FILE|-]")
@with_text
@with_method
@click.option("--out", "-o", "output", type=click.Path(path_type=Path), help="JSONL file for the revisions of all rows of IN.")
@with_index
@click.option("--how", help="guarded (each change is checked), conli, factored or self-correction.")
@click.option("--json", "as_json", is_flag=True, help="Print the revision as one line of JSON.")
@click.option("--restart", is_flag=True, help="With -o: start from the beginning; the old OUT is kept as OUT.old.")
@click.option("--keep-failures", is_flag=True, help="With -o: do not retry rows that failed in an earlier run.")
@with_cache
@with_settings
def revise(
    item: str | None,
    output: Path | None,
    index: Path | None,
    method: str | None,
    reasoner: str | None,
    how: str | None,
    as_json: bool,
    restart: bool,
    keep_failures: bool,
    no_cache: bool,
    settings_file: Path | None,
    pairs: tuple[str, ...],
    **given: Any,
) -> None:
    """Correct or drop what the sources do not support, and show each change with its reason and evidence.

    Give one text by options, or as one JSON object in FILE or on standard input, as to `knowhalu check`. With -o, every row of
    IN is revised into one line of OUT; as with `knowhalu detect`, a stopped job continues when the same command is run again.

    Exit code for one text: 0 the shown text is supported, 1 the revision is refused or the text still hallucinated,
    3 inconclusive, 2 an error or no revision.
    """
    all_pairs = (*pairs, f"revise.how={how}") if how is not None else pairs
    reviser = Reviser(make_settings(settings_file, all_pairs, index, no_cache=no_cache, method=method, reasoner=reasoner))
    if output is not None:
        _all(reviser, _input(item, given, as_json), output, restart=restart, keep_failures=keep_failures)
        return
    if restart or keep_failures:
        raise InputError("--restart and --keep-failures need -o OUT. Give it, or leave them out.")
    sample = read_input_sample(item, given, needs_sources=reviser.needs_sources)
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
    if outcome.after is None:
        return EXIT_HALLUCINATED
    return {True: EXIT_HALLUCINATED, False: EXIT_FAITHFUL, None: EXIT_INCONCLUSIVE}[outcome.after.hallucinated]


def _input(item: str | None, given: dict[str, Any], as_json: bool) -> Path:
    """Return the input file of a job; raises InputError where the text is given in another way."""
    if item in (None, "-") or as_json or any(given.values()):
        raise InputError("-o needs a file of rows, and neither a text by options nor --json: knowhalu revise IN -o OUT.")
    path = Path(str(item))
    if not path.is_file():
        raise InputError(f"{path}: this file does not exist. Check the path.")
    return path


def _all(reviser: Reviser, input: Path, output: Path, *, restart: bool, keep_failures: bool) -> None:
    with resume_hint_on_interrupt(output), show_progress(make_console(stderr=True)) as report:
        summary = batch.revise(reviser, input, output, restart=restart, retry_failures=not keep_failures, progress=report)
    show_summary(make_console(), summary, "revised")
    click.echo(f"revisions: {output}")
