"""The `gate` section of a suite: its declared shape, and the rules it is read into."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from deemster.errors import ConfigurationError, Issue, plural
from deemster.formats import NO_DOCUMENT
from deemster.formats.json_values import Path, pointer
from deemster.formats.schema_validation import Located, NonBlank, Share, shape_issues

EVERY = "*"
_MAX_UNSCORED = "max_unscored"
_SHARE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*%\s*")
_SAMPLES = re.compile(r"\s*([0-9]+)\s+samples?\s*")
_On: TypeAlias = Literal["point", "lower", "corrected", "corrected-lower"]
# Rules that look at the number corrected for the judge's errors.
CORRECTED = ("corrected", "corrected-lower")
_Bound: TypeAlias = Share | UnsetType
_Limit: TypeAlias = Annotated[float, Meta(ge=0)] | UnsetType
_Count: TypeAlias = Annotated[int, Meta(ge=0)]
# Rules about several repetitions of a sample together.
REPEATED = ("pass_at_k", "pass_hat_k")
# The run that a gate compares with, where it does not say.
BASELINE = "baseline"
CONFIDENCE = 0.95


class MetricRules(msgspec.Struct, forbid_unknown_fields=True):
    """The rules of a metric."""

    min_pass_rate: _Bound = UNSET
    min_mean: _Bound = UNSET
    max_mean: _Bound = UNSET
    on: _On = "point"


class CohortRules(msgspec.Struct, forbid_unknown_fields=True):
    """The rules of a cohort."""

    min_pass_rate: _Bound = UNSET
    min_macro_f1: _Bound = UNSET
    min_aggregate_success: _Bound = UNSET
    min_aggregate_score: _Bound = UNSET
    metrics: dict[str, MetricRules] = {}
    min_samples: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    on: _On = "point"


class BudgetRules(msgspec.Struct, forbid_unknown_fields=True):
    """The rules of a budget."""

    max_cost_usd: _Limit = UNSET
    max_p95_latency_s: _Limit = UNSET


class BaselineSection(msgspec.Struct, forbid_unknown_fields=True):
    """The rules about a baseline."""

    compare: NonBlank = BASELINE
    cohorts: str | list[str] | UnsetType = UNSET
    cluster: NonBlank | UnsetType = UNSET
    margin: Annotated[float, Meta(ge=0, lt=1, title="a drop of at least 0 and below 1")] | UnsetType = UNSET
    confidence: Annotated[float, Meta(gt=0.5, lt=1, title="a level above 0.5 and below 1")] = CONFIDENCE
    max_newly_failing: _Count | UnsetType = UNSET
    max_single_drop: _Bound = UNSET
    max_removed: _Count = 0
    judge_drift: Literal["inconclusive", "warn"] = "inconclusive"
    missing: Literal["warn", "fail"] = "warn"


class AdversarialRules(msgspec.Struct, forbid_unknown_fields=True):
    """The rules about attacks. `baseline` holds for `deemster attack`, in place of the suite's own."""

    max_critical_successes: _Count | UnsetType = UNSET
    max_attack_success: _Bound = UNSET
    baseline: BaselineSection | UnsetType = UNSET


class Gate(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The gate: the rules by which a run passes or fails."""

    min_macro_f1: _Bound = UNSET
    min_pass_rate: _Bound = UNSET
    min_pass_at_k: _Bound = UNSET
    min_pass_hat_k: _Bound = UNSET
    k: Annotated[int, Meta(ge=2)] | UnsetType = UNSET
    min_aggregate_success: _Bound = UNSET
    min_aggregate_score: _Bound = UNSET
    metrics: dict[str, MetricRules] = {}
    cohorts: dict[str, CohortRules] = {}
    max_unscored: int | str | UnsetType = UNSET
    budget: BudgetRules = msgspec.field(default_factory=BudgetRules)
    baseline: BaselineSection | UnsetType = UNSET
    adversarial: AdversarialRules = msgspec.field(default_factory=AdversarialRules)
    decision: Literal["two-way", "three-way"] = "two-way"
    on: _On = "point"
    variants: Annotated[list[NonBlank], Meta(min_length=1)] | UnsetType = UNSET


class Rule(NamedTuple):
    """One bound on one number.

    Attributes:
        name: Its path in the suite, as reports show it.
        quantity: What it looks at.
        bound: The bound.
        where: Where it stands, for messages.
        metric: The metric it is about, if any.
        cohort: The cohort it is about, `*` for each, if any.
        upper: Whether the bound is a maximum.
        on: `point` compares the estimate, `lower` the unfavourable end of its interval; `corrected` and
            `corrected-lower` the same of the number corrected for the judge's errors.
        share: Whether an unscored bound is a share of the marks.
        k: How many repetitions count together, in pass@k and pass^k; None for all.
    """

    name: str
    quantity: str
    bound: float
    where: str
    metric: str | None = None
    cohort: str | None = None
    upper: bool = False
    on: _On = "point"
    share: bool = False
    k: int | None = None


class BaselineRules(NamedTuple):
    """The rules about the difference to a baseline.

    Attributes:
        compare: The run to compare with: `baseline`, `previous`, a label, a run id, a report file or a run file.
        where: Where the rules stand, for messages.
        margin: The drop that would still be acceptable; None where none is ruled on.
        confidence: The one-sided confidence of the margin.
        cohorts: The cohorts that the margin holds for beside the run, `*` for each.
        cluster: The metadata key whose equal values make one unit; None where each sample is one.
        max_newly_failing: How many samples may newly fail; None for any number.
        max_single_drop: How much any one sample may lose of a score; None for any.
        max_removed: How many samples of the baseline may be gone.
        judge_drift: What it means that a judge marks equal outputs otherwise than before.
        missing: What a missing baseline means.
    """

    compare: str = BASELINE
    where: str = ""
    margin: float | None = None
    confidence: float = CONFIDENCE
    cohorts: tuple[str, ...] = ()
    cluster: str | None = None
    max_newly_failing: int | None = None
    max_single_drop: float | None = None
    max_removed: int = 0
    judge_drift: Literal["inconclusive", "warn"] = "inconclusive"
    missing: Literal["warn", "fail"] = "warn"


class Allowance(NamedTuple):
    """How many marks may stay unscored, or verdicts may fail: a count, a share of all, or a count of samples."""

    bound: float
    share: bool
    samples: bool = False

    def __str__(self) -> str:
        if self.samples:
            return plural(int(self.bound), "sample")
        return f"{self.bound:.4g}" if not self.share else f"{self.bound * 100:.4g}%"

    def exceeded(self, unscored: int, marks: int, *, samples: int = 0) -> bool:
        """Whether so many unscored marks are too many, or the samples that have one."""
        if self.samples:
            return samples > self.bound
        return (unscored / marks if self.share else unscored) > self.bound


NONE_UNSCORED = Allowance(0.0, share=False)


class GateRules(NamedTuple):
    """The rules of a gate.

    Attributes:
        rules: In the order of the suite.
        min_samples: Per cohort (`*` for each), the samples it takes to be gated, and where that stands.
        decision: Whether inconclusive is an answer of its own.
        allowance: The unscored marks allowed, where the gate says so.
        idle: Metrics that the suite has and this run was told to leave out; rules about them are skipped.
        baseline: The rules about the difference to a baseline; None where there are none.
    """

    rules: tuple[Rule, ...] = ()
    min_samples: Mapping[str, tuple[int, str]] = {}
    decision: Literal["two-way", "three-way"] = "two-way"
    allowance: Allowance | None = None
    idle: frozenset[str] = frozenset()
    baseline: BaselineRules | None = None

    def least_samples(self, cohort: str) -> int:
        """How many samples a cohort needs to be gated."""
        least, _ = self.min_samples.get(cohort, self.min_samples.get(EVERY, (0, "")))
        return least

    def with_cluster(self, key: str | None) -> GateRules:
        """The gate, whose margins look at clusters of this metadata key where it names none itself."""
        if self.baseline is None or self.baseline.cluster is not None or key is None:
            return self
        return self._replace(baseline=self.baseline._replace(cluster=key))


def with_allowance(gate: GateRules, allowance: Allowance) -> GateRules:
    """A gate that allows so many unscored marks, whatever it said before."""
    rules = tuple(_unscored_rule(allowance, rule.where) if rule.name == _MAX_UNSCORED else rule for rule in gate.rules)
    return gate._replace(rules=rules, allowance=allowance)


def _unscored_rule(allowance: Allowance, where: str) -> Rule:
    """The rule that the unscored marks are within the allowance."""
    quantity = "samples_unscored" if allowance.samples else "unscored"
    return Rule(_MAX_UNSCORED, quantity, allowance.bound, where, upper=True, share=allowance.share)


def read_allowance(value: Any) -> Allowance:
    """Read an allowance: a whole number of marks, a share such as `2%`, or samples such as `2 samples`.

    Raises:
        ConfigurationError: It is none of these.

    >>> read_allowance("2%")
    Allowance(bound=0.02, share=True, samples=False)
    """
    if isinstance(value, str) and (share := _SHARE.fullmatch(value)) and float(share[1]) <= 100:
        # Decimal, since 5.6 / 100 in binary lies below 7 / 125, and exactly the share allowed is not too much.
        return Allowance(float(Decimal(share[1]) / 100), share=True)
    if isinstance(value, str) and (samples := _SAMPLES.fullmatch(value)):
        return Allowance(float(samples[1]), share=False, samples=True)
    if isinstance(value, str) and value.strip().isdecimal():
        value = int(value)
    if type(value) is int and value >= 0:
        return Allowance(float(value), share=False)
    raise ConfigurationError(
        f"The unscored allowance is a count such as 3, a share such as 2%, or `2 samples`, not {value!r}."
    )


def read_gate(value: Any, *, document: Located = NO_DOCUMENT, of_run: bool = False) -> GateRules:
    """Read a gate.

    Args:
        value: The `gate` section of a suite as plain data, or a ``Gate``.
        document: The suite, for the lines of issues and rules.
        of_run: Whether a run is held to it, which has no variants.

    Raises:
        ConfigurationError: Something in it cannot be used; all issues are listed.
    """
    if isinstance(value, Gate):
        value = msgspec.to_builtins(value)
    issues = shape_issues(value, Gate, document=document, path=("gate",))
    if not issues and of_run and "variants" in value:
        issues = [Issue("`gate.variants` is for a suite that has `variants`.", document.where(("gate", "variants")))]
    if issues:
        raise ConfigurationError(issues)
    reader = _Reader(document, k=value.get("k"))
    reader.add_rules(value, (), on=value.get("on", "point"))
    allowance = reader.allowance(value[_MAX_UNSCORED]) if _MAX_UNSCORED in value else None
    baseline = reader.baseline_rules(value["baseline"]) if "baseline" in value else None
    decision = value.get("decision", "two-way")
    return GateRules(tuple(reader.rules), reader.min_samples, decision, allowance, baseline=baseline)


class _Reader:
    """Collects the rules of a section that has the declared shape, in the order of the file."""

    def __init__(self, document: Located, *, k: int | None) -> None:
        self._document = document
        self._k = k
        self.rules: list[Rule] = []
        self.min_samples: dict[str, tuple[int, str]] = {}

    def add_rules(
        self, section: Mapping[str, Any], path: Path, *, on: _On, metric: str | None = None, cohort: str | None = None
    ) -> None:
        """Add the rules of a map, and of the maps inside it."""
        for key, entry in section.items():
            here = (*path, key)
            if key == "metrics":
                for name, rules in entry.items():
                    self.add_rules(rules, (*here, name), on=rules.get("on", "point"), metric=name, cohort=cohort)
            elif key == "cohorts":
                for name, rules in entry.items():
                    self.add_rules(rules, (*here, name), on=rules.get("on", "point"), cohort=name)
            elif key in ("budget", "adversarial"):
                self.add_rules(entry, here, on="point")
            elif key == "min_samples":
                self.min_samples[str(cohort)] = (entry, self._where(here))
            elif key == _MAX_UNSCORED:
                self.rules.append(_unscored_rule(self.allowance(entry), self._where(here)))
            elif key not in ("variants", "on", "decision", "baseline", "k"):
                name = ".".join(map(str, here))
                upper = key.startswith("max_")
                k = self._k if key[4:] in REPEATED else None
                where = self._where(here)
                self.rules.append(Rule(name, key[4:], float(entry), where, metric, cohort, upper, on, k=k))

    def baseline_rules(self, section: Mapping[str, Any]) -> BaselineRules:
        """The rules about the difference to a baseline."""
        cohorts = section.get("cohorts", ())
        names = (cohorts,) if isinstance(cohorts, str) else tuple(cohorts)
        return BaselineRules(**{**section, "cohorts": names, "where": self._where(("baseline",))})

    def allowance(self, value: Any) -> Allowance:
        try:
            return read_allowance(value)
        except ConfigurationError as error:
            where = self._document.where(("gate", _MAX_UNSCORED))
            raise ConfigurationError([Issue(issue.message, where) for issue in error.issues]) from None

    def _where(self, path: Path) -> str:
        """Where a rule stands, for messages and reports."""
        whole = ("gate", *path)
        return self._document.where(whole) or pointer(whole)
