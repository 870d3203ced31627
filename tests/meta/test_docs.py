"""Documentation pages: links resolve, the site lists every page, and the README stays short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
WRITTEN = [page for page in DOCS if page.name != "example_report.md"]
PAGES = [
    *WRITTEN,
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "indexes/README.md")),
]


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def _links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", page.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(page):
    broken = []
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if "://" not in link and (not target.exists() or anchor and anchor not in _anchors(target)):
            broken.append(link)
    assert not broken


def test_the_site_lists_every_page_once():
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.relative_to(ROOT / "docs").as_posix() for page in DOCS]


def test_the_readme_is_at_most_eight_kilobytes():
    assert len((ROOT / "README.md").read_bytes()) <= 8192
