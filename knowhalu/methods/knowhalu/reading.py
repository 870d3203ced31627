"""What a claim is judged by: what is read of its sources, and the verifier's scores of the claim by each of it."""

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from knowhalu.methods.common.evidence import (
    ReadSentence,
    in_form,
    joined_sentences,
    read_sentences_of,
    reading_of,
    source_windows,
)
from knowhalu.methods.common.judgment_model import (
    Reading,
    SentenceScores,
    WindowScores,
    denied_features,
    judgment_features,
)
from knowhalu.methods.knowhalu.bridges import best_bridge, find_bridges
from knowhalu.methods.knowhalu.decision import topic_share
from knowhalu.methods.knowhalu.rules import RuleFinding, apply_rules, find_row, settle, without_arguments
from knowhalu.requests import Conversation, Entail, EntailmentPair, Probabilities, ask
from knowhalu.text.cells import CellCheck
from knowhalu.text.findings import Findings
from knowhalu.text.questions import is_checkable
from knowhalu.text.sentences import content_words, sentences, word_count
from knowhalu.text.statements import MIN_STATEMENT_WORDS, read_yes_no
from knowhalu.text.values import Agreement, align_values
from knowhalu.types import KnowledgeForm, Sample, Step

_NEEDS_QUESTION = re.compile(r"\W*(?:because|so that|in order|to|by|with|for|that|which|when|if|due)\b", re.IGNORECASE)


def as_statement(part: Sample, steps: Sequence[Step] = ()) -> tuple[Sample, bool]:
    """Return an answer as a statement of its own, and whether it is affirmed; the part itself where it needs its question.

    Values and variables that the writer of a line of code may choose are left out.
    """
    part = without_arguments(part, steps)
    if part.question is None:
        return part, True
    found = read_yes_no(part.question, part.response)
    if found is not None:
        return part.model_copy(update={"response": found.statement, "question": None}), found.affirmed
    stands_alone = word_count(part.response) >= MIN_STATEMENT_WORDS and not _NEEDS_QUESTION.match(part.response)
    if stands_alone and not is_checkable(part.question):
        return part.model_copy(update={"question": None}), True
    return part, True


class ReadSources(NamedTuple):
    """What a claim is judged by: a window of each source, the sentences quoted from them, and those that are read together.

    Of a claim that names a row of a table, it is that row alone.
    """

    windows: list[str]
    read: list[ReadSentence]
    joined: list[ReadSentence]
    row: CellCheck | None = None

    @property
    def source(self) -> str:
        """Return all texts that were read."""
        return " ".join((*self.windows, *(r.view for r in self.read)))

    @property
    def sentences(self) -> list[str]:
        """Return the sentences that were read, one by one."""
        return [r.view for r in self.read] + [s.text for window in self.windows for s in sentences(window)]


def read_sources(part: Sample, steps: Sequence[Step], form: KnowledgeForm) -> ReadSources:
    """Return the windows nearest to a claim, one of each source, and the sentences that were quoted; or the row that it names."""
    windows, read = [in_form(w.text, form) for w in source_windows(part, steps)], read_sentences_of(steps, form, part.documents)
    row = find_row(part, steps) if windows and read else None
    if row is None:
        return ReadSources(windows, read, joined_sentences(part, read))
    own = set(content_words(row.text))
    return ReadSources([row.text], [max(read, key=lambda r: len(own & set(content_words(r.view))))], [], row)


def read_claim(part: Sample, evidence: ReadSources, *, by_small: bool = False) -> Conversation[Reading]:
    """Ask the verifier about the windows, with question or context and without, and about sentences of several sources.

    With `by_small`, the verifier of single sentences is asked about them, too.
    """
    asked, claim, joined = reading_of(part), part.response, " ".join(r.view for r in evidence.joined)
    aligned = [(w, align_values(claim, w)) for w in evidence.windows]
    pairs = [EntailmentPair(w, c, asked) for w, c in aligned]
    pairs += [EntailmentPair(w, c) for w, c in aligned if asked]
    pairs += [EntailmentPair(joined, align_values(claim, joined), asked)] if joined else []
    second = (yield from ask(Entail(tuple(pairs), light=True))) if by_small else []
    bridges = find_bridges(part, evidence.read)
    pairs += [step for bridge in bridges for step in (bridge.first, bridge.second)]
    scores = iter((yield from ask(Entail(tuple(pairs)))))

    def take(scores: Iterator[Probabilities]) -> WindowScores:
        windows = tuple(islice(scores, len(aligned)))
        plain = tuple(islice(scores, len(aligned))) if asked else windows
        return WindowScores(windows, plain, next(scores) if joined else None)

    return Reading(
        scores=take(scores),
        bridged=best_bridge(bridges, scores),
        sentences=tuple(SentenceScores(r.view, r.scores, r.relevance) for r in evidence.read),
        small=take(iter(second)) if second else None,
    )


def measure_claim(
    part: Sample,
    stated: Sample,
    steps: Sequence[Step],
    evidence: ReadSources,
    reading: Reading,
    names: frozenset[str],
    *,
    affirmed: bool,
) -> tuple[dict[str, float], Findings, RuleFinding | None]:
    """Return the features of a claim, what its values are found to be, and what a rule finds of it."""
    features, found = judgment_features(stated, evidence.windows, reading, names)
    if not affirmed:
        features, found = denied_features(features, evidence.source), Findings()
    rule = apply_rules(part, stated, steps, evidence.row, evidence.sentences, affirmed=affirmed)
    calculated = Agreement.EQUAL if found.settled else None
    features = settle(features, rule.agreement if rule is not None else calculated)
    features["on_topic"] = topic_share(stated if affirmed else part, evidence.source)
    return features, found, rule
