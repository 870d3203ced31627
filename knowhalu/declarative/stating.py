"""From a question and its answer to one statement that says the same."""

import re
from collections.abc import Sequence

from knowhalu.declarative.adjuncts import place_phrase, reason_phrase, time_phrase
from knowhalu.declarative.answers import LONGEST, cleaned, finished, inner, is_refusal, is_sentence, settled
from knowhalu.declarative.asking import who
from knowhalu.declarative.clauses import declared, put_in, stranded, with_adjunct
from knowhalu.declarative.closed import choice, chosen, compared, denied_statement, other_option, takes_no_side, yes_or_no
from knowhalu.declarative.fronted import fronted, whose
from knowhalu.declarative.inside import inside
from knowhalu.declarative.measures import how
from knowhalu.declarative.which import which
from knowhalu.declarative.words import ASKING, AUXILIARIES, PARTICLES, PREPOSITIONS, low, tokens, word
from knowhalu.text import content_words, sentences

_SHORT = re.compile(r"^(what|who|where|when|which|how)(?:'s|’s|'re|’re)\b(?! [A-Z][a-z]+ing)", re.IGNORECASE)  # noqa: RUF001
_OPENING = re.compile(r"^(?:and|but|so|then|well|also)\b,? ", re.IGNORECASE)
_TIME_BOUND = frozenset("from since until till after before".split())
_LEADS = (
    frozenset("born founded released known based located according between when while if as following besides".split())
    | PREPOSITIONS
)


def declarative(question: str, answer: str) -> str | None:
    """Say a question and its answer as one statement, or return None where that cannot be done safely.

    An answer that is a sentence already is returned as it is. Refusals, empty answers, and answers that do not fit the form of
    their question ("yes" to "who") give None. Every content word of a short answer is in the statement.
    """
    asked, said = _question(question), cleaned(answer)
    if not asked or is_refusal(said) or said.endswith("?"):
        return None
    whole = _as_it_is(asked, said)
    if whole is not None:
        return whole or None
    if len(said.split()) > LONGEST or len(sentences(said)) > 1:
        return None
    core = _stated(asked, inner(said))
    if core is None:
        return None
    text = finished(core)
    kept = settled(said) is not None or set(content_words(said)) <= set(content_words(text))
    return text if kept and _as_it_is(asked, cleaned(text)) == text else None


def _question(text: str) -> str:
    """Return a question on one line without its mark; nothing where there is not exactly one sentence."""
    text = " ".join(text.split())
    if not _is_one(text) or not any(c.isalnum() for c in text):
        return ""
    text = re.sub(r"\?(?=[\"”]$)", "", re.sub(r"[\s?!.,;:]+$", "", text))
    text = _OPENING.sub("", text)
    return _SHORT.sub(lambda m: f"{m[1]} {'are' if m[0][-2:] == 're' else 'is'}", text)


def _is_one(text: str) -> bool:
    """Tell whether a text is one sentence; initials inside a name do not end it."""
    found = sentences(text)
    return bool(found) and all(re.search(r"\b[A-Z][\w.]{0,5}\.$", s.text) for s in found[:-1])


def _as_it_is(question: str, said: str) -> str | None:
    """Return an answer that is a sentence, also behind yes or no; empty where a first sentence is none and others follow."""
    agreed = settled(said)
    if agreed is not None:
        return finished(agreed[1]) if agreed[1] and is_sentence(agreed[1], question) and not is_refusal(agreed[1]) else None
    if not is_sentence(said, question):
        return None
    first = sentences(said)[0].text
    return finished(said) if _is_one(said) or is_sentence(first, question) else ""


def _stated(question: str, answer: str) -> str | None:
    """State a question and a short answer."""
    options = choice(question)
    if options is not None:
        other = other_option(options.options, answer)
        if other is None or takes_no_side(answer):
            return None
        plain = _open(tokens(options.question), answer)
        return None if plain is None else compared(plain, other)
    words = tokens(question)
    if _asks_twice(words):
        return None
    if word(words[0]) in AUXILIARIES or word(words[0]).endswith(("n't", "n’t")):  # noqa: RUF001
        return _closed(words, answer)
    return _open(words, answer)


def _asks_twice(words: Sequence[str]) -> bool:
    """Tell whether a second thing is asked for ("... and when"), or something beside what is named ("who else")."""
    pairs = {(word(a), low(b)) for a, b in zip(words, words[1:], strict=False)}
    also = word(words[-2]) == "and" and low(words[-1]) in ASKING if len(words) > 2 else False
    return also or bool(pairs & {("who", "else"), ("who", "other"), ("what", "else"), ("what", "other")})


def _closed(words: Sequence[str], answer: str) -> str | None:
    agreed = settled(answer)
    if agreed is None:
        picked = chosen(words, answer)
        return None if picked is None else yes_or_no(picked, True)
    yes, rest = agreed
    if rest and (not yes or word(tokens(rest)[0]) not in PREPOSITIONS):
        return None
    if "or" in [low(w) for w in words] and not yes:
        return None
    text = yes_or_no(words, yes)
    return f"{text} {rest}" if text and rest else text


def _open(words: Sequence[str], answer: str) -> str | None:
    """State a question with a question word: at its beginning, behind a leading clause, or inside."""
    if not words:
        return None
    agreed = settled(answer)
    at = _leads_to(words)
    if at:
        rest = words[at:]
        text = _closed(rest, answer) if word(rest[0]) in AUXILIARIES else None if agreed else _asked(rest, answer)
        return None if text is None else " ".join([*words[:at], text])
    if agreed is not None:
        plain = not ASKING.intersection(map(word, words)) and is_sentence(" ".join(words))
        return None if not plain or agreed[1] else " ".join(words) if agreed[0] else denied_statement(" ".join(words))
    return _asked(words, answer)


def _leads_to(words: Sequence[str]) -> int:
    """Return where the question begins behind a clause and a comma; 0 where it begins at once."""
    first = word(words[0])
    if first not in _LEADS and not first.endswith("ing"):
        return 0
    for i in range(len(words) - 1, 0, -1):
        w = low(words[i])
        after = low(words[i + 1]) if i + 1 < len(words) else ""
        opens = w in ASKING | AUXILIARIES or (w in PREPOSITIONS and after in ASKING)
        if words[i - 1].endswith(",") and opens and not (first in ASKING and w in AUXILIARIES):
            return i
    return 0


def _asked(words: Sequence[str], answer: str) -> str | None:
    first = word(words[0])
    rest = words[1:]
    if first in PREPOSITIONS and len(words) > 2 and word(words[1]) in ("which", "what", "whom", "who"):
        return fronted(words[0], words[2:], answer, noun=word(words[1]) in ("which", "what"))
    if first not in ASKING:
        return inside(words, answer)
    if not rest:
        return None
    if first in ("who", "whom"):
        return who(rest, answer)
    if first in ("which", "what"):
        return which(rest, answer, what=first == "what")
    if first == "whose":
        return whose(rest, answer)
    if first == "how":
        return how(rest, answer)
    return _circumstance(first, rest, answer)


def _circumstance(asks: str, rest: Sequence[str], answer: str) -> str | None:
    """State when, where or why something is or was."""
    if word(rest[0]) not in AUXILIARIES or len(rest) < 2:
        return None
    clause = declared(rest[0], rest[1:])
    if clause is None:
        return None
    if clause.helper == len(rest) - 1 and len(rest) > 2 and low(rest[-1]) in PREPOSITIONS:  # "where is X from"
        return " ".join([*rest[1:-1], rest[0].lower(), rest[-1], answer])
    at = stranded(clause.words, clause.verb)
    bound: frozenset[str] = _TIME_BOUND if asks == "when" else PREPOSITIONS - PARTICLES if asks == "where" else frozenset()
    if at is not None and low(clause.words[at - 1]) in bound:
        return " ".join(put_in(clause.words, at, answer))
    if asks == "when":
        return " ".join(with_adjunct(clause, time_phrase(answer), time=True))
    if asks == "where" and low(answer.split()[0]) == low(clause.words[-1]) != "":
        return " ".join([*clause.words[:-1], answer])  # "located in Tirana" after "is located"
    if asks == "where":
        main = "" if "to" in map(low, clause.words[clause.verb :]) else low(clause.words[clause.verb])
        return " ".join(with_adjunct(clause, place_phrase(answer, main)))
    phrase = reason_phrase(answer, clause=is_sentence(answer))
    return None if phrase is None else " ".join([*clause.words, phrase])
