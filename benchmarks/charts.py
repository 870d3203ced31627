"""The charts of the documentation: SVG by matplotlib, the same bytes for the same figures."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999")
"""The palette of Okabe and Ito, which colour-blind readers can distinguish."""


def _figure(width: float, height: float) -> Figure:
    rcParams.update({"svg.hashsalt": "knowhalu", "svg.fonttype": "none"})  # stable bytes, and text that stays text
    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path, metadata={"Date": None})


def draw_grouped_bars(path: Path, title: str, groups: Mapping[str, Mapping[str, float]], series: Sequence[str]) -> None:
    """Draw one group of vertical bars for each name in `groups`, one bar for each of `series`; values are percentages."""
    figure = _figure(11, 4.5)
    axes = figure.subplots()
    width = 0.85 / len(series)
    for number, name in enumerate(series):
        known = [(i, values[name]) for i, values in enumerate(groups.values()) if name in values]
        places = [i + (number - (len(series) - 1) / 2) * width for i, _ in known]
        bars = axes.bar(places, [value for _, value in known], 0.9 * width, color=COLOURS[number % len(COLOURS)], label=name)
        axes.bar_label(bars, fmt="%.1f", fontsize=6)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_ylim(0, 105)
    axes.set_ylabel("%")
    axes.set_title(title, loc="left")
    figure.legend(loc="outside lower center", ncols=len(series), fontsize=8, frameon=False)
    _save(figure, path)


def draw_horizontal_bars(path: Path, title: str, panels: Mapping[str, Mapping[str, float]]) -> None:
    """Draw one panel of horizontal bars for each name in `panels`, each bar with its label and number."""
    figure = _figure(9, 1.2 + 1.3 * len(panels))
    for axes, (name, values) in zip(figure.subplots(len(panels), squeeze=False).flat, panels.items(), strict=True):
        bars = axes.barh(list(values), list(values.values()), color=[COLOURS[i % len(COLOURS)] for i in range(len(values))])
        axes.bar_label(bars, labels=[_short(value) for value in values.values()], padding=4, fontsize=9)
        axes.invert_yaxis()
        axes.margins(x=0.15)
        axes.set_title(name, loc="left", fontsize=10)
        _strip(axes)
    figure.suptitle(title, fontsize=10)
    _save(figure, path)


def draw_log_panels(path: Path, axis_name: str, axis: Sequence[float], panels: Mapping[str, Sequence[float | None]]) -> None:
    """Draw each measure over a common logarithmic axis; None leaves a point out, and a measure of None alone is not drawn.

    Measures are drawn logarithmically, but those whose name begins with "recall", which are shares.
    """
    shown = {name: values for name, values in panels.items() if any(v is not None for v in values)}
    figure = _figure(11, 2.8 * -(-len(shown) // 3))
    for axes, (name, values) in zip(figure.subplots(-(-len(shown) // 3), 3, squeeze=False).flat, shown.items(), strict=False):
        points = [(x, y) for x, y in zip(axis, values, strict=True) if y is not None]
        axes.plot([x for x, _ in points], [y for _, y in points], color=COLOURS[0], marker="o")
        for x, y in points:
            axes.annotate(_short(y), (x, y), xytext=(0, 5), textcoords="offset points", fontsize=7, ha="center")
        axes.set_xscale("log")
        if name.startswith("recall"):
            axes.set_ylim(0, 1.1)
        else:
            axes.set_yscale("log")
        axes.minorticks_off()
        axes.margins(0.12, 0.2)
        axes.set_title(name, loc="left", fontsize=10)
        axes.set_xlabel(axis_name, fontsize=9)
        axes.grid(color="#dddddd", linewidth=0.6)
    _save(figure, path)


def draw_learning_curve(path: Path, results: Mapping[float, Any], sets: Sequence[str]) -> None:
    """Draw ROC-AUC of every set, and their mean, over the million tokens seen; results are those of `verifier.py`."""
    figure = _figure(9, 4.8)
    axes, seen = figure.subplots(), sorted(results)
    for i, name in enumerate(sets):
        values = [results[tokens]["sets"][name]["auc"] for tokens in seen]
        style = "-" if i < len(COLOURS) else "--"
        axes.plot(seen, values, style, color=COLOURS[i % len(COLOURS)], marker="o", markersize=3, linewidth=1, label=name)
    means = [results[tokens]["mean_auc"] for tokens in seen]
    axes.plot(seen, means, color="black", linewidth=2.5, marker="s", label="mean")
    axes.set_xlabel("million tokens seen, padding included")
    axes.set_ylabel("ROC-AUC of the verifier alone")
    axes.grid(color="#dddddd", linewidth=0.6)
    figure.legend(loc="outside right center", fontsize=8, frameon=False)
    _save(figure, path)


def draw_method_intervals(path: Path, comparisons: Mapping[str, Any]) -> None:
    """Draw ROC-AUC with its interval, one panel for each set; trivial rules are squares, and the dotted line is chance."""
    names = [r["name"] for r in next(iter(comparisons.values()))["results"]][::-1]
    figure = _figure(11, 6.2)
    for axes, (title, comparison) in zip(figure.subplots(2, 3, sharey=True).flat, comparisons.items(), strict=False):
        for result in comparison["results"]:
            trivial = result["name"].startswith(("trivial", "response-only"))
            auc, y = result["figures"]["auc"], names.index(result["name"])
            axes.plot([auc["low"], auc["high"]], [y, y], color=COLOURS[trivial], linewidth=2)
            axes.plot(auc["value"], y, "s" if trivial else "o", color=COLOURS[trivial], markersize=5)
        axes.axvline(0.5, color="#777777", linewidth=0.8, linestyle=":")
        axes.set_title(f"{title} ({comparison['rows']:,})", fontsize=10)
        axes.set_yticks(range(len(names)), names, fontsize=8)
        axes.set_xlim(0.4, 1.0)
        axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    figure.supxlabel("ROC-AUC, 95 % bootstrap interval; squares: rules on length, overlap and novelty alone", fontsize=9)
    _save(figure, path)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _strip(axes: Axes) -> None:
    axes.set_xticks([])
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
