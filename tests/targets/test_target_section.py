"""The `target` section of a suite: its values, its issues, and its secrets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deemster.errors import InputError
from deemster.targets.command_target import CommandTarget
from deemster.targets.http_target import HttpTarget
from deemster.targets.python_target import PythonTarget
from deemster.targets.saved_outputs import SavedOutputs
from deemster.targets.target_section import SHAPES, build_target, read_target

SECRET = "hunter2-hunter2"


def place(path):
    return ".".join(map(str, path))


def read(section, environ=None, *, calls=True, folder=Path()):
    return read_target(section, place=place, environ=environ or {}, folder=folder, calls=calls)


def declared(section, environ=None, **options):
    found, faults = read(section, environ, **options)
    assert faults == []
    return found


def faults(section, environ=None, **options):
    found, wrong = read(section, environ, **options)
    assert (found is None) == bool(wrong)
    return [(fault.where, fault.message) for fault in wrong]


def answer(asked):
    return "x"


def made(section, environ=None, **options):
    return build_target(declared(section, environ, **options), load=lambda path: answer)


def test_every_kind_has_a_short_form_and_a_long_one(tmp_path):
    (tmp_path / "a.json").write_text('{"outputs": {"a": "x"}}', encoding="utf-8")
    pairs = [
        ({"python": "app:answer"}, {"python": {"function": "app:answer"}}, PythonTarget),
        ({"http": "http://h/ask"}, {"http": {"url": "http://h/ask"}}, HttpTarget),
        ({"command": [sys.executable, "-V"]}, {"command": {"argv": [sys.executable, "-V"]}}, CommandTarget),
        ({"outputs": "a.json"}, {"outputs": {"file": "a.json"}}, SavedOutputs),
    ]
    for short, long, kind in pairs:
        first, second = made(short, folder=tmp_path), made(long, folder=tmp_path)
        assert type(first) is type(second) is kind
        assert first.identity == second.identity


def test_settings_reach_the_target():
    http = made({"http": {"url": "http://h/", "concurrency": "2-9", "retries": 0, "rpm": 60, "timeout_s": 1.5}})
    assert (http.concurrency, http._role.retries, http._role.rpm, http._role.timeout_s) == (9, 0, 60, 1.5)
    command = made({"command": {"argv": ["cat"], "concurrency": 2, "timeout_s": 4, "output": "json"}})
    assert (command.concurrency, command._timeout_s, command._form) == (2, 4, "json")
    python = made({"python": {"function": "app:answer", "concurrency": 3, "retries": 2, "timeout_s": 1}})
    assert (python.concurrency, python._timeout_s) == (3, 1)


@pytest.mark.parametrize("kind", SHAPES)
def test_unknown_key_is_error_with_line_and_suggestion(kind):
    main = {"python": "app:answer", "http": "http://h/", "command": ["cat"], "outputs": "a.json"}[kind]
    shape, key = SHAPES[kind]
    last = shape.__struct_fields__[-1]
    (where, message) = faults({kind: {key: main, f"{last}x": 1}})[0]
    assert where == f"target.{kind}.{last}x"
    assert f"Did you mean `{last}`?" in message


def test_every_issue_has_line_of_its_key():
    section = {
        "http": {
            "url": "http://h/?q={{nothing}}",
            "method": "DELETE",
            "headers": {"A": 1},
            "body": {"a": [{"b": "{{x}}"}]},
            "output": "",
            "usage": 7,
            "retries": -1,
            "concurrency": "a",
            "api_key_env": "A KEY",
        }
    }
    assert {where for where, _ in faults(section)} == {
        "target.http.url",
        "target.http.method",
        "target.http.headers.A",
        "target.http.body.a.0.b",
        "target.http.output",
        "target.http.usage",
        "target.http.retries",
        "target.http.concurrency",
        "target.http.api_key_env",
    }


def test_variables_of_the_environment_are_replaced_everywhere_in_the_section():
    section = {"http": {"url": "${HOST}/ask", "headers": {"X-Key": "${K}"}, "body": {"m": ["${MODEL:-small}"]}}}
    found = declared(section, {"HOST": "http://h", "K": SECRET})
    assert found.main == "http://h/ask"
    assert found.settings["headers"] == {"X-Key": SECRET}
    assert found.settings["body"] == {"m": ["small"]}


def test_unset_variable_is_error_only_if_target_is_called():
    section = {"http": {"url": "${HOST}/ask", "headers": {"Authorization": "${K}"}, "api_key_env": "APP_KEY"}}
    assert [where for where, _ in faults(section)] == [
        "target.http.url",
        "target.http.headers.Authorization",
        "target.http.api_key_env",
    ]
    assert isinstance(made(section, calls=False), HttpTarget)
    command = {"command": {"argv": ["cat"], "env": ["NOBODY_SET_THIS"]}}
    assert [where for where, _ in faults(command)] == ["target.command.env"]
    assert isinstance(made(command, calls=False), CommandTarget)


def test_header_from_environment_is_hidden_under_any_name():
    section = {
        "http": {
            "url": "http://h/",
            "headers": {"X-Plain": "${VALUE}", "X-Fixed": "an ordinary value"},
            "body": {"token": "${APP_TOKEN}", "model": "${MODEL}"},
            "api_key_env": "APP_KEY",
        }
    }
    environ = {"VALUE": SECRET, "APP_TOKEN": "t-123456789", "MODEL": "a-large-model", "APP_KEY": "k-123456789"}
    found = declared(section, environ)
    target = build_target(found, load=lambda path: answer)
    for secret in (SECRET, "t-123456789", "k-123456789"):
        assert target.secrets.redact(f"<{secret}>") == "<[removed]>"
        assert secret not in json.dumps(target.identity) + repr(target) + repr(found)
    assert target.secrets.redact("a-large-model, an ordinary value") == "a-large-model, an ordinary value"
    assert target.identity["http"]["body"]["model"] == "a-large-model"


def test_key_in_file_is_error_without_key():
    told = json.dumps(faults({"http": {"url": "http://h/", "api_key": SECRET, "api_key_env": "sk-" + SECRET}}))
    assert "Did you mean `api_key_env`?" in told
    assert "No file holds the key itself." in told
    assert SECRET not in told


def test_command_runs_in_suite_folder_by_default(tmp_path):
    (tmp_path / "inner").mkdir()
    assert declared({"command": ["cat"]}, folder=tmp_path).settings["cwd"] == str(tmp_path)
    inner = {"command": {"argv": ["cat"], "cwd": "inner"}}
    assert declared(inner, folder=tmp_path).settings["cwd"] == str(tmp_path / "inner")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(sorted({key for shape, _ in SHAPES.values() for key in shape.__struct_fields__}))
ADDRESS = st.text(max_size=9).map(lambda text: f"http://{text}")
SECTION = st.builds(lambda url: {"http": url}, ADDRESS) | st.dictionaries(
    st.sampled_from(list(SHAPES)), st.dictionaries(NAMES | st.text(max_size=5), JSON, max_size=5) | JSON, max_size=2
)


@given(SECTION | JSON)
def test_any_section_content_is_read_or_error_with_lines(section):
    found, wrong = read(section)
    assert (found is None) == bool(wrong)
    assert all(fault.where.startswith("target") for fault in wrong)
    if found is not None and found.kind in ("http", "command"):
        try:
            assert build_target(found, load=lambda path: answer).identity
        except InputError as error:
            assert all(fault.message for fault in error.issues)  # noqa: PT017 - either of two is right
