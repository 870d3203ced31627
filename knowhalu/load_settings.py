"""Settings from a TOML file and `a.b=c` pairs, into one frozen tree."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from knowhalu.errors import SettingsError
from knowhalu.profiles import apply_profile
from knowhalu.settings import Settings


def load_settings(file: Path | None = None, pairs: Iterable[str] = ()) -> Settings:
    """Read settings; `pairs` such as "engine.in_flight=64" win over the file. Those of the profile that they name are put in.

    Raises SettingsError naming the file or the pair, the setting and what it may be.
    """
    return apply_profile(read_settings(file, pairs))


def read_settings(file: Path | None = None, pairs: Iterable[str] = ()) -> Settings:
    """Read settings as `load_settings` does, without looking into a profile."""
    tree: dict[str, Any] = {}
    if file is not None:
        try:
            tree = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(f"{file}: cannot read the settings ({error})") from error
        _validate_settings(tree, str(file))
    for pair in pairs:
        _set_value(tree, pair)
        _validate_settings(tree, f"--set {pair}")
    return _validate_settings(tree, "settings")


def _set_value(tree: dict[str, Any], pair: str) -> None:
    path, equals, text = pair.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise SettingsError(f"--set {pair}: write it as name.name=value, for example --set engine.in_flight=64")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise SettingsError(f"--set {pair}: {key} is a value, not a group of settings")
    tree[keys[-1]] = value


def _validate_settings(tree: dict[str, Any], where: str) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        cure = " See `knowhalu settings` for all names." if first["type"] == "extra_forbidden" else ""
        what = "no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise SettingsError(f"{where}: {name}: {what} (got {first['input']!r}).{cure}") from error
