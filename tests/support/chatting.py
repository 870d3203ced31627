"""How a scripted model behind the stand-in server knows where it goes on."""

import re

_EXAMPLE = re.compile(r"<assistant>### (?P<name>[A-Z][a-z ]+?)(?P<number> \d+)?:")
_KNOWN = re.compile(r"### Knowledge (\d+):")
_ENDS = "</><assistant>"


def open_heading(prompt):
    """Return the heading of the reply, and what the model writes of it: in a chat with examples all of it, as they do."""
    example = _EXAMPLE.search(prompt)
    if example is None:
        return prompt.removesuffix(_ENDS).rpartition("\n### ")[2].removesuffix(":"), ""
    heading = example["name"]
    if example["number"]:
        known = _KNOWN.findall(prompt.rpartition("<user>")[2])
        heading += f" {int(known[-1]) + 1 if known else 1}"
    return heading, f"### {heading}:"
