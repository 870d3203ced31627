"""Options that several commands share, and the settings that they make. Help imports nothing but click."""

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import click

if TYPE_CHECKING:
    from knowhalu.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])
TEXT_NAMES = ("question", "answer", "summary", "claim", "documents", "knowledge")
FILE_PATH = click.Path(exists=True, dir_okay=False, path_type=Path)


def with_options(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Add several options to a command, in their order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


with_settings = with_options(
    click.option(
        "--settings", "settings_file", type=FILE_PATH, help="A TOML file of settings; `knowhalu settings` prints one."
    ),
    click.option(
        "--set", "pairs", multiple=True, metavar="NAME=VALUE",
        help="Change one setting, such as engine.batch=16; may be repeated.",
    ),
)  # fmt: skip
with_method = with_options(
    click.option("--method", "-m", metavar="NAME", help="The checking method; `knowhalu methods` lists them."),
    click.option("--reasoner", metavar="NAME", help="The model that decides within the method: encoder or llm."),
)
with_index = click.option(
    "--index", type=click.Path(file_okay=False, path_type=Path), help="Index folder to search for texts that bring no sources."
)
with_cache = click.option("--no-cache", is_flag=True, help="Neither use nor store cached replies of the language model.")
with_restart = click.option(
    "--restart", is_flag=True, help="Start again instead of resuming; the old outcomes are kept under another name."
)
with_profile = click.option(
    "--profile", type=FILE_PATH, help="A profile of `knowhalu calibrate`: its method, thresholds and scaling."
)
with_fitted = with_options(
    with_profile,
    click.option("--allow-fitted", is_flag=True, help="Use the profile even on rows that it was fitted on."),
)


def with_text(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for one text and its sources; the command receives them as one mapping, `text`, for `sample_of`."""

    @click.option("--question", "-q", help="The question of the answer.")
    @click.option("--answer", "-a", help="The answer to check.")
    @click.option("--summary", help="The summary to check; give its source with --document.")
    @click.option("--claim", help="The claim to check.")
    @click.option(
        "--document", "documents", multiple=True, metavar="FILE|-", help="A text file to check against; may be repeated."
    )
    @click.option("--knowledge", multiple=True, metavar="TEXT|@FILE", help="A passage to check against; may be repeated.")
    @wraps(command)
    def run(**given: Any) -> Any:
        return command(text={name: given.pop(name) for name in TEXT_NAMES}, **given)

    return run


class SettingOptions(TypedDict, total=False):
    """The options from which a command's settings are made; they are named as in the command."""

    settings_file: Path | None
    pairs: tuple[str, ...]
    method: str | None
    reasoner: str | None
    no_cache: bool
    profile: Path | None
    allow_fitted: bool
    index: Path | None


def setting_pairs(given: SettingOptions) -> tuple[str, ...]:
    """Return a command's options as pairs like those of --set; raises SettingsError where two of them contradict each other."""
    from knowhalu.errors import SettingsError

    pairs = given.get("pairs", ())
    for name, value in (("method", given.get("method")), ("reasoner", given.get("reasoner"))):
        if value is None:
            continue
        for pair in pairs:
            key, _, other = pair.partition("=")
            if key.strip() == name and other.strip().strip("\"'") != value:
                raise SettingsError(f"--{name} {value} and --set {pair} contradict each other. Keep one of them")
        pairs = (*pairs, f"{name}={json.dumps(value)}")
    if given.get("no_cache"):
        pairs = (*pairs, "llm.cache=false")
    if (profile := given.get("profile")) is not None:
        pairs = (*pairs, f"profile={json.dumps(str(profile), ensure_ascii=False)}")
    if given.get("allow_fitted"):
        pairs = (*pairs, "allow_fitted=true")
    if (index := given.get("index")) is not None:
        pairs = (*pairs, f"retrieval.index={json.dumps(str(index), ensure_ascii=False)}")
    return pairs


def make_settings(given: SettingOptions) -> "Settings":
    """Load the settings of a command from its file, its pairs and its other options; raises SettingsError."""
    from knowhalu.encoder.options import DEFAULT_VERIFIER
    from knowhalu.profiles import load_settings
    from knowhalu.registry import VERIFIERS

    settings = load_settings(given.get("settings_file"), setting_pairs(given))
    packaged = settings.encoder.verifier in (DEFAULT_VERIFIER, *VERIFIERS)
    if settings.reasoner == "encoder" and not packaged and (note := _unfitted_note(settings)):
        click.echo(note, err=True)
    return settings


def _unfitted_note(settings: "Settings") -> str:
    """Return a line on an external verifier that no judgment was fitted to; "" for any other verifier."""
    from knowhalu.encoder.models import verifier_folder
    from knowhalu.errors import KnowHaluError
    from knowhalu.io.verifier_file import read_external

    try:
        external = read_external(folder := verifier_folder(settings.encoder))
    except KnowHaluError:
        return ""  # reported where the verifier is opened
    if external is None or (external.fitted / "judgment.json").is_file():
        return ""
    use = f"its probability is the judgment, with its threshold {external.card.threshold}"
    remedy = f"Fit one: python scripts/fit_judgment.py {folder} --data DATA"
    return f"{folder}: no judgment is fitted to this verifier, so {use}. {remedy}"
