"""Big jobs: killed anywhere and started again, they end with one line for each sample, and lose nothing."""

import json
import multiprocessing
import os
import signal
import threading
import time
from functools import cached_property
from pathlib import Path

import pytest

from knowhalu.batch import detect
from knowhalu.errors import InputError, ResumeError
from knowhalu.ledger import Ledger
from knowhalu.options import EngineOptions, Settings
from knowhalu.records import parse_outcome
from knowhalu.types import Failure, Task, Verdict
from tests.scripted_checks import Scripted, ScriptedChecker

ROWS = [
    {"id": "a", "claim": "right\u2028", "knowledge": "k", "label": "faithful"},
    {"id": "b", "claim": "wrong", "knowledge": "k", "label": "hallucinated"},
    {"id": "c", "claim": "broken", "knowledge": "k"},
    {"id": "ü\n", "claim": "unsure", "knowledge": "k"},
]


class Plain(ScriptedChecker):
    """Checks without the engine's threads, so that a test may start thousands of jobs."""

    def stream(self, samples):
        for sample in samples:
            self.method.checked.append(sample.id)
            if set(sample.response.split()) & self.method.broken:
                yield Failure(id=sample.id, stage="judge", reason="the reply has no label")
            else:
                is_wrong = "wrong" in sample.response
                label = "INCORRECT" if is_wrong else "CORRECT"
                yield Verdict(id=sample.id, task=Task.CLAIM, method="m", label=label, hallucinated=is_wrong, kind=None,
                              probability=0.25, reason=sample.response)  # fmt: skip


@pytest.fixture
def job(tmp_path) -> tuple[Path, Path]:
    source = tmp_path / "in.jsonl"
    write(source, ROWS)
    return source, tmp_path / "out.jsonl"


def write(path: Path, rows: list[dict]) -> None:
    path.write_bytes("".join(json.dumps(r) + "\n" for r in rows).encode())


def outcomes(path: Path) -> list:
    head, *lines = path.read_bytes().split(b"\n")[:-1]
    assert list(json.loads(head)) == ["run"]
    return [parse_outcome(line) for line in lines]


def test_killed_at_any_byte_it_ends_with_the_same_file(job, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    source, output = job
    detect(Plain(), source, output)
    whole = output.read_bytes()
    assert [o.id for o in outcomes(output)] == ["a", "b", "c", "ü\n"]
    for kept in range(len(whole) + 1):
        output.write_bytes(whole[:kept])
        checker = Plain()
        detect(checker, source, output)
        assert output.read_bytes() == whole, kept
        finished = [o.id for o in map(parse_outcome, whole[:kept].split(b"\n")[1:-1])]
        assert not {i for i in finished if i != "c"} & set(checker.method.checked), kept


def test_a_tail_of_zeros_after_a_power_cut_is_cut_off(job):
    source, output = job
    detect(Plain(), source, output)
    whole = output.read_bytes()
    output.write_bytes(whole[:-30] + b"\0" * 30)
    detect(Plain(), source, output)
    assert output.read_bytes() == whole


def test_failures_are_tried_again_and_superseded_in_input_order(job):
    source, output = job
    assert detect(ScriptedChecker(), source, output).failures == {"judge: the reply has no label": 1}
    healed = ScriptedChecker()
    healed.method.broken = set()
    summary = detect(healed, source, output)
    assert healed.method.checked == ["c"]
    assert [(o.id, type(o).__name__) for o in outcomes(output)] == [(r["id"], "Verdict") for r in ROWS]
    assert (summary.kept, summary.failed, summary.samples) == (3, 0, 4)


def test_failures_may_be_kept_and_then_no_model_is_loaded(job):
    source, output = job
    detect(ScriptedChecker(), source, output)

    class Modelless(ScriptedChecker):
        @cached_property
        def engine(self):
            raise AssertionError("a model was loaded")

    before = output.read_bytes()
    assert detect(Modelless(), source, output, retry_failures=False).failed == 1
    assert output.read_bytes() == before


def test_a_bad_last_row_is_told_before_a_model_is_loaded_or_a_file_made(job):
    source, output = job
    write(source, [*ROWS, {"claim": " "}])

    class Modelless(ScriptedChecker):
        @cached_property
        def engine(self):
            raise AssertionError("a model was loaded")

    with pytest.raises(InputError, match="line 5, field 'claim': is empty"):
        detect(Modelless(), source, output)
    assert not output.exists()


def test_a_row_without_anything_to_check_by_is_told_at_once(job):
    source, output = job
    write(source, [*ROWS, {"id": "bare", "claim": "x"}])
    with pytest.raises(InputError, match="'bare': has neither documents nor knowledge .* --index FOLDER"):
        detect(ScriptedChecker(), source, output)


def test_results_of_another_run_are_refused_and_untouched(job):
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


def test_rows_added_to_the_input_are_checked_and_put_in_order(job):
    source, output = job
    detect(Plain(), source, output)
    write(source, [{"id": "new", "claim": "x", "knowledge": "k"}, *ROWS])
    checker = Plain()
    detect(checker, source, output)
    assert [o.id for o in outcomes(output)] == ["new", *(r["id"] for r in ROWS)]
    assert checker.method.checked == ["new", "c"]


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b'{"id":"a"}\n', b'["run"]', b"\n", b"\xff\xfe"])
def test_a_file_that_is_not_ours_is_refused_and_untouched(job, content):
    source, output = job
    output.write_bytes(content)
    with pytest.raises(ResumeError, match="not an output of `knowhalu detect`"):
        detect(Plain(), source, output)
    assert output.read_bytes() == content


def test_damage_within_the_file_is_refused_and_untouched(job):
    source, output = job
    detect(Plain(), source, output)
    lines = output.read_bytes().split(b"\n")
    damaged = b"\n".join([lines[0], lines[1][:20], *lines[2:]])
    output.write_bytes(damaged)
    with pytest.raises(ResumeError, match="line 2: not an outcome"):
        detect(Plain(), source, output)
    assert output.read_bytes() == damaged


def test_restart_keeps_every_older_file(job):
    source, output = job
    detect(Plain(), source, output)
    first = output.read_bytes()
    (output.parent / "out.jsonl.old").write_bytes(b"older still")
    detect(Plain(), source, output, restart=True)
    assert (output.parent / "out.jsonl.old").read_bytes() == b"older still"
    assert (output.parent / "out.jsonl.old1").read_bytes() == output.read_bytes() == first


def test_two_processes_cannot_write_one_file(job):
    source, output = job
    with Ledger(output, Plain.run), pytest.raises(ResumeError, match="another process is writing"):
        detect(Plain(), source, output)
    detect(Plain(), source, output)


def test_who_opened_the_file_before_it_was_replaced_does_not_write_into_the_old_one(job, monkeypatch):
    source, output = job
    detect(Plain(), source, output)
    stale, real_open = [output.read_bytes()], os.open

    def open_then_replaced(path, *rest):
        descriptor = real_open(path, *rest)
        if stale and path == output.resolve():
            beside = output.with_name("beside")
            beside.write_bytes(stale.pop())
            beside.rename(output)
        return descriptor

    monkeypatch.setattr(os, "open", open_then_replaced)
    with Ledger(output, Plain.run) as ledger:
        list(ledger.entries())
        ledger.append('{"id":"late"}')
    assert output.read_bytes().endswith(b'{"id":"late"}\n')


def test_a_kill_while_compacting_leaves_the_old_file(job, monkeypatch):
    source, output = job
    detect(Plain(), source, output)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            detect(Plain(), source, output)
    assert len(output.read_bytes().split(b"\n")) == 1 + 4 + 1 + 1  # the second failure is appended, nothing is dropped yet
    detect(Plain(), source, output)
    assert [o.id for o in outcomes(output)] == [r["id"] for r in ROWS]


def test_a_full_disk_ends_the_run_and_keeps_what_was_written(job, monkeypatch):
    source, output = job
    checker, real = ScriptedChecker(), Ledger.append

    def append(ledger, line):
        if '"id":"b"' in line:
            raise OSError(28, "No space left on device")
        return real(ledger, line)

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "append", append)
        before = threading.active_count()
        with pytest.raises(OSError, match="No space left") as caught:
            detect(checker, source, output)
        assert caught and threading.active_count() == before
    detect(Plain(), source, output)
    assert [o.id for o in outcomes(output)] == [r["id"] for r in ROWS]


def test_the_output_may_not_be_the_input_a_folder_or_gzip(job, tmp_path):
    source, _ = job
    (tmp_path / "link.jsonl").symlink_to(source)
    for output, said in ((source, "is the input"), (tmp_path / "link.jsonl", "is the input"), (tmp_path, "cannot be written"),
                         (tmp_path / "o.jsonl.gz", "Leave out .gz"), (Path(os.devnull), "not a regular file")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            detect(Plain(), source, output)
    assert len(source.read_bytes().split(b"\n")) == 5


def test_the_summary_counts_all_sessions_and_scores_only_verdicts(job):
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
    assert (summary.length.words, summary.length.longer, summary.length.score.average) == (1, True, (3 / 5 + 1) / 2)


def test_progress_counts_what_was_kept(job):
    source, output = job
    detect(Plain(), source, output)
    seen = []
    detect(Plain(), source, output, progress=seen.append)
    assert [(p.done, p.total, p.kept, p.failed) for p in seen] == [(4, 4, 3, 1)]


def test_as_finished_order_is_left_alone(job):
    source, output = job

    class Backwards(Plain):
        def stream(self, samples):
            yield from reversed(list(super().stream(samples)))

    detect(Backwards(Settings(engine=EngineOptions(ordered=False))), source, output)
    assert [o.id for o in outcomes(output)] == ["ü\n", "c", "b", "a"]
    detect(Backwards(Settings(engine=EngineOptions(ordered=True))), source, output)
    assert [o.id for o in outcomes(output)] == ["a", "b", "c", "ü\n"]


class Slow(Scripted):
    """Takes a moment for each sample, so that a job can be killed within."""

    def check(self, sample):
        time.sleep(0.005)
        return (yield from super().check(sample))


class SlowChecker(ScriptedChecker):
    @cached_property
    def method(self):
        return Slow()


def run_slow(source: Path, output: Path) -> None:
    detect(SlowChecker(), source, output)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_real_kill_and_a_new_start(job, how):
    source, output = job
    write(source, [{"id": str(i), "claim": "wrong" if i % 3 else "right", "knowledge": "k"} for i in range(150)])
    process = multiprocessing.get_context("spawn").Process(target=run_slow, args=(source, output))
    process.start()
    deadline = time.monotonic() + 30
    while process.is_alive() and time.monotonic() < deadline and (not output.exists() or output.stat().st_size < 20_000):
        time.sleep(0.005)
    os.kill(process.pid, how)
    process.join(10)
    assert process.exitcode != 0
    kept = output.read_bytes().count(b"\n") - 1
    assert 5 < kept < 150
    checker = ScriptedChecker()
    detect(checker, source, output)
    assert [o.id for o in outcomes(output)] == [str(i) for i in range(150)]
    assert len(checker.method.checked) == 150 - kept
