"""A result as an HTML fragment for a notebook: a heading, the text with coloured spans, and notes under it."""

from collections.abc import Iterable
from html import escape
from typing import Any, NamedTuple

from knowhalu.text.probabilities import describe_probability, format_probability

COLOURS = {"good": "46, 160, 67", "bad": "218, 54, 51", "open": "187, 128, 9", "": "128, 128, 128"}
"""Red, green and blue of each tone; they are laid over the notebook's own background, light or dark."""
TONES = {"CORRECT": "good", "INCORRECT": "bad", "INCONCLUSIVE": "open", "revised": "good", "unchanged": "", "refused": "bad"}
RELATIONS = {"supports": "supported by", "contradicts": "contradicted by"}
MAX_CHARS = 20_000
"""Characters of a text that are shown."""


class ColouredSpan(NamedTuple):
    """Characters `text[start:end]` in a colour; `strong` underlines them, and `note` is shown on hovering."""

    start: int
    end: int
    tone: str
    strong: bool = False
    note: str = ""


def render_html(heading: str, tone: str, text: str, spans: Iterable[ColouredSpan], notes: Iterable[str] = ()) -> str:
    """Return a self-contained HTML fragment: no scripts, no style sheets, and all text escaped.

    Where spans overlap, the last one counts.
    """
    shown, spans = text[:MAX_CHARS], list(spans)
    cuts = sorted({0, len(shown)} | {at for s in spans for at in (s.start, s.end) if 0 < at < len(shown)})
    body = "".join(_piece(shown, a, b, spans) for a, b in zip(cuts, cuts[1:], strict=False))
    if len(text) > len(shown):
        body += f" … [{len(text) - len(shown):,} more characters are not shown]"
    listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f'<div style="border-left:4px solid rgb({COLOURS[tone]});padding:0 .8em"><div><b>{escape(heading)}</b></div>'
        f'<div style="white-space:pre-wrap">{body}</div>{f"<ul>{listed}</ul>" if listed else ""}</div>'
    )


def _piece(text: str, start: int, end: int, spans: list[ColouredSpan]) -> str:
    span = next((s for s in reversed(spans) if s.start <= start and s.end >= end), None)
    if span is None:
        return escape(text[start:end])
    line = ";text-decoration:underline" if span.strong else ""
    style = f"background:rgba({COLOURS[span.tone]},.25){line}"
    return f'<span style="{style}" title="{escape(span.note)}">{escape(text[start:end])}</span>'


def verdict_html(verdict: Any) -> str:
    """Return a `Verdict` as HTML: its response with the segments and flagged findings coloured, and its evidence."""
    spans = [
        ColouredSpan(s.start, s.end, TONES[s.label], note=f"{s.label}, {describe_probability(s.probability)}")
        for s in verdict.segments
    ]
    findings = (f for s in verdict.segments for f in s.findings if TONES[f.label] != "good")
    spans += [ColouredSpan(f.start, f.end, TONES[f.label], strong=True, note=f.reason) for f in findings]
    text = verdict.response
    notes = [
        f"“{text[e.response_start : e.response_end]}” {RELATIONS[e.relation]} {e.title or e.document or e.passage} "
        f"({format_probability(e.probability)}): “{e.quote}”"
        for e in verdict.evidence
    ]
    notes += [f"not checked: “{s.text}” ({s.reason})" for s in verdict.skipped]
    notes += [verdict.inconclusive_reason.next_action] if verdict.inconclusive_reason is not None else []
    tone = {True: "bad", False: "good", None: "open"}[verdict.hallucinated]
    return render_html(f"{verdict!r} {verdict.reason}", tone, text, spans, notes)


def revision_html(revision: Any) -> str:
    """Return a `Revision` as HTML: the original with its changed parts coloured, and the changes."""
    spans = [ColouredSpan(c.start, c.end, "open" if c.how == "kept" else "bad", note=c.why) for c in revision.changes]
    notes = [f"{c.how}: “{c.text}” → “{c.new}” ({c.why})" for c in revision.changes]
    return render_html(f"{revision!r} {revision.reason}", TONES[revision.status], revision.original, spans, notes)
