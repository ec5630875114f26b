"""Shared by the tests of importers: an imported run beside the same marks made by a native run."""

from __future__ import annotations

from pathlib import Path

import deemster as dm
from deemster.evaluation.external_run import store_external_run
from deemster.records import NOT_APPLICABLE, NotApplicable, Output, TargetFailure
from deemster.report.stored_report import stored_report
from deemster.store import open_store

FIXTURES = Path(__file__).parents[1] / "fixtures" / "imports"


class Lookup:
    """A metric that gives the marks of an imported run again."""

    def __init__(self, card, marks):
        self.name, self.threshold, self.higher_is_better = card.name, card.threshold, card.higher_is_better
        self._marks = marks

    def score(self, sample, output):
        mark = self._marks[sample.id]
        return dm.Unscored("not_run", "") if isinstance(mark, NotApplicable) else mark


def answer_of(answer):
    if isinstance(answer, TargetFailure):
        return {"error": answer.message}
    assert isinstance(answer, Output)
    return {"output": answer.text}


def native_report(run):
    """The report of a native run with the same samples, outputs and marks; for runs without not-applicable marks."""
    assert run.repetitions == 1
    metrics = []
    for place, card in enumerate(run.cards):
        marks = {execution.id: execution.marks[place] for execution in run.executions}
        assert NOT_APPLICABLE not in marks.values()
        metrics.append(Lookup(card, marks))
    outputs = [{"id": execution.id, **answer_of(execution.answer)} for execution in run.executions]
    return dm.evaluate(run.dataset, outputs=dm.targets.SavedOutputs(outputs), metrics=metrics)


def imported_report(run, folder: Path):
    """The report of an imported run, from a store of its own."""
    with open_store(folder / "runs.db", create=True) as store:
        stored = store_external_run(store, run)
        return stored_report(store, stored.id)


def assert_same_numbers(imported, native):
    """Every number of the two reports is the same."""
    assert imported.macro_f1 == native.macro_f1
    assert imported.macro_f1_interval == native.macro_f1_interval
    assert imported.pass_rate == native.pass_rate
    assert imported.pass_rate_interval == native.pass_rate_interval
    assert imported.run.status == native.run.status
    assert imported.totals == native.totals
    for name in native.metrics:
        mine, other = imported.metrics[name], native.metrics[name]
        for field in ("mean", "pass_rate", "pass_rate_interval", "n_scored", "n_passed", "unscored_by_cause"):
            assert getattr(mine, field) == getattr(other, field), (name, field)
