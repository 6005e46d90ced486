"""How workers compare, and what servers keep of it."""

from __future__ import annotations

from typing import Any

import pytest

from pslite_ext import _core
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.saving.exchange import Exchange, Seat


@pytest.mark.parametrize(("elastic", "claim"), [(True, "claim_steps"), (False, "claim_model")])
def test_where_the_job_goes_on_without_the_lost_servers_forget_what_was_compared(
    monkeypatch: pytest.MonkeyPatch, elastic: bool, claim: str
) -> None:
    heard: list[str] = []

    def hear(subject: int, said: Any) -> None:
        del subject
        heard.append(str(said))
        if len(heard) == 2:
            raise InvalidArgumentError("worker 1 says another word")

    def refuse(subject: int, said: Any) -> None:
        raise AssertionError(subject, said)

    monkeypatch.setattr(_core, "elastic", lambda: elastic)
    for name in ("claim_steps", "claim_model"):
        monkeypatch.setattr(_core, name, hear if name == claim else refuse)
    exchange = Exchange(0, Seat(0, 2, 2))
    assert exchange.all_say("written before save 1", "100")
    assert not exchange.all_say("written before save 2", "200")
    assert "100" in heard[0]
    assert "200" in heard[1]
