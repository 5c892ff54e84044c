"""The service: every endpoint, who may use it, and what is refused."""

import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

import restive as rs
from live_cases import Ticking, created, fingerprint, reply
from restive.errors import ProblemError, RestiveError
from restive.live.agent import LiveAgent
from restive.serve.auth import COOKIE, FORGERY
from restive.serve.limits import Rate
from restive.serve.problems import Problem
from serve_cases import Client, served

ROLES = ("read", "act", "admin")


@pytest.fixture
def service(tmp_path):
    """Return a service with a client of each role, and one without a token."""
    with served(tmp_path / "a.db", num_arms=8, num_pulls=3, clock=rs.Clock.given()) as made:
        yield Made(*made)


class Made:
    def __init__(self, app, live):
        self.app, self.live = app, live
        self.secrets = {role: live.make_token(f"the {role}", role) for role in ROLES}
        self.read, self.act, self.admin = (self.client(role) for role in ROLES)
        self.stranger = Client(app)

    def client(self, role):
        return Client(self.app, self.secrets[role])

    def decide(self, tick=0):
        return self.act.post("/v1/decisions", json={"tick": tick}).json()


def refused(response, status, words):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    document = response.json()
    assert document["status"] == status
    assert {"type", "title", "status", "detail"} <= set(document)
    assert words in document["detail"], document
    return document


# ---------------------------------------------------------------- what can be done


def test_a_decision_is_made_once_and_read_by_all(service):
    first = service.act.post("/v1/decisions", json={"tick": 4, "num_pulls": 2, "skip": True})
    assert first.status_code == 201
    assert first.headers["etag"] == '"4"'
    document = first.json()
    assert document["tick"] == 4
    assert len(document["arms"]) == 2
    assert document["results"] == dict.fromkeys(document["arms"], "open")
    again = service.act.post("/v1/decisions", json={"tick": 4})
    assert (again.status_code, again.json()) == (200, document)
    assert service.read.get("/v1/decisions/4").json() == document
    assert service.live.decision().arms == tuple(document["arms"])
    assert service.live.events()[-1].actor == "the act"
    refused(service.read.get("/v1/decisions/3"), 404, "nothing was decided for tick 3")


def test_arms_that_are_unavailable_are_not_decided(service):
    out = service.decide()["arms"]
    found = service.act.post("/v1/decisions", json={"tick": 1, "unavailable": out}).json()
    assert not set(found["arms"]) & set(out)


def test_results_come_in_parts_twice_and_late(service):
    arms = service.decide()["arms"]
    part = service.act.post("/v1/observations", json={"tick": 0, "seen": {arms[0]: 1}})
    assert part.json() == {
        "text": "1 result recorded", "new": 1, "known": 0, "late": 0, "superseded": 0,
        "closed": False, "repeated": False, "rejected": [],
    }  # fmt: skip
    rest = {"tick": 0, "seen": {arms[0]: 1, arms[1]: 0, arms[2]: "not-pulled"}}
    done = service.act.post("/v1/observations", json=rest).json()
    assert (done["new"], done["known"], done["closed"]) == (2, 1, True)
    assert service.read.get("/v1/decisions/0").json()["results"] == {
        arms[0]: 1, arms[1]: 0, arms[2]: "not-pulled",
    }  # fmt: skip
    second = service.decide(1)["arms"]
    service.decide(2)
    late = service.act.post("/v1/observations", json={"tick": 1, "seen": {second[0]: 1}}).json()
    assert (late["new"], late["late"]) == (0, 1)


def test_arms_pulled_by_ones_own_choice_are_learned_from(service):
    decided = service.decide()["arms"]
    other = next(str(k) for k in range(8) if str(k) not in decided)
    body = {"tick": 0, "seen": {}, "instead": {other: 1}}
    assert service.act.post("/v1/observations", json=body).json()["new"] == 1
    assert service.read.get(f"/v1/arms/{other}").json()["belief"] == [0, 1]


def test_a_csv_file_is_recorded_again_once_what_it_told_is_withdrawn(service):
    arms = service.decide()["arms"]
    lines = [f"{arm},1\n" for arm in arms]
    files = ["arm,state\n" + "".join(some) for some in (lines, lines[::-1])]

    def send(text):
        return service.act.post(
            "/v1/observations", content=text, headers={"content-type": "text/csv; charset=utf-8"}
        ).json()

    def told(key):
        seen = {"seen": dict.fromkeys(arms, 1)}
        headers = {"Idempotency-Key": key}
        return service.act.post("/v1/observations", json=seen, headers=headers).json()

    assert send(files[0])["new"] == len(arms)
    assert send(files[1])["known"] == len(arms)
    assert told("mine")["known"] == len(arms)
    service.live.undo(service.live.changeable()[0, arms[0]])
    assert told("mine")["known"] == len(arms)  # a client's own id has its own answer for ever
    done = send(files[1])
    assert (done["new"], done["repeated"]) == (len(arms), False)
    assert send(files[1])["repeated"]


def test_conflicts_and_mistakes_are_named_and_change_nothing(service):
    arms = service.decide()["arms"]
    service.act.post("/v1/observations", json={"seen": {arms[0]: 1}})
    before = fingerprint(service.live)
    conflict = service.act.post("/v1/observations", json={"seen": {arms[0]: 0, arms[1]: 1}})
    document = refused(conflict, 409, "1 was recorded for tick 0 already, now 0")
    assert [one["arm"] for one in document["mistakes"]] == [arms[0]]
    wrong = service.act.post("/v1/observations", json={"seen": {arms[1]: 7, "nobody": 1}})
    document = refused(wrong, 422, "state 7 is none of its states 0 to 1")
    assert [one["arm"] for one in document["mistakes"]] == [arms[1], "nobody"]
    assert fingerprint(service.live) == before


def test_a_csv_file_is_recorded_once(service):
    arms = service.decide()["arms"]
    text = f"arm;state\n{arms[0]};1\n{arms[1]};0\n"
    send = {"content": text, "headers": {"content-type": "text/csv; charset=utf-8"}}
    assert service.act.post("/v1/observations", **send).json()["new"] == 2
    again = service.act.post("/v1/observations", **send).json()
    assert (again["new"], again["repeated"]) == (2, True)
    send["content"] = f"arm,state\n{arms[0]},0\n"
    refused(service.act.post("/v1/observations", **send), 409, "line 2: arm")
    send["content"] = f"arm,state\n{arms[2]},1\nnobody,1\n"
    refused(service.act.post("/v1/observations", **send), 422, "line 3: arm 'nobody'")
    done = service.act.post("/v1/observations?accept_good=true&tick=0", **send).json()
    assert done["new"] == 1
    assert done["rejected"] == [
        {"line": 3, "arm": "nobody", "reason": service_reason(service, "nobody")}
    ]
    send["headers"] = {"content-type": "text/plain"}
    refused(service.act.post("/v1/observations", **send), 415, "text/csv")


def service_reason(service, name):
    with pytest.raises(ProblemError) as error:
        service.live.arm(name)
    return str(error.value)


def test_a_step_records_and_decides_at_once(service):
    arms = service.decide()["arms"]
    before = len(service.live.events())
    made = service.act.post("/v1/step", json={"tick": 0, "seen": dict.fromkeys(arms, 1)})
    assert made.status_code == 200
    assert made.json()["tick"] == 1
    assert made.headers["etag"] == '"1"'
    assert [event.kind for event in service.live.events(before)] == ["record", "decide"]
    assert service.read.get("/v1/decisions/0").json()["results"] == dict.fromkeys(arms, 1)


def test_arms_join_and_leave(service):
    new = {"arms": [{"name": "a/b c?", "last_state": 1, "elapsed": 2}, {"name": "new"}]}
    assert service.admin.post("/v1/arms", json=new).json()["new"] == 2
    path = "/v1/arms/a%2Fb%20c%3F"
    assert service.read.get(path).json()["waiting"] is True
    service.decide()
    found = service.read.get(path).json()
    assert (found["name"], found["waiting"], found["last_state"]) == ("a/b c?", False, 1)
    assert service.admin.delete(path).json()["new"] == 1
    assert service.admin.delete(path).json()["known"] == 1
    refused(service.read.get(path), 404, "has left, in tick 0")
    assert service.live.arm("a/b c?").left == 0
    refused(service.admin.delete("/v1/arms/nobody"), 404, "there is no arm 'nobody'")
    again = service.admin.post("/v1/arms", json={"arms": [{"name": "a/b c?"}]})
    assert again.json()["new"] == 1  # whoever left and joins again is back
    assert service.admin.delete(path).json()["new"] == 1
    twice = service.admin.post("/v1/arms", json={"arms": [{"name": "x"}, {"name": "x"}]})
    refused(twice, 422, "arm 'x' is there twice")
    strange = service.admin.post("/v1/arms", json={"arms": [{"name": "x", "kind": "y"}]})
    refused(strange, 422, "'y'")


def test_an_arm_shows_what_is_believed(service):
    arms = service.decide()["arms"]
    service.act.post("/v1/observations", json={"seen": {arms[0]: 1}})
    found = service.read.get(f"/v1/arms/{arms[0]}").json()
    assert found["belief"] == service.live.belief(arms[0]).tolist() == [0, 1]
    posterior = service.live.posterior(arms[0])
    for field in ("active", "passive"):
        for key, chains in (
            ("mean", posterior.mean()),
            ("low", posterior.quantile(0.05)),
            ("high", posterior.quantile(0.95)),
        ):
            assert found[field][key] == getattr(chains, field).tolist()
    assert [(row["tick"], row["state"]) for row in found["history"]] == [(0, 1)]


@pytest.mark.parametrize("by", ["name", "index", "pulls", "age"])
def test_arms_come_in_pages(service, by):
    for tick in range(3):
        seen = {name: reply(tick, name) for name in service.decide(tick)["arms"]}
        service.act.post("/v1/observations", json={"seen": seen})
    service.decide(3)
    found, after = [], {}
    while True:
        page = service.read.get("/v1/arms", params={"limit": 3, "by": by, **after}).json()
        found += page["arms"]
        if page["next"] is None:
            break
        after = {"after": page["next"]}
    assert sorted(row["name"] for row in found) == [str(k) for k in range(8)]
    keys = [row["last_tick"] if by == "age" else row[by] for row in found]
    if by == "age":  # never seen first, then the longest ago
        keys = [-1 if key is None else key for key in keys]
    assert keys == sorted(keys, reverse=by in ("index", "pulls"))
    if by != "name":
        refused(service.read.get(f"/v1/arms?by={by}&after=x"), 422, "it is a number")
    else:
        assert service.read.get("/v1/arms?after=5").json()["arms"][0]["name"] == "6"


def test_events_come_in_pages(service):
    service.decide()
    whole = service.live.events()
    page = service.read.get("/v1/events?limit=2").json()
    assert [event["seq"] for event in page["events"]] == [1, 2]
    assert page["next"] == 2
    rest = service.read.get(f"/v1/events?after={page['next']}&limit=1000").json()
    assert rest["next"] is None
    assert [event["digest"] for event in page["events"] + rest["events"]] == [
        event.digest.hex() for event in whole
    ]


def test_status_and_metrics_say_what_the_agent_says(service):
    arms = service.decide()["arms"]
    service.act.post("/v1/observations", json={"seen": {arms[0]: 1, arms[1]: "unseen"}})
    status = service.live.status()
    found = service.read.get("/v1/status")
    assert found.headers["etag"] == '"0"'
    assert {key: found.json()[key] for key in ("tick", "open", "seen", "reward", "events")} == {
        "tick": 0, "open": 1, "seen": 1, "reward": 1.0, "events": status.events,
    }  # fmt: skip
    text = service.read.get("/metrics").text
    assert "restive_tick 0.0\n" in text
    assert "restive_open_pulls 1.0\n" in text
    assert 'restive_observations{status="unseen"} 1.0\n' in text
    assert f"restive_forecast {status.forecast}\n" in text
    assert "restive_write_seconds_count 2.0\n" in text
    assert f"restive_events {float(status.events)}\n" in text
    service.live.snapshot()
    assert "restive_snapshot_age_seconds" in service.read.get("/metrics").text


def ring(live, name="spread"):
    """Let an alarm ring."""
    session = live._session
    with session.writing() as memory:
        body = {"name": name, "sentence": "look for a <common> cause"}
        return session.append("alarm", max(memory.tick, 0), body, "restive").seq


def test_an_alarm_stays_until_it_is_acknowledged_with_a_note(service):
    number = ring(service.live)
    (found,) = service.read.get("/v1/alarms").json()
    assert (found["id"], found["name"]) == (number, "spread")
    assert 'restive_alarm{name="spread"} 1.0' in service.read.get("/metrics").text
    path = f"/v1/alarms/{number}/acknowledge"
    refused(service.act.post(path, json={"note": ""}), 422, "body.note")
    assert service.act.post(path, json={"note": "the fair"}).status_code == 204
    assert service.read.get("/v1/alarms").json() == []
    assert service.live.events()[-1].actor == "the act"
    refused(service.act.post(path, json={"note": "again"}), 404, "no alarm")


WORDS = {"arm": "patient", "pull": "call", "tick": "week", "reward": "adherent weeks"}


@pytest.fixture
def clinic(tmp_path):
    """Return a service whose states have names, and whose ticks have dates and are given."""
    with served(
        tmp_path / "c.db", num_arms=8, num_pulls=3, clock=rs.Clock.given("2026-11-16", "P7D"),
        words=WORDS, states=["hung_up", "listened"], outcomes={"no_answer": "unseen"},
    ) as made:  # fmt: skip
        yield Made(*made)


def test_a_decision_is_asked_for_by_its_date(clinic):
    made = clinic.act.post("/v1/decisions", json={"date": "2026-11-18"})
    assert (made.status_code, made.json()["tick"], made.json()["date"]) == (201, 0, "2026-11-16")
    again = clinic.act.post("/v1/decisions", json={"date": "2026-11-16"})
    assert (again.status_code, again.json()) == (200, made.json())
    before = clinic.live.events()
    for body, status, words in (
        ({"date": "18.11.2026"}, 422, "year-month-day, such as 2026-11-16, got '18.11.2026'"),
        ({"date": "2026-11-18T00:00+05:30"}, 422, "leave out the offset"),
        ({"date": "2025-01-01"}, 422, "is before the start, 2026-11-16"),
        ({"date": "2026-11-23", "tick": 1}, 422, "give the week's number or its date, not both"),
        ({}, 422, "say which week the list is for, by its date or its number"),
        ({"date": "2072-02-15"}, 409, "2,360 weeks would pass without a list"),
    ):
        document = refused(clinic.act.post("/v1/decisions", json=body), status, words)
        assert "\n" not in document["detail"]
    assert clinic.live.events() == before
    jump = {"date": "2026-12-07", "skip": True}
    assert clinic.act.post("/v1/decisions", json=jump).json()["tick"] == 3


def test_a_date_needs_ticks_that_have_dates(service):
    refused(service.act.post("/v1/decisions", json={"date": "2026-11-16"}), 422, "has no dates")


def test_states_are_named_in_what_is_sent_and_answered(clinic):
    a, b, c = clinic.act.post("/v1/decisions", json={"tick": 0}).json()["arms"]
    sent = {"seen": {a: "listened", b: "no_answer"}, "tick": 0}
    done = clinic.act.post("/v1/observations", json=sent).json()
    assert done["text"] == "2 results recorded"
    assert clinic.live.results() == {a: 1, b: "unseen", c: "open"}
    other = next(str(k) for k in range(8) if str(k) not in (a, b, c))
    body = {"seen": {c: 0}, "instead": {other: "hung_up"}}
    closed = clinic.act.post("/v1/observations", json=body).json()
    assert closed["text"] == "2 results recorded; every call on the list has a result"
    found = clinic.read.get("/v1/decisions/0").json()["results"]
    assert found == {a: "listened", b: "unseen", c: "hung_up", other: "hung_up"}
    row = clinic.read.get(f"/v1/arms/{a}").json()
    assert (row["last_state"], row["last_state_name"], row["states"]) == (
        1, "listened", ["hung_up", "listened"],
    )  # fmt: skip
    assert [(one["state"], one["state_name"]) for one in row["history"]] == [(1, "listened")]
    conflict = clinic.act.post("/v1/observations", json={"tick": 0, "seen": {a: "hung_up"}})
    refused(conflict, 409, f"patient '{a}': listened was recorded for week 0 already, now hung_up")
    wrong = clinic.act.post("/v1/observations", json={"tick": 0, "seen": {a: "asleep"}})
    refused(wrong, 422, "unknown outcome 'asleep'; known are no_answer, hung_up, listened")
    step = clinic.act.post("/v1/step", json={"seen": {}}).json()
    nobody = {"seen": dict.fromkeys(step["arms"], "no_answer"), "tick": 1}
    assert clinic.act.post("/v1/step", json=nobody).json()["tick"] == 2
    unseen = clinic.read.get("/v1/status").json()["unseen_by_last_state"]
    assert set(unseen) <= {"hung_up", "listened"}
    new = {"arms": [{"name": "new", "last_state": "listened", "elapsed": 2}]}
    joined = clinic.admin.post("/v1/arms", json=new).json()
    assert joined["text"] == "1 patient joined"
    new["arms"][0] |= {"name": "other", "last_state": "no_answer"}
    refused(clinic.admin.post("/v1/arms", json=new), 422, "last_state must be a state: hung_up")
    assert clinic.admin.delete("/v1/arms/new").json()["text"] == "1 patient left"


def test_a_file_with_the_operators_headers_is_taken(clinic):
    clinic.act.post("/v1/decisions", json={"tick": 0})
    listed = clinic.read.get("/decisions/0.csv").text
    assert listed.startswith("week,date,patient,kind,")
    rows = listed.splitlines()
    text = "\n".join([rows[0], rows[1] + "listened", *rows[2:]])
    send = {"content": text, "headers": {"content-type": "text/csv"}}
    assert clinic.act.post("/v1/observations", **send).json()["text"] == "1 result recorded"


def test_an_explanation_is_that_of_the_agent(clinic):
    refused(clinic.read.get("/v1/explanations/1"), 422, "nothing has been decided yet")
    clinic.act.post("/v1/decisions", json={"tick": 0})
    for name in map(str, range(8)):
        answer = clinic.read.get(f"/v1/explanations/{name}")
        assert answer.json() == clinic.live.explain(name).to_json()
    refused(clinic.read.get("/v1/explanations/nobody"), 404, "there is no patient 'nobody'")


def test_what_can_be_undone_is_said_in_the_operators_words(clinic):
    clinic.act.post("/v1/decisions", json={"tick": 0})
    said = "the list of week 0 (2026-11-16), 3 patients (event "
    assert clinic.read.get("/v1/undo").json()["sentence"].startswith(said)
    assert clinic.act.post("/v1/undo").json()["sentence"].startswith(said)


# ---------------------------------------------------------------- retries and rivals


def test_a_request_sent_again_is_given_the_same_answer(service):
    key = {"Idempotency-Key": "first"}
    made = service.act.post("/v1/decisions", json={"tick": 0}, headers=key)
    events = service.live.events()
    again = service.act.post("/v1/decisions", json={"tick": 0}, headers=key)
    assert again.json() == made.json()
    other = service.act.post("/v1/decisions", json={"tick": 1}, headers=key)
    refused(other, 409, "'first' was used for something else")
    assert service.live.events() == events
    refused(
        service.act.post("/v1/decisions", headers={"Idempotency-Key": "x" * 201}), 422, "at most"
    )


def test_whoever_insists_on_a_tick_is_told_that_somebody_was_faster(service):
    arms = service.decide()["arms"]
    body = {"tick": 0, "seen": dict.fromkeys(arms, 1)}
    headers = {"If-Match": '"0"', "Idempotency-Key": "mine"}
    assert service.act.post("/v1/step", json=body, headers=headers).json()["tick"] == 1
    # a retry of what was done is answered, though the tick has moved
    assert service.act.post("/v1/step", json=body, headers=headers).json()["tick"] == 1
    events = service.live.events()
    for path, sent in (
        ("/v1/step", {"seen": {}}),
        ("/v1/decisions", {"tick": 2}),
        ("/v1/observations", {"seen": {}}),
    ):
        late = service.act.post(path, json=sent, headers={"If-Match": '"0"'})
        refused(late, 412, "tick 0 was expected, but the last decision is of tick 1")
        refused(service.act.post(path, json=sent, headers={"If-Match": "one"}), 422, "If-Match")
    assert service.live.events() == events
    anyway = service.act.post("/v1/decisions", json={"tick": 1}, headers={"If-Match": "*"})
    assert anyway.status_code == 200


def test_another_process_that_was_faster_is_noticed_too(service):
    service.decide()
    with LiveAgent.open(service.live.path) as other:
        other.decide(tick=1)
    late = service.act.post("/v1/decisions", json={"tick": 2}, headers={"If-Match": '"0"'})
    refused(late, 412, "the last decision is of tick 1")


def test_two_clients_share_one_line_of_history(service, tmp_path):
    clients = [service.client("act"), service.client("act")]
    decided = []
    for tick in range(12):
        first, second = clients[:: 1 if tick % 2 else -1]
        made = first.post("/v1/decisions", json={"tick": tick}).json()
        assert second.post("/v1/decisions", json={"tick": tick}).json() == made
        seen = {name: reply(tick, name) for name in made["arms"]}
        half = dict(list(seen.items())[:2])
        for client, part in ((second, half), (first, seen), (second, seen)):
            assert client.post("/v1/observations", json={"seen": part}).status_code == 200
        decided.append(tuple(made["arms"]))
    alone = created(tmp_path / "alone.db", num_arms=8, num_pulls=3, clock=rs.Clock.given())
    for tick in range(12):
        arms = alone.decide(tick=tick).arms
        assert arms == decided[tick]
        alone.record({name: reply(tick, name) for name in arms})
    assert service.live.check() == len(service.live.events())


# ---------------------------------------------------------------- who may


PLACES = [
    ("GET", "/v1/status", "read"), ("GET", "/v1/alarms", "read"), ("GET", "/v1/arms", "read"),
    ("GET", "/v1/arms/1", "read"), ("GET", "/v1/events", "read"), ("GET", "/metrics", "read"),
    ("GET", "/v1/decisions/0", "read"), ("GET", "/v1/openapi.json", "read"),
    ("GET", "/v1/explanations/1", "read"),
    ("POST", "/v1/decisions", "act"), ("POST", "/v1/observations", "act"),
    ("POST", "/v1/step", "act"), ("POST", "/v1/alarms/1/acknowledge", "act"),
    ("POST", "/v1/arms", "admin"), ("DELETE", "/v1/arms/1", "admin"),
    ("GET", "/v1/undo", "read"), ("POST", "/v1/undo", "act"),
    ("POST", "/v1/forget", "admin"), ("POST", "/v1/remember", "admin"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "role"), PLACES)
def test_a_place_asks_for_its_role(service, method, path, role):
    events = service.live.events()
    missing = service.stranger.request(method, path)
    refused(missing, 401, "the token is missing")
    assert missing.headers["www-authenticate"] == "Bearer"
    for wrong in ("nonsense", "Bearer", "Bearer x", f"Basic {service.secrets['admin']}"):
        headers = {"Authorization": wrong}
        refused(service.stranger.request(method, path, headers=headers), 401, "the token is")
    for less in ROLES[: ROLES.index(role)]:
        answer = service.client(less).request(method, path)
        refused(answer, 403, f"needs a token of role {role}; yours is of role {less}")
    assert service.live.events() == events
    assert service.client(role).request(method, path).status_code not in (401, 403)


def test_every_place_of_the_api_is_in_the_list(service):
    found = service.read.get("/v1/openapi.json").json()["paths"]
    open_to_all = {"/healthz", "/readyz", "/login", "/logout"}
    described = {
        (method.upper(), path)
        for path, methods in found.items() if path not in open_to_all
        for method in methods
    }  # fmt: skip
    assert len(described) == len(PLACES) - 1  # which describes itself nowhere


def test_a_token_that_has_ended_or_was_removed_opens_nothing(tmp_path):
    clock = Ticking()
    with served(tmp_path / "a.db", now=clock) as (app, live):
        client = Client(app, live.make_token("week", "read", days=7))
        gone = Client(app, live.make_token("gone", "read"))
        assert client.get("/v1/status").status_code == 200
        clock.now += timedelta(days=7)
        refused(client.get("/v1/status"), 401, "is not known, or has ended")
        assert gone.get("/v1/status").status_code == 200
        live.remove_token("gone")
        refused(gone.get("/v1/status"), 401, "is not known, or has ended")


def signed_in(service, role="act"):
    client = Client(service.app)
    answer = client.post("/login", data={"token": service.secrets[role]})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    return client, answer.headers["set-cookie"]


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(service):
    client, cookie = signed_in(service)
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "Secure" not in cookie
    assert client.get("/v1/status").status_code == 200
    safe = Client(service.app, base_url="https://example.org")
    assert (
        "Secure"
        in safe.post("/login", data={"token": service.secrets["act"]}).headers["set-cookie"]
    )
    out = client.post("/logout")
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert client.cookies.get(COOKIE) is None
    wrong = client.post("/login", data={"token": "wrong"})
    assert wrong.status_code == 401
    assert "This token is not known, or has ended." in wrong.text
    assert "set-cookie" not in wrong.headers


def test_a_session_is_not_the_token_and_ends_for_good(service):
    client, cookie = signed_in(service)
    session = client.cookies[COOKIE]
    secret = service.secrets["act"]
    assert secret not in cookie
    as_bearer = Client(service.app, session)
    refused(as_bearer.get("/v1/status"), 401, "is not known")
    as_cookie = Client(service.app)
    as_cookie.cookies.set(COOKIE, secret)
    refused(as_cookie.get("/v1/status"), 401, "is not known")
    client.post("/logout")
    client.cookies.set(COOKIE, session)  # which somebody has kept
    refused(client.get("/v1/status"), 401, "is not known, or has ended")
    assert service.act.get("/v1/status").status_code == 200
    again, _ = signed_in(service)
    service.live.remove_token("the act")
    refused(again.get("/v1/status"), 401, "is not known, or has ended")


def test_a_session_ends_with_its_days_and_with_its_token(tmp_path):
    clock = Ticking()
    with served(tmp_path / "a.db", now=clock) as (_, live):
        secret = live.make_token("week", "read", days=7)
        short, long = (live.sign_in(secret, days) for days in (1, 30))
        assert live.token_of(short, session=True).name == "week"
        clock.move(days=1)
        assert live.token_of(short, session=True) is None
        assert live.token_of(long, session=True).name == "week"
        clock.move(days=6)
        assert live.token_of(long, session=True) is None


def test_an_origin_that_is_none_is_another_site(service):
    client, _ = signed_in(service)
    refused(client.post("/logout", headers={"Origin": "http://["}), 403, "another site")


def test_a_change_by_cookie_needs_the_pages_own_value(service):
    from restive.serve.auth import _forgery

    client, _ = signed_in(service)
    events = service.live.events()
    body = {"json": {"tick": 0}}
    refused(client.post("/v1/decisions", **body), 403, FORGERY)
    refused(client.post("/v1/decisions", **body, headers={FORGERY: "0" * 64}), 403, FORGERY)
    value = {FORGERY: _forgery(client.cookies[COOKIE])}
    for foreign in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        answer = client.post("/v1/decisions", **body, headers=value | foreign)
        refused(answer, 403, "another site")
        login = client.post("/login", data={"token": service.secrets["act"]}, headers=foreign)
        refused(login, 403, "another site")
        refused(client.post("/logout", headers=foreign), 403, "another site")
    assert service.live.events() == events
    own = value | {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/v1/decisions", **body, headers=own).status_code == 201


def test_no_other_site_is_allowed_to_read(service):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    asked = service.stranger.options("/v1/decisions", headers=headers)
    refused(asked, 405, "Method Not Allowed")
    answer = service.read.get("/v1/status", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
    assert answer.headers["cache-control"] == "no-store"


# ---------------------------------------------------------------- limits


def test_a_key_has_so_many_requests_a_second():
    now = [0.0]
    rate = Rate(3, lambda: now[0])
    for _ in range(3):
        rate.take("a")
    with pytest.raises(Problem, match="more than 3 requests a second") as error:
        rate.take("a")
    assert (error.value.status, error.value.headers) == (429, {"Retry-After": "1"})
    rate.take("b")
    now[0] += 0.34
    rate.take("a")
    with pytest.raises(Problem):
        rate.take("a")


def test_too_many_requests_of_a_token_are_refused_and_others_are_not(tmp_path):
    with served(tmp_path / "a.db", rate=2) as (app, live):
        app.state.service.rate = Rate(2, lambda: 0.0)
        clients = [Client(app, live.make_token(name, "read")) for name in "ab"]
        for client in clients:
            assert [client.get("/v1/status").status_code for _ in range(2)] == [200, 200]
            answer = client.get("/v1/status")
            refused(answer, 429, "more than 2 requests a second")
            assert answer.headers["retry-after"] == "1"
        stranger = Client(app, "guess")
        assert [stranger.get("/v1/status").status_code for _ in range(3)] == [401, 401, 429]
        assert stranger.get("/healthz").status_code == 200


def test_a_body_of_8_mib_is_read_and_one_more_byte_is_not(service):
    service.decide()
    headers = {"content-type": "application/json"}
    most = b'{"seen": {}}'.ljust(8 << 20)
    path, too_long = "/v1/observations", "the body is longer than 8,388,608 bytes"
    assert service.act.post(path, headers=headers, content=most).status_code == 200
    refused(service.act.post(path, headers=headers, content=most + b" "), 413, too_long)
    for path in ("/healthz", "/login"):  # whose bodies are read of anybody
        small = service.stranger.post(path, content=b" " * 16_385)
        refused(small, 413, "the body is longer than 16,384 bytes")
    assert service.stranger.post("/nowhere", content=b" ").status_code == 303


def test_a_full_disk_is_507_and_readiness_turns_red(service):
    assert service.stranger.get("/readyz").json() == {"status": "ok"}
    service.decide()
    execute = service.live._session.journal.connection.execute
    (pages,) = execute("PRAGMA page_count").fetchone()
    execute(f"PRAGMA max_page_count = {pages}")
    kept = service.live.events()
    note = {"tick": 0, "num_pulls": 3, "unavailable": []}
    tick = 0
    while True:
        tick += 1
        answer = service.act.post("/v1/decisions", json=note | {"tick": tick})
        if answer.status_code != 201:
            break
        kept = service.live.events()
    refused(answer, 507, "the disk is full; nothing was changed")
    refused(service.stranger.get("/readyz"), 507, "the disk is full")
    assert service.stranger.get("/healthz").status_code == 200
    assert service.read.get("/v1/status").json()["events"] == len(kept)  # reading goes on
    execute("PRAGMA max_page_count = 1000000")
    assert service.stranger.get("/readyz").status_code == 200
    assert service.act.post("/v1/decisions", json={"tick": tick}).status_code == 201
    assert service.live.check() == len(service.live.events())


def test_those_who_read_do_not_wait_for_another_process_that_writes(service):
    """A request that writes waits; one that reads is answered meanwhile, before it is let go.

    Nothing here depends on how long anything takes.
    """
    other = sqlite3.connect(service.live.path, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(service.act.post, "/v1/decisions", json={"tick": 0})
        for _ in range(5):
            assert service.read.get("/v1/status").json()["tick"] == -1
        assert not waiting.done()
        other.execute("ROLLBACK")
        assert waiting.result().status_code == 201
    other.close()


def test_a_file_that_was_replaced_is_told_by_every_answer(service, tmp_path):
    created(tmp_path / "new.db").close()
    os.replace(tmp_path / "new.db", service.live.path)
    said = "was moved, deleted or replaced"
    refused(service.stranger.get("/readyz"), 500, said)
    refused(service.act.post("/v1/decisions", json={"tick": 0}), 500, said)
    refused(service.read.get("/v1/status"), 500, said)
    assert service.stranger.get("/healthz").status_code == 200


def test_somebody_who_writes_for_too_long_is_503(service, monkeypatch):
    monkeypatch.setattr("restive.serve.service.BUSY_SECONDS", 0.05)
    other = sqlite3.connect(service.live.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    answer = service.act.post("/v1/decisions", json={"tick": 0})
    refused(answer, 503, "somebody else has been writing")
    assert answer.headers["retry-after"] == "1"
    refused(service.stranger.get("/readyz"), 503, "somebody else")
    assert service.read.get("/v1/status").status_code == 200
    other.execute("ROLLBACK")
    other.close()
    assert service.act.post("/v1/decisions", json={"tick": 0}).status_code == 201


def test_what_takes_too_long_is_503_and_is_done_all_the_same(tmp_path, monkeypatch):
    import threading

    go = threading.Event()
    with served(tmp_path / "a.db", limits={"seconds": 0.3}) as (app, live):
        client = Client(app, live.make_token("a", "act"))
        live.decide()
        decide = type(live).decide

        def slow(self, *given, **options):
            assert go.wait(60)
            return decide(self, *given, **options)

        monkeypatch.setattr(type(live), "decide", slow)
        key = {"Idempotency-Key": "once"}
        answer = client.post("/v1/decisions", headers=key)
        refused(answer, 503, "ask again with the same Idempotency-Key")
        assert client.get("/healthz").status_code == 200  # while the agent is busy
        go.set()
        again = client.post("/v1/decisions", headers=key)
        assert again.json()["tick"] == 0
        assert [event.kind for event in live.events()].count("again") == 1


def test_an_error_that_nobody_foresaw_is_a_problem_document_too(service, monkeypatch):
    monkeypatch.setattr(LiveAgent, "status", lambda self: 1 / 0)
    client = Client(service.app, service.secrets["read"], raise_server_exceptions=False)
    answer = client.get("/v1/status")
    refused(answer, 500, "nobody foresaw")
    assert "ZeroDivision" not in answer.text


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    import importlib
    import sys

    import restive.serve

    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(RestiveError, match=r"needs uvicorn: pip install 'restive\[serve\]'"):
        importlib.reload(restive.serve)
    monkeypatch.undo()
    importlib.reload(restive.serve)


@pytest.mark.parametrize(
    "body", ['{"seen": {"%s": 1, "%s": 0}}', '{"seen": {"%s": 1}, "seen": {"%s": 0}}']
)
def test_a_result_given_twice_in_one_body_is_refused(service, body):
    arm = service.decide()["arms"][0]
    text = body % (arm, arm)
    done = service.act.post(
        "/v1/observations", content=text, headers={"content-type": "application/json"}
    )
    refused(done, 422, "is there twice")
    assert set(service.read.get("/v1/decisions/0").json()["results"].values()) == {"open"}


def test_no_key_is_taken_twice_from_any_body(service):
    arm = service.decide()["arms"][0]
    sent = {
        "/v1/step": f'{{"seen": {{"{arm}": 0, "{arm}": 1}}}}',
        "/v1/decisions": '{"tick": 1, "tick": 2}',
        "/v1/undo": '{"event": 1, "event": 2}',
        "/v1/arms": '{"arms": [{"name": "x", "name": "y"}]}',
    }
    events = service.live.events()
    for place, text in sent.items():
        done = service.admin.post(place, content=text, headers={"content-type": "application/json"})
        refused(done, 422, "is there twice")
    assert service.live.events() == events


# ---------------------------------------------------------------- jumps, and undoing


def test_a_jump_must_be_meant(service):
    service.decide()
    refused(service.act.post("/v1/decisions", json={"tick": 9}), 409, "8 ticks would pass")
    for meant in ("yes", 1, None):
        answer = service.act.post("/v1/decisions", json={"tick": 9, "skip": meant})
        refused(answer, 422, "body.skip")
    assert service.live.tick == 0
    assert service.act.post("/v1/decisions", json={"tick": 9, "skip": True}).status_code == 201


def test_the_last_act_is_withdrawn(service):
    assert service.read.get("/v1/undo").json() is None
    refused(service.act.post("/v1/undo"), 422, "there is nothing to undo")
    arms = service.decide()["arms"]
    seen = {"tick": 0, "seen": dict.fromkeys(arms, 1)}
    key = {"Idempotency-Key": "r"}
    assert service.act.post("/v1/observations", json=seen, headers=key).json()["new"] == 3
    act = service.read.get("/v1/undo").json()
    assert (act["kind"], act["tick"], act["count"], act["actor"]) == ("record", 0, 3, "the act")
    assert act["sentence"].startswith("3 results of tick 0 ")
    document = refused(service.act.post("/v1/undo", json={"event": act["event"] - 1}), 409, "first")
    assert "has been built on: undo 3 results of tick 0" in document["detail"]
    once = {"Idempotency-Key": "u"}
    for _ in range(2):
        done = service.act.post("/v1/undo", json={"event": act["event"]}, headers=once)
        assert (done.status_code, done.json()) == (200, act)
        assert done.headers["etag"] == '"0"'
    refused(service.act.post("/v1/undo", json={"event": act["event"]}), 409, "withdrawn already")
    assert set(service.live.results().values()) == {"open"}
    assert service.act.post("/v1/observations", json=seen, headers=key).json()["new"] == 3
    refused(service.act.post("/v1/undo", headers={"If-Match": '"7"'}), 412, "tick 7 was expected")
    service.act.post("/v1/undo")
    service.admin.request("DELETE", "/v1/arms/5")
    refused(service.act.post("/v1/undo"), 403, "needs a token of role admin")
    assert service.admin.post("/v1/undo").json()["kind"] == "leave"
    done = service.act.post("/v1/undo")
    assert (done.json()["kind"], done.headers["etag"]) == ("decide", '"-1"')
    refused(service.read.get("/v1/decisions/0"), 404, "nothing was decided")
