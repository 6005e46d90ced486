"""Names that were published before things moved still lead to them."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tracer
from pslite_ext.forecast import model, simulate


@pytest.mark.parametrize(("name", "now"), [("model", model), ("simulate", simulate)])
def test_the_forecast_s_old_modules(name: str, now: object) -> None:
    code = f"import tracer.{name} as old; print(*sorted(old.__all__)); import tracer.{name}"
    command = [sys.executable, "-W", "always::DeprecationWarning:__main__", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(getattr(now, "__all__", ()))
    assert done.stderr.count("DeprecationWarning") == 1
    assert f"tracer.{name} is now pslite_ext.forecast.{name}" in done.stderr


def test_round_trips_were_exchanges() -> None:
    assert tracer.exchanges is tracer.round_trips
    assert tracer.Exchanges is tracer.RoundTrips
