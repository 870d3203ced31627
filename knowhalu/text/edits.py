"""Edits of a text: characters and their replacements."""

from collections.abc import Iterable
from typing import NamedTuple


class TextEdit(NamedTuple):
    """Characters of a text, and their replacement."""

    start: int
    end: int
    new: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """Apply edits to a text; raises ValueError where two of them overlap."""
    parts, at = [], 0
    for edit in sorted(edits):
        if edit.start < at:
            raise ValueError(f"two changes overlap at character {edit.start}")
        parts += [text[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, text[at:]])
