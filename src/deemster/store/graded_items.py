"""Turns what earlier versions stored of a grading into the outputs and marks of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from deemster.records import Execution, Mark, MetricCard, MetricScore, Output, Unscored
from deemster.rubrics.length_penalty import submission_parts
from deemster.store._database import Connection, Row
from deemster.store._row_encoding import (
    decode_content,
    encode_answer,
    encode_cards,
    encode_marks,
    entry_checksum,
    marks_checksum,
    output_checksum,
)
from deemster.store._row_tables import MARKS, OUTPUTS
from deemster.store._run_table import add_done
from deemster.store._scoring_table import scoring_checksum

# The metric of a grading: judges grade by a rubric. What an item has of votes and verdicts stands in the details.
GRADING_CARD = MetricCard("rubric", "rubric", "rubric", "rubric", frozenset({"item"}))
_ITEMS = (
    "SELECT run, position, body, checksum FROM entries WHERE (run, position) > (?, ?) ORDER BY run, position LIMIT 500"
)
_SAMPLES = (
    "SELECT s.position, s.id, c.body FROM samples s LEFT JOIN contents c ON c.number = s.content"
    " WHERE s.run = ? AND s.position BETWEEN ? AND ?"
)
_SCORINGS = (
    "SELECT s.run, s.identity, s.status, s.started_at, s.finished_at FROM scorings s"
    " JOIN runs r ON r.number = s.run WHERE r.kind = 'grading' AND s.number = 0"
)


class GradedEntry(NamedTuple):
    """A graded item as earlier versions kept it.

    Attributes:
        position: Its place in the dataset.
        body: The item as JSON.
        checksum: Of the body, as it was written.
    """

    position: int
    body: bytes
    checksum: int


def grading_mark(score: Any, unscored: Any, details: Mapping[str, Any]) -> Mark:
    """The mark of a graded item.

    Args:
        score: Its score; a sum of weights that was not normalized may lie anywhere.
        unscored: Why there is none.
        details: All that is kept of its grading.
    """
    if not isinstance(score, (int, float)):
        return Unscored("no_quorum", str(unscored or "There is no score."), details=details)
    if not 0.0 <= score <= 1.0:
        return Unscored("metric_failed", f"The sum of the weights, {score}, is no score from 0 to 1.", details=details)
    return MetricScore(score, details)


def move_graded_items(connection: Connection) -> None:
    """Move every graded item of a store from the table of earlier versions to those of every run.

    A row that is damaged stays so: its marks then do not fit their check sum either.

    Raises:
        StoreError: The database refuses.
    """
    for run, identity, status, started_at, finished_at in connection.read(_SCORINGS):
        cards = encode_cards([GRADING_CARD])
        total = scoring_checksum(0, (cards, identity, status, started_at, finished_at))
        sql = "UPDATE scorings SET cards = ?, checksum = ? WHERE run = ? AND number = 0"
        connection.write(sql, (cards, total, run))

    last = (-1, -1)
    while rows := connection.read(_ITEMS, last):
        last = rows[-1][:2]
        for run, entries in groupby(rows, key=itemgetter(0)):
            done = put_graded_items(connection, run, [GradedEntry(*row[1:]) for row in entries])
            add_done(connection, run, done, scoring=0)


def put_graded_items(connection: Connection, run: int, entries: Sequence[GradedEntry]) -> int:
    """Write items that an earlier version graded as outputs with marks; how many they are.

    Args:
        connection: Where their run is, with its samples.
        run: The number of the run.
        entries: The items, in order.

    Raises:
        StoreError: The database refuses.
    """
    bounds = (run, entries[0].position, entries[-1].position)
    samples = {position: sample for position, *sample in connection.read(_SAMPLES, bounds)}
    outputs: list[Row] = []
    marks: list[Row] = []
    for entry in entries:
        name, content = samples.get(entry.position, (None, None))
        key = (entry.position, 0)
        answer = encode_answer(Execution(entry.position, "", 0, _answer(content), ()))
        mark = encode_marks([_mark(entry.body)])
        total = marks_checksum(0, *key, mark)
        if entry_checksum(entry.position, entry.body) != entry.checksum:
            total = ~total

        outputs.append((run, *key, None, answer, output_checksum(*key, name or b"", answer)))
        marks.append((run, 0, *key, mark, total))

    OUTPUTS.put(connection, outputs)
    return MARKS.put(connection, marks)


def _answer(content: bytes | None) -> Output | None:
    """What judges saw of the submission of an item; None where it is not kept or cannot be read."""
    try:
        given = None if content is None else decode_content(content).input
    except msgspec.MsgspecError:
        return None
    submission = given.get("submission") if isinstance(given, Mapping) else None
    if isinstance(submission, Mapping):
        submission = submission.get("output")
    return Output(submission_parts(submission).output) if isinstance(submission, str) else None


def _mark(entry: bytes) -> Mark:
    """The mark of an item; of one that cannot be read there is nothing to keep."""
    try:
        details = msgspec.json.decode(entry, type=dict[str, Any])
    except msgspec.MsgspecError:
        details = {}
    item = details.get("item")
    known = item if isinstance(item, Mapping) else {}
    return grading_mark(known.get("score"), known.get("unscored"), details)
