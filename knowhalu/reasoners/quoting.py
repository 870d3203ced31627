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
    contradicted by nothing then: that a source is silent stands nowhere in it.
    """
    found = list(dict.fromkeys(p for words in _quotations(rationale) for p in _places(words, passages)))
    if not found and supported >= 0.5:
        found = _nearest(claim, passages)
    quotes = tuple(
        Quote(passage=p.id, text=s.text, start=s.start, end=s.end, supported=supported, contradicted=1 - supported,
              relevance=coverage(claim, f"{p.title} {s.text}"))
        for p, s in found
    )  # fmt: skip
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


def _nearest(claim: str, passages: Sequence[Passage]) -> list[tuple[Passage, Span]]:
    places = [(p, s) for p in passages for s in sentences(p.text)]
    best = max(places, key=lambda place: coverage(claim, f"{place[0].title} {place[1].text}"), default=None)
    return [best] if best and coverage(claim, f"{best[0].title} {best[1].text}") >= FOUNDED else []
