"""The pools of the slots of scenarios: names and values, each with other forms of the same value and with other values."""

import datetime
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

from knowhalu.text.wordlists import CARDINALS, MONTHS, WEEKDAYS

WOMEN = (
    "Anna Maria Ida Clara Nora Mei Aisha Priya Elena Sofia Ruth Hanna Zoe Lucia Greta Naomi Fatima Ines Olga Tara Yuki Lena "
    "Martha Joan Helen Rosa Amina Carmen Leila Vera"
).split()
MEN = (
    "Tom Ben Lars Omar Pavel Hugo Kenji Luis Amir David Jonas Felix Viktor Samuel Ravi Marco Ivan Peter Karim Daniel Emil Noah "
    "Oscar Henrik Mateo Frank Walter Tariq Jorge Stefan"
).split()
SURNAMES = (
    "Holt Arden Moss Keller Brandt Varga Lind Okafor Tanaka Rossi Petrov Silva Haddad Novak Berg Castillo Ferri Kowalski Nilsen "
    "Osei Marsh Duarte Whitlock Abara Lindqvist Roth Sato Mendes Farah Quill Bauer Iyer Costa Hale Thorne Vidal"
).split()
PLACE_STARTS = "Or Tar Hal Bren Kel Sund Mar Vel Stor Lin Ash Dun Gar Riv Nor Wes Cal Fen Ost Bel".split()
PLACE_ENDS = "vik na mere ford burg holm ton dale mouth stad ley cross wick field haven".split()
COUNTRIES = (
    "Norway Portugal Kenya Chile Poland Vietnam Canada Ghana Greece Peru Finland Morocco Japan Ireland India Brazil Austria "
    "Turkey Denmark Mexico"
).split()
COMPANY_ENDS = ("Works", "Labs", "Foods", "Energy", "Systems", "Logistics", "Instruments", "Mills", "Textiles", "Motors")


class SlotValue(NamedTuple):
    """A value as the text says it, other forms of it, other values of its kind, and the gender of a person ("f" or "m")."""

    text: str
    forms: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    gender: str = ""

    @property
    def keys(self) -> set[str]:
        """Return what no other value of a scenario may share: the text, its names, and its forms."""
        return {self.text, *self.forms, *(w for w in self.text.split() if w[:1].isupper())}

    def pronoun(self, wanted: str) -> str:
        """Return "he", "him", "his" or "himself" for the person, with a capital where `wanted` has one."""
        female = {"he": "she", "him": "her", "his": "her", "himself": "herself"}
        text = female[wanted.lower()] if self.gender == "f" else wanted.lower()
        return text.capitalize() if wanted[0].isupper() else text


def choose_listed(values: Sequence[str], taken: Sequence[str], rng: random.Random) -> SlotValue:
    """Choose one of a scenario's own values; the others of the list are its other values."""
    text = rng.choice([v for v in values if v not in taken] or list(values))
    return SlotValue(text, (), tuple(v for v in values if v != text))


def _person(rng: random.Random) -> SlotValue:
    gender = rng.choice("fm")
    names = WOMEN if gender == "f" else MEN
    return _named(rng.choice(names), names, gender)


def _named(text: str, names: Sequence[str], gender: str = "") -> SlotValue:
    return SlotValue(text, (), tuple(n for n in names if n != text), gender)


def _full_name(rng: random.Random) -> SlotValue:
    gender = rng.choice("fm")
    first = WOMEN if gender == "f" else MEN
    name, surname = rng.choice(first), rng.choice(SURNAMES)
    others = tuple(f"{rng.choice(first)} {rng.choice(SURNAMES)}" for _ in range(4))
    return SlotValue(f"{name} {surname}", (surname, f"{name[0]}. {surname}"), others, gender)


def _surname(rng: random.Random) -> SlotValue:
    return _named(rng.choice(SURNAMES), SURNAMES)


def _town(rng: random.Random) -> SlotValue:
    names = [a + b for a, b in zip(rng.choices(PLACE_STARTS, k=5), rng.choices(PLACE_ENDS, k=5), strict=True)]
    return _named(names[0], names[1:])


def _country(rng: random.Random) -> SlotValue:
    return _named(rng.choice(COUNTRIES), COUNTRIES)


def _company(rng: random.Random) -> SlotValue:
    names = [f"{rng.choice(SURNAMES)} {rng.choice(COMPANY_ENDS)}" for _ in range(5)]
    return _named(names[0], names[1:])


def _year(rng: random.Random) -> SlotValue:
    year = rng.randint(1820, 2024)
    others = sorted({year + d for d in (-1, 1, -10, 10, 7, -4, rng.randint(-60, -2))} - {year})
    return SlotValue(str(year), (), tuple(map(str, others)))


def _date(rng: random.Random) -> SlotValue:
    day = datetime.date(rng.randint(1850, 2024), 1, 1) + datetime.timedelta(rng.randrange(365))
    shifted = (day + datetime.timedelta(d) for d in (-31, 31, 1, -1, 9, 365, -3650))
    text, *forms = _date_forms(day)
    return SlotValue(text, tuple(forms), tuple(rng.choice(_date_forms(d)) for d in shifted))


def _date_forms(d: datetime.date) -> list[str]:
    month = MONTHS[d.month - 1]
    forms = [f"{d.day} {month} {d.year}", f"{month} {d.day}, {d.year}", d.isoformat(), f"{month[:3]} {d.day}, {d.year}"]
    return [*forms, f"{d.day} {month[:3]} {d.year}", f"the {_ordinal(d.day)} of {month} {d.year}"]


def _ordinal(n: int) -> str:
    ending = "th" if 10 <= n % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{ending}"


def _month(rng: random.Random) -> SlotValue:
    return _named(rng.choice(MONTHS), MONTHS)


def _weekday(rng: random.Random) -> SlotValue:
    return _named(rng.choice(WEEKDAYS), WEEKDAYS)


def _time(rng: random.Random) -> SlotValue:
    hour, minute = rng.randint(8, 21), rng.choice((0, 0, 15, 30, 45))
    text, *forms = _time_forms(hour, minute)
    others = [rng.choice(_time_forms(h, m)) for h, m in ((hour - 1, minute), (hour + 1, minute), (hour, (minute + 20) % 60))]
    return SlotValue(text, tuple(forms), tuple(others))


def _time_forms(hour: int, minute: int) -> list[str]:
    half, short = "am" if hour < 12 else "pm", (hour - 1) % 12 + 1
    clock = f"{short}:{minute:02}" if minute else str(short)
    forms = [f"{clock} {half}", f"{hour:02}:{minute:02}", f"{clock} {half[0]}.m."]
    spoken = {
        0: f"{_number_word(short)} o'clock",
        15: f"quarter past {_number_word(short)}",
        30: f"half past {_number_word(short)}",
    }
    return forms + ([spoken[minute]] if minute in spoken else [])


def _number_word(n: int) -> str:
    return CARDINALS[n] if n < len(CARDINALS) else str(n)


def _small(rng: random.Random) -> SlotValue:
    n = rng.randint(2, 12)
    others = [rng.choice((str(m), _number_word(m))) for m in sorted({n - 1, n + 1, n + 3, 2 * n} - {n, 1})]
    return SlotValue(rng.choice((str(n), _number_word(n))), (_number_word(n), str(n)), tuple(others))


def _count(rng: random.Random) -> SlotValue:
    n = rng.choice((rng.randint(13, 99), rng.randint(100, 999), rng.randint(1000, 99_999)))
    digits = len(str(n))
    rounded = round(n, 1 - digits) if digits > 2 else n
    finer = round(n, 2 - digits)
    forms = [str(n), f"{n:,}", f"about {finer:,}"]
    forms += [f"more than {rounded:,}"] if rounded < n else [f"nearly {rounded:,}"] if n < rounded < 1.1 * n else []
    others = {n + 10 ** (digits - 2), n + 10 ** (digits - 1), int(f"{n}"[::-1]) or n + 1, n * 10, n + 1, max(2, n // 2)} - {n}
    wrong = [f"{m:,}" for m in sorted(others)] + [f"about {round(1.6 * n):,}", f"more than {round(int(1.5 * n), 1 - digits):,}"]
    return SlotValue(f"{n:,}", tuple(forms), tuple(wrong))


def _percent(rng: random.Random) -> SlotValue:
    n = rng.randint(3, 97)
    shares = {25: "a quarter", 50: "half", 75: "three quarters", 33: "about a third", 20: "one in five", 10: "one in ten"}
    if rng.random() < 0.3:
        n = rng.choice(list(shares))
    forms = (f"{n} percent", f"{n} per cent", *([shares[n]] if n in shares else []))
    others = tuple(f"{m}{rng.choice(('%', ' percent'))}" for m in sorted({n + 10, abs(n - 10) + 1, 100 - n, n + 1} - {n}))
    return SlotValue(f"{n}%", forms, others)


def _money(rng: random.Random) -> SlotValue:
    symbol, word = rng.choice((("$", "dollars"), ("€", "euros"), ("£", "pounds")))
    if rng.random() < 0.5:
        n = rng.randint(3, 990)
        others = tuple(f"{symbol}{m}" for m in (n + 10, n + 5, n * 10, max(1, n // 2)))
        return SlotValue(f"{symbol}{n}", (f"{n} {word}",), others)
    tenths = rng.randint(11, 99)
    amount = f"{tenths // 10}.{tenths % 10}" if tenths % 10 else str(tenths // 10)
    forms = (f"{amount} million {word}", f"{symbol}{amount}M", f"{symbol}{tenths * 100_000:,}")
    others = (f"{symbol}{amount} billion", f"{symbol}{tenths * 100:,}", f"{symbol}{(tenths + 13) / 10:g} million")
    return SlotValue(f"{symbol}{amount} million", forms, others)


def _length(rng: random.Random) -> SlotValue:
    n = rng.randint(11, 990)
    forms = (f"{n} m", f"about {round(n * 3.28084):,} feet", f"{n / 1000:g} km")
    others = (f"{n} feet", f"{n} km", f"{n + 10} metres", f"about {round(n * 5.1):,} feet", f"{n * 2} m")
    return SlotValue(f"{n} metres", forms, others)


def _distance(rng: random.Random) -> SlotValue:
    n = rng.randint(12, 980)
    forms = (f"{n} kilometres", f"about {round(n * 0.621371):,} miles", f"{n}km")
    return SlotValue(f"{n} km", forms, (f"{n} miles", f"{n + 20} km", f"about {round(n * 1.2):,} miles", f"{n * 10} km"))


def _mass(rng: random.Random) -> SlotValue:
    n = rng.randint(2, 95)
    forms = (f"{n} kilograms", f"{n * 1000:,} g", f"about {round(n * 2.20462)} pounds")
    return SlotValue(f"{n} kg", forms, (f"{n} g", f"{n} tonnes", f"{n + 3} kg", f"about {round(n * 3.4)} pounds", f"{n * 10} kg"))


def _duration(rng: random.Random) -> SlotValue:
    hours, half = rng.randint(1, 9), rng.random() < 0.4
    minutes = 60 * hours + 30 * half
    word = _number_word(hours)
    text = f"{word} and a half hours" if half else f"{word} hour{'s' * (hours > 1)}"
    plural = "" if minutes == 60 else "s"
    forms = (f"{minutes} minutes", f"{hours}{'.5' * half} hour{plural}", f"{hours} h{' 30 min' * half}")
    return SlotValue(text, forms, (f"{minutes + 30} minutes", f"{word} days", f"{hours + 2} hours", f"{minutes} seconds"))


def _temperature(rng: random.Random) -> SlotValue:
    n = rng.randint(-15, 220)
    forms = (f"{n} degrees Celsius", f"about {round(n * 9 / 5 + 32)} °F")
    return SlotValue(f"{n} °C", forms, (f"{n} °F", f"{n + 8} °C", f"{n - 12} degrees Celsius"))


def _score(rng: random.Random) -> SlotValue:
    a, b = sorted(rng.sample(range(7), 2))
    return SlotValue(f"{b}-{a}", (f"{b}:{a}", f"{b} to {a}"), (f"{b + 1}-{a}", f"{b}-{b}", f"{b + 2} to {a + 1}"))


POOLS: dict[str, Callable[[random.Random], SlotValue]] = {
    "person": _person, "full_name": _full_name, "surname": _surname, "town": _town, "country": _country, "company": _company,
    "year": _year, "date": _date, "month": _month, "weekday": _weekday, "time": _time, "small": _small, "count": _count,
    "percent": _percent, "money": _money, "length": _length, "distance": _distance, "mass": _mass, "duration": _duration,
    "temperature": _temperature, "score": _score,
}  # fmt: skip
"""Makers of slot values by the name of their pool."""
