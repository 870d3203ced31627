"""`knowhalu settings`: the tree of settings as a TOML file, made from the options themselves."""

import json
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from knowhalu.cli.options import make_settings, with_settings
from knowhalu.options import Settings
from knowhalu.profiles import quoted


@click.command()
@with_settings
def settings(settings_file: Path | None, pairs: tuple[str, ...]) -> None:
    """Print all settings with their meanings, as a TOML file to begin with.

    With --settings or --set, the values are those that a run would have.
    """
    click.echo(render_settings(make_settings(settings_file, pairs)), nl=False)


def render_settings(tree: Settings) -> str:
    """Return the tree as TOML with comments; a setting without a value is commented out."""
    values = [name for name in type(tree).model_fields if not isinstance(getattr(tree, name), BaseModel)]
    groups = [name for name in type(tree).model_fields if name not in values]
    parts = [entries(tree, values)]
    for name in groups:
        group = getattr(tree, name)
        about = " ".join((type(group).__doc__ or "").split())
        parts.append(f"# {about}\n[{name}]\n{entries(group, list(type(group).model_fields))}")
    return "\n".join(parts)


def entries(group: BaseModel, names: list[str]) -> str:
    """Return settings of a group as TOML lines, each with what it means."""
    lines = []
    for name in names:
        note = _note(type(group).model_fields[name])
        if note:
            lines.append(f"# {note}")
        value = getattr(group, name)
        lines.append(f"# {name} =" if value is None else f"{name} = {_toml(value)}")
    return "\n".join(lines) + "\n"


def _note(field: FieldInfo) -> str:
    """Return the field's description, what it may be, and within which bounds."""
    choices = _choices(field.annotation)
    bounds = [f"{word} {getattr(rule, attribute)}" for rule in field.metadata
              for attribute, word in (("ge", "at least"), ("gt", "over"), ("le", "at most"), ("lt", "under"))
              if hasattr(rule, attribute)]  # fmt: skip
    return "; ".join(part for part in (field.description or "", " | ".join(choices), ", ".join(bounds)) if part)


def _choices(annotation: Any) -> list[str]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [json.dumps(member.value) for member in annotation]
    return [json.dumps(choice) for choice in get_args(annotation) if isinstance(choice, str)]


def _toml(value: Any) -> str:
    if isinstance(value, Enum):
        value = value.value
    return quoted(str(value) if isinstance(value, Path) else value)
