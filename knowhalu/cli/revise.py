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
@click.option("--how", help="guarded (checked again, change by change), conli, factored or self-correction.")
@click.option("--json", "as_json", is_flag=True, help="Print the revision as one line of JSON.")
@click.option("--restart", is_flag=True, help="With -o: begin anew; what OUT holds is kept beside it as OUT.old.")
@click.option("--keep-failures", is_flag=True, help="With -o: do not try rows again that failed in an earlier run.")
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
    """Mend what the sources do not bear out, and show what was changed, why, and by what evidence.

    Give one text by options, or as one JSON object in FILE or on standard input, as to `knowhalu check`. With -o, every row of
    IN is revised into one line of OUT, as by `knowhalu detect`: stopped and started again, it goes on where it was.

    Exit code for one text: 0 the text that is shown is supported, 1 it is refused or still hallucinated, 3 inconclusive, 2 an
    error or no revision.
    """
    chosen = (*pairs, f"revise.how={how}") if how is not None else pairs
    reviser = Reviser(make_settings(settings_file, chosen, index, no_cache=no_cache, method=method, reasoner=reasoner))
    if output is not None:
        _all(reviser, _input(item, given, as_json), output, restart=restart, keep_failures=keep_failures)
        return
    if restart or keep_failures:
        raise InputError("--restart and --keep-failures are for a file of rows. Give -o OUT too.")
    sample = read_input_sample(item, given, needs_sources=reviser.needs_sources)
    found = reviser.revise(sample)
    if as_json:
        click.echo(format_outcome(found).encode("utf-8"))
    else:
        show_revision(make_console(), sample, found)
    raise Exit(revision_exit_code(found))


def revision_exit_code(found: RevisionOutcome) -> int:
    """Return the exit code that tells a script what the text is worth now."""
    if isinstance(found, Failure):
        return EXIT_ERROR
    if found.after is None:
        return EXIT_HALLUCINATED
    return {True: EXIT_HALLUCINATED, False: EXIT_FAITHFUL, None: EXIT_INCONCLUSIVE}[found.after.hallucinated]


def _input(item: str | None, given: dict[str, Any], as_json: bool) -> Path:
    """Return the file of a job; raises InputError where the text is given in another way."""
    if item in (None, "-") or as_json or any(given.values()):
        raise InputError("with -o, give a file of rows and no text by options, and no --json: knowhalu revise IN -o OUT.")
    path = Path(str(item))
    if not path.is_file():
        raise InputError(f"{path}: no such file. Check the path.")
    return path


def _all(reviser: Reviser, input: Path, output: Path, *, restart: bool, keep_failures: bool) -> None:
    with resume_hint_on_interrupt(output), show_progress(make_console(stderr=True)) as report:
        summary = batch.revise(reviser, input, output, restart=restart, retry_failures=not keep_failures, progress=report)
    show_summary(make_console(), summary, "revised")
    click.echo(f"revisions: {output}")
