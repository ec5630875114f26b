"""What an evaluation by a program rarely says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from deemster.models.clock import Clock
from deemster.results.repetition_precision import DELTA


class EvaluationSettings(NamedTuple):
    """What is rarely said of an evaluation.

    Attributes:
        thresholds: Pass marks that replace the metrics' own, by metric name.
        delta: The difference that repeated runs should be able to show.
        strict: Whether something absent in a sample is an error instead of a warning.
        max_unscored: Marks that may stay unscored before the run counts as incomplete, whatever the gate says: a count,
            a share like `2%`, or samples like `2 samples`. Without it and the gate's, 0.
        only_answered: Whether samples without a saved output are left out; the run is then marked as a part.
        calibration: The file of `deemster agreement --to FILE.json`, by whose labels pass-rates are corrected.
        confirm: How often samples that newly fail against the gate's baseline are run again: confirmed, or only flaky?
        on: Runs it on the workers of a Ray cluster: an address as `ray.init` takes it, or `local-cluster`, which starts
            one on this machine.
        clock: The time; the machine's own unless given.
    """

    thresholds: Mapping[str, float] | None = None
    delta: float = DELTA
    strict: bool = False
    max_unscored: int | str | None = None
    only_answered: bool = False
    calibration: str | Path | None = None
    confirm: int = 0
    on: str | None = None
    clock: Clock | None = None


USUAL_SETTINGS = EvaluationSettings()
