"""`knowhalu methods`: the table of methods, and the card of one."""

import json
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from knowhalu.cli.settings import entries
from knowhalu.cli.show import make_console
from knowhalu.names import METHODS, MethodCard, method_card
from knowhalu.options import Settings

NOBODY = "nobody: a rule"


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def methods(name: str | None, as_json: bool) -> None:
    """List the methods: what each does, who can think in it, what it needs and costs; with NAME, all of one."""
    cards = METHODS if name is None else {name: method_card(name)}
    if as_json:
        fields = {n: _fields(n, card) for n, card in cards.items()}
        click.echo(json.dumps(fields if name is None else fields[name], indent=1, ensure_ascii=False))
    elif name is None:
        _show_table(make_console())
    else:
        click.echo(card_text(name, cards[name]))


def _show_table(console: Console) -> None:
    table = Table(box=None, pad_edge=False, row_styles=("", "dim"))
    for head in ("method", "does", "who thinks", "needs", "cost of a text"):
        table.add_column(head, overflow="fold", no_wrap=head == "method")
    for name, card in METHODS.items():
        table.add_row(name, card.does, _thinkers(card), card.needs, card.cost)
    console.print(table)
    console.print("\nOne of them: knowhalu methods NAME. Use it: knowhalu check --method NAME, knowhalu detect --method NAME.")


def card_text(name: str, card: MethodCard) -> str:
    """Return all that is to be known of a method: its card, its options as TOML, and commands to begin with."""
    group = getattr(Settings(), card.options)
    lines = [f"{name}: {card.does}", "", f"who thinks: {_thinkers(card)}", f"needs: {card.needs}", f"cost of a text: {card.cost}"]
    lines += ["", "Commands:", *(f"  {line}" for line in _commands(name, card)), ""]
    lines += [f"Options (--set {card.options}.NAME=VALUE, or in a file for --settings):", f"[{card.options}]"]
    return "\n".join(lines) + "\n" + entries(group, list(type(group).model_fields)).rstrip("\n")


def _commands(name: str, card: MethodCard) -> list[str]:
    border = " --set trivial.border=NUMBER" if card.options == "trivial" else ""
    some = f" --reasoner {next(iter(card.reasoners))}" if card.reasoners and Settings().reasoner not in card.reasoners else ""
    return [
        f'knowhalu check --method {name}{some}{border} --claim "Mars is blue." --knowledge "Mars is red."',
        f"knowhalu detect IN.jsonl -o OUT.jsonl --method {name}{some}{border}",
        f"knowhalu compare LABELLED.jsonl --methods knowhalu,{name}{':' + some.split()[-1] if some else ''}" if name != "knowhalu"
        else "knowhalu compare LABELLED.jsonl --methods knowhalu:encoder,knowhalu:llm",
    ]  # fmt: skip


def _thinkers(card: MethodCard) -> str:
    return " or ".join(card.reasoners) or NOBODY


def _fields(name: str, card: MethodCard) -> dict[str, Any]:
    group = getattr(Settings(), card.options)
    return {
        "name": name, "does": card.does, "reasoners": list(card.reasoners), "needs": card.needs, "cost": card.cost,
        "options": {f"{card.options}.{n}": field.description for n, field in type(group).model_fields.items()},
        "commands": _commands(name, card),
    }  # fmt: skip
