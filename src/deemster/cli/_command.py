"""How a command looks: its flags in groups, then examples and neighbours; a group shows the usage of its verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import click

from deemster.cli._retired import answer_verb
from deemster.errors import did_you_mean, visible

_MONEY = "Models, which may cost money"
# A flag that is longer has its meaning on the next line.
_WIDEST_FLAG = 26
Headings: TypeAlias = Mapping[str, Sequence[str]]
# Where flags that several commands share stand in their help; what is in no list comes under "Options".
HEADINGS: Headings = {
    "Which samples": ("--only",),
    _MONEY: ("--models", "--cache", "--budget", "--offline"),
    "Written and shown": ("--to", "--without-text", "--full", "--quiet", "--verbose"),
    "Kept": ("--store", "--resume", "--allow-changed", "--name", "--as-baseline"),
}


class Verb(click.Command):
    """A command whose help has its flags in groups and ends with examples and its neighbours.

    Args:
        headings: Flags by the heading that they stand under, where `HEADINGS` does not say so.
        examples: Lines that a user could type.
        see_also: Commands that one needs before or after.
    """

    def __init__(
        self,
        *args: Any,
        headings: Headings | None = None,
        examples: Sequence[str] = (),
        see_also: Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.own_headings = tuple(headings or ())
        self.headings = {
            flag: heading for part in (HEADINGS, headings or {}) for heading, flags in part.items() for flag in flags
        }
        self.examples = tuple(examples)
        self.see_also = tuple(see_also)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; a flag whose value may be left out never takes the word after it."""
        optional = {name: value for option in self.params for name, value in _values_left_out(option).items()}
        written = [f"{word}={optional[word]}" if word in optional else word for word in args]
        try:
            return super().parse_args(ctx, written)
        except click.UsageError as error:
            values = [(word, after) for word, after in pairwise(args) if word in optional and not after.startswith("-")]
            if not values or isinstance(error, click.NoSuchOption):
                raise
            flag, value = values[0]
            shown = visible(value, limit=80)
            message = f"{error.message} If `{shown}` is for `{flag}`, write `{flag}={shown}`."
            raise click.UsageError(message, ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the flags, those of a heading together; what every command has, `--help`, is not said again."""
        records: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option) and "--help" not in parameter.opts:
                heading = self.headings.get(parameter.opts[0], "Options")
                records.setdefault(heading, []).append(record)

        if not records:
            return
        formatter.write_paragraph()
        width = min(_WIDEST_FLAG, max(len(flag) for rows in records.values() for flag, _ in rows))
        order = list(dict.fromkeys([*self.own_headings, "Options", *HEADINGS]))
        for heading in sorted(records, key=order.index):
            rows = records[heading]
            formatter.write_heading(heading)
            with formatter.indentation():
                formatter.write_dl([(flag.ljust(width), meaning) for flag, meaning in rows], col_max=_WIDEST_FLAG)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """End with examples and neighbours."""
        write_examples(formatter, self.examples, self.see_also)
        super().format_epilog(ctx, formatter)


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str], see_also: Sequence[str]) -> None:
    """Write lines that a user could type, each on one line, and the commands that are near."""
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
    if see_also:
        formatter.write_text(f"See also: deemster {', '.join(see_also)}")


def _values_left_out(option: click.Parameter) -> dict[str, str]:
    """By the names of a flag whose value may be left out, the value that it has then."""
    if not isinstance(option, click.Option) or option.is_flag or not isinstance(option.flag_value, str):
        return {}
    return dict.fromkeys(option.opts, option.flag_value)


class VerbGroup(click.Group):
    """A command with verbs, whose help shows how each verb is used.

    Args:
        examples: Lines that a user could type.
        see_also: Commands that one needs before or after.
    """

    def __init__(self, *args: Any, examples: Sequence[str] = (), see_also: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.see_also = tuple(see_also)
        self.command_class = Verb

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs with their arguments."""
        rows = []
        for name, verb in self.commands.items():
            arguments = [
                parameter.make_metavar(ctx) for parameter in verb.params if isinstance(parameter, click.Argument)
            ]
            rows.append((" ".join([name, *arguments]), verb.short_help or ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """End with examples and neighbours."""
        write_examples(formatter, self.examples, self.see_also)
        super().format_epilog(ctx, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say what to type in its place."""
        word = args[0]
        if word not in self.commands and not word.startswith("-"):
            advice = answer_verb(f"{self.name} {word}")
            shown = visible(word, limit=80)
            ctx.fail(advice or f"`deemster {self.name}` has no verb `{shown}`. {did_you_mean(word, self.commands)}")
        return super().resolve_command(ctx, args)
