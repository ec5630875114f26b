"""Two runs compared: joins, differences, cohorts, clusters, what cannot be compared."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar

from deemster.errors import ReportError
from deemster.stats import Interval
from tests.results.make_compared_runs import compare, run

SCORES = st.sampled_from([0.0, 0.25, 0.5, 1.0])


def test_difference_is_that_of_the_pass_rates_over_shared_samples():
    before = run({"m": [1.0, 1.0, 0.0, 1.0]})
    after = run({"m": [1.0, 0.0, 0.0, 0.0]})
    found = compare(before, after).metrics["m"].pass_rate
    assert (found.n, found.units, found.baseline, found.candidate, found.difference) == (4, 4, 0.75, 0.25, -0.5)
    assert (found.better, found.equal, found.worse) == (0, 2, 2)


def test_interval_has_width_where_nothing_changed():
    same = run({"m": [1.0] * 20})
    found = compare(same, run({"m": [1.0] * 20}, name="b"), margin=0.02).macro_f1
    assert found.difference == 0.0
    assert found.interval.low < -0.1
    assert found.interval.high > 0.1
    assert found.certifiable == pytest.approx(found.certifiable_unchanged) == pytest.approx(0.163, abs=1e-3)
    assert found.lower_bound < -0.02, "twenty samples on which nothing flips do not certify a margin of 2 %"


def test_errored_mark_never_raises_a_rate():
    before = run({"m": [1.0, 0.0, 0.0, 1.0]})
    failing = run({"m": [1.0, "model_failed", "model_failed", 1.0]}, name="b")
    found = compare(before, failing)
    assert found.metrics["m"].pass_rate.difference == 0.0
    assert found.metrics["m"].mean.n == 2
    assert found.metrics["m"].left_out == 2
    assert found.metrics["m"].mean.difference == 0.0
    assert found.metrics["m"].mean_bounds == Interval(0.0, 0.5)


def test_run_without_any_answer_is_not_said_to_keep_no_outputs():
    failed = run({"m": ["target_failed"] * 4}, outputs=[None] * 4, name="b")
    found = compare(run({"m": [1.0] * 4}), failed)
    assert found.warnings == ()
    assert found.macro_f1.difference == -1.0


def test_missing_pair_never_misaligns_later_samples():
    keys = list("abcdef")
    before = run({"m": [1.0, 0.0, 1.0, 0.0, 1.0, 0.0]}, keys=keys)
    after = run({"m": [0.0, 1.0, 0.0, 1.0, 0.0]}, keys=["b", "c", "d", "e", "f"], name="b")
    found = compare(before, after)
    assert found.macro_f1.difference == 0.0
    assert (found.samples.paired, found.samples.added, found.samples.removed) == (5, 0, 1)
    assert found.statuses["removed"] == 1
    assert found.statuses["stable"] == 5


def test_order_of_the_dataset_changes_nothing():
    generator = np.random.default_rng(5)
    first, second = generator.random(40), generator.random(40)
    order = generator.permutation(40)
    before = run({"m": first.tolist()}, keys=range(40))
    straight = compare(before, run({"m": second.tolist()}, keys=range(40), name="b"))
    shuffled = compare(before, run({"m": second[order].tolist()}, keys=order.tolist(), name="b"))
    assert straight.macro_f1 == shuffled.macro_f1
    assert straight.metrics["m"].mean.difference == pytest.approx(shuffled.metrics["m"].mean.difference, abs=1e-15)


def test_equal_samples_are_joined_in_the_order_of_their_ids():
    before = run({"m": [1.0, 0.0, 1.0]}, keys=["x", "x", "y"], ids=["b", "a", "c"])
    after = run({"m": [0.0, 1.0, 1.0]}, keys=["x", "x", "y"], ids=["a", "b", "c"], name="b")
    assert compare(before, after).statuses["stable"] == 3


def test_runs_without_a_common_sample_are_refused():
    with pytest.raises(ReportError, match="share no sample"):
        compare(run({"m": [1.0]}, keys=["a"]), run({"m": [1.0]}, keys=["b"], name="b"))


def test_repetitions_of_a_sample_are_one_unit():
    before = run({"m": [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]]})
    after = run({"m": [[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]}, name="b")
    found = compare(before, after).metrics["m"].pass_rate
    assert (found.n, found.difference) == (3, pytest.approx(-1 / 6))
    assert found.tango is None


def test_noise_of_repeated_runs_is_split():
    generator = np.random.default_rng(3)
    before, after = (run({"m": generator.integers(0, 2, (30, 4)).astype(float).tolist()}, name=name) for name in "ab")
    noise = compare(before, after).noise
    assert (noise.n, noise.repetitions) == (30, (4.0, 4.0))
    assert noise.share_within > 0.5, "every answer is a coin, so the noise is the system's own"
    assert noise.error_twice_repetitions < noise.standard_error


def test_noise_is_not_split_without_repetitions():
    assert compare(run({"m": [1.0, 0.0]}), run({"m": [1.0, 1.0]}, name="b")).noise is None


def test_clusters_are_the_units():
    scores = [1.0] * 12, [0.0] * 4 + [1.0] * 8
    clusters = [place // 4 for place in range(12)]
    found = compare(run({"m": scores[0]}), run({"m": scores[1]}, clusters=clusters, name="b"), cluster="doc").macro_f1
    alone = compare(run({"m": scores[0]}), run({"m": scores[1]}, name="b")).macro_f1
    assert (found.n, found.units) == (12, 3)
    assert found.difference == pytest.approx(alone.difference)
    assert found.interval.high - found.interval.low > alone.interval.high - alone.interval.low


def test_metric_of_another_identity_is_not_compared():
    before = run({"m": [1.0, 0.0], "n": [1.0, 1.0]}, identities={"m": {"model": "a"}, "n": {}})
    after = run({"m": [1.0, 1.0], "n": [1.0, 0.0]}, name="b", identities={"m": {"model": "b"}, "n": {}})
    found = compare(before, after)
    assert list(found.metrics) == ["n"]
    assert found.not_comparable == {"m": "its model was a, and is b"}
    assert found.macro_f1.difference == -0.5


def test_what_two_identities_share_is_not_told():
    before = run({"m": [1.0]}, identities={"m": {"model": {"client": "chat", "model": "a"}}})
    after = run({"m": [1.0]}, name="b", identities={"m": {"model": {"client": "chat", "model": "b"}}})
    assert compare(before, after).not_comparable == {"m": "its model was {'model': 'a'}, and is {'model': 'b'}"}


def test_metric_of_one_run_alone_is_not_compared():
    found = compare(run({"m": [1.0]}), run({"m": [1.0], "n": [0.0]}, name="b"))
    assert found.not_comparable == {"n": "only the candidate has it"}


def test_without_a_comparable_metric_the_numbers_are_undefined():
    before = run({"m": [1.0, 0.0]}, identities={"m": {"model": "a"}})
    found = compare(before, run({"m": [1.0, 1.0]}, name="b", identities={"m": {"model": "b"}}))
    assert found.macro_f1.n == found.pass_rate.n == 0
    assert found.macro_f1.difference is None
    assert found.macro_f1_origin.total == found.macro_f1_origin.metrics == 0.5


def test_cohorts_are_those_of_the_candidate():
    before = run({"m": [1.0, 1.0, 0.0]}, tags=[["old"], ["old"], []])
    after = run({"m": [0.0, 1.0, 0.0]}, tags=[["de"], ["de", "hard"], []], name="b")
    found = {cohort.label: cohort for cohort in compare(before, after).cohorts}
    assert list(found) == ["de", "hard", "(untagged)"]
    assert (found["de"].samples, found["de"].macro_f1.difference) == (2, -0.5)
    assert found["hard"].metrics["m"].difference == 0.0


def test_lower_is_better_turns_better_and_worse_round():
    before, after = run({"m": [0.2, 0.4]}), run({"m": [0.1, 0.6]}, name="b")
    after.marks.cards = tuple(card._replace(higher_is_better=False) for card in after.marks.cards)
    found = compare(before, after).metrics["m"]
    assert (found.mean.better, found.mean.worse, found.higher_is_better) == (1, 1, False)


def test_usage_is_compared_where_both_runs_know_it():
    nan = float("nan")
    before = run({"m": [1.0, 0.0, 1.0]}, usage=[[0.1, 10, nan], [0.2, 20, nan], [0.3, nan, nan]])
    after = run({"m": [1.0, 1.0, 1.0]}, name="b", usage=[[0.2, 11, nan], [0.2, 22, nan], [0.5, 9, nan]])
    found = compare(before, after).usage
    assert list(found) == ["cost_usd", "tokens"]
    assert found["cost_usd"].difference == pytest.approx(0.1)
    assert found["cost_usd"].baseline_per_pass == pytest.approx(0.6 / 2)
    assert found["cost_usd"].candidate_per_pass == pytest.approx(0.9 / 3)
    assert (found["tokens"].n, found["tokens"].difference) == (2, 1.5)


def test_runs_that_cannot_be_believed_are_warned_of():
    before = run({"m": [1.0, 1.0]}, outputs=[None, None])
    after = run({"m": [[1.0, 1.0], [1.0, 1.0]]}, name="b")
    after = after._replace(run=msgspec.structs.replace(after.run, status="incomplete"))
    warnings = compare(before, after).warnings
    assert any("outputs of the baseline are not kept" in warning for warning in warnings)
    assert "The candidate `b` is incomplete." in warnings
    assert any("1 and 2 repetitions" in warning for warning in warnings)


def test_same_seed_gives_the_same_comparison():
    generator = np.random.default_rng(1)
    before, after = (run({"m": generator.random(60).tolist()}, name=name) for name in "ab")
    first, second = compare(before, after, seed=3), compare(before, after, seed=3)
    assert first.metrics == second.metrics
    assert first.metrics["m"].mean.sign_flip_p != compare(before, after, seed=4).metrics["m"].mean.sign_flip_p


@given(st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=14))
def test_exchanging_the_runs_turns_every_sign_round(pairs):
    before, after = run({"m": [first for first, _ in pairs]}), run({"m": [second for _, second in pairs]}, name="b")
    there, back = compare(before, after).metrics["m"], compare(after, before).metrics["m"]
    for one, other in ((there.pass_rate, back.pass_rate), (there.mean, back.mean)):
        assert one.difference == -other.difference
        assert one.interval.low == pytest.approx(-other.interval.high, abs=1e-9)
        assert one.p_value == pytest.approx(other.p_value)
        assert (one.better, one.worse) == (other.worse, other.better)
    assert there.table.newly_failing == back.table.newly_passing


@given(st.lists(st.tuples(SCORES, SCORES), min_size=2, max_size=12))
def test_tests_agree_with_scipy_and_statsmodels(pairs):
    first, second = np.array(pairs).T
    found = compare(run({"m": first.tolist()}), run({"m": second.tolist()}, name="b")).metrics["m"]
    reference = stats.permutation_test(
        (second - first,), lambda moved, axis: moved.mean(axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    assert found.mean.sign_flip_p == pytest.approx(min(1.0, reference.pvalue), abs=1e-9)
    table = found.table
    cells = [[table.passed_both, table.newly_failing], [table.newly_passing, table.failed_both]]
    if table.newly_failing + table.newly_passing:
        assert table.p_value == pytest.approx(mcnemar(cells, exact=True).pvalue)
    else:
        assert table.p_value is None
