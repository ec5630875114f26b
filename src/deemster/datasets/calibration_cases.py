"""Calibration cases: outputs that people have judged, for a judge to judge too. `deemster.calibration.v1`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from deemster.datasets.dataset_format import Tags
from deemster.datasets.golden_dataset import Dataset
from deemster.datasets.human_labels import HumanLabel, read_verdict
from deemster.errors import DatasetError
from deemster.formats import read_document
from deemster.formats.item_files import repeated_ids
from deemster.formats.schema_validation import Id, NonBlank, decode_shape

CASES_SCHEMA: Final = "deemster.calibration.v1"
LEGACY_CASES: Final = "eval-harness.calibration.v1"
_Verdict = bool | float | str


class CalibrationCase(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A case: an output that people have judged."""

    id: Id
    input: dict[str, Any]
    actual_output: str
    expected_output: Any = None
    human_verdict: Annotated[
        _Verdict | dict[str, _Verdict] | UnsetType, Meta(title="pass, fail, a score, an option, or one for each person")
    ] = UNSET
    tags: Tags | UnsetType = UNSET
    metadata: dict[str, Any] = {}


class CalibrationFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Calibration cases."""

    schema_version: Literal["deemster.calibration.v1"] = CASES_SCHEMA
    name: NonBlank | None = None
    description: str | None = None
    cases: Annotated[list[CalibrationCase], Meta(min_length=1)]


class _LegacyCase(CalibrationCase):
    """A case."""

    actual_output: str = field(name="actual")
    expected_output: Any = field(default=None, name="expected")


class _LegacyFile(CalibrationFile):
    """Calibration cases."""

    schema_version: Literal["eval-harness.calibration.v1"]  # type: ignore[assignment]
    cases: Annotated[list[_LegacyCase], Meta(min_length=1)]  # type: ignore[assignment]


class CalibrationCases(NamedTuple):
    """Cases, as a dataset, its outputs, and the labels of people.

    Attributes:
        dataset: The cases as samples.
        outputs: The outputs by id.
        labels: What people say of them.
    """

    dataset: Dataset
    outputs: dict[str, str]
    labels: tuple[HumanLabel, ...]


def load_calibration_cases(path: str | Path) -> CalibrationCases:
    """Read calibration cases from YAML or JSON, those of eval-harness for Laravel too.

    Args:
        path: The file.

    Raises:
        DatasetError: The file or a case is wrong; every issue is given with its place.
    """
    document = read_document(path, error=DatasetError)
    is_legacy = isinstance(document.value, dict) and document.value.get("schema_version") == LEGACY_CASES
    shape = _LegacyFile if is_legacy else CalibrationFile
    found = decode_shape(document.value, shape, error=DatasetError, document=document)
    issues = list(repeated_ids(document.value["cases"], "cases", document.where))
    if issues:
        raise DatasetError(issues)
    samples, labels = [], []
    for place, case in enumerate(found.cases):
        tags = {} if case.tags is UNSET else {"tags": case.tags}
        sample = {"id": case.id, "input": case.input, "metadata": {**case.metadata, **tags}}
        samples.append({**sample, "expected_output": case.expected_output})
        labels += _labels(case, document.where(("cases", place, "human_verdict")))
    dataset = Dataset(samples, name=found.name or Path(path).stem, description=found.description)
    return CalibrationCases(dataset, {case.id: case.actual_output for case in found.cases}, tuple(labels))


def _labels(case: CalibrationCase, where: str | None) -> list[HumanLabel]:
    given = case.human_verdict
    if isinstance(given, UnsetType):
        return []
    by_annotator = given if isinstance(given, dict) else {"": given}
    return [
        HumanLabel(case.id, None, annotator, read_verdict(verdict), where=where)
        for annotator, verdict in by_annotator.items()
    ]
