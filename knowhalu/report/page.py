"""The report as one HTML page that needs no network; all texts are escaped, and only its own script and style may run."""

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from knowhalu.errors import MissingExtra
from knowhalu.evaluation.result_tables import make_notes
from knowhalu.report import charts, layout
from knowhalu.report.content import Report, RunSection
from knowhalu.report.items import ITEM_STATES
from knowhalu.text.probabilities import format_probability
from knowhalu.text.sentences import sanitize

if TYPE_CHECKING:
    from jinja2 import Environment

GENERATOR_TAG = "KnowHalu report"
HTML_START = f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="{GENERATOR_TAG}'
"""The beginning of every page: a file with another beginning is not overwritten."""
STATE_SIGNS = {"wrong": "✗", "abstained": "?", "failed": "!", "right": "✓", "hallucinated": "✗", "faithful": "✓"}
LABEL_SIGNS = {"CORRECT": ("✓", "correct"), "INCORRECT": ("✗", "incorrect"), "INCONCLUSIVE": ("?", "open")}
KIND_TITLES = {"factual": "factual error", "off_target": "off target"}
CHART_CAPTIONS = {
    "average": "Average accuracy of each method with its 95 % interval. A method that does not beat the trivial rules (grey) "
    "has not shown that it detects errors.",
    "published": "Hollow marks are the best published figures.",
    "roc": "Each point is a threshold on the probability. The dotted line is chance; further above it is better.",
    "risk": "Error rate among the most confident verdicts, with more of them kept from left to right. A line ends where the "
    "method abstains.",
    "reliability": "On the dotted line probabilities equal observed frequencies. Above it they are too low, below it too high. "
    "Larger marks are bins of more rows; ECE is the mean distance.",
    "seconds": "Latency of single checks, including the wait for others in a batch; the table of cost has the throughput.",
}


class Chart(NamedTuple):
    """A picture with a caption that explains it."""

    svg: str
    caption: str
    wide: bool = False


def report_as_html(report: Report) -> str:
    """Return the report as one page; raises MissingExtra where matplotlib or jinja2 is not installed."""
    environment = _environment()
    css, js = _asset("page.css"), _asset("page.js")
    quiet = layout.trivial_names(report)
    styles = charts.method_styles([e.name for s in report.sections for e in s.entrants], quiet)
    return environment.get_template("page.html").render(
        report=report,
        start=HTML_START,
        css=css,
        js=js,
        policy=f"default-src 'none'; script-src '{_digest(js)}'; style-src '{_digest(css)}'; base-uri 'none'; form-action 'none'",
        charts=[_charts(f"s{i}", section, styles) for i, section in enumerate(report.sections, 1)],
        grids=[charts.grid_chart(f"grid{i}", name, grid) for i, (name, grid) in enumerate(report.grids.items(), 1)],
        layout=layout,
        remarks=make_notes,
        quiet=quiet,
        states=ITEM_STATES,
        signs=STATE_SIGNS,
        labels=LABEL_SIGNS,
        kinds=KIND_TITLES,
        whys=layout.REASON_TITLES,
    )


def _charts(key: str, section: RunSection, styles: dict[str, charts.MethodStyle]) -> list[Chart]:
    drawn, drawings = section.drawn, []
    if section.comparison is not None:
        values = layout.interval_values(section)
        names = {r.title: styles[r.name] for r in section.comparison.results if r.name in styles}
        marked = len(layout.published_averages(section))
        title = f"Avg Acc on {sanitize(section.name)}"
        caption = f"{CHART_CAPTIONS['average']} {CHART_CAPTIONS['published']}" if marked else CHART_CAPTIONS["average"]
        drawings.append(Chart(charts.intervals_chart(f"{key}-average", title, values, marked, names), caption, wide=True))
    if drawn.roc:
        drawings.append(Chart(charts.roc_chart(f"{key}-roc", drawn.roc, styles), CHART_CAPTIONS["roc"]))
    if drawn.risk:
        drawings.append(Chart(charts.risk_chart(f"{key}-risk", drawn.risk, styles), CHART_CAPTIONS["risk"]))
    if drawn.reliability:
        drawings.append(Chart(charts.reliability_chart(f"{key}-bins", drawn.reliability, styles), CHART_CAPTIONS["reliability"]))
    if drawn.seconds:
        drawings.append(Chart(charts.seconds_chart(f"{key}-seconds", drawn.seconds, styles), CHART_CAPTIONS["seconds"]))
    return drawings


def _environment() -> "Environment":
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise MissingExtra("jinja2", "report") from error
    environment = Environment(
        loader=PackageLoader("knowhalu.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=_safe_value,
    )  # fmt: skip
    environment.filters["clipped"] = clip_text
    environment.filters["probability"] = format_probability
    return environment


def _safe_value(value: Any) -> Any:
    """Return a text without control characters; markup of the page itself stays as it is."""
    return sanitize(value) if type(value) is str else value


def clip_text(text: str, most: int = 800) -> str:
    """Return the text, shortened where it is too long, with the number of omitted characters."""
    return text if len(text) <= most else f"{text[:most]} … [{len(text) - most:,} more characters]"


@lru_cache(maxsize=4)
def _asset(name: str) -> str:
    return (files("knowhalu.report") / "templates" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")
