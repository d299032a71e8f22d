"""A headless Chromium, driven over a pipe by the DevTools protocol.

Two pipes carry JSON that ends in a zero byte; no port is opened and no library needed.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)
TIMEOUT = 60.0


def find_chromium() -> str | None:
    """The path of a Chromium, None where there is none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Chromium:
    """One browser process with one page.

    logged, requested, blocked: what the page logged, the addresses that it asked for,
    and why requests failed, since it was opened.
    """

    def __init__(self, program: str, profile: Path) -> None:
        command_out, self._commands = os.pipe()
        self._answers, answer_in = os.pipe()
        quoted = [program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        # The protocol's pipes are those of the numbers 3 and 4.
        script = f'exec "$@" 3<&{command_out} 4>&{answer_in}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, "bash", *quoted],
            pass_fds=(command_out, answer_in),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(command_out)
        os.close(answer_in)
        self._buffer = b""
        self._events: deque[dict[str, Any]] = deque()
        self._number = 0
        self._session: str | None = None
        self.logged: list[str] = []
        self.requested: list[str] = []
        self.blocked: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Chromium:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._session = None
        try:
            self._send("Browser.close", {})
            self._process.wait(10)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Send a command and return its result; raise RuntimeError for a refusal."""
        number = self._send(method, parameters)
        while True:
            message = self._receive()
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._note(message)

    def open(self, path: Path) -> None:
        """Load a file and wait until it has run."""
        self.logged.clear()
        self.requested.clear()
        self.blocked.clear()
        self._events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(each["method"] == "Page.loadEventFired" for each in self._events):
            self._note(self._receive())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; raise RuntimeError where it throws."""
        found = self.call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
        )
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"]))
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key by its name, as a keyboard does."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "Home": 36}
        text = {"Enter": "\r"}.get(key)
        common = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key]}
        down = {**common, "text": text} if text else common
        self.call("Input.dispatchKeyEvent", type="keyDown", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def resize(self, width: int, height: int = 900) -> None:
        """Give the page a screen of this size in CSS pixels."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def media(self, medium: str = "", **features: str) -> None:
        """Emulate a medium and its features, given without their prefix `prefers-`."""
        self.call(
            "Emulation.setEmulatedMedia",
            media=medium,
            features=[
                {"name": f"prefers-{name.replace('_', '-')}", "value": value}
                for name, value in features.items()
            ],
        )

    def scripts(self, enabled: bool) -> None:
        """Let pages run scripts, or not, from the next load on."""
        self.call("Emulation.setScriptExecutionDisabled", value=not enabled)

    def screenshot(self) -> bytes:
        """The whole page as PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def pdf(self) -> bytes:
        """The page as it prints on A4."""
        printed = self.call(
            "Page.printToPDF", printBackground=True, preferCSSPageSize=False
        )
        return base64.b64decode(printed["data"])

    def _send(self, method: str, parameters: dict[str, object]) -> int:
        self._number += 1
        message: dict[str, object] = {
            "id": self._number,
            "method": method,
            "params": parameters,
        }
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        return self._number

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._answers], [], [], TIMEOUT)[0]:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self._answers, 1 << 16)
            if not part:
                raise RuntimeError("Chromium has ended")
            self._buffer += part
        line, self._buffer = self._buffer.split(b"\0", 1)
        message: dict[str, Any] = json.loads(line)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            return
        self._events.append(message)
        parameters = message["params"]
        match message["method"]:
            case "Runtime.consoleAPICalled" | "Runtime.exceptionThrown":
                self.logged.append(json.dumps(parameters))
            case "Log.entryAdded":
                self.logged.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
            case "Network.loadingFailed":
                self.blocked.append(parameters.get("blockedReason", ""))
