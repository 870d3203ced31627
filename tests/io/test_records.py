"""Samples and outcomes of files: reading, and the error of every faulty row."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowhalu.errors import InputError
from knowhalu.io.outcomes import format_outcome, parse_outcome
from knowhalu.io.samples import hash_sample, read_samples, read_single_sample
from knowhalu.results import Failure, Segment, Verdict
from knowhalu.types import HallucinationKind, Judgment, KnowledgeForm, Label, Sample, Task

GOOD = b'{"id": "a", "response": "Mars is red.", "knowledge": "Mars looks red."}\n'


def samples_of(folder: Path, data: bytes, name: str = "in.jsonl") -> list[Sample]:
    path = folder / name
    path.write_bytes(data)
    return list(read_samples(path))


def rows(*fields: dict) -> bytes:
    return "".join(json.dumps(f) + "\n" for f in fields).encode()


def test_aliases_meta_and_labels_become_the_fields_of_a_sample(tmp_path):
    row = {"id": 7, "question": "Which planet?", "answer": "Mars", "context": ["one", {"title": "T", "text": "two"}]}
    row |= {"label": "Wrong", "kind": "off-target", "split": "test", "source": None, "meta": {"group": "g"}}
    (sample,) = samples_of(tmp_path, rows(row))
    assert (sample.id, sample.response, sample.label, sample.kind) == ("7", "Mars", "hallucinated", HallucinationKind.OFF_TARGET)
    assert [(d.title, d.text) for d in sample.documents] == [("", "one"), ("T", "two")]
    assert sample.meta == {"group": "g", "split": "test"}


@pytest.mark.parametrize("word", ["faithful", "correct", "right", "supported", "no", "0", "false", 0, False])
def test_labels_that_mean_faithful(tmp_path, word):
    assert samples_of(tmp_path, rows({"claim": "x", "label": word}))[0].label == "faithful"


@pytest.mark.parametrize("word", ["hallucinated", "incorrect", "WRONG", "unsupported", "yes", "1", "true", 1, True])
def test_labels_that_mean_hallucinated(tmp_path, word):
    assert samples_of(tmp_path, rows({"claim": "x", "label": word}))[0].label == "hallucinated"


def test_missing_ids_are_line_numbers_that_count_blank_lines(tmp_path):
    data = b"\xef\xbb\xbf" + b'{"claim": "x"}\r\n\r\n  \n{"claim": "y"}'
    assert [s.id for s in samples_of(tmp_path, data)] == ["line-1", "line-4"]


def test_a_line_separator_within_a_text_does_not_end_the_line(tmp_path):
    data = '{"claim": "one\u2028two\x85three"}\n'.encode()
    assert samples_of(tmp_path, data)[0].response == "one\u2028two\x85three"


def test_gzip_arrays_objects_and_lines_named_json_are_read(tmp_path):
    two = rows({"claim": "x"}, {"claim": "y"})
    assert len(samples_of(tmp_path, gzip.compress(two), "in.jsonl.gz")) == 2
    assert len(samples_of(tmp_path, two, "lines.json")) == 2
    assert [s.id for s in samples_of(tmp_path, b'[\n{"claim": "x"},\n{"claim": "y"}]', "array.json")] == ["item-1", "item-2"]
    assert samples_of(tmp_path, b'{\n"claim":\n"x"}', "one.json")[0].response == "x"


BAD = {
    "unknown field": (b'{"anwser": "x"}', ["line 1", "'anwser'", "Did you mean 'answer'?"]),
    "two names of one field": (b'{"answer": "x", "response": "y"}', ["'answer'", "means the same as 'response'", "Keep one"]),
    "no response": (b'{"question": "x"}', ["'response'", "missing", "answer, summary or claim"]),
    "empty text": (b'{"claim": " \\n"}', ["'claim'", "is empty"]),
    "empty question": (b'{"claim": "x", "question": ""}', ["'question'", "is empty", "Leave it out"]),
    "empty document": (b'{"claim": "x", "documents": ["a", ""]}', ["'documents[1]'", "is empty"]),
    "wrong type": (b'{"claim": ["x"]}', ["'claim'", "a list where a text is needed"]),
    "number for documents": (b'{"claim": "x", "documents": 3}', ["'documents'", "a number where texts are needed"]),
    "unknown field of a document": (b'{"claim": "x", "documents": [{"txt": "a"}]}', ["'documents[0].txt'", "'text'"]),
    "twin documents": (b'{"claim": "x", "documents": [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}]}', ["same id"]),
    "objects as knowledge": (b'{"claim": "x", "knowledge": [{"text": "a"}]}', ["'knowledge[0]'", "an object where a text"]),
    "no label": (b'{"claim": "x", "label": "maybe"}', ["'label'", "'maybe' is no label", "faithful"]),
    "no kind": (b'{"claim": "x", "kind": "odd"}', ["'kind'", "off_target, factual"]),
    "meta that is a text": (b'{"claim": "x", "meta": "m"}', ["'meta'", "object"]),
    "meta twice": (b'{"claim": "x", "split": "a", "meta": {"split": "b"}}', ["'split'", "Keep one"]),
    "a field twice": (b'{"claim": "x", "claim": "y"}', ["'claim'", "given twice"]),
    "half a character": (b'{"claim": "ab\\ud800"}', ["'claim'", "surrogate", "position 2"]),
    "not JSON": (b'{"claim": x}', ["line 1", "not JSON", "column 11"]),
    "not an object": (b'"claim"', ["line 1", "a text where an object is needed"]),
    "nested too deep": (b'{"meta": ' + b"[" * 100_000, ["line 1", "nested too deep"]),
    "too long a number": (b'{"claim": "x", "meta": {"n": ' + b"9" * 5000 + b"}}", ["line 1", "number"]),
    "an array in lines": (b'[{"claim": "x"}]', ["line 1", "array", ".json"]),
    "empty file": (b"", ["holds no samples"]),
    "only blank lines": (b"\n \r\n", ["holds no samples"]),
    "same id": (GOOD + b"\n" + GOOD, ["line 3", "'id'", "'a' is also the id of line 1"]),
    "id of a numbered line": (b'{"id": "line-2", "claim": "x"}\n{"claim": "y"}', ["line 2", "'line-2'"]),
    "not UTF-8": (GOOD + b'{"claim": "caf\xe9"}', ["line 2", f"byte {len(GOOD) + 14}", "Save the file as UTF-8"]),
    "UTF-16": ('{"claim": "x"}'.encode("utf-16"), ["line 1", "byte 0", "looks like UTF-16"]),
}


@pytest.mark.parametrize(("data", "said"), BAD.values(), ids=BAD.keys())
def test_faulty_row_is_refused_with_file_place_and_remedy(tmp_path, data, said):
    with pytest.raises(InputError) as caught:
        samples_of(tmp_path, data)
    for part in ("in.jsonl", *said):
        assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_file_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"no\.jsonl: no such file"):
        list(read_samples(tmp_path / "no.jsonl"))
    with pytest.raises(InputError, match="gzip data ends early"):
        samples_of(tmp_path, gzip.compress(rows({"claim": "x"}, {"claim": "y"}))[:-9], "cut.jsonl.gz")
    with pytest.raises(InputError, match="cannot be read"):
        list(read_samples(tmp_path))


def test_faulty_row_of_an_array_is_named_by_its_number(tmp_path):
    with pytest.raises(InputError, match="in.json, item 2, field 'claim': is empty"):
        samples_of(tmp_path, b'[{"claim": "x"}, {"claim": ""}]', "in.json")


def test_single_sample_is_read_from_any_layout_and_several_are_refused():
    assert read_single_sample(b'\xef\xbb\xbf{\n "claim": "x"\n}\n', "stdin").response == "x"
    assert read_single_sample(b'[{"claim": "x"}]', "stdin").response == "x"
    for several in (b'{"claim": "x"}\n{"claim": "y"}\n', b'[{"claim": "x"}, {"claim": "y"}]'):
        with pytest.raises(InputError, match="holds 2 samples"):
            read_single_sample(several, "stdin")
    with pytest.raises(InputError, match="holds nothing"):
        read_single_sample(b" \n", "stdin")


def test_outcomes_of_versions_without_reasons_are_read():
    """A line as it was written before verdicts had `open` and `relation`."""
    judgment = (
        '{"form":null,"label":"INCONCLUSIVE","confidence":0.0,"supported":0.5,"rationale":"-","measured":"nowhere","kind":null,'
        '"steps":[],"features":{}}'
    )
    line = (
        '{"id":"1","task":"claim","method":"m","label":"INCONCLUSIVE","hallucinated":null,"kind":null,"probability":0.5,'
        '"reason":"-","segments":[{"start":0,"end":1,"text":"x","label":"INCONCLUSIVE","probability":0.5,"base":'
        + judgment
        + "}]}"
    )
    verdict = parse_outcome(line)
    segment = verdict.segments[0]
    assert {v.inconclusive_reason for v in (verdict, segment, segment.base)} == {None} and verdict.relation is None
    assert parse_outcome(format_outcome(verdict)) == verdict and verdict.why == ""


def test_content_hash_depends_on_checked_fields_and_not_on_labels():
    base = Sample(id="a", response="x", question="q")
    assert hash_sample(base) == hash_sample(base.model_copy(update={"id": "b", "label": "faithful"}))
    others = [Sample(response="x"), Sample(response="y", question="q"), Sample(response="x", question="q", knowledge="k")]
    assert len({hash_sample(s) for s in (base, *others)}) == 4


hostile = st.text(st.characters(exclude_categories=["Cs"]), max_size=40) | st.sampled_from(
    ["\u2028\u2029\x85", '"}\n{"id": "x"}', "\x00\x1b[2J", "\ufeff", "\r\n", "\\ud800", "\U0001f600"]
)


@given(name=hostile, reason=hostile, text=hostile, number=st.floats(), content=st.sampled_from(["", "00ff"]))
def test_outcomes_survive_formatting_and_parsing(name, reason, text, number, content):
    judgment = Judgment(
        form=KnowledgeForm.STRUCTURED, label=Label.CORRECT, confidence=0.1, rationale=text, features={text: number}
    )
    segment = Segment(start=0, end=len(text), text=text, label=Label.CORRECT, probability=0.3, base=judgment)
    verdict = Verdict(
        id=name, task=Task.CLAIM, method="m", label=Label.CORRECT, hallucinated=None, kind=None,
        probability=0.1 + 0.2, reason=reason, segments=(segment,), seconds={"total": 1e-7},
    )  # fmt: skip
    for outcome in (verdict, Failure(id=name, stage=text, reason=reason, reply=text)):
        line = format_outcome(outcome, content)
        assert b"\n" not in line.encode()
        assert repr(parse_outcome(line)) == repr(outcome)


@pytest.mark.parametrize("line", ['{"run":{}}', "[]", "3", "{", '{"id":"a","label":"CORRECT"}', b"\xff"])
def test_invalid_outcome_is_refused(line):
    with pytest.raises(InputError, match="not an outcome"):
        parse_outcome(line)
