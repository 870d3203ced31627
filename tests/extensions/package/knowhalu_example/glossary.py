"""A retriever: looks terms up in a glossary, a JSON file of terms and definitions."""

import json
from collections.abc import Sequence
from pathlib import Path

from knowhalu.extend import Passage, Record, RetrieverBackend, check_k


class Glossary(RetrieverBackend):
    name = "glossary"

    class Options(Record):
        file: Path = Path("glossary.json")

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        check_k(k)
        terms = json.loads(self.options.file.read_text(encoding="utf-8"))
        matches = [[term for term in terms if term.casefold() in query.casefold()][:k] for query in queries]
        return [[Passage(id=t, document=t, text=terms[t], end=len(terms[t]), score=1.0) for t in found] for found in matches]
