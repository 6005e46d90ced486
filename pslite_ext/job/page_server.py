"""Serves one page over HTTP from threads of this process, which has better things to do.

Whoever reaches the port costs it a few threads and descriptors at most: only so many are heard at
once, each for a while, and all others wait in the kernel.
"""

from __future__ import annotations

import socket
import socketserver
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

AT_ONCE = 16
HEARD_S = 10.0  # from when its connection is taken; whoever is not done by then is cut off
LOOK_S = 0.5
PAUSE_S = 1.0  # when no connection can be taken, as when this process has no descriptor left

# Whether OpenMetrics is wanted; the type and the text.
Page = Callable[[bool], "tuple[str, str]"]


class _Answer(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/", "/metrics"):
            self.send_error(404, "there is /metrics")
            return
        accepted = self.headers.get("Accept", "")
        kind, text = self.server.page("application/openmetrics-text" in accepted)
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: a page that is read every few seconds would fill the log."""


class PageServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, host: str, port: int, page: Page) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.page = page
        self._free = threading.BoundedSemaphore(AT_ONCE)
        self._lock = threading.Lock()  # guards what follows
        self._since: dict[socket.socket, float] = {}
        super().__init__((host, port), _Answer)

    def server_bind(self) -> None:
        """Without asking a name server for our name, which may take long."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        while not self._free.acquire(timeout=LOOK_S):
            self.service_actions()
        try:
            request, address = super().get_request()
        except OSError:
            self._free.release()
            time.sleep(PAUSE_S)  # it is still there to be taken: without a pause this would spin
            raise
        with self._lock:
            self._since[request] = time.monotonic()
        return request, address

    def service_actions(self) -> None:
        """Every now and then: cuts off who is heard for too long."""
        long_ago = time.monotonic() - HEARD_S
        with self._lock:
            for request, since in self._since.items():
                if since < long_ago:
                    with suppress(OSError):  # it has gone
                        request.shutdown(socket.SHUT_RDWR)

    def shutdown_request(self, request: Any) -> None:
        """However it has ended, and once for each."""
        with self._lock:
            del self._since[request]
        try:
            super().shutdown_request(request)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Who hangs up is not worth a line, nor whom no thread can be started for."""
        if not isinstance(sys.exc_info()[1], (OSError, RuntimeError)):
            super().handle_error(request, client_address)
