"""Charts: valid in a strict page, deterministic, without images, and names are no formulas."""

import re
import xml.etree.ElementTree as Tree

import numpy as np
import pytest

from knowhalu.errors import InputError
from knowhalu.evaluation.bootstrap import Estimate
from knowhalu.evaluation.curves import Curve, reliability_bins
from knowhalu.report import charts
from knowhalu.report.chart_data import ALL_ROWS, AccuracyGrid, SecondsHistogram, read_grids

NAMES = ["knowhalu", "a $x^2$ <b>", "trivial-length"]
STYLES = charts.method_styles(NAMES, ["trivial-length"])
CURVE = Curve(np.array([0, 0.2, 1]), np.array([0, 0.9, 1]))
Q = np.array([0.05, 0.5, 0.95])
GRID = AccuracyGrid(Q, Q, np.array([[0.6, 0.7, 0.65], [np.nan, 0.8, 0.7], [np.nan, np.nan, 0.6]]))
BINS = reliability_bins(np.array([True, False, True]), np.array([0.9, 0.1, 0.4]))
TIMES = SecondsHistogram(np.array([0.1, 1, 10.0]), np.array([0.5, 0.5]), 1.0, 9.0)
DRAWN = {
    "intervals": lambda: charts.intervals_chart("k", "t", [(n, Estimate(0.7, 0.6, 0.8)) for n in NAMES], 1, STYLES),
    "roc": lambda: charts.roc_chart("k", dict.fromkeys(NAMES, CURVE), STYLES),
    "risk": lambda: charts.risk_chart("k", dict.fromkeys(NAMES, CURVE), STYLES),
    "reliability": lambda: charts.reliability_chart("k", dict.fromkeys(NAMES, BINS), STYLES),
    "seconds": lambda: charts.seconds_chart("k", dict.fromkeys(NAMES, TIMES), STYLES),
    "grid": lambda: charts.grid_chart("k", "mine", GRID),
}


@pytest.mark.parametrize("name", DRAWN)
def test_chart_obeys_the_policy_of_the_page(name):
    svg = DRAWN[name]()
    assert svg == DRAWN[name]()
    root = Tree.fromstring(svg)
    ids = [e.get("id") for e in root.iter() if e.get("id")]
    assert len(set(ids)) == len(ids) and all(i.startswith("k-") for i in ids)
    for element in root.iter():
        assert element.tag not in {"style", "script", "image", "metadata"}
        assert "style" not in element.attrib
        assert element.get("href", "#").startswith("#")
    assert "http" not in svg
    wanted = set(re.findall(r"url\(#([^)]+)\)", svg)) | {e.get("href", "#")[1:] for e in root.iter()} - {""}
    assert wanted <= set(ids)
    assert root.get("role") == "img" and root.get("aria-label")
    assert "currentColor" in svg and "#010203" not in svg


def test_method_names_are_not_interpreted():
    assert "a $x^2$ &lt;b&gt;" in DRAWN["roc"]()


def test_methods_are_distinguishable_without_colours():
    styles = charts.method_styles([f"m{i}" for i in range(6)], ["trivial-length", "trivial-overlap", "trivial-novelty"])
    assert len({(str(s.dashes), s.mark) for s in styles.values()}) == 9


def test_charts_do_not_change_pyplot():
    import matplotlib

    before = dict(matplotlib.rcParams)
    DRAWN["grid"]()
    assert dict(matplotlib.rcParams) == before


def test_best_cell_is_the_maximum_of_the_grid():
    assert GRID.best == (1, 1)
    assert AccuracyGrid(Q, Q, np.full((3, 3), np.nan)).best is None
    level = AccuracyGrid(Q, Q, np.array([[0.6, 0.8, 0.7], [np.nan, 0.8, 0.7], [np.nan, np.nan, 0.6]]))
    assert (level.best, level.equals) == ((0, 1), 2)
    assert "0.50 (delta2), as have 1 others" in charts.grid_chart("k", "mine", level)
    assert "best: 80.0 % at 0.50 (delta1), 0.50 (delta2)" in DRAWN["grid"]()


@pytest.mark.parametrize(("text", "said"), [
    ("{", "JSONDecodeError"), ("[]", "AttributeError"), ('{"q1": [0.1, 0.2], "q2": [0.1, 0.2]}', "KeyError"),
    ('{"profile": {}}', "holds no grid"),
    ('{"q1": [0.1, 0.2], "q2": [0.1, 0.2], "average": [[1, 2]]}', "average is 1 x 2"),
    ('{"q1": [0.2, 0.1], "q2": [0.1, 0.2], "average": [[1, 2], [3, 4]]}', "must rise"),
    ('{"q1": [0.1, 0.2], "q2": [0.1, 0.2], "average": [[1, 2], [3]]}', "ValueError"),
])  # fmt: skip
def test_invalid_grid_is_refused(tmp_path, text, said):
    (tmp_path / "profile.json").write_text(text)
    with pytest.raises(InputError, match=said):
        read_grids(tmp_path / "profile.json")


def test_grids_are_read_from_a_file_or_that_of_a_profile(tmp_path):
    one = '{"q1": [0.1, 0.2], "q2": [0.1, 0.2], "average": [[0.5, 0.6], [null, 0.7]]}'
    (tmp_path / "p.json").write_text(one)
    found = read_grids(tmp_path / "p.json")[ALL_ROWS]
    assert np.isnan(found.average[1, 0]) and found.best == (1, 1)
    (tmp_path / "p.json").write_text(f'{{"profile": {{}}, "grid": {one}, "grids": {{"my set": {one}}}}}')
    assert list(read_grids(tmp_path / "p.toml")) == [ALL_ROWS, "my set"]


def test_names_of_any_script_and_empty_ones_are_drawn():
    name = "模型 \x1b[31m \u202e \ufffe \ud800"
    svg = charts.roc_chart("k", {name: CURVE}, charts.method_styles([name], []))
    assert "模型 \ufffd[31m" in "".join(Tree.fromstring(svg).itertext())
    charts.intervals_chart("k", "t", [(name, Estimate(0.5))], 0, {})
    charts.grid_chart("k", name, GRID)
    charts.reliability_chart("k", {name: BINS}, charts.method_styles([name], []))
    charts.seconds_chart("k", {name: TIMES}, charts.method_styles([name], []))


def test_matplotlib_style_does_not_change_the_bytes():
    import matplotlib

    usual = DRAWN["roc"]()
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9}):
        assert DRAWN["roc"]() == usual
