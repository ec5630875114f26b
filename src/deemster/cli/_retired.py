"""What is gone from the command line, and what to type in its place."""

from __future__ import annotations

import click

# Flags, of every command or of the one that is named.
_CASCADE = (
    "Calibrate a cascade in Python: `dm.agreement.calibrate_cascade(votes, cheap=..., strong=[...], costs={...})`."
)
FLAGS = {
    "--csv": "Write `--to FILE.csv`, or `--to csv:FILE`.",
    "--csv-raw": "CSV guards cells that look like formulas. `--to FILE.json` has every text as it is.",
    "--github": "Write `--to github` in a GitHub job, else `--to github:FILE`.",
    "--html": "Write `--to FILE.html`, or `--to html:FILE`.",
    "--json": "Write `--to FILE.json`, or `--to json:FILE`; `--to -` prints JSON.",
    "--junit": "Write `--to junit.xml`, or `--to junit:FILE`.",
    "--markdown": "Write `--to FILE.md`, or `--to md:FILE`.",
    "--include": "Inputs are shown unless `--without-text` is given.",
    "--publish-safe": "Write `--without-text`.",
    "--redact": "Write `--without-text`, which leaves out every text; there are no other levels.",
    "--pr-comment": "Write `--to pr-comment.md`, or `--to pr-comment:FILE`.",
    "--budget-tokens": "Write `--budget 50000tokens`.",
    "--budget-usd": "Write `--budget 2usd`.",
    "--no-cache": "Write `--cache none`.",
    "--no-store": "Write `--store none`.",
    "--junit-samples": "Write `junit: samples` in the suite.",
    "--older-than": "`--until 30d` chooses runs that are older than 30 days.",
    "--max-chars": "`deemster show RUN --failed` is as long as an assistant reads in one go.",
    "--promote-baseline": "Write `--as-baseline`.",
    "import --label": "Write `--name TEXT`.",
    "run --durable": "Write `durable: true` in the suite.",
    "run --keep-prompts": "Write `keep_prompts: all` in the suite.",
    "run --label": "Write `--name TEXT`.",
    "run --on": "Write `on: ADDRESS` in the suite.",
    "view --label": "Write `--annotator NAME`.",
    "run --failed": "Write `--only failed`, or `--only failed:RUN`.",
    "run --id": "Write `--only id:ID`.",
    "run --partial": "Write `--only answered`.",
    "run --tag": "Write `--only tag:TAG`.",
    "run --where": "Write `--only KEY=VALUE` for metadata, `--only input.KEY=VALUE` for input.",
    "audit judge --run": "Write `--outputs RUN`.",
    "audit metrics --run": "Write `--outputs RUN`.",
    "audit dataset --subset": "Write `--to FILE.txt`.",
    "grade --votes": "Write `--to votes.json`, or `--to votes:FILE`.",
    "labels export --as": "Write `--to FILE.csv`, or `--to votes.json`.",
    "agreement --cascade": _CASCADE,
    "agreement --cost": _CASCADE,
    "agreement --fresh-items": _CASCADE,
    "agreement --votes": "Write `--to votes.json`, or `--to votes:FILE`.",
    "agreement --dataset": "Write `--labels FILE`, of a rubric dataset as of a spreadsheet.",
    "agreement --verdicts": "Name the spreadsheet itself: `deemster agreement VERDICTS.csv --labels LABELS.csv`.",
    "agreement --run": "Name the run itself: `deemster agreement RUN`.",
    "agreement --strong": _CASCADE,
    "agreement --tolerance": _CASCADE,
    "attack --category": "Name the categories after the suite: `deemster attack SUITE CATEGORY ...`.",
    "attack --promote-failures": "Write `--save-failing FILE`.",
    "attack --dry-run": "`deemster check SUITE` says what a run of the suite costs.",
    "run --dry-run": "`deemster check SUITE` says how many requests a run sends, and about what they cost.",
    "attack --label": "Write `--name TEXT`: a label is what people give.",
    "export --as": "Write `--to otel:PLACE` or `--to mlflow:URI`.",
    "baseline --dataset": "Write `deemster baseline --clear dataset:NAME`.",
    "rubric improve --writer": "Write `--set writer=ROLE`.",
    "run --delta": "Write `delta: 0.05` in the suite.",
    "--max-unscored": "Write `gate: { max_unscored: 2% }` in the suite.",
    "run --strict": "Write `strict: true` in the suite.",
    "run --until-decided": "Run the whole dataset, or the part that `deemster audit dataset SUITE` proposes.",
}
FLAGS |= {
    f"grade --{flag}": "Write `models: { judge: { base_url: URL, model: NAME } }` in a file: `--models FILE`."
    for flag in ("api-key-env", "base-url", "model")
}
FLAGS |= {
    f"grade --{flag}": f"Write `--set {setting}`."
    for flag, setting in {
        "abstention": "abstention=zero",
        "aggregation": "aggregation=any",
        "auto-na": "auto_na=true",
        "calls": "calls=per_item",
        "cascade": "cascade.unsure_below=0.8`; the first `--judge` is asked first, as in `--judge cheap",
        "cascade-by": "cascade.by=consistency",
        "cascade-repeats": "cascade.repeats=3",
        "durable": "durable=true",
        "max-failed": "max_failed=2%",
        "max-tokens": "max_tokens=800",
        "no-auto-na": "auto_na=false",
        "no-probabilities": "probabilities=false",
        "no-shuffle-options": "shuffle_options=false",
        "nominal-aggregation": "nominal_aggregation=mode",
        "normalize": "normalize=true",
        "numeric-aggregation": "numeric_aggregation=median",
        "ordinal-aggregation": "ordinal_aggregation=median",
        "partial-credit": "partial_credit=0.25",
        "probabilities": "probabilities=true",
        "quorum": "quorum=2",
        "raw": "normalize=false",
        "repeats": "repeats=3",
        "seed": "seed=7",
        "shuffle-options": "shuffle_options=true",
        "temperature": "temperature=0.5",
        "unsure-below": "cascade.unsure_below=0.8",
    }.items()
}
FLAGS |= {
    f"rubric improve --{name}": f"Write `--set {name}=...`."
    for name in ("alpha", "cluster", "criteria", "exemplars", "rounds", "seed", "train")
}
FLAGS |= {
    f"attack --{flag}": f"Write `attack: {{ {setting} }}` in the suite."
    for flag, setting in {
        "canary": "canary: [TEXT]",
        "forbidden-tool": "forbidden_tools: [NAME]",
        "input-key": "input_key: KEY",
        "mutator": "mutators: [NAME]",
        "private-pattern": "private_patterns: [REGEX]",
        "seed": "seed: 7",
    }.items()
}
FLAGS |= {
    f"agreement --{name.replace('_', '-')}": f"Write `--set {name}=...`."
    for name in (
        *("bootstrap", "cannot_assess", "cluster", "confidence", "epsilon", "group", "n_bootstrap", "na_mode", "pair"),
        *("per_slice", "repetitions", "seed", "system"),
    )
}
FLAGS |= {
    f"audit {audit} --{name.replace('_', '-')}": f"Write `--set {name}=...`."
    for audit, names in {
        "judge": ("max_samples",),
        "metrics": ("max_samples", "draws"),
        "gate": ("draws", "cohort", "flip_rate", "pass_rate", "sd"),
        "dataset": ("draws", "near", "margin"),
    }.items()
    for name in (*names, "confidence", "seed")
}
FLAGS |= {
    f"plan {question} --{name.replace('_', '-')}": f"Write `--set {name}=...`."
    for question, names in {
        "detect": ("power", "scores", "flip_rate", "sd", "pass_rate", "cluster", "cluster_size", "icc"),
        "size": ("power", "scores", "flip_rate", "sd", "pass_rate", "cluster", "cluster_size", "icc", "sample_cost"),
        "labels": ("pass_rate", "sd", "samples"),
    }.items()
    for name in (*names, "confidence")
}
FLAGS |= {
    f"compare --{name}": f"Write `--set {name}={example}`."
    for name, example in {"cluster": "KEY", "confidence": "0.9", "seed": "7"}.items()
}
COMMANDS = {
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
# Verbs of commands that have other ones.
VERBS = {
    "baseline clear": "`deemster baseline --clear [SUITE]` forgets a baseline.",
    "baseline promote": "`deemster baseline RUN` chooses a baseline.",
    "baseline show": "`deemster baseline` shows the baselines.",
    "store export": "`deemster export RUN --to run.jsonl` writes a run file, `--to folder.parquet` tables.",
    "store import": "`deemster import FILE` takes in the runs of a file.",
    "store path": "`deemster store` prints where runs are kept.",
    "store prune": "`deemster store rm --keep 20 --until 90d` removes old runs and gives the space back.",
}
# Words that other tools use.
MEANT = {
    "diff": "compare",
    "eval": "run",
    "evaluate": "run",
    "list": "show",
    "ls": "show",
    "test": "run",
}


def answer_command(word: str) -> str | None:
    """What to type in place of a word that is no command; None where it was never one."""
    if word in COMMANDS:
        return f"`{word}` is gone. {COMMANDS[word]}"
    if word in MEANT:
        return f"No command is called `{word}`. Did you mean `{MEANT[word]}`?"
    return None


def answer_verb(words: str) -> str | None:
    """What to type in place of a verb that is gone; None where it was never one."""
    return f"`{words}` is gone. {VERBS[words]}" if words in VERBS else None


def answer_flag(error: click.NoSuchOption) -> click.UsageError:
    """The error about an unknown flag; where the flag is gone, it says what to type in its place."""
    flag = error.option_name
    advice = next((FLAGS[name] for name in [*_names_of(error.ctx, flag), flag] if name in FLAGS), None)
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
