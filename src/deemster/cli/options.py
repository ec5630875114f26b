"""How flags become values: several as one, settings by `--set`; and the flags that many commands have.

`group_flags` adds flags to a command and hands them over as one value, such as `ReportOptions`. Heavy rooms are loaded
where a command uses them, so that `--help` answers at once.
"""

from __future__ import annotations

import ast
import functools
import json
import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from deemster.errors import ConfigurationError

if TYPE_CHECKING:
    from deemster.datasets.only_expression import Only


Command = TypeVar("Command", bound=Callable[..., Any])
Settings = TypeVar("Settings")
Decorator = Callable[[Any], Any]
# What click read, by parameter.
Flags = dict[str, Any]
# Says that there is no cache, or no store.
NONE = "none"
_PACKAGE = Path(__file__).parents[1]


def add_options(command: Command, options: Sequence[Decorator]) -> Command:
    """Add flags to a command, in the order in which its help lists them."""
    for option in reversed(options):
        command = option(command)
    return command


def group_flags(
    command: Command, name: str, group: Callable[[Flags], Any], options: Sequence[Decorator] = ()
) -> Command:
    """Add flags to a command, which receives what they say as one value.

    Args:
        command: The command.
        name: Its parameter for the value.
        group: Makes the value of all flags, and takes out those that it uses.
        options: The flags, in the order in which the help lists them.
    """

    @functools.wraps(command)
    def collect(**flags: Any) -> Any:
        flags[name] = group(flags)
        return command(**flags)

    return add_options(collect, options)  # type: ignore[return-value]


def take_flags(kind: Any, flags: Flags) -> Any:
    """A named tuple of the flags that its fields name; it takes them out. What a command lacks keeps its default."""
    return kind(**{name: flags.pop(name) for name in kind._fields if name in flags})


only_option = click.option(
    "--only",
    multiple=True,
    metavar="EXPR",
    help="Only tag:x, id:q*, lang=de, failed: `help samples`.",
)


def take_only(flags: Flags) -> Only:
    """Take `--only` out of all flags.

    Raises:
        ConfigurationError: It says something that is not known.
    """
    from deemster.datasets.only_expression import parse_only

    return parse_only(flags.pop("only"))


def set_option(examples: str) -> Decorator:
    """The flag `--set KEY=VALUE`, repeatable, of a command whose settings have no flags of their own.

    Args:
        examples: Some of them, for the help.
    """
    return click.option(
        "--set", "overrides", metavar="KEY=VALUE", multiple=True, help=f"One setting, such as {examples}; repeatable."
    )


class _SettingsOption(click.Option):
    """The flag `--set` of a command whose settings are a struct: its help lists the fields."""

    def __init__(self, *arguments: Any, file: str, struct: str, **attributes: Any) -> None:
        super().__init__(*arguments, **attributes)
        self.file = file
        self.struct = struct

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The flag, and its help with every setting that has no flag of its own."""
        flags = {parameter.name for parameter in ctx.command.params}
        settings = _describe_settings(self.file, self.struct)
        listed = [text for name, text in settings.items() if name not in flags]

        record = super().get_help_record(ctx)
        return None if record is None else (record[0], f"{record[1]} {'; '.join(listed)}.")


def _describe_settings(file: str, struct: str) -> dict[str, str]:
    """The fields of a struct with default and meaning, read from its source: help loads no heavy room."""
    module = ast.parse((_PACKAGE / file).read_text(encoding="utf-8")).body
    shape = next(node for node in module if isinstance(node, ast.ClassDef) and node.name == struct)
    constants = {ast.unparse(node.targets[0]): node.value for node in module if isinstance(node, ast.Assign)}

    attributes = (ast.get_docstring(shape) or "").partition("\nAttributes:\n")[2].partition("\n\n")[0]
    meanings = dict(re.findall(r"^    (\w+): (.*(?:\n {8,}.*)*)", attributes, re.MULTILINE))

    texts = {}
    for field in shape.body:
        if isinstance(field, ast.AnnAssign) and field.value is not None:
            name = ast.unparse(field.target)
            default = ast.unparse(constants.get(ast.unparse(field.value), field.value))
            # What Python calls None is null on a command line.
            meaning = " ".join(meanings[name].split()).rstrip(".").replace("None", "null")
            shown = f"{name}={default}" if _is_number(default) else name
            texts[name] = f"{shown} ({meaning[0].lower()}{meaning[1:]})"
    return texts


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def settings_option(file: str, struct: str) -> Decorator:
    """The flag `--set KEY=VALUE`, whose help follows from the struct that declares the settings.

    Args:
        file: Where the struct is, in this package.
        struct: Its name. Each of its fields has a default, and a line in its docstring.
    """
    return click.option(
        "--set",
        "overrides",
        cls=_SettingsOption,
        file=file,
        struct=struct,
        metavar="KEY=VALUE",
        multiple=True,
        help="A setting; repeatable.",
    )


def override_settings(settings: dict[str, Any], overrides: Sequence[str]) -> None:
    """Put settings such as `repeats=3` or `cascade.unsure_below=0.8` among others.

    Raises:
        ConfigurationError: One of them is no setting.
    """
    for text in overrides:
        path, sign, value = text.partition("=")
        *sections, key = path.split(".")
        if not sign or not all([*sections, key]):
            raise ConfigurationError(f"`--set` is KEY=VALUE, such as repeats=3, not `{text}`.")

        section = settings
        for name in sections:
            section = section.setdefault(name, {})
            if not isinstance(section, dict):
                raise ConfigurationError(f"`--set {text}`: `{name}` is no map of settings.")

        try:
            section[key] = json.loads(value)
        except ValueError:
            section[key] = value


def read_settings(shape: type[Settings], overrides: Sequence[str], **settings: Any) -> Settings:
    """What `--set` says, beside other settings.

    Args:
        shape: The struct that declares them.
        overrides: What `--set` says.
        settings: The others, as flags of their own say them.

    Raises:
        ConfigurationError: One of them is said twice, is no setting, or not as declared; all issues are listed.
    """
    from deemster.formats.schema_validation import decode_shape

    for text in overrides:
        name = text.partition("=")[0]
        if settings.get(name) not in (None, ()):
            message = f"`--set {text}` says what a flag of this command says already: leave one of them out."
            raise ConfigurationError(message)

    override_settings(settings, overrides)
    decoded: Settings = decode_shape(settings, shape, error=ConfigurationError)
    return decoded


quiet_option = click.option("--quiet", is_flag=True, help="Print only the verdict and what failed.")


def _parse_columns(
    _context: click.Context, _parameter: click.Parameter, value: tuple[str, ...]
) -> dict[str, list[str]] | None:
    """What `--columns` says, by what a column holds."""
    columns: dict[str, list[str]] = {}
    for entry in (part for text in value for part in text.split(",")):
        role, sign, name = (part.strip() for part in entry.partition("="))
        if not (role and sign and name):
            raise click.BadParameter(f"write WHAT=COLUMN, such as id=ID, not `{entry}`.")
        columns.setdefault(role, []).append(name)
    return columns or None


columns_option = click.option(
    "--columns",
    metavar="WHAT=COLUMN,...",
    multiple=True,
    callback=_parse_columns,
    help="Which column of a spreadsheet holds what, such as id=ID,judge=Model; found by name unless given.",
)


class NumberRange(click.FloatRange):
    """A number in a range; `nan` and infinity are in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the argument.

        Raises:
            BadParameter: It is no number, or outside of the range.
        """
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{number} is no number.", param, ctx)
