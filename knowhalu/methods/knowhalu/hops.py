"""The queries of a check without an LLM: a claim as it is, and a question hop by hop, by the names found on the way."""

from collections.abc import Sequence

from knowhalu.methods.common.evidence import MAX_SENTENCES_READ, META_CONTEXT
from knowhalu.text.entities import find_names
from knowhalu.text.overlap import text_facts
from knowhalu.text.questions import general_query
from knowhalu.text.sentences import sentences
from knowhalu.types import Query, Sample, Step


def next_clause(part: Sample, steps: Sequence[Step]) -> tuple[str, Query] | None:
    """Query the claim, with the sentence that it refers back to."""
    if steps:
        return None
    claim = f"{part.meta.get(META_CONTEXT, '')} {part.response}".strip()
    return "Check the statement.", Query(specific=claim, general=general_query(part.response))


def next_hop(part: Sample, steps: Sequence[Step]) -> tuple[str, Query] | None:
    """Query the question itself, then what is still uncovered, by the names found on the way."""
    question, answer = part.question or "", part.response
    if not steps:
        thought = f"Look for what the question asks, and whether it is {answer!r}."
        return thought, Query(specific=f"{question} {answer}", general=question)
    if part.knowledge and not part.documents and sum(len(sentences(k)) for k in part.knowledge) <= MAX_SENTENCES_READ:
        return None  # all of it has been read
    known = " ".join(q.text for s in steps for q in s.knowledge.quotes)
    last = " ".join(q.text for q in steps[-1].knowledge.quotes)
    asked = f"{question} {answer}"
    missing = [w for w in text_facts(asked).content if w not in set(text_facts(known).content)]
    used = f"{asked} {' '.join(s.query.general for s in steps[1:])}"
    bridge = [n for n in _names(last) if n.lower() not in used.lower()]
    if not missing or not bridge:
        return None
    named = ", ".join(bridge[:3])
    thought = f"Nothing yet on {', '.join(dict.fromkeys(missing[:4]))}; go on with {named}, found in step {len(steps)}."
    return thought, Query(specific=f"{question} ({named}) {answer}", general=f"{question} ({named})")


def _names(text: str) -> list[str]:
    """List the names of a text, longest first, each once."""
    found = dict.fromkeys(n.text for n in find_names(text) if n.type != "nationality")
    return sorted(found, key=lambda n: -len(n.split()))
