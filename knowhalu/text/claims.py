"""What a text claims: its units without lead-ins, each with its context, and those that claim nothing with the reason."""

import re
from enum import StrEnum
from itertools import zip_longest
from typing import NamedTuple

from knowhalu.text.blocks import Unit, UnitKind, read_units
from knowhalu.text.clauses import find_subject, independent_clauses
from knowhalu.text.code import is_bare_syntax
from knowhalu.text.courtesies import ASSENT, is_courtesy
from knowhalu.text.questions import declines_to_answer
from knowhalu.text.references import resolve_opening
from knowhalu.text.sentences import content_words

_PRONOUN = re.compile(
    r"\b(?:he|she|it|they|him|her|them|his|hers|its|their|theirs|this|that|these|those|such|here|there|then"
    r"|the (?:former|latter)|both|one|ones|the same|another|others)\b",
    re.IGNORECASE,
)
_SHOWN = (
    r"(?:the )?(?:answer|summary|response|result|explanation|steps?|timeline|overview|conclusion|note|sources?|references?"
    r"|details)(?: (?:is|are))?"
)
_ANNOUNCEMENT = re.compile(
    r"\W*(?:(?:here(?:'s| is| are)|below (?:is|are)|these are|the following (?:is|are)|let me|i(?:'ll| will| can| have| would)"
    rf"|we(?:'ll| will| can)) [^.!?]*|{_SHOWN}):\W*",
    re.IGNORECASE,
)
_TITLE = re.compile(rf"(?:{_SHOWN}|key (?:facts|points|takeaways)|bibliography|works cited|citations|footnotes)", re.IGNORECASE)
_SOURCE = (
    r"(?:(?:the )?(?:source|document|doc|passage|reference|ref|excerpt|text)s? ?#?\[?\d{1,3}\]?|\[\d{1,3}\]"
    r"|(?:the |this |these |your |our |my )?(?:provided |given |supplied |available |above |following |retrieved |attached )?"
    r"(?:context|information|documents?|text|passages?|sources?|articles?|excerpts?|search results|knowledge(?: base)?|data"
    r"|material|conversation|transcript|paper|report)"
    r"(?: (?:you )?(?:provided|gave|given|above|supplied|here))?(?: (?:above|here))?)"
)
_LEADS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?:based (?:up)?on|according to|as per|per|from|given|in|looking at|going by|judging by|reading"
        r"|as (?:stated|mentioned|described|noted|given) (?:in|by))"
        rf" {_SOURCE},?\s+"
        r"(?:(?:it (?:is|appears|seems)(?: clear)?|we (?:can see|know)|i can (?:see|tell|confirm)) that )?",
        rf"as far as {_SOURCE} (?:goes|says|shows|tells us),?\s+",
        r"(?:i (?:found|see|can see|read)|it (?:says|states|is stated|is said)(?: (?:here|there))?) that ",
        rf"as {_SOURCE} (?:states?|says?|mentions?|notes?|explains?|indicates?|shows?),\s+",
        rf"{_SOURCE} (?:clearly |also |explicitly )?(?:states?|says?|mentions?|notes?|explains?|indicates?|shows?|suggests?"
        r"|confirms?|tells? us) that ",
        rf"(?:{ASSENT}|great question|good question|well|so|right|yes,? of course)[,!.:]\s+",
        r"(?:in (?:short|summary|conclusion|brief|other words|fact|general)|to (?:summari[sz]e|answer your question|sum up)"
        r"|overall"
        r"|basically|essentially|as (?:you can see|mentioned(?: above| before)?|noted)|please note that|note that"
        r"|keep in mind that"
        r"|it is (?:worth noting|important to note|also worth noting) that|as far as i know|to be clear|indeed|additionally"
        r"|furthermore|moreover|however|also|finally|therefore|thus|for example|for instance),?\s+",
        r"here(?:'s| is| are)(?: the| your| my| an?)? (?:[\w-]+ ){0,3}[\w-]+:\s+",
        r"(?:the |a )?(?:short |simple |quick )?answer(?: to your question)?(?: is)?:\s+",
        r"(?:the (?:short |simple )?answer(?: to your question)? is(?: that)?|answer)[:,]?\s+",
    )
)

_PURPOSE = re.compile(r"^\W*(?:to|if you|in order to|for|when you|here(?:'s| is| are))\b[^,:]*(?:[,:]|$)", re.IGNORECASE)
_OF_CODE = frozenset(
    content_words(
        """
        add apply call code command define example execute file follow following function like line method need paste program
        put query request run save script set simple snippet statement step syntax template type use using want way write
        """
    )
)
"""Words by which a sentence only announces the code below it."""
MIN_OWN_WORDS = 2
_INSTRUCTION = re.compile(
    r"(?:add|append|assign|build|call|change|choose|configure|convert|copy|create|declare|define|delete|disable|enable|enter|export"
    r"|fetch|import|include|initiali[sz]e|insert|install|invoke|load|make|move|open|override|pass|place|put|raise|read|remove|rename"
    r"|replace|restart|return|run|save|select|send|set|start|stop|store|submit|type|update|use|wrap|write) ",
    re.IGNORECASE,
)
_NUMBERING = re.compile(r"\((?P<number>\d{1,2})\)\s")
_SPEAKS_OF_ITSELF = re.compile(
    r"\b(?:i|me|my|we|our)\b"
    r"|\b(?:context|documents?|text|passages?|sources?|articles?|excerpts?|snippets?|search results|knowledge base|transcript)\b"
    r"|\b(?:information|details?)\b(?=\W*$|[,;:]| (?:is |are )?(?:available|given|provided|found|here|there|on|about)\b)"
    r"|^\W*(?:unfortunately,? )?(?:(?:it|this|that)\b(?!.*\bnot given an?\b)|(?:unknown|n/?a|none|no idea|nothing here|sorry)\b"
    r"|not (?:enough|available|stated|mentioned|specified|given|clear|known)\b)"
    r"|\bcan(?:not|'t) be (?:answered|determined|said|told)\b",
    re.IGNORECASE,
)
"""A refusal speaks of the speaker, of the sources or of what is asked; "she was not given a medal" speaks of the world."""


_SILENT = re.compile(
    rf"\W*(?:(?:unfortunately|sorry),? )?{_SOURCE} (?:does|do|did)(?: not|n['’]t) (?:explicitly |directly |clearly )?"  # noqa: RUF001
    r"(?:say|state|mention|specify|give|provide|tell|include|contain|describe|list|cover)\b[^.:;]*",
    re.IGNORECASE,
)
_REFERRAL = re.compile(
    r"\W*(?:(?:so|but|therefore),? )?(?:please |i(?:'d| would) (?:suggest|recommend|advise)(?: that)?(?: you)? "
    r"|(?:you|it) (?:may|might|can|could|should|would)(?: be)?(?: best| better)?(?: want| wish| have)?(?: to)? )?"
    r"(?:contact|check|consult|ask|see|refer|look|visit|reach|search|try|speak|call|write)(?:ing)?\b",
    re.IGNORECASE,
)
_BUT = re.compile(r"(?:,? (?:but|however|though|although)|;(?: (?:but|however))?)\b,? ", re.IGNORECASE)


class NoClaim(StrEnum):
    """Why a unit claims nothing about the world."""

    COURTESY = "a courtesy"
    QUESTION = "a question"
    ANNOUNCEMENT = "an announcement of what follows"
    REFUSAL = "a refusal to answer"
    HEADING = "a heading"
    EMPTY = "no words"


class Claim(NamedTuple):
    """A unit of a text as a claim: `text` without its lead-in, `offsets` as in `Unit`, and the sentence that it refers back to.

    A pronoun that opens it stands for the subject of the sentence before where that is certain; then it needs no context.

    `no_claim` says why there is nothing to check, None of a claim.
    """

    start: int
    end: int
    text: str
    offsets: tuple[int, ...]
    kind: UnitKind
    context: str = ""
    no_claim: NoClaim | None = None


def find_claims(text: str) -> list[Claim]:
    """Split a text into claims and parts that claim nothing, in its order."""
    claims: list[Claim] = []
    before, units = "", read_units(text)
    for unit, after in zip_longest(units, units[1:]):
        skipped = _lead_length(unit.text)
        if unit.kind is UnitKind.SENTENCE and (half := _refusing_half(unit.text)):
            silent, offsets = unit.text[: half.start()], unit.offsets[: half.start()]
            claims.append(Claim(offsets[0], offsets[-1] + 1, silent, offsets, unit.kind, no_claim=NoClaim.REFUSAL))
            before, skipped = silent, half.end()
        stripped, offsets = unit.text[skipped:], unit.offsets[skipped:]
        if reason := _no_claim(unit, stripped) or _introduces(unit, after):
            start = offsets[0] if offsets else unit.start
            claims.append(Claim(start, unit.end, stripped, offsets, unit.kind, no_claim=reason))
            before = unit.text if reason is NoClaim.HEADING else before
            continue
        if _precedes_code(unit, after):
            stripped, offsets = _as_possibility(stripped, offsets)
        for first, last in independent_clauses(stripped) if unit.kind is UnitKind.SENTENCE else [(0, len(stripped))]:
            claim = _claim(unit, stripped[first:last], offsets[first:last], before)
            claims.append(claim)
            before = claim.text if last < len(stripped) or claim.text != stripped else unit.text
    return claims


def _refusing_half(text: str) -> re.Match[str] | None:
    """Return where a sentence goes on with a claim after it has said that the sources or the speaker do not tell something."""
    goes_on = _BUT.search(text)
    if goes_on is None:
        return None
    half = text[: goes_on.start()]
    refuses = _SPEAKS_OF_ITSELF.search(half) and declines_to_answer(half, in_other_words=True)
    says_more = not declines_to_answer(text[goes_on.end() :])
    return goes_on if says_more and (_SILENT.fullmatch(half) or refuses) else None


def declines_as_well(text: str) -> bool:
    """Tell whether a sentence beside a refusal declines to answer, too, or sends the reader elsewhere: "Please ask the bank."."""
    silent = _SILENT.fullmatch(text.rstrip(".! "))
    return silent is not None or _REFERRAL.match(text) is not None or declines_to_answer(text, in_other_words=True)


def _claim(unit: Unit, text: str, offsets: tuple[int, ...], before: str) -> Claim:
    """Return a claim with its context; a pronoun that opens it becomes the subject that it certainly stands for."""
    start, end, context = offsets[0], offsets[-1] + 1, _context(unit, text, before)
    text, offsets = _without_numbering(text, offsets)
    if context and context == before and (reference := resolve_opening(text, before)):
        last = reference.length - 1
        places = [offsets[min(i, last)] for i in range(len(reference.subject) - 1)] + [offsets[last]]
        text, offsets = f"{reference.subject}{text[reference.length :]}", (*places, *offsets[reference.length :])
        context = ""
    return Claim(start, end, text, offsets, unit.kind, context)


def _without_numbering(text: str, offsets: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Leave out the "(1)" and "(2)" that only count the items of a sentence."""
    marks = list(_NUMBERING.finditer(text))
    if [int(m["number"]) for m in marks[:2]] != [1, 2]:
        return text, offsets
    kept = [i for i in range(len(text)) if not any(m.start() <= i < m.end() for m in marks)]
    return "".join(text[i] for i in kept), tuple(offsets[i] for i in kept)


def _no_claim(unit: Unit, text: str) -> NoClaim | None:
    if not any(c.isalnum() for c in text):
        return NoClaim.EMPTY
    if unit.kind is UnitKind.HEADING:
        return NoClaim.HEADING
    if unit.kind is UnitKind.CODE:
        return NoClaim.EMPTY if is_bare_syntax(text) else None
    if is_courtesy(unit.text) or is_courtesy(text):
        return NoClaim.COURTESY
    if text.rstrip("\"'”’) ").endswith("?"):  # noqa: RUF001
        return NoClaim.QUESTION
    if (
        _ANNOUNCEMENT.fullmatch(text)
        or _TITLE.fullmatch(text)
        or (text.endswith(":") and unit.kind is UnitKind.SENTENCE and len(content_words(text)) < 2)
    ):
        return NoClaim.ANNOUNCEMENT
    if unit.kind is UnitKind.SENTENCE and _SPEAKS_OF_ITSELF.search(text) and declines_to_answer(text, in_other_words=True):
        return NoClaim.REFUSAL
    return None


def _introduces(unit: Unit, after: Unit | None) -> NoClaim | None:
    """Tell whether a sentence that ends in a colon only introduces what is below it; before code it may well claim something."""
    if after is None or after.lead != unit.text or unit.kind is not UnitKind.SENTENCE:
        return None
    if not _precedes_code(unit, after):
        return NoClaim.ANNOUNCEMENT
    own = set(content_words(_PURPOSE.sub("", unit.text))) - _OF_CODE
    return NoClaim.ANNOUNCEMENT if len(own) < MIN_OWN_WORDS else None


def _precedes_code(unit: Unit, after: Unit | None) -> bool:
    return after is not None and after.lead == unit.text and after.kind is UnitKind.CODE


def _as_possibility(text: str, offsets: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
    """Return an instruction that introduces code as a sentence that can be true: "Pass a limit:" as "You can pass a limit."."""
    text = f"{text[:-1]}." if text.endswith(":") else text
    if not _INSTRUCTION.match(text):
        return text, offsets
    return f"You can {text[0].lower()}{text[1:]}", (*([offsets[0]] * len("You can ")), *offsets)


def _lead_length(text: str) -> int:
    """Return the number of characters of a unit's lead-ins, of which several may follow one another."""
    at = 0
    while True:
        step = max((m.end() for p in _LEADS if (m := p.match(text, at))), default=at)
        if step == at or not text[step:].strip():
            return at
        at = step


_DESCRIPTION = re.compile(r"(?:[Tt]he|[Ss]uch an?) ([a-z]+) (?!of\b)[a-z]")


def _names_again(text: str, before: str) -> bool:
    """Tell whether a sentence opens with "the bridge" and the one before says which bridge."""
    m = _DESCRIPTION.match(text)
    return m is not None and not set(content_words(m[1])).isdisjoint(content_words(before))


def _is_generic(text: str) -> bool:
    """Tell whether a heading or lead says nothing of its own, such as "Summary" or "Here are the facts:"."""
    return bool(_TITLE.fullmatch(text.rstrip(": ")) or _ANNOUNCEMENT.fullmatch(text))


def _context(unit: Unit, text: str, before: str) -> str:
    """Return what a claim needs to be understood: what introduces its list, its heading, or the sentence before a pronoun."""
    if unit.lead or unit.kind in (UnitKind.LIST_ITEM, UnitKind.TABLE_ROW):
        return " ".join(part for part in (unit.heading, unit.lead) if part and not _is_generic(part))
    return before if before and (_refers_back(text) or _names_again(text, before)) else ""


_ADVERB = re.compile(
    r"(?:later|then|afterwards|next|also|again|today|now|finally|meanwhile|instead|often|usually|in addition|after that"
    r"|since then|in return|at first),? (?=\w)",
    re.IGNORECASE,
)
_INNER = re.compile(
    r"\b(?:its|their)\b|\b(?:when|if|because|although|though|before|after|while|until|unless|where|once) (?:it|they)\b",
    re.IGNORECASE,
)
"""A pronoun that stands for the subject of its own sentence, where it comes behind it."""


def _refers_back(text: str) -> bool:
    """Tell whether the beginning of a sentence has a pronoun that stands for something in the sentence before."""
    opening = _ADVERB.match(text)
    start = text[opening.end() if opening else 0 :].split(",")[0]
    subject = find_subject(start)
    if subject and not _PRONOUN.search(subject):
        start = _INNER.sub(" ", start)
    return _PRONOUN.search(start) is not None
