"""Claims that two sources settle together, in two steps by the entity that connects them.

"The author of Blue Lamp was born in Oslo" holds where one source says that Ilse Brand wrote Blue Lamp, and another that she was
born in Oslo: each step is a claim of its own on one sentence, and the entity is named (KnowHalu, section 3.2: one-hop queries).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from knowhalu.methods.common.evidence import ReadSentence, wanted_words
from knowhalu.methods.common.judgment_model import MIN_SETTLED, SupportBySteps
from knowhalu.requests import EntailmentPair, Probabilities
from knowhalu.text.entities import find_names
from knowhalu.text.sentences import content_words, word_count
from knowhalu.text.statements import MIN_STATEMENT_WORDS
from knowhalu.text.wordlists import NAME_PATTERN
from knowhalu.types import Sample

MAX_BRIDGES = 4
"""Pairs of steps that are read for one claim."""
_NAME = NAME_PATTERN.pattern
_DESCRIPTION = re.compile(
    rf"\b[Tt]he (?P<role>(?:[a-z]+ ){{0,2}}[a-z]+) of (?P<of>{_NAME})|(?P<owner>{_NAME})['’]s (?P<owned>[a-z]+)"  # noqa: RUF001
)
_LIES_IN = (
    r"\b{0}(?:, (?=(?:an?|the) )| (?:is|was|lies|stands) )(?:(?:an?|the|located|situated)(?: [\w-]+){{0,4}} )?(?:in|of) {1}\b"
    r"|\b{0}, {1}\b"
)
"""How a sentence locates a place in another one."""
_TERM = rf"(?:{_NAME}|[a-z][\w-]+)"
_ALIAS = re.compile(
    rf"\b(?P<brand>{_NAME}) (?:is|was) (?:an?|the) (?:[\w-]+ )?(?:brand|trade name|brand name|abbreviation) (?:of|for)"
    rf" (?P<of>{_TERM})|\b(?P<one>{_TERM}),? (?:(?:is|was|are) )?(?:also|formerly|better|commonly) (?:called|known as)"
    rf" (?:the )?(?P<other>{_TERM})"
)
"""How a sentence says that what is true of one name is true of another: of a brand what is true of its kind."""
_PLACE = re.compile(rf"\b(?:in|from|near) (?P<place>{_NAME})")


class Bridge(NamedTuple):
    """The entity that connects two sentences, and the two claims that are judged by one of them each."""

    name: str
    first: EntailmentPair
    second: EntailmentPair


def find_bridges(part: Sample, read: Sequence[ReadSentence]) -> list[Bridge]:
    """Return the pairs of steps in which sentences of different places may settle a claim or an answer."""
    found = dict.fromkeys((*_by_alias(part, read), *_by_description(part, read), *_by_place(part, read)))
    return list(found)[:MAX_BRIDGES]


def best_bridge(bridges: Sequence[Bridge], scores: Iterable[Probabilities]) -> SupportBySteps | None:
    """Return the pair of steps that supports a claim most, by the scores of all steps in turn; None without any.

    It refutes the claim where all pairs whose first step holds do.
    """
    said = list(scores)
    steps = list(zip(said[::2], said[1::2], strict=True))
    refuted = min((min(one.supported, other.contradicted) for one, other in steps if one.supported >= MIN_SETTLED), default=0.0)
    read = [
        SupportBySteps(b.name, (b.first.premise, b.second.premise), min(one.supported, other.supported), refuted)
        for b, (one, other) in zip(bridges, steps, strict=True)
    ]
    return max(read, key=lambda s: s.supported, default=None)


def _by_description(part: Sample, read: Sequence[ReadSentence]) -> Iterator[Bridge]:
    """Put an entity in place of its description: "the author of Blue Lamp"."""
    states = part.question is None or _DESCRIPTION.search(part.response) is not None
    asked = part.response if states else part.question or ""
    for m in _DESCRIPTION.finditer(asked):
        described = f"the {m['role'] or m['owned']} of {m['of'] or m['owner']}"
        for one, name in _names_beside(m["of"] or m["owner"], part, read):
            rest = f"{asked[: m.start()]}{name}{asked[m.end() :]}"
            claim, question = (rest, None) if states else (part.response, rest)
            other = _nearest(name, f"{rest} {claim}", one, read)
            if other is not None:
                first = EntailmentPair(one.view, f"{name} is {described}.")
                yield Bridge(name, first, EntailmentPair(other.view, claim, question))


def _by_alias(part: Sample, read: Sequence[ReadSentence]) -> Iterator[Bridge]:
    """Put the name under which other sentences speak of a thing in place of the one in the claim."""
    question = part.question or ""
    for one in read:
        for m in _ALIAS.finditer(one.view):
            names = (m["brand"], m["of"]) if m["brand"] else (m["one"], m["other"])
            for known, name in (names,) if m["brand"] else (names, names[::-1]):
                here = re.compile(rf"\b{re.escape(known)}\b", re.IGNORECASE)
                if not here.search(f"{question} {part.response}") or re.search(rf"\b{re.escape(name)}\b", part.response):
                    continue
                claim, asked = here.sub(name, part.response), here.sub(name, question) or None
                other = _nearest(name, f"{asked or ''} {claim}", one, read)
                if other is not None:
                    yield Bridge(name, EntailmentPair(one.view, f"{m.group()}."), EntailmentPair(other.view, claim, asked))


def _by_place(part: Sample, read: Sequence[ReadSentence]) -> Iterator[Bridge]:
    """Put a place in place of a larger one that a source says it is in."""
    if part.question and word_count(part.response) < MIN_STATEMENT_WORDS:
        return
    for m in _PLACE.finditer(part.response):
        for other, name in _names_beside(m["place"], part, read):
            if not re.search(_LIES_IN.format(re.escape(name), re.escape(m["place"])), other.view):
                continue
            claim = f"{part.response[: m.start('place')]}{name}{part.response[m.end() :]}"
            one = _nearest(name, claim, other, read)
            if one is not None and m["place"] not in one.view:
                yield Bridge(name, EntailmentPair(one.view, claim), EntailmentPair(other.view, f"{name} is in {m['place']}."))


def _names_beside(known: str, part: Sample, read: Sequence[ReadSentence]) -> Iterator[tuple[ReadSentence, str]]:
    """Yield the names that a claim lacks and that stand in one sentence with a name that it has."""
    wanted = wanted_words(part)
    for sentence in read:
        if set(content_words(known)) <= set(content_words(sentence.view)):
            for name in find_names(sentence.view):
                if name.type != "nationality" and wanted.isdisjoint(content_words(name.text)):
                    yield sentence, name.text


def _nearest(name: str, text: str, but: ReadSentence, read: Sequence[ReadSentence]) -> ReadSentence | None:
    """Return the sentence on a name, other than one, that has most words of a text."""
    words, named = set(content_words(text)), set(content_words(name))
    others = [r for r in read if r.view != but.view and named <= set(content_words(r.view))]
    return max(others, key=lambda r: len(words & set(content_words(r.view))), default=None)
