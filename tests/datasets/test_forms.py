"""Every layout of every data set: a small file of it, and the expected samples."""

import json

import pytest

from knowhalu.datasets.catalog import dataset_cards
from knowhalu.datasets.loading import load_samples, open_dataset, recognise_dataset
from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import group_keys, group_numbers

F, H = "faithful", "hallucinated"
LONG = " ".join(["word"] * 121)
CLAIM = {"id": "c1", "source": "The sky is blue.", "claim": "It is red.", "label": "unsupported", "label3": "contradicted"}
PAPER = {"title": "On snow", "summary": "Snow is white.", "authors": ["A. Author"], "metadata": {"year": 1999}}
QA = {"knowledge": "K", "question": "Q?", "right_answer": "R", "hallucinated_answer": "W"}
SUMMARIES = {"document": "D", "right_summary": "R", "hallucinated_summary": "W", "error_type": "entity"}
UTTERANCE = {"knowledge": "K", "history": ["Hi"], "response": "R", "original_response": "W", "BEGIN": ["Hallucination"]}
MARK = {"start": 3, "end": 6, "label_type": "Evident Conflict"}

# name: row, then (label, response, sources, question, what `meta` has among others) of each sample
FORMS = [
    ("halueval-qa", QA, [(F, "R", ["K"], "Q?", {"pair": "line-1"}), (H, "W", ["K"], "Q?", {"pair": "line-1"})]),
    ("halueval-qa", {"knowledge": "K", "question": "Q?", "answer": "A", "hallucination": "yes"}, [(H, "A", ["K"], "Q?", {})]),
    ("halueval-dialogue",
     {"knowledge": "K", "dialogue_history": "[Human]: Hi", "right_response": "R", "hallucinated_response": "W"},
     [(F, "R", ["K"], None, {"dialogue_history": "[Human]: Hi"}), (H, "W", ["K"], None, {})]),
    ("halueval-dialogue", {"knowledge": "K", "dialogue_history": "Hi", "response": "R", "hallucination": "no"},
     [(F, "R", ["K"], None, {})]),
    ("halueval-general",
     {"ID": "7", "user_query": "Q?", "chatgpt_response": "It is so.", "hallucination": "yes", "hallucination_spans": ["is so"]},
     [(H, "It is so.", [], "Q?", {"spans": [[3, 8]]})]),
    ("halueval-summarization", SUMMARIES, [(F, "R", ["D"], None, {}), (H, "W", ["D"], None, {"type": "entity"})]),
    ("halueval-summarization", {"document": "D", "summary": "S", "hallucination": "no"}, [(F, "S", ["D"], None, {})]),
    ("knowhalu-qa", QA, [(F, "R", ["K"], "Q?", {}), (H, "W", ["K"], "Q?", {})]),
    ("knowhalu-qa-wikipedia", QA, [(F, "R", [], "Q?", {}), (H, "W", [], "Q?", {})]),
    ("knowhalu-summarization", SUMMARIES, [(F, "R", ["D"], None, {}), (H, "W", ["D"], None, {})]),
    ("ragtruth",
     {"id": "1", "source_id": "s", "model": "m", "response": "It fell.", "labels": [MARK], "quality": "good",
      "task_type": "QA", "source_info": {"question": "Q?", "passages": "passage 1:One.\n\npassage 2:Two.\n\n"}},
     [(H, "It fell.", ["One.", "Two."], "Q?",
       {"spans": [[3, 6]], "type": "Evident Conflict", "part": "QA", "model": "m", "quality": "good"})]),
    ("ragtruth",
     {"id": 2, "query": "Summarize.", "context": "C", "output": "It fell.", "hallucination_labels": "[]", "task_type": "Summary"},
     [(F, "It fell.", ["C"], None, {"spans": [], "part": "Summary"})]),
    ("felm",
     {"index": "4", "prompt": "Q?", "response": "Yes. It is. So.", "segmented_response": ["Yes.", "It is.", "So."],
      "labels": [True, False, False], "type": [None, "knowledge_error"], "domain": "wk"},
     [(H, "Yes. It is. So.", [], "Q?", {"spans": [[5, 15]], "type": "knowledge_error", "part": "wk"})]),
    ("faithdial", {"utterances": [UTTERANCE, {**UTTERANCE, "BEGIN": ["Generic"]}]},
     [(F, "R", ["K"], None, {"history": "Hi"}), (H, "W", ["K"], None, {"type": "hallucination"}), (F, "R", ["K"], None, {})]),
    ("faithdial", {**UTTERANCE, "original_response": None}, [(F, "R", ["K"], None, {})]),
    ("begin",
     {"model_name": "t5", "data_source": "wow", "knowledge": "K", "message": "Hi", "response": "R", "begin_label": "Generic"},
     [(H, "R", ["K"], None, {"message": "Hi", "part": "wow", "model_name": "t5"})]),
    ("begin", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {"type": "contradicted"})]),
    ("truthfulqa",
     {"Question": "Q?", "Category": "Law", "Correct Answers": "A; B", "Incorrect Answers": "C; C;"},
     [(F, "A", [], "Q?", {"category": "Law"}), (F, "B", [], "Q?", {}), (H, "C", [], "Q?", {})]),
    ("truthfulqa", {"question": "Q?", "correct_answers": ["A"], "incorrect_answers": ["C", ""]},
     [(F, "A", [], "Q?", {}), (H, "C", [], "Q?", {})]),
    ("truthfulqa", {"question": "Q?", "mc2_targets": {"choices": ["A", "C"], "labels": [1, 0]}},
     [(F, "A", [], "Q?", {}), (H, "C", [], "Q?", {})]),
    ("fave", {"query": "Q?", "papers": [PAPER], "response": "Snow is black.", "label": "hallucinated"},
     [(H, "Snow is black.", ["Snow is white."], "Q?", {})]),
    ("summeval",
     {"id": "d", "model_id": "M1", "text": "T", "decoded": "S", "expert_annotations": [{"consistency": 5}, {"consistency": 4}]},
     [(H, "S", ["T"], None, {"model_id": "M1"})]),
    ("summeval", {"id": "d", "text": "T", "machine_summaries": ["S", "U"], "consistency": [5.0, 4.67]},
     [(F, "S", ["T"], None, {}), (H, "U", ["T"], None, {})]),
    ("summeval", {**CLAIM, "label": "supported"}, [(F, "It is red.", ["The sky is blue."], None, {"type": None})]),
    ("qags",
     {"article": "A", "summary_sentences": [
         {"sentence": "S", "responses": [{"response": "yes"}, {"response": "no"}, {"response": "yes"}]},
         {"sentence": "U", "responses": [{"response": "no"}, {"response": "no"}, {"response": "yes"}]}]},
     [(F, "S", ["A"], None, {"votes": "2/3"}), (H, "U", ["A"], None, {"votes": "1/3"})]),
    ("qags", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("factcc", {"id": "x", "text": "T", "claim": "C", "label": "INCORRECT"}, [(H, "C", ["T"], None, {})]),
    ("factcc", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("summedits", {"id": "x", "doc": "D", "summary": "S", "label": 0, "edit_types": ["a", "b"]},
     [(H, "S", ["D"], None, {"type": "a, b"})]),
    ("summedits", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("aggrefact", {"dataset": "FRANK", "origin": "xsum", "doc": "D", "summary": "S", "label": 1.0, "cut": "test"},
     [(F, "S", ["D"], None, {"part": "FRANK", "origin": "xsum"})]),
    ("llm-aggrefact", {"dataset": "Wice", "doc": "D", "claim": "C", "label": 0}, [(H, "C", ["D"], None, {"part": "Wice"})]),
    ("bump", SUMMARIES, [(F, "R", ["D"], None, {}), (H, "W", ["D"], None, {"type": "entity"})]),
    ("fib", SUMMARIES, [(F, "R", ["D"], None, {}), (H, "W", ["D"], None, {})]),
    ("fever", {"id": 3, "claim": "C", "label": "NOT ENOUGH INFO", "evidence": [[[1, None, None, None]]]},
     [(H, "C", [], None, {"type": "not enough info"})]),
    ("fever", {"cid": 3, "query": "C", "context": "E", "label": "SUPPORTS"}, [(F, "C", ["E"], None, {})]),
    ("fever", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("vitaminc", {"unique_id": "u", "case_id": "k", "claim": "C", "evidence": "E", "label": "REFUTES"},
     [(H, "C", ["E"], None, {"type": "refutes"})]),
    ("vitaminc", {"claim": "C", "evidence": "E", "label": "SUPPORTS"}, [(F, "C", ["E"], None, {})]),
    ("vitaminc", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("fever-symmetric", {"id": 1, "claim": "C", "evidence": "E", "gold_label": "REFUTES"}, [(H, "C", ["E"], None, {})]),
    ("fever-symmetric", {"id": 1, "claim": "C", "evidence_sentence": "E", "label": "SUPPORTS"}, [(F, "C", ["E"], None, {})]),
    ("fever-symmetric", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("fm2", {"id": "f", "text": "C", "label": "REFUTES", "wikipedia_page": "P", "gold_evidence": [{"text": "E"}, {"text": "G"}]},
     [(H, "C", ["P: E G"], None, {})]),
    ("fm2", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("feverous", {"id": "f", "claim": "C", "gold": "supports", "evidence": "E", "num_hops": "2"},
     [(F, "C", ["E"], None, {"num_hops": "2"})]),
    ("feverous", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("climate-fever",
     {"claim_id": "1", "claim": "C", "claim_label": "DISPUTED", "evidences": [{"evidence": "E"}, {"evidence": "G"}]},
     [(H, "C", ["E\nG"], None, {"type": "disputed"})]),
    ("climate-fever", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("healthver", {"id": "5", "evidence": "E", "claim": "C", "label": "Neutral", "question": "Q?"},
     [(H, "C", ["E"], None, {"question": "Q?", "type": "Neutral"})]),
    ("healthver", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("covidfact", {"claim": "C", "label": "SUPPORTED", "evidence": ["E", "G"], "gold_source": "u"},
     [(F, "C", ["E\nG"], None, {})]),
    ("covidfact", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("scifact", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("wice",
     {"label": "partially_supported", "claim": "It is not so.", "evidence": ["E", "G"], "supporting_sentences": [[0]],
      "claim_tokens": ["It", "is", "not", "so", "."], "non_supported_spans": [False, False, True, True, False]},
     [(H, "It is not so.", ["E\nG"], None, {"spans": [[6, 12]], "type": "partially_supported"})]),
    ("wice", {"label": "supported", "claim": "C", "evidence": ["E"], "supporting_sentences": [[0]]}, [(F, "C", ["E"], None, {})]),
    ("wice", {**CLAIM, "label3": None, "raw_label": "not_supported"},
     [(H, "It is red.", ["The sky is blue."], None, {"type": "not_supported"})]),
    ("cad-snli", {"sentence1": "P", "sentence2": "C", "gold_label": "neutral"}, [(H, "C", ["P"], None, {"type": "neutral"})]),
    ("cad-snli", {"premise": "P", "hypothesis": "C", "label": "entailment"}, [(F, "C", ["P"], None, {})]),
    ("cad-snli", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("control", {"uid": "u", "premise": "P", "hypothesis": "C", "label": "c"}, [(H, "C", ["P"], None, {})]),
    ("control", {"sentence1": "P", "sentence2": "C", "gold_label": "entailment"}, [(F, "C", ["P"], None, {})]),
    ("control", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {})]),
    ("nli", {"premise": "P", "hypothesis": "C", "label": 0}, [(F, "C", ["P"], None, {})]),
    ("nli", {"premise": "P", "hypothesis": "C", "label": 2}, [(H, "C", ["P"], None, {})]),
    ("nli", {"premise": "P", "hypothesis": "C", "label": -1}, []),
    ("nli", {"sentence1": "P", "sentence2": "C", "gold_label": "-"}, []),
    ("claims", CLAIM, [(H, "It is red.", ["The sky is blue."], None, {"set": "claims"})]),
    ("qa-pairs", QA, [(F, "R", ["K"], "Q?", {}), (H, "W", ["K"], "Q?", {})]),
    ("summary-pairs", SUMMARIES, [(F, "R", ["D"], None, {}), (H, "W", ["D"], None, {})]),
    ("written-claims",
     {"id": "w", "domain": "d", "genre": "g", "document": "It is blue.", "claims": [
         {"text": "It is red.", "label": "contradicted", "error_type": "entity", "wrong": "red", "support": []},
         {"text": "It is blue.", "label": "supported", "error_type": None, "wrong": None, "support": ["It is blue."]}]},
     [(H, "It is red.", ["It is blue."], None, {"type": "entity", "spans": [[6, 9]]}),
      (F, "It is blue.", ["It is blue."], None, {"spans": []})]),
    ("written-answers",
     {"id": "w", "knowledge": "It is blue.", "question": "Q?", "hops": 1, "answers": [
         {"text": "I do not know.", "label": "refusal", "kind": None, "wrong": None},
         {"text": "A colour.", "label": "off_target", "kind": "too_broad", "wrong": None}]},
     [(F, "I do not know.", ["It is blue."], "Q?", {"answer": "refusal", "spans": []}),
      (H, "A colour.", ["It is blue."], "Q?", {"type": "too_broad", "spans": None})]),
    ("samples", {"claim": "C", "knowledge": ["K"], "label": "correct"}, [(F, "C", ["K"], None, {"set": "samples"})]),
    ("samples", {"response": "C", "label": "wrong"}, [(H, "C", [], None, {})]),
    ("samples", {"answer": "C", "question": "Q?", "label": "no"}, [(F, "C", [], "Q?", {})]),
    ("samples", {"summary": "C", "document": "D", "label": "yes"}, [(H, "C", ["D"], None, {})]),
]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    def write(*rows, name="data.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    return write


def read(name, path, split=None):
    return list(load_samples(open_dataset(name, path, split)))


def sources(sample):
    return [d.text for d in sample.documents] + list(sample.knowledge)


@pytest.mark.parametrize(("name", "row", "expected"), FORMS)
def test_row_becomes_the_expected_samples(file, name, row, expected):
    found = read(name, file(row))
    assert [(s.label, s.response, sources(s), s.question) for s in found] == [e[:4] for e in expected]
    for sample, (*_, meta) in zip(found, expected, strict=True):
        assert {n: sample.meta.get(n) for n in meta} == meta
        assert sample.meta["set"] == name
    assert len({s.id for s in found}) == len(found)


def test_every_layout_of_every_set_has_a_row_here():
    met = {(name, open_fields(name, row)) for name, row, _ in FORMS} | {("scifact", 0)}
    assert met == {(name, i) for name, card in dataset_cards().items() for i in range(len(card.layouts))}


def open_fields(name, row):
    return next(i for i, layout in enumerate(dataset_cards()[name].layouts) if all(field in row for field in layout.fields))


LABELS = ("label", "hallucination", "gold_label", "begin_label", "claim_label", "gold")


@pytest.mark.parametrize(("name", "row", "label"), [(n, r, f) for n, r, _ in FORMS for f in LABELS if f in r])
def test_unknown_label_is_refused_with_the_known_ones(file, name, row, label):
    with pytest.raises(InputError, match=rf"data.jsonl, line 2, field '{label}': 'perhaps' is no label.*[fF]aithful"):
        read(name, file(row, {**row, label: "perhaps"}))


@pytest.mark.parametrize(("name", "row", "expected"), FORMS)
def test_row_without_a_required_field_is_refused(file, name, row, expected):
    for field in dataset_cards()[name].layouts[open_fields(name, row)].fields:
        with pytest.raises(InputError, match=rf"data.jsonl, line 2, field '{field}': is missing"):
            read(name, file(row, {n: v for n, v in row.items() if n != field}))


def test_long_source_is_a_document_and_short_one_knowledge_unless_the_layout_decides(file):
    short, long = read("claims", file(CLAIM, {**CLAIM, "id": "c2", "source": LONG}))
    assert (len(short.documents), len(short.knowledge), len(long.documents)) == (0, 1, 1)
    assert read("summary-pairs", file(SUMMARIES))[0].documents
    assert read("qa-pairs", file({**QA, "knowledge": LONG}))[0].knowledge


def test_rows_of_one_source_and_rows_of_one_claim_are_one_group(file):
    rows = read(
        "claims",
        file(
            CLAIM, {**CLAIM, "id": "b", "claim": "Something else."}, {**CLAIM, "id": "c", "source": "Another."},
            {**CLAIM, "id": "d", "source": "A third.", "claim": "A third."},
        ),
    )  # fmt: skip
    assert list(group_numbers(map(group_keys, rows))) == [0, 0, 0, 1]


def test_scifact_takes_abstracts_from_the_corpus_file(file):
    file({"doc_id": 7, "title": "T", "abstract": ["One.", "Two."]}, {"doc_id": 8, "title": "U", "abstract": ["Three."]},
         name="corpus.jsonl")  # fmt: skip
    evidence = {"7": [{"sentences": [0], "label": "SUPPORT"}]}
    row = {"id": 1, "claim": "C", "evidence": evidence, "cited_doc_ids": [7, 8]}
    supported, open_ = read("scifact", file(row, name="claims_dev.jsonl"))
    assert (supported.id, supported.label, supported.knowledge) == ("1-7", F, ("T\nOne. Two.",))
    assert (open_.label, open_.meta["type"]) == (H, "no evidence")
    with pytest.raises(InputError, match=r"field 'cited_doc_ids': '9' is not in corpus.jsonl"):
        read("scifact", file({**row, "cited_doc_ids": [9]}, name="claims_dev.jsonl"))


def test_ragtruth_takes_sources_from_the_source_file(file, tmp_path):
    row = {"id": "1", "source_id": "s", "model": "m", "labels": [], "response": "R", "split": "test"}
    path = file(row, {**row, "id": "2", "split": "train"}, name="response.jsonl")
    with pytest.raises(InputError, match="its texts are in source_info.jsonl, which is not in the same folder"):
        read("ragtruth", path)
    file({"source_id": "s", "task_type": "Data2txt", "source_info": {"name": "Subway"}}, name="source_info.jsonl")
    (sample,) = read("ragtruth", tmp_path)
    assert (sample.label, json.loads(sample.documents[0].text)) == (F, {"name": "Subway"})
    with pytest.raises(InputError, match=r"field 'source_id': 't' is not in source_info.jsonl"):
        read("ragtruth", file({**row, "source_id": "t"}, name="response.jsonl"))


def test_keys_that_join_two_files_are_whole_numbers_or_refused(file, tmp_path):
    rows = [{"id": str(i), "source_id": float(i), "model": "m", "labels": [], "response": f"R{i}"} for i in (8, 7)]
    file(*rows, name="response.jsonl")
    sources = [{"source_id": i, "task_type": "Summary", "source_info": f"Source {i}."} for i in (7, 8)]
    file(*sources, name="source_info.jsonl")
    assert [(s.response, s.documents[0].text) for s in read("ragtruth", tmp_path)] == [("R8", "Source 8."), ("R7", "Source 7.")]
    for name, said in ((12.5, "12.5 is no id"), (True, "True is no id"), (None, "is missing")):
        file({**sources[0], "source_id": name}, name="source_info.jsonl")
        with pytest.raises(InputError, match=f"source_info.jsonl, line 1, field 'source_id': {said}"):
            read("ragtruth", tmp_path)


@pytest.mark.parametrize("rating", [float("nan"), 0, 5.5, True, "5"])
def test_invalid_rating_is_refused(file, rating):
    row = {"id": "d", "text": "T", "machine_summaries": ["S"], "consistency": [rating]}
    with pytest.raises(InputError, match=r"line 1, field 'consistency': .* is no rating. Write a number from 1 to 5"):
        read("summeval", file(row))


@pytest.mark.parametrize("start", [-1, 6, 99, None, "3"])
def test_marked_characters_outside_the_response_are_refused(file, start):
    row = next(r for n, r, _ in FORMS if n == "ragtruth")
    with pytest.raises(InputError, match=r"line 1, field 'labels.start': .* is no stretch of a response of 8 characters"):
        read("ragtruth", file({**row, "labels": [{**MARK, "start": start}]}))


def test_spans_of_a_piece_that_is_not_in_the_response_are_unknown(file):
    row = next(r for n, r, _ in FORMS if n == "halueval-general")
    assert "spans" not in read("halueval-general", file({**row, "hallucination_spans": ["Incomplete answer"]}))[0].meta


def test_rows_with_the_same_id_are_separate_pairs(file):
    samples = read("qa-pairs", file({**QA, "id": "same"}, {**QA, "id": "same", "question": "R?"}))
    assert [s.meta["pair"] for s in samples] == ["line-1", "line-1", "line-2", "line-2"]
    assert [s.id for s in samples][::2] == ["same-right", "same-right#line-2"]


def test_aggrefact_names_its_split_in_another_field(file):
    row = next(r for n, r, _ in FORMS if n == "aggrefact")
    path = file(row, {**row, "cut": "val"})
    assert (len(read("aggrefact", path)), len(read("aggrefact", path, "val")), len(read("aggrefact", path, "all"))) == (1, 1, 2)


def test_fave_without_responses_is_refused_with_the_missing_fields(file):
    with pytest.raises(InputError, match="FaVe holds queries and abstracts only; add the summary to be checked as 'response'"):
        read("fave", file({"query": "Q?", "papers": [PAPER]}))
    row = next(r for n, r, _ in FORMS if n == "fave")
    assert read("fave", file(row))[0].documents[0].title == "A. Author (1999) On snow"


@pytest.mark.parametrize(("name", "row", "expected"), FORMS)
def test_layout_of_a_single_set_is_recognised(file, name, row, expected):
    layout = dataset_cards()[name].layouts[open_fields(name, row)]
    if not layout.common:
        assert recognise_dataset(file(row)) == name


def test_file_name_distinguishes_sets_with_the_same_layout(file):
    assert recognise_dataset(file(QA, name="knowhalu_qa_pairs.jsonl")) == "knowhalu-qa"
    assert recognise_dataset(file(QA, name="qa_data.json")) == "halueval-qa"
    assert recognise_dataset(file(QA)) == "qa-pairs"
    assert recognise_dataset(file(CLAIM, name="scifact.jsonl")) == "scifact"
    assert recognise_dataset(file(CLAIM)) == "claims"
    assert recognise_dataset(file({"what": 1})) is None
