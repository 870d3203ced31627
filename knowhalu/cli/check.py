"""`knowhalu check`: one text, from the arguments, a file or standard input."""

import sys
from pathlib import Path
from typing import Any, NoReturn

import click
from click.exceptions import Exit

from knowhalu.api import Checker
from knowhalu.cli.options import make_settings, with_cache, with_index, with_method, with_profile, with_settings, with_text
from knowhalu.cli.show import make_console, show_outcome
from knowhalu.errors import InputError
from knowhalu.io.outcomes import format_outcome
from knowhalu.io.rows import BYTE_ORDER_MARK, decode_utf8
from knowhalu.io.samples import parse_sample, read_single_sample
from knowhalu.results import Failure, Outcome
from knowhalu.types import Sample

EXIT_FAITHFUL, EXIT_HALLUCINATED, EXIT_ERROR, EXIT_INCONCLUSIVE = 0, 1, 2, 3
RESPONSE_OPTIONS = ("answer", "summary", "claim")


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
def check(
    item: str | None,
    index: Path | None,
    as_json: bool,
    steps: bool,
    method: str | None,
    reasoner: str | None,
    profile: Path | None,
    no_cache: bool,
    settings_file: Path | None,
    pairs: tuple[str, ...],
    **given: Any,
) -> NoReturn:
    """Check one answer, summary or claim, and show the evidence.

    Give the text by options, or as one JSON object in FILE or on standard input (fields: question, response, documents,
    knowledge). The evidence comes from --knowledge, from --document, or else from --index.

    Exit code: 0 faithful, 1 hallucinated, 3 inconclusive, 2 an error or no verdict.
    """
    settings = make_settings(settings_file, pairs, index, no_cache=no_cache, method=method, reasoner=reasoner, profile=profile)
    checker = Checker(settings)
    sample = read_input_sample(item, given, needs_sources=checker.needs_sources)
    outcome = checker.check(sample)
    if as_json:
        click.echo(format_outcome(outcome).encode("utf-8"))
    else:
        show_outcome(make_console(), sample, outcome, steps=steps)
    raise Exit(verdict_exit_code(outcome))


def verdict_exit_code(outcome: Outcome) -> int:
    """Return the exit code for an outcome."""
    if isinstance(outcome, Failure):
        return EXIT_ERROR
    if outcome.hallucinated is None:
        return EXIT_INCONCLUSIVE
    return EXIT_HALLUCINATED if outcome.hallucinated else EXIT_FAITHFUL


def read_input_sample(item: str | None, given: dict[str, Any], *, needs_sources: bool) -> Sample:
    """Read the sample from the options, a file or standard input; raises InputError where it has no sources but needs them."""
    sample = _sample(item, given)
    if needs_sources and not sample.documents and not sample.knowledge:
        raise InputError(
            "there is no source to check the text against. Give --knowledge TEXT, --document FILE or --index FOLDER."
        )
    return sample


def _sample(item: str | None, given: dict[str, Any]) -> Sample:
    any_option = given["documents"] or given["knowledge"] or any(given[n] is not None for n in ("question", *RESPONSE_OPTIONS))
    if item is not None and any_option:
        raise InputError(f"{item}: give the text either as a file or by options, not both.")
    if any_option:
        return sample_of(given)
    if item is None and sys.stdin.isatty():
        raise InputError("there is no text to check. Give -q and -a, --summary, --claim, or a JSON file; see --help.")
    name = "standard input" if item in (None, "-") else str(item)
    return read_single_sample(_bytes(item or "-"), name)


def sample_of(given: dict[str, Any]) -> Sample:
    """Make the sample of the options; raises InputError where they do not give one text."""
    responses = [f"--{name}" for name in RESPONSE_OPTIONS if given[name] is not None]
    if len(responses) != 1:
        got = " and ".join(responses) or "none"
        raise InputError(f"give exactly one of --answer, --summary, --claim (got {got}).")
    return parse_sample(_row(given), "the command line", "item")


def _row(given: dict[str, Any]) -> dict[str, Any]:
    knowledge = [_text(k[1:]) if k.startswith("@") else k for k in given["knowledge"]]
    if [*given["documents"], *given["knowledge"]].count("-") + list(given["knowledge"]).count("@-") > 1:
        raise InputError("standard input can be read only once. Give the other texts as files.")
    documents = [{"text": _text(d), **({"id": Path(d).name} if d != "-" else {})} for d in given["documents"]]
    names = [d.get("id") for d in documents]
    if len(set(names)) < len(names):
        # files of the same name in two folders are distinguished by their paths
        documents = [{**d, "id": path} for d, path in zip(documents, given["documents"], strict=True)]
    row = {name: given[name] for name in ("question", *RESPONSE_OPTIONS)}
    return {**row, "documents": documents, "knowledge": knowledge}


def _text(file: str) -> str:
    return decode_utf8(_bytes(file).removeprefix(BYTE_ORDER_MARK), "standard input" if file == "-" else file)


def _bytes(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}).") from error
