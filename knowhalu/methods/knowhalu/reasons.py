"""Reasons of a judgment in plain words: the value, name or sentence of the sources that decided, or what they do not mention.

Sources and claims are quoted: on one line, without control characters, and cut to a bounded length.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from knowhalu.methods.common.attribution import MIN_DECISIVE_PROBABILITY, MIN_RELEVANCE
from knowhalu.methods.common.sources import source_sentences
from knowhalu.text.arithmetic import Derivation, check_arithmetic
from knowhalu.text.entities import find_names
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.questions import AnswerType, expected_answer_type
from knowhalu.text.sentences import content_words, sanitize, word_count
from knowhalu.text.values import Agreement, Value, ValueKind, check_values, compare_values, find_values, topic_of_values
from knowhalu.types import Label, Sample, Step

MAX_QUOTED, MAX_NAMED = 160, 60
"""Characters of a sentence, and of a name or title, that a reason quotes."""
MAX_MISSING = 3
"""Names, values or words that a reason lists as missing."""
MAX_NAME_WORDS = 4
"""An answer of at most so many words is a name itself."""
MIN_OPPOSITE_SHARE = 0.5
"""Share of a claim's words that a sentence has whose negation is that of the claim."""
NAMED_TYPES = frozenset({AnswerType.PERSON, AnswerType.PLACE, AnswerType.THING})
"""Types of questions whose answer of a few words is a name."""


class ReadQuote(NamedTuple):
    """A quoted sentence: its source's title, P(supported) and P(contradicted), the share of the claim's words, and its step.

    `context` is the sentence as the verifier reads it, with its title and what it refers back to; `own` is its share without.
    """

    text: str
    title: str
    context: str
    supported: float
    contradicted: float
    share: float
    own: float
    step: int


def judgment_reason(part: Sample, steps: Sequence[Step], label: Label, together: float, source: str) -> str:
    """Return why a claim is CORRECT or INCORRECT by `source`; `together` is its support by several sentences read together."""
    read = _read_quotes(part, steps)
    if label is Label.CORRECT:
        return _support(part, read, steps, together, coverage(part.response, source))
    return _fault(part, read, steps, source)


def bridge_reason(name: str, sentences: tuple[str, str]) -> str:
    """Return the two sentences that support a claim together, and the entity that connects them."""
    return f"supported in two steps by way of {_name(name)}: {quoted(sentences[0])} and {quoted(sentences[1])}"


def off_target_reason(part: Sample, steps: Sequence[Step]) -> str:
    """Return why a supported statement is no answer to its question."""
    best = _supporting(_read_quotes(part, steps))
    quote = f" ({_cited(best, steps)})" if best else ""
    asked = expected_answer_type(part.question or "")
    return f"the sources support the statement{quote}, but it does not answer the question, which asks for {asked}"


def missing_topic_reason(part: Sample, source: str) -> str:
    """Return what sources that do not cover a topic lack: names of the question or the claim, or else words of it."""
    asked = part.question or part.response
    missing = _missing_names(asked, source) or _missing_words(asked, source)
    return f"the sources do not mention {_listed(missing)}" if missing else "the sources say nothing about this"


def quoted(text: str, limit: int = MAX_QUOTED, at: int = 0) -> str:
    """Return a text in quotation marks, on one line; a long one is cut between words, around its character `at`."""
    lead, line = " ".join(sanitize(text[:at]).split()), " ".join(sanitize(text).split())
    line = line.translate({ord("“"): "‘", ord("”"): "’"})  # noqa: RUF001
    if len(line) <= limit:
        return f"“{line}”"
    start = 0 if len(lead) < limit * 2 // 3 else len(lead) - limit // 2
    start = line.find(" ", start) + 1 if start else 0
    piece = line[start : start + limit]
    end = len(piece) if start + limit >= len(line) else piece.rfind(" ") if " " in piece else limit
    return f"“{'… ' if start else ''}{piece[:end]}{' …' if start + end < len(line) else ''}”"


def _read_quotes(part: Sample, steps: Sequence[Step]) -> list[ReadQuote]:
    """Return the quotes of all steps, each once, those with most of the claim's words first."""
    found: dict[tuple[str, int], ReadQuote] = {}
    for number, step in enumerate(steps, 1):
        places = {(s.passage.id, s.start): s for s in source_sentences(step.passages)}
        for q in step.knowledge.quotes:
            place = places.get((q.passage, q.start))
            title, view = (place.passage.title, place.view) if place else ("", q.text)
            context = f"{title} {view}"
            share, own = (max(coverage(c, t) for c in (part.response, part.question or part.response)) for t in (context, q.text))
            read = ReadQuote(q.text, title, context, q.supported, q.contradicted, share, own, number)
            found.setdefault((q.passage, q.start), read)
    return sorted(found.values(), key=lambda r: (-r.share, -r.own))


def _supporting(read: Iterable[ReadQuote]) -> ReadQuote | None:
    """Return the nearest sentence that supports; one that has few of the words supports something else."""
    sure = [r for r in read if r.supported >= MIN_DECISIVE_PROBABILITY and r.supported > r.contradicted]
    return max((r for r in sure if r.share >= MIN_RELEVANCE), key=lambda r: r.share * r.supported, default=None)


def _support(part: Sample, read: Sequence[ReadQuote], steps: Sequence[Step], together: float, covered: float) -> str:
    best = _supporting(read)
    if best is not None:
        same = [
            f"{quoted(c.source.text, MAX_NAMED)} there agrees with {quoted(c.value.text, MAX_NAMED)}"
            for c in check_values(part.response, best.text)
            if c.source is not None and c.agreement is Agreement.EQUAL and c.value.text.lower() not in best.text.lower()
        ]
        same += [f"its values give {d.explanation}" for d in _calculated(part, read, Agreement.EQUAL)]
        return "; ".join((f"supported by {_cited(best, steps)}", *same[:MAX_MISSING]))
    if together >= MIN_DECISIVE_PROBABILITY:
        return f"supported by several sentences together, of which the nearest is {_cited(read[0], steps)}"
    share = "all" if covered == 1 else f"{covered:.0%}"
    return f"no sentence states it, but the sources contain {share} of its words; the nearest is {_cited(read[0], steps)}"


def _fault(part: Sample, read: Sequence[ReadQuote], steps: Sequence[Step], source: str) -> str:
    what = "answer" if part.question else "claim"
    if refuted := _calculated(part, read, Agreement.DIFFERENT):
        said = f"the {what} {_value_words(part.response, refuted[0].value)}"
        return f"the values of the source give {refuted[0].explanation}, {said}: {_cited(read[0], steps)}"
    if (pair := conflicting_values(part, read)) is not None:
        claimed, given, quote = pair
        said = f"the source says {_value_words(quote.text, given)}, the {what} {_value_words(part.response, claimed)}"
        return f"{said}: {_cited(quote, steps, given.start)}"
    missing = _missing(part.response, source)
    worst = _contradicting(read)
    if worst is None:
        nearest = [f"the nearest is {_cited(read[0], steps)}"] if read and read[0].share > 0 else []
        return "; ".join((*(missing or [f"no sentence of the sources states the {what}"]), *nearest))
    if (names := conflicting_names(part, worst)) is not None:
        return f"the source names {names[0]}, the {what} {names[1]}: {_cited(worst, steps)}"
    negated, denies = text_facts(worst.text).negations > 0, text_facts(part.response).negations > 0
    if negated != denies and worst.share >= MIN_OPPOSITE_SHARE:
        said = "denies what the {} says" if negated else "says what the {} denies"
        return f"the source {said.format(what)}: {_cited(worst, steps)}"
    return "; ".join((f"contradicted by {_cited(worst, steps)}", *missing))


def _calculated(part: Sample, read: Sequence[ReadQuote], agreement: Agreement) -> list[Derivation]:
    """Return the calculations in a claim that the values of the quotes confirm, or refute."""
    return [d for d in check_arithmetic(part.response, [r.text for r in read]) if d.agreement is agreement]


def _contradicting(read: Sequence[ReadQuote]) -> ReadQuote | None:
    """Return the nearest sentence that contradicts; one far from the nearest of all contradicts something else."""
    near = max((r.own for r in read), default=0.0) / 2
    sure = [r for r in read if r.contradicted >= MIN_DECISIVE_PROBABILITY and r.contradicted > r.supported]
    return max((r for r in sure if r.share >= MIN_RELEVANCE and r.own >= near), key=lambda r: r.share, default=None)


def conflicting_values(part: Sample, read: Sequence[ReadQuote]) -> tuple[Value, Value, ReadQuote] | None:
    """Return the value of a claim, the other one that the nearest comparable sentence has, and that sentence; None without any.

    Sentences are the nearer the more of the other words of claim and question they have; of equally near ones, one with the
    same value settles it.
    """
    claim, settled = part.response, {v for v in find_values(part.question or "") if v.text in part.response}
    rest = topic_of_values(claim, part.question or "")
    for value in find_values(claim):
        if any(compare_values(value, other) is Agreement.EQUAL for other in settled):
            continue
        best: tuple[float, bool, float, Value | None, ReadQuote] | None = None
        for quote in read:
            shares = len(rest & set(content_words(quote.context))) / len(rest) if rest else quote.share
            compared = [(compare_values(value, v), v) for v in find_values(quote.text)]
            same = any(a in (Agreement.EQUAL, Agreement.OPEN) for a, _ in compared)
            other = next((v for a, v in compared if a is Agreement.DIFFERENT and not _is_ambiguous(value, v)), None)
            if (same or other) and (best is None or (shares, same, quote.contradicted) > best[:3]):
                best = (shares, same, quote.contradicted, None if same else other, quote)
        if best is not None and best[3] is not None and best[0] >= MIN_RELEVANCE:
            return value, best[3], best[4]
    return None


def _is_ambiguous(value: Value, other: Value) -> bool:
    """Tell whether one of two counts may also be a year, which is no other number of things."""
    return value.kind is ValueKind.COUNT and (value.ambiguous or other.ambiguous)


def _value_words(text: str, value: Value) -> str:
    """Return a value as a text has it: with the words that limit it, and with what is counted."""
    start, end = value.start - value.modifier, value.end
    if value.kind is ValueKind.COUNT and value.unit:
        following = list(re.finditer(r"[^\W\d_][\w-]*", text[end : end + MAX_NAMED]))[:3]
        stems = set(value.unit.split())
        end += max((m.end() for m in following if stems & set(content_words(m.group()))), default=0)
    return " ".join(sanitize(text[start:end]).split())


def conflicting_names(part: Sample, quote: ReadQuote) -> tuple[str, str] | None:
    """Return the only name of a sentence that claim and question lack, and the only one of the claim that the sentence lacks."""
    known, asked = f"{part.question or ''} {part.response}", part.question or ""
    given = {n: t for n, t in _names(quote.text).items() if not _shares_word(n, known)}
    is_name = bool(asked) and expected_answer_type(asked) in NAMED_TYPES
    claimed = {n: t for n, t in _names(part.response, short=is_name).items() if not _shares_word(n, f"{quote.context} {asked}")}
    if len(given) != 1 or len(claimed) != 1:
        return None
    (name, kind), (other, other_kind) = *given.items(), *claimed.items()
    if kind != other_kind and "name" not in (kind, other_kind):
        return None
    return _name(name), _name(other)


def _shares_word(name: str, text: str) -> bool:
    return bool(set(content_words(name)) & set(content_words(text)))


def _names(text: str, *, short: bool = False) -> dict[str, str]:
    """Return the names of a text and their types; `short`: a text of a few words is one itself."""
    found = {n.text: n.type for n in find_names(text)}
    if not found and short and word_count(text) <= MAX_NAME_WORDS and not find_values(text):
        return {text.strip(" .!?"): "name"}
    return found


def _name(text: str) -> str:
    line = " ".join(sanitize(text).split())
    return line if len(line) <= MAX_NAMED else f"{line[: MAX_NAMED - 1]}…"


def _missing(claim: str, source: str) -> list[str]:
    """Return, as part of a sentence, what the sources lack of a claim: names and values."""
    values = [
        _value_words(claim, c.value) for c in check_values(claim, source) if c.agreement is None and c.value.text not in source
    ]
    names = _missing_names(claim, source)
    missing = [*names, *(v for v in values if not any(v in n for n in names))]
    return [f"the sources do not mention {_listed(missing)}"] if missing else []


def _missing_names(text: str, source: str) -> list[str]:
    given = set(content_words(source))
    return [n for n in _names(text) if not set(content_words(n)) <= given]


def _missing_words(text: str, source: str) -> list[str]:
    given = set(content_words(source))
    words = re.findall(r"[^\W\d_][\w-]+", text)
    return list(dict.fromkeys(w for w in words if (c := set(content_words(w))) and not c & given))


def _listed(items: Sequence[str]) -> str:
    shown = [quoted(item, MAX_NAMED) for item in items[:MAX_MISSING]]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} or {shown[-1]}"


def _cited(quote: ReadQuote, steps: Sequence[Step], at: int = 0) -> str:
    """Return a sentence in quotation marks, with its title and, where it took several steps, how it was found."""
    notes = [_name(quote.title)] if quote.title else []
    if quote.step > 1:
        step = steps[quote.step - 1]
        bridge = re.search(r"\(([^()]+)\)$", step.query.general)
        notes.append(f"found in step {quote.step}" + (f" by way of {_name(bridge[1])}" if bridge else ""))
    return quoted(quote.text, at=at) + (f" ({', '.join(notes)})" if notes else "")
