from __future__ import annotations

import subprocess
import sys

import pytest

from deemster.errors import MissingExtraError
from tests.agreement import make_results as results

COLUMNS = [
    "level",
    "name",
    "criterion_type",
    "accuracy_micro",
    "accuracy_macro",
    "precision_micro",
    "recall_micro",
    "f1_micro",
    "mean_kappa_macro",
    "kappa_micro",
    "phi_micro",
    "mean_krippendorff_alpha",
    "cannot_assess_mode",
    "na_mode",
    "n_samples",
    "rmse",
    "mae",
    "spearman",
    "kendall",
    "pearson",
    "bias",
    "adjacent_accuracy",
    "weighted_kappa",
    "phi",
    "fpr",
    "fnr",
    "is_degenerate",
    "krippendorff_alpha",
    "fleiss_kappa",
    "coverage",
    "judge_abstain_rate",
    "gt_abstain_rate",
    "union_exclusion_rate",
    "n_errored",
    "error_rate",
    "binary_accuracy",
    "balanced_accuracy",
    "gwet_ac",
    "linear_kappa",
    "concordance",
    "icc_2_1",
    "lower_limit",
    "upper_limit",
    "sample_pearson",
    "sample_spearman",
    "sample_kendall",
    "system_pearson",
    "system_spearman",
    "system_kendall",
]


@pytest.fixture(scope="module")
def frame():
    return results.full_result().to_dataframe()


def row(frame, level, name):
    (found,) = frame[(frame["level"] == level) & (frame["name"] == name)].to_dict("records")
    return {column: value for column, value in found.items() if value is not None and value == value}


def test_columns_are_those_of_the_specification_then_the_ends_of_intervals(frame):
    assert list(frame.columns[: len(COLUMNS)]) == COLUMNS
    rest = list(frame.columns[len(COLUMNS) :])
    assert rest[:2] == ["accuracy_micro_low", "accuracy_micro_high"]
    assert all(name.endswith(("_low", "_high")) for name in rest)


def test_without_intervals_there_are_no_ends():
    assert list(results.empty_result().to_dataframe().columns) == COLUMNS


def test_rows_are_ordered_by_level(frame):
    assert list(frame["level"]) == ["aggregate"] + ["criterion"] * 5 + ["judge"] * 2 + ["slice"]


def test_aggregate_row_holds_the_numbers_of_all(frame):
    found = row(frame, "aggregate", "overall")
    assert found["criterion_type"] == "all"
    assert found["accuracy_micro"] == 0.7994
    assert found["mean_kappa_macro"] == 0.5582
    assert (found["mean_kappa_macro_low"], found["mean_kappa_macro_high"]) == (0.4519, 0.6497)
    assert found["bias"] == -0.0425
    assert found["spearman"] == 0.72
    assert found["cannot_assess_mode"] == "exclude"
    assert (found["coverage"], found["n_errored"]) == (319 / 410, 9)
    assert "phi_micro_low" not in found


def test_binary_row_holds_its_kappa_in_kappa_micro_and_no_fleiss(frame):
    found = row(frame, "criterion", "facts")
    assert (found["kappa_micro"], found["phi"], found["precision_micro"]) == (0.7333, 0.7333, 0.9)
    assert found["krippendorff_alpha"] == 0.61
    assert {"fleiss_kappa", "phi_micro", "cannot_assess_mode", "mean_kappa_macro"}.isdisjoint(found)


def test_ordinal_row_holds_its_weighted_kappa_twice_and_fleiss(frame):
    found = row(frame, "criterion", "depth")
    assert found["kappa_micro"] == found["weighted_kappa"] == 0.3912
    assert (found["fleiss_kappa"], found["adjacent_accuracy"], found["spearman"]) == (0.2875, 0.962, 0.41)
    assert (found["spearman_low"], found["spearman_high"]) == (0.2, 0.6)


def test_judge_row_holds_its_mean_kappa_and_bias(frame):
    found = row(frame, "judge", "steady")
    assert (found["mean_kappa_macro"], found["phi"], found["bias"], found["n_samples"]) == (0.64, 0.71, 0.02, 317)


def test_slice_row_holds_the_headline_numbers(frame):
    found = row(frame, "slice", "billing")
    assert (found["accuracy_micro"], found["mean_kappa_macro"], found["rmse"], found["bias"]) == (0.75, 0.4, 0.2, 0.05)
    assert found["accuracy_micro_low"] == 0.66


def test_undefined_numbers_are_missing_and_counts_stay_whole(frame):
    assert str(frame["n_samples"].dtype) == "Int64"
    assert frame["kappa_micro"].isna().sum() == 5
    assert set(frame["is_degenerate"].dropna()) == {True, False}


def test_missing_pandas_is_error_naming_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match=r"deemster\[dataframe\]"):
        results.empty_result().to_dataframe()


def test_alignment_is_imported_without_pandas():
    code = "import sys, deemster.agreement.metrics_result; sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
