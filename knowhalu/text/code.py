"""Code in a claim: what its writer may choose left out, and the names that a documentation must know."""

import re
from collections.abc import Iterator

_CALL = re.compile(r"(?P<target>(?:^|(?<=\s))[\w, ]+\s=\s)?(?P<name>\b[A-Za-z_][\w.]*)\((?P<arguments>[^()]*)\)")
_KEYWORD = re.compile(r"^\s*(?P<name>[A-Za-z_]\w*)\s*=(?!=)")
_COMMAND = re.compile(r"(?P<flag>(?<![\w-])--?[A-Za-z][\w-]*)(?:=\S+|(?P<value>(?:\s(?!-)[^\s,;]*[./\d][^\s,;]*[^\s,;.])+))?")
_FLAG = re.compile(r"(?<![\w-])--[A-Za-z][\w-]+")
_SNAKE_CASE = re.compile(r"(?<![\w/.-])[a-z]+(?:_[a-z0-9]+)+(?![\w/(.-])")
_ERROR = re.compile(r"\b[A-Z][a-z]+[A-Za-z]*(?:Error|Exception|Warning)\b")
_ARGUMENT_BREAK = re.compile(r""",(?=(?:[^"'\[\]{}]|"[^"]*"|'[^']*'|\[[^\[\]]*\]|\{[^{}]*\})*$)""")


def simplify_code(text: str, source: str) -> str:
    """Leave out of calls and commands what their writer may choose: values, variables and files that the source does not have."""

    def call(m: re.Match[str]) -> str:
        owner, _, name = m["name"].rpartition(".")
        kept = [a for part in _ARGUMENT_BREAK.split(m["arguments"]) if (a := _argument(part, source))]
        return f"{f'{owner}.' if owner and _has(source, owner) else ''}{name}({', '.join(kept)})"

    if not any(_has(source, m["name"].rpartition(".")[2]) for m in _CALL.finditer(text)) and not _FLAG.search(text):
        return text
    return _COMMAND.sub(lambda m: m.group() if m.group() in source else m["flag"], _CALL.sub(call, text))


def _argument(text: str, source: str) -> str:
    if m := _KEYWORD.match(text):
        return text.strip() if text.strip() in source else m["name"]
    return text.strip() if text.strip() and _has(source, text.strip()) else ""


def unknown_names(claim: str, source: str) -> list[str]:
    """Return the parameters, options, settings and errors of a claim that a documentation does not have.

    It is one where it has another name of the kind: a parameter of a function that it names, an option, a setting, an error.
    """
    return [name for name, known in _names(claim, source) if known and not _has(source, name.lstrip("-"))]


def _names(claim: str, source: str) -> Iterator[tuple[str, bool]]:
    for m in _CALL.finditer(claim):
        known = _has(source, m["name"].rpartition(".")[2])
        keywords = (k["name"] for a in _ARGUMENT_BREAK.split(m["arguments"]) if (k := _KEYWORD.match(a)))
        yield from ((name, known) for name in keywords)
    for pattern in (_FLAG, _ERROR):
        known = pattern.search(source) is not None
        yield from ((m.group(), known) for m in pattern.finditer(claim))
    if "=" not in claim and "(" not in claim:
        known = _SNAKE_CASE.search(source) is not None
        yield from ((m.group(), known) for m in _SNAKE_CASE.finditer(claim))


def _has(source: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source) is not None
