"""Reads back what a store keeps of a sample beside its report: tracebacks, what judges and the target were asked."""

from __future__ import annotations

from deemster.engine.kept_prompts import PROMPTS_FACT
from deemster.records import TargetFailure
from deemster.report.sample_report import KeptDetails
from deemster.store import Store
from deemster.store.run_facts import IMPORTED_FACT
from deemster.targets.chat_prompt import stored_prompt

_NOT_KEPT = "This run did not keep its prompts."
_NOT_ASKED = "No judge was asked about this output."
_ONLY_FAILED = "This run kept the prompts of scores that did not pass; `keep_prompts: all` in the suite keeps all."


def kept_details(store: Store, run: str, position: int, *, prompts: bool) -> KeptDetails:
    """What a store keeps of a sample beside its report.

    Args:
        store: Where the run is stored.
        run: Its id.
        position: The sample's place in it.
        prompts: Whether prompts are wanted.

    Raises:
        StoreError: There is no such run, something is damaged, or the store fails.
    """
    tracebacks = {}
    for execution in store.executions(run, since=position):
        if execution.position != position:
            break
        if isinstance(execution.answer, TargetFailure) and execution.answer.traceback is not None:
            tracebacks[execution.repetition] = execution.answer.traceback
    row = store.run(run)
    is_imported = row.facts.get(IMPORTED_FACT)
    target_prompt = stored_prompt(row.identity.get("target"))
    if is_imported and target_prompt is not None and target_prompt.is_template:
        # Nobody here wrote the template, and it could run for ever.
        target_prompt = None
    if not prompts:
        return KeptDetails(tracebacks, target_prompt=target_prompt)
    kept = store.prompts(run, position)
    which = None if is_imported else row.facts.get(PROMPTS_FACT)
    remark = {"failed": _ONLY_FAILED, "all": "" if kept else _NOT_ASKED}.get(str(which), "" if kept else _NOT_KEPT)
    return KeptDetails(tracebacks, kept, remark, target_prompt)
