"""Runs that never were: whole, exactly right sets of trace files with overheads known in advance.

`numbering` is the rule by which any capture numbers its records; `simulation` makes up the traffic.
"""

from tracer.synthetic.files import synthesize, write_run
from tracer.synthetic.plan import LENET5, Plan, PlannedTensor

__all__ = ["LENET5", "Plan", "PlannedTensor", "synthesize", "write_run"]
