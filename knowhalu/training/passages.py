"""Claims that were written on passages of public texts: the texts are not in the project, so a row names its passage.

`of` is the hash of a whole text of the training data, `start` and `end` are the characters of the passage in it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from knowhalu.errors import InputError
from knowhalu.training.rows import Row, read_rows, text_of


def key_of(text: str) -> str:
    """Return the hash by which a row names a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def joined(rows: Iterable[Row], files: Iterable[Path]) -> Iterator[Row]:
    """Yield rows with their texts, found in `files`: the whole one as `source`, the passage as `document`.

    Raises InputError, before the first row, where a text is in none of the files.
    """
    named = list(rows)
    wanted = {row["of"] for row in named}
    paths = list(files)
    texts = {key: text for path in paths for text in map(text_of, read_rows(path)) if (key := key_of(text)) in wanted}
    if lost := [row for row in named if row["of"] not in texts]:
        row, names = lost[0], ", ".join(path.name for path in paths)
        raise InputError(f"{row['id']}: its text {row['of']} is not in {names}; take the files of the data card, unchanged")
    for row in named:
        text = texts[row["of"]]
        yield {**row, "source": text, "document": text[row["start"] : row["end"]]}
