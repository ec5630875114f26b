"""Flags that several commands share: the store, resuming, reports, models, files, dates and ages.

`group_flags` adds flags to a command and hands them over as one value, such as `ReportOptions`. Heavy rooms are loaded
where a command uses them, so that `--help` answers at once.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from deemster.cli._console import note, print_sections
from deemster.cli.main import TO_CONTINUE
from deemster.errors import ConfigurationError, DeemsterError, Issue, ReportError, list_names, visible

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.datasets.only_expression import Only
    from deemster.engine.kept_prompts import WhichPrompts
    from deemster.engine.model_access import ModelAccess, ModelCalls
    from deemster.report import Destination, Report
    from deemster.runs.run_storage import StoredOrNot
    from deemster.store import Store
    from deemster.text.rendered import Rendered

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]
# What click read, by parameter.
Flags = dict[str, Any]

STORE = ".deemster/runs.db"
STORE_VARIABLE = "DEEMSTER_STORE"
ANSWER_CACHE = ".deemster/answers.jsonl"
# What can be written of a result, of a report, and of a comparison.
RESULT_FORMATS = ("json", "md", "html")
REPORT_FORMATS = ("json", "md", "html", "csv", "junit", "pr-comment", "brief", "github")
# So many characters of a brief are read by an assistant in one go.
BRIEF_CHARS = 12_000
COMPARISON_FORMATS = ("json", "md", "html", "junit", "pr-comment", "github")
LAST_RUN = ""
# Says that there is no cache, or no store.
NONE = "none"
_AGE = re.compile(r"([0-9]{1,6})([mhdw])", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?(?=usd)|[0-9]+(?=tokens))(usd|tokens)", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


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
    help="Only samples such as tag:x, id:q*, lang=de, failed (in the latest run), failed:RUN or answered; "
    "repeatable, kinds must all hold. `deemster help samples` says more.",
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


def read_settings(shape: Any, overrides: Sequence[str], **settings: Any) -> dict[str, Any]:
    """What `--set` says, beside other settings.

    Args:
        shape: The struct that declares them.
        overrides: What `--set` says; it wins.
        settings: The others.

    Raises:
        ConfigurationError: One of them is no setting, or not as declared; all issues are listed.
    """
    from deemster.formats.schema_validation import shape_issues

    override_settings(settings, overrides)
    if issues := shape_issues(settings, shape):
        raise ConfigurationError(issues)
    return settings


quiet_option = click.option("--quiet", is_flag=True, help="Show no progress and no result on the terminal.")
dry_run_option = click.option(
    "--dry-run", is_flag=True, help="Count the requests to models and estimate their cost; send none."
)


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


def destination_option(formats: Sequence[str], default: str | None = None) -> Decorator:
    """The flag `--to FILE`, repeatable, of a command that writes these formats."""
    from deemster.text.destination import list_endings

    stdout = "; `-` is JSON on standard output" if "json" in formats else ""
    return click.option(
        "--to",
        "destinations",
        metavar="FILE",
        multiple=True,
        default=None if default is None else (default,),
        show_default=default or False,
        help=f"Write to FILE, by its name: {', '.join(list_endings(formats))}{stdout}. Repeatable.",
    )


def read_destinations(values: Sequence[str], formats: Sequence[str]) -> tuple[Destination, ...]:
    """Where `--to` says that something goes.

    Raises:
        ReportError: A value says no format, cannot be written, or two are for standard output or one file.
    """
    from deemster.text.destination import read_destination

    destinations = tuple(read_destination(value, formats) for value in values)
    if sum(destination.is_stdout for destination in destinations) > 1:
        raise ReportError("Only one report can go to standard output.")
    taken: dict[Path, str] = {}
    for destination in destinations:
        destination.check()
        other = taken.setdefault(Path(destination.path).resolve(), destination.format)
        if other != destination.format:
            message = f"Two reports, {other} and {destination.format}, are for this file."
            raise ReportError(Issue(message, destination.path))
    return destinations


def result_options(*formats: str, default: str | None = None) -> Callable[[Command], Command]:
    """Add `--to` to a command that writes these formats; it receives them as one ``reports``."""
    return lambda command: group_flags(
        command, "reports", lambda flags: take_destinations(flags, formats), (destination_option(formats, default),)
    )


def take_destinations(flags: Flags, formats: Sequence[str]) -> ReportOptions:
    """Take `--to` out of all flags.

    Raises:
        ReportError: A value says no format, cannot be written, or two are for standard output or one file.
    """
    return ReportOptions(read_destinations(flags.pop("destinations"), formats))


def write_texts(reports: ReportOptions, texts: Mapping[str, Callable[[], str]]) -> None:
    """Write a result to every destination.

    Args:
        reports: The destinations.
        texts: By the name of a format, what makes the text.

    Raises:
        ReportError: It cannot be written to some of them; it is to the others.
    """
    from deemster.text.destination import write_pieces

    reports.write_each(lambda destination: write_pieces((texts[destination.format]().encode(),), destination))


def is_run_name(outputs: str) -> bool:
    """Whether outputs are those of a run, stored or in a run file, and not those of a file of outputs."""
    from deemster.formats.read_file import EXTENSIONS
    from deemster.store.open_runs import is_run_file

    path = Path(outputs)
    if path.is_file():
        return is_run_file(path)
    return path.suffix.lower() not in EXTENSIONS and len(path.parts) == 1


def store_option(command: Command) -> Command:
    """Add `--store`; the command receives the place as the string ``store`` and opens it with `open_run_store`.

    Without it, the store is the nearest one above the suite or the dataset that the command names, else above the
    current folder.
    """
    return add_options(command, [_store_flag("Where runs are stored: an SQLite file, or postgresql://...")])


class NumberRange(click.FloatRange):
    """A number in a range; `nan` and infinity are in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert the argument.

        Raises:
            BadParameter: It is no number, or outside of the range.
        """
        number = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{number} is no number.", param, ctx)


confidence_option = click.option(
    "--confidence",
    type=NumberRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    metavar="LEVEL",
    help="The level of intervals and one-sided bounds.",
)


def _store_flag(help_text: str) -> Decorator:
    return click.option(
        "--store",
        metavar="FILE|URL",
        envvar=STORE_VARIABLE,
        show_default="the nearest .deemster/runs.db",
        show_envvar=True,
        callback=_choose_store,
        help=help_text,
    )


def open_run_store(store: str, *, durable: bool = False, create: bool = False) -> Store:
    """The store at a place, to be used as a context manager.

    Args:
        store: What `store_option` gave.
        durable: Commit every execution before going on.
        create: Make one where there is none.

    Raises:
        ConfigurationError: It is `none`.
        StoreError: It cannot be opened, or there is none.
    """
    from deemster.store import open_store

    if store == NONE:
        raise ConfigurationError("`--store none` is for a run that is not kept; this reads or writes a store.")
    return open_store(store, durable=durable, create=create)


def is_report_file(run: str) -> bool:
    """Whether a name is that of a report's file, not of a stored run or a run file."""
    from deemster.store.open_runs import is_run_file

    return not is_run_file(run) and (Path(run).is_file() or Path(run).suffix == ".json")


@contextmanager
def open_run(store: str, run: str) -> Iterator[tuple[Store, str]]:
    """The store that holds a run, and the run's name there; a run file is taken into a temporary store.

    Args:
        store: What `store_option` gave.
        run: The run, as the user names it.

    Raises:
        StoreError: The store cannot be opened, or the file is no run file.
    """
    from deemster.store.open_runs import open_runs

    with open_runs(store, [run]) as (opened, (name,)):
        yield opened, name


def _choose_store(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    """The place given before a subcommand, where none is given after it; the nearest store where none is given."""
    parent, name = context.parent, parameter.name or ""
    typed = ParameterSource.COMMANDLINE
    if parent is not None and parent.get_parameter_source(name) is typed:
        value = value if context.get_parameter_source(name) is typed else str(parent.params[name])
    if value is not None:
        return value
    # Click has read what is given, such as the suite, before it comes to what is not.
    files = (Path(str(context.params[key])) for key in ("suite", "dataset") if context.params.get(key))
    return find_store(next((file.parent for file in files if file.is_file()), None))


def find_store(folder: str | Path | None = None) -> str:
    """The file of the nearest store: `.deemster/runs.db` in a folder or above it, as far as its repository reaches.

    A store that belongs to another user is not taken.

    Args:
        folder: Where the search begins. Where it finds none, it begins again at the current folder.

    Returns:
        The path; that of a store to be made in the current folder where there is none.
    """
    here = Path.cwd()
    for start in ([] if folder is None else [Path(folder).resolve()]) + [here]:
        for place in (start, *start.parents):
            if _is_own_file(place / STORE):
                return STORE if place == here else os.path.relpath(place / STORE)
            if (place / ".git").exists():
                break
    return STORE


def _is_own_file(path: Path) -> bool:
    try:
        # Windows has no user numbers.
        return path.is_file() and (not hasattr(os, "getuid") or path.stat().st_uid == os.getuid())
    except OSError:
        return False


class StorageOptions(NamedTuple):
    """Where a run is stored, which one is resumed, and whether every sample is committed by itself."""

    store: str
    resume: str | bool | None
    allow_changed: bool
    durable: bool = False

    @property
    def stores_nothing(self) -> bool:
        """Whether the run ends with its report."""
        return self.store == NONE

    def check(self) -> None:
        """Refuse flags that contradict each other.

        Raises:
            ConfigurationError: They do.
        """
        if self.stores_nothing and self.resume:
            raise ConfigurationError("`--resume` continues a stored run, and `--store none` stores none.")
        if self.allow_changed and not self.resume:
            raise ConfigurationError("`--allow-changed` is for `--resume`.")

    def store_flag(self, storage: StoredOrNot) -> str:
        """The `--store` that another command needs to find the run; empty where it finds the run without."""
        return "" if storage.store is None or self.store == find_store() else f" --store {storage.store.where}"

    @contextmanager
    def open(self, command: str, *, keep_prompts: WhichPrompts = "failed") -> Iterator[StoredOrNot]:
        """Where a run is stored. Its store is opened when it is needed first, and closed at the end.

        Args:
            command: The command, as the user repeats it to continue a run that an error ended.
            keep_prompts: Whose prompts are stored.
        """
        from deemster.runs.run_storage import NOT_STORED, RunStorage

        if self.stores_nothing:
            yield NOT_STORED
            return
        with ExitStack() as opened:

            def open_store() -> Store:
                return opened.enter_context(open_run_store(self.store, durable=self.durable, create=True))

            def note_begun(run: str) -> None:
                again = f"{command}{self.store_flag(storage)} --resume={run}"
                click.get_current_context().meta[TO_CONTINUE] = f"To continue: {again}"

            storage = RunStorage(
                open_store, self.resume, self.allow_changed, tell=note, begun=note_begun, keep_prompts=keep_prompts
            )
            yield storage


def storage_options(command: Command) -> Command:
    """Add the flags of storing and resuming; the command receives them as one ``storage``."""
    return group_flags(command, "storage", _take_storage, _STORAGE)


def _take_storage(flags: Flags) -> StorageOptions:
    storage: StorageOptions = take_flags(StorageOptions, flags)
    return storage._replace(resume=True) if storage.resume == LAST_RUN else storage


def refuse_stdout(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The file or folder that a flag names, of a command that writes nothing to standard output.

    Raises:
        BadParameter: It is `-`.
    """
    if value == "-":
        raise click.BadParameter("`-` is standard output, and this command writes a file: name it.")
    return value


_STORAGE: Sequence[Decorator] = (
    _store_flag("Where the run is stored: an SQLite file, postgresql://..., or `none` to keep nothing."),
    click.option(
        "--resume",
        metavar="[=RUN]",
        is_flag=False,
        flag_value=LAST_RUN,
        help="Go on with a stored run, by default the last unfinished one.",
    ),
    click.option(
        "--allow-changed", is_flag=True, help="Resume although something changed; the report is marked as mixed."
    ),
)


class ReportOptions(NamedTuple):
    """Where reports are written, and whether they leave texts out."""

    destinations: tuple[Destination, ...] = ()
    without_text: bool = False

    def with_junit(self, kind: str) -> ReportOptions:
        """The same, with a JUnit report in which samples fail too where the key `junit` of the suite says so."""
        if kind != "samples":
            return self
        written = (one._replace(format="junit-samples") if one.format == "junit" else one for one in self.destinations)
        return self._replace(destinations=tuple(written))

    @property
    def takes_stdout(self) -> bool:
        """Whether a report is written to standard output."""
        return any(destination.is_stdout for destination in self.destinations)

    def shown(self, report: Report, quotes: Mapping[str, frozenset[str] | None] | None = None) -> Report:
        """The report, without texts where they are left out.

        Args:
            report: The report.
            quotes: By a metric's name, the details that may repeat text; otherwise the report's specs say which may.
        """
        if not self.without_text:
            return report
        from deemster.comparison import report_without_text
        from deemster.judges.metric_catalog import quotes_of_spec

        known = dict(quotes or {})
        for name, figures in report.metrics.items():
            if name not in known:
                known[name] = quotes_of_spec(figures.spec)
        return report_without_text(report, quotes=known.__getitem__)

    def shown_comparison(self, comparison: Comparison, quotes: Callable[[str], frozenset[str] | None]) -> Comparison:
        """The comparison, without texts where they are left out.

        Args:
            comparison: The comparison.
            quotes: Says by a metric's name which of its details may repeat text; None for all.
        """
        from deemster.comparison.without_text import comparison_without_text

        return comparison_without_text(comparison, quotes=quotes) if self.without_text else comparison

    def write(self, report: Report, *, comparison: Comparison | None = None) -> None:
        """Write the report to every destination.

        Args:
            report: The report.
            comparison: The comparison with a baseline, for the comment and for the summary of a job.

        Raises:
            ReportError: It cannot be written to some of them; it is to the others.
        """
        from deemster.comparison.comparison_comment import comparison_comment
        from deemster.comparison.comparison_sections import comparison_summary
        from deemster.comparison.failure_brief import report_brief
        from deemster.report.github_summary import github_job_summary
        from deemster.report.pull_request_comment import pull_request_comment
        from deemster.text.destination import write_pieces

        def write_one(destination: Destination) -> None:
            if destination.format == "pr-comment":
                comment = pull_request_comment(report) if comparison is None else comparison_comment(comparison, report)
                write_pieces((comment.encode(),), destination)
            elif destination.format == "brief":
                write_pieces((report_brief(report, comparison, max_chars=BRIEF_CHARS).encode(),), destination)
            elif destination.format == "github" and comparison is not None:
                parts = github_job_summary(report), comparison_summary(comparison)
                write_pieces(("\n".join(parts).encode(),), destination)
            else:
                report.write(destination)

        self.write_each(write_one)

    def write_each(self, write: Callable[[Destination], None]) -> None:
        """Write something to every destination.

        Raises:
            ReportError: It cannot be written to some of them; it is to the others.
        """
        errors: list[ReportError] = []
        for destination in self.destinations:
            try:
                write(destination)
            except ReportError as error:
                errors.append(error)
        if errors:
            raise type(errors[0])([issue for error in errors for issue in error.issues])

    def note_texts(self) -> None:
        """Say which files hold texts of samples and outputs, and how they are left out."""
        files = [visible(destination.path) for destination in self.destinations if not destination.is_stdout]
        if files and not self.without_text:
            holds = "holds" if len(files) == 1 else "hold"
            note(f"{list_names(files)} {holds} texts of samples and outputs; `--without-text` leaves them out.")


def report_options(command: Command) -> Command:
    """Add the flags of reports; the command receives them as one ``reports``."""
    return text_file_options(*REPORT_FORMATS)(command)


def run_report_options(command: Command) -> Command:
    """Add the flags of the report of a run that ends with it; in a GitHub job, its summary is written too."""
    return text_file_options(*REPORT_FORMATS, step_summary=True)(command)


def comparison_options(command: Command) -> Command:
    """Add the flags of writing a comparison; in a GitHub job, its summary is written too."""
    return text_file_options(*COMPARISON_FORMATS, step_summary=True)(command)


def text_file_options(*formats: str, step_summary: bool = False) -> Callable[[Command], Command]:
    """Add `--to` and `--without-text` to a command whose files hold texts; it receives them as one ``reports``.

    Args:
        formats: What can be written.
        step_summary: Whether the summary of a GitHub job is written where a step of one runs.
    """

    def group(flags: Flags) -> ReportOptions:
        from deemster.text.destination import STEP_SUMMARY, Destination

        destinations = read_destinations(flags.pop("destinations"), formats)
        summary = os.environ.get(STEP_SUMMARY)
        is_summarised = any(destination.format == "github" for destination in destinations)
        if step_summary and not is_summarised and summary and Path(summary).is_file():
            destinations = (*destinations, Destination("github", summary))
        return ReportOptions(destinations, flags.pop("without_text"))

    return lambda command: group_flags(command, "reports", group, (destination_option(formats), _WITHOUT_TEXT))


def without_text_option(command: Command) -> Command:
    """Add `--without-text` to a command that writes no report file; it receives it as one ``reports``."""
    return group_flags(command, "reports", _take_privacy, (_WITHOUT_TEXT,))


def _take_privacy(flags: Flags) -> ReportOptions:
    return ReportOptions(without_text=flags.pop("without_text"))


_WITHOUT_TEXT = click.option(
    "--without-text",
    is_flag=True,
    help="Leave out every text, metadata value and hash; ids, tags, scores, counts and causes stay.",
)


class ModelOptions(NamedTuple):
    """How models may be called.

    Attributes:
        models: The file that names them; None where none was given.
        limits: Cache, budget and network.
    """

    models: str | None
    limits: ModelCalls

    def access(self, *, calls: bool = True) -> ModelAccess:
        """Access to the models of the file.

        Args:
            calls: Whether models are going to be called; otherwise keys and variables need not be set.

        Raises:
            ConfigurationError: There is no file, something in it cannot be used, or a budget is none.
        """
        from deemster.engine.model_access import load_model_access

        issues = self.limits.issues()
        if self.models is None:
            issues.append(Issue("A judge needs a model: name a file with a `models` section by `--models FILE`."))
        if issues or self.models is None:
            raise ConfigurationError(issues)
        return load_model_access(self.models, self.limits, calls=calls)


class _Budget(click.ParamType[Any]):
    """An amount with its unit, such as `2usd` or `50000tokens`, converted to the name and value of its limit."""

    name = "budget"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float | int]:
        """Convert the argument.

        Raises:
            BadParameter: It is no amount of dollars or tokens.
        """
        match = _AMOUNT.fullmatch(str(value))
        if match is None:
            shown = visible(str(value), limit=40)
            return self.fail(f"`{shown}` is no budget: give dollars or tokens, 2usd or 50000tokens.", param, ctx)
        amount, unit = match.groups()
        return ("budget_usd", float(amount)) if unit == "usd" else ("budget_tokens", int(amount))


budget_option = click.option(
    "--budget",
    "budgets",
    type=_Budget(),
    multiple=True,
    metavar="2usd|50000tokens",
    help="Stop before the models cost more, or use more tokens; repeatable.",
)
CACHE_OPTIONS: Sequence[Decorator] = (
    click.option(
        "--cache",
        metavar="FILE|none",
        default=ANSWER_CACHE,
        show_default=True,
        help="Where the models' answers are cached.",
    ),
    click.option(
        "--offline", is_flag=True, help="Send nothing over the network: recordings, cache and embedded models only."
    ),
)


def collect_limits(flags: Flags) -> ModelCalls:
    """Take the flags of cache, budget and network out of all flags; a command may lack that of the budget."""
    from deemster.engine.model_access import ModelCalls

    cache = flags.pop("cache")
    return ModelCalls(
        None if cache == NONE else Path(cache), offline=flags.pop("offline"), **dict(flags.pop("budgets", ()))
    )


def cache_options(command: Command) -> Command:
    """Add the flags of the answer cache and of working offline; the command receives them as one ``limits``."""
    return group_flags(command, "limits", collect_limits, CACHE_OPTIONS)


def model_options(command: Command) -> Command:
    """Add the flags of calling models; the command receives them as one ``models``."""
    models = click.option("--models", metavar="FILE", help="A file with a `models` section, such as a suite.")
    options = (models, budget_option, *CACHE_OPTIONS)
    return group_flags(
        command, "models", lambda flags: ModelOptions(flags.pop("models"), collect_limits(flags)), options
    )


class Moment(click.ParamType[Any]):
    """A date or time, converted to RFC 3339 text in UTC with milliseconds.

    Args:
        end: Whether a day means its end instead of its beginning.
    """

    name = "moment"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert the argument.

        Raises:
            BadParameter: It is no date, time or age.
        """
        try:
            return format_moment(_parse_moment(str(value), end=self._end))
        except (ValueError, OverflowError):
            shown = visible(str(value), limit=40)
            return self.fail(f"`{shown}` is no moment: give 2026-01-31, 2026-01-31T18:30, or an age: 30d.", param, ctx)


def format_moment(moment: datetime) -> str:
    """A moment as the store writes it.

    >>> format_moment(datetime(2026, 1, 31, 18, 30, 5, 250999, tzinfo=UTC))
    '2026-01-31T18:30:05.250Z'
    """
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def _parse_moment(text: str, *, end: bool) -> datetime:
    back = _parse_age(text)
    if back is not None:
        return back
    found = datetime.fromisoformat(text)
    found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    return found + timedelta(days=1) if end and _DAY.fullmatch(text) else found


def _parse_age(text: str) -> datetime | None:
    found = _AGE.fullmatch(text)
    if found is None:
        return None
    from deemster.models.clock import clock_from_environment

    try:
        now = clock_from_environment().now()
    except DeemsterError as error:
        raise click.UsageError(str(error)) from None
    return now - timedelta(**{_UNITS[found[2]]: int(found[1])})


def write_result(result: Rendered, reports: ReportOptions, *, quiet: bool = False) -> None:
    """Write a result to its files, and print it unless standard output is taken.

    Args:
        result: The result.
        reports: The files.
        quiet: Whether it is not printed.

    Raises:
        ReportError: A file cannot be written.
    """
    reports.write_each(result.write)
    if not reports.takes_stdout and not quiet:
        print_sections(result.sections())
