"""Knowledge in structured form: (subject, predicate, object) triplets read from a sentence by text rules.

A pronoun as subject is replaced by the subject before it or by the title of the passage, so a triplet can be understood alone.
"""

import re
from typing import NamedTuple

from knowhalu.text.sentences import content_words
from knowhalu.text.wordlists import DETERMINERS, HELPERS, PREPOSITIONS, PRONOUNS, VERBS
from knowhalu.types import Triplet

_ADVERB = re.compile(r"^(?:also|still|only|once|first|later|now|then|often|always|already|\w+ly)$", re.IGNORECASE)
_PARTICIPLE = re.compile(r"^(?:\w{2,}(?:ed|en|ing)|born|known|made|built|held|set|won|led|found|sold|sent|kept|put|shot|cut)$")
_CLAUSE_BOUNDARY = re.compile(
    r";|, (?:and|but|while|whereas) (?=\w+ \w+)|, (?:which|who|where)\b|,? (?:although|because)\b"
    r"| and (?=(?:was|were|is|has|had|[a-z]{2,}ed)\b)"
)
_OPENING = re.compile(r"^(?:\w+ed|Born|Known|Built|Set|Made|Written|In|On|At|After|Before|During|By|From|Since)\b.*, \S")
_BRACKET = re.compile(r"\s*\(([^()]*)\)")
_DATE_PHRASE = re.compile(
    r",? ((?:in|on|from|since|until|at|between) (?:\d{1,2} )?(?:\d{3,4}\b|[A-Z]\w+ (?:\d{1,2},? )?\d{4}).*)$"
)


class _Fact(NamedTuple):
    subject: str
    predicate: str
    object: str


def extract_triplets(sentence: str, title: str = "", quote: int = -1) -> list[Triplet]:
    """Extract the triplets of one sentence; one without a known verb becomes a triplet with "states"."""
    found: list[_Fact] = []
    subject = title
    for clause in _CLAUSE_BOUNDARY.split(_BRACKET.sub("", sentence).strip().rstrip(".!?")):
        fact = _parse_fact(clause.strip(" ,"), subject)
        if fact is not None:
            subject = fact.subject
            found += _split_date(fact)
    found += [_Fact(subject or title or "it", "is described as", b.strip()) for b in _BRACKET.findall(sentence) if b.strip()]
    if not found:
        found = [_Fact(title or "the source", "states", sentence.strip())]
    return [Triplet(subject=f.subject, predicate=f.predicate, object=f.object, quote=quote) for f in found]


def _parse_fact(clause: str, subject: str) -> _Fact | None:
    """Split a clause at its first verb group; `subject` replaces a pronoun or a missing subject."""
    tokens = clause.split()
    start = next((i for i in range(len(tokens)) if _is_verb(tokens, i)), None)
    if start is None:
        return None
    end = start + 1
    while end < len(tokens) and _continues_verb(tokens[end]):
        end += 1
    if end < len(tokens) - 1 and tokens[end].lower() in PREPOSITIONS:
        end += 1
    left, right = " ".join(tokens[:start]).strip(" ,"), " ".join(tokens[end:]).strip(" ,")
    if not left and not right:
        return None
    if _OPENING.match(left):
        left = left.rpartition(", ")[2]
    if not left or left.lower() in PRONOUNS:
        left = subject or left or "it"
    return _Fact(left, " ".join(tokens[start:end]), right)


def _is_verb(tokens: list[str], at: int) -> bool:
    word = tokens[at].strip(",\"'“”").lower()
    known = word in VERBS or (word.endswith("ed") and len(word) > 4 and at > 0)
    return known and (at == 0 or tokens[at - 1].lower() not in DETERMINERS | PREPOSITIONS)


def _continues_verb(token: str) -> bool:
    """Tell whether a word still belongs to the verb group before it."""
    return bool(_ADVERB.match(token) or _PARTICIPLE.match(token)) or token.lower() in HELPERS


def _split_date(fact: _Fact) -> list[_Fact]:
    """Split off a date at the end, so that it is a fact of its own."""
    cut = _DATE_PHRASE.search(fact.object)
    verb = [w for i, w in enumerate(fact.predicate.split()) if i == 0 or w.lower() not in PREPOSITIONS]
    unfinished = len(verb) > 1 and verb[-1].lower() in HELPERS
    if cut is None or cut.start() == 0 or unfinished:
        return [fact]
    preposition, _, when = cut.group(1).partition(" ")
    return [fact._replace(object=fact.object[: cut.start()]), _Fact(fact.subject, f"{' '.join(verb)} {preposition}", when)]


def as_triplets(sentence: str, title: str = "") -> str:
    """Write a sentence as triplets; as it is, after its title, where they lack one of its content words."""
    written = triplets_to_text(extract_triplets(sentence, title))
    if set(content_words(sentence)) <= set(content_words(written)):
        return written
    return f"{title}: {sentence}" if title and title.lower() not in sentence.lower() else sentence


def triplets_to_text(facts: list[Triplet]) -> str:
    """Write triplets as short sentences, the shape in which the verifier reads them."""
    return " ".join(" ".join(p for p in (f.subject, f.predicate, f.object) if p).rstrip(" .") + "." for f in facts)
