"""Profiles: what `knowhalu calibrate` chose on labelled rows, in one small TOML file, and the settings that it makes."""

import base64
import json
import os
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from knowhalu.errors import SettingsError
from knowhalu.methods.common.calibrated import DecisionRule
from knowhalu.settings import Settings
from knowhalu.types import Record

FILE_HEADER = "# What `knowhalu calibrate` chose. Use it: knowhalu detect IN.jsonl -o OUT.jsonl --profile THIS_FILE"
HASH_BYTES = 6
"""Bytes kept of the hash of a row: of 100,000 rows and 10,000 fitted ones, two differing rows meet once in 300,000 runs."""
REMEDY = "Make it anew: knowhalu calibrate LABELLED.jsonl -o PROFILE.toml"


class FittedSettings(Record):
    """What was chosen on some rows: settings, as in a settings file, and the last step."""

    settings: dict[str, Any] = Field(default_factory=dict)
    decision: DecisionRule = DecisionRule()


class CalibrationData(Record):
    """The rows that a profile was fitted on; `hashes` recognises them: sorted, `HASH_BYTES` bytes each, in base64."""

    file: str
    sha256: str
    rows: int
    hallucinated: int
    hashes: str

    @field_validator("hashes")
    @classmethod
    def _whole(cls, text: str) -> str:
        if len(base64.b64decode(text, validate=True)) % HASH_BYTES:
            raise ValueError(f"not a number of hashes of {HASH_BYTES} bytes each")
        return text

    def shared(self, contents: Iterable[str]) -> int:
        """Count the rows, by the hashes of their contents (`knowhalu.io.samples.hash_sample`), that it was fitted on."""
        data = base64.b64decode(self.hashes)
        known = [data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)]

        def has(content: str) -> bool:
            key = bytes.fromhex(content)[:HASH_BYTES]
            at = bisect_left(known, key)
            return at < len(known) and known[at] == key

        return sum(map(has, contents))


class Profile(Record):
    """Settings and a last step for a method, for all rows and for sets of their own, and where they come from.

    `parts` are hashes of what thought at the time: the verifier, the prompts, the index.
    """

    version: str
    made: str
    goal: str
    parts: dict[str, str] = Field(default_factory=dict)
    settings: dict[str, Any]
    decision: DecisionRule = DecisionRule()
    sets: dict[str, FittedSettings] = Field(default_factory=dict)
    figures: dict[str, Any] = Field(default_factory=dict)
    data: CalibrationData

    @property
    def method(self) -> str:
        """Return the method that it is for."""
        return str(self.settings.get("method", Settings().method))

    @property
    def seal(self) -> str:
        """Return a hash of all that decides results."""
        text = self.model_dump_json(include={"settings", "decision", "sets"})
        return blake2b(text.encode("utf-8"), digest_size=8).hexdigest()


def pack_row_hashes(contents: Iterable[str]) -> str:
    """Return what recognises rows, by the hashes of their contents."""
    kept = sorted({bytes.fromhex(content)[:HASH_BYTES] for content in contents})
    return base64.b64encode(b"".join(kept)).decode("ascii")


def read_profile(path: Path) -> Profile:
    """Read a profile; raises SettingsError where it cannot be used."""
    try:
        return Profile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{path}: not a profile ({where}: {first['msg']}). {REMEDY}") from error
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: cannot read the profile ({error}). {REMEDY}") from error


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile at once: another process sees the old file or the new one."""
    fields = profile.model_dump(mode="json", exclude_defaults=True)
    new = path.with_name(f".{path.name}.tmp")
    new.write_text("\n".join([FILE_HEADER, *_toml_lines(fields)]) + "\n", encoding="utf-8")
    os.replace(new, path)


def report_path(profile: Path) -> Path:
    """Return where the figures of a profile lie."""
    return profile.with_suffix(".json")


def apply_profile(settings: Settings) -> Settings:
    """Return settings with those of the profile that they name.

    Raises SettingsError where the profile cannot be read, or where a setting that was given is another than the profile's.
    """
    if settings.profile is None:
        return settings
    profile = read_profile(settings.profile)
    return _merge_settings(settings, profile.settings, settings.profile, settings.model_dump(exclude_unset=True))


def settings_for_set(settings: Settings, fit: FittedSettings, path: Path) -> Settings:
    """Return the settings of a profile's run for the texts of one set."""
    return _merge_settings(settings, fit.settings, path, {})


def _merge_settings(settings: Settings, wanted: Mapping[str, Any], path: Path, given: Mapping[str, Any]) -> Settings:
    tree = settings.model_dump(exclude_unset=True)
    for keys, value in _leaves(wanted):
        ours = _value_at(given, keys)
        name = ".".join(keys)
        if ours is not None and ours != value:
            cure = "Leave one of the two out, or calibrate with that setting"
            raise SettingsError(f"{path}: is for {name} = {json.dumps(value)}, but {name} is set to {json.dumps(ours)}. {cure}")
        branch = tree
        for key in keys[:-1]:
            branch = branch.setdefault(key, {})
        branch[keys[-1]] = value
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}. {REMEDY}") from error


def _leaves(tree: Mapping[str, Any], above: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _value_at(tree: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, Mapping) else None
    return list(tree) if isinstance(tree, tuple) else str(tree) if isinstance(tree, Path) else tree


def _toml_lines(fields: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Write a table: its values first, then the tables in it."""
    for name, value in fields.items():
        if not isinstance(value, Mapping):
            yield f"{_toml_key(name)} = {toml_value(value)}"
    for name, value in fields.items():
        if isinstance(value, Mapping):
            if any(not isinstance(v, Mapping) for v in value.values()):
                yield f"\n[{above}{_toml_key(name)}]"
            yield from _toml_lines(value, f"{above}{_toml_key(name)}.")


def _toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: Any) -> str:
    """Return a value as TOML has it."""
    # of what JSON leaves as it is in a text, TOML allows all but one character
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
