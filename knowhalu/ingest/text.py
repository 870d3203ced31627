"""Files that are read whole: plain text and Markdown with one document, PDF with one for each page."""

import logging
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knowhalu.errors import MissingExtra
from knowhalu.ingest.records import BYTE_ORDER_MARK, BrokenRecord, Heading, ReadJob, SkippedRecord, SourceFile, SourceRow
from knowhalu.io import compression
from knowhalu.io.compression import READ_ERRORS, PositionCallback, read_document_bytes

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

PDF_ERRORS = (*READ_ERRORS, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError)
"""Errors that pypdf raises, besides its own, on files that only look like PDF, are nested too deep, or are encrypted in an
unknown way; such a file is reported as broken, with the reason."""
SCANNED_PAGE_MESSAGE = "pictures without text, as in a scan; run text recognition (OCR) on the file first"
_CODE_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_ATX_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))??(?:[ \t]+#+)?[ \t]*$")
_SETEXT_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_TITLE = re.compile(r"""title\s*[:=]\s*(?P<quote>["']?)(?P<title>.+?)(?P=quote)\s*$""", re.IGNORECASE)
FRONT_MATTER_RULES: dict[str, tuple[str, ...]] = {"---": ("---", "..."), "+++": ("+++",)}
"""The lines that open and close the front matter of a Markdown file."""
_FRONT_MATTER_KEY = re.compile(r"""["']?[\w.-]+["']?\s*(?::(?=\s|$)|=)""")
_FRONT_MATTER_CONTINUATION = re.compile(r"\s|#|-(?=\s|$)|[\[\]{}]")


def read_text(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read a text file; its title is its name."""
    yield _document(file)


def read_markdown(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read a Markdown file without its front matter; the title is that of the front matter, or the first heading."""
    row = _document(file)
    if not isinstance(row.value, dict):
        yield row
        return
    title, text = _split_front_matter(row.value["text"])
    headings = tuple(find_headings(text))
    title = title or next((h.path[0] for h in headings if len(h.path) == 1), "") or file.path.stem
    yield file.row({"id": file.name, "title": title, "text": text}, drop_title_heading(headings, title))


def drop_title_heading(headings: Iterable[Heading], title: str) -> tuple[Heading, ...]:
    """Return the headings without the one that repeats the title, also in the paths of others."""
    short = [h._replace(path=h.path[1:]) if h.path[0] == title else h for h in headings]
    return tuple(h for h in short if h.path)


def read_whole_file(path: Path) -> bytes:
    """Read a file with one document; raises BrokenRecord where it cannot be read or is too long."""
    try:
        data = read_document_bytes(path)
    except READ_ERRORS as error:
        raise BrokenRecord(f"cannot be read ({error})") from None
    if data is None:
        raise BrokenRecord(f"longer than {compression.MAX_RECORD_BYTES >> 20} MiB; split the document")
    return data


def _document(file: SourceFile) -> SourceRow:
    try:
        data = read_whole_file(file.path)
        text = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8").removeprefix(BYTE_ORDER_MARK)
    except BrokenRecord as problem:
        return file.row(problem)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return SourceRow(BrokenRecord(f"not UTF-8 ({error.reason}); convert the file to UTF-8"), file.name, f"{file.path}:{line}")
    return file.row({"id": file.name, "title": file.path.stem, "text": text})


def _split_front_matter(text: str) -> tuple[str, str]:
    """Return the title of the front matter, or "", and the text after it."""
    lines = text.split("\n")
    closing = FRONT_MATTER_RULES.get(lines[0].rstrip(), ())
    end = next((i for i, line in enumerate(lines[1:], 1) if line.rstrip() in closing), None)
    if end is None or not _is_front_matter(lines[1:end]):
        return "", text
    titles = (m["title"].strip() for line in lines[1:end] if (m := _TITLE.match(line)))
    return next(titles, ""), "\n".join(lines[end + 1 :])


def _is_front_matter(lines: list[str]) -> bool:
    """Return whether the lines between two rules are keys with values, not text."""
    content = [line for line in lines if line.strip()]
    return not content or (
        any(map(_FRONT_MATTER_KEY.match, content))
        and all(_FRONT_MATTER_KEY.match(line) or _FRONT_MATTER_CONTINUATION.match(line) for line in content)
    )


def find_headings(text: str) -> Iterator[Heading]:
    """Yield the headings of Markdown with the path down to each, without those in fenced code."""
    path: list[tuple[int, str]] = []
    fence, before, at = "", (0, ""), 0
    for line in text.splitlines(keepends=True):
        bare, start = line.rstrip("\r\n"), at
        at += len(line)
        level, name = 0, ""
        if mark := _CODE_FENCE.match(bare):
            fence = _open_fence(fence, mark)
        elif not fence and (hashes := _ATX_HEADING.match(bare)):
            level, name = len(hashes[1]), (hashes[2] or "").strip()
        elif not fence and before[1] and (under := _SETEXT_UNDERLINE.match(bare)):
            level, name, start = 1 if under[1][0] == "=" else 2, before[1], before[0]
        plain = not (fence or mark or level or bare[:1] in "#>-*+|" or bare.startswith("    "))
        before = (start, bare.strip()) if plain else (0, "")
        if level and name:
            path = [*((n, t) for n, t in path if n < level), (level, name)]
            yield Heading(start, start + len(text[start:at].rstrip()), tuple(t for _, t in path))


def _open_fence(fence: str, mark: re.Match[str]) -> str:
    """Return the fence that is open after this line, or ""."""
    if not fence:
        return mark[1]
    return "" if mark[1].startswith(fence) and not mark[2].strip() else fence


def read_pdf(file: SourceFile, note: PositionCallback) -> Iterator[SourceRow | ReadJob]:
    """Read the pages of a PDF file, possibly in another process."""
    _import_pypdf()
    yield ReadJob(_read_pages, (file,))


def _import_pypdf() -> Any:
    try:
        import pypdf
        import pypdf.errors
    except ImportError as error:
        raise MissingExtra("pypdf", "pdf") from error
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it logs every flaw that it can repair
    return pypdf


def _read_pages(file: SourceFile) -> list[SourceRow]:
    pypdf = _import_pypdf()
    library_errors = (pypdf.errors.PyPdfError, pypdf.errors.DependencyError)
    try:
        with file.path.open("rb") as raw:
            reader = pypdf.PdfReader(raw)
            if reader.is_encrypted and not reader.decrypt(""):
                return [file.row(BrokenRecord("needs a password; save a copy without one"))]
            return _extract_pages(file, reader)
    except (*library_errors, *PDF_ERRORS) as error:
        return [file.row(BrokenRecord(f"cannot be read as PDF ({error or type(error).__name__})"))]


def _extract_pages(file: SourceFile, reader: "PdfReader") -> list[SourceRow]:
    title = _title(reader) or file.path.stem
    rows, scanned, blank = [], [], 0
    for number, page in enumerate(reader.pages, 1):
        # fonts without a Unicode table give NUL for unknown glyphs
        text = page.extract_text().replace("\0", "\ufffd").strip().encode(errors="replace").decode()
        if text:
            key = f"{file.name}#page={number}"
            value = {"id": key, "title": f"{title}, page {number}", "text": text}
            rows.append(SourceRow(value, key, f"{file.path}, page {number}"))
        elif _has_pictures(page):
            scanned.append(str(number))
        else:
            blank += 1
    if scanned:
        rows.append(file.row(BrokenRecord(f"pages {', '.join(scanned)}: {SCANNED_PAGE_MESSAGE}")))
    elif not rows:
        return [file.row(BrokenRecord("the file has no text"))]
    return rows + [file.row(SkippedRecord("blank PDF page"))] * blank


def _title(reader: "PdfReader") -> str:
    title = reader.metadata.title if reader.metadata else None
    return " ".join(title.replace("\0", "").split()) if isinstance(title, str) else ""


def _has_pictures(page: "PageObject") -> bool:
    resources = page.get("/Resources")
    return bool(resources and resources.get_object().get("/XObject"))
