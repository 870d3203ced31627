"""Which of several values in one sentence a claim speaks of: that of the clause with the claim's words."""

import re
from collections.abc import Mapping, Sequence

from knowhalu.text.agreement import Agreement
from knowhalu.text.sentences import content_words
from knowhalu.text.value_spans import Value

_BREAK = re.compile(r"[,;:]|\.(?!\d)|\b(?:and|but|while|whereas|against|with)\b")
MIN_STEM = 6
"""Letters that two words share for the one to be another form of the other."""


def find_owned_value(topic: frozenset[str], sentence: str, compared: Mapping[Value, Agreement | None]) -> Value | None:
    """Return the value that a sentence gives for a topic where that of a claim is given for something else.

    `compared` says which values of the sentence agree with the claim's. Of "the pilot ends in May and the report is due in
    June", May is returned for a claim that the pilot ends in June. None where the clause of the claim's value has any word of
    the topic or no word of its own, or where no other clause has a word of the topic.
    """
    equal = [v for v, agreement in compared.items() if agreement is Agreement.EQUAL]
    others = [v for v, agreement in compared.items() if agreement is Agreement.DIFFERENT]
    if len(equal) != 1 or not others or Agreement.OPEN in compared.values():
        return None
    among = [*equal, *others]
    own = _clause_words(sentence, equal[0], among)
    stems = {w[:MIN_STEM] for w in own}
    if not own or any(w[:MIN_STEM] in stems for w in topic):
        return None
    shares = {v: len(topic & _clause_words(sentence, v, among)) for v in others}
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] else None


def _clause_words(sentence: str, value: Value, among: Sequence[Value]) -> frozenset[str]:
    """Return the content words between a value and the next break or value on either side."""
    start = max((v.end for v in among if v.end <= value.start), default=0)
    end = min((v.start for v in among if v.start >= value.end), default=len(sentence))
    before, after = _BREAK.split(sentence[start : value.start])[-1], _BREAK.split(sentence[value.end : end])[0]
    return frozenset(content_words(f"{before} {after}"))
