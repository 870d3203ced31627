"""Stream the articles of a Wikipedia dump (`*-pages-articles.xml.bz2`, multistream or not) page by page.

Each page is parsed by itself, so a broken page does not affect others, and no entity declaration reaches a parser: dumps have
none, and a file that declares any is refused.
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
"""Bytes of pages parsed in one job."""
LIST_TITLE = re.compile(r"(?:Lists? of|Index of|Outline of|Liste? (?:der|des|de|von)|Lista (?:de|di)|Anexo:) ?\b", re.IGNORECASE)
"""Beginnings of the titles of lists."""
DISAMBIGUATION_TITLE = re.compile(r"\((?:disambiguation|Begriffsklärung|homonymie|desambiguación|disambigua)\)$", re.IGNORECASE)
_NAMESPACE = re.compile(rb'<namespace key="(-2|6|14)"[^>]*>([^<]+)</namespace>')
_DECLARATION = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
DROPPED_NAMESPACES = frozenset({"file", "image", "category", "media"})
"""Namespaces whose links are not text; a dump declares those of its language."""


class _Page(NamedTuple):
    line: int
    data: bytes | BrokenRecord


def read_dump(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read the articles of a dump; redirects, disambiguations, lists and other namespaces are skipped with a reason."""
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
    """Splits a dump into pages without parsing it."""

    def __init__(self, file: SourceFile, note: PositionCallback) -> None:
        self._path, self._lines = file.path, read_file_lines(file.path, note)
        self.unlinked = DROPPED_NAMESPACES

    def pages(self) -> Iterator[_Page]:
        """Yield every page with the number of its first line; raises InputError for an incomplete dump."""
        first_line, lines, size = 0, list[bytes](), 0
        ended = False
        for number, line in self._pieces():
            if line is not None and (at := line.find(b"<page>")) >= 0:
                if first_line:
                    yield _Page(first_line, BrokenRecord("the page has no end (</page>)"))
                first_line, lines, size, line = number, [], 0, line[at:]
            if not first_line:
                ended = self._outside(number, line or b"") or ended
                continue
            size += compression.MAX_RECORD_BYTES + 1 if line is None else len(line)
            if size > compression.MAX_RECORD_BYTES:
                lines.clear()
            else:
                lines.append(line or b"")
            if line is not None and line.rstrip().endswith(b"</page>"):
                too_long = BrokenRecord(f"the page is longer than {compression.MAX_RECORD_BYTES >> 20} MiB")
                yield _Page(first_line, b"".join(lines) if size <= compression.MAX_RECORD_BYTES else too_long)
                first_line = 0
        if first_line or not ended:
            raise InputError(f"{self._path}: is not a complete Wikipedia dump (no </mediawiki> at its end). Copy it again")

    def _pieces(self) -> Iterator[tuple[int, bytes | None]]:
        """Yield lines, split after the end of a page."""
        for number, line in self._lines:
            if line is None or b"</page>" not in line:
                yield number, line
            else:
                yield from ((number, part) for part in re.split(rb"(?<=</page>)", line) if part.strip())

    def _outside(self, number: int, text: bytes) -> bool:
        """Read namespaces outside of pages, refuse declarations, and return whether the dump ends here."""
        if _DECLARATION.search(text):
            raise InputError(f"{self._path}:{number}: declares a document type or an entity, which a Wikipedia dump must not")
        names = {m[2].decode(errors="replace").strip().lower() for m in _NAMESPACE.finditer(text)}
        self.unlinked |= names
        return b"</mediawiki>" in text


def parse_pages(pages: list[_Page], file: SourceFile, unlinked: frozenset[str]) -> list[SourceRow]:
    """Return a row for each page: an article, a skipped page or a problem."""
    return [_row(page, file, unlinked) for page in pages]


def _row(page: _Page, file: SourceFile, unlinked: frozenset[str]) -> SourceRow:
    name, where = f"{file.name}:{page.line}", f"{file.path}:{page.line}"
    if isinstance(page.data, BrokenRecord):
        return SourceRow(page.data, name, where)
    try:
        root = ElementTree.fromstring(page.data)
    except ElementTree.ParseError as error:
        problem = f"the page is not well-formed XML ({error.msg.partition(':')[0]})"
        return SourceRow(BrokenRecord(problem), name, f"{file.path}:{page.line + error.position[0] - 1}")
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
        return SourceRow(BrokenRecord(f"the wikitext of {title!r} is nested too deep"), name, where)
    if article.ambiguous or not article.text:
        return SourceRow(SkippedRecord("disambiguation" if article.ambiguous else "page without text"), name, where)
    value = {"id": root.findtext("id"), "title": title, "text": article.text}
    return SourceRow(value, name, where, headings=article.headings)


def _skip_reason(root: ElementTree.Element, title: str) -> str:
    """Return why a page is not an article, as far as its metadata and title show it, or ""."""
    if (space := (root.findtext("ns") or "0").strip()) != "0":
        return f"namespace {space}"
    if root.find("redirect") is not None:
        return "redirect"
    if (root.findtext("revision/model") or "wikitext").strip() != "wikitext":
        return "not wikitext"
    if DISAMBIGUATION_TITLE.search(title):
        return "disambiguation"
    return "list" if LIST_TITLE.match(title) else ""
