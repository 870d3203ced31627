"""The Python API: how a checker is configured, what it accepts and returns, and when models are loaded."""

import asyncio
import json
import subprocess
import sys
import threading

import pytest

import knowhalu
from knowhalu import api
from knowhalu.api import Checker
from knowhalu.calibration.tunable import read_verdict_lines
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import CheckFailed, InputError, MissingExtra, SettingsError
from knowhalu.evaluation.labelled_rows import read_labelled_rows
from knowhalu.io.frames import outcome_row, read_rows, to_df
from knowhalu.io.outcomes import REASONS, parse_outcome, read_outcome_table
from knowhalu.llm.options import LLMOptions
from knowhalu.results import Failure, Finding, SkippedSpan
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.settings import Settings
from knowhalu.types import Document, Sample
from tests.support.revising import revise
from tests.support.scripted_checks import Scripted, ScriptedChecker

ROWS = [{"claim": "right"}, {"claim": "wrong"}, {"claim": "broken"}, {"claim": "unsure"}]
DECIDED = [False, True, None, None]


class Frame:
    """What a pandas DataFrame offers that is used here."""

    columns = ["claim", "knowledge"]

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.columns)

    def itertuples(self, index, name):
        assert (index, name) == (False, None)
        return iter(self.rows)


class Array:
    """What a numpy array offers that is used here."""

    def __init__(self, values):
        self.tolist = lambda: values


def test_settings_are_given_by_name():
    settings = Checker(method="conli", index="an/index", retrieval={"mode": "hybrid"}, llm=LLMOptions(model="m")).settings
    assert settings == Settings(
        method="conli", retrieval=RetrievalOptions(index="an/index", mode="hybrid"), llm=LLMOptions(model="m")
    )


def test_settings_by_name_take_precedence_over_an_object_and_over_a_file(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('method = "factored"\n[llm]\nmodel = "m"\nseed = 3\n')
    base = Settings(method="factored", llm=LLMOptions(model="m", seed=3))
    wanted = Settings(method="factored", llm=LLMOptions(model="m", seed=4))
    assert Checker(base).settings == Checker(file).settings == Checker(settings=str(file)).settings == base
    assert Checker(base, llm={"seed": 4}).settings == Checker(file, llm={"seed": 4}).settings == wanted


@pytest.mark.parametrize(
    ("options", "nearest"), [({"metod": "conli"}, "'method'"), ({"retrieval": {"indx": "x"}}, "'retrieval.index'")]
)
def test_an_unknown_setting_is_refused_with_the_nearest_name(options, nearest):
    with pytest.raises(SettingsError, match=f"no such setting .* Did you mean {nearest}"):
        Checker(**options)


@pytest.mark.parametrize("text", [
    {"claim": "wrong", "documents": ["d"]}, {"response": "wrong", "document": "d"}, {"summary": "wrong", "documents": "d"},
    {"answer": "wrong", "documents": Document(text="d")}, {"answer": "wrong", "documents": ({"text": t} for t in "d")},
])  # fmt: skip
def test_a_text_is_given_by_fields_as_a_mapping_or_as_a_sample(text):
    seen = []

    class Recorded(Scripted):
        def check(self, sample):
            seen.append(sample)
            return super().check(sample)

    checker = ScriptedChecker()
    checker.method = Recorded()
    assert checker.check(**text).hallucinated is True
    assert checker.check(seen[0]).hallucinated is checker.check(seen[0].model_dump(exclude_defaults=True)).hallucinated is True
    assert [d.text for d in seen[0].documents] == ["d"] and len({(s.response, s.documents) for s in seen}) == 1


def test_a_positional_text_is_the_response():
    assert ScriptedChecker().check("wrong").hallucinated is True


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "response, answer, summary or claim"),
        ({"answer": "a", "claim": "c"}, "means the same as"),
        ({"anwser": "a"}, "Did you mean 'answer'"),
        ({"claim": "c", "knowledge": {"text": "t"}}, "'knowledge'"),
    ],
)
def test_arguments_that_are_no_text_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        ScriptedChecker().check(**fields)
    with pytest.raises(InputError, match="together with question"):
        ScriptedChecker().check(Sample(response="r"), question="q")


@pytest.mark.parametrize("text", [5, b"claim", ["claim"], 0])
def test_a_positional_argument_of_another_type_is_refused(text):
    with pytest.raises(InputError, match=f"the text to check is a {type(text).__name__}"):
        ScriptedChecker().check(text)


def test_a_text_is_not_silently_replaced_by_a_field():
    with pytest.raises(InputError, match="together with response"):
        ScriptedChecker().check("wrong", response="right")


@pytest.mark.parametrize("settings", [{"method": "conli"}, {}, 5])
def test_settings_of_another_type_are_refused(settings):
    for use in (Checker, lambda given: knowhalu.check(claim="c", settings=given)):
        with pytest.raises(SettingsError, match="is neither Settings nor the path of a TOML file"):
            use(settings)


@pytest.mark.parametrize("kind", [
    list, tuple, iter, lambda rows: [Sample(response=r["claim"]) for r in rows],
    lambda rows: Frame([(r["claim"], float("nan")) for r in rows]),
    lambda rows: [{**r, "knowledge": Array(["k"])} for r in rows],
])  # fmt: skip
def test_rows_of_every_kind_are_checked_in_order(kind):
    outcomes = list(ScriptedChecker().check_all(kind(ROWS)))
    assert [o.id for o in outcomes] == ["1", "2", "3", "4"]
    assert [o.hallucinated for o in outcomes] == DECIDED


def test_a_bad_row_is_refused_before_any_row_is_checked():
    checker = ScriptedChecker()
    with pytest.raises(InputError, match="row 2, field 'cliam'"):
        checker.check_all([{"claim": "right"}, {"cliam": "wrong"}])
    assert checker.method.checked == []


def test_a_bad_row_of_an_iterator_is_refused_after_the_outcomes_before_it():
    outcomes = ScriptedChecker().check_all(iter([{"claim": "right"}, {"cliam": "wrong"}]))
    assert next(outcomes).hallucinated is False
    with pytest.raises(InputError, match="row 2, field 'cliam'"):
        next(outcomes)


@pytest.mark.parametrize("rows", ["rows.jsonl", {"claim": "c"}, Sample(response="r"), 3])
def test_a_single_text_is_no_iterable_of_rows(rows):
    with pytest.raises(InputError, match="Give a list of rows"):
        read_rows(rows)


def test_an_endless_input_is_read_no_further_than_needed():
    drawn = []

    def endless():
        while True:
            drawn.append(1)
            yield {"claim": "right"}

    outcomes = ScriptedChecker().check_all(endless())
    assert next(outcomes).hallucinated is False
    outcomes.close()
    assert len(drawn) <= 20  # four checks at once, and as many again four times that may wait for their turn


def test_checks_run_inside_an_event_loop_and_without_blocking_it():
    async def rows():
        for row in ROWS:
            yield row

    async def run():
        checker = ScriptedChecker()
        one = await checker.acheck(claim="wrong")
        plain = [o.hallucinated async for o in checker.astream(ROWS)]
        lazy = [o.hallucinated async for o in checker.astream(rows())]
        return one.hallucinated, plain, lazy, checker.check("wrong").hallucinated

    assert asyncio.run(run()) == (True, DECIDED, DECIDED, True)


@pytest.fixture
def loads(monkeypatch):
    """Count the engines that are built."""
    built = []

    def build(settings, kept=None):
        built.append(settings.method)
        return Engine(Scripted(), Backends())

    monkeypatch.setattr("knowhalu.build.build_engine", build)
    api._checker.cache_clear()
    yield built
    api._checker.cache_clear()


def test_the_module_functions_load_models_once_for_the_same_settings(loads):
    assert knowhalu.check("right").hallucinated is knowhalu.check(claim="right").hallucinated is False
    assert [o.hallucinated for o in knowhalu.check_all(ROWS)] == DECIDED
    assert loads == ["knowhalu"]
    knowhalu.check("right", settings=Settings(method="conli"))
    assert loads == ["knowhalu", "conli"]


def test_a_closed_checker_loads_again_and_threads_share_one_engine(loads):
    with Checker() as checker:
        threads = [threading.Thread(target=checker.check, args=("right",)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert loads == ["knowhalu"]
    checker.check("right")
    assert loads == ["knowhalu", "knowhalu"]


VERDICT = ScriptedChecker().check(claim="wrong <b>", id="1", knowledge="k")
FAILURE = ScriptedChecker().check(claim="broken", id="2", knowledge="k")


def test_a_failure_decides_nothing_and_is_raised_by_unwrap():
    assert isinstance(FAILURE, Failure)
    assert (FAILURE.hallucinated, FAILURE.label, FAILURE.probability) == (None, None, None)
    with pytest.raises(CheckFailed, match="'2': judge: the reply has no label") as raised:
        FAILURE.unwrap()
    assert (raised.value.stage, raised.value.reason) == ("judge", "the reply has no label")
    assert VERDICT.unwrap() is VERDICT


def test_outcomes_show_themselves_on_one_line():
    assert repr(VERDICT) == str(VERDICT) == "Verdict('1': hallucinated (factual), P(hallucinated)=0.97, method='scripted')"
    assert repr(FAILURE) == "Failure('2': judge: the reply has no label)"
    assert repr(revise("Mars is red. It is wrong.")).startswith("Revision(")


def test_a_failure_that_quotes_a_server_controls_no_terminal():
    failure = Failure(id="1", stage="generate", reason="HTTP 500: \x1b[2J\nboom\u202e")
    assert repr(failure) == "Failure('1': generate: HTTP 500: \N{REPLACEMENT CHARACTER}[2J boom\N{REPLACEMENT CHARACTER})"
    with pytest.raises(CheckFailed) as raised:
        failure.unwrap()
    assert str(raised.value).isprintable() and raised.value.reason == failure.reason


def test_html_is_escaped_and_self_contained():
    html = VERDICT._repr_html_()
    assert "wrong &lt;b&gt;" in html and "<b>" not in html.replace("<b>Verdict", "")
    assert "contradicted by Planets" in html and "<script" not in html and "http" not in html
    assert "no label" in FAILURE._repr_html_() and "→" in revise("Mars is red. It is wrong.")._repr_html_()


def test_plain_data_reads_back():
    fields = json.loads(json.dumps(VERDICT.to_dict()))
    assert parse_outcome(json.dumps(fields)) == VERDICT and fields["label"] == "INCORRECT"
    assert FAILURE.to_dict() == {"id": "2", "stage": "judge", "reason": "the reply has no label", "reply": "gibberish"}


def test_flat_rows_have_the_same_columns_for_verdicts_and_failures():
    verdict, failure = outcome_row(VERDICT), outcome_row(FAILURE)
    assert list(verdict) == list(failure) and not any(isinstance(v, dict | list | tuple) for v in verdict.values())
    assert (verdict["hallucinated"], verdict["kind"], verdict["quote"], verdict["failed_stage"]) == (True, "factual", "k", None)
    assert (failure["id"], failure["hallucinated"], failure["failed_stage"]) == ("2", None, "judge")
    assert outcome_row(revise("Mars is red. It is wrong."))["status"] == "revised"


def test_a_data_frame_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"knowhalu\[pandas\]"):
        to_df([VERDICT])


def test_a_data_frame_has_a_row_for_each_outcome():
    pandas = pytest.importorskip("pandas")
    frame = to_df([VERDICT, FAILURE])
    assert isinstance(frame, pandas.DataFrame) and list(frame["id"]) == ["1", "2"]


OLD_NAMES = {
    "inconclusive_reason": "open", "p_supported": "supported", "confidence_source": "measured", "unsupported": "unfounded",
    "skipped": "unchecked",
}  # fmt: skip


def as_written_before(value):
    """Return plain data with the field names of older versions."""
    if isinstance(value, dict):
        return {OLD_NAMES.get(name, name): as_written_before(item) for name, item in value.items()}
    return [as_written_before(item) for item in value] if isinstance(value, list) else value


@pytest.fixture
def old(tmp_path):
    """Return a verdict, and a file that holds it in the form of older versions."""
    found = ScriptedChecker().check(claim="unsure", id="1", knowledge="k")
    base = found.segments[0].base.model_copy(update={"confidence_source": "none", "p_supported": 0.4})
    finding = Finding(unit="claim", start=0, end=1, text="u", label="CORRECT", p_supported=0.7, reason="-")
    segment = found.segments[0].model_copy(update={"findings": (finding,), "base": base})
    skipped = (SkippedSpan(start=0, end=1, text="u", reason="-"),)
    verdict = found.model_copy(update={"segments": (segment,), "skipped": skipped})
    line = json.dumps(as_written_before(verdict.to_dict())).replace('"measured": "none"', '"measured": "nowhere"')
    assert all(f'"{name}":' in line for name in OLD_NAMES.values()) and '"nowhere"' in line
    file = tmp_path / "out.jsonl"
    file.write_text(json.dumps({"run": {"version": "1"}}) + f"\n{line}\n")
    return verdict, file


def test_verdicts_of_older_versions_are_read_and_written_with_todays_field_names(old):
    verdict, file = old
    read = parse_outcome(file.read_text().splitlines()[1])
    assert read == verdict and not set(OLD_NAMES.values()) & {*read.to_dict(), *read.to_dict()["segments"][0]["base"]}


def test_files_of_older_versions_are_read_for_reports_and_for_calibration(old, tmp_path):
    verdict, file = old
    assert [REASONS[why] for why in read_outcome_table(file, None).why] == [verdict.inconclusive_reason]
    rows = tmp_path / "in.jsonl"
    rows.write_text('{"id": "1", "claim": "unsure", "knowledge": "k", "label": "faithful"}\n')
    ((place, fields),) = read_verdict_lines(file, read_labelled_rows(rows))
    assert (place, fields["segments"][0]["base"]["p_supported"]) == (0, 0.4)


NAMES = [
    "CheckFailed", "Checker", "Document", "Failure", "KnowHaluError", "Label", "Outcome", "Reviser", "Revision", "Sample",
    "Settings", "Verdict", "check", "check_all", "revise", "to_df",
]  # fmt: skip


def test_exported_names():
    assert sorted(knowhalu.__all__) == NAMES
    public = {n for n in vars(knowhalu) if not n.startswith("_")}
    assert public - set(NAMES) <= {"TYPE_CHECKING", "Any", "import_module"} | submodules()


def submodules():
    return {m.split(".")[1] for m in sys.modules if m.startswith("knowhalu.")}


@pytest.mark.parametrize("name", NAMES)
def test_every_exported_name_exists(name):
    assert getattr(knowhalu, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        _ = knowhalu.chekc


def loaded_by(code):
    """Run code in a fresh interpreter and list the heavy libraries that it loaded."""
    heavy = ("torch", "pydantic", "numpy", "faiss", "sentence_transformers", "transformers", "anyio", "rich")
    ask = f"{code}\nimport sys\nprint([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_importing_the_package_loads_no_dependency():
    assert loaded_by("import knowhalu; knowhalu.__version__") == "[]"


def test_importing_the_api_loads_no_heavy_dependency():
    assert loaded_by("from knowhalu import Sample, Verdict, check, Checker") == "['pydantic']"
