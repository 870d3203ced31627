"""Answers as they come: cleaned, recognised as a refusal, as yes or no, or as a sentence of their own."""

import re
from collections.abc import Sequence

from knowhalu.declarative import verbs
from knowhalu.declarative.words import (
    AUXILIARIES,
    DETERMINERS,
    OPENERS,
    PREPOSITIONS,
    PRONOUNS,
    RELATIVES,
    SUBORDINATE,
    is_name,
    low,
    opens_noun,
    past_adverbs,
    tokens,
    word,
)
from knowhalu.text import STOPWORDS, stem
from knowhalu.text import words as words_of

_REFUSES = re.compile(
    r"^(?:sorry|unknown|unclear|unanswerable|unsure|no idea|apologies|n/?a|none|null|nothing|not (?:sure|stated|mentioned|"
    r"known|given|specified|available|provided|applicable)|no (?:answer|information)|cannot (?:say|tell|answer)|\?+)\b"
    r"|\b(?:i|we)(?:'m| am|'re| are)? ?(?:sorry|afraid|unable|unsure|not (?:sure|able|certain|aware))\b"
    r"|\b(?:i|we) (?:cannot|can't|can not|could not|couldn't|do not|don't|did not|didn't) "
    r"(?:know|answer|say|tell|find|determine|recall|have)\b"
    r"|\b(?:do|does|did|is|are|was|were)(?:n't| not) (?:\w+ )?(?:say|state|mention|specify|tell|contain|provide|stated|mentioned|"
    r"given|specified|provided)\b|\b(?:is|are|was|were) (?:not known|unknown)$|\b(?:no|not enough|insufficient) information\b"
    r"|\bcan(?:not|'t| not) be (?:answered|determined|said|told)\b",
    re.IGNORECASE,
)
_SETTLES = re.compile(r"^(yes|yeah|yep|correct|true|no|nope|false|incorrect)\b[\s,.;:!–—-]*(.*)$", re.IGNORECASE | re.DOTALL)  # noqa: RUF001
_AGREES = frozenset("yes yeah yep correct true".split())
_ABBREVIATED = re.compile(
    r"(?:\b(?:Jr|Sr|St|Inc|Ltd|Co|Corp|etc|Mt|Dr|No|Bros|B\.C|A\.D|a\.m|p\.m|U\.S|U\.K|D\.C|U\.S\.A)|\b[A-Z]|\.\w)\.$"
)
LONGEST = 40
"""Words of an answer that is no sentence, at most."""


def cleaned(text: str) -> str:
    """Return a text on one line, without the marks that end a sentence."""
    text = " ".join(text.split()).rstrip(" ,;:–—-")  # noqa: RUF001
    while text.endswith((".", "!", " ")) and not _ABBREVIATED.search(text):
        text = text[:-1].rstrip(" ,;:–—-")  # noqa: RUF001
    return text


def is_refusal(answer: str) -> bool:
    """Tell whether an answer is empty, or declines to answer."""
    return not any(c.isalnum() for c in answer) or (bool(_REFUSES.search(answer)) and len(answer.split()) <= LONGEST)


def settled(answer: str) -> tuple[bool, str] | None:
    """Return whether an answer opens with yes or no, and what it goes on with; None where it does neither."""
    found = _SETTLES.match(answer)
    if found is None or (found[1][0].isupper() and re.match(r"\s+[A-Z\d]", answer[found.end(1) :])):
        return None  # "No Country for Old Men"
    rest = found[2].strip()
    separate = not rest or not answer[found.end(1) :][:1].isspace()
    return (found[1].lower() in _AGREES, rest) if separate else None


def inner(answer: str) -> str:
    """Return an answer as it stands inside a sentence: a small word that opened it with a capital is written small."""
    found = answer.split(maxsplit=2)
    if not found or not found[0][0].isupper() or found[0].isupper() and len(found[0]) > 1:
        return answer
    first = found[0].lower()
    alone = len(found) == 1 or found[1][0].isupper() or found[1][0] in "\"“'"
    small = (
        first in OPENERS | {"to"} and first not in ("up", "per")
        if not alone
        else first in ("in", "on", "at", "because") and len(found) > 1
    )
    if small or (first in DETERMINERS | PRONOUNS and not alone and first != "i"):
        return answer[0].lower() + answer[1:]
    return answer


def is_sentence(text: str, question: str = "") -> bool:
    """Tell whether a text has a subject and a finite verb.

    A verb that may be a participle counts where an object follows it, or where the text says again what the question asks.
    """
    words = tokens(text)
    waiting = False
    if words and word(words[0]) in SUBORDINATE:
        words = words[next((i + 1 for i, w in enumerate(words) if w.endswith(",")), len(words)) :]
    weak = False
    for i, token in enumerate(words):
        w = low(token)
        if i and (w in RELATIVES - {"that"} or w in SUBORDINATE or (w == "that" and low(words[i - 1]) not in _SAYS)):
            waiting = True
            continue
        if not i or not w or low(words[i - 1]) in PREPOSITIONS | DETERMINERS - {"that", "this", "these", "those", "all", "both"}:
            continue
        strength = _finite(words, i, w)
        if strength and waiting:
            waiting = False
        elif strength == 2:
            return True
        else:
            weak = weak or strength == 1
        if waiting and token.endswith(","):
            waiting = False
    return weak and _says_again(text, question)


_SAYS = frozenset("says said state states stated claim claims claimed is was believes believed".split())


def _finite(words: Sequence[str], at: int, w: str) -> int:
    """Return 2 for a verb that is finite, 1 for one that may be, 0 for none."""
    if w in AUXILIARIES or w in (
        "isn't",
        "wasn't",
        "aren't",
        "weren't",
        "didn't",
        "doesn't",
        "don't",
        "cannot",
        "can't",
        "hasn't",
    ):
        return 2 if w not in ("may", "might", "will") or at + 1 < len(words) else 0
    if w in verbs.ONLY_PAST:
        return 2
    if not (verbs.is_past(w) or w in verbs.THIRDS or w in verbs.BASES):
        return 0
    pronoun = at == past_adverbs(words, 1) and word(words[0]) in PRONOUNS - {"that", "this", "these", "those"}
    if pronoun:
        return 2
    if w in verbs.THIRDS and w not in verbs.NOUN_THIRDS:
        return 2
    if w in verbs.BASES and not verbs.is_past(w):
        joined = w not in verbs.NOUNS_TOO and (low(words[at - 1]).endswith("s") or "and" in map(low, words[: at - 1]))
        joined = joined and not RELATIVES.intersection(map(low, words[1:at]))
        if joined and low(words[at - 1]) != "to":
            return 2
        return 1 if low(words[at - 1]) != "to" else 0
    naming = w in ("called", "named", "titled", "entitled", "nicknamed", "dubbed")
    noun = w in verbs.NOUN_THIRDS
    return 2 if opens_noun(words, at + 1) and not naming and not (noun and not is_name(words[at - 1])) else 1


def _says_again(text: str, question: str) -> bool:
    said, asked = _content(text), _content(question)
    return bool(asked) and sum(w in said for w in asked) >= 0.5 * len(asked)


def _content(text: str) -> list[str]:
    return [stem_of(w) for w in (s.text.lower() for s in words_of(text)) if w not in STOPWORDS | {"yes", "no"}]


def stem_of(w: str) -> str:
    """Return what forms of a word have in common, of irregular verbs too."""
    return _BASE_OF.get(w) or stem(w)


_BASE_OF = {f: b for b in sorted(verbs.BASES) for f in (b, verbs.past(b), verbs.participle(b), verbs.third(b))}


def finished(text: str) -> str:
    """Return a sentence with its capital and its full stop."""
    text = cleaned(re.sub(r"\s+([,;.])", r"\1", text))
    first = text.split(" ", 1)[0]
    if first[:1].islower() and not any(c.isupper() for c in first):
        text = text[0].upper() + text[1:]
    return text if text.endswith((".", '."', ".”")) else f"{text}."
