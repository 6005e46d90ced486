"""The middlebox's handling of connections that it ends itself, without a network."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator

import pytest

from scripts.soak.middlebox import Connection, Middlebox


@pytest.fixture
def box() -> Iterator[Middlebox]:
    made = Middlebox("/nowhere", {}, lambda _: None)
    yield made
    made._selector.close()
    made._wake.close()
    made._woken.close()


@pytest.fixture
def carried(box: Middlebox) -> Iterator[tuple[Connection, socket.socket, socket.socket]]:
    """A connection from a to b through the box, and its ends."""
    (a, near), (b, far) = socket.socketpair(), socket.socketpair()
    connection = Connection(near, far, ("a", "b"))
    connection.connected = True
    for side in (near, far):
        side.setblocking(False)
    box.connections.append(connection)
    yield connection, a, b
    for end in (a, b, near, far):
        end.close()


def test_losing_a_connection_that_has_more_to_carry_harms_nobody_else(
    box: Middlebox, carried: tuple[Connection, socket.socket, socket.socket]
) -> None:
    connection, a, _ = carried
    connection.back.held += b"still to be carried"
    box.once("a", "b", "lose")
    a.sendall(bytes(5000))
    box._serve(connection, connection.near, selectors.EVENT_READ | selectors.EVENT_WRITE)
    assert box.done == ["lose"]
    assert box.connections == []


def test_closing_or_breaking_it_again_does_nothing(
    box: Middlebox, carried: tuple[Connection, socket.socket, socket.socket]
) -> None:
    connection, _, _ = carried
    box._close(connection)
    box._close(connection)
    box._break(connection)
    assert box.connections == []


def test_what_has_not_been_done_can_be_called_off(box: Middlebox) -> None:
    box.once("a", "b", "flip")
    assert box.never_mind("a", "b")
    assert not box.never_mind("a", "b")


def test_when_it_has_died_everybody_hears_of_it(box: Middlebox) -> None:
    with pytest.raises(FileNotFoundError), box:
        pass
    with pytest.raises(RuntimeError, match="the middlebox has died"):
        box.ask(lambda: 1)
