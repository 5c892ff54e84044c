"""The operator's page: its numbers by other means, and the page itself in a real browser."""

import csv
import html
import io
import re
from time import sleep

import numpy as np
import pytest
from scipy.stats import entropy

import restive as rs
from chromium import browser
from live_cases import PRIORS, Ticking, created, reply, run
from restive.live.creating import rebuild_file
from restive.live.people.sheets import parse_sheet
from restive.live.settings import Settings
from restive.pages.looks import DARK, LIGHT
from restive.serve.page.charts import belief_curve, reward_lines
from serve_cases import Client, listening, served
from serve_story import HOSTILE, story
from test_browser import LEAST_LETTERS, MEASURE, SCREENS, UNFOLD, rgb
from test_serve import refused, ring

PAGES = [
    "/",
    "/arms",
    "/arms?by=name&after=A40",
    "/arms?by=belief",
    "/arms/A04",
    "/known",
    "/lists/29",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    agent = story(tmp_path_factory.mktemp("site") / "a.db")
    with served(None, agent=agent) as (app, live):
        secrets = {role: live.make_token(f"{role} & co", role) for role in ("read", "act")}
        with listening(app) as (host, port):
            yield Site(app, live, secrets, f"http://{host}:{port}")


HOSTILE_WORDS = {
    "arm": "patient", "pull": "call", "tick": "week", "reward": "<script>alert(1)</script> $x$",
}  # fmt: skip


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """Return a service with words of its own, one of them with markup, and an alarm."""
    live = rs.LiveAgent.create(
        tmp_path_factory.mktemp("clinic") / "a.db", rs.grid_prior([0.2, 0.5, 0.8], 9), 3,
        clock=rs.Clock.given("2026-11-16", "P7D"), names=[f"P{k}" for k in range(9)], seed=3,
        states=["hung_up", "listened"], words=HOSTILE_WORDS, durability="process",
    )  # fmt: skip
    for tick in range(4):
        arms = live.decide(tick=tick).arms
        live.record({name: reply(tick, name) for name in arms[tick % 2 :]})
    live.decide(tick=4)
    with served(None, agent=live) as (app, _):
        secrets = {role: live.make_token(f"the {role}", role) for role in ("read", "act")}
        with listening(app) as (host, port):
            yield Site(app, live, secrets, f"http://{host}:{port}")


class Site:
    def __init__(self, app, live, secrets, base):
        self.app, self.live, self.secrets, self.base = app, live, secrets, base
        self.reader = Client(app, secrets["read"])
        self.actor = Client(app, secrets["act"])


# ---------------------------------------------------------------- its numbers


@pytest.mark.parametrize("kind", ["equal", "controlled"])
def test_the_belief_curve_ends_where_the_agents_belief_is(tmp_path, kind):
    live = created(tmp_path / "a.db", kind, clock=rs.Clock.given())
    for tick in (0, 1, 4, 5, 9):
        live.record({name: reply(tick, name) for name in live.decide(tick=tick, skip=True).arms})
    live.decide(tick=12, skip=True)
    looked_at = 0
    for name in map(str, range(6)):
        seen = [
            (row["tick"], row["state"]) for row in live.history(name) if row["state"] is not None
        ]
        if not seen:
            continue
        ticks, chances = belief_curve(live.posterior(name), seen, 12)
        assert ticks.tolist() == list(range(seen[0][0], 13))
        assert chances[-1] == pytest.approx(live.belief(name)[1], abs=1e-12)
        for tick, state in seen:
            assert chances[ticks.tolist().index(tick)] == state
        looked_at += 1
    assert looked_at >= 3


def test_reward_lines_are_sums_of_what_was_earned_and_foreseen(tmp_path):
    live = created(tmp_path / "a.db")
    run(live, 9)
    (earned, forecast), (sum_earned, sum_forecast) = reward_lines(live.reward_table())
    decisions = [live.decision(tick) for tick in range(9)]
    rewards = [sum(reply(d.tick, name) for name in d.arms) for d in decisions]
    means = [sum(d.expected) for d in decisions]
    spread = np.sqrt([sum(p * (1 - p) for p in d.expected) for d in decisions])
    np.testing.assert_allclose(earned.mean, rewards)
    np.testing.assert_allclose(forecast.mean, means)
    np.testing.assert_allclose(forecast.upper - forecast.mean, 1.96 * spread, rtol=1e-3)
    np.testing.assert_allclose(sum_earned.mean, np.cumsum(rewards))
    np.testing.assert_allclose(
        sum_forecast.mean - sum_forecast.lower, 1.96 * np.sqrt(np.cumsum(spread**2)), rtol=1e-3
    )


def test_what_is_known_by_kind_is_what_posteriors_say(site):
    live = site.live
    (kind,) = live.known()
    seen = [row for row in live.arms(limit=1000) if row.last_state is not None]
    assert (kind.arms, kind.seen, kind.chains) == (60, len(seen), 25)
    gains = [live.posterior(row.name).mean().active[0, 1] for row in seen]
    np.testing.assert_allclose(sorted(kind.gains), sorted(gains))
    learning = live.learning()
    assert learning.episode >= 1
    assert learning.began + learning.length == live.tick
    assert 0 < learning.distance < 1


@pytest.mark.parametrize("kind", PRIORS)
def test_entropy_begins_with_the_priors_and_ends_with_the_posteriors(tmp_path, kind):
    live = created(tmp_path / "a.db", kind, clock=rs.Clock.given())
    for tick in (0, 1, 4, 5, 9, 12):
        arms = live.decide(tick=tick, skip=True).arms
        live.record({name: reply(tick, name) for name in arms[tick % 2 :]})
    live.record({name: reply(5, name) for name in live.decision(5).arms}, 5)  # some late
    if kind != "joint":
        live.join({"new": live.kinds[0]}, {"new": (0, 3)})
    live.record(
        {name: reply(20, name) for name in live.decide(tick=20, num_pulls=6, skip=True).arms[:5]}
    )
    seen = [row for row in live.arms(limit=1000) if row.last_state is not None]
    finite = {"mixed": ["0", "2"], "pooled": ["0"], "continuous": [], "controlled continuous": []}
    found = {each.kind: each for each in live.entropy()}
    assert list(found) == finite.get(kind, ["all"])
    for name, each in found.items():
        own = [row.name for row in seen if row.kind == name][: 1 if kind == "joint" else None]
        for at, believed in ((0, live.prior), (-1, live.posterior)):
            bits = [entropy(believed(one).weights, base=2) for one in own]
            assert each.bits[at] == pytest.approx(np.mean(bits), abs=1e-9)
        assert each.ticks[0] == -1
        assert each.ticks[-1] == 20


def test_entropy_in_the_middle_is_that_of_the_agent_then(tmp_path):
    live, then = created(tmp_path / "a.db"), []
    for _ in range(25):
        run(live, 1)
        seen = [row.name for row in live.arms(limit=9) if row.last_state is not None]
        then.append([entropy(live.posterior(one).weights, base=2) for one in seen])
    assert len(then[-1]) == 6
    (found,) = live.entropy()
    assert found.ticks.tolist() == list(range(-1, 25))
    for tick in (12, 18, 24):  # by when all had been seen
        assert found.bits[1 + tick] == pytest.approx(np.mean(then[tick]), abs=1e-9)


@pytest.mark.parametrize("kind", PRIORS)
def test_room_left_is_the_bound_of_the_mean_arms(tmp_path, kind):
    live = created(tmp_path / "a.db", kind)
    run(live, 9)
    live.leave(["3"])
    live.decide()
    means = [live.posterior(name).mean() for name in "01245"]
    arms = [rs.Arm(mean.active, mean.passive, [0, 1]) for mean in means]
    room = live.headroom()
    assert room.bound == pytest.approx(rs.relaxation_bound(rs.RestlessBandit(arms, 2)), rel=1e-9)
    decisions = [live.decision(tick) for tick in range(9)]
    rewards = [reply(d.tick, name) for d in decisions for name in d.arms]
    assert room.earned == pytest.approx(2 * np.mean(rewards))
    assert room.foreseen == pytest.approx(np.mean([sum(d.expected) for d in decisions]))
    assert room.ticks == 9


def test_room_of_many_arms_is_that_of_arms_that_stand_for_others(tmp_path):
    live = created(tmp_path / "a.db", num_arms=400, num_pulls=150)
    run(live, 5)
    live.decide()
    means = [live.posterior(str(k)).mean() for k in range(400)]
    arms = [rs.Arm(mean.active, mean.passive, [0, 1]) for mean in means]
    whole = rs.relaxation_bound(rs.RestlessBandit(arms, 150))
    assert live.headroom().bound == pytest.approx(whole, rel=0.03)


def test_arms_that_pay_without_being_pulled_have_no_room_that_could_be_seen(tmp_path):
    prior = rs.beta_prior(3, passive_rewards=(0, 0.5))
    with rs.LiveAgent.create(tmp_path / "a.db", prior, 1) as live:
        assert live.headroom() is None
        with served(None, agent=live) as (app, _):
            shown = Client(app, live.make_token("a", "read")).get("/known").text
            assert "These arms count without a pull, too" in shown


@pytest.mark.parametrize("kind", PRIORS)
def test_arms_are_sorted_by_belief(tmp_path, kind):
    live = created(tmp_path / "a.db", kind)
    run(live, 7)
    arms = live.decide().arms
    live.record({arms[0]: 1})
    live.leave(["4"])
    found = live.arms(by="belief")
    assert [row.name for row in found][-1] == "4"
    chances = [live.belief(row.name)[1] for row in found[:-1]]
    assert chances == sorted(chances, reverse=True)
    assert [row.good for row in found[:-1]] == chances
    assert [row.name for row in live.arms(2, by="belief")] == [row.name for row in found[2:]]


# ---------------------------------------------------------------- without a browser


@pytest.mark.parametrize("path", PAGES)
def test_a_page_asks_to_sign_in_and_shows_nothing_before(site, path):
    for client in (Client(site.app), Client(site.app, "wrong")):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
        assert "A04" not in answer.text
    shown = site.reader.get(path)
    assert shown.status_code == 200
    assert shown.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in shown.headers["content-security-policy"]
    assert "unsafe" not in shown.headers["content-security-policy"]
    assert 'style="' not in shown.text
    assert HOSTILE not in shown.text


def test_a_reader_is_offered_no_changes(site):
    for kind in ("drop", "decide"):
        assert f'class="{kind}"' in site.actor.get("/").text
        assert f'class="{kind}"' not in site.reader.get("/").text


def test_the_pulls_are_downloaded_as_the_command_line_writes_them(site):
    answer = site.reader.get("/decisions/30.csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="list-30.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["arm"] for row in rows] == list(site.live.decision().arms)
    assert parse_sheet(answer.content, "x").columns[:3] == ("tick", "date", "arm")
    for name in ("31.csv", "x.csv", "30", "..%2fa.db", "9" * 16 + ".csv"):
        refused(site.reader.get(f"/decisions/{name}"), 404, "")
    refused(Client(site.app).get("/decisions/30.csv"), 401, "missing")


def test_arms_are_found_by_name_and_listed_in_pages(site):
    found = site.reader.get("/arms", params={"find": "A04"}).text
    assert "<h1>Arm A04</h1>" in found
    near = site.reader.get("/arms", params={"find": "A5"}).text
    assert ">A50</a>" in near
    assert ">A49</a>" not in near
    for by in ("index", "pulls", "age", "belief", "name"):
        first = site.reader.get(f"/arms?by={by}").text
        assert first.count('<tr><td><a href="/arms/') == 50
        after = "A48" if by == "name" else "50"
        assert site.reader.get(f"/arms?by={by}&after={after}").text.count("<tr><td>") == 10
    assert site.reader.get("/arms?by=name").text.count("&lt;b onclick") == 1
    refused(site.reader.get("/arms?by=luck"), 422, "by must be one of")
    refused(site.reader.get("/arms/nobody"), 404, "there is no arm 'nobody'")


def test_pages_of_an_agent_that_has_done_nothing_yet(tmp_path):
    with served(tmp_path / "a.db", kind="controlled") as (app, live):
        client = Client(app, live.make_token("a", "act"))
        assert "There is no list yet" in client.get("/").text
        for path in ("/arms", "/arms/3", "/known"):
            assert client.get(path).status_code == 200
        live.join(["new"])
        assert "joins next" in client.get("/arms/new").text
        run(live, 3)
        live.leave(["3"])
        for path in ("/", "/arms", "/arms/3", "/known"):
            assert client.get(path).status_code == 200


def test_pages_of_an_agent_that_goes_by_means_and_learns_kinds(tmp_path):
    prior = rs.spread_prior(6, passive_rewards=(0, 1), points=16, controlled=True)
    learner = {"name": "mean_index", "learn_kinds": "epochs"}
    options = {"learner": learner, "missing": "as-not-pulled", "clock": rs.Clock.given()}
    texts = ["not yet, next for tick 3"] * 3  # which is time 4, the first at which it is done
    texts += ["once so far, next for tick 5"] * 2 + ["2 times so far, next for tick 8"]
    live = rs.LiveAgent.create(tmp_path / "a.db", prior, 2, **options)
    with served(None, agent=live) as (app, _):
        client = Client(app, live.make_token("a", "act"))
        for tick, text in enumerate(texts):
            live.record({name: reply(tick, name) for name in live.decide(tick=tick).arms})
            for path in ("/", "/arms", "/arms/3"):
                assert client.get(path).status_code == 200
            known = " ".join(words_of(client.get("/known").text).split())
            assert "have on average over all that they may be" in known
            assert text in known


def test_a_rebuilt_file_has_the_same_chart_of_rewards(tmp_path):
    live = created(tmp_path / "a.db")
    run(live, 5)
    live.close()
    rebuild_file(tmp_path / "a.db", tmp_path / "b.db")
    with rs.LiveAgent.open(tmp_path / "a.db") as one, rs.LiveAgent.open(tmp_path / "b.db") as other:
        assert other.rewards() == one.rewards()


def test_what_can_be_tapped_is_the_operators_words_where_there_are_any():
    texts = {
        (): ["0", "1", "unseen", "not-pulled"],
        (("good", 1),): ["good", "0", "unseen", "not-pulled"],
        (("no_answer", "unseen"),): ["no_answer", "0", "1", "not-pulled"],
        (("good", 1), ("bad", 0), ("away", "not-pulled")): ["good", "bad", "away"],
    }
    for outcomes, words in texts.items():
        assert list(Settings(num_pulls=1, outcomes=dict(outcomes)).choices(2)) == words


def test_results_that_come_late_are_tapped_in_and_people_join_and_leave(tmp_path):
    clock = rs.Clock.given("2026-11-16", "P7D")
    outcomes = {"good": 1, "bad": 0, "no_answer": "not-pulled", "wrong_number": "leave"}
    with served(tmp_path / "a.db", clock=clock, outcomes=outcomes, num_pulls=3) as (app, live):
        client = Client(app, live.make_token("a", "admin"), base_url="http://testserver")

        def post(path, **fields):
            assert client.post(path, data=fields).status_code == 303
            return html.unescape(re.search(r"<output[^>]*>(.*?)</output>", client.get("/").text)[1])

        first, second, third = live.decide(tick=0).arms
        live.record({first: "good"})
        assert "Results of earlier" not in client.get("/").text
        live.decide(tick=1)
        assert live.missing_results() == [(0, second), (0, third)]
        page = words_of(client.get("/").text)
        late = page[page.index("Results of earlier") : page.index("The next list")]
        assert re.findall(r"\bP?\d+(?=\s)", late)[:1] == [second]
        assert "tick 0 (2026-11-16)" in late
        over = "Tick 0 is over and the list of tick 1 is made: this came late, and is used."
        assert post("/record", arm=second, tick=0, result="bad") == f"{second}: bad. {over}"
        assert live.missing_results() == [(0, third)]
        told = client.get("/").text.partition("Results of earlier")[2].partition("</section>")[0]
        assert f"{second} bad change" in " ".join(words_of(told).split())
        live.join({"since": live.kinds[0]})
        said = post("/change", arm=second, tick=0, result="bad")
        assert said == f"{second} stays as it was: bad."
        said = post("/change", arm=second, tick=0, result="good")
        assert said == f"{second}: good now, and no longer bad."
        said = post("/record", arm=third, tick=0, result="no_answer")
        assert said == f"{third}: no answer. {over}"
        assert live.missing_results() == []
        shown = words_of(client.get(f"/arms/{third}").text)
        assert "no answer" in shown  # their own word, not ours
        assert "no pull made" not in shown
        gone = live.decision().arms[0]
        said = post("/record", arm=gone, tick=1, result="wrong_number")
        assert said == f"{gone}: wrong number. {gone} is on no list any more."
        row = re.search(
            rf"<tr[^>]*>(?:(?!</tr>).)*{gone}\b.*?</tr>", client.get("/").text, re.DOTALL
        )
        assert "wrong number" in words_of(row[0])  # on the list, and not as "not reached"
        assert "not reached" not in words_of(row[0])
        shown = words_of(client.get(f"/arms/{gone}").text)
        assert "its result has come in: wrong number." in shown
        assert "not reached" not in shown
        said = post("/join", name="new", kind=live.kinds[0])
        assert said == "new has joined, and can be on the next list of arms."
        assert post("/join", name="x", kind="none").startswith("arm 'x': there is no kind 'none'")
        assert post("/leave", arm="new") == "new has left, and is on no list any more."
        assert post("/undo", event=live.last_act().event) == (
            "Taken back: the leaving of new in tick 1 (2026-11-23)."
        )
        page = words_of(client.get("/arms?find=zzz").text)
        assert "There is no arm 'zzz', and no name begins so" in page
        assert "priority" not in page


def test_names_are_found_in_capitals_or_not(clinic):
    own = words_of(clinic.reader.get("/arms/P3").text)
    for text in ("P3", "p3", "%20p3%20"):
        assert words_of(clinic.reader.get(f"/arms?find={text}").text) == own
    found = words_of(clinic.reader.get("/arms?find=p").text)
    assert "There is no patient 'p'; these names begin so:" in found
    assert "P0" in found
    assert "P8" in found
    found = words_of(clinic.reader.get("/arms?find=q").text)
    assert "There is no patient 'q', and no name begins so" in found
    assert "P8" not in found
    clinic.live.join(
        {"Ä": clinic.live.kinds[0], "ä": clinic.live.kinds[0], "Ö": clinic.live.kinds[0]}
    )
    for text, name in (("Ä", "Ä"), ("ä", "ä"), ("ö", "Ö")):
        page = clinic.reader.get(f"/arms?find={text}").text
        assert f"<h1>Patient {name}" in page or f"Patient {name}" in words_of(page)
    clinic.live.join({"AB": clinic.live.kinds[0], "ab": clinic.live.kinds[0]})
    assert "did you mean AB or ab?" in words_of(clinic.reader.get("/arms?find=Ab").text)
    clinic.live.undo()
    clinic.live.undo()


def test_style_and_scripts_are_open_to_all_and_nothing_else_is(site):
    stranger = Client(site.app)
    for name in ("page.css", "operator.css", "charts.js", "operator.js"):
        answer = stranger.get(f"/static/{name}")
        kind = {"css": "text/css", "js": "text/javascript"}[name.rpartition(".")[2]]
        assert answer.headers["content-type"].startswith(kind)
    refused(stranger.get("/static/routes.py"), 404, "Not Found")


def words_of(page):
    """What a person reads of a page, without names that operators gave."""
    text = re.sub(r"<(script|style|svg|code)\b.*?</\1>", " ", page, flags=re.S)
    return html.unescape(re.sub(r"<[^>]*>", " ", text))


JARGON = re.compile(r"\b(ticks?|arms?|pulls?|pulled|unseen|holds|s\.d\.|1 new|1 \w+s)\b", re.I)


@pytest.mark.parametrize("path", ["/", "/arms", "/arms/P1", "/arms/P2", "/known"])
def test_pages_speak_the_operators_words(clinic, path):
    page = clinic.actor.get(path).text
    assert not JARGON.findall(words_of(page))
    assert "<script>alert" not in page
    if path != "/arms":  # where nothing is said of rewards
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert ">Patients</a>" in page
    assert "Listened" in words_of(page) or "listened" in words_of(page)


def test_a_form_does_what_it_says_once_and_only_for_our_own_page(clinic):
    live, tick = clinic.live, clinic.live.tick
    arm = live.decision().arms[0]
    body = {"arm": arm, "tick": tick, "result": "listened"}
    browser = Client(clinic.app, base_url="http://testserver")
    browser.cookies.set("restive", live.sign_in(clinic.secrets["act"], 1))
    before = live.events()
    for wrong in ({}, {"forgery": ""}, {"forgery": "x" * 64}):
        refused(browser.post("/record", data=body | wrong), 403, "needs the page's value")
    page = browser.get("/").text
    forgery = re.search(r'name="forgery" value="([0-9a-f]+)"', page)[1]
    other = {"Sec-Fetch-Site": "cross-site"}
    refused(
        browser.post("/record", data=body | {"forgery": forgery}, headers=other), 403, "another"
    )
    assert live.events() == before
    for path in ("/record", "/decide", "/undo", "/acknowledge"):
        stranger = Client(clinic.app).post(path)
        assert (stranger.status_code, stranger.headers["location"]) == (303, "/login")
        refused(clinic.reader.post(path), 403, "needs a token of role act")
    done = browser.post("/record", data=body | {"forgery": forgery})
    assert (done.status_code, done.headers["location"]) == (303, "/")
    assert live.results()[arm] == 1
    assert f">{arm}: listened.<" in browser.get("/").text
    assert f">{arm}: listened.<" not in browser.get("/").text  # it is told once
    again = browser.post("/undo", data={"forgery": forgery, "event": live.last_act().event})
    assert again.status_code == 303
    taken = html.unescape(browser.get("/").text)
    assert f"Taken back: {arm}: listened in week" in taken
    assert f"{arm} has no result again." in taken
    assert live.results()[arm] == "open"
    for path, sent, words in (
        (
            "/record",
            {"arm": "nobody", "result": "listened"},
            "there is no patient &#39;nobody&#39;",
        ),
        ("/record", {"arm": arm, "result": "asleep"}, "unknown outcome &#39;asleep&#39;"),
        ("/record", {"arm": arm, "result": "listened", "tick": "x"}, "must be a whole number"),
        ("/decide", {"date": "23.11.2026"}, "date must be year-month-day, such as"),
        ("/decide", {"date": "2026-11-23T00:00+05:30"}, "leave out the offset"),
        ("/decide", {}, "say which week the list is for"),
        ("/decide", {"date": "2072-02-15"}, "Nothing was done: look at the date again"),
        ("/undo", {"event": "1"}, "nothing was changed"),
        ("/acknowledge", {"alarm": "99", "note": "x"}, "there is no alarm 99"),
    ):
        before = live.events()
        assert browser.post(path, data=sent | {"forgery": forgery}).status_code == 303
        shown = browser.get("/").text
        assert '<output aria-live="polite" class="wrong">' in shown
        assert words in shown
        assert live.events() == before


@pytest.mark.parametrize(
    ("clock", "field"),
    [
        (rs.Clock.given(), '<input type="number" name="tick" min="0" required value="1">'),
        (rs.Clock.given("2026-11-16", "P7D"),
         '<input type="date" name="date" required value="2026-11-23">'),
        (rs.Clock.given("2026-11-16T06:00", "P1D"),
         '<input type="datetime-local" name="date" required value="2026-11-17T06:00:00">'),
        (rs.Clock.given("2026-11-16", "PT6H"),
         '<input type="datetime-local" name="date" required value="2026-11-16T06:00:00">'),
        (rs.Clock.calls(), '><button>Make the list</button>'),
        (rs.Clock.wall("2026-11-16", "P7D"), '><button>Make the list</button>'),
    ],
    ids=["number", "date", "time of day", "hours", "calls", "wall"],
)  # fmt: skip
def test_the_next_list_asks_for_what_its_clock_needs(tmp_path, clock, field):
    now = Ticking("2026-11-17")
    with served(tmp_path / "a.db", clock=clock, now=now) as (app, live):
        client = Client(app, live.make_token("a", "act"))
        live.decide(tick=0 if clock.kind == "given" else None)
        page = client.get("/").text
        assert field in page
        found = re.search(r'name="(tick|date)" (?:min="0" )?required value="([^"]*)"', page)
        now.move(days=7)
        sent = {found[1]: found[2]} if found else {}
        live.record(dict.fromkeys(live.decision().arms, 1))
        assert client.post("/decide", data=sent).status_code == 303
        assert live.tick == 1  # what the field begins with is the next one


def test_a_long_list_is_not_tapped_and_a_file_that_refuses_says_so(tmp_path):
    with served(tmp_path / "a.db", num_arms=260, num_pulls=230) as (app, live):
        client = Client(app, live.make_token("a", "act"))
        live.decide()
        page = client.get("/").text
        assert 'class="tap"' not in page
        assert page.count('class="who"') == 230
    with served(tmp_path / "b.db", kind="controlled", missing="refuse") as (app, live):
        client = Client(app, live.make_token("a", "act"))
        live.decide()
        page = client.get("/").text
        assert 'value="not-pulled"' in page
        assert 'value="unseen"' not in page
        assert "2 pulls must have a result first" in page
        reader = Client(app, live.make_token("b", "read")).get("/").text
        assert 'class="undo"' not in page  # the list was made by a program
        for form in ("tap", "decide", "drop"):
            assert f'class="{form}"' in page
            assert f'class="{form}"' not in reader


# ---------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def tab(tmp_path_factory, site):
    """Return a browser that has signed in as one who may act."""
    with browser(tmp_path_factory.mktemp("browser")) as one:
        one.screen(SCREENS["desk"])
        one.open(f"{site.base}/")
        assert one.run("location.pathname") == "/login"
        sign_in(one, "wrong")
        assert "not known" in one.run("document.querySelector('[role=alert]').textContent")
        sign_in(one, site.secrets["act"])
        assert one.run("location.pathname") == "/"
        yield one


def sign_in(tab, secret):
    tab.events.clear()
    tab.run(f"document.querySelector('[name=token]').value = {secret!r}; "
            "document.querySelector('.sign-in button').click()")  # fmt: skip
    tab.loaded()


SAID = "document.querySelector('output').textContent"


def visits(tab, site):
    """Let a browser in at one of two services, which share its cookie for this machine."""
    tab.call(
        "Network.setCookie", url=site.base, name="restive",
        value=site.live.sign_in(site.secrets["act"], 1),
        httpOnly=True, sameSite="Strict",
    )  # fmt: skip


def told(tab, script):
    """Do something that the page answers without being loaded anew."""
    tab.run("document.querySelector('output').textContent = ''")
    tab.run(script)
    for _ in range(600):
        if (said := tab.run(SAID)) and said != "Sending …":
            return said
        sleep(0.1)
    raise AssertionError("the page says nothing")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("device", SCREENS)
def test_pages_fit_can_be_read_are_quiet_and_stay_at_home(tab, site, device, dark):
    tab.screen(SCREENS[device], dark=dark)
    theme = DARK if dark else LIGHT
    for path in PAGES:
        tab.open(site.base + path)
        tab.run(UNFOLD)
        found = tab.run(MEASURE % LEAST_LETTERS)
        assert found["scroll"] == 0, path
        assert found["beyond"] == [], path
        assert found["small"] == [], path
        assert (found["background"], found["ink"]) == (rgb(theme["paper"]), rgb(theme["ink"]))
        assert len(found["seen"]) > 20
        assert tab.said() == []
        assert all(address.startswith(f"{site.base}/") for address in tab.requests())
        assert len(tab.requests()) >= 3


def test_what_is_left_to_learn_and_to_earn_is_seen(tab, site):
    tab.screen(SCREENS["desk"])
    tab.open(f"{site.base}/known")
    room = site.live.headroom()
    rows = "Object.fromEntries([...document.querySelectorAll('tr')].map(r => "
    rows += "[...r.children].map(c => c.textContent)).filter(r => r.length == 2))"
    shown = tab.run(rows)
    assert float(shown["reward a tick"]) == pytest.approx(room.earned, abs=6e-4)
    assert float(shown["bound, if the model is right"]) == pytest.approx(room.bound, abs=6e-4)
    assert shown["share of the bound"] == f"{room.earned / room.bound:.0%}"
    assert "What was still unknown" in tab.run("document.querySelector('main').textContent")
    assert tab.run("document.querySelectorAll('.drawing').length") == 1
    assert tab.said() == []


def test_the_prior_stands_behind_the_posterior(site):
    """A ring for each chain."""
    seen, chains = site.reader.get("/arms/A04").text, len(site.live.posterior("A04"))
    picture = seen[seen.index("What the arm may be") :]
    assert "Rings: the same before anything was seen" in picture
    rings = re.findall(r'<path d="M[^"]*C[^"]*"[^>]*stroke="var\(--mute', picture)
    assert len(rings) == chains


def test_with_scripts_off_all_but_files_can_be_done_and_the_page_says_so(tab, site):
    tab.screen(SCREENS["desk"])
    tab.open(f"{site.base}/", scripts=False)
    shown = """["h1", "table", ".drawing", ".decide", ".tap", ".needs", ".drop"].map(
      one => document.querySelector(one).getClientRects().length > 0)"""
    assert tab.run(shown) == [True, True, True, True, True, True, False]
    assert tab.said() == []


def test_no_script_can_read_the_cookie(tab, site):
    tab.open(f"{site.base}/")
    assert tab.run("document.cookie") == ""


def test_a_file_is_dropped_and_the_receipt_is_seen(tab, site):
    tab.screen(SCREENS["phone"])
    tab.open(f"{site.base}/")
    arms = site.live.decision().arms
    text = f"arm,outcome\n{arms[0]},listened\n{arms[1]},hung_up\n"

    def dropping(text):
        return f"""(() => {{
          const files = new DataTransfer();
          files.items.add(new File([{text!r}], "results.csv"));
          const there = document.querySelector(".drop");
          const how = {{ dataTransfer: files, cancelable: true, bubbles: true }};
          there.dispatchEvent(new DragEvent("drop", how));
        }})()"""

    assert told(tab, dropping(text)) == "2 results recorded."
    assert "2 of 6 results are in" in tab.run("document.querySelector('h1').textContent")
    assert site.live.results()[arms[0]] == 1
    assert site.live.events()[-1].actor == "act & co"
    assert told(tab, dropping(text)) == "This very file was recorded before."
    wrong = "arm,outcome\n" + "".join(f"nobody {k},listened\n" for k in range(15))
    said = told(tab, dropping(wrong))
    assert said == (
        "results.csv: 15 rows cannot be taken; nothing was recorded. What is wrong is said where "
        "you chose the file."
    )
    assert tab.run("document.querySelector('output').className") == "wrong"
    assert "line 16: arm 'nobody 14'" in tab.run("document.querySelector('.rows').textContent")
    assert tab.run("document.querySelector('.bar').offsetHeight / innerHeight") < 0.3
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    assert len(site.live.events()) == site.live.status().events


def test_an_alarm_is_shown_and_acknowledged(tab, site):
    number = ring(site.live)
    tab.screen(SCREENS["desk"])
    tab.open(f"{site.base}/")
    assert "; 1 alarm" in tab.run("document.querySelector('h1').textContent")
    assert "look for a <common> cause" in tab.run("document.querySelector('.alarm').textContent")
    said = told(tab, """(() => {
      const form = document.querySelector(".acknowledge");
      form.elements.note.value = "the fair was in town";
      form.querySelector("button").click();
    })()""")  # fmt: skip
    assert said == "The alarm is answered."
    assert tab.run("document.querySelector('.alarm')") is None
    event = site.live.events()[-1]
    assert (event.kind, event.body["of"]) == ("acknowledge", number)
    assert event.body["note"] == "the fair was in town"
    assert tab.said() == []


def test_the_page_shows_what_others_did_meanwhile(tab, site):
    number = "Number(document.querySelector('[data-events]').dataset.events)"
    tab.open(f"{site.base}/")
    before = tab.run(number)
    assert before == site.live.status().events
    site.live.note("somebody else")
    assert tab.run(f"""new Promise(async (resolve) => {{
      while ({number} == {before}) await new Promise((done) => setTimeout(done, 20));
      resolve({number});
    }})""") == before + 1  # fmt: skip
    assert tab.said() == []


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("device", SCREENS)
def test_a_week_is_run_from_the_page(tab, clinic, tmp_path, device, scripts):
    """Results are tapped in one by one, a slip is undone, and the next list is made."""
    live = clinic.live
    tab.screen(SCREENS[device], dark=scripts)
    visits(tab, clinic)
    week, arms = live.tick, live.decision().arms
    tab.open(f"{clinic.base}/", scripts=scripts)

    def does(script):
        """Press something; with scripts a tap does not load the page anew."""
        tab.events.clear()
        taps = scripts and (".tap" in script or ".undo" in script)
        if taps:
            return told(tab, script)
        tab.run(script)
        tab.loaded()
        return tab.run(SAID)

    def tap(name, label):
        return f"""[...document.querySelectorAll(".tap")]
          .find(form => form.elements.arm.value == {name!r})
          .querySelector(`button[value="{label}"]`).click()"""

    sizes = """[...document.querySelectorAll(".tap button")].map(one => {
      const { width, height } = one.getBoundingClientRect();
      return [width, height];
    })"""
    assert all(width >= 44 and height >= 44 for width, height in tab.run(sizes))
    label = live.settings.clock.label(week)
    assert does(tap(arms[0], "listened")) == f"{arms[0]}: listened."
    assert live.results()[arms[0]] == 1
    assert live.events()[-1].actor == "the act"
    heading = tab.run("document.querySelector('h1').textContent")
    assert heading == f"Week {week} ({label}): 1 of 3 results are in"
    does(tap(arms[1], "hung_up"))
    button = tab.run("document.querySelector('.undo button').textContent")
    assert button == f"Undo {arms[1]}: hung up in week {week} ({label})"
    tab.run("scrollTo(0, document.querySelector('.tap').getBoundingClientRect().top + scrollY)")
    place = "document.querySelector('.undo button').getBoundingClientRect().top"
    top = tab.run(f"innerHeight - {place}")
    assert 0 <= top < 120, "it stays in sight while results are tapped in"
    undone = does("document.querySelector('.undo button').click()")
    taken = f"Taken back: {arms[1]}: hung up in week {week} ({label})."
    assert undone == f"{taken} {arms[1]} has no result again."
    assert live.results()[arms[1]] == "open"
    does(tap(arms[1], "hung_up"))
    # the first of two results is changed: the other stays, and nothing is open meanwhile
    tab.run("document.querySelector('.told summary').click()")
    assert live.results() == {arms[0]: 1, arms[1]: 0, arms[2]: "open"}
    changed = does(tap(arms[0], "hung_up"))
    assert changed == f"{arms[0]}: hung up now, and no longer listened."
    assert live.results() == {arms[0]: 0, arms[1]: 0, arms[2]: "open"}
    assert does(tap(arms[0], "listened")).startswith(f"{arms[0]}: listened now")
    last = does(tap(arms[2], "not-pulled"))
    assert last == f"{arms[2]}: no call made."
    assert live.results() == {arms[0]: 1, arms[1]: 0, arms[2]: "not-pulled"}
    shown = tab.run("[...document.querySelectorAll('.told b')].map(one => one.textContent)")
    assert shown[:3] == ["listened", "hung up", "no call made"]
    following = live.settings.clock.label(week + 1)
    assert tab.run("document.querySelector('.decide [name=date]').value") == following
    far = "document.querySelector('.decide [name=date]').value = '2072-02-15'; "
    said = does(far + "document.querySelector('.decide button').click()")
    assert "Nothing was done: look at the date again." in said
    assert tab.run("document.querySelector('output').className") == "wrong"
    assert live.tick == week
    # the date that was asked for stays, with a box to say that it is meant
    assert tab.run("document.querySelector('.decide [name=date]').value") == "2072-02-15"
    assert tab.run("document.querySelector('.decide [name=skip]').checked") is False
    near = f"document.querySelector('.decide [name=date]').value = '{following}'; "
    said = does(near + "document.querySelector('.decide button').click()")
    assert said == f"The list for week {week + 1} ({following}) is made: 3 patients."
    assert live.tick == week + 1
    assert tab.said() == []


PLACES = """[...document.querySelectorAll(".results .who, .results .cell, #next, #next button")]
  .map(one => one.getBoundingClientRect().top + scrollY)"""


@pytest.mark.parametrize("device", SCREENS)
def test_nothing_moves_when_a_result_is_tapped(tab, clinic, device):
    live = clinic.live
    live.decide(tick=live.tick + 1)
    tab.screen(SCREENS[device])
    visits(tab, clinic)
    tab.open(f"{clinic.base}/")
    places = [tab.run(PLACES)]
    assert len(places[0]) == 8
    for name in live.decision().arms:
        told(tab, f"""[...document.querySelectorAll(".tap")]
          .find(form => form.elements.arm.value == {name!r})
          .querySelector('button[value="listened"]').click()""")  # fmt: skip
        places.append(tab.run(PLACES))
    tab.run("document.querySelector('.told summary').click()")
    assert tab.run("document.querySelector('.tap').checkVisibility({visibilityProperty: true})")
    places.append(tab.run(PLACES))
    for one in places:
        assert one == places[0]
    assert set(live.results().values()) == {1}


def test_an_explanation_is_one_press_away(tab, clinic):
    tab.screen(SCREENS["phone"])
    visits(tab, clinic)
    tab.open(f"{clinic.base}/")
    name = clinic.live.decision().arms[0]
    tab.events.clear()
    tab.run("[...document.querySelectorAll('a')].find(a => a.textContent == 'why?').click()")
    tab.loaded()
    assert tab.run("document.querySelector('#why h2').textContent") == f"Why is {name} on the list?"
    lines = tab.run("[...document.querySelectorAll('.why li')].map(one => one.textContent)")
    assert lines == list(clinic.live.explain(name).lines)
    other = next(r.name for r in clinic.live.arms() if r.name not in clinic.live.decision().arms)
    tab.open(f"{clinic.base}/arms/{other}")
    heading = tab.run("document.querySelector('#why h2').textContent")
    assert heading == f"Why is {other} not on the list?"


def test_charts_call_weeks_as_the_operators_do(tab, clinic):
    tab.screen(SCREENS["phone"])
    visits(tab, clinic)
    for path, chart in (("/", "rewards"), ("/arms/P1", "sightings"), ("/known", "entropy")):
        tab.open(f"{clinic.base}{path}")
        read = tab.run(f"document.querySelector('#{chart}-0 .tip').textContent")
        assert re.match(r"week \d+ \(20\d\d-\d\d-\d\d\)\S", read), (path, read)
    tab.open(f"{clinic.base}/")
    read = tab.run("document.querySelector('#rewards-0 .tip').textContent")
    assert re.search(r"forecast [0-9.]+ \[[^]]+\]", read)
    assert re.search(r"earned [0-9.]+(?! \[)", read), "what was earned has no band"
    assert tab.said() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("device", SCREENS)
def test_pages_with_words_and_alarms_fit_and_lead_with_what_matters(tab, clinic, device, dark):
    tab.screen(SCREENS[device], dark=dark)
    visits(tab, clinic)
    number = ring(clinic.live, "missing")
    for path in ("/", "/arms", "/arms/P1", "/known"):
        tab.open(clinic.base + path)
        tab.run(UNFOLD)
        found = tab.run(MEASURE % LEAST_LETTERS)
        assert (found["scroll"], found["beyond"], found["small"]) == (0, [], []), path
        assert tab.said() == []
    tab.open(f"{clinic.base}/")
    first = "document.querySelector('main section')"
    assert tab.run(f"{first}.querySelector('h2').textContent") == "Look at this first"
    text = tab.run(f"{first}.querySelector('.alarm p').textContent")
    when = (
        f"noticed in week {clinic.live.tick} ({clinic.live.settings.clock.label(clinic.live.tick)})"
    )
    assert text.startswith(f"Missing, {when}: look for a <common> cause")
    clinic.live.acknowledge(number, "looked")


def test_hostile_names_are_seen_as_they_are(tab, site):
    visits(tab, site)
    tab.open(f"{site.base}/arms?by=name")
    assert HOSTILE in tab.run("[...document.querySelectorAll('td a')].map(one => one.textContent)")
    tab.run(f"[...document.querySelectorAll('td a')].find(a => a.textContent == {HOSTILE!r}).href")
    tab.events.clear()
    tab.run(
        f"[...document.querySelectorAll('td a')].find(a => a.textContent == {HOSTILE!r}).click()"
    )
    tab.loaded()
    assert tab.run("document.querySelector('h1').textContent") == f"Arm {HOSTILE}"
    assert tab.said() == []


def test_another_sites_form_cannot_use_the_cookie(tab, site, tmp_path):
    """The browser itself: a form on another page posts, and the agent stays as it is."""
    events = site.live.status().events
    page = tmp_path / "evil.html"
    page.write_text(f'<form method="post" action="{site.base}/v1/decisions"></form>')
    tab.open(page)
    tab.events.clear()
    tab.run("document.forms[0].submit()")
    tab.loaded()
    assert '"status": 401' in tab.run("document.body.textContent")
    assert site.live.status().events == events


def test_signing_out_forgets_the_token(tab, site):
    tab.open(f"{site.base}/")
    visits(tab, site)
    tab.open(f"{site.base}/")
    tab.events.clear()
    tab.run("document.querySelector('nav button').click()")
    tab.loaded()
    assert tab.run("location.pathname") == "/login"
    tab.open(f"{site.base}/")
    assert tab.run("location.pathname") == "/login"
