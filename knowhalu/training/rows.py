"""Training rows: from labelled files to (premise, question, claim, target), drawn by recipe, the same for the same seed.

Files are read as streams, again and again, through a shuffle buffer; what an example is made of depends only on the
row and on a random number given with it, so a run can be taken up anywhere.
"""

import gzip
import hashlib
import json
import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from knowhalu.errors import InputError
from knowhalu.text import content_words, sentences, windows
from knowhalu.training.edits import NAME, edit, shorten

SUPPORTED, CONTRADICTED, NEUTRAL, UNSUPPORTED = range(4)
"""Targets; UNSUPPORTED means contradicted or neutral, the data does not say which."""
_TARGET = {
    "supported": SUPPORTED,
    "contradicted": CONTRADICTED,
    "neutral": NEUTRAL,
    "not_in_source": NEUTRAL,
    "unsupported": UNSUPPORTED,
}
Row = dict[str, Any]


class Example(NamedTuple):
    """One training example; `question` is empty for a plain statement."""

    premise: str
    question: str
    claim: str
    target: int


def held_out(key: str, share: int = 8) -> bool:
    """Tell whether a source belongs to the eighth that the encoder never sees (used to fit and test the judgment)."""
    return hashlib.sha256(key.encode()).digest()[0] % share == 0


def read_rows(path: Path) -> Iterator[Row]:
    """Read JSON lines, plain or gzipped; raises InputError naming file and line."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise InputError(f"{path}:{number}: not a JSON object ({error})") from error
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise InputError(f"{path}: cannot read the training data ({error})") from error


def near(document: str, claim: str, rng: random.Random) -> str:
    """Cut from a document what a retriever would find for the claim: the best window, or its best three sentences."""
    wanted = set(content_words(claim))
    pieces = sentences(document) if rng.random() < 0.4 else windows(document, 140, 40)
    ranked = sorted(pieces, key=lambda p: -len(wanted.intersection(content_words(p.text))))
    if len(ranked) <= 1 or isinstance(pieces, list):
        return ranked[0].text if ranked else document
    return " ".join(p.text for p in sorted(ranked[: rng.randint(1, 4)]))


def names_in(text: str) -> list[str]:
    """List the capitalised names of a text."""
    return sorted({m.group() for m in NAME.finditer(text) if m.start() > 0})


def labelled(row: Row, other: Row, rng: random.Random) -> Example:
    """Take a labelled (source, claim) row as it is, long sources cut near the claim."""
    label = row.get("label3") or row["label"]
    target = _TARGET.get(label, UNSUPPORTED if row["label"] == "unsupported" else SUPPORTED)
    source = row["source"] if len(row["source"]) < 900 else near(row["source"], row["claim"], rng)
    return Example(source, "", row["claim"], target)


def fever(row: Row, other: Row, rng: random.Random) -> Example:
    """Take a FEVER row, or make the neutral and edited rows that FEVER lacks."""
    plain = labelled(row, other, rng)
    roll = rng.random()
    if roll < 0.2:
        wanted = set(content_words(row["claim"]))
        shared = wanted.intersection(content_words(other["source"]))
        if 2 * len(shared) < len(wanted):
            return Example(other["source"], "", row["claim"], NEUTRAL)
    if roll < 0.5 and plain.target == SUPPORTED:
        return edited(plain, names_in(other["source"] + " " + row["source"]), rng)
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
    return UNSUPPORTED if kind == "name" else CONTRADICTED


def _touches(before: str, after: str, wanted: set[str]) -> bool:
    lost = set(content_words(before)) - set(content_words(after))
    return bool(lost & wanted) or len(after) - len(before) in (4, -4)


def extracted(row: Row, other: Row, rng: random.Random) -> Example:
    """Make a claim of a document's own sentence: as it stands, edited, or with the sentence missing from the premise."""
    document = row.get("source") or row["document"]
    views = windows(document, 140, 40)
    view = rng.choice(views[:6]).text if views else document
    pieces = [s for s in sentences(view) if 5 <= len(s.text.split()) <= 40]
    if not pieces:
        return labelled({"source": view, "claim": view[:120], "label": "supported"}, other, rng)
    first = rng.randrange(len(pieces))
    chosen = pieces[first : first + (2 if rng.random() < 0.25 else 1)]
    claim = " ".join(p.text for p in chosen)
    if rng.random() < 0.3:
        cut = claim.split(", ")
        claim = ", ".join(cut[: max(1, len(cut) - 1)]) if len(cut) > 2 else claim
    if rng.random() < 0.5:
        claim = shorten(claim, rng)
    roll = rng.random()
    if roll < 0.3:
        rest = view[: chosen[0].start] + view[chosen[-1].end :]
        return Example(rest or (other.get("source") or other["document"])[:600], "", claim, NEUTRAL)
    example = Example(view, "", claim, SUPPORTED)
    if roll < 0.45:
        example = example._replace(premise=" ".join(p.text for p in pieces[max(0, first - 1) : first + 3]))
    return edited(example, names_in(document), rng) if rng.random() < 0.6 else example


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


Maker = Callable[[Row, Row, random.Random], Example]


@dataclass(frozen=True)
class Recipe:
    """One ingredient: a file, which of its sets, how its rows become examples, its share of the draws, its licence."""

    name: str
    file: str
    sets: tuple[str, ...]
    make: Maker
    share: float
    licence: str


MIX, CLAIMS, ANSWERS = "mix.jsonl.gz", "written_claims.jsonl.gz", "written_answers.jsonl.gz"
RECIPES = (
    Recipe("MNLI (TaxiNLI's 10k)", MIX, ("nli_mnli10k_taxinli",), labelled, 0.12, "C-UDA 1.0"),
    Recipe("SNLI, counterfactually revised", MIX, ("nli_cad_snli",), labelled, 0.11, "Apache-2.0"),
    Recipe("Breaking NLI", MIX, ("nli_breaking",), labelled, 0.02, "CC BY-SA 4.0"),
    Recipe("FEVER dev claims", MIX, ("fever_dev_claims",), fever, 0.18, "CC BY-SA 3.0"),
    Recipe("Fool Me Twice", MIX, ("fm2",), labelled, 0.03, "Apache-2.0 / CC BY-SA"),
    Recipe("FIB summaries", MIX, ("fib_synth_pairs", "fib_model_pairs"), labelled, 0.03, "CC BY 4.0"),
    Recipe("FIB documents, own sentences edited", MIX, ("fib_synth_pairs", "fib_model_pairs"), extracted, 0.20, "CC BY 4.0"),
    Recipe("WiCE", MIX, ("wice_claim_oracle",), labelled, 0.03, "CC BY-SA / ODC-BY"),
    Recipe("SciFact train", MIX, ("scifact",), labelled, 0.02, "CC BY 4.0 / ODC-By"),
    Recipe("BEGIN dev", MIX, ("begin",), labelled, 0.01, "CC BY 4.0 / CDLA"),
    Recipe("written claims", CLAIMS, (), written_claim, 0.14, "Apache-2.0 (written for this project)"),
    Recipe("written claims, own sentences edited", CLAIMS, (), extracted, 0.03, "Apache-2.0 (written for this project)"),
    Recipe("written answers", ANSWERS, (), written_answer, 0.09, "Apache-2.0 (written for this project)"),
)


def source_key(row: Row) -> str:
    """Return what decides on which side of the held-out border a row lies: its source text."""
    return str(row.get("source") or row.get("document") or row["knowledge"])


def rows_of(recipe: Recipe, folder: Path, *, held: bool) -> Iterator[Row]:
    """Read a recipe's rows once: those of the held-out sources, or all others."""
    for row in read_rows(folder / recipe.file):
        if (not recipe.sets or row["set"] in recipe.sets) and held_out(source_key(row)) is held:
            yield row


def _endless(recipe: Recipe, folder: Path, seed: int, buffer: int = 4000) -> Iterator[Row]:
    """Read a recipe's rows for ever, shuffled through a buffer, held-out sources left out."""
    rng = random.Random(f"{seed}:{recipe.name}")
    held: list[Row] = []
    while True:
        count = 0
        for row in rows_of(recipe, folder, held=False):
            count += 1
            held.append(row)
            if len(held) >= buffer:
                at = rng.randrange(len(held))
                held[at], held[-1] = held[-1], held[at]
                yield held.pop()
        if not count:
            raise InputError(f"{folder / recipe.file}: no rows for {recipe.name!r}; check --data")
        rng.shuffle(held)
        yield from held[count // 2 :]
        del held[count // 2 :]


def draws(folder: Path, seed: int, recipes: tuple[Recipe, ...] = RECIPES) -> Iterator[tuple[Recipe, Row, Row]]:
    """Draw recipes by share for ever; each draw has a row and the recipe's row before it (for negatives)."""
    rng = random.Random(seed)
    streams = [_endless(r, folder, seed) for r in recipes]
    before = [next(s) for s in streams]
    shares = [r.share for r in recipes]
    while True:
        i = rng.choices(range(len(recipes)), shares)[0]
        row = next(streams[i])
        yield recipes[i], row, before[i]
        before[i] = row
