"""Files of the package that a command writes into a folder of the user."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from deemster.errors import ConfigurationError, Issue, is_storage_failure


def packaged_files(folder: str) -> dict[str, bytes]:
    """The files of a folder beside the commands, by name."""
    entries = (files("deemster.cli") / folder).iterdir()
    listed = sorted((entry for entry in entries if entry.is_file()), key=lambda entry: entry.name)
    return {entry.name: entry.read_bytes() for entry in listed}


def write_files(contents: Mapping[Path, bytes]) -> None:
    """Write files, and the folders that they need.

    Raises:
        ConfigurationError: One cannot be written.
    """
    for path, data in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        except OSError as error:
            if is_storage_failure(error):
                raise
            raise ConfigurationError(Issue(f"This cannot be written: {error.strerror}.", str(path))) from None
