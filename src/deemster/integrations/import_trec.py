"""Imports rankings of TREC: a run file with the relevance judgements (qrels) that belong to it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from deemster.errors import InputError, Issue
from deemster.evaluation.external_run import ExternalRun
from deemster.integrations.run_builder import RunBuilder
from deemster.integrations.source_file import SourceFile
from deemster.records import Output

_RUN_COLUMNS, _QRELS_COLUMNS = 6, 4


def is_trec_run(source: SourceFile) -> bool:
    """Whether a file is a run of TREC: lines of topic, `Q0`, document, rank, score and tag."""
    first = next(_lines(source), None)
    return first is not None and len(first) == _RUN_COLUMNS and _is_number(first[3]) and _is_number(first[4])


def is_qrels(source: SourceFile) -> bool:
    """Whether a file holds relevance judgements of TREC: lines of topic, iteration, document and relevance."""
    first = next(_lines(source), None)
    return first is not None and len(first) == _QRELS_COLUMNS and _is_number(first[3])


def _lines(source: SourceFile) -> Iterator[list[str]]:
    if source.is_folder or source.is_zip or source.data.lstrip()[:1] in (b"{", b"["):
        return
    try:
        text = source.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    for line in text.splitlines():
        if line.strip():
            yield line.split()


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def read_trec(source: SourceFile, qrels: Sequence[SourceFile] = ()) -> list[ExternalRun]:
    """The run in a file of TREC. A sample is a topic; its output is the ranking, and no metric has marked it yet.

    Args:
        source: The run.
        qrels: The relevance judgements, which become `relevant` of the samples' metadata.

    Raises:
        InputError: A line is not one of a run, or there are no judgements.
    """
    if not qrels:
        message = "A run of TREC is read together with its qrels: `deemster import run.txt qrels.txt`."
        raise InputError(Issue(message, str(source.path)))
    relevant: dict[str, dict[str, float]] = {}
    for file in qrels:
        for topic, _, document, gain in _checked(file, _QRELS_COLUMNS):
            relevant.setdefault(topic, {})[document] = float(gain)
    ranked: dict[str, list[tuple[float, str]]] = {}
    tag = None
    for topic, _, document, _, score, tag in _checked(source, _RUN_COLUMNS):  # noqa: B007 - the last tag is the run's
        ranked.setdefault(topic, []).append((float(score), document))
    builder = RunBuilder("trec", source.path.stem if not qrels else qrels[0].path.stem)
    for topic, gains in relevant.items():
        positive = {document: gain for document, gain in gains.items() if gain > 0}
        if not positive:
            builder.leave_out("a topic without a relevant document")
            continue
        sample = builder.add_sample(topic, {"topic": topic}, metadata={"relevant": positive})
        # As trec_eval does: by score, then by document, both downwards. The rank in the file does not count.
        order = [document for _, document in sorted(ranked.pop(topic, ()), reverse=True)]
        builder.add_execution(sample, Output("", retrieved=order), {})
    if ranked:
        builder.leave_out("a topic of the run without judgements", len(ranked))
    return [builder.build(target=tag)]


def _checked(source: SourceFile, columns: int) -> Iterator[list[str]]:
    for number, words in enumerate(_lines(source), 1):
        if len(words) != columns or not _is_number(words[3 if columns == _QRELS_COLUMNS else 4]):
            what = "topic, iteration, document, relevance" if columns == _QRELS_COLUMNS else "six columns of a run"
            raise InputError(Issue(f"This line is not {what}.", f"{source.path}:{number}"))
        yield words
