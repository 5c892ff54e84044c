"""Why this arm: every number of an explanation against another way to it."""

import json

import numpy as np
import pytest

import restive as rs

NAMES = ["bad", "good"]


def played(prior, num_pulls, steps, mapping="whittle", seed=3):
    agent = rs.TSDE(prior, num_pulls, mapping, seed=seed)
    rng = np.random.default_rng(5)
    for _ in range(steps):
        agent.observe(rng.integers(2, size=len(agent.select())))
    return agent


@pytest.fixture(scope="module")
def prior():
    return rs.grid_prior([0.1, 0.3, 0.5, 0.7, 0.9], num_arms=5, states=NAMES)


@pytest.mark.parametrize("mapping", ["whittle", "myopic", "lp_priority"])
@pytest.mark.parametrize("decided", [True, False])
def test_an_explanation_is_that_of_the_index_policy(prior, mapping, decided):
    agent = played(prior, 2, 25, mapping)
    chosen = agent.select() if decided else agent.sampled_policy.select(agent.belief_state)
    index, state = agent.index(), agent.belief_state
    order = sorted(range(5), key=lambda k: (-index[k], k))
    assert sorted(order[:2]) == chosen.tolist(), "no ties but equal numbers here"
    policy = agent.sampled_policy
    for k in range(5):
        why = agent.explain(k)
        assert (why.arm, why.time, why.decided) == (k, agent.time, decided)
        assert why.pulled == (k in chosen)
        assert why.last_state == NAMES[state.last_state[k]]
        assert why.elapsed == state.elapsed[k]
        assert list(why.belief.values()) == agent.belief(k).tolist()
        assert why.expected_reward == agent.belief(k)[1]
        assert why.index == index[k]
        assert order[why.rank - 1] == k
        assert why.rival == (order[2] if why.pulled else order[1])
        assert why.rival_index == index[why.rival]
        if mapping != "lp_priority":
            mean = rs.Arm(agent.posterior(k).mean().active, rewards=[0, 1])
            at_mean = rs.registry.policy_mapping(mapping).table(mean)
            cell = state.last_state[k], min(state.elapsed[k], at_mean.shape[1]) - 1
            assert why.index_at_mean == at_mean[cell]
        else:
            assert why.index_at_mean is None
        table = policy.table(k)[state.last_state[k]]
        ages = [
            n
            for n in range(int(state.elapsed[k]), len(table) + 1)
            if (table[n - 1], -k) > (why.rival_index, -why.rival)
        ]
        assert why.pulled_at_age == (None if why.pulled or not ages else ages[0])
        assert json.loads(json.dumps(why.to_json())) == why.to_json()


def test_it_reads_well(prior):
    agent = played(prior, 1, 25)
    agent.select()
    whys = [agent.explain(k) for k in range(5)]
    (pulled,) = [str(why) for why in whys if why.pulled]
    assert pulled.splitlines()[0].endswith(f"is pulled at time {agent.time}")
    assert "it would give way to arm" in pulled
    waiting = [str(why) for why in whys if why.pulled_at_age is not None]
    for text in waiting:
        assert "if the others stayed as they are" in text
    stuck = [str(why) for why in whys if not why.pulled and why.pulled_at_age is None]
    for text in stuck:
        assert "which waiting alone will not do under this draw" in text
    assert waiting
    assert stuck
    named = rs.ArmPrior([rs.gilbert_elliott(0.3, 0.7, name="sky", states=NAMES)])
    agent = rs.TSDE(rs.IndependentPrior([named] * 2), 1, "optimal")
    agent.select()
    assert str(agent.explain(1)).splitlines() == [
        "arm 1 ('sky') is not pulled at time 1",
        "last seen: good, 1 step ago",
        "belief now: bad 30.0%, good 70.0%; a pull is expected to pay 0.7",
        "its policy mapping has no index, so arms have no rank",
    ]


def test_arms_that_somebody_else_chose_or_that_were_not_there(prior):
    agent = played(prior, 1, 25)
    best = int(np.argmax(agent.index()))
    available = np.ones(5, dtype=bool)
    available[best] = False
    agent.select(available=available)
    why = agent.explain(best)
    if why.rank == 1:  # unless a new episode has begun
        assert "it was not available" in str(why)
    agent = played(prior, 1, 25)
    agent.select(num_pulls=0)
    assert str(agent.explain(0)).endswith("no arm is pulled")
    everything = played(prior, 5, 9)
    everything.select()
    assert str(everything.explain(0)).endswith("nothing would change that: all arms are pulled")


def test_what_cannot_be_explained(prior):
    agent = rs.TSDE(prior, 1)
    with pytest.raises(rs.errors.ProblemError, match=r"call select\(\) first"):
        agent.explain(0)
    agent.select()
    with pytest.raises(rs.errors.ProblemError, match="arm 5 is not one of the arms 0 to 4"):
        agent.explain(5)
    other = rs.make_learner("ucb1", prior, 1, horizon=9)
    other.select()
    with pytest.raises(rs.errors.ProblemError, match="learner ucb1 has no explanation"):
        other.explain(0)
