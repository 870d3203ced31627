"""Published collections of passages: their field names, and joining their lists of sentences into one text.

Known are those of DPR (`psgs_w100.tsv`), ColBERT and WikiChat, HotpotQA, BEIR and 2WikiMultihopQA, and KILT.
"""

import re
from collections.abc import Iterable
from typing import Any

from knowhalu.ingest.records import BrokenRecord, FieldNames, Heading, SourceFile, SourceRow

COLBERT_FORMAT = "colbert"
PRESET_FIELDS = {
    "dpr": FieldNames(("text",), ("title",), ("id",)),
    "colbert": FieldNames(("passage", "text"), ("title",), ("pid", "id")),
    "wikichat": FieldNames(("content", "content_string", "passage", "text"),
                       ("full_section_title", "document_title", "article_title", "title"), ("id", "pid")),
    "hotpotqa": FieldNames(("text", "sentences"), ("title",), ("id",)),
    "beir": FieldNames(("text",), ("title",), ("_id", "id")),
    "kilt": FieldNames(("text",), ("wikipedia_title",), ("wikipedia_id", "_id")),
}  # fmt: skip
"""The field names of each collection."""
_LINK = re.compile(r"</?a\b[^<>]*>")
_KILT_SECTION = "Section::::"
_KILT_BULLET = re.compile(r"^BULLET::::-?\s*")


def join_text_lists(row: SourceRow, file: SourceFile) -> SourceRow:
    """Join the text of a row where it is a list of sentences or paragraphs."""
    value: Any = row.value
    field = next((n for n in row.fields.text if value.get(n) is not None), "")
    content = value.get(field)
    if isinstance(content, list):
        try:
            if "wikipedia_title" in value:
                text, headings = _join_kilt_paragraphs(_check_strings(content), value["wikipedia_title"])
                return row._replace(value={**value, field: text}, headings=headings)
            paragraphs = [_join_sentences(_check_strings(p)) if isinstance(p, list) else p for p in content]
            nested = any(isinstance(p, list) for p in content)
            text = "\n".join(_check_strings(paragraphs)) if nested else _join_sentences(_check_strings(content))
            return row._replace(value={**value, field: _LINK.sub("", text)})
        except BrokenRecord as problem:
            return row._replace(value=problem)
    if file.format == "wikichat" and isinstance(content, str) and not any(value.get(n) for n in row.fields.title):
        title, mark, rest = content.partition(" | ")
        return row._replace(value={**value, row.fields.title[0]: title, field: rest}) if mark else row
    return row


def _check_strings(items: Iterable[Any]) -> list[str]:
    strings = list(items)
    if types := [type(s).__name__ for s in strings if not isinstance(s, str)]:
        raise BrokenRecord(f"the text is a list that contains {types[0]}, not only strings")
    return strings


def _join_sentences(sentences: list[str]) -> str:
    """Join sentences, with a space where neither side has one."""
    parts: list[str] = []
    for sentence in filter(None, sentences):
        if parts and not parts[-1][-1].isspace() and not sentence[0].isspace():
            parts.append(" ")
        parts.append(sentence)
    return "".join(parts)


def _join_kilt_paragraphs(paragraphs: list[str], title: Any) -> tuple[str, tuple[Heading, ...]]:
    """Join the paragraphs of an article, without a repeated title and with its section marks as headings."""
    parts: list[str] = []
    headings, at = [], 0
    for number, paragraph in enumerate(paragraphs):
        line = _KILT_BULLET.sub("", paragraph.strip())
        if number == 0 and line == title:
            continue
        if line.startswith(_KILT_SECTION):
            path = tuple(p.strip() for p in line.removeprefix(_KILT_SECTION).removesuffix(".").split(":") if p.strip())
            line = path[-1] if path else ""
            headings.append(Heading(at, at + len(line), path))
        parts.append(line + "\n")
        at += len(parts[-1])
    return "".join(parts), tuple(headings)
