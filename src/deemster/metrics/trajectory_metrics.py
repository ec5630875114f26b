"""Metrics of an agent's trajectory: tools called, arguments, order, steps, approvals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import msgspec
from rapidfuzz.distance import LCSseq

from deemster.errors import ConfigurationError, show_value
from deemster.metrics._expected_trajectory import (
    ExpectedCall,
    argument_matches,
    check_names_option,
    expected_names,
    find_expectation,
    fraction_met,
    is_limit,
    output_trajectory,
    parse_expected_calls,
    sample_expectations,
    tools_called,
)
from deemster.metrics.builtin_metric import BuiltinMetric, invalid_sample, list_detail
from deemster.metrics.option_checks import PositiveInteger
from deemster.records import MetricScore, Output, Sample, Trajectory, freeze


class TrajectoryMetric(BuiltinMetric, frozen=True, kw_only=True):
    """A metric of what an agent did on its way to an output.

    A subclass that expects something names the option that holds it, which is a key of `metadata.trajectory` too.
    """

    family: ClassVar[str] = "trajectory"
    reads: ClassVar[frozenset[str]] = frozenset({"trajectory"})
    reads_expected: ClassVar[bool] = False

    # The key of `metadata.trajectory` and the option that hold what is expected; empty where nothing is.
    expectation: ClassVar[str] = ""

    @property
    def needs(self) -> tuple[str, ...]:
        """What is expected, where the metric does not say it."""
        key = self.expectation
        return (f"trajectory.{key}",) if key and getattr(self, key) is None else ()

    def read(self, output: Output) -> Trajectory:
        """The trajectory.

        Raises:
            UnscoredError: None was recorded.
        """
        return output_trajectory(output)


class ToolNamesMetric(TrajectoryMetric, frozen=True, kw_only=True):
    """A metric that expects names of tools: those of the sample, else those of an option of the same name.

    A subclass says whether names may repeat.
    """

    names_repeat: ClassVar[bool] = False

    def validate(self) -> None:
        """Refuse an option that is not made of names.

        Raises:
            ConfigurationError: It is something else.
        """
        check_names_option(self, self.expectation, distinct=not self.names_repeat)

    def expect(self, sample: Sample) -> tuple[str, ...]:
        """The expected tools.

        Raises:
            UnscoredError: There is no expectation, or an unreadable one.
        """
        given = getattr(self, self.expectation)
        return expected_names(sample, self.expectation, given=given, distinct=not self.names_repeat)


class ToolCalled(ToolNamesMetric, frozen=True, kw_only=True):
    """The share of required tools that the agent called.

    Reads the output's trajectory and `metadata.trajectory.tools`, else the option `tools`: a name or a list of distinct
    ones. An empty list scores 1.
    Details: required, called, missing.
    Example: tools search, book against the calls search, pay scores 0.5.

    Worked examples:
        - {metadata: {trajectory: {tools: [search, book]}}, trajectory: {tool_calls: [search, pay]}}
    """

    alias: ClassVar[str] = "tool-called"
    expectation: ClassVar[str] = "tools"
    quotes: ClassVar[frozenset[str]] = frozenset({"missing"})

    tools: Sequence[str] | None = None

    def grade(self, expected: tuple[str, ...], actual: Trajectory) -> MetricScore:
        """Count the tools that were called."""
        made = tools_called(actual)
        missing = [name for name in expected if name not in made]
        called = len(expected) - len(missing)
        return self.mark(
            fraction_met(called, len(expected)),
            {"required": len(expected), "called": called, **list_detail("missing", missing)},
        )


class ToolNotCalled(ToolNamesMetric, frozen=True, kw_only=True):
    """The share of forbidden tools that the agent never called; only all of them is a success.

    Reads the output's trajectory and `metadata.trajectory.forbidden_tools`, else the option `forbidden_tools`: a name
    or a list of distinct ones. An empty list scores 1. The threshold is 1.0: half a prohibition kept is no success.
    Details: forbidden, violations.
    Example: forbidden pay, delete against the calls search, pay scores 0.5.

    Worked examples:
        - {metadata: {trajectory: {forbidden_tools: [pay, delete]}}, trajectory: {tool_calls: [search, pay]}}
    """

    alias: ClassVar[str] = "tool-not-called"
    expectation: ClassVar[str] = "forbidden_tools"
    quotes: ClassVar[frozenset[str]] = frozenset({"violations"})
    pass_mark: ClassVar[float] = 1.0

    forbidden_tools: Sequence[str] | None = None

    def grade(self, expected: tuple[str, ...], actual: Trajectory) -> MetricScore:
        """Count the tools that were left alone."""
        made = tools_called(actual)
        violations = [name for name in expected if name in made]
        forbidden = len(expected)
        details = {"forbidden": forbidden, **list_detail("violations", violations)}
        return self.mark(fraction_met(forbidden - len(violations), forbidden), details)


class ToolCalledWith(TrajectoryMetric, frozen=True, kw_only=True):
    """The share of expected calls, tool and arguments, that some call of the agent meets.

    Reads the output's trajectory and `metadata.trajectory.tool_arguments`, else the option `tool_arguments`: a list of
    `{tool, arguments}`. Arguments match by subset: expected keys are present and match, lists by length and element,
    numbers by value, everything else strictly. An empty list scores 1.
    Options: `tool_arguments`; `coerce_numbers`, true to let the text "5" equal 5.
    Details: required, met, unmet (names of the tools).
    Example: `{tool: search, arguments: {q: rome}}` is met by the call `search(q="rome", limit=5)`.

    Worked examples:
        - metadata:
            trajectory:
              tool_arguments:
              - tool: search
                arguments: {q: rome}
          trajectory:
            tool_calls:
            - name: search
              arguments: {q: rome, limit: 5}
    """

    alias: ClassVar[str] = "tool-called-with"
    expectation: ClassVar[str] = "tool_arguments"
    quotes: ClassVar[frozenset[str]] = frozenset({"unmet"})

    tool_arguments: Sequence[Mapping[str, Any]] | None = None
    coerce_numbers: bool = False

    def validate(self) -> None:
        """Refuse expectations without tool or arguments.

        Raises:
            ConfigurationError: `tool_arguments` is not what it should be.
        """
        if self.tool_arguments is not None:
            try:
                parse_expected_calls(self.tool_arguments)
                settled = freeze(self.tool_arguments, path="tool_arguments")
            except ValueError as error:
                raise ConfigurationError(f"`tool_arguments` of {self.alias} {error}.") from None
            msgspec.structs.force_setattr(self, "tool_arguments", settled)

    def expect(self, sample: Sample) -> tuple[ExpectedCall, ...]:
        """The expected calls.

        Raises:
            UnscoredError: There is no expectation, or an unreadable one.
        """
        value, where = find_expectation(sample, self.expectation, given=self.tool_arguments)
        try:
            return parse_expected_calls(value)
        except ValueError as error:
            raise invalid_sample(f"`{where}` {error}.") from None

    def grade(self, expected: tuple[ExpectedCall, ...], actual: Trajectory) -> MetricScore:
        """Count the expectations that a call meets."""
        unmet = [
            call.tool
            for call in expected
            if not any(
                made.name == call.tool
                and argument_matches(call.arguments, made.arguments, coerce_numbers=self.coerce_numbers)
                for made in actual.tool_calls
            )
        ]
        required, met = len(expected), len(expected) - len(unmet)
        return self.mark(fraction_met(met, required), {"required": required, "met": met, **list_detail("unmet", unmet)})


class ToolCallOrder(ToolNamesMetric, frozen=True, kw_only=True):
    """1 if the expected order of tools is a subsequence of the agent's calls, else 0.

    Reads the output's trajectory and `metadata.trajectory.order`, else the option `order`: a name or a list, where
    names may repeat. An empty list scores 1.
    Options: `order`; `credit`, `all` or `fraction` (longest common subsequence over the length of the order).
    Details: required, followed (length of the longest common subsequence), calls.
    Example: in the calls search, pay, book the order search, book scores 1; book, search 0, with `fraction` 0.5.

    Worked examples:
        - {metadata: {trajectory: {order: [search, book]}}, trajectory: {tool_calls: [search, pay, book]}}
        - {metadata: {trajectory: {order: [book, search]}}, trajectory: {tool_calls: [search, pay, book]}}
        - metadata:
            trajectory:
              order: [book, search]
          trajectory:
            tool_calls: [search, pay, book]
          options: {credit: fraction}
    """

    alias: ClassVar[str] = "tool-call-order"
    expectation: ClassVar[str] = "order"
    names_repeat: ClassVar[bool] = True

    order: Sequence[str] | None = None
    credit: Literal["all", "fraction"] = "all"

    def grade(self, expected: tuple[str, ...], actual: Trajectory) -> MetricScore:
        """Follow the order as far as it goes."""
        calls = [call.name for call in actual.tool_calls]
        followed = LCSseq.similarity(expected, calls)
        required = len(expected)
        whole = 1.0 if followed == required else 0.0
        details = {"required": required, "followed": followed, "calls": len(calls)}
        return self.mark(whole if self.credit == "all" else fraction_met(followed, required), details)


class StepsBelow(TrajectoryMetric, frozen=True, kw_only=True):
    """1 if the agent took no more steps than a limit, else 0.

    Reads the output's trajectory (`steps`, else the number of calls) and `metadata.trajectory.max_steps`, else the
    option `max_steps`: a whole number of at least 1.
    Details: steps, max_steps.
    Example: 4 calls with `max_steps: 4` scores 1.

    Worked examples:
        - {metadata: {trajectory: {max_steps: 3}}, trajectory: {tool_calls: [search, pay, book]}}
        - {metadata: {trajectory: {max_steps: 2}}, trajectory: {tool_calls: [search, pay, book]}}
    """

    alias: ClassVar[str] = "steps-below"
    expectation: ClassVar[str] = "max_steps"

    max_steps: PositiveInteger | None = None

    def expect(self, sample: Sample) -> int:
        """The limit.

        Raises:
            UnscoredError: There is no expectation, or an unreadable one.
        """
        limit, where = find_expectation(sample, self.expectation, given=self.max_steps)
        if not is_limit(limit):
            raise invalid_sample(f"`{where}` is a whole number of at least 1, not {show_value(limit)}.")
        return int(limit)

    def grade(self, expected: int, actual: Trajectory) -> MetricScore:
        """1 up to the limit, else 0."""
        steps = len(actual.tool_calls) if actual.steps is None else actual.steps
        return self.mark(1.0 if steps <= expected else 0.0, {"steps": steps, "max_steps": expected})


class NoPendingApprovals(TrajectoryMetric, frozen=True, kw_only=True):
    """1 if no approval was still waiting at the end, else 0.

    Reads the output's trajectory; it expects nothing of the sample.
    Details: pending_approvals.
    Example: a trajectory with `pending_approvals: 1` scores 0.

    Worked examples:
        - {trajectory: {tool_calls: [search], pending_approvals: 0}}
        - {trajectory: {tool_calls: [search], pending_approvals: 1}}
    """

    alias: ClassVar[str] = "no-pending-approvals"

    def expect(self, sample: Sample) -> None:
        """Nothing, but a misspelt expectation is still one.

        Raises:
            UnscoredError: `metadata.trajectory` has an unknown key.
        """
        sample_expectations(sample)

    def grade(self, expected: None, actual: Trajectory) -> MetricScore:  # noqa: ARG002 - nothing is expected
        """1 if none is pending, else 0."""
        pending = actual.pending_approvals
        return self.mark(0.0 if pending else 1.0, {"pending_approvals": pending})


class ApprovalGated(ToolNamesMetric, frozen=True, kw_only=True):
    """The share of tools needing approval that were approved; only all of them is a success.

    Reads the output's trajectory (`approvals`) and `metadata.trajectory.requires_approval`, else the option
    `requires_approval`: a name or a list of distinct ones. An empty list scores 1. The threshold is 1.0.
    Options: `requires_approval`; `only_if_called`, true to accept tools that were never called too.
    Details: required, approved, ungated.
    Example: pay and delete required, pay approved scores 0.5; with `only_if_called` 1 if delete was not called.

    Worked examples:
        - metadata:
            trajectory:
              requires_approval: [pay, delete]
          trajectory:
            tool_calls: [pay]
            approvals: [pay]
        - metadata:
            trajectory:
              requires_approval: [pay, delete]
          trajectory:
            tool_calls: [pay]
            approvals: [pay]
          options: {only_if_called: true}
    """

    alias: ClassVar[str] = "approval-gated"
    expectation: ClassVar[str] = "requires_approval"
    quotes: ClassVar[frozenset[str]] = frozenset({"ungated"})
    pass_mark: ClassVar[float] = 1.0

    requires_approval: Sequence[str] | None = None
    only_if_called: bool = False

    def grade(self, expected: tuple[str, ...], actual: Trajectory) -> MetricScore:
        """Count the tools that were approved, or need not be."""
        approved = sum(name in actual.approvals for name in expected)
        called = tools_called(actual)
        ungated = [
            name
            for name in expected
            if name not in actual.approvals and not (self.only_if_called and name not in called)
        ]
        required = len(expected)
        details = {"required": required, "approved": approved, **list_detail("ungated", ungated)}
        return self.mark(fraction_met(required - len(ungated), required), details)
