"""Writing reports: whole or not at all, and never over a file that is not a report."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from knowhalu.errors import InputError
from knowhalu.io.atomic import refuse_others
from knowhalu.report import as_json as machine
from knowhalu.report import markdown as textual
from knowhalu.report import page
from knowhalu.report.content import Report

STARTS = {"html": page.START, "markdown": textual.START, "json": machine.START}
"""How a report in each form begins."""
ENDINGS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}
OPTIONS = {"html": "--out", "markdown": "--markdown", "json": "--json"}
NAMES = {"html": "an HTML page", "markdown": "Markdown", "json": "JSON"}


def check_outputs(outputs: Mapping[str, Path], inputs: Sequence[Path]) -> None:
    """Refuse outputs that are one another, an input, a file that is there and not a report, or named as another form is.

    Raises InputError.
    """
    places = [path.resolve() for path in outputs.values()]
    for form, path in outputs.items():
        if places.count(path.resolve()) > 1:
            raise InputError(f"{path}: is named for two forms of the report. Give each its own file.")
        refuse_others(path, STARTS[form], f"a report of KnowHalu as {form}", inputs)
        named = ENDINGS.get(path.suffix.lower(), form)
        if named != form:
            cure = (
                f"For {NAMES[named]}: {OPTIONS[named]} {path}. For {NAMES[form]}, give {OPTIONS[form]} a file of another ending."
            )
            raise InputError(f"{path}: {OPTIONS[form]} writes {NAMES[form]}, which is not what the name says. {cure}")


def write_all(report: Report, outputs: Mapping[str, Path]) -> None:
    """Make every form before any is written; another process sees the old files or the new ones."""
    makers = {"html": page.as_html, "markdown": textual.as_markdown, "json": machine.as_json}
    made = {path: makers[form](report) for form, path in outputs.items()}
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.tmp")
        beside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(beside, path)
