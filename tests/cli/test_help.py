"""`deemster help`: topics that commands share, and the help of a command."""

from __future__ import annotations

import re

import pytest

from deemster.cli.help import TOPICS
from deemster.cli.main import GROUPS, app
from tests.cli.workspace import called


def test_topics_are_listed_and_shown(golden):
    listed = called("help")
    assert listed.exit_code == 0
    pages = [called("help", topic).stdout for topic in TOPICS]
    golden("cli/help-topics.txt", "\n".join([listed.stdout, *pages]))


@pytest.mark.parametrize("topic", TOPICS)
def test_topic_names_commands_and_flags_that_are_there(topic):
    text = called("help", topic).stdout
    commands = {name: app.get_command(None, name) for group in GROUPS.values() for name in group}
    flags = {flag for command in commands.values() for option in command.params for flag in option.opts}
    assert set(re.findall(r"(?<![\w-])--[a-z]+(?:-[a-z]+)*", text)) <= flags
    assert set(re.findall(r"deemster ([a-z]+)", text)) <= {*commands, "help"}


def test_topic_may_be_a_command():
    assert called("help", "compare").stdout == called("compare", "--help").stdout


def test_unknown_topic_is_answered_with_the_nearest():
    result = called("help", "sample")
    assert result.exit_code == 2
    assert "Did you mean `samples`?" in result.stderr


def test_help_of_a_command_that_asks_models_says_that_it_may_cost_money():
    assert "may cost money" in called("run", "--help").stdout
    assert "may cost money" not in called("show", "--help").stdout


@pytest.mark.parametrize("name", [name for group in GROUPS.values() for name in group])
def test_every_help_ends_with_examples_and_neighbours(name):
    command = app.get_command(None, name)
    for verb in (command, *getattr(command, "commands", {}).values()):
        assert 1 <= len(verb.examples) <= 5, verb.name
        assert verb.see_also, verb.name
