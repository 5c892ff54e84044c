"""Pages in a real browser: phone and desk, light, dark and printed, with scripts and without.

Chromium is Debian's, which `make test` installs where it may.
"""

import csv
import io
import re
import xml.etree.ElementTree as ET
from time import sleep

import numpy as np
import pytest

import restive as rs
from chromium import browser
from log_cases import log_of, simulated_log
from restive.pages.looks import DARK, LIGHT
from restive.paper.comparison_study import comparison_study
from test_pages import where
from test_report import LONG, Page, swept_run
from test_reproduction import whole_run

SCREENS = {"phone": 390, "desk": 1280}
STUDIES = ("reproduction", "study", "comparison")
NAMES = (*STUDIES, "fit")
LEAST_LETTERS = 12  # pixels

# Everything that the checks must be able to see: too wide, too small, noisy, and loading.
CANARY = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>canary</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="loaded.css"></head><body>
<div class="broad" style="width: 2000px">wide</div>
<p style="font-size: 9px">tiny</p><p style="font-size: 20px">big</p>
<svg width="100" viewBox="0 0 200 10"><text y="9" font-size="20">small letters</text></svg>
<script>console.error("the canary sings")</script>
</body></html>
"""
MEASURE = """(() => {
  const width = document.documentElement.clientWidth, box = node => node.getBoundingClientRect();
  const small = [], beyond = [], seen = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
    if (!text || parent.closest("style, script, .quiet")) continue;
    if (!parent.getClientRects().length) continue;
    seen.push(text);
    const svg = parent.closest("svg"), size = parseFloat(getComputedStyle(parent).fontSize);
    const scale = svg ? box(svg).width / svg.viewBox.baseVal.width : 1;
    if (size * scale < %d) small.push(`${text}: ${size * scale}`);
  }
  for (const node of document.body.querySelectorAll("*")) {
    if (!node.getClientRects().length || node.closest(".quiet, .scale")) continue;
    if (node.parentElement.closest("svg, .wide, pre")) continue;
    if (box(node).right > width + 0.5 || box(node).left < -0.5)
      beyond.push(`${node.tagName}.${node.getAttribute("class")}`);
  }
  return {small, beyond, seen, scroll: document.documentElement.scrollWidth - width,
    background: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.body).color};
})()"""
UNFOLD = "document.querySelectorAll('details').forEach(one => one.open = true)"


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("browser")) as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the four kinds of pages, and the canary."""
    base, folder = tmp_path_factory.getbasetemp(), tmp_path_factory.mktemp("pages")
    study = comparison_study(
        ["paper-frequentist", "satellite-urban-s"],
        ["tsde", "thompson_every_step", "ucb1"], horizon=60, replications=100,
    )  # fmt: skip
    rs.run_study(study, folder / "out", workers=1)
    (folder / "canary.html").write_text(CANARY)
    (folder / "loaded.css").write_text("p { margin: 0 }")
    return {
        "reproduction": whole_run(base).folder / "report.html",
        "study": swept_run(base) / "report.html",
        "comparison": rs.write_report(folder / "out"),
        "fit": rs.write_fit(rs.fit_log(kinds_log()), folder / "fit")[3],
        "canary": folder / "canary.html",
    }


def kinds_log():
    """A log of arms of two kinds with hostile names, in which a common shock is a fault."""
    log = simulated_log(6, num_arms=20, steps=120, fault="dependence", size=2.0)
    (block,) = log.blocks()
    kinds = np.array(["<b>&", LONG])[np.arange(20) % 2]
    return log_of(block.arms, block.steps, block.states, kinds=kinds)


@pytest.fixture
def comparison(tab, pages):
    """Return the comparison's page, open on a desk, and the numbers in it."""
    tab.screen(SCREENS["desk"])
    tab.open(pages["comparison"])
    return Page(pages["comparison"].read_text(encoding="utf-8")).data


def rgb(colour):
    return f"rgb({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_the_checks_see_what_is_wrong(tab, pages):
    """Nothing below can pass because the browser measured nothing."""
    for width in SCREENS.values():
        tab.screen(width)
        tab.open(pages["canary"])
        found = tab.run(MEASURE % LEAST_LETTERS)
        assert found["scroll"] > 0
        assert found["beyond"] == ["DIV.broad"]
        assert found["small"] == ["tiny: 9", "small letters: 10"]
        assert found["seen"] == ["wide", "tiny", "big", "small letters"]
        assert any("the canary sings" in line for line in tab.said())
        assert [name.rpartition("/")[2] for name in tab.requests()] == ["canary.html", "loaded.css"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("device", SCREENS)
@pytest.mark.parametrize("name", NAMES)
def test_a_page_fits_can_be_read_and_is_quiet(tab, pages, name, device, dark):
    tab.screen(SCREENS[device], dark=dark)
    tab.open(pages[name])
    theme = DARK if dark else LIGHT
    for action in ("0", UNFOLD):
        tab.run(action)
        found = tab.run(MEASURE % LEAST_LETTERS)
        assert found["scroll"] == 0
        assert found["beyond"] == []
        assert found["small"] == []
        assert (found["background"], found["ink"]) == (rgb(theme["paper"]), rgb(theme["ink"]))
    assert len(found["seen"]) > 100
    assert tab.said() == []
    assert tab.requests() == [pages[name].as_uri()]


@pytest.mark.parametrize("device", SCREENS)
@pytest.mark.parametrize("name", NAMES)
def test_each_figure_shows_one_drawing_as_wide_as_its_place(tab, pages, name, device):
    tab.screen(SCREENS[device])
    tab.open(pages[name])
    tab.run(UNFOLD)
    figures = tab.run("""[...document.querySelectorAll("figure")].map(figure =>
      [...figure.querySelectorAll(".drawing")].map(one => one.getBoundingClientRect())
        .filter(box => box.width).map(box => [box.width, box.height]))""")
    assert len(figures) == Page(pages[name].read_text(encoding="utf-8")).tags["figure"]
    for drawings in figures:
        ((width, height),) = drawings
        assert 350 <= width <= SCREENS[device]
        assert height > 60


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_printed_on_white_with_everything_unfolded(tab, pages, name, tmp_path):
    tab.screen(SCREENS["desk"], dark=True, media="print")
    tab.open(pages[name])
    found = tab.run(MEASURE % 0)
    assert (found["background"], found["ink"]) == (rgb(LIGHT["paper"]), rgb(LIGHT["ink"]))
    shown = tab.run("""["button[data-save]", ".reading", ".scale", ".tip"].map(
      one => [...document.querySelectorAll(one)].filter(
        node => node.getClientRects().length).length)""")
    assert shown == [0, 0, 0, 0]
    assert "restive run study.toml --out results" in found["seen"] or name not in STUDIES[1:]
    same = any(text.startswith("The same seed gives the same numbers") for text in found["seen"])
    assert same == (name in STUDIES)
    tab.pdf(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")


# What the script adds


def box(tab, selector):
    """Scroll an element into view; its place on the screen."""
    return tab.run(f"""(() => {{
      const node = document.querySelector({selector!r});
      node.scrollIntoView({{ block: "center", behavior: "instant" }});
      const at = node.getBoundingClientRect();
      return {{ left: at.left, top: at.top, width: at.width, height: at.height }};
    }})()""")


def click(tab, selector):
    at = box(tab, selector)
    x, y = at["left"] + at["width"] / 2, at["top"] + at["height"] / 2
    tab.drawn()
    for kind in ("mousePressed", "mouseReleased"):
        tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    tab.drawn()


def said(value):
    """Write a number as the page does: four digits."""
    return f"{float(f'{value:.4g}'):,.10g}"


def rows_at(data, i):
    lines = sorted(data["series"], key=lambda line: -line["mean"][i])
    return [
        "{name} {0} [{1}, {2}]".format(
            *(said(line[key][i]) for key in ("mean", "lower", "upper")), name=line["name"]
        )
        for line in lines
    ]


def tip(tab, figure="#regret-0"):
    return tab.run(f"""(() => {{
      const tip = document.querySelector("{figure} .tip");
      return tip.getClientRects().length ? [...tip.children].map(row => row.textContent) : null;
    }})()""")


def reading(tab, x, y, expected):
    """Move the pointer there until the tip says this, as a hand that is never quite still."""
    for attempt in range(100):
        tab.move(x + 1e-3 * attempt, y)
        if tip(tab) == expected:
            break
        sleep(0.05)
    return tip(tab)


def regrets(data):
    return [one for one in data if one["columns"][2] == "regret (total reward lost)"]


SHOWN = "#regret-0 .drawing.{}"


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_the_pointer_reads_the_values_that_were_measured(tab, comparison, scale):
    data = regrets(comparison)[0]
    click(tab, f"#regret [value={scale}]")
    at = box(tab, SHOWN.format(scale))
    assert tip(tab) is None
    times = data["series"][0]["x"]
    axes = tab.run(f"JSON.parse(document.querySelector('{SHOWN.format(scale)}').dataset.axes).x")
    for i in (len(times) // 3, len(times) // 2, len(times) - 1):
        x = at["left"] + where(axes, times[i]) * at["width"] / 360
        values = [f"t = {times[i]:,}", *rows_at(data, i)]
        assert reading(tab, x, at["top"] + at["height"] / 2, values) == values
    assert tab.run("document.querySelectorAll('#regret-0 .cursor').length") == 1
    assert reading(tab, 2, 2, None) is None
    assert tab.run("document.querySelectorAll('.cursor').length") == 0
    assert tab.said() == []


def test_a_tip_stays_inside_its_figure(tab, comparison):
    click(tab, "#regret [value=linear]")
    at = box(tab, "#regret-1 .drawing.linear")
    for share in (0.2, 0.45, 0.55, 0.9):
        tab.move(at["left"] + share * at["width"], at["top"] + at["height"] / 2)
        inside = tab.run("""(() => {
          const tip = document.querySelector("#regret-1 .tip").getBoundingClientRect();
          const figure = document.querySelector("#regret-1").getBoundingClientRect();
          return tip.width > 50 && tip.left >= figure.left - 1 && tip.right <= figure.right + 1;
        })()""")
        assert inside
        assert tab.run("document.documentElement.scrollWidth <= innerWidth")


def test_arrow_keys_read_values_and_say_them(tab, comparison):
    data = regrets(comparison)[0]
    times = data["series"][0]["x"]
    tab.run("""[...document.querySelectorAll("#regret-0 .drawing")].find(
      one => one.getClientRects().length).focus()""")
    for step, key in enumerate(["ArrowLeft", "ArrowLeft", "ArrowRight"]):
        tab.press(key)
        i = len(times) - 1 - (1, 2, 1)[step]
        assert tip(tab) == [f"t = {times[i]:,}", *rows_at(data, i)]
        heard = tab.run("document.querySelector('#regret [aria-live]').textContent")
        assert rows_at(data, i)[0] in " ".join(heard.split())
    for _ in range(3 * len(times)):
        tab.press("ArrowLeft")
    assert tip(tab)[0] == f"t = {times[0]:,}"
    tab.run("document.activeElement.blur()")
    assert tip(tab) is None


def test_on_a_phone_the_values_at_the_end_stand_below(tab, pages):
    data = Page(pages["comparison"].read_text(encoding="utf-8")).data
    tab.screen(SCREENS["phone"])
    tab.open(pages["comparison"])
    for at, one in enumerate(regrets(data)):
        last = len(one["series"][0]["x"]) - 1
        assert tip(tab, f"#regret-{at}") == ["t = 60", *rows_at(one, last)]
    below = tab.run("""(() => {
      const tip = document.querySelector("#regret-0 .tip").getBoundingClientRect();
      const drawing = [...document.querySelectorAll("#regret-0 .drawing")].find(
        one => one.getClientRects().length).getBoundingClientRect();
      return tip.top >= drawing.bottom - 1;
    })()""")
    assert below


def visible(tab, key):
    return tab.run(f"""[...document.querySelectorAll("#regret .drawing .{key}")].filter(
      one => one.getClientRects().length).length""")


def test_the_legend_hides_a_line_and_shows_it_again(tab, comparison):
    click(tab, "#regret [value=linear]")
    assert (visible(tab, "s0"), visible(tab, "s1")) == (4, 4)  # line and band in two panels
    click(tab, "#regret [data-series=s0]")
    assert (visible(tab, "s0"), visible(tab, "s1")) == (0, 4)
    assert tab.run("document.querySelector('#regret [data-series=s0]').ariaPressed") == "false"
    at = box(tab, "#regret-0 .drawing.linear")
    shown = at["left"] + 200, at["top"] + 100
    tab.move(*shown)
    assert len(tip(tab)) == 1 + 2
    assert not any(row.startswith("TSDE") for row in tip(tab))
    click(tab, "#regret [data-series=s0]")
    assert (visible(tab, "s0"), visible(tab, "s1")) == (4, 4)
    for key in ("s0", "s1", "s2"):
        click(tab, f"#regret [data-series={key}]")
    tab.move(*shown)
    assert tip(tab) is None  # nothing to read, and no error
    assert tab.said() == []


@pytest.mark.parametrize("chart", ["end", "differences", "regret"])
def test_the_switch_changes_the_scale_of_its_own_chart(tab, comparison, chart):
    script = f"""[...document.querySelectorAll("#{chart} .drawing")].filter(
      one => one.getClientRects().length).map(one => one.classList[1])"""
    before = tab.run("""[...document.querySelectorAll(".drawing")].filter(
      one => one.getClientRects().length).length""")
    for scale in ("log", "linear", "log"):
        click(tab, f"#{chart} label:has([value={scale}])")
        assert tab.run(script) == [scale, scale]
    assert (
        tab.run("""[...document.querySelectorAll(".drawing")].filter(
      one => one.getClientRects().length).length""")
        == before
    )


def saved(tab, figure, kind):
    """Press a button of a figure; the name and the text of the file."""
    click(tab, f"#{figure} [data-save={kind}]")
    begun = tab.wait("Browser.downloadWillBegin")
    while tab.wait("Browser.downloadProgress")["state"] != "completed":
        pass
    path = tab.downloads / begun["suggestedFilename"]
    return path.name, path.read_text(encoding="utf-8")


def test_numbers_are_saved_as_csv(tab, comparison):
    for figure, data in (("regret-1", regrets(comparison)[1]), ("end-0", comparison[0])):
        name, text = saved(tab, figure, "csv")
        assert name == f"{figure}.csv"
        header, *rows = csv.reader(io.StringIO(text, newline=""))
        assert header == data["columns"]
        known = [
            [line["name"], *map(float, values)]
            for line in data["series"]
            for values in zip(*(line[key] for key in ("x", "mean", "lower", "upper")), strict=True)
        ]
        assert [[row[0], *map(float, row[1:])] for row in rows] == known
        assert any("," in row[0] for row in rows)  # Thompson, every step


def test_a_panel_is_saved_as_svg_that_needs_no_page(tab, pages, comparison):
    click(tab, "#regret [data-series=s2]")
    name, text = saved(tab, "regret-0", "svg")
    assert name == "regret-0.svg"
    assert "var(" not in text
    assert LIGHT["c0"] in text
    root = ET.fromstring(text)
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "Regret against time: paper-frequentist" in words
    assert "TSDE" in words
    assert "Thompson, every step" in words
    assert "UCB1" not in words  # it was hidden
    assert LIGHT["c2"] not in text
    path = pages["canary"].parent / name
    path.write_text(text, encoding="utf-8")
    tab.open(path)
    assert tab.said() == []
    top = tab.run("""[...document.querySelectorAll("text")].map(one => {
      const box = one.getBoundingClientRect(); return Math.min(box.top, box.left); })""")
    assert min(top) >= 0  # title and legend are inside


# Without scripts, and what the policy forbids


@pytest.mark.parametrize("name", STUDIES)
def test_without_scripts_charts_switches_and_folds_work(tab, pages, name):
    tab.screen(SCREENS["desk"])
    tab.open(pages[name], scripts=False)
    assert not tab.run("document.documentElement.classList.contains('live')")
    html = pages[name].read_text(encoding="utf-8")
    chart = re.search(
        r'<section class="charts" id="([\w-]+)">(?:(?!</header>).)*value="log"', html, re.S
    )[1]
    for scale in ("log", "linear"):
        click(tab, f"#{chart} label:has([value={scale}])")
        assert tab.run(f"""[...new Set([...document.querySelectorAll("#{chart} .drawing")].filter(
          one => one.getClientRects().length).map(one => one.classList[1]))]""") == [scale]
    assert (
        tab.run("""[...document.querySelectorAll("[data-save], .reading, .tip")].filter(
      one => one.getClientRects().length).length""")
        == 0
    )
    assert tab.run("[...document.querySelectorAll('details')].filter(one => one.open).length") == 0
    click(tab, "summary")
    assert tab.run("[...document.querySelectorAll('details')].filter(one => one.open).length") == 1
    assert tab.run(MEASURE % LEAST_LETTERS)["scroll"] == 0
    assert tab.said() == []


def test_the_policy_forbids_other_scripts_styles_and_requests(tab, comparison):
    tab.run("""new Promise(done => {
      window.refused = [];
      addEventListener("securitypolicyviolation", event => refused.push(event.effectiveDirective));
      const add = (tag, given) => document.body.append(
        Object.assign(document.createElement(tag), given));
      add("script", { textContent: "window.ran = true" });
      add("style", { textContent: "h1 { display: none }" });
      add("img", { src: "https://example.com/x.png" });
      fetch("https://example.com/").catch(() => 0);
      document.querySelector("h1").setAttribute("style", "display: none");
      setTimeout(done, 200);
    })""")
    assert tab.run("window.ran === undefined")
    assert tab.run("document.querySelector('h1').getClientRects().length") == 1
    assert set(tab.run("refused")) == {
        "script-src-elem", "style-src-elem", "style-src-attr", "img-src", "connect-src",
    }  # fmt: skip


# Tables and names


def test_a_wide_table_says_that_it_moves_and_keeps_its_first_column(tab, pages):
    tab.screen(SCREENS["phone"])
    tab.open(pages["comparison"])
    tab.run(UNFOLD)
    tab.run("new Promise(done => setTimeout(done, 100))")
    found = tab.run("""[...document.querySelectorAll(".wide")].map(wide => {
      const moves = wide.scrollWidth > wide.clientWidth + 1, hint = wide.previousElementSibling;
      const before = wide.querySelector("tbody td").getBoundingClientRect().left;
      wide.scrollLeft = 80;
      const after = wide.querySelector("tbody td").getBoundingClientRect().left;
      return { moves, hint: hint.getClientRects().length > 0, stays: before === after,
               auto: getComputedStyle(wide).overflowX };
    })""")
    assert any(one["moves"] for one in found)
    for one in found:
        assert one["hint"] == one["moves"]
        assert one["stays"]
        assert one["auto"] == "auto"


def test_claims_are_read_line_by_line_on_a_phone_and_as_a_table_on_a_desk(tab, pages):
    seen = {}
    for device, width in SCREENS.items():
        tab.screen(width)
        tab.open(pages["reproduction"])
        tab.run(UNFOLD)
        seen[device] = tab.run(MEASURE % 0)["seen"]
        assert "J of the mapping 'Whittle index'" in seen[device]
        assert "1.119088 (exact)" in seen[device]
        assert seen[device].count("holds") >= 10
    assert "verdict" in seen["desk"]
    assert "verdict" not in seen["phone"]  # the name of the column stands before each cell instead


def test_a_fitted_log_shows_its_kinds_and_what_fails(tab, pages):
    """Nothing stands on anything else, and what the pictures show can be saved."""
    for width in SCREENS.values():
        tab.screen(width)
        tab.open(pages["fit"])
        seen = tab.run(MEASURE % 0)["seen"]
        assert "if the model is right, which is in doubt (" in seen[1]
        assert any(text.startswith("Chains do not describe all of this log (") for text in seen)
        for words in ("fails", "<b>&, 10 arms", f"{LONG}, 10 arms", "no memory: p01 = p11"):
            assert words in seen
        boxes = tab.run("""[...document.querySelectorAll(
          "h2, p, figure svg, figcaption, table")].map(one => one.getBoundingClientRect()).filter(
          box => box.height > 1).map(box => [box.left, box.top, box.right, box.bottom])""")
        assert len(boxes) > 15
        for at, (left, top, right, bottom) in enumerate(boxes):
            for other in boxes[at + 1 :]:
                apart = other[0] >= right or other[2] <= left
                assert apart or other[1] >= bottom - 1 or other[3] <= top + 1
    name, text = saved(tab, "p01-p11-0", "csv")
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert (name, header) == ("p01-p11-0.csv", ["arm", "p01", "p11", "lower", "upper"])
    assert len(rows) == 10


def test_hostile_names_are_seen_as_they_are(tab, pages):
    for width in SCREENS.values():
        tab.screen(width)
        tab.open(pages["study"])
        seen = tab.run(MEASURE % 0)["seen"]
        assert seen[0].startswith('restive · <b>&"x · ')
        assert "problem <i>&" in seen
        assert f"problem {LONG}" in seen
