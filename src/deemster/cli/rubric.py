"""`deemster rubric`."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence

import click
import msgspec
import numpy as np

from deemster.cli.console import say
from deemster.documents import read_document
from deemster.documents.canonical import canonical
from deemster.errors import ExitCode, RubricError, counted, visible
from deemster.model.embedded import EmbeddedEmbedding
from deemster.model.trouble import Trouble
from deemster.report import Destination
from deemster.report.writing import deliver
from deemster.rubrics.balance import WORDS, Likeness
from deemster.rubrics.quality import Finding, rubric_findings
from deemster.rubrics.reading import read_rubric
from deemster.rubrics.rubric import Rubric

# On pairs of requirements labelled by hand these let no different two pass for one, and find one pair in three.
_ALIKE = 0.6
_REST_ALIKE = 0.25


@click.group("rubric", short_help="Find what makes judges disagree about a rubric.")
def command() -> None:
    """Find what makes judges disagree about a rubric."""


@command.command("check", short_help="List vague, joined, overlapping and badly scaled criteria.")
@click.argument("file", type=click.Path())
@click.option("--json", metavar="PATH", help="Write the findings as JSON; `-` is standard output.")
@click.option("--strict", is_flag=True, help="Exit with 1 where anything was found.")
def check(*, file: str, json: str | None, strict: bool) -> None:
    """List vague, joined, overlapping and badly scaled criteria, each with its place and what to do.

    No model is asked: words are looked up, and requirements compared by the embedded vectors. Exit codes: 0 done, 1
    findings under --strict, 2 bad input.
    """
    destination = None if json is None else Destination("json", json)
    if destination is not None:
        destination.check()
    document = read_document(file, error=RubricError)
    rubric, faults = read_rubric(document.value, document)
    if rubric is None:
        raise RubricError(faults)
    found = rubric_findings(rubric, document=document, likeness=likeness())
    if destination is not None:
        deliver((canonical(_facts(file, rubric, found)), b"\n"), destination)
    if destination is None or not destination.is_stdout:
        say("\n".join(_lines(file, rubric, found)) + "\n")
    if strict and found:
        sys.exit(ExitCode.GATE_FAILED)


def likeness() -> Likeness:
    """How alike requirements are by the embedded vectors; by common words where these are not installed."""
    model = EmbeddedEmbedding()
    try:
        model.embed_many(["a"])
    except Trouble:
        return WORDS

    def cosines(texts: Sequence[str]) -> list[list[float]]:
        vectors = np.asarray(model.embed_many([visible(text) for text in texts]).values, dtype=np.float64)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        unit = vectors / np.where(lengths == 0, 1.0, lengths)
        square: list[list[float]] = (unit @ unit.T).tolist()
        return square

    return Likeness(cosines, _ALIKE, _REST_ALIKE)


def _facts(file: str, rubric: Rubric, found: Sequence[Finding]) -> dict[str, object]:
    return {
        "file": file,
        "rubric": rubric.name,
        "criteria": len(rubric.criteria),
        "findings": [msgspec.to_builtins(finding) for finding in found],
    }


def _lines(file: str, rubric: Rubric, found: Sequence[Finding]) -> list[str]:
    lines = []
    for finding in found:
        lines.append(visible(f"{finding.where}: {finding.severity}: {finding.message} [{finding.code}]"))
        lines.append(f"    {visible(finding.suggestion)}")
    counts = Counter(finding.severity for finding in found)
    many = "1 criterion" if len(rubric.criteria) == 1 else f"{len(rubric.criteria):,} criteria"
    told = f"{counted(counts['warning'], 'warning')}, {counted(counts['hint'], 'hint')}" if found else "nothing found"
    return [*lines, visible(f"{file}: {many}, {told}")]
