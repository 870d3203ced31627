"""Writing reports: whole or not at all, and never over a file that is not a report."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from knowhalu.errors import InputError
from knowhalu.io.output_files import check_output_path
from knowhalu.report import as_json as machine
from knowhalu.report import markdown as textual
from knowhalu.report import page
from knowhalu.report.content import Report

FORMAT_STARTS = {"html": page.HTML_START, "markdown": textual.MARKDOWN_START, "json": machine.JSON_START}
"""How a report in each form begins."""
SUFFIX_FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}
FORMAT_OPTIONS = {"html": "--out", "markdown": "--markdown", "json": "--json"}
FORMAT_NAMES = {"html": "an HTML page", "markdown": "Markdown", "json": "JSON"}


def check_outputs(outputs: Mapping[str, Path], inputs: Sequence[Path]) -> None:
    """Refuse outputs that are one another, an input, a file that is there and not a report, or named as another form is.

    Raises InputError.
    """
    places = [path.resolve() for path in outputs.values()]
    for form, path in outputs.items():
        if places.count(path.resolve()) > 1:
            raise InputError(f"{path}: is named for two forms of the report. Give each its own file.")
        check_output_path(path, FORMAT_STARTS[form], f"a report of KnowHalu as {form}", inputs)
        named = SUFFIX_FORMATS.get(path.suffix.lower(), form)
        if named != form:
            other = f"For {FORMAT_NAMES[form]}, give {FORMAT_OPTIONS[form]} a file of another ending."
            cure = f"For {FORMAT_NAMES[named]}: {FORMAT_OPTIONS[named]} {path}. {other}"
            raise InputError(
                f"{path}: {FORMAT_OPTIONS[form]} writes {FORMAT_NAMES[form]}, which is not what the name says. {cure}"
            )


def write_reports(report: Report, outputs: Mapping[str, Path]) -> None:
    """Make every form before any is written; another process sees the old files or the new ones."""
    makers = {"html": page.report_as_html, "markdown": textual.report_as_markdown, "json": machine.report_as_json}
    made = {path: makers[form](report) for form, path in outputs.items()}
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.tmp")
        beside.write_text(text, encoding="utf-8", newline="\n")
        os.replace(beside, path)
