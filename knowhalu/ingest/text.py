"""Files with one document: plain text and Markdown."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from knowhalu.ingest.records import BYTE_ORDER_MARK, BrokenRecord, Heading, ReadJob, SourceFile, SourceRow
from knowhalu.io import compression
from knowhalu.io.compression import READ_ERRORS, PositionCallback, read_document_bytes

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
    value = {"id": file.name, "title": title, "text": text}
    yield row._replace(value=value, headings=drop_title_heading(headings, title))


def drop_title_heading(headings: Iterable[Heading], title: str) -> tuple[Heading, ...]:
    """Return the headings without the one that repeats the title, also in the paths of others."""
    short = [h._replace(path=h.path[1:]) if h.path[0] == title else h for h in headings]
    return tuple(h for h in short if h.path)


def read_whole_file(path: Path) -> bytes | BrokenRecord:
    """Read a file with one document; return its problem where it cannot be read or is too long."""
    try:
        data = read_document_bytes(path)
    except READ_ERRORS as error:
        return BrokenRecord(f"cannot be read ({error})")
    return BrokenRecord(f"longer than {compression.MAX_RECORD_BYTES >> 20} MiB; split the document") if data is None else data


def _document(file: SourceFile) -> SourceRow:
    data = read_whole_file(file.path)
    if isinstance(data, BrokenRecord):
        return SourceRow(data, file.name, str(file.path))
    try:
        text = data.decode("utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return SourceRow(BrokenRecord(f"not UTF-8 ({error.reason}); convert the file to UTF-8"), file.name, f"{file.path}:{line}")
    value = {"id": file.name, "title": file.path.stem, "text": text}
    return SourceRow(value, file.name, str(file.path))


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
