"""Suites: the declared shape of `deemster.suite.v1`, and the reader of suite files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.datasets.attack_facts import AttackSettings
from deemster.engine.kept_prompts import WhichPrompts
from deemster.engine.model_access import NO_LIMITS, ModelCalls
from deemster.errors import ConfigurationError, Issue, list_names, nearest
from deemster.evaluation.evaluation_settings import USUAL_SETTINGS, EvaluationSettings
from deemster.formats import NO_DOCUMENT, Document, NoDocument, read_document
from deemster.formats.document import sort_issues
from deemster.formats.json_values import name_kind
from deemster.formats.schema_validation import NonBlank, any_shape, shape_issues
from deemster.gate.read_gate import Gate
from deemster.models.models_section import ModelEntry
from deemster.results.aggregator_section import AGGREGATOR_SHAPES
from deemster.results.repetition_precision import DELTA
from deemster.store import RunRow
from deemster.store.run_facts import IMPORTED_FACT
from deemster.targets.target_section import DeclaredTarget, PromptsSection, TargetSection, read_target

SEED = 42
CONCURRENCY = 16
_Count: TypeAlias = Annotated[int, Meta(ge=1)] | None
_Seconds: TypeAlias = Annotated[float, Meta(gt=0, title="a number of seconds above 0")] | None
_Levels: TypeAlias = Annotated[list[Any], Meta(min_length=1)]

_Texts: dict[str, Any] = {"type": ["string", "array"], "items": {"type": "string"}}
_WHERE = {
    "title": "the samples that the metric applies to",
    "anyOf": [
        {"const": "auto"},
        {
            "type": "object",
            "properties": {"tags": _Texts, "has": _Texts, "metadata": {"type": "object"}},
            "additionalProperties": False,
            "minProperties": 1,
        },
    ],
}
# Every metric has its own options, which the catalog checks; `where` is the same for all.
MetricOptions: TypeAlias = Annotated[Any, Meta(extra_json_schema={"properties": {"where": _WHERE}})]


class LimitsSection(msgspec.Struct, forbid_unknown_fields=True):
    """The limits."""

    concurrency: _Count = None
    timeout_s: _Seconds = None
    target_timeout_s: _Seconds = None


class DatasetSection(msgspec.Struct, forbid_unknown_fields=True):
    """The dataset."""

    file: NonBlank
    columns: dict[str, NonBlank] = {}


class SuiteFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A suite."""

    dataset: NonBlank | DatasetSection | UnsetType = UNSET
    metrics: list[str | dict[str, MetricOptions]] = []
    schema_version: Literal["deemster.suite.v1"] = "deemster.suite.v1"
    name: NonBlank | UnsetType = UNSET
    description: str | None = None
    target: TargetSection | UnsetType = UNSET
    variants: Annotated[dict[str, _Levels | dict[str, Any] | None], Meta(min_length=1)] | UnsetType = UNSET
    repetitions: _Count = None
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, title="a whole number of at least 0")] = SEED
    limits: LimitsSection = msgspec.field(default_factory=LimitsSection)
    strict: bool = False
    cluster: NonBlank | UnsetType = UNSET
    delta: Annotated[float, Meta(gt=0, le=1, title="a number above 0 and at most 1")] = DELTA
    junit: Literal["gate", "samples"] = "gate"
    keep_prompts: WhichPrompts = "failed"
    durable: bool = False
    on: NonBlank | UnsetType = UNSET
    gate: Gate | UnsetType = UNSET
    aggregator: Annotated[Any, any_shape(*AGGREGATOR_SHAPES)] = None
    group: NonBlank | UnsetType = UNSET
    models: dict[str, ModelEntry] | UnsetType = UNSET
    prompts: PromptsSection | UnsetType = UNSET
    calibration: NonBlank | UnsetType = UNSET
    attack: AttackSettings = AttackSettings()


# What no suite says any longer, and what to do instead.
_RETIRED = {
    "junit_samples": "Write `junit: samples`.",
    "until_decided": "Run the whole dataset, or `--sample N` of it.",
}
# Keys of a suite that are fields of the settings of an evaluation; a path among them is relative to the suite.
_SETTINGS = tuple(key for key in EvaluationSettings._fields if key in SuiteFile.__struct_fields__)
# Sections that are checked by their readers, some after variables of the environment are put in.
_SECTIONS = ("target", "models", "gate", "aggregator")


class Suite(NamedTuple):
    """A suite file, checked.

    Attributes:
        document: The file, for the places of later issues; none where a program gives the suite as arguments.
        folder: What its paths are relative to; None without a file.
        name: The suite's name; the file's stem where it has none, and empty without a file.
        dataset: The dataset's path, or what a program gives: a dataset, a path, samples or a data frame.
        columns: Which column of the dataset's spreadsheet holds what, where the suite says so.
        target: The target it declares; None where saved outputs are given on the command line.
        variants: What each of its variants changes of the target, as plain data; None where it has none.
        metrics: Metric entries, still to be resolved.
        models: The models section as plain data; None where there is none.
        repetitions: How often each sample is run, where the suite says so.
        cluster: The metadata key whose equal values belong together, where the suite says so.
        seed: For everything that draws.
        concurrency: How many calls of the target may be under way at once.
        gate: The gate section as plain data; None where a program gives none.
        aggregator: The aggregator section as plain data, or an object of a program; None where there is none.
        group: The ready-made group whose metrics and aggregator are among them; None where there is none.
        timeout_s: How long the run may take.
        target_timeout_s: How long one call of the target may take.
        junit: What fails in JUnit: `gate` for the gate's checks alone, `samples` for samples too.
        durable: Whether every sample is committed by itself.
        attack: How attacks on its target are made.
        prompts: The prompts that its target may name, as plain data.
        settings: What is rarely said of an evaluation; a call adds what only it can say.
        calls: How its models may be called; a file says whose prompts are stored, and a call the rest.
    """

    dataset: Any
    metrics: Sequence[Any]
    models: Any
    seed: int
    concurrency: int
    gate: Any
    document: Document | NoDocument = NO_DOCUMENT
    folder: Path | None = None
    name: str = ""
    columns: Mapping[str, str] | None = None
    target: DeclaredTarget | None = None
    variants: Mapping[str, Any] | None = None
    repetitions: int | None = None
    cluster: str | None = None
    aggregator: Any = None
    group: str | None = None
    timeout_s: float | None = None
    target_timeout_s: float | None = None
    junit: str = "gate"
    durable: bool = False
    attack: AttackSettings = AttackSettings()
    prompts: Mapping[str, Any] = {}
    settings: EvaluationSettings = USUAL_SETTINGS
    calls: ModelCalls = NO_LIMITS

    @property
    def origin(self) -> Mapping[str, Any] | None:
        """The file and what it says, as plain data; None without a file."""
        file = self.document.file
        return None if file is None else {"file": str(Path(file).resolve()), "document": self.document.value}

    @property
    def has_one_target(self) -> bool:
        """Whether it is about one target, and not about several variants of one."""
        return self.variants is None

    @property
    def missing_target(self) -> str:
        """What to say where one target is wanted, and there is none."""
        if not self.has_one_target:
            return "This suite has `variants`, and one target is wanted here: a suite whose `target` is one of them."
        return "There is no `target`. Name one, or give saved `outputs` (`--outputs FILE`)."

    def called_with(self, calls: ModelCalls) -> Suite:
        """The same, where a call says cache, budget and network; whose prompts are stored stays as it is."""
        return self._replace(calls=calls._replace(keep_prompts=self.calls.keep_prompts))

    def with_numbers(
        self, *, repetitions: int | None = None, concurrency: int | None = None, timeout_s: float | None = None
    ) -> Suite:
        """The same, with the numbers that a call says; its concurrency is that of a declared target, too."""
        suite = self
        if repetitions is not None:
            suite = suite._replace(repetitions=repetitions)
        if timeout_s is not None:
            suite = suite._replace(timeout_s=timeout_s)
        if concurrency is not None:
            suite = suite._replace(concurrency=concurrency)
            if suite.target is not None and suite.target.kind != "outputs":
                settings = {**suite.target.settings, "concurrency": concurrency}
                suite = suite._replace(target=suite.target._replace(settings=settings))
        return suite

    def with_settings(self, **settings: Any) -> Suite:
        """The same, with some of the settings of its evaluation as a call says them."""
        return self._replace(settings=self.settings._replace(**settings))


def _missing_parts(root: Mapping[str, Any], document: Document, *, must_run: bool) -> Iterator[Issue]:
    """What a suite does not say and must."""
    if must_run and "dataset" not in root:
        yield Issue("`dataset` is missing.", document.where())
    is_named = any(root.get(key) for key in ("models", "target", "gate"))
    if not root.get("metrics") and "group" not in root and (must_run or not is_named):
        yield Issue("`metrics` is a list of at least one metric.", document.where(("metrics",)))
    if "gate" in root and root["gate"] is None:
        yield from shape_issues(None, Gate, document=document, path=("gate",))
    if "aggregator" in root and root["aggregator"] is None:
        yield Issue("`aggregator` is empty.", document.where(("aggregator",)))


def load_suite(path: str | Path, *, calls_target: bool = True, must_run: bool = True) -> Suite:
    """Read a suite file.

    Args:
        path: The file.
        calls_target: Whether its target is going to be used; otherwise the variables it names need not be set.
        must_run: Whether it must say what is run; otherwise one that has metrics, models, a target or a gate will do.

    Raises:
        ConfigurationError: It cannot be read, or something in it cannot be used; all issues are listed.
    """
    document = _read_map(Path(path))
    root = document.value
    keys = {key: value for key, value in root.items() if key not in _SECTIONS and key not in _RETIRED}
    issues = shape_issues(keys, SuiteFile, document=document)
    issues += [Issue(f"`{key}` is gone. {_RETIRED[key]}", document.where((key,))) for key in root if key in _RETIRED]
    issues += _missing_parts(root, document, must_run=must_run)

    metrics = root.get("metrics", [])
    aggregator = root.get("aggregator")
    if "group" in root and not issues:
        metrics, aggregator, wrong = _with_group(root["group"], metrics, aggregator, document)
        issues += wrong

    folder = Path(path).parent
    target = None
    if "target" in root and "variants" not in root:
        target, wrong = read_target(
            root["target"],
            place=document.where,
            environ=os.environ,
            folder=folder,
            prompts=root.get("prompts"),
            calls=calls_target,
        )
        issues += wrong
    if issues:
        raise ConfigurationError(sort_issues(issues))

    declared = msgspec.convert(keys, SuiteFile)
    dataset = DatasetSection(declared.dataset) if isinstance(declared.dataset, str) else declared.dataset
    return Suite(
        document=document,
        folder=folder,
        name=declared.name or Path(path).stem,
        dataset=str(folder / (dataset.file if dataset else "")),
        columns=dataset.columns if dataset and dataset.columns else None,
        target=target,
        variants=declared.variants or None,
        metrics=metrics,
        models=root.get("models"),
        repetitions=declared.repetitions,
        cluster=declared.cluster or None,
        seed=declared.seed,
        concurrency=declared.limits.concurrency or CONCURRENCY,
        gate=root.get("gate", {}),
        aggregator=aggregator,
        group=declared.group or None,
        timeout_s=declared.limits.timeout_s,
        target_timeout_s=declared.limits.target_timeout_s,
        junit=declared.junit,
        durable=declared.durable,
        attack=declared.attack,
        prompts=root.get("prompts") or {},
        settings=_settings(declared, folder),
        calls=ModelCalls(keep_prompts=declared.keep_prompts),
    )


def _read_map(path: Path) -> Document:
    """The file of a suite, which holds a map."""
    if not path.is_file():
        _refuse_path(path)
    document = read_document(path, error=ConfigurationError)
    if not isinstance(document.value, dict):
        message = f"A suite is a map with `dataset`, `target` and `metrics`, not {name_kind(document.value)}."
        raise ConfigurationError(Issue(message, document.where()))
    return document


def _settings(declared: SuiteFile, folder: Path) -> EvaluationSettings:
    """The settings that a suite says."""
    said = {key: getattr(declared, key) for key in _SETTINGS if getattr(declared, key) is not UNSET}
    if "calibration" in said:
        said["calibration"] = str(folder / said["calibration"])
    return EvaluationSettings(**said)


def _refuse_path(path: Path) -> None:
    """Refuse a folder, or the name of no file, with the suites that are there; nothing where there are none."""
    is_folder = path.is_dir()
    folder = path if is_folder else path.parent
    files = sorted(file for pattern in ("*.yml", "*.yaml", "*/*.yml", "*/*.yaml") for file in folder.glob(pattern))
    suites = [str(file) for file in files if _looks_like_suite(file)]
    if not suites:
        return

    nearest_suite = None if is_folder else nearest(str(path), suites)
    problem = "This is a folder, not a suite." if is_folder else "There is no such file."
    advice = f"Suites here: {list_names(suites)}." if nearest_suite is None else f"Did you mean `{nearest_suite}`?"
    raise ConfigurationError(Issue(f"{problem} {advice}", str(path)))


def _looks_like_suite(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return all(re.search(rf"^(?:{keys}):", text, re.MULTILINE) for keys in ("dataset", "metrics|group"))


def stored_suite(row: RunRow) -> Mapping[str, Any]:
    """The suite that is stored with a run: its `file` and `document`, where there is one.

    An imported run may come from anywhere. Its suite names no model that is called, and no folder to load code from.
    """
    return {} if row.facts.get(IMPORTED_FACT) else row.facts.get("suite") or {}


def stored_junit(row: RunRow) -> str:
    """What fails in JUnit, by the suite that is stored with a run."""
    kind: str = stored_suite(row).get("document", {}).get("junit", "gate")
    return kind


def _with_group(
    name: str, metrics: Sequence[Any], aggregator: Any, document: Document
) -> tuple[Sequence[Any], Any, Sequence[Issue]]:
    """The metrics and the aggregator of a suite together with those of a ready-made group."""
    from deemster.judges.metric_catalog import with_group  # noqa: PLC0415 - few suites have one

    try:
        return (*with_group(name, metrics, aggregator), ())
    except ConfigurationError as error:
        return metrics, aggregator, [issue._replace(where=document.where(("group",))) for issue in error.issues]
