"""The deliberate differences of the specification: an input, and what each side makes of it."""

from __future__ import annotations

from typing import Any, NamedTuple


def binary(name: str = "met", **fields: Any) -> dict:
    return {"name": name, "requirement": f"{name}?", "weight": 1, **fields}


def options(*labelled: tuple[str, float | None], name: str = "depth", scale: str = "ordinal") -> dict:
    """A multi-choice criterion; a value of None makes an NA option."""
    made = [
        {"label": label, "na": True} if value is None else {"label": label, "value": value} for label, value in labelled
    ]
    return {"name": name, "requirement": f"{name}?", "weight": 1, "options": made, "scale_type": scale}


def votes(criteria: list[dict], truth: list[list], *judges: list[list], **grading: Any) -> dict:
    """A votes file; truth and each judge are items by criteria."""
    names = "abc"[: len(judges)]
    return {
        "schema_version": "deemster.votes.v1",
        "rubric": {"criteria": criteria},
        "judges": [{"id": name} for name in names],
        "grading": grading,
        "items": [
            {
                "id": f"i{place}",
                "ground_truth": entries,
                "votes": {name: judge[place] for name, judge in zip(names, judges, strict=True)},
            }
            for place, entries in enumerate(truth)
        ],
    }


def column(text: str, **words: str) -> list[list[str]]:
    """Items of one criterion from words such as `M U C` or option labels."""
    told = {"M": "MET", "U": "UNMET", "C": "CANNOT_ASSESS", **words}
    return [[told.get(word, word)] for word in text.split()]


def rows(text: str) -> list[list[str]]:
    """Items of several binary criteria, such as `MC MC UM`."""
    told = {"M": "MET", "U": "UNMET", "C": "CANNOT_ASSESS"}
    return [[told[letter] for letter in word] for word in text.split()]


def mixed(truth: str, final: str) -> dict:
    """Binary items under two rubrics."""
    made = votes([binary()], column(truth), column(final))
    rubric = made.pop("rubric")
    other = {"criteria": [binary("other")]}
    items = [item | {"rubric": "one" if place % 2 else "two"} for place, item in enumerate(made["items"])]
    return made | {"rubrics": {"one": rubric, "two": other}, "items": items}


class Row(NamedTuple):
    """An input, the arguments, and the fields of both results by dotted path."""

    name: str
    votes: dict
    call: dict
    theirs: dict[str, Any]
    ours: dict[str, Any]


FIVE = tuple((str(place), place / 4) for place in range(5))
THREE = (("L0", 0.0), ("L1", 0.5), ("L2", 1.0), ("NA", None))
NA_BESIDE = (("x", 0.0), ("y", 1.0), ("NA", None))
# Values that neither rise nor fall in the order in which people rank the options.
UNEVEN = (("lo", 0.5), ("mid", 0.0), ("hi", 1.0))
TENTHS = tuple((f"L{place}", place / 10) for place in range(11))
HALVES = options(*TENTHS)

ROWS = (
    Row(
        "accuracy pools all kinds",
        votes(
            [binary(), options(*FIVE)],
            [["MET", "0"], ["UNMET", "1"], ["MET", "2"], ["MET", "3"]],
            [["MET", "1"], ["UNMET", "2"], ["MET", "3"], ["MET", "4"]],
        ),
        {},
        {"criterion_accuracy": 1.0},
        {"criterion_accuracy": 0.5, "binary_accuracy": 1.0},
    ),
    Row(
        "excluded NA is excluded",
        votes([options(*THREE)], column("NA NA L0 L2"), column("NA NA L1 L1")),
        {},
        {"criterion_accuracy": 0.5},
        {"criterion_accuracy": 0.0, "n_samples": 2},
    ),
    Row(
        "kappa has the full scale",
        votes([options(*FIVE)], column(" ".join("000111444")), column(" ".join("001110441"))),
        {},
        {"per_criterion.0.weighted_kappa": 8 / 11},
        {"per_criterion.0.weighted_kappa": 36 / 47},
    ),
    Row(
        "adjacent is the next on the scale",
        votes(
            [options(("low", 0.0), ("NA", None), ("high", 1.0))],
            column("low low high high"),
            column("low high high low"),
        ),
        {},
        {"per_criterion.0.adjacent_accuracy": 0.5},
        {"per_criterion.0.adjacent_accuracy": 1.0},
    ),
    Row(
        "NA is missing for alpha",
        votes([options(*THREE)], *[column("L0 L1 L2 L0")] * 3, column("L0 NA L2 NA")),
        {},
        {"per_criterion.0.krippendorff_alpha": 0.3142628205128205},
        {"per_criterion.0.krippendorff_alpha": 1.0},
    ),
    Row(
        "a vote of NA is no category of an ordinal criterion",
        votes([options(*THREE)], column("L0 L1 L2 L0"), column("L0 NA L2 L0"), column("L0 L1 L2 NA")),
        {},
        {"per_criterion.0.fleiss_kappa": 7 / 23, "per_criterion.0.n_options": 4},
        {"per_criterion.0.fleiss_kappa": 1.0, "per_criterion.0.n_options": 3},
    ),
    Row(
        "a vote of NA is no category of a nominal criterion",
        votes([options(*NA_BESIDE, scale="nominal")], column("x x y x"), column("x NA y x"), column("x x y NA")),
        {},
        {
            "per_criterion.0.krippendorff_alpha": 0.3,
            "per_criterion.0.fleiss_kappa": 0.2,
            "per_criterion.0.n_options": 3,
        },
        {
            "per_criterion.0.krippendorff_alpha": 1.0,
            "per_criterion.0.fleiss_kappa": 1.0,
            "per_criterion.0.n_options": 2,
        },
    ),
    Row(
        "ranks are places on the scale",
        votes(
            [{**options(*UNEVEN), "order": ["lo", "mid", "hi"]}],
            column("lo mid hi mid lo"),
            column("lo hi mid mid lo"),
        ),
        {},
        {"per_criterion.0.spearman.coefficient": -13 / 36, "per_criterion.0.kendall.coefficient": -3 / 8},
        {"per_criterion.0.spearman.coefficient": 0.75, "per_criterion.0.kendall.coefficient": 0.625},
    ),
    Row(
        "0/0 is undefined",
        votes([binary()], column("U U U"), column("U U U")),
        {},
        {"criterion_precision": 0.0, "criterion_recall": 0.0, "criterion_f1": 0.0},
        {"criterion_precision": None, "criterion_recall": None, "criterion_f1": None},
    ),
    Row(
        "no test of a shift",
        votes([HALVES], column("L5 L6 L7"), column("L6 L7 L8")),
        {},
        {"bias.is_significant": True},
        {"bias.is_significant": False, "bias.p_value": None, "bias.effect_size": None, "bias.ci": None},
    ),
    Row(
        "no test of equal scores",
        votes([HALVES], column("L5 L5"), column("L5 L5")),
        {},
        {"bias.p_value": "NaN", "bias.ci.lower": 0.0, "bias.ci.upper": 0.0},
        {"bias.p_value": None, "bias.ci": None, "bias.mean_bias": 0.0, "bias.std_bias": 0.0},
    ),
    Row(
        "truth is scored with the same abstentions",
        votes([binary("one"), binary("two")], *[rows("MC MC UM")] * 2, abstention="zero"),
        {},
        {"score_rmse": (1 / 6) ** 0.5, "bias.mean_bias": -1 / 3},
        {"score_rmse": 0.0, "bias.mean_bias": 0.0},
    ),
    Row(
        "truth is scored with the same normalisation",
        votes([binary("one"), binary("two")], *[rows("MM MU UU")] * 2, normalize=False),
        {},
        {"bias.mean_bias": 0.5},
        {"bias.mean_bias": 0.0},
    ),
    *(
        Row(
            f"mixed rubrics honour {mode}",
            mixed("M C U M", "M M U C"),
            {"cannot_assess": mode},
            {"criterion_accuracy": 2 / 3},
            {"criterion_accuracy": accuracy, "n_samples": count},
        )
        for mode, accuracy, count in (("exclude", 1.0, 2), ("as_unmet", 0.5, 4), ("as_category", 0.5, 4))
    ),
)

# One of three labels fits no option.
WRONG = votes([options(*THREE)], column("L0 L9 L2"), column("L0 L1 L2"))
# Nothing but a weight of zero is left to score.
WEIGHTLESS = votes([binary("counts"), binary("told", weight=0)], rows("MM MU UM"), rows("CM MU UM"))
