"""A suite of many samples with saved outputs of which some are wrong, for runs that are compared with a baseline."""

from __future__ import annotations

from tests.cli.workspace import called, written

WARNINGS = ("warning: The gate's margin of",)


def dataset(count=200, *, without=(), tags=("policy", "price"), edited=()):
    lines = ["name: support", "samples:"]
    for number in range(count):
        if number in without:
            continue
        question = f"Question {number}{' anew' if number in edited else ''}"
        lines += [
            f"  - id: s{number:03d}",
            f"    input: {{ question: {question} }}",
            f"    expected_output: answer {number}",
            f"    metadata: {{ tags: [{tags[number % len(tags)]}], document: d{number // 5} }}",
        ]
    return "\n".join(lines) + "\n"


def answers(wrong=(), *, count=200, without=()):
    said = {number: "wrong" if number in wrong else f"answer {number}" for number in range(count)}
    lines = [f"  s{number:03d}: {text}" for number, text in said.items() if number not in without]
    return "\n".join(["outputs:", *lines]) + "\n"


def suite(gate="margin: 0.05", *, metrics="exact-match", decision="three-way", further=""):
    baseline = f", baseline: {{ {gate} }}" if gate is not None else ""
    return (
        "name: refunds\ndataset: golden.yml\ntarget: { outputs: answers.yml }\n"
        f"metrics: [{metrics}]\ngate: {{ decision: {decision}{baseline}{further} }}\n"
    )


def ready(folder, gate="margin: 0.05", *, wrong=(), count=200, **other):
    """A folder whose suite has a baseline with wrong answers."""
    written(
        folder,
        {
            "golden.yml": dataset(count),
            "answers.yml": answers(wrong, count=count),
            "suite.yml": suite(gate, **other),
        },
    )
    result = called("run", "suite.yml", "--quiet", "--as-baseline")
    assert "is the baseline of the suite refunds" in result.stderr, result.stderr


def ran(folder, *flags, wrong=(), count=200, without=(), **files):
    """What a run of the suite says with other wrong answers, or without samples."""
    changed = {name.replace("_", "."): text for name, text in files.items()}
    if without:
        changed["golden.yml"] = dataset(count, without=without)
    written(folder, {"answers.yml": answers(wrong, count=count, without=without), **changed})
    return called("run", "suite.yml", "--quiet", *flags)


def decision(result):
    """The decision that a run printed, without its warnings about margins."""
    lines = [line for line in result.stderr.splitlines() if not line.startswith(WARNINGS)]
    return "\n".join(lines) + "\n"
