"""The one validator of file formats: every kind of issue, its words, its place, and the item it lies in."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import jsonschema_rs
import msgspec
import pytest
from msgspec import Meta

from deemster.errors import ConfigurationError, Issue
from deemster.formats.document import Reading
from deemster.formats.schema_validation import Id, NonBlank, Share, check_shape, decode_shape, json_schema
from deemster.formats.strict_yaml import yaml_document


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """A step of a plan."""

    id: Id
    kind: Literal["ask", "answer", "wait"] = "ask"
    weight: Annotated[float, Meta(gt=0)] | None = None
    share: Share | list[Share] = 1.0
    tags: list[NonBlank] = []
    options: Annotated[list[str], Meta(min_length=2)] | None = None
    label: Annotated[str, Meta(title="a label")] | None = None


class Call(msgspec.Struct, forbid_unknown_fields=True):
    """A call; one of `url` and `argv`."""

    one_of: ClassVar = ("url", "argv")

    url: str | msgspec.UnsetType = msgspec.UNSET
    argv: list[str] | msgspec.UnsetType = msgspec.UNSET


class Plan(msgspec.Struct, forbid_unknown_fields=True):
    """A plan: steps with a name."""

    name: NonBlank
    steps: Annotated[list[Step], Meta(min_length=1)]
    expected: Any
    retries: Annotated[int, Meta(ge=0)] | None = None
    call: str | Call | None = None
    version: Literal["plan.v1"] = "plan.v1"


STEP = {"id": "a"}
GOOD = {"name": "n", "steps": [STEP], "expected": None}


def messages(value):
    return [issue.message for issue in check_shape(value, Plan, items="steps")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nmae": 1}, "`nmae` is no key of a plan. Did you mean `name`?"),
        ({"zzz": 1}, "`zzz` is no key of a plan. Known: `name`, `steps`, `expected`, `retries`, `call`, `version`."),
        ({"name": 7}, "name must be text, not a number. Quote it."),
        ({"name": " "}, "name is blank."),
        ({"steps": []}, "steps is empty."),
        ({"steps": {}}, "steps must be a list, not a map."),
        ({"steps": [7]}, "A step of a plan must be a map with `id`, not a number."),
        ({"retries": -1}, "retries must be a whole number of at least 0, not -1."),
        ({"retries": True}, "retries must be a whole number of at least 0, not a boolean."),
        ({"retries": 1.5}, "retries must be a whole number of at least 0, not 1.5."),
        ({"retries": 1.0}, "retries: expected `int | null`, got `float`."),
        ({"version": "plan.v2"}, "version must be `plan.v1`, not `plan.v2`."),
        ({"version": 1}, "version must be `plan.v1`, not a number."),
        ({"call": {}}, "call: A call has one of `url`, `argv`; this one gives none."),
        ({"call": {"url": "u", "argv": []}}, "call: A call has one of `url`, `argv`; this one gives `url`, `argv`."),
        ({"call": {"urll": "u", "argv": []}}, "call: `urll` is no key of a call. Did you mean `url`?"),
        ({"call": {"url": 1}}, "call.url must be text, not a number. Quote it."),
        ({"call": []}, "call must be text or a map, not a list."),
        ({"expected": {"a": [float("nan")]}}, "expected.a[0] is nan, which is not a finite number."),
        ({"expected": {"a": {1, 2}}}, "expected.a is a set, which is not a JSON value."),
        ({"expected": {1: 2}}, "expected has the key 1; keys are text."),
        ({"expected": "\ud800"}, "expected holds a lone surrogate, which is no character."),
        ({"name": float("inf")}, "name is inf, which is not a finite number."),
        (
            {"steps": [{**STEP, "kind": "aks"}]},
            "kind must be one of `answer`, `ask`, `wait`, not `aks`. Did you mean `ask`?",
        ),
        ({"steps": [{**STEP, "weight": 0}]}, "weight must be a number above 0, not 0."),
        ({"steps": [{**STEP, "weight": "x"}]}, "weight must be a number above 0, not text."),
        ({"steps": [{**STEP, "share": 2}]}, "share must be a number from 0 to 1, not 2."),
        ({"steps": [{**STEP, "share": [0.5, 2]}]}, "share[1] must be a number from 0 to 1, not 2."),
        ({"steps": [{**STEP, "share": "x"}]}, "share must be a number from 0 to 1 or a list, not text."),
        ({"steps": [{**STEP, "tags": ["a", ""]}]}, "tags[1] is blank."),
        ({"steps": [{**STEP, "options": ["a"]}]}, "options has 1 entry; it needs at least 2."),
        ({"steps": [{**STEP, "label": 3}]}, "label must be a label, not a number."),
        ({"steps": [{"id": "a\x1bb"}]}, "id holds control characters."),
        ({"steps": [{"id": "a\n"}]}, "id holds control characters."),
        ({"steps": [{"id": "a" * 257}]}, "id has 257 characters; at most 256 are allowed."),
    ],
)
def test_each_kind_of_issue_has_its_message(change, message):
    value = {**GOOD, **change}
    assert messages(value) == [message]


def test_good_value_has_no_issue_and_fits_the_schema():
    assert messages(GOOD) == []
    assert jsonschema_rs.is_valid(json_schema(Plan), GOOD)
    assert decode_shape(GOOD, Plan, error=ConfigurationError).steps[0].id == "a"


def test_missing_nullable_key_suggests_null():
    assert messages({"name": "n"}) == [
        "`steps` is missing.",
        "`expected` is missing; write null where there is none.",
    ]


def test_root_of_wrong_type_names_expected_type():
    assert messages([]) == ["A plan must be a map with `name`, `steps` and `expected`, not a list."]


def test_nesting_beyond_the_limit_is_one_issue():
    value: Any = 1
    for _ in range(200):
        value = [value]
    (message,) = messages({**GOOD, "expected": value})
    assert message.endswith("nesting goes deeper than 100.")


def test_every_issue_carries_its_line_and_its_item():
    text = (
        "name: n\nexpected: 1\nsteps:\n  - id: a\n    wieght: 1\n  - id: b\n    weight: -1\n  - kind: ask\nretries: x\n"
    )
    document = yaml_document(text, Reading("plan.yml", error=ConfigurationError))
    assert check_shape(document.value, Plan, document=document, items="steps") == [
        Issue("`wieght` is no key of a step of a plan. Did you mean `weight`?", "plan.yml:5", "a"),
        Issue("weight must be a number above 0, not -1.", "plan.yml:7", "b"),
        Issue("`id` is missing.", "plan.yml:8"),
        Issue("retries must be a whole number of at least 0, not text.", "plan.yml:9"),
    ]


def test_without_document_issue_has_position_of_item():
    (issue,) = check_shape({**GOOD, "steps": [STEP, {}]}, Plan, items="steps")
    assert issue == Issue("`id` is missing.", "steps[1]")


def test_part_of_a_document_is_named_from_the_root():
    text = "plans:\n  first:\n    name: n\n    steps: [{id: a}]\n    expected: 1\n    retries: x\n"
    document = yaml_document(text, Reading("plan.yml", error=ConfigurationError))
    with pytest.raises(ConfigurationError) as caught:
        decode_shape(
            document.value["plans"]["first"], Plan, error=ConfigurationError, document=document, path=("plans", "first")
        )
    assert caught.value.issues == (
        Issue("plans.first.retries must be a whole number of at least 0, not text.", "plan.yml:6"),
    )


class Crashing(msgspec.Struct):
    """A union that corrupts the memory of msgspec 0.22."""

    tags: NonBlank | list[str]


def test_pattern_beside_a_list_is_refused():
    with pytest.raises(TypeError, match="pattern beside a list"):
        json_schema(Crashing)
