"""Learning arms that are seen in every step: one loop, exact posteriors, rivals by hand."""

import json
from math import ceil, log

import numpy as np
import pytest

import restive as rs
from log_cases import log_of
from restive.kernels.learn.learners.memory import OWN
from restive.learn.learners.ucwhittle import two_state_indices
from test_always_seen import calls, random_arm

RELATIVES = [
    "tsde", "tsde_doubling_only", "tsde_length_only", "thompson_every_step", "episodic_thompson",
    "certainty_equivalence", "epsilon_greedy", "mean_index",
]  # fmt: skip
RIVALS = ["ucwhittle", "wiql", "qwi"]
PULLED_ONLY = ["ucb1", "beta_bernoulli", "regenerative_cycle", "restless_ucb"]


def dirichlet(bandit):
    return rs.IndependentPrior(
        [
            rs.DirichletArmPrior(
                np.ones(arm.active.shape), np.ones(arm.active.shape), arm.rewards,
                arm.passive_rewards, states=arm.states, seen=arm.seen,
            )
            for arm in bandit.arms
        ]
    )  # fmt: skip


def finite(bandit, seed=0):
    """Five candidates an arm, the truth in the middle."""
    rng = np.random.default_rng(seed)
    priors = []
    for arm in bandit.arms:
        shape = arm.active.shape
        others = [
            rs.Arm(
                rng.dirichlet(np.ones(shape[1]), shape[0]),
                rng.dirichlet(np.ones(shape[1]), shape[0]),
                arm.rewards, arm.passive_rewards, seen=arm.seen, states=arm.states,
            )
            for _ in range(4)
        ]  # fmt: skip
        priors.append(rs.ArmPrior([*others[:2], arm, *others[2:]]))
    return rs.IndependentPrior(priors)


def mixed():
    rng = np.random.default_rng(12)
    arms = [random_arm(rng, 3), random_arm(rng, 2, "pulled"), random_arm(rng, 2)]
    return rs.RestlessBandit(arms, 1)


SYSTEMS = {
    "finite": lambda: (calls(), finite(calls())),
    "dirichlet": lambda: (calls(), dirichlet(calls())),
    "mixed": lambda: (mixed(), finite(mixed())),
}


def played(bandit, agent, steps):
    """Arms that an agent pulls in the world of seed 0 and what it earns, step by step."""
    world = rs.World(bandit, seed=0)
    arms, total = [], 0.0
    for _ in range(steps):
        arms.append(agent.select().tolist())
        states, _, expected = world.pull(np.array(arms[-1]))
        assert len(states) == len(agent.awaited)
        agent.observe(states)
        total += expected
    return arms, total


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", RELATIVES)
def test_an_agent_and_the_loop_decide_alike(name, system):
    bandit, prior = SYSTEMS[system]()
    steps = 60
    agent = rs.make_learner(name, prior, bandit.num_pulls, horizon=steps, seed=0)
    _, total = played(bandit, agent, steps)
    run = rs.frequentist_regret(
        bandit, prior, horizon=steps, learner=name, replications=1, seed=0, times=[steps]
    )
    assert run.average_reward[0] * steps == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_decide_alike_online_and_in_the_loop(name):
    bandit, prior = calls(), dirichlet(calls())
    agent = rs.make_learner(name, prior, 3, horizon=80, seed=0)
    _, total = played(bandit, agent, 80)
    run = rs.frequentist_regret(
        bandit, prior, horizon=80, learner=name, replications=1, seed=0, times=[80]
    )
    assert run.average_reward[0] * 80 == pytest.approx(total, abs=1e-9)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("name", RELATIVES)
def test_snapshots_continue_where_they_were(name, system):
    bandit, prior = SYSTEMS[system]()
    agent = rs.make_learner(name, prior, bandit.num_pulls, horizon=None, seed=2)
    world = rs.World(bandit, seed=0)
    for t in range(24):
        if t % 7 == 0:
            agent = rs.restore(json.loads(json.dumps(agent.snapshot())))
        arms = agent.select()
        if t % 7 == 3:
            agent = rs.restore(json.loads(json.dumps(agent.snapshot())))
            assert agent.select().tolist() == arms.tolist()
        twin = rs.restore(agent.snapshot())
        states = world.pull(arms)[0]
        for one in (agent, twin):
            one.observe(states)
        assert twin.snapshot() == agent.snapshot()


@pytest.mark.parametrize("name", RIVALS)
def test_snapshots_of_rivals(name):
    bandit, prior = calls(), dirichlet(calls())
    agent = rs.make_learner(name, prior, 3, seed=2)
    world = rs.World(bandit, seed=0)
    for _ in range(50):
        twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
        arms = agent.select()
        assert twin.select().tolist() == arms.tolist()
        agent.observe(world.pull(arms)[0])


def test_the_posterior_of_dirichlet_rows_is_prior_plus_counts():
    bandit, prior = calls(), dirichlet(calls())
    agent = rs.TSDE(prior, 3, horizon=300, seed=1)
    world, counts = rs.World(bandit, seed=1), np.ones((8, 2, 2, 2))
    for _ in range(300):
        before, arms = world.belief_state.last_state, agent.select()
        agent.observe(world.pull(arms)[0])
        after = world.belief_state.last_state
        for k in range(8):
            counts[k, int(k not in arms), before[k], after[k]] += 1
    for k in range(8):
        evidence = agent.evidence(k)
        assert evidence.total == 300
        found = prior.arms[k].given(evidence).posterior_alphas
        assert found.tolist() == counts[k].reshape(4, 2).tolist()
        means = counts[k] / counts[k].sum(axis=2, keepdims=True)
        posterior = agent.posterior(k)
        for mode, matrices in enumerate((posterior.active, posterior.passive)):
            mean = np.einsum("mij,m->ij", matrices, posterior.weights)
            assert mean == pytest.approx(means[mode], abs=0.01)


def test_draws_have_the_law_of_the_posterior():
    """Means and variances of 4,000 draws with a fixed seed; the bounds are wide, not exact."""
    alphas = np.array([[0.3, 2.0], [5.0, 1.0]])
    prior = rs.DirichletArmPrior(alphas, 2 * alphas, [0, 1], [0, 1], seen="always")
    agent = rs.make_learner("thompson_every_step", rs.IndependentPrior([prior] * 2), 1, seed=5)
    agent.select()
    agent.observe([0, 1])
    counts = [np.zeros((4, 2)), np.zeros((4, 2))]
    selected = 0 if agent.evidence(0).cells()[3].sum() else 1
    counts[selected][1, selected] += 1  # both were in state 1
    counts[1 - selected][3, 1 - selected] += 1
    draws = []
    for _ in range(4000):
        agent.select()
        system = agent.sampled_bandit
        draws.append([np.vstack([arm.active, arm.passive])[:, 1] for arm in system.arms])
        agent._actor.meta.now["stage"] = 0  # the same step once more, with other draws
        agent._pulled = None
        agent._actor.episodes.clock["limit"] = -1
    found = np.array(draws)  # [draws, arms, rows]
    for k in range(2):
        law = np.vstack([alphas, 2 * alphas]) + counts[k]
        total = law.sum(axis=1)
        mean = law[:, 1] / total
        variance = mean * (1 - mean) / (total + 1)
        assert found[:, k].mean(axis=0) == pytest.approx(mean, abs=5 * variance.max() ** 0.5 / 63)
        assert found[:, k].var(axis=0) == pytest.approx(variance, rel=0.25)


def test_indices_in_the_loop_are_those_of_the_drawn_system():
    rng = np.random.default_rng(4)
    arms = [random_arm(rng, 4) for _ in range(3)]
    bandit = rs.RestlessBandit(arms, 1)
    prior = dirichlet(bandit)
    for mapping in ("whittle", "myopic"):
        agent = rs.TSDE(prior, 1, mapping, horizon=200, seed=3)
        world = rs.World(bandit, seed=3)
        for _ in range(200):
            chosen = agent.select()
            system = agent.sampled_bandit
            policy = rs.registry.policy_mapping(mapping)(system)
            expected = policy.index(agent.belief_state)
            assert agent.index() == pytest.approx(expected, abs=1e-10)
            assert chosen.tolist() == [int(np.argmax(expected))]
            agent.observe(world.pull(chosen)[0])


def test_other_mappings_are_asked_for_the_drawn_system():
    bandit = rs.RestlessBandit(calls().arms[:3], 1)
    agent = rs.TSDE(dirichlet(bandit), 1, "lp_priority", horizon=60, seed=3)
    world = rs.World(bandit, seed=3)
    for _ in range(60):
        chosen = agent.select()
        policy = rs.policies.lp_priority(agent.sampled_bandit)
        assert chosen.tolist() == policy.select(agent.belief_state).tolist()
        agent.observe(world.pull(chosen)[0])


def test_certainty_equivalence_takes_the_posterior_mean():
    bandit = rs.RestlessBandit(calls().arms[:3], 1)
    prior = dirichlet(bandit)
    agent = rs.make_learner("certainty_equivalence", prior, 1, seed=3)
    world = rs.World(bandit, seed=3)
    for _ in range(30):
        chosen = agent.select()
        for k, arm in enumerate(agent.sampled_bandit.arms):
            law = prior.arms[k].given(agent.evidence(k)).posterior_alphas
            means = law / law.sum(axis=1, keepdims=True)
            assert np.vstack([arm.active, arm.passive]) == pytest.approx(means, abs=1e-12)
        agent.observe(world.pull(chosen)[0])


def test_regret_on_calls_is_below_that_of_its_relatives_and_rivals():
    """A regression test with a fixed seed: 8 runs of 2,500 steps are too few for a verdict."""
    bandit, prior = calls(), dirichlet(calls())
    found = {
        name: rs.frequentist_regret(
            bandit, prior, horizon=2500, learner=name, replications=8, seed=1, times=[2500]
        ).mean[0]
        for name in ("tsde", "certainty_equivalence", "epsilon_greedy", "wiql", "qwi", "ucwhittle")
    }
    assert found["tsde"] < min(value for name, value in found.items() if name != "tsde")
    assert found["tsde"] < 0.3 * found["qwi"]


def test_wiql_and_qwi_by_hand():
    """A naive copy of both, fed with the moves that the agents saw."""
    bandit, prior = calls(), dirichlet(calls())
    for name in ("wiql", "qwi"):
        agent = rs.make_learner(name, prior, 3, seed=6)
        world = rs.World(bandit, seed=6)
        q, n = np.zeros((8, 2, 2)), np.zeros((8, 2, 2))
        deep, rates = np.zeros((8, 2, 2, 2)), np.zeros((8, 2))  # [k, h, s, a]
        for t in range(1, 400):
            before, arms = world.belief_state.last_state, agent.select()
            agent.observe(world.pull(arms)[0])
            after = world.belief_state.last_state
            for k in range(8):
                a, s, to = int(k in arms), before[k], after[k]
                q[k, s, a] += (s + q[k, to].max() - q[k, s, a]) / (n[k, s, a] + 1)
                n[k, s, a] += 1
                for h in range(2):
                    own = deep[k, h]
                    aim = s + (1 - a) * rates[k, h] + own[to].max() - own.mean()
                    own[s, a] += 0.1 / ceil(n[k, s, a] / 500) * (aim - own[s, a])
            if t % 8 == 0:
                step = 0.2 / (1 + ceil(t * log(t) / 500))
                for h in range(2):
                    rates[:, h] += step * (deep[:, h, h, 1] - deep[:, h, h, 0])
        memory = agent._actor.memory
        assert memory.ints[OWN : OWN + 32].tolist() == n.ravel().tolist()
        if name == "wiql":
            assert memory.floats == pytest.approx(q.ravel(), abs=1e-9)
        else:
            assert memory.floats[:64] == pytest.approx(deep.ravel(), abs=1e-9)
            assert memory.floats[64:] == pytest.approx(rates.ravel(), abs=1e-9)


def test_the_closed_form_of_two_states_is_the_index():
    rng = np.random.default_rng(2)
    for _ in range(300):
        chances, pay, unpulled = rng.random(4), rng.random(2), rng.random(2)
        active, passive = ([[1 - p, p] for p in part] for part in (chances[2:], chances[:2]))
        found = rs.policies.whittle_index(rs.Arm(active, passive, pay, unpulled, seen="always"))
        if found.indexable:
            values = two_state_indices(chances, pay, unpulled)
            assert values == pytest.approx(found.index.ravel(), abs=1e-9)


def test_evidence_of_arms_that_were_not_pulled_weighs_candidates():
    rng = np.random.default_rng(1)
    candidates = [random_arm(rng, 2, "pulled") for _ in range(3)]
    paid = candidates[0].rewards
    evidence = rs.Evidence(2)
    evidence.add([0, 1], [1, 3], [1, 1], [4, 2])
    evidence.add([0, 0, 1], [1, 2, 2], [1, 1, 0], [3, 1, 2], pulled=False)
    assert evidence.total == 12
    assert rs.Evidence.from_data(json.loads(json.dumps(evidence.to_data()))) == evidence
    logs = []
    for arm in candidates:
        total = 0.0
        for pulled in (True, False):
            for s, n, to, count in zip(*evidence.cells(pulled=pulled), strict=True):
                first = arm.active if pulled else arm.passive
                law = first @ np.linalg.matrix_power(arm.passive, n - 1)
                total += count * log(law[s, to])
        logs.append(total)
    weights = np.exp(np.array(logs) - max(logs))
    for seen in ("pulled", "always"):
        arms = [rs.Arm(a.active, a.passive, paid, seen=seen) for a in candidates]
        given = rs.ArmPrior(arms).given(evidence)
        assert given.weights == pytest.approx(weights / weights.sum(), abs=1e-10)
    twice = evidence + evidence
    assert twice.total == 24
    assert twice != evidence
    particles = rs.DirichletArmPrior(np.ones((2, 2)), np.ones((2, 2)), [0, 1])
    with pytest.raises(rs.RestiveError, match="only of arms that are always seen"):
        particles.given(evidence)
    with pytest.raises(rs.RestiveError, match="must be of one step each; some is of 3 steps"):
        rs.DirichletArmPrior(
            np.ones((2, 2)), np.ones((2, 2)), [0, 1], seen="always"
        ).given(evidence)  # fmt: skip


def test_names_of_states_and_arms_in_any_order():
    bandit = rs.zoo.load("calls-8").bandit
    prior = rs.zoo.load("calls-8").prior
    agent, twin = (rs.TSDE(prior, 3, seed=1) for _ in range(2))
    agent.select()
    twin.select()
    assert agent.awaited.tolist() == list(range(8))
    agent.observe(["good", "bad"] * 4)
    order = [7, 3, 5, 1, 0, 2, 4, 6]
    twin.observe([0, 0, 0, 0, 1, 1, 1, 1], arms=order)
    assert agent.snapshot() == twin.snapshot()
    assert agent.awaited is None
    assert bandit.arms[0].states == ("bad", "good")
    assert agent.belief(0).tolist() == [0.0, 1.0]


def test_what_cannot_be_is_told_and_changes_nothing():
    bandit = mixed()
    prior = finite(bandit)
    agent = rs.TSDE(prior, 1, seed=1)
    agent.pull([1])
    kept = agent.snapshot()
    for states, options, words in (
        (
            [0, 1],
            {},
            r"states are expected of the 3 arms \[0, 1, 2\] \(awaited\), got shape \(2,\)",
        ),
        ([0, 1], {"arms": [1, 2]}, "arm 0 is always seen, and its state is missing"),
        ([0, 3, 0], {}, r"arm 1: state 3 is not one of its states"),
    ):
        with pytest.raises(rs.RestiveError, match=words):
            agent.observe(states, **options)
        assert agent.snapshot() == kept
    agent.observe([0, 1, 0])
    agent.pull([0])
    with pytest.raises(rs.RestiveError, match="arm 1 was not selected and is not always seen"):
        agent.observe([0, 1, 0], arms=[0, 1, 2])
    agent.observe([1, 1])
    with pytest.raises(rs.RestiveError, match="arm 0 is always seen, so no step passes"):
        agent.skip(2)
    with pytest.raises(rs.RestiveError, match=r"arm 2 is always seen: .* cannot come late"):
        agent.observe_late(2, 0, 1)
    assert agent.select(num_pulls=0).tolist() == []
    agent.observe([0, 1])
    ones = np.ones((2, 2))
    rigid = rs.DirichletArmPrior(ones, [[1, 1], [0, 1]], [0, 1], seen="always")
    agent = rs.TSDE(rs.IndependentPrior([rigid] * 2), 1, seed=1)
    agent.pull([0])
    with pytest.raises(rs.RestiveError, match="arm 1: state 0 has probability zero"):
        agent.observe([0, 0])


def test_priors_and_learners_that_do_not_fit_are_told():
    seen, unseen = (rs.gilbert_elliott(0.3, 0.6, seen=seen) for seen in ("always", "pulled"))
    with pytest.raises(rs.RestiveError, match="candidate 1 is seen 'pulled', candidate 0 'always'"):
        rs.ArmPrior([seen, unseen])
    prior = rs.grid_prior([0.2, 0.6], 2, seen="always")
    with pytest.raises(rs.RestiveError, match="arm 0: is seen 'pulled', by the prior 'always'"):
        rs.frequentist_regret(rs.RestlessBandit([unseen] * 2, 1), prior, horizon=5, replications=1)
    for name in PULLED_ONLY:
        with pytest.raises(rs.RestiveError, match=f"{name} is for arms that are seen when pulled"):
            rs.make_learner(name, prior, 1, horizon=50)
    for name in RIVALS:
        with pytest.raises(rs.RestiveError, match=f"{name} is for arms that are always seen"):
            rs.make_learner(name, rs.grid_prior([0.2, 0.6], 2), 1, horizon=50)
    with pytest.raises(rs.RestiveError, match="seen must be 'pulled' or 'always', got 'never'"):
        rs.DirichletArmPrior(np.ones((2, 2)), None, [0, 1], seen="never")


def test_machines_that_stay_broken_are_planned_and_learned():
    instance = rs.zoo.load("machines")
    for name in ("whittle", "lp_priority", "best_index"):
        value = rs.evaluate(instance.bandit, name).average_reward
        assert value == pytest.approx(2.646941667, abs=1e-9)
    assert rs.relaxation_bound(instance.bandit) == pytest.approx(2.646941667, abs=1e-9)
    agent = rs.TSDE(instance.prior, 1, horizon=30, seed=1)
    world = rs.World(instance.bandit, seed=1)
    for _ in range(30):
        arms = agent.select()
        for arm in agent.sampled_bandit.arms:
            assert arm.passive[0].tolist() == [1, 0, 0]
            assert arm.active[:, 0].tolist() == [0, 0, 0]
        agent.observe(world.pull(arms)[0])
    seen = [
        rs.Arm(a.active, a.passive, a.rewards, a.passive_rewards, seen="always")
        for a in instance.bandit.arms
    ]
    value = rs.evaluate(rs.RestlessBandit(seen, 1), "whittle").average_reward
    assert value > 2.646941667


def test_own_learners_are_told_the_states_of_all_arms_that_are_shown():
    told = []

    class Fixed:
        def select(self):
            return [len(told) % 3]

        def observe(self, states):
            told.append(states.tolist())

    bandit = mixed()
    rs.frequentist_regret(
        bandit, finite(bandit), horizon=30, learner=lambda task, seed: Fixed(), replications=1,
        times=[30],
    )  # fmt: skip
    world = rs.World(bandit, seed=0)
    for t, states in enumerate(told):
        assert states == world.pull(np.array([t % 3]))[0].tolist()
        assert len(states) == (3 if t % 3 == 1 else 2)  # arm 1 is seen when pulled


def test_fits_take_candidates_of_such_arms():
    prior = finite(calls()).arms[0]
    log = log_of(["a"] * 6, np.arange(6), [0, 1] * 3)
    with pytest.raises(rs.RestiveError, match=r"pass seen='always' \(--seen always\)"):
        rs.fit_log(log, prior=prior, checks=False)
    with pytest.raises(rs.RestiveError, match="fit with controlled = True"):
        rs.fit_log(log, prior=prior, seen="always", checks=False)
    told = log_of(["a"] * 6, np.arange(6), [0, 1] * 3, pulled=[True, False] * 3)
    options = {"prior": prior, "seen": "always", "controlled": True, "checks": False}
    found = rs.fit_log(told, **options).prior.arms[0]
    chances = [arm.active[0, 1] ** 3 * arm.passive[1, 0] ** 2 for arm in prior.candidates]
    weights = prior.weights * chances
    np.testing.assert_allclose(found.weights, weights / weights.sum(), atol=1e-12)


def test_explanations_speak_of_the_state_now():
    agent = rs.TSDE(rs.zoo.load("calls-8").prior, 3, seed=0)
    agent.select()
    words = str(agent.explain(0))
    assert "last seen: good, and it is still so" in words
    assert "good 100.0%" in words
