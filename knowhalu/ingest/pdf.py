"""PDF files: a document for each page, so that a passage names the page it stands on."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from knowhalu.errors import MissingExtra
from knowhalu.ingest.records import Broken, File, Job, LeftOut, Row
from knowhalu.io.compression import BREAKS, Note

if TYPE_CHECKING:
    from pypdf import PageObject, PdfReader

FAULTS = (*BREAKS, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError)
"""What the reader raises, besides its own errors, on files that only look like PDF, nest too deep, or are encrypted in a way that
it does not know: such a file is reported as broken, with its reason."""
SCANNED = "no text but pictures, as in a scan; run text recognition (OCR) on the file first"


def read_pdf(file: File, note: Note) -> Iterator[Row | Job]:
    """Read the pages of a PDF file, perhaps in another process."""
    _package()
    yield Job(_pages, (file,))


def _package() -> Any:
    try:
        import pypdf
        import pypdf.errors
    except ImportError as error:
        raise MissingExtra("pypdf", "pdf") from error
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it tells of every flaw that it can mend
    return pypdf


def _pages(file: File) -> list[Row]:
    pypdf, where = _package(), str(file.path)
    own = (pypdf.errors.PyPdfError, pypdf.errors.DependencyError)
    try:
        with file.path.open("rb") as raw:
            reader = pypdf.PdfReader(raw)
            if reader.is_encrypted and not reader.decrypt(""):
                return [Row(Broken("needs a password; save a copy without one"), file.name, where)]
            return _read(file, reader)
    except (*own, *FAULTS) as error:
        return [Row(Broken(f"cannot be read as PDF ({error or type(error).__name__})"), file.name, where)]


def _read(file: File, reader: "PdfReader") -> list[Row]:
    title = _title(reader) or file.path.stem
    found, scanned, blank = [], [], 0
    for number, page in enumerate(reader.pages, 1):
        # fonts without a table of letters give NUL for what they cannot name
        text = page.extract_text().replace("\0", "\ufffd").strip().encode(errors="replace").decode()
        if text:
            key = f"{file.name}#page={number}"
            value = {"id": key, "title": f"{title}, page {number}", "text": text}
            found.append(Row(value, key, f"{file.path}, page {number}"))
        elif _has_pictures(page):
            scanned.append(str(number))
        else:
            blank += 1
    if scanned:
        found.append(Row(Broken(f"pages {', '.join(scanned)}: {SCANNED}"), file.name, str(file.path)))
    elif not found:
        return [Row(Broken("no page of it has any text"), file.name, str(file.path))]
    return found + [Row(LeftOut("blank PDF page"), file.name, str(file.path))] * blank


def _title(reader: "PdfReader") -> str:
    title = reader.metadata.title if reader.metadata else None
    return " ".join(title.replace("\0", "").split()) if isinstance(title, str) else ""


def _has_pictures(page: "PageObject") -> bool:
    resources = page.get("/Resources")
    return bool(resources and resources.get_object().get("/XObject"))
