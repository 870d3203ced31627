"""Names and facts that the generators draw from, all made up, and numbers in words."""

from random import Random
from typing import NamedTuple

PEOPLE = (
    "Nora Lindqvist",
    "Pavel Hruska",
    "Amara Obiora",
    "Tomas Vidal",
    "Greta Sommer",
    "Idris Malik",
    "Helen Croft",
    "Jonas Weber",
    "Lucia Ferrante",
    "Owen Pritchard",
    "Mei Tanaka",
    "Samuel Okafor",
    "Ingrid Dahl",
    "Victor Almeida",
    "Ruth Callaghan",
    "Anton Petrov",
    "Leila Haddad",
    "Marcus Thorne",
    "Beatrice Lowell",
    "Stefan Kowal",
)
PLACES = (
    "Halvern",
    "Corrin",
    "Marnock",
    "Veldham",
    "Brackley",
    "Ostermoor",
    "Pellwick",
    "Sandrigg",
    "Tolvara",
    "Winmere",
    "Ashcombe",
    "Dunmarsh",
    "Elvaston",
    "Fairholt",
    "Glenrath",
    "Hexby",
)
FIRMS = ("Kestrel Foods", "Norvik Shipping", "Alder Textiles", "Bluefin Energy", "Corvus Tools", "Delphi Glass", "Fenwick Motors")
TITLES = (
    "The Glass Orchard",
    "Winter Harbour",
    "The Last Ferryman",
    "Salt and Ashes",
    "A House of Reeds",
    "The Copper Moon",
    "Nightfall in Corrin",
    "The Quiet Engine",
    "Letters to Elvaston",
    "The Paper Lantern",
)
COUNTRIES = ("Norway", "Portugal", "Chile", "Kenya", "Canada", "Austria", "Vietnam", "Morocco", "Ireland", "Peru")
TRADES = ("harbour master", "violinist", "surgeon", "botanist", "cartographer", "sculptor", "judge", "chemist")


def pick(rng: Random, pool: tuple[str, ...], count: int) -> list[str]:
    """Draw different items."""
    return rng.sample(pool, count)


class Counted(NamedTuple):
    """A fact with a number of things: `{p}` is a place."""

    subject: str
    verb: str
    noun: str
    auxiliary: str = "does"

    def sentence(self, place: str, value: str) -> str:
        """State the fact."""
        return f"{self.subject.format(p=place)} {self.verb}s {value} {self.noun}."

    def question(self, place: str) -> str:
        """Ask for the number."""
        subject = self.subject.format(p=place)
        return f"How many {self.noun} does {subject[0].lower() + subject[1:]} {self.verb}?"


COUNTED = (
    Counted("The {p} library", "hold", "books"),
    Counted("The {p} stadium", "seat", "spectators"),
    Counted("The {p} hospital", "employ", "nurses"),
    Counted("The {p} nursery", "grow", "saplings"),
    Counted("The {p} museum", "own", "paintings"),
    Counted("The {p} factory", "assemble", "bicycles"),
    Counted("The {p} shelter", "feed", "animals"),
)
OTHER_FACTS = (
    "{p} lies on the river Aune.",
    "The market of {p} is held on Saturdays.",
    "A ferry links {p} with the islands.",
    "The old town of {p} is built of red brick.",
    "{p} is known for its pottery.",
)


def other_fact(rng: Random, place: str) -> str:
    """Return a sentence about a place that has no value."""
    return rng.choice(OTHER_FACTS).format(p=place)


_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


def spelled(number: int) -> str:
    """Write a whole number below a million in words."""
    if number < 20:
        return _SMALL[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return _TENS[tens - 2] + (f"-{_SMALL[rest]}" if rest else "")
    if number < 1000:
        hundreds, rest = divmod(number, 100)
        return f"{_SMALL[hundreds]} hundred" + (f" and {spelled(rest)}" if rest else "")
    thousands, rest = divmod(number, 1000)
    return f"{spelled(thousands)} thousand" + (f" {'and ' if rest < 100 else ''}{spelled(rest)}" if rest else "")


def ordinal(number: int) -> str:
    """Write an ordinal in digits."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


ORDINAL_WORDS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
    "sixteenth seventeenth eighteenth nineteenth twentieth"
).split()


def roman(number: int) -> str:
    """Write a number below 40 in Roman numerals."""
    tens, ones = divmod(number, 10)
    return "X" * tens + ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX")[ones]


class Fact(NamedTuple):
    """A sentence of a source, a faithful statement of it, and one that is wrong in a detail."""

    source: str
    right: str
    wrong: str
    heading: str
    detail: tuple[str, str]
    """The right and the wrong detail alone."""


_FACTS = (
    ("The {p} bridge opened in {v}.", "The {p} bridge was opened in {v}.", "Opened", "year"),
    ("The {p} mill belongs to {v}.", "{v} owns the {p} mill.", "Owner", "firm"),
    ("{v} designed the {p} station.", "The {p} station was designed by {v}.", "Designer", "person"),
    ("The {p} choir has {v} singers.", "{v} singers belong to the {p} choir.", "Singers", "count"),
    ("The {p} clinic is led by {v}.", "{v} leads the {p} clinic.", "Head of the clinic", "person"),
)


def facts(rng: Random, count: int, *, place: str | None = None) -> list[Fact]:
    """Draw facts about different things; all of one place where it is given."""
    places = [place] * count if place else pick(rng, PLACES, count)
    made = []
    for at, (source, said, heading, kind) in zip(places, rng.sample(_FACTS, count), strict=True):
        if kind == "year":
            year = rng.randint(1850, 2005)
            values = (str(year), str(year + rng.choice((-31, 12, 7))))
        elif kind == "count":
            number = rng.randint(21, 89)
            values = (str(number), str(number + rng.choice((13, 40))))
        else:
            values = tuple(pick(rng, FIRMS if kind == "firm" else PEOPLE, 2))
        form = rng.choice((source, said))
        right, wrong = (form.format(p=at, v=v) for v in values)
        made.append(Fact(source.format(p=at, v=values[0]), right, wrong, heading, (values[0], values[1])))
    return made
