"""The part of a dataset that a run takes: what is selected, what failed before, or the part of the run it resumes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from deemster.datasets import Dataset
from deemster.datasets.only_expression import LATEST, Only, condition_text
from deemster.errors import Issue, StoreError, list_names
from deemster.report.failing_samples import failing_samples
from deemster.report.report_settings import report_facts
from deemster.report.stored_report import stored_report
from deemster.runs.find_resumed_run import choose_run
from deemster.store import RunRow, Store


class KeptSamples(NamedTuple):
    """Samples that a stored run names.

    Attributes:
        ids: Their ids.
        selection: How they were selected, written as flags of `deemster run`.
    """

    ids: Collection[str]
    selection: str


class RunPart(NamedTuple):
    """The part of its dataset that a run takes.

    Attributes:
        kept: The samples that a stored run names, from which the rest selects; None for all.
        choose: What else selects; None for nothing.
    """

    kept: KeptSamples | None = None
    choose: Callable[[Dataset], Dataset] | None = None

    def select(self, dataset: Dataset) -> Dataset:
        """The part of a dataset.

        Raises:
            DatasetError: No sample is in it, or what selects cannot be used.
        """
        if self.kept is not None:
            dataset = dataset.keep(self.kept.ids, selection=self.kept.selection)
        return dataset if self.choose is None else self.choose(dataset)


def failed_samples(store: Store, runs: Sequence[str], *, suite: str) -> KeptSamples:
    """The samples that did not pass in one of some stored runs, or were not scored.

    Args:
        store: Where they are stored.
        runs: Their ids, unique beginnings of these, or `latest`; `LATEST` for the latest run of the suite,
            or all of its experiment.
        suite: The suite's name.

    Raises:
        StoreError: There is no such run, every sample of them passed, or one cannot be read.
        ReportError: A run has no marks.
    """
    found = [row for run in runs for row in _named_runs(store, run, suite=suite)]
    ids = frozenset(failing.sample.id for run in found for failing in failing_samples(stored_report(store, run.id)))
    if not ids:
        raise StoreError(_describe_all_passed(store, found, suite=suite))
    return KeptSamples(ids, condition_text(Only(failed=tuple(run.id for run in found))))


def _describe_all_passed(store: Store, runs: Sequence[RunRow], *, suite: str) -> str:
    """Why nothing is left to run; where only a part was looked at, which run of the whole suite may have failures."""
    names = list_names(run.id for run in runs)
    part = report_facts(runs[0]).part
    if len(runs) > 1 or part is None:
        return f"Every sample of the run {names} passed: there is nothing to run."

    sentence = f"Every sample of the run {names} passed, which was a part: {part.samples:,} of {part.of:,} samples."
    whole = (run.id for run in store.runs(suite=suite, kind="run") if report_facts(run).part is None)
    latest = next(whole, None)
    return sentence if latest is None else f"{sentence} What failed in the latest whole run: `--only failed:{latest}`."


def _named_runs(store: Store, run: str, *, suite: str) -> list[RunRow]:
    """The run of a name; of the latest one all that belong to its experiment."""
    latest = store.runs(suite=suite, kind="run", limit=1)
    if run != LATEST:
        return [store.run(run, kind="run", beside=latest[0] if latest and run == "baseline" else None)]
    if not latest:
        raise StoreError(Issue(f"There is no run of the suite `{suite}`, so nothing has failed yet.", store.where))
    experiment = latest[0].experiment
    return latest if experiment is None else store.runs(experiment=experiment, kind="run")


def resumed_samples(store: Store, wanted: str | bool, *, suite: str) -> KeptSamples | None:  # noqa: FBT001 - what `resume` says
    """The samples of the run that is resumed, where it took a part of its dataset.

    Args:
        store: Where it is stored.
        wanted: What `resume` says.
        suite: The suite's name.

    Raises:
        StoreError: There is no such run, or it cannot be read.
    """
    row = choose_run(store, wanted, kind="run", suite=suite)
    part = None if row is None else report_facts(row).part
    if row is None or part is None:
        return None
    ids = frozenset(sample.id for sample in store.samples(row.id, content=False))
    return KeptSamples(ids, part.selection or "")
