"""Code and pages use the terms of the field: no home-made words in strings, docstrings, comments and documentation."""

import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
BANNED = re.compile(
    r"\bbears? out\b|\bborne out\b|\bstands? beside\b|\bsa(?:ys|id) of\b|\banew\b|\bwho thinks\b|\bmend(?:s|ed|ing)?\b"
    r"|\btold apart\b|\bdoubtful\b",
    re.IGNORECASE,
)
"""Words that have a common term: supported, compared with, again, reasoner, revise, distinguished, unsupported."""
CLEAN = ("knowhalu/cli", "knowhalu/training", "scripts", "demo", "docs", "tests/cli", "tests/training", "tests/meta")
"""The rooms that are held to it. The message of a failure lists what is left in the others."""
EXCEPTIONS = {
    "docs/example_report.md", "tests/meta/test_words.py", "knowhalu/cli/check.py", "knowhalu/cli/show.py",
    "knowhalu/cli/serve.py", "tests/cli/test_revise.py",
}  # fmt: skip
"""A generated page, this list itself, and files that are still to be cleaned."""


def texts(path):
    """Yield the prose of a file with its line: tokens of strings and comments in code, lines outside tables in pages."""
    if path.suffix == ".md":
        lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        yield from ((number, line) for number, line in lines if not line.startswith(("|", "<!--")))
        return
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if tokenize.tok_name[token.type] in ("STRING", "COMMENT", "FSTRING_MIDDLE"):
            yield from enumerate(token.string.splitlines(), token.start[0])


def banned(folder):
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix in (".py", ".md") and name not in EXCEPTIONS:
            for line, text in texts(path):
                yield from (f"{name}:{line}: {match[0]}" for match in BANNED.finditer(text))


def test_clean_rooms_use_the_terms_of_the_field():
    rooms = [f.relative_to(ROOT).as_posix() for f in sorted((ROOT / "knowhalu").iterdir()) if f.is_dir()]
    others = [ROOT / room for room in (*rooms, "benchmarks", "tests") if room not in CLEAN]
    rest = [hit for folder in others for hit in banned(folder) if not hit.startswith(tuple(f"{room}/" for room in CLEAN))]
    found = [hit for room in CLEAN for hit in banned(ROOT / room)]
    assert not found, "\n".join(["", *found, "", f"Not yet held to it, {len(rest)}:", *rest])
