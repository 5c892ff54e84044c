"""Pages in a real browser, on a phone and on a desk: everything fits, can be read and is quiet."""

import json
import re
import shutil
import subprocess
from contextlib import contextmanager
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import ClassVar

import pytest

from test_report import LONG, swept_run
from test_reproduction import whole_run

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr", "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)  # fmt: skip
WIDTHS = {"phone": 375, "desk": 1280}
LEAST_LETTERS = 12  # pixels
LEAST_LETTERS_OF_PICTURES = 8
SMALLEST_POINTS = 8  # of letters in a chart

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium is installed (Debian: apt install chromium)"
)

# Everything that the checks must be able to see: too wide, too small, noisy, and loading.
CANARY = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>canary</title>
<link rel="stylesheet" href="loaded.css"></head><body>
<div class="broad" style="width: 2000px">wide</div>
<p style="font-size: 9px">tiny</p>
<svg width="0" height="0" viewBox="0 0 10 10"></svg>
<script>console.error("the canary sings")</script>
</body></html>
"""
# A browser's window has a least width; a frame does not.
WRAPPER = """<!doctype html>
<link rel="icon" href="data:,"><body>%s
<script>
function measured(frame) {
  const page = frame.contentDocument, view = frame.contentWindow;
  const width = page.documentElement.clientWidth, box = node => node.getBoundingClientRect();
  const small = [], beyond = [], seen = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || parent.closest("svg, style, script")) continue;
    if (!parent.getClientRects().length) continue;
    seen.push(text);
    if (parseFloat(view.getComputedStyle(parent).fontSize) < %d) small.push(text);
  }
  for (const node of page.body.querySelectorAll("*")) {
    if (node.parentElement.closest("svg, .wide, pre")) continue;
    if (box(node).right > width + 0.5 || box(node).left < -0.5)
      beyond.push(node.tagName + "." + node.getAttribute("class"));
  }
  const moving = [...page.querySelectorAll(".wide, pre")].filter(
    node => node.scrollWidth > node.clientWidth + 1);
  return {
    width: view.innerWidth, client: width, scroll: page.documentElement.scrollWidth,
    small: small, beyond: beyond, seen: seen,
    stuck: moving.filter(node => view.getComputedStyle(node).overflowX != "auto").length,
    moving: moving.length,
    pictures: [...page.querySelectorAll("svg")].map(node => ({
      width: box(node).width, height: box(node).height,
      scale: box(node).width / node.viewBox.baseVal.width,
      drawn: [...node.querySelectorAll("path, use")].filter(
        part => box(part).width + box(part).height > 0).length})),
    loaded: view.performance.getEntriesByType("resource").map(entry => entry.name),
    scripts: page.scripts.length,
  };
}
addEventListener("load", () => {
  const found = {};
  for (const frame of document.querySelectorAll("iframe")) found[frame.id] = measured(frame);
  const told = document.createElement("pre");
  told.textContent = JSON.stringify(found);
  document.body.replaceChildren(told);
});
</script>
"""


class Recording(SimpleHTTPRequestHandler):
    """A server of one folder that notes what it is asked for."""

    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *words):
        pass


@contextmanager
def served(folder):
    """Serve a folder on this machine; yields its address."""
    Recording.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Recording, directory=folder))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Return what the browser measured of each page at each width, and its console."""
    folder, base = tmp_path_factory.mktemp("browser"), tmp_path_factory.getbasetemp()
    site = folder / "site"
    site.mkdir()
    (site / "canary.html").write_text(CANARY)
    (site / "loaded.css").write_text("p { margin: 0 }")
    shutil.copy(whole_run(base).folder / "report.html", site / "reproduction.html")
    shutil.copy(swept_run(base) / "report.html", site / "study.html")
    frames = "\n".join(
        f'<iframe id="{name} {device}" src="{name}.html" '
        f'style="width: {width}px; height: 800px; border: 0"></iframe>'
        for name in ("reproduction", "study", "canary")
        for device, width in WIDTHS.items()
    )
    (site / "wrapper.html").write_text(WRAPPER % (frames, LEAST_LETTERS))
    with served(site) as address:
        done = subprocess.run(
            [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom",
             f"{address}/wrapper.html"],
            capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip
    told = re.search(r"<pre>(.*?)</pre>", done.stdout, re.S)
    assert told is not None, f"the browser measured nothing:\n{done.stdout}\n{done.stderr}"
    console = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(unescape(told[1])), console


def test_the_checks_see_what_is_wrong(shown):
    """Nothing below can pass because the browser measured nothing."""
    found, console = shown
    for device, width in WIDTHS.items():
        canary = found[f"canary {device}"]
        assert canary["width"] == width
        assert canary["scroll"] > canary["width"]
        assert canary["beyond"] == ["DIV.broad"]
        assert canary["small"] == ["tiny"]
        assert canary["seen"] == ["wide", "tiny"]
        assert canary["pictures"][0]["width"] == 0
        assert canary["scripts"] == 1
        assert [name.rpartition("/")[2] for name in canary["loaded"]] == ["loaded.css"]
    assert any("the canary sings" in line for line in console)


@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize("name", ["reproduction", "study"])
def test_a_page_fits_and_can_be_read(shown, name, device):
    found = shown[0][f"{name} {device}"]
    assert found["width"] == found["client"] == WIDTHS[device]
    assert found["scroll"] <= found["width"]
    assert found["beyond"] == []
    assert found["stuck"] == 0  # what is wider than the page can be moved by itself
    assert found["small"] == []
    assert len(found["seen"]) > 60


@pytest.mark.parametrize("device", WIDTHS)
@pytest.mark.parametrize(("name", "count"), [("reproduction", 4), ("study", 8)])
def test_pictures_are_as_wide_as_their_place(shown, name, count, device):
    found = shown[0][f"{name} {device}"]
    assert len(found["pictures"]) == count
    for picture in found["pictures"]:
        assert 300 < picture["width"] <= WIDTHS[device]
        assert picture["height"] > 200
        assert picture["drawn"] > 30
        assert picture["scale"] * SMALLEST_POINTS >= LEAST_LETTERS_OF_PICTURES


def test_pages_are_quiet_and_load_nothing(shown):
    found, console = shown
    assert [line for line in console if "canary.html" not in line] == []
    for name in ("reproduction", "study"):
        for device in WIDTHS:
            assert found[f"{name} {device}"]["loaded"] == []
            assert found[f"{name} {device}"]["scripts"] == 0
    assert set(Recording.asked) == {
        "/wrapper.html", "/reproduction.html", "/study.html", "/canary.html", "/loaded.css",
    }  # fmt: skip


def test_claims_are_read_line_by_line_on_a_phone_and_as_a_table_on_a_desk(shown):
    phone, desk = (shown[0][f"reproduction {device}"]["seen"] for device in ("phone", "desk"))
    for seen in (phone, desk):
        assert "J of the mapping 'Whittle index'" in seen
        assert "1.119088 (exact)" in seen
        assert seen.count("holds") >= 10
    assert "verdict" in desk
    assert "verdict" not in phone  # the name of the column stands before each cell instead


def test_hostile_names_are_seen_as_they_are(shown):
    for device in WIDTHS:
        seen = shown[0][f"study {device}"]["seen"]
        assert seen[0] == '<b>&"x'
        assert "problem <i>&" in seen
        assert f"problem {LONG}" in seen
