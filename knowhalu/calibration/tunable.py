"""Stored runs on labelled rows: their settings and verdicts, and what can be tuned on them without a model."""

import json
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from knowhalu.build import reasoners_of, stage_settings
from knowhalu.errors import InputError, SettingsError
from knowhalu.evaluation.labelled_rows import LabelledRows
from knowhalu.evaluation.metrics import Flags, Floats, Predictions
from knowhalu.io.outcomes import read_outcome_table
from knowhalu.io.samples import read_samples
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.common.combine import CombinationRule, fit_theta
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.methods.options import CascadeOptions, FactoredOptions, LexicalOptions
from knowhalu.registry import method_card
from knowhalu.settings import Settings, refuse_foreign_code
from knowhalu.types import META_SET, Label

RowIndices = NDArray[np.intp]
VerdictLines = list[tuple[int, dict[str, Any]]]
"""Verdicts as the fields of their lines, each with the place of its row."""
VERDICT_FIELDS, FORM_FIELDS = ("id", "task", "label", "hallucinated", "probability"), ("base", "supplement")
JUDGMENT_FIELDS, FINDING_FIELDS = ("form", "label", "confidence", "features"), ("unit", "type", "label")


class Tunable(Protocol):
    """Stored verdicts of a method, with settings that can be tuned without another check; arrays are in their order."""

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose settings on some of the rows; raises InputError where they do not suffice."""

    def predict(self, settings: dict[str, Any]) -> Predictions:
        """Return the predictions of the method for all rows with these settings."""


class FixedPredictions(NamedTuple):
    """The verdicts of a method without tunable settings."""

    all: Predictions

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Return no settings."""
        return {}

    def predict(self, settings: dict[str, Any]) -> Predictions:
        """Return the stored predictions."""
        return self.all


def read_verdict_lines(path: Path, rows: LabelledRows) -> VerdictLines:
    """Return the last verdict of every row that has one, in the order of the rows.

    Raises InputError where an outcome is of no row, or of a row that has changed, and where a row has no outcome at all.
    """
    outcomes: dict[int, dict[str, Any]] = {}

    def visit(place: int, fields: dict[str, Any]) -> None:
        outcomes[place] = _keep_tuning_fields(fields)

    read_outcome_table(path, rows.row_index, visit)
    if missing := len(rows.gold) - len(outcomes):
        remedy = f"Finish the run: knowhalu detect {rows.path} -o {path}"
        raise InputError(f"{path}: {missing:,} rows of {rows.path} have no outcome. {remedy}.")
    return [(place, fields) for place, fields in sorted(outcomes.items()) if "stage" not in fields]


def _keep_tuning_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Drop the fields that tuning does not need: the evidence and the steps, which are most of a line."""
    if "segments" not in fields:
        return fields
    slim = [
        {
            **{name: segment[name] and _keep_judgment_fields(segment[name]) for name in FORM_FIELDS},
            "findings": [{k: finding[k] for k in FINDING_FIELDS} for finding in segment["findings"]],
        }
        for segment in fields["segments"]
    ]
    return {**{k: fields[k] for k in VERDICT_FIELDS}, "stages": fields.get("stages", ()), "segments": slim}


def _keep_judgment_fields(judgment: dict[str, Any]) -> dict[str, Any]:
    supported = judgment["p_supported" if "p_supported" in judgment else "supported"]  # older versions wrote "supported"
    return {**{k: judgment[k] for k in JUDGMENT_FIELDS}, "p_supported": supported}


def measured_lines(lines: VerdictLines) -> VerdictLines:
    """Return the verdicts whose probability and judgments were measured; stages of a cascade may lack a probability.

    Nothing can be fitted on the others, as a server that gives no log-probabilities makes them.
    """
    return [(place, fields) for place, fields in lines if fields.get("stages") or _is_measured(fields)]


def _is_measured(fields: dict[str, Any]) -> bool:
    judgments = [s[name] for s in fields["segments"] for name in FORM_FIELDS if s[name] is not None]
    return fields["probability"] is not None and all(
        j["confidence"] is not None and j["p_supported"] is not None for j in judgments
    )


def read_fixed_predictions(lines: VerdictLines, gold: Flags) -> FixedPredictions:
    """Return the verdicts of a method as they are; `gold` are the labels of the same rows."""
    p = np.array([fields["probability"] for _, fields in lines], dtype=np.float64)  # NaN where not measured
    open_ = np.array([fields["hallucinated"] is None for _, fields in lines], dtype=np.bool_)
    hallucinated = np.array([bool(fields["hallucinated"]) for _, fields in lines], dtype=np.bool_)
    return FixedPredictions(make_predictions(gold, hallucinated, open_, p))


def make_predictions(gold: Flags, hallucinated: Flags, open_: Flags, probability: Floats) -> Predictions:
    """Make predictions; an abstention is settled by its probability."""
    return Predictions(gold, np.where(open_, probability > 0.5, hallucinated), open_, probability)


def read_set_names(path: Path) -> list[str]:
    """Return the set (`meta.set`) of every row; "" where it names none."""
    return [str(sample.meta.get(META_SET, "")) for sample in read_samples(path)]


class TunableTheta(NamedTuple):
    """Combined probabilities by the rule in use, NaN without a judged claim; `left` marks rows with an inconclusive claim."""

    gold: Flags
    value: Floats
    left: Flags

    def fit(self, rows: RowIndices) -> dict[str, Any]:
        """Choose theta: the midpoint of the class means (Factored Verification, section 2.3)."""
        counted = rows[~np.isnan(self.value[rows])]
        try:
            theta = fit_theta((float(self.value[i]), not self.gold[i]) for i in counted)
        except ValueError as error:
            raise InputError(f"{error}. Give rows of both labels, each with a claim that could be judged.") from error
        return {"factored": {"theta": theta}}

    def predict(self, settings: dict[str, Any]) -> Predictions:
        """Return the predictions of Factored Verification for all rows with this theta."""
        theta = float(settings["factored"]["theta"])
        value = np.nan_to_num(self.value, nan=1.0)
        hallucinated = value < theta
        open_ = np.isnan(self.value) | (~hallucinated & self.left)
        return make_predictions(self.gold, hallucinated, open_, np.where(open_, 0.5, hallucination_probabilities(value, theta)))


def hallucination_probabilities(value: Floats, theta: float) -> Floats:
    """Return `knowhalu.methods.common.combine.hallucination_probability` of many values at once."""
    with np.errstate(over="ignore"):  # a denormal theta
        under = np.maximum(np.nextafter(0.5, 1.0), 1 - 0.5 * value / (theta or 1.0))
    over = 0.5 * (1 - value) / (1 - theta) if theta < 1 else np.full(value.shape, 0.5)
    return np.where(value < theta, under, over)


def read_tunable_theta(lines: VerdictLines, gold: Flags, rule: CombinationRule) -> TunableTheta:
    """Return the combined probabilities of all verdicts."""
    value = [
        float(fields["segments"][0]["base"]["features"].get(rule, np.nan)) if fields["segments"] else np.nan
        for _, fields in lines
    ]
    return TunableTheta(gold, np.array(value, dtype=float), np.array([_has_open_claim(f) for _, f in lines], dtype=np.bool_))


def _has_open_claim(fields: dict[str, Any]) -> bool:
    return any(f["label"] == Label.INCONCLUSIVE for segment in fields["segments"] for f in segment["findings"])


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
    options = settings.method_options(method_card(settings.method))
    changes: dict[str, Any] = {}
    if settings.method == "knowhalu":
        usual = KnowHaluOptions().model_dump(include=TUNED_OPTIONS["knowhalu"])
        changes["knowhalu"] = options.model_copy(update={**usual, "second_opinion": "always"})
    if isinstance(options, FactoredOptions):
        changes["factored"] = options.model_copy(update={"theta": None})
    if isinstance(options, CascadeOptions):
        if options.rules not in TUNABLE_FIRST_STAGES:
            raise SettingsError(
                f"cascade.rules: calibrate chooses among the rules of 'lexical' alone, so it cannot count what {options.rules!r} "
                "decides. Set cascade.rules=lexical, or leave it empty"
            )
        changes |= {"cascade": options.model_copy(update={"ask": "always", "low": 0.5, "high": 0.5}), "lexical": ALL_RULES}
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
        given, stored = getattr(wanted, name), getattr(settings, name)
        if name in wanted.model_fields_set and given != stored:
            raise InputError(f"{path}: is of {name} {stored!r}, not {given!r}. Leave out --{name}, or give other outcomes.")
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
