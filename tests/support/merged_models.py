"""A tiny verifier that is a change of a tiny base, and the base in every form in which it is delivered."""

import io
import os
import shutil
import signal
import sys
import zipfile
from pathlib import Path

import click
import torch

from knowhalu.encoder.bases import KNOWN, Base
from knowhalu.encoder.change import write_change
from knowhalu.encoder.models import MODELS, KnownModel, add_model, base_files
from knowhalu.encoder.verifier import load_for_training
from tests.support.tiny import write_library_base

PARTS = 3
PACKAGES = tuple(f"tiny-part-00{n}" for n in range(1, PARTS + 1))


def write_base(folder: Path) -> Path:
    """Write the base."""
    return write_library_base(folder)


def write_shipped(folder: Path, base: Path, seed: int = 1) -> Path:
    """Write what the package has of a verifier: a change, its configuration and a fitted file."""
    model = load_for_training(base)
    torch.manual_seed(seed)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.05 * torch.randn_like(weight)
    write_change(folder / "change.safetensors", model, base, rank=4)
    shutil.copy(base / "config.json", folder)
    (folder / "marks.json").write_text('{"border": 0.25}')
    return folder


def known(shipped: Path, base: Path) -> KnownModel:
    """Describe the tiny verifier under the name `base`, in place of the real one."""
    KNOWN["tiny"] = Base.of(base)
    MODELS["base"] = KnownModel("base", "a tiny one", "Apache-2.0", shipped, "tiny", PACKAGES, merged_bytes=9)
    return MODELS["base"]


def zip_parts(base: Path) -> list[bytes]:
    """Return the parts of a zip of the base, which is split by bytes."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(base.iterdir()):
            archive.write(path, f"tiny/{path.name}")
        archive.writestr("tiny/1_Pooling/config.json", "{}")
    data = packed.getvalue()
    size = -(-len(data) // PARTS)
    return [data[i : i + size] for i in range(0, len(data), size)]


def write_parts(folder: Path, base: Path) -> Path:
    """Write the parts of the zip as files, each in a folder of its own as `pip install --target` leaves them."""
    for number, part in enumerate(zip_parts(base), 1):
        place = folder / f"tiny-part_00{number}" / "input"
        place.mkdir(parents=True)
        (place / f"tiny.zip.00{number}").write_bytes(part)
    return folder


def write_wheels(folder: Path, base: Path) -> Path:
    """Write wheels with the parts of the zip."""
    folder.mkdir()
    for number, part in enumerate(zip_parts(base), 1):
        with zipfile.ZipFile(folder / f"tiny_part_00{number}-0.0.1-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(f"tiny-part_00{number}/input/tiny.zip.00{number}", part)
    return folder


def write_installed(folder: Path, base: Path) -> Path:
    """Write the parts of the zip as installed packages."""
    write_parts(folder, base)
    for number, package in enumerate(PACKAGES, 1):
        metadata = folder / f"{package.replace('-', '_')}-0.0.1.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 0.0.1\n")
        (metadata / "RECORD").write_text(f"tiny-part_00{number}/input/tiny.zip.00{number},,\n")
    return folder


def main(shipped: str, base: str, behaviour: str) -> None:
    """Add the model in a process of its own; `behaviour` "die" kills it in the middle of the merge."""
    reports = []

    def progress(done: int, total: int) -> None:
        reports.append(done)
        if behaviour == "die" and done > total // 2:
            os.kill(os.getpid(), signal.SIGKILL)

    model = known(Path(shipped), Path(base))
    folder = add_model(model, base_files(model, Path(base)), progress, click.echo)
    click.echo(f"{'merged' if reports else 'found'} {folder.name}")


if __name__ == "__main__":
    main(*sys.argv[1:])
