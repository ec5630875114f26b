"""Writing rubrics: one form, so that equal rubrics have equal bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deemster.errors import RubricError
from deemster.formats import Reading, format_of
from deemster.formats.atomic_write import write_aside
from deemster.formats.canonical_json import flow
from deemster.formats.json_values import thawed
from deemster.rubrics.criterion import Check, Criterion, Option
from deemster.rubrics.rubric_definition import Rubric, default_name
from deemster.rubrics.rubric_reader import FORMATS, SCHEMA

_PLAIN = re.compile(r"[A-Za-z](?:[A-Za-z0-9_ .,;()/'-]*[A-Za-z0-9_.,;()/'])?\Z")
# Words that some reader of YAML takes for a boolean or nothing.
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_WHOLE = 1e15


def rubric_dict(rubric: Rubric) -> dict[str, Any]:
    """A rubric as `deemster.rubric.v1` has it.

    >>> rubric_dict(Rubric((Criterion("It is right.", weight=2),)))
    {'schema_version': 'deemster.rubric.v1', 'criteria': [{'weight': 2, 'requirement': 'It is right.'}]}
    """
    head = {"name": rubric.name, "version": rubric.version, "guidelines": rubric.guidelines}
    body: dict[str, Any]
    if rubric.sections:
        sections, start = [], 0
        for section in rubric.sections:
            texts = {"name": section.name, "description": section.description}
            criteria = [_criterion_dict(one, start + index) for index, one in enumerate(section.criteria)]
            sections.append({**_given(texts), "criteria": criteria})
            start += len(criteria)
        body = {"sections": sections}
    else:
        body = {"criteria": [_criterion_dict(one, index) for index, one in enumerate(rubric.criteria)]}
    return {"schema_version": SCHEMA, **_given(head), **body}


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}


def _criterion_dict(criterion: Criterion, index: int) -> dict[str, Any]:
    return _given(
        {
            "name": None if criterion.name == default_name(index) else criterion.name,
            "weight": None if criterion.weight == 10 else _number(criterion.weight),
            "requirement": criterion.requirement,
            "scale_type": "nominal" if criterion.scale_type == "nominal" else None,
            "options": [_option_dict(option) for option in criterion.options] or None,
            "order": None if criterion.order is None else list(criterion.order),
            "aggregation": criterion.aggregation,
            "fatal": criterion.fatal or None,
            "check": None if criterion.check is None else _check_dict(criterion.check),
        }
    )


def _option_dict(option: Option) -> dict[str, Any]:
    value = None if option.value is None else _number(option.value)
    return _given({"label": option.label, "value": value, "na": option.na or None})


def _check_dict(check: Check) -> dict[str, Any]:
    threshold = None if check.threshold == 1 else _number(check.threshold)
    return _given({"metric": check.metric, "args": thawed(check.args) or None, "threshold": threshold})


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < _WHOLE else value


def rubric_text(rubric: Rubric, kind: str) -> str:
    """A rubric as it is written to a file, without the last line end.

    Args:
        rubric: The rubric.
        kind: `yaml` or `json`.

    >>> print(rubric_text(Rubric((Criterion("It is right."),)), "yaml"))
    schema_version: deemster.rubric.v1
    criteria:
      - requirement: It is right.
    """
    value = rubric_dict(rubric)
    return "\n".join(_block(value)) if kind == "yaml" else json.dumps(value, ensure_ascii=False, indent=2)


def write_rubric(rubric: Rubric, path: str | Path) -> Path:
    """Write a rubric as YAML or JSON, by extension.

    Returns:
        The path that was written.

    Raises:
        RubricError: The extension is none of these, or the file cannot be written.
    """
    reading = Reading(str(path), error=RubricError)
    kind = format_of(path, reading, known=FORMATS)
    try:
        write_aside(Path(path), [rubric_text(rubric, kind).encode(), b"\n"])
    except OSError as error:
        reading.refuse(f"The file cannot be written: {error.strerror}.")
    return Path(path)


def _block(fields: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a map in the block style of YAML; options and arguments stand on one line each."""
    for key, value in fields.items():
        if key in {"criteria", "sections"}:
            yield f"{key}:"
            for entry in value:
                yield from _indented(_block(entry), "- ")
        elif key == "options":
            yield f"{key}:"
            for entry in value:
                yield f"  - {{{', '.join(f'{name}: {_inline(one)}' for name, one in entry.items())}}}"
        elif key == "check":
            yield f"{key}:"
            yield from _indented((f"{name}: {_scalar(one)}" for name, one in value.items()), "")
        else:
            yield f"{key}: {_scalar(value)}"


def _indented(lines: Iterator[str], mark: str) -> Iterator[str]:
    first = True
    for line in lines:
        yield f"  {mark if first else ' ' * len(mark)}{line}"
        first = False


def _scalar(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.match(value) and value.casefold() not in _WORDS:
        return value
    return flow(value)


def _inline(value: Any) -> str:
    # Inside braces a comma ends a plain scalar.
    return flow(value) if isinstance(value, str) and "," in value else _scalar(value)
