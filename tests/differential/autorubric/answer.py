"""Answers for the differential tests: a request in each line of standard input, its answer in a line of output.

Request: `{"votes": a votes file, "calls": [arguments of compute_metrics], "truth_as_graded": bool}`. A call may hold
`draws`: the positions of the items of each replicate, for both of autorubric's resampling axes, in place of its own.
Answer: `{"items": [what was derived from the votes], "results": [the fields of MetricsResult, or {"error": ...}]}`.

Usage: .envs/autorubric/bin/python tests/differential/autorubric/answer.py
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from unittest import mock

import numpy as np
from gradings import compute_metrics, inputs, score_of_truth

warnings.simplefilter("ignore")


class Drawn:
    """A generator that gives each replicate's positions twice: for the verdicts, then for the scores."""

    def __init__(self, draws):
        self._draws = iter([draw for draw in draws for _ in range(2)])

    def choice(self, n, size, replace):
        draw = np.array(next(self._draws))
        if not replace or size != len(draw) or draw.max() >= n:
            raise ValueError(f"{len(draw)} positions were given where {size} of {n} are drawn")
        return draw


def called(result, dataset, arguments):
    arguments = dict(arguments)
    draws = arguments.pop("draws", None)
    try:
        if draws is None:
            return compute_metrics(result, dataset, **arguments).model_dump(mode="json")
        with mock.patch.object(np.random, "default_rng", return_value=Drawn(draws)):
            return compute_metrics(result, dataset, bootstrap=True, n_bootstrap=len(draws), **arguments).model_dump()
    except ValueError as error:
        return {"error": str(error)}


def true_score(rubric, truth, settings):
    """The score of the ground truth; None where there is none, or a label that the rubric does not have."""
    try:
        return None if truth is None else score_of_truth(rubric, truth, settings)
    except ValueError:
        return None


def derived(item, result, dataset, place, settings):
    """What autorubric made of the votes on one item."""
    report = result.report
    truth = result.item.ground_truth
    told = {
        "id": item["id"],
        "true_score": true_score(dataset.get_item_rubric(place), truth, settings),
        "score": report.score,
        "raw_score": report.raw_score,
        "judge_scores": getattr(report, "judge_scores", {}),
        "final": None,
    }
    if report.report is not None:
        told["final"] = [
            entry.final_verdict.value
            if entry.final_verdict is not None
            else entry.final_multi_choice_verdict.selected_label
            for entry in report.report
        ]
        told["failed"] = [entry.is_error for entry in report.report]
    return told


def undefined(value):
    """The value with null for NaN, which JSON cannot hold, and a mark that it was there."""
    if isinstance(value, dict):
        return {key: undefined(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [undefined(entry) for entry in value]
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def main():
    for line in sys.stdin:
        request = json.loads(line)
        votes = request["votes"]
        dataset, result, settings = inputs(votes, truth_as_graded=request.get("truth_as_graded", True))
        answer = {
            "items": [
                derived(item, one, dataset, place, settings)
                for place, (item, one) in enumerate(zip(votes["items"], result.item_results, strict=True))
            ],
            "results": [called(result, dataset, arguments) for arguments in request["calls"]],
        }
        sys.stdout.write(json.dumps(undefined(answer), allow_nan=False) + "\n")
        sys.stdout.flush()


main()
