import math

import numpy as np
import pytest

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.agreement import _bootstrap_replicates as engine
from deemster.agreement._labelled_votes import read_labelled_votes
from deemster.agreement._score_statistics import LARGEST_RANKED
from deemster.agreement._tag_slices import read_tags
from deemster.agreement._verdict_classes import AbstentionModes
from deemster.datasets import Votes
from tests.agreement import loop_reference as loops
from tests.agreement.test_compute_agreement import (
    CRITERIA,
    FACTS,
    number_at,
    one_judge,
    random_value,
    same,
    votes_value,
)

N = 40


def holder_of(result, key):
    if key[0] == "all":
        return result
    return result.per_criterion[key[1]] if key[0] == "criterion" else list(result.per_judge.values())[key[1]]


def quantile(values, share):
    place = share * (len(values) - 1)
    low = math.floor(place)
    high = min(low + 1, len(values) - 1)
    return values[low] + (values[high] - values[low]) * (place - low)


def drawn_rows(rows, seed, clusters=None):
    """The rows of each replicate, drawn one after another from one generator."""
    groups = [[row] for row in rows]
    if clusters is not None:
        order = list(dict.fromkeys(clusters[row["id"]] for row in rows))
        groups = [[row for row in rows if clusters[row["id"]] == name] for name in order]
    rng = np.random.default_rng(seed)
    for _ in range(N):
        yield [row for unit in rng.integers(0, len(groups), len(groups)) for row in groups[unit]]


def slow_intervals(rows, seed, modes, clusters=None):
    """The ends, standard error and count of every number, from replicates that are computed one by one."""
    drawn = [loops.numbers(sample, CRITERIA, *modes) for sample in drawn_rows(rows, seed, clusters)]
    found = {}
    for key in drawn[0]:
        known = sorted(one[key] for one in drawn if one[key] is not None)
        ends = None
        if 2 * len(known) >= N:
            mean = sum(known) / len(known)
            error = (
                math.sqrt(sum((value - mean) ** 2 for value in known) / (len(known) - 1)) if len(known) > 1 else None
            )
            ends = quantile(known, 0.025), quantile(known, 0.975), error
        found[key] = (len(known), ends)
    return found


def differing(result, slow):
    wrong = {}
    for key, (defined, known) in slow.items():
        one = holder_of(result, key).intervals[key[-1]]
        ends = None if number_at(result, key) is None else known
        fits = one.n_bootstrap == defined and (one.ci is None) == (ends is None)
        if fits and ends is not None:
            error = one.standard_error
            fits = all(same(a, b, 1e-8) for a, b in zip((one.ci.lower, one.ci.upper, error), ends, strict=True))
        if not fits or not same(one.estimate, number_at(result, key)):
            wrong[key] = (one, defined, ends)
    return wrong


@pytest.mark.parametrize("modes", [("exclude", "exclude"), ("as_unmet", "as_unmet"), ("as_category", "exclude")])
@pytest.mark.parametrize("seed", [1, 2])
def test_intervals_equal_replicates_computed_one_by_one(seed, modes):
    value = random_value(seed)
    arguments = {"cannot_assess": modes[0], "na_mode": modes[1], "per_judge": True}
    result = compute_metrics(
        Votes.parse(value), None, bootstrap=BootstrapSettings(method="percentile", replicates=N, seed=seed), **arguments
    )
    slow = slow_intervals(loops.rows_of(value), seed, modes)
    assert len(slow) > 100
    assert not differing(result, slow)


def test_bootstrap_draws_whole_clusters():
    value = random_value(4, size=14)
    clusters = {item["id"]: place % 5 for place, item in enumerate(value["items"])}
    result = compute_metrics(
        Votes.parse(value),
        None,
        bootstrap=BootstrapSettings(method="percentile", replicates=N, seed=9),
        per_judge=True,
        cluster=clusters,
    )
    assert result.bootstrap.unit == "cluster"
    slow = slow_intervals(loops.rows_of(value), 9, ("exclude", "exclude"), clusters)
    assert not differing(result, slow)


def test_metadata_key_names_the_clusters():
    value = random_value(4, size=14)
    clusters = {item["id"]: f"author {place % 5}" for place, item in enumerate(value["items"])}
    for item in value["items"]:
        item["metadata"] = {"author": clusters[item["id"]]}
    arguments = {"bootstrap": BootstrapSettings(replicates=N, seed=9)}
    by_key = compute_metrics(Votes.parse(value), None, cluster="author", **arguments)
    assert by_key == compute_metrics(Votes.parse(value), None, cluster=clusters, **arguments)


@pytest.mark.parametrize("clustered", [False, True])
def test_bca_corrects_by_leaving_out_one_unit(clustered):
    value = random_value(8, size=24)
    rows = loops.rows_of(value)
    clusters = {row["id"]: row["id"] if not clustered else place % 9 for place, row in enumerate(rows)}
    result = compute_metrics(
        Votes.parse(value),
        None,
        bootstrap=BootstrapSettings(method="bca", replicates=N, seed=3),
        cluster=clusters if clustered else None,
    )
    names = list(dict.fromkeys(clusters.values()))
    left = [loops.numbers([row for row in rows if clusters[row["id"]] != name], CRITERIA) for name in names]
    drawn = [loops.numbers(sample, CRITERIA) for sample in drawn_rows(rows, 3, clusters)]
    corrected = 0
    for name in ("criterion_accuracy", "mean_kappa", "criterion_f1", "score_rmse", "score_pearson", "score_spearman"):
        key = ("all", name)
        known = sorted(one[key] for one in drawn if one[key] is not None)
        estimate = number_at(result, key)
        below = sum(value < estimate - 1e-12 for value in known)
        ties = sum(abs(value - estimate) <= 1e-12 for value in known)
        values = [one[key] for one in left]
        mean = sum(values) / len(values)
        cubes, squares = (sum((mean - value) ** power for value in values) for power in (3, 2))
        ends = bca_ends(known, (below + ties / 2) / len(known), cubes / (6 * squares**1.5))
        interval = result.intervals[name].ci
        assert interval.method == ("percentile" if ends is None else "bca")
        if ends is not None:
            corrected += 1
            assert same(interval.lower, ends[0], 1e-7)
            assert same(interval.upper, ends[1], 1e-7)
    assert corrected >= 4


def bca_ends(known, share, acceleration):
    from statistics import NormalDist

    normal = NormalDist()
    if not 0 < share < 1:
        return None
    bias = normal.inv_cdf(share)
    shifts = [bias + normal.inv_cdf(level) for level in (0.025, 0.975)]
    return [quantile(known, normal.cdf(bias + shift / (1 - acceleration * shift))) for shift in shifts]


@pytest.mark.parametrize(
    ("method", "drawing"), [("smoothed", "bayesian_weight_blocks"), ("percentile", "resample_blocks")]
)
def test_block_size_changes_no_digit(monkeypatch, method, drawing):
    votes = Votes.parse(random_value(11, size=60, tags=("x", "y")))
    arguments = {"bootstrap": BootstrapSettings(method, 150, seed=5), "per_judge": True, "per_slice": True}
    whole = compute_metrics(votes, None, **arguments)
    original = getattr(engine, drawing)
    seen = []

    def narrow(units, n, seed, *, dtype=np.float64, block_bytes=None):
        if block_bytes is None:
            yield from original(units, n, seed)
            return
        for block in original(units, n, seed, dtype=dtype, block_bytes=units * np.dtype(dtype).itemsize * 32):
            seen.append(block.shape[1])
            yield block

    monkeypatch.setattr(engine, drawing, narrow)
    assert compute_metrics(votes, None, **arguments) == whole
    assert seen == [32, 32, 32, 32, 22]


@pytest.mark.parametrize("method", ["smoothed", "percentile"])
@pytest.mark.parametrize("size", [60, LARGEST_RANKED - 50, LARGEST_RANKED + 100])
def test_small_budget_of_memory_makes_more_blocks(monkeypatch, size, method):
    votes = Votes.parse(random_value(11, size=size))
    whole = compute_metrics(votes, None, bootstrap=BootstrapSettings(method=method, replicates=150, seed=5))
    original = engine.replicate_statistics

    def thrifty(*parts, **more):
        return original(*parts, **more, block_bytes=1)

    monkeypatch.setattr("deemster.agreement._agreement_statistics.replicate_statistics", thrifty)
    assert compute_metrics(votes, None, bootstrap=BootstrapSettings(method=method, replicates=150, seed=5)) == whole


@pytest.mark.parametrize("method", ["smoothed", "percentile", "bca"])
def test_order_of_the_file_changes_no_digit(method):
    value = random_value(12, size=40, tags=("x", "y"))
    arguments = {"bootstrap": BootstrapSettings(method, 100), "per_judge": True, "per_slice": True}
    forwards = compute_metrics(Votes.parse(value), None, **arguments)
    backwards = compute_metrics(Votes.parse(value | {"items": value["items"][::-1]}), None, **arguments)
    assert backwards == forwards


def test_rank_correlations_of_many_items_use_expansion_and_note_it():
    size = LARGEST_RANKED + 300
    value = random_value(21, size=size)
    votes = Votes.parse(value)
    smoothed = compute_metrics(votes, None, bootstrap=BootstrapSettings(replicates=200, seed=1))
    assert smoothed.intervals["score_kendall"].ci.method == "smoothed (linear)"
    result = compute_metrics(
        votes, None, bootstrap=BootstrapSettings(method="percentile", replicates=200, seed=1), per_judge=True
    )
    assert result.intervals["score_kendall"].ci.method == "percentile (linear)"
    assert result.per_judge["b"].intervals["score_spearman"].ci.method == "percentile (linear)"
    assert result.intervals["score_pearson"].ci.method == "percentile"
    rows = [row for row in loops.rows_of(value) if None not in (row["predicted"], row["true"])]
    assert len(rows) > LARGEST_RANKED
    scores = np.array([(row["predicted"], row["true"]) for row in rows])
    every = loops.rows_of(value)
    place = {row["id"]: number for number, row in enumerate(rows)}
    rng = np.random.default_rng(1)
    exact = []
    for _ in range(200):
        drawn = rng.integers(0, len(every), len(every))
        kept = scores[[place[every[number]["id"]] for number in drawn if every[number]["id"] in place]]
        ranked = np.array([midranks(side) for side in kept.T])
        exact.append(np.corrcoef(ranked)[0, 1])
    interval = result.intervals["score_spearman"].ci
    assert abs(interval.lower - np.quantile(exact, 0.025)) < 0.005
    assert abs(interval.upper - np.quantile(exact, 0.975)) < 0.005


def midranks(values):
    _, number, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[number]


def test_result_names_its_bootstrap_and_is_reproduced_by_its_seed():
    votes = Votes.parse(random_value(3))
    first, again = (compute_metrics(votes, bootstrap=BootstrapSettings("percentile", 30, seed=8)) for _ in range(2))
    assert again == first
    assert first.bootstrap.seed == 8
    assert (first.bootstrap.method, first.bootstrap.unit, first.bootstrap.n_bootstrap) == ("percentile", "item", 30)
    interval = first.intervals["criterion_accuracy"].ci
    assert first.bootstrap.accuracy_ci == (interval.lower, interval.upper)


def test_default_is_the_smoothed_method_with_a_fixed_seed():
    votes = Votes.parse(random_value(3))
    result = compute_metrics(votes)
    assert (result.bootstrap.method, result.bootstrap.seed, result.bootstrap.n_bootstrap) == ("smoothed", 0, 1000)
    assert result.intervals["mean_kappa"].ci.method == "smoothed"
    assert result == compute_metrics(votes) == compute_metrics(votes, bootstrap=BootstrapSettings(method="smoothed"))
    assert result != compute_metrics(votes, bootstrap=BootstrapSettings(seed=1))


def test_every_number_of_the_models_has_an_interval():
    result = compute_metrics(
        Votes.parse(random_value(3, size=30, tags=("x",))),
        None,
        bootstrap=BootstrapSettings(replicates=30, seed=1),
        per_judge=True,
        per_slice=True,
    )
    holders = [result, *result.per_criterion, *result.per_judge.values(), *result.slices, result.coverage_stats]
    holders += [one.coverage_stats for one in result.per_criterion] + [result.na_stats, result.cannot_assess_stats]
    holders += [option for one in result.per_criterion[2:] for option in one.per_option]
    for holder in holders:
        floats = [name for name in holder.__struct_fields__ if isinstance(getattr(holder, name), float)]
        floats = [name for name in floats if name != "one_way_p"]
        assert floats
        for name in floats:
            assert same(holder.intervals[name].estimate, getattr(holder, name)), name
    dotted = {"score_icc.icc_2_1", "score_limits.lower", "mean_kappa_by_kind.ordinal", "score_kendall", "bias"}
    assert dotted <= set(result.intervals)


@pytest.mark.parametrize("method", ["smoothed", "percentile", "bca"])
def test_resampling_one_item_gives_no_interval(method):
    votes = one_judge(FACTS, ["MET"], ["MET"])
    result = compute_metrics(votes, None, bootstrap=BootstrapSettings(method=method, replicates=20))
    # Plain percentiles are those of other tools, which do not mind.
    assert result.bootstrap.rmse_ci == ((0.0, 0.0) if method == "percentile" else None)
    assert result.bootstrap.kappa_ci is None
    # One of one is an exact share all the same: anything from 2.5 % on gives it in one case of forty.
    exact = {"smoothed": pytest.approx((0.025, 1.0)), "percentile": (1.0, 1.0)}
    assert result.bootstrap.accuracy_ci == exact.get(method)
    (warning,) = [warning for warning in result.warnings if warning.startswith("one-item")]
    assert "width" not in warning


def test_interval_needs_half_of_the_replicates():
    truth = ["MET"] + ["UNMET"] * 11
    votes = one_judge(FACTS, truth, [*truth[:6], "MET", *truth[7:]])
    result = compute_metrics(votes, None, bootstrap=BootstrapSettings(method="percentile", replicates=400, seed=2))
    precision = result.intervals["criterion_precision"]
    drawn = np.random.default_rng(2)
    defined = sum(bool({0, 6} & set(drawn.integers(0, 12, 12))) for _ in range(400))
    assert precision.n_bootstrap == defined
    assert 200 < defined < 380
    assert precision.ci is not None
    assert any(warning.startswith("undefined-replicates") for warning in result.warnings)


def test_smoothed_replicates_keep_a_class_of_one_label():
    truth = ["MET"] + ["UNMET"] * 11
    result = compute_metrics(one_judge(FACTS, truth, truth), None, bootstrap=BootstrapSettings(replicates=400, seed=2))
    assert result.intervals["criterion_f1"].n_bootstrap == 400
    assert not any(warning.startswith("undefined-replicates") for warning in result.warnings)


def test_slice_is_compared_with_all_other_items():
    value = random_value(13, size=30, tags=("x", "y"))
    result = compute_metrics(
        Votes.parse(value), None, per_slice=True, bootstrap=BootstrapSettings(method="percentile", replicates=N, seed=6)
    )
    rows = loops.rows_of(value)
    assert [one.tag for one in result.slices] == ["x", "y"]
    names = {"accuracy": "criterion_accuracy", "kappa": "mean_kappa", "rmse": "score_rmse", "bias": "bias"}
    for one in result.slices:
        inside = loops.numbers([row for row in rows if one.tag in row["tags"]], CRITERIA)
        outside = loops.numbers([row for row in rows if one.tag not in row["tags"]], CRITERIA)
        assert one.n_items == sum(one.tag in row["tags"] for row in rows)
        for short, name in names.items():
            here, there = inside["all", name], outside["all", name]
            assert same(getattr(one, name), here)
            assert same(getattr(one, f"{short}_difference"), here - there)
        drawn = []
        for sample in drawn_rows(rows, 6):
            there = loops.numbers([row for row in sample if one.tag not in row["tags"]], CRITERIA)
            here = loops.numbers([row for row in sample if one.tag in row["tags"]], CRITERIA)
            drawn.append(here["all", "mean_kappa"] - there["all", "mean_kappa"])
        interval = one.intervals["kappa_difference"].ci
        assert same(interval.lower, quantile(sorted(drawn), 0.025))
        assert same(interval.upper, quantile(sorted(drawn), 0.975))


def test_slice_of_few_items_has_no_interval():
    value = random_value(13, size=12)
    for item in value["items"][:9]:
        item["tags"] = ["few"]
    (one,) = compute_metrics(Votes.parse(value), None, per_slice=True, bootstrap=BootstrapSettings(replicates=9)).slices
    assert one.intervals is None
    assert one.criterion_accuracy is not None


@pytest.mark.parametrize("replicates", [0, 9])
def test_small_slices_have_numbers_but_no_replicates(replicates):
    value = random_value(13, size=24)
    for place, item in enumerate(value["items"]):
        item["tags"] = [f"t{place // 3}"] + ["half"] * (place % 2)
    rows = loops.rows_of(value)
    votes = Votes.parse(value)
    slices = compute_metrics(votes, per_slice=True, bootstrap=BootstrapSettings(replicates=replicates)).slices
    assert [one.tag for one in slices] == sorted({tag for row in rows for tag in row["tags"]})
    for one in slices:
        inside = loops.numbers([row for row in rows if one.tag in row["tags"]], CRITERIA)
        for name in ("criterion_accuracy", "mean_kappa", "score_rmse", "bias"):
            assert same(getattr(one, name), inside["all", name])
        assert (one.intervals is not None) == (replicates > 0 and one.tag == "half")
    labelled = read_labelled_votes(votes, modes=AbstentionModes())
    tags = read_tags(labelled)
    assert [tags.names[number] for number in tags.large] == ["half"]
    assert tags.large_members(len(labelled.ids)).shape == (len(labelled.ids), 1)


def test_small_slice_gives_no_replicate_warning():
    items = [
        {"id": f"i{place:02}", "ground_truth": [word], "votes": {"a": [word]}, "tags": ["few"] * (place == 0)}
        for place, word in enumerate(["MET", "UNMET"] * 20)
    ]
    votes = Votes.parse(votes_value(items, [FACTS], judges=("a",)))
    result = compute_metrics(votes, per_slice=True, bootstrap=BootstrapSettings(replicates=50))
    assert result.slices[0].intervals is None
    assert not any(warning.startswith("undefined-replicates") for warning in result.warnings)


def test_items_without_tags_give_no_slices():
    assert compute_metrics(Votes.parse(random_value(13)), None, per_slice=True).slices == ()


def test_pooled_blocks_take_all_pairs_of_a_kind():
    value = random_value(17, size=20)
    value["rubrics"] = {"x": value.pop("rubric"), "y": {"criteria": [CRITERIA[4], CRITERIA[0], CRITERIA[2]]}}
    for place, item in enumerate(value["items"]):
        item["rubric"] = "xy"[place % 2]
        if place % 2:
            order = (4, 0, 2)
            item["ground_truth"] = [item["ground_truth"][one] for one in order]
            item["votes"] = {judge: [cells[one] for one in order] for judge, cells in item["votes"].items()}
    result = compute_metrics(Votes.parse(value), None, bootstrap=BootstrapSettings(replicates=N, seed=1))
    pairs = {"binary": [], "ordinal": [], "nominal": []}
    for row in loops.rows_of(value):
        criteria = CRITERIA if len(row["truth"]) == 5 else [CRITERIA[4], CRITERIA[0], CRITERIA[2]]
        for criterion, true, said in zip(criteria, row["truth"], row["final"], strict=True):
            labels, _ = loops.scale(criterion, "exclude")
            worth = {option["label"]: option.get("value") for option in criterion.get("options", [])}
            worth |= {"MET": 1.0, "UNMET": 0.0}
            if true in labels and said in labels:
                pairs[loops.kind_of(criterion)].append((worth[true], worth[said], true == said))
    assert [one.scale_type for one in result.pooled_by_scale] == ["binary", "ordinal", "nominal"]
    for one in result.pooled_by_scale:
        true, said, equal = zip(*pairs[one.scale_type], strict=True)
        assert one.n_points == len(true)
        assert same(one.exact_accuracy, sum(equal) / len(equal))
        assert same(one.value_rmse, math.sqrt(sum((a - b) ** 2 for a, b in zip(true, said, strict=True)) / len(true)))
        assert same(one.value_mae, sum(abs(a - b) for a, b in zip(true, said, strict=True)) / len(true))
        assert same(one.value_spearman, loops.spearman(true, said))
        assert same(one.value_pearson, loops.pearson(true, said))
        assert one.intervals["value_rmse"].ci is not None
        assert (one.kappa is None) == (one.scale_type != "binary")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_type_that_counts_are_held_in_changes_no_digit(monkeypatch, dtype):
    votes = Votes.parse(random_value(11, size=40, tags=("x",)))
    arguments = {"bootstrap": BootstrapSettings("bca", 50, seed=5), "per_judge": True, "per_slice": True}
    whole = compute_metrics(votes, None, **arguments)
    monkeypatch.setattr("deemster.agreement._contingency_counts._count_dtype", lambda _: dtype)
    assert compute_metrics(votes, None, **arguments) == whole


def test_many_judges_give_same_counts_as_few():
    judges = tuple("abcdefghijkl")
    value = random_value(19, size=10, criteria=CRITERIA, judges=judges)
    result = compute_metrics(
        Votes.parse(value), None, per_judge=True, bootstrap=BootstrapSettings(method="percentile", replicates=N, seed=2)
    )
    assert not differing(result, slow_intervals(loops.rows_of(value), 2, ("exclude", "exclude")))
