"""An evaluation, resolved and checked: its plan, its gate, and everything else that was said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from deemster.datasets.human_labels import SuiteCalibration
from deemster.engine.model_access import ModelAccess
from deemster.engine.run_plan import Plan
from deemster.evaluation.suite import SEED
from deemster.gate import NONE_UNSCORED, Allowance, GateRules
from deemster.report.report_settings import ReportSettings
from deemster.results import Aggregator
from deemster.results.repetition_precision import DELTA
from deemster.store.run_facts import RunKind


class Evaluation(NamedTuple):
    """A plan and the other settings of a run, resolved and checked. It is complete when it exists, and never changes.

    Attributes:
        plan: What to run.
        gate: The rules it is held to; None for no gate.
        suite: The suite's name.
        seed: For everything that draws.
        delta: The difference that repeated runs should be able to show.
        strict: Whether something absent in a sample is an error.
        allowance: How many marks may stay unscored before the run counts as incomplete.
        redact_warnings: Whether warnings leave out what a sample says.
        access: How its metrics may ask models.
        aggregator: Makes one result of each execution's marks; None for none.
        origin: The suite file and what it says, as plain data; None where there is none.
        label: What the user calls the run.
        calibration: Labels of people that its numbers are corrected by; None for none.
        resumes: The id of the stored run that it resumes, whose order its samples and metrics have; None for a new run.
        kind: What kind of run it is.
        facts: What a store keeps of it beside.
        experiment: The experiment that its run belongs to; None for a run of its own.
    """

    plan: Plan
    gate: GateRules | None = None
    suite: str | None = None
    seed: int = SEED
    delta: float = DELTA
    strict: bool = False
    allowance: Allowance = NONE_UNSCORED
    redact_warnings: bool = False
    access: ModelAccess = ModelAccess()
    aggregator: Aggregator | None = None
    origin: Mapping[str, Any] | None = None
    label: str | None = None
    calibration: SuiteCalibration | None = None
    resumes: str | None = None
    kind: RunKind = "run"
    facts: Mapping[str, Any] = {}
    experiment: str | None = None

    @property
    def report_settings(self) -> ReportSettings:
        """How its report is made of its marks."""
        return ReportSettings(
            self.gate, self.allowance, self.delta, self.aggregator, self.plan.varied, calibration=self.calibration
        )
