import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deemster.agreement import BootstrapSettings, compute_metrics
from deemster.datasets import RubricDataset, Votes
from deemster.errors import InputError
from tests.agreement import loop_reference as loops
from tests.agreement.make_votes import votes_value
from tests.builders.arguments import agreement_arguments

FACTS = {"name": "facts", "weight": 10, "requirement": "Every claim is supported by the context."}
PADDING = {"name": "padding", "weight": -4, "requirement": "The answer repeats itself."}
DEPTH = {
    "name": "depth",
    "weight": 6,
    "requirement": "How deep is the answer?",
    "scale_type": "ordinal",
    "options": [{"label": "poor", "value": 0}, {"label": "fair", "value": 0.5}, {"label": "good", "value": 1}],
}
FLAW = {
    "name": "flaw",
    "weight": -2,
    "requirement": "How bad is the worst flaw?",
    "scale_type": "ordinal",
    "options": [
        {"label": "grave", "value": 1},
        {"label": "some", "value": 0.4},
        {"label": "n-a", "na": True},
        {"label": "none", "value": 0},
    ],
}
TONE = {
    "name": "tone",
    "weight": 2,
    "requirement": "Which tone?",
    "scale_type": "nominal",
    "options": [{"label": "curt", "value": 0.2}, {"label": "warm", "value": 1}, {"label": "cold", "value": 0}],
}
CRITERIA = (FACTS, PADDING, DEPTH, FLAW, TONE)
EXAMPLE = [
    {
        "id": "q1",
        "tags": ["billing"],
        "ground_truth": ["MET", "UNMET", "good"],
        "votes": {"a": ["MET", "UNMET", "good"], "b": ["MET", "MET", "fair"], "c": ["UNMET", "UNMET", "good"]},
    },
    {
        "id": "q2",
        "tags": ["refund"],
        "ground_truth": ["UNMET", "MET", "fair"],
        "votes": {
            "a": ["UNMET", "MET", "fair"],
            "b": ["MET", "CANNOT_ASSESS", "good"],
            "c": [{"failure": "parse", "message": "no JSON object"}, "UNMET", "fair"],
        },
    },
    {
        "id": "q3",
        "ground_truth": ["MET", "MET", "fair"],
        "votes": {
            "a": [["MET", "UNMET", "MET"], "UNMET", {"verdict": "poor", "p": [0.7, 0.2, 0.1]}],
            "b": ["MET", None, "CANNOT_ASSESS"],
            "c": ["UNMET", "UNMET", "fair"],
        },
    },
    {
        "id": "q4",
        "ground_truth": ["CANNOT_ASSESS", "UNMET", "fair"],
        "votes": {"a": ["UNMET", "UNMET", "fair"], "b": ["UNMET", "UNMET", "poor"], "c": ["MET", "MET", "good"]},
    },
    {"id": "q5", "ground_truth": ["UNMET", "UNMET", "good"], "error": "target timed out"},
    {
        "id": "q6",
        "votes": {"a": ["MET", "UNMET", "good"], "b": ["MET", "UNMET", "fair"], "c": ["MET", "UNMET", "good"]},
    },
]


def one_judge(criterion, truth, final, **more):
    """One criterion, one judge: its votes are the final verdicts."""
    items = [
        {"id": f"i{place:02d}", "ground_truth": [true], "votes": {"a": [said]}}
        for place, (true, said) in enumerate(zip(truth, final, strict=True))
    ]
    return Votes.parse(votes_value(items, [criterion], judges=("a",), **more))


def choice(*labels, kind="ordinal", values=None):
    values = values or [place / (len(labels) - 1) for place in range(len(labels))]
    options = [{"label": label, "value": value} for label, value in zip(labels, values, strict=True)]
    return {"name": "level", "requirement": "Which?", "scale_type": kind, "options": options}


def close(number, expected, places=4):
    return round(number, places) == expected


def codes(result):
    return [warning.split(":")[0] for warning in result.warnings]


# Known answers


def test_votes_example_gives_the_numbers_of_the_specification():
    result = compute_metrics(Votes.parse(votes_value(EXAMPLE, CRITERIA[:3])), None, per_judge=True)
    assert close(result.criterion_accuracy, 0.8182)
    assert result.n_samples == 11
    assert close(result.binary_accuracy, 0.8571)
    assert close(result.macro_accuracy, 0.8333)
    assert (result.criterion_precision, result.criterion_recall) == (1.0, 0.75)
    assert close(result.criterion_f1, 0.8571)
    assert close(result.micro_kappa, 0.72)
    assert close(result.mean_kappa, 0.7222)
    assert close(result.criterion_phi, 0.75)
    assert [round(one.krippendorff_alpha, 4) for one in result.per_criterion] == [-0.3333, -0.2857, 0.0284]
    assert close(result.per_criterion[2].fleiss_kappa, -0.3125)
    assert close(result.score_rmse, 0.1593)
    assert close(result.score_mae, 0.0938)
    assert close(result.bias.mean_bias, -0.0625)
    assert close(result.bias.p_value, 0.5137)
    covered = result.coverage_stats
    assert (covered.n_covered, covered.n_total, covered.n_errored) == (11, 15, 3)
    assert result.n_items == 4


def test_scores_that_are_equal_as_fractions_have_equal_ranks():
    # (0.1 + 0.2)/0.6 and 0.3/0.6 differ in the last digit; taken for two ranks, Spearman's would be 0.9487.
    criteria = [FACTS | {"name": f"c{weight}", "weight": weight} for weight in (0.1, 0.2, 0.3)]
    said = ["000", "001", "111", "100", "110"]
    true = ["000", "001", "110", "001", "110"]
    words = {"0": "UNMET", "1": "MET"}
    items = [
        {"id": f"i{place}", "ground_truth": [words[one] for one in right], "votes": {"a": [words[one] for one in own]}}
        for place, (own, right) in enumerate(zip(said, true, strict=True))
    ]
    result = compute_metrics(Votes.parse(votes_value(items, criteria, judges=("a",))), None)
    assert close(result.score_spearman.coefficient, 0.7255)
    assert "score-collapse" in codes(result)


def test_votes_example_counts_every_judge_by_its_own_votes():
    judges = compute_metrics(Votes.parse(votes_value(EXAMPLE, CRITERIA[:3])), None, per_judge=True).per_judge
    assert list(judges) == ["a", "b", "c"]
    assert [(one.n_samples, one.n_failed, one.n_abstained) for one in judges.values()] == [
        (11, 0, 0),
        (8, 0, 2),
        (10, 1, 0),
    ]
    assert judges["b"].confusion_matrix.labels == ("MET", "UNMET", "CANNOT_ASSESS")
    assert judges["b"].confusion_matrix.matrix == ((2, 0, 1), (2, 1, 0), (0, 1, 0))


def test_truth_from_dataset_equals_truth_from_votes(tmp_path):
    rubric = {"criteria": list(CRITERIA[:3])}
    bare = [{key: value for key, value in item.items() if key != "ground_truth"} for item in EXAMPLE]
    golden = [
        {"id": item["id"], "submission": "text"}
        | ({"ground_truth": item["ground_truth"]} if "ground_truth" in item else {})
        for item in EXAMPLE
    ]
    path = tmp_path / "golden.json"
    path.write_text(json.dumps({"name": "d", "prompt": "p", "rubric": rubric, "items": golden}))
    dataset = RubricDataset.load(path)
    own = compute_metrics(Votes.parse(votes_value(EXAMPLE, CRITERIA[:3])), None)
    given_by = compute_metrics(Votes.parse(votes_value(bare, CRITERIA[:3])), dataset)
    assert given_by.criterion_accuracy == own.criterion_accuracy
    assert given_by.per_criterion == own.per_criterion
    assert given_by.bias == own.bias


# Deliberate differences (section 8)


def test_micro_accuracy_pools_all_kinds():
    rows = zip(["MET", "UNMET"] * 2, ["poor", "good"] * 2, ["fair", "fair"] * 2, strict=True)
    items = [
        {"id": f"i{place}", "ground_truth": [met, level], "votes": {"a": [met, said]}}
        for place, (met, level, said) in enumerate(rows)
    ]
    result = compute_metrics(Votes.parse(votes_value(items, [FACTS, DEPTH], judges=("a",))), None)
    assert (result.criterion_accuracy, result.binary_accuracy) == (0.5, 1.0)


def test_excluded_abstention_counts_nowhere():
    level = choice("L0", "L1", "L2")
    level["options"].append({"label": "NA", "na": True})
    result = compute_metrics(one_judge(level, ["NA", "NA", "L0", "L2"], ["NA", "NA", "L1", "L1"]), None)
    assert (result.criterion_accuracy, result.n_samples) == (0.0, 2)
    assert (result.na_stats.count_true, result.na_stats.count_pred, result.na_stats.kappa) == (2, 2, 1.0)


def test_quadratic_kappa_uses_unused_levels():
    level = choice(*"01234")
    result = compute_metrics(one_judge(level, "000111444", "001110441"), None)
    assert close(result.per_criterion[0].weighted_kappa, 0.766)


def test_adjacent_options_are_next_on_the_scale_not_in_the_list():
    level = choice("low", "high")
    level["options"].insert(1, {"label": "n-a", "na": True})
    result = compute_metrics(one_judge(level, ["low", "low", "high", "high"], ["low", "high", "low", "high"]), None)
    assert result.per_criterion[0].adjacent_accuracy == 1.0
    assert result.per_criterion[0].confusion_matrix.labels == ("low", "high")


def test_abstention_is_a_missing_vote_for_alpha():
    level = choice(*"012")
    level["options"].append({"label": "NA", "na": True})
    votes = {"a": ["0", "1", "2", "0"], "b": ["0", "1", "2", "0"], "c": ["0", "NA", "2", "NA"]}
    items = [
        {"id": f"i{place}", "ground_truth": ["0"], "votes": {judge: [cast[place]] for judge, cast in votes.items()}}
        for place in range(4)
    ]
    result = compute_metrics(Votes.parse(votes_value(items, [level])), None)
    assert result.per_criterion[0].krippendorff_alpha == 1.0


def test_ratio_with_zero_denominator_is_none():
    one = compute_metrics(one_judge(FACTS, ["UNMET"] * 3, ["UNMET"] * 3), None).per_criterion[0]
    assert (one.precision, one.recall, one.f1, one.phi, one.kappa, one.fnr) == (None,) * 6
    assert (one.accuracy, one.fpr, one.is_degenerate, one.kappa_interpretation) == (1.0, 0.0, True, "undefined")


def test_constant_shift_has_no_test_and_no_effect_size():
    items = [
        {"id": f"i{place}", "ground_truth": [true], "votes": {"a": [said]}}
        for place, (true, said) in enumerate([("0.5", "0.6"), ("0.6", "0.7"), ("0.7", "0.8")])
    ]
    level = choice("0.5", "0.6", "0.7", "0.8", values=[0.5, 0.6, 0.7, 0.8])
    result = compute_metrics(Votes.parse(votes_value(items, [level], judges=("a",))), None)
    assert close(result.bias.mean_bias, 0.1)
    assert result.bias.std_bias == 0.0
    assert (result.bias.p_value, result.bias.effect_size, result.bias.ci) == (None, None, None)
    assert "constant-shift" in codes(result)


@pytest.mark.parametrize(
    ("labels", "grading"),
    [
        ([("MET", "CANNOT_ASSESS"), ("MET", "CANNOT_ASSESS"), ("UNMET", "MET")], {"abstention": "zero"}),
        ([("MET", "MET"), ("MET", "UNMET"), ("UNMET", "UNMET")], {"normalize": False}),
    ],
)
def test_true_score_uses_same_rubric_rules(labels, grading):
    second = {"name": "second", "weight": 5, "requirement": "The second thing."}
    items = [
        {"id": f"i{place}", "ground_truth": list(pair), "votes": {"a": list(pair)}} for place, pair in enumerate(labels)
    ]
    result = compute_metrics(Votes.parse(votes_value(items, [FACTS, second], judges=("a",), grading=grading)), None)
    assert (result.score_rmse, result.bias.mean_bias) == (0.0, 0.0)


def test_unknown_label_is_error_with_its_name():
    with pytest.raises(InputError, match="MTE"):
        one_judge(FACTS, ["MET", "MTE", "UNMET"], ["MET", "MET", "UNMET"])


@pytest.mark.parametrize(
    ("mode", "accuracy", "n"), [("exclude", 1.0, 2), ("as_unmet", 0.5, 4), ("as_category", 0.5, 4)]
)
def test_mixed_rubrics_honour_the_modes(mode, accuracy, n):
    other = {"name": "other", "requirement": "Something else."}
    truth = ["MET", "CANNOT_ASSESS", "UNMET", "MET"]
    final = ["MET", "MET", "UNMET", "CANNOT_ASSESS"]
    items = [
        {"id": f"i{place}", "rubric": key, "ground_truth": [true], "votes": {"a": [said]}}
        for place, (key, true, said) in enumerate(zip("xxyy", truth, final, strict=True))
    ]
    value = votes_value(items, [], judges=("a",))
    del value["rubric"]
    value["rubrics"] = {"x": {"criteria": [FACTS]}, "y": {"criteria": [other]}}
    result = compute_metrics(Votes.parse(value), None, cannot_assess=mode)
    assert (result.criterion_accuracy, result.n_samples) == (accuracy, n)
    assert [one.name for one in result.per_criterion] == ["facts", "other"]
    assert "mixed-rubrics" in codes(result)
    (pooled,) = result.pooled_by_scale
    assert (pooled.scale_type, pooled.exact_accuracy, pooled.n_points, pooled.n_abstain) == ("binary", accuracy, n, 2)


def test_abstention_that_nobody_gave_is_no_class():
    tone = {"name": "tone", "weight": 1, "requirement": "t", "scale_type": "nominal"}
    tone["options"] = [{"label": "curt", "value": 0}, {"label": "warm", "value": 1}]
    said = ["curt", "warm", "warm"]
    (one,) = compute_metrics(one_judge(tone, said, said), None, na_mode="as_category").per_criterion
    assert (one.n_options, one.confusion_matrix.labels) == (2, ("curt", "warm"))
    said = ["curt", "CANNOT_ASSESS", "warm"]
    (one,) = compute_metrics(one_judge(tone, said, said), None, na_mode="as_category").per_criterion
    assert one.n_options == 3


def test_equal_rubrics_under_several_keys_are_one_rubric():
    rubric = {"criteria": [{"name": "facts", "weight": 1, "requirement": "f"}]}
    items = [
        {"id": name, "rubric": key, "ground_truth": ["MET"], "votes": {"j": ["MET"]}}
        for name, key in (("1", "a"), ("2", "b"), ("3", "a"))
    ]
    value = {
        "schema_version": "deemster.votes.v1",
        "rubrics": {"a": rubric, "b": rubric},
        "judges": [{"id": "j"}],
        "items": items,
    }
    result = compute_metrics(Votes.parse(value), None)
    assert "mixed-rubrics" not in codes(result)
    assert result.pooled_by_scale is None


def test_values_that_neither_rise_nor_fall_are_taken_as_listed_with_a_warning():
    values = {"poor": 0, "great": 1, "fair": 0.5}
    depth = {"name": "depth", "weight": 1, "requirement": "d", "scale_type": "ordinal"}
    depth["options"] = [{"label": label, "value": value} for label, value in values.items()]
    truth, said = ["poor", "great", "fair"] * 3, ["great", "great", "poor"] * 3
    listed = compute_metrics(one_judge(depth, truth, said), None)
    ordered = compute_metrics(one_judge(depth | {"order": list(values)}, truth, said), None)
    assert "listed-order" in codes(listed)
    assert "listed-order" not in codes(ordered)
    assert listed.per_criterion[0].weighted_kappa == ordered.per_criterion[0].weighted_kappa


def test_pydantic_users_find_their_methods():
    result = compute_metrics(one_judge(FACTS, ["MET", "UNMET"], ["MET", "MET"]), None)
    assert json.loads(result.model_dump_json()) == json.loads(result.to_json())
    assert result.per_criterion[0].model_dump()["accuracy"] == 0.5
    assert result.model_dump()["schema_version"] == json.loads(result.to_json())["schema_version"]


def test_no_pair_of_scores_is_none_and_a_warning():
    silent = ["CANNOT_ASSESS"] * 3
    result = compute_metrics(one_judge(FACTS, ["MET", "UNMET", "MET"], silent), None)
    assert (result.score_rmse, result.bias.mean_bias, result.score_limits) == (None, None, None)
    assert result.score_pearson.interpretation == "insufficient data"
    assert "no-scores" in codes(result)
    (one,) = result.per_criterion
    assert (one.n_samples, one.accuracy, one.confusion_matrix, one.is_degenerate) == (0, None, None, False)


def test_matrix_of_options_without_a_pair_is_one_of_zeros():
    tone = {"name": "tone", "weight": 1, "requirement": "t", "scale_type": "nominal"}
    tone["options"] = [{"label": "curt", "value": 0}, {"label": "warm", "value": 1}]
    (one,) = compute_metrics(one_judge(tone, ["curt", "warm"], ["CANNOT_ASSESS"] * 2), None).per_criterion
    assert one.confusion_matrix.matrix == ((0, 0), (0, 0))


# Every number against plain loops

CELLS = {
    "facts": ["MET", "UNMET", "CANNOT_ASSESS"],
    "padding": ["MET", "UNMET", "CANNOT_ASSESS"],
    "depth": ["poor", "fair", "good", "CANNOT_ASSESS"],
    "flaw": ["grave", "some", "none", "n-a"],
    "tone": ["curt", "warm", "cold", "CANNOT_ASSESS"],
}
ODD = [None, {"failure": "parse"}, {"failure": "unknown"}]
MODES = [(ca, na) for ca in ("exclude", "as_unmet", "as_category") for na in ("exclude", "as_unmet")]


def random_value(seed, size=12, criteria=CRITERIA, judges=("a", "b", "c"), tags=()):
    rng = np.random.default_rng(seed)

    def pick(labels, odd=0.1):
        pool = ODD if rng.random() < odd else labels
        return pool[int(rng.integers(len(pool)))]

    items = []
    for place in range(size):
        truth = [pick(CELLS[one["name"]], odd=0.0) if rng.random() > 0.05 else None for one in criteria]
        votes = {}
        for judge in judges:
            same = rng.random(len(criteria)) < 0.6
            votes[judge] = [
                true if keep and true is not None else pick(CELLS[one["name"]])
                for one, true, keep in zip(criteria, truth, same, strict=True)
            ]
        item = {"id": f"i{place:03d}", "ground_truth": truth, "votes": votes}
        if tags:
            item["tags"] = [tag for tag in tags if rng.random() < 0.5]
        items.append(item)
    return votes_value(items, criteria, judges)


def number_at(result, key):
    """The number of a result for a key of the plain loops."""
    scope, *place, name = key
    holder = {"all": result, "criterion": result.per_criterion, "judge": result.per_judge}[scope]
    if scope == "criterion":
        holder = holder[place[0]]
    if scope == "judge":
        holder = list(holder.values())[place[0]]
    for part in name.split("."):
        holder = holder.get(part) if isinstance(holder, dict) else getattr(holder, part)
    for inner in ("coefficient", "mean_bias"):
        holder = getattr(holder, inner, holder)
    return holder


def same(number, expected, tolerance=1e-9):
    if number is None or expected is None:
        return number is None and expected is None
    return math.isclose(number, expected, rel_tol=tolerance, abs_tol=tolerance)


def mismatches(result, expected):
    return {
        key: (number_at(result, key), number)
        for key, number in expected.items()
        if not same(number_at(result, key), number)
    }


@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize("seed", range(3))
def test_every_number_equals_plain_loops_in_every_mode(modes, seed):
    value = random_value(seed)
    result = compute_metrics(Votes.parse(value), None, per_judge=True, cannot_assess=modes[0], na_mode=modes[1])
    assert not mismatches(result, loops.numbers(loops.rows_of(value), CRITERIA, *modes))


@pytest.mark.parametrize("cannot_assess", ["exclude", "as_unmet", "as_category"])
def test_abstention_may_be_a_class_of_nominal_criteria(cannot_assess):
    criteria = (FACTS, PADDING, TONE)
    value = random_value(5, criteria=criteria)
    result = compute_metrics(
        Votes.parse(value), None, per_judge=True, cannot_assess=cannot_assess, na_mode="as_category"
    )
    assert not mismatches(result, loops.numbers(loops.rows_of(value), criteria, cannot_assess, "as_category"))
    assert result.per_criterion[2].confusion_matrix.labels == ("curt", "warm", "cold", "Cannot assess / not applicable")
    assert result.coverage_stats is None


@given(st.integers(0, 2**32), st.integers(1, 5), st.sampled_from(MODES))
def test_tiny_inputs_equal_plain_loops(seed, size, modes):
    value = random_value(seed, size=size, judges=("a", "b"))
    if not loops.rows_of(value):
        return
    result = compute_metrics(Votes.parse(value), None, per_judge=True, cannot_assess=modes[0], na_mode=modes[1])
    assert not mismatches(result, loops.numbers(loops.rows_of(value), CRITERIA, *modes))


def test_options_keep_order_of_author():
    value = random_value(1)
    flaw = compute_metrics(Votes.parse(value), None).per_criterion[3]
    assert [(one.label, one.index) for one in flaw.per_option] == [("grave", 0), ("some", 1), ("none", 3)]
    labels = flaw.confusion_matrix.labels
    rows = loops.rows_of(value)
    for one in flaw.per_option:
        pairs = [(r["truth"][3], r["final"][3]) for r in rows if r["truth"][3] in labels and r["final"][3] in labels]
        assert one.support_true == sum(true == one.label for true, _ in pairs)
        hits = sum(true == said == one.label for true, said in pairs)
        assert same(one.recall, loops.share(hits, one.support_true))
        assert same(one.precision, loops.share(hits, one.support_pred))
        assert sum(flaw.confusion_matrix.matrix[labels.index(one.label)]) == one.support_true


# Order, and what cannot be asked


@given(st.integers(0, 2**32), st.randoms(use_true_random=False))
@settings(max_examples=15, deadline=None)
def test_order_of_the_file_changes_nothing(seed, random):
    value = random_value(seed, size=8, tags=("x", "y"))
    if not loops.rows_of(value):
        return
    arguments = {"bootstrap": BootstrapSettings(replicates=20, seed=3), "per_judge": True, "per_slice": True}
    first = compute_metrics(Votes.parse(value), None, **arguments)
    shuffled = json.loads(json.dumps(value))
    random.shuffle(shuffled["items"])
    assert compute_metrics(Votes.parse(shuffled), None, **arguments) == first


def test_criteria_of_one_name_that_differ_are_numbered():
    again = FACTS | {"requirement": "Every claim has a source."}
    items = [
        {"id": f"i{place}", "rubric": key, "ground_truth": ["MET"], "votes": {"a": ["MET"]}}
        for place, key in enumerate("yx")
    ]
    value = votes_value(items, [], judges=("a",))
    del value["rubric"]
    value["rubrics"] = {"x": {"criteria": [FACTS]}, "y": {"criteria": [again]}}
    result = compute_metrics(Votes.parse(value), None)
    assert [one.name for one in result.per_criterion] == ["facts", "facts #2"]
    assert [one.n_samples for one in result.per_criterion] == [1, 1]


def test_generated_criterion_number_avoids_existing_name():
    again = FACTS | {"requirement": "Every claim has a source."}
    items = [
        {"id": f"i{place}", "rubric": key, "ground_truth": ["MET"] * size, "votes": {"a": ["MET"] * size}}
        for place, (key, size) in enumerate([("x", 2), ("y", 1)])
    ]
    value = votes_value(items, [], judges=("a",))
    del value["rubric"]
    value["rubrics"] = {"x": {"criteria": [FACTS, PADDING | {"name": "facts #2"}]}, "y": {"criteria": [again]}}
    result = compute_metrics(Votes.parse(value), None)
    assert [one.name for one in result.per_criterion] == ["facts", "facts #2", "facts #3"]


def test_criterion_of_two_rubrics_is_one_column():
    items = [
        {"id": f"i{place}", "rubric": key, "ground_truth": truth, "votes": {"a": truth}}
        for place, (key, truth) in enumerate([("x", ["MET"]), ("y", ["MET", "UNMET"]), ("x", ["UNMET"])])
    ]
    value = votes_value(items, [], judges=("a",))
    del value["rubric"]
    value["rubrics"] = {"x": {"criteria": [FACTS]}, "y": {"criteria": [PADDING, FACTS]}}
    result = compute_metrics(Votes.parse(value), None)
    assert {one.name: one.n_samples for one in result.per_criterion} == {"facts": 3, "padding": 1}


@pytest.mark.parametrize(
    "bootstrap", [BootstrapSettings(replicates=0), BootstrapSettings("smoothed", 10), BootstrapSettings("bca", 10)]
)
def test_criterion_of_errored_items_only_is_in_coverage_only(bootstrap):
    items = [
        {"id": "i0", "rubric": "x", "ground_truth": ["MET"], "votes": {"a": ["MET"], "b": ["UNMET"]}},
        {"id": "i1", "rubric": "x", "ground_truth": ["UNMET"], "votes": {}},
        {"id": "i2", "rubric": "y", "ground_truth": ["good"], "error": "down"},
    ]
    value = votes_value(items, [], judges=("a", "b"))
    del value["rubric"]
    value["rubrics"] = {"x": {"criteria": [FACTS]}, "y": {"criteria": [DEPTH]}}
    result = compute_metrics(
        Votes.parse(value),
        None,
        per_judge=True,
        bootstrap=bootstrap,
        per_slice=True,
    )
    facts, depth = result.per_criterion
    assert (facts.n_samples, facts.coverage_stats.n_total, facts.coverage_stats.n_errored) == (1, 2, 0)
    assert (depth.n_samples, depth.coverage_stats.n_total, depth.coverage_stats.n_errored) == (0, 1, 1)
    assert (depth.exact_accuracy, depth.krippendorff_alpha, depth.is_degenerate) == (None, None, False)
    assert [one.n_points for one in result.pooled_by_scale] == [1, 0]
    assert result.n_items == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"cannot_assess": "as_worst"}, "`cannot_assess` has no mode 'as_worst'"),
        ({"na_mode": "as_catgory"}, "Did you mean `as_category`"),
        ({"bootstrap": "bca"}, "`bootstrap` is `dm.agreement.BootstrapSettings\\(...\\)`, not 'bca'"),
        ({"method": "bcaa"}, "Did you mean `bca`"),
        ({"replicates": -1}, "`replicates` is a whole number from 0 on, not -1"),
        ({"replicates": True}, "`replicates` is a whole number from 0 on, not True"),
        ({"confidence": 1.0}, "`confidence` lies strictly between 0 and 1, not 1.0"),
        ({"cluster": "author"}, "No item's metadata has `author` to cluster by"),
        ({"cluster": {"q1": "x"}}, "sample `q2`: The item has no cluster"),
        ({"judges": []}, "`judges` names no judge"),
        ({"judges": "a"}, "`judges` is a list of names, not text"),
        ({"judges": ["a", "d"]}, "There is no judge 'd' among the votes"),
        ({"cluster": {"q1": "x", "q2": math.nan, "q3": "x", "q4": "x"}}, "sample `q2`: The item has no cluster"),
        ({"cluster": {"q1": "x", "q2": ["x"], "q3": "x", "q4": "x"}}, "sample `q2`: A cluster is .* not a list"),
        ({"cluster": 5}, "`cluster` is a metadata key or a map from item ids to clusters, not a number"),
        ({"replicates": "10"}, "`replicates` is a whole number from 0 on, not '10'"),
        ({"seed": -1}, "`seed` is a whole number from 0 on, not -1"),
        ({"seed": 1.5}, "`seed` is a whole number from 0 on, not 1.5"),
        ({"seed": "7"}, "`seed` is a whole number from 0 on, not '7'"),
        ({"dataset": {}}, "`dataset` is a RubricDataset, the path of one, or None, not a map"),
    ],
)
def test_invalid_arguments_are_error(arguments, message):
    with pytest.raises(ValueError, match=message):
        compute_metrics(Votes.parse(votes_value(EXAMPLE, CRITERIA[:3])), **agreement_arguments(**arguments))


@pytest.mark.parametrize(
    ("result", "told"), [(None, "null"), ({}, "a map. `Votes.parse` reads a map"), (5, "a number")]
)
def test_non_votes_are_error(result, told):
    with pytest.raises(InputError, match=rf"`result` is Votes or the path of a votes file, not {told}\."):
        compute_metrics(result)


def test_numpy_integers_are_integers():
    votes = Votes.parse(votes_value(EXAMPLE, CRITERIA[:3]))
    drawn = compute_metrics(votes, bootstrap=BootstrapSettings(replicates=np.int64(9), seed=np.int64(3))).bootstrap
    assert (drawn.n_bootstrap, drawn.seed) == (9, 3)


def test_overflowing_scores_are_error():
    criteria = [FACTS | {"weight": 1e300}, PADDING | {"weight": -1e300}]
    items = [{"id": "x", "ground_truth": ["MET", "UNMET"], "votes": {"a": ["MET", "MET"]}}]
    value = votes_value(items, criteria, judges=("a",)) | {"grading": {"normalize": False}}
    with pytest.raises(InputError, match=r"Scores reach 1e\+300"):
        compute_metrics(Votes.parse(value))


def test_abstentions_are_counted_without_overflow():
    labels = {(True, True): 8, (True, False): 1, (False, True): 2, (False, False): 69}
    entries = [pair for pair, count in labels.items() for _ in range(count)]
    words = {True: "CANNOT_ASSESS", False: "MET"}
    rounds, columns = 25, 40
    items = [
        {
            "id": f"i{place:04}",
            "ground_truth": [words[truth]] * columns,
            "votes": {"a": [words[said]] * columns},
        }
        for place, (truth, said) in enumerate(entries * rounds)
    ]
    criteria = [{"name": f"c{place}", "requirement": "It holds."} for place in range(columns)]
    stats = compute_metrics(Votes.parse(votes_value(items, criteria, judges=("a",)))).cannot_assess_stats
    # 69 · 25 · 40 = 69,000 cells without an abstention, by hand: observed 77/80, by chance (9·10 + 71·70)/80².
    expected = (9 * 10 + 71 * 70) / 6400
    assert stats.kappa == pytest.approx((77 / 80 - expected) / (1 - expected), abs=1e-12)
    assert (stats.count_true, stats.count_pred) == (9000, 10000)


def test_as_category_with_ordinal_abstention_is_error():
    with pytest.raises(ValueError, match=r"ordinal criterion `depth`") as caught:
        compute_metrics(Votes.parse(random_value(0)), None, na_mode="as_category")
    assert [fault.message.split("`")[3] for fault in caught.value.issues] == ["depth", "flaw"]


def test_as_category_without_ordinal_abstention_is_allowed():
    votes = one_judge(choice(*"012"), "0120", "0110")
    plain, asked = compute_metrics(votes, None), compute_metrics(votes, None, na_mode="as_category")
    assert asked.per_criterion[0].weighted_kappa == plain.per_criterion[0].weighted_kappa


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([{"id": "x", "votes": {"a": ["MET"]}}], "No item has ground truth"),
        ([{"id": "x", "ground_truth": ["MET"], "error": "down"}], "Every labelled item failed"),
        ([{"id": "x", "ground_truth": ["MET"], "votes": {"a": [{"failure": "parse"}]}}], "Every labelled item failed"),
    ],
)
def test_votes_without_comparable_pairs_are_error(items, message):
    with pytest.raises(ValueError, match=message):
        compute_metrics(Votes.parse(votes_value(items, [FACTS], judges=("a",))), None)
