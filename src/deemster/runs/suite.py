"""Suites: which dataset, target, metrics and gate belong together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from deemster.errors import ConfigurationError, Issue, did_you_mean
from deemster.formats import Document, read_document
from deemster.formats.document import in_order
from deemster.formats.json_values import kind_of
from deemster.targets.target_section import Declared, read_target

SCHEMA = "deemster.suite.v1"
SEED = 42
CONCURRENCY = 16
KEYS = (
    "schema_version",
    "name",
    "description",
    "dataset",
    "target",
    "group",
    "metrics",
    "models",
    "repetitions",
    "seed",
    "limits",
    "aggregator",
    "gate",
)
_LIMITS = ("concurrency", "timeout_s", "target_timeout_s")

Keys: TypeAlias = tuple[str | int, ...]


class Suite(NamedTuple):
    """A suite file, checked.

    Attributes:
        document: The file, for the places of later issues.
        folder: What its paths are relative to.
        name: The suite's name; the file's stem where it has none.
        dataset: The dataset's path.
        target: The target it declares; None where saved outputs are given on the command line.
        metrics: Metric entries, still to be resolved.
        models: The models section as plain data; None where there is none.
        repetitions: How often each sample is run, where the suite says so.
        seed: For everything that draws.
        concurrency: How many calls of the target may be under way at once.
        gate: The gate section as plain data.
        aggregator: The aggregator section as plain data; None where there is none.
        group: The ready-made group whose metrics and aggregator are among them; None where there is none.
        timeout_s: How long the run may take.
        target_timeout_s: How long one call of the target may take.
    """

    document: Document
    folder: Path
    name: str
    dataset: str
    target: Declared | None
    metrics: Sequence[Any]
    models: Any
    repetitions: int | None
    seed: int
    concurrency: int
    gate: Any
    aggregator: Any = None
    group: str | None = None
    timeout_s: float | None = None
    target_timeout_s: float | None = None


def load_suite(path: str | Path, *, calls_target: bool = True, whole: bool = True) -> Suite:
    """Read a suite file.

    Args:
        path: The file.
        calls_target: Whether its target is going to be used; otherwise the variables it names need not be set.
        whole: Whether it must say what is run; otherwise one that only names models will do.

    Raises:
        ConfigurationError: It cannot be read, or something in it cannot be used; all issues are listed.
    """
    document = read_document(path, error=ConfigurationError)
    if not isinstance(document.value, dict):
        message = f"A suite is a map with `dataset`, `target` and `metrics`, not {kind_of(document.value)}."
        raise ConfigurationError(Issue(message, document.where()))
    is_run = whole or not document.value.get("models")
    reader = _Reader(document, Path(path).parent, calls_target=calls_target, is_run=is_run)
    suite = reader.suite(Path(path))
    if reader.issues:
        raise ConfigurationError(in_order(reader.issues))
    return suite


class _Reader:
    """Reads a suite and collects what is wrong with it."""

    def __init__(self, document: Document, folder: Path, *, calls_target: bool, is_run: bool) -> None:
        self.document = document
        self.folder = folder
        self.calls_target = calls_target
        self.is_run = is_run
        self.issues: list[Issue] = []

    def suite(self, path: Path) -> Suite:
        root = self._map(self.document.value, (), "a suite", KEYS)
        version = root.get("schema_version", SCHEMA)
        if version != SCHEMA:
            self._issue(("schema_version",), f"`schema_version` is `{SCHEMA}`, not {_shown(version)}.")
        metrics, aggregator = root.get("metrics", []), self._declared(root, "aggregator")
        if not isinstance(metrics, list) or (not (metrics or "group" in root) and self.is_run):
            self._issue(("metrics",), "`metrics` is a list of at least one metric.")
            metrics = []
        if "group" in root:
            metrics, aggregator = self._grouped(root, metrics, aggregator)
        limits = self._map(root.get("limits", {}), ("limits",), "`limits`", _LIMITS)
        dataset = self._text(root, "dataset") if self.is_run or "dataset" in root else ""
        return Suite(
            document=self.document,
            folder=self.folder,
            name=self._text(root, "name", default=path.stem),
            dataset=str(self.folder / dataset),
            target=self._target(root["target"]) if "target" in root else None,
            metrics=metrics,
            models=root.get("models"),
            repetitions=self._count(root, ("repetitions",), None),
            seed=self._seed(root),
            concurrency=self._count(limits, ("limits", "concurrency"), CONCURRENCY) or CONCURRENCY,
            gate=root.get("gate", {}),
            aggregator=aggregator,
            group=root.get("group"),
            timeout_s=self._seconds(limits, ("limits", "timeout_s")),
            target_timeout_s=self._seconds(limits, ("limits", "target_timeout_s")),
        )

    def _grouped(self, root: Mapping[str, Any], metrics: list[Any], aggregator: Any) -> tuple[list[Any], Any]:
        name = self._text(root, "group")
        if name:
            from deemster.runs.metric_catalog import with_group  # noqa: PLC0415 - few suites have one

            try:
                return with_group(name, metrics, aggregator)
            except ConfigurationError as error:
                self.issues += [issue._replace(where=self.document.where(("group",))) for issue in error.issues]
        return metrics, aggregator

    def _target(self, value: Any) -> Declared | None:
        declared, issues = read_target(
            value, place=self.document.where, environ=os.environ, folder=self.folder, calls=self.calls_target
        )
        self.issues += issues
        return declared

    def _declared(self, root: Mapping[str, Any], key: str) -> Any:
        """A section that another room reads; one that is there and says nothing is a mistake."""
        if key in root and root[key] is None:
            self._issue((key,), f"`{key}` is empty.")
        return root.get(key)

    def _text(self, root: Mapping[str, Any], key: str, *, default: str | None = None) -> str:
        value = root.get(key, default)
        if not isinstance(value, str) or not value.strip():
            found = f", not {_shown(value)}" if key in root else ", and it is missing"
            self._issue((key,), f"`{key}` is non-blank text{found}.")
            return ""
        return value

    def _count(self, section: Mapping[str, Any], path: Keys, default: int | None) -> int | None:
        value = section.get(str(path[-1]), default)
        if value is not None and (type(value) is not int or value < 1):
            self._issue(path, f"`{'.'.join(map(str, path))}` is a whole number of at least 1, not {_shown(value)}.")
            return default
        return value

    def _seconds(self, section: Mapping[str, Any], path: Keys) -> float | None:
        value = section.get(str(path[-1]))
        if value is None:
            return None
        if type(value) not in (int, float) or not 0 < value < float("inf"):
            self._issue(path, f"`{'.'.join(map(str, path))}` is a number of seconds above 0, not {_shown(value)}.")
            return None
        return float(value)

    def _seed(self, root: Mapping[str, Any]) -> int:
        seed = root.get("seed", SEED)
        if type(seed) is not int or not 0 <= seed < 2**63:
            self._issue(("seed",), f"`seed` is a whole number of at least 0, not {_shown(seed)}.")
            return SEED
        return seed

    def _map(self, value: Any, path: Keys, name: str, known: Sequence[str]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            self._issue(path, f"{name} is a map with keys such as `{known[0]}`, not {_shown(value)}.")
            return {}
        for key in value:
            if key not in known:
                self._issue((*path, key), f"`{key}` is no key of {name}. {did_you_mean(str(key), known)}")
        return {key: entry for key, entry in value.items() if key in known}

    def _issue(self, path: Keys, message: str) -> None:
        self.issues.append(Issue(message, self.document.where(path)))


def _shown(value: Any) -> str:
    return repr(value)[:80] if isinstance(value, (str, int, float)) else kind_of(value)
