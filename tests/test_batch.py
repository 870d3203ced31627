"""Jobs: resume, retries, refusals and counts."""

from functools import cached_property
from pathlib import Path

import pytest

from knowhalu.batch import detect
from knowhalu.errors import InputError, ResumeError
from knowhalu.results import Failure
from knowhalu.settings import EngineOptions, Settings
from tests.support.scripted_checks import ROWS, Plain, ScriptedChecker, outcomes, write


@pytest.fixture
def job(tmp_path) -> tuple[Path, Path]:
    source = tmp_path / "in.jsonl"
    write(source, ROWS)
    return source, tmp_path / "out.jsonl"


def test_failures_are_retried_and_replaced_in_input_order(job):
    source, output = job
    assert detect(ScriptedChecker(), source, output).failures == {"judge: the reply has no label": 1}
    healed = ScriptedChecker()
    healed.method.broken = set()
    summary = detect(healed, source, output)
    assert healed.method.checked == ["c"]
    assert [(o.id, type(o).__name__) for o in outcomes(output)] == [(r["id"], "Verdict") for r in ROWS]
    assert (summary.kept, summary.failed, summary.samples) == (3, 0, 4)


def test_kept_failures_load_no_model(job):
    source, output = job
    detect(ScriptedChecker(), source, output)

    class Modelless(ScriptedChecker):
        @cached_property
        def engine(self):
            raise AssertionError("a model was loaded")

    before = output.read_bytes()
    assert detect(Modelless(), source, output, retry_failures=False).failed == 1
    assert output.read_bytes() == before


def test_a_bad_last_row_is_refused_before_a_model_is_loaded_or_a_file_made(job):
    source, output = job
    write(source, [*ROWS, {"claim": " "}])

    class Modelless(ScriptedChecker):
        @cached_property
        def engine(self):
            raise AssertionError("a model was loaded")

    with pytest.raises(InputError, match="line 5, field 'claim': is empty"):
        detect(Modelless(), source, output)
    assert not output.exists()


def test_a_row_without_sources_is_refused_before_the_run(job):
    source, output = job
    write(source, [*ROWS, {"id": "bare", "claim": "x"}])
    with pytest.raises(InputError, match="'bare': has neither documents nor knowledge. .* --index FOLDER"):
        detect(ScriptedChecker(), source, output)
    assert detect(ScriptedChecker(Settings(method="halueval", reasoner="llm")), source, output).failed == 1


def test_output_of_another_run_is_refused_and_untouched(job):
    source, output = job
    detect(Plain(), source, output)
    whole = output.read_bytes()

    class Other(Plain):
        run = {"version": "1", "settings": '{"method":"scripted","engine":{"batch":2}}', "index": "abc"}

    said = r"index was None, is abc; settings.engine.batch was 1, is 2\).*another -o, or --restart"
    with pytest.raises(ResumeError, match=said):
        detect(Other(), source, output)
    assert output.read_bytes() == whole


@pytest.mark.parametrize("change", ["changed", "gone"])
def test_an_output_of_other_samples_under_the_same_ids_is_refused(job, change):
    source, output = job
    detect(Plain(), source, output)
    whole = output.read_bytes()
    rows = [{**ROWS[0], "claim": "another text"}, *ROWS[1:]] if change == "changed" else ROWS[1:]
    write(source, rows)
    with pytest.raises(ResumeError, match=r"out\.jsonl, line 2: the sample 'a' (has changed|is not) in"):
        detect(Plain(), source, output)
    assert output.read_bytes() == whole


def test_rows_added_to_the_input_are_checked_and_written_in_order(job):
    source, output = job
    detect(Plain(), source, output)
    write(source, [{"id": "new", "claim": "x", "knowledge": "k"}, *ROWS])
    checker = Plain()
    detect(checker, source, output)
    assert [o.id for o in outcomes(output)] == ["new", *(r["id"] for r in ROWS)]
    assert checker.method.checked == ["new", "c"]


def test_summary_counts_all_runs_and_scores_only_verdicts(job):
    source, output = job
    rows = [(f"wrong {'w ' * 9}", "hallucinated")] * 3 + [("missed", "hallucinated"), ("unsure", "hallucinated")]
    rows += [("right", "faithful")] * 3 + [("unsure", "faithful"), ("broken", "faithful"), ("right", None)]
    write(source, [{"claim": text, "knowledge": "k", "label": label} for text, label in rows])
    detect(ScriptedChecker(), source, output)
    summary = detect(ScriptedChecker(), source, output)
    assert summary.labels == {"CORRECT": 5, "INCORRECT": 3, "INCONCLUSIVE": 2}
    assert (summary.kinds, summary.failed, summary.kept) == ({"factual": 3}, 1, 10)
    score = summary.score
    assert (score.positives, score.negatives) == (5, 4)
    assert (score.tpr, score.tnr, score.average) == (3 / 5, 3 / 4, (3 / 5 + 3 / 4) / 2)
    assert (score.arp, score.arn) == (1 / 5, 1 / 4)
    assert (summary.length.at, summary.length.over, summary.length.score.average) == (1, True, (3 / 5 + 1) / 2)


def test_progress_counts_outcomes_of_earlier_runs(job):
    source, output = job
    detect(Plain(), source, output)
    seen = []
    detect(Plain(), source, output, progress=seen.append)
    assert [(p.done, p.total, p.kept, p.failed) for p in seen] == [(4, 4, 3, 1)]


def test_unordered_output_is_not_reordered(job):
    source, output = job

    class Backwards(Plain):
        def stream(self, samples):
            yield from reversed(list(super().stream(samples)))

    detect(Backwards(Settings(engine=EngineOptions(ordered=False))), source, output)
    assert [o.id for o in outcomes(output)] == ["ü\n", "c", "b", "a"]
    detect(Backwards(Settings(engine=EngineOptions(ordered=True))), source, output)
    assert [o.id for o in outcomes(output)] == ["a", "b", "c", "ü\n"]


@pytest.mark.parametrize(("was", "changed"), [
    ({"samples": ["right"]}, {"samples": ["wrong"]}), ({"set": "qa"}, {"set": "summaries"}), ({}, {"set": "qa"}),
])  # fmt: skip
def test_a_row_whose_decisive_meta_has_changed_is_refused(job, was, changed):
    source, output = job
    write(source, [{**ROWS[0], "meta": was}])
    detect(Plain(), source, output)
    write(source, [{**ROWS[0], "meta": {**was, "note": "decides nothing"}}])
    assert detect(Plain(), source, output).kept == 1
    write(source, [{**ROWS[0], "meta": changed}])
    with pytest.raises(ResumeError, match="the sample 'a' has changed"):
        detect(Plain(), source, output)


def test_outcomes_of_older_versions_are_matched_by_the_checked_text_alone(job):
    source, output = job
    write(source, [{**ROWS[0], "meta": {"set": "qa"}}])
    detect(Plain(), source, output)
    head, line, _ = output.read_bytes().split(b"\n")
    line, _, told = line.rpartition(b"-")
    assert len(told) == len(b'00112233"}')
    output.write_bytes(head + b"\n" + line + b'"}\n')
    assert detect(Plain(), source, output).kept == 1


def test_an_outcome_that_cannot_be_written_becomes_a_failure(job):
    class Half(ScriptedChecker):
        def stream(self, samples):
            for outcome in super().stream(samples):
                yield outcome.model_copy(update={"reason": "half \ud83d"}) if outcome.id == "b" else outcome

    source, output = job
    assert detect(Half(), source, output).failed == 2
    assert [o.stage for o in outcomes(output) if isinstance(o, Failure)] == ["write", "judge"]
    assert detect(ScriptedChecker(), source, output).failed == 1
