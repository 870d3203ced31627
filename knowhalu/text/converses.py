"""Words that say the same of two things from either side, as "sold to" and "bought from", and irregular verbs."""

import re
from typing import NamedTuple

from knowhalu.text.sentences import stem


class Pivot(NamedTuple):
    """Words between two participants: what they relate, and whether the participant on the left comes first."""

    pattern: re.Pattern[str]
    names: frozenset[str]
    forward: bool


_BE = r"(?:is|are|was|were|became|becomes|remains|lies|lie|lay|stands|sits|came|comes|happened|occurred|took place|begins|began)"
_CONVERSES: dict[str, tuple[str, str]] = {
    "sell": (r"(?:sold|sells?) X to", r"(?:bought|buys?|purchase[ds]?|acquire[ds]?) X from"),
    "lend": (r"(?:lent|lends?|loan(?:ed|s)) X to", r"borrow(?:s|ed)? X from"),
    "rent": (r"(?:rented|rents?|leased?|leases) X to", r"(?:rented|rents?|leased?|leases) X from"),
    "give supply send pay": (
        r"(?:gives?|gave|sends?|sent|pays?|paid|suppl(?:y|ies|ied)|delivers?|delivered) X to",
        r"(?:gets?|got|receives?|received|obtains?|obtained) X from",
    ),
    "export": (r"export(?:s|ed)? X to", r"import(?:s|ed)? X from"),
    "teach": ("", r"(?:learn(?:s|ed|t)?|studie[ds]|study) (?:X )?(?:from|under)"),
    "employ": ("", r"work(?:s|ed)? for"),
    "manage": ("", r"report(?:s|ed)? to"),
    "defeat": (r"(?:won|wins?) (?:X )?(?:against|over)", r"(?:lost|loses?) (?:X )?(?:to|against)"),
    "order": (
        rf"(?:{_BE} )?(?:before|prior to|earlier than)",
        rf"(?:{_BE} )?(?:(?<!named )(?<!look )(?<!called )after|later than)",
    ),
    "cause": (r"(?:led|leads) to|result(?:s|ed) in|brought about", r"result(?:s|ed) from"),
    "north": (r"north(?:-?east|-?west)? of", r"south(?:-?east|-?west)? of"),
    "east": (r"east of", r"west of"),
    "upstream": ("upstream of", "downstream of"),
    "above": (rf"{_BE} (?:directly )?above", rf"{_BE} (?:directly )?below"),
    "left": (r"left of", r"right of"),
    "own": ("", r"belong(?:s|ed)? to"),
    "cost": (r"costs? more than|more expensive than", r"costs? less than|less expensive than"),
}
"""Relations by what says them with the first of both things on the left, and with it on the right; X is what passes between."""
_SCALES = (
    "taller / shorter", "longer / shorter", "larger bigger greater / smaller", "older / younger newer", "heavier / lighter",
    "faster quicker / slower", "higher / lower", "richer wealthier / poorer", "stronger / weaker",
    "hotter warmer / cooler colder", "deeper / shallower", "wider broader / narrower", "closer nearer / farther further",
    "better / worse", "dearer / cheaper",
    "louder / quieter", "harder / easier", "denser / thinner",
)  # fmt: skip
_COUNTERPARTS = {
    "parent": "mother father parent / child son daughter subsidiary",
    "grandparent": "grandmother grandfather / grandson granddaughter",
    "uncle": "uncle aunt / nephew niece", "teach": "teacher tutor mentor / student pupil disciple apprentice",
    "manage": "boss manager supervisor superior / subordinate", "employ": "employer / employee",
    "order": "predecessor / successor", "ancestor": "ancestor / descendant",
    "let": "landlord / tenant", "lend": "creditor / debtor",
    "cause": "cause / result effect consequence",
}  # fmt: skip
"""Nouns for the first of two, and for the second, by the relation."""
VERB_GROUPS = {
    "hire": "employ", "employ": "employ", "recruit": "employ", "beat": "defeat", "defeat": "defeat", "eliminate": "defeat",
    "precede": "order", "predate": "order", "lend": "lend", "loan": "lend", "give": "give supply send pay",
    "supply": "give supply send pay", "provide": "give supply send pay", "send": "give supply send pay", "teach": "teach",
    "tutor": "teach", "instruct": "teach", "manage": "manage", "supervise": "manage", "cause": "cause", "own": "own",
}  # fmt: skip
"""Verbs that say one of the relations, the first of both things as their subject."""
BACKWARD_VERBS = {"succeed": "order", "follow": "order"}
MUTUAL_VERBS = frozenset(
    "marry meet fight face play resemble equal join befriend divorce date border adjoin neighbour oppose cross match kiss hug "
    "contact debate visit ask tell see know".split()
)
"""What one does to the other, the other does as well, or may."""
_IRREGULAR = (
    "beat:beaten write:wrote,written teach:taught sell:sold buy:bought lend:lent lead:led build:built choose:chose,chosen "
    "draw:drew,drawn drive:drove,driven give:gave,given hold:held keep:kept know:knew,known make:made pay:paid "
    "overthrow:overthrew,overthrown overtake:overtook,overtaken take:took,taken see:saw,seen send:sent shoot:shot sing:sang,sung "
    "strike:struck steal:stole,stolen throw:threw,thrown tell:told understand:understood win:won wear:wore,worn bite:bit,bitten "
    "eat:ate,eaten catch:caught bring:brought feed:fed forgive:forgave,forgiven hide:hid,hidden overcome:overcame seek:sought "
    "slay:slew,slain sweep:swept hurt:hurt hit:hit cut:cut bind:bound find:found lose:lost leave:left forsake:forsook,forsaken "
    "outrun:outran undo:undid,undone rebuild:rebuilt withdraw:withdrew,withdrawn ride:rode,ridden call:called marry:married "
    "fight:fought meet:met supply:supplied,supplies study:studied defy:defied deny:denied succeed:succeeded precede:preceded"
)
IRREGULAR = {form: base for base, forms in (e.split(":") for e in _IRREGULAR.split()) for form in (base, *forms.split(","))}
"""The bases of irregular forms, and of themselves."""


_OBJECT = r"(?:(?:[^,;:.()]|(?<=\d)[,.](?=\d)){1,40}?)"


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'-])(?:{words.replace('X', _OBJECT)})(?![\w'-])", re.IGNORECASE)


def _pivots() -> list[Pivot]:
    found = [
        Pivot(_pattern(words), frozenset(names.split()), forward)
        for names, sides in _CONVERSES.items()
        for words, forward in zip(sides, (True, False), strict=True)
        if words
    ]
    for number, scale in enumerate(_SCALES):
        for words, forward in zip(scale.split(" / "), (True, False), strict=True):
            found.append(Pivot(_pattern(rf"(?:{'|'.join(words.split())}) than"), frozenset({f"scale {number}"}), forward))
    nouns = r"(?:is|are|was|were|became) (?:also )?(?:(?:the|an?) )?(?:[\w-]+ )?(?:{})(?: company)? of"
    for name, group in _COUNTERPARTS.items():
        for words, forward in zip(group.split(" / "), (True, False), strict=True):
            found.append(Pivot(_pattern(nouns.format("|".join(words.split()))), frozenset({name}), forward))
    return found


PIVOTS = tuple(_pivots())
_UNTIL = r"[^.,;]+?"
FORMULAS = {
    "divided by": (r"\bdivided by\b", rf"\b[Dd]ivid(?:e|es|ed|ing) (?P<first>{_UNTIL}) by (?P<second>[^.,;]+)"),
    "minus": (r"\bminus\b", rf"\b[Ss]ubtract(?:s|ed|ing)? (?P<second>{_UNTIL}) from (?P<first>[^.,;]+)"),
    "per": (r"\bper\b", None),
}
"""Operations whose operands are not to be exchanged: as words between both, and as instructions."""
POSSESSIVE_NOUNS = "|".join(w for group in _COUNTERPARTS.values() for w in group.replace("/", "").split())


def verb_of(word: str) -> str:
    """Return the base of a form of a verb, as a stem."""
    return stem(IRREGULAR.get(word.lower(), word.lower()))
