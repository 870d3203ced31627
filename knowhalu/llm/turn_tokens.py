"""The special tokens of a served model, which no text in a chat may contain: there they would begin or end a turn.

Prompts shield what has the shape of such a token (`knowhalu.prompts.shielding`). This check finds tokens of any other shape,
and texts that were not shielded.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from knowhalu.errors import StageError
from knowhalu.requests import Generate


def check_turn_tokens(request: Generate, tokens: Iterable[str]) -> None:
    """Raise StageError where a text of a chat contains one of the tokens."""
    for token in tokens:
        if any(token in text for text in (request.system, request.prompt, request.prefill)):
            reason = f"the text contains {token!r}, which separates the turns of this model. Remove it from the text"
            raise StageError("generate", f"{reason}, or use another model")


def marked(tokens: Iterable[str]) -> frozenset[str]:
    """Return the tokens that have a mark: a token that is a plain word may occur in any text."""
    return frozenset(t for t in tokens if len(t) > 2 and not t.isspace() and not t.replace(" ", "").isalnum())


def read_special_tokens(folder: Path) -> frozenset[str]:
    """Return the special tokens of the tokenizer in a folder; none where it has none that can be read."""
    added: list[Any] = []
    for name in ("tokenizer_config.json", "tokenizer.json"):
        try:
            fields = json.loads((folder / name).read_text(encoding="utf-8"))
            decoder = fields.get("added_tokens_decoder")
            added = list(decoder.values()) if decoder else fields.get("added_tokens") or []
            found = marked(str(t["content"]) for t in added if t["special"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue
        if found:
            return found
    return frozenset()
