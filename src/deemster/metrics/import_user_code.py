"""Imports user code by its import path, such as `app.scoring:Tone`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from deemster.errors import ConfigurationError, did_you_mean
from deemster.errors.user_code_guard import UserCodeGuard
from deemster.formats.mistyped_path import nearest_file


def import_object(
    path: str, *, called: str, search: str | PathLike[str] | None = None, group: str | None = None
) -> Any:
    """What an import path such as `app.scoring:Tone` names, or what a plug-in offers under a name.

    Args:
        path: Module and name, separated by a colon; or the name of a plug-in, where there is a group.
        called: How messages call it.
        search: A directory in which the module is looked up first.
        group: The group of entry points in which plug-ins of this kind are found.

    Raises:
        ConfigurationError: The path is no import path and no plug-in, the module cannot be imported, or it has no such
            name.
    """
    if group is not None and ":" not in path:
        path, called = _plugin_path(path, group, called), f"The plug-in `{path}`,"
    module, colon, names = path.partition(":")
    if not colon or not module or not names:
        raise ConfigurationError(f"{called} is an import path such as `app:answer`, not `{path}`.")
    with _search_first(search, module), UserCodeGuard() as caught:
        found = importlib.import_module(module)
    if caught.error is not None:
        near = _nearest_module(module, caught.error, search)
        hint = "" if near is None else f". Did you mean `{near}:{names}`?"
        raise ConfigurationError(f"{called} `{path}` cannot be imported: {caught.message}{hint}") from caught.error
    for step in names.split("."):
        if not hasattr(found, step):
            near = did_you_mean(step, [name for name in dir(found) if not name.startswith("_")])
            raise ConfigurationError(f"{called} `{path}` cannot be imported: `{module}` has no `{step}`. {near}")
        found = getattr(found, step)
    return found


def _nearest_module(module: str, error: BaseException, search: str | PathLike[str] | None) -> str | None:
    """The file in the searched directory that a missing module most likely meant, as the name of a module."""
    if module.endswith(".py"):
        return module.removesuffix(".py").replace("/", ".")
    if not isinstance(error, ModuleNotFoundError) or error.name != module or search is None:
        return None
    *above, last = module.split(".")
    wanted = Path(search, *above, f"{last}.py")
    found = Path(nearest_file(wanted) or "")
    return ".".join([*above, found.stem]) if found.suffix == ".py" and found.parent == wanted.parent else None


def _plugin_path(name: str, group: str, called: str) -> str:
    """The import path of a plug-in."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - few runs have plug-ins, and it takes 15 ms to load

    points = {point.name: point.value for point in entry_points(group=group)}
    if name not in points:
        known = did_you_mean(name, points) if points else "No plug-in offers one."
        raise ConfigurationError(
            f"{called} is an import path such as `app:answer`, or the name of a plug-in, not `{name}`. {known}"
        )
    return points[name]


@contextmanager
def _search_first(directory: str | PathLike[str] | None, module: str) -> Iterator[None]:
    """Look modules up in a directory first; a loaded module of the same name from elsewhere is dropped."""
    if directory is None:
        yield
        return
    place = Path(directory).resolve()
    root = module.partition(".")[0]
    if (place / f"{root}.py").exists() or (place / root).is_dir():
        for name in [name for name in sys.modules if name == root or name.startswith(f"{root}.")]:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin is None or not Path(origin).resolve().is_relative_to(place):
                del sys.modules[name]
    importlib.invalidate_caches()
    sys.path.insert(0, str(place))
    try:
        yield
    finally:
        # The module may have changed the path itself.
        if str(place) in sys.path:
            sys.path.remove(str(place))
