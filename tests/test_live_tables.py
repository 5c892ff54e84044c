"""Tables of likelihoods are as long as ages need, and decide as tables of all ages do."""

import numpy as np
import pytest

import restive as rs
from live_cases import PRIORS, created, fingerprint, reply
from restive.learn.slots import Choices
from restive.learn.task import make_task
from restive.live import memory as memory_module
from restive.live.creating import rebuild_file

SLOW = [[0.999, 0.001], [0.002, 0.998]]


def slow_prior(num_arms):
    """Candidates of which some hardly move: their beliefs settle after thousands of ages."""
    arms = [rs.Arm(SLOW, SLOW, [0, 1]), rs.gilbert_elliott(0.3, 0.8), rs.gilbert_elliott(0.1, 0.4)]
    return rs.IndependentPrior([rs.ArmPrior(arms, [0.2, 0.5, 0.3]) for _ in range(num_arms)])


def lived(path, kind, first_ages, monkeypatch):
    """Run an agent through gaps, late results and arms that join; return all that it told."""
    monkeypatch.setattr(memory_module, "FIRST_AGES", first_ages)
    if kind == "slow":
        live = rs.LiveAgent.create(
            path, slow_prior(6), 2, clock=rs.Clock.given(), seed=3, durability="process"
        )
    else:
        live = created(path, kind, clock=rs.Clock.given())
    found, before = [], None
    for tick in (0, 1, 2, 4, 5, 11, 12, 40, 41, 120, 121, 200, 201, 1500, 1501, 3000):
        decision = live.decide(tick=tick, skip=True)
        found.append([decision, live.beliefs_now()])
        live.record({name: reply(tick, name) for name in decision.arms[tick % 2 :]})
        if before is not None:  # what did not come in time
            live.record({name: reply(before.tick, name) for name in before.arms}, before.tick)
            found.append(live.beliefs_now())
        if tick == 12 and kind != "joint":
            live.join({"A": live.kinds[0], "B": live.kinds[-1]}, {"A": (0, 700), "B": (1, 2)})
        if tick == 121:
            live.record({}, 30, instead={"0": 1, "5": 0})
            found.append(live.beliefs_now())
        before = decision
    found.append(fingerprint(live))
    live.close()
    with rs.LiveAgent.open(path) as again:
        assert fingerprint(again) == found[-1]
        assert again.alarms() == ()
    return found


@pytest.fixture(autouse=True)
def _beliefs(monkeypatch):
    def beliefs_now(self):
        joined = [row.name for row in self.arms() if not row.waiting]
        return [self.belief(name).tolist() for name in joined]

    monkeypatch.setattr(rs.LiveAgent, "beliefs_now", beliefs_now, raising=False)


@pytest.mark.parametrize("kind", [*PRIORS, "slow"])
def test_short_tables_decide_as_long_ones_do(tmp_path, kind, monkeypatch):
    whole = lived(tmp_path / "whole.db", kind, 1 << 40, monkeypatch)
    for first_ages in (1, 3, 64):
        short = lived(tmp_path / f"{first_ages}.db", kind, first_ages, monkeypatch)
        assert short == whole
    rebuild_file(tmp_path / "1.db", tmp_path / "new.db")
    monkeypatch.setattr(memory_module, "FIRST_AGES", 1 << 40)
    rebuild_file(tmp_path / "1.db", tmp_path / "new whole.db")
    new, new_whole = (rs.LiveAgent.open(tmp_path / f"{name}.db") for name in ("new", "new whole"))
    assert fingerprint(new) == fingerprint(new_whole)


def test_a_table_has_the_columns_of_the_full_one_and_the_settled_one():
    prior = slow_prior(3)
    full = make_task(prior, 1).choices.slots
    length = int(full.lengths[0])
    assert length > 5000
    rows = full.likelihoods.reshape(2, length, 2, -1)
    for ages in (1, 2, 17, length - 2, length - 1, length, 2 * length):
        short = make_task(prior, 1, ages=ages).choices
        own = int(short.slots.lengths[0])
        assert own == min(length, ages + 1)
        block = short.slots.likelihoods.reshape(2, own, 2, -1)
        np.testing.assert_array_equal(block[:, : own - 1], rows[:, : own - 1])
        np.testing.assert_array_equal(block[:, -1], rows[:, -1])
        assert short.slots.losses.tolist() == full.losses.tolist()


def test_which_ages_have_no_likelihoods():
    short = make_task(slow_prior(3), 1, ages=10).choices
    settled = int(make_task(slow_prior(3), 1).choices.slots.lengths[0])

    def missing(*ages):
        return short.room_for(np.array(ages, dtype=np.int64))

    assert missing(1, 4, 9) == (0, 1)
    assert missing(1, 4, 10) == (0, 0)
    assert missing(1, 11, 10)[0] == 11
    assert missing(1, settled - 1, 10)[0] == settled - 1
    assert missing(1, settled, 1 << 20) == (0, 9)
    assert make_task(slow_prior(3), 1).choices.room_for(np.array([1, 50, 99]))[0] == 0


def test_arms_that_differ_in_their_weights_alone_share_likelihoods():
    candidates = slow_prior(1).arms[0].candidates
    weights = np.random.default_rng(0).dirichlet([1, 1, 1], size=60)
    prior = rs.IndependentPrior([rs.ArmPrior(candidates, own) for own in weights])
    shared, alone = make_task(prior, 1).choices, make_task(slow_prior(1), 1).choices
    assert isinstance(shared, Choices)
    assert len(shared.slots.likelihoods) == len(alone.slots.likelihoods)
    assert set(shared.slots.offsets.tolist()) == {0}
