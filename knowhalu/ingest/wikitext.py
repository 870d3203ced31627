"""Convert wikitext to text: drop templates, tables and references; keep words, the text of links, and headings."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from knowhalu.errors import MissingExtra
from knowhalu.ingest.records import Heading

if TYPE_CHECKING:
    from mwparserfromhell.nodes import Node, Tag, Template, Wikilink
    from mwparserfromhell.wikicode import Wikicode

PositionalArguments = Sequence[str]
NamedArguments = Mapping[str, str]

_BEGINS_WITH_NUMBER = re.compile(r"[-+−±~]?\s*[\d.]")  # noqa: RUF001
_BEGINS_WITH_EXPONENT = re.compile(r"[-+−–]?\s*(?:\d|[kmnx]\b)")  # noqa: RUF001
_THOUSANDS = re.compile(r"e(\d+)(?=\D)")
_MIXED_FRACTION_SIGN = re.compile(r"(?<=\d)\+(?=\d)")
CONVERT_JOINERS = {
    **{word: f" {word} " for word in ("to", "and", "or", "by", "to about", ", and", ", or")},
    **{"-": "–", "–": "–", "to(-)": " to ", "and(-)": " and ", ",": ", "},  # noqa: RUF001
    **dict.fromkeys(("x", "xx", "×", "*"), " × "),  # noqa: RUF001
    **dict.fromkeys(("±", "+/-"), " ± "),
}
"""Joiners between the values of a conversion, and their text."""


def is_exponent(text: str) -> bool:
    """Return whether a superscript after a number is an exponent, not the letters of an ordinal."""
    return bool(_BEGINS_WITH_EXPONENT.match(text))


def _convert(arguments: PositionalArguments, named: NamedArguments) -> str:
    """Render a measure up to its last unit, without the units that it is converted to."""
    arguments = [*arguments, ""]
    if not _BEGINS_WITH_NUMBER.match(arguments[0]):
        return ""
    text, at = arguments[0], 1
    while arguments[at] in CONVERT_JOINERS and _BEGINS_WITH_NUMBER.match(arguments[at + 1]):
        text, at = text + CONVERT_JOINERS[arguments[at]] + arguments[at + 1], at + 2
    text, at = f"{text} {_unit(arguments[at])}", at + 1
    while (
        at + 1 < len(arguments)
        and _BEGINS_WITH_NUMBER.match(arguments[at])
        and arguments[at + 1]
        and not _BEGINS_WITH_NUMBER.match(arguments[at + 1])
    ):
        text, at = f"{text} {arguments[at]} {_unit(arguments[at + 1])}", at + 2
    return _MIXED_FRACTION_SIGN.sub(" ", text).strip()


def _unit(unit: str) -> str:
    return _THOUSANDS.sub(r"× 10^\1 ", unit) if _THOUSANDS.match(unit) else unit  # noqa: RUF001


def _val(arguments: PositionalArguments, named: NamedArguments) -> str:
    """Render a value with its uncertainty, power of ten and unit."""
    value, *errors = [text for text in arguments if text] or [""]
    if len(errors) == 1:
        value += f" ± {errors[0]}"
    elif errors:
        value += f" (+{errors[0].lstrip('+')} −{errors[1].lstrip('-−')})"  # noqa: RUF001
    if named.get("e"):
        value += f" × 10^{named['e']}"  # noqa: RUF001
    unit = named.get("u") or named.get("ul") or ""
    per = named.get("up") or named.get("upl") or ""
    return f"{value} {unit}{'/' if per else ''}{per}".strip()


def _ship(arguments: PositionalArguments, named: NamedArguments, *, prefix: str = "") -> str:
    before, name, mark, *_ = [*([prefix] if prefix else []), *arguments, "", ""]
    return f"{before} {name} {f'({mark})' if mark else ''}".strip()


def _fraction(arguments: PositionalArguments, named: NamedArguments) -> str:
    whole, (above, below) = arguments[:-2], (["1", *arguments])[-2:]
    return f"{''.join(whole)} {above}/{below}".strip()


TEMPLATE_RENDERERS: dict[str, Callable[[PositionalArguments, NamedArguments], str]] = {
    **dict.fromkeys(("convert", "cvt"), _convert),
    **dict.fromkeys(("ill", "interlanguage_link"), lambda arguments, named: named.get("lt") or arguments[0]),
    **dict.fromkeys(("frac", "fraction", "sfrac"), _fraction),
    **dict.fromkeys(("circa", "c."), lambda years, named: " – ".join(f"c. {year}" for year in years if year)),  # noqa: RUF001
    **{name: partial(_ship, prefix=name.upper()) for name in "uss hms hmas hmcs hmnzs usns uscgc rms ss mv sms".split()},
    **{
        "val": _val,
        "ship": _ship,
        "as_of": lambda arguments, named: f"as of {arguments[0]}",
        "e": lambda arguments, named: f" × 10^{arguments[0]}",
    },  # noqa: RUF001
}
"""Renderers of templates with at least one argument, by name."""


DROPPED_TAGS = frozenset(
    "ref references table gallery math chem timeline imagemap score hiero templatestyles style script graph mapframe maplink "
    "section indicator inputbox categorytree syntaxhighlight source noinclude".split()
)
"""Tags that are dropped with their content."""
BLOCK_TAGS = frozenset("p div blockquote center br hr li dt dd poem pre ul ol dl".split())
REFERENCE_SECTIONS = frozenset(
    name.strip()
    for name in """references, external links, see also, further reading, notes, footnotes, citations, works cited, sources,
    notes and references, references and notes, explanatory notes, einzelnachweise, weblinks, literatur, siehe auch,
    notes et références, références, liens externes, voir aussi, referencias, enlaces externos, véase también,
    note, collegamenti esterni, voci correlate""".split(",")
)
"""Sections that are not text of the article."""
DISAMBIGUATION_TEMPLATES = frozenset(
    "disambiguation disambig disamb dab hndis geodis numberdis roaddis schooldis letter-numbercombdisambig begriffsklärung "
    "homonymie desambiguación disambigua".split()
)
"""Templates that mark a disambiguation page."""
LAST_ARGUMENT_TEMPLATES = frozenset("lang langx transliteration transl nowrap nobr small big nihongo3".split())
FIRST_ARGUMENT_TEMPLATES = frozenset("abbr formatnum nihongo lang-la visible_anchor vanchor sic okina keypress key sub".split())
SIGN_TEMPLATES = {
    **dict.fromkeys(("snd", "spnd", "spaced_ndash"), " – "),
    **dict.fromkeys(("ndash", "–"), "–"),
    **dict.fromkeys(("mdash", "—"), "—"),
    **dict.fromkeys(("·", "dot", "bullet"), " · "),
    **dict.fromkeys(("nbsp", "spaces"), " "),
    **{"'": "'", "'s": "'s", "!": "|", "=": "=", "br": "\n"},
}
"""Templates within sentences, replaced by their last argument, their first argument, or a character."""
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[a-z-]{2,})?:\S")
_MAGIC_WORD = re.compile(r"__[A-Z]{3,}__")
_EMPHASIS_QUOTES = re.compile(r"'{2,}")
_EMPTY_BRACKETS = re.compile(r"\( ?(?:[,;:–/] ?)*\)|\[ ?\]")
_LEADING_PUNCTUATION = re.compile(r"\( ?[,;:] ?(?:[,;:] ?)*")
_TRAILING_PUNCTUATION = re.compile(r" ?[,;:] ?\)")
_SPACE = re.compile(r"[^\S\n]+")
_LEFTOVER_MARKUP = re.compile(r"^(?:\{\||\||\}\}|\{\{|__).*$", re.MULTILINE)
_SPACE_BEFORE_PUNCTUATION = re.compile(r" (?=[,.](?:\s|$))")


class ArticleText(NamedTuple):
    """The text of an article, its headings, and whether it is a disambiguation page."""

    text: str
    headings: tuple[Heading, ...]
    ambiguous: bool


def make_wikitext_parser() -> Any:
    """Return the wikitext parser; raises MissingExtra where it is not installed."""
    try:
        import mwparserfromhell
    except ImportError as error:
        raise MissingExtra("mwparserfromhell", "wiki") from error
    return mwparserfromhell


def read_wikitext(source: str, unlinked: Iterable[str]) -> ArticleText:
    """Extract the text of wikitext; links into the `unlinked` namespaces are dropped."""
    code = make_wikitext_parser().parse(source, skip_style_tags=True)
    writer = _WikitextWriter(frozenset(unlinked))
    sections: list[tuple[tuple[str, ...], str]] = []
    path: list[tuple[int, str]] = []
    for node in code.nodes:
        if type(node).__name__ == "Heading":
            sections.append((tuple(t for _, t in path), writer.take()))
            writer.write(node.title.nodes)
            name = writer.take().replace("\n", " ")
            path = [*((n, t) for n, t in path if n < node.level), (node.level, name)] if name else path
        else:
            writer.write([node])
    sections.append((tuple(t for _, t in path), writer.take()))
    text, headings = _join_sections([(p, t) for p, t in sections if not any(name.lower() in REFERENCE_SECTIONS for name in p)])
    return ArticleText(text, headings, writer.ambiguous or "__DISAMBIG__" in source)


def _join_sections(sections: Sequence[tuple[tuple[str, ...], str]]) -> tuple[str, tuple[Heading, ...]]:
    """Concatenate sections; keep a heading where it or a subsection has text."""
    full = {path[:n] for path, text in sections if text for n in range(len(path) + 1)}
    parts, headings, at = [], [], 0
    for path, text in sections:
        if path not in full:
            continue
        if path:
            headings.append(Heading(at, at + len(path[-1]), path))
            text = f"{path[-1]}\n{text}"
        if text.strip():
            parts.append(text.rstrip("\n") + "\n\n")
            at += len(parts[-1])
    return "".join(parts).rstrip("\n"), tuple(headings)


class _WikitextWriter:
    """Converts nodes to text."""

    def __init__(self, unlinked: frozenset[str]) -> None:
        self._unlinked, self._parts = unlinked, list[str]()
        self.ambiguous = False

    def take(self) -> str:
        """Return the text written since the last call, cleaned."""
        text = "".join(self._parts)
        self._parts.clear()
        return remove_leftover_markup(text)

    def write(self, nodes: Iterable["Node"]) -> None:
        """Write the text of nodes."""
        for node in nodes:
            kind: Any = getattr(self, "_" + type(node).__name__.lower(), None)
            if kind is not None:  # comments and arguments have none
                kind(node)

    def _text(self, node: "Node") -> None:
        self._parts.append(str(node))

    def _htmlentity(self, node: Any) -> None:
        self._parts.append(node.normalize())

    def _heading(self, node: Any) -> None:
        self._parts.append("\n")
        self.write(node.title.nodes)
        self._parts.append("\n")

    def _externallink(self, node: Any) -> None:
        if node.title:
            self.write(node.title.nodes)

    def _wikilink(self, node: "Wikilink") -> None:
        title = str(node.title).strip()
        space, colon, _ = title.partition(":")
        if colon and (space.strip().lower() in self._unlinked or (node.text is None and _LANGUAGE.match(title))):
            return
        if node.text is not None:
            self.write(node.text.nodes)
        else:
            self._parts.append(title.removeprefix(":"))

    def _tag(self, node: "Tag") -> None:
        name = str(node.tag).strip().lower()
        if name in DROPPED_TAGS:
            return
        if name in BLOCK_TAGS and not node.wiki_markup:
            self._parts.append("\n")
        if node.contents and name == "sup":
            self._superscript(node.contents)
        elif node.contents:
            self.write(node.contents.nodes)
        if name in BLOCK_TAGS and not node.wiki_markup:
            self._parts.append("\n")

    def _text_of(self, code: "Wikicode") -> str:
        """Return the text of markup without writing it."""
        before, self._parts = self._parts, []
        self.write(code.nodes)
        before, self._parts = self._parts, before
        return "".join(before).strip()

    def _superscript(self, code: "Wikicode") -> None:
        text = self._text_of(code)
        self._parts.append(f"^{text}" if is_exponent(text) and self._ends_in_number() else text)

    def _ends_in_number(self) -> bool:
        return next((part for part in reversed(self._parts) if part), "")[-1:].isdecimal()

    def _template(self, node: "Template") -> None:
        name = str(node.name).strip().lower().replace(" ", "_")
        arguments = [p.value for p in node.params if not p.showkey]
        self.ambiguous = self.ambiguous or name in DISAMBIGUATION_TEMPLATES
        if name in SIGN_TEMPLATES:
            self._parts.append(SIGN_TEMPLATES[name])
        elif arguments and (name in LAST_ARGUMENT_TEMPLATES or name.startswith("lang-")):
            self.write(arguments[-1].nodes)
        elif arguments and name in FIRST_ARGUMENT_TEMPLATES:
            self.write(arguments[0].nodes)
        elif arguments and name == "sup":
            self._superscript(arguments[0])
        elif name.startswith("formatnum:"):
            self._parts.append(self._text_of(node.name).partition(":")[2])
        elif arguments and name in TEMPLATE_RENDERERS:
            named = {str(p.name).strip(): self._text_of(p.value) for p in node.params if p.showkey}
            text = TEMPLATE_RENDERERS[name]([self._text_of(code) for code in arguments], named)
            # two adjacent numbers would read as one
            self._parts.append(f" {text}" if text[:1].isdecimal() and self._ends_in_number() else text)


def remove_leftover_markup(text: str) -> str:
    """Remove leftover markup: quotes for bold and italics, magic words, empty brackets, spaces."""
    text = _SPACE.sub(" ", _LEFTOVER_MARKUP.sub("", _MAGIC_WORD.sub("", _EMPHASIS_QUOTES.sub("", text))))
    for _ in range(3):  # brackets within brackets
        text = _EMPTY_BRACKETS.sub("", text)
    text = _TRAILING_PUNCTUATION.sub(")", _LEADING_PUNCTUATION.sub("(", text))
    text = "\n".join(line.strip() for line in _SPACE.sub(" ", text).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", _SPACE_BEFORE_PUNCTUATION.sub("", text)).strip()
