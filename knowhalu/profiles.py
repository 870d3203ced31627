"""Profiles: the result of `knowhalu calibrate` on labelled rows, in one small TOML file, and its application to settings."""

import base64
import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError, field_validator

from knowhalu.errors import SettingsError, hide_password
from knowhalu.methods.common.calibrated import DecisionRule
from knowhalu.settings import Settings, merge_trees, read_settings, refuse_foreign_code, value_at, with_present_names
from knowhalu.types import Record

FILE_HEADER = "# What `knowhalu calibrate` chose. Use it: knowhalu detect IN.jsonl -o OUT.jsonl --profile THIS_FILE"
HASH_BYTES = 6
"""Bytes of a row's hash: with 100,000 rows and 10,000 fitted ones, two different rows collide once in 300,000 runs."""
REMEDY = "Make it again: knowhalu calibrate LABELLED.jsonl -o PROFILE.toml"


class FittedSettings(Record):
    """Settings that were chosen on some rows, as in a settings file, and the decision rule."""

    settings: dict[str, Any] = Field(default_factory=dict)
    decision: DecisionRule = DecisionRule()


class CalibrationData(Record):
    """The rows that a profile was fitted on; `hashes` are theirs: sorted, `HASH_BYTES` bytes each, in base64."""

    file: str
    sha256: str
    rows: int
    hallucinated: int
    hashes: str

    @field_validator("hashes")
    @classmethod
    def _whole(cls, text: str) -> str:
        if len(base64.b64decode(text, validate=True)) % HASH_BYTES:
            raise ValueError(f"the length is not a multiple of the {HASH_BYTES} bytes of a hash")
        return text

    def shared(self, contents: Iterable[str]) -> int:
        """Count the rows that the profile was fitted on, by the hashes of their contents (`knowhalu.io.samples.hash_sample`)."""
        data = base64.b64decode(self.hashes)
        known = {data[i : i + HASH_BYTES] for i in range(0, len(data), HASH_BYTES)}
        return sum(bytes.fromhex(content)[:HASH_BYTES] in known for content in contents)


class Profile(Record):
    """Settings and a decision rule for a method, for all rows and for single sets, and the rows that they were chosen on.

    `parts` are hashes of the verifier, the prompts and the index of that run.
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
        """Return the name of the calibrated method."""
        return str(self.settings.get("method", Settings().method))

    @property
    def seal(self) -> str:
        """Return a hash of everything that decides results."""
        text = self.model_dump_json(include={"settings", "decision", "sets"})
        return blake2b(text.encode("utf-8"), digest_size=8).hexdigest()


def pack_row_hashes(contents: Iterable[str]) -> str:
    """Pack the hashes of rows into base64, for `CalibrationData.hashes`."""
    hashes = sorted({bytes.fromhex(content)[:HASH_BYTES] for content in contents})
    return base64.b64encode(b"".join(hashes)).decode("ascii")


def read_profile(path: Path) -> Profile:
    """Read a profile; raises SettingsError where the file cannot be read or is no profile."""
    try:
        return Profile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{path}: not a profile ({where}: {first['msg']}). {REMEDY}") from error
    except (OSError, ValueError) as error:
        raise SettingsError(f"{path}: cannot read the profile ({error}). {REMEDY}") from error


def write_profile(profile: Profile, path: Path) -> None:
    """Write a profile atomically: another process sees the old file or the new one."""
    fields = profile.model_dump(mode="json", exclude_defaults=True)
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_text("\n".join([FILE_HEADER, *_toml_lines(fields)]) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def report_path(profile: Path) -> Path:
    """Return the path of the figures of a profile."""
    return profile.with_suffix(".json")


def load_settings(file: Path | None = None, pairs: Iterable[str] = ()) -> Settings:
    """Read settings as `read_settings` does, and apply the profile that they name.

    Raises SettingsError naming the file or the pair, the setting and its allowed values.
    """
    return apply_profile(read_settings(file, pairs))


def apply_profile(settings: Settings) -> Settings:
    """Return settings with those of their profile applied.

    Raises SettingsError where the profile cannot be read, or where a given setting contradicts it.
    """
    if settings.profile is None:
        return settings
    profile = read_profile(settings.profile)
    return _merge_settings(settings, profile.settings, settings.profile, settings.model_dump(mode="json", exclude_unset=True))


def settings_for_set(settings: Settings, fit: FittedSettings, path: Path) -> Settings:
    """Return the settings for the texts of one set of a profile."""
    return _merge_settings(settings, fit.settings, path, {})


def _merge_settings(settings: Settings, wanted: Mapping[str, Any], path: Path, given: Mapping[str, Any]) -> Settings:
    wanted = with_present_names(wanted)
    refuse_foreign_code(wanted, settings, str(path))
    for name, value in _leaves(wanted):
        given_value = value_at(given, name)
        if given_value is not None and given_value != value:
            remedy = "Leave one of the two out, or calibrate with that setting"
            problem = f"is for {name} = {json.dumps(value)}, but {name} is set to {json.dumps(given_value)}"
            raise SettingsError(hide_password(f"{path}: {problem}. {remedy}"))
    try:
        return Settings.model_validate(merge_trees(settings.model_dump(exclude_unset=True), wanted))
    except ValidationError as error:
        first = error.errors()[0]
        raise SettingsError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}. {REMEDY}") from error


def _leaves(tree: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a tree of settings by name, such as "knowhalu.delta1"."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value


def _toml_lines(fields: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Yield the lines of a table: its values first, then its tables."""
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
    """Format a value as TOML."""
    # JSON leaves one character unescaped that TOML does not allow
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
