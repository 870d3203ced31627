"""Which sources a citation means, and what a claim says without its citations (Factored Verification, section 3.2)."""

import re
import unicodedata
from collections.abc import Sequence

from knowhalu.methods.citations import Citation, citations
from knowhalu.text import sentences
from knowhalu.types import Document, Sample

_ID = re.compile(
    r"\W*(?:ref(?:erence)?|source|paper|doc(?:ument)?|knowledge|abstract|citation)?[\W_]*0*(\d{1,3})\W*(?:\.\w{1,5})?", re.I
)
_TITLE = re.compile(r"\s*\[?0*(\d{1,3})[\].:)]\s")
_FOUND = (
    r"(?:found|finds?|show(?:ed|s|n)?|report(?:ed|s)?|suggest(?:ed|s)?|argue[sd]?|conclude[sd]?|demonstrate[sd]?|observe[sd]?|"
    r"states?|stated|said|says|wrote|writes|proved|proves|note[sd]?|claim(?:ed|s)?|propose[sd]?|indicate[sd]?|reveal(?:ed|s)?|confirm(?:ed|s)?)"
)
_REPORTS = re.compile(rf"\W*(?:(?:have|has|also|further|later|recently) )*{_FOUND} that\s+")
_MARK = "\ufffc"
"""Stands for authors that are a part of the sentence while citations are taken out; no text of a user has it left then."""
_STUDIES = re.compile(rf"(?:\b(?:the|an?)\s)?{_MARK}(?:(?:,|\s|\band\b|&)*{_MARK})*", re.IGNORECASE)
_OWNS = re.compile(r"['’]s?\s*\(")  # noqa: RUF001


def sources(sample: Sample) -> tuple[Document, ...]:
    """Return the knowledge and the documents of a sample as documents."""
    known = (Document(id=f"knowledge-{i}", text=text) for i, text in enumerate(sample.knowledge, 1))
    return (*known, *sample.documents)


def cited(citation: Citation, documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the sources that a citation fits: none, one, or several where it is ambiguous.

    A number is that of an id or a title, or where no source has it there, the place in the list. Authors and year stand in
    the title or the id; one of the authors is enough. "2009a" fits "2009" where no source has "2009a".
    """
    if citation.style == "number":
        named = tuple(d for d in documents if citation.number in _numbers(d))
        at = citation.number - 1
        return named or (documents[at : at + 1] if not any(map(_numbers, documents)) else ())  # type: ignore[return-value]
    dated = [d for d in documents if _has_author(citation, d) and citation.year[:4] in _years(d)]
    exact = [d for d in dated if re.search(rf"(?<!\d){citation.year}(?![a-z])", _named(d))]
    return tuple(exact or dated)


def why_not(citation: Citation, documents: Sequence[Document]) -> str:
    """Say why no source fits a citation."""
    if citation.style == "number":
        return f"no source has the number {citation.number}; there are {len(documents)}"
    who = " and ".join(citation.names)
    years = sorted({y for d in documents if _has_author(citation, d) for y in _years(d)})
    near = f"; {who} is there with {', '.join(years)}" if years else ""
    nowhere = f"none of the {len(documents)} sources has" if len(documents) > 1 else "the source does not have"
    return f"{nowhere} {who} and {citation.year} in its title or id{near}"


def _numbers(document: Document) -> set[int]:
    found = (_ID.fullmatch(document.id), _TITLE.match(document.title))
    return {int(m[1]) for m in found if m}


def _named(document: Document) -> str:
    """Return title and id in small letters without accents."""
    text = unicodedata.normalize("NFKD", f"{document.title} {document.id}".casefold())
    return "".join(c for c in text if not unicodedata.combining(c))


def _years(document: Document) -> set[str]:
    return set(re.findall(r"(?<!\d)\d{4}(?!\d)", _named(document)))


def _has_author(citation: Citation, document: Document) -> bool:
    """Tell whether the last word of one of the authors stands in title or id."""
    there = set(re.findall(r"[^\W\d_]+", _named(document)))
    for name in citation.names:
        last = re.findall(r"[^\W\d_]+", _named(Document(text="-", title=name.split()[-1])))
        if last and (set(last) <= there or "".join(last) in there):
            return True
    return False


def bare(claim: str) -> str:
    """Return what a claim says of the matter: citations are taken out, "Ling (2009) found that" too.

    Authors that the sentence needs become "the study". What would be left without a word stays as it is.
    """
    text = claim.replace(_MARK, " ")
    groups = {(c.opens, c.closes): c.narrative for c in citations(text)}
    for (opens, closes), narrative in sorted(groups.items(), reverse=True):
        put = ("the" if _OWNS.search(text[opens:closes]) else _MARK) if narrative else ""
        text = f"{text[:opens] if narrative else text[:opens].rstrip()}{put}{text[closes:]}"
    opening = re.match(rf"(?:according to {_STUDIES.pattern}\s*,\s*|{_STUDIES.pattern}{_REPORTS.pattern})", text, re.IGNORECASE)
    if opening:
        text = text[opening.end() :]
    text = _STUDIES.sub(lambda m: "the study" if m.group().count(_MARK) == 1 else "the studies", text).strip()
    if not sentences(text) or not any(c.isalpha() for c in text):
        return claim
    return text[0].upper() + text[1:]
