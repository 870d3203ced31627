"""The passages that a critique or a new wording of a sentence may rest on: those by which the detector judges that sentence."""

from collections.abc import Sequence

from knowhalu.methods.common.sources import given_or_retrieved_passages, given_passages
from knowhalu.methods.factored.citations import cited_sample
from knowhalu.methods.factored.method import FactoredAcademic
from knowhalu.requests import Conversation
from knowhalu.text.sentences import word_count
from knowhalu.types import Passage, Sample


def passages_for_sentence(method: str, sample: Sample, sentence: str, *, words: int) -> Conversation[tuple[Passage, ...]]:
    """Return at most about `words` words of the sources of a sentence; where the detector reads citations, of the cited ones.

    A sentence whose citations match no source has no passage: another paper can neither support nor correct it.
    """
    part = cited_sample(sample, sentence) if method == FactoredAcademic.name else sample
    if part is not sample and not part.documents:
        return ()
    return (yield from given_or_retrieved_passages(part, (sentence,), words=words))


def passages_for_text(method: str, sample: Sample, sentences: Sequence[str], *, words: int) -> Conversation[tuple[Passage, ...]]:
    """Return all given sources where they fit into `words` words, else the passages of these sentences of the text."""
    fits = sum(word_count(p.text) for p in given_passages(sample)) <= words
    if method != FactoredAcademic.name or fits:
        return (yield from given_or_retrieved_passages(sample, sentences, words=words))
    merged: dict[str, Passage] = {}
    for sentence in sentences:
        found = yield from passages_for_sentence(method, sample, sentence, words=max(1, words // len(sentences)))
        merged |= {p.id: p for p in found}
    return tuple(merged.values())
