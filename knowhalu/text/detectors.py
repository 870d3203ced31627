"""Detectors of entities: the rules of this package, or a spaCy pipeline or GLiNER model in a local folder."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from knowhalu.errors import MissingExtra, ModelError, SettingsError
from knowhalu.text.entities import drop_overlaps, find_entities
from knowhalu.types import Entity

GLINER_TYPES = (
    "person", "organisation", "place", "nationality", "date", "time", "money", "percent", "quantity", "number", "ordinal",
    "event", "product", "law", "work of art",
)  # fmt: skip
"""The types that a GLiNER model looks for."""


class EntityDetector(Protocol):
    """Finds the entities of a text: their spans are exact, in order, and do not overlap."""

    def __call__(self, text: str) -> Sequence[Entity]:
        """Return the entities of a text."""


@lru_cache(maxsize=8)
def load_detector(name: str) -> EntityDetector:
    """Return the detector "rules", "spacy:FOLDER" or "gliner:FOLDER"; nothing is downloaded.

    Raises SettingsError for another name, MissingExtra where the package is not installed, and ModelError where the folder
    holds no such model.
    """
    kind, _, place = name.partition(":")
    if name == "rules":
        return find_entities
    if kind not in _DETECTORS or not place:
        raise SettingsError(f'conli.entities: unknown detector {name!r}. Use "rules", "spacy:FOLDER" or "gliner:FOLDER"')
    folder = Path(place).expanduser()
    if not folder.is_dir():
        raise ModelError(f"{folder}: there is no such folder; conli.entities wants the folder of a {kind} model on this machine")
    return _DETECTORS[kind](folder)


class SpacyDetector:
    """Find entities by the named-entity recogniser of a spaCy pipeline."""

    def __init__(self, folder: Path) -> None:
        try:
            import spacy
        except ImportError as error:
            raise MissingExtra("spacy", "spacy") from error
        try:
            self.pipeline: Any = spacy.load(folder)
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder}: not a spaCy pipeline that can be loaded ({error})") from error

    def __call__(self, text: str) -> Sequence[Entity]:
        """Return the entities of a text."""
        return _exact_entities(text, ((e.start_char, e.end_char, e.label_) for e in self.pipeline(text).ents))


class GlinerDetector:
    """Find entities of `GLINER_TYPES` by a GLiNER model."""

    def __init__(self, folder: Path) -> None:
        try:
            from gliner import GLiNER
        except ImportError as error:
            raise MissingExtra("gliner", "gliner") from error
        try:
            self.model: Any = GLiNER.from_pretrained(str(folder), local_files_only=True)
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder}: not a GLiNER model that can be loaded ({error})") from error

    def __call__(self, text: str) -> Sequence[Entity]:
        """Return the entities of a text."""
        found = self.model.predict_entities(text, list(GLINER_TYPES))
        return _exact_entities(text, ((e["start"], e["end"], e["label"]) for e in found))


def _exact_entities(text: str, found: Iterable[tuple[int, int, str]]) -> tuple[Entity, ...]:
    return drop_overlaps(
        Entity(start=a, end=b, text=text[a:b], type=kind.lower()) for a, b, kind in found if 0 <= a < b <= len(text)
    )


_DETECTORS: dict[str, Callable[[Path], EntityDetector]] = {"spacy": SpacyDetector, "gliner": GlinerDetector}
