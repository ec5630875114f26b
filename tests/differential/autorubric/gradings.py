"""A votes file as autorubric's dataset and results; runs in the environment of autorubric.

Votes become results of its own grader: stand-ins for failures, aggregation, scores and judge scores are computed by
autorubric, not here. A cell that no judge was asked about, repeats, annotations, recorded facts, penalties, `order`,
`fatal` and `check` have no counterpart there and must not occur.

Import autorubric through this module: it sets first what keeps litellm from asking the network at import.
"""

from __future__ import annotations

import asyncio
import logging
import os
from datetime import UTC, datetime

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import autorubric
import httpx
import openai
from autorubric.graders import criterion_grader as grading
from autorubric.types import CriterionReport, EvaluationReport, MultiChoiceVerdict

logging.disable(logging.CRITICAL)
compute_metrics = autorubric.compute_metrics

FAILURES = {
    "infrastructure": openai.APIConnectionError(message="down", request=httpx.Request("POST", "http://localhost")),
    "parse": ValueError("no JSON object"),
    "unknown": RuntimeError("odd"),
}
SETTINGS = {
    "aggregation": "majority",
    "ordinal_aggregation": "mean",
    "nominal_aggregation": "mode",
    "abstention": "skip",
    "partial_credit": 0.5,
    "normalize": True,
}


class TruthAsGraded(autorubric.RubricDataset):
    """Scores the ground truth by the strategy and normalisation of the grader, which autorubric itself does not."""

    settings = SETTINGS

    def compute_weighted_score(self, verdicts, normalize=True, rubric=None):
        return score_of_truth(rubric, verdicts, self.settings)


def score_of_truth(rubric, verdicts, settings):
    return rubric.compute_score(
        verdicts,
        normalize=settings["normalize"],
        cannot_assess_strategy=autorubric.CannotAssessStrategy(settings["abstention"]),
        partial_credit=settings["partial_credit"],
    )


def rubric_of(value):
    criteria = []
    for number, entry in enumerate(value["criteria"], 1):
        options = entry.get("options")
        criteria.append(
            autorubric.Criterion(
                name=entry.get("name", f"Criterion {number}"),
                requirement=entry["requirement"],
                weight=entry.get("weight", 10.0),
                options=options
                and [
                    autorubric.CriterionOption(label=o["label"], value=o.get("value", 0.0), na=o.get("na", False))
                    for o in options
                ],
                scale_type=entry.get("scale_type", "ordinal"),
                aggregation=entry.get("aggregation"),
            )
        )
    return autorubric.Rubric(criteria)


def grader_of(votes, settings):
    model = autorubric.LLMConfig(model="openai/none", api_key="none")
    judges = [grading.JudgeSpec(model, judge["id"], judge.get("weight", 1.0)) for judge in votes["judges"]]
    return grading.CriterionGrader(
        judges=judges,
        aggregation=settings["aggregation"],
        ordinal_aggregation=settings["ordinal_aggregation"],
        nominal_aggregation=settings["nominal_aggregation"],
        normalize=settings["normalize"],
        cannot_assess_config=autorubric.CannotAssessConfig(
            strategy=autorubric.CannotAssessStrategy(settings["abstention"]),
            partial_credit=settings["partial_credit"],
        ),
    )


def judged(criterion, cell, judge):
    """One judge's result on one criterion; None where the judge was not asked."""
    if cell is None:
        return None
    if isinstance(cell, dict):
        if "failure" in cell:
            return grading._failed_judgment_result(criterion, judge, FAILURES[cell["failure"]])
        cell = cell["verdict"]
    if criterion.is_binary:
        outcome = {"verdict": autorubric.CriterionVerdict(cell)}
    else:
        place = criterion.na_option_index if cell == "CANNOT_ASSESS" else criterion.find_option_by_label(cell)
        option = criterion.options[place]
        outcome = {
            "multi_choice_verdict": MultiChoiceVerdict(
                selected_index=place, selected_label=option.label, value=option.value, na=option.na
            )
        }
    fields = {name: getattr(criterion, name) for name in autorubric.Criterion.model_fields}
    return grading.CriterionResult(report=CriterionReport(**fields, **outcome, reason=""))


async def report_of(grader, judges, effective, item, normalize):
    results = [
        grading.JudgeCriterionResults(
            judge_id=judge["id"],
            weight=judge.get("weight", 1.0),
            criterion_results=[
                judged(criterion, cell, judge["id"])
                for criterion, cell in zip(
                    effective, item["votes"].get(judge["id"], [None] * len(effective)), strict=True
                )
            ],
        )
        for judge in judges
    ]
    return await grader.aggregate(results, normalize=normalize)


def truth_of(criteria, entries):
    """Ground truth in its words: a verdict, or the label of an option, the first NA option for CANNOT_ASSESS."""
    if entries is None:
        return None
    return [
        autorubric.CriterionVerdict(entry)
        if criterion.is_binary
        else criterion.options[criterion.na_option_index].label
        if entry == "CANNOT_ASSESS"
        else entry
        for criterion, entry in zip(criteria, entries, strict=True)
    ]


async def _results(votes, rubrics, settings):
    grader = grader_of(votes, settings)
    effective = {key: [grader._effective_criterion(c) for c in rubric.rubric] for key, rubric in rubrics.items()}
    items, results = [], []
    for place, item in enumerate(votes["items"]):
        key = item.get("rubric")
        data = autorubric.DataItem(
            submission="s",
            description=item["id"],
            ground_truth=truth_of(rubrics[key].rubric, item.get("ground_truth")),
            rubric=None if key is None else rubrics[key],
        )
        error = item.get("error")
        if error is None:
            report = await report_of(grader, votes["judges"], effective[key], item, settings["normalize"])
        else:
            report = EvaluationReport(score=None, error=error)
        items.append(data)
        results.append(autorubric.ItemResult(place, data, report, 0.0, error))
    return items, results


def inputs(votes, *, truth_as_graded=True):
    """Dataset, results and settings for `autorubric.compute_metrics`; items are in the order of the file."""
    settings = {**SETTINGS, **votes.get("grading", {})}
    single = votes.get("rubric")
    rubrics = {key: rubric_of(value) for key, value in votes.get("rubrics", {}).items()}
    if single is not None:
        rubrics[None] = rubric_of(single)
    items, results = asyncio.run(_results(votes, rubrics, settings))
    kind = TruthAsGraded if truth_as_graded else autorubric.RubricDataset
    dataset = kind(prompt="p", rubric=rubrics.get(None), items=items)
    if truth_as_graded:
        dataset.settings = settings
    began = datetime(2025, 1, 1, tzinfo=UTC)
    failed = sum(result.error is not None for result in results)
    result = autorubric.EvalResult(
        item_results=results,
        total_items=len(results),
        successful_items=len(results) - failed,
        failed_items=failed,
        total_token_usage=None,
        total_completion_cost=None,
        timing_stats=autorubric.EvalTimingStats.from_durations([0.0] * len(results), 1.0),
        started_at=began,
        completed_at=began,
    )
    return dataset, result, settings
