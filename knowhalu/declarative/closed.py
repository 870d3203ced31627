"""Questions whose answer is given in them: yes or no, or one of two options."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from knowhalu.declarative.clauses import declared, inflected
from knowhalu.declarative.words import ARTICLES, AUXILIARIES, BE, DO, PRONOUNS, is_name, low, tokens, word

_COMPARATIVES = frozenset(
    """
    older younger taller larger bigger smaller longer shorter higher lower earlier later more less fewer further farther closer
    heavier lighter faster slower deeper wider richer poorer newer greater better worse sooner hotter colder nearer stronger
    broader
    """.split()
)
_TAIL = re.compile(r"(?:,|:| -| –|\?)\s+(?:is it |was it )?(?:either )?([^,:?]+?),?\s+or\s+([^,:?]+)$", re.IGNORECASE)  # noqa: RUF001
_AMID = re.compile(r"^((?:which|who|what)\b[^,]*), (?:either )?([^,?]+?),? or ([^,?]+), (.+)$", re.IGNORECASE)
_NEITHER = frozenset("both neither either none equal same".split())


class Choice(NamedTuple):
    """A question without the options at its end, and the options."""

    question: str
    options: tuple[str, str]


def choice(question: str) -> Choice | None:
    """Take the options from the end of a question: "who is older, A or B"."""
    found = _AMID.match(question)
    if found is not None:
        return Choice(f"{found[1]} {found[4]}", (found[2].strip(), found[3].strip()))
    found = _TAIL.search(question)
    if found is None or len(question[: found.start()].split()) < 2:
        return None
    return Choice(question[: found.start()].strip(), (found[1].strip(), found[2].strip()))


def other_option(options: Sequence[str], answer: str) -> str | None:
    """Return the option that was not chosen, or None where it is not clear which one was."""
    said = set(_bare(answer).split())
    hits = [bool(said) and (said <= set(_bare(o).split()) or set(_bare(o).split()) <= said) for o in options]
    return options[1 - hits.index(True)] if hits.count(True) == 1 else None


def _bare(text: str) -> str:
    return re.sub(r"^(?:the|an?)\s+", "", text.strip().lower().strip("\"'“”.,"))


def takes_no_side(answer: str) -> bool:
    """Tell whether an answer to a choice chooses none, or both."""
    return word(tokens(answer)[0]) in _NEITHER


def compared(statement: str, other: str | None) -> str:
    """Add what was compared with: "... is older" becomes "... is older than B"."""
    words = [low(w) for w in tokens(statement)]
    return f"{statement} than {other}" if other and "than" not in words and _COMPARATIVES.intersection(words) else statement


def yes_or_no(words: Sequence[str], yes: bool) -> str | None:
    """State a question that opens with an auxiliary, or deny it."""
    aux, rest = word(words[0]), list(words[1:])
    if aux.endswith(("n't", "n’t")):  # noqa: RUF001
        aux = {"ca": "can", "wo": "will", "sha": "shall"}.get(aux[:-3], aux[:-3])
    if aux not in AUXILIARIES or not rest:
        return None
    if aux in ("is", "was") and [low(w) for w in rest[:3]] == ["it", "true", "that"]:
        return " ".join(rest[3:] if yes else ["it", aux, "not", *rest[1:]])
    both = low(rest[0]) == "both"
    if both and not yes:
        rest = rest[1:]
    clause = declared(aux, rest, prepositions=True)
    if clause is None or (clause.helper >= len(rest) and not _expletive(rest)):
        return None
    if yes:
        out = clause.words
        if low(out[0]) == "there":
            out = ["some" if low(w) == "any" else w for w in out]
        return " ".join(w for w in out if low(w) != "ever")
    return " ".join(_denied(aux, rest, clause.words, clause.helper, both=both))


def _expletive(rest: Sequence[str]) -> bool:
    return low(rest[0]) in PRONOUNS


_TURNS = {"ever": "never", "still": "no longer"}


def _denied(aux: str, rest: Sequence[str], words: Sequence[str], helper: int, *, both: bool) -> list[str]:
    if "not" in [low(w) for w in words]:
        return [w for w in words if low(w) != "not"]
    joint = ["both"] if both else []
    if aux in DO:
        at = helper
        while at > 1 and low(words[at - 1]) in ("ever", "both", "also", "still", "always", "all"):
            at -= 1
        put = [] if low(words[at]) == "ever" else joint
        verb = [*words[at:helper], *rest[helper:]]
        if verb and low(verb[0]) in _TURNS:
            return [*words[:at], _TURNS[low(verb[0])], inflected(rest[helper], aux), *rest[helper + 1 :]]
        return [*words[:at], aux, "not", *put, *verb]
    after = list(words[helper + 1 :])
    if after and low(after[0]) in _TURNS:
        return [*words[: helper + 1], _TURNS[low(after[0])], *after[1:]]
    if aux == "can":
        return [*words[:helper], "cannot", *joint, *after]
    return [*words[: helper + 1], "not", *joint, *after]


def denied_statement(text: str) -> str | None:
    """Deny a statement by its first auxiliary."""
    words = tokens(text)
    for i, w in enumerate(words):
        if i and low(w) in AUXILIARIES - DO - {"has", "have", "had"} | BE:
            return " ".join([*words[: i + 1], "not", *words[i + 1 :]])
    return None


def chosen(words: Sequence[str], answer: str) -> list[str] | None:
    """Put the option that an answer names in the place of "A or B"; None where neither can be told apart from what is around."""
    lows = [word(w) for w in words]
    wanted = [word(w) for w in tokens(answer)]
    wanted = wanted[1:] if len(wanted) > 1 and wanted[0] in ARTICLES else wanted
    n = len(wanted)
    for at in [i for i, w in enumerate(words) if low(w) == "or"]:
        whole = _parallel(words, at, wanted)
        if whole is not None:
            return whole
        if lows[max(0, at - n) : at] == wanted:
            end = _right_end(words, at, n, low(words[at - n - 1]) in ARTICLES if at > n else False)
            return [*words[: at - 1], words[at - 1].rstrip(","), *words[end:]]
        start = at + 1 + (low(words[at + 1]) in ARTICLES if at + 1 < len(words) else 0)
        if lows[start : start + n] == wanted:
            left = _left_start(words, at, n)
            return [*words[:left], *words[at + 1 :]]
    return None


def _parallel(words: Sequence[str], at: int, wanted: Sequence[str]) -> list[str] | None:
    """Choose between two nouns that open with an article each: "a fruit or a vegetable", "the magazine A or the magazine B"."""
    left = next((i for i in range(at - 1, 0, -1) if low(words[i]) in ARTICLES), None)
    if left is None or at + 2 >= len(words) or low(words[at + 1]) not in ARTICLES:
        return None
    end = at + 1 + (at - left)
    if is_name(words[at - 1]) and end <= len(words):
        while end < len(words) and is_name(words[end]):
            end += 1
    sides = [words[left:at], words[at + 1 : end]]
    hits = [set(wanted) <= {word(w) for w in side} for side in sides]
    return None if hits.count(True) != 1 else [*words[:left], *sides[hits.index(True)], *words[end:]]


def _right_end(words: Sequence[str], at: int, n: int, with_article: bool) -> int:
    start = at + 1
    if with_article and start < len(words) and low(words[start]) in ARTICLES:
        start += 1
    if start < len(words) and is_name(words[start]):
        while start < len(words) and is_name(words[start]):
            start += 1
        return start
    return min(len(words), start + n)


def _left_start(words: Sequence[str], at: int, n: int) -> int:
    end = at - 1
    if is_name(words[end]):
        while end > 1 and is_name(words[end - 1]):
            end -= 1
    else:
        end = at - n
    if end > 1 and low(words[end - 1]) in ARTICLES and at + 1 < len(words) and low(words[at + 1]) in ARTICLES:
        end -= 1
    return max(1, end)
