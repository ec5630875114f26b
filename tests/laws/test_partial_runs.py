"""A run of a part of a dataset has the numbers of a run of a dataset that holds only that part."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.errors import DatasetError
from deemster.models.clock import FrozenClock
from tests.builders.arguments import arguments

CLOCK = FrozenClock(datetime(2026, 1, 1, tzinfo=UTC))
WORDS = st.sampled_from(["red", "blue", "red blue", ""])


@st.composite
def parts(draw):
    rows = draw(st.lists(st.tuples(WORDS, WORDS, st.sampled_from(["de", "fr"]), st.booleans()), min_size=2, max_size=8))
    samples = [
        {
            "id": f"q{place}",
            "input": {"question": f"{place % 3}?"},
            "expected_output": expected,
            "metadata": {"tags": ["hard"] if is_hard else [], "lang": lang},
        }
        for place, (expected, _, lang, is_hard) in enumerate(rows)
    ]
    outputs = {f"q{place}": said for place, (_, said, _, _) in enumerate(rows)}
    dataset = dm.Dataset(samples, name="colours")
    wanted = draw(
        st.sampled_from(
            [
                {"tags": "hard"},
                {"where": {"metadata.lang": "de"}},
                {"ids": ["q0", "q[2-4]"]},
                {"sample": 2, "seed": draw(st.integers(0, 5))},
                {"limit": 1},
                {"where": {"metadata.lang": "fr"}, "limit": 2},
            ]
        )
    )
    try:
        return dataset.select(**wanted), outputs
    except DatasetError:
        return dataset.select(limit=1), outputs


@given(parts(), st.integers(1, 2))
def test_partial_run_has_the_numbers_of_a_dataset_that_holds_only_the_part(case, repetitions):
    part, outputs = case
    settings = {
        "metrics": ["exact-match", "token-f1"],
        "repetitions": repetitions,
        "gate": {"min_macro_f1": 0.5, "cohorts": {"*": {"min_macro_f1": 0.1}}},
        "clock": CLOCK,
    }
    alone = dm.Dataset(list(part), name=part.name)
    ours = dm.evaluate(part, outputs=outputs, **arguments(**settings))
    theirs = dm.evaluate(alone, outputs={sample.id: outputs[sample.id] for sample in part}, **arguments(**settings))
    assert ours.run.part == part.part
    assert theirs.run.part is None
    said = json.loads(ours.to_json())
    said["run"]["part"] = None
    assert said == json.loads(theirs.to_json())
