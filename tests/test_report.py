"""Charts and pages: what is drawn is what was measured, and a page needs nothing but itself."""

import hashlib
import json
import re
import shlex
import sys
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from functools import cache
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import Markup
from matplotlib.figure import Figure
from scipy import stats
from typer.testing import CliRunner

import restive as rs
from restive.cli import app, main
from restive.pages import chart as chart_page
from restive.pages import page
from restive.pages.looks import LIGHT, look, settings
from restive.plan.policies.registry import mapping_title
from restive.studies.ledger import Ledger
from restive.studies.report import charts, forests, study_page
from restive.studies.report.study_page import write_report
from restive.studies.report.verdicts import study_verdict
from restive.studies.runner import run_study
from restive.studies.spec import study_from_toml
from restive.studies.summary import Curve, load_results
from study_cases import chunk_bytes

QUANTILE = stats.t.ppf(0.975, 60 - 1)  # of the 60 replications of CHANNELS
SVG = "{http://www.w3.org/2000/svg}"
VOID = {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
LOADING = {"src", "href", "xlink:href", "srcset", "data", "poster", "action", "background"}
FORBIDDEN = {"iframe", "object", "embed", "base", "form", "img", "video", "audio"}
DATA = "application/json"

CHANNELS = """
title = "Channels"
kind = "frequentist"
policy_mappings = ["best_fixed", "myopic", "whittle"]
horizon = 400
replications = 60
posterior = true
seed = 3

[problem]
num_pulls = 2
[[problem.arm]]
p01 = 0.3
p11 = 0.7
[[problem.arm]]
p01 = 0.5
p11 = 0.8
[[problem.arm]]
p01 = 0.8
p11 = 0.3

[prior]
levels = [0.3, 0.5, 0.7, 0.8]
"""
LONG = "a_name_of_more_than_fifty_letters_without_any_space_in_it"
# names and a title that are HTML, or long
SWEPT = """
title = '<b>&"x'
kind = "frequentist"
policy_mappings = ["myopic", "whittle"]
horizon = 40
replications = 5
[prior]
levels = [0.2, 0.8]
[[sweep.problem]]
name = '<i>&'
num_pulls = 1
[[sweep.problem.arm]]
p01 = 0.2
p11 = 0.8
count = 2
[[sweep.problem]]
name = "a_name_of_more_than_fifty_letters_without_any_space_in_it"
num_pulls = 1
[[sweep.problem.arm]]
p01 = 0.8
p11 = 0.2
count = 3
"""
THREE_STATES = """
kind = "frequentist"
policy_mappings = ["whittle"]
horizon = 30
replications = 3
posterior = true
[problem]
num_pulls = 1
[[problem.arm]]
name = '$\\x$'
active = [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]
rewards = [0.0, 0.4, 1.0]
[[prior.arm]]
[[prior.arm.candidate]]
active = [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]
rewards = [0.0, 0.4, 1.0]
[[prior.arm.candidate]]
active = [[0.2, 0.2, 0.6], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]
rewards = [0.0, 0.4, 1.0]
"""


class Page(HTMLParser):
    """A page taken apart. What a browser would have to guess or to load is an error."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        assert text.startswith("<!doctype html>\n"), "no doctype"
        assert text.endswith("</html>\n"), "not whole"
        self.open, self.ids, self.links, self.tags = [], [], [], Counter()
        self.headings, self.tables, self.codes, self.title, self.style = [], [], [], "", ""
        self.text, self.data, self.script, self.policy, self._kind = "", [], "", "", None
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"
        double = [name for name, count in Counter(self.ids).items() if count > 1]
        assert double == [], f"ids that are not unique: {double[:5]}"
        missing = {link for link in self.links if link not in set(self.ids)}
        assert not missing, f"links to nothing: {sorted(missing)[:5]}"
        assert not FORBIDDEN & self.tags.keys(), FORBIDDEN & self.tags.keys()
        assert not re.search(r"@import|@font-face", self.style), "a style that loads"
        self._require_policy()

    def _require_policy(self):
        """Whatever runs or styles the page is named by its hash, and nothing else may."""
        if not (self.script or self.policy):
            return
        assert self.policy, "no policy"
        allowed = dict(rule.split(" ", 1) for rule in self.policy.split("; "))
        for kind, text in (("style", self.style), ("script", self.script)):
            digest = b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert allowed.pop(f"{kind}-src") == f"'sha256-{digest}'", f"another {kind}"
        assert allowed == {
            "default-src": "'none'", "img-src": "data:", "base-uri": "'none'",
            "form-action": "'none'",
        }  # fmt: skip

    def handle_starttag(self, tag, attrs):
        self.tags[tag] += 1
        for name, given in attrs:
            value = given or ""
            assert not name.startswith("on"), f"a script in {name}"
            assert not re.match(r"\s*javascript:", value), f"a script in {name}"
            if name == "id":
                self.ids.append(value)
            elif name in LOADING:
                assert value.startswith(("#", "data:")), f"{name} loads {value}"
                if value.startswith("#"):
                    self.links.append(value[1:])
            assert name != "style", "a style that the policy forbids"
            if name == "http-equiv":
                assert value == "Content-Security-Policy", value
                self.policy = dict(attrs)["content"]
            if name in ("fill", "stroke", "color"):
                assert re.fullmatch(r"none|var\(--\w+,#[0-9a-f]{6}\)", value), f"{name}: {value}"
            self._references(value)
        self._kind = dict(attrs).get("type") if tag == "script" else None
        if tag in VOID:
            return
        self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.headings.append([tag, ""])
        elif tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "pre":
            self.codes.append("")

    def handle_startendtag(self, tag, attrs):
        assert "svg" in self.open, f"<{tag}/> outside of a picture"
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> of nothing"
        assert self.open[-1] == tag, f"</{tag}> ends <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if "script" in self.open:
            if self._kind == DATA:
                self.data.append(json.loads(data))
            else:
                assert not self.script, "two scripts"
                self.script = data
        elif "style" in self.open:
            self.style += data
            self._references(data)
        elif "title" in self.open:
            self.title += data
        elif "svg" not in self.open:
            self.text += data
            if self.open and self.open[-1] in ("h1", "h2", "h3"):
                self.headings[-1][1] += data
            elif self.open and self.open[-1] in ("td", "th"):
                self.tables[-1][-1][-1] += data
            elif "pre" in self.open:
                self.codes[-1] += data

    def _references(self, text):
        for target in re.findall(r"url\(\s*['\"]?([^'\")]*)", text):
            assert target.startswith(("#", "data:")), f"url({target})"
            if target.startswith("#"):
                self.links.append(target[1:])


def whole(body="<p>x</p>", head=""):
    """Return a page around a body."""
    return f"<!doctype html>\n<html><head>{head}</head><body>{body}</body></html>\n"


def test_the_reader_of_pages_takes_a_sound_page():
    text = whole(
        '<a href="#k">x</a><p id="k">&lt;b&gt;<br></p>'
        '<svg><g fill="var(--c0,#123456)"/><use xlink:href="#k"/></svg>'
    )
    found = Page(text)
    assert found.text.split() == ["x<b>"]
    assert found.tags["g"] == 1


@pytest.mark.parametrize(
    "text",
    [
        whole("<p>x"),
        whole("<p><b>x</p></b>"),
        whole('<p id="k"></p><p id="k"></p>'),
        whole('<a href="#gone">x</a>'),
        whole('<p style="color: red">x</p>'),
        whole('<svg><g clip-path="url(#gone)"/></svg>'),
        whole('<svg><g fill="#123456"/></svg>'),
        whole('<a href="https://example.com">x</a>'),
        whole('<img src="x.png">'),
        whole('<svg><g clip-path="url(http://x/y)"/></svg>'),
        whole("<script>1</script>"),
        whole(head='<meta http-equiv="refresh" content="1">'),
        whole('<p onclick="1">x</p>'),
        whole(head="<style>@import 'x.css'</style>"),
        whole(head='<link rel="stylesheet" href="x.css">'),
        whole()[:-9],
        whole()[1:],
    ],
)
def test_the_reader_of_pages_finds_what_is_wrong(text):
    with pytest.raises(AssertionError):
        Page(text)


# Charts


@pytest.fixture(scope="module")
def channels(tmp_path_factory):
    """Return the folder of a small study of one system."""
    folder = tmp_path_factory.mktemp("channels") / "results"
    run_study(study_from_toml(CHANNELS), folder, workers=1)
    return folder


@pytest.fixture(scope="module")
def found(channels):
    """Return its summaries."""
    return load_results(channels)


def drawn(chart, scale=None, panel=0):
    """Draw a panel, to the last letter, so that nothing is left to be found out later."""
    with settings():
        figure = Figure()
        axes = figure.subplots()
        chart.panels[panel].draw(axes, scale or chart.scales[0])
        figure.draw_without_rendering()
    return axes


def regret(cases, scale="linear"):
    return drawn(charts.regret_chart({"": cases}, charts.Naming(cases)), scale)


def reward(cases):
    return drawn(charts.reward_chart({"": cases}, charts.Naming(cases)))


def bound(cases):
    return drawn(charts.bound_chart({"": cases}, charts.Naming(cases)))


def posterior(cases):
    (chart,) = charts.posterior_charts({"": cases}, charts.Naming(cases))
    return drawn(chart)


def curves(axes):
    """Return the lines that are drawn with markers: measured ones."""
    return [line for line in axes.lines if line.get_marker() not in ("None", "", None)]


def others(axes):
    """Return the lines to compare with."""
    return [line for line in axes.lines if line not in curves(axes) and len(line.get_xdata())]


def bands(axes, times):
    """Return lower and upper ends of each band, by time."""
    found = []
    for area in axes.collections:
        at = np.concatenate([path.vertices for path in area.get_paths()])
        ys = [at[at[:, 0] == t, 1] for t in times]
        found.append((np.array([y.min() for y in ys]), np.array([y.max() for y in ys])))
    return found


def with_regret(one, mean, stderr=1.0, slope=None):
    mean = np.broadcast_to(np.asarray(mean, dtype=float), one.times.shape)
    return replace(
        one, regret=Curve(mean, np.full(len(one.times), stderr), one.replications), slope=slope
    )


def test_regret_is_drawn_as_it_was_measured(found):
    axes = regret(found)
    lines = curves(axes)
    assert len(lines) == len(bands(axes, found[0].times)) == 3
    for line, band, one in zip(lines, bands(axes, found[0].times), found, strict=True):
        assert np.array_equal(line.get_xdata(), one.times)
        assert np.array_equal(line.get_ydata(), one.regret.mean)
        half = QUANTILE * one.regret.stderr
        assert band[0] == pytest.approx(one.regret.mean - half)
        assert band[1] == pytest.approx(one.regret.mean + half)
    assert axes.get_xlabel() == "time (steps)"
    assert axes.get_ylabel() == "regret (total reward lost)"
    assert [line.get_label() for line in lines] == ["best fixed arms", "myopic", "Whittle index"]
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlim()[1] >= 400


@pytest.mark.parametrize("level", [5.0, 0.5, 0.0, -0.5, -5.0])
def test_the_band_of_any_regret_lies_around_its_line(found, level):
    one = with_regret(found[0], level, stderr=1.0)
    ((lower, upper),) = bands(regret([one]), one.times)
    assert lower == pytest.approx(np.full(len(one.times), level - QUANTILE))
    assert upper == pytest.approx(np.full(len(one.times), level + QUANTILE))


def test_rewards_may_be_negative_and_keep_their_band(found):
    """Rewards of arms are any numbers: costs are negative ones."""
    size = len(found[0].times)
    one = replace(
        found[0],
        average_reward=Curve(np.full(size, -2.0), np.full(size, 0.1), 60),
        truth_rewards=np.full(found[0].replications, -1.9),
    )
    axes = reward([one])
    ((lower, upper),) = bands(axes, one.times)
    assert lower == pytest.approx(np.full(size, -2 - 0.1 * QUANTILE))
    assert upper == pytest.approx(np.full(size, -2 + 0.1 * QUANTILE))
    assert axes.get_ylim()[0] < -2
    assert axes.get_ylim()[1] > -1.9


def test_regret_on_logarithmic_axes_with_the_square_root(found):
    rising = [
        with_regret(one, (k + 1) * np.log1p(one.times), 0.01) for k, one in enumerate(found[1:])
    ]
    axes = regret(rising, "log")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert "time" in axes.get_xlabel()
    assert "regret" in axes.get_ylabel()
    for line, one in zip(curves(axes), rising, strict=True):
        assert np.array_equal(line.get_xdata(), one.times)
        assert np.array_equal(line.get_ydata(), one.regret.mean)
    (guide,) = others(axes)
    slope, _ = np.polyfit(np.log(guide.get_xdata()), np.log(guide.get_ydata()), 1)
    assert slope == pytest.approx(0.5)
    assert guide.get_ydata()[-1] > max(one.regret.mean[-1] for one in rising)


def test_what_has_no_logarithm_is_left_out(found):
    mean = np.linspace(-3, 30, len(found[0].times))
    some, none, good = (
        with_regret(found[0], mean, 2.0),
        with_regret(found[1], -1.0, 2.0),
        with_regret(found[2], 7.0, 2.0),
    )
    axes = regret([some, none, good], "log")
    first, last = curves(axes)
    assert np.array_equal(first.get_ydata(), mean[mean > 0])
    assert np.array_equal(first.get_xdata(), some.times[mean > 0])
    assert np.array_equal(last.get_ydata(), good.regret.mean)
    for lower, upper in bands(axes, good.times[mean > 0]):
        assert (lower > 0).all()
        assert (upper > lower).all()
    ((lower, upper),) = bands(regret([good], "log"), good.times)
    assert lower == pytest.approx(np.full(len(good.times), 7 - 2 * QUANTILE))
    assert upper == pytest.approx(np.full(len(good.times), 7 + 2 * QUANTILE))


def test_a_logarithmic_axis_does_not_reach_down_to_a_chance_near_zero(found):
    mean = np.linspace(1e-9, 100, len(found[0].times))
    assert regret([with_regret(found[0], mean, 0.1)], "log").get_ylim()[0] == pytest.approx(0.01)
    mean = np.linspace(3, 100, len(found[0].times))
    assert regret([with_regret(found[0], mean, 0.1)], "log").get_ylim()[0] == pytest.approx(1.0)


@pytest.mark.parametrize("level", [-1.0, 0.0])
def test_regrets_that_are_never_positive_are_no_crash(found, level):
    cases = [with_regret(one, level) for one in found]
    assert charts.regret_chart({"": cases}, charts.Naming(cases)).scales == ("linear",)
    assert curves(regret(cases, "log")) == []
    assert all((line.get_ydata() == level).all() for line in curves(regret(cases)))


def test_average_reward_is_drawn_with_what_it_is_measured_against(found):
    axes = reward(found)
    lines, levels = curves(axes), others(axes)
    for line, band, one in zip(lines, bands(axes, found[0].times), found, strict=True):
        assert np.array_equal(line.get_xdata(), one.times)
        assert np.array_equal(line.get_ydata(), one.average_reward.mean)
        assert band[0] == pytest.approx(one.average_reward.lower)
        assert band[1] == pytest.approx(one.average_reward.upper)
    assert [line.get_ydata()[0] for line in levels] == [one.truth_reward[0] for one in found]
    assert all(np.ptp(line.get_ydata()) == 0 for line in levels)
    assert [line.get_color() for line in levels] == [line.get_color() for line in lines]
    lowest, highest = axes.get_ylim()
    assert all(lowest < line.get_ydata()[0] < highest for line in levels)
    assert all(lowest < one.average_reward.mean[-1] < highest for one in found)
    assert axes.get_ylabel() == "reward per step so far"
    assert "time" in axes.get_xlabel()


def test_regret_against_the_bound_is_drawn_with_what_the_mappings_fall_short_of_it(channels, found):
    axes = bound(found)
    limit = rs.relaxation_bound(found[0].case.settings.systems()[0])
    lines = curves(axes)
    ledger = Ledger.open(channels)
    for one, line, band, known in zip(
        found, lines, bands(axes, found[0].times), others(axes), strict=True
    ):
        arrays = [arrays for _, arrays in ledger.chunks(one.case)]
        lost = limit * one.times - np.concatenate([part["expected"] for part in arrays])
        half = QUANTILE * lost.std(axis=0, ddof=1) / np.sqrt(60)
        assert np.array_equal(line.get_xdata(), one.times)
        assert line.get_ydata() == pytest.approx(lost.mean(axis=0), abs=1e-9)
        assert band[0] == pytest.approx(lost.mean(axis=0) - half, abs=1e-6)
        assert band[1] == pytest.approx(lost.mean(axis=0) + half, abs=1e-6)
        oracle = np.concatenate([part["oracle_expected"] for part in arrays]).mean(axis=0)
        assert np.array_equal(known.get_xdata(), one.times)
        assert known.get_ydata() == pytest.approx(limit * one.times - oracle, abs=1e-9)
        assert known.get_color() == line.get_color()
    chart = charts.bound_chart({"": found}, charts.Naming(found))
    assert chart.dotted == "knows the truth"
    assert f"the bound of {limit:.6f} per step" in chart.note
    assert axes.get_xlabel() == "time (steps)"
    assert axes.get_ylabel() == "reward lost against the bound"


def test_one_policy_that_knows_has_no_learners_colour(found):
    (known,) = others(bound([found[2], found[2]]))
    assert known.get_color() == LIGHT["mute"]


def test_posterior_weights_are_drawn_by_arm(found):
    one = found[2]
    axes = posterior([one])
    for k, line in enumerate(curves(axes)):
        assert np.array_equal(line.get_ydata(), one.truth_weights.mean[:, k])
        assert np.array_equal(line.get_xdata(), one.times)
    labels = [line.get_label() for line in curves(axes)]
    assert labels == ["arm 0: (0.3, 0.7)", "arm 1: (0.5, 0.8)", "arm 2: (0.8, 0.3)"]
    assert axes.get_ylabel() == "posterior weight of the truth"
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] > 1


DRAWN_BY_CASE = (
    regret, lambda cases: regret(cases, "log"), bound, reward,
    lambda cases: drawn(charts.bound_chart({"": cases}, charts.Naming(cases)), "log"),
)  # fmt: skip


def test_a_single_replication_has_no_band_and_is_no_crash(found):
    def alone(curve):
        return Curve(curve.mean, np.full_like(curve.mean, np.nan), 1)

    one = replace(
        found[2], replications=1, regret=alone(found[2].regret), slope=None,
        average_reward=alone(found[2].average_reward), truth_weights=alone(found[2].truth_weights),
        truth_rewards=found[2].truth_rewards[:1], final_regrets=found[2].final_regrets[:1],
    )  # fmt: skip
    for draw in DRAWN_BY_CASE:
        assert len(curves(draw([one]))) == 1
    assert len(curves(posterior([one]))) == 3
    chart = charts.regret_chart({"": [one]}, charts.Naming([one]))
    (line,) = Page(whole(chart_page.render_chart(chart))).data[0]["series"]
    assert set(line["lower"]) == set(line["upper"]) == {None}


def test_a_single_time_is_no_crash(found):
    def last(curve):
        return Curve(curve.mean[-1:], curve.stderr[-1:], curve.replications)

    one = replace(
        found[2], times=found[2].times[-1:], regret=last(found[2].regret), slope=None,
        average_reward=last(found[2].average_reward), truth_weights=last(found[2].truth_weights),
        oracle_reward=last(found[2].oracle_reward),
    )  # fmt: skip
    for draw in DRAWN_BY_CASE:
        assert len(curves(draw([one]))) == 1
    assert len(curves(posterior([one]))) == 3


def test_a_line_has_one_look_on_the_whole_page(found):
    naming = charts.Naming(found)
    points = {"a": found[:2], "b": found[1:]}
    for chart in (charts.regret_chart(points, naming), charts.reward_chart(points, naming)):
        for panel, cases in enumerate(points.values()):
            lines = curves(drawn(chart, panel=panel))
            for line, case in zip(lines, cases, strict=True):
                style = look(["best_fixed", "myopic", "whittle"].index(case.case.mapping))
                assert (line.get_color(), line.get_marker()) == (style.colour, style.marker)
    (arms,) = charts.posterior_charts({"": [found[2]]}, naming)
    assert [line.number for line in arms.legend] == [3, 4, 5]  # no mapping's


def axes_of(chart, scale):
    """Return where the axes of each panel of a chart lie on a page."""
    drawings = re.findall(r"<svg[^>]*>", chart_page.render_chart(chart))
    wanted = [text for text in drawings if f'class="drawing {page.anchor(scale)}"' in text]
    return [json.loads(unescape(re.search('data-axes="([^"]*)"', text)[1])) for text in wanted]


def test_panels_share_their_axes(found):
    naming = charts.Naming(found)
    high = [with_regret(one, 50 * one.regret.mean + 1, 1.0) for one in found]
    chart = charts.regret_chart({"a": found, "b": high}, naming)
    for scale in ("linear", "log"):
        a, b = axes_of(chart, scale)
        assert a == b
        assert a["y"][3] > high[0].regret.upper.max()
        assert a["x"][2] <= 1
        assert a["x"][3] >= 400
        assert a["x"][4] == a["y"][4] == (scale == "log")
    richer = [
        replace(one, truth_rewards=one.truth_rewards + 5, average_reward=replace(
            one.average_reward, mean=one.average_reward.mean + 5))
        for one in found
    ]  # fmt: skip
    a, b = axes_of(charts.reward_chart({"a": found, "b": richer}, naming), "log time")
    assert a["x"] == b["x"]
    assert b["y"][2] == pytest.approx(a["y"][2] + 5)


def test_crowded_regrets_are_shown_on_logarithmic_axes_at_first(found):
    level = [with_regret(one, 5.0 + k) for k, one in enumerate(found)]
    apart = [with_regret(one, 5.0 * 10**k) for k, one in enumerate(found)]
    below = [with_regret(one, 5.0 * 10**k - 6) for k, one in enumerate(found)]
    for cases, shown in ((level, "linear"), (apart, "log"), (below, "linear")):
        assert charts.regret_chart({"": cases}, charts.Naming(cases)).shown == shown
        assert forests.regret_forest({"": cases}, charts.Naming(cases)).shown == shown
    assert forests.regret_forest({"": below}, charts.Naming(below)).scales == ("linear",)


def test_a_figure_by_itself_has_legends(found):
    chart = charts.regret_chart({"": found}, charts.Naming(found))
    figure = charts.figure_of([(chart.panels[0], "linear"), (chart.panels[0], "log")])
    assert [axes.get_yscale() for axes in figure.axes] == ["linear", "log"]
    for axes in figure.axes:
        labels = [text.get_text() for text in axes.get_legend().get_texts()]
        own = ["slope 1/2"] if axes.get_yscale() == "log" else []
        assert labels == ["best fixed arms", "myopic", "Whittle index", *own]


# Pages of studies


def run(*words):
    """Run the command in this process; its output, once it has ended well."""
    result = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def no_pictures(monkeypatch):
    """Leave the pictures out, for pages whose words are what matters."""
    monkeypatch.setattr(
        study_page,
        "render_chart",
        lambda made, headed=True: Markup(f'<svg id="{made.name}"></svg>'),
    )


@pytest.fixture(scope="module")
def channels_page(channels):
    """Return the page of the small study, as text."""
    target = write_report(channels)
    assert target == channels / "report.html"
    return target.read_text(encoding="utf-8")


@cache
def swept_run(base):
    """Run a study with a sweep and hostile names once for all tests of a process; its folder."""
    folder = base / "swept"
    folder.mkdir()
    (folder / "study.toml").write_text(SWEPT)
    run("run", folder / "study.toml", "--out", folder / "results", "--workers", 1)
    out = run("report", folder / "results")
    assert out == f"{folder / 'results' / 'report.html'}\n"
    return folder / "results"


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """Return the folder of a study with a sweep and hostile names, with its page."""
    return swept_run(tmp_path_factory.getbasetemp())


def test_the_page_of_a_study_has_its_results(channels, channels_page):
    found, cases = Page(channels_page), load_results(channels)
    assert found.title == "Channels"
    (verdict, *titles) = [text for _, text in found.headings]
    assert verdict == study_verdict(cases, charts.Naming(cases))[0]
    assert titles == [
        "Regret against time", "Regret at the end", "Average reward so far",
        "More charts, tables, and how to run it again",
    ]  # fmt: skip
    assert (
        "restive · Channels · 60 replications of each, in the same worlds · T\u00a0=\u00a0400"
        in found.text
    )
    assert "Not complete" not in found.text
    header, *rows = found.tables[0]
    assert [row[header.index("mapping")] for row in rows] == [
        "best fixed arms", "myopic", "Whittle index",
    ]  # fmt: skip
    for row, case in zip(rows, cases, strict=True):
        cells = dict(zip(header, row, strict=True))
        assert cells["replications"] == "60"
        assert float(cells["J"]) == pytest.approx(case.truth_reward[0], abs=1e-6)
        for name, curve in (
            ("reward per step", case.average_reward),
            ("regret", case.regret),
            ("episodes", case.num_episodes),
        ):
            value, half = map(float, cells[name].split(" ± "))
            assert half == pytest.approx(QUANTILE * curve.stderr[-1], rel=0.05)
            assert value == pytest.approx(curve.mean[-1], abs=half / 10)
        if case.slope is None:
            assert cells["slope"] == "-"
        else:
            shown = [float(word.strip("[],")) for word in cells["slope"].split()]
            expected = [case.slope.value, case.slope.lower, case.slope.upper]
            assert shown == pytest.approx(expected, abs=0.00501)
    assert any(case.slope is not None for case in cases)
    assert found.tags["figure"] == len(found.data) == 4 + 3
    bound = rs.relaxation_bound(cases[0].case.settings.systems()[0])
    assert f"more than the bound of {bound:.6f} per step" in found.text


def test_the_numbers_behind_a_chart_are_those_measured(channels, channels_page):
    """They are what the pointer reads and what is saved."""
    cases = load_results(channels)
    by_name = {data["columns"][2]: data for data in Page(channels_page).data}
    for column, curve in (
        ("regret (total reward lost)", "regret"),
        ("reward per step so far", "average_reward"),
        ("reward lost against the bound", "bound_regret"),
    ):
        data = by_name[column]
        assert data["columns"] == ["line", "time", column, "lower", "upper"]
        for line, case in zip(data["series"], cases, strict=True):
            known = getattr(case, curve)
            assert line["name"] == mapping_title(case.case.mapping)
            assert line["x"] == case.times.tolist()
            for side in ("mean", "lower", "upper"):
                assert line[side] == pytest.approx(getattr(known, side), rel=1e-5)
    ends = by_name["regret"]["series"]
    assert [line["x"] for line in ends] == [[400]] * 3
    for line, case in zip(ends, cases, strict=True):
        known = [case.regret.mean[-1], case.regret.lower[-1], case.regret.upper[-1]]
        shown = [line[side][0] for side in ("mean", "lower", "upper")]
        assert shown == pytest.approx(known, rel=1e-5)


def test_the_page_of_a_study_says_how_it_was_run(channels, channels_page):
    found = Page(channels_page)
    manifest = Ledger.open(channels).manifest
    facts = dict(found.tables[-1][1:])
    assert facts["study"] == "Channels"
    assert facts["replications of each case"] == "60"
    assert facts["seed"] == "3"
    assert facts["machine"] == manifest["machine"]
    assert facts["hash of the study"] == manifest["hash"][:16]
    assert f"numpy {np.__version__}" in facts["versions"]
    assert "python 3." in facts["versions"]
    assert facts["restive"].startswith(rs.__version__)
    assert re.match(r"[\d.]+ s in \d+ run", facts["time taken"])
    assert found.codes[-1] == "restive run study.toml --out results"


def test_the_study_on_the_page_runs_by_the_command_on_the_page(swept, tmp_path, monkeypatch):
    *_, spec, command = Page((swept / "report.html").read_text(encoding="utf-8")).codes
    (tmp_path / "study.toml").write_text(spec, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    run(*shlex.split(command)[1:])
    assert Ledger.open(tmp_path / "results").study.hash == Ledger.open(swept).study.hash
    assert chunk_bytes(tmp_path / "results") == chunk_bytes(swept)
    assert Ledger.open(tmp_path / "results").study.title == '<b>&"x'


def test_the_page_tells_swept_seeds_and_what_numbered_labels_are(no_pictures, tmp_path):
    levels = [round(0.05 * i, 2) for i in range(1, 20)]
    text = CHANNELS.replace("seed = 3", "").replace("replications = 60", "replications = 2")
    text += f"[sweep]\nseed = [5, 6]\nprior.levels = [{levels}]\n"
    run_study(study_from_toml(text), tmp_path / "r", workers=1)
    found = Page(write_report(tmp_path / "r").read_text(encoding="utf-8"))
    assert dict(found.tables[-1][1:])["seed"] == "5, 6"
    assert f"levels #1 is {levels}" in found.text
    assert f"levels #1 is {levels}" in " ".join(run("status", tmp_path / "r").split())


def test_slopes_and_errors_are_those_of_numpy(channels, found):
    """Second ways to the numbers: all replications at once, polyfit, and an explicit jackknife."""
    ledger, fitted = Ledger.open(channels), 0
    for one in found:
        arrays = [arrays for _, arrays in ledger.chunks(one.case)]
        earned = np.concatenate([part["expected"] for part in arrays])
        regret = one.truth_reward[0] * one.times - earned
        assert one.regret.mean == pytest.approx(regret.mean(axis=0))
        assert one.regret.stderr == pytest.approx(regret.std(axis=0, ddof=1) / np.sqrt(60))
        late = one.times >= 40
        if one.slope is None:
            assert (regret.mean(axis=0)[late] < 5).any()
            continue
        fitted += 1

        def slope(rows, times=one.times[late], late=late):
            return np.polyfit(np.log(times), np.log(rows.mean(axis=0)[late]), 1)[0]

        assert one.slope.value == pytest.approx(slope(regret))
        groups = np.arange(60) % 50
        others = np.array([slope(regret[groups != group]) for group in range(50)])
        spread = np.sqrt(49 / 50 * ((others - others.mean()) ** 2).sum())
        assert one.slope.upper - one.slope.value == pytest.approx(2.00957524 * spread)
        assert one.slope.value - one.slope.lower == pytest.approx(2.00957524 * spread)
    assert fitted


def test_names_of_a_study_are_text_on_its_page(swept):
    found = Page((swept / "report.html").read_text(encoding="utf-8"))
    assert found.title == '<b>&"x'
    assert found.text.count('restive · <b>&"x · 5 replications') == 1
    assert found.text.count("problem <i>&") == found.text.count(f"problem {LONG}") == 4
    assert found.tags["b"] == found.tags["i"] == 0
    assert dict(found.tables[-1][1:])["study"] == '<b>&"x'
    assert [row[0] for row in found.tables[0][1:]] == [
        "<i>&", "<i>&", *[LONG] * 2,
    ]  # fmt: skip


def test_a_page_can_be_written_elsewhere(swept, no_pictures, tmp_path):
    target = tmp_path / "other.html"
    assert run("report", swept, "--out", target) == f"{target}\n"
    pages = [path.read_text(encoding="utf-8") for path in (target, swept / "report.html")]
    there, here = (Page(text) for text in pages)
    assert (there.tables, there.codes, there.headings[0]) == (
        here.tables, here.codes, here.headings[0])  # fmt: skip
    assert [path.name for path in tmp_path.iterdir()] == ["other.html"]


def test_points_beyond_those_drawn_are_said(swept, monkeypatch, no_pictures, tmp_path):
    monkeypatch.setattr(study_page, "MOST_POINTS", 1)
    found = Page(write_report(swept, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "The first 1 of 2 points are drawn" in found.text
    assert len(found.tables[0]) == 1 + 4


def test_only_the_points_that_are_drawn_have_panels(swept, monkeypatch):
    monkeypatch.setattr(study_page, "MOST_POINTS", 1)
    cases = load_results(swept)
    shown, folded = study_page.charts_of(cases, [], charts.Naming(cases))
    assert [[panel.title for panel in chart.panels] for chart in (*shown, *folded)] == [
        ["problem <i>&"]] * 4  # fmt: skip


def test_names_that_look_alike_are_told_apart(tmp_path):
    text = SWEPT.replace(LONG, "a").replace("<i>&", "A")
    run_study(study_from_toml(text), tmp_path / "r", workers=1)
    found = Page(write_report(tmp_path / "r").read_text(encoding="utf-8"))  # its ids are unique
    assert found.text.count("problem A") == found.text.count("problem a") == 4


def test_names_with_dollar_signs_are_no_formulas(tmp_path):
    run_study(study_from_toml(THREE_STATES), tmp_path / "r", workers=1)
    found = Page(write_report(tmp_path / "r").read_text(encoding="utf-8"))
    assert found.tags["figure"] == 4
    (arms,) = [data for data in found.data if data["columns"][0] == "arm"]
    assert [line["name"] for line in arms["series"]] == ["arm 0 ('$\\\\x$')"]


def test_a_single_replication_makes_a_page(no_pictures, tmp_path):
    text = CHANNELS.replace("replications = 60", "replications = 1")
    text = text.replace('"best_fixed", "myopic", ', "").replace("posterior = true", "")
    run_study(study_from_toml(text), tmp_path / "r", workers=1)
    found = Page(write_report(tmp_path / "r").read_text(encoding="utf-8"))
    header, row = found.tables[0]
    cells = dict(zip(header, row, strict=True))
    assert cells["replications"] == "1"
    assert "nan" not in found.text
    assert float(cells["regret"]) == pytest.approx(load_results(tmp_path / "r")[0].regret.mean[-1],
                                                   rel=1e-3)  # fmt: skip


def test_a_study_that_is_not_complete_says_so(no_pictures, tmp_path):
    study = replace(study_from_toml(CHANNELS), replications=3)
    run_study(study, tmp_path / "r", workers=1)
    with Ledger.writing(tmp_path / "r", replace(study, replications=4)):
        pass
    found = Page(write_report(tmp_path / "r").read_text(encoding="utf-8"))
    assert "Not complete: 4 replications of every case are wanted." in found.text
    assert found.tables[0][1][found.tables[0][0].index("replications")] == "3"


def refused(capsys, monkeypatch, *words):
    """Run the command as the shell would; its one line on stderr."""
    monkeypatch.setattr(sys, "argv", ["restive", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    assert err.startswith("restive: ")
    assert err.count("\n") == 1
    return err


def test_what_cannot_be_made_a_page_is_told_in_a_line(
    capsys, monkeypatch, tmp_path, swept, channels
):
    line = refused(capsys, monkeypatch, "report", tmp_path / "gone")
    assert "not a results folder" in line
    with Ledger.writing(tmp_path / "begun", study_from_toml(CHANNELS)):
        pass
    line = refused(capsys, monkeypatch, "report", tmp_path / "begun")
    assert "there are no replications yet" in line
    line = refused(capsys, monkeypatch, "report", swept, "--out", tmp_path / "page.txt")
    assert "can be written as .html; got '.txt'" in line
    line = refused(capsys, monkeypatch, "report", swept, "--out", tmp_path / "no" / "page.html")
    assert "cannot be written: No such file or directory" in line
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    line = refused(capsys, monkeypatch, "report", channels, "--out", tmp_path / "page.html")
    assert line == "restive: pictures need matplotlib: pip install 'restive[plot]'\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["begun"]
