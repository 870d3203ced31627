"""A Wikipedia dump (`*-pages-articles.xml.bz2`, multistream or not): its articles, streamed page by page.

Each page is parsed by itself, so that a broken one costs no other, and no declaration of an entity ever reaches a parser:
dumps have none, and a file that declares any is refused.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from knowhalu.errors import InputError
from knowhalu.ingest.records import BrokenRecord, ReadJob, SkippedRecord, SourceFile, SourceRow
from knowhalu.ingest.wikitext import make_wikitext_parser, read_wikitext
from knowhalu.io import compression
from knowhalu.io.compression import PositionCallback, read_file_lines

BATCH_BYTES = 2**20
"""Bytes of pages that are parsed at once."""
LIST_TITLE = re.compile(r"(?:Lists? of|Index of|Outline of|Liste? (?:der|des|de|von)|Lista (?:de|di)|Anexo:) ?\b", re.IGNORECASE)
"""How the titles of lists begin."""
DISAMBIGUATION_TITLE = re.compile(r"\((?:disambiguation|Begriffsklärung|homonymie|desambiguación|disambigua)\)$", re.IGNORECASE)
_NAMESPACE = re.compile(rb'<namespace key="(-2|6|14)"[^>]*>([^<]+)</namespace>')
_DECLARATION = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_HEAD_BYTES = 2**20
DROPPED_NAMESPACES = frozenset({"file", "image", "category", "media"})
"""Namespaces whose links are no words of the text; a dump names those of its language."""


class _Page(NamedTuple):
    line: int
    data: bytes | BrokenRecord


def read_dump(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read the articles of a dump; redirects, disambiguations, lists and other namespaces are left out by reason."""
    make_wikitext_parser()
    dump = _DumpReader(file, note)
    batch: list[_Page] = []
    size = 0
    for page in dump.pages():
        batch.append(page)
        size += len(page.data) if isinstance(page.data, bytes) else 0
        if size >= BATCH_BYTES:
            yield ReadJob(parse_pages, (batch, file, dump.unlinked))
            batch, size = [], 0
    if batch:
        yield ReadJob(parse_pages, (batch, file, dump.unlinked))


class _DumpReader:
    """Cuts a dump into pages without parsing it."""

    def __init__(self, file: SourceFile, note: PositionCallback) -> None:
        self._path, self._lines = file.path, read_file_lines(file.path, note)
        self.unlinked = DROPPED_NAMESPACES

    def pages(self) -> Iterator[_Page]:
        """Yield every page with the line that it begins on; raises InputError for a file that is no whole dump."""
        begun, held, size = 0, list[bytes](), 0
        ended = False
        for number, piece in self._pieces():
            if piece is not None and (at := piece.find(b"<page>")) >= 0:
                if begun:
                    yield _Page(begun, BrokenRecord("the page has no end (</page>)"))
                begun, held, size, piece = number, [], 0, piece[at:]
            if not begun:
                ended = self._outside(number, piece or b"") or ended
                continue
            size += compression.MAX_RECORD_BYTES + 1 if piece is None else len(piece)
            if size > compression.MAX_RECORD_BYTES:
                held.clear()
            else:
                held.append(piece or b"")
            if piece is not None and piece.rstrip().endswith(b"</page>"):
                long = BrokenRecord(f"the page is longer than {compression.MAX_RECORD_BYTES >> 20} MiB")
                yield _Page(begun, b"".join(held) if size <= compression.MAX_RECORD_BYTES else long)
                begun = 0
        if begun or not ended:
            raise InputError(f"{self._path}: is no whole Wikipedia dump (no </mediawiki> at its end). Copy it again")

    def _pieces(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield lines, cut after the end of a page."""
        for number, line in self._lines:
            if line is None or b"</page>" not in line:
                yield number, line
            else:
                yield from ((number, piece) for piece in re.split(rb"(?<=</page>)", line) if piece.strip())

    def _outside(self, number: int, piece: bytes) -> bool:
        """Look at what stands outside of pages; tell whether it ends the dump."""
        if _DECLARATION.search(piece):
            raise InputError(f"{self._path}:{number}: declares a document type or an entity, which no Wikipedia dump does")
        names = {m[2].decode(errors="replace").strip().lower() for m in _NAMESPACE.finditer(piece)}
        self.unlinked |= names
        return b"</mediawiki>" in piece


def parse_pages(pages: list[_Page], file: SourceFile, unlinked: frozenset[str]) -> list[SourceRow]:
    """Make rows of pages: articles, what is left out, and what is broken."""
    return [_row(page, file, unlinked) for page in pages]


def _row(page: _Page, file: SourceFile, unlinked: frozenset[str]) -> SourceRow:
    name, where = f"{file.name}:{page.line}", f"{file.path}:{page.line}"
    if isinstance(page.data, BrokenRecord):
        return SourceRow(page.data, name, where)
    try:
        root = ElementTree.fromstring(page.data)
    except ElementTree.ParseError as error:
        wrong = f"the page is not sound XML ({error.msg.partition(':')[0]})"
        return SourceRow(BrokenRecord(wrong), name, f"{file.path}:{page.line + error.position[0] - 1}")
    title = (root.findtext("title") or "").strip()
    texts = root.findall("revision/text")
    if not title or not texts:
        return SourceRow(BrokenRecord(f"the page has no {'text' if title else 'title'}"), name, where)
    if reason := _skip_reason(root, title):
        return SourceRow(SkippedRecord(reason), name, where)
    source = texts[-1].text or ""
    try:
        article = read_wikitext(source, unlinked)
    except RecursionError:
        return SourceRow(BrokenRecord(f"the wikitext of {title!r} nests too deep"), name, where)
    if article.ambiguous or not article.text:
        return SourceRow(SkippedRecord("disambiguation" if article.ambiguous else "page without text"), name, where)
    value = {"id": root.findtext("id"), "title": title, "text": article.text}
    return SourceRow(value, name, where, headings=article.headings)


def _skip_reason(root: ElementTree.Element, title: str) -> str:
    """Say why a page is no article, as far as that shows without reading its text."""
    if (space := (root.findtext("ns") or "0").strip()) != "0":
        return f"namespace {space}"
    if root.find("redirect") is not None:
        return "redirect"
    if (root.findtext("revision/model") or "wikitext").strip() != "wikitext":
        return "not wikitext"
    if DISAMBIGUATION_TITLE.search(title):
        return "disambiguation"
    return "list" if LIST_TITLE.match(title) else ""
