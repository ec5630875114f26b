"""How the help of a command looks, and how its flags are read."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from deemster.cli._command import Verb, VerbGroup
from deemster.cli.main import COMMANDS, app
from tests.cli.workspace import read_line


@click.command(
    "walk",
    cls=Verb,
    headings={"How": ("--quiet",)},
    examples=[
        "deemster walk home --store the-sea",
        "deemster walk home --again=monday --store a-very-long-name-of-a-place",
    ],
    see_also=["run", "sit"],
)
@click.argument("start", default="here")
@click.option("--again", is_flag=False, flag_value="", metavar="[=DAY]", help="Walk again.")
@click.option("--store", "to", metavar="PLACE", help="The end.")
@click.option("--quiet", is_flag=True, help="Say nothing.")
def walk(start, again, to, quiet):
    """Walk somewhere."""
    click.echo(f"{start} {again!r} {to} {quiet}")


@click.group("legs", cls=VerbGroup)
def legs():
    """What legs do."""


@legs.command("jump", short_help="Jump over something.")
@click.argument("height")
def jump(height):
    """Jump over something."""


def test_help_has_flags_under_headings_then_examples_and_neighbours():
    shown = CliRunner().invoke(walk, ["--help"], terminal_width=60).stdout
    order = [
        "How:\n  --quiet",
        "Options:\n  --again",
        "Kept:\n  --store PLACE",
        "Examples:\n  deemster walk home --store the-sea\n",
    ]
    order += [
        "  deemster walk home --again=monday --store a-very-long-name-of-a-place\n",
        "See also: deemster run, sit",
    ]
    assert [shown.index(text) for text in order] == sorted(shown.index(text) for text in order)


@pytest.mark.parametrize(
    ("argv", "read"),
    [
        (["--again", "home"], "home '' None False"),
        (["home", "--again"], "home '' None False"),
        (["home", "--again=monday", "--quiet"], "home 'monday' None True"),
        (["--again", "--store", "sea"], "here '' sea False"),
    ],
)
def test_value_that_may_be_left_out_never_takes_the_next_word(argv, read):
    assert CliRunner().invoke(walk, argv).stdout == f"{read}\n"


def test_word_after_a_flag_that_stands_alone_is_answered_with_how_to_write_it():
    result = CliRunner().invoke(walk, ["home", "--again", "monday"])
    assert result.exit_code == 2
    assert "If `monday` is for `--again`, write `--again=monday`." in result.stderr


def test_group_shows_the_usage_of_its_verbs():
    assert "  jump HEIGHT  Jump over something.\n" in CliRunner().invoke(legs, ["--help"]).stdout


def test_unknown_verb_is_answered_with_the_nearest():
    result = CliRunner().invoke(legs, ["jmp"])
    assert result.exit_code == 2
    assert "`deemster legs` has no verb `jmp`. Did you mean `jump`?" in result.stderr


def every_example():
    for name in COMMANDS:
        command = app.get_command(None, name)
        for verb in (command, *getattr(command, "commands", {}).values()):
            yield from verb.examples


@pytest.mark.parametrize("line", tuple(every_example()))
def test_example_in_help_can_be_read_by_its_command(line):
    assert line.startswith("deemster ")
    assert read_line(line) is not None
