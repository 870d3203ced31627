"""The entry point: the table of commands, and their errors. The module of a command is imported when it is called."""

import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from typing import IO, Any, NoReturn

import click
from click.exceptions import Exit

from knowhalu import __version__
from knowhalu.errors import KnowHaluError

COMMANDS = {
    "check": ("knowhalu.cli.check:check", "Check one answer, summary or claim, and show the evidence."),
    "detect": ("knowhalu.cli.check:detect", "Check every row of a file; resumes a stopped run."),
    "revise": ("knowhalu.cli.check:revise", "Correct what the sources do not support, in one text or in every row of a file."),
    "summarize": ("knowhalu.cli.summarize:summarize", "Write summaries that answer questions from papers, with citations."),
    "compare": ("knowhalu.cli.compare:compare", "Compare several methods on the same labelled rows, with intervals and tests."),
    "eval": ("knowhalu.cli.eval:evaluate", "Evaluate methods on published data sets, with trivial rules for comparison."),
    "report": ("knowhalu.cli.compare:report", "Write finished runs as one page: figures, curves, cost and items with evidence."),
    "calibrate": ("knowhalu.cli.compare:calibrate", "Choose thresholds on your labelled rows and write them to a profile."),
    "methods": ("knowhalu.cli.catalog:methods", "List the methods: what each one does, needs and costs."),
    "models": ("knowhalu.cli.models:models", "List the verifiers, and add, verify or remove one that needs base weights."),
    "index": ("knowhalu.cli.index:index", "Build, inspect, search and verify indexes of your documents."),
    "prompts": ("knowhalu.cli.prompts:prompts", "Print the prompts that a language model receives, and validate your own."),
    "serve-model": ("knowhalu.cli.serve:serve_model", "Serve a language model on the GPU of this machine with vLLM."),
    "doctor": ("knowhalu.cli.doctor:doctor", "Report what is installed, and how to install what is missing."),
    "settings": ("knowhalu.cli.catalog:settings", "Print all settings with their descriptions, as a TOML file."),
}
EXIT_ERROR, EXIT_INTERRUPTED = 2, 130
"""Exit codes of errors and of Ctrl-C. An error never exits with 1, which `check` uses for "hallucinated"."""


class UserError(click.ClickException):
    """An error that is printed as one line without a traceback."""

    exit_code = EXIT_ERROR

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the error to standard error."""
        line = " ".join(self.message.split("\n"))
        click.echo(f"{click.style('error:', fg='red', bold=True)} {line}", file=file or sys.stderr)


@contextmanager
def exit_on_interrupt(line: str) -> Iterator[None]:
    """End a command that is interrupted with a line on how to continue it."""
    try:
        yield
    except KeyboardInterrupt as error:
        click.echo(line, err=True)
        raise Exit(EXIT_INTERRUPTED) from error


class LazyGroup(click.Group):
    """A group that imports only the command that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import a command."""
        if name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[name][0].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; raises UserError with the nearest name for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, 1)
            hint = f"Did you mean {near[0]!r}? " if near else ""
            raise UserError(f"there is no command {args[0]!r}. {hint}Commands: {', '.join(COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands from the table, without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error becomes one line and exit code 2."""
        try:
            with exit_on_interrupt("interrupted"):
                return super().invoke(ctx)
        except (click.ClickException, Exit, click.Abort, BrokenPipeError):
            raise
        except Exception as error:  # noqa: BLE001 - no error may exit with 1, the code of a verdict
            _end(error, shows_all=ctx.params["traceback"])


def _end(error: Exception, *, shows_all: bool) -> NoReturn:
    expected = isinstance(error, KnowHaluError | OSError)
    if shows_all or not expected:
        traceback.print_exception(error)
    if isinstance(error, KnowHaluError):
        message = str(error)
    elif isinstance(error, OSError):
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    else:
        message = f"an error in KnowHalu itself ({type(error).__name__}: {error}). Please report the lines above"
    raise UserError(message) from error


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="knowhalu %(version)s")
@click.option("--traceback", is_flag=True, help="Print the traceback of an error.")
def main(traceback: bool) -> None:
    """Check whether what a language model wrote is true, with evidence, on your own machines.

    Try: knowhalu check -q "Who wrote Dracula?" -a "Mary Shelley." --knowledge "Dracula is a novel by Bram Stoker."
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # a terminal that cannot show a character gets a question mark, not a crash after the work is done
            stream.reconfigure(errors="replace")
