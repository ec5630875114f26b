"""What a judge shows of its doubts: by its score, repetitions, votes and probabilities."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deemster.calibration.label_uncertainty import draw_efficiently, sample_spread
from deemster.calibration.people_labels import LabelTask
from deemster.records import MetricScore
from deemster.rubrics.criterion import Criterion
from deemster.rubrics.rubric_definition import Rubric
from tests.judges.make_grader import DEPTH

METRIC = LabelTask("judge")
FACTS = LabelTask("judge", "facts", Criterion("Is it right?", name="facts"))


def spread(*marks, task=METRIC):
    return sample_spread([{"judge": mark} for mark in marks], [task])


def test_score_at_the_pass_mark_is_the_most_doubtful():
    scores = [0.0, 0.35, 0.7, 0.85, 1.0]
    spreads = [spread(MetricScore(score, threshold=0.7)) for score in scores]
    assert spreads == pytest.approx([0, math.sqrt(0.25 * 0.75), 0.5, math.sqrt(0.75 * 0.25), 0])


def test_repetitions_that_differ_are_doubtful():
    assert spread(MetricScore(1.0), MetricScore(1.0)) == 0
    assert spread(MetricScore(1.0), MetricScore(0.0)) == 0.5


def test_votes_of_a_panel_count_and_failed_ones_do_not():
    votes = [{"role": "a", "score": 1.0}, {"role": "b", "score": 0.0}, {"role": "c", "cause": "unreadable"}]
    assert spread(MetricScore(1.0, details={"votes": votes})) == 0.5
    # Votes on a scale of their own cannot be held to the pass mark.
    assert spread(MetricScore(1.0, rubric_score=5, details={"votes": [{"role": "a", "score": 5}]})) == 0


def test_probability_that_a_judge_states_is_its_doubt():
    votes = [{"criterion": "facts", "verdict": "MET", "p": (0.8,)}, {"criterion": "tone", "verdict": "UNMET"}]
    assert spread(MetricScore(1.0, details={"votes": votes}), task=FACTS) == pytest.approx(0.4)


def test_probabilities_of_options_spread_over_their_values():
    (depth,) = Rubric.load([DEPTH]).criteria
    task = LabelTask("judge", "depth", depth)
    values = [depth.values[code] for code in depth.scored]
    shares = [1 / len(values)] * len(values)
    votes = [{"criterion": "depth", "verdict": "good", "p": shares}]
    assert spread(MetricScore(1.0, details={"votes": votes}), task=task) == pytest.approx(np.std(values))


def test_abstention_and_no_mark_say_nothing():
    assert math.isnan(spread())
    votes = [{"criterion": "facts", "verdict": "CANNOT_ASSESS"}]
    assert math.isnan(spread(MetricScore(1.0, details={"votes": votes}), task=FACTS))
    assert math.isnan(spread(MetricScore(1.0), task=FACTS))


def test_sample_of_which_nothing_is_known_counts_as_the_mean():
    spreads = np.array([0.1, 0.5, math.nan, 0.3] * 25)
    chances = {}
    for seed in range(40):
        chances |= draw_efficiently(spreads, 30, seed=seed)
    assert chances[0] < 0.3 < chances[1]
    assert chances[2] == pytest.approx(0.3)


def test_judge_without_any_doubt_is_sampled_evenly():
    assert set(draw_efficiently(np.zeros(10), 5, seed=0).values()) == {0.5}
    assert set(draw_efficiently(np.full(10, math.nan), 5, seed=0).values()) == {0.5}


def test_questions_count_alike():
    marks = {"judge": MetricScore(0.5), "other": MetricScore(1.0)}
    assert sample_spread([marks], [METRIC, LabelTask("other"), LabelTask("absent")]) == 0.25
