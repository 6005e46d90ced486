"""Work on plain memory, between processes that have never imported MXNet."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import ROOT, cluster

WORKER = str(Path(__file__).with_name("memory_sums.py"))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("van", ["mercury", "zmq"])
def test_arrays_are_summed_without_mxnet(van: str) -> None:
    env = {"PYTHONPATH": str(ROOT), "MERCURY_DETERMINISTIC": "1"}
    with cluster([WORKER], 4, van=van, env=env) as job:
        job.check()
        said = [process.output.count("no memory to share") for process in job.processes]
        assert sum(said) == (van == "mercury"), job.report()  # of server 0, once
        for worker in job.workers:
            assert "summed" in worker.output
            refused = [line for line in worker.output.splitlines() if line.startswith("refused: ")]
            assert refused == [
                "refused: tensor 'value' has 16 bytes, but the memory that is given has 12",
                "refused: tensor 'rows' has 50 rows, so no row -1",
                "refused: tensor 'rows' has 50 rows, so no row 50",
                "refused: tensor 'loose' is asynchronous, so what workers push is added as it "
                "comes, and MERCURY_DETERMINISTIC=1 asks for the order of ranks: use 'dist_sync', "
                "or unset it",
            ]


# Worker 1 ends of it; worker 0 hears of that end, and only then uses the tensor.
SHAPES_DIFFER = """
import os, sys, time
import numpy as np
from pslite_ext import _core
from pslite_ext.config import Settings
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.job import serving

if os.environ["DMLC_ROLE"] != "worker":
    sys.exit(serving.main())
_core.start(Settings.from_environment(os.environ).options())
array = np.ones(4 + _core.rank(), np.float32)
tensor = _core.Tensor(7, "w", "float32", array.shape)
while _core.rank() == 0 and not _core.failed():
    time.sleep(0.01)
try:
    tensor.sum_memory((array, array.ctypes.data, array.nbytes)).wait()
except InvalidArgumentError as error:
    print("about a", error.failure.about[0], flush=True)
    _core.finish("shapes differ", error)
"""


@pytest.mark.drawn(1)
@pytest.mark.parametrize("van", ["mercury", "zmq"])
def test_who_hears_of_another_s_end_hears_why(van: str) -> None:
    with cluster(["-c", SHAPES_DIFFER], 2, van=van, env={"PYTHONPATH": str(ROOT)}) as job:
        job.wait()
        for worker in job.workers:
            assert "about a tensor" in worker.output, job.report()
