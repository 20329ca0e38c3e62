"""Debian's chromium, driven over a pipe by the DevTools protocol: pages as people see them, and nothing to install."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

QUIET = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
]
PATIENCE = 60.0
"""Seconds that an answer may take on a busy machine."""


def found():
    """The browser's path, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Chromium:
    """One browser with one page."""

    def __init__(self, profile):
        ours, theirs = os.pipe(), os.pipe()  # what it reads on 3, and what it writes on 4

        def take_places():
            # by way of high numbers: 3 and 4 may be ends of these pipes themselves
            read, write = os.dup2(ours[0], 103), os.dup2(theirs[1], 104)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [found(), *QUIET, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
        self.process = subprocess.Popen(
            command,
            close_fds=False,
            preexec_fn=take_places,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ours[0])
        os.close(theirs[1])
        self.to, self.answers = ours[1], theirs[0]
        self.number, self.buffer, self.session, self.events = 0, b"", None, []
        (page,) = [t for t in self("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        self("Page.enable")
        self("Network.enable")

    def __call__(self, method, **params):
        """Send a command and return its result; events that come before are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self.number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, end - time.monotonic()))
            part = os.read(self.answers, 1 << 20) if ready else b""
            if not part:
                raise RuntimeError("chromium said nothing" if not ready else "chromium has ended")
            self.buffer += part
        message, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(message)

    def open(self, path, width, height=900):
        """Show a file in a window of some width, and return the addresses that were asked for."""
        self("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.events = []
        self("Page.navigate", url=path.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())
        time.sleep(0.05)
        self("Page.getFrameTree")  # what was asked for by now is told before the answer
        asked = [event for event in self.events if event.get("method") == "Network.requestWillBeSent"]
        return [event["params"]["request"]["url"] for event in asked]

    def value(self, expression):
        """What an expression of JavaScript is in the page."""
        result = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def screenshot(self, path):
        """Write a picture of the whole page."""
        size = self("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self):
        """End the browser."""
        try:
            self.session = None
            self("Browser.close")
            self.process.wait(10)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.answers)
