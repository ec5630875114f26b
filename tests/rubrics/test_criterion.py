"""Criteria, options and the codes of verdicts."""

from __future__ import annotations

import math

import msgspec
import pytest

from deemster.errors import RubricError
from deemster.rubrics import Check, Criterion, Option, Rubric, Section
from tests.rubrics.make_rubrics import DEPTH, DEPTH_OPTIONS, FACTS, FLUFF, TONE


def test_criterion_without_options_is_binary_and_has_three_verdicts():
    assert FACTS.kind == "binary"
    assert FACTS.labels == ("MET", "UNMET", "CANNOT_ASSESS")
    assert FACTS.values == (1.0, 0.0, None)
    assert FACTS.positions == (None, None, None)
    assert (FACTS.scored, FACTS.abstentions, FACTS.abstention) == ((0, 1), frozenset({2}), 2)


def test_options_are_ordinal_by_default():
    assert Criterion("x", options=DEPTH_OPTIONS).kind == "ordinal"
    assert TONE.kind == "nominal"


def test_choice_without_an_abstention_has_one_as_its_last_code():
    assert TONE.labels == ("curt", "warm", "cold", "Cannot assess / not applicable")
    assert TONE.values == (0.2, 1.0, 0.0, None)
    assert (TONE.scored, TONE.abstention, TONE.na_option_index) == ((0, 1, 2), 3, None)


def test_choice_with_na_option_keeps_it():
    assert DEPTH.labels == ("poor", "fair", "good", "n-a")
    assert (DEPTH.abstention, DEPTH.na_option_index) == (3, 3)
    assert DEPTH.with_guaranteed_na_option() is DEPTH


def test_guaranteed_abstention_is_appended_once():
    sure = TONE.with_guaranteed_na_option()
    assert sure.options == (*TONE.options, Option("Cannot assess / not applicable", na=True))
    assert sure.with_guaranteed_na_option() is sure
    assert sure.labels == TONE.labels
    assert FACTS.with_guaranteed_na_option() is FACTS


def test_first_of_several_na_options_is_used():
    options = (Option("skip", na=True), Option("a", 0), Option("b", 1), Option("hidden", 0.5, na=True))
    criterion = Criterion("x", options=options)
    assert criterion.abstentions == {0, 3}
    assert criterion.code("CANNOT_ASSESS") == criterion.abstention == 0
    assert criterion.values == (None, 0.0, 1.0, None)
    assert criterion.positions == (None, 0, 1, None)


def test_labels_are_found_without_case_and_outer_space():
    criterion = Criterion("x", options=(Option("Straße", 0), Option(" Très bien ", 1)))
    assert criterion.find("STRASSE ") == 0
    assert criterion.code("très BIEN") == 1
    assert FACTS.find(" met ") == 0
    assert FACTS.code("cannot_assess") == 2


def test_find_returns_options_only_and_code_also_abstention():
    assert TONE.code("CANNOT_ASSESS") == 3
    with pytest.raises(RubricError, match="`curt`, `warm`, `cold`"):
        TONE.find("CANNOT_ASSESS")


def test_unknown_label_lists_the_labels_and_the_nearest():
    with pytest.raises(RubricError) as error:
        DEPTH.find("god")
    assert str(error.value) == (
        "`god` is no verdict of `depth`. It has `poor`, `fair`, `good`, `n-a`. Did you mean `good`?"
    )
    with pytest.raises(RubricError, match=r"^7 is no verdict of `depth`"):
        DEPTH.code(7)


def test_positions_follow_values_in_either_direction():
    falling = Criterion(
        "x", options=(Option("good", 1), Option("none", na=True), Option("fair", 0.5), Option("bad", 0))
    )
    assert falling.positions == (2, None, 1, 0)


def test_order_gives_the_positions_where_values_do_not():
    options = (Option("late", 0), Option("early", 0), Option("in time", 1))
    criterion = Criterion("x", options=options, order=["EARLY", "in time", "late"])
    assert criterion.order == ("early", "in time", "late")
    assert criterion.positions == (2, 0, 1, None)


@pytest.mark.parametrize(("weight", "worst"), [(1, 2), (0, 2), (-1, 1)])
def test_worst_case_follows_the_sign_of_the_weight(weight, worst):
    criterion = msgspec.structs.replace(TONE, weight=weight)
    assert criterion.worst == worst
    assert criterion.worst_scored_option() == (worst, criterion.options[worst])


def test_worst_case_of_a_binary_criterion_is_unmet_or_met():
    assert FACTS.worst_scored_option() == (1, Option("UNMET", 0.0))
    assert FLUFF.worst_scored_option() == (0, Option("MET", 1.0))


def test_worst_of_equal_values_is_the_first():
    criterion = Criterion("x", options=(Option("a", 1), Option("b", 0), Option("c", 0)), scale_type="nominal")
    assert criterion.worst_among([2, 1]) == 1
    assert criterion.worst_among([0, 2]) == 2
    with pytest.raises(RubricError, match="none was given"):
        criterion.worst_among([3])


def test_criteria_and_rubrics_are_equal_by_value_and_hashable():
    def made() -> Rubric:
        check = Check("contains", {"all": ["a", {"b": [1]}]}, 0.5)
        return Rubric([Criterion("x", check=check), Criterion("y", options=[Option("a", 0), Option("b", 1)])])

    assert made() == made()
    assert len({made(), made()}) == 1
    assert hash(Check("m", {"a": 1})) == hash(Check("m", {"a": 1.0}))


def test_criterion_and_rubric_are_immutable():
    criterion = Criterion("x", check=Check("contains", {"all": ["a"]}))
    with pytest.raises(AttributeError):
        criterion.weight = 3
    with pytest.raises(TypeError):
        criterion.check.args["all"] = 1
    assert criterion.check.args["all"] == ("a",)


def test_all_impossible_fields_of_a_criterion_made_in_python_are_reported():
    with pytest.raises(RubricError) as error:
        Criterion(" ", weight=float("nan"), order=["a"], aggregation="mean", fatal=1)
    assert [issue.message for issue in error.value.issues] == [
        "weight is nan, which is not a finite number.",
        "requirement is blank.",
        "fatal must be true or false, not a number.",
    ]


def test_rules_across_fields_hold_for_a_criterion_made_in_python():
    with pytest.raises(RubricError) as error:
        Criterion("x", order=["a"], aggregation="mean")
    assert [issue.message for issue in error.value.issues] == [
        "order: Only an ordinal criterion has one; this one is binary.",
        (
            "aggregation: `mean` is a rule of ordinal and numeric criteria, not of binary ones. "
            "Known: `majority`, `weighted`, `unanimous`, `any`."
        ),
    ]


def test_copy_with_changes_is_checked_too():
    with pytest.raises(RubricError, match="weight is inf, which is not a finite number"):
        msgspec.structs.replace(FACTS, weight=float("inf"))
    with pytest.raises(RubricError, match="not what the sections hold"):
        msgspec.structs.replace(Rubric(sections=[Section([FACTS])]), criteria=(FLUFF,))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label": " ", "value": 1}, "label is blank."),
        ({"label": "a", "value": 1.01}, "value must be a number from 0 to 1, not 1.01."),
        ({"label": "a", "value": True}, "value must be a number from 0 to 1, not a boolean."),
        ({"label": "a\ud800", "value": 1}, "label holds a lone surrogate, which is no character."),
    ],
)
def test_impossible_option_is_refused(fields, message):
    with pytest.raises(RubricError) as error:
        Option(**fields)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"metric": ""}, "metric is blank."),
        ({"metric": "m", "args": [1]}, "args must be a map, not a list."),
        ({"metric": "m", "args": {"x": float("inf")}}, "args.x is inf, which is not a finite number."),
        ({"metric": "m", "threshold": 2}, "threshold must be a number from 0 to 1, not 2."),
    ],
)
def test_impossible_check_is_refused(fields, message):
    with pytest.raises(RubricError) as error:
        Check(**fields)
    assert str(error.value) == message


def test_deeply_nested_arguments_are_error():
    deep: list[object] = []
    for _ in range(200):
        deep = [deep]
    with pytest.raises(RubricError, match="nesting goes deeper than 100"):
        Check("m", {"x": deep})


def test_nameless_criteria_are_numbered_through_all_sections():
    rubric = Rubric(sections=[Section([Criterion("a"), FACTS]), Section([Criterion("b")])])
    assert rubric.names == ("Criterion 1", "facts", "Criterion 3")
    assert rubric.sections[1].criteria == rubric.criteria[2:]


def test_names_are_unique_without_case_and_outer_space():
    with pytest.raises(RubricError) as error:
        Rubric([Criterion("a", name="Criterion 2"), Criterion("b"), FACTS, Criterion("c", name=" FACTS")])
    assert [issue.message for issue in error.value.issues] == [
        "criteria[1].name: `Criterion 2` is already the name of criteria[0].",
        "criteria[3].name: ` FACTS` is already the name of criteria[2].",
    ]


def test_overflowing_sum_of_weights_is_error():
    with pytest.raises(RubricError, match="more than a number can hold"):
        Rubric([Criterion("a", weight=1.7e308), Criterion("b", weight=-1.7e308)])


def test_rubric_or_section_without_criteria_is_refused():
    with pytest.raises(RubricError, match="a rubric has at least one criterion"):
        Rubric(())
    with pytest.raises(RubricError, match="a section has at least one criterion"):
        Section(())
    with pytest.raises(RubricError, match=r"criteria\[0\]: A criterion is a `Criterion`, not a map."):
        Rubric([{"requirement": "x"}])


def test_blank_guidelines_are_none_and_others_are_verbatim():
    assert Rubric([FACTS], guidelines=" \n").guidelines is None
    assert Rubric([FACTS], guidelines=" Be strict.\n").guidelines == " Be strict.\n"


GRADE = Criterion("How good is it?", name="grade", minimum=1, maximum=5)


def choice(*values, kind="ordinal", labels="abc"):
    return Criterion(
        "Which?", scale_type=kind, options=tuple(Option(*pair) for pair in zip(labels, values, strict=False))
    )


@pytest.mark.parametrize("label", ["MET", "met ", "yes", "Yes", "true", "1", True, 1, 1.0])
def test_yes_in_any_spelling_is_met(label):
    assert Criterion("Is it right?").code(label) == 0


@pytest.mark.parametrize("label", ["UNMET", "no", "No ", "FALSE", "0", False, 0, 0.0])
def test_no_in_any_spelling_is_unmet(label):
    assert Criterion("Is it right?").code(label) == 1


@pytest.mark.parametrize("label", [2, 0.5, "y", "maybe", None, [1]])
def test_other_words_and_numbers_are_no_verdict_of_a_binary_criterion(label):
    with pytest.raises(RubricError, match="is no verdict"):
        Criterion("Is it right?").code(label)


def test_number_is_the_value_of_an_option():
    assert [choice(0, 0.5, 1).code(label) for label in (0, 0.5, "0.5", 1, "1.0")] == [0, 1, 1, 2, 2]


def test_number_is_a_label_where_labels_are_numbers():
    grades = choice(0, 0.5, 1, labels="135")
    assert [grades.code(label) for label in (1, "1", 3.0, 5)] == [0, 0, 1, 2]
    with pytest.raises(RubricError, match=r"0\.5 is no verdict"):
        grades.code(0.5)


def test_number_is_never_the_place_of_an_option():
    with pytest.raises(RubricError, match="2 is no verdict"):
        choice(0, 0.5, 1).code(2)


def test_value_of_two_options_is_ambiguous():
    with pytest.raises(RubricError, match="0 is the value of several options: `a`, `b`"):
        choice(0, 0, 1, kind="nominal").code(0)


def test_boolean_is_an_option_called_yes_or_no():
    answers = choice(1, 0, 0.5, kind="nominal", labels=("yes", "no", "partly"))
    assert [answers.code(label) for label in (True, False)] == [0, 1]
    with pytest.raises(RubricError):
        choice(0, 0.5, 1).code(True)


def test_options_of_a_nominal_criterion_need_no_values_but_all_or_none():
    bare = Criterion("Which?", scale_type="nominal", options=(Option("a"), Option("b")))
    assert (bare.is_scored, bare.values, bare.code("b")) == (False, (None, None, None), 1)
    for options in ((Option("a", 1), Option("b")), (Option("a"), Option("b", 1), Option("c"))):
        with pytest.raises(RubricError, match="value from 0 to 1; this one has none"):
            Criterion("Which?", scale_type="nominal", options=options)
    with pytest.raises(RubricError, match="value from 0 to 1; this one has none"):
        Criterion("Which?", options=(Option("a"), Option("b")))
    with pytest.raises(RubricError, match="fatal"):
        Criterion("Which?", scale_type="nominal", options=(Option("a"), Option("b")), fatal=True)


def test_criterion_with_a_range_is_numeric():
    assert (GRADE.kind, GRADE.scale_type, GRADE.labels) == ("numeric", "numeric", ("a number", "CANNOT_ASSESS"))
    assert [GRADE.cell(label) for label in (1, 3.5, "4.25", " 5 ", "cannot_assess")] == [1.0, 3.5, 4.25, 5.0, 1]
    assert type(GRADE.cell("cannot_assess")) is int
    assert [GRADE.share(number) for number in (1, 2, 5)] == [0.0, 0.25, 1.0]
    assert (GRADE.worst_number, Criterion("Bad?", minimum=0, maximum=9, weight=-1).worst_number) == (1.0, 9.0)


@pytest.mark.parametrize("label", [0.99, 6, "six", True, None, math.nan, "nan", "a number"])
def test_what_is_no_number_of_the_range_is_refused(label):
    with pytest.raises(RubricError, match="It takes a number from 1 to 5, or `CANNOT_ASSESS`"):
        GRADE.cell(label)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"minimum": 1}, "maximum: A numeric criterion has a `minimum` and a `maximum`; this one is missing."),
        ({"minimum": 5, "maximum": 5}, "maximum: The maximum lies above the minimum, 5; this one is 5."),
        ({"minimum": 0, "maximum": math.inf}, "maximum is inf, which is not a finite number."),
        ({"minimum": 0, "maximum": 1, "step": 0.3}, "step: Steps of 0.3 from 0 do not lead to 1."),
        ({"step": 1}, "step: Only a criterion with `minimum` and `maximum` has one."),
        (
            {"scale_type": "numeric"},
            "minimum: A numeric criterion has a `minimum` and a `maximum`; this one is missing.",
        ),
        ({"minimum": 0, "maximum": 1, "scale_type": "ordinal"}, "scale_type: A criterion with a range is numeric"),
        ({"minimum": 0, "maximum": 1, "aggregation": "mode"}, "aggregation: `mode` is a rule of ordinal and nominal"),
        ({"minimum": 0, "maximum": 1, "options": (Option("a", 0), Option("b", 1))}, "options: A numeric criterion has"),
    ],
)
def test_impossible_range_is_refused(fields, message):
    with pytest.raises(RubricError) as error:
        Criterion("How good?", **fields)
    assert message in str(error.value)


def test_label_too_large_for_a_number_is_refused():
    with pytest.raises(RubricError):
        Criterion(name="c", requirement="?").code(10**400)
