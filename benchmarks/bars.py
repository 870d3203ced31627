"""A bar chart as an SVG file, written by hand: groups of bars, each with its number."""

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

COLOURS = ("#4c72b0", "#dd8452", "#55a868", "#c44e52", "#8172b3", "#937860", "#da8bc3", "#8c8c8c")
WIDTH, HEIGHT, LEFT, TOP, BAR, GAP = 980, 360, 50, 60, 22, 30


def draw(path: Path, title: str, groups: Mapping[str, Mapping[str, float]], series: Sequence[str], unit: str = "%") -> None:
    """Draw one group of bars for each name in `groups`, one bar in it for each of `series`; values from 0 to 100."""
    step = max(BAR * len(series) + GAP, (WIDTH - LEFT) / len(groups))
    width = max(WIDTH, LEFT + step * len(groups))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {HEIGHT + TOP + 40}" font-family="sans-serif">',
        f'<rect width="100%" height="100%" fill="white"/><text x="{LEFT}" y="24" font-size="17">{escape(title)}</text>',
    ]
    for level in range(0, 101, 20):
        y = TOP + HEIGHT * (1 - level / 100)
        parts.append(f'<line x1="{LEFT}" x2="{width - 10}" y1="{y}" y2="{y}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4}" font-size="11" text-anchor="end">{level}{unit}</text>')
    for s, name in enumerate(series):
        parts.append(f'<rect x="{LEFT + s * 130}" y="34" width="11" height="11" fill="{COLOURS[s % len(COLOURS)]}"/>')
        parts.append(f'<text x="{LEFT + s * 130 + 16}" y="44" font-size="12">{escape(name)}</text>')
    for g, (group, values) in enumerate(groups.items()):
        x = LEFT + GAP / 2 + g * step
        parts.append(f'<text x="{x}" y="{TOP + HEIGHT + 22}" font-size="13">{escape(group)}</text>')
        for s, name in enumerate(series):
            if name in values:
                height = HEIGHT * values[name] / 100
                left, top = x + s * BAR, TOP + HEIGHT - height
                colour = COLOURS[s % len(COLOURS)]
                parts.append(f'<rect x="{left}" y="{top:.1f}" width="{BAR - 3}" height="{height:.1f}" fill="{colour}"/>')
                parts.append(f'<text x="{left}" y="{top - 3:.1f}" font-size="9">{values[name]:.1f}</text>')
    path.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")
