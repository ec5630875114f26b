"""What alignment says beyond agreement, where the votes allow it."""

from __future__ import annotations

from typing import Any

from deemster.alignment.calibration import calibration
from deemster.alignment.consistency import consistency
from deemster.alignment.corrected import corrected
from deemster.alignment.difficulty import items
from deemster.alignment.human import human
from deemster.alignment.models import BootstrapResults
from deemster.alignment.pairs import Classes
from deemster.alignment.panel import Panel


def beyond(
    whole: Panel, classes: tuple[Classes, ...], *, confidence: float, told: BootstrapResults | None
) -> dict[str, Any]:
    """The additions to a result by field name, each None where it does not apply.

    Args:
        whole: The panel.
        classes: The classes of each column.
        confidence: The level of the intervals.
        told: How intervals are drawn; None for a result without.
    """
    replicates, seed = (0, 0) if told is None else (told.n_bootstrap, told.seed)
    return {
        "human": human(whole, classes, replicates=replicates, seed=seed, confidence=confidence),
        "consistency": consistency(whole, classes),
        "calibration": calibration(whole, classes, confidence=confidence),
        "corrected": corrected(whole, classes, confidence=confidence),
        "items": items(whole, classes),
    }
