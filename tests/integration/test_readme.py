"""The README's example does what the README says, as pasted."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tests.cluster import ROOT, mercury


def test_the_example_runs_as_pasted(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 1
    (tmp_path / "train.py").write_text(blocks[0])
    words = ["launch", "-n", 2, "-s", 2, "--", sys.executable, "train.py"]
    done = mercury(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"worker (\d) learnt \[\[ *(\S+) +(\S+)\]\] \[(\S+)\]", done.stdout)
    assert sorted(rank for rank, *_ in found) == ["0", "1"], done.stdout
    for _, first, second, bias in found:
        assert abs(float(first) - 2) < 0.05
        assert abs(float(second) + 3.4) < 0.05
        assert abs(float(bias) - 4.2) < 0.05
