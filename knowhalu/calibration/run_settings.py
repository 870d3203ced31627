"""The settings of the run that a calibration needs, and their check in stored outcomes."""

import json
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from knowhalu.build import reasoners_of, stage_settings
from knowhalu.errors import InputError, SettingsError
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.methods.options import CascadeOptions, FactoredOptions, LexicalOptions
from knowhalu.registry import method_card
from knowhalu.settings import Settings, refuse_foreign_code

TUNED_OPTIONS: dict[str, set[str]] = {
    "knowhalu": {"second_opinion", "base_form", "delta1", "delta2"}, "factored": {"theta"},
    "cascade": {"ask", "low", "high"}, "lexical": {"rules"},
}  # fmt: skip
"""Options of the methods that are tuned, or that decide which stages run."""
LLM_RESULT_OPTIONS = {"backend", "model", "style", "constrain", "system", "votes", "seed", "precision"}
"""Options of a language model that decide its answers."""
ALL_STAGES_FLAGS = "--set cascade.ask=always --set cascade.low=0.5 --set cascade.high=0.5"
TUNABLE_FIRST_STAGES = ("lexical", "")
"""First stages of a cascade that a calibration can tune."""
ALL_RULES = LexicalOptions(rules=("copied", "dates", "numbers", "names"))


def ask_all_settings(settings: Settings) -> Settings:
    """Return the settings of a run in which no check is skipped because of thresholds; raises SettingsError."""
    if settings.profile is not None:
        raise SettingsError("calibrate makes a profile, so it cannot use one. Leave out the profile")
    own = settings.method_options(method_card(settings.method))
    changes: dict[str, Any] = {}
    if settings.method == "knowhalu":
        usual = KnowHaluOptions().model_dump(include=TUNED_OPTIONS["knowhalu"])
        changes["knowhalu"] = own.model_copy(update={**usual, "second_opinion": "always"})
    if isinstance(own, FactoredOptions):
        changes["factored"] = own.model_copy(update={"theta": None})
    if isinstance(own, CascadeOptions):
        if own.rules not in TUNABLE_FIRST_STAGES:
            raise SettingsError(
                f"cascade.rules: calibrate chooses among the rules of 'lexical' alone, so it cannot count what {own.rules!r} "
                "decides. Set cascade.rules=lexical, or leave it empty"
            )
        changes |= {"cascade": own.model_copy(update={"ask": "always", "low": 0.5, "high": 0.5}), "lexical": ALL_RULES}
    return settings.model_copy(update=changes)


def stored_run_settings(head: dict[str, str], wanted: Settings, path: Path) -> Settings:
    """Return the settings of stored outcomes; raises InputError where they cannot be used for tuning."""
    if "profile" in head:
        raise InputError(
            f"{path}: was made with a profile, so it lacks the verdicts of the method itself. Make it again without a profile."
        )
    try:
        fields = json.loads(head["settings"])
        refuse_foreign_code(fields, wanted, str(path))
        settings = Settings.model_validate(fields)
    except (KeyError, ValueError, ValidationError) as error:
        raise InputError(f"{path}: its first line does not tell its settings. Make it again with `knowhalu detect`.") from error
    for name in ("method", "reasoner"):
        given, there = getattr(wanted, name), getattr(settings, name)
        if name in wanted.model_fields_set and given != there:
            raise InputError(f"{path}: is of {name} {there!r}, not {given!r}. Leave out --{name}, or give other outcomes.")
    if settings.method == "cascade" and settings.cascade != ask_all_settings(settings).cascade:
        raise InputError(f"{path}: not every stage checked every row. Run it with {ALL_STAGES_FLAGS}.")
    return settings


def tunable_options(settings: Settings, *, all: bool = False) -> dict[str, Any]:
    """Return the options of a method that are tuned; with `all`, the settings that a run must share with its profile.

    The encoder of a cascade is the same whether or not a language model follows, so its profile is valid for both.
    """
    runs = [settings, *stage_settings(settings).values()]
    branches = {card.options: card for card in (method_card(run.method) for run in runs)}
    if not all:
        return {name: True for name in branches if name in TUNED_OPTIONS and method_card(settings.method).options == name}
    tree: dict[str, Any] = {"method": settings.method}
    if not method_card(settings.method).stages:
        tree["reasoner"] = settings.reasoner
    for name, card in branches.items():
        tree[name] = settings.method_options(card).model_dump(
            mode="json", exclude_defaults=True, exclude=TUNED_OPTIONS.get(name, set())
        )
    if "llm" in reasoners_of(settings) and not method_card(settings.method).stages:
        tree["llm"] = settings.llm.model_dump(
            mode="json", exclude_defaults=True, include=LLM_RESULT_OPTIONS & set(LLMOptions.model_fields)
        )
    return {name: value for name, value in tree.items() if value}
