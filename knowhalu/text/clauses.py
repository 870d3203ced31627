"""The claims of a sentence by text rules, and where in a response a claim is made.

A rule splits a sentence only where the subject of every part is certain; else the sentence stays whole. Reported speech,
conditions, alternatives and quotations are never split, as their parts cannot be understood alone.
"""

import re
from typing import NamedTuple

from knowhalu.text.questions import declines_to_answer
from knowhalu.text.sentences import Span, content_words, pack_spans, sentences, word_count
from knowhalu.text.wordlists import DETERMINERS, HELPERS, NAME_PATTERN, PREPOSITIONS, VERBS


def locate_claim(claim: str, piece: Span) -> Span:
    """Return the span of a piece of the response that makes a claim: its exact words where they are there.

    Else that is the sentence with the most similar words; the whole piece where none shares any.
    """
    bare = claim.strip().rstrip(".!")
    if bare and (exact := re.search(rf"(?<!\w){re.escape(bare)}(?!\w)", piece.text)):
        return Span(piece.start + exact.start(), piece.start + exact.end(), exact.group())
    wanted = set(content_words(claim))
    alike, _, best = max(
        ((_dice_similarity(wanted, s.text), -i, s) for i, s in enumerate(sentences(piece.text))), default=(0.0, 0, piece)
    )
    return Span(piece.start + best.start, piece.start + best.end, best.text) if alike else piece


def _dice_similarity(wanted: set[str], text: str) -> float:
    """Return twice the shared words over all words (Dice): a long sentence does not win by its length alone."""
    given = set(content_words(text))
    return 2 * len(wanted & given) / (len(wanted) + len(given) or 1)


_UNSPLITTABLE = re.compile(
    r"[\"“”«»]|\b(?:if|unless|whether|either|neither|nor|or|both|not only|as well as|according to|that|than|because|although|"
    r"though|until|since|so that|rather|instead|only|hypothetically)\b"
    r"|\b(?:said|says|told|tells|claim(?:s|ed)?|report(?:s|ed)?|argue[sd]?|believe[sd]?|think|thinks|thought|announced|"
    r"den(?:y|ies|ied)|suggest(?:s|ed)?|warn(?:s|ed)?|allege[sd]?|estimate[sd]?|expect(?:s|ed)?|hope[sd]?|ask(?:s|ed)?)\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"\?[\"”’)\]\s]*$")  # noqa: RUF001
_RELATIVE = re.compile(r", (who|which) ([^,;:()]+)(,|[.!]?$)")
_APPOSITION = re.compile(r"^([^,;:()]+), ((?:an?|the) [^,;:()]+), ([^,].*)$", re.DOTALL)
_CONJUNCTION = re.compile(
    r"(?:;|,) (?:and |but |while |whereas )?|,? (?:and|but) (?!(?:also|then) )|,? (?:and|but) (?:also|then) "
)
_INDEPENDENT = re.compile(r"(?:;|,) (?:and |but |while |whereas )|; ")
_SUBJECT = re.compile(r"(?:(?:the|this|these|those|its|his|her|their|a|an) (?:[\w'’-]+ ){0,4}?[\w'’-]+)", re.IGNORECASE)  # noqa: RUF001
_THIRD_PERSON = re.compile(
    rf"\s*(?P<subject>(?:(?:[Tt]he|[Aa]n?|[Ii]ts|[Hh]is|[Hh]er|[Tt]heir) )?(?:{NAME_PATTERN.pattern}|(?<= )[a-z-]+(?<!s)))"
    rf" (?P<verb>[a-z]+(?<![siu])s) (?=(?:\d|{'|'.join(sorted(DETERMINERS | PREPOSITIONS))})\b)"
)
"""A verb that is not listed: a word in -s behind one name or "the" and one noun, before what can be its object."""
_NO_VERBS = frozenset("has does was perhaps always sometimes towards across besides afterwards years".split())
_PAST = frozenset(
    """
    died lived moved worked studied served returned remained graduated married retired played joined started became began wrote
    won went left took came fell rose led grew lost sold bought met received visited travelled settled resigned earned
    continued appeared arrived attended taught competed finished ended opened closed founded published
    """.split()
)
"""Finite after "and", never a second participle of the verb before."""
_ADJECTIVES = frozenset(
    "related associated used limited united advanced experienced detailed unnamed armed alleged needed dedicated named".split()
)
"""Words in -ed that after "and" are more often adjectives than verbs."""
_WAS = frozenset("is are was were".split())
_HAS = frozenset("has have had".split())
_MODAL = frozenset("will would can could shall should may might must do does did".split())
_PRONOUNS = frozenset("he she it they this that these those we i you there who which".split())
_NEGATIVE = re.compile(r"n['’]t$|^not$|^never$|^no$", re.IGNORECASE)  # noqa: RUF001
MAX_SUBJECT_WORDS, MAX_SENTENCE_WORDS = 8, 80
"""Maximum words of a subject, and of a sentence that is split."""


class Clause(NamedTuple):
    """An independent statement; it comes from `sentence[start:end]`, and `text` may be worded differently."""

    start: int
    end: int
    text: str


class _ParsedClause(NamedTuple):
    """A clause split at its verb: the subject, the words of the verb group, and whether anything follows them."""

    subject: str
    verbs: tuple[str, ...]
    goes_on: bool


def claims_nothing(sentence: str, *, answers: bool) -> bool:
    """Tell whether a sentence has nothing to check: a question, no words at all, or, of an answer, a refusal.

    "The report does not say who paid" refuses an answer; in a summary it is a claim like others.
    """
    refuses = answers and declines_to_answer(sentence)
    return refuses or _QUESTION.search(sentence) is not None or not any(c.isalnum() for c in sentence)


def split_clauses(sentence: str) -> list[Clause]:
    """Split a sentence into statements; the sentence itself where no rule applies."""
    whole = [Clause(0, len(sentence), sentence)]
    if _UNSPLITTABLE.search(sentence) or len(sentence.split()) > MAX_SENTENCE_WORDS:
        return whole
    main, aside = _without_asides(sentence)
    parts = _split_coordination(main)
    if parts is None:
        parts = [Span(0, len(main), main)]
    texts = [_with_full_stop(p.text) for p in parts] + aside
    return [_locate_clause(sentence, text) for text in texts] if len(texts) > 1 else whole


def _locate_clause(sentence: str, text: str) -> Clause:
    at = locate_claim(text, Span(0, len(sentence), sentence))
    return Clause(at.start, at.end, text)


def _with_full_stop(text: str) -> str:
    text = text.strip(" ,;")
    return text if text[-1:] in ".!" else f"{text}."


def _without_asides(sentence: str) -> tuple[str, list[str]]:
    """Extract a relative clause or an apposition after a comma, as a statement about the noun before it."""
    apposed = _APPOSITION.match(sentence)
    if apposed and _is_noun(apposed[1]) and _opens_with_verb(apposed[3]) and not _has_verb(apposed[2]):
        return f"{apposed[1]} {apposed[3]}", [f"{apposed[1]} is {apposed[2]}."]
    relative = _RELATIVE.search(sentence)
    if relative is None or not _opens_with_verb(relative[2]) or len(_RELATIVE.findall(sentence)) > 1:
        return sentence, []
    before, after = sentence[: relative.start()], sentence[relative.end() :]
    noun = _antecedent(before)
    if noun is None or (after.strip() and not _opens_with_verb(after.strip())) or (relative[3] == ",") != bool(after.strip()):
        return sentence, []
    inner = _split_coordination(f"{noun} {relative[2]}")
    asides = [p.text for p in inner] if inner else [f"{noun} {relative[2]}"]
    return f"{before}{after}" if after.strip() else f"{before}.", [_with_full_stop(capitalize(t)) for t in asides]


def _antecedent(before: str) -> str | None:
    """Return the noun that a relative clause is about: the name, or "the" and up to three words, directly before the comma."""
    names = [m.group() for m in NAME_PATTERN.finditer(before) if m.end() == len(before)]
    if names:
        return names[0] if not _has_verb(names[0]) else None
    found = re.search(r"\b(?:the|a|an|its|his|her|their) (?:[a-z][\w-]* ){0,2}[a-z][\w-]*$", before, re.IGNORECASE)
    if found is None or any(w.lower() in PREPOSITIONS or w.lower() in HELPERS for w in found.group().split()):
        return None
    first, _, rest = found.group().partition(" ")
    return f"the {rest}" if first.lower() in ("a", "an") else found.group()


def _split_coordination(text: str) -> list[Span] | None:
    """Split at the first "and", "but" or ";" that a second statement certainly follows; the subject is carried over."""
    for joint in _CONJUNCTION.finditer(text):
        left, right = text[: joint.start()], text[joint.end() :]
        first = _parse_clause(left)
        if first is None or not right.strip(" .!"):
            continue
        second = _complete_clause(first, left, right, bound="and" in joint.group() or "but" in joint.group())
        if second is None:
            continue
        more = _split_coordination(second)
        rest = [p.text for p in more] if more else [second]
        return [Span(0, len(t), t) for t in (left, *rest)]
    return None


def _complete_clause(first: _ParsedClause, left: str, right: str, *, bound: bool) -> str | None:
    """Return the right side as a statement of its own, with the subject of the left one where it lacks its own.

    A verb behind a mere comma may be a participle ("helped by exports"), so a subject is carried only by "and" or "but".
    """
    word = right.split()[0].strip(",.;").lower()
    if _is_verb(word):
        return _add_subject(first, right, word) if bound else None
    own = _parse_clause(right)
    if own is None:
        return None
    pronoun = own.subject.lower()
    if pronoun in ("he", "she", "it", "they"):
        names = [m.group() for m in NAME_PATTERN.finditer(left) if m.group().lower() not in DETERMINERS]
        sure = names == [first.subject] if pronoun in ("he", "she") else not names or names == [first.subject]
        return f"{first.subject}{right[len(own.subject) :]}" if sure and _is_noun(first.subject) else None
    return capitalize(right) if _is_noun(own.subject) else None


def _add_subject(first: _ParsedClause, right: str, word: str) -> str | None:
    """Give a verb phrase the subject before it, and the helping verb of the first where it needs one."""
    shares_object = not first.goes_on and first.verbs[0] not in _WAS  # "built and opened the bridge"
    if shares_object or any(_NEGATIVE.search(v) for v in first.verbs) or not _is_noun(first.subject):
        return None
    helper = first.verbs[0]
    if word in HELPERS or word in _PAST:
        return f"{first.subject} {right}" if helper not in _HAS | _MODAL or word in _WAS | _HAS | _MODAL else None
    if helper in _MODAL or helper in _HAS:
        return None
    if helper in _WAS and len(first.verbs) > 1 and word.endswith("ed"):
        return f"{first.subject} {first.verbs[0]} {right}"
    return None if helper in _WAS and word.endswith("ed") else f"{first.subject} {right}"


def _parse_clause(text: str) -> _ParsedClause | None:
    """Find subject and verb group of a clause; None where no verb is sure, or the subject is uncertain."""
    if (known := _parse_by_known_verb(text)) is not None:
        return known
    m = _THIRD_PERSON.match(text)
    return _ParsedClause(m["subject"], (m["verb"],), goes_on=True) if m and m["verb"] not in _NO_VERBS else None


def _parse_by_known_verb(text: str) -> _ParsedClause | None:
    tokens = text.split()
    bare = [t.strip(",.;:()").lower() for t in tokens]
    at = next((i for i, w in enumerate(bare) if i and _is_verb(w) and _may_be_verb(bare, i)), None)
    if at is None or at > MAX_SUBJECT_WORDS:
        return None
    subject = " ".join(tokens[:at])
    if "," in subject or bare[0] in PREPOSITIONS or any(w in ("and", "who", "which", "while", "when", "as") for w in bare[:at]):
        return None
    end = at + 1
    while end < len(bare) and (_NEGATIVE.search(bare[end]) or bare[end].endswith(("ed", "en")) or bare[end] in ("been", "born")):
        end += 1
    return _ParsedClause(subject, tuple(bare[at:end]), end < len(bare))


def independent_clauses(sentence: str) -> list[tuple[int, int]]:
    """Return the places of the clauses of a sentence that have a subject of their own; of the whole where it has only one."""
    whole = [(0, len(sentence))]
    if _UNSPLITTABLE.search(sentence) or len(sentence.split()) > MAX_SENTENCE_WORDS:
        return whole
    for joint in _INDEPENDENT.finditer(sentence):
        left, right = sentence[: joint.start()], sentence[joint.end() :]
        if find_subject(left) and find_subject(right):
            return [(0, joint.start()), *((a + joint.end(), b + joint.end()) for a, b in independent_clauses(right))]
    return whole


def clause_segments(text: str, limit: int) -> list[Span]:
    """Pack sentences into segments of at most `limit` words (KnowHalu, section 4.3).

    A longer sentence is split between independent clauses only: half an enumeration or half a clause cannot be judged, so what
    is still longer stays whole.
    """
    parts: list[Span] = []
    for span in sentences(text):
        whole = word_count(span.text) <= limit
        for start, end in [(0, len(span.text))] if whole else independent_clauses(span.text):
            parts.append(Span(span.start + start, span.start + end, span.text[start:end]))
    return pack_spans(text, parts, limit)


def find_subject(sentence: str) -> str | None:
    """Return the subject of a sentence: a name or a plain noun before its first verb; None where it is uncertain."""
    parsed = _parse_clause(sentence)
    return parsed.subject if parsed is not None and _is_noun(parsed.subject) else None


def _may_be_verb(bare: list[str], at: int) -> bool:
    """Tell whether a word that can be a verb is one here, and not a noun or an adjective after "the" or "of"."""
    return bare[at - 1] not in DETERMINERS and bare[at - 1] not in PREPOSITIONS


def _is_verb(word: str) -> bool:
    return word in VERBS or word in _PAST or (word.endswith("ed") and len(word) > 4 and word not in _ADJECTIVES)


def _has_verb(text: str) -> bool:
    return any(w.strip(",.").lower() in HELPERS for w in text.split())


def _opens_with_verb(text: str) -> bool:
    first = text.split(maxsplit=1)[:1]
    return bool(first) and _is_verb(first[0].strip(",.;").lower())


def _is_noun(subject: str) -> bool:
    """Tell whether a subject can be carried over: a name or a plain noun, not a pronoun."""
    if subject.lower() in _PRONOUNS:
        return False
    named = NAME_PATTERN.match(subject)
    plain = _SUBJECT.fullmatch(subject) is not None and not _has_verb(subject)
    return plain or (named is not None and named.group() == subject)


def capitalize(text: str) -> str:
    """Return a text whose first letter is a capital."""
    return text[:1].upper() + text[1:]
