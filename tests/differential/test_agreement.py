"""Agreement against scikit-learn, statsmodels, krippendorff and irrCAC, where they have the statistic."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn import metrics
from statsmodels.stats import inter_rater

from deemster.stats import (
    balanced_accuracy,
    cohen_kappa,
    confusion,
    fleiss_kappa,
    gwet_ac,
    krippendorff_alpha,
    pabak,
    phi,
    precision_recall_f1,
    scott_pi,
)
from deemster.stats import confusion_tables as tables
from deemster.stats.cohen_kappa import kappa_from_table
from deemster.stats.fleiss_gwet import encode_ratings
from deemster.stats.krippendorff_alpha import _from_table, _from_values, _level_values
from tests.differential.peers import quiet

LEVELS = ("nominal", "ordinal", "interval", "ratio")
ENVIRONMENT = Path(__file__).parent.parent.parent / ".envs" / "irrcac"

graded = st.integers(2, 5).flatmap(
    lambda size: st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), min_size=1, max_size=30).map(
        lambda pairs: (size, *map(list, zip(*pairs, strict=True)))
    )
)
binary = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30).map(
    lambda pairs: tuple(map(list, zip(*pairs, strict=True)))
)
panels = st.tuples(st.integers(2, 5), st.integers(1, 12)).flatmap(
    lambda shape: st.lists(
        st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


def same(ours, theirs, *, near=1e-12):
    """None where the other library has NaN, else the same number."""
    if theirs is None or math.isnan(theirs):
        return ours is None
    return ours == pytest.approx(theirs, abs=near, rel=1e-10)


@given(graded)
@example((2, [0], [0]))
@example((3, [0, 0], [1, 1]))
def test_kappa_equals_scikit_learn(data):
    size, a, b = data
    for weights in (None, "linear", "quadratic"):
        theirs = quiet(metrics.cohen_kappa_score, a, b, weights=weights, labels=range(size))
        assert same(cohen_kappa(a, b, weights=weights, labels=range(size)).value, theirs)


@given(graded)
def test_confusion_and_accuracy_equal_scikit_learn(data):
    size, a, b = data
    ours = confusion(a, b, labels=range(size))
    np.testing.assert_array_equal(ours.matrix, metrics.confusion_matrix(a, b, labels=range(size)))
    assert tables.accuracy(ours.matrix).item() == pytest.approx(metrics.accuracy_score(a, b))
    rests = tables.one_against_rest(ours.matrix)
    theirs = metrics.multilabel_confusion_matrix(a, b, labels=range(size))
    np.testing.assert_array_equal(rests, theirs[:, ::-1, ::-1])


@given(binary)
@example(([0], [0]))
@example(([1, 1], [0, 0]))
def test_precision_recall_and_f1_equal_scikit_learn(data):
    true, predicted = data
    ours = precision_recall_f1(true, predicted)
    p, r, f, _ = metrics.precision_recall_fscore_support(true, predicted, average="binary", zero_division=np.nan)
    assert same(ours.precision, p)
    assert same(ours.recall, r)
    # Without a positive on either side F1 is 0/0; scikit-learn needs `zero_division` for that.
    assert same(ours.f1, f if any(true) or any(predicted) else math.nan)


@given(binary)
def test_phi_equals_matthews_coefficient_where_defined(data):
    a, b = data
    ours = phi(a, b).value
    if len(set(a)) < 2 or len(set(b)) < 2:
        assert ours is None
    else:
        assert ours == pytest.approx(metrics.matthews_corrcoef(a, b), abs=1e-12)


@given(graded)
def test_balanced_accuracy_equals_scikit_learn_for_two_true_labels_or_more(data):
    size, true, predicted = data
    ours = balanced_accuracy(true, predicted, labels=range(size)).value
    if len(set(true)) < 2:
        assert ours is None
    else:
        assert ours == pytest.approx(quiet(metrics.balanced_accuracy_score, true, predicted), abs=1e-12)


@given(st.integers(2, 4).flatmap(lambda k: st.lists(st.integers(0, 8), min_size=k * k, max_size=k * k)))
def test_standard_errors_of_kappa_equal_statsmodels(cells):
    size = math.isqrt(len(cells))
    table = np.array(cells, dtype=float).reshape(size, size)
    weights = np.abs(np.subtract.outer(np.arange(size), np.arange(size))) ** 1.5
    for ours, theirs in (
        (kappa_from_table(table), {}),
        (kappa_from_table(table, weights=weights), {"weights": weights}),
    ):
        assume(ours.value is not None)
        found = quiet(inter_rater.cohens_kappa, table, **theirs)
        assert ours.value == pytest.approx(found.kappa, abs=1e-10)
        assert ours.standard_error == pytest.approx(math.sqrt(max(0.0, found.var_kappa)), abs=1e-6)
        assert ours.null_error == pytest.approx(math.sqrt(max(0.0, found.var_kappa0)), abs=1e-6)


@given(st.integers(2, 6), st.data())
def test_fleiss_kappa_equals_statsmodels(raters, data):
    labels = st.lists(st.integers(0, 3), min_size=raters, max_size=raters)
    votes = data.draw(st.lists(labels, min_size=2, max_size=15))
    table = np.array([np.bincount(row, minlength=4) for row in votes])
    ours = fleiss_kappa(table)
    assert same(ours.value, quiet(inter_rater.fleiss_kappa, table))
    assert same(ours.randolph, quiet(inter_rater.fleiss_kappa, table, method="randolph"))


@given(panels)
@example([[0, 0, None], [0, 1, 2]])
def test_alpha_equals_krippendorff_package(votes):
    units = [[vote for vote in unit if vote is not None] for unit in zip(*votes, strict=True)]
    pairable = [unit for unit in units if len(unit) >= 2]
    ours = krippendorff_alpha(votes, level=LEVELS)
    if len(pairable) < 2 or len({vote for unit in pairable for vote in unit}) < 2:
        assert all(result.value is None for result in ours.values())
        return
    data = np.array(votes, dtype=float)
    for level in LEVELS:
        theirs = krippendorff.alpha(reliability_data=data, level_of_measurement=level, value_domain=range(5))
        assert ours[level].value == pytest.approx(theirs, abs=1e-10)
        assert krippendorff_alpha(data, level=level).value == pytest.approx(theirs, abs=1e-10)


@given(panels)
def test_alpha_without_coincidence_table_equals_alpha_with_it(votes):
    codes, scale = encode_ratings(votes)
    worth = {level: _level_values(level, scale, ordered=False) for level in LEVELS}
    units = (codes >= 0).sum(axis=0)
    long, short = _from_table(codes, units, scale, worth), _from_values(codes, units, scale, worth)
    pairable = sum(sum(vote is not None for vote in unit) >= 2 for unit in zip(*votes, strict=True))
    if pairable >= 2:
        for level in LEVELS:
            assert same(short[level], math.nan if long[level] is None else long[level], near=1e-10)


def test_alpha_of_distinct_scores_equals_krippendorff_package():
    rng = np.random.default_rng(9)
    scores = rng.random((3, 80)) + rng.random(80)
    scores[rng.random(scores.shape) < 0.05] = np.nan
    ours = krippendorff_alpha(scores, level=LEVELS)
    for level in LEVELS:
        theirs = krippendorff.alpha(reliability_data=scores, level_of_measurement=level)
        assert ours[level].value == pytest.approx(theirs, abs=1e-9)


ASKING = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
from irrCAC.raw import CAC
answers = []
for case in json.load(sys.stdin):
    frame = pd.DataFrame({str(i): pd.Series(row, dtype=float) for i, row in enumerate(case["ratings"])})
    cac = CAC(frame, weights=case["weights"], categories=case["labels"], digits=12)
    names = ["gwet"] + (["fleiss", "bp", "conger", "krippendorff"] if case["complete"] else [])
    answers.append({name: getattr(cac, name)()["est"] for name in names})
json.dump(answers, sys.stdout, default=float)
"""


def irrcac_cases():
    """Panels with and without gaps, by a fixed seed; every label occurs, and no rater is constant."""
    rng = np.random.default_rng(4)
    cases = []
    while len(cases) < 60:
        raters, units, size = (int(rng.integers(low, high)) for low, high in ((2, 5), (6, 25), (2, 6)))
        truth = rng.integers(0, size, units)
        votes = np.where(rng.random((raters, units)) < 0.6, truth, rng.integers(0, size, (raters, units))).astype(float)
        complete = bool(rng.random() < 0.5)
        if not complete:
            votes[rng.random(votes.shape) < 0.15] = np.nan
        held = ~np.isnan(votes)
        if len(np.unique(votes[held])) < size or (held.sum(axis=0) == 0).any() or (held.sum(axis=0) >= 2).sum() < 3:
            continue
        ratings = [[None if np.isnan(v) else int(v) for v in row] for row in votes]
        weights = ("identity", "linear", "quadratic")[len(cases) % 3]
        case = {"ratings": ratings, "weights": weights, "labels": list(range(size)), "complete": complete}
        cases.append({**case, "complete": complete and raters == 2})
    return cases


def test_gwet_scott_and_pabak_equal_irrcac():
    cases = irrcac_cases()
    done = subprocess.run(
        [ENVIRONMENT / "bin" / "python", "-c", ASKING],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(done.stdout)
    assert len(answers) == len(cases)
    for case, theirs in zip(cases, answers, strict=True):
        weights = None if case["weights"] == "identity" else case["weights"]
        ours = gwet_ac(case["ratings"], weights=weights, labels=case["labels"])
        assert ours.value == pytest.approx(theirs["gwet"]["coefficient_value"], abs=1e-9)
        assert ours.observed == pytest.approx(theirs["gwet"]["pa"], abs=1e-9)
        assert ours.expected == pytest.approx(theirs["gwet"]["pe"], abs=1e-9)
        assert ours.standard_error == pytest.approx(theirs["gwet"]["se"], abs=1e-9)
        low, high = theirs["gwet"]["confidence_interval"]
        assert (ours.interval.lower, ours.interval.upper) == pytest.approx((max(low, -1), high), abs=1e-9)
        if not case["complete"]:
            continue
        a, b = case["ratings"]
        kappa = cohen_kappa(a, b, weights=weights, labels=case["labels"])
        assert kappa.value == pytest.approx(theirs["conger"]["coefficient_value"], abs=1e-9)
        if weights is None:
            assert scott_pi(a, b).value == pytest.approx(theirs["fleiss"]["coefficient_value"], abs=1e-9)
            assert pabak(a, b).value == pytest.approx(theirs["bp"]["coefficient_value"], abs=1e-9)
