"""Make examples of written scenarios: texts with slots for names and values, and statements that hold or fail for any of them.

`{a}` stands for a value of the slot `a`, `{a~}` for the same value in another form, `{a!}` for another value of its kind, and
`{a:he}`, `{a:his}`, `{a:him}` for the pronoun of a person. The values are drawn for every example, so they cannot reveal a label.
"""

import random
import re
from collections.abc import Mapping

from knowhalu.text.blocks import read_units
from knowhalu.training.data_files import TrainingRow
from knowhalu.training.examples import TARGETS, TrainingExample
from knowhalu.training.slots import POOLS, SlotValue, choose_listed

SLOT = re.compile(r"\{(\w+)(?::(\w+))?([~!]?)\}")
FRAMES = (
    "According to the text, ", "Based on the information given, ", "The document states that ", "From what I can see, ",
    "As mentioned, ", "Yes, ", "Sure! ", "In short: ", "The sources say that ", "In summary, ",
)  # fmt: skip
FRAME_SHARE, DISTRACTOR_SHARE, READ_SHARE = 0.04, 0.25, 0.7
"""Shares of claims with a lead-in, of premises beside another text, and of premises read as blocks (tables as rows)."""


def scenario_example(row: TrainingRow, other: TrainingRow, rng: random.Random) -> TrainingExample:
    """Fill the slots of a scenario and return one of its statements, sometimes with another scenario in the premise."""
    values = draw_values(row["slots"], rng)
    statement = rng.choice(row["claims"])
    premise, claim = fill(row["text"], values, rng), fill(statement["text"], values, rng)
    if rng.random() < DISTRACTOR_SHARE:
        beside = fill(other["text"], draw_values(other["slots"], rng), rng)
        premise = f"{beside} {premise}" if rng.random() < 0.5 else f"{premise} {beside}"
    before = statement.get("question") or statement.get("before")
    if before is None and rng.random() < FRAME_SHARE:
        claim = rng.choice(FRAMES) + claim
    read = [u.text for u in read_units(premise)] if rng.random() < READ_SHARE else premise.split()
    return TrainingExample(" ".join(read), fill(before, values, rng) if before else "", claim, TARGETS[statement["label"]])


def draw_values(slots: Mapping[str, str | list[str]], rng: random.Random) -> dict[str, SlotValue]:
    """Draw a value for each slot; no two have a name or a form in common, so that every form tells which one is meant."""
    values: dict[str, SlotValue] = {}
    taken: set[str] = set()
    for name, pool in slots.items():
        for _ in range(50):
            value = POOLS[pool](rng) if isinstance(pool, str) else choose_listed(pool, [v.text for v in values.values()], rng)
            if taken.isdisjoint(value.keys):
                break
        values[name] = value
        taken |= value.keys
    return values


def fill(template: str, values: Mapping[str, SlotValue], rng: random.Random) -> str:
    """Fill a template; a sentence that begins with a slot begins with a capital."""
    taken = {v.text for v in values.values()}

    def put(m: re.Match[str]) -> str:
        value, pronoun, way = values[m[1]], m[2], m[3]
        if pronoun:
            text = value.pronoun(pronoun)
        elif way == "~":
            text = rng.choice(value.forms) if value.forms else value.text
        elif way == "!":
            text = rng.choice([o for o in value.others if o not in taken] or list(value.others))
        else:
            text = value.text
        opens = not template[: m.start()].strip() or template[: m.start()].rstrip()[-1] in ".!?\n"
        closes = text.endswith(".") and template[m.end() :].startswith(".")
        text = text[:-1] if closes else text
        return text[:1].upper() + text[1:] if opens else text

    return SLOT.sub(put, template)
