"""`deemster help`: what commands share, said once by topic, or the help of a command."""

from __future__ import annotations

import click

from deemster.cli._command import Verb
from deemster.cli._packaged_files import packaged_files
from deemster.cli.init import AGENTS
from deemster.cli.main import GROUPS, app
from deemster.errors import did_you_mean, visible

TOPICS = {
    "runs": (
        "How a run is named.",
        """
        Wherever a command takes RUN, you may write:

          20261119T151209Z-a6f9da   its id, or the beginning of it
          before                    the name that `run --name before` gave it
          latest                    the latest run, of the suite where one is named
          latest/short              of an experiment, which a suite with variants makes: the run of one variant; the
                                    experiment is named by `latest`, its id, or the beginning of it
          previous                  in `compare`: the run before the other one
          baseline                  the run that `deemster baseline RUN` chose
          run.jsonl                 a run file, which `deemster export RUN --to run.jsonl` wrote
          report.json               a report, which `run --to report.json` wrote, where only numbers are needed

        `deemster show` lists the runs. They are kept in the nearest .deemster/runs.db; --store, or the variable
        DEEMSTER_STORE, names another SQLite file or postgresql://..., and `run --store none` keeps nothing. A run that
        is resumed with --allow-changed is marked as mixed in its report.
        """,
    ),
    "outputs": (
        "What was answered before: --outputs.",
        """
        `run --outputs` scores answers and calls no target. It takes

          answers.yml         a file of outputs by sample
          latest              a stored run, as `deemster help runs` names it
          dataset:NAME        all recordings of the traffic of a dataset

        A suite with a dataset judges the outputs of a stored run in a run of its own, with every flag of `run`, such as
        --budget, --resume and --sample N: for another judge, which `deemster compare RUN latest` holds against the old
        one. Otherwise, and for recordings, --metric or the metrics of the suite add scores to that run, or replace
        those of the same name; after an interruption the same command goes on.
        """,
    ),
    "samples": (
        "Which samples: --only.",
        """
        --only EXPR may be repeated. Several of one kind are alternatives; kinds, and conditions on metadata, must all
        hold.

          tag:policy          samples with this tag
          id:q7, id:q*        this id, or ids that match
          lang=de             a value of the metadata; meta.failed=yes for a key that is called as a kind is
          input.lang=de       a value of the input
          failed              what did not pass, or was unscored, in the latest run of the suite; of `show`, in the
                              run that is shown
          failed:RUN          the same of another run
          answered            what has a saved output

        --sample N draws N of them at random, --limit N takes the first N. A run of a part says so, and cannot become
        the baseline.
        """,
    ),
    "files": (
        "Where to: --to, and what the name of a file says.",
        """
        --to FILE may be repeated; the name decides what is written. Each command lists what it can write.

          x.json              everything, for programs; `-` alone prints it, and nothing else is printed
          x.md, x.html        a report to read; the page loads nothing from elsewhere
          x.csv               a line for each score
          junit.xml           tests for a build server
          pr-comment.md       a comment for a pull request
          brief.md            what failed, for a person or an assistant who must fix it
          methods.md          the methods paragraph of a paper: what was computed, by which rule, with references
          github              the summary of a step of a GitHub job
          md:-, csv:FILE      FORMAT:FILE, where the name does not say it; `-` is standard output
        """,
    ),
    "privacy": (
        "What a file tells: --without-text.",
        """
        Files hold the texts of samples and outputs, and the command says so. With --without-text a report has no input,
        output, expected text, reason or value of metadata, no name of a run or target, and no hash from which a short
        text could be guessed. Ids, tags, scores, counts, intervals and causes stay, and the names of suite, dataset,
        metrics and cohorts. Such a file cannot be compared with another one, and says so. A run file, and the store,
        hold every text.
        """,
    ),
    "money": (
        "Models, and what costs money.",
        """
        Only metrics that are judges, judges of rubrics, and a target that is a model ask models: `run`, `attack`,
        `compare --confirm`, `grade`, `rubric`, `audit`, and `agreement CASES`. `check` sends each model one small
        request, and says what a run would cost. Everything else asks none.

          --budget 2usd       stops before models cost more; also 50000tokens
          --cache FILE|none   answers are kept in .deemster/answers.jsonl and cost nothing the second time
          --offline           sends nothing: recordings, cache and the models of the installation only
          --resume            goes on with a run that stopped; what was answered is not paid again
        """,
    ),
    "exit-codes": (
        "What the exit code says.",
        """
          0   passed, or nothing was to be decided
          1   the gate failed, a bound was missed, or damage was found
          2   bad input: usage, a file, a setting
          3   incomplete: scores are missing, the budget is spent, or it was interrupted
          4   inconclusive, where the gate decides in three ways

        Results go to standard output, everything else to standard error.
        """,
    ),
    "ci": (
        "A line for a build.",
        """
          deemster check suite.yml
          deemster run suite.yml --quiet --to junit.xml --to report.html

        The second one ends with an error exactly where the gate of the suite fails, or scores are missing. On the main
        branch add --as-baseline, so that later runs are held against it; on a pull request add --to pr-comment.md.
        `deemster init` writes a workflow for GitHub.
        """,
    ),
    "assistants": (
        "How a coding assistant works with a suite; what `init` writes as AGENTS.md.",
        "\n" + packaged_files("templates")[AGENTS].decode(),
    ),
}


@click.command(
    "help",
    cls=Verb,
    examples=["deemster help", "deemster help samples", "deemster help money"],
    see_also=["metrics"],
)
@click.argument("topic", required=False)
@click.pass_context
def command(context: click.Context, /, *, topic: str | None) -> None:
    """Say what commands share: names of runs, samples, files, money.

    TOPIC is one of these, or a command. Without it the topics are listed.
    """
    if topic is None:
        rows = [f"  {name.ljust(10)}  {line}" for name, (line, _) in TOPICS.items()]
        click.echo(
            "\n".join(["Topics:", *rows, "", "`deemster help TOPIC` shows one, `deemster COMMAND --help` a command."])
        )
        return
    if topic in TOPICS:
        line, text = TOPICS[topic]
        click.echo("\n".join([line, *(row.removeprefix(" " * 8) for row in text.rstrip().split("\n"))]))
        return
    commands = [name for group in GROUPS.values() for name in group]
    named = app.get_command(context, topic)
    if named is None:
        raise click.UsageError(f"`{visible(topic, limit=40)}` is no topic. {did_you_mean(topic, [*TOPICS, *commands])}")
    click.echo(named.get_help(named.make_context(topic, [], parent=context.parent, resilient_parsing=True)))
