"""The output file of a job: after a kill at any place it is continued, has one line for each sample, and loses nothing."""

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from knowhalu.batch import RunProgress, detect
from knowhalu.errors import InputError, ResumeError
from knowhalu.io.journal import OutcomeJournal
from knowhalu.io.outcomes import parse_outcome
from knowhalu.types import Sample
from tests.support.hanging import HANG
from tests.support.scripted_checks import ROWS, Plain, Scripted, ScriptedChecker, outcomes, write


@pytest.fixture
def job(tmp_path) -> tuple[Path, Path]:
    source = tmp_path / "in.jsonl"
    write(source, ROWS)
    return source, tmp_path / "out.jsonl"


def test_run_killed_at_any_byte_ends_with_the_same_file(job, monkeypatch):
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


def test_trailing_zeros_of_a_power_cut_are_removed(job):
    source, output = job
    detect(Plain(), source, output)
    whole = output.read_bytes()
    output.write_bytes(whole[:-30] + b"\0" * 30)
    detect(Plain(), source, output)
    assert output.read_bytes() == whole


@pytest.mark.parametrize("content", [b"my notes", b"my notes\n", b'{"id":"a"}\n', b'["run"]', b"\n", b"\xff\xfe"])
def test_foreign_file_is_refused_and_unchanged(job, content):
    source, output = job
    output.write_bytes(content)
    with pytest.raises(ResumeError, match="not an output of `knowhalu detect`"):
        detect(Plain(), source, output)
    assert output.read_bytes() == content


def test_run_without_outcomes_does_not_block_another_run(job):
    source, output = job
    output.write_bytes(b'{"run":{"version":"0"}}\n')
    detect(Plain(), source, output)
    assert [o.id for o in outcomes(output)] == [row["id"] for row in ROWS]


def test_damaged_file_is_refused_and_unchanged(job):
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
    with OutcomeJournal(output, Plain.run), pytest.raises(ResumeError, match="another process is writing"):
        detect(Plain(), source, output)
    detect(Plain(), source, output)


def test_file_replaced_while_opening_is_opened_again(job, monkeypatch):
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
    with OutcomeJournal(output, Plain.run) as ledger:
        list(ledger.entries())
        ledger.append('{"id":"late"}')
    assert output.read_bytes().endswith(b'{"id":"late"}\n')


def test_kill_while_compacting_leaves_the_old_file(job, monkeypatch):
    source, output = job
    detect(Plain(), source, output)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("killed")))
        with pytest.raises(OSError, match="killed"):
            detect(Plain(), source, output)
    assert len(output.read_bytes().split(b"\n")) == 1 + 4 + 1 + 1  # the second failure is appended, nothing is dropped yet
    detect(Plain(), source, output)
    assert [o.id for o in outcomes(output)] == [r["id"] for r in ROWS]


def test_full_disk_ends_the_run_and_keeps_written_outcomes(job, monkeypatch):
    source, output = job
    checker, real = ScriptedChecker(), OutcomeJournal.append

    def append(ledger, line):
        if '"id":"b"' in line:
            raise OSError(28, "No space left on device")
        return real(ledger, line)

    with monkeypatch.context() as patch:
        patch.setattr(OutcomeJournal, "append", append)
        with pytest.raises(OSError, match="No space left") as caught:
            detect(checker, source, output)
        assert caught and not checker.method.thread.is_alive()
    detect(Plain(), source, output)
    assert [o.id for o in outcomes(output)] == [r["id"] for r in ROWS]


def test_output_that_is_the_input_a_folder_or_gzip_is_refused(job, tmp_path):
    source, _ = job
    (tmp_path / "link.jsonl").symlink_to(source)
    for output, said in ((source, "is the input"), (tmp_path / "link.jsonl", "is the input"), (tmp_path, "cannot be written"),
                         (tmp_path / "o.jsonl.gz", "Leave out .gz"), (Path(os.devnull), "not a regular file")):  # fmt: skip
        with pytest.raises(InputError, match=said):
            detect(Plain(), source, output)
    assert len(source.read_bytes().split(b"\n")) == 5


def stop_after_sixty(source: Path, output: Path, reached: Connection) -> None:
    """Check until so many outcomes are written, say so, and wait to be killed."""

    def report(progress: RunProgress) -> None:
        if progress.done == 60:
            reached.send("reached")
            threading.Event().wait()

    detect(ScriptedChecker(), source, output, progress=report)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_process_is_continued_by_a_new_one(job, how):
    source, output = job
    write(source, [{"id": str(i), "claim": "wrong" if i % 3 else "right", "knowledge": "k"} for i in range(150)])
    context = multiprocessing.get_context("spawn")
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(target=stop_after_sixty, args=(source, output, writer))
    process.start()
    writer.close()  # so that the end of the process ends the pipe
    assert reader.poll(HANG) and reader.recv() == "reached"
    os.kill(process.pid, how)
    process.join(HANG)
    assert process.exitcode == (1 if how == signal.SIGINT else -how)
    assert output.read_bytes().count(b"\n") - 1 == 60
    checker = ScriptedChecker()
    detect(checker, source, output)
    assert [o.id for o in outcomes(output)] == [str(i) for i in range(150)]
    assert len(checker.method.checked) == 90


class Interrupted(Scripted):
    """Its first check sends Ctrl-C to the thread that waits for the outcome, and goes on when it was heard there."""

    def __init__(self):
        super().__init__()
        self.heard = threading.Event()

    def check(self, sample):
        if not self.heard.is_set():
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            assert self.heard.wait(HANG)
        return (yield from super().check(sample))


def test_ctrl_c_during_a_check_ends_the_run_cleanly():
    checker = ScriptedChecker()
    checker.method = Interrupted()

    def strike(*_):
        checker.method.heard.set()
        raise KeyboardInterrupt

    samples = [Sample(id=str(i), response="right") for i in range(9)]
    usual = signal.signal(signal.SIGINT, strike)
    try:
        with pytest.raises(KeyboardInterrupt):
            list(checker.stream(samples))
    finally:
        signal.signal(signal.SIGINT, usual)
    assert checker.method.heard.is_set()
    assert not checker.method.thread.is_alive()
    assert [o.id for o in checker.stream(samples)] == [s.id for s in samples]


def test_a_file_that_an_older_version_wrote_with_a_password_is_continued(tmp_path):
    settings = '{"retrieval":{"url":"http://%shost:1"}}'
    with OutcomeJournal(tmp_path / "out.jsonl", {"settings": settings % "me:secret@"}) as journal:
        journal.append('{"id":"a"}')
    with OutcomeJournal(tmp_path / "out.jsonl", {"settings": settings % ""}) as journal:
        assert [entry.fields["id"] for entry in journal.entries()] == ["a"]
    with pytest.raises(ResumeError, match=r"settings.retrieval.url was http://host:1, is http://other:1") as caught:
        OutcomeJournal(tmp_path / "out.jsonl", {"settings": settings.replace("host", "other") % ""})
    assert "secret" not in str(caught.value)
