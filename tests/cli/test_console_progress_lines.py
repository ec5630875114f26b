"""What a run says of its progress where there is no terminal."""

import pytest

from deemster.cli import _console
from deemster.engine.progress import Progress


@pytest.fixture
def clock(monkeypatch):
    times = [0.0]
    monkeypatch.setattr(_console.time, "monotonic", lambda: times[0])
    return times


def test_time_before_the_first_execution_does_not_count_as_pace(clock, capsys):
    with _console.show_progress(quiet=False) as update:
        # Reading the dataset took a minute, or an earlier process had done these.
        clock[0] = 60.0
        update(Progress(1_000, 5_000, 0))
        clock[0] = 70.0
        update(Progress(3_000, 5_000, 0))

    first, second = capsys.readouterr().err.splitlines()
    assert first == "1,000 of 5,000 done, 0 unscored"
    assert second == "3,000 of 5,000 done, 0 unscored, 200/s, 10 s left"
