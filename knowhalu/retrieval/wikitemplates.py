"""Templates within sentences that say something with figures or names: as a reader of the page sees them."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

Given = Sequence[str]
Named = Mapping[str, str]

_NUMBER = re.compile(r"[-+−±~]?\s*[\d.]")  # noqa: RUF001
_POWER = re.compile(r"[-+−–]?\s*(?:\d|[kmnx]\b)")  # noqa: RUF001
_THOUSANDS = re.compile(r"e(\d+)(?=\D)")
_MIXED = re.compile(r"(?<=\d)\+(?=\d)")
JOINERS = {
    **{word: f" {word} " for word in ("to", "and", "or", "by", "to about", ", and", ", or")},
    **{"-": "–", "–": "–", "to(-)": " to ", "and(-)": " and ", ",": ", "},  # noqa: RUF001
    **dict.fromkeys(("x", "xx", "×", "*"), " × "),  # noqa: RUF001
    **dict.fromkeys(("±", "+/-"), " ± "),
}
"""What stands between the values of a conversion, and how it is written."""


def is_power(text: str) -> bool:
    """Tell whether what is raised behind a figure is an exponent, and not the letters of an ordinal."""
    return bool(_POWER.match(text))


def _convert(given: Given, named: Named) -> str:
    """Write a measure up to its last unit; what follows is what it is converted to."""
    given = [*given, ""]
    if not _NUMBER.match(given[0]):
        return ""
    text, at = given[0], 1
    while given[at] in JOINERS and _NUMBER.match(given[at + 1]):
        text, at = text + JOINERS[given[at]] + given[at + 1], at + 2
    text, at = f"{text} {_unit(given[at])}", at + 1
    while at + 1 < len(given) and _NUMBER.match(given[at]) and given[at + 1] and not _NUMBER.match(given[at + 1]):
        text, at = f"{text} {given[at]} {_unit(given[at + 1])}", at + 2
    return _MIXED.sub(" ", text).strip()


def _unit(unit: str) -> str:
    return _THOUSANDS.sub(r"× 10^\1 ", unit) if _THOUSANDS.match(unit) else unit  # noqa: RUF001


def _val(given: Given, named: Named) -> str:
    """Write a value with its uncertainty, power of ten and unit."""
    value, *errors = [text for text in given if text] or [""]
    if len(errors) == 1:
        value += f" ± {errors[0]}"
    elif errors:
        value += f" (+{errors[0].lstrip('+')} −{errors[1].lstrip('-−')})"  # noqa: RUF001
    if named.get("e"):
        value += f" × 10^{named['e']}"  # noqa: RUF001
    unit = named.get("u") or named.get("ul") or ""
    per = named.get("up") or named.get("upl") or ""
    return f"{value} {unit}{'/' if per else ''}{per}".strip()


def _link(given: Given, named: Named) -> str:
    return named.get("lt") or given[0]


def _ship(given: Given, named: Named, *, prefix: str = "") -> str:
    before, name, mark, *_ = [*([prefix] if prefix else []), *given, "", ""]
    return f"{before} {name} {f'({mark})' if mark else ''}".strip()


def _fraction(given: Given, named: Named) -> str:
    whole, (above, below) = given[:-2], (["1", *given])[-2:]
    return f"{''.join(whole)} {above}/{below}".strip()


def _circa(given: Given, named: Named) -> str:
    return " – ".join(f"c. {year}" for year in given if year)  # noqa: RUF001


PHRASES: dict[str, Callable[[Given, Named], str]] = {
    **dict.fromkeys(("convert", "cvt"), _convert),
    **dict.fromkeys(("ill", "interlanguage_link"), _link),
    **dict.fromkeys(("frac", "fraction", "sfrac"), _fraction),
    **dict.fromkeys(("circa", "c."), _circa),
    **{name: partial(_ship, prefix=name.upper()) for name in "uss hms hmas hmcs hmnzs usns uscgc rms ss mv sms".split()},
    **{
        "val": _val,
        "ship": _ship,
        "as_of": lambda given, named: f"as of {given[0]}",
        "e": lambda given, named: f" × 10^{given[0]}",
    },  # noqa: RUF001
}
"""By name, what a template with at least one argument says."""
