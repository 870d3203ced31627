"""Samples: read from the rows of a user's file, with errors that name field and remedy, and identified by their content."""

import json
from array import array
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from knowhalu.errors import InputError
from knowhalu.io.rows import BYTE_ORDER_MARK, decode_utf8, is_json_object, parse_json, read_json_rows
from knowhalu.types import META_HISTORY, META_SAMPLES, META_SET, HallucinationKind, Sample

RESPONSE_FIELDS = ("response", "answer", "summary", "claim")
SOURCE_FIELDS = ("documents", "document", "context")
DOCUMENT_FIELDS = ("id", "title", "text")
META_FIELDS = ("split", "origin", "source", META_HISTORY)
"""Fields that are copied to `meta`: those of common data sets, and the dialogue before a response."""

SAMPLE_FIELDS = ("id", "question", *RESPONSE_FIELDS, *SOURCE_FIELDS, "knowledge", "label", "kind", "meta", *META_FIELDS)
FAITHFUL_LABELS = frozenset({"faithful", "correct", "right", "supported", "no", "0", "false"})
HALLUCINATED_LABELS = frozenset({"hallucinated", "incorrect", "wrong", "unsupported", "yes", "1", "true"})


def read_samples(path: Path) -> Iterator[Sample]:
    """Yield the samples of a file: JSON Lines, one JSON object, or a JSON array of objects, also compressed.

    JSON Lines are read line by line, and only hashes of the ids are held. Raises InputError naming file, line, field and
    remedy.
    """
    seen: dict[bytes, str] = {}
    for place, default_id, fields in read_json_rows(path):
        sample = parse_sample(fields, place, default_id)
        first = seen.setdefault(hash_id(sample.id), place)
        if first is not place:
            where = first.removeprefix(f"{path}, ")
            raise InputError(f"{place}, field 'id': {sample.id!r} is also the id of {where}. Give every row its own id, or none.")
        yield sample
    if not seen:
        raise InputError(f'{path}: holds no samples. Write one JSON object on each line, such as {{"response": "..."}}.')


def read_single_sample(data: bytes, name: str) -> Sample:
    """Parse a text with exactly one sample; raises InputError where there is none, or more than one."""
    content = decode_utf8(data.removeprefix(BYTE_ORDER_MARK), name)
    if not content.strip():
        raise InputError(f'{name}: holds nothing. Write one JSON object, such as {{"response": "..."}}.')
    lines = [line for line in content.split("\n") if line.strip()]
    item = parse_json(lines[0] if is_json_object(lines[0]) else content, name)
    rows = item if isinstance(item, list) else lines if is_json_object(lines[0]) else [item]
    if len(rows) != 1:
        raise InputError(f"{name}: holds {len(rows)} samples, not one. For many: knowhalu detect IN -o OUT.")
    return parse_sample(item[0] if isinstance(item, list) else item, name, "item")


def hash_id(name: str) -> bytes:
    """Return a 16-byte hash of an id, to hold many."""
    return blake2b(name.encode("utf-8"), digest_size=16).digest()


def hash_sample(sample: Sample) -> str:
    """Return a short hash of the fields of a sample that are checked."""
    content = sample.model_dump_json(include={"question", "response", "documents", "knowledge"})
    return blake2b(content.encode("utf-8"), digest_size=8).hexdigest()


class InputHashes:
    """Hashes of many samples, as their outcomes name them: of the checked fields, and of the `meta` that decides a verdict."""

    def __init__(self) -> None:
        self.contents, self._metas = array("Q"), array("I")

    def add(self, sample: Sample) -> None:
        """Add the next sample."""
        decisive = [sample.meta.get(name) for name in (META_SET, META_SAMPLES)]
        if META_HISTORY in sample.meta:  # else the hashes in older outcomes would be others
            decisive.append(sample.meta[META_HISTORY])
        meta = json.dumps(decisive, sort_keys=True, default=str)
        self.contents.append(int(hash_sample(sample), 16))
        self._metas.append(int(blake2b(meta.encode(), digest_size=4).hexdigest(), 16))

    def __getitem__(self, place: int) -> str:
        return f"{self.contents[place]:016x}-{self._metas[place]:08x}"

    def is_same(self, place: int, named: Any) -> bool:
        """Tell whether the hash `named` by an outcome is that of this sample; older versions hash no `meta`."""
        return named in (self[place], f"{self.contents[place]:016x}")


def parse_sample(row: Any, place: str, default_id: str) -> Sample:
    """Make a sample of the fields of a row; fields that are null count as absent.

    Raises InputError naming `place`, the field and the remedy.
    """
    if not isinstance(row, Mapping):
        raise InputError(f'{place}: {_type_name(row)} where an object is needed, such as {{"response": "..."}}')
    given = {k: v for k, v in row.items() if v is not None}
    for name in given:
        if name not in SAMPLE_FIELDS:
            raise _field_error(
                place, name, "unknown field", f"{_suggest_name(name, SAMPLE_FIELDS)}Put fields that are not checked into 'meta'"
            )
    response = _single_field(given, RESPONSE_FIELDS, place)
    if response is None:
        raise _field_error(place, "response", "is missing", "Give the text to check as response, answer, summary or claim")
    documents = _single_field(given, SOURCE_FIELDS, place)
    try:
        return Sample(
            id=_parse_id(given.get("id", default_id), place, "id"),
            response=check_text(given[response], place, response),
            question=check_text(given["question"], place, "question") if "question" in given else None,
            documents=_parse_documents(given[documents], place, documents) if documents else (),
            knowledge=_parse_knowledge(given.get("knowledge", []), place),
            label=_parse_label(given["label"], place) if "label" in given else None,
            kind=_parse_kind(given["kind"], place) if "kind" in given else None,
            meta=_parse_meta(given, place),
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{place}, field {'.'.join(map(str, first['loc']))!r}: {first['msg']}") from error


def check_text(value: Any, place: str, field: str, *, blank: bool = False) -> str:
    """Return a text that can be encoded and, unless `blank` is allowed, is not blank; raises InputError for anything else."""
    if not isinstance(value, str):
        raise _field_error(place, field, f"{_type_name(value)} where a text is needed", "Put it in quotes")
    if not blank and not value.strip():
        raise _field_error(
            place, field, "is empty", "Write its text, or leave the row out" if field in RESPONSE_FIELDS else "Leave it out"
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        problem = f"has half a character (a lone surrogate) at position {error.start}"
        raise _field_error(place, field, problem, "Write the file again from the original text") from error
    return value


def _field_error(place: str, field: str, problem: str, remedy: str) -> InputError:
    return InputError(f"{place}, field {field!r}: {problem}. {remedy}.")


def _type_name(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "null")


def _suggest_name(name: str, known: tuple[str, ...]) -> str:
    near = get_close_matches(name.lower(), known, 1)
    return f"Did you mean {near[0]!r}? " if near else f"Known: {', '.join(known)}. "


def _single_field(given: Mapping[str, Any], names: tuple[str, ...], place: str) -> str | None:
    present = [n for n in names if n in given]
    if len(present) > 1:
        raise _field_error(place, present[1], f"means the same as {present[0]!r}, and both are given", "Keep one of them")
    return present[0] if present else None


def _parse_id(value: Any, place: str, field: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return check_text(value, place, field)


def _parse_documents(value: Any, place: str, field: str) -> list[dict[str, str]]:
    if isinstance(value, str | Mapping):
        value = [value]
    if not isinstance(value, list | tuple):
        raise _field_error(
            place, field, f"{_type_name(value)} where texts are needed", "Write a text or a list of texts or {title, text}"
        )
    documents = [_parse_document(v, place, f"{field}[{i}]") for i, v in enumerate(value)]
    ids = [d["id"] for d in documents if "id" in d]
    if len(set(ids)) < len(ids):
        raise _field_error(place, field, "two documents have the same id", "Give each its own, or none")
    return documents


def _parse_document(value: Any, place: str, field: str) -> dict[str, str]:
    if isinstance(value, str):
        return {"text": check_text(value, place, field)}
    if not isinstance(value, Mapping):
        raise _field_error(place, field, f"{_type_name(value)} where a document is needed", "Write a text or {title, text}")
    given = {k: v for k, v in value.items() if v is not None}
    for name in given:
        if name not in DOCUMENT_FIELDS:
            raise _field_error(
                place, f"{field}.{name}", "unknown field", f"{_suggest_name(name, DOCUMENT_FIELDS)}A document has no others"
            )
    if "text" not in given:
        raise _field_error(place, f"{field}.text", "is missing", "Give the document's text")
    document = {"text": check_text(given["text"], place, f"{field}.text")}
    if "title" in given:
        document["title"] = check_text(given["title"], place, f"{field}.title", blank=True)
    if "id" in given:
        document["id"] = _parse_id(given["id"], place, f"{field}.id")
    return document


def _parse_knowledge(value: Any, place: str) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list | tuple):
        raise _field_error(place, "knowledge", f"{_type_name(value)} where texts are needed", "Write a text or a list of texts")
    return tuple(check_text(v, place, f"knowledge[{i}]") for i, v in enumerate(value))


def _parse_label(value: Any, place: str) -> str:
    word = str(value).strip().lower() if isinstance(value, str | int) else ""
    if word in FAITHFUL_LABELS:
        return "faithful"
    if word in HALLUCINATED_LABELS:
        return "hallucinated"
    remedy = (
        f"Write 'faithful' ({', '.join(sorted(FAITHFUL_LABELS))}) or 'hallucinated' ({', '.join(sorted(HALLUCINATED_LABELS))})"
    )
    raise _field_error(place, "label", f"{value!r} is no label", remedy)


def _parse_kind(value: Any, place: str) -> HallucinationKind:
    try:
        return HallucinationKind(value.strip().lower().replace("-", "_"))
    except (ValueError, AttributeError) as error:
        raise _field_error(
            place, "kind", f"{value!r} is no kind", f"Write one of {', '.join(HallucinationKind)}, or leave it out"
        ) from error


def _parse_meta(given: Mapping[str, Any], place: str) -> dict[str, Any]:
    meta = given.get("meta", {})
    if not isinstance(meta, Mapping):
        raise _field_error(place, "meta", f"{_type_name(meta)} where an object is needed", 'Write {"name": value}')
    common = {name: given[name] for name in META_FIELDS if name in given}
    for name in common:
        if name in meta:
            raise _field_error(place, name, "is given both at the top level and in 'meta'", "Keep one of them")
    return {**meta, **common}
