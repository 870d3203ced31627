"""The special tokens of a served model, which no text in a chat may contain: there they would begin or end a turn.

Prompts shield what has the shape of such a token (`knowhalu.prompts.shielding`). This check finds tokens of any other shape,
and texts that were not shielded.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from knowhalu.errors import StageError
from knowhalu.requests import Generate


class TurnTokens:
    """The tokens of a model that have a mark; one that is a plain word may occur in any text."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        marked = {t for t in tokens if len(t) > 2 and not t.isspace() and not t.replace(" ", "").isalnum()}
        self._pattern = re.compile("|".join(map(re.escape, sorted(marked, key=len, reverse=True)))) if marked else None

    def check(self, request: Generate) -> None:
        """Raise StageError where a text of a chat contains one of the tokens."""
        if self._pattern is None:
            return
        for text in (request.system, request.prompt, request.prefill):
            if found := self._pattern.search(text):
                reason = f"the text contains {found[0]!r}, which separates the turns of this model. Remove it from the text"
                raise StageError("generate", f"{reason}, or use another model")


def read_special_tokens(folder: Path) -> list[str]:
    """Return the special tokens of the tokenizer in a folder; none where it has none that can be read."""
    for name in ("tokenizer_config.json", "tokenizer.json"):
        try:
            fields = json.loads((folder / name).read_text(encoding="utf-8"))
            decoder = fields.get("added_tokens_decoder")
            added: list[Any] = list(decoder.values()) if decoder else fields.get("added_tokens") or []
            found = [str(token["content"]) for token in added if token["special"]]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if found:
            return found
    return []
