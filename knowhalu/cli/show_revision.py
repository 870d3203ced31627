"""Showing a revision on a terminal: the text that is left, what differs, and for every change its reason and evidence."""

from rich.console import Console
from rich.text import Text

from knowhalu.cli.show import evidence_lines, outcome_cost_line, print_section, shorten_text, show_outcome
from knowhalu.results import Change, Failure, Revision, RevisionOutcome
from knowhalu.text.sentences import sanitize
from knowhalu.types import Sample

STATUS_STYLES = {
    "revised": ("✓ REVISED", "bold green"),
    "unchanged": ("= UNCHANGED", "bold"),
    "refused": ("✗ REFUSED", "bold red"),
}
DIFF_STYLES = {"+": "green", "-": "red", "@": "dim"}
CHANGE_STYLES = {"rewritten": "green", "substituted": "green", "added": "yellow", "dropped": "red", "kept": "dim"}


def show_revision(console: Console, sample: Sample, found: RevisionOutcome) -> None:
    """Print all that was done to a sample."""
    if isinstance(found, Failure):
        show_outcome(console, sample, found)
        return
    word, style = STATUS_STYLES[found.status]
    console.print(Text.assemble((word, style), f"  {shorten_text(found.reason, 600)}"))
    if found.after is not None:
        console.print(Text(f"  P(hallucinated) was {found.before.probability:.2f}, is {found.after.probability:.2f}"))
    if found.after is not None and found.after.hallucinated is not False:
        console.print(Text("  the detector still doubts it", style="yellow"))
    if found.unflagged_changed:
        console.print(Text(f"  {found.unflagged_changed:,} sentences changed that were not in doubt", style="yellow"))
    print_section(console, "Revised" if found.status == "revised" else "Text", _text(found))
    print_section(console, "Difference", _difference(found))
    print_section(console, "Sentences in doubt", [line for c in found.changes for line in _change(found, c)])
    console.print()
    console.print(Text(outcome_cost_line(f"{found.how} by {found.method}", found), style="dim"))


def _text(found: Revision) -> list[Text]:
    return [Text(sanitize(found.revised))] if found.revised is not None else []


def _difference(found: Revision) -> list[Text]:
    lines = found.diff.split("\n")[2:]  # the names of two files that are none
    return [Text(sanitize(line), style=DIFF_STYLES.get(line[:1], "")) for line in lines]


def _change(found: Revision, change: Change) -> list[Text]:
    """Say what was done, why, and by what evidence on both sides."""
    now = f" → “{shorten_text(change.new)}”" if change.new.strip() and change.how != "kept" else ""
    was = f"“{shorten_text(change.text)}”" if change.text.strip() else ""
    numbers = f"  P {change.before:.2f}" if change.before is not None else ""
    numbers += f" → {change.after:.2f}" if numbers and change.after is not None else ""
    lines = [Text.assemble((f"{change.how:<12}", CHANGE_STYLES[change.how]), was, now, (numbers, "dim"))]
    lines.append(Text(f"    {shorten_text(change.why, 600)}"))
    lines += [Text("    ") + line for e in change.evidence for line in evidence_lines(found.original, e)]
    if found.revised is not None:
        lines += [Text("    ") + line for e in change.support for line in evidence_lines(found.revised, e)]
    return lines
