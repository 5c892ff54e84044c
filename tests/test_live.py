"""Live agents: what must hold, whatever happens (invariants I1 to I10 have a test each here)."""

import json
import os
import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import restive as rs
from live_cases import PRIORS, Ticking, created, fingerprint, memory_of, reply, run
from restive.errors import BusyError, ConflictError, JumpError, ProblemError, StoreError
from restive.live.creating import rebuild_file
from restive.live.journal.file_guard import file_system
from restive.live.people.roster import LONG_AGO
from restive.live.told.answers import RefusedError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "agent.db"


def long_ago(num_arms: int) -> rs.BeliefState:
    return rs.BeliefState([1] * num_arms, [LONG_AGO] * num_arms)


# ---------------------------------------------------------------- the agent behind it


@pytest.mark.parametrize("kind", PRIORS)
def test_it_decides_as_the_agent_in_memory_does(path, kind):
    prior = PRIORS[kind](6)
    live = created(path, kind)
    agent = rs.TSDE(prior, 2, seed=3, start=long_ago(6))
    for tick in range(40):
        decision = live.decide()
        assert decision.tick == tick
        arms = agent.select()
        assert decision.arms == tuple(str(k) for k in arms)
        for name, mean in zip(decision.arms, decision.expected, strict=True):
            assert mean == pytest.approx(agent.belief(int(name))[1], rel=1e-13)
        np.testing.assert_array_equal(decision.index, agent.index()[arms])
        np.testing.assert_array_equal(agent.index_of(arms), agent.index()[arms])
        states = [reply(tick, str(k)) for k in arms]
        live.record(dict(zip(decision.arms, states, strict=True)))
        agent.observe(states)
    live.decide()
    for k in range(6):
        assert live.posterior(str(k)).weights.tobytes() == agent.posterior(k).weights.tobytes()
        np.testing.assert_array_equal(live.belief(str(k)), agent.belief(k))


def test_pooled_arms_learn_together_and_go_on_doing_so(path):
    """Three of four identical channels: each result tells of all three, and of no other arm."""
    prior = rs.IndependentPrior(rs.grid_prior([0.1, 0.5, 0.9], 4).arms, pooled=[[0, 1, 3]])
    live = rs.LiveAgent.create(path, prior, 2, seed=3, durability="process")
    run(live, 12)
    live.join({"later": "all"})
    decision = live.decide()
    seen = {name: reply(12, name) for name in decision.arms}
    live.record(seen)
    told = {name: live.posterior(name).weights for name in "0123"}
    np.testing.assert_allclose(told["1"], told["0"], rtol=1e-12)
    np.testing.assert_allclose(told["3"], told["0"], rtol=1e-12)
    assert not np.allclose(told["2"], told["0"], rtol=0.1)
    (known,) = live.entropy()
    looked_at = [*told.values(), live.posterior("later").weights]  # all of them were seen
    single = [-sum(p * np.log2(p) for p in weights if p > 0) for weights in looked_at]
    assert known.arms == 5
    assert known.bits[-1] == pytest.approx(np.mean(single), abs=1e-9)
    live.decide()  # results of the tick before are learned, not only shown
    for name in "0123":
        np.testing.assert_allclose(live.posterior(name).weights, told[name], rtol=1e-9)
    before = fingerprint(live)
    live.close()
    with rs.LiveAgent.open(path) as again:
        assert fingerprint(again) == before
        rest = next(name for name in ("0", "1", "3") if name not in seen)
        np.testing.assert_allclose(again.posterior(rest).weights, told["0"], rtol=1e-9)
    rebuild_file(path, path.with_name("rebuilt.db"))
    with rs.LiveAgent.open(path.with_name("rebuilt.db")) as rebuilt:
        for name in "0123":
            np.testing.assert_allclose(rebuilt.posterior(name).weights, told[name], rtol=1e-9)


@pytest.mark.parametrize("kind", PRIORS)
def test_what_is_known_of_the_selected_arms_is_had_without_naming_them(kind):
    agent = rs.TSDE(PRIORS[kind](6), 2, seed=3)
    for ask in (agent.beliefs, agent.index_of, agent.last_states):
        with pytest.raises(rs.RestiveError, match=r"nothing is selected: call select\(\) first"):
            ask()
    for t in range(20):
        arms = agent.select() if t % 2 else [1, 4, 5]
        if not t % 2:
            agent.pull(arms)
        for own, named in zip(agent.beliefs(), agent.beliefs(arms), strict=True):
            np.testing.assert_array_equal(own, named)
        assert agent.index_of() == agent.index()[arms].tolist()
        np.testing.assert_array_equal(agent.last_states(), agent.belief_state.last_state[arms])
        agent.observe([reply(t, str(k)) for k in arms])


def test_what_is_recorded_shows_before_the_tick_is_over(path):
    for kind in PRIORS:
        live = created(path.with_name(f"{kind}.db"), kind)
        run(live, 12)
        decision = live.decide()
        results = {name: reply(99, name) for name in decision.arms}
        live.record(results)
        before = [live.posterior(str(k)) for k in range(6)]
        assert live.belief(decision.arms[0])[results[decision.arms[0]]] == 1.0
        live.decide()
        compared = 0
        for k, was in enumerate(before):
            now = live.posterior(str(k))
            if np.array_equal(now.active, was.active):  # particles may have been drawn anew
                np.testing.assert_allclose(now.weights, was.weights, atol=1e-13)
                compared += 1
        assert compared >= 3


# ---------------------------------------------------------------- I1 to I10


def test_i1_what_was_acknowledged_is_there_for_whoever_looks(path):
    live = created(path)
    decision = live.decide()
    assert rs.LiveAgent.open(path).decide() == decision
    live.record({decision.arms[0]: 1})
    assert rs.LiveAgent.open(path).results()[decision.arms[0]] == 1


@pytest.mark.parametrize("kind", PRIORS)
@pytest.mark.parametrize("with_snapshots", [False, True])
def test_i2_memory_is_a_function_of_the_journal(path, kind, with_snapshots):
    live = created(path, kind)
    for part in range(4):
        run(live, 7)
        live.decide()
        if part == 2 and kind != "joint":
            live.join(dict.fromkeys("xy", live.kinds[0]), {"y": (0, 2)})
            live.leave(["1"])
        if with_snapshots:
            live.snapshot()
        again = rs.LiveAgent.open(path)
        assert fingerprint(again) == fingerprint(live)
        again.close()
    assert live.check() == len(live.events())


def test_i3_a_decision_never_changes(path):
    live = created(path, clock=rs.Clock.given())
    first = live.decide(tick=4, skip=True)
    assert live.decide(tick=4) == first
    assert live.decide(tick=4, num_pulls=1, unavailable=first.arms) == first
    live.record({first.arms[0]: 0})
    assert live.decide(tick=4) == first
    live.decide(tick=5)
    assert live.decision(4) == first


def test_i4_requests_may_be_repeated(path):
    live = created(path)
    decision = live.decide(request="a")
    results = dict.fromkeys(decision.arms, 1)
    receipt = live.record(results, request="b")
    assert receipt == rs.types.Receipt(new=2, closed=True)
    following = live.step({}, request="c")
    count = len(live.events())
    live = rs.LiveAgent.open(path)
    assert live.decide(request="a") == decision
    assert live.record(results, request="b") == receipt
    assert live.step({}, request="c") == following
    assert live.record(results, tick=0) == rs.types.Receipt(known=2)
    assert len(live.events()) == count
    with pytest.raises(ConflictError, match="request 'b' was used for something else"):
        live.record({decision.arms[0]: 1}, request="b")
    with pytest.raises(ConflictError, match="request 'b'"):
        live.decide(request="b")
    with pytest.raises(RefusedError, match="1 was recorded for tick 0 already, now 0") as refused:
        live.record({decision.arms[0]: 0}, tick=0)
    assert refused.value.mistakes[0].conflict
    assert len(live.events()) == count


def test_i4_an_id_is_kept_even_where_nothing_else_was_written(path):
    live = created(path)
    decision = live.decide()
    assert live.decide(request="mine") == decision
    live.step(dict.fromkeys(decision.arms, 1))
    assert live.decide(request="mine") == decision


def test_i5_all_who_write_see_one_line_of_history(path):
    one, two = created(path), rs.LiveAgent.open(path)
    first = one.decide()
    assert two.decide() == first
    two.record({first.arms[0]: 1})
    assert one.record({first.arms[0]: 1, first.arms[1]: 0}) == rs.types.Receipt(1, 1, closed=True)
    second = two.decide()
    assert second.tick == 1
    assert one.decide() == second
    assert fingerprint(one) == fingerprint(two)


def test_i6_the_order_of_results_within_a_tick_does_not_matter(path):
    def played(name, order, split):
        live = created(path.with_name(name), "joint", num_pulls=2)
        for _ in range(15):
            decision = live.decide()
            states = {arm: reply(decision.tick, arm) for arm in decision.arms[::order]}
            if split:
                for arm, state in states.items():
                    live.record({arm: state})
            else:
                live.record(states)
            live.record({}, instead={next(a for a in "012345" if a not in states): 1})
        live.decide()
        return fingerprint(live)

    assert played("a.db", 1, False) == played("b.db", -1, False) == played("c.db", -1, True)


def test_i7_time_never_goes_back(path):
    live = created(path, clock=rs.Clock.given())
    live.decide(tick=7, skip=True)
    with pytest.raises(ConflictError, match="tick 6 is over"):
        live.decide(tick=6)
    rows = live.table("events")[1]
    assert [row[2] for row in rows if row[1] == "decide"] == [7]
    ticking = Ticking()
    wall = created(path.with_name("wall.db"), clock=rs.Clock.wall("2026-11-16", "P1D"), now=ticking)
    assert wall.decide().tick == 0
    ticking.move(days=3)
    assert wall.decide().tick == 3
    ticking.move(days=-2)
    assert wall.decide().tick == 3
    assert [alarm.name for alarm in wall.alarms()] == ["clock"]
    wall.decide()
    assert len(wall.alarms()) == 1
    wall.acknowledge(wall.alarms()[0].seq, "the battery was empty")
    assert wall.alarms() == ()


def test_i8_the_journal_is_right_where_replay_comes_out_differently(path, monkeypatch):
    live = created(path)
    decided = run(live, 10)
    live.close()
    real = rs.live.memory.Memory.choose

    def other(self, tick, num_pulls, out):
        choice = real(self, tick, num_pulls, out)
        if tick != 4 or self.agent.num_phases == 0:
            return choice
        return self.chosen_by_others([0, 1] if choice.arms != [0, 1] else [2, 3], [])

    monkeypatch.setattr(rs.live.memory.Memory, "choose", other)
    live = rs.LiveAgent.open(path)
    monkeypatch.undo()
    assert [live.decision(tick).arms for tick in range(10)] == decided
    (alarm,) = live.alarms()
    assert alarm.name == "divergence"
    assert "1 decision came out differently" in alarm.sentence
    assert live.check() == len(live.events())
    count = len(live.events())
    assert len(rs.LiveAgent.open(path).events()) == count  # it is journaled once
    live.acknowledge(alarm.seq, "another machine")
    assert live.alarms() == ()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET body = replace(body, '\"results\":[1', '\"results\":[0') WHERE seq = 3",
        "UPDATE event SET actor = 'somebody' WHERE seq = 5",
        "UPDATE event SET tick = tick + 1 WHERE seq = 4",
        "DELETE FROM event WHERE seq = 6",
        "UPDATE event SET at = at + 1 WHERE seq = 1",
        "UPDATE event SET request = 'x' WHERE seq = 2",
    ],
)
def test_i9_a_change_of_any_event_shows(path, tmp_path, change):
    live = created(path)
    for _ in range(6):
        live.decide()
        live.record(dict.fromkeys(live.decision().arms, 1))
    live.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute(change).rowcount == 1
    connection.close()
    seq = int(change.rpartition(" ")[2])
    with pytest.raises(StoreError, match=f"event {seq} was damaged or edited"):
        rs.LiveAgent.open(path)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE pull SET state = 1 - state WHERE tick = 2",
        "UPDATE arm SET name = 'other' WHERE slot = 2",
        "DELETE FROM pull WHERE tick = 1",
    ],
)
def test_i9_tables_are_checked_against_the_events(path, change):
    live = created(path)
    run(live, 4)
    live._session.journal.connection.execute(change)
    with pytest.raises(StoreError, match="it was edited"):
        live.check()


def test_i9_a_prior_that_was_edited_is_refused(path):
    created(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE prior SET body = replace(body, '0.9', '0.8')")
    connection.close()
    with pytest.raises(StoreError, match="the prior of kind 'all' was damaged or edited"):
        rs.LiveAgent.open(path)


def test_i10_nothing_but_names_is_in_the_file(path):
    live = created(path, names=["a", "b", "c", "d", "e", "f"])
    run(live, 3)
    columns = set()
    for table in ("pulls", "events", "arms", "beliefs"):
        columns |= set(live.table(table)[0])
    assert columns == {
        "tick", "arm", "kind", "status", "state", "audit", "expected", "recorded",
        "seq", "at", "request", "actor", "body", "digest", "joined", "left", "last_state",
        "last_tick", "belief_0", "belief_1",
    }  # fmt: skip
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


# ---------------------------------------------------------------- clocks


def test_ticks_in_which_nobody_calls_pass(path):
    live = created(path, clock=rs.Clock.given())
    agent = rs.TSDE(PRIORS["equal"](6), 2, seed=3, start=long_ago(6))
    time = 0
    for tick in (0, 1, 5, 6, 20):
        agent.skip(tick - time)
        time = tick + 1
        decision = live.decide(tick=tick, skip=tick in (5, 20))
        assert decision.arms == tuple(str(k) for k in agent.select())
        live.record({name: reply(tick, name) for name in decision.arms})
        agent.observe([reply(tick, name) for name in decision.arms])
    with pytest.raises(JumpError, match=r"1,999,979 ticks would pass without a list: .* --yes"):
        live.decide(tick=2_000_000)
    assert live.tick == 20
    assert live.decide(tick=2_000_000, skip=True).tick == 2_000_000


def test_a_clock_on_the_wall_follows_the_calendar():
    clock = rs.Clock.wall("2026-03-28", "P1D", zone="Europe/Berlin")
    noon = [datetime(2026, 3, day, 12, tzinfo=UTC) for day in (28, 29, 30)]
    assert [clock.tick_at(round(t.timestamp() * 1e6)) for t in noon] == [0, 1, 2]
    begins = [clock.begins(tick) for tick in range(3)]
    hours = [(b - a).total_seconds() / 3600 for a, b in zip(
        [t.astimezone(UTC) for t in begins[:-1]], [t.astimezone(UTC) for t in begins[1:]],
        strict=True)]  # fmt: skip
    assert hours == [24, 23]
    weekly = rs.Clock.wall("2026-11-16T06:00", "weekly", zone="Asia/Kolkata")
    before = datetime(2026, 11, 23, 0, 29, tzinfo=UTC)  # 05:59 there
    assert weekly.tick_at(round(before.timestamp() * 1e6)) == 0
    assert weekly.tick_at(round(before.timestamp() * 1e6) + 60 * 10**6) == 1
    assert weekly.label(1) == "2026-11-23T06:00:00"
    assert weekly.tick_of("2026-11-24") == 1
    hours = rs.Clock.wall("2026-03-29", "PT6H", zone="Europe/Berlin")
    assert [hours.label(i)[11:16] for i in range(4)] == ["00:00", "07:00", "13:00", "19:00"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rs.Clock.wall("tomorrow", "P1D"), "start must be year-month-day, such as"),
        (lambda: rs.Clock.wall("2026-11-16", "P1M"), "period must be a length of time such as"),
        (lambda: rs.Clock.wall("2026-11-16", "P0D"), "period must be"),
        (lambda: rs.Clock.wall("2026-11-16", "P1D", "Mars"), "zone 'Mars' is not known"),
        (lambda: rs.Clock.wall("2026-11-16T00:00+01:00", "P1D"), "leave out the offset"),
        (lambda: rs.Clock.given("2026-11-16"), "needs both start and period"),
        (lambda: rs.Clock.from_data({"kind": "sun"}), "kind must be calls, wall or given"),
        (lambda: rs.Clock.from_data({"kind": "wall"}), "needs start and period"),
        (lambda: rs.Clock.given().tick_of("2026-11-16"), "clock has no dates"),
        (lambda: rs.Clock.wall("2026-11-16", "P1D").tick_of("2026-11-15"), "before the start"),
    ],
)
def test_clocks_that_cannot_be(make, message):
    with pytest.raises(ProblemError, match=message):
        make()


def test_a_wall_clock_waits_for_its_start_and_tells_when_a_decision_expires(path):
    ticking = Ticking("2026-11-15T23:00")
    live = created(path, clock=rs.Clock.wall("2026-11-16", "PT1H"), now=ticking)
    with pytest.raises(ProblemError, match="the first tick begins 2026-11-16T00:00:00"):
        live.decide()
    ticking.move(hours=1, minutes=5)
    decision = live.decide()
    assert decision.expires == datetime(2026, 11, 16, 1, tzinfo=UTC)
    with pytest.raises(ConflictError, match="it is tick 0 by the file's clock, not 5"):
        live.decide(tick=5)
    ticking.move(hours=4)
    assert live.step(dict.fromkeys(decision.arms, 1), tick=0).tick == 4


def test_a_clock_of_calls_waits_for_all_results(path):
    live = created(path)
    first = live.decide()
    assert live.step({first.arms[0]: 1}) == first
    assert live.step({first.arms[1]: "unseen"}).tick == 1


def test_a_given_clock_needs_a_tick_and_steps_by_one(path):
    live = created(path, clock=rs.Clock.given())
    with pytest.raises(ProblemError, match="say which tick the list is for, by its number"):
        live.decide()
    decision = live.decide(tick=3, skip=True)
    assert live.step(dict.fromkeys(decision.arms, 0), tick=3).tick == 4


# ---------------------------------------------------------------- files that cannot be used


def test_what_is_not_a_live_agent_is_refused(tmp_path, path):
    with pytest.raises(StoreError, match="there is no such file"):
        rs.LiveAgent.open(path)
    text = tmp_path / "text.db"
    text.write_text("hello " * 1000)
    with pytest.raises(StoreError, match="the file is damaged"):
        rs.LiveAgent.open(text)
    other = tmp_path / "other.db"
    sqlite3.connect(other).execute("CREATE TABLE t(x)").connection.close()
    with pytest.raises(StoreError, match="is not the file of a live agent"):
        rs.LiveAgent.open(other)
    created(path).close()
    with pytest.raises(StoreError, match="is there already"):
        created(path)
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    connection.close()
    with pytest.raises(StoreError, match="made by a newer restive"):
        rs.LiveAgent.open(path)
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []


def test_a_file_that_cannot_be_made_leaves_nothing_behind(tmp_path):
    with pytest.raises(ProblemError, match="num_pulls"):
        created(tmp_path / "a.db", num_pulls=9)
    with pytest.raises(rs.RestiveError, match="cannot be written"):
        created(tmp_path / "no" / "a.db")
    assert list(tmp_path.iterdir()) == []


def test_network_file_systems_are_refused(path, monkeypatch):
    mounts = "/dev/sda / ext4 rw 0 0\nhost:/x /mnt/my\\040disk nfs4 rw 0 0\n"
    assert file_system(Path("/mnt/my disk/sub"), mounts) == "nfs4"
    assert file_system(Path("/mnt/my disks"), mounts) == "ext4"
    assert file_system(Path("/home"), "") == ""
    monkeypatch.setattr("restive.live.journal.file_guard._mounts", lambda: "host:/x / nfs rw 0 0\n")
    with pytest.raises(StoreError, match=r"network file system \(nfs\).*restive serve"):
        created(path)


def test_a_writer_that_holds_the_file_is_waited_for(path, monkeypatch):
    monkeypatch.setattr("restive.live.journal.events.WAIT", 0.05)
    live = created(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(BusyError, match="somebody else has been writing"):
        live.decide()
    other.execute("ROLLBACK")
    other.close()
    assert live.decide().tick == 0


def test_another_process_must_open_the_file_itself(path, monkeypatch):
    live = created(path)
    monkeypatch.setattr("restive.live.session.os.getpid", lambda: -1)
    with pytest.raises(StoreError, match="opened by another process"):
        live.decide()


def test_snapshots_are_a_cache(path):
    live = created(path)
    run(live, 5)
    live.snapshot()
    run(live, 5)
    live.snapshot()
    run(live, 5)
    live.snapshot()
    expected = fingerprint(live)
    execute = live._session.journal.connection.execute
    assert execute("SELECT count(*) FROM snapshot").fetchone() == (2,)
    newest = "(SELECT max(seq) FROM snapshot)"
    for damage in (
        f"UPDATE snapshot SET body = zeroblob(9) WHERE seq = {newest}",
        "UPDATE snapshot SET version = 'other'",
        "DELETE FROM snapshot",
    ):
        execute(damage)
        assert fingerprint(rs.LiveAgent.open(path)) == expected


def test_a_snapshot_is_made_when_it_is_worth_it(path, monkeypatch):
    monkeypatch.setattr("restive.live.session.COMPUTED_PER_SNAPSHOT", 0.0)
    live = created(path)
    run(live, 3)
    assert live._session.journal.connection.execute("SELECT count(*) FROM snapshot").fetchone()[0]
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)


def test_an_error_within_a_transaction_changes_nothing(path, monkeypatch):
    live = created(path)
    run(live, 3)
    before = fingerprint(live)
    monkeypatch.setattr(
        "restive.live.acts.deciding.enter_choice", lambda *args: (_ for _ in ()).throw(RuntimeError)
    )
    with pytest.raises(RuntimeError):
        live.decide()
    monkeypatch.undo()
    assert fingerprint(live) == before
    assert fingerprint(rs.LiveAgent.open(path)) == before
    assert memory_of(live).tick == 2


# ---------------------------------------------------------------- files of every version


STORED = Path(__file__).parent / "stored"


@pytest.mark.parametrize("name", sorted(path.stem for path in STORED.glob("live_*.db")))
@pytest.mark.parametrize("with_snapshots", [True, False])
def test_a_file_of_every_version_opens_and_decides_as_it_did(tmp_path, name, with_snapshots):
    """Decisions and results to the letter, posteriors to the bit on the same kind of processor."""
    path = tmp_path / f"{name}.db"
    path.write_bytes((STORED / f"{name}.db").read_bytes())
    expected = json.loads((STORED / f"{name}.json").read_text())
    if not with_snapshots:
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM snapshot")
        connection.close()
    with rs.LiveAgent.open(path) as live:
        assert live.alarms() == ()  # no decision came out differently
        for tick, arms in expected["decisions"].items():
            assert list(live.decision(int(tick)).arms) == arms
            assert live.results(int(tick)) == expected["results"][tick]
        assert list(live.decide(tick=9).arms) == expected["next"]
        for arm, weights in expected["posteriors"].items():
            np.testing.assert_allclose(live.posterior(arm).weights, weights, rtol=1e-12)
        assert live.check() == len(live.events())
        assert live.decide(tick=10).tick == 10


@pytest.mark.parametrize("kind", [[[0.5, 0.5]], {"a": 1}, 3])
def test_a_kind_that_is_no_name_is_refused(tmp_path, kind):
    with created(tmp_path / "a.db") as live, pytest.raises(rs.RestiveError, match="there is no"):
        live.join({"E": kind})


def test_a_name_that_is_nested_without_end_is_refused(tmp_path):
    deep = []
    for _ in range(5000):
        deep = [deep]
    with created(tmp_path / "a.db") as live, pytest.raises(rs.RestiveError, match="nested too"):
        live.explain(deep)
