"""`mercury launch`: a job's processes, started together, watched, and ended together."""

from pslite_ext.launch.command import main, parser

__all__ = ["main", "parser"]
