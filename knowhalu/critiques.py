"""A critique of one sentence of a text by its sources, as a revision keeps it."""

from knowhalu.types import Record


class Critique(Record):
    """What a model found wrong with `text == original[start:end]`, whether the sources support it, and its revised claim.

    `documents` are the ids of the sources that the model was shown, none where the sentence cites nothing that was given.
    `revised` is None for a supported sentence, and where the sources leave nothing of it.
    """

    start: int
    end: int
    text: str
    critique: str
    supported: bool
    revised: str | None = None
    documents: tuple[str, ...] = ()
