"""An agent in real life: evidence, parts, silence, others' decisions, late news, two threads."""

import copy
import json
import pickle
import sys
import threading
from collections import Counter

import numpy as np
import pytest

import restive as rs
from learning_cases import CASES, channels, controlled, joint, own_rule, random_arm, three_states
from restive.kernels.learn.learners.memory import DRAWS
from restive.learn.learners import LEARNERS
from restive.learn.learners.base import Relative

NAMES = [n for n, made in LEARNERS.items() if getattr(made, "sees", "pulled") == "pulled"]
NARROWING = ["tsde", "thompson_every_step", "epsilon_greedy", "ucb1", "beta_bernoulli"]
NARROWING += ["restless_ucb"]
FIXED = ["regenerative_cycle"]
OPTIONS = {
    "epsilon_greedy": {"epsilon": 0.3},
    "restless_ucb": {"exploration": 3, "max_age": 9},
}


def made(name, prior, num_pulls, horizon=200, **given):
    return rs.make_learner(
        name, prior, num_pulls, "myopic", horizon, **given, **OPTIONS.get(name, {})
    )


def sizes_of(agent):
    return [agent.prior.candidates(k)[0].num_states for k in range(agent.prior.num_arms)]


def known(agent):
    """Return all that an agent knows, with nothing left to be multiplied later."""
    if isinstance(agent.learner, Relative):
        for k in range(agent.prior.num_arms):
            agent.posterior(k)
    return agent.snapshot()


class Life:
    """A naive account of what an agent lives through: last states, ages, counts."""

    def __init__(self, agent, rng, start=None):
        self.agent, self.rng = agent, rng
        begin = agent.belief_state if start is None else start
        self.last = begin.last_state.tolist()
        self.age = begin.elapsed.tolist()
        self.counts = [Counter() for _ in self.last]

    def seen(self, k, state):
        self.counts[k][self.last[k], self.age[k], state] += 1
        self.last[k], self.age[k] = state, 0

    def passed(self):
        self.age = [age + 1 for age in self.age]

    def drawn(self, k):
        """Draw a state that the agent holds possible."""
        law = self.agent.belief(k) if isinstance(self.agent.learner, Relative) else None
        return int(self.rng.choice(sizes_of(self.agent)[k], p=law))

    def step(self, partly=True):
        """Live through a step of some kind."""
        agent, rng = self.agent, self.rng
        kind = rng.choice(["whole", "part", "narrow", "skip", "pull"]) if partly else "whole"
        if kind == "skip":
            agent.skip(1)
        elif kind == "part":
            arms = agent.select()
            some = rng.permutation(arms)[: rng.integers(len(arms) + 1)]
            states = [self.drawn(k) for k in some.tolist()]
            agent.observe(states, arms=some, missing="not pulled")
            for k, state in zip(some.tolist(), states, strict=True):
                self.seen(k, state)
        else:
            if kind == "narrow":
                arms = agent.select(num_pulls=1, available=[int(rng.integers(len(self.last)))])
            elif kind == "pull":
                arms = rng.permutation(len(self.last))[: rng.integers(1, len(self.last))]
                agent.pull(arms)
            else:
                arms = agent.select()
            states = [self.drawn(k) for k in arms.tolist()]
            agent.observe(states)
            for k, state in zip(arms.tolist(), states, strict=True):
                self.seen(k, state)
        self.passed()


def as_counter(evidence):
    return Counter(
        {
            (int(s), int(n), int(seen)): int(count)
            for s, n, seen, count in zip(*evidence.cells(), strict=True)
        }
    )


# Evidence.


@pytest.mark.parametrize("case", ["channels", "three_states", "many_pulls", "joint", "wide_joint"])
def test_evidence_is_what_was_seen_and_gives_the_posterior(case):
    prior, num_pulls = CASES[case]()
    rng = np.random.default_rng(17)
    for seed in range(3):
        agent = rs.TSDE(prior, num_pulls, "myopic", seed=seed)
        life = Life(agent, rng)
        for _ in range(150):
            life.step()
        evidence = [agent.evidence(k) for k in range(prior.num_arms)]
        assert [as_counter(found) for found in evidence] == life.counts
        assert agent.belief_state == rs.BeliefState(life.last, life.age)
        given = prior.given(evidence)
        for k in range(prior.num_arms):
            weights = agent.posterior(k).weights
            if isinstance(prior, rs.JointPrior):
                np.testing.assert_allclose(given.weights, weights, rtol=1e-9, atol=1e-300)
            else:
                np.testing.assert_allclose(given.arms[k].weights, weights, rtol=1e-9, atol=1e-300)
                alone = prior.arms[k].given(evidence[k]).weights
                np.testing.assert_allclose(alone, weights, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("name", NARROWING)
def test_every_learner_keeps_evidence(name):
    agent = made(name, *channels())
    life = Life(agent, np.random.default_rng(3))
    for _ in range(80):
        life.step()
    assert [as_counter(agent.evidence(k)) for k in range(4)] == life.counts
    twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
    assert all(twin.evidence(k) == agent.evidence(k) for k in range(4))
    agent.evidence(0).add(0, 1, 1, 1000)  # the caller's own
    assert as_counter(agent.evidence(0)) == life.counts[0]


def test_more_is_seen_than_there_is_room_for_notes():
    agent = rs.TSDE(*channels(), "myopic")
    for t in range(5000):
        agent.observe([t % 2] * len(agent.select()))
    assert sum(agent.evidence(k).total for k in range(4)) == 10_000


def test_ages_beyond_all_times_are_counted():
    prior, num_pulls = channels()
    start = rs.BeliefState([0] * 4, [10**15] * 4)
    agent = rs.TSDE(prior, num_pulls, "myopic", start=start)
    arms = agent.select().tolist()
    agent.observe([1, 1])
    assert as_counter(agent.evidence(arms[0])) == {(0, 10**15, 1): 1}


# Parts of what was selected.


@pytest.mark.parametrize("name", NARROWING)
@pytest.mark.parametrize("how", ["in order", "turned round", "none", "all"])
def test_a_part_that_is_seen_is_as_if_it_alone_was_pulled(name, how):
    """`channels` move alike, pulled or not: the others stay unseen."""
    whole, part = (made(name, *channels(), seed=5) for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(40):
        arms = part.select()
        whole.select()
        some = arms[::-1] if how == "turned round" else arms[: {"in order": 1, "none": 0}.get(how)]
        states = rng.integers(0, 2, len(some))
        part.observe(states, arms=some)
        whole.pull(some)
        whole.observe(states)
        assert part.time == whole.time
    assert known(part) == known(whole)


def test_arms_that_move_differently_when_pulled_need_a_word():
    prior = rs.IndependentPrior([random_prior_of(seed) for seed in range(3)])
    agent, twin = (rs.TSDE(prior, 2, "myopic", seed=1) for _ in range(2))
    arms = agent.select()
    message = f"arm {arms[1]} was selected and not seen, and it moves differently when pulled"
    with pytest.raises(rs.errors.ProblemError, match=message):
        agent.observe([1], arms=arms[:1])
    assert agent.select().tolist() == arms.tolist()
    agent.observe([1], arms=arms[:1], missing="not pulled")
    twin.pull(arms[:1])
    twin.observe([1])
    assert known(agent) == known(twin)
    with pytest.raises(
        rs.errors.ProblemError, match="missing must be 'not pulled' or None, got 'lost'"
    ):
        agent.observe([1, 1], arms=agent.select(), missing="lost")
    with pytest.raises(
        rs.errors.ProblemError, match="missing must be 'not pulled' or None, got 'lost'"
    ):
        agent.observe([1, 1], missing="lost")


def random_prior_of(seed):
    rng = np.random.default_rng(seed)
    return rs.ArmPrior([random_arm(rng, 2, [0, 1]) for _ in range(4)])


def test_parts_that_cannot_be():
    agent = rs.TSDE(*channels(), "myopic")
    arms = agent.select().tolist()
    other = next(k for k in range(4) if k not in arms)
    before = agent.snapshot()
    for wrong, message in {
        (other,): rf"arm {other} was not selected; the selected arms are .*Call pull\(arms\) first",
        (arms[0], arms[0]): "an arm is listed twice",
        (-1,): "the arms are 0 to 3",
        (4,): "the arms are 0 to 3",
        (0.5,): "must be a list of whole numbers",
    }.items():
        with pytest.raises(rs.errors.ProblemError, match=message):
            agent.observe([0] * len(wrong), arms=list(wrong))
    with pytest.raises(rs.errors.ProblemError, match="1 states are needed"):
        agent.observe([0, 1], arms=arms[:1])
    with pytest.raises(
        rs.errors.ProblemError, match=f"arm {arms[1]}: state 2 is not one of its states"
    ):
        agent.observe([2], arms=arms[1:])
    assert agent.snapshot() == before
    agent.observe([1, 0], arms=arms[::-1])
    assert agent.belief_state.last_state[arms].tolist() == [0, 1]


def test_a_wrong_state_after_a_step_seen_in_part_leaves_the_selection():
    agent = rs.TSDE(*channels(), "myopic", seed=4)
    first = agent.select()
    agent.observe([0], arms=first[:1])
    for _ in range(20):
        arms = agent.select().tolist()
        with pytest.raises(rs.errors.ProblemError, match="is not one of its states"):
            agent.observe([2, 0])
        with pytest.raises(rs.errors.ProblemError, match="is not one of its states"):
            agent.observe([2], arms=arms[1:])
        assert agent.select().tolist() == arms
        agent.observe([0, 1])
        assert agent.belief_state.last_state[arms].tolist() == [0, 1]


# Steps without pulls, and others' decisions.


@pytest.mark.parametrize("horizon", [100, None])
@pytest.mark.parametrize("name", NARROWING)
def test_to_skip_is_to_pull_nothing(name, horizon):
    horizon = 100 if name == "restless_ucb" else horizon
    prior, num_pulls = channels()
    one, many = (made(name, prior, num_pulls, horizon, seed=2) for _ in range(2))
    for count in (1, 0, 7, 64, 3):
        for agent in (one, many):
            arms = agent.select()
            agent.observe([int(k % 2) for k in arms])
        for _ in range(count):
            assert one.select(num_pulls=0).tolist() == []
            one.observe([])
        many.skip(count)
        assert known(one) == known(many)
    many.skip()
    assert many.time == one.time + 1


@pytest.mark.parametrize("mapping", [own_rule, rs.myopic, "lp_priority"])
def test_to_skip_is_to_pull_nothing_whatever_is_played(mapping):
    prior = rs.IndependentPrior([random_prior_of(seed) for seed in range(2)])
    one, many = (rs.TSDE(prior, 1, mapping, seed=2) for _ in range(2))
    for count in (3, 20):
        for _ in range(count):
            one.select(num_pulls=0)
            one.observe([])
        many.skip(count)
        for agent in (one, many):
            agent.select()
            agent.observe([0])
        assert known(one) == known(many)


def test_what_cannot_be_skipped():
    agent = rs.TSDE(*channels(), "myopic")
    for wrong in (-1, 1.5, True, "a", 10**15, None):
        with pytest.raises(rs.errors.ProblemError, match=r"num_steps|time cannot pass"):
            agent.skip(wrong)
    arms = agent.select()
    with pytest.raises(rs.errors.ProblemError, match="were selected already; observe them first"):
        agent.skip()
    agent.observe([0] * len(arms))
    agent.skip()


@pytest.mark.parametrize("name", NARROWING)
@pytest.mark.parametrize("after_select", [False, True])
def test_pulled_arms_are_learned_from_like_selected_ones(name, after_select):
    """The posterior and what is counted are those of any agent that saw the same."""
    prior, num_pulls = channels()
    agent = made(name, prior, num_pulls, seed=9)
    life = Life(agent, np.random.default_rng(4))
    for t in range(60):
        if after_select:
            agent.select()
        arms = [(t * 3) % 4, (t + 1 + (t * 3) % 4) % 4][: 1 + (t % 4 != 3)]
        arms = list(dict.fromkeys(arms))
        agent.pull(arms)
        assert agent.select(len(arms)).tolist() == arms
        states = [life.drawn(k) for k in arms]
        agent.observe(states)
        for k, state in zip(arms, states, strict=True):
            life.seen(k, state)
        life.passed()
    evidence = [agent.evidence(k) for k in range(4)]
    assert [as_counter(found) for found in evidence] == life.counts
    assert agent.belief_state == rs.BeliefState(life.last, life.age)
    if isinstance(agent.learner, Relative):
        for k, arm in enumerate(prior.given(evidence).arms):
            np.testing.assert_allclose(agent.posterior(k).weights, arm.weights, rtol=1e-9)
    if name == "ucb1":
        pulls = agent._actor.memory.ints[3:7].tolist()
        assert pulls == [found.total for found in evidence]


def test_what_cannot_be_pulled():
    agent = rs.TSDE(*channels(), "myopic")
    for wrong in ([4], [-1], [0, 0], [0.5], [[0]], "a", None, [[0], [0, 1]]):
        with pytest.raises(rs.errors.ProblemError, match="arms to pull"):
            agent.pull(wrong)
    with pytest.raises(rs.errors.ProblemError, match="nothing was selected"):
        agent.observe([0])


@pytest.mark.parametrize("name", FIXED)
def test_learners_that_must_pull_what_they_choose_say_so(name):
    agent = made(name, *channels())
    before = agent.snapshot()
    for call in (
        lambda: agent.select(num_pulls=1),
        lambda: agent.select(available=[0, 1]),
        lambda: agent.select(available=[True, True, False, True]),
        lambda: agent.pull([0, 1]),
        lambda: agent.pull([0]),
        agent.skip,
    ):
        with pytest.raises(rs.errors.ProblemError, match=f"learner {name} cannot"):
            call()
    assert agent.snapshot() == before
    arms = agent.select(num_pulls=2, available=[True] * 4)
    with pytest.raises(rs.errors.ProblemError, match=f"learner {name} cannot be shown only some"):
        agent.observe([0], arms=arms[:1])
    agent.observe([0, 1], arms=arms[::-1])
    assert agent.belief_state.last_state[arms].tolist() == [1, 0]


# Late news.


@pytest.mark.parametrize("name", ["tsde", "tsde_doubling_only", "thompson_every_step"])
@pytest.mark.parametrize("horizon", [200, None])
def test_late_news_give_the_posterior_of_no_delay_to_the_byte(name, horizon):
    """Some sightings come up to five steps late, and before the arm is seen again."""
    assert name in NAMES
    rng = np.random.default_rng(8)
    for prior, num_pulls in (channels(), CASES["many_pulls"]()):
        late, prompt = (made(name, prior, num_pulls, horizon, seed=3) for _ in range(2))
        waiting, used = {}, 0
        for t in range(1, 150):
            for k in [k for k, (since, _) in waiting.items() if t - since >= rng.integers(1, 6)]:
                since, state = waiting.pop(k)
                late.observe_late(k, state, since)
                used += 1
            arms = rng.permutation(prior.num_arms)[:num_pulls]
            for k in [k for k in arms.tolist() if k in waiting]:
                since, state = waiting.pop(k)
                late.observe_late(k, state, since)
            states = rng.integers(0, 2, num_pulls)
            prompt.pull(arms)
            prompt.observe(states)
            now = rng.random(num_pulls) < 0.6
            late.pull(arms)
            late.observe(states[now], arms=arms[now])
            for k, state in zip(arms[~now].tolist(), states[~now].tolist(), strict=True):
                waiting[k] = t, state
        for k, (since, state) in waiting.items():
            late.observe_late(k, state, since)
        assert used > 30
        assert late.belief_state == prompt.belief_state
        for k in range(prior.num_arms):
            ours, theirs = late.posterior(k).weights, prompt.posterior(k).weights
            assert ours.tobytes() == theirs.tobytes()
            assert late.evidence(k) == prompt.evidence(k)
            assert late.belief(k).tobytes() == prompt.belief(k).tobytes()


def test_late_news_under_a_joint_prior():
    prior, num_pulls = joint()
    agent = rs.TSDE(prior, num_pulls, "myopic")
    for _ in range(6):
        agent.pull([0])
        agent.observe([], arms=[], missing="not pulled")
    agent.observe_late(1, 0, 4)
    agent.observe_late(0, 1, 2)
    agent.observe_late(0, 0, 6)
    evidence = [rs.Evidence(2), rs.Evidence(2), rs.Evidence(3)]
    evidence[0].add([1, 1], [2, 4], [1, 0])
    evidence[1].add(1, 4, 0)
    assert [agent.evidence(k) for k in range(3)] == evidence
    np.testing.assert_allclose(agent.posterior(2).weights, prior.given(evidence).weights, rtol=1e-9)


def test_an_arm_is_placed_where_late_news_put_it():
    """What is played next is what an agent plays that was never in the dark."""
    prior, num_pulls = CASES["many_pulls"]()
    late, prompt = (rs.TSDE(prior, num_pulls, "whittle", 10**6, seed=3) for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(300):
        arms = prompt.select()
        assert late.select().tolist() == arms.tolist()
        states = rng.integers(0, 2, len(arms))
        prompt.observe(states)
        late.observe(states[1:], arms=arms[1:])
        late.observe_late(int(arms[0]), int(states[0]), late.time - 1)
        assert known(late)["posterior"]["weights"] == known(prompt)["posterior"]["weights"]
        assert late.episode == prompt.episode
        assert late.index().tolist() == prompt.index().tolist() or late.episode.length == 0


def test_late_news_that_cannot_be_used():
    agent = rs.TSDE(*channels(), "myopic", seed=1)
    for _ in range(5):
        agent.pull([0, 1])
        agent.observe([0, 1])
    before = agent.snapshot()
    for arm, state, time, message in (
        (2, 0, 6, r"time 6 is not before the present step, 6; use observe\(\)"),
        (2, 0, 7, "is not before the present step"),
        (0, 0, 5, "arm 0 was seen at time 5, so its state at time 5 comes too late"),
        (0, 0, 3, "arm 0 was seen at time 5, so its state at time 3 comes too late"),
        (2, 2, 5, "arm 2: state 2 is not one of its states 0 to 1"),
        (2, -1, 5, "arm 2: state -1 is not one of its states 0 to 1"),
        (2, 0.5, 5, "states must be whole numbers"),
        (4, 0, 5, "arm 4 is not one of the arms"),
        (2, 0, 0, "time must be at least 1"),
        (2, 0, 1.5, "time must be a whole number"),
        (2, [0, 1], 5, "state"),
    ):
        with pytest.raises(rs.errors.ProblemError, match=message):
            agent.observe_late(arm, state, time)
    assert agent.snapshot() == before
    sure = rs.IndependentPrior([rs.ArmPrior([rs.gilbert_elliott(1.0, 0.5)])] * 2)
    agent = rs.TSDE(sure, 1, "myopic")
    agent.pull([0])
    agent.observe([0])
    agent.skip(2)
    with pytest.raises(rs.errors.ProblemError, match="arm 0: state 0 has probability zero"):
        agent.observe_late(0, 0, 2)
    agent.observe_late(0, 1, 2)
    assert agent.belief_state == rs.BeliefState([1, 1], [2, 4])


@pytest.mark.parametrize("name", [name for name in NAMES if not hasattr(LEARNERS[name], "rules")])
def test_learners_of_another_family_cannot_use_late_news(name):
    agent = made(name, *channels())
    for _ in range(3):
        agent.observe([0, 1][: len(agent.select())])
    unseen = int(np.argmax(agent.belief_state.elapsed))
    with pytest.raises(rs.errors.ProblemError, match=f"learner {name} learns in the order of time"):
        agent.observe_late(unseen, 0, 3)


# Arms that can be pulled.


@pytest.mark.parametrize("name", NARROWING)
def test_available_is_a_mask_or_a_list_of_arms(name):
    prior, num_pulls = CASES["many_pulls"]()
    masked, listed = (made(name, prior, num_pulls, seed=6) for _ in range(2))
    rng = np.random.default_rng(2)
    for t in range(120):
        mask = rng.random(9) < 0.6
        count = min(int(mask.sum()), num_pulls) if t % 3 else None
        if (count or num_pulls) > mask.sum():
            mask[:] = True
        arms = masked.select(count, mask if t % 2 else mask.tolist())
        places = rng.permutation(np.flatnonzero(mask))
        assert listed.select(count, places if t % 2 else places.tolist()).tolist() == arms.tolist()
        assert mask[arms].all()
        assert len(set(arms.tolist())) == (num_pulls if count is None else count)
        states = rng.integers(0, 2, len(arms))
        for agent in (masked, listed):
            agent.observe(states)
        if t % 10 == 0:  # the mask is forgotten
            free = [agent.select().tolist() for agent in (masked, listed)]
            assert free[0] == free[1]
            assert len(free[0]) == num_pulls
            for agent in (masked, listed):
                agent.observe([1] * num_pulls)
    assert known(masked) == known(listed)


@pytest.mark.parametrize("name", ["tsde", "ucb1", "beta_bernoulli", "restless_ucb"])
def test_of_the_arms_that_are_available_the_best_are_pulled(name):
    """As an agent of the same knowledge chooses when it can pull all arms, one by one."""
    prior = CASES["many_pulls"]()[0]
    agent = made(name, prior, 9, 50, seed=2)
    rng = np.random.default_rng(5)
    for _ in range(40):
        twin = copy.deepcopy(agent)
        mask = rng.random(9) < 0.5
        order = []
        for count in range(1, 10):
            other = copy.deepcopy(agent)
            order += [k for k in other.select(count).tolist() if k not in order]
        wanted = min(3, int(mask.sum()))
        best = sorted([k for k in order if mask[k]][:wanted])
        assert twin.select(wanted, mask).tolist() == best
        arms = agent.select()
        agent.observe(rng.integers(0, 2, len(arms)))


MASKED = np.ma.masked_array([0, 1], mask=[False, True])
RAGGED = [[0], [0, 1]]


@pytest.mark.parametrize("wrong", [MASKED, RAGGED, [["a"]], "ab", [None], [0.5], {"a": 1}])
def test_lists_that_are_none(wrong):
    agent = rs.TSDE(*channels(), "myopic")
    for call in (
        lambda: agent.select(available=wrong),
        lambda: agent.pull(wrong),
        lambda: agent.observe(wrong),
        lambda: agent.observe([0, 1], arms=wrong),
    ):
        agent.select()
        with pytest.raises(rs.errors.ProblemError, match=r"available|arms|states") as raised:
            call()
        sentence = str(raised.value)
        assert "\n" not in sentence
        assert len(sentence) < 200
    if wrong is MASKED:
        with pytest.raises(
            rs.errors.ProblemError, match="available must not be a masked array: pass"
        ):
            agent.select(available=wrong)
    if wrong is RAGGED:
        with pytest.raises(
            rs.errors.ProblemError, match="available must be a list of whole numbers, got"
        ):
            agent.select(available=wrong)


# Twins.


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
@pytest.mark.parametrize("name", NAMES)
def test_copies_are_independent_twins(name, copied):
    """A copy is a snapshot that is restored, which tests of snapshots do at every step."""
    agent = made(name, *channels(), seed=7)
    rng = np.random.default_rng(0)
    for t in range(30):
        agent.observe(rng.integers(0, 2, len(agent.select())))
        if t % 7 == 0:
            agent.select()
        elif t % 7 not in (2, 5):
            continue
        twin, third = copied(agent), copied(agent)
        assert known(twin) == known(agent)
        for _ in range(5):  # nothing of the third shows in the others
            third.observe([1] * len(third.select()))
        states = rng.integers(0, 2, 2)
        arms = [each.select().tolist() for each in (agent, twin)]
        assert arms[0] == arms[1]
        agent.observe(states)
        twin.observe(states)
        assert known(twin) == known(agent)


@pytest.mark.parametrize("mapping", [own_rule, rs.myopic, "lp_priority"])
def test_copies_follow_the_mapping_they_were_made_with(mapping):
    prior = rs.IndependentPrior([random_prior_of(seed) for seed in range(2)])
    agent = rs.TSDE(prior, 1, mapping, seed=2)
    agent.observe([0] * len(agent.select()))
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        for _ in range(10):
            arms = twin.select()
            assert len(arms) == 1
            twin.observe([0])
        assert twin.time == 12
    assert agent.time == 2


# Two threads.


def test_two_threads_on_one_agent_are_told_and_lose_no_step():
    """Each step that a thread was let through is there; each that it was not is an error."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    agent = rs.TSDE(rs.grid_prior([0.2, 0.5, 0.8], 200), 20, "myopic", seed=1)
    done, told, wrong = [0, 0], [0, 0], []

    def live(thread):
        for _ in range(1500):
            try:
                agent.skip(1)
                done[thread] += 1
                agent.posterior(3)
                agent.evidence(3)
                agent.snapshot() if done[thread] % 500 == 0 else None
            except rs.RestiveError as error:
                told[thread] += 1
                if "another thread is using this agent" not in str(error):
                    wrong.append(error)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=live, args=(i,)) for i in range(2)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert agent.time == 1 + sum(done)


METHODS = {
    "select": lambda agent: agent.select(),
    "observe": lambda agent: agent.observe([0, 1]),
    "pull": lambda agent: agent.pull([0, 1]),
    "skip": lambda agent: agent.skip(),
    "observe_late": lambda agent: agent.observe_late(3, 0, 1),
    "posterior": lambda agent: agent.posterior(0),
    "belief": lambda agent: agent.belief(0),
    "evidence": lambda agent: agent.evidence(0),
    "snapshot": lambda agent: agent.snapshot(),
}


@pytest.mark.parametrize("method", METHODS)
def test_whatever_changes_an_agent_refuses_a_second_thread(method):
    agent = rs.TSDE(*channels(), "myopic")
    agent.skip(3)
    said = []

    def second():
        try:
            METHODS[method](agent)
        except rs.RestiveError as error:
            said.append(str(error))

    with agent._alone:
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert said
    assert "give each thread an agent of its own, or a lock" in said[0]
    agent.observe([0] * len(agent.select()))  # and lets the first go on


def test_a_learner_without_a_posterior_says_so():
    agent = made("ucb1", *three_states())
    for call, what in (
        (lambda: agent.posterior(0), "posterior"),
        (lambda: agent.belief(0), "beliefs"),
        (agent.index, "sampled system"),
        (lambda: agent.episode, "episodes"),
        (lambda: agent.sampled_bandit, "sampled system"),
    ):
        with pytest.raises(
            rs.errors.ProblemError, match=f"learner ucb1 has no {what}: it is not of TSDE"
        ):
            call()


def test_pulling_draws_nothing_and_beliefs_stay():
    """What a learner would have chosen by luck is not drawn for arms that others choose."""
    agent = made("beta_bernoulli", *controlled())
    before = int(agent._actor.memory.ints[DRAWS])
    agent.pull([1])
    assert agent._actor.memory.ints[DRAWS] == before
    agent.observe([0])
    assert agent._actor.memory.ints[DRAWS] == before + 1  # the coin for its reward


def test_what_newcomers_hand_to_the_wrong_place_is_answered_with_the_right_one():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7, name="press")] * 2, 1)
    agent = rs.TSDE(rs.grid_prior([0.3, 0.7], like=bandit), 1)
    with pytest.raises(rs.errors.ProblemError) as caught:
        rs.evaluate(bandit, agent)
    assert str(caught.value).startswith("evaluate takes a policy, got Agent(")
    assert str(caught.value).endswith("; for an agent use simulate or frequentist_regret")
    with pytest.raises(rs.errors.ProblemError, match=r"0 to 1; an agent knows arms by number$"):
        agent.explain("press")
    with pytest.raises(rs.errors.ProblemError, match=r"0 to 1$"):
        agent.explain(2)
    world = rs.World(bandit)
    pulled = world.pull(agent.select())
    with pytest.raises(rs.errors.ProblemError, match=r"World.pull returns pass the first item$"):
        agent.observe(pulled)
    agent.observe(pulled[0])
    three = rs.RestlessBandit([rs.Arm([[0.2, 0.4, 0.4]] * 3, rewards=[0, 1, 2])] * 2, 1)
    for prior in (rs.beta_prior, lambda like: rs.grid_prior([0.2, 0.8], like=like)):
        with pytest.raises(rs.errors.ProblemError, match=r"use dirichlet_prior\(like=bandit\)"):
            prior(like=three)
