"""HTML pages: extract title, visible text and headings. Nothing is fetched and no script is run."""

import codecs
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from knowhalu.errors import MissingExtra
from knowhalu.ingest.records import BrokenRecord, Heading, ReadJob, SkippedRecord, SourceFile, SourceRow
from knowhalu.ingest.text import drop_title_heading, read_whole_file
from knowhalu.ingest.wikitext import is_exponent
from knowhalu.io.compression import PositionCallback

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

HIDDEN_TAGS = frozenset(
    "head script style noscript template svg math iframe object embed canvas audio video map nav menu dialog select option "
    "button input textarea datalist".split()
)
"""Elements whose content is not visible text."""
INLINE_TAGS = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark q rp rt ruby s samp small span strike "
    "strong sub sup time tt u var wbr -text".split()
)
"""Elements within a line; all others begin a new line."""
_DECLARED_ENCODING = re.compile(
    rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.:-]+)|<\?xml[^>]{0,100}?encoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE
)
_BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
WEB_ENCODINGS = {"iso-8859-1": "cp1252", "latin1": "cp1252", "ascii": "cp1252", "us-ascii": "cp1252", "iso-8859-9": "cp1254",
       "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "ks_c_5601-1987": "cp949", "euc-kr": "cp949",
       "utf-16": "utf-8", "utf-16le": "utf-8", "utf-16be": "utf-8"}  # fmt: skip
"""The encodings that browsers use for declared names: https://encoding.spec.whatwg.org."""
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def read_html(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read an HTML page, possibly in another process."""
    _parser()
    yield ReadJob(_read_page, (file,))


def _read_page(file: SourceFile) -> list[SourceRow]:
    try:
        title, text, headings = extract_text(_decode_page(read_whole_file(file.path)))
    except BrokenRecord as problem:
        return [file.row(problem)]
    if not text:
        return [file.row(SkippedRecord("HTML page without visible text"))]
    return [file.row({"id": file.name, "title": title or file.path.stem, "text": text}, headings)]


def _decode_page(data: bytes) -> str:
    """Decode a page by its byte order mark, its declaration, or as UTF-8; raises BrokenRecord."""
    name = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), "")
    declared = _DECLARED_ENCODING.search(data[:4096])
    if not name and declared:
        name = (declared[1] or declared[2]).decode("ascii").lower()
        name = WEB_ENCODINGS.get(name, name)
    try:
        return data.decode(name or "utf-8")
    except UnicodeError as error:
        declaration = f"the page declares {name}" if name else "the page declares no encoding and is not UTF-8"
        raise BrokenRecord(f"the encoding is unclear: {declaration} ({error}); convert the page to UTF-8") from None
    except LookupError:
        raise BrokenRecord(f"the encoding {name!r} is unknown; convert the page to UTF-8") from None


def _parser() -> "type[LexborHTMLParser]":
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise MissingExtra("selectolax", "html") from error
    return LexborHTMLParser


def extract_text(page: str) -> tuple[str, str, tuple[Heading, ...]]:
    """Return the title of a page, its visible text (a block on each line) and its headings."""
    tree = _parser()(page)
    named = tree.css_first("head > title")
    title = " ".join(named.text().split()) if named else ""
    lines = _TextLines()
    if tree.body is not None:
        _walk(tree.body, lines)
    lines.end()
    title = title or next((h.path[0] for h in lines.headings), "")
    return title, "\n".join(lines.done), drop_title_heading(lines.headings, title)


class _TextLines:
    """Collects the text of a page line by line."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.headings: list[Heading] = []
        self._open: list[str] = []
        self._path: list[tuple[int, str]] = []
        self._at = 0

    def add(self, text: str) -> None:
        self._open.append(text)

    def superscript(self, text: str) -> None:
        """Mark the superscript that comes next where it is the exponent of a number."""
        if self._open and self._open[-1][-1:].isdecimal() and is_exponent(text):
            self.add("^")

    def end(self, level: int = 0, *, preformatted: bool = False) -> None:
        """End the open line; with a `level` it is a heading, and with `preformatted` it keeps its white space."""
        line = "".join(self._open)
        line = line.strip("\n") if preformatted else " ".join(line.split())
        self._open.clear()
        if not line.strip():
            return
        if level:
            self._path = [*((n, t) for n, t in self._path if n < level), (level, line)]
            self.headings.append(Heading(self._at, self._at + len(line), tuple(t for _, t in self._path)))
        self.done.append(line)
        self._at += len(line) + 1


def _walk(body: "LexborNode", lines: _TextLines) -> None:
    """Walk a page without recursion, since pages may be nested to any depth."""
    todo: list[Any] = [body]
    while todo:
        step = todo.pop()
        if isinstance(step, tuple):
            lines.end(step[0], preformatted=step[1])
            continue
        tag = step.tag or ""
        if tag == "-text":
            lines.add(step.text_content or "")
        elif tag == "br":
            lines.end()
        elif tag not in HIDDEN_TAGS and not tag.startswith(("-", "!")) and not _is_hidden(step):
            if tag == "sup":
                path = _leading_nodes(step)
                if _is_note_mark(path):
                    continue
                lines.superscript(_text_at(path))
            if tag in {"td", "th"}:
                lines.add(" ")
            elif tag not in INLINE_TAGS:
                lines.end()
                todo.append((int(tag[1]) if tag in {"h1", "h2", "h3", "h4", "h5", "h6"} else 0, tag == "pre"))
            todo += reversed(list(step.iter(include_text=True)))


def _leading_nodes(node: "LexborNode") -> list["LexborNode"]:
    """Return a node and its chain of first children, to a fixed depth."""
    path = [node]
    while len(path) < 8 and (child := path[-1].child) is not None:
        path.append(child)
    return path


def _text_at(path: list["LexborNode"]) -> str:
    return (path[-1].text_content or "").strip() if path[-1].tag == "-text" else ""


def _is_note_mark(path: list["LexborNode"]) -> bool:
    """Return whether a superscript is a footnote mark: in brackets, or a link within a page inside or directly around it."""
    is_only_child = path[0].prev is None and path[0].next is None
    links = [*path, *([path[0].parent] if is_only_child else [])]
    return _text_at(path).startswith("[") or any("#" in (n.attributes.get("href") or "") for n in links if n and n.tag == "a")


def _is_hidden(node: "LexborNode") -> bool:
    attributes = node.attributes
    return "hidden" in attributes or bool(_HIDDEN_STYLE.search(attributes.get("style") or ""))
