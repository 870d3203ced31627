"""`knowhalu methods` and `knowhalu settings`: list the methods and the settings."""

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Unpack, get_args

import click
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from rich.console import Console
from rich.table import Table

from knowhalu.cli.options import SettingOptions, make_settings, with_settings
from knowhalu.cli.show import make_console
from knowhalu.profiles import toml_value
from knowhalu.registry import MethodCard, all_methods, ignored_extensions, method_card
from knowhalu.settings import ROLES, Settings

NO_REASONER = "none: a rule"
ROLE_BRANCHES = tuple(f"{role}_llm" for role in ROLES)
"""Branches of which only what is set is printed: a printed default would replace the value of `llm`."""


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def methods(name: str | None, as_json: bool) -> None:
    """List the methods: what each one does, its reasoners, needs and cost; with NAME, all about one method."""
    cards, errors = all_methods() if name is None else ({name: method_card(name)}, [])
    if as_json:
        fields = {n: _fields(n, card) for n, card in cards.items()}
        click.echo(json.dumps(fields if name is None else fields[name], indent=1, ensure_ascii=False))
    elif name is None:
        _show_table(make_console(), cards)
        for error in errors:
            click.echo(f"not listed: {error}")
        for line in ignored_extensions("methods"):
            click.echo(line)
    else:
        click.echo(describe_method(name, cards[name]))


def _show_table(console: Console, cards: Mapping[str, MethodCard]) -> None:
    table = Table(box=None, pad_edge=False, row_styles=("", "dim"))
    for head in ("method", "does", "reasoner", "needs", "cost of a text"):
        table.add_column(head, overflow="fold", no_wrap=head == "method")
    for name, card in cards.items():
        table.add_row(name, card.about, _reasoners(card), card.needs, card.cost)
    console.print(table)
    console.print(
        "\nAbout one method: knowhalu methods NAME. To use it: knowhalu check --method NAME, knowhalu detect --method NAME."
    )


def describe_method(name: str, card: MethodCard) -> str:
    """Describe a method: its card, example commands, and its options as TOML."""
    group = Settings().method_options(card)
    lines = [
        f"{name}: {card.about}",
        "",
        f"reasoner: {_reasoners(card)}",
        f"needs: {card.needs}",
        f"cost of a text: {card.cost}",
    ]
    lines += ["", "Commands:", *(f"  {line}" for line in _commands(name, card)), ""]
    lines += [f"Options (--set {card.options}.NAME=VALUE, or in a file for --settings):", f"[{card.options}]"]
    return "\n".join(lines) + "\n" + settings_as_toml(group, list(type(group).model_fields)).rstrip("\n")


def _commands(name: str, card: MethodCard) -> list[str]:
    threshold = " --set trivial.threshold=NUMBER" if card.options == "trivial" else ""
    reasoner = f" --reasoner {next(iter(card.reasoners))}" if card.reasoners and Settings().reasoner not in card.reasoners else ""
    other = f"knowhalu,{name}{':' + reasoner.split()[-1] if reasoner else ''}"
    return [
        f'knowhalu check --method {name}{reasoner}{threshold} --claim "Mars is blue." --knowledge "Mars is red."',
        f"knowhalu detect IN.jsonl -o OUT.jsonl --method {name}{reasoner}{threshold}",
        f"knowhalu compare LABELLED.jsonl --methods {other if name != 'knowhalu' else 'knowhalu:encoder,knowhalu:llm'}",
    ]


def _reasoners(card: MethodCard) -> str:
    return " or ".join(card.reasoners) or NO_REASONER


def _fields(name: str, card: MethodCard) -> dict[str, Any]:
    group = Settings().method_options(card)
    return {
        "name": name, "does": card.about, "reasoners": list(card.reasoners), "needs": card.needs, "cost": card.cost,
        "options": {f"{card.options}.{n}": field.description for n, field in type(group).model_fields.items()},
        "commands": _commands(name, card),
    }  # fmt: skip


@click.command()
@with_settings
def settings(**given: Unpack[SettingOptions]) -> None:
    """Print all settings with their descriptions, as a TOML file to start from.

    With --settings or --set, the values are those of a run with these options.
    """
    click.echo(render_settings(make_settings(given)), nl=False)


def render_settings(tree: Settings) -> str:
    """Return all settings as TOML with comments; a setting without a value is commented out."""
    values = [name for name in type(tree).model_fields if not isinstance(getattr(tree, name), BaseModel)]
    groups = [*(name for name in type(tree).model_fields if name not in values), *(tree.model_extra or ())]
    parts = [settings_as_toml(tree, values)]
    for name in groups:
        group = getattr(tree, name)
        about = " ".join((type(group).__doc__ or "").split())
        shown = [n for n in type(group).model_fields if name not in ROLE_BRANCHES or n in group.model_fields_set]
        parts.append(f"# {about}\n[{name}]\n{settings_as_toml(group, shown)}")
    return "\n".join(parts)


def settings_as_toml(group: BaseModel, names: list[str]) -> str:
    """Return settings of a group as TOML lines, each with its description."""
    lines = []
    for name in names:
        if note := _note(type(group).model_fields[name]):
            lines.append(f"# {note}")
        value = getattr(group, name)
        value = value.value if isinstance(value, Enum) else str(value) if isinstance(value, Path) else value
        lines.append(f"# {name} =" if value is None else f"{name} = {toml_value(value)}")
    return "\n".join(lines) + "\n"


def _note(field: FieldInfo) -> str:
    """Return the description, choices and bounds of a field."""
    choices = _choices(field.annotation)
    bounds = [f"{word} {getattr(rule, attribute)}" for rule in field.metadata
              for attribute, word in (("ge", "at least"), ("gt", "over"), ("le", "at most"), ("lt", "under"))
              if hasattr(rule, attribute)]  # fmt: skip
    return "; ".join(part for part in (field.description or "", " | ".join(choices), ", ".join(bounds)) if part)


def _choices(annotation: Any) -> list[str]:
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [json.dumps(member.value) for member in annotation]
    if str in get_args(annotation):  # one of these choices, or another name
        return [choice for member in get_args(annotation) for choice in _choices(member)]
    return [json.dumps(choice) for choice in get_args(annotation) if isinstance(choice, str)]
