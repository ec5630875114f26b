"""Alignment written with plain loops over items: slow, and easy to believe."""

from __future__ import annotations

import math
from collections import Counter
from itertools import permutations

from deemster.datasets import Votes, derive
from tests.agreement.make_votes import mean

FAILED = "failed"


def rows_of(value):
    """Labelled items that did not err, in id order: labels of truth, verdicts and votes, and scores."""
    votes = Votes.parse(value)
    rows = []
    for block, facts in zip(votes.blocks, derive(votes), strict=True):
        criteria = block.rubric.criteria

        def label(code, place, criteria=criteria):
            return None if code == -1 else FAILED if code < -1 else criteria[place].labels[code]

        for row, item in enumerate(block.items.tolist()):
            final = [label(code, place) for place, code in enumerate(facts.final.codes[row])]
            if not block.labelled[row] or block.errored[row] or all(entry == FAILED for entry in final):
                continue
            rows.append(
                {
                    "id": votes.ids[item],
                    "tags": votes.tags[item],
                    "truth": [label(code, place) for place, code in enumerate(block.truth.codes[row])],
                    "final": final,
                    "votes": [[label(c, place) for c in cells] for place, cells in enumerate(block.votes.codes[row])],
                    "predicted": none(facts.score[row]),
                    "true": none(facts.true_score[row]),
                    "judges": [none(score) for score in facts.judge_scores[row]],
                }
            )
    return sorted(rows, key=lambda row: row["id"])


def none(number):
    return None if math.isnan(number) else float(number)


def scale(criterion, mode):
    """Labels of the classes, lowest first where they are in order, and what an abstention counts as."""
    options = criterion.get("options")
    if options is None:
        labels, silent = ["MET", "UNMET"], ["CANNOT_ASSESS"]
        worst = "UNMET"
    else:
        scored = [option for option in options if not option.get("na")]
        silent = [option["label"] for option in options if option.get("na")] or ["Cannot assess / not applicable"]
        worst = (max if criterion["weight"] < 0 else min)(scored, key=lambda option: option["value"])["label"]
        if criterion["scale_type"] == "ordinal":
            scored = sorted(scored, key=lambda option: option["value"])
        labels = [option["label"] for option in scored]
    if mode == "as_category":
        labels = labels + silent
    stand_in = {"exclude": None, "as_unmet": worst}
    return labels, {label: stand_in.get(mode, label) for label in silent}


def classed(entry, labels, silent):
    entry = silent.get(entry, entry)
    return labels.index(entry) if entry in labels else None


def kind_of(criterion):
    return criterion.get("scale_type", "binary")


def share(above, below):
    return above / below if below else None


def kappa(pairs, weight):
    n = len(pairs)
    seen = sum(weight(a, b) for a, b in pairs)
    chance = sum(weight(a, b) for a, _ in pairs for _, b in pairs)
    return None if not chance else 1 - n * seen / chance


def nominal(a, b):
    return float(a != b)


def quadratic(a, b):
    return float((a - b) ** 2)


def kind_kappa(kind, pairs):
    return kappa(pairs, quadratic if kind == "ordinal" else nominal)


def met_numbers(pairs):
    tp = sum(a == 0 and b == 0 for a, b in pairs)
    fn = sum(a == 0 and b != 0 for a, b in pairs)
    fp = sum(a != 0 and b == 0 for a, b in pairs)
    tn = len(pairs) - tp - fn - fp
    return {
        "precision": share(tp, tp + fp),
        "recall": share(tp, tp + fn),
        "f1": share(2 * tp, 2 * tp + fp + fn),
        "fpr": share(fp, fp + tn),
        "fnr": share(fn, fn + tp),
        "phi": share(tp * tn - fp * fn, math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
    }


def pair_numbers(pairs, size, kind):
    n = len(pairs)
    hits = sum(a == b for a, b in pairs)
    margin = Counter(a for a, _ in pairs) + Counter(b for _, b in pairs)
    pi = [margin[k] / (2 * n) for k in range(size)] if n else []
    squares = sum(p * p for p in pi)
    recalls = [share(sum(a == b == k for a, b in pairs), sum(a == k for a, _ in pairs)) for k in range(size)]
    recalls = [recall for recall in recalls if recall is not None]

    def agree(a, b):
        return 1 - ((a - b) / (size - 1)) ** 2 if kind == "ordinal" else float(a == b)

    every = sum(agree(a, b) for a in range(size) for b in range(size))
    chance = every * sum(p * (1 - p) for p in pi) / (size * (size - 1))
    return {
        "accuracy" if kind == "binary" else "exact_accuracy": share(hits, n),
        "weighted_kappa" if kind == "ordinal" else "kappa": kind_kappa(kind, pairs),
        "balanced_accuracy": mean(recalls) if len(recalls) >= 2 else None,
        "scott_pi": share(hits / n - squares, 1 - squares) if n and max(pi) < 1 else None,
        "pabak": (size * hits / n - 1) / (size - 1) if n else None,
        "gwet_ac": (sum(agree(a, b) for a, b in pairs) / n - chance) / (1 - chance) if n else None,
    }


def ordinal_numbers(pairs, values):
    n = len(pairs)
    return {
        "linear_kappa": kappa(pairs, lambda a, b: float(abs(a - b))),
        "adjacent_accuracy": share(sum(abs(a - b) <= 1 for a, b in pairs), n),
        "rmse": math.sqrt(sum((values[a] - values[b]) ** 2 for a, b in pairs) / n) if n else None,
        "mae": sum(abs(values[a] - values[b]) for a, b in pairs) / n if n else None,
        "spearman": spearman([a for a, _ in pairs], [b for _, b in pairs]),
        "kendall": kendall([a for a, _ in pairs], [b for _, b in pairs]),
    }


def panel_numbers(units, size, raters, kind):
    """Of lists of votes, one for each item."""
    several = [votes for votes in units if len(votes) >= 2]
    o = [[0.0] * size for _ in range(size)]
    for votes in several:
        for a, b in permutations(votes, 2):
            o[a][b] += 1 / (len(votes) - 1)
    margins = [sum(row) for row in o]
    n = sum(margins)

    def apart(a, b):
        if kind != "ordinal":
            return float(a != b)
        low, high = min(a, b), max(a, b)
        return (sum(margins[low : high + 1]) - (margins[low] + margins[high]) / 2) ** 2

    grid = [(a, b) for a in range(size) for b in range(size)]
    chance = sum(margins[a] * margins[b] * apart(a, b) for a, b in grid)
    values = {vote for votes in several for vote in votes}
    alpha = None
    if len(several) >= 2 and len(values) > 1:
        alpha = 1 - (n - 1) * sum(o[a][b] * apart(a, b) for a, b in grid) / chance

    def agree(a, b):
        return 1 - ((a - b) / (size - 1)) ** 2 if kind == "ordinal" else float(a == b)

    gwet = None
    if len(several) >= 2:
        shares = [sum(agree(a, b) for a, b in permutations(v, 2)) / (len(v) * (len(v) - 1)) for v in several]
        held = [votes for votes in units if votes]
        pi = [sum(votes.count(k) / len(votes) for votes in held) / len(held) for k in range(size)]
        expected = sum(agree(a, b) for a, b in grid) * sum(p * (1 - p) for p in pi) / (size * (size - 1))
        gwet = (sum(shares) / len(shares) - expected) / (1 - expected)
    complete = [votes for votes in units if len(votes) == raters]
    fleiss = None
    if len(complete) >= 2:
        totals = Counter(vote for votes in complete for vote in votes)
        p = [totals[k] / (len(complete) * raters) for k in range(size)]
        agreed = [sum(a == b for a, b in permutations(votes, 2)) / (raters * (raters - 1)) for votes in complete]
        if max(p) < 1:
            fleiss = (sum(agreed) / len(agreed) - sum(x * x for x in p)) / (1 - sum(x * x for x in p))
    return {"krippendorff_alpha": alpha, "panel_gwet_ac": gwet, "fleiss_kappa": fleiss}


def pearson(x, y):
    if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        return None
    mx, my = sum(x) / len(x), sum(y) / len(y)
    joint = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True))
    return joint / math.sqrt(sum((a - mx) ** 2 for a in x) * sum((b - my) ** 2 for b in y))


def ranks(x):
    return [sum(b < a for b in x) + (sum(b == a for b in x) + 1) / 2 for a in x]


def spearman(x, y):
    return pearson(ranks(x), ranks(y))


def sign(number):
    return (number > 0) - (number < 0)


def kendall(x, y):
    if len(x) < 3 or len(set(x)) == 1 or len(set(y)) == 1:
        return None
    both = list(permutations(range(len(x)), 2))
    excess = sum(sign(x[i] - x[j]) * sign(y[i] - y[j]) for i, j in both)
    return excess / math.sqrt(sum(x[i] != x[j] for i, j in both) * sum(y[i] != y[j] for i, j in both))


def score_numbers(x, y):
    n = len(x)
    if not n:
        names = ["rmse", "mae", "spearman", "kendall", "pearson", "concordance"]
        return {f"score_{name}": None for name in names} | {
            "bias": None,
            "bias.std_bias": None,
            "bias.effect_size": None,
        }
    # Scores that are equal as fractions are equal.
    x, y = ([round(score, 12) for score in side] for side in (x, y))
    d = [a - b for a, b in zip(x, y, strict=True)]
    bias = sum(d) / n
    deviation = math.sqrt(sum((a - bias) ** 2 for a in d) / (n - 1)) if n > 1 else None
    if deviation is not None and deviation <= 1e-12 * max(1, *map(abs, x), *map(abs, y)):
        deviation = 0.0
    mx, my = sum(x) / n, sum(y) / n
    sx, sy = (0.0 if len(set(s)) == 1 else sum((a - m) ** 2 for a in s) / n for s, m in ((x, mx), (y, my)))
    joint = sum((a - mx) * (b - my) for a, b in zip(x, y, strict=True)) / n if sx and sy else 0.0
    below = sx + sy + (mx - my) ** 2
    return {
        "score_rmse": math.sqrt(sum(a * a for a in d) / n),
        "score_mae": sum(map(abs, d)) / n,
        "score_spearman": spearman(x, y),
        "score_kendall": kendall(x, y),
        "score_pearson": pearson(x, y),
        "score_concordance": share(2 * joint, below if below > 1e-24 else 0),
        "bias": bias,
        "bias.std_bias": deviation,
        "bias.effect_size": bias / deviation if deviation else None,
    }


def judges_numbers(rows):
    """Interval alpha of the judges' scores, and their intraclass correlation (2,1)."""
    units = [[score for score in row["judges"] if score is not None] for row in rows]
    units = [unit for unit in units if len(unit) >= 2]
    values = [score for unit in units for score in unit]
    alpha = None
    if len(units) >= 2 and len(set(values)) > 1:
        seen = sum(sum((a - b) ** 2 for a, b in permutations(unit, 2)) / (len(unit) - 1) for unit in units)
        alpha = 1 - (len(values) - 1) * seen / sum((a - b) ** 2 for a in values for b in values)
    return {"score_alpha": alpha}


def numbers(rows, criteria, cannot_assess="exclude", na_mode="exclude"):
    """Every number of a result, by key: ("all", name), ("criterion", place, name), ("judge", place, name)."""
    found = {}
    every, kappas, by_kind, alphas, accuracies = [], [], {}, [], []
    raters = len(rows[0]["judges"]) if rows else 0
    own = [{"pairs": [], "binary": [], "kappas": []} for _ in range(raters)]
    binary = []
    for place, criterion in enumerate(criteria):
        kind = kind_of(criterion)
        mode = cannot_assess if kind == "binary" else na_mode
        if kind == "ordinal" and mode == "as_category":
            mode = "exclude"
        labels, silent = scale(criterion, mode)
        pairs, units = [], []
        beside = [[] for _ in range(raters)]
        for row in rows:
            truth, final = (classed(row[side][place], labels, silent) for side in ("truth", "final"))
            cast = [classed(vote, labels, silent) for vote in row["votes"][place]]
            units.append([vote for vote in cast if vote is not None])
            if truth is not None and final is not None:
                pairs.append((truth, final))
            for judge, vote in enumerate(cast):
                if truth is not None and vote is not None:
                    beside[judge].append((truth, vote))
        one = pair_numbers(pairs, len(labels), kind)
        if kind == "binary":
            one |= met_numbers(pairs)
            binary += pairs
        if kind == "ordinal":
            worth = {option["label"]: option.get("value") for option in criterion["options"]}
            one |= ordinal_numbers(pairs, [worth[label] for label in labels])
        if raters >= 2:
            one |= panel_numbers(units, len(labels), raters, kind)
            alphas.append(one["krippendorff_alpha"])
        found |= {("criterion", place, name): number for name, number in one.items()}
        every += pairs
        kappas.append(kind_kappa(kind, pairs))
        by_kind.setdefault(kind, []).append(kappas[-1])
        accuracies.append(share(sum(a == b for a, b in pairs), len(pairs)))
        for judge, theirs in enumerate(beside):
            own[judge]["pairs"] += theirs
            own[judge]["kappas"].append(kind_kappa(kind, theirs))
            if kind == "binary":
                own[judge]["binary"] += theirs
    met = met_numbers(binary)
    whole = {
        "criterion_accuracy": share(sum(a == b for a, b in every), len(every)),
        "binary_accuracy": share(sum(a == b for a, b in binary), len(binary)),
        "macro_accuracy": mean(accuracies),
        "mean_kappa": mean(kappas),
        "micro_kappa": kappa(binary, nominal),
        "criterion_phi": met["phi"],
        "mean_krippendorff_alpha": mean(alphas),
    }
    whole |= {f"criterion_{name}": met[name] for name in ("precision", "recall", "f1")}
    whole |= {f"mean_kappa_by_kind.{kind}": mean(known) for kind, known in by_kind.items()}
    scored = [(row["predicted"], row["true"]) for row in rows if None not in (row["predicted"], row["true"])]
    whole |= score_numbers([x for x, _ in scored], [t for _, t in scored])
    whole |= judges_numbers(rows) if raters >= 2 else {}
    found |= {("all", name): number for name, number in whole.items()}
    for judge, theirs in enumerate(own):
        met = met_numbers(theirs["binary"])
        one = {f"criterion_{name}": met[name] for name in ("precision", "recall", "f1")}
        one["phi"] = met["phi"]
        one["criterion_accuracy"] = share(sum(a == b for a, b in theirs["pairs"]), len(theirs["pairs"]))
        one["binary_accuracy"] = share(sum(a == b for a, b in theirs["binary"]), len(theirs["binary"]))
        one["mean_kappa"] = mean(theirs["kappas"])
        scored = [(r["judges"][judge], r["true"]) for r in rows if None not in (r["judges"][judge], r["true"])]
        one |= score_numbers([x for x, _ in scored], [t for _, t in scored])
        del one["score_concordance"]
        found |= {("judge", judge, name): number for name, number in one.items()}
    return found
