"""Facts of two or three things, roles, hops over two passages, yes or no, and sentences that need the one before."""

from random import Random

from tests.everyday.cases import Pair, variety
from tests.everyday.pools import COUNTRIES, FIRMS, PEOPLE, PLACES, TITLES, facts, pick

crossed = variety("crossed facts")
roles = variety("roles")
passages = variety("two passages")
needs_context = variety("a sentence that needs the one before")
together = variety("two true sentences together")

_SETS = (
    (
        "{x} is a novel by {who}.",
        "It was published in {year}.",
        "Who wrote {x}?",
        "{who} wrote {x}.",
        "When was {x} published?",
        "{x} was published in {year}.",
        TITLES,
    ),
    (
        "{x} is led by {who}.",
        "The company was founded in {year}.",
        "Who leads {x}?",
        "{who} leads {x}.",
        "When was {x} founded?",
        "{x} was founded in {year}.",
        FIRMS,
    ),
    (
        "The mayor of {x} is {who}.",
        "The town got its charter in {year}.",
        "Who is the mayor of {x}?",
        "{who} is the mayor of {x}.",
        "When did {x} get its charter?",
        "{x} got its charter in {year}.",
        PLACES,
    ),
    (
        "The bridge of {x} was designed by {who}.",
        "It was finished in {year}.",
        "Who designed the bridge of {x}?",
        "{who} designed the bridge of {x}.",
        "When was the bridge of {x} finished?",
        "The bridge of {x} was finished in {year}.",
        PLACES,
    ),
)


class _Things:
    """Two or three things of a kind with the same attributes."""

    def __init__(self, rng: Random, count: int) -> None:
        set_ = rng.choice(_SETS)
        self.first, self.second, self.asks_who, self.says_who, self.asks_year, self.says_year, pool = set_
        self.names, self.people = pick(rng, pool, count), pick(rng, PEOPLE, count)
        self.years = rng.sample(range(1852, 1998), count)
        texts = [
            f"{self.first} {self.second}".format(x=x, who=w, year=y)
            for x, w, y in zip(self.names, self.people, self.years, strict=True)
        ]
        self.documents = tuple(texts) if rng.random() < 0.6 else (" ".join(texts),)


@crossed
def who_as_a_statement(rng: Random) -> Pair:
    t = _Things(rng, rng.choice((2, 3)))
    right, wrong = (t.says_who.format(x=t.names[0], who=w) for w in t.people[:2])
    return Pair(t.documents, None, right, wrong)


@crossed
def who_as_a_short_answer(rng: Random) -> Pair:
    t = _Things(rng, rng.choice((2, 3)))
    return Pair(t.documents, t.asks_who.format(x=t.names[0]), f"{t.people[0]}.", f"{t.people[1]}.")


@crossed
def when_as_a_statement(rng: Random) -> Pair:
    t = _Things(rng, rng.choice((2, 3)))
    right, wrong = (t.says_year.format(x=t.names[1], year=y) for y in (t.years[1], t.years[0]))
    return Pair(t.documents, None, right, wrong)


@crossed
def when_as_a_short_answer(rng: Random) -> Pair:
    t = _Things(rng, 2)
    form = rng.choice(("{}", "In {}.", "It was in {}."))
    return Pair(t.documents, t.asks_year.format(x=t.names[0]), form.format(t.years[0]), form.format(t.years[1]))


@crossed
def both_attributes(rng: Random) -> Pair:
    t = _Things(rng, 2)
    right, wrong = (
        f"{t.says_who.format(x=t.names[0], who=t.people[0])} {t.says_year.format(x=t.names[0], year=y)}" for y in t.years
    )
    return Pair(t.documents, None, right, wrong)


_ROLES = (
    (
        "{a} sold the mill to {b}.",
        ("{b} bought the mill from {a}.", "The mill was sold to {b} by {a}."),
        ("{a} bought the mill from {b}.", "{b} sold the mill to {a}."),
    ),
    (
        "{a} taught {b} to paint.",
        ("{b} learned painting from {a}.", "{b} was taught to paint by {a}."),
        ("{a} learned painting from {b}.", "{b} taught {a} to paint."),
    ),
    ("{a} is the mother of {b}.", ("{b} is a child of {a}.",), ("{a} is a child of {b}.", "{b} is the mother of {a}.")),
    (
        "{a} defeated {b} in the final.",
        ("{b} lost the final to {a}.", "{b} was defeated by {a} in the final."),
        ("{a} lost the final to {b}.", "{b} defeated {a} in the final."),
    ),
    (
        "{a} hired {b} as a gardener.",
        ("{b} was hired by {a} as a gardener.", "{b} worked for {a} as a gardener."),
        ("{a} was hired by {b} as a gardener.", "{b} hired {a} as a gardener."),
    ),
    ("{a} lent {b} a boat.", ("{b} borrowed a boat from {a}.",), ("{a} borrowed a boat from {b}.", "{b} lent {a} a boat.")),
    ("{p} lies north of {q}.", ("{q} lies south of {p}.",), ("{q} lies north of {p}.", "{p} lies south of {q}.")),
    ("{p} is larger than {q}.", ("{q} is smaller than {p}.",), ("{q} is larger than {p}.", "{p} is smaller than {q}.")),
    ("{a} succeeded {b} as mayor.", ("{b} was mayor before {a}.",), ("{b} succeeded {a} as mayor.", "{a} was mayor before {b}.")),
    ("{f} took over {g}.", ("{g} was taken over by {f}.",), ("{g} took over {f}.", "{f} was taken over by {g}.")),
    (
        "{f} supplies {g} with steel.",
        ("{g} gets its steel from {f}.",),
        ("{f} gets its steel from {g}.", "{g} supplies {f} with steel."),
    ),
    (
        "{a} praised {b} in a letter.",
        ("{b} was praised by {a} in a letter.",),
        ("{b} praised {a} in a letter.", "{a} was praised by {b} in a letter."),
    ),
    ("{a} is older than {b}.", ("{b} is younger than {a}.",), ("{b} is older than {a}.", "{a} is younger than {b}.")),
    (
        "The flood came before the fire in {p}.",
        ("The fire in {p} came after the flood.",),
        ("The fire in {p} came before the flood.",),
    ),
    (
        "Drought caused the migration from {p}.",
        ("The migration from {p} was caused by drought.",),
        ("The migration from {p} caused a drought.",),
    ),
    (
        "Density is mass divided by volume.",
        ("Density equals mass divided by volume.",),
        ("Density is volume divided by mass.", "Density is mass multiplied by volume."),
    ),
    ("The exports of {p} exceed its imports.", ("{p} imports less than it exports.",), ("{p} exports less than it imports.",)),
)


def _role(rng: Random, *, reworded: bool) -> Pair:
    source, same, swapped = rng.choice(_ROLES)
    (a, b), (p, q), (f, g) = pick(rng, PEOPLE, 2), pick(rng, PLACES, 2), pick(rng, FIRMS, 2)
    if rng.random() < 0.5:
        a, b = a.split()[-1], b.split()[-1]
    document, right, wrong = (
        t.format(a=a, b=b, p=p, q=q, f=f, g=g) for t in (source, rng.choice(same) if reworded else source, rng.choice(swapped))
    )
    return Pair((document,), None, right, wrong)


@roles
def as_the_source_says_it(rng: Random) -> Pair:
    return _role(rng, reworded=False)


@roles
def from_the_other_side(rng: Random) -> Pair:
    return _role(rng, reworded=True)


@passages
def one_hop(rng: Random) -> Pair:
    (person, other), (place, _), (land, elsewhere) = pick(rng, PEOPLE, 2), pick(rng, PLACES, 2), pick(rng, COUNTRIES, 2)
    title = rng.choice(TITLES)
    documents = (
        f"{title} was written by {person}.",
        f"{person} was born in {place}, {land}.",
        f"{other} was born in {elsewhere}.",
    )
    right, wrong = (f"The author of {title} was born in {c}." for c in (land, elsewhere))
    question = rng.choice((None, f"In which country was the author of {title} born?"))
    return Pair(documents, question, right, wrong)


@passages
def short_answer_over_a_hop(rng: Random) -> Pair:
    firm, (boss, other), year = rng.choice(FIRMS), pick(rng, PEOPLE, 2), rng.randint(1960, 2000)
    documents = (f"{firm} is led by {boss}.", f"{boss} joined the firm in {year}.", f"{other} joined the firm in {year - 9}.")
    return Pair(documents, f"When did the head of {firm} join the firm?", f"In {year}.", f"In {year - 9}.")


@passages
def located_in(rng: Random) -> Pair:
    (place, near), (land, elsewhere), person = pick(rng, PLACES, 2), pick(rng, COUNTRIES, 2), rng.choice(PEOPLE)
    documents = (f"{person} lives in {place}.", f"{place} is a town in {land}.", f"{near} is a town in {elsewhere}.")
    right, wrong = (f"{person} lives in {c}." for c in (land, elsewhere))
    return Pair(documents, rng.choice((None, f"In which country does {person} live?")), right, wrong)


@passages
def one_sentence_from_each(rng: Random) -> Pair:
    one, two = facts(rng, 2)
    right, wrong = (
        f"{one.right[:-1]}, and {t[0].lower() + t[1:] if t.startswith('The ') else t}" for t in (two.right, two.wrong)
    )
    return Pair((one.source, two.source), None, right, wrong)


@needs_context
def pronoun_of_a_person(rng: Random) -> Pair:
    (person, other), place, year = pick(rng, PEOPLE, 2), rng.choice(PLACES), rng.randint(1880, 1990)
    deed, theirs = rng.sample(
        ("wrote the anthem of {p}", "planted the first vineyard of {p}", "drew the map of {p}", "paid for the school of {p}"), 2
    )
    document = (
        f"{person} built the mill of {place} in {year} and {deed.format(p='the town')}. {other} {theirs.format(p='the town')}."
    )
    opening = rng.choice(
        (f"The mill of {place} was built in {year} by {person}.", f"{person} built the mill of {place} in {year}.")
    )
    right, wrong = (f"{opening} {rng.choice(('He', 'She'))} also {d.format(p='the town')}." for d in (deed, theirs))
    return Pair((document,), None, right, wrong)


@needs_context
def pronoun_of_a_thing(rng: Random) -> Pair:
    (place, other), year = pick(rng, PLACES, 2), rng.randint(1850, 1960)
    length, longer = rng.sample(range(110, 900, 10), 2)
    documents = (
        f"The bridge of {place} opened in {year}. It is {length} metres long.",
        f"The bridge of {other} opened in {year + 12}. It is {longer} metres long.",
    )
    opening = f"The bridge of {place} opened in {year}."
    form = rng.choice(
        ("It is {} metres long.", "Its length is {} metres.", "The bridge is {} metres long.", "This bridge is {} metres long.")
    )
    return Pair(
        documents,
        rng.choice((None, f"Tell me about the bridge of {place}.")),
        f"{opening} {form.format(length)}",
        f"{opening} {form.format(longer)}",
    )


@needs_context
def the_former_and_the_latter(rng: Random) -> Pair:
    one, two = pick(rng, PEOPLE, 2)
    first, second = rng.sample(("a violinist", "a botanist", "a judge", "a sculptor"), 2)
    document = f"{one} is {first}. {two} is {second}. The two live together."
    opening = f"{one} and {two} live together."
    right, wrong = (f"{opening} The {which} is {first}." for which in ("former", "latter"))
    return Pair((document,), None, right, wrong)


@together
def verbatim(rng: Random) -> Pair:
    parts = facts(rng, rng.choice((2, 3)))
    said = [p.source for p in parts]
    wrong = [*said[:-1], parts[-1].wrong]
    return Pair(tuple(said), None, " ".join(said), " ".join(wrong))


@together
def reworded(rng: Random) -> Pair:
    parts = facts(rng, 3)
    rng.shuffle(parts)
    said = [p.right for p in parts]
    at = rng.randrange(3)
    return Pair(
        (" ".join(sorted(p.source for p in parts)),),
        None,
        " ".join(said),
        " ".join([*said[:at], parts[at].wrong, *said[at + 1 :]]),
    )
