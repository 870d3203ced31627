"""Factored Verification of academic text: each sentence with citations, by the cited sources only (section 3.2)."""

from collections.abc import Iterable

from knowhalu.errors import StageError
from knowhalu.methods.citations import citations
from knowhalu.methods.cited import bare, cited, sources, why_not
from knowhalu.methods.factored import Factored, Sourced
from knowhalu.text import Span
from knowhalu.types import Document, Label, Relation, Sample
from knowhalu.verdicts import Finding


class FactoredAcademic(Factored):
    """Check a summary of papers: what a sentence claims must stand in the papers that it cites.

    A citation that fits no source is a finding of its own; a sentence without citations is left out, or held against all.
    """

    name = "factored-academic"

    def sourced(self, sample: Sample, spans: Iterable[Span]) -> tuple[list[Sourced], list[str]]:
        """Return the sentences with their cited sources; raises StageError where a sample brings no sources."""
        documents = sources(sample)
        if not documents:
            raise StageError("sources", "citations are checked by the cited texts: give them as documents, with author and year "
                             "in their titles or ids, or in the order of their numbers")  # fmt: skip
        whole = sample.model_copy(update={"knowledge": (), "documents": documents})
        found, uncited = [], 0
        for span in spans:
            named, findings = self._cited(span, documents)
            if named or findings:
                by = whole.model_copy(update={"documents": named}) if named else None
                found.append(Sourced(span, by, findings))
            elif self.options.uncited == "all":
                found.append(Sourced(span, whole))
            else:
                uncited += 1
        return found, [f"{_many(uncited)} not checked (factored.uncited=all checks them too)"] if uncited else []

    def worded(self, claim: str) -> str:
        """Return a claim without its citations: who said it has been checked by then."""
        return bare(claim)

    def _cited(self, span: Span, documents: tuple[Document, ...]) -> tuple[tuple[Document, ...], tuple[Finding, ...]]:
        """Return the sources that a sentence cites, in their order, and findings on citations that fit none or several."""
        named: list[Document] = []
        findings = []
        for citation in citations(span.text):
            fitting = cited(citation, documents)
            named += fitting
            if len(fitting) != 1:
                several = f"it fits {len(fitting)} sources, of which one is enough: {', '.join(d.id for d in fitting)}"
                made_up = Label.INCORRECT if self.options.unmatched == "hallucinated" else Label.INCONCLUSIVE
                findings.append(Finding(
                    unit="citation", start=span.start + citation.start, end=span.start + citation.end,
                    text=span.text[citation.start : citation.end], type=citation.style,
                    label=Label.CORRECT if fitting else made_up, relation=None if fitting else Relation.NEUTRAL,
                    supported=1.0 if fitting else 0.0,
                    reason=several if fitting else why_not(citation, documents),
                ))  # fmt: skip
        return tuple(d for d in documents if d in named), tuple(dict.fromkeys(findings))


def _many(count: int) -> str:
    return "1 sentence cites no source and was" if count == 1 else f"{count} sentences cite no source and were"
