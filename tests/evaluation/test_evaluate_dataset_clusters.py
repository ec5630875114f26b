"""Samples that belong together, as the dataset declares it: reports, comparisons, gates, agreement and calibration."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import deemster as dm
from deemster.calibration.people_labels import labelled_votes
from deemster.report.stored_report import stored_report
from deemster.store import LabelFacts, open_store
from tests.builders.arguments import arguments

DOCUMENTS, QUESTIONS = 15, 8


def dataset(rates, *, seed=0, cluster="doc"):
    """Samples of documents, each with a share of questions that are answered well."""
    chance = np.random.default_rng(seed)
    samples = [
        {
            "id": f"d{doc}q{question}",
            "input": {"right": bool(chance.random() < rate)},
            "expected_output": "right",
            "metadata": {"doc": doc},
        }
        for doc, rate in enumerate(rates)
        for question in range(QUESTIONS)
    ]
    return dm.Dataset(samples, name="documents", cluster=cluster)


def evaluated(samples, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dm.evaluate(
            samples,
            target=lambda given: "right" if given["right"] else "wrong",
            metrics=["exact-match"],
            **arguments(**options),
        )


def test_pass_rate_of_a_run_covers_the_rate_of_the_documents_it_was_drawn_from():
    plain, clustered = 0, 0
    for seed in range(30):
        rates = np.random.default_rng(seed).beta(1.4, 0.6, DOCUMENTS)
        for cluster in (None, "doc"):
            low, high = evaluated(dataset(rates, seed=seed, cluster=cluster)).pass_rate_interval
            covered = low <= 0.7 <= high
            plain += covered and cluster is None
            clustered += covered and cluster is not None
    assert plain < 26
    assert clustered >= 27


def test_stored_run_has_the_same_report_and_says_its_cluster(tmp_path):
    store = tmp_path / "runs.db"
    report = evaluated(dataset([0.9] * 8 + [0.1] * 7), storage=store)
    with open_store(store) as opened:
        again = stored_report(opened, "latest")
        assert again.pass_rate_interval == report.pass_rate_interval
    assert again.dataset.cluster == report.dataset.cluster == "doc"
    assert '"cluster": "doc"' in report.to_json()


def test_comparison_and_gate_look_at_the_clusters_that_the_dataset_declares(tmp_path):
    store = str(tmp_path / "runs.db")
    evaluated(dataset([1.0] * DOCUMENTS), storage=store, name="before")
    samples = dataset([1.0] * 11 + [0.0] * 4)
    gate = {"decision": "three-way", "baseline": {"compare": "before", "margin": 0.05}}
    report = evaluated(samples, storage=store, name="now", gate=gate)
    declared = dm.compare("before", "now", store=store).pass_rate.interval
    assert declared == dm.compare("before", "now", store=store, cluster="doc").pass_rate.interval
    check = next(check for check in report.gate.checks if check.name == "baseline.margin.metrics.exact-match")
    assert (check.low, check.high) == (pytest.approx(declared[0]), pytest.approx(declared[1]))


def test_agreement_and_calibration_take_a_document_as_one_unit(tmp_path):
    store = tmp_path / "runs.db"
    evaluated(dataset([0.5] * DOCUMENTS), storage=store)
    with open_store(store) as opened:
        run = opened.run("latest")
        for position in range(40):
            opened.put_label(
                run.id,
                LabelFacts(
                    position=position, metric="exact-match", criterion="", author="ada",
                    at="2026-11-18T00:00:00.000000Z", verdict="pass" if position % 3 else "fail", order="random",
                ),
            )  # fmt: skip
        result = dm.compute_metrics(
            labelled_votes(opened, run), bootstrap=dm.agreement.BootstrapSettings(replicates=100)
        )
    assert (result.n_items, result.n_units) == (40, 5)
    found = dm.calibrate(run.id, "viewer", store=store).metrics["exact-match"]
    assert (found.n, found.samples) == (40, 5)


def test_sample_without_the_key_is_refused_before_anything_runs():
    samples = [{"id": "a", "input": {}, "expected_output": "x", "metadata": {}}]
    with pytest.raises(dm.InputError, match=r"cluster: it has no `metadata\.doc`, by which samples are clustered"):
        evaluated(dm.Dataset(samples, name="d", cluster="doc"))
