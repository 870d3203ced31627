"""Knowledge in structured form: (subject, predicate, object) triplets read from a sentence by text rules.

A pronoun as subject is replaced by the title of the passage, so a triplet can be understood alone.
"""

import re

from knowhalu.text import sentences
from knowhalu.types import Triplet

_AUX = (
    "is are was were be been being am has have had do does did can could will would shall should may might must isn't aren't wasn't weren't hasn't "
    "haven't hadn't don't doesn't didn't can't cannot couldn't won't wouldn't"
).split()
_IRREGULAR = (
    "became began bore bought brought built came chose cut did drew drove fell felt fought found flew gave got grew held kept knew led left lent let lost "
    "made meant met paid put ran read rose said sang sat saw sent set shot showed sold spent spoke stood struck swam taught told took thought understood "
    "went won wrote lies lay lived flows rises runs stars plays comes gives takes makes says holds leads stands owns contains includes means covers joins "
    "borders serves opens starts begins ends costs needs wants remains becomes belongs consists connects crosses feeds forms has wears won't goes gets "
    "allows requires describes tells shows follows features marks hosts uses lasts meets measures orbits produces represents separates supports"
).split()
_VERBS = frozenset(_AUX + _IRREGULAR)
_ADVERB = re.compile(r"^(?:not|never|also|still|only|once|first|later|now|then|often|always|already|\w+ly)$", re.IGNORECASE)
_PARTICIPLE = re.compile(r"^(?:\w{2,}(?:ed|en|ing)|born|known|made|built|held|set|won|led|found|sold|sent|kept|put|written|taken|given|shot|cut|located|based|been|being)$")
_PREPOSITION = frozenset("in on at by to from for of with as into onto over under between among after before during since until near through against about".split())
_DETERMINER = frozenset("a an the this that these those its his her their our my your some any no each every".split())
_PRONOUN = frozenset("he she it they this these who which i we".split())
_BORDER = re.compile(r";|, (?:and|but|while|whereas) (?=\w+ \w+)|, (?:which|who|where)\b|,? (?:although|because)\b| and (?=(?:was|were|is|has|had|moved|[a-z]{2,}ed)\b)")
_OPENING = re.compile(r"^(?:\w+ed|Born|Known|Built|Set|Made|Written|In|On|At|After|Before|During|By|From|Since)\b.*, \S")
_BRACKET = re.compile(r"\s*\(([^()]*)\)")


def triplets(sentence: str, title: str = "", quote: int = -1) -> list[Triplet]:
    """Read the triplets of one sentence; the text of a sentence without a verb that is known becomes one with "states"."""
    found: list[Triplet] = []
    subject = title
    for clause in _BORDER.split(_BRACKET.sub("", sentence).strip().rstrip(".!?")):
        fact = _fact(clause.strip(" ,"), subject)
        if fact is None:
            continue
        subject = fact[0]
        found += _parted(*fact, quote)
    found += [Triplet(subject=subject or title or "it", predicate="is described as", object=b.strip(), quote=quote) for b in _BRACKET.findall(sentence) if b.strip()]
    if not found:
        found = [Triplet(subject=title or "the source", predicate="states", object=sentence.strip(), quote=quote)]
    return found


def _fact(clause: str, subject: str) -> tuple[str, str, str] | None:
    """Find the first verb group of a clause and what stands on its two sides."""
    tokens = clause.split()
    for i, token in enumerate(tokens):
        word = token.strip(",\"'“”").lower()
        plain = word in _VERBS or (word.endswith("ed") and len(word) > 4 and i > 0)
        if not plain or (i > 0 and tokens[i - 1].lower() in _DETERMINER | _PREPOSITION):
            continue
        end = i + 1
        while end < len(tokens) and (_ADVERB.match(tokens[end]) or _PARTICIPLE.match(tokens[end]) or tokens[end].lower() in _AUX):
            end += 1
        if end < len(tokens) - 1 and tokens[end].lower() in _PREPOSITION and end > i:
            end += 1
        left, right = " ".join(tokens[:i]).strip(" ,"), " ".join(tokens[end:]).strip(" ,")
        if _OPENING.match(left):
            left = left.rpartition(", ")[2]
        if not right and not left:
            return None
        if not left or left.lower() in _PRONOUN:
            left = subject or left or "it"
        return left, " ".join(tokens[i:end]), right
    return None


def _parted(subject: str, predicate: str, rest: str, quote: int) -> list[Triplet]:
    """Split what follows the verb at a date or place, so that each fact is a triplet of its own."""
    if not rest:
        return [Triplet(subject=subject, predicate=predicate, object="", quote=quote)]
    verb = " ".join(w for i, w in enumerate(predicate.split()) if w.lower() not in _PREPOSITION or i == 0)
    cut = re.search(r",? ((?:in|on|from|since|until|at|between) (?:\d{1,2} )?(?:\d{3,4}\b|[A-Z]\w+ (?:\d{1,2},? )?\d{4}).*)$", rest)
    whole = predicate.split()[-1].lower() in {*_AUX, "not", "never"} and not predicate.lower().startswith(("is", "was", "are", "were"))
    if cut and cut.start() > 0 and not whole:
        preposition, _, when = cut.group(1).partition(" ")
        return [
            Triplet(subject=subject, predicate=predicate, object=rest[: cut.start()], quote=quote),
            Triplet(subject=subject, predicate=f"{verb} {preposition}", object=when, quote=quote),
        ]
    return [Triplet(subject=subject, predicate=predicate, object=rest, quote=quote)]


def as_text(facts: list[Triplet]) -> str:
    """Write triplets as short sentences, the shape in which the verifier reads them."""
    return " ".join(" ".join(p for p in (f.subject, f.predicate, f.object) if p).rstrip(" .") + "." for f in facts)


def of_text(text: str, title: str = "") -> list[Triplet]:
    """Read the triplets of every sentence of a text."""
    return [t for s in sentences(text) for t in triplets(s.text, title)]
