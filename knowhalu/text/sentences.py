"""Text as characters: sentences, clauses, segments, chunks and words, all with offsets into the original.

Every function returns `Span`s whose `text` is exactly `source[start:end]`, so evidence can be quoted byte for byte.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple


class Span(NamedTuple):
    """A piece of a text: `text == source[start:end]`, offsets in characters."""

    start: int
    end: int
    text: str


TITLE_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof rev hon gen col lt sgt capt cpl maj adm gov sen rep st mt ft vs eg ie cf e.g i.e approx est ed eds".split()
)
"""Abbreviations before a name or number: no sentence ends at them."""
NUMBER_ABBREVIATIONS = frozenset(
    "no nos fig vol pp op c ca max min tel ext jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat "
    "sun".split()
)
"""Abbreviations before a number; elsewhere "no", "sun" or "c" is a word like others."""
COMPANY_ABBREVIATIONS = frozenset("etc inc ltd co corp jr sr".split())
"""Abbreviations at which a sentence ends where a capital follows."""
ABBREVIATIONS = frozenset("al dept u.s u.k u.n ph.d d.c a.d b.c".split())
"""Abbreviations, like a name's initials, at which a sentence ends only before a word that begins sentences."""
SMALL_ABBREVIATIONS = frozenset("incl excl resp misc temp orig esp illus transl abbr intl assoc prov".split())
"""Abbreviations before words in small letters."""
MIN_WHOLE_WORD = 4
SENTENCE_STARTERS = frozenset(
    "the this that these those he she it they we i you his her its their our my there here then in on at after before when while "
    "although however but and so if as for by from with both some many most all no not one two what who why how".split()
)
_COMPANY_FORM = re.compile(r"(?:Ltd|Inc|LLC|Corp|Jr|Sr|KG|plc|PLC)\b")
CLOCK_ABBREVIATIONS = frozenset({"a.m", "p.m"})

_BOUNDARY = re.compile(
    r"""(?<![.!?。！？…])([.!?。！？…]+)(["'”’)\]]*)(?=\s|$|(?!\w+[(\[]|[A-Z][a-z]+[A-Z])[A-Z"“](?=[a-z]))|[。！？]+["'”’)」』]*|\n\s*\n|\n(?=\s*[-•*–]\s)|(?<=[:;.!?])\n|\n"""
)  # noqa: RUF001
_WORD = re.compile(r"\w+(?:['’.,:/-]\w+)*%?|[$€£¥%]")  # noqa: RUF001
_VOWEL = re.compile(r"[aeiouyà-ÿ]")
_CLOSED = re.compile(r"""[.!?。！？…]["'”’)\]」』]*$""")  # noqa: RUF001
MAX_CACHED_CHARS = 10_000
"""Maximum characters of a text of which thousands are cached; longer ones would fill the memory."""
MAX_HEADING_WORDS = 12
"""Maximum words of a heading."""
_CLAUSE = re.compile(r"(?<=[;:,–—])\s+|(?<!\s)\s++(?=(?:and|but|which|who|while|because|although|after|before|when)\b)")  # noqa: RUF001


# control characters could move a cursor or rewrite what was shown; direction marks could reorder it; half a
# character, or what is none, is no text
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def sanitize(text: str) -> str:
    """Replace every character that controls a terminal or a page; offsets stay the same."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def words(text: str) -> list[Span]:
    """Split into words and numbers; a decimal, a hyphenated word or a contraction stays whole."""
    return [Span(m.start(), m.end(), m.group()) for m in _WORD.finditer(text)]


def word_count(text: str) -> int:
    """Count words as a person would: by white space."""
    return len(text.split())


def _trim(text: str, start: int, end: int) -> Span | None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return Span(start, end, text[start:end]) if end > start else None


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """Tell whether punctuation closes a sentence, or is part of an abbreviation, initial or number."""
    marks = match.group(1)
    if marks is None or marks != ".":
        return True
    before = re.search(r"[\w.]+$", text[max(0, match.start() - 24) : match.start()])
    word = before.group().lower() if before else ""
    after = text[match.end() : match.end() + 64].lstrip()
    if not after:
        return True
    glued = match.end() < len(text) and not text[match.end()].isspace()
    if word in CLOCK_ABBREVIATIONS:
        return after[0].isupper()
    if word in TITLE_ABBREVIATIONS or (word in NUMBER_ABBREVIATIONS and after[0].isdigit()):
        return False
    if word in COMPANY_ABBREVIATIONS:
        return after[0].isupper() and not _COMPANY_FORM.match(after)
    if word in ABBREVIATIONS or (len(word) == 1 and word.isalpha() and not glued):
        first = _WORD.match(after)
        return after[0].isupper() and first is not None and first.group().lower() in SENTENCE_STARTERS
    if glued:
        return len(word) > 2 and word.isalpha()
    return not after[0].islower() or (before is not None and _is_whole_word(before.group()))


def _is_whole_word(word: str) -> bool:
    """Tell whether a word before a full stop is no abbreviation: then a small letter may open a sentence, as in "iPhone"."""
    known = word in NUMBER_ABBREVIATIONS or word in SMALL_ABBREVIATIONS
    return len(word) >= MIN_WHOLE_WORD and word.islower() and word.isalpha() and not known and _VOWEL.search(word) is not None


def sentences(text: str) -> tuple[Span, ...]:
    """Split a text into sentences; blank lines, list items and line ends also separate."""
    return (_split_long if len(text) > MAX_CACHED_CHARS else _split_short)(text)


def split_sentences(text: str) -> tuple[Span, ...]:
    """Split a text as `sentences` does, without caching: for documents that are read once."""
    found: list[Span] = []
    start = 0
    for match in _BOUNDARY.finditer(text):
        if match.start() < start or not _ends_sentence(text, match):
            continue
        span = _trim(text, start, match.end())
        start = match.end()
        if span is not None:
            found.append(span)
    last = _trim(text, start, len(text))
    if last is not None:
        found.append(last)
    return tuple(_without_orphans(text, found))


# whole documents would fill the memory, so few of them are cached
_split_short, _split_long = lru_cache(maxsize=4096)(split_sentences), lru_cache(maxsize=16)(split_sentences)


def _without_orphans(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Join pieces without a letter or digit ("..." or a lone quote) to the sentence before."""
    held: Span | None = None
    end = 0
    for span in spans:
        if held is not None and any(c.isalnum() for c in span.text):
            yield held if end == held.end else Span(held.start, end, text[held.start : end])
            held = None
        held, end = held or span, span.end
    if held is not None:
        yield held if end == held.end else Span(held.start, end, text[held.start : end])


def pack_spans(text: str, parts: Iterable[Span], limit: int) -> list[Span]:
    """Join neighbouring pieces while the words stay within `limit`; a longer single piece stays alone."""
    packed: list[Span] = []
    for piece in parts:
        if packed:
            joined = text[packed[-1].start : piece.end]
            if word_count(joined) <= limit:
                packed[-1] = Span(packed[-1].start, piece.end, joined)
                continue
        packed.append(piece)
    return packed


def clause_spans(text: str, span: Span) -> list[Span]:
    """Split one sentence of a text into clauses."""
    cuts = [span.start, *(span.start + m.end() for m in _CLAUSE.finditer(span.text)), span.end]
    return [c for a, b in zip(cuts, cuts[1:], strict=False) if (c := _trim(text, a, b)) is not None]


def _split_long_sentence(text: str, span: Span, limit: int) -> list[Span]:
    """Split a long sentence between clauses, and where a clause is still too long, between words."""
    if word_count(span.text) <= limit:
        return [span]
    found: list[Span] = []
    for clause in pack_spans(text, clause_spans(text, span), limit):
        tokens = list(re.finditer(r"\S+", clause.text))
        for i in range(0, len(tokens), limit):
            group = tokens[i : i + limit]
            a, b = clause.start + group[0].start(), clause.start + group[-1].end()
            found.append(Span(a, b, text[a:b]))
    return found


def split_long_sentences(text: str, limit: int) -> list[Span]:
    """Split a text into sentences, those of more than `limit` words into smaller pieces."""
    return [p for s in sentences(text) for p in _split_long_sentence(text, s, limit)]


def segments(text: str, limit: int = 30) -> list[Span]:
    """Split a response into segments of at most `limit` words (KnowHalu, section 4.3).

    Sentences are packed; a longer sentence is split between clauses, so no segment is empty and none is over the limit.
    """
    return pack_spans(text, split_long_sentences(text, limit), limit)


def at_most_segments(text: str, limit: int, most: int) -> list[Span]:
    """Split as `segments` does, but into `most` segments at most: those of a long text get more words each."""
    found = segments(text, limit)
    while len(found) > most:
        limit *= 2
        found = segments(text, limit)
    return found


def chunks(text: str, limit: int = 40) -> list[Span]:
    """Split a document into sentence-packed passages of at most `limit` words (KnowHalu, section 4.3).

    Packing restarts after a paragraph, so that an inserted paragraph does not change other passages. A line without an end mark,
    such as a heading, stays with the next one.
    """
    return [
        c
        for part in _paragraphs(text)
        for c in pack_spans(text, [p for s in part for p in _split_long_sentence(text, s, limit)], limit)
    ]


def _paragraphs(text: str) -> list[list[Span]]:
    """Group sentences by the blank lines between them."""
    groups: list[list[Span]] = []
    for span in sentences(text):
        if groups and not (_is_paragraph_break(text[groups[-1][-1].end : span.start]) and _is_closed(groups[-1][-1].text)):
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _is_paragraph_break(gap: str) -> bool:
    return gap.count("\n") > 1


def _is_closed(sentence: str) -> bool:
    """Tell whether a sentence ends as such, or is too long for a heading."""
    return bool(_CLOSED.search(sentence)) or word_count(sentence) > MAX_HEADING_WORDS


def windows(text: str, limit: int = 150, overlap: int = 50) -> list[Span]:
    """Cover a text by overlapping runs of whole sentences, each of at most `limit` words where sentences allow."""
    parts = split_long_sentences(text, limit)
    sizes = [word_count(p.text) for p in parts]
    found: list[Span] = []
    first = 0
    while first < len(parts):
        last, size = first, sizes[first]
        while last + 1 < len(parts) and size + sizes[last + 1] <= limit:
            last += 1
            size += sizes[last]
        a, b = parts[first].start, parts[last].end
        found.append(Span(a, b, text[a:b]))
        if last + 1 == len(parts):
            break
        back, kept = last, sizes[last]
        while back - 1 > first and kept + sizes[back - 1] <= overlap:
            back -= 1
            kept += sizes[back]
        first = back if kept <= overlap and back > first else last + 1
    return found


STOPWORDS = frozenset(
    "a an the of in on at to for from by with and or but nor so as is are was were be been being am has have had do does "
    "did will would can could shall should may might must it its he she they them his her hers their theirs this that "
    "these those there here who whom whose which what when where why how i you we me my your our us not no than then "
    "also such into onto over under after before about between both each other another some any all more most very "
    "just only own same too if because while until during out up down off again further once s t re ve ll d m".split()
)


def content_words(text: str) -> list[str]:
    """Return the content words, lower-cased and lightly stemmed, in order."""
    return [
        stem(low)
        for w in words(text)
        if w.text[0].isalnum() and ((low := w.text.lower()) not in STOPWORDS or (len(low) == 1 and names_by_letter(text, w)))
    ]


_BEFORE_LETTER = re.compile(r"[^\W\d_]{2} $")
_AFTER_LETTER = re.compile(r"(?!['’]|[ -][A-Z])(?:\. (?P<next>[A-Z]\w*))?")  # noqa: RUF001


def names_by_letter(text: str, word: Span) -> bool:
    """Tell whether a single capital behind a word belongs to a name, as in "Vitamin D" or "Plan B"; an initial does not."""
    if len(word.text) != 1 or not word.text.isupper() or word.text == "I":
        return False
    after = _AFTER_LETTER.match(text, word.end)
    starts = after is not None and (after["next"] is None or after["next"].lower() in STOPWORDS | SENTENCE_STARTERS)
    return starts and _BEFORE_LETTER.search(text, max(0, word.start - 3), word.start) is not None


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Strip the commonest English endings, so that inflected forms of one word meet."""
    word = word.removesuffix("'s").removesuffix("’s")  # noqa: RUF001
    if len(word) == 4 and word.isalpha():  # "time" must meet "times", "cars" must meet "car"
        return word[:-1] if word[-1] == "e" or (word[-1] == "s" and word[-2] != "s") else word
    if word[-1:].isdigit() or len(word) < 4:
        return word
    for ending, put in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("edly", ""), ("ed", ""), ("es", "e"), ("s", ""), ("ly", "")):
        if word.endswith(ending) and not word.endswith("ss") and len(word) - len(ending) >= 3:
            word = word[: -len(ending)] + put
            break
    return word.removesuffix("e")
