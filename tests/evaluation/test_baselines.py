"""The response-only baseline: trained on other groups or rows, never on those it predicts."""

import json

import pytest

from knowhalu.evaluation.baselines import OTHER_GROUPS, run_response_only
from knowhalu.evaluation.labelled_rows import read_labelled_rows
from knowhalu.io.outcomes import parse_outcome


@pytest.fixture
def rows(tmp_path):
    def write(samples, name="rows.jsonl"):
        path = tmp_path / name
        path.write_text("".join(json.dumps({"id": f"{name}{i}", **s}) + "\n" for i, s in enumerate(samples)))
        return read_labelled_rows(path)

    return write


def said(i, word, label):
    return {"response": f"{word} number {i}", "knowledge": f"k{i}", "label": label}


TELLING = [said(i, "surely" if i % 2 else "perhaps", "faithful" if i % 2 else "hallucinated") for i in range(20)]


def test_telltale_word_is_learned_from_other_groups(rows, tmp_path):
    data = rows(TELLING)
    found = run_response_only(data, data, tmp_path / "out.jsonl")
    assert found.fitted == OTHER_GROUPS
    assert found.result.predictions.right.all()
    assert found.result.places.tolist() == list(range(20))
    assert found.result.cost["seconds"] > 0 and found.result.cost["pairs"] == 0
    head, *lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(head)["run"]["method"] == "response-only"
    assert parse_outcome(lines[0]).hallucinated and parse_outcome(lines[0]).segments[0].text == "perhaps number 0"


def test_group_is_never_trained_on_itself(rows, tmp_path):
    """Each group has a word of its own that gives its label away; who learns from other groups only cannot know it."""
    some = [
        {"response": f"w{i // 4}x{i % 2}", "knowledge": f"k{i // 4}", "label": ["faithful", "hallucinated"][i % 2]}
        for i in range(40)
    ]
    data = rows(some)
    found = run_response_only(data, data, tmp_path / "out.jsonl")
    assert found.result.predictions.probability == pytest.approx([0.5] * 40, abs=0.1)


def test_repeated_responses_are_not_looked_up(rows, tmp_path):
    """Each response has words of its own and always the same label, under three sources, in other letters and spaces."""
    some = [
        {
            "response": f"{'  ' * (i % 3)}{'wW'[i % 2]}{i // 3}",
            "knowledge": f"k{i}",
            "label": ["faithful", "hallucinated"][i // 3 % 2],
        }
        for i in range(60)
    ]
    data = rows(some)
    found = run_response_only(data, data, tmp_path / "out.jsonl")
    assert found.result.predictions.probability == pytest.approx([0.5] * 60, abs=0.1)


def test_validation_split_is_trained_on(rows, tmp_path):
    turned = [said(i + 100, "surely" if i % 2 else "perhaps", "hallucinated" if i % 2 else "faithful") for i in range(20)]
    found = run_response_only(rows(TELLING), rows(turned, "val.jsonl"), tmp_path / "out.jsonl")
    assert not found.result.predictions.right.any()
    assert found.fitted.endswith("val.jsonl")


def test_predicted_responses_are_excluded_from_training(rows, tmp_path):
    words = [{"response": f"w{i}", "knowledge": f"k{i}", "label": ["faithful", "hallucinated"][i % 2]} for i in range(20)]
    repeated = [{**s, "knowledge": f"other {i}"} for i, s in enumerate(words)]
    found = run_response_only(rows(words), rows([*repeated, *TELLING], "val.jsonl"), tmp_path / "out.jsonl")
    assert found.result.predictions.probability == pytest.approx([0.5] * 20, abs=0.1)


@pytest.mark.parametrize("some", [
    [{**s, "knowledge": "one"} for s in TELLING],
    [{**s, "label": "faithful"} for s in TELLING],
    [{**s, "response": "?"} for s in TELLING],
    [said(0, "a", "faithful"), said(1, "b", "hallucinated")],
    [{**s, "response": "one and the same"} for s in TELLING],
])  # fmt: skip
def test_untrainable_baseline_is_left_out(rows, tmp_path, some):
    data = rows(some)
    assert run_response_only(data, data, tmp_path / "out.jsonl") is None
    assert not (tmp_path / "out.jsonl").exists()
