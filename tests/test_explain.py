"""Why this arm: every number of an explanation against another way to it."""

import json

import numpy as np
import pytest

import restive as rs
from restive.learn.explain import mean_index_by_age

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
        assert "if the others stayed as they are" in " ".join(text.split())
    stuck = [str(why) for why in whys if not why.pulled and why.pulled_at_age is None]
    for text in stuck:
        assert "which waiting alone will not do under this draw" in " ".join(text.split())
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


def test_it_fits_a_terminal():
    names = ["lost", "persuadable", "engaged and listening"]
    prior = rs.spread_prior(12, (0, 0.5, 1), states=names, points=64)
    agent = rs.TSDE(prior, 1, "whittle", seed=1)
    agent.select()
    told = [str(agent.explain(k)) for k in range(12)]
    assert max(len(line) for text in told for line in text.splitlines()) <= 80
    assert any("\n  " in text for text in told)


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


AVERAGING = [("mean_index", {}), ("tsde", {"draws": 7})]
AVERAGED_PRIORS = {
    "grid": lambda: rs.grid_prior([0.1, 0.3, 0.5, 0.7, 0.9], num_arms=5, states=NAMES),
    "channels": lambda: rs.beta_prior(5),
    "mixed": lambda: rs.IndependentPrior(
        [*rs.beta_prior(2).arms, *rs.grid_prior([0.1, 0.5, 0.9], 3).arms]
    ),
}


def mean_indices_later(agent, k, ages):
    """Mean index of arm k at ages, by asking a copy of the agent that lets time pass."""
    found = []
    for age in ages:
        weights, like = agent.posterior(k).weights, agent.prior.typical(k)
        if draws := getattr(agent.learner, "draws", 0):
            drawn = agent._actor.posterior.weights.drawn.reshape(draws, -1)
            group = agent._actor.posterior.slots.groups[k]
            weights = np.bincount(drawn[:, group], minlength=len(weights)) / draws
        at = rs.BeliefState([agent.belief_state.last_state[k]], [age])
        chains = agent.posterior(k)
        values = [
            weights[j]
            * rs.whittle(
                rs.RestlessBandit([rs.Arm(chains.active[j], chains.passive[j], like.rewards)], 1)
            ).index(at)[0]
            for j in np.flatnonzero(weights)
        ]
        found.append(sum(values))
    return np.array(found)


@pytest.mark.parametrize(("name", "options"), AVERAGING)
@pytest.mark.parametrize("kind", AVERAGED_PRIORS)
def test_learners_that_average_explain_by_the_mean(kind, name, options):
    agent = rs.make_learner(name, AVERAGED_PRIORS[kind](), 2, horizon=60, seed=3, **options)
    rng = np.random.default_rng(5)
    for _ in range(25):
        agent.observe(rng.integers(2, size=len(agent.select())))
    chosen, index = agent.select(), agent.index()
    order = sorted(range(5), key=lambda k: (-index[k], k))
    for k in range(5):
        why = agent.explain(k)
        assert why.averaged
        assert why.index == index[k]
        assert order[why.rank - 1] == k
        assert why.pulled == (k in chosen)
        assert why.rival == (order[2] if why.pulled else order[1])
        assert why.rival_index == index[why.rival]
        elapsed = int(agent.belief_state.elapsed[k])
        later = mean_index_by_age(agent, k)
        ages = np.arange(elapsed, elapsed + min(len(later), 6))
        expected = mean_indices_later(agent, k, ages)
        np.testing.assert_allclose(later[:6], expected, rtol=1e-6, atol=1e-9)
        ages = np.flatnonzero(later > why.rival_index)
        assert why.pulled_at_age == (
            None if why.pulled or not len(ages) else elapsed + int(ages[0])
        )
        text = str(why)
        assert f"index {why.index:.6g} on average over what it may be" in text
        assert f"rank {why.rank} of 5, 2 are pulled" in text
        assert "draw" not in text
        assert json.loads(json.dumps(why.to_json())) == why.to_json()


@pytest.mark.parametrize(("name", "options"), AVERAGING)
def test_before_a_step_an_average_says_what_would_be_pulled(name, options):
    prior = AVERAGED_PRIORS["grid"]()
    agent = rs.make_learner(name, prior, 2, horizon=60, seed=3, **options)
    with pytest.raises(rs.RestiveError, match="call select"):
        agent.explain(0)
    rng = np.random.default_rng(5)
    agreed = 0
    for _ in range(20):
        agent.observe(rng.integers(2, size=len(agent.select())))
        would = [k for k in range(5) if agent.explain(k).pulled]
        assert len(would) == 2
        assert "would be pulled" in str(agent.explain(would[0]))
        before = agent.episode.number
        chosen = agent.select().tolist()
        if name == "mean_index" or agent.episode.number == before:
            assert chosen == would
            agreed += 1
    assert agreed


def test_an_averaged_priority_is_explained():
    prior = rs.grid_prior([0.2, 0.8], 3)
    agent = rs.make_learner("tsde", prior, 1, "lp_priority", 20, draws=3)
    (chosen,) = agent.select()
    whys = [agent.explain(k) for k in range(3)]
    assert [why.pulled for why in whys] == [k == chosen for k in range(3)]
    assert [why.index for why in whys] == agent.index().tolist()
