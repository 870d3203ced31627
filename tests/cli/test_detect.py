"""`knowhalu detect`: progress on one stream, the summary on the other, and refusals."""

import json

import pytest

from knowhalu.batch import RunProgress
from knowhalu.cli.tables import PlainProgress, format_duration, format_rate, progress_line
from knowhalu.io.outcomes import parse_outcome

ROWS = [("right", "faithful"), ("wrong", "hallucinated"), ("broken", "faithful"), ("wrong and long enough", None)]


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"claim": c, "knowledge": "k", "label": g}) + "\n" for c, g in ROWS))
    return path


def test_outcomes_go_to_the_file_and_the_summary_to_the_screen(knowhalu, source, tmp_path):
    result = knowhalu("detect", source, "-o", "new/out.jsonl")
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "new/out.jsonl").read_text().splitlines()
    assert [parse_outcome(line).id for line in lines[1:]] == ["line-1", "line-2", "line-3", "line-4"]
    for part in ("4 samples", "INCORRECT", "50.0%", "1 x judge: the reply has no label", "TPR", "100.0%", "length alone",
                 "an upper bound of what length gives", "1 sample without a verdict is not in this score"):  # fmt: skip
        assert part in result.stdout
    assert "4 of 4 (100%)" in result.stderr
    assert "\x1b" not in result.output


def test_a_second_run_continues_and_a_restart_starts_over(knowhalu, source, tmp_path):
    knowhalu("detect", source, "-o", "out.jsonl")
    assert "1 checked" in knowhalu("detect", source, "-o", "out.jsonl").stdout
    assert "0 checked" in knowhalu("detect", source, "-o", "out.jsonl", "--keep-failures").stdout
    assert "4 checked" in knowhalu("detect", source, "-o", "out.jsonl", "--restart").stdout
    assert (tmp_path / "out.jsonl.old").exists()


def test_the_reply_cache_can_be_left_out(knowhalu, source, monkeypatch):
    seen = []
    monkeypatch.setattr("knowhalu.batch.detect", lambda checker, *rest, **options: seen.append(checker.settings.llm.cache))
    monkeypatch.setattr("knowhalu.cli.tables.show_summary", lambda *given: None)
    for options in ((), ("--no-cache",)):
        knowhalu("detect", source, "-o", "out.jsonl", *options)
    assert seen == [True, False]


def test_errors_leave_written_outcomes_untouched(knowhalu, source, tmp_path):
    knowhalu("detect", source, "-o", "out.jsonl")
    before = (tmp_path / "out.jsonl").read_bytes()
    source.write_text('{"claim": "x"\n')
    result = knowhalu("detect", source, "-o", "out.jsonl")
    assert result.exit_code == 2
    assert "in.jsonl, line 1: not JSON" in result.stderr
    assert (tmp_path / "out.jsonl").read_bytes() == before


def test_an_interruption_names_the_file_of_finished_rows(knowhalu, source, monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("knowhalu.batch.detect", interrupted)
    result = knowhalu("detect", source, "-o", "out.jsonl")
    assert result.exit_code == 130
    assert "kept in out.jsonl" in result.stderr


def test_progress_estimates_the_remaining_time_by_what_was_done_since_the_first_outcome():
    line = progress_line(RunProgress(done=151, total=1000, kept=100, failed=2, seconds=50.0, waited=40.0))
    assert line == "151 of 1,000 (15%), about 3 min left, 2 without a verdict"
    assert progress_line(RunProgress(80, 83, 0, 0, 49.0, 10.0)) == "80 of 83 (96%), about 1 s left"


@pytest.mark.parametrize("progress", [RunProgress(1, 83, 0, 0, 41.0, 41.0), RunProgress(9, 83, 0, 0, 41.2, 41.0)])
def test_progress_shows_no_remaining_time_after_a_start_that_says_nothing_of_it(progress):
    assert progress_line(progress) == f"{progress.done} of 83 ({progress.done / 83:.0%})"


def test_a_finished_run_shows_its_time_and_its_rate():
    assert progress_line(RunProgress(83, 83, 0, 0, 41.5, 40.0)) == "83 of 83 (100%) in 41.5 s, 2.0/s"
    assert [format_rate(r) for r in (12.34, 1.0, 0.5, 0.001)] == ["12.3/s", "1.0/s", "30.0/min", "3.6/h"]
    assert [format_duration(s) for s in (0.04, 59.94, 61, 3700)] == ["0.0 s", "59.9 s", "1 min 01 s", "1 h 01 min"]


def test_progress_in_a_log_is_limited_to_few_lines():
    class Console(list):
        print = list.append

    console = Console()
    show = PlainProgress(console, every=3600.0)
    for done in range(1, 101):
        show(RunProgress(done, 100, 0, 0, 1.0))
    assert console == ["100 of 100 (100%) in 1.0 s, 100.0/s"]
