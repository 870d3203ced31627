"""Answers to closed and open questions: yes or no with and without reasons, definitions, and advice."""

from random import Random
from typing import NamedTuple

from tests.everyday.cases import Pair, variety
from tests.everyday.pools import COUNTED, PEOPLE, PLACES, pick

yes_no = variety("yes/no")
definition = variety('definitions answer "what is"')
open_question = variety("open questions")


class Closed(NamedTuple):
    """A closed question about a document, whether yes is right, and the fact as a statement and as its negation."""

    document: str
    question: str
    holds: bool
    verb: str
    """What follows the subject in a short answer: "it did", "it is"."""
    statement: str
    negation: str


def _closed(rng: Random) -> Closed:
    place, (a, b), fact = rng.choice(PLACES), pick(rng, PEOPLE, 2), rng.choice(COUNTED)
    year, number = rng.randint(1880, 2000), rng.randint(1200, 9000)
    holds = rng.random() < 0.5
    asked_year, asked_person = (year, a) if holds else (year + 11, b)
    limit = number // 100 * 100 - 300 if holds else number // 100 * 100 + 300
    subject = fact.subject.format(p=place)
    counted = fact.sentence(place, f"{number:,}")
    return rng.choice(
        (
            Closed(
                f"The bridge of {place} opened in {year}.",
                f"Did the bridge of {place} open in {asked_year}?",
                holds,
                "did",
                f"the bridge of {place} opened in {asked_year}.",
                f"the bridge of {place} did not open in {asked_year}.",
            ),
            Closed(
                f"{a} leads the clinic of {place}.",
                f"Does {asked_person} lead the clinic of {place}?",
                holds,
                "does",
                f"{asked_person} leads the clinic of {place}.",
                f"{asked_person} does not lead the clinic of {place}.",
            ),
            Closed(
                counted,
                f"Does {subject[0].lower() + subject[1:]} {fact.verb} more than {limit:,} {fact.noun}?",
                holds,
                "does",
                f"{subject[0].lower() + subject[1:]} {fact.verb}s more than {limit:,} {fact.noun}.",
                f"{subject[0].lower() + subject[1:]} does not {fact.verb} more than {limit:,} {fact.noun}.",
            ),
            Closed(
                f"The castle of {place} is open on {'Sundays' if holds else 'Mondays'} only.",
                f"Is the castle of {place} open on Sundays?",
                holds,
                "is",
                f"the castle of {place} is open on Sundays.",
                f"the castle of {place} is not open on Sundays.",
            ),
            Closed(
                f"The mill of {place} was {'restored' if holds else 'pulled down'} in {year}.",
                f"Was the mill of {place} restored in {year}?",
                holds,
                "was",
                f"the mill of {place} was restored in {year}.",
                f"the mill of {place} was not restored in {year}.",
            ),
            Closed(
                f"Dogs {'may' if holds else 'must not'} enter the park of {place}.",
                f"Can dogs enter the park of {place}?",
                holds,
                "can",
                f"dogs can enter the park of {place}.",
                f"dogs cannot enter the park of {place}.",
            ),
        )
    )


def _pair(case: Closed, yes: str, no: str) -> Pair:
    right, wrong = (yes, no) if case.holds else (no, yes)
    return Pair((case.document,), case.question, right, wrong)


@yes_no
def bare(rng: Random) -> Pair:
    return _pair(
        _closed(rng), *rng.choice((("Yes.", "No."), ("Yes", "No"), ("yes", "no"), ("**Yes**", "**No**"), ("Yes!", "No!")))
    )


@yes_no
def short(rng: Random) -> Pair:
    case = _closed(rng)
    subject = (
        "they" if case.verb == "can" else "it" if "Does" not in case.question or "clinic" not in case.question else "that person"
    )
    verb = case.verb
    negated = "cannot" if verb == "can" else f"{verb} not"
    return _pair(case, f"Yes, {subject} {verb}.", f"No, {subject} {negated}.")


@yes_no
def with_the_statement(rng: Random) -> Pair:
    case = _closed(rng)
    return _pair(case, f"Yes, {case.statement}", f"No, {case.negation}")


@yes_no
def the_statement_alone(rng: Random) -> Pair:
    case = _closed(rng)
    yes, no = (t[0].upper() + t[1:] for t in (case.statement, case.negation))
    return _pair(case, yes, no)


class Topic(NamedTuple):
    """A thing to define: its definition with a right and a wrong detail, advice that uses it, and questions."""

    name: str
    definition: str
    details: tuple[str, str]
    reworded: str
    advice: str
    asks: str
    extra: str


TOPICS = (
    Topic(
        "mulching",
        "Mulching is a gardening method in which soil is covered with {d} to keep it moist.",
        ("straw or bark", "gravel and salt"),
        "it means covering soil with {d} so that it stays moist",
        "Cover the soil with {d}; that keeps it moist.",
        "How can I keep my flower beds moist in summer?",
        "It also keeps weeds down.",
    ),
    Topic(
        "proofing",
        "Proofing is the step in baking in which dough rests in a {d} place so that it rises.",
        ("warm", "freezing"),
        "it is when dough rests in a {d} place and rises",
        "Let the dough rest in a {d} place until it has risen.",
        "What should I do so that my bread dough rises?",
        "It takes about an hour.",
    ),
    Topic(
        "a bowline",
        "A bowline is a knot that forms a {d} loop at the end of a rope.",
        ("fixed", "sliding"),
        "it is a knot with a {d} loop at the end of a rope",
        "Tie a bowline: it gives you a {d} loop at the end of the rope.",
        "How do I make a loop for mooring my boat?",
        "Sailors use it to moor boats.",
    ),
    Topic(
        "a capo",
        "A capo is a clamp on the neck of a guitar that {d} the pitch of all strings.",
        ("raises", "lowers"),
        "it is a clamp on a guitar's neck which {d} the pitch of the strings",
        "Put a capo on the neck: it {d} the pitch of all strings.",
        "How can I change the key of a song on my guitar?",
        "It is placed behind a fret.",
    ),
    Topic(
        "grouting",
        "Grouting is filling the gaps between tiles with {d}.",
        ("a cement paste", "candle wax"),
        "it means that the gaps between tiles are filled with {d}",
        "Fill the gaps with {d} and wipe the tiles clean.",
        "What do I do with the gaps between my new tiles?",
        "It is done a day after the tiles are laid.",
    ),
    Topic(
        "a sitemap",
        "A sitemap is a file that lists {d} of a website for search engines.",
        ("the pages", "the passwords"),
        "it is a file in which {d} of a website are listed for search engines",
        "Write a sitemap that lists {d} of your website.",
        "How do I help search engines to find all of my website?",
        "It is often an XML file.",
    ),
    Topic(
        "deglazing",
        "Deglazing is loosening what sticks to a hot pan with {d}, to make a sauce.",
        ("wine or stock", "cold butter"),
        "you loosen what sticks to a hot pan with {d} and get a sauce",
        "Deglaze it: pour {d} into the hot pan and stir up what sticks.",
        "How do I get a sauce out of what sticks to my pan?",
        "The liquid is then reduced.",
    ),
    Topic(
        "a surety",
        "A surety is a person who promises to pay {d} if they fail to.",
        ("another's debt", "a fine to the court"),
        "it is someone who promises to pay {d} when they cannot",
        "Ask for a surety, who promises to pay {d} if they fail to.",
        "What can I do if I am unsure that my tenant can pay?",
        "The promise is made in writing.",
    ),
)
_ASKS = (
    "What is {n}?",
    "What does {n} mean?",
    "Define {n}.",
    "Can you explain what {n} is?",
    "Explain {n} to me.",
    "what's {n}",
    "Please tell me what {n} is.",
)


def _documents(rng: Random, topic: Topic) -> tuple[str, ...]:
    source = topic.definition.format(d=topic.details[0])
    return (source, topic.extra) if rng.random() < 0.5 else (f"{source} {topic.extra}",)


def _defined(rng: Random, form: str) -> Pair:
    topic = rng.choice(TOPICS)
    right, wrong = (
        form.format(n=topic.name, N=topic.name[0].upper() + topic.name[1:], r=topic.reworded.format(d=d)) for d in topic.details
    )
    return Pair(_documents(rng, topic), rng.choice(_ASKS).format(n=topic.name), right, wrong)


@definition
def as_the_source_defines_it(rng: Random) -> Pair:
    topic = rng.choice(TOPICS)
    right, wrong = (topic.definition.format(d=d) for d in topic.details)
    return Pair(_documents(rng, topic), rng.choice(_ASKS).format(n=topic.name), right, wrong)


@definition
def in_other_words(rng: Random) -> Pair:
    return _defined(rng, rng.choice(("{N}: {r}.", "Briefly, {r}.", "{N} - {r}.", "In simple terms, {r}.")))


@definition
def with_an_opening(rng: Random) -> Pair:
    return _defined(
        rng, rng.choice(("Good question! In short, {r}.", "Sure. About {n}: {r}.", "Here is a short definition: {r}."))
    )


@open_question
def advice(rng: Random) -> Pair:
    topic = rng.choice(TOPICS)
    form = rng.choice(("{a}", "You could do this: {a}", "Here is what I would do. {a}", "{a} I hope this helps!"))
    right, wrong = (form.format(a=topic.advice.format(d=d)) for d in topic.details)
    return Pair(_documents(rng, topic), topic.asks, right, wrong)


@open_question
def steps(rng: Random) -> Pair:
    topic = rng.choice(TOPICS)
    right, wrong = (f"1. Read up on {topic.name}.\n2. {topic.advice.format(d=d)}" for d in topic.details)
    return Pair(_documents(rng, topic), topic.asks, right, wrong)


_ABOUT = (
    "Tell me about {n}.",
    "What should I know about {n}?",
    "Write a sentence about {n}.",
    "Summarise what you know about {n}.",
    "Why would someone use {n}?",
    "What are the facts about {n}?",
)


@open_question
def tell_me_about(rng: Random) -> Pair:
    topic = rng.choice(TOPICS)
    right, wrong = (f"{topic.definition.format(d=d)} {topic.extra}" for d in topic.details)
    return Pair(_documents(rng, topic), rng.choice(_ABOUT).format(n=topic.name), right, wrong)
