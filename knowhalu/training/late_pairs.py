"""What the token encoder learns from: questions with their right passages, and wrong ones that share their words."""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from knowhalu.retrieval.lexical import LexicalIndex
from knowhalu.retrieval.lexical_build import build_lexical
from knowhalu.retrieval.part import Part
from knowhalu.retrieval.passages import PassageList
from knowhalu.training.rows import read_rows
from knowhalu.types import Passage


class Question(NamedTuple):
    """A query, the ids of passages that answer it and of some that do not, and all passages by id."""

    text: str
    right: list[str]
    wrong: list[str]
    passages: dict[str, str]


def read_corpus(path: Path) -> PassageList:
    """Read passages with `doc_id`, `text` and maybe `title`."""
    return PassageList(Passage(id=str(r["doc_id"]), text=r["text"], title=r.get("title") or "") for r in read_rows(path))


def mined(rows: Iterable[dict[str, Any]], corpus: PassageList, *, depth: int = 20) -> list[Question]:
    """Give every query the passages that BM25 finds for it and that are not right, the best `depth` of them."""
    known = {p.id: f"{p.title}. {p.text}" if p.title else p.text for p in corpus}
    found = []
    with TemporaryDirectory() as folder:
        build_lexical(corpus, Path(folder) / "lexical", "")
        index = LexicalIndex([Part(Path(folder) / "lexical", "lexical")], corpus)
        for row in rows:
            right = [str(name) for name in row["positives"] if str(name) in known]
            if right:
                wrong = [corpus[i].id for i, _ in index.rank(row["query"], depth) if corpus[i].id not in right]
                found.append(Question(row["query"], right, wrong, known))
    return found
