"""A pytest session with evaluations: runs suites, judges what tests recorded, and shows both."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from deemster.errors import ConfigurationError, DeemsterError, break_ci_commands
from deemster.formats.atomic_write import write_aside
from deemster.integrations.pytest_outcomes import JudgedRun, Outcome, run_to_file
from deemster.integrations.pytest_records import (
    AnswerRecorder,
    TestAnswer,
    answer_jobs,
    check_settings,
    load_answers,
    mark_settings,
)
from deemster.integrations.pytest_suites import SuiteCollector, SuiteTest, is_suite, selected_job, shown_name
from deemster.models.clock import clock_from_environment

_FOLDER = "deemster_folder"
_MARKS = "marks.json"


class EvaluationSession:
    """The hooks of pytest for evaluations.

    Under xdist, the workers collect and report, and the controller runs suites and judges. They share a folder.

    Args:
        config: The settings of pytest.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config, self._judged, self._lines = config, dict[Path, JudgedRun](), list[str]()
        self._strict, self._rejudges = config.getoption("--deemster-strict"), config.getoption("--deemster-rejudge")
        self._sessions = config.rootpath / ".deemster" / "pytest"
        given = getattr(config, "workerinput", {})
        self._worker = given.get("workerid")
        named = f"{clock_from_environment().now():%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        self._folder = Path(given[_FOLDER]) if given else self._sessions / named
        self._selected: Sequence[str] = ()
        self._checked, self._refused = set[bytes](), dict[str, str]()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of xdist where the folder of the session is."""
        node.workerinput[_FOLDER] = str(self._folder)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect suite files."""
        if not is_suite(file_path, is_named=parent.session.isinitpath(file_path)):
            return None
        return SuiteCollector.from_parent(parent, path=file_path)

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Skip tests that record where an earlier recording is judged again."""
        for item in _recording(items) if self._rejudges else ():
            item.add_marker(pytest.mark.skip(reason="judged from the last recorded session"))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Keep how the selected tests are judged.

        Raises:
            UsageError: The mark of one cannot be used.
        """
        self._selected = [item.nodeid for item in session.items]
        marks = {}
        for item in _recording(session.items):
            try:
                marks[item.nodeid] = self._settings(item)
            except pytest.UsageError as error:
                if self._worker is None:
                    raise
                # xdist cannot tell why a worker ended, so there each of these tests fails.
                self._refused[item.nodeid] = str(error)
        # All workers of xdist collect the same tests.
        if marks and not self._config.option.collectonly:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_aside(self._folder / _MARKS, [msgspec.json.encode(marks)])

    def _settings(self, item: pytest.Item) -> dict[str, Any]:
        """How the answers of a test are judged; equal settings are checked once."""
        settings = mark_settings(item)
        if (key := msgspec.json.encode(settings)) not in self._checked:
            check_settings(item, settings)
            self._checked.add(key)
        return settings

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Fail a test whose mark cannot be used."""
        if item.nodeid in self._refused:
            pytest.fail(self._refused[item.nodeid], pytrace=False)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Run the suites in the controller once the first worker has collected; workers read the results."""
        self._selected = ids
        for file in dict.fromkeys(name.partition("::")[0] for name in ids if "::sample[" in name or "::gate[" in name):
            self._run_suite((self._config.rootpath / file).resolve())

    def recorder(self, item: pytest.Item) -> AnswerRecorder:
        """The recorder of a test."""
        return AnswerRecorder(item, self._folder / f"answers-{self._worker or 'main'}.jsonl")

    def judged(self, suite: Path) -> JudgedRun:
        """The run of a suite, which runs unless it did.

        Raises:
            DeemsterError: The suite cannot be run.
        """
        if suite not in self._judged:
            file = self._run_suite(suite)
            failed = file.with_suffix(".error")
            if failed.exists():
                raise DeemsterError(failed.read_text(encoding="utf-8"))
            self._judged[suite] = JudgedRun(file, strict=self._strict)
        return self._judged[suite]

    def _run_suite(self, suite: Path) -> Path:
        """Run a suite once in the session; the file of its report, beside which stands the error that ended it."""
        key = hashlib.sha256(str(suite.resolve()).encode()).hexdigest()[:16]
        file = self._folder / f"suite-{key}.json"
        failed = file.with_suffix(".error")
        if file.exists() or failed.exists():
            return file
        self._folder.mkdir(parents=True, exist_ok=True)
        root = self._config.rootpath
        names = {
            name
            for path, _, name in (nodeid.partition("::") for nodeid in self._selected)
            if (root / path).resolve() == suite.resolve()
        }
        try:
            warnings = run_to_file(selected_job(suite, names), self._config, file=file)
        except DeemsterError as error:
            failed.write_text(str(error), encoding="utf-8")
            return file
        self._note(suite.name, JudgedRun(file, strict=self._strict), warnings)
        return file

    def _note(self, name: str, run: JudgedRun, warnings: Iterable[str]) -> None:
        self._lines += [f"{name}: {run.describe()}", *(f"  warning: {warning}" for warning in warnings)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Say of a skipped test of a suite where the suite is, not where the plugin is."""
        report = yield
        if isinstance(item, SuiteTest) and report.skipped and isinstance(report.longrepr, tuple):
            report.longrepr = (str(item.path), 1, report.longrepr[2])
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Judge what the tests recorded; each answer and each check becomes a test of its own."""
        if self._worker is not None or not (self._folder / _MARKS).exists():
            return
        if exitstatus not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            self._lines.append("What was recorded is not judged yet: pytest --deemster --deemster-rejudge")
            return
        if (terminal := self._config.pluginmanager.get_plugin("terminalreporter")) is not None:
            terminal.line("")
        try:
            self._judge_answers(session)
        except DeemsterError as error:
            self._log("deemster::judge", ("deemster", None, "judge"), Outcome("failed", str(error)))
        if session.testsfailed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _judge_answers(self, session: pytest.Session) -> None:
        marks = msgspec.json.decode((self._folder / _MARKS).read_bytes())
        answers = load_answers(self._last_recorded() if self._rejudges else self._folder)
        if self._rejudges and not answers:
            raise ConfigurationError(f"No test has recorded anything yet in {self._sessions}.")
        for number, (group, job) in enumerate(answer_jobs(answers, marks, root=self._config.rootpath)):
            file = self._folder / f"answers-{number}.json"
            warnings = run_to_file(job, self._config, file=file)
            run = JudgedRun(file, strict=self._strict)
            # The progress that pytest shows counts them.
            session.testscollected += len(group) + len(run.checks)
            self._note(job.suite or "", run, warnings)
            self._report_answers(group, run, name=job.suite or "")

    def _last_recorded(self) -> Path:
        """The folder of the last session in which a test recorded something; that of this one where there is none."""
        found = sorted(file.parent for file in self._sessions.glob("*/answers-*.jsonl"))
        return found[-1] if found else self._folder

    def _report_answers(self, group: Sequence[TestAnswer], run: JudgedRun, *, name: str) -> None:
        for answer in group:
            file, line, domain = answer.location
            location = (file, line, f"{domain}::{answer.called}")
            self._log(f"{answer.test}::{answer.called}", location, run.sample(answer.sample["id"]))
        for check in run.checks:
            called = shown_name("gate", check)
            self._log(f"{name}::{called}", (name, None, called), run.check(check))

    def _log(self, nodeid: str, location: tuple[str, int | None, str], outcome: Outcome) -> None:
        """Hand a result to everything in pytest that shows results."""
        status, why = outcome.status, break_ci_commands(outcome.why)
        shown: Any = (location[0], (location[1] or 0) + 1, f"Skipped: {why}") if status == "skipped" else why or None
        report = pytest.TestReport(nodeid, location, {}, status, shown, "call")
        self._config.hook.pytest_runtest_logreport(report=report)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Show what ran, and how to see it again."""
        if self._lines:
            terminalreporter.section("deemster")
            for line in self._lines:
                terminalreporter.line(break_ci_commands(line))


def _recording(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    return [item for item in items if "deemster" in getattr(item, "fixturenames", ())]
