"""What an LLM quotes of its sources: the sentences that hold the words it puts in quotation marks, byte for byte."""

import re
from collections.abc import Iterator, Sequence

from knowhalu.reasoners.features import coverage
from knowhalu.text import Span, sentences
from knowhalu.types import NO_INFORMATION, Form, Knowledge, Passage, Query, Quote, Step

FOUNDED = 0.5
"""Share of a claim's words that a sentence must have to be quoted where the model quotes nothing."""
WORDS = 3
"""Words of a quotation at least; fewer stand in too many sentences."""
_QUOTED = re.compile(r"[\"“„«]([^\"“”„«»]{6,800})[\"”“»]")


def quoting(claim: str, rationale: str, passages: Sequence[Passage], supported: float) -> Step:
    """Return the step of a judgment: its passages, and as knowledge the sentences that it quotes.

    A claim that is supported without a quotation rests on the sentence that has most of its words. One that is not is
    contradicted by nothing then: that a source is silent stands nowhere in it. What the model quotes is relevant because it
    decided by it, whether it shares words with the claim or not.
    """
    quoted = list(dict.fromkeys(p for words in _quotations(rationale) for p in _places(words, passages)))
    found = [(p, s, 1.0) for p, s in quoted] or (_nearest(claim, passages) if supported >= 0.5 else [])
    quotes = tuple(
        Quote(passage=p.id, text=s.text, start=s.start, end=s.end, supported=supported, contradicted=1 - supported, relevance=r)
        for p, s, r in found
    )
    text = " ".join(q.text for q in quotes) or NO_INFORMATION
    knowledge = Knowledge(form=Form.UNSTRUCTURED, quotes=quotes, text=text)
    return Step(thought="", query=Query(specific=claim, general=""), passages=tuple(passages), knowledge=knowledge)


def _quotations(rationale: str) -> Iterator[list[str]]:
    """Yield the words of each quotation, one that leaves something out in its pieces."""
    for match in _QUOTED.finditer(rationale):
        for piece in re.split(r"\.\.\.|…|\[[^\]]*\]", match[1]):
            words = piece.strip(" .,;:!?").split()
            if len(words) >= WORDS:
                yield words


def _places(words: Sequence[str], passages: Sequence[Passage]) -> Iterator[tuple[Passage, Span]]:
    """Yield the sentences, of the first passage that has it, over which a quotation runs."""
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    for passage in passages:
        if match := pattern.search(passage.text):
            yield from ((passage, s) for s in sentences(passage.text) if s.start < match.end() and match.start() < s.end)
            return


def _nearest(claim: str, passages: Sequence[Passage]) -> list[tuple[Passage, Span, float]]:
    places = [(p, s, coverage(claim, f"{p.title} {s.text}")) for p in passages for s in sentences(p.text)]
    best = max(places, key=lambda place: place[2], default=None)
    return [best] if best and best[2] >= FOUNDED else []
