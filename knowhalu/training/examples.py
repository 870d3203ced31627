"""Training examples: how a row becomes (premise, question, claim, target).

What an example is made of depends only on the row, the row before it and a random number, so a run can be taken up anywhere.
"""

import random
import re
from typing import NamedTuple

from knowhalu.text import content_words, sentences, windows
from knowhalu.training.edits import MONTHS, NAME, NUMBER, details_in, edit
from knowhalu.training.rephrase import rephrase, tidy
from knowhalu.training.rows import Row, text_of

SUPPORTED, CONTRADICTED, NEUTRAL, UNSUPPORTED = range(4)
"""Targets; UNSUPPORTED means contradicted or neutral, the data does not say which."""
_TARGET = {
    "supported": SUPPORTED,
    "contradicted": CONTRADICTED,
    "neutral": NEUTRAL,
    "not_in_source": NEUTRAL,
    "unsupported": UNSUPPORTED,
}


class Example(NamedTuple):
    """One training example; `question` is empty for a plain statement."""

    premise: str
    question: str
    claim: str
    target: int


def near(document: str, claim: str, rng: random.Random) -> str:
    """Cut from a document what a retriever would find for the claim: the best window, or its best two to four sentences."""
    wanted = set(content_words(claim))
    whole = rng.random() < 0.65
    pieces = windows(document, 150, 50) if whole else sentences(document)
    ranked = sorted(pieces, key=lambda p: -len(wanted.intersection(content_words(p.text))))
    kept = ranked[:1] if whole else sorted(ranked[: rng.randint(2, 4)])
    return " ".join(p.text for p in kept) or document


def labelled(row: Row, other: Row, rng: random.Random) -> Example:
    """Take a labelled (source, claim) row as it is, long sources cut near the claim."""
    label = row.get("label3") or row["label"]
    target = _TARGET.get(label, UNSUPPORTED if row["label"] == "unsupported" else SUPPORTED)
    source = row["source"] if len(row["source"]) < 900 else near(row["source"], row["claim"], rng)
    return Example(source, "", row["claim"], target)


def fever(row: Row, other: Row, rng: random.Random) -> Example:
    """Take an encyclopedic claim, or make the neutral, the edited and the yes-or-no rows that such sets lack."""
    plain = labelled(row, other, rng)
    roll = rng.random()
    if roll < 0.2:
        wanted = set(content_words(row["claim"]))
        shared = wanted.intersection(content_words(other["source"]))
        if 2 * len(shared) < len(wanted):
            return Example(other["source"], "", row["claim"], NEUTRAL)
    if roll < 0.45 and plain.target == SUPPORTED:
        return edited(plain, details_in(other["source"] + " " + row["source"]), rng)
    if roll > 0.92 and plain.target in (SUPPORTED, CONTRADICTED):
        yes = rng.random() < 0.5
        question = f"Is it true that {plain.claim.rstrip('.')}?"
        return Example(plain.premise, question, "Yes" if yes else "No", plain.target if yes else 1 - plain.target)
    return plain


def edited(example: Example, names: list[str], rng: random.Random) -> Example:
    """Make a supported example false by one edit, in the claim or in the premise, so that neither alone tells."""
    if rng.random() < 0.5 or example.question:
        changed = edit(example.claim, rng, names)
        return example if changed is None else example._replace(claim=changed.text, target=_edited_target(changed.kind))
    wanted = set(content_words(example.claim))
    best = max(sentences(example.premise), key=lambda s: len(wanted.intersection(content_words(s.text))), default=None)
    changed = None if best is None else edit(best.text, rng, names)
    if best is None or changed is None or not _touches(best.text, changed.text, wanted):
        return example
    premise = example.premise[: best.start] + changed.text + example.premise[best.end :]
    return example._replace(premise=premise, target=_edited_target(changed.kind))


def _edited_target(kind: str) -> int:
    return UNSUPPORTED if kind in ("name", "roles") else CONTRADICTED


def _touches(before: str, after: str, wanted: set[str]) -> bool:
    lost = set(content_words(before)) - set(content_words(after))
    return bool(lost & wanted) or len(after) - len(before) in (4, -4)


def extracted(row: Row, other: Row, rng: random.Random) -> Example:
    """Make a claim of a document's own sentences: said otherwise, made false by an edit, or missing from the premise."""
    document = tidy(text_of(row))
    views = windows(document, 140, 40)
    view = rng.choice(views[:6]).text if views else document
    pieces = [s for s in sentences(view) if 5 <= len(s.text.split()) <= 40]
    if not pieces:
        return Example(view, "", view[:120], SUPPORTED)
    first = rng.randrange(len(pieces))
    chosen, roll = [pieces[first]], rng.random()
    if roll < 0.15:
        chosen = pieces[first : first + 2]
    elif roll < 0.3:
        chosen = rng.sample(pieces, min(2, len(pieces)))
    claim = " ".join(rephrase(p.text, rng) if rng.random() < 0.8 else p.text for p in chosen)
    roll = rng.random()
    if roll < 0.25:
        kept = [p.text for p in sentences(view) if p not in chosen]
        return Example(" ".join(kept) or tidy(text_of(other))[:600], "", claim, NEUTRAL)
    example = Example(view, "", claim, SUPPORTED)
    if roll < 0.45 and len(chosen) == 1:
        example = example._replace(premise=" ".join(p.text for p in pieces[max(0, first - 1) : first + 2]))
    return edited(example, details_in(document), rng) if rng.random() < 0.5 else example


def summary(row: Row, other: Row, rng: random.Random) -> Example:
    """Take one side of a pair of summaries, whole or its telling sentence."""
    right, wrong = ([tidy(s) for s in row[k].split("</t>") if tidy(s)] for k in ("right_summary", "hallucinated_summary"))
    supported = rng.random() < 0.5
    side, other_side = (right, wrong) if supported else (wrong, right)
    telling = [s for s in side if s not in other_side]
    claim = rng.choice(telling) if telling and rng.random() < 0.6 else " ".join(side)
    if supported and rng.random() < 0.3:
        claim = rephrase(claim, rng)
    return Example(near(tidy(row["document"]), claim, rng), "", claim, SUPPORTED if supported else UNSUPPORTED)


_DETAIL = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b|{NUMBER.pattern}|{NAME.pattern}")


def _kind(detail: str) -> str:
    if detail in MONTHS:
        return "which month"
    if not detail[0].isdigit():
        return "who or what"
    return "which year" if re.fullmatch(r"1\d{3}|20\d\d", detail) else "how many"


def asked(row: Row, other: Row, rng: random.Random) -> Example:
    """Ask for a name or number of a document; the answer is it, another of its kind, or of another kind."""
    document = tidy(text_of(row))
    places = [(s, m) for s in sentences(document)[:8] for m in _DETAIL.finditer(s.text) if m.start() > 0]
    if not places:
        return extracted(row, other, rng)
    sentence, match = rng.choice(places)
    right, kind = match.group(), _kind(match.group())
    before = sentence.text[: match.start()]
    question = f"{before}{kind}{sentence.text[match.end() :].rstrip('.')}?"
    others = sorted({m.group() for _, m in places if m.group() not in right and right not in m.group()})
    alike = [d for d in others if _kind(d) == kind]
    unlike = [d for d in others if _kind(d) != kind]
    roll = rng.random()
    if roll < 0.4 and alike:
        return Example(document, question, rng.choice(alike), UNSUPPORTED if kind == "who or what" else CONTRADICTED)
    if roll < 0.5 and unlike:
        return Example(document, question, rng.choice(unlike), NEUTRAL)
    if roll < 0.6 and len(sentences(document)) > 1:
        rest = " ".join(s.text for s in sentences(document) if right not in s.text)
        return Example(rest or tidy(text_of(other)), question, right, NEUTRAL)
    return Example(document, question, sentence.text if rng.random() < 0.15 else right, SUPPORTED)


def _quoted(document: str, support: list[str], claim: str, rng: random.Random) -> str:
    """Return the sentences that hold the quotes, sometimes with neighbours, or what a retriever would find."""
    if not support or rng.random() < 0.4:
        return near(document, claim, rng)
    pieces = sentences(document)
    keep = {i for i, p in enumerate(pieces) if any(q in p.text or p.text in q for q in support)}
    if not keep:
        return near(document, claim, rng)
    if rng.random() < 0.5:
        keep |= {i + d for i in keep for d in (-1, 1) if 0 <= i + d < len(pieces)}
    return " ".join(pieces[i].text for i in sorted(keep))


def written_claim(row: Row, other: Row, rng: random.Random) -> Example:
    """Take one claim of a written document."""
    claim = rng.choice(row["claims"])
    target = _TARGET[claim["label"]]
    premise = _quoted(row["document"], claim["support"], claim["text"], rng)
    if target == SUPPORTED and rng.random() < 0.15:
        return Example(near(other["document"], claim["text"], rng), "", claim["text"], NEUTRAL)
    if target == SUPPORTED and rng.random() < 0.3:
        return edited(Example(premise, "", claim["text"], target), details_in(row["document"]), rng)
    return Example(premise, "", claim["text"], target)


def written_answer(row: Row, other: Row, rng: random.Random) -> Example:
    """Take one answer to a written question; off-target and refused answers are neutral towards the question."""
    answer = rng.choice([a for a in row["answers"] if a["label"] != "refusal"])
    whole = row["knowledge"]
    if len(whole) >= 1200 and rng.random() >= 0.2:
        whole = near(whole, answer["text"], rng)
    target = {"correct": SUPPORTED, "fabricated": CONTRADICTED, "off_target": NEUTRAL}[answer["label"]]
    if target == SUPPORTED and rng.random() < 0.12:
        return Example(near(other["knowledge"], answer["text"], rng), row["question"], answer["text"], NEUTRAL)
    if answer["label"] != "off_target" and len(answer["text"].split()) > 6 and rng.random() < 0.4:
        return Example(whole, "", answer["text"], target)
    return Example(whole, row["question"], answer["text"], target)
