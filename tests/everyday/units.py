"""Measurements in other units, and money in other notations: converted rightly, and not converted or at a wrong scale."""

from random import Random
from typing import NamedTuple

from tests.everyday.cases import Pair, variety
from tests.everyday.pools import FIRMS, PLACES, other_fact

units = variety("units")


class Measured(NamedTuple):
    """A measured fact: `{p}` is a place and `{v}` the measurement; `least` and `most` are in the first unit."""

    sentence: str
    question: str
    least: float
    most: float
    names: tuple[tuple[str, float], ...]
    """Spellings of units, and how many of them the first unit is."""


MEASURED = {
    "length": Measured(
        "The {p} bridge is {v} long.",
        "How long is the {p} bridge?",
        110,
        900,
        (("metres", 1), ("feet", 3.28084), ("ft", 3.28084), ("yards", 1.09361), ("m", 1)),
    ),
    "distance": Measured(
        "{p} is {v} from the coast.",
        "How far is {p} from the coast?",
        12,
        600,
        (("km", 1), ("kilometres", 1), ("miles", 0.621371), ("mi", 0.621371)),
    ),
    "depth": Measured(
        "The well of {p} is {v} deep.",
        "How deep is the well of {p}?",
        150,
        900,
        (("cm", 1), ("centimetres", 1), ("inches", 0.393701), ("metres", 0.01)),
    ),
    "area": Measured(
        "The forest of {p} covers {v}.",
        "How large is the forest of {p}?",
        20,
        900,
        (("hectares", 1), ("acres", 2.47105), ("ha", 1), ("square kilometres", 0.01), ("km²", 0.01)),
    ),
    "floor": Measured(
        "The hall of {p} has a floor of {v}.",
        "How large is the floor of the hall of {p}?",
        50,
        900,
        (("square metres", 1), ("m²", 1), ("square feet", 10.7639), ("sq ft", 10.7639)),
    ),
    "volume": Measured(
        "The tank of {p} holds {v} of water.",
        "How much water does the tank of {p} hold?",
        120,
        900,
        (("litres", 1), ("gallons", 0.264172), ("liters", 1), ("cubic metres", 0.001), ("L", 1)),
    ),
    "mass": Measured(
        "The bell of {p} weighs {v}.",
        "How much does the bell of {p} weigh?",
        120,
        900,
        (("kg", 1), ("kilograms", 1), ("pounds", 2.20462), ("lbs", 2.20462), ("tonnes", 0.001)),
    ),
    "speed": Measured(
        "The train to {p} runs at {v}.",
        "How fast is the train to {p}?",
        60,
        310,
        (("km/h", 1), ("mph", 0.621371), ("kilometres per hour", 1), ("miles per hour", 0.621371), ("kph", 1)),
    ),
    "data": Measured(
        "The archive of {p} takes up {v}.",
        "How much space does the archive of {p} take up?",
        2,
        90,
        (("GB", 1), ("gigabytes", 1), ("MB", 1000), ("TB", 0.001), ("megabytes", 1000)),
    ),
    "time": Measured(
        "The crossing from {p} takes {v}.",
        "How long does the crossing from {p} take?",
        2,
        9,
        (("hours", 1), ("minutes", 60), ("hrs", 1), ("min", 60), ("seconds", 3600)),
    ),
    "wait": Measured(
        "A permit for {p} is valid for {v}.", "How long is a permit for {p} valid?", 2, 12, (("weeks", 1), ("days", 7))
    ),
    "power": Measured(
        "The dam of {p} delivers {v}.",
        "How much power does the dam of {p} deliver?",
        12,
        900,
        (("MW", 1), ("megawatts", 1), ("kW", 1000), ("kilowatts", 1000), ("GW", 0.001)),
    ),
    "energy": Measured(
        "The school of {p} uses {v} a year.",
        "How much energy does the school of {p} use?",
        12,
        900,
        (("MWh", 1), ("megawatt-hours", 1), ("kWh", 1000), ("kilowatt hours", 1000)),
    ),
}


def _rounded(value: float, digits: int = 3) -> str:
    """Write a number to so many significant digits."""
    text = f"{value:.{digits}g}"
    number = float(text)
    return f"{number:,.0f}" if number >= 100 else f"{number:g}"


def _answers(rng: Random, fact: Measured, place: str, given: str, right: str, wrong: str) -> Pair:
    document = f"{fact.sentence.format(p=place, v=given)} {other_fact(rng, place)}"
    if rng.random() < 0.5:
        right, wrong = (fact.sentence.format(p=place, v=v) for v in (right, wrong))
        return Pair((document,), rng.choice((None, fact.question.format(p=place))), right, wrong, by_value=True)
    right, wrong = (f"{v[0].upper()}{v[1:]}{'' if v.endswith('.') else '.'}" for v in (right, wrong))
    return Pair((document,), fact.question.format(p=place), right, wrong, by_value=True)


def _measurement(rng: Random, name: str) -> Pair:
    fact = MEASURED[name]
    value = round(rng.uniform(fact.least, fact.most), 0 if fact.most > 50 else rng.choice((0, 1)))
    (one, a), (two, b) = rng.sample(fact.names, 2)
    given, converted = value * a, value * b
    opening = rng.choice(("about ", "roughly ", "around ", "approximately ", "some "))
    exact = b / a in (1, 10, 100, 1000, 1e6, 0.1, 0.01, 0.001, 7, 60)
    right = f"{'' if exact else opening}{_rounded(converted, 6 if exact else 3)} {two}"
    factor = rng.choice((1.5, 0.6)) if a == b else rng.choice((a / b, 1.5, 0.6))
    wrong = f"{'' if exact else opening}{_rounded(converted * factor, 3)} {two}"
    return _answers(rng, fact, rng.choice(PLACES), f"{_rounded(given, 6)} {one}", right, wrong)


for _name in MEASURED:

    def _made(rng: Random, name: str = _name) -> Pair:
        return _measurement(rng, name)

    _made.__name__ = _name
    units(_made)

_KILN = Measured("The kiln of {p} is kept at {v}.", "How hot is the kiln of {p}?", 20, 95, ())


@units
def temperature(rng: Random) -> Pair:
    celsius = rng.randint(20, 95)
    fahrenheit = celsius * 9 / 5 + 32
    one, two = rng.sample((("°C", "C"), (" °F", "F"), (" degrees Celsius", "C"), ("°F", "F"), (" degrees Fahrenheit", "F")), 2)
    given, said = (celsius if unit[1] == "C" else fahrenheit for unit in (one, two))
    other = said + rng.choice((15, 30, -12)) if one[1] == two[1] else given
    texts = (f"{given:.0f}{one[0]}", f"{said:.0f}{two[0]}", f"{other:.0f}{two[0]}")
    return _answers(rng, _KILN, rng.choice(PLACES), *texts)


@units
def both_units(rng: Random) -> Pair:
    metres = rng.randint(40, 400)
    feet = round(metres * 3.28084)
    fact = Measured("The mast of {p} is {v} tall.", "How tall is the mast of {p}?", 0, 0, ())
    wrong = round(feet * rng.choice((1.4, 0.7)))
    return _answers(
        rng,
        fact,
        rng.choice(PLACES),
        f"{metres} metres",
        f"about {feet} feet ({metres} metres)",
        f"about {wrong} feet ({round(wrong / 3.28084)} metres)",
    )


_MONEY = (
    ("{f} paid {v} for the warehouse.", "How much did {f} pay for the warehouse?"),
    ("{f} made a profit of {v}.", "How much profit did {f} make?"),
    ("The new hall cost {f} {v}.", "What did the new hall cost {f}?"),
)
_CURRENCIES = (("$", "dollars", "USD"), ("€", "euros", "EUR"), ("£", "pounds", "GBP"), ("¥", "yen", "JPY"))


def _amounts(sign: str, name: str, code: str, tenths: int, scale: str, factor: int) -> tuple[str, ...]:
    short = {"million": "m", "billion": "bn"}[scale]
    x = tenths / 10
    return (
        f"{sign}{x} {scale}",
        f"{x} {scale} {name}",
        f"{code} {x} {scale}",
        f"{sign}{x}{short}",
        f"{sign}{tenths * factor // 10:,}",
        f"{x} {scale} {code}",
    )


@units
def money(rng: Random) -> Pair:
    firm, (sentence, question), (currency, another) = rng.choice(FIRMS), rng.choice(_MONEY), rng.sample(_CURRENCIES, 2)
    tenths, (scale, other) = rng.randint(11, 98), rng.sample((("million", 10**6), ("billion", 10**9)), 2)
    given, right = rng.sample(_amounts(*currency, tenths, *scale), 2)
    wrong = rng.choice(
        (
            rng.choice(_amounts(*currency, tenths, *other)),
            rng.choice(_amounts(*another, tenths, *scale)),
            rng.choice(_amounts(*currency, tenths + 11, *scale)),
        )
    )
    stated = [sentence.format(f=firm, v=v) for v in (given, right, wrong)]
    if rng.random() < 0.5:
        return Pair((stated[0],), None, *stated[1:], by_value=True)
    return Pair((stated[0],), question.format(f=firm), f"{right}.", f"{wrong}.", by_value=True)


@units
def prices(rng: Random) -> Pair:
    place, (sign, name, code) = rng.choice(PLACES), rng.choice(_CURRENCIES[:3])
    cents = rng.randint(3, 80) * 100 + rng.choice((0, 50, 95))

    def forms(c: int) -> tuple[str, ...]:
        text = f"{c / 100:.2f}" if c % 100 else f"{c // 100}"
        return (f"{sign}{text}", f"{text} {name}", f"{text} {code}", f"{code} {text}", f"{text}{sign}")

    fact = Measured("A ticket to {p} costs {v}.", "How much is a ticket to {p}?", 0, 0, ())
    given, right = rng.sample(forms(cents), 2)
    return _answers(rng, fact, place, given, right, rng.choice(forms(cents + rng.choice((100, 250, 1000)))))
