"""`deemster agreement`, and `deemster check` for the files it reads and writes."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest

from deemster.agreement import MetricsResult
from tests.cli.workspace import called

RUBRIC = {
    "name": "support",
    "version": "2",
    "criteria": [
        {"name": "facts", "weight": 10, "requirement": "Every claim is supported by the context."},
        {"name": "padding", "weight": -4, "requirement": "The answer repeats itself."},
        {
            "name": "depth",
            "weight": 6,
            "requirement": "How deep is the answer?",
            "scale_type": "ordinal",
            "options": [{"label": "poor", "value": 0}, {"label": "fair", "value": 0.5}, {"label": "good", "value": 1}],
        },
    ],
}
TRUTH = {
    "q1": ["MET", "UNMET", "good"],
    "q2": ["UNMET", "MET", "fair"],
    "q3": ["MET", "MET", "fair"],
    "q4": ["UNMET", "UNMET", "poor"],
}
SAID = {
    "q1": {"a": ["MET", "UNMET", "good"], "b": ["MET", "MET", "fair"]},
    "q2": {"a": ["UNMET", "MET", "fair"], "b": ["MET", "CANNOT_ASSESS", "CANNOT_ASSESS"]},
    "q3": {"a": ["MET", "UNMET", "poor"], "b": ["MET", "MET", "fair"]},
    "q4": {"a": ["UNMET", "UNMET", "fair"], "b": ["UNMET", "UNMET", "poor"]},
}


def votes(*, labelled=True):
    items = [
        {"id": name, "tags": ["even" if place % 2 else "odd"], "metadata": {"author": f"w{place // 2}"}, "votes": said}
        | ({"ground_truth": TRUTH[name]} if labelled else {})
        for place, (name, said) in enumerate(copy.deepcopy(SAID).items())
    ]
    head = {"schema_version": "deemster.votes.v1", "rubric": RUBRIC, "judges": [{"id": "a"}, {"id": "b"}]}
    return head | {"items": items}


def labels():
    items = [{"id": name, "submission": "text", "ground_truth": truth} for name, truth in TRUTH.items()]
    return {"schema_version": "deemster.rubric_dataset.v1", "name": "essays", "prompt": "Write.", "rubric": RUBRIC} | {
        "items": items
    }


@pytest.fixture
def folder(folder):
    files = {"votes.json": votes(), "bare.json": votes(labelled=False), "labels.json": labels(), "rubric.json": RUBRIC}
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=1), encoding="utf-8")
    return folder


def aligned(*argv):
    result = called("agreement", *argv)
    assert result.exit_code == 0, result.stderr
    return result


def test_terminal_shows_the_answer_first(folder):
    shown = aligned("votes.json").stdout
    assert shown.startswith("Judge agreement\nCan this judge be trusted? ")
    assert "The numbers rest on " in shown
    assert "12 pairs" in shown


def test_json_leaves_standard_output_parseable_and_warnings_go_to_standard_error(folder):
    result = aligned("votes.json", "--to", "-", "--per-judge")
    value = json.loads(result.stdout)
    assert value["schema_version"] == "deemster.alignment.v1"
    assert sorted(value["per_judge"]) == ["a", "b"]
    assert [f"warning: {warning}" for warning in value["warnings"]] == [
        line for line in result.stderr.splitlines() if line.startswith("warning: ")
    ]


METHODS = ("smoothed", "bca", "percentile")


@pytest.mark.parametrize("flags", [(), *(("--set", f"bootstrap={method}") for method in METHODS)])
@pytest.mark.parametrize("place", ["before", "after"])
def test_bootstrap_setting_names_the_method_and_is_smoothed_without(folder, flags, place):
    words = [*flags, "--set", "n_bootstrap=20", "--set", "seed=7"]
    words = [*words, "votes.json"] if place == "before" else ["votes.json", *words]
    value = json.loads(aligned(*words, "--to", "-").stdout)
    assert value["bootstrap"]["method"] == (flags[1].partition("=")[2] if flags else "smoothed")
    assert (value["bootstrap"]["n_bootstrap"], value["bootstrap"]["seed"]) == (20, 7)
    assert value["intervals"]["mean_kappa"]["n_bootstrap"] <= 20


def test_intervals_are_computed_without_being_asked_for(folder):
    value = json.loads(aligned("votes.json", "--to", "-").stdout)
    assert (value["bootstrap"]["n_bootstrap"], value["bootstrap"]["seed"]) == (1000, 0)
    assert value["intervals"]["mean_kappa"]["ci"]["method"] == "smoothed"
    assert "without an interval" not in aligned("votes.json").stdout


def test_same_seed_gives_the_same_bytes(folder):
    words = ("votes.json", "--set", "seed=3", "--per-judge", "--set", "per_slice=true", "--to", "a.md", "--to")
    aligned(*words, "first.json")
    first = (folder / "a.md").read_bytes()
    aligned(*words, "second.json")
    assert (folder / "first.json").read_bytes() == (folder / "second.json").read_bytes()
    assert (folder / "a.md").read_bytes() == first
    assert first.startswith(b"# Judge agreement\n")
    aligned(*words, "third.json", "--set", "seed=4")
    assert (folder / "first.json").read_bytes() != (folder / "third.json").read_bytes()


def test_without_a_seed_the_same_votes_give_the_same_bytes(folder):
    assert aligned("votes.json", "--to", "-").stdout == aligned("votes.json", "--to", "-", "--set", "seed=0").stdout


def test_html_has_the_answer_first_and_every_pair_of_judges(folder):
    assert called("agreement", "votes.json", "--to", "a.html").exit_code == 0
    page = (folder / "a.html").read_text(encoding="utf-8")
    assert '<p class="verdict">Can this judge be trusted? ' in page.partition("<main>")[0]
    assert "Confusion matrices" in page
    assert "<code>a and b</code>" in page
    alone = called("agreement", "votes.json", "--to", "html:-", "--judge", "a")
    assert alone.stdout.startswith("<!doctype html>")
    assert "Judge against judge" not in alone.stdout


def test_labels_may_come_from_a_rubric_dataset(folder):
    inside = json.loads(aligned("votes.json", "--to", "-").stdout)
    outside = json.loads(aligned("bare.json", "--labels", "labels.json", "--to", "-").stdout)
    assert inside == outside


def test_modes_cluster_and_slices_reach_the_result(folder):
    flags = (
        "--set",
        "cannot_assess=as_unmet",
        "--set",
        "na_mode=as_unmet",
        "--set",
        "cluster=author",
        "--set",
        "per_slice=true",
    )
    value = json.loads(aligned("votes.json", *flags, "--set", "n_bootstrap=10", "--to", "-").stdout)
    assert (value["cannot_assess_mode"], value["na_mode"]) == ("as_unmet", "as_unmet")
    assert [part["tag"] for part in value["slices"]] == ["even", "odd"]
    assert "author" in value["bootstrap"]["unit"] or "cluster" in value["bootstrap"]["unit"]


@pytest.mark.parametrize(
    ("flags", "there", "shown"),
    [
        ((), True, (1, 0)),
        ((), False, (1, 1)),
        (("--full",), True, (1, 0)),
        (("--to", "-"), True, (1, 1)),
        (("--to", "md:-"), True, (1, 1)),
    ],
)
def test_warnings_are_not_repeated_on_shared_terminal(folder, monkeypatch, flags, there, shown):
    monkeypatch.setattr("deemster.cli.agreement._shares_terminal", lambda: there)
    (folder / "votes.json").write_text(json.dumps(votes() | {"items": votes()["items"][:1]}), encoding="utf-8")
    result = aligned("votes.json", *flags)
    assert (result.stdout.count("one-item: "), result.stderr.count("one-item: ")) == shown


def test_streams_to_same_file_are_detected(folder):
    program = "import sys; from deemster.cli.agreement import _shares_terminal; print(_shares_terminal())"
    one = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    two = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (one.stdout.strip(), two.stdout.strip()) == (b"True", b"False")


def test_chosen_judges_are_the_panel(folder):
    alone = votes() | {"judges": [{"id": "b"}]}
    for item in alone["items"]:
        item["votes"] = {"b": item["votes"]["b"]}
    recorded = votes()
    recorded["items"][0] |= {"final": ["UNMET", "UNMET", "poor"], "score": 0.5}
    for name, value in (("alone.json", alone), ("votes.json", recorded)):
        (folder / name).write_text(json.dumps(value), encoding="utf-8")
    flags = ("--per-judge", "--set", "n_bootstrap=20", "--set", "seed=1", "--to", "-")
    chosen = json.loads(aligned("votes.json", "--judge", "b", *flags).stdout)
    assert chosen["warnings"].pop(0) == (
        "recorded-dropped: what was recorded on 1 item is the whole panel's; it is derived from the votes of the "
        "chosen judges."
    )
    assert chosen == json.loads(aligned("alone.json", *flags).stdout)
    both = json.loads(aligned("votes.json", "--judge", "b", "--judge", "a", *flags).stdout)
    assert both == json.loads(aligned("votes.json", *flags).stdout)


def test_single_judge_report_does_not_say_panel(folder):
    people = votes()
    for item in people["items"]:
        item["annotations"] = {"ann": item.pop("ground_truth"), "bob": TRUTH["q1"]}
    (folder / "votes.json").write_text(json.dumps(people), encoding="utf-8")
    assert " panel " in aligned("votes.json").stdout
    shown = aligned("votes.json", "--judge", "b", "--full").stdout
    assert "panel" not in shown
    assert "criteria (2 binary, 1 ordinal), 1 judge." in shown


@pytest.mark.parametrize(
    ("kappa", "fours", "answer", "codes"),
    [
        (1.0, 12, "yes", (0, 0)),
        (1.0, 6, "with care", (1, 0)),
        (1.0, 1, "not yet", (1, 1)),
        (0.0, 12, "not yet", (1, 1)),
        (None, 12, None, (1, 1)),
    ],
)
def test_verdict_is_in_json_and_require_sets_exit_code(folder, kappa, fours, answer, codes):
    words = {1.0: ["MET", "UNMET", "MET", "UNMET"], 0.0: ["MET", "MET", "UNMET", "UNMET"], None: ["MET"] * 4}[kappa]
    truth = ["MET"] * 4 if kappa is None else ["MET", "UNMET", "MET", "UNMET"]
    cells = zip(words * fours, truth * fours, strict=True)
    value = {"schema_version": "deemster.votes.v1", "rubric": {"criteria": RUBRIC["criteria"][:1]}} | {
        "judges": [{"id": "a"}],
        "items": [
            {"id": f"q{n}", "votes": {"a": [said]}, "ground_truth": [true]} for n, (said, true) in enumerate(cells)
        ],
    }
    (folder / "votes.json").write_text(json.dumps(value), encoding="utf-8")
    result = json.loads(aligned("votes.json", "--to", "-").stdout)
    found = result["verdict"]
    floor = None if kappa is None else result["intervals"]["mean_kappa"]["ci"]["lower"]
    assert (found["answer"], found["floor"]) == (answer, floor)
    assert floor is None or floor < kappa
    assert all(reason.partition(": ")[2] for reason in found["reasons"])
    required = [called("agreement", "votes.json", "--require", least) for least in ("yes", "with-care")]
    assert tuple(result.exit_code for result in required) == codes
    refused = f"required is the answer `yes`; it is `{answer or 'none'}`: "
    assert (refused in required[0].stderr) == (answer != "yes")
    assert required[0].stdout.startswith("Judge agreement\n")


def test_full_form_has_the_votes_of_each_judge(folder):
    shown = aligned("votes.json", "--per-judge", "--full").stdout
    assert shown.count("Judge agreement") == 1
    assert "\nBinary votes of each judge\n" in shown


def test_written_result_is_read_back(folder):
    aligned("votes.json", "--to", "result.json")
    assert MetricsResult.from_file("result.json").n_items == 4


@pytest.mark.parametrize(
    ("argv", "part"),
    [
        (("bare.json",), "ground truth"),
        (("none.json",), "There is no such file."),
        (("votes.json", "--labels", "none.json"), "There is no such file."),
        (
            ("votes.json", "--set", "bootstrap=bootstrap"),
            "bootstrap must be one of `bca`, `percentile`, `smoothed`, not `bootstrap`.",
        ),
        (("votes.json", "--set", "confidence=2"), "confidence must be a number above 0 and below 1, not 2."),
        (("votes.json", "--set", "confidence=nan"), "confidence must be a number"),
        (
            ("votes.json", "--set", "na_mode=as_category"),
            "error: `na_mode='as_category'` does not fit the ordinal criterion `depth`",
        ),
        (
            ("votes.json", "--set", "cluster=writer"),
            "error: No item's metadata has `writer` to cluster by. Known: `author`.",
        ),
        (("votes.json", "--set", "cluster=autor"), "to cluster by. Did you mean `author`?"),
        (("votes.json", "--judge", "bb"), "error: There is no judge 'bb' among the votes."),
        (("labels.csv",), "labels.csv: There is no such file."),
        (("rubric.yaml",), "deemster agreement VERDICTS.csv --labels LABELS.csv"),
        (("rubric.json",), "This is no votes file: there are no `judges`. A votes file is "),
        (("labels.json",), "This is no votes file: there are no `judges`. A votes file is "),
        (("votes.json", "--to", "json:nowhere/"), "nowhere/: This is a folder; a report is a file."),
        (("votes.json", "--to", "votes.json/place.json"), "votes.json/place.json: The report cannot be written"),
        (
            ("votes.json", "--to", "./votes.json"),
            "./votes.json: The result would overwrite the file that it is made from.",
        ),
        (("votes.json", "--to", "-", "--to", "md:-"), "Only one report can go to standard output."),
        (("votes.json", "--set", "epsilom=0.1"), "`epsilom` is no key of the settings of an agreement. Did you mean"),
        (("votes.json", "--set", "group=7"), "group must be text, not a number."),
        (("votes.json", "--set", "seed=-4"), "seed must be a whole number of at least 0, not -4."),
        (("votes.json", "--set", "n_bootstrap=0"), "n_bootstrap must be a whole number of at least 1, not 0."),
    ],
)
def test_bad_input_is_one_message_and_exit_code_2(folder, argv, part):
    result = called("agreement", *argv)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr
    assert "Traceback" not in result.stderr
    assert not (folder / "nowhere").exists()


def test_every_unknown_label_is_listed_with_its_line(folder):
    bad = votes()
    bad["items"][0]["ground_truth"] = ["MET", "UNMET", "goood"]
    bad["items"][2]["votes"]["a"][0] = "MAYBE"
    (folder / "votes.json").write_text(json.dumps(bad, indent=1), encoding="utf-8")
    result = called("agreement", "votes.json")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 2
    assert all("votes.json:" in line for line in result.stderr.splitlines())


@pytest.mark.parametrize(
    ("file", "start"),
    [
        ("votes.json", "votes.json: votes, 4 items, 2 judges, 4 labelled"),
        ("labels.json", "labels.json: rubric dataset `essays`, 4 items, 4 labelled; fingerprint "),
        ("rubric.json", "rubric.json: rubric `support`, 3 criteria"),
        ("criteria.json", "criteria.json: rubric, 3 criteria"),
        ("votes.jsonl", "votes.jsonl: votes, 4 items, 2 judges, 4 labelled"),
        ("labels.jsonl", "labels.jsonl: rubric dataset `essays`, 4 items, 4 labelled; fingerprint "),
    ],
)
def test_validate_reports_kind_of_file(folder, file, start):
    (folder / "criteria.json").write_text(json.dumps(RUBRIC["criteria"]), encoding="utf-8")
    for name, value in (("votes", votes()), ("labels", labels())):
        items = value.pop("items")
        lines = "".join(f"{json.dumps(line)}\n" for line in (value, *items))
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    result = called("check", file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(start)


@pytest.mark.parametrize(
    ("name", "key", "part"),
    [
        ("rubric.json", "criterions", "`criterions`"),
        ("labels.json", "promt", "`promt`"),
        ("votes.json", "judgs", "`judgs`"),
    ],
)
def test_validate_refuses_unknown_keys(folder, name, key, part):
    value = json.loads((folder / name).read_text()) | {key: 1}
    (folder / name).write_text(json.dumps(value), encoding="utf-8")
    result = called("check", name)
    assert (result.exit_code, result.stdout) == (2, "")
    assert part in result.stderr


@pytest.mark.parametrize(
    ("header", "row", "said"),
    [
        ({"schema_version": "deemster.rubric_dataset.v1", "rubric": RUBRIC}, {"submision": "x"}, "`submission`?"),
        ({"rubric": RUBRIC}, {"submision": "x"}, "`submission`?"),
        ({"rubric": RUBRIC, "judges": [{"id": "a"}]}, {"id": "q1", "votes": {}}, "write `deemster.votes.v1`"),
        ({"id": "deemster.votes.v1", "input": "votes.v1"}, {"id": "2", "imput": "x"}, "`input`?"),
    ],
)
def test_validate_detects_jsonl_by_header(folder, header, row, said):
    (folder / "lines.jsonl").write_text(f"{json.dumps(header)}\n{json.dumps(row)}\n", encoding="utf-8")
    result = called("check", "lines.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert said in result.stderr


def test_validate_treats_list_with_misspelt_key_as_rubric(folder):
    (folder / "criteria.yaml").write_text("- requirment: It is right.\n", encoding="utf-8")
    result = called("check", "criteria.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "`requirment` is no key of a criterion. Did you mean `requirement`?" in result.stderr.replace("[0].", "")


def test_validate_accepts_alignment_result(folder):
    aligned("votes.json", "--to", "result.json")
    assert called("check", "result.json").stdout == "result.json: result of agreement, 4 items, 3 criteria, 12 pairs\n"


def test_position_bias_of_swapped_pairs_is_shown(folder):
    (folder / "pairs.json").write_text(json.dumps(votes()))
    done = called("agreement", "pairs.json", "--set", "pair=author")
    assert done.exit_code == 0
    assert "Does the place decide?" in done.output
    assert "Does the place decide?" not in called("agreement", "pairs.json").output
    refused = called("agreement", "pairs.json", "--set", "pair=autor")
    assert refused.exit_code == 2
    assert "Did you mean `author`?" in refused.output


def test_alternative_annotator_test_is_in_report_and_json(folder):
    value = votes()
    rows = value.pop("items")
    value["items"] = [
        row | {"id": f"{row['id']}-{turn}", "annotations": dict.fromkeys(("p", "q", "r"), TRUTH[row["id"]])}
        for turn in range(10)
        for row in rows
    ]
    (folder / "many.json").write_text(json.dumps(value))
    done = called("agreement", "many.json", "--set", "epsilon=0.1", "--full", "--to", "many-result.json")
    assert done.exit_code == 0
    assert "May the judge replace a person?" in done.output
    tests = json.loads((folder / "many-result.json").read_text())["human"]["annotator_tests"]
    assert (tests["facts"]["epsilon"], tests["facts"]["n"]) == (0.1, 3)


def test_short_form_is_printed_and_all_tables_with_full_while_files_have_all(folder):
    short = called("agreement", "votes.json", "--to", "short.md").stdout
    full = called("agreement", "votes.json", "--full", "--to", "full.md").stdout
    assert "What to do next" in short
    assert "All tables: --full. Every number: --to FILE.json." in short
    assert "How to read this" not in short
    assert "How to read this" in full
    assert len(short) < len(full) / 2
    assert (folder / "short.md").read_bytes() == (folder / "full.md").read_bytes()


def test_tables_that_flags_ask_for_are_part_of_the_short_form(folder):
    assert "\nJudges\n" in called("agreement", "votes.json", "--per-judge").stdout
    assert "\nJudges\n" not in called("agreement", "votes.json").stdout
