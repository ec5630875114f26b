"""Imports files of other tools: finds out by their content which tool made them, and stores their runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from deemster.errors import DeemsterError, InputError, Issue
from deemster.evaluation.external_run import ExternalRun
from deemster.integrations.import_autorubric import is_autorubric, read_autorubric
from deemster.integrations.import_deepeval import is_deepeval, read_deepeval
from deemster.integrations.import_inspect import is_inspect, read_inspect
from deemster.integrations.import_lm_eval import is_lm_eval, read_lm_eval
from deemster.integrations.import_otlp import is_otlp, read_otlp
from deemster.integrations.import_promptfoo import is_promptfoo, read_promptfoo
from deemster.integrations.import_ragas import is_ragas, read_ragas
from deemster.integrations.import_trec import is_qrels, is_trec_run, read_trec
from deemster.integrations.source_file import SourceFile


class Importer(NamedTuple):
    """How the files of one tool are read.

    Attributes:
        is_kind: Says by its content whether a file is one of them.
        read: Reads the runs of a file.
        what: What the files are called.
    """

    is_kind: Callable[[SourceFile], bool]
    read: Callable[[SourceFile], list[ExternalRun]]
    what: str


IMPORTERS = {
    "promptfoo": Importer(is_promptfoo, read_promptfoo, "results of promptfoo"),
    "inspect": Importer(is_inspect, read_inspect, "logs of Inspect"),
    "deepeval": Importer(is_deepeval, read_deepeval, "test runs of DeepEval"),
    "lm-eval": Importer(is_lm_eval, read_lm_eval, "samples of lm-evaluation-harness"),
    "ragas": Importer(is_ragas, read_ragas, "results of ragas"),
    "otlp": Importer(is_otlp, read_otlp, "traces of OpenTelemetry"),
    "trec": Importer(is_trec_run, read_trec, "rankings of TREC"),
    "autorubric": Importer(is_autorubric, read_autorubric, "experiments of autorubric"),
}


def read_runs(path: str | Path, *further: str | Path, kind: str | None = None) -> list[ExternalRun]:
    """The runs in files of other tools, file by file.

    Args:
        path: The file, or a folder where the tool writes one.
        further: Further files. Relevance judgements of TREC belong to all rankings among the files.
        kind: The tool; found by the content of the files unless given.

    Raises:
        InputError: A file is of no tool that is known, or something in it cannot be kept.
        MissingExtraError: A file needs an extra that is not installed.
    """
    sources = [SourceFile(each) for each in (path, *further)]
    qrels = [source for source in sources if kind in (None, "trec") and is_qrels(source)]
    rankings = [source for source in sources if source not in qrels]
    if not rankings:
        raise InputError(Issue("These are relevance judgements of TREC; give the ranking too.", str(path)))
    return [run for source in rankings for run in _read(source, kind, qrels)]


def _read(source: SourceFile, kind: str | None, qrels: Sequence[SourceFile]) -> list[ExternalRun]:
    found = kind or next((name for name, importer in IMPORTERS.items() if importer.is_kind(source)), None)
    if found is None:
        known = "; ".join(importer.what for importer in IMPORTERS.values())
        raise InputError(Issue(f"This file is of no tool that is known. Known are: {known}.", str(source.path)))
    importer = IMPORTERS[found]
    if not importer.is_kind(source):
        raise InputError(Issue(f"These are no {importer.what}.", str(source.path)))
    try:
        runs = read_trec(source, qrels) if found == "trec" else importer.read(source)
    except DeemsterError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        # A hostile file may hold anything anywhere. None of it is a fault of the program.
        message = f"This file does not have the shape of {importer.what} ({type(error).__name__})."
        raise InputError(Issue(message, str(source.path))) from None
    if not runs:
        raise InputError(Issue(f"There is no run in these {importer.what}.", str(source.path)))
    return [run._replace(file=source.name) for run in runs]
