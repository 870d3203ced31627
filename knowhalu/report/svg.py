"""Figures as SVG inside a page: no styles of their own (a strict page forbids them), no link out, the page's text colour."""

import io
import re
import warnings
import xml.etree.ElementTree as Tree
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from knowhalu.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

INK = "#010203"
"""Stands for the page's text colour while a figure is drawn."""
LOOK: Any = {
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
def drawing(width: float, height: float) -> Iterator[tuple["Figure", "Axes"]]:
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
        rcParams.update(LOOK)
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, figure.subplots()


def few_colours() -> "Colormap":
    """Return nine colours from dark to light that the colour-blind can tell apart, also in grey."""
    from matplotlib import colormaps

    return colormaps["cividis"].resampled(9)


def as_svg(figure: "Figure", key: str, title: str) -> str:
    """Return a figure, while `drawing` holds it, as one SVG element; `key` keeps its ids apart from those of others."""
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
