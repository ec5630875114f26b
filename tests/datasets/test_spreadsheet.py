"""Labels and verdicts are read from spreadsheets: wide or long, by column names or as the user says."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deemster as dm
from deemster.datasets import RubricDataset, read_spreadsheets
from deemster.errors import ConfigurationError, InputError
from deemster.rubrics import Rubric

pytestmark = pytest.mark.usefixtures("folder")

RUBRIC = Rubric.load(
    {
        "criteria": [
            {"name": "facts", "requirement": "It is right."},
            {
                "name": "asks-back",
                "requirement": "How far does it ask back?",
                "scale_type": "ordinal",
                "options": [{"label": "no", "value": 0}, {"label": "some", "value": 0.5}, {"label": "yes", "value": 1}],
            },
        ]
    }
)
LABELS = "id,person,facts,asks-back\nq1,ana,MET,yes\nq1,ben,MET,some\nq2,ana,UNMET,no\n"
VERDICTS = "id,judge,facts,asks-back\nq1,a,MET,yes\nq1,b,UNMET,no\nq2,a,UNMET,\nq2,b,error,no\n"


def read(labels=None, verdicts=None, **options):
    files = {}
    for kind, text in (("labels", labels), ("verdicts", verdicts)):
        if text is not None:
            files[kind] = f"{kind}.csv"
            Path(files[kind]).write_text(text, "utf-8", newline="")
    return read_spreadsheets(**files, **options)


def issues(*args, **options):
    with pytest.raises(InputError) as caught:
        read(*args, **options)
    return [f"{issue.where}: {issue.message}" for issue in caught.value.issues]


def items(votes):
    return {item["id"]: item["votes"] for item in votes.to_dict()["items"]}


def test_wide_sheets_hold_annotations_and_votes():
    data = read(LABELS, VERDICTS, rubric=RUBRIC)
    assert [(item.id, dict(item.annotations)) for item in data.labels] == [
        ("q1", {"ana": ("MET", "yes"), "ben": ("MET", "some")}),
        ("q2", {"ana": ("UNMET", "no")}),
    ]
    assert items(data.votes) == {
        "q1": {"a": ["MET", "yes"], "b": ["UNMET", "no"]},
        "q2": {"a": ["UNMET", None], "b": [{"failure": "parse"}, "no"]},
    }


def test_long_sheets_hold_the_same():
    long_labels = (
        "item;criterion;rater;label\nq1;facts;ana;MET\nq1;Asks Back;ana;yes\nq1;facts;ben;MET\nq1;asks-back;ben;some\n"
        "q2;facts;ana;UNMET\nq2;asks-back;ana;no\n"
    )
    long_verdicts = (
        "item_id,criterion,judge,verdict\nq1,facts,a,MET\nq1,asks-back,a,yes\nq1,facts,b,UNMET\nq1,asks-back,b,no\n"
        "q2,facts,a,UNMET\nq2,facts,b,error\nq2,asks-back,b,no\n"
    )
    wide, long = read(LABELS, VERDICTS, rubric=RUBRIC), read(long_labels, long_verdicts, rubric=RUBRIC)
    assert long.labels == wide.labels
    assert items(long.votes) == items(wide.votes)


def test_columns_are_found_as_the_user_says():
    labels = LABELS.replace("id,person", "Nr.,Who")
    verdicts = VERDICTS.replace("id,judge", "Nr.,Model")
    columns = {"id": "Nr.", "annotator": "who", "judge": "Model"}
    data = read(labels, verdicts, rubric=RUBRIC, columns=columns)
    assert data.labels == read(LABELS, VERDICTS, rubric=RUBRIC).labels
    assert [judge.id for judge in data.votes.judges] == ["a", "b"]


def test_one_sheet_may_hold_labels_and_verdicts(folder):
    (folder / "both.csv").write_text("id,Human,Judge\nq1,yes,no\nq2,no,no\n")
    data = read_spreadsheets(
        labels="both.csv", verdicts="both.csv", columns={"id": "id", "label": "Human", "verdict": "Judge"}
    )
    assert [item.ground_truth for item in data.labels] == [("MET",), ("UNMET",)]
    assert items(data.votes) == {"q1": {"judge": ["UNMET"]}, "q2": {"judge": ["UNMET"]}}


def test_single_criterion_needs_no_column_of_criteria():
    data = read("id,human_label\nq1,pass\nq2,fail\n", "id,verdict,latency\nq1,pass,3\nq2,fail,4\n")
    assert (data.rubric.names, data.rubric.criteria[0].kind) == (("verdict",), "binary")
    assert data.votes.metadata[0] == {"latency": "3"}


@pytest.mark.parametrize(
    ("values", "kind", "labels"),
    [
        (("yes", "No"), "binary", ("MET", "UNMET", "CANNOT_ASSESS")),
        (("1", "0", "n/a"), "binary", ("MET", "UNMET", "CANNOT_ASSESS")),
        (("TRUE", "FALSE"), "binary", ("MET", "UNMET", "CANNOT_ASSESS")),
        (("met", "met"), "binary", ("MET", "UNMET", "CANNOT_ASSESS")),
        (("passed", "failed"), "binary", ("MET", "UNMET", "CANNOT_ASSESS")),
        (("1", "5", "3"), "ordinal", ("1", "3", "5")),
        (("1,5", "2.0", "2"), "ordinal", ("1.5", "2")),
        (("warm", "curt", "Warm"), "nominal", ("warm", "curt")),
    ],
)
def test_without_a_rubric_the_values_decide(values, kind, labels):
    rows = [f'q{at},judge,"{value}"\n' for at, value in enumerate(values)]
    data = read(verdicts="id,judge,tone\n" + "".join(rows))
    (criterion,) = data.rubric.criteria
    assert (criterion.kind, criterion.labels[: len(labels)]) == (kind, labels)
    assert (criterion.weight == 0) == (kind == "nominal")


def test_many_different_numbers_are_a_range():
    rows = "".join(f"q{at};{at / 4:g}\n".replace(".", ",") for at in range(30))
    data = read(labels="id;quality\n" + rows, verdicts="id;quality\n" + rows)
    (criterion,) = data.rubric.criteria
    assert (criterion.kind, criterion.minimum, criterion.maximum) == ("numeric", 0, 7.25)
    assert (
        dm.compute_metrics(data.votes, data.labels, bootstrap=dm.agreement.BootstrapSettings(replicates=0)).score_rmse
        == 0
    )


def test_only_columns_of_both_sheets_are_criteria():
    data = read("id,person,tone,comment\nq1,ana,warm,Hm\nq2,ana,curt,Oh\n", "id,judge,tone,seconds\nq1,a,warm,3\n")
    assert data.rubric.names == ("tone",)
    assert dict(data.labels[0].metadata) == {"comment": "Hm"}


def test_item_without_any_verdict_is_kept_and_blank_lines_of_a_judge_are_none():
    data = read(verdicts="id,judge,facts\nq1,a,MET\nq2,,\nq3,b,\n", rubric=RUBRIC)
    assert items(data.votes) == {"q1": {"a": ["MET", None]}, "q2": {}, "q3": {}}
    assert [judge.id for judge in data.votes.judges] == ["a"]


def test_repeats_failed_items_and_failed_calls_are_kept_apart():
    verdicts = (
        "id,judge,error,facts,asks-back\nq1,a,,MET,yes\nq1,a,,UNMET,\nq1,b,timeout,,\n"
        "q2,,no answer,,\nq3,a,,CANNOT_ASSESS,n/a\n"
    )
    votes = read(verdicts=verdicts, rubric=RUBRIC).votes.to_dict()["items"]
    lost = {"failure": "infrastructure", "message": "timeout"}
    assert votes[0]["votes"] == {"a": [["MET", "UNMET"], "yes"], "b": [lost, lost]}
    assert votes[1]["error"] == "no answer"
    assert votes[2]["votes"] == {"a": ["CANNOT_ASSESS", "CANNOT_ASSESS"]}


def test_tags_and_metadata_are_those_on_which_all_lines_agree():
    labels = "id,person,tags,lang,when,facts\nq1,ana,x|y,de,1,MET\nq1,ben,x|y,de,2,MET\n"
    (item,) = read(labels, rubric=RUBRIC).labels
    assert (item.tags, dict(item.metadata)) == (("x", "y"), {"lang": "de"})


def test_every_wrong_cell_is_named_with_its_line():
    labels = "id,person,facts\nq1,ana,METT\n,ana,MET\nq1,,MET\nq2,ana,MET\nq2,ana,UNMET\n"
    assert issues(labels, rubric=RUBRIC) == [
        "labels.csv:2: `METT` is no verdict of `facts`. It has `MET`, `UNMET`, `CANNOT_ASSESS`. Did you mean `MET`?",
        "labels.csv:3: The id is blank.",
        "labels.csv:4: The annotator is blank.",
        "labels.csv:6: The label of `facts` is given twice, first at labels.csv:5.",
    ]


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("idd,person,facts\nq1,ana,MET\n", "labels.csv:1: There is no column of ids: it is called `id`"),
        ("id,person,fact,asks-back\nq1,ana,MET,no\n", "labels.csv:1: The criterion `facts` has no column. Is it"),
        ("id,person,colour,size\nq1,ana,MET,no\n", "labels.csv:1: No column is a criterion of the rubric, which has"),
        ("id,id,facts\nq1,ana,MET\n", "labels.csv:1: The column `id` is given twice."),
        ("id,facts\nq1,MET,no\n", "labels.csv:2: The line has 3 cells; the header has 2."),
        ("id,facts\n", "labels.csv: There is no line below the header."),
        ("id,criterion,label\nq1,factz,MET\n", "labels.csv:2: `factz` is no criterion of the rubric. Did you mean"),
        ("id,facts\nq1,MET\nq1,MET\n", "labels.csv:3: The label of `facts` is given twice, first at labels.csv:2."),
        ("id,tags,facts\nq1,x,MET\nq1,y,\n", "labels.csv:3: The tags differs"),
    ],
)  # fmt: skip
def test_bad_sheet_is_error_with_the_nearest_name(labels, message):
    assert issues(labels, rubric=RUBRIC)[0].startswith(message)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"idd": "id"}, "`idd` is nothing that a column of these files holds. Did you mean `id`?"),
        ({"judge": "id"}, "`judge` is nothing that a column of these files holds."),
        ({"id": ["a", "b"]}, "The column of `id` is given twice"),
    ],
)
def test_bad_columns_are_error(columns, message):
    with pytest.raises(ConfigurationError, match=message):
        read(LABELS, rubric=RUBRIC, columns=columns)
    assert "Did you mean `person`?" in issues(LABELS, rubric=RUBRIC, columns={"annotator": "persn"})[0]


def test_values_that_fit_no_criterion_ask_for_a_rubric():
    text = "".join(f"q{at},w{at}\n" for at in range(30))
    assert "`--columns metadata=quality`" in issues(verdicts="id,quality\n" + text)[0]
    assert "All verdicts on `tone` are `warm`" in issues(verdicts="id,tone\nq1,warm\n")[0]
    assert "No criterion stands both here and in" in issues("id,criterion,label\nq,x,1\n", "id,tone\nq,warm\n")[0]


def test_workbook_gives_what_csv_gives(folder):
    import openpyxl

    for kind, text in (("labels", LABELS), ("verdicts", VERDICTS)):
        book = openpyxl.Workbook()
        for row in csv.reader(io.StringIO(text)):
            book.active.append(row)
        book.save(f"{kind}.xlsx")
    found = read_spreadsheets(labels="labels.xlsx", verdicts="verdicts.xlsx", rubric=RUBRIC)
    wanted = read(LABELS, VERDICTS, rubric=RUBRIC)
    assert (found.labels, items(found.votes)) == (wanted.labels, items(wanted.votes))


def test_rubric_dataset_is_read_from_a_sheet(folder):
    (folder / "items.csv").write_text(
        "\ufeffid;question;answer;reference;author;facts\r\nq1;Why?;Because.;So.;w1;ja\r\nq2;;No.;;w2;\r\n", "utf-8"
    )
    with pytest.raises(dm.errors.DatasetError, match=r"items\.csv:2: sample `q1`: `ja` is no verdict of `facts`"):
        RubricDataset.load("items.csv", rubric=RUBRIC)
    (folder / "items.csv").write_text((folder / "items.csv").read_text("utf-8").replace(";ja", ";yes"), "utf-8")
    first, second = RubricDataset.load("items.csv", rubric=RUBRIC)
    assert (first.submission, first.prompt, first.reference_submission) == ("Because.", "Why?", "So.")
    assert (first.ground_truth, dict(first.metadata)) == (("MET", None), {"author": "w1"})
    assert (second.submission, second.prompt, second.ground_truth) == ("No.", None, None)
    with pytest.raises(dm.errors.DatasetError, match="A spreadsheet has no rubric"):
        RubricDataset.load("items.csv")
    (folder / "items.csv").write_text("id,txt\nq1,Because.\n")
    with pytest.raises(dm.errors.DatasetError, match=r"no column of submissions.* Is it `txt`\?"):
        RubricDataset.load("items.csv", rubric=RUBRIC)
    assert len(RubricDataset.load("items.csv", rubric=RUBRIC, columns={"submission": "txt"})) == 1


WORDS = st.sampled_from(["MET", "UNMET", "CANNOT_ASSESS", "yes", "no", "1", "0", ""])


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("pqrs"), st.sampled_from("ab")),
        st.tuples(WORDS, WORDS, WORDS),
        min_size=1,
    ).filter(lambda table: any(any(cells) for cells in table.values()))
)
def test_wide_and_long_form_hold_the_same_votes(tmp_path_factory, table):
    folder = tmp_path_factory.mktemp("forms")
    wide = ["id,judge,x,y,z", *(f"{item},{judge},{','.join(cells)}" for (item, judge), cells in table.items())]
    long = ["criterion;verdict;judge;id"]
    for (item, judge), cells in table.items():
        long += [f"{name};{cell};{judge};{item}" for name, cell in zip("xyz", cells, strict=True)]
    (folder / "wide.csv").write_text("\n".join(wide))
    (folder / "long.csv").write_text("\n".join(long))
    rubric = Rubric.load([{"name": name, "requirement": name} for name in "xyz"])
    votes = [read_spreadsheets(verdicts=folder / f"{form}.csv", rubric=rubric).votes for form in ("wide", "long")]
    assert items(votes[0]) == items(votes[1])
