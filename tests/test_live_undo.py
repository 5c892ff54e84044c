"""Undo: what was withdrawn never happened, and the journal says that it did."""

import json
import os
import pty
import shutil
import sqlite3
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest
from typer.testing import CliRunner

import restive as rs
from live_cases import PRIORS, Ticking, created, fingerprint, reply, run
from restive.cli import app
from restive.errors import ConflictError, JumpError, ProblemError, RestiveError, StoreError
from restive.live.checking import check
from restive.live.creating import rebuild_file, write_good_part
from restive.live.journal.events import Journal
from restive.live.people.operator_files import record_sheet
from restive.live.people.sheets import parse_sheet
from restive.live.told.answers import Receipt

GIVEN = {"clock": rs.Clock.given()}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def tables(live):
    """What an auditor finds beside the events, but for their numbers."""
    found = {name: live.table(name) for name in ("pulls", "arms", "beliefs")}
    columns, rows = found["pulls"]
    at = columns.index("recorded")
    found["pulls"] = [(*row[:at], row[at] is None, *row[at + 1 :]) for row in rows]
    status = vars(live.status()) | {"events": None}
    return found, status, live.rewards(), live.results()


def seen(live, tick=None, count=None):
    """Results of a decision's arms."""
    decision = live.decision(tick)
    return {name: reply(decision.tick, name) for name in decision.arms[:count]}


def acts(kind):
    """All that can be done to a file, in an order in which it can be."""
    first = "A" if kind == "joint" else None

    def join(live):
        if kind == "joint":  # where nobody can join
            live.leave(["5"])
        else:
            live.join({"A": live.kinds[0], "B": live.kinds[-1]}, {"A": (0, 3)})

    return [
        lambda live: live.decide(tick=0),
        lambda live: live.record(dict.fromkeys(list(seen(live))[:1], "not-pulled")),
        lambda live: live.decide(tick=1),
        lambda live: live.record(seen(live, count=1)),
        join,
        lambda live: live.decide(tick=4, skip=True),  # which closes pulls without a result
        lambda live: live.record(dict(list(seen(live, 1).items())[1:]), 1),  # late
        lambda live: live.record({}, 2, instead={"0": 1}),  # of a tick that was left out
        lambda live: live.record({}, instead={_other(live): 0}),
        lambda live: live.step(seen(live)),
        lambda live: live.record(dict.fromkeys(seen(live), "unseen")),
        lambda live: live.decide(tick=6),
        lambda live: live.record(seen(live, 5), 5),  # of pulls that were recorded as unseen
        lambda live: live.record(dict.fromkeys(seen(live), "leave")) if first is None else None,
        lambda live: live.correct({_seen_in(live, 5): 0}, 5, "a slip"),
        lambda live: live.leave([_other(live)]),
        lambda live: live.decide(tick=7, num_pulls=1, unavailable=["3"]),
        lambda live: live.record(seen(live)),
        lambda live: live.decide(tick=8),
    ]


def _other(live):
    gone = {row.name for row in live.arms() if row.left is not None or row.waiting}
    decided = {*live.results(), *live.decision().arms}
    return next(str(k) for k in range(6) if str(k) not in decided | gone)


def _seen_in(live, tick):
    return next(name for name, state in live.results(tick).items() if isinstance(state, int))


@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("snapshots", ["kept", "none"])
def test_what_was_undone_never_happened(path, tmp_path, kind, snapshots):
    """After each act and its undo, a file is as a twin that never saw it, to the bit."""
    live, twin = created(path, kind, **GIVEN), created(tmp_path / "twin.db", kind, **GIVEN)
    other = rs.LiveAgent.open(path)  # which has to notice that somebody else undoes
    for act in acts(kind):
        count = len(live.events())
        act(live)
        if len(live.events()) == count:
            continue
        if snapshots == "kept":
            live.snapshot()
        fingerprint(other)
        done = live.undo()
        assert done.event == count + 1
        assert live.events()[-1].kind == "undo"
        assert fingerprint(live) == fingerprint(twin)
        assert fingerprint(other) == fingerprint(twin)
        assert tables(live) == tables(twin)
        assert live.check() == len(live.events())
        with rs.LiveAgent.open(path) as again:
            assert fingerprint(again) == fingerprint(twin)
        act(live)
        act(twin)
        assert fingerprint(live) == fingerprint(twin)
    assert tables(live) == tables(twin)
    rebuild_file(path, tmp_path / "new.db")
    rebuild_file(twin.path, tmp_path / "new twin.db")
    new, new_twin = (rs.LiveAgent.open(tmp_path / f"{name}.db") for name in ("new", "new twin"))
    assert fingerprint(new) == fingerprint(new_twin)
    assert tables(new) == tables(new_twin)
    journal = Journal(path)
    assert write_good_part(journal, tmp_path / "good.db") == len(live.events())
    journal.close()
    with rs.LiveAgent.open(tmp_path / "good.db") as good:
        assert good.check() == len(live.events())
        assert fingerprint(good) == fingerprint(live)
        assert tables(good) == tables(live)
    with pytest.raises(rs.errors.ConflictError, match=r"was rebuilt, and new\.db goes on"):
        live.undo()
    new.close()
    (tmp_path / "new.db").unlink()  # so this one goes on
    while live.last_act() is not None:  # all the way back
        live.undo()
    assert fingerprint(live) == fingerprint(created(tmp_path / "fresh.db", kind, **GIVEN))
    assert live.table("pulls")[1] == []


def test_an_act_says_what_it_was(path):
    live = created(path, clock=rs.Clock.given("2026-11-16", "P7D"))
    assert live.last_act() is None
    live.decide(tick=0, actor="Ann")
    assert str(live.last_act()) == "the list of tick 0 (2026-11-16), 2 arms (event 2, by Ann)"
    results = seen(live)
    live.record(results)
    assert str(live.last_act()) == "2 results of tick 0 (2026-11-16) (event 3, by python)"
    live.note("a note is no act")
    assert live.last_act().event == 3
    live.undo()
    live.step(results)
    assert live.last_act().kind == "step"
    assert (live.undo().kind, live.tick) == ("step", 0)
    live.join(["A"])
    assert str(live.undo()).startswith("the joining of A in tick 0")
    live.join(["A"])  # whose name is free again
    live.leave(["1", "2", "A"])
    assert str(live.undo()).startswith("the leaving of 3 arms")
    assert live.undo(actor="Bo").kind == "join"
    assert live.events()[-1].actor == "Bo"


@pytest.mark.parametrize("first", ["0", "unseen", "leave"])
def test_results_of_the_open_tick_are_withdrawn_in_any_order(tmp_path, first):
    """The file is then as one in which only the other result was recorded, to the bit."""
    live = created(tmp_path / "a.db", **GIVEN, outcomes={"gone": "leave"})
    twin = created(tmp_path / "b.db", **GIVEN, outcomes={"gone": "leave"})
    one, other = live.decide(tick=0).arms
    assert list(twin.decide(tick=0).arms) == [one, other]
    live.record({one: int(first) if first == "0" else first})
    event = live.last_act().event
    for agent in (live, twin):
        agent.record({other: 1})
    assert live.undo(event).event == event
    assert live.results() == twin.results() == {one: "open", other: 1}
    for agent in (live, twin):
        agent.record({one: 1})
    assert list(live.decide(tick=1).arms) == list(twin.decide(tick=1).arms)
    assert fingerprint(live) == fingerprint(twin)
    assert tables(live) == tables(twin)
    live.close()
    journal = Journal(live.path)
    with journal.reading():
        check(journal)  # the tables follow from the events
    journal.close()
    rebuild_file(live.path, tmp_path / "c.db")


def test_results_that_others_stand_on_are_withdrawn_after_them(tmp_path):
    live = created(tmp_path / "a.db", **GIVEN)
    one, other = live.decide(tick=0).arms
    live.record({one: "unseen"})
    event = live.last_act().event
    live.record({one: 1})  # which was found out later
    for act in (lambda: None, lambda: live.join(["new"])):
        act()
        with pytest.raises(ConflictError, match="has been built on"):
            live.undo(event)
    live.undo()
    live.undo()
    live.record({other: 0})
    assert live.undo(event).who == f"{one}: not reached"
    live.record({one: 0})
    event = live.last_act().event
    live.decide(tick=1)
    with pytest.raises(ConflictError, match="has been built on"):
        live.undo(event)


def test_an_undo_that_cannot_be_changes_nothing(path):
    live = created(path, **GIVEN)

    def refused(error, words, event=None):
        count = len(live.events())
        with pytest.raises(error, match=words):
            live.undo(event)
        assert len(live.events()) == count

    refused(ProblemError, "there is nothing to undo; nothing was changed")
    live.decide(tick=0)
    live.record(seen(live))
    refused(ConflictError, r"event 2 has been built on: undo 2 results of tick 0 .* first", 2)
    refused(ProblemError, r"event 1 \(init\) is nothing that can be undone", 1)
    refused(ProblemError, "there is no event 9", 9)
    for event in (0, "3", 2.5, True):
        refused(ProblemError, "event", event)
    live.undo(3)
    refused(ConflictError, "event 3 was withdrawn already", 3)
    live.undo(2)
    refused(ProblemError, "there is nothing to undo")
    assert live.decide(tick=0).tick == 0


def test_requests_of_what_was_withdrawn_may_be_sent_again(path):
    live = created(path, **GIVEN)
    first = live.decide("d", tick=0)
    wrong = dict.fromkeys(first.arms, 0)
    live.record(wrong, request="r")
    assert live.record(wrong, request="same").known == 2
    undone = live.undo(request="u")
    assert live.undo(request="u") == undone  # once
    assert live.request("r") is None
    assert live.record(dict.fromkeys(first.arms, 1), request="r").new == 2
    assert live.record(wrong | {first.arms[0]: 1, first.arms[1]: 1}, request="same").known == 2
    with pytest.raises(ConflictError, match="was used for something else"):
        live.record(wrong, request="r")
    with pytest.raises(ConflictError, match="was used for something else"):
        live.undo(3, request="u")
    assert set(live.results().values()) == {1}
    with rs.LiveAgent.open(path) as again:
        assert again.decide("d", tick=0) == first


def test_an_alarm_goes_with_its_decision_and_comes_back_with_its_acknowledgement(path):
    ticking = Ticking()
    live = created(path, clock=rs.Clock.wall("2026-11-16", "P1D"), now=ticking)
    live.decide()
    ticking.move(days=300)
    live.decide()
    ticking.move(days=-300)
    live.decide()
    (alarm,) = live.alarms()
    live.acknowledge(alarm.seq, "set right")
    with pytest.raises(ConflictError, match="undo the answer to the alarm “clock” in tick"):
        live.undo(3)
    live.undo()
    assert live.alarms() == (alarm,)
    live.undo()
    assert live.alarms() == ()
    assert live.tick == 0
    assert live.decide().tick == 0
    assert live.check() == len(live.events())


def test_a_snapshot_of_what_was_withdrawn_is_passed_over(path):
    live = created(path)
    run(live, 4)
    expected = deepcopy(fingerprint(live))
    live.decide()
    live.snapshot()
    kept = live._session.journal.connection.execute("SELECT * FROM snapshot").fetchall()
    live.undo()
    # as a process writes it that made it before, and was slow to keep it
    marks = "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?)"
    live._session.journal.connection.executemany(marks, kept)
    with rs.LiveAgent.open(path) as again:
        assert fingerprint(again) == expected


@pytest.mark.parametrize(
    "change", ["DELETE FROM withdrawn", "UPDATE withdrawn SET undo = 2", "DELETE FROM pull"]
)
def test_tables_that_do_not_say_what_was_withdrawn_are_noticed(path, change):
    live = created(path)
    run(live, 2)
    live.undo()
    live._session.journal.connection.execute(change)
    with pytest.raises(StoreError, match="it was edited"):
        live.check()


def test_a_file_of_the_first_format_learns_to_undo(tmp_path):
    path = tmp_path / "old.db"
    shutil.copy(Path(__file__).parent / "stored" / "live_1.db", path)
    with sqlite3.connect(path) as connection:
        (count,) = connection.execute("SELECT count(*) FROM event").fetchone()
    connection.close()
    with rs.LiveAgent.open(path) as live:
        assert live.undo().event <= count
        assert live.check() == count + 1


# ---------------------------------------------------------------- jumps


def test_a_date_that_is_far_away_must_be_meant(path):
    live = created(path, clock=rs.Clock.given("2027-02-01", "P7D"))
    live.decide(tick=0)
    live.decide(tick=1)
    with pytest.raises(JumpError) as error:
        live.decide(tick=2350)
    assert error.value.jump == (
        "2,348 ticks would pass without a list: the last one is of tick 1 (2027-02-08), this "
        "one would be of tick 2350 (2072-02-15), and 2 pulls without a result would count "
        "as not reached"
    )
    assert str(error.value).endswith("If that is meant, say --yes (in Python, skip=True)")
    assert (live.tick, set(live.results().values())) == (1, {"open"})
    live.decide(tick=2350, skip=True)
    live.undo()
    assert (live.tick, set(live.results().values())) == (1, {"open"})
    assert live.decide(tick=2).tick == 2


def test_a_clock_that_runs_by_itself_asks_after_a_year_only(path):
    ticking = Ticking("2026-11-16")
    live = created(path, clock=rs.Clock.wall("2026-11-16", "P7D"), now=ticking)
    live.decide()
    ticking.move(weeks=3)
    assert live.decide().tick == 3
    ticking.move(days=364)
    assert live.decide().tick == 55
    ticking.move(days=371)
    with pytest.raises(JumpError, match="52 ticks would pass without a list"):
        live.decide()
    with pytest.raises(JumpError):
        live.step(seen(live))
    assert set(live.results().values()) == {"open"}
    assert live.step(seen(live), skip=True).tick == 108


# ---------------------------------------------------------------- at a terminal


def restive(*arguments, status=0):
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == status, done.output
    return done


@pytest.fixture
def weekly(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    created("b.db", clock=rs.Clock.given("2027-02-01", "P7D")).close()
    return tmp_path


def test_a_slip_in_a_date_is_asked_about_and_undone(weekly):
    restive("live", "next", "b.db", "--date", "2027-02-01")
    with pytest.raises(RestiveError, match=r"2,349 ticks would pass .* --yes"):
        restive("live", "next", "b.db", "--date", "2072-02-15")
    done = restive("live", "next", "b.db", "--date", "2072-02-15", "--yes")
    assert "note: 2,349 ticks passed without a list since tick 0 (2027-02-01)" in done.stderr
    assert "note: 2 results of tick 0 (2027-02-01) missing" in done.stderr
    with pytest.raises(ProblemError, match=r"would withdraw the list of tick 2350 .* --yes"):
        restive("live", "undo", "b.db")
    with pytest.raises(ConflictError, match="event 2 has been built on"):
        restive("live", "undo", "b.db", "--event", 2, "--yes")
    done = restive("live", "undo", "b.db", "--yes", "--by", "Ann")
    assert done.stdout == (
        "withdrawn: the list of tick 2350 (2072-02-15), 2 arms (event 3, by command line); throw "
        "its list away\n"
    )
    told = json.loads(restive("live", "status", "b.db", "--json").stdout)
    assert (told["tick"], told["open"], told["decisions"]) == (0, 2, 1)
    told = json.loads(restive("live", "undo", "b.db", "--yes", "--json").stdout)
    assert (told["kind"], told["event"]) == ("decide", 2)
    with pytest.raises(ProblemError, match="nothing to undo"):
        restive("live", "undo", "b.db", "--yes")
    restive("live", "check", "b.db")


def at_a_terminal(answer, *arguments, early=b""):
    """Run a command whose input and errors are a terminal; return its status and what it shows.

    The answer is typed once there is a question; `early` is typed before.
    """
    above, below = pty.openpty()
    os.write(above, early)
    running = subprocess.Popen(
        [sys.executable, "-m", "restive", *arguments],
        stdin=below, stderr=below, stdout=subprocess.PIPE,
        env={**os.environ, "TERM": "dumb", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(below)
    shown = b""
    while True:
        try:
            part = os.read(above, 4096)
        except OSError:  # the other end is closed
            break
        shown += part
        if b"[y/N]" in shown and answer:
            os.write(above, answer)
            answer = b""
    out, _ = running.communicate(timeout=60)
    os.close(above)
    return running.returncode, out.decode(), shown.decode()


def test_a_terminal_is_asked(weekly):
    status, _, shown = at_a_terminal(b"n\n", "live", "next", "b.db", "--date", "2072-02-15")
    assert status == 1
    assert "would pass without a list" in shown
    assert "nothing was changed" in shown
    status, out, _ = at_a_terminal(b"y\n", "live", "next", "b.db", "--date", "2072-02-15")
    assert (status, out.count("2072-02-15")) == (0, 2)
    status, _, shown = at_a_terminal(b"n\n", "live", "undo", "b.db")
    assert status == 1
    assert "this withdraws the list of tick 2350 (2072-02-15)" in shown
    status, out, _ = at_a_terminal(b"y\n", "live", "undo", "b.db")
    assert status == 0
    assert out.startswith("withdrawn: the list of tick 2350")


def test_a_list_that_cannot_be_written_was_not_decided(weekly):
    Path("folder.csv").mkdir()
    for out in ("nowhere/list.csv", "folder.csv", "/dev/null"):
        with pytest.raises(RestiveError, match=f"{out}: cannot be written"):
            restive("live", "next", "b.db", "--date", "2027-02-01", "--out", out)
        with rs.LiveAgent.open("b.db") as live:
            assert live.tick == -1
    assert [name.name for name in weekly.iterdir() if name.name.startswith(".")] == []
    Path("list.csv").write_text("old")
    with pytest.raises(JumpError):
        restive("live", "next", "b.db", "--date", "2072-02-15", "--out", "list.csv")
    assert Path("list.csv").read_text() == "old"


def test_open_alarms_are_told_where_people_look(weekly):
    with rs.LiveAgent.open("b.db") as live:
        live.decide(tick=0)
        first = seen(live)
        for name in ("spread", "spread", "missing", "spread"):
            body = {"name": name, "sentence": f"{name}: look at it"}
            with live._session.writing():
                live._session.append("alarm", 0, body, "restive")
    Path("r.csv").write_text("arm,state\n" + "".join(f"{a},{s}\n" for a, s in first.items()))
    expected = [
        "ALARM 3, spread, noticed in tick 0 (2027-02-01), 3 times, last in tick 0: "
        "spread: look at it",
        "ALARM 5, missing, noticed in tick 0 (2027-02-01): missing: look at it",
        "Once somebody has looked, say what was found: "
        'restive live acknowledge b.db 3 5 --note "..."',
    ]
    done = restive("live", "record", "b.db", "r.csv")
    assert done.stdout == "2 results recorded; every pull on the list has a result\n"
    assert done.stderr.splitlines() == expected
    done = restive("live", "next", "b.db", "--date", "2027-02-08", "--json")
    assert json.loads(done.stdout)["tick"] == 1
    assert done.stderr.splitlines() == expected
    assert restive("live", "status", "b.db", status=1).stdout.splitlines()[-3:] == expected
    restive("live", "acknowledge", "b.db", 3, "--note", "looked")
    done = restive("live", "next", "b.db", "--date", "2027-02-08")
    assert [line[:16] for line in done.stderr.splitlines()] == [
        "ALARM 5, missing",
        "Once somebody ha",
    ]
    restive("live", "acknowledge", "b.db", 5, "--note", "looked")
    assert restive("live", "next", "b.db", "--date", "2027-02-08").stderr == ""


def test_a_correction_brings_back_who_left_by_a_wrong_result(tmp_path):
    live, twin = (created(tmp_path / f"{name}.db", **GIVEN) for name in "ab")
    for one in (live, twin):
        one.decide(tick=0)
    name, other = live.decision().arms
    live.record({name: "leave", other: 1})
    twin.record({name: "unseen", other: 1})
    for one in (live, twin):
        one.decide(tick=1)
    assert live.num_arms == 5
    live.correct({name: 1}, 0, "mistyped")
    twin.correct({name: 1}, 0, "mistyped")
    assert live.num_arms == 6
    assert live.arm(name).left is None
    live.check()
    with rs.LiveAgent.open(live.path) as again:
        assert fingerprint(again) == fingerprint(live)
    live.undo()
    assert live.num_arms == 5
    assert live.arm(name).left == 0
    live.check()
    live.correct({name: 1}, 0, "mistyped")
    rebuild_file(live.path, tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        new.check()
        assert new.num_arms == 6
        assert new.results(0)[name] == 1


def test_after_a_rebuild_a_correction_still_brings_back_who_left(tmp_path):
    live = created(tmp_path / "a.db", **GIVEN)
    live.decide(tick=0)
    name, other = live.decision().arms
    live.record({name: "leave"})
    live.leave([other])
    live.decide(tick=1)
    rebuild_file(live.path, tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        new.correct({name: 1, other: 1}, 0, "mistyped")
        assert new.arm(name).left is None
        assert new.arm(other).left == 0  # who left by himself stays gone
        new.check()


@pytest.mark.parametrize("since", ["join", "leave", "late of another"])
@pytest.mark.parametrize("late", [False, True])
def test_a_result_is_changed_though_others_joined_left_or_were_late(tmp_path, since, late):
    """The memory and the tables are those of a file in which it was never recorded."""
    live, twin = (created(tmp_path / f"{name}.db", **GIVEN) for name in "ab")
    for one in (live, twin):
        one.decide(tick=0)
        one.decide(tick=1)
    tick = 0 if late else 1
    name = live.decision(tick).arms[0]
    live.record({name: 1}, tick)
    event = live.changeable()[tick, name]
    for one in (live, twin):
        if since == "join":
            one.join({"A": one.kinds[0]})
        elif since == "leave":
            one.leave([next(k for k in "012345" if k != name)])
        else:
            one.record({live.decision(0).arms[1]: 0}, 0)
    assert live.changeable()[tick, name] == event
    live.undo(event)
    assert tables(live) == tables(twin)
    live.check()
    live.record({name: 0}, tick)
    twin.record({name: 0}, tick)
    for one in (live, twin):
        one.decide(tick=2)
    assert tables(live)[2:] == tables(twin)[2:]
    live.check()


def test_what_can_be_changed_is_found_by_one_look_at_the_last_events(tmp_path, monkeypatch):
    live = created(tmp_path / "a.db", num_arms=12, num_pulls=8, **GIVEN)
    live.decide(tick=0)
    old = live.decision(0).arms
    live.record({old[0]: 1})  # before the list: not any more
    live.decide(tick=1)
    arms = live.decision().arms
    late = next(name for name in old[1:] if name not in arms)
    both = next(name for name in old[1:] if name in arms)
    a, b, c, d, e, *_ = (name for name in arms if name != both)
    live.record({a: 1})
    live.record({b: 0, c: 1})  # two at once
    live.record({late: 1}, 0)
    live.record({both: 1}, 0)
    live.record({both: 0})
    live.record({d: "leave"})
    live.record({e: 1})
    live.undo()
    live.status()  # has the memory made anew after the undo
    reads, asked = [], []
    events = Journal.events

    def counted(self, *args, **named):
        reads.append(args)
        return events(self, *args, **named)

    monkeypatch.setattr(Journal, "events", counted)
    live._session.journal.connection.set_trace_callback(asked.append)
    found = live.changeable()
    live._session.journal.connection.set_trace_callback(None)
    assert list(found) == [(1, a), (1, b), (1, c), (0, late), (0, both), (1, both), (1, d)]
    assert found[1, b] == found[1, c]
    assert len(reads) == 2  # of what was withdrawn, and what came since the list
    assert asked
    assert not [one for one in asked if "FROM pull" in one]
    for event in dict.fromkeys(found.values()):  # each alone, in any order
        live.undo(event)
    assert {live.results(1)[name] for name in (a, b, c, both, d)} == {"open"}
    assert live.results(0)[both] == "unseen"
    live.check()


def test_what_cannot_be_changed_alone_is_not_offered(tmp_path):
    live = created(tmp_path / "a.db", **GIVEN)
    live.decide(tick=0)
    live.decide(tick=1)
    name = live.decision(0).arms[0]
    live.record({name: 1}, 0)
    event = live.changeable()[0, name]
    live.correct({name: 0}, 0, "a slip")
    assert (0, name) not in live.changeable()
    with pytest.raises(ConflictError, match="has been built on"):
        live.undo(event)
    live.undo()
    live.decide(tick=2)
    assert (0, name) not in live.changeable()


@pytest.mark.parametrize("times", [1, 2])
def test_a_file_whose_results_were_withdrawn_is_taken_after_a_rebuild(path, times):
    """The answer that a rebuild has kept for the file goes with what it recorded, and no other."""
    live = created(path, num_arms=6, num_pulls=2, clock=rs.Clock.given())
    sheets = []
    for tick in range(2):
        live.decide(f"list {tick}", tick=tick)
        rows = "".join(f"{name},{state}\n" for name, state in seen(live).items())
        sheets.append(parse_sheet(f"arm,state\n{rows}".encode(), f"{tick}.csv"))
        assert record_sheet(live, sheets[-1]).receipt.new == 2
    gone = _other(live)
    live.leave([gone], request="goes")
    last = seen(live)
    assert live.record(last, request="again").known == 2
    for _ in range(times):
        rebuild_file(path, None)
    assert live.last_act() is None
    assert record_sheet(live, sheets[1]).repeated == 1  # its answer was kept
    event = live.changeable()[1, next(iter(last))]
    assert live.undo(event).what() == "2 results of tick 1"
    assert set(live.results().values()) == {"open"}
    assert record_sheet(live, sheets[0], 0).repeated == 0  # which nobody has withdrawn
    assert live.decide("list 1", tick=1).tick == 1
    assert live.leave([gone], request="goes").new == 1
    done = record_sheet(live, sheets[1])
    assert (done.receipt.new, done.repeated) == (2, None)
    assert live.results() == last
    assert live.record(last, request="again").known == 2
    assert live.check() == len(live.events())
    live.undo()
    assert record_sheet(live, sheets[1]).receipt.new == 2


def test_what_a_request_did_in_several_ticks_is_known_after_a_rebuild(path):
    """Late results and those of the open tick in one file: withdrawn in part, it is taken again."""
    live = created(path, num_arms=6, num_pulls=2, clock=rs.Clock.given())
    first = live.decide(tick=0).arms
    second = live.decide(tick=1).arms
    rows = [*(f"0,{name},1" for name in first), *(f"1,{name},1" for name in second)]
    sheet = parse_sheet("\n".join(["tick,arm,state", *rows]).encode(), "both.csv")
    assert record_sheet(live, sheet).repeated is None
    rebuild_file(path, None)
    assert record_sheet(live, sheet).repeated is not None
    live.undo(live.changeable()[1, second[0]])
    receipt = record_sheet(live, sheet).receipt
    assert (receipt.new, receipt.known) == (2, 2)


def test_who_left_by_mistake_comes_back(path):
    live = created(path, num_arms=6, num_pulls=2, clock=rs.Clock.given())
    live.decide(tick=0)
    live.record(seen(live))
    before = tables(live)[0]
    live.leave(["4", "5"])
    assert tables(live)[0] != before
    assert live.come_back(["4", "5", "3"], request="r", actor="Ann") == Receipt(new=2, known=1)
    assert live.come_back(["4", "5", "3"], request="r").new == 2
    assert tables(live)[0] == before
    assert str(live.last_act()) == "the return of 2 arms in tick 0 (event 5, by Ann)"
    live.undo()
    assert [row.left for row in live.arms()] == [None] * 4 + [0, 0]
    live.come_back(["4", "5"])
    live.decide(tick=1)
    live.record(seen(live))
    rebuild_file(path, None)
    assert live.num_arms == 6
    live.leave(["5"])
    live.come_back(["5"])
    assert live.last_act().what() == "the return of 5 in tick 1"
    assert live.check() == len(live.events())
    with pytest.raises(ProblemError, match="there is no arm 'x'"):
        live.come_back(["x"])
