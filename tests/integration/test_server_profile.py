"""mx.profiler with profile_process='server': accepted, said once, and workers are profiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import cluster

SCRIPT = """
import os, sys, warnings
import mxnet as mx

kv = mx.kv.create("dist_sync")
own = sys.argv[1] + f"/worker_{kv.rank}.json"
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    for handle in (kv, kv.handle):
        mx.profiler.set_kvstore_handle(handle)
        mx.profiler.set_config(filename="server.json", profile_all=True, profile_process="server")
        mx.profiler.set_state("run", profile_process="server")
        mx.profiler.pause(profile_process="server")
        mx.profiler.resume(profile_process="server")
        mx.profiler.set_state("stop", profile_process="server")
        mx.profiler.dump(profile_process="server")
ours = [str(w.message) for w in said if "profile_process" in str(w.message)]
assert len(ours) == 1 and "MERCURY_TRACE_DIR" in ours[0], ours
mx.profiler.set_config(filename=own, profile_imperative=True)
mx.profiler.set_state("run")
kv.init("w", mx.nd.zeros((3,)))
value = mx.nd.ones((3,))
kv.pushpull("w", value)
value.wait_to_read()
mx.profiler.set_state("stop")
mx.profiler.dump()
assert os.path.getsize(own) > 0
print("profiled", flush=True)
"""


@pytest.mark.parametrize("van", ["zmq", "mercury"])
def test_all_calls_are_accepted(van: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    with cluster([str(script), str(tmp_path)], van=van) as job:
        job.check()
        assert all("profiled" in worker.output for worker in job.workers), job.report()
