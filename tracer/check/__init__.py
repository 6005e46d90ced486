"""Whether a run's files are right: each on its own, and all of them together."""

from tracer.check.finding import ERROR, WARNING, Finding
from tracer.check.verdict import check_run

__all__ = ["ERROR", "WARNING", "Finding", "check_run"]
