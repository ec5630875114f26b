"""Rubrics that many tests use, and strategies that draw others."""

from __future__ import annotations

from hypothesis import strategies as st

from deemster.rubrics import Check, Criterion, Option, Rubric, Section

FACTS = Criterion("Every claim is supported.", 10, "facts")
FLUFF = Criterion("The answer repeats itself.", -4, "fluff")
DEPTH_OPTIONS = (Option("poor", 0), Option("fair", 0.5), Option("good", 1), Option("n-a", na=True))
DEPTH = Criterion("How deep is it?", 6, "depth", DEPTH_OPTIONS)
TONE_OPTIONS = (Option("curt", 0.2), Option("warm", 1), Option("cold", 0))
TONE = Criterion("How does it sound?", 2, "tone", TONE_OPTIONS, "nominal")
EXAMPLE = Rubric((FACTS, FLUFF, DEPTH, TONE))

WEIGHTS = st.sampled_from([-7.5, -3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 10.0])
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
_RULES = {
    "binary": ["majority", "weighted", "unanimous", "any"],
    "ordinal": ["mean", "median", "weighted_mean", "mode", "min", "max"],
    "nominal": ["mode", "weighted_mode", "unanimous"],
}


@st.composite
def criteria(draw: st.DrawFn, *, hostile: bool = False, kind: str | None = None) -> Criterion:
    """A criterion of any kind; hostile ones have texts that files find hard to hold."""
    kind = kind or draw(st.sampled_from(["binary", "ordinal", "nominal"]))
    weights = st.floats(-1e300, 1e300) if hostile else WEIGHTS
    fields: dict[str, object] = {"weight": draw(weights), "fatal": draw(st.booleans())}
    fields["aggregation"] = draw(st.sampled_from([None, *_RULES[kind]]))
    requirement = draw(_TEXT) if hostile else "It is good."
    if hostile and kind != "nominal" and draw(st.booleans()):
        values = st.recursive(st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-1, 1) | _TEXT, st.lists)
        args = draw(st.dictionaries(_TEXT, values, max_size=3))
        fields["check"] = Check(draw(_TEXT), args, draw(st.sampled_from([1.0, 0.5, 0.0, 1 / 3])))
    if kind == "binary":
        return Criterion(requirement, **fields)
    size = draw(st.integers(2, 4))
    scale = [0.0, 0.1, 0.25, 0.3, 0.5, 2 / 3, 0.9, 1.0]
    if kind == "nominal" or draw(st.booleans()):
        value = st.floats(0, 1) if hostile else st.sampled_from(scale)
        values = draw(st.lists(value, min_size=size, max_size=size))
    else:
        values = sorted(draw(st.lists(st.sampled_from(scale), min_size=size, max_size=size, unique=True)))
        values = values[::-1] if draw(st.booleans()) else values
    labels = [f"{draw(_TEXT) if hostile else 'o'}{index}" for index in range(size)]
    options = [Option(label, value) for label, value in zip(labels, values, strict=True)]
    for extra in range(draw(st.integers(0, 2))):
        na = Option(f"none {extra}", draw(st.sampled_from([None, 0.5])), na=True)
        options.insert(draw(st.integers(0, len(options))), na)
    fields |= {"options": options, "scale_type": kind}
    if kind == "ordinal" and (sorted(set(values)) not in (values, values[::-1]) or draw(st.booleans())):
        fields["order"] = draw(st.permutations(labels))
    return Criterion(requirement, **fields)


@st.composite
def rubrics(draw: st.DrawFn, *, hostile: bool = False) -> Rubric:
    """A rubric of one to five criteria, in sections or not."""
    plain = draw(st.lists(criteria(hostile=hostile), min_size=1, max_size=5))
    if not hostile:
        return Rubric(tuple(plain))
    heads = {key: draw(st.none() | _TEXT) for key in ("guidelines", "name", "version")}
    if draw(st.booleans()):
        return Rubric(tuple(plain), **heads)
    cut = draw(st.integers(0, len(plain)))
    groups = [group for group in (plain[:cut], plain[cut:]) if group]
    texts = st.none() | _TEXT
    return Rubric(sections=tuple(Section(tuple(group), draw(texts), draw(texts)) for group in groups), **heads)


def rules_of(criterion: Criterion) -> list[str]:
    """The rules that may aggregate votes on a criterion."""
    return _RULES[criterion.kind]
