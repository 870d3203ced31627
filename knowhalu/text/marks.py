"""Marks of citation and of layout inside a text, and the text without them."""

import re

_NUMBERS = r"\d{1,3}(?:\s?[,;–-]\s?\d{1,3})*"  # noqa: RUF001
_SOURCE_NUMBER = r"(?i:doc(?:ument)?|passage|sources?|ref(?:erence)?s?|context)\.?\s?\#?\d{1,3}"
_AUTHORS = r"[A-Z][\w'’-]+(?:(?:,\s[A-Z][\w'’-]+)*,?\s(?:and|&)\s[A-Z][\w'’-]+|\set\sal\.?)"  # noqa: RUF001
_SEE, _YEARS = r"(?:(?:see|cf\.|e\.g\.,?)\s)?", r",?\s\d{4}[a-z]?(?:;\s[^()\n]{1,60}\d{4}[a-z]?)*"
_MARKS = re.compile(
    rf"""
      \s?\[(?:{_NUMBERS}|\^\w+|(?i:citation\ needed|sources?)|{_SOURCE_NUMBER})\](?!\()
    | \s?【[^】\n]{{1,40}}】
    | (?<=[.,;:!?)\w])(?<![kcmd]m)(?<!\bm)[⁰¹²³⁴-⁹]+(?!\w)
    | \s?\((?i:sources?|refs?|references?|see)[:\s]\s?(?:(?i:doc(?:ument)?|passage|context|source)|\[?\d)[^()\n]{{0,40}}\)
    | \s?\(\[(?:{_NUMBERS})\]\) | \s?\({_SOURCE_NUMBER}\)
    | \s?\({_SEE}{_AUTHORS}{_YEARS}\)
    | \s?\({_SEE}[A-Z][\w'’-]+{_YEARS}\)(?=\s?[.!?](?:\s|$)|\s*$)
    | !?\[(?=[^\[\]\n]+\]\([^()\n]+\)) | (?<=[^\[\]\n])\]\([^()\n]+\)
    | \[(?=[^\[\]\n]*[^\W\d][^\[\]\n]*\]\[\d{{1,3}}\]) | (?<=[^\[\]\n\d])\]\[\d{{1,3}}\]
    | </?[a-zA-Z][^<>\n]{{0,80}}>
    | (?m:^[ \t]*(?:>[ \t]?)+)
    | \*{{2,3}}|_{{2,3}}|~~|`+ | (?<![\w*])[*_](?=[^\s*_]) | (?<=[^\s*_])[*_](?![\w*])
    """,
    re.VERBOSE,
)  # noqa: RUF001
_CODE = re.compile(r"(?P<ticks>`+)(?P<code>[^`\n]+)(?P=ticks)")
_NAMES_SOURCE = re.compile(r"\b(?:to|in|per|from|by|as|see)\s?$", re.IGNORECASE)
_STATES = re.compile(r"\s(?:states?|says?|notes?|shows?|reports?|mentions?|confirms?|explains?)\b")


def strip_marks(text: str, start: int, end: int) -> tuple[str, list[int]]:
    """Return a stretch of a text without marks, white space as single spaces, and the place of every character left."""
    code = {i for m in _CODE.finditer(text, start, end) for i in range(m.start("code"), m.end("code"))}
    marks = (m for m in _MARKS.finditer(text, start, end) if m.start() not in code and not _is_named(text, m))
    gone = {i for m in marks for i in range(m.start(), m.end())}
    kept: list[int] = []
    for i in range(start, end):
        if i not in gone and not (text[i].isspace() and (not kept or text[kept[-1]].isspace())):
            kept.append(i)
    while kept and text[kept[-1]].isspace():
        kept.pop()
    return "".join(" " if text[i].isspace() else text[i] for i in kept), kept


def _is_named(text: str, mark: re.Match[str]) -> bool:
    """Tell whether a number in brackets is a word of its sentence, as in "according to [1]"."""
    if not mark.group().lstrip()[:2].startswith("[") or not mark.group().endswith("]"):
        return False
    return bool(_NAMES_SOURCE.search(text[: mark.start()]) or _STATES.match(text, mark.end()))
