"""Calibration of a cascade: replayed stages equal the cascade, and the risk is kept or refused."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from knowhalu.calibration.cascade import TunableCascade, read_tunable_cascade
from knowhalu.calibration.measures import error_rate_upper_limit, is_error_rate_bounded
from knowhalu.engine.engine import Backends, Engine
from knowhalu.errors import InputError
from knowhalu.evaluation.metrics import Predictions
from knowhalu.methods.baselines.rules import LexicalBaseline
from knowhalu.methods.cascade import Cascade
from knowhalu.methods.options import CascadeOptions, LexicalOptions
from knowhalu.results import Verdict
from knowhalu.types import Label, Sample, Task

LABELS = {True: Label.INCORRECT, False: Label.CORRECT, None: Label.INCONCLUSIVE}
SOURCE = "The mill at Penmor stood until 3 May 1902. Mara Quill owned it for 12 years."
TEXTS = ("The mill at Penmor stood until 3 May 1902.", "It stood until 1903.", "Tom Arden owned it in 1850.", "It was a mill.")
ALL = ("copied", "dates", "numbers", "names")


class Says:
    """A method that says for each sample what stands in its meta."""

    def __init__(self, name):
        self.name = name

    def check(self, sample):
        yield from ()
        p, is_open = sample.meta[self.name]
        said = None if is_open else self.name == "llm" if p is None else p > 0.5
        return Verdict(id=sample.id, task=Task.CLAIM, method=self.name, label=LABELS[said], hallucinated=said, kind=None,
                       probability=p, reason="so")  # fmt: skip


def run(samples, rules, with_llm, **options):
    stages = {"rules": LexicalBaseline(LexicalOptions(rules=rules)), "encoder": Says("encoder")}
    stages |= {"llm": Says("llm")} if with_llm else {}
    return list(Engine(Cascade(stages, CascadeOptions(**options)), Backends()).run(samples))


def stored(samples, gold, with_llm, risk=0.05):
    verdicts = run(samples, ALL, with_llm, ask="always", low=0.5, high=0.5)
    return read_tunable_cascade(
        [(i, v.model_dump(mode="json")) for i, v in enumerate(verdicts)], np.array(gold, dtype=bool), risk
    )


shares = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
told = st.tuples(shares, st.booleans())
by_llm = st.tuples(st.one_of(shares, st.none()), st.booleans())
drawn = st.lists(st.tuples(st.sampled_from(TEXTS), told, by_llm), min_size=1, max_size=6)


@given(drawn, st.booleans(), st.sets(st.sampled_from(ALL)), shares, shares)
def test_replayed_stages_equal_the_cascade(rows, with_llm, rules, one, other):
    samples = [
        Sample(id=str(i), response=text, knowledge=SOURCE, meta={"encoder": encoder, "llm": llm})
        for i, (text, encoder, llm) in enumerate(rows)
    ]
    low, high = sorted((one, other))
    settings = {"lexical": {"rules": sorted(rules)}, "cascade": {"low": low, "high": high}}
    tuned = stored(samples, [True] * len(rows), with_llm)
    said, stage = tuned.predict(settings), tuned.stage(settings)
    for i, verdict in enumerate(run(samples, tuple(sorted(rules)), with_llm, low=low, high=high)):
        assert stage[i] == next((s.name for s in verdict.stages if s.decided), "")
        assert said.abstained[i] == (verdict.hallucinated is None)
        assert said.abstained[i] or said.settled[i] == verdict.hallucinated
        if verdict.stages[-1].hallucinated is not None:
            p = np.nan if verdict.probability is None else verdict.probability
            assert said.probability[i] == pytest.approx(p, nan_ok=True)


def rows_of(p, text="It was a mill."):
    return [Sample(id=str(i), response=text, knowledge=SOURCE, meta={"encoder": (float(v), False)}) for i, v in enumerate(p)]


def test_band_decides_as_many_rows_as_the_risk_allows():
    rng = np.random.default_rng(0)
    p = np.linspace(0.001, 0.999, 2000)
    gold = np.where(p < 0.3, rng.random(2000) < 0.01, np.where(p > 0.8, rng.random(2000) > 0.01, rng.random(2000) < 0.5))
    tuned = stored(rows_of(p), gold, False, risk=0.05)
    settings = tuned.fit(np.arange(2000))
    low, high = settings["cascade"]["low"], settings["cascade"]["high"]
    assert low == pytest.approx(0.32, abs=0.03) and high == pytest.approx(0.78, abs=0.03)
    for there, wrong in ((p <= low, gold), (p > high, ~gold)):
        assert error_rate_upper_limit(int((wrong & there).sum()), int(there.sum())) <= 0.05


def test_perfect_encoder_leaves_no_band():
    p = np.linspace(0.0, 1.0, 400)
    settings = stored(rows_of(p), p > 0.6, False).fit(np.arange(400))
    assert settings["cascade"]["low"] == settings["cascade"]["high"] == pytest.approx(0.6, abs=0.02)


@given(st.lists(st.tuples(st.integers(0, 10), st.booleans()), min_size=1, max_size=40), st.sampled_from([0.3, 0.5, 0.7]))
@example([(1, False)] * 40 + [(6, True)] * 5 + [(8, False), (9, True)] * 2 + [(10, False)], 0.3)  # what is held overlaps
def test_each_side_of_the_band_keeps_the_risk(rows, risk):
    p, gold = np.array([n / 10 for n, _ in rows]), np.array([wrong for _, wrong in rows])
    nobody = Predictions(gold, np.zeros_like(gold), np.ones_like(gold), np.full(len(rows), np.nan))
    tuned = TunableCascade(gold, np.zeros((len(ALL), len(rows)), dtype=bool), p, nobody, np.zeros_like(gold), risk)
    try:
        settings = tuned.fit(np.arange(len(rows)))
    except InputError:
        return
    decided, said = tuned.stage(settings) == "encoder", tuned.predict(settings).settled
    assert decided.any() and CascadeOptions(**settings["cascade"])
    for side, wrong in ((decided & ~said, gold), (decided & said, ~gold)):
        assert not side.any() or is_error_rate_bounded(risk, int((side & wrong).sum()), int(side.sum()))


def test_rule_is_used_if_its_error_rate_is_low_enough():
    samples = [s.model_copy(update={"id": f"r{s.id}"}) for s in rows_of([0.5] * 200, "It stood until 1903.")]
    always = stored(samples, [True] * 200, False)
    assert always.fit(np.arange(200))["lexical"]["rules"] == ["dates"]
    with pytest.raises(InputError, match=r"no stage can decide any of these rows at a risk of 0.05: the lowest .* --max-risk"):
        stored(samples, [True] * 150 + [False] * 50, False).fit(np.arange(200))


def test_too_few_rows_cannot_bound_a_small_risk():
    p = np.array([0.01] * 20 + [0.99] * 20)
    tuned = stored(rows_of(p), p > 0.5, False, risk=0.05)
    with pytest.raises(InputError, match=r"lowest that can be kept is 0.139, for the 20 rows that are most confidently"):
        tuned.fit(np.arange(40))
    assert tuned._replace(risk=0.14).fit(np.arange(40))["cascade"]["low"] == pytest.approx(0.5)


def test_outcomes_without_stages_are_refused_with_a_remedy():
    verdict = run(rows_of([0.5]), ALL, False)[0].model_copy(update={"stages": ()})
    with pytest.raises(InputError, match="'0' was not checked by every stage.*cascade.ask=always"):
        read_tunable_cascade([(0, verdict.model_dump(mode="json"))], np.array([True]), 0.05)
