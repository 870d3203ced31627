"""Every error this library raises, in one tree, and what messages share. Each says what happened, where, and what to do.

KnowHaluError
├── InputError          a row, field or argument that cannot be used (names file, line, field)
├── SettingsError       an unknown or ill-typed setting or name
├── MissingExtra        an optional package is not installed
├── ModelError          a model folder is missing, damaged or of the wrong kind
├── IndexFormatError    an index folder is missing, damaged or does not fit the embedder
├── PromptError         a prompt file with undeclared, missing or misplaced holes
├── ResumeError         an output file that belongs to another run
├── CheckFailed         a Failure that was unwrapped
└── StageError          a stage of one check failed: becomes that sample's Failure
    ├── ReplyError      a reply that cannot be parsed
    └── BackendError    a backend did not answer (down, timed out, refused)
"""

import re

_USER_INFO = re.compile(r"""(?<=://)[^/\s"]*@|(?:^|(?<=[='"]))[^/\s"'=:]+:[^/\s"']*@""")
"""The user's name and password in a URL, also in one that lacks its scheme."""


def hide_password(text: str) -> str:
    """Return a URL, or a text with URLs, as messages and stored outcomes may show it: without a user's name and password."""
    return _USER_INFO.sub("", text)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the plural, unless it is one: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


class KnowHaluError(Exception):
    """The root of all errors that this library raises on purpose."""

    retryable = False


class InputError(KnowHaluError):
    """Input that cannot be used; the message names the file, the line and the remedy."""


class SettingsError(KnowHaluError):
    """A setting that does not exist or cannot have this value."""


class MissingExtra(KnowHaluError):
    """A feature whose optional package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(f"{package} is not installed. Run: pip install 'knowhalu[{extra}]'")


class ModelError(KnowHaluError):
    """A model folder that is missing, damaged or of the wrong kind."""


class IndexFormatError(KnowHaluError):
    """An index folder that is missing, damaged or does not fit its embedder."""


class PromptError(KnowHaluError):
    """A prompt file whose holes are undeclared, missing or misplaced."""


class ResumeError(KnowHaluError):
    """An output file of another run than the one that is to be continued."""


class CheckFailed(KnowHaluError):
    """A check or revision that ended as a Failure: raised by its `unwrap()`."""

    def __init__(self, id: str, stage: str, reason: str) -> None:
        # a reason may quote a server, whose text must not control the terminal that shows the traceback
        shown = "".join(c if c.isprintable() else " " for c in f"{stage}: {reason}")
        super().__init__(f"sample {id!r}: {shown}")
        self.id, self.stage, self.reason = id, stage, reason


class StageError(KnowHaluError):
    """A stage of one check that failed; the engine turns it into that sample's Failure. `reply` is None where there was none."""

    def __init__(self, stage: str, reason: str, *, reply: str | None = None) -> None:
        super().__init__(f"{stage}: {reason}")
        self.stage, self.reason, self.reply = stage, reason, reply


class ReplyError(StageError):
    """A reply that cannot be parsed; the raw reply is kept."""


class BackendError(StageError):
    """A backend that did not answer: down, timed out or refused."""

    retryable = True
