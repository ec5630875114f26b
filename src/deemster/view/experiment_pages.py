"""What the viewer says of an experiment: its variants, and the grid of their outputs, a row a sample."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from deemster.comparison.experiment import Experiment
from deemster.comparison.experiment_source import stored_experiment, variant_rows
from deemster.errors import InputError, StoreError, did_you_mean
from deemster.results.metric_summary import NOT_RUN
from deemster.view.opened_run import OpenedRun, row_means
from deemster.view.run_cache import RunCache
from deemster.view.run_pages import run_entry
from deemster.view.sample_pages import sample_rows
from deemster.view.sample_query import TEXT_FIELDS, SampleQuery, find_samples
from deemster.view.sample_shapes import ListedSample, MetricCell

# So many characters of a text are sent with a row; whoever reads on asks for the sample.
TEXT_LIMIT = 4000
_KEPT = 2
SHOWN = ("all", "verdicts_differ", "outputs_differ", "failing", "failing_everywhere")
_SHOWN_OF_TARGET = ("prompt", "chat", "parameters", "settings")
SORTS = ("position", "disagreement", "worst")


class GridQuery(NamedTuple):
    """Which samples of an experiment are wanted, in which order.

    Attributes:
        columns: The variants that are looked at; all unless given.
        show: All samples; those where verdicts or outputs differ; those that fail for some variant, or for every one.
        failing: A variant that does not pass the sample.
        metric: The metric by which samples pass and disagree; None for all of them together.
        text: Words that occur in the sample, or in what a variant made of it.
        fields: Where the text is looked for.
        sort: `position`, `disagreement` for the most disputed first, or `worst` for those that fewest pass.
    """

    columns: tuple[str, ...] = ()
    show: str = "all"
    failing: str | None = None
    metric: str | None = None
    text: str = ""
    fields: tuple[str, ...] = TEXT_FIELDS
    sort: str = "position"


class GridCell(msgspec.Struct, frozen=True, kw_only=True):
    """What one variant made of a sample.

    Attributes:
        position: The sample's place in the run of the variant.
        passed: The share of repetitions in which every metric passed.
        repetitions: How many there are.
        scores: The marks by metric.
        latency_ms: The mean latency.
        output: The beginning of the first output.
        labels: What the person who looks said of it, by metric.
    """

    position: int
    passed: float | None
    repetitions: int
    scores: dict[str, MetricCell | None]
    latency_ms: float | None
    output: str | None
    labels: dict[str, str | None]


class OpenedExperiment:
    """The runs of an experiment that pages are made from. Its samples are those of the run that has most.

    Args:
        runs: The runs, one a variant.
    """

    def __init__(self, runs: Sequence[OpenedRun]) -> None:
        self.runs = tuple(runs)
        self.names = [str(run.row.facts.get("label")) for run in runs]
        self.whole = max(runs, key=lambda run: run.row.samples)
        self.places = np.stack([_places(self.whole, run) for run in runs], axis=1)
        self.id = self.whole.row.experiment or ""

    @property
    def metrics(self) -> list[str]:
        """The metrics of all runs, each once."""
        return list(dict.fromkeys(name for run in self.runs for name in run.names))

    def pass_shares(self, metric: str | None) -> NDArray[np.float64]:
        """For each sample and variant the share of repetitions that passed; NaN where nothing was run, or applies.

        Args:
            metric: The metric; None for all of them together.
        """
        return self._by_variant([_pass_shares(run, metric) for run in self.runs])

    def mean_scores(self, metric: str) -> NDArray[np.float64]:
        """For each sample and variant the mean score of a metric; NaN where there is none."""
        return self._by_variant([_mean_scores(run, metric) for run in self.runs])

    def outputs(self) -> NDArray[np.float64]:
        """For each sample and variant a number of its first output, equal for equal ones; NaN where there is none."""
        digests = [run.table.outputs[:, 0] for run in self.runs]
        _, codes = np.unique(np.concatenate(digests), return_inverse=True)
        ends = np.cumsum([len(column) for column in digests])[:-1]
        numbered = np.split(codes.astype(np.float64), ends)
        return self._by_variant([np.where(one == 0, np.nan, code) for one, code in zip(digests, numbered, strict=True)])

    def _by_variant(self, columns: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
        found = np.full(self.places.shape, np.nan)
        for variant, values in enumerate(columns):
            places = self.places[:, variant]
            found[places >= 0, variant] = values[places[places >= 0]]
        return found

    @functools.cached_property
    def answer(self) -> Experiment:
        """What it shows, as `deemster show` has it.

        Raises:
            ReportError: There is nothing to compare yet.
            StoreError: The store fails.
        """
        return stored_experiment(self.whole.store, self.id)

    def variant(self, name: str) -> int:
        """The place of a variant.

        Raises:
            InputError: There is none of this name.
        """
        if name not in self.names:
            raise InputError(f"The experiment has no variant {name!r:.100}. {did_you_mean(name, self.names)}")
        return self.names.index(name)

    def variants(self, names: Sequence[str]) -> list[int]:
        """The places of some variants; of all where none is named.

        Raises:
            InputError: There is no such variant.
        """
        return [self.variant(name) for name in names] or list(range(len(self.runs)))

    def find(self, query: GridQuery) -> NDArray[np.int64]:
        """The samples that a query asks for, in its order.

        Raises:
            InputError: The query names what the experiment does not have.
            StoreError: The store fails.
        """
        if query.metric is not None and query.metric not in self.metrics:
            raise InputError(f"No metric is called {query.metric!r:.100}. {did_you_mean(query.metric, self.metrics)}")
        variants = self.variants(query.columns)
        shares = self.pass_shares(query.metric)
        shown = shares[:, variants]
        passes = (shown == 1).any(axis=1)
        fails = (shown < 1).any(axis=1)

        fits = np.ones(len(shown), dtype=np.bool_)
        if query.show == "verdicts_differ":
            fits &= _variances(shown) > 0
        elif query.show == "outputs_differ":
            fits &= _variances(self.outputs()[:, variants]) > 0
        elif query.show == "failing":
            fits &= fails
        elif query.show == "failing_everywhere":
            fits &= fails & ~passes
        if query.failing is not None:
            fits &= shares[:, self.variant(query.failing)] < 1
        if query.text:
            fits &= self._has_text(SampleQuery(text=query.text, fields=query.fields), variants)
        return self._sorted(np.flatnonzero(fits), query, variants)

    def _has_text(self, query: SampleQuery, variants: Sequence[int]) -> NDArray[np.bool_]:
        found = [np.zeros(run.row.samples) for run in self.runs]
        for variant in variants:
            found[variant][find_samples(self.runs[variant], query)] = 1
        has_text: NDArray[np.bool_] = (self._by_variant(found) == 1).any(axis=1)
        return has_text

    def _sorted(self, samples: NDArray[np.int64], query: GridQuery, variants: Sequence[int]) -> NDArray[np.int64]:
        if query.sort == "position":
            return samples
        shares = self.pass_shares(query.metric)[samples][:, variants]
        if query.sort == "worst":
            return samples[np.argsort(row_means(shares), kind="stable")]
        disputed = -_variances(shares)
        if query.metric is None:
            return samples[np.argsort(disputed, kind="stable")]
        # The scores of one metric say more than its verdicts; but an output without a score has a verdict all the same.
        scores = self.mean_scores(query.metric)[samples][:, variants]
        return samples[np.lexsort((disputed, -_variances(scores)))]


class ExperimentCache:
    """Keeps the experiments that were opened last.

    Args:
        runs: Opens runs.
    """

    def __init__(self, runs: RunCache) -> None:
        self._runs, self._lock = runs, threading.Lock()
        self._join = functools.lru_cache(_KEPT)(lambda *opened: OpenedExperiment(opened))

    def open(self, name: str) -> OpenedExperiment:
        """An experiment.

        Args:
            name: Its id, a beginning that only it has, or `latest`.

        Raises:
            StoreError: There is no such experiment, or the store fails.
        """
        store = self._runs.store
        found = store.find_experiment(name)
        if found is None:
            raise StoreError(f"The store has no experiment {name!r:.100}.")
        opened = [self._runs.open(row.id) for row in variant_rows(store, found).values()]
        with self._lock:
            return self._join(*opened)


def experiment_page(experiment: OpenedExperiment) -> dict[str, Any]:
    """An experiment: its variants with what their runs came to, and its metrics.

    Args:
        experiment: The experiment.

    Raises:
        StoreError: The store fails.
    """
    whole = experiment.whole
    baselines = {baseline.run for baseline in whole.store.baselines()}
    judged = {card.name for run in experiment.runs for card in run.cards if card.roles}
    return {
        "id": experiment.id,
        "suite": whole.row.suite,
        "dataset": whole.row.dataset,
        "started_at": whole.row.started_at,
        "samples": whole.row.samples,
        "metrics": experiment.metrics,
        "judged": [name for name in experiment.metrics if name in judged],
        "text_limit": TEXT_LIMIT,
        "columns": [
            {
                "name": name,
                "target": _shown_target(run),
                "run": run_entry(run.store, run.row, baselines),
            }
            for name, run in zip(experiment.names, experiment.runs, strict=True)
        ],
    }


def _shown_target(run: OpenedRun) -> dict[str, Any]:
    """What a person set of a target: the rest, such as paths, is nothing to pass on with an export."""
    target = run.row.identity.get("target", {})
    return {name: target[name] for name in _SHOWN_OF_TARGET if target.get(name)}


def experiment_answer(answer: Experiment) -> dict[str, Any]:
    """What an experiment shows, with its sentences.

    Args:
        answer: What it shows.
    """
    return {
        **msgspec.json.decode(answer.head()),
        "verdict": answer.verdict,
        "lines": ["".join(line) for section in answer.sections() for line in (*section.lines, *section.after)],
    }


def grid_columns(experiment: OpenedExperiment) -> dict[str, Any]:
    """What finds and sorts the samples of an experiment without a server: by sample and variant, as `find` reads it.

    Args:
        experiment: The experiment.

    Raises:
        StoreError: The store fails.
    """
    metrics = experiment.metrics
    return {
        "names": experiment.names,
        "runs": [run.row.id for run in experiment.runs],
        "places": experiment.places.tolist(),
        "shares": {metric or "": experiment.pass_shares(metric).tolist() for metric in (None, *metrics)},
        "scores": {metric: experiment.mean_scores(metric).tolist() for metric in metrics},
        "outputs": experiment.outputs().tolist(),
    }


def grid_page(
    experiment: OpenedExperiment, query: GridQuery, *, offset: int, limit: int, author: str | None
) -> dict[str, Any]:
    """A page of the grid.

    Args:
        experiment: The experiment.
        query: Which samples, in which order, and which variants.
        offset: How many samples are passed over.
        limit: How many are shown at most.
        author: Whose labels are shown.

    Raises:
        InputError: The query names what the experiment does not have.
        StoreError: The store fails.
    """
    found = experiment.find(query)
    variants = experiment.variants(query.columns)
    return {
        "total": experiment.whole.row.samples,
        "matched": len(found),
        "offset": offset,
        "rows": grid_rows(experiment, found[offset : offset + limit], variants, author=author),
    }


def grid_rows(
    experiment: OpenedExperiment, samples: NDArray[np.int64], variants: Sequence[int], *, author: str | None = None
) -> list[dict[str, Any]]:
    """Some samples, each with what variants made of it; None where a variant does not have the sample.

    Args:
        experiment: The experiment.
        samples: The samples.
        variants: The variants.
        author: Whose labels are shown.

    Raises:
        StoreError: The store fails.
    """
    columns = [
        _cells(experiment.runs[variant], experiment.places[samples, variant], author=author) for variant in variants
    ]
    lines = sample_rows(experiment.whole, samples, most_chars=TEXT_LIMIT)
    return [
        {
            "position": line.position,
            "id": line.id,
            "tags": line.tags,
            "input": line.preview.input,
            "expected": line.preview.expected,
            "cells": cells,
        }
        for line, *cells in zip(lines, *columns, strict=True)
    ]


def _cells(run: OpenedRun, places: NDArray[np.int64], *, author: str | None) -> list[GridCell | None]:
    labels: dict[int, dict[str, str | None]] = {}
    for label in run.store.labels(run.row.id) if author is not None else ():
        if (label.author, label.repetition, label.criterion) == (author, 0, ""):
            labels.setdefault(label.position, {})[label.metric] = label.verdict

    lines = iter(sample_rows(run, places[places >= 0], most_chars=TEXT_LIMIT))
    return [_cell(next(lines), labels) if place >= 0 else None for place in places.tolist()]


def _cell(line: ListedSample, labels: Mapping[int, dict[str, str | None]]) -> GridCell:
    return GridCell(
        position=line.position,
        passed=line.passed,
        repetitions=line.repetitions,
        scores=line.scores,
        latency_ms=line.latency_ms,
        output=line.preview.output,
        labels=labels.get(line.position, {}),
    )


def _places(whole: OpenedRun, run: OpenedRun) -> NDArray[np.int64]:
    """For each sample of a run its place in another; -1 where that does not have it."""
    wanted, known = whole.samples.digests, run.samples.digests
    if np.array_equal(wanted, known):
        return np.arange(len(wanted))
    places = {digest.tobytes(): place for place, digest in enumerate(known)}
    return np.array([places.get(digest.tobytes(), -1) for digest in wanted], dtype=np.int64)


def _pass_shares(run: OpenedRun, metric: str | None) -> NDArray[np.float64]:
    columns = [place for place, name in enumerate(run.names) if metric in (None, name)]
    counts = run.pass_counts(columns)
    is_run = (run.table.causes[:, :, columns] != NOT_RUN).any(axis=(1, 2))
    return np.where((counts >= 0) & is_run, counts / run.table.repetitions, np.nan)


def _mean_scores(run: OpenedRun, metric: str) -> NDArray[np.float64]:
    if metric not in run.names:
        return np.full(run.row.samples, np.nan)
    return run.mean_scores(run.names.index(metric))


def _variances(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance of each row without its NaN, to nine decimals; 0 where nothing else is in it."""
    return np.nan_to_num(row_means((values - row_means(values)[:, None]) ** 2)).round(9)
