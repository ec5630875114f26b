"""`deemster demo`: two versions of an application are run and compared, and one of them is worse."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deemster.cli._command import Verb
from deemster.cli._console import print_sections
from deemster.cli._packaged_files import packaged_files, write_files
from deemster.cli.store_options import STORE
from deemster.errors import ConfigurationError, Issue

if TYPE_CHECKING:
    from deemster.comparison import Comparison
    from deemster.text.text_sections import TextSection

PAGE = "comparison.html"
# So many of the samples that broke are shown on the terminal; the page has more.
_SHOWN = 2
_WIDTH = 80
_STORY = """\
A shop's assistant answered 40 questions of customers with a long prompt
(before.yml), then with a short one that costs less (after.yml). The suite looks
for the fact of the handbook in each answer. Is the short prompt as good?
"""


@click.command(
    "demo",
    cls=Verb,
    examples=["deemster demo", "deemster demo /tmp/demo"],
    see_also=["init", "run", "compare"],
)
@click.argument("directory", default="deemster-demo", type=click.Path(path_type=Path))
def command(*, directory: Path) -> None:
    """See two versions compared, one of which is worse.

    It needs no key and no network. DIRECTORY (default: deemster-demo) gets a suite, a dataset, the answers of both
    versions, the two runs, and a page with their comparison, which is opened where standard output is a terminal.
    """
    _write_demo(directory)
    click.echo(_STORY)

    with contextlib.chdir(directory):
        _run_version("before")
        _run_version("after")
        comparison = _compare_versions()

    _show_page(directory / PAGE)
    _name_next_steps(directory, comparison)


def _write_demo(directory: Path) -> None:
    """Write the files of the demo.

    Raises:
        ConfigurationError: They cannot be written, or there is such a file that is not the demo's.
    """
    contents = {directory / name: data for name, data in packaged_files("demo_data").items()}
    for path, data in contents.items():
        if path.exists() and (not path.is_file() or path.read_bytes() != data):
            message = "This is not as the demo has it; name another folder: `deemster demo DIRECTORY`."
            raise ConfigurationError(Issue(message, str(path)))
    write_files(contents)


def _run_version(version: str) -> None:
    """Run the suite as the user would, on the answers of a version."""
    from deemster.cli.run import command as run

    words = ["suite.yml", "--outputs", f"{version}.yml", "--name", version, "--quiet"]
    click.echo(f"$ deemster run {' '.join(words)}")
    with contextlib.redirect_stderr(io.StringIO()) as verdict:
        # Here, and not in the nearest store above.
        run.main([*words, "--store", STORE], standalone_mode=False, parent=click.get_current_context().parent)
    for line in verdict.getvalue().splitlines():
        click.echo(textwrap.fill(line, _WIDTH, subsequent_indent="    "))


def _compare_versions() -> Comparison:
    """Compare the two runs, write the page, and print what a reader looks for first."""
    from deemster.comparison.compare_runs import compare

    click.echo(f"$ deemster compare before after --to {PAGE}")
    comparison = compare("before", "after", store=STORE)
    comparison.save(PAGE)
    print_sections(_first_sections(comparison))
    return comparison


def _first_sections(comparison: Comparison) -> list[TextSection]:
    """The verdict, and the first samples that broke."""
    from deemster.text.text_sections import with_keys

    headline, broken = with_keys(comparison.sections(full=False), ("headline", "newly_failing"))
    rest = comparison.statuses["newly_failing"] - _SHOWN
    return [
        headline._replace(lines=headline.lines[:1]),
        broken._replace(details=broken.details[:_SHOWN], after=[(f"... and {rest} more.",)]),
    ]


def _show_page(page: Path) -> None:
    """Open a page where somebody sits before a screen, and say where it is."""
    has_screen = sys.platform != "linux" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    opens = sys.stdout.isatty() and has_screen
    click.echo(f"\nThe whole comparison{', opened in your browser' if opens else ''}: {page}")
    if opens:
        click.launch(str(page.resolve()))


def _inactive_environment() -> Path | None:
    """The virtual environment in the current folder, such as `make demo` makes; None where it needs no activation."""
    environment = Path(sys.prefix)
    is_here = environment.is_relative_to(Path.cwd()) and (environment / "bin" / "activate").is_file()
    is_active = os.environ.get("VIRTUAL_ENV") == sys.prefix
    return environment.relative_to(Path.cwd()) if is_here and not is_active else None


def _name_next_steps(directory: Path, comparison: Comparison) -> None:
    """Say what to type next."""
    broken = next(example.id for example in comparison.examples if example.status == "newly_failing")
    environment = _inactive_environment()
    steps = {} if environment is None else {f"source {environment / 'bin/activate'}": "once, for the command deemster"}
    steps |= {
        f"cd {directory}": "where suite, dataset, answers and runs are",
        f"deemster show after {broken}": "one answer, whole",
        "deemster show after --failed": "what failed, for you or an assistant",
        "deemster init ~/my-suite": "a suite of your own",
    }
    width = max(map(len, steps))
    click.echo("\nNext:")
    for line, meaning in steps.items():
        click.echo(f"  {line:{width}}   {meaning}")
