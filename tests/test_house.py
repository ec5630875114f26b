"""House rules: checks over the source, the names and the documents of the package."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import json
import operator
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import deemster
from deemster import stats
from deemster.cli import app
from deemster.cli.main import COMMANDS
from tests.builders.source_trees import ONE_WORKER, SOURCE, syntax_tree

pytestmark = ONE_WORKER

ROOT = Path(__file__).parent.parent
FILES = sorted(path for path in SOURCE.rglob("*.py") if "templates" not in path.parts)
NAMES = [str(path.relative_to(SOURCE)) for path in FILES]
GUARD = "errors/user_code_guard.py"
# Words that end like a participle and are none, or that the field uses as a noun.
PARTICIPLES_ALLOWED = frozenset({"freeze"})
IRREGULAR_PARTICIPLES = frozenset(
    {
        "begun",
        "told",
        "shown",
        "kept",
        "held",
        "known",
        "given",
        "spent",
        "taken",
        "written",
        "found",
        "sent",
        "heard",
        "said",
        "seen",
    }
)
EXTRAS = frozenset({"mlflow", "opentelemetry", "pandas", "pyarrow", "sacrebleu", "zstandard"})
NETWORK = frozenset(
    {"aiohttp", "ftplib", "http.client", "httpx", "opentelemetry", "posthog", "requests", "sentry_sdk", "smtplib"}
    | {"socketserver", "telnetlib", "urllib.request", "urllib3", "webbrowser", "xmlrpc.client"}
)


def report_of_process(code: str, *arguments: str) -> dict[str, list[str]]:
    """The last line on standard error of a program that runs in a separate process."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE.parent), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


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
    return report_of_process(IMPORTING)


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
import click
from deemster.cli.main import COMMANDS, MODULE_NAMES, app

def paths(command, words):
    yield words
    for name in getattr(command, "commands", {}):
        yield from paths(command.commands[name], [*words, name])

found = {}
for words in [[], *(each for name in COMMANDS for each in paths(app.get_command(None, name), [name]))]:
    try:
        app([*words, "--help"], prog_name="deemster")
    except SystemExit as end:
        assert end.code == 0
    found[" ".join(words)] = sorted(sys.modules)
sys.stderr.write("\\n" + json.dumps(found))
"""
HEAVY = frozenset(
    {"numpy", "scipy", "rich", "msgspec", "yaml", "rapidfuzz", "re2", "jsonschema_rs", "asyncio", "pyarrow"}
    | {"aiohttp", "sqlite3", "tokenizers", "safetensors"}
)


def test_help_of_every_command_loads_nothing_heavy():
    found = report_of_process(HELPING)
    assert {"", *COMMANDS, "rubric improve", "store check"} <= set(found)
    for words, loaded in found.items():
        assert HEAVY.isdisjoint(loaded), words
        rooms = {name for name in loaded if name.startswith("deemster.") and name.count(".") == 1}
        assert rooms <= {"deemster.cli", "deemster.errors", "deemster.formats", "deemster.text"}, words


RUNNING = """
import json, sys
events = []
sys.addaudithook(lambda event, values: events.append(event))
import importlib
from deemster.cli.main import COMMANDS, MODULE_NAMES, app
for name in COMMANDS:
    importlib.import_module(f"deemster.cli.{MODULE_NAMES.get(name, name)}")
try:
    app(["run", sys.argv[1], "--quiet", "--to", "-", "--store", sys.argv[2]], prog_name="deemster")
except SystemExit as end:
    assert end.code == 0
sys.stderr.write("\\n" + json.dumps({"loaded": sorted(sys.modules), "events": sorted(set(events))}))
"""


def test_run_opens_no_connection(tmp_path):
    seen = report_of_process(RUNNING, "examples/quickstart/suite.yml", str(tmp_path / "runs.db"))
    assert NETWORK.isdisjoint(seen["loaded"])
    # An event loop makes a pair of sockets for itself; what would leave the process is connecting, binding, asking.
    leaving = {"socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"}
    assert leaving.isdisjoint(seen["events"])
    assert {"subprocess.Popen", "os.system", "os.posix_spawn", "os.fork"}.isdisjoint(seen["events"])


def documented_names() -> dict[str, list[str]]:
    """The names that the reference lists, by family; those of the root under an empty name."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    found: dict[str, list[str]] = {}
    for title, body in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL):
        family = title.removeprefix("dm.") if title.startswith("dm.") else ""
        found.setdefault(family, []).extend(re.findall(r"^\| `(\w+)` \|", body, re.MULTILINE))
    return found


FAMILIES = sorted(name for name in {*dir(deemster)} - {*deemster.__all__} if not name.startswith("__"))


def test_every_name_of_the_root_is_documented_once():
    assert sorted(documented_names()[""]) == list(deemster.__all__)


def test_reference_has_a_chapter_for_every_family():
    assert sorted(documented_names()) == ["", *FAMILIES]


@pytest.mark.parametrize("family", ["agreement", "audit", "judges", "metrics", "targets"])
def test_every_name_of_a_family_that_the_root_lacks_is_documented_once(family):
    names = set(getattr(deemster, family).__all__) - set(deemster.__all__)
    assert sorted(documented_names()[family]) == sorted(names)


@pytest.mark.parametrize(
    "family", ["calibration", "comparison", "errors", "grading", "models", "records", "report", "results", "rubrics"]
)
def test_every_documented_name_of_room_is_exported(family):
    names = documented_names()[family]
    assert len(names) == len(set(names)) > 0
    assert set(names) <= set(getattr(deemster, family).__all__) - set(deemster.__all__)


def public_callables() -> dict[str, object]:
    """Functions, and classes with parameters of their own: those of records and metrics are their fields."""
    places = [deemster, *(getattr(deemster, family) for family in FAMILIES)]
    named = {f"{place.__name__}.{name}": getattr(place, name) for place in places for name in place.__all__}
    return {
        name: thing
        for name, thing in named.items()
        if inspect.isfunction(thing) or (inspect.isclass(thing) and inspect.isfunction(vars(thing).get("__init__")))
    }


def test_public_function_takes_about_a_dozen_parameters():
    counts = {name: len(inspect.signature(thing).parameters) for name, thing in public_callables().items()}
    assert {name: count for name, count in counts.items() if count > 14} == {}
    assert len(counts) > 100


def test_every_statistic_is_documented_once():
    page = (ROOT / "docs" / "reference" / "statistics.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(documented) == sorted(stats.__all__)


LAZY = ["", *sorted(stub.parent.name for stub in SOURCE.glob("*/__init__.pyi"))]


def test_every_package_declares_its_names_in_a_stub_or_has_none():
    others = [path for path in SOURCE.glob("*/__init__.py") if not path.with_suffix(".pyi").exists()]
    importing = (ast.Import, ast.ImportFrom, ast.Assign)
    assert [
        path.parent.name
        for path in others
        if any(isinstance(node, importing) for node in syntax_tree(path.relative_to(SOURCE).as_posix()).body)
    ] == []
    for family in LAZY[1:]:
        body = syntax_tree(f"{family}/__init__.py").body
        assert [type(node) for node in body] == [ast.Expr, ast.ImportFrom, ast.Expr], (
            f"deemster/{family}/__init__.py holds more than its docstring and `load_lazily`."
        )


@pytest.mark.parametrize("family", LAZY)
def test_every_name_that_a_stub_declares_is_that_of_the_module_it_names(family):
    package = importlib.import_module(f"deemster.{family}".rstrip("."))
    stub = ast.parse((SOURCE / family / "__init__.pyi").read_text(encoding="utf-8"))
    places = {
        (node.module, alias.name, alias.asname)
        for node in stub.body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deemster.")
        for alias in node.names
    }
    assert sorted(name for _, name, _ in places) == list(package.__all__)
    for module, name, exported in places:
        assert name == exported
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("family", LAZY)
def test_a_name_that_no_stub_declares_is_an_attribute_error(family):
    package = importlib.import_module(f"deemster.{family}".rstrip("."))
    with pytest.raises(AttributeError, match="has no attribute `no_such_name`"):
        package.no_such_name  # noqa: B018 - looking it up is the test


@pytest.mark.parametrize("old", sorted(deemster.RENAMED))
def test_an_old_name_says_what_to_type_now_and_that_is_there(old):
    now = f"deemster.{deemster.RENAMED[old]}"
    with pytest.raises(AttributeError, match=re.escape(f"it is `{now}` now")):
        operator.attrgetter(old)(deemster)
    module, _, name = now.rpartition(".")
    assert hasattr(importlib.import_module(module), name)


def test_file_does_not_hide_the_function_of_its_name():
    assert importlib.import_module("deemster.stats.cohen_kappa") is not deemster.stats.cohen_kappa
    assert callable(deemster.stats.cohen_kappa)


@pytest.mark.parametrize("family", LAZY)
def test_every_name_that_is_loaded_on_first_use_has_a_docstring(family):
    package = importlib.import_module(f"deemster.{family}".rstrip("."))
    things = {name: getattr(package, name) for name in package.__all__}
    assert [name for name, thing in things.items() if inspect.isroutine(thing) and not thing.__doc__] == []
    assert [name for name, thing in things.items() if inspect.isclass(thing) and not thing.__doc__] == []


def test_there_are_about_forty_names_at_the_root():
    assert 35 <= len(deemster.__all__) <= 45


@pytest.mark.parametrize("name", ["evaluate", "grade"])
def test_async_function_has_the_parameters_of_its_blocking_twin(name):
    parameters = inspect.signature(getattr(deemster, name)).parameters
    assert len(parameters) > 5
    assert inspect.signature(getattr(deemster, f"{name}_async")).parameters == parameters
    assert not any(place.kind is place.VAR_KEYWORD for place in parameters.values())
    assert inspect.signature(getattr(deemster, name)).return_annotation in ("Report", "Grading")
    assert getattr(deemster, name).__name__ == name


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="evaluat"):
        deemster.evaluat  # noqa: B018 - the lookup is the test


def test_list_of_commands_matches_help_of_each_command():
    for name, line in COMMANDS.items():
        command = app.get_command(None, name)
        assert command is not None
        assert command.help is not None
        assert (command.name, command.help.partition("\n")[0]) == (name, line)


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
    assert re.search(r"^## (\d\S+)", changes, re.MULTILINE)[1] == deemster.__version__


def test_every_decision_is_in_the_index():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((\d{4}-[a-z-]+\.md)\)", index)
    assert linked == sorted(path.name for path in folder.glob("[0-9]*.md"))


def definitions(name: str) -> list[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [node for node in ast.walk(syntax_tree(name)) if isinstance(node, kinds)]


def imports(name: str) -> list[tuple[int, str]]:
    """Line and dotted name of every import of a file."""
    found = []
    for node in ast.walk(syntax_tree(name)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def test_every_file_has_a_docstring():
    assert [name for name in NAMES if not ast.get_docstring(syntax_tree(name))] == []


def test_every_doctest_is_true():
    failures: list[str] = []
    for name in NAMES:
        if ">>> " not in (SOURCE / name).read_text(encoding="utf-8"):
            continue
        parts = ("deemster", *Path(name).with_suffix("").parts)
        module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
        runner = doctest.DocTestRunner(verbose=False)
        # Read from the source, because wrapped or inherited functions are not found by inspecting objects.
        for node in (syntax_tree(name), *definitions(name)):
            title = getattr(node, "name", module.__name__)
            text = ast.get_docstring(node) or ""
            runner.run(
                doctest.DocTestParser().get_doctest(text, dict(vars(module)), title, name, 0), out=failures.append
            )
        assert runner.tries > 0, name
    assert failures == []


def test_no_marker_of_unfinished_code_is_left():
    pattern = re.compile(r"TODO|FIXME|XXX|NotImplementedError|pragma: no cover")
    assert [name for name in NAMES if pattern.search((SOURCE / name).read_text(encoding="utf-8"))] == []


def test_file_name_occurs_once_in_the_package():
    stems = Counter(Path(name).stem for name in NAMES if Path(name).stem not in ("__init__", "__main__"))
    assert [stem for stem, count in stems.items() if count > 1] == []


def test_file_name_is_plain_words():
    empty = {"utils", "util", "helpers", "common", "base", "misc", "core", "manager", "types"}
    stems = [Path(name).stem for name in NAMES if not Path(name).stem.startswith("__")]
    assert [stem for stem in stems if not re.fullmatch(r"_?[a-z0-9]+(_[a-z0-9]+)*", stem) or stem in empty] == []


def test_public_class_name_is_defined_once():
    places: dict[str, list[str]] = {}
    for name in NAMES:
        for node in definitions(name):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(name)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_no_room_imports_a_private_file_of_another_room():
    crossing = []
    for name in NAMES:
        room = Path(name).parts[0]
        for line, module in imports(name):
            parts = module.split(".")
            if parts[0] == "deemster" and len(parts) > 2 and parts[1] != room and parts[2].startswith("_"):
                crossing.append(f"{name}:{line} {module}")
    assert crossing == []


def test_no_import_inside_a_function_hides_a_cycle():
    """An import inside a function is for a heavy library: it must also work at the top of the file."""
    graph = {module_of(name): {target for _, target in top_level_imports(name)} for name in NAMES}
    hidden = []
    for name in NAMES:
        for function in definitions(name):
            if isinstance(function, ast.ClassDef):
                continue
            for node in ast.walk(function):
                if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("deemster"):
                    continue
                if module_of(name) in reachable(graph, node.module or ""):
                    hidden.append(f"{name}:{node.lineno} {node.module}")
    assert hidden == []


def module_of(name: str) -> str:
    parts = [part for part in ("deemster", *Path(name).with_suffix("").parts) if part != "__init__"]
    return ".".join(parts)


def top_level_imports(name: str) -> list[tuple[int, str]]:
    """Imports that run when the file is loaded: not those inside functions or for type checkers only."""
    return [
        (node.lineno, node.module)
        for node in syntax_tree(name).body
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deemster")
    ]


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    seen, ahead = set(), [start]
    while ahead:
        module = ahead.pop()
        if module not in seen:
            seen.add(module)
            ahead += graph.get(module, ())
    return seen


def test_public_function_is_not_named_by_a_bare_participle():
    bare = [
        f"{name}:{node.lineno} {node.name}"
        for name in NAMES
        for node in syntax_tree(name).body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and is_bare_participle(node.name)
    ]
    assert bare == []


def is_bare_participle(name: str) -> bool:
    """Whether a name is a single participle, such as `told`."""
    return (
        not name.startswith("_")
        and "_" not in name
        and name not in PARTICIPLES_ALLOWED
        and (name.endswith(("ed", "ing")) or name in IRREGULAR_PARTICIPLES)
    )


def test_only_the_guard_stops_every_exception():
    broad = [
        f"{name}:{node.lineno}"
        for name in NAMES
        if name != GUARD
        for node in ast.walk(syntax_tree(name))
        if isinstance(node, ast.ExceptHandler)
        and (
            node.type is None
            or {"Exception", "BaseException"} & {getattr(part, "id", "") for part in ast.walk(node.type)}
        )
    ]
    assert broad == []


def test_commands_end_through_click_so_that_a_stray_exit_of_user_code_is_seen():
    exits = [
        f"{name}:{node.lineno}"
        for name in NAMES
        if name.startswith("cli/")
        for node in ast.walk(syntax_tree(name))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("sys.exit", "exit", "quit")
    ]
    assert exits == []


def test_extra_is_imported_only_inside_functions():
    early = []
    for name in NAMES:
        for node in syntax_tree(name).body:
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            early += [f"{name} {module}" for module in modules if module.partition(".")[0] in EXTRAS]
    assert early == []


def test_every_test_file_of_a_room_is_named_for_a_file_of_that_room():
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
    strays = []
    for path in sorted((ROOT / "tests").glob("*/test_*.py")):
        room = path.parent.name
        stems = [file.stem.lstrip("_") for file in (SOURCE / room).glob("*.py")] if room in rooms else []
        if room in rooms and not any(re.match(rf"test_{stem}(_|$)", path.stem) for stem in stems):
            strays.append(f"{room}/{path.name}")
    assert strays == []


def test_source_files_are_found():
    assert {"__init__.py", "cli/main.py", GUARD, "evaluation/evaluate_dataset.py"} <= set(NAMES)
