"""A real browser, driven through a pipe by its DevTools protocol: no driver, no library."""

import base64
import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from itertools import count
from select import select

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
)  # fmt: skip

PATIENCE = 60  # seconds; timing decides nothing, but a browser that hangs shall not hang the tests


class Browser:
    """A tab, what it said on its console, and what it asked the network for."""

    def __init__(self, asked, told):
        self.scripts = True
        self._asked, self._told, self._numbers, self._rest = asked, told, count(1), b""
        self.events, self._session = [], None
        (tab,) = [
            one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page"
        ]
        joined = self.call("Target.attachToTarget", targetId=tab["targetId"], flatten=True)
        self._session = joined["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method, **params):
        """Call a method of the protocol; events that come before its answer are kept."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._asked, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _read(self):
        while b"\0" not in self._rest:
            assert select([self._told], [], [], PATIENCE)[0], "the browser does not answer"
            part = os.read(self._told, 1 << 20)
            assert part, "the browser has gone"
            self._rest += part
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def wait(self, method):
        """Read events until one of a kind, and return it."""
        while True:
            for at, event in enumerate(self.events):
                if event.get("method") == method:
                    del self.events[: at + 1]
                    return event["params"]
            self.events.append(self._read())

    def screen(self, width, *, dark=False, height=900, media=""):
        """Set the width of the screen, light or dark, or paper."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height,
            deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, path, *, scripts=True):
        """Load a page from a file or an address, with its scripts or without.

        What was said before is forgotten.
        """
        self.events.clear()
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=path if isinstance(path, str) else path.as_uri())
        self.scripts = scripts
        self.loaded()

    def loaded(self):
        """Wait until a page has been loaded; what it says meanwhile is kept."""
        while not [one for one in self.events if one.get("method") == "Page.loadEventFired"]:
            self.events.append(self._read())
        self.drawn()

    def drawn(self):
        """Wait until the page has drawn itself: the browser drops moves over what it has not."""
        if self.scripts:
            self.run(
                "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
            )

    def run(self, script):
        """Evaluate an expression in the page; a promise is waited for."""
        found = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def said(self):
        """Return what came up on the console: messages, errors, refusals of the policy."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(one["params"]) for one in self.events if one.get("method") in kinds]

    def requests(self):
        """Return the addresses that the page asked for, but for data in the page itself."""
        asked = [
            one["params"]["request"]["url"]
            for one in self.events
            if one.get("method") == "Network.requestWillBeSent"
        ]
        return [address for address in asked if not address.startswith("data:")]

    def move(self, x, y):
        """Move the pointer."""
        self.drawn()
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.drawn()

    def press(self, key):
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def picture(self, path):
        """Write a picture of the whole page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        data = self.call(
            "Page.captureScreenshot", captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
        )["data"]  # fmt: skip
        path.write_bytes(base64.b64decode(data))

    def pdf(self, path):
        """Write the page as it is printed."""
        data = self.call("Page.printToPDF", preferCSSPageSize=False, printBackground=False)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser(folder):
    """Start a browser with a profile of its own; downloads go to the folder."""
    (hears, asked), (told, speaks) = os.pipe(), os.pipe()
    command = f'exec "$@" 3<&{hears} 4>&{speaks}'
    process = subprocess.Popen(
        ["bash", "-c", command, "bash", CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}",
         "about:blank"],
        pass_fds=(hears, speaks), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(hears)
    os.close(speaks)
    try:
        tab = Browser(asked, told)
        tab.downloads = folder
        tab.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder),
                 eventsEnabled=True)  # fmt: skip
        yield tab
    finally:
        os.close(asked)  # which ends it
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(told)
