"""Show a verdict on a terminal: label, response with its unsupported parts marked, evidence, judgments.

Texts come from users, sources and models: they are shown as they are, never interpreted as markup or terminal commands.
"""

import re
import sys
from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from knowhalu.results import (
    CascadeStage,
    Evidence,
    Failure,
    Finding,
    Outcome,
    Revision,
    Segment,
    Verdict,
)
from knowhalu.text.probabilities import describe_probability, format_probability
from knowhalu.text.sentences import sanitize
from knowhalu.types import Extraction, HallucinationKind, Judgment, Label, Sample, Step

LABEL_STYLES = {Label.CORRECT: ("✓ FAITHFUL", "bold green"), Label.INCORRECT: ("✗ HALLUCINATED", "bold red"),
          Label.INCONCLUSIVE: ("? INCONCLUSIVE", "bold yellow")}  # fmt: skip
KIND_TITLES = {
    HallucinationKind.FACTUAL: "factual error",
    HallucinationKind.OFF_TARGET: "off target: the answer does not give what the question asks for",
}
MARK_STYLES = {Label.INCORRECT: ("✗", "red underline"), Label.INCONCLUSIVE: ("?", "yellow underline")}
NO_FORM = "as a whole"
"""Shown for a judgment that has no form of knowledge."""
RELATION_STYLES = {"supports": ("supported by", "green"), "contradicts": ("contradicted by", "red")}
_SPACE = re.compile(r"\s+")
MIN_WRAPPED_WIDTH = 20
"""Columns that an indented line keeps on a narrow terminal."""


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that colours on a terminal (unless NO_COLOR is set) and never breaks lines in a pipe."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else 10_000
    return Console(file=stream, width=width, highlight=False, emoji=False, markup=False, soft_wrap=width is not None)


def shorten_text(text: str, limit: int = 240) -> str:
    """Return the text on one line, shortened at its end."""
    line = _SPACE.sub(" ", sanitize(text)).strip()
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def print_line(console: Console, line: Text, hang: int | None = None) -> None:
    """Print a line; where a terminal is too narrow for it, indent what follows by `hang` columns, by default as the line is."""
    hang = len(line.plain) - len(line.plain.lstrip(" ")) if hang is None else hang
    head, body = line[:hang], line[hang:]
    for piece in body.wrap(console, max(MIN_WRAPPED_WIDTH, console.width - hang)) or [body]:
        console.print(head + piece)
        head = Text(" " * hang)


def verdict_line(outcome: Outcome) -> Text:
    """Return label, kind and probability on one line."""
    if isinstance(outcome, Failure):
        return Text.assemble(("! NO VERDICT", "bold magenta"), f"  {shorten_text(outcome.stage)}: {shorten_text(outcome.reason)}")
    word, style = LABEL_STYLES[_decided_label(outcome)]
    kind = f"  {KIND_TITLES[outcome.kind]}" if outcome.kind is not None else ""
    return Text.assemble((word, style), f"{kind}  {describe_probability(outcome.probability, sign=' = ')}")


def show_outcome(console: Console, sample: Sample, outcome: Outcome, *, steps: bool = False) -> None:
    """Print an outcome in full."""
    console.print(verdict_line(outcome))
    if isinstance(outcome, Failure):
        if outcome.reply is not None:
            print_section(console, "Unusable reply", [Text(sanitize(outcome.reply))])
        return
    for line in _why(outcome):
        print_line(console, Text("  ") + line)
    if sample.question:
        print_section(console, "Question", [Text(sanitize(sample.question))])
    marked = highlight_response(sample.response, outcome.segments, coloured=is_coloured(console))
    print_section(console, "Response", [marked])
    print_section(console, "Evidence", [line for e in outcome.evidence for line in evidence_lines(sample.response, e)])
    print_section(console, "Off-target check", _extraction(outcome))
    print_section(console, "Stages", [_stage(s) for s in outcome.stages])
    said = {(outcome.label, outcome.reason)}
    print_section(console, "Judgments", [line for i, s in enumerate(outcome.segments, 1) for line in _judgments(i, s, said)])
    skipped = [Text(f"“{shorten_text(u.text)}”: {u.reason}") for u in outcome.skipped]
    print_section(console, f"Not checked ({len(skipped)})", skipped)
    if steps:
        for number, segment in enumerate(outcome.segments, 1):
            for judgment in _form_judgments(segment):
                lines = [line for i, s in enumerate(judgment.steps, 1) for line in _step(i, s)]
                form = f", {judgment.form} knowledge" if judgment.form else ""
                print_section(console, f"Steps, segment {number}{form}", lines)
    console.print()
    console.print(Text(outcome_cost_line(outcome.method, outcome), style="dim"))


def show_item(console: Console, sample: Sample, outcome: Outcome, note: Text | None = None) -> None:
    """Print the verdict on a labelled sample in a few lines: response, best evidence, and whether the gold label agrees.

    `note` is shown in place of the agreement.
    """
    line = verdict_line(outcome)
    if note is not None:
        line.append_text(Text.assemble("  [", note, "]"))
    elif sample.label is not None:
        line.append_text(_agreement(sample, outcome))
    print_line(console, line, 2)
    if sample.question:
        print_line(console, Text.assemble(("  Q ", "dim"), shorten_text(sample.question, 160)), 4)
    print_line(console, Text.assemble(("  > ", "dim"), shorten_text(sample.response, 200)), 4)
    if isinstance(outcome, Verdict) and outcome.reason:
        print_line(console, Text(f"    {shorten_text(outcome.reason, 300)}", style="dim"))


def _agreement(sample: Sample, outcome: Outcome) -> Text:
    if isinstance(outcome, Failure) or outcome.hallucinated is None:
        return Text(f"  [no decision; gold: {sample.label}]", style="yellow")
    if outcome.hallucinated != (sample.label == "hallucinated"):
        return Text(f"  [DISAGREES with gold: {sample.label}]", style="bold red")
    other = sample.kind is not None and outcome.kind is not None and sample.kind != outcome.kind
    return Text(f"  [as gold, but gold kind: {sample.kind}]" if other else "  [as gold]", style="dim")


def highlight_response(response: str, segments: Iterable[Segment], *, coloured: bool) -> Text:
    """Return the response with flagged segments underlined and unsupported words reversed; without colours, in brackets."""
    shown, at = Text(), 0
    for segment in sorted(segments, key=lambda s: s.start):
        if segment.label not in MARK_STYLES or segment.start < at:
            continue
        mark, style = MARK_STYLES[segment.label]
        shown.append(sanitize(response[at : segment.start]))
        words = _with_words(response, segment, style, coloured=coloured)
        shown.append_text(words if coloured else Text.assemble((f"[{mark} ", style), words, ("]", style)))
        at = segment.end
    shown.append(sanitize(response[at:]))
    return shown


def _with_words(response: str, segment: Segment, style: str, *, coloured: bool) -> Text:
    """Return a segment with its unsupported words set apart."""
    shown, at = Text(), segment.start
    for start, end in sorted((f.start, f.end) for f in segment.findings if f.unit == "words"):
        shown.append(sanitize(response[at:start]), style=style)
        word = sanitize(response[start:end])
        shown.append(word if coloured else f"«{word}»", style=f"{style} reverse")
        at = end
    shown.append(sanitize(response[at : segment.end]), style=style)
    return shown


def evidence_lines(response: str, evidence: Evidence) -> list[Text]:
    """Return the lines of one piece of evidence: the words of the response, the relation of the source, and the quote."""
    word, style = RELATION_STYLES[evidence.relation]
    words = shorten_text(response[evidence.response_start : evidence.response_end])
    source = shorten_text(evidence.title or evidence.document or evidence.passage, 80)
    where = f"characters {evidence.document_start}-{evidence.document_start + len(evidence.quote)}"
    return [
        Text.assemble(f"[{evidence.response_start}:{evidence.response_end}] “{words}”"),
        Text.assemble("    ", (f"{word} {source}", style), f" ({where}, {format_probability(evidence.probability)})"),
        Text.assemble("    ", (f"“{shorten_text(evidence.quote, 600)}”", "italic")),
    ]


def _decided_label(verdict: Verdict) -> Label:
    """Return the label of the decision on the whole text; the label alone does not tell how abstentions count."""
    if verdict.hallucinated is None:
        return Label.INCONCLUSIVE
    return Label.INCORRECT if verdict.hallucinated else Label.CORRECT


def is_coloured(console: Console) -> bool:
    """Tell whether the console shows colours."""
    return console.color_system is not None and not console.no_color


def print_section(console: Console, title: str, lines: list[Text]) -> None:
    """Print lines under a title; without lines, nothing."""
    if not lines:
        return
    console.print()
    console.print(Text(title, style="bold"))
    for line in lines:
        for row in line.split("\n", allow_blank=True):
            print_line(console, Text("  ") + row)


def _why(verdict: Verdict) -> list[Text]:
    """Return the reason of the decision, and the next step where it is inconclusive."""
    _, style = LABEL_STYLES[_decided_label(verdict)]
    lines = [Text(verdict.why, style=style.removeprefix("bold "))] if verdict.why else []
    lines += [Text(shorten_text(verdict.reason, 600))] if verdict.reason and verdict.reason != verdict.why else []
    return [
        *lines,
        *([Text(f"Next: {verdict.inconclusive_reason.next_action}")] if verdict.inconclusive_reason is not None else []),
    ]


def _extraction(verdict: Verdict) -> list[Text]:
    extraction = verdict.extraction
    if extraction is None:
        return []
    sure = format_probability(extraction.confidence)
    first = f"asked for: {shorten_text(extraction.asked_for)}; the answer gives: {_given(verdict, extraction)} ({sure})"
    named = extraction.entity is not None and extraction.reason == f"the answer names {extraction.entity!r}"  # as in `first`
    return [Text(first), *([Text(shorten_text(extraction.reason, 600))] if extraction.reason and not named else [])]


def _given(verdict: Verdict, extraction: Extraction) -> str:
    """Say what an answer gives; a refusal, or nothing, is uncertain where the facts were checked in spite of it."""
    if extraction.entity:
        return f"“{shorten_text(extraction.entity)}”"
    if verdict.segments:
        return "perhaps a refusal" if extraction.refusal else "perhaps nothing"
    if not extraction.refusal:
        return "nothing"
    return "a refusal" if verdict.hallucinated else "a refusal, which is no hallucination"


def _stage(stage: CascadeStage) -> Text:
    label = (f"{stage.label:<13}", LABEL_STYLES[stage.label][1])
    what = f"{describe_probability(stage.probability)}  {shorten_text(stage.reason, 400)}"
    return Text.assemble(f"{stage.name:<8} ", label, what, ("  decides" if stage.decided else "", "bold"))


def _form_judgments(segment: Segment) -> list[Judgment]:
    return [segment.base, *([segment.supplement] if segment.supplement is not None else [])]


def _judgments(number: int, segment: Segment, said: set[tuple[Label, str]]) -> list[Text]:
    """Return the lines of a segment; a rationale that `said`, which is extended, has for the same label is not repeated."""
    label = f"{segment.label} ({segment.why})" if segment.why else segment.label
    p = describe_probability(segment.probability, sign=" = ")
    head = f"segment {number}: {label}, {p}, “{shorten_text(segment.text, 100)}”"
    agree = segment.forms_agree
    both = (
        []
        if agree is None
        else [Text(f"  the two forms of knowledge {'agree' if agree else 'DISAGREE'}", style="dim" if agree else "yellow")]
    )
    reasons = {f"“{f.text}”: {f.reason}" for f in segment.findings}  # a rationale that repeats a finding is not shown twice
    shown = [_judgment(judgment, said) for judgment in _form_judgments(segment) if judgment.rationale not in reasons]
    return [Text(head), *shown, *both, *map(_finding, segment.findings)]


def _judgment(judgment: Judgment, said: set[tuple[Label, str]]) -> Text:
    label = (f"{judgment.label:<13}", LABEL_STYLES[judgment.label][1])
    sure = "   -" if judgment.confidence is None or judgment.confidence_source == "none" else f"{judgment.confidence:.2f}"
    known = (judgment.label, judgment.rationale)
    reason = "for the same reason" if known in said else shorten_text(judgment.rationale, 400)
    said.add(known)
    return Text.assemble("  ", (f"{judgment.form or NO_FORM:<13}", "dim"), label, f"{sure}  {reason}")


def _finding(finding: Finding) -> Text:
    what = f"{finding.unit} {finding.type}".strip()
    label = (f"{finding.label:<13}", LABEL_STYLES[finding.label][1])
    reason = f"“{shorten_text(finding.text, 120)}”: {shorten_text(finding.reason, 400)}"
    p = describe_probability(finding.p_supported, "P(supported)")
    return Text.assemble("  ", (f"{what:<12} ", "dim"), label, f"{p}  {reason}")


def _step(number: int, step: Step) -> list[Text]:
    lines = [Text.assemble((f"{number}. ", "bold"), shorten_text(step.thought, 400) or "(no thought)")]
    if step.query.specific:
        lines.append(Text(f"   specific query: {shorten_text(step.query.specific)}"))
    if step.query.general:
        lines.append(Text(f"   general query:  {shorten_text(step.query.general)}"))
    for passage in step.passages:
        lines.append(Text(f"   passage {passage.score:.2f} {shorten_text(str(passage), 200)}", style="dim"))
    lines.append(Text(f"   knowledge: {shorten_text(step.knowledge.text, 600)}"))
    lines.extend(Text(f"   fact: {shorten_text(str(triplet))}") for triplet in step.knowledge.triplets)
    if step.knowledge.unsupported:
        lines.append(
            Text(f"   not supported by any passage, ignored: {shorten_text(step.knowledge.unsupported, 600)}", style="yellow")
        )
    return lines


def outcome_cost_line(what: str, outcome: Verdict | Revision) -> str:
    """Return the cost of a check or a revision on one line, with the index that was searched."""
    counts = [f"{n:,} {name.replace('_', ' ')}" for name, n in outcome.usage.model_dump().items() if n]
    counts += [f"index {outcome.index[:16]}"] if outcome.index else []
    total = outcome.seconds.get("total")
    time = [f"{total:.2f} s"] if total is not None else []
    return f"{what} · {', '.join([*counts, *time]) or 'no cost recorded'}"
