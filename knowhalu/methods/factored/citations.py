"""Citations in academic text, and the sources that they refer to (Factored Verification, section 3.2).

Every citation is a span of the text, `text[start:end]`. The rules look at the form of words and use no list of names.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from knowhalu.text.sentences import SENTENCE_STARTERS, STOPWORDS, sentences
from knowhalu.types import Document, Sample

CitationStyle = Literal["author-year", "number"]


class Citation(NamedTuple):
    """One citation: authors and year, or a number; `opens` to `closes` is the bracket or the sentence part around it."""

    start: int
    end: int
    style: CitationStyle
    names: tuple[str, ...] = ()
    year: str = ""
    number: int = 0
    opens: int = 0
    closes: int = 0

    @property
    def narrative(self) -> bool:
        """Tell whether the authors are a part of the sentence, as in "Ling (2009) found"."""
        return self.style == "author-year" and self.start == self.opens


MAX_NAME_WORDS = 6
"""Words of one name at most."""
MAX_RANGE = 50
"""Numbers of a range such as [3-5] at most; a longer one is none."""
MAX_AUTHOR_CHARS = 200
"""Characters before "(year)" in which its authors stand."""
_BRACKET = re.compile(r"\[\s*(\d{1,3}(?:\s*[-–—,;]\s*\d{1,3})*)\s*\]")  # noqa: RUF001
_ITEM = re.compile(r"(\d{1,3})(?:\s*[-–—]\s*(\d{1,3}))?")  # noqa: RUF001
_ROUND = re.compile(r"\(([^()]{4,400})\)")
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_YEARS = rf"{_YEAR}(?:\s*(?:,|and|&)\s*{_YEAR})*"
_PLACE = r"(?:\s*[,:]\s*(?:pp?\.|chap\w*\.?|fig\w*\.?|tab\w*\.?|sec\w*\.?|§|\d)[^;]*)?"
_ALONE = re.compile(rf"\s*({_YEARS}){_PLACE}\s*")
_PARTS = re.compile(r";|(?:(?<=\d)|(?<=\d[a-z]))(?:,?\s+(?:and|&)|,)\s+(?=[^\W\d_a-z])")
_BEFORE = r"(?:see also|but see|see|e\.g\.|i\.e\.|cf\.?|for example|for instance|as in|reviewed in|following|after|also|and)"
_PART = re.compile(rf"\s*(?:{_BEFORE},?\s+)*(?P<cited>(?P<names>[^\W\d_][^\d;:=]{{0,160}}?),?\s+(?P<years>{_YEARS})){_PLACE}\s*")
_NAME = r"[^\W\d_][\w'’.-]*"  # noqa: RUF001
_TOKEN = re.compile(rf"{_NAME}|[,&]|[^\s\w,&]+|\w+")
_INITIALS = re.compile(r"(?:[^\W\d_]\.\s?-?)+")
_OTHERS = re.compile(r",?\s*(?:\bet al\b\.?|\b(?:and|&) (?:colleagues|others|co-?workers))\s*$")
NAME_PARTICLES = frozenset("van von der den de del della di da dos du la le ter ten bin ibn al el st".split())
NON_AUTHOR_WORDS = frozenset(
    """
    january february march april june july august september october november december spring summer autumn winter monday
    tuesday wednesday thursday friday saturday sunday figure fig table section chapter appendix equation version phase stage
    class study experiment
    """.split()
)
"""Capitalised words before a year that name no author; May is left out, as it is a name too."""


def find_citations(text: str) -> list[Citation]:
    """Return the citations of a text in their order; those of one bracket are one each."""
    citations = [c for m in _BRACKET.finditer(text) for c in _bracketed(m)]
    for match in _ROUND.finditer(text):
        alone = _ALONE.fullmatch(match[1])
        citations += _narrative(text, match, alone[1]) if alone else _parenthetical(match)
    return sorted(citations, key=lambda c: (c.start, c.number, c.year))


def _bracketed(match: re.Match[str]) -> Iterator[Citation]:
    for item in _ITEM.finditer(match[1]):
        first, last = int(item[1]), int(item[2] or item[1])
        numbers = range(first, last + 1) if 0 <= last - first < MAX_RANGE else (first, last)
        start, end = match.start(1) + item.start(), match.start(1) + item.end()
        for number in numbers:
            if number:
                yield Citation(start, end, "number", number=number, opens=match.start(), closes=match.end())


def _narrative(text: str, match: re.Match[str], years: str) -> Iterator[Citation]:
    """Read the authors that stand before a year in brackets; none, and it is no citation."""
    base = max(0, match.start() - MAX_AUTHOR_CHARS)
    before = re.sub(r"['’]s?\s*$", "", text[base : match.start()].rstrip())  # noqa: RUF001
    names, start = _authors_at_end(_OTHERS.sub("", before))
    for year in re.findall(_YEAR, years) if names else ():
        yield Citation(base + start, match.end(), "author-year", names, year, opens=base + start, closes=match.end())


def _parenthetical(match: re.Match[str]) -> Iterator[Citation]:
    """Read the citations of one bracket; what is no citation is skipped."""
    start = match.start(1)
    for piece in (*_PARTS.finditer(match[1]), None):
        end = match.start(1) + piece.start() if piece else match.end(1)
        if part := _PART.fullmatch(match.string[start:end]):
            listed = _OTHERS.sub("", part["names"])
            names, first = _authors_at_end(listed, listed=True)
            if names and not listed[:first].strip():
                at, until = start + part.start("cited"), start + part.end("cited")
                for year in re.findall(_YEAR, part["years"]):
                    yield Citation(at, until, "author-year", names, year, opens=match.start(), closes=match.end())
        start = match.start(1) + piece.end() if piece else end


def _authors_at_end(text: str, *, listed: bool = False) -> tuple[tuple[str, ...], int]:
    """Return the authors with whom a text ends, and where the first of them begins; no authors where it ends otherwise.

    In a sentence, a comma stands between authors only if "and" comes before the last one; in brackets (`listed`) always.
    """
    tokens = list(_TOKEN.finditer(text))
    names: list[str] = []
    at, begins = len(tokens), len(text)
    while at:
        first = _name_before(tokens, at)
        if first == at:
            break
        begins = tokens[first].start()
        names.insert(0, text[begins : tokens[at - 1].end()])
        joint = first - 1 if first and tokens[first - 1].group().lower() in ("and", "&") else first
        comma = joint - 1 if joint and tokens[joint - 1].group() == "," else joint
        listed = listed or joint < first or _INITIALS.fullmatch(names[0]) is not None
        if comma == first or not listed:
            break
        at = comma
    return tuple(names), begins


def _name_before(tokens: list[re.Match[str]], end: int) -> int:
    """Return where the run of words that make one name begins, `end` where there is none."""
    first = end
    while first and end - first < MAX_NAME_WORDS:
        word = tokens[first - 1].group()
        joins = first < end and (word.lower() in NAME_PARTICLES or word in ("of", "for"))
        begins = word[0].isupper() and word.lower().rstrip(".") not in NON_AUTHOR_WORDS
        ended = first < end and word.endswith(".") and len(word) > 3  # the sentence before
        if ended or not (begins or joins):
            break
        first -= 1
    while first < end and _is_opening(tokens[first].group(), last=first == end - 1):
        first += 1
    return first


def _is_opening(word: str, *, last: bool) -> bool:
    """Tell whether the first word of a run belongs to the sentence and not to the name: "As Ling", "Recently Ling"."""
    low = word.lower()
    if (low in NAME_PARTICLES and not last) or (word.isupper() and len(word) > 1):
        return False
    return (
        low in STOPWORDS
        or low in SENTENCE_STARTERS
        or (low.endswith("ly") and len(low) > 4 and not last)
        or not word[0].isupper()
    )


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


def source_documents(sample: Sample) -> tuple[Document, ...]:
    """Return the knowledge and the documents of a sample as documents."""
    known = (Document(id=f"knowledge-{i}", text=text) for i, text in enumerate(sample.knowledge, 1))
    return (*known, *sample.documents)


def matching_documents(citation: Citation, documents: Sequence[Document]) -> tuple[Document, ...]:
    """Return the sources that a citation fits: none, one, or several where it is ambiguous.

    A number is that of an id or a title, or where no source has it there, the place in the list. Authors and year stand in
    the title or the id; one of the authors is enough. "2009a" fits "2009" where no source has "2009a".
    """
    if citation.style == "number":
        named = tuple(d for d in documents if citation.number in _numbers(d))
        at = citation.number - 1
        return named or (documents[at : at + 1] if not any(map(_numbers, documents)) else ())  # type: ignore[return-value]
    dated = [d for d in documents if _has_author(citation, d) and citation.year[:4] in _years(d)]
    exact = [d for d in dated if re.search(rf"(?<!\d){citation.year}(?![a-z])", _normalized_title(d))]
    return tuple(exact or dated)


def cited_sample(sample: Sample, sentence: str) -> Sample:
    """Return a sample with the sources that a sentence cites, in their order; all of its sources where it cites nothing."""
    documents, citations = source_documents(sample), find_citations(sentence)
    if not citations:
        return sample
    cited = {d.id for citation in citations for d in matching_documents(citation, documents)}
    return sample.model_copy(update={"knowledge": (), "documents": tuple(d for d in documents if d.id in cited)})


def mismatch_reason(citation: Citation, documents: Sequence[Document]) -> str:
    """Return the reason why no source fits a citation."""
    if citation.style == "number":
        return f"no source has the number {citation.number}; there are {len(documents)}"
    who = " and ".join(citation.names)
    years = sorted({y for d in documents if _has_author(citation, d) for y in _years(d)})
    near = f"; {who} is listed with {', '.join(years)}" if years else ""
    nowhere = f"none of the {len(documents)} sources has" if len(documents) > 1 else "the source does not have"
    return f"{nowhere} {who} and {citation.year} in its title or id{near}"


def _numbers(document: Document) -> set[int]:
    return {int(m[1]) for m in (_ID.fullmatch(document.id), _TITLE.match(document.title)) if m}


def _normalized_title(document: Document) -> str:
    return _normalize(f"{document.title} {document.id}")


def _normalize(text: str) -> str:
    """Return a text in small letters without accents."""
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))


def _years(document: Document) -> set[str]:
    return set(re.findall(r"(?<!\d)\d{4}(?!\d)", _normalized_title(document)))


def _has_author(citation: Citation, document: Document) -> bool:
    """Tell whether the title or the id contains the last word of one of the authors."""
    title_words = set(re.findall(r"[^\W\d_]+", _normalized_title(document)))
    for name in citation.names:
        last = re.findall(r"[^\W\d_]+", _normalize(name.split()[-1]))
        if last and (set(last) <= title_words or "".join(last) in title_words):
            return True
    return False


def strip_citations(claim: str) -> str:
    """Return a claim without its citations and without words that only report them, such as "Ling (2009) found that".

    Authors that the sentence needs become "the study". A claim of which no word would be left is returned unchanged.
    """
    text = claim.replace(_MARK, " ")
    groups = {(c.opens, c.closes): c.narrative for c in find_citations(text)}
    for (opens, closes), narrative in sorted(groups.items(), reverse=True):
        authors = ("the" if _OWNS.search(text[opens:closes]) else _MARK) if narrative else ""
        text = f"{text[:opens] if narrative else text[:opens].rstrip()}{authors}{text[closes:]}"
    opening = re.match(rf"(?:according to {_STUDIES.pattern}\s*,\s*|{_STUDIES.pattern}{_REPORTS.pattern})", text, re.IGNORECASE)
    if opening:
        text = text[opening.end() :]
    text = _STUDIES.sub(lambda m: "the study" if m.group().count(_MARK) == 1 else "the studies", text).strip()
    if not sentences(text) or not any(c.isalpha() for c in text):
        return claim
    return text[0].upper() + text[1:]
