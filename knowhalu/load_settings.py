"""Settings from a TOML file and `a.b=c` pairs, into one frozen tree."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

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


def merge_settings(settings: Settings | Path | str | None, options: Mapping[str, Any]) -> Settings:
    """Return settings, or those of a TOML file, with settings by name put in; a branch is a mapping or an options object.

    Raises SettingsError naming the setting.
    """
    base = settings if isinstance(settings, Settings) else read_settings(None if settings is None else Path(settings))
    return _validate_settings(_merge(base.model_dump(exclude_unset=True), options), "settings") if options else base


def _merge(tree: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(tree)
    for name, value in options.items():
        value = value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value
        given = merged.get(name)
        merged[name] = _merge(given, value) if isinstance(given, dict) and isinstance(value, Mapping) else value
    return merged


def _suggest_setting(path: Sequence[Any]) -> str:
    """Return the known setting that is nearest to an unknown one, as a sentence."""
    known: Any = Settings
    for key in path[:-1]:
        known = known.model_fields[key].annotation
    prefix = ".".join(map(str, path[:-1]))
    near = get_close_matches(str(path[-1]), known.model_fields, 1)
    return f" Did you mean {f'{prefix}.{near[0]}'.lstrip('.')!r}?" if near else ""


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
        name = ".".join(str(key) for key in first["loc"])
        if first["type"] != "extra_forbidden":
            raise SettingsError(f"{where}: {name}: {first['msg']} (got {first['input']!r}).") from error
        remedy = f"{_suggest_setting(first['loc'])} See `knowhalu settings` for all names."
        raise SettingsError(f"{where}: {name}: no such setting (got {first['input']!r}).{remedy}") from error
