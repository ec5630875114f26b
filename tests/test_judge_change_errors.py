"""The answers about simulated judges: the right one in nine of ten datasets, *interchangeable* seldom at the margin."""

import sys
from pathlib import Path

import pytest

BENCH = str(Path(__file__).parents[1] / "bench")
sys.path.insert(0, BENCH)
import judge_change as simulation  # noqa: E402 - a bench is in no package

# Other libraries look for modules of their own that have the name of a bench.
sys.path.remove(BENCH)

DATASETS = 30


@pytest.mark.parametrize("judge", simulation.JUDGES[:4], ids=lambda judge: judge.name)
def test_right_answer_at_300_outputs(judge):
    answers, _, _ = simulation.answers(judge, 300, DATASETS)
    assert sum(answers[answer] for answer in judge.right) >= 0.9 * DATASETS


def test_better_judge_is_named():
    _, _, named = simulation.answers(simulation.JUDGES[4], 300, DATASETS)
    assert named >= 0.9


@pytest.mark.parametrize("margin", simulation.MARGINS, ids=lambda margin: margin.name)
def test_judge_at_the_margin_is_seldom_interchangeable(margin):
    assert simulation.wrongly_interchangeable(margin, 1000, DATASETS) <= 0.1
