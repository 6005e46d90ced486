"""A headless Chromium that a test talks with, over a pair of pipes; no driver is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
    # It asks for nothing that is not on this machine, and so waits for nothing.
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-quic",
)  # fmt: skip
ANSWER_S = 60.0


def browser() -> str:
    for name in NAMES:
        found = shutil.which(name)
        if found:
            return found
    pytest.skip("no Chromium on this machine: nothing was looked at by a browser")


class Page:
    """One page. Used as a context manager."""

    def __init__(self, address: str, profile: Path, options: Sequence[str] = ()) -> None:
        self._address = address
        self._command = [browser(), *OPTIONS, f"--user-data-dir={profile}", *options]
        self._number = 0
        self._session = ""
        self._unread = b""

    def __enter__(self) -> Page:
        ours, theirs = os.pipe(), os.pipe()  # what we say, what we hear

        def as_three_and_four() -> None:
            heard, said = os.dup(ours[0]), os.dup(theirs[1])
            os.dup2(heard, 3)
            os.dup2(said, 4)

        self._process = subprocess.Popen(
            [*self._command, "--remote-debugging-pipe"],
            preexec_fn=as_three_and_four, close_fds=False,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(ours[0])
        os.close(theirs[1])
        self._write, self._read = ours[1], theirs[0]
        target = self._call("Target.createTarget", url=self._address)["targetId"]
        attached = self._call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def value(self, script: str) -> Any:
        """What a script, or the promise that it returns, comes to."""
        found = self._call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        return found["result"].get("value")

    def value_once_there(self, script: str, within_s: float) -> Any:
        """Asks until the answer is neither null nor false."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            found = self.value(script)
            if found:
                return found
            time.sleep(0.5)
        raise AssertionError(f"not there after {within_s} s: {script}")

    def dark(self) -> None:
        """As if its reader preferred dark pages."""
        feature = {"name": "prefers-color-scheme", "value": "dark"}
        self._call("Emulation.setEmulatedMedia", features=[feature])

    def picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._call("Page.captureScreenshot")["data"]))

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._hear()
            if answer.get("id") == self._number:
                assert "result" in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _hear(self) -> Any:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._read], [], [], ANSWER_S)
            assert ready, "the browser does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, "the browser is gone"
            self._unread += piece
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)
