"""All rules applied to a run."""

from __future__ import annotations

from tracer.check.finding import ERROR, WARNING, Finding
from tracer.check.node_rules import node_findings
from tracer.check.run_rules import run_findings
from tracer.run import Run


def check_run(run: Run) -> list[Finding]:
    """Errors first. None: every rule holds."""
    findings = [
        Finding(
            ERROR if p in run.unread else WARNING,
            "reading",
            p.path,
            p.text if not p.line else f"line {p.line}: {p.text}",
        )
        for p in run.problems
    ]
    for trace in run.traces:
        findings += node_findings(trace)
    for trace in run.scheduler:
        if trace.lost:
            text = f"{trace.lost} records were lost while capturing"
            findings.append(Finding(WARNING, "lost", trace.path, text, trace.lost))
    findings += run_findings(run)
    return sorted(findings, key=lambda finding: finding.severity != ERROR)
