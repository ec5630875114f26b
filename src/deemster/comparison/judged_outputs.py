"""Finds the outputs that two runs, or two scorings of one run, have in common, and what their judges and people say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np

from deemster.agreement.smoothed_kappa import smoothed_kappa
from deemster.comparison._paired_marks import card_of, cluster_codes, scores_of, side_of
from deemster.comparison.compare_columns import ComparisonSettings
from deemster.comparison.compared_sample import ComparedSample
from deemster.comparison.judge_change import (
    Bools,
    Floats,
    JudgeAgreement,
    JudgeChange,
    JudgedOutputs,
    JudgesByPeople,
    PastDecision,
    Rows,
    compare_judges,
    worst_answer,
)
from deemster.comparison.run_source import RunSource
from deemster.comparison.stored_source import stored_identities
from deemster.datasets.human_labels import HumanLabel, join_labels, label_kind
from deemster.results.difference_origin import MatchedOutputs, match_outputs
from deemster.results.run_columns import JoinedSamples, RunColumns, describe_identity_changes, join_samples
from deemster.results.run_summary import cohort_label
from deemster.runs.run_figures import stored_figures
from deemster.stats import Interval, paired_difference
from deemster.stats.confidence_interval import interval_ends
from deemster.stats.means import unit_sums
from deemster.store import RunRow, Store

# So many outputs are shown that pass under one judge only.
_MOST_FLIPS = 20
# So many runs are looked at for what their gates decided.
_MOST_DECISIONS = 50


def find_judge_change(
    baseline: RunSource,
    candidate: RunSource,
    *,
    settings: ComparisonSettings,
    labels: Sequence[HumanLabel],
    wanted: Rows | None = None,
) -> JudgeChange | None:
    """What a change of judge is worth; None where outputs differ, or no metric of both has another judge.

    Args:
        baseline: The outputs as the old judge scored them.
        candidate: The same outputs as the new judge scored them.
        settings: Level, clusters and seed.
        labels: What people say of these outputs.
        wanted: The samples of the candidate that are looked at; all unless given.

    Raises:
        DatasetError: A label cannot be used.
        StoreError: A run cannot be read.
    """
    pair = _SameOutputs.find(
        baseline.columns(cluster=None), candidate.columns(cluster=settings.cluster or candidate.cluster), wanted=wanted
    )
    if pair is None:
        return None

    metrics = {}
    for name, change in pair.changed.items():
        judged = pair.judged(name)
        if judged is None:
            continue
        found = compare_judges(judged.outputs, confidence=settings.confidence, seed=settings.seed)
        metrics[name] = msgspec.structs.replace(
            found,
            changed=change,
            left_out=judged.left_out,
            flips=tuple(_flips(judged, baseline, candidate)),
            agreement=pair.with_retests(name, found.agreement, settings=settings),
            people=_by_people(pair, judged, labels, confidence=settings.confidence),
        )
    if not metrics:
        return None

    return JudgeChange(
        answer=worst_answer([metric.answer for metric in metrics.values()]),
        metrics=metrics,
        past_decisions=tuple(_past_decisions(baseline, candidate, list(metrics))),
    )


class _Judged(NamedTuple):
    """The outputs that both judges scored on one metric, and where they stand in both runs."""

    name: str
    outputs: JudgedOutputs
    left_out: int
    samples: Rows
    before: Rows
    repetitions: Rows
    after: Rows


class _SameOutputs(NamedTuple):
    """Two runs whose outputs are the same.

    Attributes:
        baseline: The run with the old judge.
        candidate: The run with the new one.
        joined: The samples that both have.
        matched: Their outputs.
        changed: The metrics whose judge changed, and what changed.
    """

    baseline: RunColumns
    candidate: RunColumns
    joined: JoinedSamples
    matched: MatchedOutputs
    changed: dict[str, str]

    @classmethod
    def find(cls, baseline: RunColumns, candidate: RunColumns, *, wanted: Rows | None) -> _SameOutputs | None:
        """The pair; None where an output of both runs differs, or no metric of both has another judge."""
        changed = {
            name: "; ".join(differences)
            for name, identity in candidate.identities.items()
            if name in baseline.identities
            and (differences := describe_identity_changes(baseline.identities[name], identity))
        }
        if not changed:
            return None

        joined = join_samples(baseline, candidate)
        joined = joined if wanted is None else joined.within(wanted)
        before = baseline.marks.outputs[joined.before]
        after = candidate.marks.outputs[joined.after]
        matched = match_outputs(before, after)
        has_both: Bools = np.asarray((before != 0).any(axis=1) & (after != 0).any(axis=1))
        is_same: Bools = np.asarray(matched.equal.any(axis=1))
        if not has_both.any() or not is_same[has_both].all():
            return None
        return cls(baseline, candidate, joined, matched, changed)

    def judged(self, name: str) -> _Judged | None:
        """The outputs that both judges scored on a metric; None without any."""
        sides = [
            (side_of(run, name, positions), scores_of(run, name, positions))
            for run, positions in ((self.baseline, self.joined.before), (self.candidate, self.joined.after))
        ]
        (before, old_scores), (after, new_scores) = sides
        scored = self.matched.pairs(before.scored, after.scored)
        is_scored: Bools = np.asarray(scored[0] & scored[1] & self.matched.equal)
        samples, places = np.nonzero(is_scored)
        if not len(samples):
            return None

        old, new = self.matched.pairs(old_scores, new_scores)
        old_passed, new_passed = self.matched.pairs(before.passed, after.passed)
        old_card = card_of(self.baseline, name)
        outputs = JudgedOutputs(
            old=old[is_scored],
            new=new[is_scored],
            old_passed=old_passed[is_scored],
            new_passed=new_passed[is_scored],
            units=self._units()[samples],
            cohorts=dict(self._cohorts(samples)),
            old_mark=old_card.threshold,
            old_is_loss=not old_card.higher_is_better,
            new_is_loss=not card_of(self.candidate, name).higher_is_better,
        )
        at_old = self.joined.before[samples], self.matched.before[samples, places]
        at_new = self.joined.after[samples], self.matched.after[samples, places]
        outputs = outputs._replace(criteria=self._criteria(name, at_old, at_new))
        either = (scored[0] | scored[1]) & self.matched.equal
        return _Judged(
            name,
            outputs,
            int(np.count_nonzero(either)) - len(samples),
            samples=samples,
            before=at_old[0],
            repetitions=np.asarray(at_old[1], dtype=np.intp),
            after=at_new[0],
        )

    def _criteria(
        self, name: str, at_old: tuple[Rows, Rows], at_new: tuple[Rows, Rows]
    ) -> dict[str, tuple[Floats, Floats]]:
        """What both judges said of the criteria that both have, where the runs know it; NaN where one said nothing."""
        runs = self.baseline, self.candidate
        if not all(card_of(run, name).parts and run.read_criteria for run in runs):
            return {}
        old, new = (run.read_criteria()[name].values() for run in runs if run.read_criteria is not None)
        return {criterion: (old[criterion][at_old], new[criterion][at_new]) for criterion in new if criterion in old}

    def _units(self) -> Rows:
        """The unit of each joined sample."""
        clusters = self.candidate.clusters
        if clusters is None:
            return np.arange(len(self.joined.after))
        return cluster_codes(clusters[position] for position in self.joined.after.tolist())

    def _cohorts(self, samples: Rows) -> Iterator[tuple[str, Rows]]:
        """The cohorts of the candidate that are not all of it, with their rows among the judged outputs."""
        positions = self.joined.after[samples]
        for tag, members in self.candidate.marks.cohorts:
            is_member = np.zeros(self.candidate.marks.samples, dtype=np.bool_)
            is_member[members] = True
            rows = np.flatnonzero(is_member[positions])
            if 0 < len(rows) < len(samples):
                yield cohort_label(tag), rows

    def with_retests(self, name: str, agreement: JudgeAgreement, *, settings: ComparisonSettings) -> JudgeAgreement:
        """The agreement, beside that of the old judge with itself on outputs that it judged twice in a row."""
        side = side_of(self.baseline, name, self.joined.before)
        digests = self.baseline.marks.outputs[self.joined.before]
        again = (digests[:, 1:] == digests[:, :-1]) & (digests[:, 1:] != 0) & side.scored[:, 1:] & side.scored[:, :-1]
        samples, _ = np.nonzero(again)
        if not len(samples):
            return agreement

        kappa, interval = smoothed_kappa(
            side.passed[:, :-1][again],
            side.passed[:, 1:][again],
            self._units()[samples],
            confidence=settings.confidence,
            seed=settings.seed,
        )
        return msgspec.structs.replace(agreement, retests=len(samples), retest_kappa=kappa, retest_interval=interval)


def _flips(judged: _Judged, baseline: RunSource, candidate: RunSource) -> Iterator[ComparedSample]:
    """Outputs that pass under one judge only, those first whose scores lie furthest apart, with both reasons."""
    outputs = judged.outputs
    rows = np.flatnonzero(outputs.old_passed != outputs.new_passed)
    apart = np.abs(outputs.new[rows] - outputs.old[rows])
    worst = rows[np.argsort(-apart, kind="stable")]
    _, firsts = np.unique(judged.samples[worst], return_index=True)
    shown = worst[np.sort(firsts)][:_MOST_FLIPS]

    before = baseline.samples(judged.before[shown].tolist())
    after = candidate.samples(judged.after[shown].tolist())
    for row, (_, earlier), (sample, later) in zip(shown.tolist(), before, after, strict=True):
        old = earlier[int(judged.repetitions[row])]
        new = next((execution for execution in later if execution.output == old.output), later[0])
        yield ComparedSample(
            id=sample.id,
            status="newly_failing" if outputs.old_passed[row] else "newly_passing",
            tags=sample.tags,
            input=sample.input,
            expected_output=sample.expected_output,
            baseline=old,
            candidate=new,
        )


def _by_people(
    pair: _SameOutputs, judged: _Judged, labels: Sequence[HumanLabel], *, confidence: float
) -> JudgesByPeople | None:
    """Both judges against the labels of a metric; None without a label of an output that both scored."""
    is_only_metric = len(pair.changed) == 1
    named = [label for label in labels if label.subject == judged.name or (label.subject is None and is_only_metric)]
    kind = label_kind(named)
    if not named or kind == "option":
        return None
    ids = pair.baseline.ids(judged.before.tolist())
    judged_outputs = zip(ids, judged.repetitions.tolist(), strict=True)
    row_of_output = {output: row for row, output in enumerate(judged_outputs)}
    labelled = [
        (row_of_output[output], label.truth, 1 / (label.probability or 1.0))
        for output, label in join_labels(named, kind).items()
        if output in row_of_output and isinstance(label.truth, float)
    ]
    if not labelled:
        return None

    rows = np.array([row for row, _, _ in labelled], dtype=np.intp)
    truth = np.array([truth for _, truth, _ in labelled])
    weights = np.array([weight for _, _, weight in labelled])
    outputs = judged.outputs
    is_score = kind == "score"
    found = hold_against_people(
        outputs.old[rows] if is_score else outputs.old_passed[rows].astype(np.float64),
        outputs.new[rows] if is_score else outputs.new_passed[rows].astype(np.float64),
        truth,
        units=outputs.units[rows],
        weights=weights,
        confidence=confidence,
    )
    return msgspec.structs.replace(found, passes_failed=None, fails_passed=None) if is_score else found


def hold_against_people(
    old: Floats, new: Floats, truth: Floats, *, units: Rows, weights: Floats, confidence: float
) -> JudgesByPeople:
    """Both judges against what people say of the same outputs.

    Args:
        old: What the old judge says of each output: 1 or 0, or a score.
        new: What the new judge says.
        truth: What people say.
        units: The unit of each output.
        weights: How many outputs each stands for.
        confidence: The level of the interval.
    """
    before = np.abs(old - truth)
    now = np.abs(new - truth)
    sizes, _ = unit_sums(weights, units)
    totals, _ = unit_sums(weights * (now - before), units)
    error = paired_difference(totals, sizes, confidence=confidence)
    interval = interval_ends(error.interval)
    return JudgesByPeople(
        labels=len(truth),
        before=float(np.average(before, weights=weights)),
        now=float(np.average(now, weights=weights)),
        difference=error.value or 0.0,
        interval=interval,
        passes_failed=_error_shares(before, now, truth < 1, weights),
        fails_passed=_error_shares(before, now, truth == 1, weights),
        closer=_closer(interval),
    )


def _closer(interval: Interval | None) -> Literal["before", "now"] | None:
    if interval is None or not interval.leaves_out_zero:
        return None
    return "now" if interval.high < 0 else "before"


def _error_shares(before: Floats, now: Floats, rows: Bools, weights: Floats) -> tuple[float, float] | None:
    """The share of wrong verdicts of each judge in some rows; None where there is none."""
    if not rows.any():
        return None
    old, new = (float(np.average(errors[rows], weights=weights[rows])) for errors in (before, now))
    return old, new


def _past_decisions(baseline: RunSource, candidate: RunSource, names: Sequence[str]) -> Iterator[PastDecision]:
    """What became of the decisions of the suite's gate, where both judges judged the outputs of a run."""
    if baseline.stored is None or candidate.stored is None or baseline.stored[0] is not candidate.stored[0]:
        return
    if baseline.stored == candidate.stored:
        return
    store = candidate.stored[0]
    old_row = store.run(baseline.stored[1])
    new_row = store.run(candidate.stored[1])
    old_judge = _judges(store, old_row, names)
    new_judge = _judges(store, new_row, names)

    rows = [row for row in store.runs(dataset=old_row.dataset, kind="run") if row.status == "complete"]
    by_old = [row for row in rows if row.suite == old_row.suite and _judges(store, row, names) == old_judge]
    by_new = [row for row in rows if _judges(store, row, names) == new_judge]
    for row in by_old[:_MOST_DECISIONS]:
        again = next((other for other in by_new if _answers(other) in (row.id, _answers(row))), None)
        if again is None:
            continue
        before, now = (_decision(each) for each in (row, again))
        if before is not None and now is not None:
            yield PastDecision(run=row.id, judged_again=again.id, before=before, now=now)


def _judges(store: Store, row: RunRow, names: Sequence[str]) -> dict[str, object]:
    """The judges of a run, for the metrics of these names."""
    identities = stored_identities(row, store.cards(row.id))
    return {name: identities.get(name) for name in names}


def _answers(row: RunRow) -> object:
    """What identifies the saved outputs of a run: the run that they come from, or their digest; its id without."""
    target = row.identity.get("target")
    saved = target.get("outputs") if isinstance(target, Mapping) else None
    return row.id if saved is None else saved


def _decision(row: RunRow) -> str | None:
    """What the gate decided of a run; None where nothing was decided."""
    figures = stored_figures(row)
    return None if figures is None or figures.gate == "skipped" else figures.gate
