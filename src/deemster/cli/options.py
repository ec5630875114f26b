"""Flags that several commands share: store, resume, report formats, models."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar

import click
from click.core import ParameterSource

from deemster.cli._console import note
from deemster.errors import ConfigurationError, Issue, ReportError
from deemster.formats import read_document
from deemster.formats.json_values import kind_of
from deemster.models import read_models
from deemster.records import Metric
from deemster.report import LEVELS, PUBLISH_SAFE, Destination, Report, redact_report, write_report
from deemster.runs import metric_catalog as catalog
from deemster.runs.import_user_code import import_object
from deemster.runs.model_access import ModelAccess, budget_issues
from deemster.runs.run_lifecycle import RunStorage

if TYPE_CHECKING:
    from deemster.store import Store

_F = TypeVar("_F", bound=Callable[..., Any])
PLACE = ".deemster/runs.db"
VARIABLE = "DEEMSTER_STORE"


def store_option(command: _F) -> _F:
    """Add `--store`; the command receives the place as the string ``store`` and opens it with `opened`."""
    option = click.option(
        "--store",
        metavar="PATH|URL",
        envvar=VARIABLE,
        default=PLACE,
        show_default=True,
        show_envvar=True,
        callback=_of_the_group,
        help="Where runs are kept: an SQLite file, or postgresql://...",
    )
    return option(command)


def opened(store: str, *, durable: bool = False, create: bool = False) -> Store:
    """The store at a place, to be used as a context manager.

    Args:
        store: What `store_option` gave.
        durable: Commit every execution before going on.
        create: Make one where there is none.

    Raises:
        StoreError: It cannot be opened, or there is none.
    """
    from deemster.store import open_store  # noqa: PLC0415 - loads a database, which a usage error does not need

    return open_store(store, durable=durable, create=create)


def _of_the_group(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """The place given before a subcommand, where none is given after it."""
    parent = context.parent
    name = parameter.name or ""
    told = ParameterSource.COMMANDLINE
    if parent is None or context.get_parameter_source(name) is told or parent.get_parameter_source(name) is not told:
        return value
    return str(parent.params[name])


LAST = ""


class Kept(NamedTuple):
    """Where a run is kept, and which one is gone on with."""

    store: str
    is_off: bool
    durable: bool
    resume: str | bool | None
    allow_changed: bool

    def check(self) -> None:
        """Refuse flags that do not go together.

        Raises:
            ConfigurationError: They do not.
        """
        if self.is_off and self.resume:
            raise ConfigurationError("`--resume` goes on with a stored run, and `--no-store` stores none.")
        if self.allow_changed and not self.resume:
            raise ConfigurationError("`--allow-changed` is for `--resume`.")

    def hint(self, storage: RunStorage | None) -> str:
        """What a command that is to find the run again has to say of the store; nothing where it finds it by itself."""
        return "" if storage is None or self.store == PLACE else f" --store {storage.store.where}"

    @contextmanager
    def opened(self) -> Iterator[RunStorage | None]:
        """How the run is stored, with the store open; None where it is not stored.

        Raises:
            StoreError: The store cannot be opened.
        """
        if self.is_off:
            yield None
            return
        with opened(self.store, durable=self.durable, create=True) as store:
            yield RunStorage(store, self.resume, self.allow_changed, tell=note)


def keeping_options(command: _F) -> _F:
    """Add the flags; the command receives them as one ``kept``."""

    @functools.wraps(command)
    def collected(**options: Any) -> Any:
        resume = options.pop("resume")
        kept = Kept(
            options.pop("store"),
            options.pop("no_store"),
            options.pop("durable"),
            True if resume == LAST else resume,
            options.pop("allow_changed"),
        )
        return command(kept=kept, **options)

    for option in reversed(_options()):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def _run_name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The run to go on with; `--resume` takes the word that follows it, which may have been meant as the file."""
    if value and Path(value).is_file():
        raise click.BadParameter(f"`{value}` is a file, not a run: write `--resume` after it.")
    return value


def _options() -> list[Callable[[Any], Any]]:
    return [
        store_option,
        click.option("--no-store", is_flag=True, help="Store nothing: the run ends with its report."),
        click.option("--durable", is_flag=True, help="Commit every sample by itself: slower, and no kill loses one."),
        click.option(
            "--resume",
            metavar="[RUN]",
            is_flag=False,
            flag_value=LAST,
            callback=_run_name,
            help="Go on with a stored run, by default the last unfinished one; write it after the file.",
        ),
        click.option(
            "--allow-changed", is_flag=True, help="Resume although something changed; the report is marked as mixed."
        ),
    ]


_FORMATS = {
    "json": "canonical JSON",
    "markdown": "Markdown",
    "csv": "CSV, one line per mark",
    "html": "one HTML page that loads nothing",
    "junit": "JUnit XML",
    "github": "the summary of a GitHub job",
}


class Rendering(NamedTuple):
    """Where reports go and what they leave out."""

    destinations: tuple[Destination, ...]
    level: str
    include_input: bool

    def check(self) -> None:
        """Make sure, before anything runs, that every report can be written.

        Raises:
            ReportError: One of them cannot, or two want standard output.
        """
        if sum(destination.is_stdout for destination in self.destinations) > 1:
            raise ReportError("Only one report can go to standard output.")
        taken: dict[Path, str] = {}
        for destination in self.destinations:
            destination.check()
            other = taken.setdefault(Path(destination.path).resolve(), destination.format)
            if other != destination.format:
                message = f"Two reports, {other} and {destination.format}, want this file."
                raise ReportError(Issue(message, destination.path))

    @property
    def takes_stdout(self) -> bool:
        """Whether standard output belongs to a report."""
        return any(destination.is_stdout for destination in self.destinations)

    def view(
        self,
        report: Report,
        metrics: tuple[Metric, ...] = (),
        *,
        quotes: Mapping[str, frozenset[str] | None] | None = None,
    ) -> Report:
        """The report as the flags want it shown.

        Args:
            report: The report.
            metrics: The run's metrics, where they are at hand; otherwise the report says which they were.
            quotes: By a metric's name, the details that may repeat text, where that was kept with the run.
        """
        known = {metric.name: catalog.quotes(metric) for metric in metrics} | dict(quotes or {})
        for name, figures in report.metrics.items():
            if name not in known:
                known[name] = _quotes_of_spec(figures.spec)
        return redact_report(report, level=self.level, include_input=self.include_input, quotes=known.__getitem__)

    def write(self, view: Report) -> None:
        """Write every report that was asked for.

        Raises:
            ReportError: One of them cannot be written; the others are.
        """
        issues: list[Issue] = []
        for destination in self.destinations:
            try:
                write_report(view, destination)
            except ReportError as error:
                issues.extend(error.issues)
        if issues:
            raise ReportError(issues)


def _quotes_of_spec(spec: str) -> frozenset[str] | None:
    """What a metric of the catalog says it quotes; of user code nothing is known, and none of it is loaded."""
    try:
        catalog.describe(spec)
        return catalog.quotes(catalog.parse_metric(spec))
    except ConfigurationError:
        return None


def rendering_options(command: _F) -> _F:
    """Add the flags; the command receives them as one ``rendering``."""

    @functools.wraps(command)
    def collected(**options: Any) -> Any:
        flavour = "csv-raw" if options.pop("csv_raw") else "csv"
        given = {name: options.pop(name) for name in _FORMATS}
        destinations = tuple(
            Destination(flavour if name == "csv" else name, path) for name, path in given.items() if path is not None
        )
        level = PUBLISH_SAFE if options.pop("publish_safe") else options["redact"]
        del options["redact"]
        rendering = Rendering(destinations, level, include_input="input" in options.pop("include"))
        return command(rendering=rendering, **options)

    for option in reversed(_options_rendering()):
        collected = option(collected)
    return collected  # type: ignore[return-value]


def _options_rendering() -> list[Callable[[Any], Any]]:
    formats = [
        click.option(f"--{name}", metavar="PATH", help=f"Write the report as {what}; `-` is standard output.")
        for name, what in _FORMATS.items()
    ]
    return [
        *formats,
        click.option("--csv-raw", is_flag=True, help="Leave CSV cells that look like formulas as they are."),
        click.option(
            "--redact",
            type=click.Choice([level for level in LEVELS if level != PUBLISH_SAFE]),
            default=LEVELS[0],
            metavar="LEVEL",
            help="Leave out `outputs`, `expected` or `all` of what samples and outputs say.",
        ),
        click.option("--publish-safe", is_flag=True, help="Leave out everything that could repeat private text."),
        click.option("--include", type=click.Choice(["input"]), multiple=True, help="Show the samples' input too."),
    ]


CACHE = ".deemster/answers.jsonl"
_P = ParamSpec("_P")
_T = TypeVar("_T")
LIMITING = (
    click.option("--budget-usd", type=float, metavar="USD", help="Stop before the models cost more."),
    click.option("--budget-tokens", type=int, metavar="N", help="Stop before the models use more tokens."),
    click.option(
        "--cache",
        metavar="FILE",
        default=CACHE,
        show_default=True,
        help="Where the models' answers are kept and looked up first.",
    ),
    click.option("--no-cache", is_flag=True, help="Ask the models anew, and keep nothing."),
    click.option(
        "--offline", is_flag=True, help="Ask nothing over the network: recordings, cache and embedded models only."
    ),
)
_OPTIONS = (
    click.option("--models", metavar="FILE", help="A file with a `models` section, such as a suite."),
    *LIMITING,
)


class Asked(NamedTuple):
    """What the flags say of how models may be asked.

    Attributes:
        models: The file that names them; None where none was given.
        cache: The file of remembered answers; None where nothing is kept.
        budget_usd: US dollars that must not be passed.
        budget_tokens: Tokens that must not be passed.
        offline: Whether nothing may be asked over the network.
    """

    models: str | None
    cache: Path | None
    budget_usd: float | None
    budget_tokens: int | None
    offline: bool

    def asking(self, *, calls: bool = True) -> ModelAccess:
        """The same with the models read from their file.

        Args:
            calls: Whether they are going to be asked; otherwise keys and variables need not be set.

        Raises:
            ConfigurationError: There is no file, something in it cannot be used, or a budget is none.
        """
        issues = budget_issues(self.budget_usd, self.budget_tokens)
        if self.models is None:
            issues.append(Issue("A judge needs a model: name a file with a `models` section by `--models FILE`."))
        if issues or self.models is None:
            raise ConfigurationError(issues)
        document = read_document(self.models, error=ConfigurationError)
        if not isinstance(document.value, dict) or "models" not in document.value:
            found = "no `models`" if isinstance(document.value, dict) else kind_of(document.value)
            message = f"A file of models is a map with a section `models`, as a suite has it; here is {found}."
            raise ConfigurationError(Issue(message, document.where()))
        folder = Path(self.models).parent
        roles = read_models(
            document.value["models"],
            place=document.where,
            environ=os.environ,
            folder=folder,
            load=lambda path: import_object(path, called="The client", search=folder),
            calls=calls and not self.offline,
        )
        money = None if self.budget_usd is None else Decimal(str(self.budget_usd))
        return ModelAccess(roles, self.cache, money, self.budget_tokens, self.offline)


def asking_options(command: Callable[_P, _T]) -> Callable[..., _T]:
    """Give a command the flags of asking models; it gets them as one `asked`."""

    @functools.wraps(command)
    def called(
        *,
        models: str | None,
        budget_usd: float | None,
        budget_tokens: int | None,
        cache: str,
        no_cache: bool,
        offline: bool,
        **rest: Any,
    ) -> _T:
        asked = Asked(models, None if no_cache else Path(cache), budget_usd, budget_tokens, offline)
        return command(asked=asked, **rest)  # type: ignore[call-arg, arg-type]

    for option in reversed(_OPTIONS):
        option(called)
    return called
