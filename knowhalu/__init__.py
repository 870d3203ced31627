"""KnowHalu: tell whether what a language model wrote is true, with evidence, on your own machines."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from knowhalu.api import Checker, Reviser, check, check_all, revise
    from knowhalu.errors import CheckFailed, KnowHaluError
    from knowhalu.io.frames import to_df
    from knowhalu.results import Failure, Outcome, Revision, Verdict
    from knowhalu.settings import Settings
    from knowhalu.types import Document, Label, Sample

__version__ = "0.1.0"
__all__ = [
    "CheckFailed", "Checker", "Document", "Failure", "KnowHaluError", "Label", "Outcome", "Reviser", "Revision", "Sample",
    "Settings", "Verdict", "check", "check_all", "revise", "to_df",
]  # fmt: skip

_HOMES = {
    "check": "api", "check_all": "api", "revise": "api", "Checker": "api", "Reviser": "api", "KnowHaluError": "errors",
    "CheckFailed": "errors", "Settings": "settings", "to_df": "io.frames",
    "Revision": "results", "Failure": "results", "Outcome": "results", "Verdict": "results",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import knowhalu` stays instant."""
    if name not in __all__:
        raise AttributeError(f"module 'knowhalu' has no attribute {name!r}")
    return getattr(import_module(f"knowhalu.{_HOMES.get(name, 'types')}"), name)
