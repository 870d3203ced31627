"""Figures of revisions by worked examples: hallucinations before and after, passed texts, references, and exported pairs."""

import json

import pytest

from knowhalu.critiques import Critique
from knowhalu.errors import InputError
from knowhalu.evaluation.revision_report import as_json, as_markdown, make_tables, write_pairs
from knowhalu.evaluation.revisions import JudgeAccuracy, evaluate_revisions
from knowhalu.evaluation.runs import count_errors
from knowhalu.io.outcomes import format_outcome
from knowhalu.results import Failure, Finding, Verdict
from knowhalu.types import Label
from tests.support.revising import judged, make_revision
from tests.support.scripted_checks import write

CRITIQUES = (
    Critique(start=0, end=9, text="One wrong.", critique="It is two.", supported=False, revised="Two.", documents=("d",)),
    Critique(start=10, end=20, text="Two wrong.", critique="It is so.", supported=True),
)
REVISIONS = [
    make_revision("a", "One wrong. Two wrong. So it is.", "One is red. Two wrong. So it is.", critiques=CRITIQUES),
    make_revision("b", "It is red.", "It is red.", "unchanged"),
    make_revision("c", "All wrong.", None, "refused"),
    Failure(id="d", stage="critique", reason="the reply was cut off"),
    make_revision("e", "It is wrong.", "It is blue."),
    make_revision("f", "This is wrong.", "This is wrong.", "unchanged"),
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "revisions.jsonl"
    path.write_text("".join(f"{line}\n" for line in ['{"run":{"version":"1"}}', *map(format_outcome, REVISIONS)]))
    return path


def value(estimate):
    return None if estimate.value is None else round(estimate.value, 6)


def test_hallucinations_are_counted_in_the_same_texts_before_and_after(file):
    found = evaluate_revisions(file)
    assert (found.rows, found.statuses) == (6, {"revised": 2, "unchanged": 2, "refused": 1})
    assert found.failures == {"critique: the reply was cut off": 1}
    assert [value(found.before[n]) for n in ("reported", "with_any", "passed")] == [1.0, 0.75, 0.25]  # 2, 0, 1, 1
    assert [value(found.after[n]) for n in ("reported", "with_any", "passed")] == [0.5, 0.5, 0.5]  # 1, 0, 0, 1
    assert value(found.passed_unchanged) == 0.2  # only b; f is unchanged and still flagged
    assert found.before["reported"].low < 1 < found.before["reported"].high


def test_adjusted_numbers_are_the_reported_ones_times_precision_over_recall(file):
    found = evaluate_revisions(file, judge=JudgeAccuracy(0.66, 0.75))
    assert [value(side["adjusted"]) for side in (found.before, found.after)] == [0.88, 0.44]
    assert value(evaluate_revisions(file).before["adjusted"]) is None  # not measured is null, and not the reported number


def test_the_paper_adjusts_its_own_numbers_in_this_way():
    factor = JudgeAccuracy(2 / 3, 1).factor
    assert [round(reported * factor, 2) for reported in (1.26, 0.69, 0.93, 2.32)] == [0.84, 0.46, 0.62, 1.55]


def test_a_text_of_which_nothing_was_judged_is_in_no_number_of_hallucinations(tmp_path):
    empty = REVISIONS[1].after.model_copy(update={"segments": (), "label": Label.INCONCLUSIVE, "hallucinated": None})
    lost = REVISIONS[4].model_copy(update={"after": empty})
    path = tmp_path / "r.jsonl"
    path.write_text("".join(f"{line}\n" for line in ['{"run":{}}', format_outcome(REVISIONS[0]), format_outcome(lost)]))
    found = evaluate_revisions(path)
    assert (found.unchecked, value(found.before["reported"]), value(found.after["reported"])) == (1, 2.0, 1.0)


def rows(folder, **metas):
    path = folder / "rows.jsonl"
    write(path, [{"id": r.id, "response": getattr(r, "original", "x"), "documents": [f"Source {r.id}."], **metas.get(r.id, {})}
                 for r in REVISIONS])  # fmt: skip
    return path


def test_texts_are_compared_with_their_references_and_with_the_faithful_text_of_their_pair(file, tmp_path):
    given = rows(
        tmp_path, a={"meta": {"reference": "One is red. Two are blue. So it is."}},
        b={"label": "faithful", "meta": {"pair": "p"}}, e={"label": "hallucinated", "meta": {"pair": "p"}},
    )  # fmt: skip
    found = evaluate_revisions(file, rows=given)
    assert found.references == 3
    likeness = {name: value(scores["rouge1"]) for name, scores in found.likeness.items()}
    assert likeness["original"] == round((2 * 5 / 16 + 1 + 2 / 3) / 3, 6)  # one, two, so, it, is; all; it, is
    assert likeness["revised"] == round((2 * 7 / 17 + 1 + 2 / 3) / 3, 6)
    assert likeness["kept"] == round((2 * 6 / 15 + 1 + 2 / 3 + 1) / 4, 6)
    assert set(found.likeness["kept"]) == {"rouge1", "rouge2", "rougeL", "bleu4"}


def test_without_references_only_the_wording_that_was_kept_is_compared(file):
    assert list(evaluate_revisions(file).likeness) == ["kept"]


@pytest.mark.parametrize(("text", "said"), [
    ("", "holds no revisions"), ('{"id": 1}\n', "holds no revisions"), ('{"run":{}}\n{"id": "a"}\n', "line 2: no revision"),
    ('{"run":{}}\n{"id":"a","stage":"judge","reason":"r"}\n', r"has no revision to evaluate \(1 failures\)"),
])  # fmt: skip
def test_a_file_without_revisions_is_refused(tmp_path, text, said):
    (tmp_path / "x.jsonl").write_text(text)
    with pytest.raises(InputError, match=said):
        evaluate_revisions(tmp_path / "x.jsonl")


def test_rows_that_are_not_those_of_the_revisions_are_refused(file, tmp_path):
    write(tmp_path / "rows.jsonl", [{"id": "a", "response": "x"}])
    with pytest.raises(InputError, match="'b' is not in"):
        evaluate_revisions(file, rows=tmp_path / "rows.jsonl")


def test_pairs_hold_both_texts_the_critique_and_what_the_detector_says(file, tmp_path):
    assert write_pairs(file, tmp_path / "pairs.jsonl", rows(tmp_path, a={"meta": {"question": "Which?"}})) == 2
    head, first, second = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert head == {"run": {"version": "1"}}
    assert (first["original"], first["revised"]) == (REVISIONS[0].original, REVISIONS[0].revised)
    assert first["critique"] == "- The sentence “One wrong.”: It is two. Revised claim: Two."
    assert [c["supported"] for c in first["critiques"]] == [False, True]
    assert (first["before"]["hallucinations"], first["after"]["hallucinations"], first["after"]["label"]) == (2, 1, "INCORRECT")
    assert (first["question"], first["documents"][0]["text"]) == ("Which?", "Source a.")
    assert second["critique"] == "- The sentence “It is wrong.”: so"


def test_tables_and_json_show_unknown_numbers_as_unknown(file):
    found = evaluate_revisions(file)
    _, counts, likeness = make_tables(found)
    assert [row[2] for row in counts.rows] == ["-", "-"] and likeness.rows[0][0] == "revised, to the original"
    fields = json.loads(json.dumps(as_json(found)))
    assert fields["before"]["adjusted"]["value"] is None and fields["before"]["reported"]["value"] == 1
    text = as_markdown(found)
    assert "1 refused and 1 failed are in neither row" in text and "no revision: 1 x critique" in text


def test_findings_count_claims_and_citations_and_not_their_segment():
    found = judged("One wrong.")
    claims = tuple(
        Finding(unit="claim", start=0, end=3, text="One", label=Label.INCORRECT, p_supported=0.1, reason="r") for _ in range(2)
    )
    several = found.model_copy(update={"segments": (found.segments[0].model_copy(update={"findings": claims}),)})
    assert isinstance(several, Verdict) and (count_errors(found), count_errors(several)) == (1, 2)
