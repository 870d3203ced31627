"""Show a revision on a terminal: its status, both texts, and the evidence for each flagged sentence."""

from rich.console import Console
from rich.text import Text

from knowhalu.cli.show import evidence_lines, outcome_cost_line, print_section, shorten_text, show_outcome
from knowhalu.errors import counted
from knowhalu.results import Change, Failure, Revision, RevisionOutcome
from knowhalu.text.probabilities import format_probability
from knowhalu.text.sentences import sanitize
from knowhalu.types import Sample

STATUS_STYLES = {
    "revised": ("✓ REVISED", "bold green"),
    "unchanged": ("= UNCHANGED", "bold"),
    "refused": ("✗ REFUSED", "bold red"),
}
DIFF_STYLES = {"+": "green", "-": "red", "@": "dim"}
CHANGE_STYLES = {"rewritten": "green", "substituted": "green", "added": "yellow", "dropped": "red", "kept": "dim"}


def show_revision(console: Console, sample: Sample, revision: RevisionOutcome) -> None:
    """Print a revision in full."""
    if isinstance(revision, Failure):
        show_outcome(console, sample, revision)
        return
    word, style = STATUS_STYLES[revision.status]
    console.print(Text.assemble((word, style), f"  {shorten_text(revision.reason, 600)}"))
    if revision.after is not None:
        was, now = format_probability(revision.before.probability), format_probability(revision.after.probability)
        console.print(Text(f"  P(hallucinated) was {was}, is {now}"))
    if revision.after is not None and revision.after.hallucinated is not False:
        console.print(Text("  the detector still flags the revised text", style="yellow"))
    if n := revision.unflagged_changed:
        changed = f"{counted(n, 'sentence')} changed that {'was' if n == 1 else 'were'} not flagged"
        console.print(Text(f"  {changed}", style="yellow"))
    if revision.revised is not None:
        print_section(console, "Revised" if revision.status == "revised" else "Text", [Text(sanitize(revision.revised))])
    lines = revision.diff.split("\n")[2:]  # without the two lines that name files
    print_section(console, "Difference", [Text(sanitize(line), style=DIFF_STYLES.get(line[:1], "")) for line in lines])
    print_section(console, "Flagged sentences", [line for c in revision.changes for line in _change(revision, c)])
    console.print()
    console.print(Text(outcome_cost_line(f"{revision.how} by {revision.method}", revision), style="dim"))


def _change(revision: Revision, change: Change) -> list[Text]:
    """Return the lines of one change: both texts, the reason, and the evidence on both sides."""
    now = f" → “{shorten_text(change.new)}”" if change.new.strip() and change.how != "kept" else ""
    was = f"“{shorten_text(change.text)}”" if change.text.strip() else ""
    numbers = f"  P {change.before:.2f}" if change.before is not None else ""
    numbers += f" → {change.after:.2f}" if numbers and change.after is not None else ""
    lines = [Text.assemble((f"{change.how:<12}", CHANGE_STYLES[change.how]), was, now, (numbers, "dim"))]
    lines.append(Text(f"    {shorten_text(change.why, 600)}"))
    lines += [Text("    ") + line for e in change.evidence for line in evidence_lines(revision.original, e)]
    if revision.revised is not None:
        lines += [Text("    ") + line for e in change.support for line in evidence_lines(revision.revised, e)]
    return lines
