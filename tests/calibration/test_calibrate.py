"""Calibration end to end with scripted methods and rules that need no model: files, resuming, profiles and refusals."""

import json
from functools import cached_property

import pytest

from knowhalu.api import Checker
from knowhalu.calibration import calibrate as module
from knowhalu.calibration.calibrate import calibrate
from knowhalu.calibration.report import as_json, describe_choice, make_notes, make_tables, write_calibration
from knowhalu.calibration.tuning import Goal
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import InputError, ResumeError, SettingsError
from knowhalu.evaluation.compare import compare
from knowhalu.evaluation.runs import parse_specs
from knowhalu.methods.common.calibrated import CalibratedMethod
from knowhalu.profiles import load_settings, read_profile
from knowhalu.results import Verdict
from knowhalu.settings import Settings
from knowhalu.types import Label
from tests.support.stored_runs import STRUCTURED, UNSTRUCTURED, judgment, segment
from tests.support.unmeasured import without_probabilities

LENGTH = load_settings(pairs=["method=trivial-length", "trivial.threshold=1"])


def row(i, words, label, **more):
    return {"id": f"r{i}", "claim": " ".join([f"w{i}"] * words), "knowledge": f"source {i}", "label": label, **more}


ROWS = [row(i, 1 + i % 8, "hallucinated" if (i % 8 >= 4) != (i == 9) else "faithful") for i in range(80)]
"""Up to 4 words are faithful, more hallucinated, but for one row."""
OTHERS = [row(100 + i, 1 + i % 8, "hallucinated" if i % 8 >= 4 else "faithful") for i in range(16)]


@pytest.fixture
def job(tmp_path):
    def run(settings=LENGTH, rows=ROWS, name="p.toml", **options):
        return calibrate(written(tmp_path, rows), tmp_path / name, settings, **options)

    return run


def written(folder, rows, name="rows.jsonl"):
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_chosen_threshold_generalises_as_cross_validation_estimates(job, tmp_path):
    found = job(scaling="platt")
    assert found.before["average"].value == pytest.approx((1 + 10 / 39) / 2)  # over one word
    assert found.fitted["average"].value == pytest.approx((40 / 41 + 1) / 2)  # over four
    assert found.held["average"].value > 0.9 and found.held["average"].low is not None
    checked = compare(
        written(tmp_path, OTHERS, "new.jsonl"), parse_specs(["own=trivial-length[profile=" + str(tmp_path / "p.toml") + "]"]),
        tmp_path / "out",
    )  # fmt: skip
    assert checked.results[0].figures["average"].value == 1.0


def test_profile_names_its_data_and_the_report_has_all_figures(job, tmp_path):
    found = job()
    profile = read_profile(tmp_path / "p.toml")
    assert profile == found.profile
    assert (profile.method, profile.goal, profile.data.rows, profile.data.hallucinated) == (
        "trivial-length", "the best average accuracy", 80, 41,
    )  # fmt: skip
    assert profile.figures["cross-validated"]["average"][0] == pytest.approx(found.held["average"].value, abs=1e-4)
    fields = json.loads(write_calibration(found, tmp_path / "p.toml").read_text())
    assert fields == json.loads(json.dumps(as_json(found))) and "hashes" not in fields["profile"]["data"]
    assert [r[0] for r in make_tables(found)[0].rows][:3] == [
        "before calibration",
        "on the fitted rows (optimistic)",
        "cross-validated",
    ]
    assert "over" in describe_choice(found)[1] and "2,000 resamples" in make_notes(found)[0]


def test_calibration_continues_and_another_goal_checks_nothing_again(job, tmp_path, monkeypatch):
    job()
    outcomes = (tmp_path / "p.outcomes.jsonl").read_bytes()
    (tmp_path / "p.outcomes.jsonl").write_bytes(b"".join(outcomes.splitlines(keepends=True)[:30]))
    checked = []
    check = Checker.stream
    monkeypatch.setattr(Checker, "stream", lambda self, samples: check(self, _noted(samples, checked)))
    job()
    assert len(checked) == 51 and len((tmp_path / "p.outcomes.jsonl").read_bytes().splitlines()) == 81
    job(goal=Goal("precision", 0.9))
    assert len(checked) == 51
    with pytest.raises(ResumeError, match="belongs to another run"):
        job(load_settings(pairs=["method=trivial-length", "trivial.threshold=2"]))


def _noted(samples, checked):
    for sample in samples:
        checked.append(sample.id)
        yield sample


def test_stored_outcomes_decide_method_and_rows(job, tmp_path):
    job()
    found = job(Settings(), outcomes=tmp_path / "p.outcomes.jsonl", name="q.toml")
    assert found.profile.settings == read_profile(tmp_path / "p.toml").settings
    with pytest.raises(InputError, match="is of method 'trivial-length', not 'conli'. Leave out --method"):
        job(load_settings(pairs=["method=conli"]), outcomes=tmp_path / "p.outcomes.jsonl")
    with pytest.raises(InputError, match="1 rows of .* have no outcome. Finish the run"):
        job(rows=[*ROWS, OTHERS[0]], outcomes=tmp_path / "p.outcomes.jsonl")
    with pytest.raises(InputError, match="line 2: the sample 'r0' has changed"):
        job(rows=[{**ROWS[0], "claim": "new"}, *ROWS[1:]], outcomes=tmp_path / "p.outcomes.jsonl")
    with pytest.raises(InputError, match="line 1: does not say which run this is"):
        job(outcomes=tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rows": [r for r in ROWS if r["label"] == "faithful"]}, "no row is hallucinated"),
        ({"rows": [{**ROWS[0], "label": None}]}, "has no label"),
        ({"goal": Goal("risk", 0.1)}, "--max-risk is the goal of a cascade alone"),
        ({"goal": Goal("precision", 0.999), "rows": [{**r, "label": ROWS[(i * 7) % 80]["label"]} for i, r in enumerate(ROWS)]},
         "cannot be reached on these rows: the highest is"),
    ],
)  # fmt: skip
def test_impossible_calibration_is_refused_without_a_profile(job, tmp_path, options, said):
    with pytest.raises(InputError, match=said):
        job(**options)
    assert not (tmp_path / "p.toml").exists()


def test_rows_without_a_verdict_are_counted_and_all_without_are_refused(job, tmp_path):
    job()
    kept = tmp_path / "p.outcomes.jsonl"
    lines = kept.read_text().splitlines(keepends=True)
    failure = {"stage": "judge", "reason": "no label", "reply": None}

    def failed(line):
        return json.dumps({**failure, **{k: v for k, v in json.loads(line).items() if k in ("id", "input")}}) + "\n"

    kept.write_text("".join([lines[0], *map(failed, lines[1:3]), *lines[3:]]))
    assert job(Settings(), outcomes=kept, name="q.toml").notes == ("2 rows have no verdict and count for nothing here.",)
    kept.write_text("".join([lines[0], *map(failed, lines[1:])]))
    with pytest.raises(InputError, match="rows.jsonl: no row has a verdict"):
        job(Settings(), outcomes=kept, name="q.toml")


def test_calibration_with_a_profile_is_refused(job, tmp_path):
    job()
    with pytest.raises(SettingsError, match="cannot use one"):
        job(load_settings(pairs=[f"profile={tmp_path / 'p.toml'}"]), name="q.toml")
    used = Checker(load_settings(pairs=[f"profile={tmp_path / 'p.toml'}", "allow_fitted=true"]))
    from knowhalu.batch import detect

    detect(used, tmp_path / "rows.jsonl", tmp_path / "used.jsonl")
    with pytest.raises(InputError, match="was made with a profile"):
        job(Settings(), outcomes=tmp_path / "used.jsonl", name="q.toml")


def test_a_cascade_is_calibrated_from_stored_stages_for_either_reasoner(job, tmp_path):
    rows = [{**r, "claim": f"{r['claim']} in 1871", "label": "hallucinated"} if i % 2 else {**r, "claim": r["knowledge"], "label":
             "faithful"} for i, r in enumerate(ROWS * 2)]  # fmt: skip
    rows = [{**r, "id": f"c{i}", "knowledge": f"{r['knowledge']} {i}."} for i, r in enumerate(rows)]
    found = job(load_settings(pairs=["method=cascade"]), rows=rows, goal=Goal("risk", 0.05), name="c.toml")
    own = found.profile.settings
    assert "copied" in own["lexical"]["rules"] or "dates" in own["lexical"]["rules"]
    assert "reasoner" not in own and sum(s.rows for s in found.stages) == 160 * (1 - found.sent_on[""].value)
    again = job(Settings(), rows=rows, goal=Goal("risk", 0.05), outcomes=tmp_path / "c.outcomes.jsonl", name="d.toml")
    assert again.profile.settings == own
    for who in ("encoder", "llm"):
        used = load_settings(pairs=[f"profile={tmp_path / 'c.toml'}", f"reasoner={who}"])
        assert (used.cascade.low, used.reasoner, used.cascade.ask) == (own["cascade"]["low"], who, "needed")
    with pytest.raises(InputError, match="a cascade has one goal, --max-risk, and no scaling"):
        job(load_settings(pairs=["method=cascade"]), rows=rows, scaling="platt", name="c.toml")


def test_incomplete_stored_stages_are_refused(job, tmp_path):
    from knowhalu.batch import detect

    path = written(tmp_path, ROWS[:4])
    detect(Checker(load_settings(pairs=["method=cascade"])), path, tmp_path / "usual.jsonl")
    with pytest.raises(InputError, match="not every stage checked.*cascade.ask=always"):
        job(Settings(), rows=ROWS[:4] + ROWS[4:8], outcomes=tmp_path / "usual.jsonl")


def test_cascade_with_other_first_rules_is_refused(job, tmp_path):
    from knowhalu.batch import detect

    asked = load_settings(pairs=["method=cascade", "cascade.rules=trivial-length", "trivial.threshold=1"])
    with pytest.raises(SettingsError, match="cascade.rules: .*'trivial-length'.*Set cascade.rules=lexical"):
        job(asked, name="c.toml")
    assert not (tmp_path / "c.outcomes.jsonl").exists()
    always = asked.cascade.model_copy(update={"ask": "always", "low": 0.5, "high": 0.5})
    path, stored = written(tmp_path, ROWS[2:6]), tmp_path / "stored.jsonl"
    detect(Checker(asked.model_copy(update={"cascade": always})), path, stored)
    with pytest.raises(SettingsError, match="cascade.rules"):
        job(Settings(), rows=ROWS[2:6], outcomes=stored)


def test_large_sets_get_their_own_values(job):
    rows = [{**r, "meta": {"set": "few" if i < 3 else "a" if i % 2 else "b"}} for i, r in enumerate(ROWS)]
    found = job(rows=rows, by_set=True)
    assert set(found.profile.sets) == {"a", "b"} and set(found.on) == {"a", "b", "few"}
    assert "few" in found.notes[0]
    assert "No row names a set" in job(by_set=True, name="q.toml").notes[-1]


class Both:
    """KnowHalu's verdicts as a script has them: a sure base is right, an unsure one is wrong and its supplement right."""

    name = "knowhalu"

    def check(self, sample):
        yield from ()
        number = int(sample.id[1:])
        right, wrong = (Label.INCORRECT, Label.CORRECT) if number % 8 >= 4 else (Label.CORRECT, Label.INCORRECT)
        base = judgment(UNSTRUCTURED, right, 0.9) if number % 5 else judgment(UNSTRUCTURED, wrong, 0.55)
        one = segment(base, judgment(STRUCTURED, wrong, 0.3) if number % 5 else judgment(STRUCTURED, right, 0.8))
        return Verdict(
            id=sample.id, task=sample.task, method=self.name, label=base.label, hallucinated=base.label is Label.INCORRECT,
            kind=None, probability=one.probability, reason="so", segments=(one,),
        )  # fmt: skip


def test_knowhalu_thresholds_are_chosen_on_both_forms_with_the_grid(job, tmp_path, monkeypatch):
    asked = []

    class Scripted(Checker):
        @cached_property
        def engine(self):
            asked.append(self.settings.knowhalu.second_opinion)
            return Engine(Both(), Backends())

    monkeypatch.setattr(module, "Checker", Scripted)
    rows = [{**r, "label": "hallucinated" if i % 8 >= 4 else "faithful"} for i, r in enumerate(ROWS)]
    found = job(Settings(), rows=rows, scaling="temperature")
    own = found.profile.settings["knowhalu"]
    assert asked == ["always"] and own["base_form"] == "unstructured" and 0.55 < own["delta1"] <= 0.9
    assert (found.before["average"].value, found.fitted["average"].value) == (pytest.approx(0.8), 1.0)
    assert found.profile.parts["verifier"] and found.profile.decision.low is None
    grid = as_json(found)["grid"]
    assert len(grid["q1"]) == len(grid["q2"]) == len(grid["average"]) == 19 and grid["average"][5][0] is None
    used = load_settings(pairs=[f"profile={tmp_path / 'p.toml'}"]).knowhalu
    assert (used.delta1, used.delta2, used.second_opinion) == (own["delta1"], own["delta2"], "needed")
    from knowhalu.build import build_method

    assert isinstance(build_method(load_settings(pairs=[f"profile={tmp_path / 'p.toml'}"])), CalibratedMethod)


def test_common_profile_applies_to_its_method_only(job, tmp_path):
    job()
    (one, other) = parse_specs(["trivial-length", "trivial-overlap"])
    pair = f"profile={tmp_path / 'p.toml'}"
    assert one.settings(None, [pair]).profile is not None
    assert other.settings(None, [pair]).profile is None
    with pytest.raises(SettingsError, match="is for method = "):
        parse_specs([f"trivial-overlap[{pair}]"])[0].settings(None, [])
    with pytest.raises(SettingsError, match="p.toml: is for trivial-length, which is not compared"):
        compare(tmp_path / "rows.jsonl", [other], tmp_path / "out", pairs=[pair])
    with pytest.raises(InputError, match="fitted on 80 rows"):
        compare(tmp_path / "rows.jsonl", [one], tmp_path / "out", pairs=[pair])


def test_rows_without_probabilities_are_counted_and_all_without_are_refused_with_the_cure(job, tmp_path):
    job()
    kept = tmp_path / "p.outcomes.jsonl"
    lines = kept.read_text().splitlines(keepends=True)

    def unmeasured(line):
        fields = json.loads(line)
        whole = without_probabilities(Verdict.model_validate({k: v for k, v in fields.items() if k != "input"}))
        return json.dumps({**whole.to_dict(), "input": fields["input"]}) + "\n"

    kept.write_text("".join([lines[0], *map(unmeasured, lines[1:3]), *lines[3:]]))
    found = job(Settings(), outcomes=kept, name="q.toml")
    assert found.notes == ("2 rows were judged without probabilities and count for nothing here.",)
    kept.write_text("".join([lines[0], *map(unmeasured, lines[1:])]))
    with pytest.raises(InputError, match=r"no row has a verdict with a probability, .*80 rows .*--set llm.votes=20"):
        job(Settings(), outcomes=kept, name="r.toml")
    assert not (tmp_path / "r.toml").exists()
