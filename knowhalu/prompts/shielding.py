"""Shield data in prompts: the text of users, passages and earlier replies can open neither a section nor a turn.

A tokenizer turns a turn token into one token wherever it stands in a text. What counts as one follows from its shape, as new
models bring new tokens: `<|...|>`, `<...|>`, words joined by `_` in brackets, capitals in square brackets, and known short names.
"""

import re

INDENT = "  "
_LINE_BREAK = r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]"
_INVISIBLE_CHARS = r"[\u00ad\u200b-\u200f\u2060\ufeff]*"
_HEADING = rf"[#\uff03\ufe5f](?:{_INVISIBLE_CHARS}[#\uff03\ufe5f])+"
_NAMES = (
    r"[be]o[sdptmha]|sop|sep|pad|unk|mask|cls|[gs]mask|role|human|bot|user|assistant|system|model|image|audio|video|"
    r"think|thinking|thoughts?|reasoning|reflection|tool_?(?:call|response|result)s?|(?:unused|special|reserved|control)_?\d+"
)
"""Names of tokens in angle brackets that have no other mark."""
_CAPITALS = (
    "INST|SYS|THINK|IMG|ARGS|PREFIX|SUFFIX|MIDDLE|[BE]O[STDM]|PAD|UNK|MASK|CLS|SEP|gMASK|sMASK|(?:control|unused)_?[0-9]+|"
    "[A-Z]+(?:_[A-Z0-9]+)+"
)
"""Tokens in square brackets; other words in them, such as [NOTE] or [tool], are ordinary text."""
_SHAPES = {
    "<": (
        rf"[|\uff5c][^|\uff5c<>\n]+[|\uff5c]>|[|\uff5c][^\s|\uff5c<>]+>|[^\s|\uff5c<>]+[|\uff5c]>|/?s>|(?:/?<|</?)SYS>\\*>"
        rf"|/?_?[a-z]+(?:_[a-z0-9]+)+>|_[a-z]+>|/?(?:[a-z]+:)?(?:{_NAMES})>"
    ),
    "[": rf"[|\uff5c][^|\uff5c\[\]\n]+[|\uff5c]\]|(?-i:/?(?:{_CAPITALS})\])|e~\[",
    "]": r"~!?[a-z]+[\[\]]",
    "\u25c1": r"[^\s\u25c1\u25b7]+\u25b7",
    ">": r">(?-i:[A-Z]+)<\\*<",
}
"""What makes a token of the text after a character, by that character."""
_TOKEN = re.compile("|".join(rf"{re.escape(c)}\\*(?!\\)(?={shape})" for c, shape in _SHAPES.items()), re.IGNORECASE)
_SHIELDED_TOKEN = re.compile("|".join(rf"{re.escape(c)}\\+(?!\\)(?={shape})" for c, shape in _SHAPES.items()), re.IGNORECASE)


def shield(text: str) -> str:
    r"""Escape text that could pass for the frame of a prompt: `###` becomes `\###`, `<|im_end|>` becomes `<\|im_end|>`.

    Lines after the first are indented. Nothing is lost: `unshield` gives the text back.
    """
    text = re.sub(rf"(?<!\\)(\\*{_HEADING})", r"\\\1", text)
    return re.sub(f"({_LINE_BREAK})", rf"\1{INDENT}", shield_tokens(text))


def unshield(text: str) -> str:
    """Return the original of a shielded text."""
    text = re.sub(f"({_LINE_BREAK}){INDENT}", r"\1", text)
    text = _SHIELDED_TOKEN.sub(lambda m: m[0][:-1], text)
    return re.sub(rf"(?<!\\)\\(\\*{_HEADING})", r"\1", text)


def shield_tokens(text: str) -> str:
    """Put a backslash after the first character of everything that has the shape of a turn token."""
    return _TOKEN.sub(lambda m: m[0] + "\\", text)
