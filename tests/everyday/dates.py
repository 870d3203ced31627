"""The same date or time in another form, or less precise, and another date in that form."""

import datetime
from collections.abc import Callable
from random import Random

from tests.everyday.cases import Pair, variety
from tests.everyday.pools import FIRMS, ORDINAL_WORDS, PEOPLE, PLACES, ordinal, other_fact

date_form = variety("same date in another form")
MONTHS = "January February March April May June July August September October November December".split()
_EVENTS = (
    ("The {x} lighthouse was lit {d}.", "When was the {x} lighthouse lit?", PLACES),
    ("The {x} theatre reopened {d}.", "When did the {x} theatre reopen?", PLACES),
    ("{x} was born {d}.", "When was {x} born?", PEOPLE),
    ("{x} went public {d}.", "When did {x} go public?", FIRMS),
    ("The tunnel of {x} was flooded {d}.", "When was the tunnel of {x} flooded?", PLACES),
)


def _event(rng: Random, given: str, right: str, wrong: str) -> Pair:
    """Ask when something happened; "on 3 May" and the like are the phrases."""
    sentence, question, pool = rng.choice(_EVENTS)
    name = rng.choice(pool)
    stated = [sentence.format(x=name, d=v) for v in (given, right, wrong)]
    document = f"{stated[0]} {other_fact(rng, rng.choice(PLACES))}"
    if rng.random() < 0.5:
        return Pair((document,), rng.choice((None, question.format(x=name))), *stated[1:], by_value=True)
    bare = [v.removeprefix("on ").removeprefix("in ") for v in (right, wrong)]
    return Pair((document,), question.format(x=name), *(f"{v[0].upper()}{v[1:]}" for v in bare), by_value=True)


def _day(rng: Random) -> datetime.date:
    return datetime.date(rng.randint(1805, 2019), rng.randint(1, 12), rng.randint(1, 28))


def day_forms(d: datetime.date) -> tuple[str, ...]:
    """Write a day in many forms, each with its preposition."""
    month, short = MONTHS[d.month - 1], MONTHS[d.month - 1][:3]
    return (
        f"on {d.day} {month} {d.year}",
        f"on {month} {d.day}, {d.year}",
        f"on {short} {d.day}, {d.year}",
        f"on {d.day} {short}{'' if short == month else '.'} {d.year}",
        f"on {d.isoformat()}",
        f"on the {ordinal(d.day)} of {month} {d.year}",
        f"on {month} {ordinal(d.day)}, {d.year}",
        f"on {d.day:02}.{d.month:02}.{d.year}",
        f"on {d.year}/{d.month:02}/{d.day:02}",
        f"on {d.day}-{short}-{d.year}",
    )


def _other_day(rng: Random, d: datetime.date) -> datetime.date:
    """Change the year, the month or the day."""
    return rng.choice(
        (
            d.replace(year=d.year + rng.choice((-10, 1, 3))),
            d.replace(month=d.month % 12 + 1),
            d.replace(day=d.day % 28 + 1),
        )
    )


@date_form
def whole_days(rng: Random) -> Pair:
    d = _day(rng)
    given, right = rng.sample(day_forms(d), 2)
    return _event(rng, given, right, rng.choice(day_forms(_other_day(rng, d))))


@date_form
def slashes(rng: Random) -> Pair:
    d = _day(rng).replace(day=rng.randint(13, 28))
    form = rng.choice((f"{d.day}/{d.month}/{d.year}", f"{d.month}/{d.day}/{d.year}", f"{d.day:02}/{d.month:02}/{d.year}"))
    if rng.random() < 0.5:
        return _event(rng, rng.choice(day_forms(d)), f"on {form}", f"on {form.replace(str(d.year), str(d.year + 2))}")
    return _event(rng, f"on {form}", rng.choice(day_forms(d)), rng.choice(day_forms(_other_day(rng, d))))


@date_form
def less_precise(rng: Random) -> Pair:
    d = _day(rng)
    other = d.replace(year=d.year + rng.choice((-12, 2, 5)))
    month = MONTHS[d.month - 1]
    forms = ("in {y}", f"in {month} {{y}}", f"in {month[:3]}. {{y}}", f"in {month} of {{y}}")
    form = rng.choice(forms)
    wrong = form.format(y=other.year)
    if "{y}" in form and month in form and rng.random() < 0.5:
        wrong = form.format(y=d.year).replace(month, MONTHS[d.month % 12])
    return _event(rng, rng.choice(day_forms(d)), form.format(y=d.year), wrong)


def _decade_phrase(year: int, part: bool) -> str:
    third = "early " if year % 10 < 3 else "late " if year % 10 > 7 else "mid-"
    return f"in the {third if part else ''}{year // 10 * 10}s"


@date_form
def decades(rng: Random) -> Pair:
    d = _day(rng)
    d = d.replace(year=rng.choice((1800, 1900)) + rng.randint(30, 99))  # "the 1900s" may be a century
    part = rng.random() < 0.4 and d.year % 10 in (0, 1, 2, 4, 5, 8, 9)
    wrong = _decade_phrase(d.year + rng.choice((-20, -10)), part)
    given = rng.choice((*day_forms(d), f"in {d.year}"))
    return _event(rng, given, _decade_phrase(d.year, part), wrong)


@date_form
def centuries(rng: Random) -> Pair:
    year = rng.randint(1102, 1989)
    number = year // 100 + 1
    forms: tuple[Callable[[int], str], ...] = (
        lambda n: f"in the {ordinal(n)} century",
        lambda n: f"in the {ORDINAL_WORDS[n - 1]} century",
    )
    form = rng.choice(forms)
    return _event(rng, f"in {year}", form(number), form(number + (1 if rng.random() < 0.5 and number < 20 else -1)))


@date_form
def seasons(rng: Random) -> Pair:
    names = {"spring": (3, 4, 5), "summer": (6, 7, 8), "autumn": (9, 10, 11)}
    season = rng.choice(list(names))
    other = rng.choice([n for n in names if n != season])
    d = _day(rng).replace(month=rng.choice(names[season]))
    form = rng.choice(("in the {s} of {y}", "in {s} {y}"))
    wrong = rng.choice((form.format(s=other, y=d.year), form.format(s=season, y=d.year + 3)))
    return _event(rng, rng.choice(day_forms(d)), form.format(s=season, y=d.year), wrong)


@date_form
def quarters(rng: Random) -> Pair:
    d = _day(rng)
    quarter = (d.month - 1) // 3 + 1
    forms: tuple[Callable[[int, int], str], ...] = (
        lambda q, y: f"in the {ORDINAL_WORDS[q - 1]} quarter of {y}",
        lambda q, y: f"in Q{q} {y}",
        lambda q, y: f"in Q{q} of {y}",
        lambda q, y: f"in the {ordinal(q)} quarter of {y}",
    )
    form, given = rng.choice(forms), rng.choice((*day_forms(d), forms[0](quarter, d.year)))
    wrong = rng.choice((form(quarter % 4 + 1, d.year), form(quarter, d.year + 1)))
    right = form(quarter, d.year)
    return _event(rng, given if given != right else day_forms(d)[0], right, wrong)


@date_form
def halves(rng: Random) -> Pair:
    d = _day(rng)
    first = d.month < 7
    right, wrong = (f"in the {'first' if f else 'second'} half of {d.year}" for f in (first, not first))
    return _event(rng, rng.choice(day_forms(d)), right, wrong)


@date_form
def order(rng: Random) -> Pair:
    d = _day(rng)
    near = d.year + rng.choice((2, 5, 11))
    far = d.year - rng.choice((2, 5, 11))
    given = rng.choice((*day_forms(d), f"in {d.year}"))
    return _event(rng, given, *rng.choice(((f"before {near}", f"before {far}"), (f"after {far}", f"after {near}"))))


_TIMETABLE = (
    ("The night train to {p} leaves at {t}.", "When does the night train to {p} leave?"),
    ("The museum of {p} closes at {t}.", "What time does the museum of {p} close?"),
    ("The council of {p} meets at {t}.", "At what time does the council of {p} meet?"),
)


def clock_forms(hour: int, minute: int) -> tuple[str, ...]:
    """Write a time of day in many forms."""
    twelve, half = hour % 12 or 12, "am" if hour < 12 else "pm"
    forms = [
        f"{hour:02}:{minute:02}",
        f"{twelve}:{minute:02} {half}",
        f"{twelve}:{minute:02}{half}",
        f"{twelve}:{minute:02} {half[0]}.{half[1]}.",
        f"{twelve}.{minute:02} {half}",
        f"{hour:02}:{minute:02}h",
    ]
    if minute == 0:
        forms += [f"{twelve} {half}", f"{twelve}{half}", f"{twelve} {half[0]}.{half[1]}."]
        forms += {0: ["midnight"], 12: ["noon"]}.get(hour, [])
    return tuple(forms)


@date_form
def clock_times(rng: Random) -> Pair:
    place, (sentence, question) = rng.choice(PLACES), rng.choice(_TIMETABLE)
    hour, minute = rng.choice((rng.randrange(24), 12, 0)), rng.choice((0, 0, 15, 30, 45, 10))
    given, right = rng.sample(clock_forms(hour, minute), 2)
    other = rng.choice((((hour + 12) % 24, minute), ((hour + 1) % 24, minute), (hour, (minute + 20) % 60)))
    wrong = rng.choice(clock_forms(*other))
    stated = [sentence.format(p=place, t=v) for v in (given, right, wrong)]
    stated = [s[:-1] if s.endswith("..") else s for s in stated]
    if rng.random() < 0.5:
        return Pair((f"{stated[0]} {other_fact(rng, place)}",), None, *stated[1:], by_value=True)
    return Pair((stated[0],), question.format(p=place), f"At {right}", f"At {wrong}", by_value=True)


@date_form
def periods(rng: Random) -> Pair:
    first = rng.randint(1850, 1990)
    last = first + rng.randint(3, 18)
    person, place = rng.choice(PEOPLE), rng.choice(PLACES)
    forms = (f"from {first} to {last}", f"between {first} and {last}", f"{first}–{last}", f"from {first} until {last}")  # noqa: RUF001
    given, right = rng.sample(forms, 2)
    wrong = right.replace(str(first), str(first - 7)) if rng.random() < 0.5 else right.replace(str(last), str(last + 4))
    stated = [f"{person} was mayor of {place} {v}." for v in (given, right, wrong)]
    return Pair((f"{stated[0]} {other_fact(rng, place)}",), None, *stated[1:], by_value=True)
