"""What an agent did on its way."""

import pytest

from deemster.errors import ConfigurationError, Issue
from deemster.metrics._expected_trajectory import argument_matches
from deemster.metrics.trajectory_metrics import (
    ApprovalGated,
    NoPendingApprovals,
    StepsBelow,
    ToolCalled,
    ToolCalledWith,
    ToolCallOrder,
    ToolNotCalled,
)
from deemster.records import Output, Sample, Trajectory

CALLS = ["search", "pay", "book"]
NAMED = [
    (ToolCalled, "tools"),
    (ToolNotCalled, "forbidden_tools"),
    (ToolCallOrder, "order"),
    (ApprovalGated, "requires_approval"),
]
EXPECTING = [*NAMED, (ToolCalledWith, "tool_arguments"), (StepsBelow, "max_steps")]


def marked(metric, expectations=None, **trajectory):
    trajectory.setdefault("tool_calls", CALLS)
    metadata = {} if expectations is None else {"trajectory": expectations}
    return metric.score(Sample("s", {}, None, metadata), Output("x", trajectory=Trajectory.read(trajectory)))


def test_tool_called_scores_share_of_required_tools():
    mark = marked(ToolCalled(), {"tools": ["search", "cancel"]})
    assert (mark.score, mark.details) == (0.5, {"required": 2, "called": 1, "missing": ("cancel",)})
    assert marked(ToolCalled(), {"tools": "pay"}).score == 1.0


def test_partly_kept_prohibition_is_no_success():
    mark = marked(ToolNotCalled(), {"forbidden_tools": ["pay", "delete"]})
    assert (mark.score, mark.success) == (0.5, False)
    assert mark.details == {"forbidden": 2, "violations": ("pay",)}
    assert marked(ToolNotCalled(), {"forbidden_tools": "delete"}).success


def test_order_matches_as_subsequence_of_calls():
    mark = marked(ToolCallOrder(), {"order": ["search", "book"]})
    assert (mark.score, mark.details) == (1.0, {"required": 2, "followed": 2, "calls": 3})
    backwards = {"order": ["book", "search"]}
    assert marked(ToolCallOrder(), backwards).score == 0.0
    assert marked(ToolCallOrder(credit="fraction"), backwards).score == 0.5


def test_repeated_tool_name_is_allowed_only_in_order():
    assert marked(ToolCallOrder(), {"order": ["pay", "pay"]}).score == 0.0
    assert marked(ToolCallOrder(), {"order": ["pay", "pay"]}, tool_calls=["pay", "pay"]).score == 1.0
    for metric, key in NAMED:
        if key != "order":
            (issue,) = metric().check(Sample("s", {}, None, {"trajectory": {key: ["pay", "pay"]}}))
            assert not issue.warning
            with pytest.raises(ConfigurationError, match="names `pay` twice"):
                metric(**{key: ["pay", "pay"]})


def test_steps_come_from_agent_or_number_of_calls():
    assert marked(StepsBelow(), {"max_steps": 3}).details == {"steps": 3, "max_steps": 3}
    assert marked(StepsBelow(), {"max_steps": 3}).score == 1.0
    assert marked(StepsBelow(), {"max_steps": 3}, steps=4).score == 0.0
    assert marked(StepsBelow(max_steps=1), tool_calls=[]).score == 1.0


def test_pending_approvals_need_no_expectation():
    assert marked(NoPendingApprovals()).score == 1.0
    mark = marked(NoPendingApprovals(), pending_approvals=2)
    assert (mark.score, mark.details) == (0.0, {"pending_approvals": 2})


def test_tools_needing_approval_pass_if_approved_or_optionally_uncalled():
    expectations = {"requires_approval": ["pay", "delete"]}
    mark = marked(ApprovalGated(), expectations, approvals=["pay"])
    assert (mark.score, mark.success) == (0.5, False)
    assert mark.details == {"required": 2, "approved": 1, "ungated": ("delete",)}
    assert marked(ApprovalGated(only_if_called=True), expectations, approvals=["pay"]).score == 1.0
    assert marked(ApprovalGated(only_if_called=True), expectations).score == 0.5


def test_expected_call_is_met_by_any_call():
    calls = [
        {"name": "search", "arguments": {"q": "rome", "limit": 5}},
        {"tool": "search", "args": {"q": "oslo", "page": {"from": 1, "to": 2}}},
    ]
    expectations = {
        "tool_arguments": [
            {"tool": "search", "arguments": {"q": "rome"}},
            {"tool": "search", "arguments": {"q": "oslo", "page": {"to": 2.0}}},
            {"tool": "search", "arguments": {"q": "rome", "page": {"to": 2}}},
            {"tool": "book", "arguments": {}},
        ]
    }
    mark = marked(ToolCalledWith(), expectations, tool_calls=calls)
    assert (mark.score, mark.details) == (0.5, {"required": 4, "met": 2, "unmet": ("search", "book")})


@pytest.mark.parametrize(
    ("expected", "actual", "plain", "coerced"),
    [
        (5, 5.0, True, True),
        (5, "5", False, True),
        ("5", 5, False, True),
        ("5.0", 5, False, True),
        ("five", 5, False, False),
        (1, True, False, False),
        ("1", True, False, False),
        (None, 0, False, False),
        ("a", "A", False, False),
        ([1, 2], [1, 2], True, True),
        ([1], [1, 2], False, False),
        ([2, 1], [1, 2], False, False),
        ([{"a": 1}], [{"a": 1, "b": 2}], True, True),
        ({"a": 1}, [1], False, False),
        ({}, {"a": 1}, True, True),
        ({}, None, False, False),
        ("5", "5.0", False, False),
    ],
)
def test_arguments_match_by_subset(expected, actual, plain, coerced):
    assert argument_matches(expected, actual) is plain
    assert argument_matches(expected, actual, coerce_numbers=True) is coerced


@pytest.mark.parametrize(("metric", "key"), EXPECTING)
def test_missing_expectation_is_unscored(metric, key):
    assert marked(metric()).cause == "bad_sample"
    assert marked(metric(), {}).cause == "bad_sample"
    assert marked(metric(), {key: None}).cause == "bad_sample"
    (issue,) = metric().check(Sample("s", {}))
    assert issue.warning


@pytest.mark.parametrize(("metric", "key"), [*NAMED, (ToolCalledWith, "tool_arguments")])
def test_explicit_empty_expectation_is_met(metric, key):
    assert marked(metric(), {key: []}).score == 1.0
    assert marked(metric(**{key: []})).score == 1.0


@pytest.mark.parametrize(("metric", "key"), EXPECTING)
def test_expectation_of_sample_overrides_option(metric, key):
    option = {"max_steps": 99, "tool_arguments": []}.get(key, [])
    wanted = {"max_steps": 1, "tool_arguments": [{"tool": "gone", "arguments": {}}]}.get(key, ["gone", "pay"])
    assert marked(metric(**{key: option})).score == 1.0
    assert marked(metric(**{key: option}), {key: wanted}).score < 1.0


@pytest.mark.parametrize(("metric", "key"), [*EXPECTING, (NoPendingApprovals, None)])
def test_unknown_key_stops_run_with_suggestion(metric, key):
    for word, near in [
        ("forbidden", "forbidden_tools"),
        ("tool", "tools"),
        ("max_step", "max_steps"),
        ("require_approval", "requires_approval"),
    ]:
        (issue,) = metric().check(Sample("s", {}, None, {"trajectory": {word: []}}))
        assert issue == Issue(f"`metadata.trajectory` has the unknown key `{word}`. Did you mean `{near}`?")
    (issue,) = metric().check(Sample("s", {}, None, {"trajectory": ["pay"]}))
    assert not issue.warning


@pytest.mark.parametrize(("metric", "key"), NAMED)
@pytest.mark.parametrize("wrong", ["", " ", [""], [1], 5, {"a": 1}, [["a"]], True])
def test_invalid_tool_name_stops_run(metric, key, wrong):
    (issue,) = metric().check(Sample("s", {}, None, {"trajectory": {key: wrong}}))
    assert not issue.warning
    assert key in issue.message
    with pytest.raises(ConfigurationError, match=key):
        metric(**{key: wrong})


@pytest.mark.parametrize(
    "wrong",
    [
        "search",
        {"tool": "a", "arguments": {}},
        ["search"],
        [{"tool": "a"}],
        [{"arguments": {}}],
        [{"tool": " ", "arguments": {}}],
        [{"tool": "a", "arguments": []}],
        [{"tool": "a", "arguments": {}, "x": 1}],
        7,
    ],
)
def test_invalid_expected_call_stops_run(wrong):
    (issue,) = ToolCalledWith().check(Sample("s", {}, None, {"trajectory": {"tool_arguments": wrong}}))
    assert not issue.warning
    with pytest.raises(ConfigurationError, match="tool_arguments"):
        ToolCalledWith(tool_arguments=wrong)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "3", [3]])
def test_limit_of_steps_is_a_whole_number_of_at_least_one(wrong):
    (issue,) = StepsBelow().check(Sample("s", {}, None, {"trajectory": {"max_steps": wrong}}))
    assert not issue.warning
    with pytest.raises(ConfigurationError, match="max_steps"):
        StepsBelow(max_steps=wrong)


@pytest.mark.parametrize(("metric", "key"), [*EXPECTING, (NoPendingApprovals, None)])
def test_no_trajectory_is_unscored(metric, key):
    options = {} if key is None else {key: {"max_steps": 1}.get(key, [])}
    assert metric(**options).score(Sample("s", {}), Output("x")).cause == "no_trajectory"


def test_quoted_names_are_cut_at_twenty():
    details = marked(ToolCalled(), {"tools": [f"t{n}" for n in range(30)]}).details
    assert (details["required"], len(details["missing"]), details["truncated"]) == (30, 20, True)


@pytest.mark.parametrize(
    "wrong",
    [
        (ToolCallOrder, {"credit": "al"}),
        (ApprovalGated, {"only_if_called": 1}),
        (ToolCalledWith, {"coerce_numbers": "x"}),
    ],
)
def test_option_out_of_range_is_refused(wrong):
    metric, options = wrong
    with pytest.raises(ConfigurationError):
        metric(**options)
