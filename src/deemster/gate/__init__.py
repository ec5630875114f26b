"""Gates: their rules, the baseline that they hold a run to, and the decision."""

from deemster.gate.gate_decision import GateCheck, GateDecision, check_gate_names, decide_gate
from deemster.gate.gate_rules import NONE_UNSCORED, Allowance, Gate, read_allowance, read_gate, with_allowance

__all__ = [
    "NONE_UNSCORED",
    "Allowance",
    "Gate",
    "GateCheck",
    "GateDecision",
    "check_gate_names",
    "decide_gate",
    "read_allowance",
    "read_gate",
    "with_allowance",
]
