"""Charts as SVG inside a page, readable in colour, in grey and by the colour-blind."""

import io
import re
import warnings
import xml.etree.ElementTree as Tree
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from knowhalu.errors import MissingExtra
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.curves import Curve, ReliabilityBins
from knowhalu.report.chart_data import AccuracyGrid, SecondsHistogram
from knowhalu.text.sentences import sanitize

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"
"""Stands for the page's text colour while a figure is drawn."""
RC_PARAMS: Any = {
    "font.size": 9, "svg.fonttype": "none", "text.color": INK, "axes.labelcolor": INK, "axes.edgecolor": INK,
    "xtick.color": INK, "ytick.color": INK, "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6,
    "axes.titlesize": 10, "legend.frameon": False, "legend.fontsize": 8, "lines.linewidth": 1.4, "lines.markersize": 4.5,
    "savefig.transparent": True, "svg.hashsalt": "knowhalu", "axes.grid": True, "grid.alpha": 0.18, "grid.color": INK,
    "grid.linewidth": 0.6, "axes.unicode_minus": False, "text.parse_math": False,
}  # fmt: skip
"""The looks of every figure; text stays text, is no formula, and the same figure is the same bytes."""
_NAMESPACE = re.compile(r"^\{[^}]*\}")
_SIZE = re.compile(r"([\d.]+)px")
_REFERENCE = re.compile(r"#(?=[A-Za-z_])")


@contextmanager
def open_figure(width: float, height: float) -> Iterator[tuple["Figure", "Axes"]]:
    """Give an empty figure of so many inches, in the page's looks and apart from pyplot's state.

    Raises MissingExtra where matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context, rcdefaults, rcParams
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "report") from error
    with rc_context():
        rcdefaults()  # a reader's own matplotlibrc must not change the bytes
        rcParams.update(RC_PARAMS)
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots()


def as_svg(figure: "Figure", key: str, title: str) -> str:
    """Return a figure, while `open_figure` holds it, as one SVG element; `key` keeps its ids apart from those of others."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # a browser has other fonts than the one that is measured by
        figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    root = Tree.fromstring(buffer.getvalue())  # noqa: S314 - written by matplotlib a moment ago
    _clean(root, key)
    box = root.get("viewBox", "")
    root.attrib.clear()
    root.attrib |= {"viewBox": box, "role": "img", "aria-label": title, "stroke-linejoin": "round"}
    return Tree.tostring(root, encoding="unicode", short_empty_elements=False)


def _clean(element: Tree.Element, key: str) -> None:
    """Put styles into attributes, ids under the key, and leave out what describes the file."""
    element.tag = _NAMESPACE.sub("", element.tag)
    element.tail = (element.tail or "").strip() and element.tail
    attributes = {_NAMESPACE.sub("", name): value for name, value in element.attrib.items()}
    attributes |= dict(_plain(attributes.pop("style", "")))
    element.attrib.clear()
    element.attrib |= {name: _value(name, value, key) for name, value in attributes.items()}
    for child in list(element):
        if _NAMESPACE.sub("", child.tag) in ("metadata", "style"):
            element.remove(child)
        else:
            _clean(child, key)


def _plain(style: str) -> list[tuple[str, str]]:
    pairs = [(name.strip(), value.strip()) for name, _, value in (part.partition(":") for part in style.split(";")) if value]
    return [
        ("font-size", m.group(1)) if name == "font" and (m := _SIZE.search(value)) else (name, value) for name, value in pairs
    ]


def _value(name: str, value: str, key: str) -> str:
    if name == "id":
        return f"{key}-{value}"
    if name == "href" or value.startswith("url("):
        return _REFERENCE.sub(f"#{key}-", value)
    return "currentColor" if value == INK else value


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", INK)
DASHES = ("-", "--", "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (3, 1)))
MARKERS = "osD^vP*X"
BASELINE_COLOUR = "#8A8A8A"
BASELINE_DASHES = (":", (0, (1, 2.5)), (0, (3, 2, 1, 2)))
CHART_SIZE = (4.6, 3.9)


class MethodStyle(NamedTuple):
    """How a method looks in every chart."""

    colour: str
    dashes: Any
    mark: str
    quiet: bool = False


def method_styles(names: Iterable[str], quiet: Iterable[str]) -> dict[str, MethodStyle]:
    """Give every method its looks; quiet ones, the trivial rules, are grey and dotted."""
    still = dict.fromkeys(quiet)
    loud = [name for name in dict.fromkeys(names) if name not in still]
    looks = zip(cycle(COLOURS), cycle(DASHES), cycle(MARKERS), strict=False)
    quiet_looks = zip(cycle(BASELINE_DASHES), cycle("x+|"), strict=False)
    return {name: MethodStyle(*look) for name, look in zip(loud, looks, strict=False)} | {
        name: MethodStyle(BASELINE_COLOUR, *look, quiet=True) for name, look in zip(still, quiet_looks, strict=False)
    }


def intervals_chart(
    key: str, title: str, values: Sequence[tuple[str, Estimate]], marked: int, styles: Mapping[str, MethodStyle]
) -> str:
    """Draw one line for each method with its interval; the last `marked` are published figures."""
    with open_figure(9.4, 0.75 + 0.27 * len(values)) as (figure, axes):
        for i, (name, value) in enumerate(values):
            style = styles.get(name, MethodStyle(INK, "-", "D"))
            if value.value is None:
                continue
            if value.low is not None and value.high is not None:
                axes.plot([100 * value.low, 100 * value.high], [i, i], color=style.colour, linewidth=2, alpha=0.8)
            fill: Any = "none" if i >= len(values) - marked else "full"
            axes.plot(100 * value.value, i, style.mark, color=style.colour, markersize=6, fillstyle=fill)
        axes.axvline(50, color=INK, linewidth=0.8, linestyle=":")
        axes.set_yticks(range(len(values)), [sanitize(name) for name, _ in values])
        axes.set(ylim=(len(values) - 0.4, -0.6), title=title, xlabel="Avg Acc in % (dotted: chance)")
        axes.grid(visible=False, axis="y")
        return as_svg(figure, key, title)


def roc_chart(key: str, curves: Mapping[str, Curve], styles: Mapping[str, MethodStyle]) -> str:
    """Draw ROC curves."""
    title = "ROC: what is found against what is wrongly accused"
    return _lines(key, title, curves, styles, "faithful wrongly accused, %", "hallucinated found, %", diagonal=True)


def risk_chart(key: str, curves: Mapping[str, Curve], styles: Mapping[str, MethodStyle]) -> str:
    """Draw risk over coverage."""
    title = "Risk and coverage: error rate of the most confident verdicts"
    return _lines(key, title, curves, styles, "most confident verdicts kept, % of rows", "error rate, %")


def reliability_chart(key: str, reliability: Mapping[str, ReliabilityBins], styles: Mapping[str, MethodStyle]) -> str:
    """Draw the share of hallucinated over the mean probability of each bin; the more rows, the larger the mark."""
    title = "Reliability: said probability against what came true"
    with open_figure(*CHART_SIZE) as (figure, axes):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=":")
        for name, bins in reliability.items():
            style, label = styles[name], sanitize(f"{name}, ECE {100 * bins.ece:.1f} %" if bins.ece is not None else name)
            axes.plot(bins.probability, bins.share, color=style.colour, linestyle=style.dashes, linewidth=1)
            size = 14 + 150 * bins.rows / max(1.0, float(bins.rows.sum()))
            axes.scatter(bins.probability, bins.share, s=size, color=style.colour, marker=style.mark, label=label, linewidth=0)
        axes.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), title=title)
        axes.set(xlabel="P(hallucinated) as said, mean of a bin", ylabel="share hallucinated")
        _legend(figure)
        return as_svg(figure, key, title)


def seconds_chart(key: str, times: Mapping[str, SecondsHistogram], styles: Mapping[str, MethodStyle]) -> str:
    """Draw how long checks took."""
    title = "Seconds from a check's start to its verdict"
    with open_figure(*CHART_SIZE) as (figure, axes):
        for name, time in times.items():
            style = styles[name]
            axes.stairs(
                100 * time.share, time.edges, color=style.colour, linestyle=style.dashes, label=sanitize(name), linewidth=1.4
            )
            axes.plot(time.median, 0, style.mark, color=style.colour, clip_on=False, markersize=6)
        axes.set(xscale="log", xlabel="seconds (the mark on the axis is the median)", ylabel="rows, %", title=title)
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.xaxis.set_minor_formatter(lambda value, _: "")
        _legend(figure)
        return as_svg(figure, key, title)


def grid_chart(key: str, name: str, grid: AccuracyGrid) -> str:
    """Draw the grid of a calibration as a heat map, the best pair ringed."""
    title = f"Calibration on {sanitize(name)}: accuracy for every pair of thresholds"
    with open_figure(6.2, 4.6) as (figure, axes):
        from matplotlib import colormaps

        axes.grid(visible=False)
        values, best = 100 * np.ma.masked_invalid(grid.average), grid.best
        colours = colormaps["cividis"].resampled(9)  # from dark to light, distinct for the colour-blind and in grey
        mesh = axes.pcolormesh(grid.q2, grid.q1, values, cmap=colours, shading="nearest")
        if best is not None:
            at = grid.q2[best[1]], grid.q1[best[0]]
            alike = f", as have {grid.equals - 1:,} others" if grid.equals > 1 else ""
            label = f"best: {values[best]:.1f} % at {at[1]:.2f} (delta1), {at[0]:.2f} (delta2){alike}"
            axes.plot(*at, "o", color="#D55E00", fillstyle="none", markersize=11, markeredgewidth=2, label=label)
        axes.set(xlabel="quantile of the supplement's confidence (delta2)", ylabel="quantile of the base confidence (delta1)")
        axes.set_title(title)
        figure.colorbar(mesh, ax=axes, format="%.1f", label="Avg Acc, %")
        _legend(figure)
        return as_svg(figure, key, title)


def _lines(
    key: str,
    title: str,
    curves: Mapping[str, Curve],
    styles: Mapping[str, MethodStyle],
    x: str,
    y: str,
    *,
    diagonal: bool = False,
) -> str:
    with open_figure(*CHART_SIZE) as (figure, axes):
        if diagonal:
            axes.plot([0, 100], [0, 100], color=INK, linewidth=0.8, linestyle=":")
        for name, curve in curves.items():
            style = styles[name]
            axes.plot(100 * curve.x, 100 * curve.y, color=style.colour, linestyle=style.dashes, label=sanitize(name),
                      marker=style.mark, markevery=max(1, len(curve.x) // 6), markersize=3.5 if style.quiet else 4.5,
                      zorder=2 if style.quiet else 3)  # fmt: skip
        axes.set(xlim=(-2, 102), ylim=(-2, 102) if diagonal else (-1, None), xlabel=x, ylabel=y, title=title)
        _legend(figure)
        return as_svg(figure, key, title)


def _legend(figure: Any) -> None:
    """Put the names under the chart, where they hide nothing."""
    if figure.axes[0].get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=2)
