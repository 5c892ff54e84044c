"""The Gymnasium environment: its interface, and that it is `rs.World` to the bit."""

import copy
import importlib
import math
import os
import pickle
import sys
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.passive_env_checker import data_shares_objects
from gymnasium.vector import AutoresetMode

import restive as rs
import restive.gym
from restive.errors import ProblemError, RestiveError

ID = "restive/Restless-v0"
STEPS = int(os.environ.get("RESTIVE_GYM_STEPS", "2000"))  # of random actions, in all forms together

THREE = rs.Arm(
    [[0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.1, 0.1, 0.8]],
    [[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.2, 0.4, 0.4]],
    [0, 0.5, 1],
)
PAYING = rs.gilbert_elliott(0.2, 0.9, (0.0, 2.0), (0.1, 0.7), "fields", ["dry", "wet"])
MIXED = rs.RestlessBandit([THREE, PAYING, rs.gilbert_elliott(0.4, 0.5)], 2)
CALL = rs.Arm([[0.4, 0.6], [0.1, 0.9]], [[0.9, 0.1], [0.3, 0.7]], [0, 1], [0, 1], seen="always")
SHOWN = rs.RestlessBandit([CALL, PAYING, CALL], 2)
PRIOR = rs.beta_prior(num_arms=3)
PROBLEMS = {
    "zoo": {"problem": "satellite-urban-s"},
    "mixed": {"problem": MIXED},
    "shown": {"problem": SHOWN},
    "prior": {"problem": PRIOR, "num_pulls": 2},
}
FORMS = [
    {"observation": observation, "action": action}
    for observation in ("belief", "sighting")
    for action in ("scores", "subset", "arm")
]


def form_name(form):
    return "-".join(form.values())


@pytest.fixture(params=FORMS, ids=form_name)
def form(request):
    return request.param


@pytest.fixture(params=PROBLEMS)
def problem(request):
    return PROBLEMS[request.param]


def same(one, other):
    """Whether two observations or infos are equal to the bit, nan being nan."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        equal_nan = one.dtype.kind == "f"
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=equal_nan)
    return type(one) is type(other) and (one == other or (math.isnan(one) and math.isnan(other)))


def test_gymnasium_has_nothing_to_complain_about(problem, form):
    env = gymnasium.make(ID, **problem, **form)
    check_env(env.unwrapped)
    for reward in ("expected", "realised"):
        check_env(gymnasium.make(ID, **problem, **form, reward=reward).unwrapped)
    env.close()


def test_copies_are_single_environments_to_the_bit(problem, form):
    """Gymnasium's own copies of the single environment beside ours, over several episodes."""
    made = {"num_envs": 3, "max_episode_steps": 7, **problem, **form}  # an arm is left over
    ours = gymnasium.make_vec(ID, **made)
    theirs = gymnasium.make_vec(ID, vectorization_mode="sync", **made)
    assert isinstance(ours.unwrapped, restive.gym.RestlessVectorEnv)
    assert ours.metadata["autoreset_mode"] == theirs.metadata["autoreset_mode"]
    assert ours.observation_space == theirs.observation_space
    assert ours.action_space == theirs.action_space
    ours.action_space.seed(4)
    kept = []
    for seed in (5, None, [1, None, 7]):
        mine, its = ours.reset(seed=seed), theirs.reset(seed=seed)
        if seed is not None:  # the third list leaves the second copy as it is
            assert same(mine[0], its[0])
            assert same(mine[1], its[1])
        for step in range(20):
            assert mine[0] in ours.observation_space
            actions = ours.action_space.sample()
            mine, its = ours.step(actions), theirs.step(actions)
            for one, other in zip(mine[1:4], its[1:4], strict=True):
                assert same(np.asarray(one), np.asarray(other))
            assert same(mine[0], its[0])
            assert same(mine[4], its[4])
            assert mine[3].all() == (step % 8 == 6)
            kept.append((mine[0], mine[4]))
    for before, after in pairwise(kept):
        assert not data_shares_objects(before[0], after[0])
        assert not data_shares_objects(before[1], after[1])


@pytest.mark.parametrize("reward", ["expected", "realised"])
def test_an_episode_is_that_of_a_world_to_the_bit(problem, form, reward):
    env = gymnasium.make(ID, **problem, **form, reward=reward).unwrapped
    env.action_space.seed(1)
    for seed in (3, None):
        seen, info = env.reset(seed=seed)
        world = rs.World(env.bandit, seed=info["seed"])
        if "num_pulls" in problem:
            assert env.bandit == PRIOR.sample(info["seed"], 2)
        for _ in range(30):
            assert seen in env.observation_space
            shown = seen if isinstance(seen, dict) else {"belief": seen}
            laws = world.beliefs.astype(np.float32)
            if "belief" in shown:
                assert np.array_equal(shown["belief"][:, : laws.shape[1]], laws)
            else:
                assert np.array_equal(shown["last_state"], world.belief_state.last_state)
                assert np.array_equal(shown["elapsed"], world.belief_state.elapsed)
            seen, paid, terminated, truncated, info = env.step(env.action_space.sample())
            assert not terminated
            assert not truncated
            if "pulled" not in info:
                assert paid == 0
                continue
            _, earned, expected = world.pull(info["pulled"])
            assert np.array_equal(world.belief_state.last_state[info["pulled"]], info["states"])
            assert paid == (earned if reward == "realised" else expected)


def test_seeds_of_episodes_follow_from_the_seed_alone():
    env = gymnasium.make(ID)
    first = [env.reset(seed=9)[1]["seed"], env.reset()[1]["seed"]]
    again = [env.reset(seed=9)[1]["seed"], env.reset()[1]["seed"]]
    assert first == again
    assert first[0] != first[1]
    vector = gymnasium.make_vec(ID, num_envs=3)
    assert vector.reset(seed=9)[1]["seed"][0] == first[0]
    assert vector.reset()[1]["seed"][0] == first[1]


def test_what_actions_mean():
    made = {"problem": "paper-frequentist"}
    scores = gymnasium.make(ID, **made)
    scores.reset(seed=0)
    for action, arms in (
        ([0.1, 0.9, -0.3, 0.5], [1, 3]),
        ([0, 0, 0, 0], [0, 1]),  # the lowest win ties
        ([-1, 0, 0, 0], [1, 2]),
        ([5, 7, 6, 5], [1, 2]),  # only the order counts
    ):
        assert scores.step(np.array(action, dtype=np.float32))[4]["pulled"].tolist() == arms
    subset = gymnasium.make(ID, action="subset", **made)
    subset.reset(seed=0)
    meant = [subset.step(i)[4]["pulled"].tolist() for i in range(6)]
    assert meant == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert subset.unwrapped.action_masks().tolist() == [True] * 6


def test_single_arms_are_masked_and_a_taken_one_stands_for_the_first_free_one():
    env = gymnasium.make(ID, action="arm", problem=MIXED)
    seen, info = env.reset(seed=0)
    assert seen.shape == (3, 4)
    assert info["action_mask"].tolist() == [True] * 3
    for first, second, arms in ((0, 0, [0, 1]), (2, 1, [1, 2]), (1, 1, [0, 1])):
        seen, reward, _, _, info = env.step(first)
        assert reward == 0
        assert "pulled" not in info
        assert np.array_equal(info["action_mask"], np.arange(3) != first)
        found = env.get_wrapper_attr("action_masks")()  # as MaskablePPO does
        assert np.array_equal(found, info["action_mask"])
        assert np.array_equal(seen[:, 3], np.arange(3) == first)
        seen, reward, _, _, info = env.step(second)
        assert info["pulled"].tolist() == arms
        assert reward > 0
        assert not seen[:, 3].any()
    env.step(2)
    assert env.reset()[1]["action_mask"].all()  # an unfinished choice is forgotten
    alone = gymnasium.make(ID, action="arm", problem="satellite-urban-s")  # one pull: none is taken
    assert alone.reset(seed=0)[0].shape == (2, 2)
    assert alone.step(1)[4]["pulled"].tolist() == [1]


WRONG = {
    "scores": [
        ([0.1, 0.2], "an action is 3 scores, one for each arm; got"),
        ([0.1, np.nan, 0.2], "an action's scores must be numbers; got"),
        ("abc", "an action is 3 scores"),
        (None, "an action is 3 scores"),
        ([True, False, True], "an action is 3 scores"),
        ([1j, 1, 1], "an action is 3 scores"),
        ([[1, 2], 3], "an action is 3 scores"),
    ],
    "subset": [
        (3, "an action is the number of a subset, 0 to 2; got 3"),
        (-1, "an action is the number of a subset, 0 to 2; got -1"),
        (0.5, "an action is the number of a subset, 0 to 2; got"),
        ([0, 1], "an action is the number of a subset"),
        (2**70, "an action is the number of a subset"),
    ],
    "arm": [
        (3, "an action is an arm, 0 to 2; got 3"),
        (-1, "an action is an arm, 0 to 2; got -1"),
        (None, "an action is an arm, 0 to 2; got"),
        (np.uint64(2**64 - 1), "an action is an arm, 0 to 2; got 18446744073709551615"),
    ],
}


@pytest.mark.parametrize(
    ("action", "given", "message"),
    [(action, *case) for action, cases in WRONG.items() for case in cases],
)
def test_an_illegal_action_is_one_sentence_and_changes_nothing(action, given, message):
    env = restive.gym.RestlessEnv(MIXED, action=action, values=False)
    vector = restive.gym.RestlessVectorEnv(MIXED, action=action, num_envs=2, values=False)
    before, _ = env.reset(seed=0)
    vector.reset(seed=0)
    with pytest.raises(ProblemError, match=message) as raised:
        env.step(given)
    assert "\n" not in str(raised.value)
    with pytest.raises(ProblemError, match=r"an action"):
        vector.step([given, given])
    with pytest.raises(ProblemError, match="an action"):
        vector.step([given])
    legal = env.action_space.sample()
    assert same(env.step(legal)[0], vector.step([legal, legal])[0][0])
    assert before.shape == (3, 3 + (action == "arm"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"problem": "paper-frequentst"}, "unknown instance 'paper-frequentst'; did you mean"),
        ({"problem": "nowhere.toml"}, "nowhere.toml"),
        ({"problem": 3}, "a problem is a name of the zoo, a problem file, .* got 3"),
        ({"problem": PRIOR}, "a prior needs num_pulls"),
        ({"problem": PRIOR, "num_pulls": 4}, "num_pulls must be between 1 and"),
        ({"problem": MIXED, "num_pulls": 2}, "num_pulls is for a prior"),
        ({"observation": "beliefs"}, "unknown observation 'beliefs'; did you mean 'belief'?"),
        ({"action": "arms"}, "unknown action 'arms'; did you mean 'arm'?"),
        ({"reward": "real"}, "unknown reward 'real'; did you mean 'realised'?"),
        ({"problem": "large", "action": "subset"}, "subsets of 50 of 1000 arms, more than 10,000"),
    ],
)
def test_what_cannot_be_made(given, message):
    for make in (restive.gym.RestlessEnv, restive.gym.RestlessVectorEnv):
        with pytest.raises(ProblemError, match=message):
            make(**given)


def test_what_cannot_be_asked():
    for make in (restive.gym.RestlessEnv, restive.gym.RestlessVectorEnv):
        env = make(values=False)
        for call in (lambda env=env: env.step([0]), lambda env=env: env._begun()):
            with pytest.raises(ProblemError, match="call reset before anything else"):
                call()
        with pytest.raises(ProblemError, match="scores have no masks"):
            env.action_masks()
        with pytest.raises(ProblemError, match="unknown option 'strat'; did you mean 'start'"):
            env.reset(options={"strat": 1})
        with pytest.raises(ProblemError, match="start must be a BeliefState, got 1"):
            env.reset(options={"start": 1})
        with pytest.raises(ProblemError, match="the state is for 1 arms"):
            env.reset(options={"start": rs.BeliefState([0], [1])})
    with pytest.raises(ProblemError, match="render_mode must be None or 'ansi', got 'human'"):
        restive.gym.RestlessEnv(render_mode="human")
    with pytest.raises(ProblemError, match="copies are not drawn: render_mode must be None"):
        gymnasium.make_vec(ID, render_mode="ansi")
    with pytest.raises(ProblemError, match="2 seeds were given for 1 copies"):
        restive.gym.RestlessVectorEnv().reset(seed=[0, 1])
    for wrong in ({"num_envs": 0}, {"max_episode_steps": 0}):
        with pytest.raises(ProblemError, match="must be at least 1, got 0"):
            restive.gym.RestlessVectorEnv(**wrong)


def test_a_problem_is_a_name_a_file_a_bandit_or_a_prior(tmp_path):
    bandit = rs.zoo.load("satellite-urban-s").bandit
    path = tmp_path / "mine.toml"
    path.write_text(bandit.to_toml())
    joint = rs.JointPrior([bandit])
    given = ("satellite_urban_s", str(path), path, bandit, rs.zoo.load("satellite-urban-s"), joint)
    for problem in given:
        env = gymnasium.make(ID, problem=problem).unwrapped
        seen, info = env.reset(seed=1)
        assert env.bandit == bandit
        assert info["seed"] == 4610079356560476
        assert seen.tolist() == rs.World(bandit).beliefs.astype(np.float32).tolist()
    drawn = gymnasium.make(ID, problem="paper-bayesian").unwrapped
    info = drawn.reset(seed=1)[1]
    assert drawn.bandit == rs.zoo.load("paper-bayesian").prior.sample(info["seed"], 3)


def test_the_value_of_a_system_stands_in_the_info():
    info = gymnasium.make(ID, problem="satellite-urban-s").reset(seed=0)[1]
    bandit = rs.zoo.load("satellite-urban-s").bandit
    assert info["bound"] == rs.relaxation_bound(bandit)
    assert info["optimum"] == rs.optimal(bandit).average_reward
    assert info["whittle"] == rs.evaluate(bandit, "whittle").average_reward
    assert info["whittle"] <= info["optimum"] <= info["bound"]
    large = gymnasium.make(ID, problem="random-dirichlet").reset(seed=0)[1]
    assert math.isnan(large["optimum"])
    assert large["whittle"] < large["bound"]
    for given, known in (({"values": False}, False), ({"values": True, **PROBLEMS["prior"]}, True)):
        vector = gymnasium.make_vec(ID, num_envs=2, **given)
        info = vector.reset(seed=0)[1]
        assert np.isfinite(info["bound"]).all() == known
        if known:
            bounds = [rs.relaxation_bound(bandit) for bandit in vector.unwrapped.bandits]
            assert info["bound"].tolist() == bounds


def test_a_start_can_be_chosen():
    start = rs.BeliefState([0, 1, 0], [3, 2, 50])
    env = restive.gym.RestlessEnv(MIXED, values=False)
    vector = restive.gym.RestlessVectorEnv(MIXED, num_envs=2, values=False)
    laws = rs.theory.beliefs(MIXED, start).astype(np.float32)
    usual = rs.World(MIXED).beliefs.astype(np.float32)
    for options, expected in (({"start": start}, laws), (None, usual), ({}, usual)):
        assert np.array_equal(env.reset(seed=1, options=options)[0], expected)
        assert np.array_equal(vector.reset(seed=1, options=options)[0][1], expected)


def test_slow_arms_that_a_prior_draws_are_played():
    prior = rs.IndependentPrior([rs.ArmPrior([rs.gilbert_elliott(1e-6, 1 - 1e-6)])] * 2)
    given = {"problem": prior, "num_pulls": 1}
    single, vector = gymnasium.make(ID, **given), gymnasium.make_vec(ID, num_envs=1, **given)
    assert np.array_equal(single.reset(seed=0)[0], vector.reset(seed=0)[0][0])
    with pytest.raises(rs.errors.TooLargeError, match="give max_elapsed = 10000"):
        gymnasium.make(ID, problem=prior.sample(0, 1), values=False).reset()
    gymnasium.make(ID, problem=prior.sample(0, 1), values=False, max_elapsed=100).reset()


def test_text():
    env = gymnasium.make(ID, problem=MIXED, render_mode="ansi")
    env.reset(seed=0)
    assert env.render().startswith("time 1: nothing pulled yet\narm 0: seen in 2 1 step ago, now ")
    env.step(np.array([0, 1, 2], dtype=np.float32))
    first, *lines = env.render().splitlines()
    assert first.startswith("time 2: pulled 1, 2, reward ")
    assert lines[0].startswith("arm 0: seen in 2 2 steps ago, now ")
    assert lines[1].startswith("arm 1 ('fields'): seen in ")
    assert restive.gym.RestlessEnv(MIXED).render() is None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_environments_can_be_copied(copied):
    for make in (restive.gym.RestlessEnv, restive.gym.RestlessVectorEnv):
        env = make(MIXED, values=False)
        env.reset(seed=3)
        action = env.action_space.sample()
        other = copied(env)
        assert same(env.step(action)[0], other.step(action)[0])
        assert same(env.reset()[0], other.reset()[0])


def test_random_legal_actions_never_raise(form):
    """In `make soak` a million of them, else fewer; with copies a million in either case."""
    for name, problem in PROBLEMS.items():
        env = gymnasium.make(ID, max_episode_steps=500, values=False, **problem, **form)
        env.action_space.seed(1)
        env.reset(seed=2)
        for _ in range(STEPS // len(FORMS) // len(PROBLEMS)):
            truncated = env.step(env.action_space.sample())[3]
            if truncated:
                env.reset()
        copies = 64 if name == "prior" else 512
        vector = gymnasium.make_vec(
            ID, num_envs=copies, max_episode_steps=40, values=False, **problem, **form
        )
        vector.action_space.seed(1)
        vector.reset(seed=2)
        total = np.zeros(copies)
        for _ in range(160):
            seen, reward, _, _, _ = vector.step(vector.action_space.sample())
            total += reward
        assert np.isfinite(total).all()
        assert seen in vector.observation_space


def second_state(seen):
    """Score arms by how likely they are good: the myopic policy of channels."""
    return seen[:, 1]


def test_a_policy_stands_beside_learners():
    bandit = rs.zoo.load("paper-frequentist").bandit
    policy = restive.gym.learner(second_state)
    (compared,) = rs.compare(bandit, [policy, "tsde"], "myopic", horizon=50, replications=4)
    curves = {curve.learner: curve for curve in compared.curves}
    assert set(curves) == {"second_state", "tsde"}
    earned = 0.0
    for replication in range(4):
        world = rs.World(bandit, replication=replication)
        for _ in range(50):
            likely = world.beliefs.astype(np.float32)[:, 1]
            earned += world.pull(np.sort(np.argsort(-likely, kind="stable")[:2]))[2]
    assert curves["second_state"].average_reward[-1] * 200 == pytest.approx(earned, rel=1e-12)


def both_ways(bandit, policy, form, horizon=60):
    """What a policy earns in the environment, and as a learner, in the same world."""
    env = restive.gym.RestlessEnv(bandit, values=False, **form)
    seen, info = env.reset(seed=5)
    total, steps = 0.0, 0
    while steps < horizon:
        masks = (env.action_masks(),) if form["action"] == "arm" else ()
        seen, reward, _, _, told = env.step(policy(seen, *masks))
        total, steps = total + reward, steps + ("pulled" in told)
    prior = rs.IndependentPrior([rs.ArmPrior([arm]) for arm in bandit.arms])
    curve = rs.frequentist_regret(
        bandit, prior, "myopic", horizon, learner=restive.gym.learner(policy, **form),
        replications=1, seed=info["seed"], times=[horizon],
    )  # fmt: skip
    return total, curve.average_reward[-1] * horizon


def test_a_learner_earns_what_the_policy_earns_in_the_environment(form):
    if form["action"] == "scores":

        def policy(seen):
            return seen[:, 0] if form["observation"] == "belief" else -seen["elapsed"] % 5
    elif form["action"] == "subset":

        def policy(seen):
            values = seen if form["observation"] == "belief" else seen["elapsed"]
            return int(values.sum() * 7) % 3
    else:

        def policy(seen, mask):
            taken = seen[:, 3] if form["observation"] == "belief" else seen["taken"]
            assert np.array_equal(taken == 0, mask)
            return int(np.flatnonzero(mask)[-1])

    alone, compared = both_ways(MIXED, policy, form)
    assert alone == pytest.approx(compared, rel=1e-12)


def test_a_policy_stands_beside_learners_of_arms_that_are_always_seen():
    """Its beliefs of those are their states, which the loop shows it, pulled or not."""
    arms = [
        rs.Arm([[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.4, 0.6]], [0, 1], [0, 1], seen=seen)
        for seen in ("always", "pulled", "always")
    ]
    bandit = rs.RestlessBandit(arms, 1)

    def bad_state(seen):
        return seen[:, 0] + [0, 0, 0.01]

    form = {"observation": "belief", "action": "scores"}
    alone, compared = both_ways(bandit, bad_state, form)
    assert alone == pytest.approx(compared, rel=1e-12)
    others = [rs.Arm(a.passive, a.active, [0, 1], [0, 1], seen=a.seen) for a in arms]
    pairs = zip(arms, others, strict=True)
    prior = rs.IndependentPrior([rs.ArmPrior(list(pair)) for pair in pairs])
    (compared,) = rs.compare(
        (bandit, prior), [restive.gym.learner(bad_state), "tsde"], "myopic", horizon=50,
        replications=3,
    )  # fmt: skip
    curves = {curve.learner: curve for curve in compared.curves}
    assert set(curves) == {"bad_state", "tsde"}
    earned = 0.0
    for replication in range(3):
        world = rs.World(bandit, replication=replication)
        for _ in range(50):
            scores = bad_state(world.beliefs.astype(np.float32))
            states = world.belief_state
            assert (states.elapsed[[0, 2]] == 1).all()
            scores[[0, 2]] = (states.last_state[[0, 2]] == 0) + np.array([0, 0.01])
            earned += world.pull(np.array([int(np.argmax(scores))]))[2]
    assert curves["bad_state"].average_reward[-1] * 150 == pytest.approx(earned, rel=1e-12)


def test_what_is_no_policy():
    for wrong, message in (
        ({"policy": 3}, "a policy is a function of an observation, got 3"),
        ({"policy": second_state, "bandit": 3}, "bandit must be a RestlessBandit, got 3"),
    ):
        with pytest.raises(ProblemError, match=message):
            restive.gym.learner(**wrong)
    prior = rs.grid_prior([0.2, 0.8], 2)

    def regret(*policy, **form):
        learner = restive.gym.learner(*policy, **form)
        return rs.bayesian_regret(prior, 1, horizon=5, replications=2, learner=learner)

    with pytest.raises(ProblemError, match="beliefs are those of nobody"):
        regret(second_state)
    told = regret(second_state, bandit=prior.sample(0, 1), name="told")
    assert told.learner == "told"
    with pytest.raises(ProblemError, match="unknown action 'arms'"):
        regret(len, observation="sighting", action="arms")
    with pytest.raises(ProblemError, match="an action is 2 scores"):
        regret(len, observation="sighting")


def test_without_gymnasium_it_is_said_how_to_get_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("restive.gym")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(RestiveError, match=r"needs gymnasium: pip install 'restive\[gym\]'"):
        importlib.import_module("restive.gym")


def test_importing_it_is_enough_and_it_may_be_imported_by_its_name():
    assert gymnasium.spec(ID).max_episode_steps == 1000
    importlib.reload(restive.gym)  # it does not register twice, which would be a warning
    named = gymnasium.make(f"restive.gym:{ID}", values=False)
    assert same(named.reset(seed=0)[0], gymnasium.make(ID).reset(seed=0)[0])
    assert gymnasium.make_vec(ID).metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP
