"""Refusals by text rules: a text that declines to answer and claims nothing beside."""

import re

from knowhalu.text import wordlists as lexicon
from knowhalu.text.sentences import content_words, sentences


def declines_to_answer(text: str, *, in_other_words: bool = False) -> bool:
    """Tell whether a text declines to answer in every part that says anything; a hedge that goes on to a claim does not."""
    parts = [part.strip() for s in sentences(text) for part in lexicon.CLAUSE_BREAK_PATTERN.split(s.text)]
    told = [part for part in parts if content_words(part)]
    declining = [part for part in told or parts if _part_declines(part, in_other_words=in_other_words)]
    return bool(declining) and all(part in declining or lexicon.REFUSAL_COURTESY_PATTERN.search(part) for part in told)


def hedges(text: str) -> bool:
    """Tell whether any part of a text declines to answer, whatever the others claim."""
    return any(_part_declines(part.strip(), in_other_words=True) for part in lexicon.CLAUSE_BREAK_PATTERN.split(text))


def _part_declines(part: str, *, in_other_words: bool) -> bool:
    if lexicon.REFUSAL_PATTERN.search(part.strip()):
        return True
    if not in_other_words or lexicon.OPINION_PATTERN.search(part) or re.search(r"\d", part):
        return False
    return bool(lexicon.FIRST_PERSON_PATTERN.search(part) and lexicon.INABILITY_PATTERN.search(part))
