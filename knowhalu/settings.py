"""The settings of a run: one frozen tree of the options of all parts, read from TOML and `a.b=c` pairs."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ModelWrapValidatorHandler, ValidationError, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError

from knowhalu.encoder.options import EncoderOptions, rename_old_option
from knowhalu.errors import SettingsError, hide_password
from knowhalu.llm.options import LLMOptions
from knowhalu.methods.knowhalu.options import KnowHaluOptions
from knowhalu.methods.options import (
    BaselineOptions,
    CascadeOptions,
    ConliOptions,
    FactoredOptions,
    LexicalOptions,
    ReviseOptions,
    TrivialOptions,
)
from knowhalu.registry import Kind, MethodCard, extension_options, is_import_path
from knowhalu.requests import CRITIC, WRITER
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.types import Record

ROLES = (WRITER, CRITIC)
"""The roles of language models that may have a branch of their own, such as `writer_llm`."""
EXTENSION_SETTINGS: Mapping[str, Kind] = {"method": "methods", "llm.backend": "llms", "retrieval.mode": "retrievers"}
"""Settings that name an extension, which then has a branch of the settings of its own."""
_CODE_SETTINGS = (*EXTENSION_SETTINGS, "encoder.verifier", "cascade.rules", "cascade.encoder", "cascade.llm")
"""Settings whose value may be an import path."""
SHORT_NAMES = {"verifier": "encoder.verifier", "encoder.folder": "encoder.verifier"}
"""A short name, and a name of earlier versions, with the present name of the setting."""


class EngineOptions(Record):
    """Concurrency of checks, and the order of their outcomes."""

    in_flight: int = Field(128, ge=1, le=100_000, description="maximal number of concurrent checks")
    batch: int = Field(64, ge=1, le=10_000, description="maximal number of requests in one batch of a backend")
    ordered: bool = Field(True, description="return outcomes in the order of the input; false: as they finish")


class Settings(Record):
    """Everything that decides the result of a run.

    A branch without a field is accepted where an extension has its name; the extension's `Options` validate it.
    """

    model_config = ConfigDict(extra="allow")

    method: str = Field("knowhalu", description="checking method; `knowhalu methods` lists them")
    reasoner: str = Field("encoder", description="model that makes the judgments: encoder or llm")
    profile: Path | None = Field(
        None, description="profile of `knowhalu calibrate`, whose method, thresholds and scaling are used"
    )
    allow_fitted: bool = Field(False, description="use the profile even on rows that it was fitted on")
    knowhalu: KnowHaluOptions = KnowHaluOptions()
    conli: ConliOptions = ConliOptions()
    factored: FactoredOptions = FactoredOptions()
    baselines: BaselineOptions = BaselineOptions()
    trivial: TrivialOptions = TrivialOptions()
    lexical: LexicalOptions = LexicalOptions()
    cascade: CascadeOptions = CascadeOptions()
    encoder: EncoderOptions = EncoderOptions()
    llm: LLMOptions = LLMOptions()
    writer_llm: LLMOptions | None = Field(
        None, description="what differs from [llm] for the model that writes and rewrites texts; unset: nothing"
    )
    critic_llm: LLMOptions | None = Field(
        None, description="what differs from [llm] for the model that criticises sentences; unset: nothing"
    )
    retrieval: RetrievalOptions = RetrievalOptions()
    revise: ReviseOptions = ReviseOptions()
    engine: EngineOptions = EngineOptions()

    @model_validator(mode="wrap")
    @classmethod
    def _validate_extensions(cls, given: Any, validate: ModelWrapValidatorHandler["Settings"]) -> "Settings":
        """Validate the branches of extensions by their `Options`; refuse all other unknown names."""
        if isinstance(given, dict):
            given = with_present_names(given)
        extra = [name for name in given if name not in cls.model_fields] if isinstance(given, dict) else []
        if not extra:
            return validate(given)
        used = {kind: str(value_at(given, name)) for name, kind in EXTENSION_SETTINGS.items()}
        branches, errors = {}, []
        for name in extra:
            options = extension_options(name, used)
            if options is None:
                errors.append(InitErrorDetails(type="extra_forbidden", loc=(name,), input=given[name]))
                continue
            try:
                branches[name] = options.model_validate(given[name])
            except ValidationError as error:
                errors += [_with_branch(name, details) for details in error.errors()]
        if errors:
            raise ValidationError.from_exception_data(cls.__name__, errors)
        return validate({**given, **branches})

    def branch(self, name: str, options: type[Record]) -> Any:
        """Return the options of an extension: its branch, or the defaults where the settings have none."""
        if name in type(self).model_fields:
            raise SettingsError(f"an extension cannot have the name {name!r}, which is a setting of KnowHalu. Rename it")
        return (self.model_extra or {}).get(name) or options()

    def llm_of(self, role: str) -> LLMOptions:
        """Return the options of the language model of a role, "writer" or "critic": those of `llm` where its branch sets none."""
        own: LLMOptions | None = getattr(self, f"{role}_llm")
        given = {} if own is None else {name: getattr(own, name) for name in own.model_fields_set}
        return self.llm.model_copy(update=given)

    def by_role(self) -> dict[str, "Settings"]:
        """Return for each role with options of its own the settings that have these as `llm`."""
        own = {role: self.llm_of(role) for role in ROLES}
        return {role: self.model_copy(update={"llm": llm}) for role, llm in own.items() if llm != self.llm}

    def method_options(self, card: MethodCard) -> Any:
        """Return the options of a method."""
        return getattr(self, card.options) if isinstance(card.make, str) else self.branch(card.options, card.make.Options)


def _with_branch(name: str, error: ErrorDetails) -> InitErrorDetails:
    """Place an error of an extension's options in its branch."""
    message = error["msg"].replace("{", "{{")
    return InitErrorDetails(type=PydanticCustomError(error["type"], message), loc=(name, *error["loc"]), input=error["input"])


def value_at(tree: Any, name: str) -> Any:
    """Return the value of a setting such as "llm.backend" in a mapping or in settings; None where there is none."""
    for key in name.split("."):
        tree = tree.get(key) if isinstance(tree, Mapping) else getattr(tree, key, None)
    return tree


def with_present_names(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree of settings with `SHORT_NAMES` replaced; raises SettingsError where two names differ in value."""
    present = dict(tree)
    branch = present.get("encoder")
    if isinstance(branch, Mapping):
        branch = present["encoder"] = rename_old_option(branch)
    short = present.get("verifier")
    if isinstance(short, str | Path) and (
        branch is None or isinstance(branch, Mapping | EncoderOptions)
    ):  # no extension's branch
        options = branch.model_dump(exclude_unset=True) if isinstance(branch, EncoderOptions) else dict(branch or {})
        if str(options.setdefault("verifier", short)) != str(present.pop("verifier")):
            raise SettingsError("verifier is the short name of encoder.verifier, and both are set. Keep one of them")
        present["encoder"] = options
    return present


def refuse_foreign_code(tree: Mapping[str, Any], settings: Settings, source: str) -> None:
    """Refuse stored settings that name code by an import path, unless the run's own settings name the same.

    Raises SettingsError: a file of settings that were stored by a run, such as a profile, must not choose which code runs.
    """
    tree = with_present_names(tree)
    for name in _CODE_SETTINGS:
        value = str(value_at(tree, name))
        if is_import_path(value) and value != str(value_at(settings, name)):
            raise SettingsError(
                f"{source}: names code to import ({name} = {value}). To allow this code, add --set {name}={value}"
            )


def read_settings(file: Path | None = None, pairs: Iterable[str] = ()) -> Settings:
    """Read settings from TOML; `pairs` such as "engine.in_flight=64" take precedence. A profile is named, but not applied.

    Raises SettingsError naming the file or the pair, the setting and its allowed values.
    """
    tree: dict[str, Any] = {}
    if file is not None:
        try:
            tree = tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise SettingsError(f"{file}: cannot read the settings ({error})") from error
        _validate_settings(tree, str(file))
        tree = with_present_names(tree)
    # an extension is named before its branch is validated
    for pair in sorted(pairs, key=lambda pair: pair.partition("=")[0].strip() not in EXTENSION_SETTINGS):
        _set_value(tree, pair)
        _validate_settings(tree, f"--set {pair}")
    return _validate_settings(tree, "settings")


def merge_settings(settings: Settings | Path | str | None, options: Mapping[str, Any]) -> Settings:
    """Return settings, or those of a TOML file, updated by `options`; a branch is a mapping or an options object.

    Raises SettingsError naming the setting.
    """
    if settings is not None and not isinstance(settings, Settings | Path | str):
        problem = f"a {type(settings).__name__} is neither Settings nor the path of a TOML file"
        raise SettingsError(f"settings: {problem}. Give single settings by name: method=..., retrieval={{...}}")
    base = settings if isinstance(settings, Settings) else read_settings(None if settings is None else Path(settings))
    given = with_present_names(options)
    return _validate_settings(merge_trees(base.model_dump(exclude_unset=True), given), "settings") if given else base


def merge_trees(tree: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tree of settings updated by another one, branch by branch."""
    merged = dict(tree)
    for name, value in options.items():
        value = value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value
        given = merged.get(name)
        merged[name] = merge_trees(given, value) if isinstance(given, dict) and isinstance(value, Mapping) else value
    return merged


def _suggest_setting(path: Sequence[Any]) -> str:
    """Return as a sentence the known setting that is nearest to an unknown one; nothing in the branch of an extension."""
    known: Any = Settings
    for key in path[:-1]:
        if key not in known.model_fields:
            return ""
        known = known.model_fields[key].annotation
    prefix = ".".join(map(str, path[:-1]))
    near = get_close_matches(str(path[-1]), known.model_fields, 1)
    return f" Did you mean {f'{prefix}.{near[0]}'.lstrip('.')!r}?" if near else ""


def _set_value(tree: dict[str, Any], pair: str) -> None:
    path, equals, text = pair.partition("=")
    name = path.strip()
    keys = name.split(".")
    if not equals or not all(keys):
        raise SettingsError(f"--set {hide_password(pair)}: write it as name.name=value, for example --set engine.in_flight=64")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    if name in SHORT_NAMES:
        value = rename_old_option({keys[-1]: value})["verifier"]
        keys = SHORT_NAMES[name].split(".")
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            raise SettingsError(f"--set {hide_password(pair)}: {key} is a value, not a group of settings")
    tree[keys[-1]] = value


def _validate_settings(tree: dict[str, Any], source: str) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(key) for key in first["loc"])
        problem, remedy = first["msg"].removeprefix("Value error, "), ""
        if first["type"] == "extra_forbidden":
            problem, remedy = "no such setting", f"{_suggest_setting(first['loc'])} See `knowhalu settings` for all names."
        raise SettingsError(hide_password(f"{source}: {name}: {problem} (got {first['input']!r}).{remedy}")) from error
