"""Drawn data is data: files hold it, evaluations take it, alignments compute with it."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given, settings

import deemster as dm
from deemster import testing
from deemster.datasets import Dataset

METRICS = ["exact-match", "token-f1", "json-valid"]


@settings(max_examples=30)
@given(dataset=testing.datasets(max_size=4))
def test_drawn_dataset_survives_a_file(dataset, tmp_path_factory):
    file = tmp_path_factory.mktemp("drawn") / "golden.json"
    dataset.save(file)
    again = Dataset.load(file)
    assert list(again) == list(dataset)
    assert again.fingerprint == dataset.fingerprint


@settings(max_examples=30)
@given(sample=testing.samples(), output=testing.outputs())
def test_every_metric_takes_drawn_samples_and_outputs(sample, output):
    for name in METRICS:
        assert isinstance(dm.parse_metric(name).score(sample, output), (dm.MetricScore, dm.Unscored))


@settings(max_examples=30)
@given(votes=testing.votes())
def test_alignment_computes_with_drawn_votes(votes):
    result = dm.compute_metrics(votes)
    assert result.to_json()


def test_id_of_a_sample_can_be_given():
    @given(testing.samples(id="q1"))
    def check(sample):
        assert sample.id == "q1"

    check()


def test_without_hypothesis_the_error_names_the_extra_and_the_rest_works():
    code = "import sys; sys.modules['hypothesis'] = None\n"
    code += "from deemster import testing\ntesting.FakeChat, testing.compare_with_golden\n"
    code += "try:\n    testing.samples\nexcept ImportError as error:\n    print(error)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Drawing test data needs the `testing` extra: pip install 'deemster[testing]'\n"
