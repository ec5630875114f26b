"""What is gone from the command line, and what to type in its place."""

from __future__ import annotations

import click

# Sentences that several flags share.
_CASCADE = (
    "Grade with a few values of `--set cascade.unsure_below=0.8`, out of the cache, and see `deemster agreement`."
)
_MODELS_FILE = "Write `models: { judge: { base_url: URL, model: NAME } }` in a file: `--models FILE`."

# Flags that are gone, by their command; the first are those of every command.
_ADVICE = {
    "": {
        "--budget-tokens": "Write `--budget 50000tokens`.",
        "--budget-usd": "Write `--budget 2usd`.",
        "--csv": "Write `--to FILE.csv`, or `--to csv:FILE`.",
        "--csv-raw": "CSV guards cells that look like formulas. `--to FILE.json` has every text as it is.",
        "--github": "Write `--to github` in a GitHub job, else `--to github:FILE`.",
        "--html": "Write `--to FILE.html`, or `--to html:FILE`.",
        "--include": "Inputs are shown unless `--without-text` is given.",
        "--json": "Write `--to FILE.json`, or `--to json:FILE`; `--to -` prints JSON.",
        "--junit": "Write `--to junit.xml`, or `--to junit:FILE`.",
        "--junit-samples": "Write `junit: samples` in the suite.",
        "--markdown": "Write `--to FILE.md`, or `--to md:FILE`.",
        "--max-chars": "`deemster show RUN --failed` is as long as an assistant reads in one go.",
        "--max-unscored": "Write `gate: { max_unscored: 2% }` in the suite.",
        "--no-cache": "Write `--cache none`.",
        "--no-store": "Write `--store none`.",
        "--older-than": "`--until 30d` chooses runs that are older than 30 days.",
        "--pr-comment": "Write `--to pr-comment.md`, or `--to pr-comment:FILE`.",
        "--promote-baseline": "Write `--as-baseline`.",
        "--publish-safe": "Write `--without-text`.",
        "--redact": "Write `--without-text`, which leaves out every text; there are no other levels.",
    },
    "agreement": {
        "--cascade": _CASCADE,
        "--cost": _CASCADE,
        "--dataset": "Write `--labels FILE`, of a rubric dataset as of a spreadsheet.",
        "--fresh-items": _CASCADE,
        "--run": "Name the run itself: `deemster agreement RUN`.",
        "--strong": _CASCADE,
        "--tolerance": _CASCADE,
        "--verdicts": "Name the spreadsheet itself: `deemster agreement VERDICTS.csv --labels LABELS.csv`.",
        "--votes": "Write `--to votes.json`, or `--to votes:FILE`.",
    },
    "attack": {
        "--canary": "Write `attack: { canary: [TEXT] }` in the suite.",
        "--category": "Name the categories after the suite: `deemster attack SUITE CATEGORY ...`.",
        "--dry-run": "`deemster check SUITE` says what a run of the suite costs.",
        "--forbidden-tool": "Write `attack: { forbidden_tools: [NAME] }` in the suite.",
        "--input-key": "Write `attack: { input_key: KEY }` in the suite.",
        "--label": "Write `--name TEXT`: a label is what people give.",
        "--mutator": "Write `attack: { mutators: [NAME] }` in the suite.",
        "--private-pattern": "Write `attack: { private_patterns: [REGEX] }` in the suite.",
        "--promote-failures": "Write `--save-failing FILE`.",
        "--seed": "Write `attack: { seed: 7 }` in the suite.",
    },
    "audit dataset": {
        "--subset": "The part for quick runs is gone: `deemster run --sample N` is a quick look.",
    },
    "audit judge": {
        "--run": "Write `--outputs RUN`.",
    },
    "audit metrics": {
        "--run": "Write `--outputs RUN`.",
    },
    "baseline": {
        "--dataset": "Write `deemster baseline --clear dataset:NAME`.",
    },
    "export": {
        "--as": "Write `--to otel:PLACE` or `--to mlflow:URI`.",
    },
    "grade": {
        "--api-key-env": _MODELS_FILE,
        "--base-url": _MODELS_FILE,
        "--cascade": (
            "Write `--set cascade.unsure_below=0.8`; the first `--judge` is asked first, as in `--judge cheap`."
        ),
        "--model": _MODELS_FILE,
        "--votes": "Write `--to votes.json`, or `--to votes:FILE`.",
    },
    "import": {
        "--label": "Write `--name TEXT`.",
    },
    "labels export": {
        "--as": "Write `--to FILE.csv`, or `--to votes.json`.",
    },
    "rubric improve": {
        "--writer": "Write `--set writer=ROLE`.",
    },
    "run": {
        "--delta": "Write `delta: 0.05` in the suite.",
        "--dry-run": "`deemster check SUITE` says how many requests a run sends, and about what they cost.",
        "--durable": "Write `durable: true` in the suite.",
        "--failed": "Write `--only failed`, or `--only failed:RUN`.",
        "--id": "Write `--only id:ID`.",
        "--keep-prompts": "Write `keep_prompts: all` in the suite.",
        "--label": "Write `--name TEXT`.",
        "--on": "Write `on: ADDRESS` in the suite.",
        "--partial": "Write `--only answered`.",
        "--strict": "Write `strict: true` in the suite.",
        "--tag": "Write `--only tag:TAG`.",
        "--until-decided": "Run the whole dataset, or `--sample N` of it.",
        "--where": "Write `--only KEY=VALUE` for metadata, `--only input.KEY=VALUE` for input.",
    },
    "view": {
        "--label": "Write `--annotator NAME`.",
    },
}
# Flags that are settings now, which `--set` takes, with an example of each.
_SETTING_EXAMPLES = {
    "compare": {
        "--cluster": "cluster=KEY",
        "--confidence": "confidence=0.9",
        "--seed": "seed=7",
    },
    "grade": {
        "--abstention": "abstention=zero",
        "--aggregation": "aggregation=any",
        "--auto-na": "auto_na=true",
        "--calls": "calls=per_item",
        "--cascade-by": "cascade.by=consistency",
        "--cascade-repeats": "cascade.repeats=3",
        "--durable": "durable=true",
        "--max-failed": "max_failed=2%",
        "--max-tokens": "max_tokens=800",
        "--no-auto-na": "auto_na=false",
        "--no-probabilities": "probabilities=false",
        "--no-shuffle-options": "shuffle_options=false",
        "--nominal-aggregation": "nominal_aggregation=mode",
        "--normalize": "normalize=true",
        "--numeric-aggregation": "numeric_aggregation=median",
        "--ordinal-aggregation": "ordinal_aggregation=median",
        "--partial-credit": "partial_credit=0.25",
        "--probabilities": "probabilities=true",
        "--quorum": "quorum=2",
        "--raw": "normalize=false",
        "--repeats": "repeats=3",
        "--seed": "seed=7",
        "--shuffle-options": "shuffle_options=true",
        "--temperature": "temperature=0.5",
        "--unsure-below": "cascade.unsure_below=0.8",
    },
}
# Settings whose flag had their name.
_SETTINGS = {
    "agreement": (
        "bootstrap",
        "cannot_assess",
        "cluster",
        "confidence",
        "epsilon",
        "group",
        "n_bootstrap",
        "na_mode",
        "pair",
        "per_slice",
        "repetitions",
        "seed",
        "system",
    ),
    "audit dataset": ("confidence", "margin", "near", "seed"),
    "audit gate": ("cohort", "confidence", "draws", "flip_rate", "pass_rate", "sd", "seed"),
    "audit judge": ("confidence", "max_samples", "seed"),
    "audit metrics": ("confidence", "draws", "max_samples", "seed"),
    "plan detect": ("cluster", "cluster_size", "confidence", "flip_rate", "icc", "pass_rate", "power", "scores", "sd"),
    "plan labels": ("confidence", "pass_rate", "samples", "sd"),
    "plan size": (
        "cluster",
        "cluster_size",
        "confidence",
        "flip_rate",
        "icc",
        "pass_rate",
        "power",
        "sample_cost",
        "scores",
        "sd",
    ),
    "rubric improve": ("alpha", "cluster", "criteria", "exemplars", "rounds", "seed", "train"),
}

GONE_FLAGS = {
    **{f"{command} {flag}".strip(): advice for command, flags in _ADVICE.items() for flag, advice in flags.items()},
    **{
        f"{command} {flag}": f"Write `--set {setting}`."
        for command, flags in _SETTING_EXAMPLES.items()
        for flag, setting in flags.items()
    },
    **{
        f"{command} --{name.replace('_', '-')}": f"Write `--set {name}=...`."
        for command, names in _SETTINGS.items()
        for name in names
    },
}
GONE_COMMANDS = {
    "adversarial": "`deemster attack SUITE [CATEGORY ...]` attacks the target of a suite.",
    "align": "`deemster agreement VOTES` compares judges with people; it changes no judge.",
    "brief": "`deemster show RUN --failed` tells what failed, and why.",
    "calibrate": "`deemster agreement RUN --labels FILE` compares a run with people, and corrects its numbers.",
    "certify": "`deemster export RUN --to run.jsonl` writes one file to pass on, and prints its SHA-256.",
    "models": "`deemster check SUITE` tries the models of a suite.",
    "promote": "`deemster export RUN --only failed --to golden.yml` makes golden samples of what failed.",
    "rescore": "`deemster run --outputs RUN --metric NAME` scores the outputs of a run once more.",
    "report": "`deemster show RUN` shows a report, and writes it by `--to FILE`.",
    "runs": "`deemster show` lists the runs, `deemster show RUN` shows one, `deemster store rm RUN` removes one.",
    "validate": "`deemster check FILE` checks files; of a suite, also models and costs.",
    "verify": "`deemster store verify REPORT run.jsonl` computes a report again from a run file.",
}
# Verbs that are gone, of commands that have other ones now.
GONE_VERBS = {
    "baseline clear": "`deemster baseline --clear [SUITE]` forgets a baseline.",
    "baseline promote": "`deemster baseline RUN` chooses a baseline.",
    "baseline show": "`deemster baseline` shows the baselines.",
    "store export": "`deemster export RUN --to run.jsonl` writes a run file, `--to folder.parquet` tables.",
    "store import": "`deemster import FILE` takes in the runs of a file.",
    "store path": "`deemster store` prints where runs are kept.",
    "store prune": "`deemster store rm --keep 20 --until 90d` removes old runs and gives the space back.",
}
# What other tools call our commands.
OTHER_TOOLS = {
    "diff": "compare",
    "eval": "run",
    "evaluate": "run",
    "list": "show",
    "ls": "show",
    "test": "run",
}


def answer_command(word: str) -> str | None:
    """What to type in place of a word that is no command; None where it was never one."""
    if word in GONE_COMMANDS:
        return f"`{word}` is gone. {GONE_COMMANDS[word]}"
    if word in OTHER_TOOLS:
        return f"No command is called `{word}`. Did you mean `{OTHER_TOOLS[word]}`?"
    return None


def answer_verb(words: str) -> str | None:
    """What to type in place of a verb that is gone; None where it was never one."""
    return f"`{words}` is gone. {GONE_VERBS[words]}" if words in GONE_VERBS else None


def answer_flag(error: click.NoSuchOption) -> click.UsageError:
    """The error about an unknown flag; where the flag is gone, it says what to type in its place."""
    flag = error.option_name
    advice = next((GONE_FLAGS[name] for name in [*_names_of(error.ctx, flag), flag] if name in GONE_FLAGS), None)
    return error if advice is None else click.UsageError(f"`{flag}` is gone. {advice}", error.ctx)


def _names_of(context: click.Context | None, flag: str) -> list[str]:
    """A flag with the words of its command before it, such as `rubric improve --json` and `improve --json`."""
    names = []
    words = flag
    while context is not None and context.parent is not None:
        words = f"{context.info_name} {words}"
        names.append(words)
        context = context.parent
    return list(reversed(names))
