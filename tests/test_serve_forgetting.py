"""Forgetting over HTTP, and on the operator's page in a real browser."""

import html
import os
import re
from pathlib import Path

import pytest

import restive as rs
from chromium import browser
from live_cases import fingerprint, reply
from restive.live.told.answers import causes
from restive.live.words import Words
from serve_cases import Client, listening, served
from test_browser import LEAST_LETTERS, MEASURE, SCREENS
from test_live_forgetting import changed
from test_serve import refused
from test_serve_page import SAID, Site, told

WORDS = {"arm": "patient", "pull": "call", "tick": "week", "reward": "taken weeks"}
PICTURES = os.environ.get("RESTIVE_PICTURES")  # a folder, to look at them


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return a service of a file with an alarm of one of its two kinds."""
    live = changed(tmp_path_factory.mktemp("site") / "a.db", words=Words.from_data(WORDS))
    roles = ("read", "act", "admin")
    with served(None, agent=live) as (app, _):
        secrets = {role: live.make_token(f"the {role}", role) for role in roles}
        with listening(app) as (host, port):
            found = Site(app, live, secrets, f"http://{host}:{port}")
            found.admin = Client(app, secrets["admin"])
            yield found


def test_an_alarm_says_what_to_forget_and_it_is_forgotten_and_undone(site):
    before = fingerprint(site.live)
    (alarm,) = [one for one in site.reader.get("/v1/alarms").json() if one["kind"] == "town"]
    assert alarm["began"] <= alarm["tick"]
    assert alarm["began_date"] == site.live.settings.clock.label(alarm["began"])
    assert "forget what was seen of them before" in alarm["remedy"]
    body = {"kind": alarm["kind"], "before": alarm["began_date"]}
    for client in (site.reader, site.actor):
        refused(client.post("/v1/forget", json=body), 403, "role admin")
    answer = site.admin.post("/v1/forget", json=body, headers={"Idempotency-Key": "one"})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    when = f"week {alarm['began']} ({alarm['began_date']})"
    assert found["text"] == f"what was seen of patients of kind 'town' before {when} is forgotten"
    assert (found["before"], found["arms"], found["everyone"]) == (alarm["began"], 6, False)
    again = site.admin.post("/v1/forget", json=body, headers={"Idempotency-Key": "one"})
    assert again.json() == found
    assert site.reader.get("/v1/status").json()["forgotten"] == [found]
    why = site.reader.get("/v1/explanations/town 0").json()
    assert why["forgotten"] == alarm["began"]
    assert f"What was seen before {when} is forgotten." in why["lines"]
    refused(site.actor.post("/v1/undo", json={}), 403, "role admin")
    undone = site.admin.post("/v1/undo", json={}).json()
    assert undone["kind"] == "forget"
    assert undone["who"].endswith(f"before {when}")
    assert fingerprint(site.live) == before


def test_a_memory_is_set_and_undone(site):
    refused(site.actor.post("/v1/remember", json={"ticks": 52}), 403, "role admin")
    found = site.admin.post("/v1/remember", json={"ticks": 52}).json()
    assert found == {
        "text": "results count less as they grow old: 37% after 52 weeks", "ticks": 52,
    }  # fmt: skip
    assert site.reader.get("/v1/status").json()["forget_after"] == 52
    assert site.admin.post("/v1/undo", json={}).json()["kind"] == "remember"
    assert site.reader.get("/v1/status").json()["forget_after"] is None


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("forget", {}, 422, "before"),
        ("forget", {"before": 2, "all": True}, 422, "all"),
        ("forget", {"before": 900}, 422, "has no list yet"),
        ("forget", {"before": 0}, 422, "nothing was seen before week 0"),
        ("forget", {"before": "soon"}, 422, "must be year-month-day"),
        ("forget", {"before": 2, "kind": "moon"}, 422, "there is no kind 'moon'"),
        ("forget", {"before": 2, "arms": ["moon"]}, 422, "there is no patient 'moon'"),
        ("forget", {"before": 2, "arms": []}, 422, "arms"),
        ("forget", {"before": 2, "arms": ["town 1"], "kind": "town"}, 422, "not both"),
        ("remember", {}, 422, "ticks"),
        ("remember", {"ticks": 0.5}, 422, "must be a number from 1"),
        ("remember", {"ticks": "long"}, 422, "ticks"),
        ("remember", {"ticks": None}, 422, "already"),
    ],
)
def test_bad_requests_change_nothing(site, path, body, status, words):
    before = site.live.events()
    refused(site.admin.post(f"/v1/{path}", json=body), status, words)
    assert site.live.events() == before


# ---------------------------------------------------------------- on the page


def forms(client, path):
    """Return what stands on a page's forms for forgetting."""
    text = client.get(path).text
    return re.findall(r'class="(?:forget|remember)">.*?<button>(.*?)</button>', text, re.DOTALL)


def test_only_who_manages_has_the_buttons(site):
    began = next(one.began for one in site.live.alarms() if one.kind == "town")
    when = f"week {began} ({site.live.settings.clock.label(began)})"
    alarms = [one for one in site.live.alarms() if one.began is not None]
    whose = f"Forget what was seen of patients of kind 'town' before {when}"
    (found, *_) = forms(site.admin, "/")
    assert html.unescape(re.sub(r"<[^>]*>", "", found)) == whose
    assert len(forms(site.admin, "/")) == len(alarms)
    assert forms(site.admin, "/arms") == forms(site.admin, "/arms/town 1") == ["Forget"]
    assert forms(site.admin, "/known") == ["Set"]
    for path in ("/", "/arms", "/arms/town 1", "/known"):
        assert forms(site.actor, path) == []
    assert "whoever manages this page can do that" in site.actor.get("/").text
    for path in ("/forget", "/remember"):
        refused(site.actor.post(path), 403, "role admin")


@pytest.mark.parametrize(
    ("path", "sent", "words"),
    [
        ("/forget", {"before": ""}, "must be year-month-day"),
        ("/forget", {"before": "2026-01-01"}, "is before the start"),
        ("/forget", {"before": "3", "arm": "moon"}, "there is no patient &#39;moon&#39;"),
        ("/forget", {"before": "3000"}, "has no list yet"),
        ("/remember", {"ticks": "0"}, "must be a number from 1"),
        ("/remember", {"ticks": "x"}, "must be a whole number"),
        ("/remember", {}, "old results count as much as new ones already"),
        ("/decide", {"date": "2026-11-16"}, "one that was a slip can be undone</"),
    ],
)
def test_wrong_forms_get_a_sentence(site, path, sent, words):
    before = site.live.events()
    assert site.admin.post(path, data=sent).status_code == 303
    page = site.admin.get("/").text
    assert '<output aria-live="polite" class="wrong">' in page
    assert words in page
    assert site.live.events() == before


@pytest.mark.parametrize("clock", [rs.Clock.given(), rs.Clock.given("2026-11-16T06:00", "P1D")])
def test_dates_are_asked_for_as_the_clock_has_them(tmp_path, clock):
    with served(tmp_path / "a.db", clock=clock) as (app, live):
        client = Client(app, live.make_token("a", "admin"))
        for tick in range(3):
            live.record({a: reply(tick, a) for a in live.decide(tick=tick).arms})
        kind = "datetime-local" if clock.has_dates else "number"
        page = client.get("/arms").text
        assert f'<input type="{kind}" name="before" required' in page
        before = "2026-11-18T06:00" if clock.has_dates else "2"
        assert client.post("/forget", data={"before": before, "kind": ""}).status_code == 303
        assert live.status().forgotten[0].before == 2
        assert "is forgotten" in client.get("/known").text


@pytest.fixture(scope="module")
def tab(tmp_path_factory, site):
    """Return a browser that has signed in as one who manages."""
    with browser(tmp_path_factory.mktemp("browser")) as one:
        one.screen(SCREENS["desk"])
        one.call(
            "Network.setCookie", url=site.base, name="restive",
            value=site.live.sign_in(site.secrets["admin"], 1), httpOnly=True, sameSite="Strict",
        )  # fmt: skip
        yield one


@pytest.mark.parametrize("device", SCREENS)
def test_the_pages_fit(site, tab, device):
    tab.screen(SCREENS[device])
    for path in ("/", "/arms", "/arms/town 1", "/known"):
        tab.open(site.base + path.replace(" ", "%20"))
        found = tab.run(MEASURE % LEAST_LETTERS)
        assert (found["small"], found["beyond"], found["scroll"]) == ([], [], 0), path
        assert tab.said() == []
        if PICTURES:
            name = f"{device}{path.replace('/', '-').replace(' ', '-')}.png"
            tab.picture(Path(PICTURES) / name)


def test_a_tap_forgets_and_undo_takes_it_back(site, tab):
    before = fingerprint(site.live)
    tab.screen(SCREENS["phone"])
    tab.open(f"{site.base}/")
    told(tab, "document.querySelector('.alarm .forget button').click()")
    assert "is forgotten." in tab.run(SAID)
    alarm = tab.run("document.querySelector('.alarm').textContent")
    assert "is forgotten; now say what was found." in alarm
    assert tab.run("document.querySelector('.alarm .forget')") is None
    button = "document.querySelector('.bar .undo button')"
    assert tab.run(f"{button}.textContent").startswith("Undo the forgetting of what was seen of")
    assert site.live.status().forgotten
    if PICTURES:
        tab.picture(Path(PICTURES) / "phone-forgotten.png")
    told(tab, f"{button}.click()")
    assert tab.run(SAID).startswith("Taken back: the forgetting of what was seen of")
    assert fingerprint(site.live) == before
    assert tab.said() == []


def test_an_alarm_leads_to_who_was_called_in_its_weeks(site):
    began = next(one.began for one in site.live.alarms() if one.kind == "town")
    page = site.actor.get("/").text
    assert f'class="when" href="/lists/{began}"' in page
    week = site.actor.get(f"/lists/{began}").text
    for arm, result in site.live.results(began).items():
        row = re.search(rf"<tr>(?:(?!</tr>).)*/arms/{arm.replace(' ', '%20')}#.*?</tr>", week)[0]
        assert f"<b>{site.live.settings.outcome_text(result)}</b>" in row
    label = site.live.settings.clock.label(began)
    assert f'<h1>Week {began} (<span class="when">{label}</span>): 12 patients</h1>' in week
    assert f'href="/lists/{began - 1}"' in week
    assert f'href="/lists/{site.live.tick - 1}">Earlier lists' in page


def test_an_address_of_nobody_is_a_page_to_people(site):
    for path, words in (
        ("/arms/moon", "There is no patient &#39;moon&#39;"),
        ("/lists/900", "There is no list for week 900."),
    ):
        answer = site.actor.get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert answer.status_code == 404
        assert "<h1>Not here</h1>" in answer.text
        assert words in answer.text
        refused(site.actor.get(path), 404, "there is no")
    for wrong in ("x", "9" * 5000):
        refused(site.actor.get(f"/lists/{wrong}"), 422, "tick")


def test_what_was_typed_stays_where_somebody_cannot_join(site):
    before = site.live.events()
    answer = site.admin.post("/join", data={"name": "town 1", "kind": "rural"})
    assert answer.headers["location"] == "/arms?joins=town+1&kind=rural#somebody-joins"
    page = site.admin.get(answer.headers["location"]).text
    assert 'maxlength="200" value="town 1"' in page
    assert "<option selected>rural</option>" in page
    assert 'class="wrong">patient &#39;town 1&#39; is there already' in page
    assert site.live.events() == before


def test_undo_names_the_alarm_that_was_answered(site):
    alarm = next(one for one in site.live.alarms() if one.kind == "town")
    assert site.actor.post("/acknowledge", data={"alarm": alarm.seq, "note": "a"}).status_code
    assert "Undo the answer to the alarm “taken weeks too low: town” in week" in (
        site.actor.get("/").text
    )
    site.live.undo()


def test_alarms_of_one_cause_are_answered_at_once(tmp_path):
    with served(None, agent=changed(tmp_path / "a.db", until="reward too low")) as (app, live):
        client, before = Client(app, live.make_token("a", "act")), live.alarms()
        assert len(before) == 2
        (first, other) = (one.seq for one in causes(before)[0])
        page = client.get("/").text
        assert page.count('action="/acknowledge"') == 1
        assert f'name="alarm" value="{first} {other}"' in page
        answer = {"alarm": f"{first} {other}", "note": "the export"}
        assert client.post("/acknowledge", data=answer).status_code == 303
        assert live.alarms() == ()
        assert "“reward too low” and “reward too low: town”" in client.get("/").text
        live.undo()
        assert live.alarms() == before


LINES = """(() => {
  const lines = node => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return new Set([...range.getClientRects()].map(one => Math.round(one.top))).size;
  };
  return [...document.querySelectorAll("%s")].map(lines);
})()"""


def test_on_a_phone_names_and_dates_are_whole_and_what_can_be_tapped_looks_so(site, tab):
    tab.screen(SCREENS["phone"], height=844)
    tab.open(f"{site.base}/arms")
    names = tab.run(LINES % "td:first-child a")
    assert names == [1] * 12
    assert tab.run(LINES % "th:first-child a") == [1]
    kind = "[...document.querySelectorAll('.join label')].at(-1).getBoundingClientRect().height"
    select = "document.querySelector('.join select').getBoundingClientRect().height"
    assert tab.run(f"{kind} - {select}") < 2, "its word stands beside the menu, not above it"
    apart = """(() => {
      const tops = [...document.querySelectorAll(".forget :is(input, select, button)")]
        .map(one => one.getBoundingClientRect()).sort((a, b) => a.top - b.top);
      return tops.slice(1).map((one, at) => [one.top - tops[at].bottom, one.left - tops[at].right]);
    })()"""
    assert all(down >= 6 or beside >= 6 or down < -20 for down, beside in tab.run(apart))
    site.live.leave(["town 1"], actor="the act")
    tab.open(f"{site.base}/")
    assert set(tab.run(LINES % ".alarm .when, h1 .when, .bar .when")) == {1}
    edge = "getComputedStyle(document.querySelector('.asks summary')).borderTopWidth"
    assert tab.run(edge) == "1px"
    centre = """(() => {
      const button = document.querySelector("a.button"), range = document.createRange();
      range.selectNodeContents(button);
      const [text, own] = [range.getBoundingClientRect(), button.getBoundingClientRect()];
      return (text.top + text.bottom - own.top - own.bottom) / 2;
    })()"""
    assert abs(tab.run(centre)) < 2
    site.live.undo()
    tab.open(f"{site.base}/arms/town%201")
    assert set(tab.run(LINES % ".why .when")) == {1}
    assert tab.run(edge) == "1px", "that somebody leaves is asked first, and can be tapped"
    assert tab.said() == []


def test_an_alarm_leaves_out_weeks_without_results(tmp_path):
    with served(None, agent=changed(tmp_path / "a.db")) as (app, live):
        client = Client(app, live.make_token("a", "act"))
        full = live.tick
        for _ in range(2):
            live.decide(tick=live.tick + 1)
        page = client.get("/").text
        assert f'href="/lists/{full}">tick {full}' in page
        assert f'href="/lists/{full + 1}">tick {full + 1}' not in page
        assert "0.0 seen" not in page
