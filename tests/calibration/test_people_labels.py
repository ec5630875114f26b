"""Labels of the viewer as votes: only those of samples that were drawn at random speak for a run."""

from __future__ import annotations

import random

import pytest

import deemster as dm
from deemster.calibration.people_labels import labelled_votes
from deemster.store import LabelFacts, open_store

SAMPLES = [{"id": f"s{n}", "input": {"n": n}, "expected_output": "right" if n % 4 else "other"} for n in range(120)]


@pytest.fixture
def store(tmp_path):
    place = tmp_path / "runs.db"
    dm.evaluate(SAMPLES, target=lambda _: "right", metrics=["exact-match"], repetitions=2, storage=place)
    with open_store(place) as opened:
        yield opened


def label(store, positions, *, order, agree=0.9, seed=1):
    """Label both repetitions of some samples; people agree with the metric on a share of them."""
    chance = random.Random(seed)
    run = store.run("latest").id
    for position in positions:
        agrees = chance.random() < agree
        for repetition in range(2):
            store.put_label(
                run,
                LabelFacts(
                    position=position,
                    repetition=repetition,
                    metric="exact-match",
                    criterion="",
                    author="ada",
                    at="2026-11-18T00:00:00.000000Z",
                    verdict="pass" if bool(position % 4) == agrees else "fail",
                    order=order,
                ),
            )


def aligned(store):
    return dm.compute_metrics(
        labelled_votes(store, store.run("latest")), bootstrap=dm.agreement.BootstrapSettings(replicates=100)
    )


def test_labels_of_uncertain_samples_alone_give_no_answer(store):
    label(store, range(60), order="uncertain", agree=0.5)
    result = aligned(store)
    assert (result.verdict.answer, result.sampling, result.intervals) == (None, "chosen", None)
    assert result.verdict.reasons[0].startswith("not-random")


def test_labels_of_disputed_samples_are_left_out_beside_random_ones(store):
    label(store, range(60), order="random")
    alone = aligned(store)
    label(store, range(60, 120), order="disputed", agree=0.0)
    assert aligned(store) == alone
    assert alone.verdict.answer is not None


def test_repetitions_of_a_sample_are_one_unit(store):
    label(store, range(40), order="random")
    result = aligned(store)
    assert (result.n_items, result.n_units) == (80, 40)
    assert labelled_votes(store, store.run("latest")).cluster == "sample"
