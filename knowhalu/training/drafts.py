"""A verifier's folder while something is fitted for it: what is there stays as it is until the new file is whole."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from knowhalu.errors import InputError
from knowhalu.fits import FILES, NAME, WEIGHTS, weights_hash


@contextmanager
def drafted(folder: Path, name: str, start: Mapping[str, Any]) -> Iterator[Path]:
    """Give a folder like a verifier's own in which the file `name` has `start` to begin with; on a clean end it is put in place.

    It then names the weights that it was fitted to. Raises InputError where the folder has no weights.
    """
    if not (folder / WEIGHTS).is_file():
        raise InputError(f"{folder}: no {WEIGHTS}; give the folder of a verifier")
    with tempfile.TemporaryDirectory(prefix=".fit-", dir=folder) as made:
        draft = Path(made)
        for part in FILES:
            if part != name and (folder / part).exists():
                (draft / part).symlink_to((folder / part).resolve())
        (draft / name).write_text(json.dumps(start), encoding="utf-8")
        yield draft
        fit = json.loads((draft / name).read_text(encoding="utf-8"))
        (draft / name).write_text(json.dumps(fit | {NAME: weights_hash(folder)}, indent=1) + "\n", encoding="utf-8")
        (draft / name).replace(folder / name)
