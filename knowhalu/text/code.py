"""Code in a claim: what its writer may choose left out, and the names that a documentation must know."""

import re
from collections.abc import Iterable, Iterator

from knowhalu.text.values import find_values

_CALL = re.compile(r"(?P<target>(?:^|(?<=\s))[\w, ]+\s=\s)?(?P<name>\b[A-Za-z_][\w.]*)\((?P<arguments>[^()]*)\)")
_KEYWORD = re.compile(r"^\s*(?P<name>[A-Za-z_]\w*)\s*=(?!=)")
_COMMAND = re.compile(
    r"(?P<flag>(?<![\w-])--?[A-Za-z][\w-]*)(?:=\S+|(?P<value>(?:\s(?!-)(?=[^\s,;]*(?:[/\d]|\.\w))[^\s,;]*[^\s,;.])+))?"
)
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


_SETTING = re.compile(r"""["']?(?P<name>[A-Za-z_][\w.-]*)["']?\s*[:=]\s*["']?(?P<value>[^"'\s,;{}]+)["']?\s*[,;]?\s*""")


def confirms_settings(claim: str, sources: Iterable[str]) -> bool:
    """Tell whether a claim consists of settings with their values, and every one stands with that value alone in a sentence."""
    claim, pairs, end = claim.strip("{} \t"), list[tuple[str, str]](), 0
    while m := _SETTING.match(claim, end):
        pairs.append((m["name"], m["value"]))
        end = m.end()
    texts = list(sources) if pairs and end == len(claim) else []
    return bool(texts) and all(any(_gives(text, name, value) for text in texts) for name, value in pairs)


def _gives(text: str, name: str, value: str) -> bool:
    """Tell whether a text has a setting with its value, or its name and the value as the only number."""
    if re.search(rf"""(?<!\w){re.escape(name)}["']?\s?[:=]\s?["']?{re.escape(value)}(?![\w.])""", text):
        return True
    given = {v.start: v.written for v in find_values(text)}
    return value.isdigit() and _has(text, name) and list(given.values()) == [float(value)]
