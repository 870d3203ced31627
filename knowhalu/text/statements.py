"""A short answer to a yes-or-no question as the statement that it affirms or denies."""

import re
from collections import Counter
from functools import lru_cache
from typing import NamedTuple

from knowhalu.text.clauses import capitalize
from knowhalu.text.questions import AnswerType, expected_answer_type, is_checkable
from knowhalu.text.sentences import content_words
from knowhalu.text.wordlists import AUXILIARIES

_AUXILIARY = rf"(?:{'|'.join(AUXILIARIES)})"
_OPENING = re.compile(rf"\W*(?:(?:and|but|so|then) )?{_AUXILIARY}(?:n['’]t)? (?P<rest>.+?)\s*\?*\W*$", re.IGNORECASE | re.DOTALL)  # noqa: RUF001
_SHORT = re.compile(
    r"\W*(?:(?P<yes>yes|yeah|yep|correct|true|indeed|that(?:'s| is) (?:right|correct|true))|(?P<no>no|nope|false|incorrect|wrong"
    rf"|that(?:'s| is) (?:not (?:right|correct|true)|wrong|false)))\b(?P<rest>\W*(?:[\w'’]+ ){{0,3}}{_AUXILIARY}"  # noqa: RUF001
    r"(?:n?['’]t|not)?(?: not)?)?\W*$",  # noqa: RUF001
    re.IGNORECASE,
)


_ASSENT = re.compile(r"\W*(?:(?P<yes>yes|yeah|yep|correct|indeed)|no|nope)\b\W*", re.IGNORECASE)
_NEGATION = re.compile(r"n['’]t\b|\b(?:not|never)\b", re.IGNORECASE)  # noqa: RUF001


MIN_STATEMENT_WORDS = 5
"""Words from which an answer may be a statement that stands alone."""


class YesNo(NamedTuple):
    """The statement of a yes-or-no question, and whether the answer affirms it."""

    statement: str
    affirmed: bool


@lru_cache(maxsize=1024)
def read_yes_no(question: str, answer: str) -> YesNo | None:
    """Read "Yes.", "No, it did not." and the like as an answer; None for one that says more, or where nothing closed is asked.

    An answer in the words of the question, "No, the mill did not close in 1911.", is read as that statement or its denial. The
    statement of a short one is the question without its auxiliary: "Did the mill close in 1911?" gives "The mill close in
    1911.", which a verifier understands as well as a correct sentence.
    """
    if expected_answer_type(question) is not AnswerType.YES_NO or not is_checkable(question):
        return None
    asked = _OPENING.match(question.strip().rsplit(". ", 1)[-1])
    found = _SHORT.match(answer)
    if asked is None:
        return None
    if found is None or len(content_words(found["rest"] or "")) > 1:
        return _in_words_of_question(asked["rest"], answer)
    rest = re.sub(r"\bnot\s", "", asked["rest"])  # "No" to "Did it not close?" denies that it closed
    return YesNo(f"{capitalize(rest)}.", found["yes"] is not None)


def _in_words_of_question(asked: str, answer: str) -> YesNo | None:
    """Read an answer that repeats all words of its question, and no others, as a statement or its denial."""
    said = _ASSENT.match(answer)
    statement = answer[said.end() :] if said else answer
    own, others = (Counter(content_words(_NEGATION.sub(" ", text))) for text in (statement, asked))
    more, fewer = list((own - others).elements()), list((others - own).elements())
    inflected = len(more) == len(fewer) == 1 and more[0][0] == fewer[0][0]  # "did it sink" and "it sank"
    if (more or fewer) and not inflected:
        return None
    negations = len(_NEGATION.findall(statement))
    affirmed = negations == 0
    if negations > 1 or _NEGATION.search(asked) or (said and bool(said["yes"]) is not affirmed):
        return None
    return YesNo(capitalize(" ".join(_NEGATION.sub(" ", statement).split())), affirmed)
