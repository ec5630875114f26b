"""Suite files as tests: one for each sample, one for each check of the gate. The suite runs once, before the first."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from deemster.datasets import Dataset
from deemster.errors import DeemsterError, break_ci_commands, visible
from deemster.evaluation.check_file import find_kind
from deemster.evaluation.resolve_evaluation import SuiteOverrides, resolve_evaluation
from deemster.evaluation.resolved_evaluation import Evaluation
from deemster.evaluation.suite import load_suite
from deemster.evaluation.suite_parts import suite_dataset
from deemster.gate import read_gate
from deemster.gate.gate_decision import check_names
from deemster.integrations.pytest_outcomes import COMPLETE, JudgedRun, Outcome

_SUFFIXES = frozenset({".yml", ".yaml", ".json"})
_MARK = b"deemster.suite.v1"
_HEAD = 65_536


def is_suite(file: Path, *, is_named: bool) -> bool:
    """Whether a file is to be run as a suite.

    Args:
        file: The file.
        is_named: Whether the user named it; one of a folder must say in its text that it is a suite.
    """
    if file.suffix.lower() not in _SUFFIXES:
        return False
    if not is_named:
        with file.open("rb") as content:
            return _MARK in content.read(_HEAD)
    try:
        return find_kind(str(file)) == "suite"
    except DeemsterError:
        # The collection of its tests says what is wrong.
        return True


class NotPassedError(Exception):
    """A sample or a check did not pass."""


class SuiteCollector(pytest.File):
    """A suite file, which holds tests."""

    def collect(self) -> Iterator[pytest.Item]:
        """The tests of the suite; its target is not loaded yet.

        Raises:
            CollectError: The suite or its dataset is wrong.
        """
        try:
            suite = load_suite(self.path, calls_target=False)
            dataset = suite_dataset(suite)
            gate = read_gate(suite.gate, document=suite.document)
        except DeemsterError as error:
            raise self.CollectError(break_ci_commands(str(error))) from None
        for sample in dataset:
            yield SampleTest.about(self, sample.id, name=shown_name("sample", sample.id))
        cohorts = dict.fromkeys(tag for sample in dataset for tag in sample.tags or (None,))
        for check in (COMPLETE, *check_names(gate, cohorts)):
            yield CheckTest.about(self, check, name=shown_name("gate", check))


class SuiteTest(pytest.Item):
    """A test of a suite file.

    Attributes:
        subject: The sample's id, or the name of the check.
    """

    subject: str

    @classmethod
    def about(cls, parent: pytest.File, subject: str, *, name: str) -> Self:
        """The test of a sample or a check, made as pytest wants it."""
        test = cls.from_parent(parent, name=name)
        test.subject = subject
        return test

    def outcome(self, run: JudgedRun) -> Outcome:
        """What became of it in the run."""
        return run.check(self.subject)

    def runtest(self) -> None:
        """Run the suite, unless an earlier test did, and fail or skip as the run says.

        Raises:
            NotPassedError: The sample or the check did not pass.
            DeemsterError: The suite cannot be run.
        """
        session: Any = self.config.pluginmanager.get_plugin("deemster-session")
        status, why = self.outcome(session.judged(self.path))
        if status == "failed":
            raise NotPassedError(why)
        if status == "skipped":
            pytest.skip(break_ci_commands(why))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is shown of a failure: the text alone, for what is wrong is not in the code of the plugin."""
        if isinstance(excinfo.value, (NotPassedError, DeemsterError)):
            return break_ci_commands(str(excinfo.value))
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the test is, and how it is called."""
        return self.path, 0, self.name


class SampleTest(SuiteTest):
    """One sample of a suite."""

    def outcome(self, run: JudgedRun) -> Outcome:
        """What became of it in the run."""
        return run.sample(self.subject)


class CheckTest(SuiteTest):
    """One check of the gate of a suite."""


def shown_name(kind: str, subject: str) -> str:
    """The name of the test of a sample or a check, which is no command for the agent of a CI service."""
    return break_ci_commands(f"{kind}[{visible(subject)}]")


def selected_job(file: Path, names: Collection[str]) -> Evaluation:
    """The job of a suite over the samples that are among the tests to run; over all where none is.

    Args:
        file: The suite.
        names: The names of its tests that are to run.

    Raises:
        InputError: Something in the suite cannot be used.
    """

    def select(dataset: Dataset) -> Dataset:
        ids = {sample.id for sample in dataset if shown_name("sample", sample.id) in names}
        return dataset.keep(ids, selection="pytest") if ids else dataset

    return resolve_evaluation(load_suite(file), SuiteOverrides(select=select))
