from __future__ import annotations

import msgspec
import pytest

from deemster.agreement import ConfusionMatrix, JudgeMetrics, MetricsResult
from tests.agreement import make_results as results

TABLE = ConfusionMatrix(matrix=((8, 2), (1, 9)), labels=("MET", "UNMET"))
PROPERTIES = ("tp", "fn", "fp", "tn", "fpr", "fnr", "precision", "recall")


def test_table_of_met_against_unmet_has_its_cells_and_rates():
    assert [getattr(TABLE, name) for name in PROPERTIES] == [8, 2, 1, 9, 0.1, 0.2, 8 / 9, 0.8]
    assert (TABLE.n_classes, TABLE.total) == (2, 20)


@pytest.mark.parametrize("name", PROPERTIES)
@pytest.mark.parametrize("labels", [("MET", "UNMET", "CANNOT_ASSESS"), ("UNMET", "MET"), ("yes", "no"), ()])
def test_any_other_table_has_no_positive_class(name, labels):
    size = range(len(labels))
    table = ConfusionMatrix(matrix=tuple(tuple(1 for _ in size) for _ in size), labels=labels)
    assert table.total == len(labels) ** 2
    with pytest.raises(ValueError, match="MET against UNMET"):
        getattr(table, name)


def test_rate_of_zero_cells_is_undefined():
    table = ConfusionMatrix(matrix=((0, 0), (0, 0)), labels=("MET", "UNMET"))
    assert [getattr(table, name) for name in PROPERTIES] == [0, 0, 0, 0, None, None, None, None]


def test_matrix_not_matching_labels_is_error():
    with pytest.raises(ValueError, match="each of its 2 labels"):
        ConfusionMatrix(matrix=((1, 2), (3,)), labels=("a", "b"))


def test_results_cannot_be_changed():
    result = results.full_result()
    for part in (result, result.per_criterion[0], result.per_judge["steady"], result.bias, result.coverage_stats):
        with pytest.raises(AttributeError):
            part.n_samples = 1


def test_representation_of_a_result_is_one_short_line():
    assert repr(results.full_result()) == "<MetricsResult: 80 items, 5 criteria, accuracy 0.7994, mean kappa 0.5582>"
    assert repr(results.empty_result(n_criteria=1)) == (
        "<MetricsResult: 0 items, 1 criterion, accuracy n/a, mean kappa n/a>"
    )


SPECIFIED = {
    MetricsResult: """
        verdict criterion_accuracy binary_accuracy criterion_precision criterion_recall criterion_f1
        passed_of_passed passed_of_failed n_people_passed n_people_failed one_way_p macro_accuracy
        mean_kappa mean_kappa_by_kind micro_kappa criterion_phi mean_krippendorff_alpha mean_concordance
        score_rmse score_mae
        score_spearman score_kendall score_pearson bias score_concordance score_limits score_icc score_alpha
        per_criterion per_judge
        bootstrap n_items n_units sampling n_judges n_criteria n_binary_criteria n_ordinal_criteria n_nominal_criteria
        n_numeric_criteria n_samples
        cannot_assess_mode na_mode na_stats cannot_assess_stats coverage_stats pooled_by_scale slices human
        consistency position_bias
        calibration corrected items panel warnings intervals
    """,
    JudgeMetrics: """
        judge_id criterion_accuracy criterion_precision criterion_recall criterion_f1 mean_kappa phi confusion_matrix
        score_rmse score_mae score_spearman score_kendall score_pearson bias binary_accuracy n_samples n_failed
        n_abstained intervals
    """,
}


@pytest.mark.parametrize("kind", SPECIFIED, ids=lambda kind: kind.__name__)
def test_model_has_the_fields_that_are_specified_in_their_order(kind):
    assert list(kind.__struct_fields__) == SPECIFIED[kind].split()


@pytest.mark.parametrize("place", range(5))
def test_criterion_has_kind_in_python_and_json(place):
    part = results.full_result().per_criterion[place]
    assert part.criterion_type == ["binary", "binary", "ordinal", "ordinal", "nominal"][place]
    assert msgspec.to_builtins(part)["criterion_type"] == part.criterion_type
