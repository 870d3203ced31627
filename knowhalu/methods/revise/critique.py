"""Critiques of single sentences in one call each: what is wrong, whether the sources support it, and a revised claim.

The critiques of the unsupported sentences are joined into the factored critique (Factored Verification, Algorithm 1).
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from knowhalu.critiques import Critique
from knowhalu.errors import ReplyError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.revise.edits import FlaggedSentence
from knowhalu.methods.revise.replies import format_sources, generate_revision, is_none_reply
from knowhalu.prompts.book import REVISION, PromptBook
from knowhalu.prompts.replies import split_sections
from knowhalu.prompts.template import section
from knowhalu.requests import CRITIC, Completion, Conversation
from knowhalu.types import Passage

CRITIQUE, SUPPORTED, REVISED_CLAIM = "Critique", "Supported", "Revised claim"
NO_CRITIQUE_NOTE = "no source was found that it could be compared with"
_YES_NO = re.compile(r"[\W_]*(yes|no)[\W_]*", re.IGNORECASE)


class Critic:
    """Criticise sentences with a language model, which may be another one than the judge and the writer."""

    def __init__(self, options: LLMOptions | None = None) -> None:
        """Load the prompt; raises PromptError where it cannot be used."""
        self.book = PromptBook(REVISION, options, names=["critique"])

    def criticise(self, flagged: FlaggedSentence, sources: Sequence[Passage]) -> Conversation[Critique]:
        """Criticise one sentence by its sources; without any, the reason of the detector is the critique, and no model is asked.

        Raises ReplyError where the reply has no critique or neither Yes nor No, also when it is asked for again.
        """
        span = flagged.span
        place = {"start": span.start, "end": span.end, "text": span.text}
        if not any(p.text.strip() for p in sources):
            return Critique(**place, critique=flagged.why or NO_CRITIQUE_NOTE, supported=False)
        request = self.book.request("critique", sources=format_sources(sources), sentence=section("Sentence", span.text))
        request = replace(request, role=CRITIC)
        critique, supported, revised = yield from generate_revision(request, lambda c: read_critique(c, span.text))
        documents = tuple(dict.fromkeys(p.document or p.id for p in sources))
        return Critique(**place, critique=critique, supported=supported, revised=revised, documents=documents)


def read_critique(reply: Completion, sentence: str) -> tuple[str, bool, str | None]:
    """Return the critique, whether the sentence is supported, and the revised claim of an unsupported one, if there is any.

    Raises ReplyError where the reply was cut off, has no critique, or says neither Yes nor No: support is never assumed.
    """
    if reply.finish_reason == "length":
        raise ReplyError("critique", "the reply was cut off", reply=reply.text)
    texts = split_sections(reply.text, CRITIQUE, (CRITIQUE, SUPPORTED, REVISED_CLAIM)).texts
    critique, answer = texts.get(CRITIQUE, ""), _YES_NO.fullmatch(texts.get(SUPPORTED, ""))
    if not any(c.isalnum() for c in critique):
        raise ReplyError("critique", "the reply has no critique", reply=reply.text)
    if answer is None:
        raise ReplyError("critique", "the reply says neither Yes nor No under Supported", reply=reply.text)
    supported, claim = answer[1].lower() == "yes", texts.get(REVISED_CLAIM, "").strip()
    is_new = any(c.isalnum() for c in claim) and not is_none_reply(claim) and claim.split() != sentence.split()
    return critique, supported, claim if is_new and not supported else None


def join_critiques(critiques: Iterable[Critique]) -> str:
    """Join the critiques of unsupported sentences into the factored critique, each with its revised claim."""
    lines = []
    for c in critiques:
        claim = f" {REVISED_CLAIM}: {c.revised}" if c.revised else ""
        lines.append(f"- The sentence “{c.text}”: {c.critique}{claim}")
    return "\n".join(lines)
