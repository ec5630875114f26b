"""What a report says of panels of judges: that they are some, and what tells how many votes they are worth."""

from __future__ import annotations

import pytest

import deemster as dm
from deemster.models import FakeChat

REPLY = '{"score": 5, "reason": "Right."}'
WORTH = "a panel of 2 judges; `deemster agreement` says by labels how many independent votes they are worth."


@pytest.mark.parametrize(("roles", "is_panel"), [(["a"], False), (["a", "b"], True)])
def test_report_names_a_panel_and_points_to_what_it_is_worth(roles, is_panel):
    report = dm.evaluate(
        [{"id": "s", "input": {"q": "?"}, "expected_output": "yes"}],
        outputs={"s": "yes"},
        metrics=[dm.judges.LlmAsJudge(models=roles)],
        models={role: FakeChat(REPLY, model=role) for role in roles},
    )
    assert (WORTH in report.to_markdown()) == is_panel
