"""Summaries that answer a question from several papers, each finding with its citation (Factored Verification, section 3.1)."""

import re
from collections.abc import Sequence

from pydantic import Field

from knowhalu.errors import ReplyError, StageError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.factored.citations import Citation, find_citations, matching_documents, source_documents
from knowhalu.methods.revise.replies import generate_revision, is_none_reply, read_text
from knowhalu.prompts.book import REVISION, PromptBook
from knowhalu.prompts.template import PromptText, join_sections, section
from knowhalu.requests import Completion, Conversation
from knowhalu.results import Usage
from knowhalu.types import Document, Record, Sample

_YEAR = re.compile(r"(?<!\d)(?:1[5-9]|20)\d\d(?!\d)")
_MADE_ID = re.compile(r"(?:document|knowledge)-\d+")


class WrittenSummary(Record):
    """A summary as a model wrote it; `cited` are the ids of the papers that its citations match."""

    id: str
    summary: str
    cited: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()
    usage: Usage = Usage()
    seconds: dict[str, float] = Field(default_factory=dict)
    index: str | None = None


class SummaryWriter:
    """Write one summary in one call."""

    name = "summary"

    def __init__(self, options: LLMOptions | None = None) -> None:
        """Load the prompt; raises PromptError where it cannot be used."""
        self.book = PromptBook(REVISION, options, names=["summary"])

    def check(self, sample: Sample) -> Conversation[WrittenSummary]:
        """Write the summary of the documents of a sample that answers its question; its response is not read.

        Raises StageError for a sample without question or documents, ReplyError for a reply that is empty, cut off, or cites
        none of the papers.
        """
        papers = source_documents(sample)
        if not sample.question or not papers:
            raise StageError("summary", "a summary needs a question and the papers that answer it, as documents")
        request = self.book.request("summary", papers=format_papers(papers), question=section("Question", sample.question))
        text, cited = yield from generate_revision(request, lambda c: _read_summary(c, request.stop, papers))
        return WrittenSummary(id=sample.id, summary=text, cited=cited)


def format_papers(papers: Sequence[Document]) -> PromptText:
    """Show papers under the numbers and names by which a citation finds them."""
    return join_sections(section(f"Paper {_number(papers, i)}", f"{_name(d)}: {d.text}" if _name(d) else d.text)
                         for i, d in enumerate(papers, 1))  # fmt: skip


def _number(papers: Sequence[Document], place: int) -> int:
    """Return the number whose citation finds the paper at a place: that of its id or title, else the place."""
    paper = papers[place - 1]
    numbers = (place, *range(1, 1000))  # a number that citations can have
    return next((n for n in numbers if matching_documents(Citation(0, 0, "number", number=n), papers) == (paper,)), place)


def _name(paper: Document) -> str:
    """Return the title, after the id where only that gives a year, as "ling2009.txt" does."""
    if _MADE_ID.fullmatch(paper.id) or _YEAR.search(paper.title):
        return paper.title
    return f"{paper.id}: {paper.title}" if paper.title else paper.id


def _read_summary(reply: Completion, stops: Sequence[str], papers: Sequence[Document]) -> tuple[str, tuple[str, ...]]:
    text = read_text(reply, "summary", stops)
    if is_none_reply(text):
        raise ReplyError("summary", "the model wrote no summary", reply=reply.text)
    cited = {d.id for citation in find_citations(text) for d in matching_documents(citation, papers)}
    if not cited:
        raise ReplyError("summary", "the summary cites none of the papers", reply=reply.text)
    return text, tuple(d.id for d in papers if d.id in cited)
