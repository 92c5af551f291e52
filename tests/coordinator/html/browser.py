"""A headless Chromium, driven over a pipe: Chrome's DevTools protocol, without any library.

Messages are JSON, each ended by a zero byte; the browser reads them from file descriptor 3 and writes to 4.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

SECONDS = 60  # for one answer


class Browser:
    def __init__(self, width=1280, height=1000):
        program = shutil.which("chromium")
        if program is None:
            raise SystemExit("no chromium in PATH; on Debian: apt-get install chromium")
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()

        def hand_over():
            # Above all that is in use, then to where the browser looks for them.
            high = [os.dup2(to_browser, 100), os.dup2(from_browser, 101)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--remote-debugging-pipe",
                "--disable-gpu",
                "--no-first-run",
                "--no-sandbox",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-quic",
                "--hide-scrollbars",
                f"--window-size={width},{height}",
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            preexec_fn=hand_over,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._number = 0
        self._buffer = b""
        self._session = None
        self.errors = []  # of the console, uncaught exceptions, refused loads
        self.requests = []  # addresses
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self._call(domain + ".enable")
        self.resize(width, height)

    def close(self):
        self._session = None
        self._call("Browser.close")
        self._process.wait(SECONDS)
        os.close(self._out)
        os.close(self._in)
        self._profile.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def open(self, path):
        """Opens a file, and returns when it has loaded."""
        self.errors.clear()
        self.requests.clear()
        self._loaded = False
        self._call("Page.navigate", url="file://" + os.path.abspath(path))
        self._wait(lambda: self._loaded)

    def evaluate(self, expression):
        """The value of a JavaScript expression."""
        result = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(json.dumps(result["exceptionDetails"], indent=1))
        return result["result"].get("value")

    def resize(self, width, height):
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        """What the system says it likes: "light" or "dark"."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def mouse(self, kind, x, y, **more):
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def screenshot(self, path):
        """The whole page."""
        data = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self, path):
        data = self._call(
            "Page.printToPDF", printBackground=True, preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69
        )["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def _call(self, method, **parameters):
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = {}

        def done():
            answer.update(self._answers.pop(number, {}))
            return bool(answer)

        self._answers = {}
        self._wait(done)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def _wait(self, done):
        end = time.monotonic() + SECONDS
        while not done():
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            data = os.read(self._in, 1 << 20) if ready else b""
            if not data:
                raise AssertionError("the browser does not answer" if not ready else "the browser has ended")
            *messages, self._buffer = (self._buffer + data).split(b"\0")
            for message in messages:
                self._take(json.loads(message))

    def _take(self, message):
        if "id" in message:
            self._answers[message["id"]] = message
            return
        method, parameters = message["method"], message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ["error", "warning", "assert"]:
            self.errors.append(json.dumps(parameters["args"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ["error", "warning"]:
            self.errors.append(json.dumps(parameters["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
