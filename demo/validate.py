#!/usr/bin/env python3
"""Check corpus.jsonl and items.jsonl in this folder and print counts."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from statistics import mean
from typing import Any

HERE = Path(__file__).resolve().parent
MINIMUM = {
    "multi_hop": 12,
    "single_hop": 10,
    "off_target": 10,
    "refusal": 5,
    "unanswerable": 5,
    "given_knowledge": 6,
    "summary": 14,
    "rag": 6,
    "claim": 8,
}
UNBALANCED = {"off_target", "refusal", "unanswerable"}
ARTICLES = {"multi_hop": 2, "single_hop": 1, "claim": 1}
"""Groups whose items the corpus decides, and how many articles that takes at least."""
UNDECIDABLE = {"unanswerable"}
"""Groups whose items nothing in the corpus decides; the items of the other groups are decided by what they hold themselves."""
REQUIRED = {"id", "response", "label", "kind", "meta"}
OPTIONAL = {"question", "documents", "knowledge"}
faults: list[str] = []


def check(ok: bool, message: str) -> None:
    if not ok:
        faults.append(message)


def words(text: str) -> int:
    return len(text.split())


def load(name: str, required: set[str], optional: set[str]) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]
    for number, row in enumerate(rows, 1):
        if not required <= set(row) <= required | optional or not all(row.get("meta", {"-": 1}).values()):
            sys.exit(f"FAULT: {name}, line {number}: a field is missing, empty or unknown")
    return rows


def unique(texts: Iterable[str], what: str) -> None:
    for text, count in Counter(texts).items():
        check(count == 1, f"{what} occurs {count} times: {text[:60]!r}")


def check_article(row: dict[str, Any]) -> None:
    sentences = len(re.findall(r"[.!?](?=\s|$)", row["text"]))
    check(bool(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", row["id"])), f"{row['id']}: not a slug")
    check(60 <= words(row["text"]) <= 160, f"{row['id']}: {words(row['text'])} words")
    check(4 <= sentences <= 8, f"{row['id']}: {sentences} sentences")


def check_item(row: dict[str, Any]) -> None:
    name, group, docs = row["id"], row["meta"].get("group"), row.get("documents", [])
    prefix = {"summary": "sum", "rag": "rag", "claim": "claim"}.get(group, "qa")
    fits = {"group", "note"} <= set(row["meta"]) <= {"group", "note", "articles", "undecidable"} and group in MINIMUM
    check(fits and bool(re.fullmatch(prefix + r"-\d{3}", name)), f"{name}: meta, or id does not fit {group}")
    check(("question" in row) == (prefix in ("qa", "rag")), f"{name}: question missing or unexpected")
    check(("knowledge" in row) == (group == "given_knowledge"), f"{name}: knowledge")
    check(len(docs) in {"sum": (1,), "rag": (2, 3)}.get(prefix, (0,)), f"{name}: {len(docs)} documents")
    kind = None if row["label"] == "faithful" else "off_target" if group == "off_target" else "factual"
    check(row["label"] in ("faithful", "hallucinated") and row["kind"] == kind, f"{name}: label or kind")
    fits = 30 <= words(row["response"]) <= 70 and all(120 <= words(d["text"]) <= 300 for d in docs)
    check(prefix != "sum" or fits, f"{name}: length of the summary or its document")


def check_decision(row: dict[str, Any], articles: dict[str, dict[str, Any]]) -> None:
    """Check the marks that say what decides an item: articles of the corpus, the item itself, or nothing."""
    name, group, cited = row["id"], row["meta"].get("group"), row["meta"].get("articles", [])
    check((row["meta"].get("undecidable") is True) == (group in UNDECIDABLE), f"{name}: undecidable does not fit {group}")
    check(len(cited) >= ARTICLES.get(group, 0), f"{name}: cites {len(cited)} articles")
    check(bool(cited) <= (group in ARTICLES), f"{name}: cites articles, but {group} needs none")
    said = long_words(f"{row.get('question', '')} {row['response']} {row['meta']['note']}")
    for article in cited:
        known = article in articles
        check(known and bool(said & long_words(articles[article]["title"])), f"{name}: {article} is unknown or off its topic")
    if group in UNDECIDABLE:
        # a subject that no article names cannot be decided by any of them
        seen = long_words(" ".join(f"{a['title']} {a['text']}" for a in articles.values()))
        check(bool(long_words(row.get("question", "")) - seen), f"{name}: the corpus has every word of the question")
        check("not in the corpus" in row["meta"]["note"].lower(), f"{name}: the note does not say that it is not in the corpus")


def long_words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{3,}", text.lower()))


def main() -> None:
    corpus, items = load("corpus.jsonl", {"id", "title", "text"}, set()), load("items.jsonl", REQUIRED, OPTIONAL)
    check(len(corpus) >= 90, f"only {len(corpus)} articles")
    for rows, checker in ((corpus, check_article), (items, check_item)):
        unique((row["id"] for row in rows), "id")
        for row in rows:
            checker(row)
    for row in items:
        check_decision(row, {article["id"]: article for article in corpus})
    unique((row[field] for row in corpus for field in ("title", "text")), "title or text")
    unique((f"{row.get('question', '')} {row['response']}" for row in items), "item")
    for group, minimum in MINIMUM.items():
        members = [row for row in items if row["meta"].get("group") == group]
        sizes = {
            label: [words(row["response"]) for row in members if row["label"] == label] for label in ("faithful", "hallucinated")
        }
        print(f"{group:16}", *(f"{label} {len(s)} (mean {mean(s or [0]):.1f} words)" for label, s in sizes.items()))
        check(sum(map(len, sizes.values())) >= minimum, f"{group}: fewer than {minimum} items")
        if group not in UNBALANCED:
            low, high = sorted(mean(s or [0]) for s in sizes.values())
            check(high <= 1.2 * low, f"{group}: mean lengths {low:.1f} and {high:.1f} words")
    print(f"{len(corpus)} articles, {len(items)} items:", dict(Counter(row["label"] for row in items)))
    undecidable = sum(row["meta"].get("undecidable", False) for row in items)
    print(f"{len(items) - undecidable} items can be decided, {undecidable} cannot")
    if faults:
        sys.exit("\n".join(f"FAULT: {fault}" for fault in faults))


if __name__ == "__main__":
    main()
