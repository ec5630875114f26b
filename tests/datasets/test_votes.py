from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.datasets import Probability, Repeat, RubricDataset, Votes, derive, with_ground_truth
from deemster.datasets.join_ground_truth import changed_labels
from deemster.datasets.judge_selection import select_judges
from deemster.errors import VotesError
from deemster.rubrics.criterion import FAILED, FAILED_WORST, MISSING
from tests.datasets import bad_votes as mistakes
from tests.datasets.loop_reference import plain_derivation, votes_files

RUBRIC = {
    "name": "support",
    "version": "2",
    "criteria": [
        {"name": "facts", "weight": 10, "requirement": "Every claim is supported by the context."},
        {"name": "padding", "weight": -4, "requirement": "The answer repeats itself."},
        {
            "name": "depth",
            "weight": 6,
            "requirement": "How deep is the answer?",
            "scale_type": "ordinal",
            "options": [{"label": "poor", "value": 0}, {"label": "fair", "value": 0.5}, {"label": "good", "value": 1}],
        },
    ],
}
PILOT = {
    "schema_version": "deemster.votes.v1",
    "name": "pilot",
    "rubric": RUBRIC,
    "judges": [{"id": "a"}, {"id": "b"}, {"id": "c"}],
    "items": [
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
            "annotations": {"ann": ["UNMET", "MET", "fair"], "bob": ["UNMET", "UNMET", "fair"]},
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
    ],
}
TABLE = {
    "q1": (["MET", "UNMET", "good"], 1.0, 1.0, [1.0, 0.5625, 0.375]),
    "q2": (["UNMET", "MET", "fair"], 0.0, 0.0, [0.0, 1.0, 0.5]),
    "q3": (["MET", "UNMET", "poor"], 0.625, 0.5625, [0.625, 1.0, 0.1875]),
    "q4": (["UNMET", "UNMET", "fair"], 0.1875, 0.5, [0.1875, 0.0, 0.75]),
    "q5": ([None, None, None], None, 0.375, [None, None, None]),
    "q6": (["MET", "UNMET", "good"], 1.0, None, [1.0, 0.8125, 1.0]),
}


def numbers(array):
    return [None if math.isnan(value) else value for value in array.tolist()]


def one(votes, **item):
    """The only block of a file with one item."""
    return Votes.parse({**PILOT, "items": [{"id": "q", "votes": votes, **item}]}).blocks[0]


def final_of(block_votes, **root):
    parsed = Votes.parse({**PILOT, **root, "items": [{"id": "q", "votes": block_votes}]})
    return derive(parsed)[0]


@pytest.mark.parametrize("name", TABLE)
def test_worked_example_has_verdicts_and_scores_of_specification(name):
    votes = Votes.parse(PILOT)
    (derived,) = derive(votes)
    row = votes.ids.index(name)
    final, score, true_score, judges = TABLE[name]
    criteria = votes.blocks[0].rubric.criteria
    labels = [
        None if code < 0 else criterion.labels[code]
        for criterion, code in zip(criteria, derived.final.codes[row], strict=True)
    ]
    assert labels == final
    assert numbers(derived.score)[row] == (None if score is None else pytest.approx(score, abs=1e-12))
    assert numbers(derived.true_score)[row] == (None if true_score is None else pytest.approx(true_score, abs=1e-12))
    assert numbers(derived.judge_scores[row]) == [None if j is None else pytest.approx(j, abs=1e-12) for j in judges]


def test_columns_equal_file_content():
    votes = Votes.parse(PILOT)
    (block,) = votes.blocks
    assert votes.ids == ("q1", "q2", "q3", "q4", "q5", "q6")
    assert votes.tags == (("billing",), ("refund",), (), (), (), ())
    assert block.votes.codes.shape == (6, 3, 3)
    assert block.votes.codes.dtype == np.int16
    assert block.votes.codes[1].tolist() == [[1, 0, FAILED], [0, 2, 1], [1, 2, 1]]
    assert block.votes.codes[4].tolist() == [[MISSING] * 3] * 3
    assert block.truth.codes[3].tolist() == [2, 1, 1]
    assert block.labelled.tolist() == [True] * 5 + [False]
    assert block.errored.tolist() == [False] * 4 + [True, False]
    assert block.errors == {4: "target timed out"}
    assert block.annotations["bob"].codes[1].tolist() == [1, 1, 1]
    assert block.annotations["bob"].codes[0].tolist() == [MISSING] * 3
    assert block.repeats == (Repeat(2, 0, 0, (0, 1, 0)),)
    assert block.probabilities == (Probability(2, 2, 0, (0.7, 0.2, 0.1)),)


def test_columns_are_read_only():
    block = Votes.parse(PILOT).blocks[0]
    with pytest.raises(ValueError, match="read-only"):
        block.votes.codes[0, 0, 0] = 1


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_worked_example_round_trips(suffix, tmp_path):
    path = tmp_path / f"votes.{suffix}"
    votes = Votes.parse(PILOT)
    votes.save(path)
    first = path.read_bytes()
    assert Votes.load(path) == votes
    Votes.load(path).save(path)
    assert path.read_bytes() == first


def test_jsonl_reads_same_as_json(tmp_path):
    header = {key: value for key, value in PILOT.items() if key != "items"}
    text = "\r\n\r\n".join(json.dumps(part) for part in [header, *PILOT["items"]])
    (tmp_path / "votes.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert Votes.load(tmp_path / "votes.jsonl") == Votes.parse(PILOT)


def test_labels_are_read_without_case_and_outer_space():
    block = one({"a": [" met", "Unmet", "GOOD "]}, ground_truth=["met", "cannot_assess", " fair"])
    assert block.votes.codes[0, :, 0].tolist() == [0, 1, 2]
    assert block.truth.codes[0].tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("repeats", "merged"),
    [
        (["MET", "UNMET", "MET"], 0),
        (["MET", "UNMET"], 1),
        (["MET", {"failure": "unknown"}, {"failure": "unknown"}], 0),
        ([{"failure": "parse"}, {"failure": "infrastructure"}], FAILED),
        ([{"failure": "parse"}, {"failure": "unknown"}], FAILED_WORST),
        ([{"failure": "parse"}, "CANNOT_ASSESS"], 2),
        ([None, {"failure": "parse"}], FAILED),
        ([None, None], MISSING),
    ],
)
def test_repeats_are_one_vote_and_failed_ones_are_dropped(repeats, merged):
    assert one({"a": [repeats, None, None]}).votes.codes[0, 0, 0] == merged


def test_repeats_follow_the_rule_of_their_criterion_with_equal_weights():
    assert one({"a": [None, None, ["poor", "good", "good", "good", "good"]]}).votes.codes[0, 2, 0] == 2
    grading = {"ordinal_aggregation": "min"}
    item = {"id": "q", "votes": {"a": [None, None, ["poor", "good", "good", "good", "good"]]}}
    assert Votes.parse({**PILOT, "grading": grading, "items": [item]}).blocks[0].votes.codes[0, 2, 0] == 0


def test_probabilities_of_repeats_are_their_mean():
    cells = [{"verdict": "MET", "p": 0.75}, "MET", {"verdict": "UNMET", "p": 0.25}]
    assert one({"a": [cells, None, None]}).probabilities == (Probability(0, 0, 0, (0.5,)),)


def test_weight_of_a_judge_counts_under_a_weighted_rule_only():
    votes = {"a": ["MET", None, None], "b": ["UNMET", None, None], "c": ["UNMET", None, None]}
    judges = [{"id": "a", "weight": 5}, {"id": "b"}, {"id": "c"}]
    assert final_of(votes, judges=judges).final.codes[0, 0] == 1
    assert final_of(votes, judges=judges, grading={"aggregation": "weighted"}).final.codes[0, 0] == 0


def test_failed_cell_counts_in_score_by_replacement_and_stays_failed():
    derived = final_of({"a": [{"failure": "unknown"}, "UNMET", "good"]})
    assert derived.final.codes[0].tolist() == [FAILED_WORST, 1, 2]
    assert derived.score[0] == pytest.approx(6 / 16)
    derived = final_of({"a": [{"failure": "parse"}, "UNMET", "good"]})
    assert derived.final.codes[0].tolist() == [FAILED, 1, 2]
    assert derived.score[0] == 1.0


def test_item_whose_every_cell_failed_has_no_score():
    derived = final_of({"a": [{"failure": "unknown"}] * 3}, grading={"abstention": "fail"})
    assert numbers(derived.score) == [None]
    assert numbers(derived.judge_scores[0]) == [None, None, None]


def test_penalty_is_taken_from_every_score_and_never_below_zero():
    item = {**PILOT["items"][0], "penalty": 0.4375}
    (derived,) = derive(Votes.parse({**PILOT, "items": [item]}))
    assert numbers(derived.score) == [0.5625]
    assert numbers(derived.true_score) == [0.5625]
    assert numbers(derived.judge_scores[0]) == [0.5625, 0.125, 0.0]


def test_recorded_results_override_derived_ones_which_are_kept():
    item = {**PILOT["items"][0], "final": ["UNMET", None, None], "score": 0.25}
    (derived,) = derive(Votes.parse({**PILOT, "items": [item]}))
    assert derived.final.codes[0].tolist() == [1, 1, 2]
    assert derived.derived_final.codes[0].tolist() == [0, 1, 2]
    assert numbers(derived.score) == [0.25]
    assert numbers(derived.derived_score) == [1.0]


def test_recorded_verdict_without_a_recorded_score_gives_the_score_of_that_verdict():
    item = {**PILOT["items"][0], "final": ["UNMET", None, None]}
    (derived,) = derive(Votes.parse({**PILOT, "items": [item]}))
    assert numbers(derived.score) == [0.375]
    assert numbers(derived.derived_score) == [1.0]


def test_check_answers_its_criterion_without_panel(tmp_path):
    item = {"id": "q1", "votes": {"a": ["MET", "fair", None], "check:contains": [None, None, {"verdict": "UNMET"}]}}
    votes = Votes.parse({**mistakes.VOTES, "items": [item]})
    (block,), (derived,) = votes.blocks, derive(votes)
    assert [judge.id for judge in votes.judges] == ["a", "b"]
    assert block.votes.codes[0, 2].tolist() == [MISSING, MISSING]
    assert block.checks.codes[0].tolist() == [MISSING, MISSING, 1]
    assert derived.final.codes[0].tolist() == [0, 1, 1]
    votes.save(tmp_path / "votes.json")
    assert Votes.load(tmp_path / "votes.json") == votes


def test_items_of_several_rubrics_form_blocks_in_order_of_first_appearance(tmp_path):
    rubrics = {"unused": RUBRIC, "short": {"criteria": RUBRIC["criteria"][:1]}, "long": RUBRIC}
    rows = [
        {"id": "1", "rubric": "long", "votes": {"a": ["MET", "MET", "good"]}},
        {"id": "2", "rubric": "short", "votes": {"a": ["MET"]}},
        {"id": "3", "rubric": "long", "votes": {"b": ["MET", "MET", "fair"]}},
    ]
    root = {key: value for key, value in PILOT.items() if key != "rubric"}
    votes = Votes.parse({**root, "rubrics": rubrics, "items": rows})
    assert [(block.key, block.items.tolist()) for block in votes.blocks] == [("long", [0, 2]), ("short", [1])]
    votes.save(tmp_path / "votes.jsonl")
    assert Votes.load(tmp_path / "votes.jsonl") == votes


@pytest.mark.parametrize(
    ("annotations", "truth", "open_cells"),
    [
        ([["MET", "UNMET", "good"]], [0, 1, 2], []),
        ([["MET", "MET", "poor"], ["MET", "UNMET", "good"]], [0, MISSING, MISSING], [1, 2]),
        ([["MET", "MET", "poor"], ["MET", "UNMET", "good"], ["UNMET", "UNMET", "good"]], [0, 1, 2], []),
        ([[None, None, "poor"], [None, "CANNOT_ASSESS", "fair"], [None, None, "good"]], [MISSING, 2, 1], []),
        ([["MET", "MET", "good"], ["MET", "MET", "CANNOT_ASSESS"]], [0, 0, MISSING], [2]),
        ([["MET", "MET", "good"]] + [["MET", "MET", "CANNOT_ASSESS"]] * 2, [0, 0, 3], []),
        ([["MET", "MET", "good"]] * 2 + [["MET", "MET", "CANNOT_ASSESS"]], [0, 0, 2], []),
    ],
)
def test_without_ground_truth_the_consensus_of_annotators_is_the_truth(annotations, truth, open_cells):
    named = {f"ann{at}": entries for at, entries in enumerate(annotations)}
    block = one({"a": ["MET", "MET", "good"]}, annotations=named)
    assert block.truth.codes[0].tolist() == truth
    assert np.flatnonzero(block.no_consensus[0]).tolist() == open_cells
    assert block.labelled.tolist() == [True]


def test_annotator_with_only_nulls_labels_nothing():
    block = one({"a": ["MET", "MET", "good"]}, annotations={"ann": [None, None, None]})
    assert block.labelled.tolist() == [False]
    assert not block.annotations


@pytest.mark.parametrize("mistake", mistakes.VOTES_FILES, ids=lambda mistake: mistake.name)
def test_bad_votes_file_is_error(mistake, tmp_path):
    path = tmp_path / mistake.file
    path.write_bytes(mistake.text if isinstance(mistake.text, bytes) else mistake.text.encode())
    with pytest.raises(VotesError):
        Votes.load(path)


def test_all_issues_of_votes_file_have_lines(golden, folder):
    pages = []
    for mistake in mistakes.VOTES_FILES:
        data = mistake.text if isinstance(mistake.text, bytes) else mistake.text.encode()
        (folder / mistake.file).write_bytes(data)
        with pytest.raises(VotesError) as caught:
            Votes.load(mistake.file)
        pages.append(f"## {mistake.name}\n{caught.value}\n")
    golden("dataset/votes.txt", "\n".join(pages))


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ({"verdict": "MET", "p": math.nan}, "p is nan, which is not a finite number"),
        ({"verdict": "MET", "p": math.inf}, "p is inf, which is not a finite number"),
        ({"verdict": "MET", "reason": "\ud800"}, "lone surrogate"),
        (object(), "is a object, which is not a JSON value"),
    ],
)
def test_invalid_python_values_are_error(cell, said):
    with pytest.raises(VotesError, match=said):
        one({"a": [cell, None, None]})


@pytest.mark.parametrize("key", ["penalty", "score"])
@pytest.mark.parametrize("value", [math.nan, math.inf, 10**400, True])
def test_penalty_or_score_is_a_finite_number(key, value):
    with pytest.raises(VotesError, match=f"{key}(:| must be a| is (nan|inf), which is not a finite) number"):
        one({"a": ["MET", "MET", "good"]}, **{key: value})


def test_unwritable_path_is_error(tmp_path):
    votes = Votes.parse(PILOT)
    with pytest.raises(VotesError, match="cannot be written"):
        votes.save(tmp_path / "none" / "votes.json")
    with pytest.raises(VotesError, match="Known formats: `json`, `jsonl`"):
        votes.save(tmp_path / "votes.yaml")


def essays(**item):
    row = {"id": "q6", "submission": "x", "ground_truth": ["MET", "MET", "good"], **item}
    return RubricDataset([row, {"id": "other", "submission": "y"}], rubric=RUBRIC)


def test_dataset_labels_the_items_that_the_votes_leave_unlabelled():
    dataset = essays(tags=["late"], metadata={"doc": 1}, annotations={"eve": ["MET", "UNMET", None]})
    votes = with_ground_truth(Votes.parse(PILOT), dataset)
    (block,) = votes.blocks
    assert block.truth.codes[5].tolist() == [0, 0, 2]
    assert block.labelled.all()
    assert block.annotations["eve"].codes[5].tolist() == [0, 1, MISSING]
    assert (votes.tags[5], votes.metadata[5]) == (("late",), {"doc": 1})
    assert derive(votes)[0].true_score[5] == pytest.approx(12 / 16)


def test_labels_of_dataset_override_votes():
    dataset = essays(id="q1", ground_truth=["UNMET", "MET", "poor"], tags=["late"])
    votes = with_ground_truth(Votes.parse(PILOT), dataset)
    assert votes.blocks[0].truth.codes[0].tolist() == [1, 0, 0]
    assert votes.blocks[0].truth.codes[1].tolist() == [1, 0, 1]
    assert votes.tags[0] == ("billing",)


def test_annotators_of_the_dataset_replace_those_of_the_votes_on_their_item_alone():
    people = {"x": ["MET", "MET", "good"], "y": ["MET", "UNMET", "good"]}
    (block,) = with_ground_truth(Votes.parse(PILOT), essays(id="q2", ground_truth=None, annotations=people)).blocks
    assert block.truth.codes[1].tolist() == [0, MISSING, 2]
    assert block.no_consensus[1].tolist() == [False, True, False]
    assert (sorted(block.annotations), bool(block.stated[1])) == (["x", "y"], False)
    (block,) = with_ground_truth(Votes.parse(PILOT), essays(id="q2", ground_truth=["MET", None, "good"])).blocks
    assert block.truth.codes[1].tolist() == [0, MISSING, 2]
    assert sorted(block.annotations) == ["ann", "bob"]


def test_item_that_the_dataset_does_not_label_keeps_its_labels():
    silent = essays(id="q2", ground_truth=[None, None, None], annotations={"x": [None, None, None]})
    joined = with_ground_truth(Votes.parse(PILOT), silent)
    assert joined.blocks[0].truth.codes[1].tolist() == [1, 0, 1]
    assert sorted(joined.blocks[0].annotations) == ["ann", "bob"]


def test_consensus_of_the_dataset_labels_votes_too():
    dataset = essays(ground_truth=None, annotations={"x": ["MET", "MET", "good"], "y": ["MET", "UNMET", "good"]})
    (block,) = with_ground_truth(Votes.parse(PILOT), dataset).blocks
    assert block.truth.codes[5].tolist() == [0, MISSING, 2]
    assert block.no_consensus[5].tolist() == [False, True, False]


def test_rubric_with_added_na_option_matches():
    full = json.loads(json.dumps(RUBRIC))
    full["criteria"][2]["options"].append({"label": "Cannot assess / not applicable", "na": True})
    dataset = RubricDataset([{"id": "q6", "submission": "x", "ground_truth": ["MET", "MET", "good"]}], rubric=full)
    assert with_ground_truth(Votes.parse(PILOT), dataset).blocks[0].truth.codes[5].tolist() == [0, 0, 2]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"weight": 3}, "The criterion `facts` has another weight in the dataset."),
        ({"name": "truth"}, "The criterion `facts` of the votes is `truth` in the dataset."),
        (None, "The rubric has 3 criteria in the votes and 2 in the dataset."),
    ],
)
def test_rubric_different_from_votes_is_error(change, said):
    first, *rest = RUBRIC["criteria"]
    criteria = [{**first, **change}, *rest] if change else rest
    dataset = RubricDataset([{"id": "q6", "submission": "x"}], rubric={"criteria": criteria})
    with pytest.raises(VotesError) as caught:
        with_ground_truth(Votes.parse(PILOT), dataset)
    assert str(caught.value).startswith(f"sample `q6`: {said}")


@given(votes_files())
def test_votes_round_trip(value):
    votes = Votes.parse(value)
    assert Votes.parse(json.loads(json.dumps(votes.to_dict()))) == votes


@given(votes_files())
def test_derived_verdicts_equal_plain_loop(value):
    votes = Votes.parse(value)
    plain = plain_derivation(value)
    for block, derived in zip(votes.blocks, derive(votes), strict=True):
        for row, at in enumerate(block.items):
            expected = plain[votes.ids[at]]
            assert derived.derived_final.codes[row].tolist() == expected.final
            assert numbers(derived.derived_score)[row] == pytest.approx(expected.score, abs=1e-12)
            assert numbers(derived.true_score)[row] == pytest.approx(expected.true_score, abs=1e-12)
            assert numbers(derived.judge_scores[row]) == pytest.approx(expected.judges, abs=1e-12)


@given(votes_files(), st.randoms(use_true_random=False))
def test_order_of_items_judges_and_criteria_changes_no_verdict_and_no_score(value, random):
    votes = Votes.parse(value)
    criteria = list(range(len(value["rubric"]["criteria"])))
    random.shuffle(criteria)

    def moved(entries):
        return [entries[at] for at in criteria]

    items = []
    for item in value["items"]:
        changed = dict(item)
        for key in ("ground_truth", "final"):
            if key in item:
                changed[key] = moved(item[key])
        for key in ("votes", "annotations"):
            if key in item:
                entries = [(name, moved(cells)) for name, cells in item[key].items()]
                random.shuffle(entries)
                changed[key] = dict(entries)
        items.append(changed)
    judges = list(value["judges"])
    random.shuffle(items)
    random.shuffle(judges)
    other = Votes.parse(
        {**value, "rubric": {"criteria": moved(value["rubric"]["criteria"])}, "judges": judges, "items": items}
    )
    (first,), (second,) = derive(votes), derive(other)
    rows = [other.ids.index(name) for name in votes.ids]
    columns = [[judge.id for judge in other.judges].index(judge.id) for judge in votes.judges]
    assert second.final.codes[rows].tolist() == first.final.codes[:, criteria].tolist()
    np.testing.assert_array_equal(second.score[rows], first.score)
    np.testing.assert_allclose(second.judge_scores[rows][:, columns], first.judge_scores, atol=1e-12)


def test_votes_and_blocks_have_length():
    votes = Votes.parse(PILOT)
    assert (len(votes), len(votes.blocks[0])) == (6, 6)
    assert repr(votes) == "<Votes 'pilot': 6 items, 3 judges>"
    assert votes.blocks[0] != "a block"


GRADE = {"name": "grade", "requirement": "How good is it?", "minimum": -5, "maximum": 5}
ASKED = {"name": "asked", "requirement": "Does it ask back?"}


def graded(*items, criteria=(GRADE, ASKED), **more):
    return {
        "schema_version": "deemster.votes.v1",
        "rubric": {"criteria": list(criteria)},
        "judges": [{"id": "a"}, {"id": "b", "weight": 3}],
        "items": list(items),
        **more,
    }


NUMBERS = graded(
    {"id": "q1", "ground_truth": [3.5, "yes"], "votes": {"a": [2, True], "b": ["4.0", {"verdict": 1, "p": 0.9}]}},
    {
        "id": "q2",
        "annotations": {"x": [-1, 0], "y": [2, "no"], "z": ["CANNOT_ASSESS", None]},
        "votes": {"a": [[-1.0, {"failure": "parse"}, -3], False], "b": [None, "UNMET"]},
    },
    {
        "id": "q3",
        "annotations": {"x": [1, None], "y": ["CANNOT_ASSESS", None]},
        "votes": {"a": [{"verdict": -2}, None]},
    },
    {"id": "q4", "votes": {"a": [1, 1], "b": [3, 0]}, "final": [2.5, "MET"], "score": 0.9},
)


def test_numbers_are_read_beside_codes():
    votes = Votes.parse(NUMBERS)
    (block,) = votes.blocks
    assert block.truth.codes.tolist() == [[0, 0], [0, 1], [-1, -1], [-1, -1]]
    assert block.truth.numbers[0].tolist()[:2] == [3.5, 0.5]
    assert block.no_consensus[:, 0].tolist() == [False, False, True, False]
    assert np.array_equal(block.votes.numbers[0], [[2, 4], [-2, np.nan], [-2, np.nan], [1, 3]], equal_nan=True)
    assert block.votes.codes[:, 0].tolist() == [[0, 0], [0, -1], [0, -1], [0, 0]]
    assert block.votes.codes[0, 1].tolist() == [0, 0]


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_votes_with_numbers_round_trip(tmp_path, suffix):
    votes = Votes.parse(NUMBERS)
    votes.save(tmp_path / f"v.{suffix}")
    assert Votes.load(tmp_path / f"v.{suffix}") == votes
    assert Votes.parse(votes.to_dict()) == votes


@pytest.mark.parametrize(
    ("rule", "finals"), [(None, [3.0, -2.0]), ("weighted_mean", [3.5, -2.0]), ("max", [4.0, -1.0])]
)
def test_final_numbers_and_scores_are_derived(rule, finals):
    value = NUMBERS if rule is None else NUMBERS | {"grading": {"numeric_aggregation": rule}}
    votes = Votes.parse(value)
    (found,) = derive(votes)
    assert found.final.numbers[0].tolist() == [*finals, -2.0, 2.5]
    assert found.score[0] == pytest.approx(((finals[0] + 5) / 10 + 1) / 2)
    assert found.true_score[0] == pytest.approx((0.85 + 1) / 2)
    assert found.judge_scores[0].tolist() == pytest.approx([(0.7 + 1) / 2, (0.9 + 1) / 2])
    assert found.score[3] == 0.9
    assert Votes.parse(votes.to_dict()).rules == votes.rules


def test_labels_of_a_dataset_take_the_place_of_numbers_in_the_votes():
    votes = Votes.parse(NUMBERS)
    items = [
        {"id": "q1", "submission": "s", "ground_truth": [-1, "MET"]},
        {"id": "q3", "submission": "s", "annotations": {"x": [1, "MET"], "w": [2, "MET"]}},
        {"id": "q4", "submission": "s"},
    ]
    joined = with_ground_truth(votes, RubricDataset(items, rubric={"criteria": [GRADE, ASKED]}))
    (block,) = joined.blocks
    assert np.array_equal(block.truth.numbers[0], [-1, 0.5, 1.5, np.nan], equal_nan=True)
    assert block.truth.codes[:, 0].tolist() == [0, 0, 0, -1]
    assert sorted(block.annotations) == ["w", "x", "y", "z"]
    assert changed_labels(votes, joined) == (1, ("q1",))


def test_part_of_the_judges_keeps_its_numbers():
    fewer, dropped = select_judges(Votes.parse(NUMBERS), ["b"])
    (block,) = fewer.blocks
    assert np.array_equal(block.votes.numbers[0][:, 0], [4, np.nan, np.nan, 3], equal_nan=True)
    assert (dropped, np.isnan(block.recorded_final.numbers[0]).all()) == (1, True)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (7, "7 is no verdict of `grade`. It takes a number from -5 to 5, or `CANNOT_ASSESS`."),
        ("good", "`good` is no verdict of `grade`. It takes a number from -5 to 5, or `CANNOT_ASSESS`."),
        ({"verdict": 1, "p": 0.5}, "p belongs to verdicts that are chosen; a number has none."),
    ],
)
def test_cell_that_is_no_number_of_the_range_is_an_issue_with_its_line(tmp_path, cell, message):
    path = tmp_path / "v.json"
    path.write_text(json.dumps(graded({"id": "q", "votes": {"a": [cell, None]}}), indent=1))
    with pytest.raises(VotesError) as caught:
        Votes.load(path)
    assert message in str(caught.value)
    assert re.search(r"v\.json:\d+", str(caught.value))
