"""The same number in another form, and another number in that form."""

from random import Random

from tests.everyday.cases import Pair, variety
from tests.everyday.pools import COUNTED, ORDINAL_WORDS, PEOPLE, PLACES, ordinal, other_fact, pick, roman, spelled

number_form = variety("same number in another form")


def _counted(rng: Random, given: str, right: str, wrong: str) -> Pair:
    """Ask for a number of things; the answer is a sentence or the bare number."""
    place, fact = rng.choice(PLACES), rng.choice(COUNTED)
    document = f"{fact.sentence(place, given)} {other_fact(rng, place)}"
    form = rng.choice(("sentence", "bare", "noun"))
    answers = {
        "sentence": [fact.sentence(place, v) for v in (right, wrong)],
        "bare": [v[0].upper() + v[1:] for v in (right, wrong)],
        "noun": [f"{v[0].upper() + v[1:]} {fact.noun}." for v in (right, wrong)],
    }[form]
    question = None if form == "sentence" and rng.random() < 0.5 else fact.question(place)
    return Pair((document,), question, *answers, by_value=True)


def _count(rng: Random) -> int:
    return rng.randint(1101, 98999)


def _other_count(rng: Random, number: int) -> int:
    """Change a digit, or swap two neighbours."""
    digits = list(str(number))
    at = rng.randrange(len(digits) - 1)
    if digits[at] != digits[at + 1] and digits[at + 1] != "0":
        digits[at], digits[at + 1] = digits[at + 1], digits[at]
    else:
        digits[at] = str(int(digits[at]) % 9 + 1)
    other = int("".join(digits))
    return other if other != number else number + 1000


@number_form
def separators(rng: Random) -> Pair:
    n = _count(rng)
    forms = rng.choice((("{:,}", "{}"), ("{}", "{:,}"), ("{:,}", "{:,}")))
    return _counted(rng, forms[0].format(n), forms[1].format(n), forms[1].format(_other_count(rng, n)))


@number_form
def words(rng: Random) -> Pair:
    n = rng.choice((rng.randint(11, 99), rng.randint(101, 999), 1000 * rng.randint(2, 90), 100 * rng.randint(11, 99)))
    other = rng.choice((n + max(1, n // 10), 2 * n))
    texts = (f"{n:,}", spelled(n), spelled(other)) if rng.random() < 0.6 else (spelled(n), f"{n:,}", f"{other:,}")
    return _counted(rng, *texts)


@number_form
def scale(rng: Random) -> Pair:
    whole = rng.randint(11, 99)
    x = whole / 10
    forms = (f"{x} million", f"{whole * 100_000:,}", f"{x}M", f"{x} mn", f"{whole * 100_000}")
    wrong = (f"{x} billion", f"{whole * 10_000:,}", f"{x}K", f"{x} bn", f"{x}B", f"{whole / 100} million", f"{x} thousand")
    given, right = rng.sample(forms, 2)
    return _counted(rng, given, right, rng.choice(wrong))


@number_form
def thousands(rng: Random) -> Pair:
    n = rng.randint(12, 98)
    given, right = rng.sample((f"{n},000", f"{n}k", f"{n} thousand", f"{spelled(n)} thousand"), 2)
    return _counted(rng, given, right, rng.choice((f"{n}", f"{n / 10}k", f"{n * 10} thousand", f"{n + 7},000", f"{n} million")))


@number_form
def about(rng: Random) -> Pair:
    n = rng.randint(1110, 98_900)
    near = round(n, 1 - len(str(n)) + 1)
    word = rng.choice(("about", "around", "roughly", "approximately", "some", "close to", "circa"))
    far = round(near * rng.choice((0.6, 0.7, 1.4, 1.7)), 1 - len(str(n)) + 1)
    return _counted(rng, f"{n:,}", f"{word} {near:,}", f"{word} {far:,}")


@number_form
def limits(rng: Random) -> Pair:
    n = rng.randint(1150, 98_900)
    below, above = (int(round(n * f, 2 - len(str(n)))) for f in (0.85, 1.15))
    up = rng.choice(("more than", "over", "at least", "upwards of", "no fewer than", "well over"))
    down = rng.choice(("fewer than", "under", "at most", "up to", "no more than", "less than"))
    right, wrong = rng.choice(((f"{up} {below:,}", f"{up} {above:,}"), (f"{down} {above:,}", f"{down} {below:,}")))
    return _counted(rng, f"{n:,}", right, wrong)


@number_form
def nearly(rng: Random) -> Pair:
    hundreds = rng.randint(21, 98)
    n = hundreds * 100 - rng.randint(2, 60)
    word = rng.choice(("nearly", "almost", "just under", "not quite"))
    return _counted(rng, f"{n:,}", f"{word} {hundreds * 100:,}", f"{word} {round(hundreds * 1.5) * 100:,}")


@number_form
def ranges(rng: Random) -> Pair:
    n = rng.randint(120, 980)
    low, high = n // 10 * 10 - 20, n // 10 * 10 + 30
    form = rng.choice(("between {} and {}", "{} to {}", "{}–{}", "from {} to {}"))  # noqa: RUF001
    return _counted(rng, str(n), form.format(low, high), form.format(high + 20, high + 90))


@number_form
def dozens(rng: Random) -> Pair:
    d = rng.randint(2, 9)
    other = d + rng.choice((1, 2))
    return _counted(
        rng,
        *rng.choice(
            (
                (f"{12 * d}", f"{spelled(d)} dozen", f"{spelled(other)} dozen"),
                (f"{spelled(d)} dozen", f"{12 * d}", f"{12 * other}"),
            )
        ),
    )


_SHARES = {
    "half": 50,
    "a third": 33,
    "a quarter": 25,
    "two thirds": 67,
    "three quarters": 75,
    "a fifth": 20,
    "two fifths": 40,
    "three fifths": 60,
    "one in ten": 10,
    "nine out of ten": 90,
    "one in four": 25,
    "four in five": 80,
}
_SHARED = (
    ("{s} of the houses in {p} have a well.", "What share of the houses in {p} have a well?"),
    ("{s} of the fields around {p} are fallow.", "How much of the fields around {p} is fallow?"),
    ("{s} of the pupils in {p} walk to school.", "What percentage of the pupils in {p} walk to school?"),
)


def _share(rng: Random, given: str, right: str, wrong: str) -> Pair:
    place, (sentence, question) = rng.choice(PLACES), rng.choice(_SHARED)
    stated = [_opened(sentence.format(s=v, p=place)) for v in (given, right, wrong)]
    if rng.random() < 0.5:
        return Pair((f"{stated[0]} {other_fact(rng, place)}",), None, *stated[1:], by_value=True)
    return Pair((stated[0],), question.format(p=place), f"{_opened(right)}.", f"{_opened(wrong)}.", by_value=True)


def _opened(text: str) -> str:
    return text[0].upper() + text[1:]


@number_form
def percent(rng: Random) -> Pair:
    n = rng.randint(12, 92)
    signs = rng.sample(("%", " percent", " per cent", " %"), 2)
    given, right, wrong = (
        f"{v}{s}" for v, s in zip((n, n, n + rng.choice((-9, 7, 20)) % 100), (signs[0], *signs[1:] * 2), strict=True)
    )
    return _share(rng, given, right, wrong)


@number_form
def decimals(rng: Random) -> Pair:
    n = rng.randint(1100, 9900) + rng.choice((13, 27, 38))
    exact = f"{n / 100:.2f}%"
    word = rng.choice(("about ", "roughly ", "around ", ""))
    return _share(rng, exact, f"{word}{n / 100:.1f} percent", f"{word}{n / 100 + rng.choice((3, 6)):.1f} percent")


@number_form
def fractions(rng: Random) -> Pair:
    name, share = rng.choice(list(_SHARES.items()))
    other, far = rng.choice([(o, s) for o, s in _SHARES.items() if abs(s - share) > 12])
    if rng.random() < 0.5:
        return _share(rng, f"{share}%", name, other)
    return _share(rng, name, f"{share} percent", f"{far} percent")


_RANKED = (
    ("{a} finished {o} in the race to {p}.", "Where did {a} finish in the race to {p}?"),
    ("{a} was the {o} mayor of {p}.", "Which mayor of {p} was {a}?"),
)


@number_form
def ordinals(rng: Random) -> Pair:
    n = rng.randint(2, 20)
    other = n + rng.choice((1, 3)) if n < 17 else n - 4
    forms = (ordinal, lambda k: ORDINAL_WORDS[k - 1])
    given, said = rng.sample(forms, 2)
    place, person, (sentence, _) = rng.choice(PLACES), rng.choice(PEOPLE), rng.choice(_RANKED)
    stated = [sentence.format(a=person, o=v, p=place) for v in (given(n), said(n), said(other))]
    return Pair((f"{stated[0]} {other_fact(rng, place)}",), None, *stated[1:], by_value=True)


_NUMBERED = ("The rules for tenants are in {w} {n} of the {p} charter.", "The trial is described in {w} {n} of the {p} report.")


@number_form
def roman_numerals(rng: Random) -> Pair:
    n, place = rng.randint(2, 14), rng.choice(PLACES)
    other = n + rng.choice((1, 2))
    if rng.random() < 0.5:
        word, sentence = rng.choice(("Chapter", "Part", "Section", "Article", "Volume")), rng.choice(_NUMBERED)
        given, said = rng.sample((roman, str), 2)
        stated = [sentence.format(w=word, n=v, p=place) for v in (given(n), said(n), said(other))]
    else:
        king = rng.choice(("King Harald", "Queen Maren", "Pope Lucian", "Duke Alaric"))
        sentence = f"{king} {{}} granted {place} its market."
        given, said = rng.sample((roman, lambda k: f"the {ORDINAL_WORDS[k - 1].title()}"), 2)
        stated = [sentence.format(v) for v in (given(n), said(n), said(other))]
    return Pair((f"{stated[0]} {other_fact(rng, place)}",), None, *stated[1:], by_value=True)


_AGES = ("{n} years old", "aged {n}", "{n} years of age")


@number_form
def ages(rng: Random) -> Pair:
    n, (person, other), place = rng.randint(19, 88), pick(rng, PEOPLE, 2), rng.choice(PLACES)
    document = f"{person}, {n}, keeps the lighthouse of {place}."
    if rng.random() < 0.6:
        document = f"{person} is {rng.choice(_AGES).format(n=n)} and keeps the lighthouse of {place}. {other} helps at weekends."
    said = rng.choice(("{p} is {n} years old.", "{p} is aged {n}.", "{p} is a {n}-year-old.", "{n}"))
    return Pair(
        (document,),
        f"How old is {person}?",
        said.format(p=person, n=n),
        said.format(p=person, n=n + rng.choice((4, 11))),
        by_value=True,
    )
