"""A missing file is answered with the line that names it, and with the nearest name."""

from __future__ import annotations

import pytest

from tests.cli.workspace import ANSWERS, GOLDEN, SUITE, called, written

JUDGED = "dataset: golden.yml\ntarget: { outputs: answers.yml }\nmetrics: [llm-as-judge]\nmodels:\n  judge:\n"
RUBRIC = "name: r\ncriteria: [{name: a, weight: 1, requirement: It is short.}]\n"


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        (
            SUITE.replace("golden.yml", "goldn.yml"),
            "suite.yml:2: There is no file `goldn.yml`. Did you mean `golden.yml`?",
        ),
        (
            SUITE.replace("golden.yml", "GOLDEN.YML"),
            "suite.yml:2: There is no file `GOLDEN.YML`. Did you mean `golden.yml`?",
        ),
        (
            SUITE.replace("golden.yml", "data/golden.csv"),
            "suite.yml:2: There is no file `data/golden.csv`. Did you mean `data/golden.yml`?",
        ),
        (
            SUITE.replace("golden.yml", "evals/golden.yml"),
            "suite.yml:2: There is no file `evals/golden.yml`. Did you mean `golden.yml`?",
        ),
        (
            SUITE.replace("golden.yml", "nothing-like-it.parquet"),
            "suite.yml:2: There is no file `nothing-like-it.parquet`.",
        ),
        (
            SUITE.replace("answers.yml", "answer.yml"),
            "suite.yml:3: There is no file `answer.yml`. Did you mean `answers.yml`?",
        ),
        (
            SUITE.replace("{ outputs: answers.yml }", "\n  outputs:\n    file: answer.yml"),
            "suite.yml:5: There is no file `answer.yml`. Did you mean `answers.yml`?",
        ),
        (
            SUITE.replace("{ outputs: answers.yml }", '{ python: "ap:answer" }'),
            (
                "suite.yml:3: The target `ap:answer` cannot be imported: ModuleNotFoundError: No module named 'ap'. "
                "Did you mean `app:answer`?"
            ),
        ),
        (
            SUITE.replace("[exact-match]", "\n  - exact-match\n  - rubric: { file: rubrc.yaml }"),
            "suite.yml:6: There is no file `rubrc.yaml`. Did you mean `rubric.yaml`?",
        ),
        (
            SUITE.replace("[exact-match]", "[{ rubric: { file: rubric.yaml, few_shot: { train: labeled.yml } } }]"),
            "suite.yml:4: There is no file `labeled.yml`. Did you mean `labelled.yml`?",
        ),
        (
            JUDGED + "    replay: replis.jsonl\n",
            "suite.yml:6: There is no file `replis.jsonl`. Did you mean `replies.jsonl`?",
        ),
        (
            JUDGED + "    embedded: jugde.gguf\n",
            "suite.yml:6: There is no file `jugde.gguf`. Did you mean `judge.gguf`?",
        ),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_missing_file_of_a_suite_is_told_with_its_line_and_the_nearest_name(world, command, suite, told):
    folder = world(suite_yml=suite)
    other = {"app.py": "", "data/golden.yml": GOLDEN, "rubric.yaml": RUBRIC, "labelled.yml": "items: []\n"}
    written(folder, {**other, "replies.jsonl": "", "judge.gguf": ""})
    done = called(command, "suite.yml")
    assert done.exit_code == 2
    assert f"error: {told}\n" in done.stderr


def test_paths_of_a_suite_in_another_folder_are_told_as_it_writes_them(world):
    folder = world()
    written(folder, {"evals/suite.yml": SUITE.replace("answers.yml", "../answer.yml"), "evals/goldens.yml": GOLDEN})
    done = called("run", "evals/suite.yml")
    assert done.exit_code == 2
    assert done.stderr == (
        "error: evals/suite.yml:3: There is no file `../answer.yml`. Did you mean `../answers.yml`?\n"
        "       evals/suite.yml:2: There is no file `golden.yml`. Did you mean `goldens.yml`?\n"
    )


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("run", "suit.yml"), "suit.yml: There is no such file. Did you mean `suite.yml`?"),
        (("run", "evals/suite.yml"), "evals/suite.yml: There is no such file. Did you mean `suite.yml`?"),
        (("check", "golden.yaml"), "golden.yaml: There is no such file. Did you mean `golden.yml`?"),
        (
            ("run", "suite.yml", "--outputs", "answer.yml"),
            "answer.yml: There is no such file. Did you mean `answers.yml`?",
        ),
        (("check", "rows.jsonl"), "rows.jsonl: There is no such file. Did you mean `row.jsonl`?"),
        (("agreement", "vote.json"), "vote.json: There is no such file. Did you mean `votes.json`?"),
        (("show", "runs.json"), "runs.json: There is no such file. Did you mean `run.json`?"),
        (("import", "rows.jsonl"), "rows.jsonl: There is no such file. Did you mean `row.jsonl`?"),
        (("check", "zzzzzz.yml"), "zzzzzz.yml: There is no such file."),
    ],
)
def test_missing_file_of_a_command_is_told_with_the_nearest_name(world, argv, told):
    written(world(), {"votes.json": "{}", "run.json": "{}", "row.jsonl": "{}", "other.yml": ANSWERS})
    done = called(*argv)
    assert done.exit_code == 2
    assert f"error: {told}\n" in done.stderr


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (".", "This is a folder, not a suite. Suites here: `a.yml`, `bots/b.yml`."),
        ("bots", "This is a folder, not a suite. Suites here: `bots/b.yml`."),
        ("nothing.yml", "There is no such file. Suites here: `a.yml`, `bots/b.yml`."),
        ("aa.yml", "There is no such file. Did you mean `a.yml`?"),
    ],
)
def test_folder_or_missing_suite_is_answered_with_the_suites_that_are_there(argument, message, folder):
    written(folder, {"a.yml": SUITE, "bots/b.yml": SUITE, "golden.yml": GOLDEN})
    result = called("run", argument)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
