"""What a revision did to a text whose faithful twin is known: sentence by sentence, and by likeness to the twin."""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from knowhalu.methods.revise.edits import editable_spans
from knowhalu.results import Revision
from knowhalu.text.quantities import number_value
from knowhalu.text.sentences import words

Texts = Sequence[str]


class Fate(NamedTuple):
    """What became of the sentences of one text: how many there were of each sort, and how many of them were ..."""

    wrong: int
    flagged: int
    removed: int
    repaired: int
    altered: int
    faithful: int
    kept: int


def tokens(text: str) -> list[str]:
    """Return the words, lower-cased; a number is the same in digits and in letters."""
    return [number_value(w.text) or w.text.lower() for w in words(text)]


def rouge_l(text: str, reference: str) -> float:
    """Return ROUGE-L, the F1 of the longest common subsequence of words."""
    mine, theirs = tokens(text), tokens(reference)
    row = [0] * (len(theirs) + 1)
    for word in mine:
        before = row[:]
        for j, other in enumerate(theirs):
            row[j + 1] = before[j] + 1 if word == other else max(before[j + 1], row[j])
    return _f1(row[-1], len(mine), len(theirs))


def likeness(text: str, reference: str) -> float:
    """Return the F1 of the words that two texts share, each counted as often as it stands."""
    mine, theirs = Counter(tokens(text)), Counter(tokens(reference))
    return _f1((mine & theirs).total(), mine.total(), theirs.total())


def _f1(shared: int, mine: int, theirs: int) -> float:
    return 2 * shared / (mine + theirs) if mine + theirs else 1.0


def fate(found: Revision, faithful: str) -> Fate:
    """Follow every sentence of a text that was written by changing some of the faithful one.

    A sentence that does not stand in the faithful text, word for word, is wrong. It is repaired where its new wording is that of
    its twin; a text that was refused has lost all sentences.
    """
    own, twins = editable_spans(found.original), [tokens(u.text) for u in editable_spans(faithful)]
    wrong = [i for i, u in enumerate(own) if tokens(u.text) not in twins]
    changed = {i: c for c in found.changes for i, u in enumerate(own) if c.start < u.end and u.start < c.end}
    gone = {i for i in range(len(own)) if found.revised is None or (i in changed and not changed[i].new.strip())}
    new = {i: c.new for i, c in changed.items() if c.how != "kept" and i not in gone}
    repaired = [i for i in wrong if i in new and tokens(new[i]) in twins]
    right = [i for i in range(len(own)) if i not in wrong]
    in_doubt = [i for i in wrong if i in changed or found.revised is None]
    return Fate(
        wrong=len(wrong), flagged=len(in_doubt), removed=sum(i in gone for i in wrong),
        repaired=len(repaired), altered=sum(i in new and i not in repaired for i in wrong), faithful=len(right),
        kept=sum(i not in gone and i not in new for i in right),
    )  # fmt: skip


def passed_but_changed(found: Revision) -> int:
    """Count the sentences that the detector had passed and that are not in the revised text as they were.

    This looks at the texts alone, not at what the revision says of itself.
    """
    if found.revised is None:
        return 0
    bad = [s for s in found.before.segments if s.label != "CORRECT"]
    flagged = bad or [max(found.before.segments, key=lambda s: s.probability, default=None)]
    here = [u for u in editable_spans(found.original) if not any(s and s.start < u.end and u.start < s.end for s in flagged)]
    there = [u.text for u in editable_spans(found.revised)]
    same = SequenceMatcher(None, [u.text for u in here], there, autojunk=False).get_matching_blocks()
    return len(here) - sum(block.size for block in same)
