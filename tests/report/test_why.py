"""Reasons of inconclusive and hallucinated verdicts in the report."""

import json

from knowhalu.report.page import report_as_html
from knowhalu.report.write import report_as_json, report_as_markdown
from knowhalu.types import InconclusiveReason, Relation
from tests.support.report_runs import Page, sample, verdict


def test_reasons_are_counted_shown_and_filtered(reported):
    samples = [sample(i, label=None) for i in range(4)]
    told = [
        verdict(samples[0], 0.9).model_copy(update={"relation": Relation.NEUTRAL}),
        verdict(samples[1], 0.5, hallucinated=None).model_copy(update={"inconclusive_reason": InconclusiveReason.OFF_TOPIC}),
        verdict(samples[2], 0.5, hallucinated=None),  # as outcomes of older versions are
        verdict(samples[3], 0.1),
    ]
    report = reported(samples, told)
    assert report.sections[0].entrants[0].why == {"neutral": 1, "off_topic": 1, "open": 1}
    page = Page(report_as_html(report))
    assert InconclusiveReason.OFF_TOPIC.next_action in page.text() and "open, reason unknown" in page.text()
    assert [a["data-why"] for a in page.all("details", class_="item")].count("off_topic") == 1
    assert len(page.all("option", value="neutral")) == 1
    for text in (report_as_markdown(report), report_as_html(report)):
        assert InconclusiveReason.OFF_TOPIC.description in text and "not in the sources" in text
    assert {i["outcome"]["relation"] for i in json.loads(report_as_json(report))["items"]} == {"neutral", None}
