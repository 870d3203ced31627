"""Specifications of methods to compare: `conli`, `conli:llm`, `strict=factored:encoder[theta=0.7]`."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from knowhalu.build import reasoner_of
from knowhalu.errors import SettingsError
from knowhalu.load_settings import read_settings
from knowhalu.profiles import apply_profile, read_profile
from knowhalu.registry import METHODS, method_card
from knowhalu.settings import Settings

SPEC_SYNTAX = "[NAME=]METHOD[:REASONER][[SETTING=VALUE,...]], such as conli:llm or strict=factored[theta=0.7]"
RUN_SETTINGS = ("profile", "allow_fitted")
"""Settings without a dot that belong to the whole run, not to a method."""
_COMMA = re.compile(r",(?![^\[]*\])")
_SPEC = re.compile(r"(?:([\w.-]+)=)?([\w-]+)(?::([\w-]+))?(?:\[(.*)\])?", re.DOTALL)


class MethodSpec(NamedTuple):
    """A method of a comparison, its reasoner, and its own settings (`a.b=c`)."""

    name: str
    method: str
    reasoner: str | None = None
    pairs: tuple[str, ...] = ()

    def settings(self, file: Path | None, pairs: Iterable[str], *, profiled: bool = True) -> Settings:
        """Return the settings of its run, its own taking precedence; raises SettingsError naming the method.

        A profile in the common settings is used if it was made for this method, and never if not `profiled`.
        """
        reasoner = (f"reasoner={json.dumps(self.reasoner)}",) if self.reasoner else ()
        try:
            made = read_settings(file, (*pairs, f"method={json.dumps(self.method)}", *reasoner, *self.pairs))
            made = apply_profile(made if profiled and self._is_for(made.profile) else made.model_copy(update={"profile": None}))
            reasoner_of(made)
        except SettingsError as error:
            raise SettingsError(f"{self.name}: {error}".replace("--reasoner ", f"{self.method}:")) from error
        return made

    def _is_for(self, profile: Path | None) -> bool:
        """Tell whether a profile is this method's own, or a common one that was made for it."""
        if profile is None or any(pair.startswith("profile=") for pair in self.pairs):
            return True
        made = read_profile(profile)
        return made.method == self.method and self.reasoner in (None, made.settings.get("reasoner", self.reasoner))


def parse_specs(texts: Iterable[str]) -> list[MethodSpec]:
    """Parse methods separated by commas; raises SettingsError for an invalid one, and for two with one name."""
    specs = [_spec(text.strip()) for several in texts for text in _COMMA.split(several) if text.strip()]
    if not specs:
        raise SettingsError(f"no method is named. Write them as {SPEC_SYNTAX}")
    for spec in specs:
        if spec.name in METHODS and spec.name != spec.method:
            raise SettingsError(f"{spec.name!r} is the name of a method. Give {spec.method} another name")
        if sum(other.name.casefold() == spec.name.casefold() for other in specs) > 1:
            raise SettingsError(f"two methods would be called {spec.name!r}. Name one of them: other={spec.method}")
    return specs


def _spec(text: str) -> MethodSpec:
    match = _SPEC.fullmatch(text)
    if match is None:
        raise SettingsError(f"{text!r} is no method. Write it as {SPEC_SYNTAX}")
    name, method, reasoner, inner = match.groups()
    branch = method_card(method).options
    pairs = tuple(_pair(pair.strip(), branch, text) for pair in (inner or "").split(",") if pair.strip())
    usual = "-".join([method, *([reasoner] if reasoner else []), *(p.removeprefix(f"{branch}.") for p in pairs)])
    return MethodSpec(name or re.sub(r"[^\w.-]+", "-", usual), method, reasoner, pairs)


def _pair(text: str, branch: str, spec: str) -> str:
    key, equals, value = text.partition("=")
    if not equals or key.strip() in ("method", "reasoner"):
        raise SettingsError(f"{spec!r}: {text!r} is no setting of a method. Write it as {SPEC_SYNTAX}")
    whole = "." in key or key.strip() in RUN_SETTINGS
    return f"{key.strip() if whole else f'{branch}.{key.strip()}'}={value.strip()}"
