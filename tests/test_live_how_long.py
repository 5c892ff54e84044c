"""What a live agent says of how long to remember: from its journal, as fit says it of a log."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from live_cases import created, run
from restive.cli import app
from restive.live.told.how_long import forgetting_line
from restive.logs.forgetting import Sightings, laws_of, measured_forgetting

LEVELS = [0.1, 0.3, 0.5, 0.7, 0.9]


def played(path, ticks, switch, num_arms=8, **options):
    """Play an agent with channels that change at half time, or not."""
    prior = rs.grid_prior(LEVELS, num_arms)
    live = rs.LiveAgent.create(path, prior, 4, seed=1, durability="process", **options)
    rng = np.random.default_rng(5)
    p01, p11 = rng.choice(LEVELS, (2, 2, num_arms))
    state = np.ones(num_arms, dtype=int)
    for tick in range(ticks):
        now = int(switch and tick >= ticks // 2)
        state = (rng.random(num_arms) < np.where(state, p11[now], p01[now])).astype(int)
        decision = live.decide()
        live.record({name: int(state[int(name)]) for name in decision.arms})
    return live


def from_the_table(live, prior):
    """The same from the exported table of pulls, one by one."""
    columns, rows = live.table("pulls")
    at = [columns.index(name) for name in ("arm", "tick", "state", "status")]
    seen: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        arm, tick, state, status = (row[place] for place in at)
        if state is not None and status != "superseded":
            seen.setdefault(int(arm), []).append((tick, int(state)))
    found, counts = [], []
    for arm in range(prior.num_arms):
        last, before = 1, -1  # seen good, one step before the first tick
        for tick, state in sorted(seen.get(arm, [])):
            found.append((tick, last, tick - before, state))
            last, before = state, tick
        counts.append(len(found))
    columns = np.array(found, dtype=np.int64).T
    starts = np.concatenate([[0], counts]).astype(np.int64)
    return measured_forgetting(Sightings(starts, *columns), laws_of(prior.arms))


def test_it_is_what_the_sightings_say(tmp_path):
    prior = rs.grid_prior(LEVELS, 8)
    start = rs.BeliefState([1] * 8, [1] * 8)
    with played(tmp_path / "agent.db", 120, True, start=start) as live:
        found, expected = live.advised_forgetting(), from_the_table(live, prior)
    np.testing.assert_array_equal(found.gains, expected.gains)
    assert (found.best, found.low, found.high) == (expected.best, expected.low, expected.high)
    assert found.num_sightings == 120 * 4


def test_status_says_whether_the_arms_change(tmp_path):
    words = {"arm": "line", "tick": "week"}
    path = tmp_path / "changes.db"
    with played(path, 300, True, words=words) as live:
        found = live.advised_forgetting()
        assert found.verdict == "changes"
    said = CliRunner().invoke(app, ["live", "status", str(path)]).output
    assert f"The lines change: a memory of about {found.best:.0f} weeks would" in " ".join(
        said.split()
    )
    assert f"restive live remember {path} --for {found.best:g}" in said.replace("\n", "")
    data = json.loads(CliRunner().invoke(app, ["live", "status", str(path), "--json"]).output)
    assert data["forgetting"]["forget_after"] == found.best
    with played(tmp_path / "steady.db", 300, False, words=words) as live:
        steady = live.advised_forgetting()
        assert steady.verdict == "steady"
        assert forgetting_line(steady, live.settings).startswith(
            "The lines do not seem to change: forgetting would not have predicted better (with a "
        )


def test_an_agent_that_forgets_is_told_whether_that_is_right(tmp_path):
    with played(tmp_path / "a.db", 300, True, learner={"name": "tsde", "forget_after": 50}) as live:
        found, settings = live.advised_forgetting(), live.settings
        assert found.verdict == "changes"
        line = forgetting_line(found, settings)
        assert line.endswith("The agent remembers for 50 ticks now, which is about right.")
    with played(
        tmp_path / "b.db", 300, True, learner={"name": "tsde", "forget_after": 2000}
    ) as live:
        line = forgetting_line(live.advised_forgetting(), live.settings, "b.db")
        assert "The agent remembers for 2,000 ticks now; change that: restive live remember" in line
    with played(
        tmp_path / "c.db", 200, False, learner={"name": "tsde", "forget_after": 20}
    ) as live:
        line = forgetting_line(live.advised_forgetting(), live.settings, "c.db")
        assert line.endswith("if that is not meant: restive live remember c.db --for-ever")


def test_it_does_not_depend_on_who_opened_the_file(tmp_path):
    path = tmp_path / "agent.db"
    with played(path, 80, True) as live:
        live.undo()
        with rs.LiveAgent.open(path, durability="process") as other:
            np.testing.assert_array_equal(
                live.advised_forgetting().gains, other.advised_forgetting().gains
            )


def test_of_many_sightings_some_arms_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("restive.live.told.how_long.MOST_SIGHTINGS", 260)
    with played(tmp_path / "agent.db", 120, True) as live:
        found = live.advised_forgetting()
    assert 100 <= found.num_sightings < 480


@pytest.mark.parametrize("kind", ["equal", "controlled", "joint", "continuous", "mixed", "pooled"])
def test_every_kind_of_file_has_an_answer_or_none(tmp_path, kind):
    with created(tmp_path / "agent.db", kind) as live:
        assert live.advised_forgetting() is None
        run(live, 60)
        found = live.advised_forgetting()
        assert (found is None) == (kind in ("joint", "pooled"))
        line = forgetting_line(found, live.settings)
        assert line == "" if found is None else "the arms" in line.lower()


def test_files_with_arms_that_are_always_seen_have_none(tmp_path):
    prior, start = rs.zoo.load("calls-8").prior, rs.BeliefState([0] * 8, [1] * 8)
    with rs.LiveAgent.create(
        tmp_path / "agent.db", prior, 3, missing="refuse", start=start
    ) as live:
        assert live.advised_forgetting() is None
        status = CliRunner().invoke(app, ["live", "status", live.path])
        assert "change" not in status.output
