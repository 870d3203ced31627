"""Reasons of a judgment in plain words: the value, name or sentence of the sources that decided, or what they do not mention.

Sources and claims are quoted: on one line, without control characters, and cut to a bounded length.
"""

import re
from collections.abc import Sequence

from knowhalu.methods.common.sources import SourceSentence
from knowhalu.methods.knowhalu.grounds import Ground, ReadQuote, supporting_quote
from knowhalu.text.entities import find_names
from knowhalu.text.findings import Findings
from knowhalu.text.operations import Operation
from knowhalu.text.overlap import coverage, text_facts
from knowhalu.text.questions import AnswerType, expected_answer_type
from knowhalu.text.sentences import TITLE_ABBREVIATIONS, content_words, sanitize, word_count, words
from knowhalu.text.values import Agreement, Value, ValueKind, check_values, find_values
from knowhalu.types import Label, Sample, Step

MAX_QUOTED, MAX_NAMED = 160, 60
"""Characters of a sentence, and of a name or title, that a reason quotes."""
MAX_MISSING = 3
"""Names, values or words that a reason lists as missing."""
MAX_NAME_WORDS = 4
"""An answer of at most so many words is a name itself."""
MIN_OPPOSITE_SHARE = 0.5
"""Share of a claim's words that a sentence has whose negation is that of the claim."""
_CONTRACTION = re.compile(r"n['’]t$|['’](?:m|re|ll|d|ve)$", re.IGNORECASE)  # noqa: RUF001
NAMED_TYPES = frozenset({AnswerType.PERSON, AnswerType.PLACE, AnswerType.THING})
"""Types of questions whose answer of a few words is a name."""


def judgment_reason(
    part: Sample,
    steps: Sequence[Step],
    label: Label,
    read: Sequence[ReadQuote],
    ground: Ground | None,
    found: Findings,
    source: str,
) -> str:
    """Return why a claim is CORRECT or INCORRECT: the `ground` that it rests on, which `steps` quote, or what `source` lacks."""
    if label is Label.CORRECT:
        return _support(part, steps, read, ground, found, source)
    return _fault(part, steps, read, ground, found, source)


def off_target_reason(part: Sample, steps: Sequence[Step], read: Sequence[ReadQuote]) -> str:
    """Return why a supported statement is no answer to its question."""
    best = supporting_quote(read)
    quote = f" ({_cited(part, best.place, steps)})" if best else ""
    asked = expected_answer_type(part.question or "")
    return f"the sources support the statement{quote}, but it does not answer the question, which asks for {asked}"


def missing_topic_reason(part: Sample, steps: Sequence[Step], source: str) -> str:
    """Return what sources that do not cover a topic lack: names of the question or the claim, or else words of it."""
    asked, given = part.question or part.response, _given_text(part, steps, source)
    missing = _missing_names(asked, given) or _missing_words(asked, given)
    return _not_mentioned(missing) if missing else "the sources say nothing about this"


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


def _support(
    part: Sample, steps: Sequence[Step], read: Sequence[ReadQuote], ground: Ground | None, found: Findings, source: str
) -> str:
    if ground is None:
        return f"supported by the passage around {_nearest(part, read, steps)}"
    cited = _cited_each(part, ground.places, steps)
    if ground.how == "in steps":
        return f"supported in two steps by way of {_name(ground.bridge)}: {_listed(cited, 'and')}"
    given = " ".join(place.cited for place in ground.places)
    same = [
        f"{quoted(c.source.text, MAX_NAMED)} there agrees with {quoted(c.value.text, MAX_NAMED)}"
        for c in check_values(part.response, given)
        if c.source is not None and c.agreement is Agreement.EQUAL and c.value.text.lower() not in given.lower()
    ]
    same += [f"its values give {d.explanation}" for d in found.confirmed if all(s in given for s in d.sentences)]
    how = "supported by"
    if ground.how == "together":
        how = "supported by several sentences together:" if len(cited) > 1 else "supported by the passage around"
    return "; ".join((f"{how} {_listed(cited, 'and')}", *same[:MAX_MISSING]))


def _fault(
    part: Sample, steps: Sequence[Step], read: Sequence[ReadQuote], ground: Ground | None, found: Findings, source: str
) -> str:
    what = "answer" if part.question else "claim"
    missing = _missing(part, steps, found, source)
    if ground is None:
        nearest = [f"the nearest is {_nearest(part, read, steps)}"] if read and read[0].share > 0 else []
        return "; ".join((*(missing or [f"no sentence of the sources states the {what}"]), *nearest))
    first, cited = ground.places[0], _listed(_cited_each(part, ground.places, steps), "and")
    if ground.how == "in steps":
        return f"contradicted in two steps by way of {_name(ground.bridge)}: {cited}"
    if ground.how == "compared":
        at = _told(first, _topic(part)).find(found.conflict.source.text) if found.conflict else 0
        cited = cited if len(ground.places) > 1 else _cited(part, first, steps, max(at, 0))
        return f"{_opposition(part.response, what, found)}: {cited}"
    if (names := conflicting_names(part, first)) is not None:
        return f"the source names {names[0]}, the {what} {names[1]}: {cited}"
    negated, denies = text_facts(first.text).negations > 0, text_facts(part.response).negations > 0
    if negated != denies and coverage(part.response, f"{first.passage.title} {first.view}") >= MIN_OPPOSITE_SHARE:
        said = "denies what the {} says" if negated else "says what the {} denies"
        return f"the source {said.format(what)}: {cited}"
    return "; ".join((f"contradicted by {cited}", *missing))


def _opposition(claim: str, what: str, found: Findings) -> str:
    """Return what the sources oppose to a claim: the result of their values, or another value."""
    if found.refuted:
        said = _value_words(claim, found.refuted.value)
        said = f"says {quoted(said)}" if found.refuted.operation is Operation.COMPARISON else said
        return f"the values of the source give {found.refuted.explanation}, the {what} {said}"
    if found.conflict is None:
        return f"the source differs from the {what}"
    value, given, sentence, _ = found.conflict
    return f"the source says {_value_words(sentence, given)}, the {what} {_value_words(claim, value)}"


def _value_words(text: str, value: Value) -> str:
    """Return a value as a text has it: with the words that limit it, and with what is counted."""
    start, end = value.start - value.modifier, value.end
    if value.kind is ValueKind.COUNT and value.unit:
        following = list(re.finditer(r"[^\W\d_][\w-]*", text[end : end + MAX_NAMED]))[:3]
        stems = set(value.unit.split())
        end += max((m.end() for m in following if stems & set(content_words(m.group()))), default=0)
    return " ".join(sanitize(text[start:end]).split())


def conflicting_names(part: Sample, quote: SourceSentence) -> tuple[str, str] | None:
    """Return the only name of a sentence that claim and question lack, and the only one of the claim that the sentence lacks."""
    known, asked = f"{part.question or ''} {part.response}", part.question or ""
    given = {n: t for n, t in _names(quote.text).items() if not _shares_word(n, known)}
    is_name = bool(asked) and expected_answer_type(asked) in NAMED_TYPES
    claimed = {
        n: t
        for n, t in _names(part.response, short=is_name).items()
        if not _shares_word(n, f"{quote.passage.title} {quote.view} {asked}")
    }
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


def _given_text(part: Sample, steps: Sequence[Step], read: str) -> str:
    """Return all text of the sources; what was read of them may lack words, such as the triplets of a sentence."""
    documents = (text for d in part.documents for text in (d.title, d.text))
    return "\n".join((read, *part.knowledge, *documents, *(str(p) for step in steps for p in step.passages)))


def _missing(part: Sample, steps: Sequence[Step], found: Findings, source: str) -> list[str]:
    """Return, as part of a sentence, what the sources lack of a claim: names and values."""
    claim = part.response
    values = [_value_words(claim, c.value) for c in found.checks if c.agreement is None and c.value.text not in source]
    if not values and not (names := _missing_names(claim, source)):
        return []
    given = _given_text(part, steps, source)
    names, values = _missing_names(claim, given), [v for v in values if v not in given]
    missing = [*names, *(v for v in values if not any(v in n for n in names))]
    return [_not_mentioned(missing)] if missing else []


def _missing_names(text: str, source: str) -> list[str]:
    """Return the names that sources lack; a title, an initial or a word that they have does not tell."""
    given = set(content_words(source))
    return [n for n in _names(text) if not set(content_words(_without_titles(n))) <= given]


def _without_titles(name: str) -> str:
    """Return a name without "Dr." and initials, which a source may leave out; the whole where nothing else is in it."""
    kept = [w for w in name.split() if len(w.strip(".")) > 1 and w.strip(".").lower() not in TITLE_ABBREVIATIONS]
    return " ".join(kept) or name


def _missing_words(text: str, source: str) -> list[str]:
    given = set(content_words(source))
    kept = [w.text for w in words(text) if w.text[0].isalpha() and not _CONTRACTION.search(w.text)]
    return list(dict.fromkeys(w for w in kept if (c := set(content_words(w))) and not c & given))


def _listed(items: Sequence[str], last: str = "or") -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} {last} {items[-1]}"


def _not_mentioned(missing: Sequence[str]) -> str:
    return f"the sources do not mention {_listed([quoted(item, MAX_NAMED) for item in missing[:MAX_MISSING]])}"


def _nearest(part: Sample, read: Sequence[ReadQuote], steps: Sequence[Step]) -> str:
    return _cited(part, max(read, key=lambda r: r.speaks).place, steps)


def _told(place: SourceSentence, topic: str) -> str:
    """Return a row with its header, and a sentence with the one that its pronoun refers to where that has words of the topic."""
    if len(place.cited) > MAX_QUOTED and place.cited.endswith(place.text):
        return place.text
    before = place.cited.removesuffix(place.text)
    added = set(content_words(topic)) & set(content_words(before)) - set(content_words(place.text))
    return place.cited if added or before == place.cited else place.text


def _cited_each(part: Sample, places: Sequence[SourceSentence], steps: Sequence[Step]) -> list[str]:
    """Return sentences in quotation marks, without those that are quoted with the next one."""
    told = {p: _told(p, _topic(part)) for p in places}
    kept = [p for p in places if not any(p is not o and p.passage.id == o.passage.id and told[p] in told[o] for o in places)]
    return [_cited(part, place, steps) for place in kept or places]


def _topic(part: Sample) -> str:
    return f"{part.question or ''} {part.response}"


def _cited(part: Sample, place: SourceSentence, steps: Sequence[Step], at: int = 0) -> str:
    """Return a sentence in quotation marks, with its title and, where it took several steps, how it was found."""
    notes = [_name(place.passage.title)] if place.passage.title else []
    key = (place.passage.id, place.start)
    number = next((n for n, s in enumerate(steps, 1) if key in {(q.passage, q.start) for q in s.knowledge.quotes}), 1)
    if number > 1:
        by = re.search(r"\(([^()]+)\)$", steps[number - 1].query.general)
        notes.append(f"found in step {number}" + (f" by way of {_name(by[1])}" if by else ""))
    return quoted(_told(place, _topic(part)), at=at) + (f" ({', '.join(notes)})" if notes else "")
