"""The picture of `kv_reuse.py`: seconds and computed tokens of a check, as bars with their numbers."""

from typing import Any

COLOURS = {"anew": "#D55E00", "one by one": "#56B4E9", "together": "#0072B2"}
"""Told apart by all eyes, and in grey."""
NAMES = {
    "anew": "no prefix reuse",
    "one by one": "beginnings kept, one check at a time",
    "together": "beginnings kept, checks side by side",
}
WIDTH, LEFT, BAR, GAP = 860, 300, 26, 12


def draw(result: dict[str, Any]) -> str:
    """Draw the result as SVG."""
    ways, checks = result["ways"], result["checks"]
    seconds = {n: w["seconds_per_check"] for n, w in ways.items()}
    tokens = {n: w["computed_prompt_tokens"] / checks for n, w in ways.items()}
    title = (
        f"{checks} checks of {result['calls_per_check']:g} calls, {result['fixed_tokens']:,} fixed tokens in each prompt "
        f"({result['dtype']}, {result['device'].upper()}, random weights)"
    )
    same = "the same labels" if result["same_labels"] == 1 else f"{result['same_labels']:.0%} of the labels the same"
    top = 74
    first, height = _bars("seconds for one check", seconds, top, "{:.2f} s")
    second, end = _bars("prompt tokens computed for one check", tokens, height + 22, "{:,.0f}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {end + 14}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="14">\n'
        f'  <rect width="{WIDTH}" height="{end + 14}" fill="#ffffff"/>\n'
        f'  <text x="20" y="28" font-size="16" font-weight="bold" fill="#1b2733">{result["speed-up"]:.1f} times faster, '
        f"with {same}</text>\n"
        f'  <text x="20" y="50" font-size="12.5" fill="#44546a">{title}</text>\n'
    )
    return head + first + second + "</svg>\n"


def _bars(name: str, values: dict[str, float], top: int, form: str) -> tuple[str, int]:
    """Draw one group of bars; returns it and where it ends."""
    lines = [f'  <text x="20" y="{top}" font-weight="bold" fill="#1b2733">{name}</text>']
    scale = (WIDTH - LEFT - 110) / max(values.values())
    at = top + 12
    for way, value in values.items():
        length = max(2.0, value * scale)
        middle = at + BAR / 2 + 5
        lines += [
            f'  <text x="{LEFT - 12}" y="{middle}" font-size="13" text-anchor="end" fill="#1b2733">{NAMES[way]}</text>',
            f'  <rect x="{LEFT}" y="{at}" width="{length:.1f}" height="{BAR}" fill="{COLOURS[way]}"/>',
            f'  <text x="{LEFT + length + 8:.1f}" y="{middle}" font-size="13" fill="#1b2733">{form.format(value)}</text>',
        ]
        at += BAR + GAP
    return "\n".join(lines) + "\n", at
