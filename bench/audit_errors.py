"""How often audits err end to end: false flags of a judge without bias, missed biases, coverage of the mutation score.

Usage: python3 bench/audit_errors.py [--quick]     (200 audits a row, on two cores; --quick: 10)

Printed: for `deemster audit judge` the share of audits that flag any bias of judges that have none (5 %
allowed over all probes and metrics), and how often a planted reaction of 0.1 to 0.4 is flagged by its probe. For
`deemster audit metrics` how often the printed intervals of the share of noticed defects hold the truth. For `--confirm`
how often `deemster run` confirms any failure of an unchanged application that errs by chance, and the share of broken
samples that it confirms. The judges and the application are made here and know nothing of the audits.
"""

import asyncio
import hashlib
import os
import re
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import NormalDist

import numpy as np
import yaml
from click.testing import CliRunner
from judge_biases import dataset

from deemster.audit.audit_judge import audit_judge
from deemster.audit.audit_metrics import DefectSettings, audit_metrics
from deemster.audit.planted_outputs import expected_outputs
from deemster.cli import app
from deemster.engine.watchers import Watchers
from deemster.evaluation.resolve_evaluation import resolve_arguments
from deemster.models.fake_models import FakeChat

ALLOWED = 0.081
COVERED = 0.92
BLOCK = re.compile(r"<<< (\w+) ([0-9a-f]{16})\n(.*?)\n>{3} \1 \2", re.DOTALL)


def draw(*parts):
    """A number from 0 to 1, the same for the same parts."""
    return (int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6]) + 0.5) / 2**48


def normal(*parts):
    return NormalDist().inv_cdf(draw(*parts))


# Judges without a bias, that err by the text, by the question, or by whole verdicts.
FAIR = {
    "scores off by sd 0.15": lambda seed, question, text, score: score + 0.15 * normal(seed, question, text),
    "off by question and by text": lambda seed, question, text, score: (
        score + 0.2 * normal(seed, question) + 0.1 * normal(seed, question, text)
    ),
    "15 % of verdicts turned": lambda seed, question, text, score: (
        1 - score if draw(seed, question, text) < 0.15 else score
    ),
    "3 % of verdicts turned": lambda seed, question, text, score: (
        1 - score if draw(seed, question, text) < 0.03 else score
    ),
    "exact": lambda _seed, _question, _text, score: score,
}


def judge(samples, mark):
    right = {sample.input["question"]: sample.expected_output for sample in samples}

    def answer(ask):
        blocks = {label: text for label, _, text in BLOCK.findall(ask.messages[-1].content)}
        question, text = blocks["question"], blocks["actual_output"]
        words = [" ".join(re.findall(r"\w+", one.casefold())) for one in (right[question], text)]
        score = 0.8 if words[0] in words[1] else 0.2
        return {"reason": "As it seems.", "score": min(1.0, max(0.0, mark(question, text, score)))}

    return FakeChat(answer, model="made")


def judged(samples, mark, audit, **settings):
    outputs = expected_outputs(samples)
    texts = {name: output.text for name, output in outputs.items()}
    models = {"judge": judge(samples, mark)}
    job = resolve_arguments(samples, outputs=texts, metrics=["llm-as-judge"], models=models)
    return asyncio.run(audit(job, outputs, **settings))


def any_flag(job):
    name, count, seed = job
    found = judged(
        dataset(count),
        lambda *told: FAIR[name](seed, *told),
        lambda job, outputs: audit_judge(job, "judge", outputs, source="made", watchers=Watchers(lambda _: None)),
    )
    # A judge that turns verdicts does miss changed numbers: that flag is right.
    return any(probe != "numbers-changed" for _, probe in found.flags)


def found_bias(job):
    """A judge that likes bold type and headings, with noise."""
    move, count, seed = job

    def mark(question, text, score):
        return score + 0.15 * normal(seed, question, text) + (move if "**" in text or "##" in text else 0.0)

    found = judged(
        dataset(count),
        mark,
        lambda job, outputs: audit_judge(job, "judge", outputs, source="made", watchers=Watchers(lambda _: None)),
    )
    flags = {probe for _, probe in found.flags}
    return "formatting" in flags, bool(flags - {"formatting"})


def mutation_coverage(job):
    """Whether the intervals hold the share of defects that the metric notices; it differs from sample to sample."""
    share, count, seed = job

    def mark(question, text, _score):
        skill = min(0.98, max(0.02, share + 0.2 * normal(seed, question)))
        noticed = draw(seed, question, text) < skill
        return 0.9 if text.strip() == right[question] or not noticed else 0.1

    samples = dataset(count)
    right = {sample.input["question"]: sample.expected_output for sample in samples}
    found = judged(
        samples,
        mark,
        lambda job, outputs: audit_metrics(
            job, outputs, source="made", settings=DefectSettings(draws=1, seed=seed), watchers=Watchers(lambda _: None)
        ),
    )
    rates = [found.score, *(one.suite for one in found.defects.values())]
    truth = np.mean([min(0.98, max(0.02, share + 0.2 * normal("population", i))) for i in range(20_000)])
    return [rate.low <= truth <= rate.high for rate in rates if rate.rate is not None]


APP = """\
import json, random

CALLS = random.Random({seed})
STATE = json.load(open("state.json"))


def answer(input):
    number = input["number"]
    chance = 0.02 if number in STATE["broken"] else STATE["rates"][number]
    return "yes" if CALLS.random() < chance else "no"
"""


def confirmed(job):
    """Runs of an application that errs by chance: a history, a baseline, and a run of which some samples broke."""
    broken, history, count, seed = job
    rng, runner, here = np.random.default_rng(seed), CliRunner(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        samples = [{"id": f"s{i}", "input": {"number": i}, "expected_output": "yes"} for i in range(count)]
        Path("golden.yml").write_text(yaml.safe_dump({"name": "made", "samples": samples}))
        rates = rng.uniform(0.75, 1.0, count).tolist()
        for place in range(history + 2):
            name, last = f"app_{seed}_{place}", place == history + 1
            state = {"rates": rates, "broken": list(range(broken)) if last else []}
            Path("state.json").write_text(f"{state}".replace("'", '"'))
            Path(f"{name}.py").write_text(APP.format(seed=1000 * seed + place))
            gate = "gate: {baseline: {margin: 0.5, max_newly_failing: 0}}"
            suite = f'name: made\ndataset: golden.yml\ntarget: {{python: "{name}:answer"}}\nmetrics: [exact-match]\n'
            Path("suite.yml").write_text(f"{suite}{gate}\n")
            flags = ["--as-baseline"] if place == history else ["--confirm", "10"] if last else []
            runner.invoke(app, ["run", "suite.yml", "--quiet", "--name", "v", *flags, "--store", "runs.db"])
        told = runner.invoke(app, ["compare", "baseline", "latest", "--full", "--store", "runs.db"]).stdout
        os.chdir(here)
    yes = {int(number) for number in re.findall(r"^s(\d+) +confirmed ", told, re.MULTILINE)}
    return len(yes & set(range(broken))), any(number >= broken for number in yes)


def main():
    draws, wrong = 10 if "--quick" in sys.argv else 200, []
    with ProcessPoolExecutor(2) as pool:
        print("audit judge: judges without a bias that are flagged")
        for name in FAIR:
            for count in (12, 30):
                share = np.mean(list(pool.map(any_flag, [(name, count, seed) for seed in range(draws)])))
                print(f"  {name:30} {count} samples: {share:.1%}")
                wrong += [name] * int(share > ALLOWED)
        print("audit judge: a liking for bold type is flagged; and something else is")
        for move in (0.1, 0.2, 0.4):
            for count in (12, 30):
                rows = np.mean(list(pool.map(found_bias, [(move, count, seed) for seed in range(draws // 2)])), axis=0)
                print(f"  {move} of the score, noise 0.15, {count} samples: {rows[0]:.1%}; {rows[1]:.1%}")
        print("audit metrics: coverage of the share of defects that are noticed: of all, and of single defects")
        for share in (0.5, 0.8, 0.95):
            for count in (12, 40):
                rows = list(pool.map(mutation_coverage, [(share, count, seed) for seed in range(draws // 2)]))
                whole, single = np.mean([row[0] for row in rows]), np.mean([hit for row in rows for hit in row[1:]])
                print(f"  {share:.0%} noticed, {count} samples: {whole:.1%}, {single:.1%}")
                wrong += [f"coverage {share} {count}"] * int(min(whole, single) < COVERED - 0.04)
        print("run --confirm 10: any unchanged sample confirmed, broken ones confirmed")
        for broken, history in ((0, 4), (0, 12), (4, 4), (4, 12)):
            rows = list(pool.map(confirmed, [(broken, history, 30, seed) for seed in range(3 * draws // 10)]))
            share = np.mean([row[1] for row in rows])
            right = (
                "" if not broken else f"; of broken ones {np.sum([row[0] for row in rows]) / len(rows) / broken:.0%}"
            )
            print(f"  {broken} of 30 broken, {history} earlier runs: {share:.1%}{right}")
            wrong += ["--confirm"] * int(share > 0.15)
    if wrong:
        sys.exit(f"goals missed: {wrong}")


if __name__ == "__main__":
    main()
