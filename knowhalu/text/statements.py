"""A short answer to a yes-or-no question as the statement that it affirms or denies."""

import re
from functools import lru_cache
from typing import NamedTuple

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


class YesNo(NamedTuple):
    """The statement of a yes-or-no question, and whether the answer affirms it."""

    statement: str
    affirmed: bool


@lru_cache(maxsize=1024)
def read_yes_no(question: str, answer: str) -> YesNo | None:
    """Read "Yes.", "No, it did not." and the like as an answer; None for one that says more, or where nothing closed is asked.

    The statement is the question without its auxiliary: "Did the mill close in 1911?" gives "The mill close in 1911.", which a
    verifier understands as well as a correct sentence.
    """
    found = _SHORT.match(answer)
    if found is None or len(content_words(found["rest"] or "")) > 1 or not is_checkable(question):
        return None
    asked = question.strip().rsplit(". ", 1)[-1]
    opening = _OPENING.match(asked)
    if opening is None or expected_answer_type(question) is not AnswerType.YES_NO:
        return None
    rest = re.sub(r"\bnot\s", "", opening["rest"])  # "No" to "Did it not close?" denies that it closed
    return YesNo(f"{rest[0].upper()}{rest[1:]}.", found["yes"] is not None)
