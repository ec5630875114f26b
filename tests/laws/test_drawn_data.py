"""Drawn data is data: files hold it, evaluations take it, alignments compute with it."""

from __future__ import annotations

from hypothesis import given

import deemster as dm
from deemster.datasets import Dataset
from tests.builders.data_strategies import datasets, outputs, samples, votes

METRICS = ["exact-match", "token-f1", "json-valid"]


@given(dataset=datasets())
def test_drawn_dataset_survives_a_file(dataset, tmp_path_factory):
    file = tmp_path_factory.mktemp("drawn") / "golden.json"
    dataset.save(file)
    again = Dataset.load(file)
    assert list(again) == list(dataset)
    assert again.fingerprint == dataset.fingerprint


@given(sample=samples(), output=outputs())
def test_every_metric_takes_drawn_samples_and_outputs(sample, output):
    for name in METRICS:
        assert isinstance(dm.judges.parse_metric(name).score(sample, output), (dm.MetricScore, dm.Unscored))


@given(drawn=votes())
def test_alignment_computes_with_drawn_votes(drawn):
    result = dm.compute_metrics(drawn)
    assert result.to_json()
