"""Published and verified numbers for intervals, tests and corrections."""

import json
from pathlib import Path

import pytest

from deemster.stats import (
    acceleration,
    alternative_annotator_test,
    benjamini_hochberg,
    benjamini_yekutieli,
    bootstrap,
    brier,
    calibration_error,
    clopper_pearson,
    clustered_mean,
    dawid_skene,
    detectable_difference,
    holm,
    mcnemar,
    newcombe,
    pass_at_k,
    ppi_mean,
    rogan_gladen,
    sample_size,
    wilson,
)

FILE = Path(__file__).parent.parent / "fixtures" / "statistics.json"
FIXTURES = {entry["id"]: entry for entry in json.loads(FILE.read_text())}


def ends(result):
    return [result.interval.lower, result.interval.upper]


def near(name, expected=None):
    entry = FIXTURES[name]
    return pytest.approx(entry["expected"] if expected is None else expected, abs=entry["abs_tol"], rel=0)


@pytest.mark.parametrize("name", ["prop_81_263", "prop_0_20", "prop_20_20"])
def test_shares_have_newcombes_published_intervals(name):
    x, n = FIXTURES[name]["input"]["x"], FIXTURES[name]["input"]["n"]
    assert ends(wilson(x, n)) == near(name, FIXTURES[name]["expected"]["wilson"])
    assert ends(clopper_pearson(x, n)) == near(name, FIXTURES[name]["expected"]["clopper_pearson"])


@pytest.mark.parametrize("name", ["newcombe_diff_56_70_48_80", "newcombe_diff_5_56_0_29"])
def test_differences_of_shares_have_newcombes_published_intervals(name):
    assert ends(newcombe(*FIXTURES[name]["input"])) == near(name)


@pytest.mark.parametrize("name", ["mcnemar_86_150", "mcnemar_1_7"])
def test_mcnemar_gives_the_published_p_values(name):
    (_, b), (c, _) = FIXTURES[name]["input"]
    result = mcnemar(b, c)
    parts = {
        "exact": result.p_value,
        "midp": result.mid_p,
        "chi2": result.chi2,
        "p": result.chi2_p,
        "chi2_cc": result.corrected_chi2,
        "p_cc": result.corrected_p,
    }
    assert parts == near(name)


@pytest.mark.parametrize(
    ("method", "key"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh"), (benjamini_yekutieli, "fdr_by")]
)
def test_the_thrombolysis_trial_is_adjusted_as_published(method, key):
    expected = FIXTURES["bh_1995"]["expected"][key]
    result = method(FIXTURES["bh_1995"]["input"])
    assert list(result.adjusted) == near("bh_1995", expected["adjusted"])
    assert sum(result.rejected) == expected["rejected_at_05"]


def test_the_spatial_data_have_efrons_bca_interval():
    data, expected = FIXTURES["bca_spatial"]["input"], FIXTURES["bca_spatial"]["expected"]
    table = [[1, x, x * x] for x in data]

    def variance(sums):
        return sums[:, 2] / sums[:, 0] - (sums[:, 1] / sums[:, 0]) ** 2

    result = bootstrap(variance, table=table, method="bca", confidence=0.9, n_resamples=100_000, seed=3)
    assert result.value == near("bca_spatial", expected["theta"])
    assert ends(result) == pytest.approx(expected["bca90_100k_scipy"], abs=expected["bca90_tol"])
    left_out = [[x for place, x in enumerate(data) if place != out] for out in range(len(data))]
    means = [sum(rest) / len(rest) for rest in left_out]
    jackknife = [sum((x - mean) ** 2 for x in rest) / len(rest) for rest, mean in zip(left_out, means, strict=True)]
    assert float(acceleration(jackknife)) == near("bca_spatial", expected["acceleration"])


def test_clustered_scores_have_the_three_published_standard_errors():
    given = FIXTURES["clustered_se"]["input"]
    result = clustered_mean(given["scores"], given["cluster"])
    parts = {
        "mean": result.value,
        "se_clt": result.independent,
        "miller": result.miller,
        "cr0": result.cr0,
        "cr1": result.standard_error,
    }
    assert parts == near("clustered_se")


def test_millers_example_needs_969_samples():
    given, expected = FIXTURES["miller_power"]["input"], FIXTURES["miller_power"]["expected"]
    result = sample_size(given["omega2"], given["delta"])
    assert result.exact == near("miller_power", expected["n"])
    assert result.value == 969
    assert detectable_difference(given["omega2"], 198).value == near("miller_power", expected["mde_n198"])


def corrected(name):
    p, specificity, sensitivity, n, negatives, positives = FIXTURES[name]["input"]
    return rogan_gladen(
        p, n=n, sensitivity=sensitivity, positives=positives, specificity=specificity, negatives=negatives
    )


def test_a_rate_is_corrected_for_the_judges_errors():
    result = corrected("rogan_gladen_0.4")
    assert result.value == near("rogan_gladen_0.4", FIXTURES["rogan_gladen_0.4"]["expected"]["theta"])
    assert ends(result) == near("rogan_gladen_0.4", FIXTURES["rogan_gladen_0.4"]["expected"]["ci"])
    assert not result.out_of_range


def test_a_rate_that_contradicts_the_judges_errors_is_flagged_and_has_no_interval_of_width_zero():
    result = corrected("rogan_gladen_degenerate")
    assert result.out_of_range
    assert result.value == 1.0
    assert result.unclipped == pytest.approx(0.65 / 0.6)
    assert result.interval is None or result.interval.width > 0
    assert "contradicts" in result.note


def test_predictions_sharpen_a_mean_as_in_the_reference():
    given, expected = FIXTURES["ppi_mean"]["input"], FIXTURES["ppi_mean"]["expected"]
    unlabelled = ([1] * 8 + [0] * 2) * 20
    tuned = ppi_mean(given["Y"], given["Yhat"], unlabelled)
    assert [tuned.value, ends(tuned)] == [near("ppi_mean", part) for part in expected["ppi_plus_plus"]]
    assert tuned.lam == near("ppi_mean", expected["lam"])
    plain = ppi_mean(given["Y"], given["Yhat"], unlabelled, lam=1)
    assert [plain.value, ends(plain)] == [near("ppi_mean", part) for part in expected["ppi"]]
    labels = ppi_mean(given["Y"], given["Yhat"], unlabelled, lam=0)
    assert [labels.value, ends(labels)] == [near("ppi_mean", part) for part in expected["classical"]]
    assert labels.value == tuned.classical


def test_the_synthetic_annotators_are_beaten_as_in_the_authors_notebook():
    gold = [place % 3 for place in range(60)]
    people = [[(g + 1) % 3 if (7 * i + 11 * a) % 10 < 2 else g for i, g in enumerate(gold)] for a in range(3)]
    for key, rows in FIXTURES["alt_test_synthetic"]["expected"].items():
        errs = int(key.removeprefix("k="))
        judge = [(g + 2) % 3 if (3 * i + 5) % 10 < errs else g for i, g in enumerate(gold)]
        for name, expected in rows.items():
            result = alternative_annotator_test(judge, people, epsilon=float(name.removeprefix("eps")))
            assert [result.value, result.advantage] == near("alt_test_synthetic", expected), (key, name)


def test_the_anaesthetists_have_dawid_and_skenes_error_rates():
    entry = FIXTURES["dawid_skene_1979"]
    expected = entry["expected"]
    result = dawid_skene(entry["input"], classes=[1, 2, 3, 4])
    assert list(result.priors) == near("dawid_skene_1979", expected["class_marginals"])
    assert result.log_likelihood == near("dawid_skene_1979", expected["loglik"])
    rows = result.confusion["1"]
    assert [rows[place][place] for place in range(4)] == near("dawid_skene_1979", expected["observer1_diag"])
    labels = dict(zip(result.items, result.labels, strict=True))
    for item, majority, label in expected["labels_differing_from_majority"]:
        votes = [vote for given in entry["input"][str(item)].values() for vote in given]
        assert max(set(votes), key=votes.count) == majority
        assert labels[str(item)] == label
    assert result.converged


def test_the_toy_forecasts_have_the_derived_errors():
    given, expected = FIXTURES["calibration_toy"]["input"], FIXTURES["calibration_toy"]["expected"]
    for bins in (10, 5, 2):
        found = calibration_error(given["y"], given["p"], bins=bins).value
        assert found == near("calibration_toy", expected[f"ece{bins}"])
    assert brier(given["y"], given["p"]).value == near("calibration_toy", expected["brier"])


def test_pass_at_k_gives_chens_numbers():
    found = [pass_at_k(3, attempts=10, k=k).value for k in FIXTURES["pass_at_k"]["input"]]
    assert found == near("pass_at_k")
