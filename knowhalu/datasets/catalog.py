"""The catalog of data sets: the cards of catalog.toml, and cards of a user's own in the same form."""

import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowhalu.errors import InputError, SettingsError
from knowhalu.registry import is_known, load_extension

if TYPE_CHECKING:
    from knowhalu.datasets.card import DatasetCard

CATALOG_FILE = "catalog.toml"
CARD_SUFFIX = ".toml"
SHARED_LAYOUTS = "layouts"
"""The table of the catalog that holds the layouts of several sets."""


def dataset_titles() -> dict[str, str]:
    """Return what every data set of the catalog is, by name, without validating the cards (a fast start of the commands)."""
    return {name: str(fields["about"]) for name, fields in _read_catalog()[1].items()}


@cache
def dataset_cards() -> "Mapping[str, DatasetCard]":
    """Return all cards of the catalog by name, in its order."""
    from knowhalu.datasets.card import make_card

    shared, tables = _read_catalog()
    return {name: make_card(name, fields, shared) for name, fields in tables.items()}


def dataset_card(name_or_path: str) -> "DatasetCard":
    """Return the card of a data set by its name, or of a user's TOML file.

    Raises SettingsError with the nearest known name, InputError where the file cannot be used.
    """
    if is_card_path(name_or_path):
        return read_card(Path(name_or_path))
    cards = dataset_cards()
    if name_or_path not in cards and is_known("datasets", name_or_path):
        return _extension_card(name_or_path)
    if name_or_path not in cards:
        near = get_close_matches(name_or_path, cards, 1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SettingsError(f"unknown data set {name_or_path!r}.{hint} Known: {', '.join(cards)}")
    return cards[name_or_path]


def _extension_card(name: str) -> "DatasetCard":
    """Return the card of an installed data set, whose entry point is the fields of a card or the path of a TOML file.

    Raises SettingsError where it is neither, InputError where the file cannot be used.
    """
    from pydantic import ValidationError

    from knowhalu.datasets.card import make_card

    source = load_extension("datasets", name)
    if isinstance(source, str | Path):
        return read_card(Path(source), of_package=True)
    if not isinstance(source, Mapping):
        raise SettingsError(f"the data set {name!r} is neither the fields of a card nor the path of a TOML file, but {source!r}")
    try:
        return make_card(name, source, {})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the card"
        raise SettingsError(f"the installed data set {name!r}, field {place!r}: {first['msg']}. See docs/datasets.md") from error


def is_card_path(name: str) -> bool:
    """Tell whether this names a file with a card instead of a data set."""
    return name.lower().endswith(CARD_SUFFIX)


def read_card(path: Path, *, of_package: bool = False) -> "DatasetCard":
    """Read the card of a user's data set; its name is that of the file.

    Such a file has `task`, `response`, `sources`, `label`, `faithful` and `hallucinated`, or else `layouts` as in catalog.toml.
    Only the file of an installed package may name functions of its own, as files are passed on together with their data.
    Raises InputError naming file and field.
    """
    from pydantic import ValidationError

    from knowhalu.datasets.card import make_card

    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file. Check the path.") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Check the path.") from error
    except ValueError as error:
        raise InputError(f"{path}: not TOML ({error}). Write it as shown in docs/datasets.md.") from error
    try:
        card = make_card(path.stem, fields, _read_catalog()[0])
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the card"
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{path}, field {place!r}: {message}. Write it as shown in docs/datasets.md.") from error
    if not of_package:
        _refuse_foreign_code(card, path)
    return card


def _refuse_foreign_code(card: "DatasetCard", path: Path) -> None:
    """Raise InputError where a card names a function that the catalog does not use."""
    known = [layout for own in dataset_cards().values() for layout in own.layouts]
    for field in ("load", "rows"):
        allowed = {"", *(getattr(layout, field) for layout in known)}
        if named := sorted({getattr(layout, field) for layout in card.layouts} - allowed):
            remedy = "Map the fields without code, or register the file in a package (docs/extending.md)"
            raise InputError(f"{path}, field {field!r}: names code to import ({named[0]}), which a file cannot choose. {remedy}.")


@cache
def _read_catalog() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the shared layouts and the tables of all data sets."""
    tables = tomllib.loads(files("knowhalu.datasets").joinpath(CATALOG_FILE).read_text(encoding="utf-8"))
    return tables.pop(SHARED_LAYOUTS), tables
