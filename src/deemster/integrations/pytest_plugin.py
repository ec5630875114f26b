"""The pytest plugin: evaluations as tests with `pytest --deemster`; without the flag it loads nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from deemster.integrations.pytest_records import AnswerRecorder

_SESSION = "deemster-session"
_OFF = "evaluations are off; `pytest --deemster` runs them"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags."""
    group = parser.getgroup("deemster", "evaluations with deemster")
    group.addoption("--deemster", action="store_true", help="Run evaluations: suite files, and tests that record.")
    group.addoption(
        "--deemster-strict", action="store_true", help="What is inconclusive or unscored fails, and is not skipped."
    )
    group.addoption(
        "--deemster-rejudge",
        action="store_true",
        help="Judge what the last session recorded, by the marks as they are now. Tests that record are not run.",
    )
    group.addoption(
        "--deemster-store",
        metavar="FILE|URL",
        help="Where runs are stored; default DEEMSTER_STORE, else .deemster/runs.db in the root.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker, and load what evaluates where that is asked for."""
    config.addinivalue_line(
        "markers", "deemster(metrics=[...], gate={...}, ...): judge what the test records, at the end of the session"
    )
    if config.getoption("--deemster"):
        from deemster.integrations.pytest_session import EvaluationSession  # noqa: PLC0415 - loaded where it is used

        config.pluginmanager.register(EvaluationSession(config), _SESSION)
    elif config.getoption("--deemster-rejudge") or config.getoption("--deemster-strict"):
        raise pytest.UsageError("`--deemster-rejudge` and `--deemster-strict` are for `--deemster`.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip tests that record before any of their fixtures is made, where evaluations are off."""
    if not config.getoption("--deemster"):
        for item in items:
            if "deemster" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.skip(reason=_OFF))


@pytest.fixture
def deemster(request: pytest.FixtureRequest) -> AnswerRecorder:
    """Record what an application said; the session judges it at its end, by the `deemster` mark of the test.

    `deemster.record({"question": "..."}, answer, expected_output="...")`
    """
    session = request.config.pluginmanager.get_plugin(_SESSION)
    if session is None:
        pytest.skip(_OFF)
    recorder: AnswerRecorder = session.recorder(request.node)
    return recorder
