"""The style of pages and pictures: colours that can be read, SVG that a strict policy allows."""

import json
import re
import xml.etree.ElementTree as ET
from importlib.resources import files
from itertools import pairwise

import numpy as np
import pytest
from jinja2 import UndefinedError
from matplotlib.figure import Figure
from PIL import Image

from restive.pages import page
from restive.pages.axes import (
    Dotted,
    Line,
    draw_lines,
    place_of_axes,
    set_axis,
    set_scale,
    tick_text,
)
from restive.pages.chart import Chart, Panel, line_data, render_chart
from restive.pages.drawing import page_svg, write_figure
from restive.pages.forest import Row, draw_forest, forest_height, forest_margins, hides_a_row
from restive.pages.looks import DARK, LIGHT, NUM_HUES, css_variables, look, settings
from test_report import Page, whole

LEAST_CONTRAST = 4.5
READ = [f"c{hue}" for hue in range(NUM_HUES)] + ["ink", "mute", "holds", "fails", "undecided"]


# Colours


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=1e-3)  # a known value


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_whatever_is_read_stands_out_from_what_is_behind_it(theme):
    for behind in ("paper", "wash"):
        found = {name: contrast(theme[name], theme[behind]) for name in READ}
        assert min(found.values()) >= LEAST_CONTRAST, found


def test_light_and_dark_have_the_same_colours_by_name():
    assert list(LIGHT) == list(DARK)
    assert len(set(LIGHT.values())) == len(LIGHT)  # a colour names its variable
    for theme in (LIGHT, DARK):
        assert luminance(theme["paper"]) != luminance(theme["ink"])


def test_the_style_sheet_has_dark_and_print():
    light, dark, printed = re.findall(r":root\{([^}]*)\}", css_variables())
    assert f"--c0:{LIGHT['c0']};" in light
    assert f"--c0:{DARK['c0']};" in dark
    assert f"--c0:{LIGHT['c0']};" in printed
    css = css_variables()
    assert css.index("prefers-color-scheme:dark") < css.index("@media print")  # the last wins


def test_the_style_sheet_uses_its_variables_alone():
    for room, name in (("restive.pages", "page.css"), ("restive.serve.page", "operator.css")):
        text = (files(room) / name).read_text(encoding="utf-8")
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgb|hsl", text)
        assert set(re.findall(r"var\(--(\w+)", text)) <= set(LIGHT)


def test_lines_differ_in_colour_dash_and_marker():
    for i, j in pairwise(range(NUM_HUES)):
        assert look(i).colour != look(j).colour
        assert look(i).marker != look(j).marker
        assert look(i).dash != look(j).dash
    assert len({(look(i).colour, look(i).marker) for i in range(64)}) == 64
    assert all(look(i).dash != look(i + NUM_HUES).dash for i in range(64))


def test_the_script_is_small():
    assert (
        len((files("restive.pages") / "charts.js").read_text(encoding="utf-8").splitlines()) < 100
    )


# Drawings


def figure(draw=lambda axes: axes.plot([1, 2], [3, 4], color=LIGHT["c0"], marker="o")):
    with settings():
        made = Figure(figsize=(5, 3))
        draw(made.subplots())
    return made


def svg(made, name="a"):
    return str(page_svg(made, name))


def test_a_drawing_has_no_style_and_no_colour_of_its_own():
    text = svg(figure())
    assert "style" not in text
    assert "font-family" not in text
    paints = set(re.findall(r'(?:fill|stroke)="([^"]+)"', text))
    assert paints <= {"none", *(f"var(--{name},{colour})" for name, colour in LIGHT.items())}
    assert f"var(--c0,{LIGHT['c0']})" in paints
    assert "#" not in re.sub(r"var\(--\w+,#\w{6}\)|url\(#|href=\"#", "", text)


def test_a_colour_that_the_style_does_not_have_is_refused():
    with pytest.raises(KeyError):
        svg(figure(lambda axes: axes.plot([1, 2], [3, 4], color="#123456")))


def test_a_drawing_says_what_matplotlib_would():
    made = figure(lambda axes: axes.set(xlabel="a <b> & $c$", title="t"))
    root = ET.fromstring(page_svg(made, "a"))
    texts = [node.text for node in root.iter("text")]
    assert "a <b> & $c$" in texts
    assert "t" in texts
    assert {node.get("font-size") for node in root.iter("text")} == {"12.5"}
    (label,) = [node for node in root.iter("text") if node.text == "a <b> & $c$"]
    assert label.get("text-anchor") == "middle"
    assert 0 < float(label.get("x")) < 360
    assert root.get("viewBox") == "0 0 360 216"


def test_points_stand_where_the_axes_say():
    """The script finds values by these numbers: they must be those of the drawing."""
    for scale in ("linear", "log", "log time"):
        with settings():
            made = Figure(figsize=(5, 3))
            axes = made.subplots()
            axes.plot([2, 50, 900], [1, 30, 7], color=LIGHT["c0"], gid="class:s0")
            set_scale(axes, scale)
        (line,) = [
            node
            for node in ET.fromstring(page_svg(made, "a")).iter("g")
            if node.get("class") == "s0"
        ]
        (path,) = [node for node in line.iter("path") if node.get("fill") == "none"]
        numbers = [float(x) for x in re.findall(r"-?[\d.]+", path.get("d"))]
        place = place_of_axes(axes)
        for x, y, at in zip(numbers[::2], numbers[1::2], [(2, 1), (50, 30), (900, 7)], strict=True):
            assert [x, y] == pytest.approx([where(place["x"], at[0]), where(place["y"], at[1])],
                                           abs=0.06)  # fmt: skip


def where(axis, value):
    """Place a value as the script does."""
    start, end, low, high, logarithmic = axis
    on = np.log if logarithmic else float
    return start + (end - start) * (on(value) - on(low)) / (on(high) - on(low))


def test_drawings_on_one_page_do_not_share_ids():
    texts = [svg(figure(), name) for name in ("a", "b-c")]
    ids = [re.findall(r'\bid="([^"]+)"', text) for text in texts]
    assert ids[0]
    assert not set(ids[0]) & set(ids[1])
    assert all(name.startswith("b-c-") for name in ids[1])
    both = Page(whole("".join(texts)))
    assert both.tags["svg"] == 2
    assert both.links


def test_the_same_figure_is_the_same_text():
    assert svg(figure()) == svg(figure())


def test_a_figure_is_written_as_png_and_svg(tmp_path):
    paths = write_figure(figure(), tmp_path / "figure-9")
    assert sorted(paths) == sorted(tmp_path.iterdir())
    assert sorted(path.name for path in paths) == ["figure-9.png", "figure-9.svg"]
    with Image.open(tmp_path / "figure-9.png") as image:
        image.load()
        assert len(image.convert("RGB").getcolors(1 << 24)) > 20
    root = ET.parse(tmp_path / "figure-9.svg").getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 20


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"), (0.05, "0.05"), (-2.5, "−2.5"), (10000, "10,000"), (123456, "123,456"),
        (1e6, "10⁶"), (2e-4, "2·10⁻⁴"), (-1e-5, "−10⁻⁵"), (3e7, "3·10⁷"), (0.001, "0.001"),
    ],
)  # fmt: skip
def test_ticks_are_plain_text(value, text):
    assert tick_text(value) == text


# Charts


TIMES = np.array([1, 10, 100])


def line(number=0, name="a", level=1.0):
    mean = np.array([1.0, 2.0, 3.0]) * level
    return Line(number, name, TIMES, mean, mean - 0.5, mean + 0.5)


def small_chart(**given):
    lines = [line(0, "first", 1), line(1, "</script><b>", 2)]

    def draw(axes, scale):
        draw_lines(axes, lines, scale, dotted=[Dotted([1, 100], [1, 1])])
        axes.set_ylabel("what")

    return Chart(
        "small", "Small", "A note.", [Panel("one", draw, line_data(lines))],
        ("who", "what"), ("linear", "log"), dotted="level", legend=lines, **given,
    )  # fmt: skip


def test_a_chart_has_its_legend_its_switch_and_its_numbers():
    text = render_chart(small_chart(shown="log"))
    found = Page(whole(text))
    assert found.headings == [["h2", "Small"]]
    assert found.tags["figure"] == 1
    assert len(re.findall(r'<svg[^>]*class="drawing', text)) == 2
    assert len(re.findall(r'<svg[^>]*class="key"', text)) == 3
    assert re.findall(r'data-series="(\w+)"', text) == ["s0", "s1"]
    assert re.findall(r'value="(\w+)"( checked)?>', text) == [("linear", ""), ("log", " checked")]
    (data,) = found.data
    assert data["columns"] == ["who", "time", "what", "lower", "upper"]
    assert [one["name"] for one in data["series"]] == ["first", "</script><b>"]
    assert data["series"][1]["mean"] == [2, 4, 6]
    assert data["series"][1]["lower"] == [1.5, 3.5, 5.5]
    assert found.tags["b"] == 0
    assert "level" in found.text
    for scale in ("linear", "log"):  # what is hidden with a line is all that is drawn of it
        (drawing,) = re.findall(rf'<svg[^>]*class="drawing {scale}".*?</svg>', text, re.S)
        assert drawing.count('class="s0"') == drawing.count('class="s1"') == 2


def test_one_scale_has_no_switch_and_one_line_its_legend():
    one = line()
    made = Chart("n", "T", "", [Panel("", lambda axes, scale: draw_lines(axes, [one], scale),
                 line_data([one]))], legend=[one])  # fmt: skip
    text = render_chart(made, headed=False)
    assert "fieldset" not in text
    assert "<h2>" not in text
    assert text.count("data-series") == 1


def test_letters_of_charts_are_at_least_12_pixels_on_a_phone():
    """A drawing is 360 wide, and 358 pixels on a phone of 390."""
    (width,) = set(re.findall(r'viewBox="0 0 (\d+) 262', render_chart(small_chart())))
    sizes = set(map(float, re.findall(r'font-size="([\d.]+)"', render_chart(small_chart()))))
    assert min(sizes) * 358 / float(width) >= 12


# Forests


def row(value, half=1.0, **given):
    return Row(**{"number": 0, "name": "n", "time": 9, "value": value, "lower": value - half,
                  "upper": value + half, "text": f"{value}"} | given)  # fmt: skip


def forest(rows, scale="linear", **given):
    with settings():
        made = Figure(figsize=(5, forest_height(rows) / 72))
        axes = made.subplots()
        draw_forest(axes, rows, scale, "label", **given)
        made.draw_without_rendering()
    return axes


def marks(axes):
    return [one for one in axes.lines if one.get_marker() not in ("None", "", None)]


def intervals(axes):
    return [one.get_xdata() for one in axes.lines
            if len(one.get_xdata()) == 2 and np.ptp(one.get_ydata()) == 0]  # fmt: skip


def test_a_forest_shows_each_row_at_its_value_with_its_interval():
    rows = [row(3.0, 0.5, number=1, name="a", place="1"), row(7.0, 2.0, number=2, name="b",
            filled=False, place="2-3")]  # fmt: skip
    axes = forest(rows, references=[0.0])
    assert [one.get_xdata()[0] for one in marks(axes)] == [3, 7]
    assert [one.get_ydata()[0] for one in marks(axes)] == [0, 1]
    assert [one.get_markerfacecolor() for one in marks(axes)] == [LIGHT["c1"], LIGHT["paper"]]
    assert [one.get_marker() for one in marks(axes)] == [look(1).marker, look(2).marker]
    assert np.array(intervals(axes)) == pytest.approx(np.array([[2.5, 3.5], [5, 9]]))
    assert [text.get_text() for text in axes.texts] == ["1", "a", "3.0", "2-3", "b", "7.0"]
    low, high = axes.get_xlim()
    assert low < 0
    assert high > 9
    assert axes.yaxis_inverted()  # the first is on top


@pytest.mark.parametrize(
    "number", ["3.0 (2.0 to 4.0)", "+114,635 ± 9,778", "+0.12 ± 0.07", "−85,557 ± 7,131"]
)
def test_words_of_a_forest_stand_beside_its_axis_on_the_row_of_their_mark(number):
    """Digits and signs are wider than letters: "+114,635 ±" was cut off at the page's edge."""
    rows = [row(3.0, name="a name that is rather long", text=number, place="1-2"),
            row(7.0, name="b", text=number, place="1-2")]  # fmt: skip
    left, right = forest_margins(rows)
    with settings():
        made = Figure(figsize=(5, forest_height(rows) / 72))
        wide = 360
        axes = made.add_axes((left / wide, 0.3, 1 - (left + right) / wide, 0.7))
        draw_forest(axes, rows, "linear", "label")
        made.draw_without_rendering()
    inside, (width, _) = axes.get_window_extent(), made.canvas.get_width_height()
    for text, at in zip(axes.texts, [0, 0, 0, 1, 1, 1], strict=True):
        box = text.get_window_extent()
        assert box.x1 <= inside.x0 or box.x0 >= inside.x1, text  # on no axis
        assert box.x0 + 1 >= 0
        assert box.x1 <= width + 1
        (_, y) = axes.transData.transform((0, at))
        assert abs((box.y0 + box.y1) / 2 - y) < 3  # the mark's row
    assert axes.texts[1].get_text() == "a name that is\nrather long"


def test_a_reference_has_its_tick():
    axes = forest([row(0.45, 0.1), row(0.62, 0.02)], references=[0.5])
    ticks = axes.get_xticks()
    assert 0.5 in ticks
    low, high = axes.get_xlim()
    apart = np.diff(sorted(ticks)) / (high - low)
    assert apart.min() > 0.07


@pytest.mark.parametrize("ends", [(3.0, 80.0), (2.0, 9.0), (30.0, 45.0), (1.0, 1e5), (41.0, 44.0)])
def test_a_logarithmic_axis_has_two_ticks_at_least(ends):
    with settings():
        axes = Figure().subplots()
        set_axis(axes.xaxis, "log")
        axes.set_xlim(*ends)
        ticks = axes.get_xticks()
    assert ((ticks >= ends[0]) & (ticks <= ends[1])).sum() >= 2


def test_rows_of_other_panels_are_on_the_axis_too():
    axes = forest([row(3.0)], among=[row(50.0)])
    assert axes.get_xlim()[1] > 51


def test_ticks_of_a_forest_do_not_run_into_each_other():
    with settings():
        made = Figure(figsize=(5, 2))
        axes = made.add_axes((0.3, 0.3, 0.4, 0.7))
        draw_forest(axes, [row(85_557.0, 7131.0)], "linear", "label", references=[0.0])
        made.draw_without_rendering()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_visible()]
    inside = [box for box in boxes if axes.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1 + 1]
    assert len(inside) >= 2
    assert all(one.x1 + 3 < other.x0 for one, other in pairwise(inside))


def test_a_logarithmic_forest_cuts_an_interval_that_reaches_below_zero():
    axes = forest([row(3.0, 4.0), row(300.0, 10.0)], "log")
    assert axes.get_xscale() == "log"
    low, high = axes.get_xlim()
    assert 0 < low < 3
    assert high > 310
    assert intervals(axes)[0][0] == pytest.approx(low)


def test_differences_on_a_logarithmic_axis_keep_their_zero():
    rows = [row(2.0, 1.3), row(73.0, 6.0), row(0.5, 3.0, filled=False)]
    axes = forest(rows, "log", about_zero=True, references=[0.0])
    assert axes.get_xscale() == "symlog"
    low, high = axes.get_xlim()
    assert low < -2.5
    assert high > 79
    at = axes.transAxes.inverted().transform(axes.transData.transform([(0, 0), (2, 0)]))[:, 0]
    assert at[1] - at[0] > 0.15  # what a linear axis hides
    linear = forest(rows, about_zero=True)
    at = linear.transAxes.inverted().transform(linear.transData.transform([(0, 0), (2, 0)]))[:, 0]
    assert at[1] - at[0] < 0.03


def test_what_a_linear_axis_would_hide_is_noticed():
    assert hides_a_row([row(2.0, 1.3), row(73.0, 6.0)])
    assert not hides_a_row([row(20.0, 1.3), row(73.0, 6.0)])
    assert not hides_a_row([row(2.0, 3.0, filled=False), row(73.0, 6.0)])  # nothing to see
    assert not hides_a_row([row(2.0, 3.0, filled=False)])


def test_a_row_whose_error_is_not_known_has_no_interval():
    axes = forest([row(3.0, float("nan")), row(4.0)])
    assert len(intervals(axes)) == 1
    assert len(marks(axes)) == 2


@pytest.mark.parametrize("kind", ["linear", "log", "symlog"])
def test_no_axis_has_ticks_in_formulas(kind):
    with settings():
        made = Figure()
        axes = made.subplots()
        axes.set_xlim(1, 1e5)
        set_axis(axes.xaxis, kind)
        made.draw_without_rendering()
        labels = [text.get_text() for text in axes.get_xticklabels()]
    assert len(labels) > 3
    assert not any("$" in label or "\\" in label for label in labels)


# Pieces of pages


def test_text_is_never_taken_for_html():
    nasty = "<b>&\"x'</b>"
    template = page.templates().from_string("""
        {%- extends "pages/templates/file.html" %}
        {% from "pages/templates/parts.html" import h2, summary, table %}
        {% block main %}
        <section>{{ h2(nasty) }}<p>{{ nasty }}</p><pre><code>{{ nasty }}</code></pre></section>
        <details>{{ summary(nasty, nasty) }}{{ table([nasty], [[nasty]], stacked=true) }}</details>
        {% endblock %}""")
    text = template.render(title=nasty, eyebrow=nasty, heading=nasty, lead=[nasty], nasty=nasty)
    found = Page(text)
    assert found.title == nasty
    assert found.headings == [["h1", nasty], ["h2", nasty]]
    assert found.tables == [[[nasty], [nasty]]]
    assert found.codes == [nasty]
    assert found.tags["b"] == 0
    assert found.text.count(nasty) == 10


def test_numbers_are_set_right_and_verdicts_are_marked():
    parts = page.templates().get_template("pages/templates/parts.html").module
    text = parts.table(
        ["claim", "n", "verdict"], [["x", "3", "fails"], ["holds", "4", "maybe"]], [1]
    )
    assert '<th class="number">n</th>' in text
    assert '<td class="number">3</td>' in text
    assert '<td class="fails">fails</td>' in text
    assert "<td>maybe</td>" in text


def test_a_page_is_read_on_a_phone_and_by_a_screen_reader():
    template = page.templates().from_string(
        '{% extends "pages/templates/file.html" %}{% block main %}{{ chart }}{% endblock %}'
    )
    shown = render_chart(small_chart())
    text = template.render(title="t", eyebrow="about", heading="verdict", lead=[], chart=shown)
    assert '<html lang="en">' in text
    assert '<meta charset="utf-8">' in text
    assert 'name="viewport" content="width=device-width' in text
    assert 'aria-label="Small: one"' in text
    assert 'aria-live="polite"' in text
    assert text.index("verdict") < text.index("Small")


def test_no_template_can_forget_to_escape():
    """Nothing is declared safe, no element runs or styles by itself, and every name is known."""
    names = [name for name in page.templates().list_templates() if name.endswith(".html")]
    assert len(names) > 15
    for name in names:
        text = page.templates().loader.get_source(page.templates(), name)[0]
        text = re.sub(r"\{#.*?#\}", "", text, flags=re.S)
        assert not re.search(r"\|\s*safe\b|autoescape|javascript:|\son\w+=", text), name
        assert "style=" not in text or name == "pages/templates/notebook_table.html"
        page.templates().get_template(name)


def test_a_template_that_is_not_given_what_it_shows_is_an_error():
    with pytest.raises(UndefinedError, match="'heading' is undefined"):
        page.render("serve/page/sign_in.html", title="t", visitor=None, wrong="")


def test_the_numbers_of_a_page_are_json():
    text = render_chart(small_chart())
    (numbers,) = re.findall(r'<script type="application/json">(.*?)</script>', text, re.S)
    assert json.loads(numbers)["series"][0]["colour"] == "var(--c0)"
