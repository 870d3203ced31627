"""Listing the files of a folder: every one once, in a fixed order, through links but never in a circle."""

from pathlib import Path

from knowhalu.errors import InputError


def list_files(folder: Path) -> list[tuple[Path, str]]:
    """List the files below a folder, each with its path inside; hidden ones and folders seen before are left out.

    A link that leads nowhere is listed too, so that it is missed when it is read. Raises InputError for a folder that
    cannot be listed.
    """
    found: list[tuple[Path, str]] = []
    seen = {_folder_identity(folder)}
    folders = [folder]
    while folders:
        for path in _list_entries(folders.pop()):
            if path.name.startswith("."):
                continue
            if path.is_file() or not path.exists():  # sockets and devices are no documents
                found.append((path, path.relative_to(folder).as_posix()))
            elif path.is_dir() and (identity := _folder_identity(path)) not in seen:
                seen.add(identity)
                folders.append(path)
    return sorted(found)


def _list_entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder}: cannot be listed ({error.strerror}). Give yourself the right to read it") from error


def _folder_identity(folder: Path) -> tuple[int, int]:
    found = folder.stat()
    return found.st_dev, found.st_ino
