"""Prompts are files, filled in one pass, known by their hash."""

from importlib.resources import files

import pytest

from deemster.errors import ConfigurationError
from deemster.judges.llm_as_judge import LlmAsJudge
from deemster.judges.pairwise import Pairwise
from deemster.judges.prompt_templates import fill_template, load_prompt, template_places
from deemster.judges.refusal_quality import RefusalQuality
from tests.judges.play import OUTPUT, SAMPLE

JUDGES = [LlmAsJudge(), LlmAsJudge(logprobs=True), RefusalQuality(), Pairwise()]
NAMES = ["llm-as-judge", "llm-as-judge-tenths", "refusal-quality", "pairwise"]


def test_placeholders_inside_values_are_not_filled():
    values = {"a": "{{b}}", "b": "{{a}}", "c": r"\1 \g<0> {{a}}"}
    assert fill_template("{{a}}|{{b}}|{{c}}|{{d}}", values) == r"{{b}}|{{a}}|\1 \g<0> {{a}}|{{d}}"


@pytest.mark.parametrize("judge", JUDGES, ids=NAMES)
def test_every_prompt_says_what_the_blocks_are_and_asks_for_the_reason_first(judge):
    text = judge.prompt_text()
    assert "{{nonce}}" in text
    assert "never an instruction" in text
    assert text.index('"reason"') < text.index('"winner"' if judge.alias == "pairwise" else '"score"')


@pytest.mark.parametrize("name", NAMES)
def test_every_placeholder_of_prompts_is_filled(name):
    known = {
        "question",
        "expected_output",
        "actual_output",
        "policy",
        "expectation",
        "answer_a",
        "answer_b",
        "criteria",
    }
    assert set(template_places(load_prompt(name).text)) <= known | {"nonce"}


def test_every_prompt_file_ends_with_one_line_end_and_has_two_parts():
    for file in files("deemster.judges").joinpath("prompts").iterdir():
        if file.name.removesuffix(".txt") in NAMES:
            text = file.read_text(encoding="utf-8")
            assert text.count("\n=====\n") == 1
            assert text.endswith("\n")


def test_bands_of_the_two_answer_prompts_differ_only_by_their_scale():
    one, tenths = load_prompt("llm-as-judge").text, load_prompt("llm-as-judge-tenths").text
    for written, whole in [("a number from 0 to 1", "a whole number from 0 to 10"), ("1.0:", "10:")]:
        one = one.replace(written, whole)
    for low, high in [(7, 9), (3, 6)]:
        one = one.replace(f"0.{low} to 0.{high}", f"{low} to {high}")
    assert one.replace("0 to 0.2", "0 to 2") == tenths


def test_prompts_hash_is_part_of_the_judges_version():
    plain, own = LlmAsJudge(), LlmAsJudge(template="Judge {{actual_output}}.")
    assert plain.version == f"1.{plain.prompt_hash}"
    assert len({judge.prompt_hash for judge in [*JUDGES, own]}) == len(JUDGES) + 1
    assert Pairwise(criteria="shorter").prompt_hash != Pairwise().prompt_hash


def test_template_replaces_the_case_and_keeps_the_rules():
    judge = LlmAsJudge(template="Is {{actual_output}} like {{ expected_output }}?")
    (ask,) = next(judge.script(SAMPLE, OUTPUT))
    system, user = ask.messages
    (plain,) = next(LlmAsJudge().script(SAMPLE, OUTPUT))
    assert system == plain.messages[0]
    assert user.content.startswith("Is \n<<< actual_output ")
    assert "{{" not in user.content


def test_marker_lines_stand_alone_at_any_placeholder():
    judge = LlmAsJudge(template="{{actual_output}}or {{expected_output}}{{question}}?")
    (ask,) = next(judge.script(SAMPLE, OUTPUT))
    nonce = ask.messages[1].content.split()[2]
    lines = ask.messages[1].content.split("\n")
    marked = [line for line in lines if nonce in line]
    labels = ["actual_output", "expected_output", "question"]
    assert marked == [f"{sign} {label} {nonce}" for label in labels for sign in ("<<<", ">>>")]
    assert [line for line in lines if nonce not in line] == [
        "It is Paris.",
        "or ",
        "Paris",
        "",
        "What is the capital of France?",
        "?",
    ]


@pytest.mark.parametrize(
    ("made", "template", "message"),
    [
        (LlmAsJudge, "{{actual_outptu}}", "Did you mean `actual_output`"),
        (LlmAsJudge, "{{question}}", "no place for `actual_output`"),
        (LlmAsJudge, " ", "is text"),
        (LlmAsJudge, 7, "is text, not 7"),
        (LlmAsJudge, "{{actual_output}}\ud800", "`template` of llm-as-judge is not valid Unicode at character 17"),
        (RefusalQuality, "{{actual_output}}", "no place for `expectation`"),
        (Pairwise, "{{answer_a}} {{question}}", "no place for `answer_b`"),
    ],
)
def test_template_with_unknown_placeholder_is_error(made, template, message):
    with pytest.raises(ConfigurationError, match=message):
        made(template=template)
