"""Small plots as SVG, without a plotting library: one panel for each measure, both axes logarithmic but for shares."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, HEIGHT, LEFT, TOP, ROOM = 300, 200, 55, 42, 25


class Panel(NamedTuple):
    """A measure: its name and a value for every place on the common axis; None leaves one out."""

    name: str
    values: Sequence[float | None]


def _short(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _panel(panel: Panel, axis: Sequence[float], name: str, x0: float, y0: float) -> list[str]:
    points = [(x, y) for x, y in zip(axis, panel.values, strict=True) if y is not None]
    share = all(0 <= y <= 1 for _, y in points) and panel.name.startswith("recall")
    low, high = (0.0, 1.0) if share else (math.log10(min(y for _, y in points)), math.log10(max(y for _, y in points)))
    low, high = (low, high) if share else (math.floor(low), max(math.ceil(high), math.floor(low) + 1))
    left, right = math.log10(min(axis)), math.log10(max(axis))

    def at(x: float, y: float) -> tuple[float, float]:
        height = (y if share else math.log10(y)) - low
        across = (math.log10(x) - left) / ((right - left) or 1)
        return x0 + LEFT + across * (WIDTH - LEFT - ROOM), y0 + TOP + (1 - height / (high - low)) * (HEIGHT - TOP - 2 * ROOM)

    places = [at(x, y) for x, y in points]
    found = [f'<text x="{x0 + LEFT}" y="{y0 + 16}" font-weight="bold">{escape(panel.name)}</text>']
    ticks = [0, 0.5, 1] if share else [10**i for i in range(int(low), int(high) + 1)]
    for tick in ticks:
        y = at(axis[0], tick)[1]
        found.append(f'<line x1="{x0 + LEFT}" x2="{x0 + WIDTH - ROOM}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        found.append(f'<text x="{x0 + LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{_short(tick)}</text>')
    for x in axis:
        across = at(x, ticks[0])[0]
        found.append(f'<text x="{across:.1f}" y="{y0 + HEIGHT - 30}" text-anchor="middle">{_short(x)}</text>')
    found.append(f'<text x="{x0 + WIDTH / 2}" y="{y0 + HEIGHT - 14}" text-anchor="middle" fill="#666">{escape(name)}</text>')
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    found.append(f'<polyline points="{line}" fill="none" stroke="#2a6fb0" stroke-width="2"/>')
    for (x, y), (_, value) in zip(places, points, strict=True):
        # clear of the numbers of the axis, and of the next panel
        anchor = "start" if x == places[0][0] else "end" if x == places[-1][0] else "middle"
        found.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#2a6fb0"/>')
        found.append(f'<text x="{x:.1f}" y="{y - 7:.1f}" text-anchor="{anchor}" fill="#2a6fb0">{_short(value)}</text>')
    return found


def write_panels(path: Path, name: str, axis: Sequence[float], panels: Sequence[Panel], columns: int = 3) -> None:
    """Draw the panels that have a value, row by row, and write them as one SVG file."""
    drawn = [p for p in panels if any(v is not None for v in p.values)]
    rows = -(-len(drawn) // columns)
    size = f'width="{columns * WIDTH}" height="{rows * HEIGHT}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">']
    parts.append('<rect width="100%" height="100%" fill="white"/>')
    for i, panel in enumerate(drawn):
        parts += _panel(panel, axis, name, WIDTH * (i % columns), HEIGHT * (i // columns))
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
