"""What is found in a rubric: each code in one that shows it, and not in one that nearly does."""

from __future__ import annotations

import pytest

from deemster.errors import RubricError
from deemster.formats import read_document
from deemster.rubrics import Criterion, Rubric
from deemster.rubrics.criteria_overlap import Likeness
from deemster.rubrics.rubric_check import CODES, rubric_findings

FINE = "States the refund window in days."
SCALE = [("names no cause at all", 0), ("names one of the causes", 0.5), ("names all of the causes", 1)]


def one(requirement=FINE, **fields):
    return [{"name": "a", "requirement": requirement, **fields}]


def scaled(*options, requirement="How many causes are named?", **fields):
    listed = [{"label": label, "value": value} for label, value in options]
    return one(requirement, options=listed, **fields)


def several(*criteria):
    """Criteria by requirement and weight, none of which says what another says."""
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
    return [finding.code for finding in rubric_findings(Rubric.load(value))]


def test_every_code_is_shown():
    assert SHOWN.keys() == NEAR.keys() == CODES.keys()


@pytest.mark.parametrize("code", CODES)
def test_a_flaw_is_found(code):
    assert code in codes(SHOWN[code])


@pytest.mark.parametrize("code", CODES)
def test_what_only_looks_like_a_flaw_is_none(code):
    assert code not in codes(NEAR[code])


@pytest.mark.parametrize(
    "code", sorted(CODES.keys() - {"bare-label", "bare-number", "long-requirement", "many-levels", "uneven-scale"})
)
def test_what_is_fine_is_silent(code):
    assert codes(NEAR[code]) == []


@pytest.mark.parametrize("code", sorted(CODES.keys() - {"bare-label", "duplicate", "long-requirement"}))
def test_a_flaw_is_told_once(code):
    assert codes(SHOWN[code]) == [code]


def test_a_finding_says_where_it_is_and_what_to_do(tmp_path):
    path = tmp_path / "rubric.yaml"
    path.write_text("sections:\n- criteria:\n  - name: tone\n    weight: 3\n    requirement: The tone is nice.\n")
    document = read_document(path, error=RubricError)
    (finding,) = rubric_findings(Rubric.load(path), document=document)
    assert (finding.where, finding.path) == (f"{path}:5", "sections[0].criteria[0].requirement")
    assert (finding.code, finding.severity) == ("vague-word", "warning")
    assert finding.suggestion == "Instead, say what a judge must see in the text for it to count."


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("- requirement: Is nice.\n- {name: b, requirement: Has a title.}\n", [1, 1]),
        ("rubric:\n  criteria:\n  - requirement: Has a title.\n", [3]),
        ("- criteria:\n  - requirement: Has a title.\n- requirement: Has an index.\n", [2, 3]),
    ],
)
def test_places_are_right_in_every_shape_of_rubric(tmp_path, text, lines):
    path = tmp_path / "rubric.yaml"
    path.write_text(text)
    found = rubric_findings(Rubric.load(path), document=read_document(path, error=RubricError))
    assert [int(finding.where.rpartition(":")[2]) for finding in found] == lines


def test_a_name_given_by_the_author_is_one_even_if_it_is_that_of_the_nameless(tmp_path):
    path = tmp_path / "rubric.yaml"
    path.write_text("- {name: Criterion 1, requirement: Has a title.}\n")
    assert rubric_findings(Rubric.load(path), document=read_document(path, error=RubricError)) == ()


def test_a_requirement_that_a_metric_answers_may_say_what_it_likes():
    assert codes(one("Is good and nice.", check={"metric": "contains", "args": {"text": "x"}})) == []


def test_options_that_describe_themselves_say_what_a_vague_requirement_means():
    assert codes(scaled(*SCALE, requirement="How good is the explanation?")) == []


def test_likeness_is_measured_by_whatever_is_handed_in():
    rubric = Rubric([Criterion("Has a title.", name="a"), Criterion("Quotes the law.", name="b")])

    def same(texts):
        return [[1.0] * len(texts) for _ in texts]

    (finding,) = rubric_findings(rubric, likeness=Likeness(same, 0.9, 0.9))
    assert (finding.code, finding.path) == ("overlap", "criteria[1].requirement")
    assert "`b` and `a`" in finding.message
