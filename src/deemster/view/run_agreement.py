"""How the judges of a run agree with people: labels of the viewer, or the labels of a graded dataset."""

from __future__ import annotations

from typing import Any

import msgspec

from deemster.agreement import BootstrapSettings, MetricsResult, compute_metrics
from deemster.agreement.inter_judge_agreement import judge_agreement
from deemster.calibration.people_labels import labelled_votes
from deemster.errors import InputError
from deemster.view.opened_run import OpenedRun


def agreement_page(run: OpenedRun) -> dict[str, Any]:
    """The agreement of a run's judges with people, as `deemster agreement RUN` computes it.

    Args:
        run: The run.

    Raises:
        StoreError: The store fails.
    """
    labels = run.store.labels(run.row.id)
    try:
        votes = labelled_votes(run.store, run.row)
        # The defaults, so that the intervals are those of `deemster agreement`.
        bootstrap = BootstrapSettings()
        result = compute_metrics(votes, per_judge=len(votes.judges) > 1, bootstrap=bootstrap)
    except InputError as error:
        return {"available": False, "because": " ".join(issue.message for issue in error.issues)}
    return {
        "available": True,
        "source": "labels" if labels else "ground truth",
        "labels": len(labels),
        "n_bootstrap": bootstrap.replicates,
        "next_steps": _next_steps(result),
        "result": msgspec.json.decode(result.to_json()),
        "judge_pairs": msgspec.to_builtins(judge_agreement(votes)),
    }


def _next_steps(result: MetricsResult) -> list[str]:
    """What would make the answer a better one, a sentence each."""
    lines = (line for section in result.sections() if section.key == "next-steps" for line in section.lines)
    return ["".join(line).removeprefix("- ") for line in lines]
