"""A slow grader through autorubric's evaluate, which resumes by itself: prints how many passed; see bench/resume.py.

Usage: .envs/autorubric/bin/python bench/peers/resume_autorubric.py CASES.json AT_ONCE begin|resume
"""

import asyncio
import json
import logging
import os
import sys
from pathlib import Path

# Otherwise litellm fetches its price table from the network when imported.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

from autorubric import Criterion, DataItem, Rubric, RubricDataset
from autorubric.eval import evaluate
from autorubric.graders.base import Grader
from autorubric.types import EvaluationReport


def write_finished(name):
    with Path(os.environ["FINISHED"]).open("a") as file:
        file.write(f"{name}\n")


class SlowExact(Grader):
    """1 if the output equals the reference, else 0, after some time."""

    async def judge(self, to_grade, rubric, query=None, reference_submission=None):  # noqa: ARG002 - its signature
        case = json.loads(query)
        await asyncio.sleep(case["seconds"])
        write_finished(case["id"])
        return float(to_grade == reference_submission)

    async def aggregate(self, judge_results, *, normalize=True):  # noqa: ARG002 - its signature
        return EvaluationReport(score=judge_results, raw_score=judge_results)


def main():
    logging.disable(logging.CRITICAL)
    path, at_once, _ = sys.argv[1:]
    cases = json.loads(Path(path).read_text())
    rubric = Rubric([Criterion(name="exact", weight=1.0, requirement="It equals the reference.")])
    items = [
        DataItem(
            submission=case["output"],
            description=case["id"],
            prompt=json.dumps(case),
            reference_submission=case["expected"],
        )
        for case in cases
    ]
    dataset = RubricDataset(rubric=rubric, items=items, name="slow")
    work = evaluate(
        dataset, SlowExact(), show_progress=False, max_concurrent_items=int(at_once), experiment_name="slow"
    )
    print(sum(one.report.score == 1.0 for one in asyncio.run(work).item_results))


main()
