"""A learner of the user's own, entered from outside the package, beside ours."""

import numpy as np
import pytest

import restive as rs
from learning_cases import channels, joint, true_bandit
from restive.learn.learners import LEARNERS


class RoundRobin:
    """Pull the arms in turn; note what happens."""

    def __init__(self, task, seed):
        self.task, self.seed = task, seed
        self.next, self.seen = 0, []

    def select(self):
        self.pulled = (self.next + np.arange(self.task.num_pulls)) % self.task.num_arms
        return self.pulled

    def observe(self, states):
        assert states.shape == (self.task.num_pulls,)
        self.seen.append(states.tolist())
        self.next = int(self.pulled[-1] + 1) % self.task.num_arms


class Ours:
    """TSDE as a stranger would wrap it: it must do what TSDE does."""

    def __init__(self, task, seed):
        self.agent = rs.TSDE(task.prior, task.num_pulls, task.mapping, task.horizon, seed=7)

    def select(self):
        return self.agent.select()

    def observe(self, states):
        self.agent.observe(states)


@pytest.fixture
def round_robin():
    rs.registry.register_learner("round_robin", RoundRobin, "round robin")
    yield "round_robin"
    rs.registry.unregister_learner("round_robin")


GIVEN = {"replications": 20, "seed": 3, "times": [1, 10, 60]}


def in_turn(prior, num_pulls, bandit, horizon, seed, replication):
    """Return what round robin earns up to each time, with nothing but `World`."""
    world = rs.World(bandit, seed=seed, replication=replication)
    earned = []
    for t in range(horizon):
        arms = (t * num_pulls + np.arange(num_pulls)) % prior.num_arms
        earned.append(world.pull(arms)[1:])
    return np.cumsum(earned, axis=0)


@pytest.mark.parametrize("rewards", ["expected", "realised"])
def test_on_one_bandit_it_earns_what_a_plain_loop_earns(round_robin, rewards):
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    curve = rs.frequentist_regret(
        bandit, prior, "myopic", 60, learner=round_robin, rewards=rewards, **GIVEN
    )
    column = 1 if rewards == "expected" else 0
    sums = np.array([in_turn(prior, num_pulls, bandit, 60, 3, r)[:, column] for r in range(20)])
    np.testing.assert_allclose(curve.average_reward, sums[:, [0, 9, 59]].mean(axis=0) / [1, 10, 60])
    truth = rs.evaluate(bandit, rs.myopic(bandit)).average_reward
    np.testing.assert_allclose(curve.mean, truth * curve.times - curve.average_reward * curve.times)
    assert curve.baseline == "exact: J t"
    assert curve.learner == "round_robin"
    assert (curve.num_episodes == 0).all()
    assert np.isfinite(curve.stderr[1:]).all()


@pytest.mark.parametrize("case", [channels, joint])
def test_with_drawn_truths_it_meets_those_that_ours_meet(round_robin, case):
    prior, num_pulls = case()
    given = GIVEN | {"horizon": 60}
    own, direct, ours = (
        rs.bayesian_regret(prior, num_pulls, "myopic", learner=learner, **given)
        for learner in (round_robin, RoundRobin, "tsde")
    )
    assert own.samples.tobytes() == direct.samples.tobytes()
    assert direct.learner == "RoundRobin"
    assert own.average_reward_of_truth == ours.average_reward_of_truth
    assert own.mean[-1] > ours.mean[-1]
    one = rs.bayesian_regret(prior, num_pulls, "myopic", learner=RoundRobin, threads=1, **given)
    assert one.samples.tobytes() == own.samples.tobytes()


def test_a_wrapped_learner_does_what_it_wraps():
    """One replication, whose learner has the wrapped seed."""
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    wrapped = rs.simulate(bandit, Ours(rs.TSDE(prior, num_pulls, "myopic", 90).task, 0), 90, seed=5)
    agent = rs.simulate(bandit, rs.TSDE(prior, num_pulls, "myopic", 90, seed=7), 90, seed=5)
    assert np.array_equal(wrapped.arms, agent.arms)
    assert np.array_equal(wrapped.states, agent.states)
    assert (wrapped.episode == 0).all()
    assert agent.episode[-1] > 1


def test_each_replication_has_a_fresh_learner_with_a_seed_of_its_own():
    made = []

    def make(task, seed):
        made.append(RoundRobin(task, seed))
        return made[-1]

    prior, num_pulls = channels()
    for threads in (1, 2):
        made.clear()
        rs.bayesian_regret(
            prior, num_pulls, "myopic", 30, learner=make, replications=6, seed=1, threads=threads
        )
        assert len({learner.seed for learner in made}) == len(made) == 6
        assert all(len(learner.seen) == 30 for learner in made)
        assert all(isinstance(learner.seed, int) for learner in made)
        facts = made[0].task.facts
        assert facts.num_pulls == 2
        assert [rewards.tolist() for rewards in facts.rewards] == [[0, 1]] * 4


def test_simulate_takes_any_object_that_selects_and_observes():
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    task = rs.TSDE(prior, num_pulls).task
    learner = RoundRobin(task, 0)
    ran = rs.simulate(bandit, learner, 40, seed=6)
    assert ran.states.tolist() == learner.seen
    assert ran.arms[:3].tolist() == [[0, 1], [2, 3], [0, 1]]


def test_registering(round_robin):
    assert round_robin in LEARNERS
    with pytest.raises(rs.errors.ProblemError, match="a learner 'round_robin' exists already"):
        rs.registry.register_learner("round_robin", RoundRobin)
    with pytest.raises(rs.errors.ProblemError, match="a learner 'tsde' exists already"):
        rs.registry.register_learner("tsde", RoundRobin)
    for wrong in ("two words", "", 3, None, "a-b"):
        with pytest.raises(rs.errors.ProblemError, match="name must be a word such as my_learner"):
            rs.registry.register_learner(wrong, RoundRobin)
    with pytest.raises(rs.errors.ProblemError, match=r"a function of \(task, seed\)"):
        rs.registry.register_learner("third", 3)
    assert "third" not in LEARNERS
    with pytest.raises(rs.errors.ProblemError, match=r"is your own: make it with its function"):
        rs.make_learner("round_robin", *channels())
    with pytest.raises(
        rs.errors.ProblemError, match="round_robin: unknown option 'a'; it has none"
    ):
        rs.make_learner("round_robin", *channels(), a=1)


def test_unregistering():
    for wrong in ("tsde", "nobody", 3, None):
        with pytest.raises(rs.errors.ProblemError, match="no learner of your own is registered as"):
            rs.registry.unregister_learner(wrong)
    rs.registry.register_learner("passing", RoundRobin)
    rs.registry.unregister_learner("passing")
    with pytest.raises(rs.errors.ProblemError, match="unknown learner 'passing'"):
        rs.bayesian_regret(*channels(), "myopic", 10, learner="passing", replications=2)
    rs.registry.register_learner("passing", RoundRobin)  # the name is free again
    rs.registry.unregister_learner("passing")


class Wrong(RoundRobin):
    """Select what is told."""

    answer = None

    def select(self):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([0], "2 arms are pulled each step, 1 were selected"),
        ([0, 1, 2], "2 arms are pulled each step, 3 were selected"),
        ([0, 4], r"arms to pull: the arms are 0 to 3, got \[0, 4\]"),
        ([-1, 0], "the arms are 0 to 3"),
        ([1, 1], "an arm is listed twice"),
        ([0.5, 1], "must be a list of whole numbers"),
        ([[0, 1]], "must be a list of whole numbers"),
        ([[0], [0, 1]], "must be a list of whole numbers"),
        (np.ma.masked_array([0, 1], mask=[False, True]), "must not be a masked array"),
        (None, "must be a list of whole numbers"),
        ("ab", "must be a list of whole numbers"),
    ],
)
def test_what_cannot_be_pulled_is_an_error(answer, message, monkeypatch):
    monkeypatch.setattr(Wrong, "answer", answer)
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    given = {"learner": Wrong, "replications": 2, "horizon": 5}
    for call in (
        lambda: rs.bayesian_regret(prior, num_pulls, "myopic", **given),
        lambda: rs.frequentist_regret(bandit, prior, "myopic", **given),
        lambda: rs.simulate(bandit, Wrong(None, 0), 5),
    ):
        with pytest.raises(rs.errors.ProblemError, match=message):
            call()


@pytest.mark.parametrize("made", [None, 3, object(), rs.ArmPrior])
def test_what_is_no_learner_is_an_error(made):
    for method in ("select", "observe"):
        with pytest.raises(
            rs.errors.ProblemError, match=r"learner <?lambda>?: .* which has no method"
        ):
            rs.bayesian_regret(
                *channels(), "myopic", 5, learner=lambda task, seed: made, replications=2
            )
        assert not callable(getattr(made, method, None))
    with pytest.raises(
        rs.errors.ProblemError, match=r"a learner is a name, .* or a function of \(task, seed\)"
    ):
        rs.bayesian_regret(*channels(), "myopic", 5, learner=3, replications=2)


def test_the_learners_own_errors_come_through():
    class Broken(RoundRobin):
        def observe(self, states):
            raise ZeroDivisionError("my own mistake")

    for threads in (1, 2):
        with pytest.raises(ZeroDivisionError, match="my own mistake"):
            rs.bayesian_regret(
                *channels(), "myopic", 5, learner=Broken, replications=4, threads=threads
            )
