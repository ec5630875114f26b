"""The error rates of a gate, by simulation: false alarms, power against drops, the margin it certifies, who alarms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from deemster import __version__
from deemster.audit.gate_audit_report import gate_audit_sections
from deemster.audit.simulated_runs import ExecutionPool, SimulatedRun
from deemster.comparison.compare_columns import ComparisonSettings, compare_columns
from deemster.comparison.comparison_gate import baseline_evidence
from deemster.errors import ConfigurationError, did_you_mean
from deemster.formats.schema_validation import OpenShare, Seed, Share, decode_struct
from deemster.gate.baseline_gate import BaselineEvidence, baseline_checks, margin_numbers
from deemster.gate.gate_decision import GateCheck, GateDecision, decide_gate
from deemster.gate.read_gate import CORRECTED, GateRules, Rule
from deemster.results.mark_table import MarkTable
from deemster.results.run_columns import RunColumns
from deemster.results.run_summary import cohort_label, summarize_run
from deemster.stats import wilson
from deemster.stats.confidence_interval import interval_ends
from deemster.text.rendered import Rendered
from deemster.text.text_sections import TextSection

GATE_AUDIT_SCHEMA: Final = "deemster.gate_audit.v1"
# The drops of the pass-rate that a gate is tried with.
DROPS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2)
# The margin that a gate certifies is the one that it certifies so often.
POWER = 0.8
# A cohort of fewer samples is not tried by itself unless it is named.
_FEWEST = 5
_NOT_SIMULATED = ("cost_usd", "p95_latency_s", "aggregate_success", "aggregate_score")


class SimulatedShare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A share of simulated comparisons, with the interval of the simulation's own error.

    Attributes:
        count: How many.
        n: Of how many.
        rate: The share.
        low: The lower end of its interval (Wilson).
        high: The upper end.
    """

    count: int
    n: int
    rate: float
    low: float
    high: float


class GateOutcomes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a gate decides in each way.

    Attributes:
        failed: It fails.
        inconclusive: It is inconclusive; never in a two-way gate.
        passed: It passes.
    """

    failed: SimulatedShare
    inconclusive: SimulatedShare
    passed: SimulatedShare


class DropOutcomes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a gate does where the pass-rate falls.

    Attributes:
        drop: How far the share of samples that pass every metric falls.
        cohort: The cohort in which it falls; None for all samples.
        samples: How many samples that are.
        outcomes: How often the gate decides in each way; None where the pass-rate cannot fall so far.
        reason: Why there are none.
    """

    drop: float
    cohort: str | None
    samples: int
    outcomes: GateOutcomes | None
    reason: str | None = None


class RuleAlarms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a rule alarms although nothing changed.

    Attributes:
        name: The check.
        failed: It fails.
        alone: How often it alone fails.
        inconclusive: It is inconclusive.
    """

    name: str
    failed: SimulatedShare
    alone: int
    inconclusive: SimulatedShare


class CertifiedMargin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The margin that a gate certifies where nothing changed.

    Attributes:
        margin: The margin of the gate.
        power: How often a margin must be certified.
        value: The smallest margin that is certified so often, for every number that the margin holds for.
        low: The lower end of the interval of the simulation's own error.
        high: The upper end.
        n: How many comparisons it rests on.
        reason: Why it is undefined.
    """

    margin: float | None
    power: float = POWER
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    reason: str | None = None


class GateAudit(Rendered, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How often a gate errs on the samples of a suite.

    Attributes:
        suite: The suite's name.
        dataset: The dataset's name.
        runs: The stored runs that the noise is measured on; with stated noise, the run that says what passes.
        samples: How many samples.
        executions: How many executions of each sample.
        repetitions: How many executions of each sample a simulated run has.
        noise: `measured` on the runs, or `stated`.
        flip_rate: How often two executions of a sample differ in whether every metric passes.
        pass_rate: The share of executions in which every metric passes.
        mode: `two-way` or `three-way`.
        draws: How many comparisons are simulated for each number.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.
        unchanged: What the gate does where nothing changed.
        drops: What it does where the pass-rate falls, overall and in one cohort.
        rules: The checks that alarm although nothing changed, the one that fails most first.
        margin: The margin that it certifies.
        left_out: Rules that cannot be simulated, and why.
        notes: What a reader must know before believing the numbers.
    """

    schema_version: str = GATE_AUDIT_SCHEMA
    suite: str
    dataset: str
    runs: tuple[str, ...]
    samples: int
    executions: int
    repetitions: int
    noise: str
    flip_rate: float | None
    pass_rate: float
    mode: str
    draws: int
    confidence: float
    seed: int
    unchanged: GateOutcomes
    drops: tuple[DropOutcomes, ...]
    rules: tuple[RuleAlarms, ...]
    margin: CertifiedMargin
    left_out: dict[str, str]
    notes: tuple[str, ...]

    def sections(self) -> list[TextSection]:
        """What it says to people, in order."""
        return gate_audit_sections(self)


class TrialResult(NamedTuple):
    """What a gate says of two simulated runs.

    Attributes:
        decision: The decision, with every check.
        margin: The smallest margin that these runs certify; None where the gate has none.
    """

    decision: GateDecision
    margin: float | None


def decide_columns(
    gate: GateRules,
    before: RunColumns | None,
    after: RunColumns,
    *,
    metrics: Mapping[str, str],
    settings: ComparisonSettings,
) -> tuple[GateDecision, BaselineEvidence | None]:
    """Decide about a run, with another one as its baseline; the decision, and what the comparison found.

    Args:
        gate: The gate.
        before: The baseline; None where there is none.
        after: The candidate.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How the runs are compared.
    """
    rules, evidence = gate.baseline, None
    against: tuple[GateCheck, ...] = ()
    if rules is not None and before is not None:
        compared = compare_columns(before, after, settings=settings, tool_version=__version__)
        evidence = baseline_evidence(compared, cohorts=rules.cohorts)
        against = baseline_checks(gate, rules, evidence)
    return decide_gate(gate, summarize_run(after.marks), metrics=metrics, against_baseline=against), evidence


class GateTrial:
    """Applies the rules of a gate to simulated runs.

    Args:
        gate: The gate; `simulated_gate` leaves out what simulated runs do not have.
        pool: What runs are simulated from.
        metrics: Names of the metrics, and other spellings of them, by name.
        seed: The seed of what comparisons draw.
    """

    def __init__(self, gate: GateRules, pool: ExecutionPool, *, metrics: Mapping[str, str], seed: int = 0) -> None:
        self._gate, self._pool, self._metrics = gate, pool, metrics
        self._rules = rules = gate.baseline
        cohorts = {rule.cohort for rule in gate.rules if rule.cohort is not None}
        self._template: MarkTable = pool.template(cohorts | set(() if rules is None else rules.cohorts))
        self._settings = ComparisonSettings(seed=seed, tests=False)
        if rules is not None:
            self._settings = msgspec.structs.replace(
                self._settings, confidence=rules.confidence, margin=rules.margin, cluster=rules.cluster
            )

    def decide(self, before: SimulatedRun, after: SimulatedRun) -> TrialResult:
        """Decide about a simulated run, with another one as its baseline.

        Args:
            before: The baseline.
            after: The candidate.
        """
        return self.decide_columns(self._columns(before) if self._rules is not None else None, self._columns(after))

    def decide_columns(self, before: RunColumns | None, after: RunColumns) -> TrialResult:
        """Decide about a run, with another one as its baseline.

        Args:
            before: The baseline; None where the gate compares with none.
            after: The candidate.
        """
        decision, evidence = decide_columns(self._gate, before, after, metrics=self._metrics, settings=self._settings)
        has_margin = self._rules is not None and self._rules.margin is not None
        return TrialResult(decision, self._certified(evidence) if evidence is not None and has_margin else None)

    def _columns(self, run: SimulatedRun) -> RunColumns:
        return self._pool.columns(run, self._template)

    def _certified(self, evidence: BaselineEvidence) -> float | None:
        """The smallest margin that every number keeps."""
        if self._rules is None:
            return None
        numbers = margin_numbers(self._gate, self._rules, evidence)
        bounds = [one.difference.lower_bound for one in numbers if one.difference is not None]
        return max((-bound for bound in bounds if bound is not None), default=None)


def simulated_gate(gate: GateRules, *, metrics: Mapping[str, str]) -> tuple[GateRules, dict[str, str]]:
    """A gate without the rules that simulated runs cannot be held to, and why each is left out.

    Args:
        gate: The gate.
        metrics: Names of the metrics, and other spellings of them, by name.
    """
    reasons = {rule.name: reason for rule in gate.rules if (reason := _obstacle(rule, metrics)) is not None}
    return gate._replace(rules=tuple(rule for rule in gate.rules if rule.name not in reasons)), reasons


def _obstacle(rule: Rule, metrics: Mapping[str, str]) -> str | None:
    if rule.quantity in _NOT_SIMULATED:
        return "stored scores do not hold what it looks at"
    if rule.on in CORRECTED:
        return "it looks at numbers that labels of people correct"
    if rule.metric is not None and rule.metric not in metrics:
        return "the stored runs have no such metric"
    return None


class TrialSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a gate is tried.

    Attributes:
        draws: How many comparisons are simulated for each number.
        drops: The drops that it is tried with.
        cohort: The cohort that drops by itself; None for the smallest of at least five samples.
        flip_rate: The share of samples that flip from run to run, in place of runs that show it.
        sd: The standard deviation of differences of scores instead.
        pass_rate: The share of samples that pass, where no run is stored.
        confidence: The level of the intervals.
        seed: The seed of what is drawn.

    Raises:
        ConfigurationError: One is outside of its limits, or two exclude each other.
    """

    draws: Annotated[int, Meta(ge=1)] = 100
    drops: Sequence[Share] = DROPS
    cohort: str | None = None
    flip_rate: Share | None = None
    sd: Annotated[float, Meta(gt=0)] | None = None
    pass_rate: Share | None = None
    confidence: OpenShare = 0.95
    seed: Seed = 0

    def __post_init__(self) -> None:
        decode_struct(self, error=ConfigurationError)
        if self.flip_rate is not None and self.sd is not None:
            raise ConfigurationError("`flip_rate` is for pass or fail, `sd` for scores. Give one of them.")
        if self.pass_rate is not None and self.flip_rate is None:
            raise ConfigurationError("`pass_rate` needs `flip_rate`: how many samples flip from run to run.")

    @property
    def states_noise(self) -> bool:
        """Whether the noise is stated, and not measured."""
        return self.flip_rate is not None or self.sd is not None


def audit_gate_rates(
    gate: GateRules,
    pool: ExecutionPool,
    *,
    metrics: Mapping[str, str],
    settings: TrialSettings,
) -> dict[str, Any]:
    """The numbers of a gate audit, by the name of their field in `GateAudit`.

    Args:
        gate: The gate.
        pool: What runs are simulated from.
        metrics: Names of the metrics, and other spellings of them, by name.
        settings: How it is tried.

    Raises:
        ConfigurationError: There is no such cohort.
    """
    kept, left_out = simulated_gate(gate, metrics=metrics)
    trial = GateTrial(kept, pool, metrics=metrics, seed=settings.seed)
    scopes = [(None, None), *_cohort_scope(pool, settings.cohort)]

    def try_drop(drop: float, scope: NDArray[np.int64] | None = None) -> Iterator[TrialResult]:
        for number in range(settings.draws):
            # Every drop is tried on the same pairs, and a larger one breaks the samples of a smaller one too.
            rng = np.random.default_rng([settings.seed, number])
            before, after = pool.draw_pair(rng)
            if drop:
                after = pool.break_samples(rng, after, drop=drop, scope=scope)
            yield trial.decide(before, after)

    unchanged = list(try_drop(0.0))
    drops = []
    for cohort, scope in scopes:
        n = pool.samples if scope is None else len(scope)
        for drop in settings.drops:
            try:
                found, reason = list(try_drop(drop, scope)), None
            except ConfigurationError as error:
                found, reason = [], str(error)
            outcomes = None if reason else gate_outcomes(_decided(found), confidence=settings.confidence)
            drops.append(DropOutcomes(drop=drop, cohort=cohort, samples=n, outcomes=outcomes, reason=reason))
    return {
        "pass_rate": float(pool.passed.mean()),
        "flip_rate": pool.flip_rate,
        "mode": gate.decision,
        "unchanged": gate_outcomes(_decided(unchanged), confidence=settings.confidence),
        "drops": tuple(drops),
        "rules": tuple(_rule_alarms(unchanged, confidence=settings.confidence)),
        "margin": _certified_margin(gate, unchanged, confidence=settings.confidence),
        "left_out": left_out,
    }


def _decided(results: Sequence[TrialResult]) -> list[str]:
    return [result.decision.decision for result in results]


def _cohort_scope(pool: ExecutionPool, name: str | None) -> list[tuple[str, NDArray[np.int64]]]:
    """The cohort that drops by itself, if there is one that is not the whole dataset."""
    cohorts = {cohort_label(tag): places for tag, places in pool.reference.marks.cohorts}
    if name is not None:
        if name not in cohorts:
            raise ConfigurationError(f"The stored runs have no cohort `{name}`. {did_you_mean(name, cohorts)}")
        return [(name, cohorts[name])]
    sizes = {label: len(places) for label, places in cohorts.items() if _FEWEST <= len(places) < pool.samples}
    smallest = min(sizes, key=lambda label: (sizes[label], label), default=None)
    return [] if smallest is None else [(smallest, cohorts[smallest])]


def gate_outcomes(decisions: Iterable[str], *, confidence: float) -> GateOutcomes:
    """How often a gate decided in each way.

    Args:
        decisions: What it decided; at least one.
        confidence: The level of the intervals.
    """
    counts = Counter(map(str, decisions))
    failed, unclear, passed = (
        simulated_share(counts[word], counts.total(), confidence=confidence)
        for word in ("fail", "inconclusive", "pass")
    )
    return GateOutcomes(failed=failed, inconclusive=unclear, passed=passed)


def simulated_share(count: int, n: int, *, confidence: float) -> SimulatedShare:
    """A share of simulated comparisons with Wilson's interval.

    Args:
        count: How many.
        n: Of how many; at least one.
        confidence: The level of the interval.
    """
    interval = wilson(count, n, confidence=confidence).interval
    low, high = interval_ends(interval) or (0.0, 1.0)
    return SimulatedShare(count=count, n=n, rate=count / n, low=low, high=high)


def _rule_alarms(results: Sequence[TrialResult], *, confidence: float) -> Iterator[RuleAlarms]:
    failed: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    unclear: Counter[str] = Counter()
    for result in results:
        checks = result.decision.checks
        names = [check.name for check in checks if check.status == "fail"]
        failed.update(names)
        alone.update(names if len(names) == 1 else ())
        unclear.update(check.name for check in checks if check.status == "inconclusive")
    n = len(results)
    for name in sorted({*failed, *unclear}, key=lambda each: (-failed[each], -unclear[each], each)):
        yield RuleAlarms(
            name=name,
            failed=simulated_share(failed[name], n, confidence=confidence),
            alone=alone[name],
            inconclusive=simulated_share(unclear[name], n, confidence=confidence),
        )


def _certified_margin(gate: GateRules, results: Sequence[TrialResult], *, confidence: float) -> CertifiedMargin:
    rules = gate.baseline
    if rules is None or rules.margin is None:
        return CertifiedMargin(margin=None, reason="The gate has no `baseline.margin`.")
    margins = np.array([result.margin for result in results if result.margin is not None])
    if not len(margins):
        return CertifiedMargin(margin=rules.margin, reason="No number that the margin holds for is in the runs.")
    interval = wilson(POWER * len(margins), len(margins), confidence=confidence).interval
    shares = (POWER, *(interval_ends(interval) or (0.0, 1.0)))
    value, low, high = (float(np.quantile(margins, share)) for share in shares)
    return CertifiedMargin(margin=rules.margin, value=value, low=low, high=high, n=len(margins))
