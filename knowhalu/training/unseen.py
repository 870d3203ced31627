"""Held-out rows that the verifier has not seen in any form: what is fitted after a training, and measured, is fitted on these.

A source is held out by the hash of its text, so a text that is nearly the same (an article cut at another sentence, a claim that
has two sources) may have been trained on. Such rows are left out here.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from itertools import chain
from pathlib import Path

from knowhalu.training.leakage import Leakage, rows_below
from knowhalu.training.recipes import RECIPES, Recipe, rows_of
from knowhalu.training.rows import Row, held_out, text_of


class Unseen:
    """The held-out rows of the training files in `data` that overlap with nothing that is trained on, nor with `leave_out`.

    `leave_out` is a folder of evaluation files. What is trained on are the sources of all recipes that are not held out.
    """

    def __init__(self, data: Path, leave_out: Path | None = None) -> None:
        self.data, self.leave_out = data, leave_out

    @cached_property
    def known(self) -> Leakage:
        """Return what a row must not overlap with; its texts are read at the first use."""
        files: dict[str, Recipe] = {}
        for recipe in RECIPES:  # each file is read once, for all recipes that it has
            before = files.setdefault(recipe.file, recipe)
            sets = before.sets + recipe.sets if before.sets and recipe.sets else ()
            files[recipe.file] = replace(before, sets=sets, texts=before.texts or recipe.texts)
        trained = chain.from_iterable(rows_of(recipe, self.data, held=False) for recipe in files.values())
        return Leakage(chain(trained, rows_below(self.leave_out) if self.leave_out else ()))

    def of(self, recipe: Recipe) -> Iterator[Row]:
        """Yield the unseen rows of a recipe."""
        return self.among(rows_of(recipe, self.data, held=True))

    def among(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield those of some rows that are held out and unseen."""
        return (row for row in rows if held_out(text_of(row)) and row not in self.known)
