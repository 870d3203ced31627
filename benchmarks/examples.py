#!/usr/bin/env python
"""Run the examples of the README again and write what they print (after `make demo`, which builds their index).

A `console` block holds a command behind `$` and its output; a `python` block is followed by a `text` block with its output.
Durations and the hash of the index differ from run to run, so no test compares them.
"""

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
_CONSOLE = re.compile(r"(```console\n\$ knowhalu )([^\n]+)\n(.*?)(^```$)", re.DOTALL | re.MULTILINE)
_PYTHON = re.compile(r"(^```python\n)(.*?)(^```\n+```text\n)(.*?)(^```$)", re.DOTALL | re.MULTILINE)


def run(*command: str) -> str:
    """Return what a command prints; raises RuntimeError where it ends with an error."""
    environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{shlex.join(command)} ended with {done.returncode}: {done.stderr}")
    return done.stdout


def renewed(text: str, folder: Path) -> str:
    """Return a page's text with the output of its examples; files that a command writes go to `folder`."""

    def console(match: re.Match[str]) -> str:
        command = [str(folder / word) if word.startswith("verdicts") else word for word in shlex.split(match[2])]
        output = run("-m", "knowhalu", *command).replace(f"{folder}/", "")
        return f"{match[1]}{match[2]}\n{output}{match[4]}"

    def python(match: re.Match[str]) -> str:
        if not (output := run("-c", match[2])):
            raise RuntimeError(f"an example fails or prints nothing:\n{match[2]}")
        return f"{match[1]}{match[2]}{match[3]}{output}{match[5]}"

    return _PYTHON.sub(python, _CONSOLE.sub(console, text))


def main() -> None:
    """Write the README with the output of this version."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    page = ROOT / "README.md"
    with tempfile.TemporaryDirectory() as folder:
        text = renewed(page.read_text(encoding="utf-8"), Path(folder))
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
