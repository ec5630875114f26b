"""The check of rubrics: each code with a rubric that has the fault and one that nearly has it."""

from __future__ import annotations

import pytest

from deemster.errors import RubricError
from deemster.formats import read_document
from deemster.rubrics import Rubric
from deemster.rubrics.rubric_check import OVERLAP_SHARE, RULES, check_rubric, word_overlap
from tests.rubrics.planted_rubrics import DIFFERENT, PLANTED, SAME

FINE = "States the refund window in days."
SCALE = [("names no cause at all", 0), ("names one of the causes", 0.5), ("names all of the causes", 1)]


def one(requirement=FINE, **fields):
    return [{"name": "a", "requirement": requirement, **fields}]


def scaled(*options, requirement="How many causes are named?", **fields):
    listed = [{"label": label, "value": value} for label, value in options]
    return one(requirement, options=listed, **fields)


def several(*criteria):
    """Criteria by requirement and weight, with distinct requirements."""
    return [
        {"name": f"c{place}", "requirement": text, "weight": weight} for place, (text, weight) in enumerate(criteria)
    ]


THREE = ("Names the author.", "States the price in euros.", "Has fourteen lines.")

SHOWN = {
    "vague-word": one("The tone is nice."),
    "double-barrelled": one("Cites a source and explains the risk."),
    "double-negative": one("Does not fail to name the author."),
    "negated-fault": one("Does not name the author.", weight=-3),
    "negated": one("Contains no slang."),
    "outside-knowledge": one("Follows best practices."),
    "long-requirement": one(" ".join(["word"] * 61)),
    "duplicate": several(("Names the author.", 1), ("names the author", 1), ("Has fourteen lines.", -1)),
    "overlap": several(("Cites a source for the claim.", 1), ("The claim has a cited source.", 1), (THREE[2], -1)),
    "no-negative": several(*((text, 1) for text in THREE)),
    "dominant-weight": several((THREE[0], 5), (THREE[1], 2), (THREE[2], 2), ("Repeats itself.", -1)),
    "zero-weight": one(weight=0),
    "bare-number": scaled(("1", 0), ("names one of the causes", 0.5), ("names all of the causes", 1)),
    "bare-label": scaled(("poor", 0), ("fair", 0.5), ("good", 1)),
    "listed-order": scaled(SCALE[0], SCALE[2], SCALE[1]),
    "few-levels": scaled(SCALE[0], SCALE[2]),
    "many-levels": scaled(*((f"names {place} of the causes", place / 7) for place in range(8))),
    "uneven-scale": scaled(SCALE[0], ("names one of the causes", 0.25), SCALE[2]),
    "open-scale": scaled(SCALE[0], ("names one of the causes", 0.4), ("names all of the causes", 0.8)),
    "no-na-option": scaled(*SCALE, requirement="If causes are named, how many are they?"),
    "unnamed": [{"requirement": FINE}],
}
NEAR = {
    "vague-word": one('Says "nice to meet you".'),
    "double-barrelled": one("Links to the terms and conditions."),
    "double-negative": one("Names no more than two authors."),
    "negated-fault": one("Names the wrong author.", weight=-3),
    "negated": one("Has no more than 40 words."),
    "outside-knowledge": one("Quotes the prompt."),
    "long-requirement": one(" ".join(["word"] * 60)),
    "duplicate": several(("Names the author.", 1), ("Names the editor.", 1), ("Has fourteen lines.", -1)),
    "overlap": several(("States the risk of the drug.", 1), ("States the benefit of the drug.", 1), (THREE[2], -1)),
    "no-negative": several((THREE[0], 1), (THREE[1], 1), (THREE[2], -1)),
    "dominant-weight": several((THREE[0], 4), (THREE[1], 2), (THREE[2], 2), ("Repeats itself.", -1)),
    "zero-weight": one(weight=0, fatal=True),
    "bare-number": scaled(("1 cause is named", 0), ("2 causes are named", 0.5), ("3 causes are named", 1)),
    "bare-label": scaled(("none", 0), ("one: the first cause", 0.5), ("all: each of the causes", 1)),
    "listed-order": scaled(*SCALE[::-1]),
    "few-levels": scaled(*SCALE),
    "many-levels": scaled(*((f"names {place} of the causes", place / 6) for place in range(7))),
    "uneven-scale": scaled(SCALE[0], ("names one of the causes", 0.34), ("names two", 0.67), SCALE[2]),
    "open-scale": scaled(*SCALE),
    "no-na-option": [
        {
            "name": "a",
            "requirement": "If causes are named, how many are they?",
            "options": [
                *({"label": label, "value": value} for label, value in SCALE),
                {"label": "names none", "na": True},
            ],
        }
    ],
    "unnamed": one(),
}


def codes(value):
    return [issue.code for issue in check_rubric(Rubric.load(value))]


def test_every_code_has_an_example_and_a_near_miss():
    assert SHOWN.keys() == NEAR.keys() == RULES.keys()


@pytest.mark.parametrize("code", RULES)
def test_issue_is_found(code):
    assert code in codes(SHOWN[code])


@pytest.mark.parametrize("code", RULES)
def test_near_miss_is_no_issue(code):
    assert code not in codes(NEAR[code])


@pytest.mark.parametrize(
    "code", sorted(RULES.keys() - {"bare-label", "bare-number", "long-requirement", "many-levels", "uneven-scale"})
)
def test_fine_rubric_has_no_issue(code):
    assert codes(NEAR[code]) == []


@pytest.mark.parametrize("code", sorted(RULES.keys() - {"bare-label", "duplicate", "long-requirement"}))
def test_issue_is_reported_once(code):
    assert codes(SHOWN[code]) == [code]


def test_issue_has_line_and_suggestion(tmp_path):
    path = tmp_path / "rubric.yaml"
    path.write_text("sections:\n- criteria:\n  - name: tone\n    weight: 3\n    requirement: The tone is nice.\n")
    document = read_document(path, error=RubricError)
    (issue,) = check_rubric(Rubric.load(path), document=document)
    assert (issue.where, issue.path) == (f"{path}:5", "sections[0].criteria[0].requirement")
    assert (issue.code, issue.severity) == ("vague-word", "warning")
    assert issue.suggestion == "Instead, say what a judge must see in the text for it to count."


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- requirement: Is nice.\n- {name: b, requirement: Has a title.}\n", [1, 1]),
        ("rubric:\n  criteria:\n  - requirement: Has a title.\n", [3]),
        ("- criteria:\n  - requirement: Has a title.\n- requirement: Has an index.\n", [2, 3]),
    ],
)
def test_lines_are_right_in_every_shape_of_rubric(tmp_path, text, lines):
    path = tmp_path / "rubric.yaml"
    path.write_text(text)
    found = check_rubric(Rubric.load(path), document=read_document(path, error=RubricError))
    assert [int(issue.where.rpartition(":")[2]) for issue in found] == lines


def test_given_name_like_a_default_name_is_a_name(tmp_path):
    path = tmp_path / "rubric.yaml"
    path.write_text("- {name: Criterion 1, requirement: Has a title.}\n")
    assert check_rubric(Rubric.load(path), document=read_document(path, error=RubricError)) == ()


def test_requirement_answered_by_a_metric_may_be_vague():
    assert codes(one("Is good and nice.", check={"metric": "contains", "args": {"text": "x"}})) == []


def test_described_options_define_a_vague_requirement():
    assert codes(scaled(*SCALE, requirement="How good is the explanation?")) == []


# The simple rule cannot distinguish this from two requirements.
FALSE_ALARMS = {("essay", "evidence", "double-barrelled")}


def found_in(name, text):
    rubric = Rubric.parse(text)
    places = {f"criteria[{place}]": criterion.name for place, criterion in enumerate(rubric.criteria)}
    return {(name, places.get(issue.path.partition(".")[0]), issue.code) for issue in check_rubric(rubric)}


@pytest.mark.parametrize("name", PLANTED)
def test_every_planted_fault_is_found_and_nothing_else(name):
    text, planted = PLANTED[name]
    expected = {(name, criterion, code) for criterion, code in planted}
    assert found_in(name, text) - FALSE_ALARMS == expected


def test_every_code_is_planted():
    assert {code for _, planted in PLANTED.values() for _, code in planted} == RULES.keys()


def test_example_rubric_has_no_issue():
    assert check_rubric(Rubric.load("examples/essays/rubric.yaml")) == ()


def test_overlap_finds_half_of_the_repeated_requirements_and_no_different_ones():
    assert sum(word_overlap(*pair) >= OVERLAP_SHARE for pair in SAME) == 5
    assert not [pair for pair in DIFFERENT if word_overlap(*pair) >= OVERLAP_SHARE]
