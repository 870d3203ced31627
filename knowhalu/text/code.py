"""Code in a claim: what its writer may choose left out, and the names that a documentation must know."""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches

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


_STRING = re.compile(r"""\"[^\"\n]*\"|'[^'\n]*'""")
_COMMENT = re.compile(r"(?:^|\s)(?:#|//|--\s).*")
_OPENS_COMMENT = re.compile(r"\s*(?:#|//|--\s|/?\*)")
_CALLED = re.compile(r"(?<![\w.])(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*)\(")
_PASSED = re.compile(r"[(,]\s*(?P<name>[A-Za-z_]\w*)\s*=(?!=)\s*(?P<value>[^\s,()]*)")
_KEY = re.compile(r"\s*(?:-\s+)?[\"']?(?P<name>[A-Za-z_][\w.-]*)[\"']?\s*:(?:\s+(?P<value>[\"'].*|\S+))?\s*,?\s*$")
_IMPORT = re.compile(r"\s*(?:import|from|use|require|include)\s+(?P<name>[A-Za-z_]\w*)")
_DEFINES = re.compile(r"\s*(?:async )?(?:def|class|function|func|fn|struct|interface|type|enum)\s")
_CALL_ALONE = re.compile(r"(?:[\w, ]+\s=\s)?(?:await )?(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*\(.*\);?")
_TELLS_TO_RUN = re.compile(
    r"(?:(?:first|then|now|next|just|simply),? )?(?:run|use|call|type|execute|enter|try):? (?=\S)", re.IGNORECASE
)
_RESERVED = frozenset(
    """
    and as async await begin bool break case catch char class const continue def default del delete dict do done elif else end
    enum except export extends false fi finally float for foreach from func function global goto if implements import in include
    int interface is lambda len let list loop match new nil none not null or package pass print println private protected public
    raise range require return self set static str string struct super switch then this throw throws true try tuple type typeof
    undefined until use val var void while with yield
    """.split()
)
MIN_NAME_LETTERS = 3
MIN_ALIKE = 0.75
"""Letters of a name that may be checked, and likeness from which one name is taken for another."""


def is_bare_syntax(line: str) -> bool:
    """Tell whether a line of code has nothing to check: no comment, and no name but reserved words, values and short ones."""
    names = re.findall(r"[A-Za-z_]\w*", _STRING.sub("", line))
    return not _OPENS_COMMENT.match(line) and not any(_is_name(n) for n in names) and not _STRING.search(line)


def _is_name(word: str) -> bool:
    return len(word) >= MIN_NAME_LETTERS and word.lower() not in _RESERVED


def code_names(text: str, *, is_line: bool) -> list[str]:
    """Return the names that a line of code, or a sentence that tells to run a call, takes from a library; none of prose.

    They are functions, parameters, options, imported modules and, in a line, keys of settings; not what its writer chooses.
    """
    opening = _TELLS_TO_RUN.match(text)
    code = text if is_line else text[opening.end() if opening else 0 :].strip().rstrip(".:!")
    if _OPENS_COMMENT.match(code) or _DEFINES.match(code) or not (is_line or _CALL_ALONE.fullmatch(code)):
        return []
    bare = _STRING.sub("''", code)
    found = [m["name"] for pattern in (_CALLED, _PASSED) for m in pattern.finditer(bare)] + _FLAG.findall(bare)
    found += [m["name"] for pattern in (_KEY, _IMPORT) if is_line and (m := pattern.match(_COMMENT.sub("", code)))]
    return list(dict.fromkeys(name for name in found if _is_name(name)))


def confirms_code(text: str, names: Sequence[str], sources: Sequence[str]) -> bool:
    """Tell whether sources have all names of a line, and give its keys and its words in place of values no other value."""
    source = "\n".join(sources)
    if not names or not all(_has(source, name.lstrip("-")) for name in names):
        return False
    for m in _PASSED.finditer(text):
        given = re.findall(rf"(?<!\w){re.escape(m['name'])}\s?=\s?([^\s,()]+)", source)
        if given and not m["value"][:1].isdigit() and m["value"] not in given:
            return False
    key = _KEY.match(text)
    has_value = key is not None and key["value"] is not None
    return not (has_value and key is not None and any(_has(s, key["name"]) and find_values(s) for s in sources))


def similar_name(name: str, source: str) -> str | None:
    """Return the name of a source for which another one may have been mistaken."""
    known = dict.fromkeys(w for w in re.findall(r"--?[A-Za-z][\w-]+|[A-Za-z_]\w+", source) if _is_name(w))
    return next(iter(get_close_matches(name, known, 1, MIN_ALIKE)), None)
