"""What claims nothing: greetings, thanks, offers and refusals."""

from random import Random

from tests.everyday.cases import Expected, Pair, variety
from tests.everyday.pools import PEOPLE, PLACES, facts, pick

talk = variety("small talk claims nothing")
refusal = variety("refusals")

GREETINGS = (
    "Hello!",
    "Hi there!",
    "Good morning!",
    "Hey!",
    "Good evening, and welcome!",
    "Hi! How can I help you?",
    "Hello, how are you today?",
    "Welcome back!",
    "Greetings!",
    "Good afternoon! What can I do for you?",
    "Hi, nice to meet you!",
    "Hello again!",
)
THANKS = (
    "You're welcome!",
    "Thank you!",
    "Thanks for asking!",
    "Glad I could help!",
    "No problem at all.",
    "My pleasure.",
    "Happy to help!",
    "Thanks a lot for your patience.",
    "Thank you for your question.",
    "Anytime!",
    "Don't mention it.",
    "You are very welcome.",
)
OFFERS = (
    "Let me know if you need anything else.",
    "Is there anything else I can help you with?",
    "Feel free to ask more questions!",
    "I hope this helps!",
    "I'm here if you have further questions.",
    "Would you like more details?",
    "Just ask if something is unclear.",
    "Please let me know if you would like more information.",
    "If you have any other questions, don't hesitate to ask.",
    "Let me know how I can help.",
    "Happy to look into it further if you want.",
    "Do you want me to go on?",
)
FAREWELLS = (
    "Goodbye!",
    "Have a great day!",
    "Take care!",
    "See you soon!",
    "Bye!",
    "Have a nice weekend!",
    "Best wishes!",
    "Good luck!",
    "Enjoy your trip!",
    "Talk to you later!",
    "Until next time!",
    "All the best!",
)
APOLOGIES = (
    "Sorry about that.",
    "I apologize for the confusion.",
    "My apologies!",
    "I'm sorry for the mistake.",
    "Sorry for the delay.",
    "Apologies for the inconvenience.",
    "I'm so sorry to hear that.",
)
PRAISE = (
    "Great question!",
    "That's a great question.",
    "Good point!",
    "Excellent choice!",
    "Interesting question!",
    "Well done!",
    "That makes sense.",
    "I understand.",
    "Got it!",
    "Of course!",
    "Sure thing!",
    "Absolutely!",
    "Certainly!",
)
FRAMES = (
    "Based on the information provided, {s}",
    "According to the documents, {s}",
    "As far as the text goes, {s}",
    "From the context, {s}",
    "The article says that {s}",
    "Sure! {s}",
    "Here's the answer: {s}",
    "In short, {s}",
    "To answer your question, {s}",
    "The text mentions that {s}",
    "As the document states, {s}",
    "Based on the search results, {s}",
    "Thanks for asking! {s}",
    "Great question! {s}",
    "It says here that {s}",
    "The provided passage indicates that {s}",
    "Certainly. {s}",
    "Well, {s}",
    "The short answer: {s}",
    "Looking at the sources, {s}",
    "I found that {s}",
    "Of course. {s}",
    "Okay, {s}",
)
CLOSERS = tuple(o for o in OFFERS if not o.endswith("?")) + THANKS[:6]


def _alone(rng: Random, pool: tuple[str, ...]) -> Pair:
    """Say something without a claim, and the same with a wrong statement."""
    fact = facts(rng, 1)[0]
    said = rng.choice(pool)
    question = rng.choice((None, "Hi!", "Thanks, that is all.", "Hello there"))
    return Pair(
        (fact.source,), question, said, f"{said} {fact.wrong}", (), (fact.wrong,), (Expected.NOTHING, Expected.HALLUCINATED)
    )


@talk
def greetings(rng: Random) -> Pair:
    return _alone(rng, GREETINGS)


@talk
def thanks(rng: Random) -> Pair:
    return _alone(rng, THANKS)


@talk
def offers(rng: Random) -> Pair:
    return _alone(rng, OFFERS)


@talk
def farewells(rng: Random) -> Pair:
    return _alone(rng, FAREWELLS)


@talk
def apologies(rng: Random) -> Pair:
    return _alone(rng, APOLOGIES)


@talk
def praise(rng: Random) -> Pair:
    return _alone(rng, PRAISE)


@talk
def several(rng: Random) -> Pair:
    pair = _alone(rng, GREETINGS)
    more = f" {rng.choice(PRAISE)} {rng.choice(OFFERS)}"
    return pair._replace(right=pair.right + more, wrong=pair.wrong + more)


@talk
def frame_around_a_fact(rng: Random) -> Pair:
    fact = facts(rng, 1)[0]
    frame, closer = rng.choice(FRAMES), rng.choice(("", f" {rng.choice(CLOSERS)}"))
    inside = frame[-5] not in ".!:"
    right, wrong = (t[0].lower() + t[1:] if inside and t.startswith("The ") else t for t in (fact.right, fact.wrong))
    return Pair((fact.source,), None, frame.format(s=right) + closer, frame.format(s=wrong) + closer, (right,), (wrong,))


_UNASKED = (
    "What did {a} eat on the first day?",
    "Who paid for the {p} bridge?",
    "How tall is {a}?",
    "Why was the {p} bridge painted green?",
    "What is the phone number of {a}?",
    "Which song does {a} like best?",
)
REFUSALS = (
    "I don't know.",
    "I'm sorry, but I don't have that information.",
    "The documents do not say.",
    "That is not mentioned in the text.",
    "I cannot answer that from the provided context.",
    "Sorry, I can't help with that.",
    "There is no information about this in the sources.",
    "I'm not sure.",
    "The context does not provide enough information to answer this question.",
    "Unfortunately, I could not find anything on that.",
    "The text doesn't mention it.",
    "I wasn't able to find this.",
    "No information is given about that.",
    "It is not stated in the article.",
    "This cannot be determined from the sources.",
    "I have no data on this.",
    "The answer isn't in the documents I was given.",
    "I'm unable to answer this question.",
    "The passage says nothing about it.",
    "Not enough information.",
    "Unknown.",
    "N/A",
    "The source does not specify this.",
    "I do not have access to that information.",
    "None of the documents covers this.",
)


@refusal
def true_or_false(rng: Random) -> Pair:
    """Refuse what the source does not answer; a claim made up instead is hallucinated."""
    fact, (a, b), place = facts(rng, 1)[0], pick(rng, PEOPLE, 2), rng.choice(PLACES)
    question = rng.choice(_UNASKED).format(a=a, p=place)
    invented = rng.choice((f"{b} did in {rng.randint(1900, 2000)}.", f"It was {b}, in the spring of {rng.randint(1900, 2000)}."))
    return Pair((fact.source,), question, rng.choice(REFUSALS), invented)


OF_SOURCES = (
    "The documents do not say.",
    "That is not mentioned in the text.",
    "I cannot answer that from the provided context.",
    "There is no information about this in the sources.",
    "The text doesn't mention it.",
    "It is not stated in the article.",
    "The source does not specify this.",
    "The passage says nothing about it.",
)
_ANSWERED = (
    ("The {p} bridge opened in {v}.", "When did the {p} bridge open?"),
    ("The {p} clinic is led by {a}.", "Who leads the {p} clinic?"),
    ("The {p} choir has {n} singers.", "How many singers does the {p} choir have?"),
)


@refusal
def of_what_the_source_has(rng: Random) -> Pair:
    """Say that the sources lack what they have; "I don't know." would say nothing of them."""
    sentence, question = rng.choice(_ANSWERED)
    place = rng.choice(PLACES)
    source = sentence.format(p=place, v=rng.randint(1900, 2000), a=rng.choice(PEOPLE), n=rng.randint(20, 90))
    specific = (
        "The documents do not say {q}.",
        "It is not mentioned {q}.",
        "The text does not state {q}.",
        "I could not find {q}.",
    )
    asked = question.format(p=place).rstrip("?")
    asked = asked[0].lower() + asked[1:]
    asked = (
        asked.replace(f"did the {place} bridge open", f"the {place} bridge opened")
        .replace("does the", "the")
        .replace(" choir have", " choir has")
    )
    return Pair((source,), question.format(p=place), source, rng.choice((*OF_SOURCES, *(s.format(q=asked) for s in specific))))


@refusal
def with_a_reason(rng: Random) -> Pair:
    fact, a, place = facts(rng, 1)[0], rng.choice(PEOPLE), rng.choice(PLACES)
    question = rng.choice(_UNASKED).format(a=a, p=place)
    opening = rng.choice(("I'm sorry, but ", "Unfortunately, ", ""))
    said = rng.choice(
        (
            "the provided documents don't contain any information about this.",
            "the sources only describe other things, so I can't answer.",
            "I could not find any details on this in the context. You may want to check another source.",
            "the question cannot be answered with the given text.",
        )
    )
    right = f"{opening}{said}" if opening else said[0].upper() + said[1:]
    return Pair((fact.source,), question, right, f"{a} said so on {rng.randint(2, 28)} May 1931.")
