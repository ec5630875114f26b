from __future__ import annotations

import warnings

import pytest

import deemster as dm
from deemster.records import Usage
from deemster.store import open_store
from tests.builders.arguments import arguments
from tests.view.viewer_client import running_viewer

SAMPLES = [
    {
        "id": f"q{place:02}",
        "input": {"question": f"How many is {place}?"},
        "expected_output": f"It is {place}.",
        "metadata": {
            "tags": [["small"], ["small", "odd"], []][place % 3],
            "author": "ada" if place < 12 else "bert",
            "level": place % 4,
        },
    }
    for place in range(24)
]


def answer(given):
    """Right for most numbers; wrong, long, unstable or failing for some."""
    place = int(given["question"].split()[-1].rstrip("?"))
    calls = answer.calls
    calls[place] = calls.get(place, 0) + 1
    if place == 5:
        raise ValueError("no answer for five")
    text = f"It is {place}."
    if place % 4 == 1 or (place == 8 and calls[place] == 2):
        text = f"Perhaps {place + 1}, though I am not certain of it."
    return dm.Output(
        text, retrieved=[{"id": f"doc-{place}", "text": f"Passage about {place}"}], usage=Usage(latency_ms=10.0 * place)
    )


answer.calls = {}


def evaluate(place, **options):
    answer.calls = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dm.evaluate(
            dm.Dataset(SAMPLES, name="numbers"),
            target=answer,
            metrics=["exact-match", "rouge-l"],
            repetitions=2,
            concurrency=1,
            **arguments(where=str(place), **options),
        )


@pytest.fixture(scope="session")
def numbers(tmp_path_factory):
    """A store with two evaluations of numbers, and the reports of these."""
    place = tmp_path_factory.mktemp("view") / "runs.db"
    reports = [evaluate(place, name="before"), evaluate(place, name="after", gate={"min_macro_f1": 0.1})]
    with open_store(place) as store:
        yield store, reports


@pytest.fixture(scope="session")
def viewer(numbers):
    """A client of a viewer over the numbers."""
    with running_viewer(numbers[0]) as client:
        yield client
