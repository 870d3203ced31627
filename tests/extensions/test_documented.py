"""The page on extensions shows the example package as it is, and its examples stay small."""

from pathlib import Path

import pytest

from tests.extensions.conftest import PACKAGE

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
FILES = sorted(f for f in PACKAGE.rglob("*") if f.suffix in (".py", ".toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.name)
def test_page_includes_every_file_verbatim(file):
    language = {".py": "python", ".toml": "toml"}[file.suffix]
    name = file.relative_to(PACKAGE).as_posix()
    assert f"`{name}`:\n\n```{language}\n{file.read_text(encoding='utf-8').rstrip()}\n```" in PAGE


def test_extensions_have_at_most_20_lines():
    sizes = {f.name: len(f.read_text(encoding="utf-8").splitlines()) for f in FILES if f.suffix == ".py"}
    assert max(sizes.values()) <= 20, sizes
