"""Split documents into passages: whole sentences packed up to a limit, optionally overlapping, within their sections.

Every passage is a `Span`: `text[start:end] == span.text`, so that evidence can be quoted exactly. Offsets count the
characters of the text as it was read, which for Wikipedia, HTML and PDF is the text extracted from the file.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from knowhalu.errors import InputError
from knowhalu.index.manifest import Chunking
from knowhalu.ingest.records import Heading
from knowhalu.ingest.sources import SourceRecord
from knowhalu.text.sentences import Span, clause_spans, split_sentences

UNSPACED_SCRIPTS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Scripts without spaces between words: Thai, Lao, Burmese, Khmer, Japanese and Chinese."""
_WORD = re.compile(rf"[{UNSPACED_SCRIPTS}]{{1,2}}|[^\s{UNSPACED_SCRIPTS}]{{1,40}}")


class Chunk(NamedTuple):
    """A passage of a document: its span, and the path of its section, such as "History > Early years", or ""."""

    section: str
    span: Span


def passage_title(title: str, section: str) -> str:
    """Return the title of a passage: the title of its document and the path of its section."""
    return f"{title} > {section}" if title and section else title or section


def count_words(text: str) -> int:
    """Count words separated by white space; 40 letters, or two characters of a script without spaces, count as one."""
    return len(_WORD.findall(text))


def check_chunk_limits(limit: int, overlap: int) -> None:
    """Raise InputError unless passages of `limit` words can share `overlap` of them."""
    if overlap and overlap >= limit:
        raise InputError(f"an overlap of {overlap} words does not fit into passages of {limit} words. Choose a smaller overlap")


def chunk_document(record: SourceRecord, chunking: Chunking) -> Iterator[Chunk]:
    """Split a document into passages of at most `words` words; 0 keeps it whole.

    Neighbours share up to `overlap` words, as whole sentences. With `sections`, no passage crosses the end of its section.
    Every character but white space is in some passage. Raises InputError where the overlap is as long as a passage.
    """
    text, limit, overlap = record.text, chunking.words, chunking.overlap
    check_chunk_limits(limit, overlap)
    if not limit:
        yield Chunk("", Span(0, len(text), text))
        return
    for start, end, path in _sections(text, record.headings) if chunking.sections else [(0, len(text), ())]:
        # the store ends the path of a section with a NUL character, which a heading could contain, too
        section = " > ".join(path).replace("\0", "\N{REPLACEMENT CHARACTER}")
        for a, b in _pack_windows(text[start:end], limit, overlap):
            yield Chunk(section, Span(start + a, start + b, text[start + a : start + b]))


def _sections(text: str, headings: Sequence[Heading]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield start, end and path of each section; a heading without text below it belongs to the section that follows."""
    start = body = 0
    path: tuple[str, ...] = ()
    for heading in headings:
        if text[body : heading.start].strip():
            yield start, heading.start, path
            start = heading.start
        path, body = heading.path, heading.end
    yield start, len(text), path


def _pack_windows(text: str, limit: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of runs of sentences: each as long as the limit allows, and each with a new sentence."""
    if count_words(text) <= limit:  # short documents need no sentence splitting
        if text.strip():
            yield len(text) - len(text.lstrip()), len(text.rstrip())
        return
    sentences = [(span, count_words(span.text)) for span in _sentence_spans(text, limit)]
    first = last = 0
    while first < len(sentences):
        length = sum(words for _, words in sentences[first : last + 1])
        while last + 1 < len(sentences) and length + sentences[last + 1][1] <= limit:
            last += 1
            length += sentences[last][1]
        yield sentences[first][0].start, sentences[last][0].end
        if last + 1 == len(sentences):
            return
        first, shared = last + 1, 0
        room = min(overlap, limit - sentences[last + 1][1])
        while shared + sentences[first - 1][1] <= room:
            first -= 1
            shared += sentences[first][1]
        last += 1


def _sentence_spans(text: str, limit: int) -> Iterator[Span]:
    """Yield sentences; one over the limit is split into clauses, and a clause over the limit between words."""
    for sentence in split_sentences(text):
        if count_words(sentence.text) <= limit:
            yield sentence
            continue
        for clause in clause_spans(text, sentence):
            words = [(clause.start + m.start(), clause.start + m.end()) for m in _WORD.finditer(clause.text)]
            for i in range(0, len(words), limit):
                a, b = words[i][0], words[min(i + limit, len(words)) - 1][1]
                yield Span(a, b, text[a:b])
