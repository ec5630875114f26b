"""Flags that several commands share."""

import inspect

import click
import pytest

import deemster as dm
from deemster.agreement.agreement_settings import AgreementSettings
from deemster.cli import monitor, store_options
from deemster.cli.main import COMMANDS, app
from deemster.monitoring import pass_rate_over_time
from deemster.store import open_and_migrate


@pytest.mark.parametrize(
    ("flag", "engine"),
    [
        (store_options.STORE, str(open_and_migrate.DEFAULT)),
        (monitor.PERIODS, pass_rate_over_time.PERIODS),
        (monitor.BASELINE, pass_rate_over_time.BASELINE),
    ],
)
def test_constants_in_help_equal_those_of_engine(flag, engine):
    assert flag == engine


def every_command():
    for name in COMMANDS:
        command = app.get_command(None, name)
        yield name, command
        yield from ((f"{name} {sub}", each) for sub, each in getattr(command, "commands", {}).items())


def test_output_flags_have_same_name_in_every_command():
    spellings = {
        (option.opts[0], option.metavar)
        for _, command in every_command()
        for option in command.params
        if isinstance(option, click.Option) and option.opts[0] == "--to"
    }
    # A suite is written into a folder; a run is exported to a file, a folder or a server.
    assert spellings == {("--to", "FILE"), ("--to", "FOLDER"), ("--to", "PLACE")}


@pytest.mark.parametrize(
    ("command", "function"), [("agreement", dm.compute_metrics), ("run", dm.evaluate), ("monitor", dm.monitor)]
)
def test_flag_has_the_name_and_the_default_of_its_argument(command, function):
    arguments = inspect.signature(function).parameters
    flags = {option.name: option for option in app.get_command(None, command).params}
    both = set(arguments) & set(flags)
    named = {"agreement": {"per_judge", "judges"}}
    assert both >= named.get(command, {"repetitions"} if command == "run" else {"baseline", "alpha", "every"})
    for name in both - {"cache", "store"}:
        default = flags[name].default
        if isinstance(default, (int, float, str)) and flags[name].show_default:
            assert default == arguments[name].default, name


def test_settings_of_agreement_are_arguments_of_compute_metrics():
    every = {
        "bootstrap": "bca",
        "n_bootstrap": 9,
        "confidence": 0.9,
        "seed": 7,
        "na_mode": "as_unmet",
        "group": "topic",
    }
    every |= {
        "cannot_assess": "as_unmet",
        "epsilon": 0.1,
        "system": "by",
        "pair": "pair",
        "cluster": "by",
        "per_slice": True,
    }
    assert set(every) == set(AgreementSettings.__struct_fields__)
    arguments = AgreementSettings(**every).arguments
    assert set(arguments) < set(inspect.signature(dm.compute_metrics).parameters)
    assert arguments["bootstrap"] == dm.agreement.BootstrapSettings("bca", 9, 0.9, 7)
