"""Scorers that ask a chat model. Scripts only: nothing here does I/O."""

from deemster import lazy_names

_FILES = {
    "deemster.judges.claim_faithfulness": ("ClaimFaithfulness",),
    "deemster.judges.criterion_grader": ("CriterionGrader",),
    "deemster.judges.few_shot": ("FewShot",),
    "deemster.judges.geval": ("GEval",),
    "deemster.judges.grading_result": ("CriterionGrading", "Grading", "ItemGrading"),
    "deemster.judges.judge_cascade": ("Cascade",),
    "deemster.judges.judge_panel": ("Judge",),
    "deemster.judges.llm_as_judge": ("LlmAsJudge",),
    "deemster.judges.pairwise": ("Pairwise",),
    "deemster.judges.refusal_quality": ("RefusalQuality",),
    "deemster.judges.vote": ("Vote",),
}

__getattr__, __all__ = lazy_names(__name__, _FILES)
