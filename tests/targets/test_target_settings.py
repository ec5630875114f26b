"""Settings of a target: they reach a function, a command and an HTTP body, and are part of its identity."""

from __future__ import annotations

import asyncio
import sys

import pytest

from deemster.errors import ConfigurationError
from deemster.records import Invocation, Output
from deemster.targets.command_target import CommandTarget
from deemster.targets.http_target import HttpTarget
from deemster.targets.python_target import PythonTarget
from deemster.targets.target_section import build_target, read_target

ASKED = Invocation("a", {"q": "Why?"})


def said_by(target, invocation):
    """What a target says that is opened before."""

    async def call():
        await target.open()
        return await target.call_async(invocation)

    return asyncio.run(call()).text


def by_parameter(asked, settings):
    return f"{asked['q']} {settings['skill']}"


def by_invocation(invocation):
    return f"{invocation.input['q']} {invocation.settings['skill']}"


def plain(asked):
    return "x"


def with_default(asked, settings=None):
    return str(settings)


@pytest.mark.parametrize("function", [by_parameter, by_invocation])
def test_settings_reach_a_function(function):
    target = PythonTarget(function, settings={"skill": True})
    assert target.call(ASKED) == Output("Why? True")


def test_function_that_takes_no_settings_is_an_error_where_there_are_some():
    with pytest.raises(ConfigurationError, match="takes no `settings`"):
        PythonTarget(plain, settings={"skill": True})
    assert PythonTarget(plain).call(ASKED) == Output("x")


def test_function_with_a_default_of_its_own_keeps_it_where_there_are_no_settings():
    assert PythonTarget(with_default).call(ASKED) == Output("None")


def test_function_that_changes_its_settings_changes_no_later_call():
    def spoil(asked, settings):
        settings["turns"].append(1)
        return str(len(settings["turns"]))

    target = PythonTarget(spoil, settings={"turns": []})
    assert [target.call(ASKED).text for _ in range(2)] == ["1", "1"]


def test_command_gets_settings_as_variables_of_their_names():
    program = "import os; print(os.environ['SKILL'], os.environ['DEPTH'], os.environ['NAME'])"
    target = CommandTarget([sys.executable, "-c", program], settings={"SKILL": True, "DEPTH": 3, "NAME": "Ann"})
    assert said_by(target, ASKED) == "true 3 Ann"


@pytest.mark.parametrize("name", ["a-b", "1a", "a=b", ""])
def test_setting_that_is_no_name_of_a_variable_is_an_error_for_a_command(name):
    with pytest.raises(ConfigurationError, match="no name of a variable"):
        CommandTarget(["cat"], settings={name: 1})


def test_http_body_may_hold_settings():
    target = HttpTarget(
        "http://h/?mode={{settings.mode}}",
        body={"q": "{{input.q}}", "skill": "{{settings.skill}}"},
        settings={"skill": False, "mode": "x"},
    )
    declared = target._request(Invocation("a", ASKED.input, 0, {"skill": False, "mode": "x"}))
    assert declared.body == b'{"q":"Why?","skill":false}'
    assert declared.query == [("mode", "x")]


def test_settings_are_part_of_the_identity_and_secrets_among_them_are_not_shown():
    first = PythonTarget(by_parameter, settings={"skill": True})
    second = PythonTarget(by_parameter, settings={"skill": False})
    assert first.identity != second.identity
    assert "settings" not in PythonTarget(plain).identity
    assert "hush-hush" not in repr(CommandTarget(["cat"], settings={"API_KEY": "hush-hush"}).identity)


def test_settings_stand_beside_the_kind_of_a_target(tmp_path):
    def read(section):
        return read_target(section, place=lambda path: ".".join(map(str, path)), environ={}, folder=tmp_path)

    declared, issues = read({"python": "app:answer", "settings": {"skill": True}})
    assert issues == []
    assert build_target(declared, load=lambda _: by_parameter).call(ASKED) == Output("Why? True")
    _, issues = read({"outputs": "a.json", "settings": {}})
    assert [issue.message for issue in issues] == [
        "`settings` is not for a target of the kind `outputs`, but for `python`, `http`, `command`."
    ]
    _, issues = read({"python": "app:answer", "temperature": 0.2})
    assert [issue.message for issue in issues] == [
        "`temperature` is not for a target of the kind `python`, but for `chat`."
    ]
