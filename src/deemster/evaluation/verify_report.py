"""Computes a report again from the facts in a run file, and compares every byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from deemster import __version__
from deemster.comparison import load_report, report_without_text
from deemster.comparison.without_text import LEVELS
from deemster.datasets.fingerprint import list_hash
from deemster.errors import Issue, ReportError, visible
from deemster.formats.streamed_list import Stream
from deemster.report import Report
from deemster.report.stored_report import computed_report, quoted_details
from deemster.store import RunRow, Store
from deemster.store.run_file import file_sha256, open_run_file

WHOLE, *_EARLIER_LEVELS, _PUBLISH_SAFE, _WITHOUT_TEXT = LEVELS
_LONGEST = 80
_MISSING = object()


class VerifiedReport(NamedTuple):
    """What became of computing a report again.

    Attributes:
        run: The run of the report.
        sha256: The SHA-256 of the run file.
        differences: What differs, each as a sentence; none where the report follows from the facts.
    """

    run: str
    sha256: str
    differences: tuple[str, ...]


def verify_report(report: str | Path, run_file: str | Path, *, sha256: str | None = None) -> VerifiedReport:
    """Compute a report again from the facts of its run, and compare every byte. Nothing else is read or asked.

    Args:
        report: The report as JSON; it is computed with what this one shows and leaves out.
        run_file: The facts, as `deemster export` writes them.
        sha256: The SHA-256 that the run file must have; any unless given.

    Raises:
        ReportError: The first file cannot be read or is no report.
        StoreError: The second file cannot be read or is no sound run file.
    """
    shown = load_report(report)
    found = file_sha256(run_file)

    with open_run_file(run_file) as store:
        differences = tuple(_differences(store, shown, Path(report), Path(run_file)))

    if sha256 not in (None, found):
        differences = (f"The SHA-256 of {run_file} is {found}, not {sha256}.", *differences)

    return VerifiedReport(shown.run.id, found, differences)


def _differences(store: Store, shown: Report, report: Path, run_file: Path) -> Iterator[str]:
    held = {run.id: run for run in store.runs()}
    row = held.get(shown.run.id)

    if row is None:
        yield f"The report is of the run {shown.run.id}, and {run_file} holds {', '.join(held) or 'no run'}."
        return

    if _fingerprint(store, row) not in (None, row.fingerprint):
        yield "The fingerprint of the dataset is not that of the samples in the run file."

    if shown.privacy.level in _EARLIER_LEVELS:
        yield f"An earlier version wrote it at the privacy level {shown.privacy.level}, which is no longer computed."
        return

    try:
        again = b"".join(_computed(store, row, shown).pieces())
    except ReportError as error:
        yield f"The facts give no report: {error}"
        return

    written = _read(report)
    # Earlier versions wrote each value of a sample on a line of its own.
    if written not in (again, msgspec.json.format(again, indent=2) + b"\n"):
        yield from _first_difference(written, again)
        if row.tool_version != __version__:
            made = visible(row.tool_version, limit=_LONGEST)
            yield f"The run was made by deemster {made}, and this is {__version__}, whose reports may differ."


def _computed(store: Store, row: RunRow, shown: Report) -> Report:
    """The report of the run, with what the report at hand shows and leaves out."""
    report = computed_report(store, row.id)

    if shown.privacy.level != WHOLE:
        without_text = report_without_text(report, quotes=quoted_details(store, row.id).__getitem__)
        return msgspec.structs.replace(without_text, privacy=shown.privacy)

    if any(sample.input is not None for sample in shown.samples):
        return report

    # Earlier versions left the input out unless it was asked for.
    samples = report.samples
    return msgspec.structs.replace(
        report, samples=Stream(lambda: (msgspec.structs.replace(sample, input=None) for sample in samples))
    )


def _fingerprint(store: Store, row: RunRow) -> str | None:
    """The fingerprint of the samples of a run; None where it has none, or where the samples were not kept."""
    samples = sorted(store.samples(row.id), key=lambda sample: sample.id)

    if not row.fingerprint or any(sample.metadata is None for sample in samples):
        return None

    return list_hash([sample.id, sample.row_hash, sample.metadata] for sample in samples)


def _read(report: Path) -> bytes:
    try:
        return report.read_bytes()
    except OSError as error:
        raise ReportError(Issue(f"The file cannot be read: {error.strerror}.", str(report))) from None


def _first_difference(written: bytes, again: bytes) -> Iterator[str]:
    """The first value that differs, as a sentence."""
    for place, one, other in _other_values(json.loads(written), json.loads(again)):
        says = "has no such value" if one is _MISSING else f"says {_short(one)}"
        give = "give none" if other is _MISSING else f"give {_short(other)}"
        yield f"`{visible(place, limit=_LONGEST)}`: the report {says}, the facts {give}."
        return
    yield "The report has the same values as the facts give, but not the same bytes: another program wrote it."


def _other_values(one: Any, other: Any, place: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every value of two documents that differs, with its place."""
    parts: Iterable[tuple[str, Any, Any]]

    if isinstance(one, dict) and isinstance(other, dict):
        parts = ((f"{place}.{key}", one.get(key, _MISSING), other.get(key, _MISSING)) for key in {**one, **other})
    elif isinstance(one, list) and isinstance(other, list):
        pairs = enumerate(zip_longest(one, other, fillvalue=_MISSING))
        parts = ((f"{place}[{index}]", left, right) for index, (left, right) in pairs)
    elif one != other or type(one) is not type(other):
        yield place.removeprefix("."), one, other
        return
    else:
        return

    for where, left, right in parts:
        yield from _other_values(left, right, where)


def _short(value: Any) -> str:
    return visible(json.dumps(value, ensure_ascii=False), limit=_LONGEST)
