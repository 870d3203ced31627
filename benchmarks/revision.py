#!/usr/bin/env python
"""Revision of hallucinated summaries whose faithful version is known: what is removed, repaired and kept.

BUMP has one written error in each text, so its sentences can be followed; the KnowHalu paper's summaries are written freely,
so only whole texts are compared. The faithful versions are revised, too: what is lost there is the price.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from common import interval, make_parser, ranged, read, sample, write_results

from knowhalu.api import Reviser
from knowhalu.methods.revise.edits import editable_spans
from knowhalu.profiles import load_settings
from knowhalu.results import Revision
from knowhalu.text.quantities import number_value
from knowhalu.text.sentences import words

Texts = Sequence[str]


class Fate(NamedTuple):
    """What became of the sentences of one text: numbers of wrong and of faithful ones, and of what was done to them."""

    wrong: int
    flagged: int
    removed: int
    repaired: int
    altered: int
    faithful: int
    kept: int


def tokens(text: str) -> list[str]:
    """Return the words, lower-cased; a number is the same in digits and in letters."""
    return [number_value(w.text) or w.text.lower() for w in words(text)]


def rouge_l(text: str, reference: str) -> float:
    """Return ROUGE-L, the F1 of the longest common subsequence of words."""
    mine, theirs = tokens(text), tokens(reference)
    row = [0] * (len(theirs) + 1)
    for word in mine:
        before = row[:]
        for j, other in enumerate(theirs):
            row[j + 1] = before[j] + 1 if word == other else max(before[j + 1], row[j])
    return _f1(row[-1], len(mine), len(theirs))


def likeness(text: str, reference: str) -> float:
    """Return the F1 of the words that two texts share, each counted as often as it stands."""
    mine, theirs = Counter(tokens(text)), Counter(tokens(reference))
    return _f1((mine & theirs).total(), mine.total(), theirs.total())


def _f1(shared: int, mine: int, theirs: int) -> float:
    return 2 * shared / (mine + theirs) if mine + theirs else 1.0


def fate(revision: Revision, faithful: str) -> Fate:
    """Follow every sentence of a text that was written by changing some of the faithful one.

    A sentence that is not in the faithful text, word for word, is wrong. It is repaired where its new wording is that of
    its twin; a text that was refused has lost all sentences.
    """
    sentences, twins = editable_spans(revision.original), [tokens(u.text) for u in editable_spans(faithful)]
    wrong = [i for i, u in enumerate(sentences) if tokens(u.text) not in twins]
    changed = {i: c for c in revision.changes for i, u in enumerate(sentences) if c.start < u.end and u.start < c.end}
    gone = {i for i in range(len(sentences)) if revision.revised is None or (i in changed and not changed[i].new.strip())}
    new = {i: c.new for i, c in changed.items() if c.how != "kept" and i not in gone}
    repaired = [i for i in wrong if i in new and tokens(new[i]) in twins]
    right = [i for i in range(len(sentences)) if i not in wrong]
    in_doubt = [i for i in wrong if i in changed or revision.revised is None]
    return Fate(
        wrong=len(wrong), flagged=len(in_doubt), removed=sum(i in gone for i in wrong),
        repaired=len(repaired), altered=sum(i in new and i not in repaired for i in wrong), faithful=len(right),
        kept=sum(i not in gone and i not in new for i in right),
    )  # fmt: skip


def passed_but_changed(revision: Revision) -> int:
    """Count the sentences that the detector had passed and that are not in the revised text as they were.

    It compares the texts alone and ignores what the revision reports.
    """
    if revision.revised is None:
        return 0
    segments = revision.before.segments
    wrong = [s for s in segments if s.label != "CORRECT"]
    flagged = wrong or [max(segments, key=lambda s: s.probability, default=None)]
    passed = [
        u.text for u in editable_spans(revision.original) if not any(s and s.start < u.end and u.start < s.end for s in flagged)
    ]
    revised = [u.text for u in editable_spans(revision.revised)]
    same = SequenceMatcher(None, passed, revised, autojunk=False).get_matching_blocks()
    return len(passed) - sum(block.size for block in same)


Measures = Mapping[str, Any]
_HEAD = """\
Hallucinated summaries whose faithful twin is known are revised. The rules of substitution were written by hand after a look
at 60 pairs of BUMP; all pairs on their documents are left out. In brackets: 95 % bootstrap interval, texts on one document
drawn together. A refused text counts as empty."""
_SENTENCES = """\
*Removed or repaired*: wrong sentences that are gone, or have the very words of the faithful twin; *altered*: reworded in
another way. *Faithful kept*: sentences beside the wrong ones that stand as they were; *twin kept*: the same where the faithful
text itself was revised. *Passed but changed*: sentences that the detector had passed and that changed all the same.

| error | pairs | flagged | removed | repaired | altered | removed or repaired | faithful kept | twin kept | passed but changed |
|---|---|---|---|---|---|---|---|---|---|"""
_TEXTS = """\
| set | pairs | revised / same / refused | ROUGE-L before | after | words before | after | gain where revised | twin kept |
|---|---|---|---|---|---|---|---|---|"""


def markdown(result: Mapping[str, Mapping[str, Measures]]) -> str:
    """Return both tables."""
    lines = [_HEAD, "", _TEXTS]
    for name, parts in result.items():
        lines += [f"| {name}{'' if part == 'all' else f', {part}'} | {_texts(m)} |" for part, m in parts.items()]
    for name, parts in result.items():
        if "flagged" in parts["all"]:
            lines += ["", f"By sentence, {name}. {_SENTENCES}", *(f"| {part} | {_sentences(m)} |" for part, m in parts.items())]
    return "\n".join(lines) + "\n"


def _texts(m: Measures) -> str:
    scores = [ranged(*m[name]) for name in ("rouge_l_before", "rouge_l_after", "words_before", "words_after")]
    counts = [str(m["pairs"]), " / ".join(map(str, m["statuses"].values()))]
    return " | ".join([*counts, *scores, f"{m['rouge_l_gain_of_revised']:+.3f}", ranged(*m["twin_words_kept"])])


def _sentences(m: Measures) -> str:
    shares = ("flagged", "removed", "repaired", "altered", "removed_or_repaired", "faithful_kept", "twin_kept")
    return " | ".join([str(m["pairs"]), *(ranged(*m[name]) for name in shares), str(m["passed_but_changed"])])


SEEN = 60
"""Pairs of BUMP (of a fixed order) that were looked at while the rules of substitution were written; see `pairs_of`."""
SETS = {"bump": "bump_pairs", "summary": "knowhalu_summ_pairs"}


class Pair(NamedTuple):
    """A document, a faithful summary of it and a hallucinated one, with the type of its error."""

    document: str
    faithful: str
    hallucinated: str
    error: str


class Revised(NamedTuple):
    """A pair, and the revisions of both of its sides."""

    pair: Pair
    wrong: Revision
    right: Revision


def pairs_of(folder: Path, name: str, limit: int) -> list[Pair]:
    """Return the pairs of a file, or a fixed sample of them; of BUMP without all pairs on documents that were seen."""
    rows = [r for r in read(folder / f"{SETS[name]}.jsonl.gz") if name == "bump" or r["split"] == "test"]
    if name == "bump":
        seen = {rows[i]["document"] for i in np.random.default_rng(0).permutation(len(rows))[:SEEN]}
        rows = [r for r in rows if r["document"] not in seen]
    if len(rows) > limit:
        rows = [rows[i] for i in sorted(np.random.default_rng(0).permutation(len(rows))[:limit])]
    return [
        Pair(r["document"], r["right_summary"], r["hallucinated_summary"], r.get("error_type", "").removesuffix(" Error"))
        for r in rows
    ]


def revised(pairs: Sequence[Pair], settings: Sequence[str]) -> tuple[list[Revised], float]:
    """Revise both sides of all pairs; returns them and texts a second."""
    reviser = Reviser(load_settings(pairs=settings))
    texts = [
        sample(f"{i}-{s}", p.document, t) for i, p in enumerate(pairs) for s, t in (("h", p.hallucinated), ("r", p.faithful))
    ]
    reviser.revise(texts[0])
    start = time.perf_counter()
    outcomes = list(reviser.stream(texts))
    rate = len(texts) / (time.perf_counter() - start)
    for outcome in outcomes:
        if not isinstance(outcome, Revision):
            raise SystemExit(f"a revision failed: {outcome}")
    both = [o for o in outcomes if isinstance(o, Revision)]
    return [Revised(p, w, r) for p, w, r in zip(pairs, both[::2], both[1::2], strict=True)], rate


def measured(rows: Sequence[Revised], *, by_sentence: bool) -> dict[str, Any]:
    """Return all measures of some pairs, each with its interval; texts on one document are drawn together."""
    groups = [r.pair.document[:200] for r in rows]

    def share(part: Sequence[float], whole: Sequence[float]) -> list[float]:
        a, b = np.array(part, dtype=float), np.array(whole, dtype=float)
        metric: Callable[[Any], float] = lambda i: float(a[i].sum() / b[i].sum()) if b[i].sum() else float("nan")  # noqa: E731
        return [metric(np.arange(len(a))), *interval(metric, groups)]

    def mean(values: Sequence[float]) -> list[float]:
        return share(values, [1.0] * len(values))

    left = ["" if r.wrong.revised is None else r.wrong.revised for r in rows]
    result: dict[str, Any] = {
        "pairs": len(rows),
        "statuses": {s: sum(r.wrong.status == s for r in rows) for s in ("revised", "unchanged", "refused")},
        "twin_statuses": {s: sum(r.right.status == s for r in rows) for s in ("revised", "unchanged", "refused")},
        "passed_but_changed": sum(passed_but_changed(v) for r in rows for v in (r.wrong, r.right)),
        "rouge_l_before": mean([rouge_l(r.wrong.original, r.pair.faithful) for r in rows]),
        "rouge_l_after": mean([rouge_l(t, r.pair.faithful) for t, r in zip(left, rows, strict=True)]),
        "words_before": mean([likeness(r.wrong.original, r.pair.faithful) for r in rows]),
        "words_after": mean([likeness(t, r.pair.faithful) for t, r in zip(left, rows, strict=True)]),
        "p_before": mean([r.wrong.before.probability for r in rows]),
        "p_after": mean([r.wrong.after.probability if r.wrong.after else 0.0 for r in rows]),
        "twin_words_kept": mean([likeness(r.right.revised or "", r.pair.faithful) for r in rows]),
    }
    some = [r for r in rows if r.wrong.status == "revised"]
    for name, score in (("rouge_l", rouge_l), ("words", likeness)):
        gains = [score(r.wrong.revised or "", r.pair.faithful) - score(r.wrong.original, r.pair.faithful) for r in some]
        result[f"{name}_gain_of_revised"] = float(np.mean(gains)) if gains else float("nan")
    return result | (_by_sentence(rows, share) if by_sentence else {})


def _by_sentence(rows: Sequence[Revised], share: Callable[[Sequence[float], Sequence[float]], list[float]]) -> dict[str, Any]:
    """Return what became of the wrong sentences, of the faithful ones beside them, and of those of the faithful twins."""
    fates: list[Fate] = [fate(r.wrong, r.pair.faithful) for r in rows]
    twins = [fate(r.right, r.pair.faithful) for r in rows]
    wrong, flagged = [f.wrong for f in fates], [f.flagged for f in fates]
    corrected = [f.removed + f.repaired for f in fates]
    return {
        "wrong_sentences": sum(wrong),
        "flagged": share(flagged, wrong),
        "removed": share([f.removed for f in fates], wrong),
        "repaired": share([f.repaired for f in fates], wrong),
        "altered": share([f.altered for f in fates], wrong),
        "removed_or_repaired": share(corrected, wrong),
        "repaired_of_flagged": share([f.repaired for f in fates], flagged),
        "faithful_kept": share([f.kept for f in fates], [f.faithful for f in fates]),
        "twin_kept": share([f.kept for f in twins], [f.faithful for f in twins]),
    }


def main() -> None:
    """Run the benchmark."""
    parser = make_parser(__doc__, "revision.json", "data")
    parser.add_argument("--only", nargs="*", choices=[*SETS], default=[*SETS])
    parser.add_argument("--limit", type=int, default=100_000, help="pairs of each set at most")
    parser.add_argument("--set", dest="pairs", action="append", default=[])
    args = parser.parse_args()
    result: dict[str, Any] = {}
    for name in args.only:
        rows, rate = revised(pairs_of(args.data, name, args.limit), args.pairs)
        by_sentence = name == "bump"
        types = sorted({r.pair.error for r in rows} - {""})
        result[name] = {"all": measured(rows, by_sentence=by_sentence) | {"texts_per_second": rate}} | {
            t: measured([r for r in rows if r.pair.error == t], by_sentence=by_sentence) for t in types
        }
        print(f"{name}: {len(rows)} pairs, {rate:.1f} texts/s", flush=True)
    write_results(args.out, result, markdown(result))
    print(markdown(result))
    changed = sum(part["all"]["passed_but_changed"] for part in result.values())
    if changed:
        raise SystemExit(f"{changed} sentences changed that the detector had passed")


if __name__ == "__main__":
    main()
