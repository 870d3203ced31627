"""PDF files: a document for each page, so that a passage names its page."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from knowhalu.errors import MissingExtra
from knowhalu.ingest.records import BrokenRecord, ReadJob, SkippedRecord, SourceFile, SourceRow
from knowhalu.io.compression import READ_ERRORS, PositionCallback

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

PDF_ERRORS = (*READ_ERRORS, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError)
"""Errors that pypdf raises, besides its own, on files that only look like PDF, are nested too deep, or are encrypted in an
unknown way; such a file is reported as broken, with the reason."""
SCANNED_PAGE_MESSAGE = "pictures without text, as in a scan; run text recognition (OCR) on the file first"


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
    pypdf, where = _import_pypdf(), str(file.path)
    library_errors = (pypdf.errors.PyPdfError, pypdf.errors.DependencyError)
    try:
        with file.path.open("rb") as raw:
            reader = pypdf.PdfReader(raw)
            if reader.is_encrypted and not reader.decrypt(""):
                return [SourceRow(BrokenRecord("needs a password; save a copy without one"), file.name, where)]
            return _extract_pages(file, reader)
    except (*library_errors, *PDF_ERRORS) as error:
        return [SourceRow(BrokenRecord(f"cannot be read as PDF ({error or type(error).__name__})"), file.name, where)]


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
        rows.append(SourceRow(BrokenRecord(f"pages {', '.join(scanned)}: {SCANNED_PAGE_MESSAGE}"), file.name, str(file.path)))
    elif not rows:
        return [SourceRow(BrokenRecord("the file has no text"), file.name, str(file.path))]
    return rows + [SourceRow(SkippedRecord("blank PDF page"), file.name, str(file.path))] * blank


def _title(reader: "PdfReader") -> str:
    title = reader.metadata.title if reader.metadata else None
    return " ".join(title.replace("\0", "").split()) if isinstance(title, str) else ""


def _has_pictures(page: "PageObject") -> bool:
    resources = page.get("/Resources")
    return bool(resources and resources.get_object().get("/XObject"))
