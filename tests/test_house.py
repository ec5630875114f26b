"""The rules of the house that a command can hold."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import deemster
from deemster import stats
from deemster.cli import app
from deemster.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deemster"
FILES = sorted(path for path in SOURCE.rglob("*.py") if "starter" not in path.parts)
NAMES = [str(path.relative_to(SOURCE)) for path in FILES]
GUARD = "errors/user_code_guard.py"
LONGEST_FILE = 400
LONGEST_FUNCTION = 60
# Its twenty-odd parameters, each with a line of its own and one that explains it, are what a user reads.
DOOR = ("runs/evaluate.py", "evaluate")
EXTRAS = frozenset({"pandas", "pyarrow", "sacrebleu"})
NETWORK = frozenset(
    {"aiohttp", "ftplib", "http.client", "httpx", "opentelemetry", "posthog", "requests", "sentry_sdk", "smtplib"}
    | {"socketserver", "telnetlib", "urllib.request", "urllib3", "webbrowser", "xmlrpc.client"}
)


def told(code: str, *arguments: str) -> dict[str, list[str]]:
    """What a program, run in a process of its own, writes as the last line of its standard error."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def tree(name: str) -> ast.Module:
    return ast.parse((SOURCE / name).read_text(encoding="utf-8"))


IMPORTING = """
import importlib, json, os, sys  # what lazy loading takes from the library is there before the watch begins
before = set(sys.modules)
events, read = [], []
plain = os._Environ.__getitem__
os._Environ.__getitem__ = lambda self, key: (read.append(str(key)), plain(self, key))[1]
sys.addaudithook(lambda event, values: events.append([event, str(values[0]) if values else ""]))
import deemster
events = list(events)
loaded = sorted(set(sys.modules) - before)
sys.stderr.write(json.dumps({"events": events, "loaded": loaded, "read": read}))
"""


@pytest.fixture(scope="module")
def importing() -> dict[str, list]:
    """What `import deemster` does, seen from outside."""
    return told(IMPORTING)


def test_importing_the_package_loads_nothing_but_itself(importing):
    assert importing["loaded"] == ["deemster"]


def test_importing_the_package_opens_no_file_but_its_own(importing):
    opened = {Path(name) for event, name in importing["events"] if event == "open"}
    assert {path.parent for path in opened} <= {SOURCE, SOURCE / "__pycache__"}
    assert {path.name.partition(".")[0] for path in opened} == {"__init__"}


def test_importing_the_package_opens_no_socket_and_starts_no_process(importing):
    kinds = {event.partition(".")[0] for event, _ in importing["events"]}
    assert kinds.isdisjoint({"socket", "subprocess", "urllib", "http", "ctypes", "sqlite3", "tempfile", "shutil"})
    assert {"os.system", "os.exec", "os.fork", "os.putenv"}.isdisjoint(event for event, _ in importing["events"])


def test_importing_the_package_reads_no_environment(importing):
    assert importing["read"] == []


HELPING = """
import json, sys
sys.argv = ["deemster", "--help"]
from deemster.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0
sys.stderr.write(json.dumps({"loaded": sorted(sys.modules)}))
"""


def test_help_answers_without_loading_anything_heavy():
    loaded = set(told(HELPING)["loaded"])
    assert "click" in loaded
    heavy = {"numpy", "scipy", "rich", "msgspec", "yaml", "rapidfuzz", "re2", "jsonschema_rs", "asyncio", "pyarrow"}
    assert loaded.isdisjoint(heavy)
    assert sorted(name for name in loaded if name.startswith("deemster.") and name.count(".") == 1) == [
        "deemster.cli",
        "deemster.errors",
    ]


RUNNING = """
import json, sys
events = []
sys.addaudithook(lambda event, values: events.append(event))
import importlib
from deemster.cli.main import COMMANDS, app
for name in COMMANDS:
    importlib.import_module(f"deemster.cli.{name}")
try:
    app(["run", sys.argv[1], "--quiet", "--json", "-", "--store", sys.argv[2]], prog_name="deemster")
except SystemExit as end:
    assert end.code == 0
sys.stderr.write("\\n" + json.dumps({"loaded": sorted(sys.modules), "events": sorted(set(events))}))
"""


def test_a_run_phones_nobody(tmp_path):
    seen = told(RUNNING, "examples/quickstart/suite.yml", str(tmp_path / "runs.db"))
    assert NETWORK.isdisjoint(seen["loaded"])
    # An event loop makes a pair of sockets for itself; what would leave the process is connecting, binding, asking.
    leaving = {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}
    assert leaving.isdisjoint(seen["events"])
    assert {"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"}.isdisjoint(seen["events"])


def test_every_public_name_is_documented_once():
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(documented) == list(deemster.__all__)


def shape(thing: object) -> str:
    """How a function is called, or which fields a result has."""
    if inspect.isclass(thing):
        return ", ".join(getattr(thing, "__struct_fields__", ()) or thing._fields)
    parts = []
    for place in inspect.signature(thing).parameters.values():
        if place.kind is place.VAR_POSITIONAL:
            parts.append(f"*{place.name}")
            continue
        if place.kind is place.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        default = place.default.__name__ if inspect.isclass(place.default) else json_like(place.default)
        parts.append(place.name if place.default is place.empty else f"{place.name}={default}")
    return f"({', '.join(parts)})"


def json_like(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def test_every_statistic_is_documented_once_with_its_shape():
    page = (ROOT / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", page, re.MULTILINE)
    assert sorted(name for name, _ in documented) == sorted(stats.__all__)
    assert dict(documented) == {name: shape(getattr(stats, name)) for name in stats.__all__}


def test_type_checkers_see_the_public_names():
    stub = ast.parse((SOURCE / "__init__.pyi").read_text(encoding="utf-8"))
    places = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and node.module != "deemster"
        for alias in node.names
    }
    assert sorted(str(name) for name in places) == list(deemster.__all__)
    assert places == {name: f"deemster.{deemster._PLACES[name]}.{name}" for name in deemster.__all__}


@pytest.mark.parametrize("name", deemster.__all__)
def test_a_public_name_resolves_and_says_what_it_is(name):
    assert getattr(deemster, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="evaluat"):
        deemster.evaluat  # noqa: B018 - the lookup is the test


def test_every_command_is_documented_with_its_help():
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^## deemster (\w+)$", page, re.MULTILINE) == sorted(COMMANDS)
    assert re.findall(r"^\$ deemster (\w+) --help$", page, re.MULTILINE) == sorted(COMMANDS)
    assert "\n$ deemster --help\n" in page


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_each_command_says_of_itself(name):
    command = app.get_command(None, name)
    assert command is not None
    assert (command.name, command.short_help) == (name, COMMANDS[name])
    assert command.help is not None
    assert command.help.startswith(COMMANDS[name])


def test_every_flag_of_every_command_has_a_help_text():
    bare = [
        f"{name} {option.opts[0]}"
        for name in COMMANDS
        for option in app.get_command(None, name).params
        if option.param_type_name == "option" and not option.help
    ]
    assert bare == []


def test_there_is_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == deemster.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == deemster.__version__


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((\d{4}-[a-z-]+\.md)\)", index)
    assert linked == sorted(path.name for path in folder.glob("[0-9]*.md"))


@pytest.mark.parametrize("name", NAMES)
def test_a_file_says_what_it_is_for(name):
    assert ast.get_docstring(tree(name))


@pytest.mark.parametrize("name", [name for name in NAMES if ">>> " in (SOURCE / name).read_text(encoding="utf-8")])
def test_every_example_of_a_docstring_is_true(name):
    parts = ("deemster", *Path(name).with_suffix("").parts)
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    # Read from the source, since what a decorator wraps or a class inherits is not found by looking at objects.
    for node in ast.walk(tree(name)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node) or ""
            title = getattr(node, "name", module.__name__)
            examples = doctest.DocTestParser().get_doctest(text, dict(vars(module)), title, name, 0)
            runner.run(examples, out=said.append)
    assert runner.tries > 0
    assert said == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_finished(name):
    text = (SOURCE / name).read_text(encoding="utf-8")
    assert re.findall(r"TODO|FIXME|XXX|NotImplementedError|pragma: no cover", text) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_one_word_and_short(name):
    path = SOURCE / name
    assert path.stem in ("__init__", "__main__") or re.fullmatch(r"[a-z]+", path.stem)
    assert path.stem not in {"utils", "util", "helpers", "common", "base", "misc", "core", "manager", "types"}
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("name", NAMES)
def test_a_function_is_short(name):
    long = {
        node.name: length
        for node in ast.walk(tree(name))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (length := (node.end_lineno or 0) - node.lineno + 1) > LONGEST_FUNCTION
        and (name, node.name) != DOOR
    }
    assert long == {}


@pytest.mark.parametrize("name", NAMES)
def test_only_the_guard_stops_every_exception(name):
    broad = [
        node.lineno
        for node in ast.walk(tree(name))
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or {"Exception", "BaseException"} & {getattr(part, "id", "") for part in ast.walk(node.type)}
        )
    ]
    assert broad == [] or name == GUARD


@pytest.mark.parametrize("name", NAMES)
def test_an_extra_is_imported_only_where_it_is_needed(name):
    modules = {
        module.partition(".")[0]
        for node in tree(name).body
        for module in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert modules.isdisjoint(EXTRAS)


def test_the_files_are_found():
    assert {"__init__.py", "cli/main.py", GUARD} <= set(NAMES)
