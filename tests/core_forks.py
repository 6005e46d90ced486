"""Imports the core once and forks servers and schedulers of jobs of ours, which need nothing of
MXNet: `import mxnet` in a script of theirs serves, and ends."""

from __future__ import annotations

from mxnet_plugins import compat  # noqa: F401
from mxnet_plugins.fabric import job  # noqa: F401
from pslite_ext.job import serving  # noqa: F401
from tests.forking import fork_for_who_asks

if __name__ == "__main__":
    fork_for_who_asks()
