"""Prompt files: fixed instruction and demonstrations first, then the holes, longest-lived first.

A file is a TOML head between two `+++` lines, then the prompt with `$name` holes (`$$` is a dollar). Lines that begin
with `### Name:` open sections. The values of holes are data: they can open no section and begin no line. Words that
differ by task, form or query formulation are in the head, so that one file serves them all.
"""

import hashlib
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from string import Template

from pydantic import Field, ValidationError

from knowhalu.errors import PromptError
from knowhalu.prompts.shielding import INDENT, shield
from knowhalu.types import KnowledgeForm, Record, Task

FORMULATIONS = ("specific", "general", "combined")
VARIANT_VALUES = (tuple(map(str, Task)), tuple(map(str, KnowledgeForm)), FORMULATIONS)
"""The variants that a word of a prompt may depend on: the task, the form of knowledge, the formulation of queries."""
SECTION = re.compile(r"^### ([A-Z][\w -]*):", re.MULTILINE)
"""The heading of a section."""
_NUMBER = re.compile(r" \d+$")
_NAME = re.compile(r"[a-z0-9_]+(/[a-z0-9_]+)*")


class PromptText(str):
    """Prompt text made by `section`: its data is shielded already, so it fills a hole unchanged."""

    __slots__ = ()


def section(name: str, text: str = "") -> PromptText:
    """Make one section of data; without text it is left open."""
    heading = f"### {name}:"
    if not SECTION.fullmatch(heading):
        raise PromptError(f"{name!r} cannot name a section: letters, digits, spaces and hyphens, a capital first")
    return PromptText(f"{heading} {shield(text)}" if text else heading)


def find_turns(prompt: str, reply: Collection[str]) -> tuple[int, ...]:
    """Return where the turns of a chat begin in a prompt, first the user's: the model writes the sections named in `reply`.

    Data can open no section, so it cannot take a turn.
    """
    turns: list[int] = []
    for match in SECTION.finditer(prompt) if reply else ():
        is_reply = _NUMBER.sub("", match[1]) in reply
        if not turns:
            turns.append(match.start())
        if is_reply == bool(len(turns) % 2):
            turns.append(match.start())
    return tuple(turns)


def join_sections(sections: Iterable[PromptText]) -> PromptText:
    """Put sections one below the other."""
    return PromptText("\n".join(sections))


class _PromptHeader(Record):
    holes: tuple[str, ...]
    reply: tuple[str, ...] = ()
    stop: tuple[str, ...] = ()
    max_tokens: int = Field(256, ge=1)
    system: str = ""
    words: dict[str, dict[str, str]] = Field(default_factory=dict)


@dataclass(frozen=True)
class Prompt:
    """One prompt file: the settings of its head, and its body as `(fixed text, hole or word)` pieces."""

    name: str
    file: Path
    holes: tuple[str, ...]
    reply: tuple[str, ...]
    stop: tuple[str, ...]
    max_tokens: int
    system: str
    words: Mapping[str, Mapping[str, str]]
    pieces: tuple[tuple[str, str], ...]
    hash: str

    def settled(self, *variants: str, **values: PromptText) -> "Prompt":
        """Return the prompt with its words chosen by `variants` and some holes filled for all samples."""
        known = {k: v for variant in variants for k, v in self.words.get(variant, {}).items()} | values
        pieces: list[tuple[str, str]] = []
        text = ""
        for fixed, hole in self.pieces:
            text += fixed
            if hole in known:
                text += known[hole]
            else:
                pieces.append((text, hole))
                text = ""
        return replace(self, holes=tuple(h for h in self.holes if h not in values), words={}, pieces=tuple(pieces))

    @property
    def fixed(self) -> str:
        """Return the text before the first hole: the same for every sample, so its KV cache is computed once."""
        return self.pieces[0][0]

    def render(self, **values: str) -> str:
        """Fill the holes; raises PromptError where a value is missing or has no hole."""
        for kind, names in (("no value for", set(self.holes) - set(values)), ("no hole", set(values) - set(self.holes))):
            if names:
                raise PromptError(f"{self.file}: {kind} {', '.join(f'${n}' for n in sorted(names))}")
        text = ""
        for fixed, hole in self.pieces:
            text += fixed
            if hole and hole not in values:
                raise PromptError(f"{self.file}: the word ${hole} is not chosen yet; settle the prompt first")
            if hole:
                value = values[hole]
                at_line_start = not text or text.endswith("\n")
                text += value if isinstance(value, PromptText) else (INDENT if at_line_start else "") + shield(value)
        return text


def packaged_folder() -> Path:
    """Return the folder of the packaged prompts: in the wheel, or in the checkout."""
    here = Path(__file__).parent.parent
    installed = here / "_prompts"
    return installed if installed.is_dir() else here.parent / "prompts"


def prompt_folders(folder: Path | None) -> list[Path]:
    """Return the folders of prompts, a user's `folder` first; raises PromptError where that is no folder."""
    if folder is None:
        return [packaged_folder()]
    root = folder.expanduser()
    if not root.is_dir():
        raise PromptError(f"llm.prompts: there is no folder {root}; name the folder of your prompts, or leave the setting out")
    return [root, packaged_folder()]


@lru_cache(maxsize=256)
def load_prompt(name: str, folder: Path | None = None) -> Prompt:
    """Load a prompt such as "knowhalu/extract", from `folder` if it has it, else from the package.

    Raises PromptError naming the file and the fault.
    """
    if not _NAME.fullmatch(name):
        raise PromptError(f"{name!r} cannot name a prompt; write it as family/name, for example knowhalu/extract")
    tried = [root / f"{name}.txt" for root in prompt_folders(folder)]
    file = next((f for f in tried if f.is_file()), None)
    if file is None:
        raise PromptError(f"no prompt {name!r}: looked for {', '.join(map(str, tried))}")
    try:
        return parse_prompt(name, file, file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise PromptError(f"{file}: cannot read the prompt ({error})") from error


def prompt_names(folder: Path | None = None) -> list[str]:
    """List the prompts of the package and of a user's folder."""
    return sorted({f.relative_to(r).with_suffix("").as_posix() for r in prompt_folders(folder) for f in r.rglob("*.txt")})


def parse_prompt(name: str, file: Path, text: str) -> Prompt:
    """Read the text of a prompt file; raises PromptError."""
    parts = re.split(r"^\+\+\+[ \t]*\n", text, maxsplit=2, flags=re.MULTILINE)
    if len(parts) != 3 or parts[0].strip():
        raise PromptError(f"{file}: a prompt begins with a head of TOML between two lines of +++")
    head = _read_head(file, parts)
    body = parts[2].strip()
    before = text.count("\n", 0, len(text) - len(parts[2].lstrip())) + 1

    def place(at: int) -> str:
        return f"{file}, line {before + body.count(chr(10), 0, at)}"

    words = _check_words(file, head)
    holes = [(at, name) for at, name in _holes(body, place) if name not in words]
    _check_declared(file, head.holes, holes, place)
    if holes:
        _check_tail(body, holes, place)
    if head.reply and (opens := _heading_at_end(body)) and opens not in head.reply:
        raise PromptError(f"{file}: head, reply: the section {opens!r}, which the model goes on with, is missing")
    return Prompt(
        name, file, head.holes, head.reply, head.stop, head.max_tokens, head.system, head.words, _pieces(body),
        hashlib.sha256(text.encode()).hexdigest(),
    )  # fmt: skip


def _read_head(file: Path, parts: list[str]) -> _PromptHeader:
    above = "\n" * (parts[0].count("\n") + 1)  # so that lines are counted as in the file
    try:
        return _PromptHeader.model_validate(tomllib.loads(above + parts[1]))
    except tomllib.TOMLDecodeError as error:
        raise PromptError(f"{file}: the head is not TOML ({error})") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise PromptError(f"{file}: head, {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _check_words(file: Path, head: _PromptHeader) -> set[str]:
    """Return the names of all words; each must be defined for every value of its variants."""
    for variant in head.words:
        if not any(variant in axis for axis in VARIANT_VALUES):
            known = ", ".join(v for axis in VARIANT_VALUES for v in axis)
            raise PromptError(f"{file}: head, words.{variant}: words depend on one of {known}")
    names: set[str] = set()
    for axis in VARIANT_VALUES:
        words = {word for variant in axis for word in head.words.get(variant, {})}
        for word in sorted(words):
            missing = [v for v in axis if word not in head.words.get(v, {})]
            if missing or word in names or word in head.holes:
                what = f"is missing from {', '.join(f'[words.{v}]' for v in missing)}" if missing else "is defined twice"
                raise PromptError(f"{file}: head, the word ${word} {what}")
        names |= words
    return names


def _holes(body: str, place: Callable[[int], str]) -> Iterator[tuple[int, str]]:
    for match in Template.pattern.finditer(body):
        if match["invalid"] is not None:
            raise PromptError(f"{place(match.start())}: a lone $ (write $$ for a dollar, $name for a hole)")
        if name := match["named"] or match["braced"]:
            yield match.start(), name


def _check_declared(file: Path, declared: tuple[str, ...], holes: list[tuple[int, str]], place: Callable[[int], str]) -> None:
    names = tuple(name for _, name in holes)
    for i, (at, name) in enumerate(holes):
        if name not in declared:
            raise PromptError(f"{place(at)}: ${name} is not declared in the head (holes = {list(declared)})")
        if name in names[:i]:
            why = "a hole has one place, so that the text before it stays cached"
            raise PromptError(f"{place(at)}: ${name} occurs twice; {why}")
    for name in declared:
        if name not in names:
            raise PromptError(f"{file}: the head declares ${name}, but the body has no such hole")
    if names != declared:
        raise PromptError(f"{file}: ${names[0]} ... are in another order than declared: {list(names)}, not {list(declared)}")


def _check_tail(body: str, holes: list[tuple[int, str]], place: Callable[[int], str]) -> None:
    """Refuse a fixed section after the first hole, as it would be computed again for every sample."""
    first, name = holes[0]
    for match, following in pairwise(SECTION.finditer(body)):
        start, end = match.start(), following.start()
        if start > first and not any(start < at < end for at, _ in holes):
            raise PromptError(f"{place(start)}: ${name} is misplaced: the fixed section {match[1]!r} comes after it")


def _heading_at_end(body: str) -> str:
    """Return the name of the section that a prompt leaves open, without its number; "" where it leaves none open."""
    last = next((match for match in SECTION.finditer(body) if match.end() == len(body)), None)
    return _NUMBER.sub("", last[1]) if last else ""


def _pieces(body: str) -> tuple[tuple[str, str], ...]:
    pieces: list[tuple[str, str]] = []
    fixed, at = "", 0
    for match in Template.pattern.finditer(body):
        fixed, at = fixed + body[at : match.start()], match.end()
        if match["escaped"] is not None:
            fixed += "$"
        else:
            pieces.append((fixed, match["named"] or match["braced"]))
            fixed = ""
    return (*pieces, (fixed + body[at:], ""))
