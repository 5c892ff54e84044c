"""Every public function with ten kinds of wrong argument: an answer, or one RestiveError.

Each argument of a sound call is replaced in turn by whatever does not belong there. A call may
still succeed (None is often a default, 3 a number); anything but a RestiveError that escapes is a
leak.
"""
# ruff: noqa: C408, PT017 (calls read better as calls; what is raised is what is looked at)

import inspect
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

import restive as rs
from log_cases import simulated_log
from study_cases import FREQUENTIST

ARM = rs.gilbert_elliott(0.3, 0.6)
BANDIT = rs.RestlessBandit([ARM, rs.gilbert_elliott(0.4, 0.7)], 1)
OTHER = rs.RestlessBandit([ARM, rs.gilbert_elliott(0.5, 0.9)], 1)
WRONG = {
    "nothing": None,
    "a truth": True,
    "a number": 3,
    "a negative number": -1.5,
    "not a number": float("nan"),
    "text": "p.toml",
    "a list": [1, 1, 1],
    "a table": {"a": 1},
    "an arm": ARM,
    "a bandit": BANDIT,
    "a function": len,
    "an object": object(),
}
# What a function of the user's raises is its own: a rule or a learner that is none.
OWN = {("rule", "a function"), ("learner", "a function")}


@cache
def folder():
    """Return a place for files, made once."""
    return Path(mkdtemp(prefix="restive-wrong-"))


@cache
def prior():
    return rs.grid_prior([0.2, 0.8], 2)


@cache
def log():
    return simulated_log(3, num_arms=3, steps=30)


@cache
def fitted():
    return rs.fit_log(log(), checks=False)


@cache
def log_file():
    path = folder() / "log.csv"
    path.write_text(
        "t,arm,state\n" + "".join(f"{t},a,{t % 2}\n{t},b,{t // 3 % 2}\n" for t in range(9))
    )
    return path


@cache
def problem_file():
    path = folder() / "problem.toml"
    path.write_text(BANDIT.to_toml())
    return path


@cache
def study_file():
    path = folder() / "study.toml"
    path.write_text(FREQUENTIST)
    return path


@cache
def results():
    rs.run_study(study_file(), folder() / "results")
    return folder() / "results"


@cache
def prior_file():
    return rs.write_fit(fitted(), folder() / "fit", 1)[1]


SHORT = {"horizon": 5, "replications": 2}
CALLS = {  # sound ones, small
    "Arm": lambda: dict(active=[[0.5, 0.5], [0.2, 0.8]], passive=None, rewards=[0, 1],
                        passive_rewards=None, name="a", states=["x", "y"]),
    "ArmPrior": lambda: dict(candidates=[ARM, BANDIT[1]], weights=[0.5, 0.5]),
    "BeliefState": lambda: dict(last_state=[0, 1], elapsed=[1, 2]),
    "DirichletArmPrior": lambda: dict(active=[[1, 1], [1, 1]], passive=None, rewards=[0, 1],
                                      passive_rewards=None, particles=64, states=None),
    "Evidence": lambda: dict(num_states=2),
    "IndependentPrior": lambda: dict(arms=prior().arms, pooled=()),
    "JointPrior": lambda: dict(bandits=[BANDIT, OTHER], weights=None),
    "RestlessBandit": lambda: dict(arms=[ARM], num_pulls=1),
    "TSDE": lambda: dict(prior=prior(), num_pulls=1, policy_mapping="myopic", horizon=10, seed=0,
                         mixing_time=None, start=None, max_elapsed=None, draws=1, learn_kinds=None),
    "World": lambda: dict(bandit=BANDIT, start=None, seed=0, replication=0, max_elapsed=None,
                          hidden=False),
    "BatchWorld": lambda: dict(bandit=BANDIT, seeds=[0, 1], start=None, max_elapsed=None,
                               hold_slow=False),
    "bayesian_regret": lambda: dict(prior=prior(), num_pulls=1, policy_mapping="myopic", **SHORT,
                                    learner="tsde", seed=0, times=None, rewards="expected",
                                    baseline="auto", doubling=False, start=None, threads=1),
    "policies.best_fixed": lambda: dict(bandit=BANDIT),
    "policies.best_index": lambda: dict(bandit=BANDIT, max_states=2000, max_elapsed=5,
                                        relaxation=None),
    "beta_prior": lambda: dict(num_arms=2, p01=(1, 1), p11=(1, 1), rewards=(0, 1),
                               passive_rewards=None, states=None, particles=64),
    "beta_prior like": lambda: dict(like=BANDIT),
    "compare": lambda: dict(problems=BANDIT, learners=["ucb1"],
                            policy_mapping="myopic", **SHORT, seed=0, threads=1),
    "dirichlet_prior": lambda: dict(num_arms=2, rewards=(0, 1), passive_rewards=None, states=None,
                                    particles=64, counts=1.0, controlled=False),
    "dirichlet_prior like": lambda: dict(like=BANDIT),
    "evaluate": lambda: dict(bandit=BANDIT, policy="whittle", start=None, max_states=2000,
                             max_elapsed=5, replications=None, steps=None, seed=0),
    "export_results": lambda: dict(folder=results(), path=folder() / "out.csv", table="curves",
                                   format="csv"),
    "fit_log": lambda: dict(log=log(), prior=None, rewards=None, passive_rewards=None,
                            controlled=False, checks=False, seed=0),
    "frequentist_regret": lambda: dict(bandit=BANDIT, prior=prior(), policy_mapping="myopic",
                                       **SHORT, learner="tsde", seed=0, times=None,
                                       rewards="expected", baseline="auto", doubling=False,
                                       start=None, threads=1),
    "gilbert_elliott": lambda: dict(p01=0.3, p11=0.6, rewards=(0, 1), passive_rewards=None,
                                    name=None, states=None),
    "grid_prior": lambda: dict(levels=[0.2, 0.8], num_arms=2, rewards=(0, 1), passive_rewards=None,
                               states=None),
    "grid_prior like": lambda: dict(levels=[0.2, 0.8], like=BANDIT),
    "policies.index_policy": lambda: dict(bandit=BANDIT, rule=lambda arm: [[0.0], [1.0]],
                                          name="own"),
    "load_log": lambda: dict(source=log_file(), time="t", arm="arm", state="state", step=None,
                             zone=None, by=None, pulled=None, same_step="error", skip_bad=False),
    "load_prior": lambda: dict(path=prior_file()),
    "load_problem": lambda: dict(path=problem_file()),
    "load_results": lambda: dict(folder=results()),
    "load_study": lambda: dict(path=study_file()),
    "policies.lp_priority": lambda: dict(bandit=BANDIT, max_elapsed=5, relaxation=None),
    "make_learner": lambda: dict(name="ucb1", prior=prior(), num_pulls=1, policy_mapping="myopic",
                                 horizon=10, seed=0, mixing_time=None, start=None,
                                 max_elapsed=None),
    "myopic": lambda: dict(bandit=BANDIT, max_elapsed=5),
    "optimal": lambda: dict(bandit=BANDIT, max_states=2000, max_elapsed=5),
    "policies.random_policy": lambda: dict(bandit=BANDIT, seed=0),
    "relaxation_bound": lambda: dict(bandit=BANDIT, max_elapsed=5),
    "replay_log": lambda: dict(log=log(), num_pulls=1, policies=["myopic"], prior=None,
                               rewards=None, passive_rewards=None, controlled=False, split=0.5,
                               fitted=None, random_pulls=False, anyway=True, worlds=20, seed=0),
    "restore": lambda: dict(snapshot=rs.TSDE(prior(), 1, "myopic").snapshot(),
                            policy_mapping=None),
    "policies.round_robin": lambda: dict(bandit=BANDIT),
    "run_study": lambda: dict(study=study_file(), folder=folder() / "again", replications=None,
                              executor="threads", workers=1, scheduler=None, tls=None),
    "simulate": lambda: dict(bandit=BANDIT, agent_or_policy="myopic", horizon=5, seed=0,
                             start=None, max_elapsed=5, hidden=False),
    "spread_prior": lambda: dict(num_arms=2, rewards=(0, 1), passive_rewards=None, states=None,
                                 points=64, controlled=False),
    "whittle": lambda: dict(bandit=BANDIT, discount=0.9, max_elapsed=5),
    "policies.whittle_index": lambda: dict(arm=ARM, discount=0.9, max_elapsed=5),
    "write_fit": lambda: dict(fitted=fitted(), folder=folder() / "fit", num_pulls=1, unit="pulls"),
    "write_report": lambda: dict(folder=results(), path=folder() / "report.html"),
    "Clock": lambda: dict(kind="ticks", start=None, period=None, zone="UTC"),
    "theory.beliefs": lambda: dict(bandit=BANDIT, state=rs.BeliefState([0, 1], [1, 2])),
    "theory.belief_table": lambda: dict(arm=ARM, max_elapsed=5),
    "theory.bounds_for": lambda: dict(prior=prior(), num_pulls=1, horizon=10, bias_span=1.0),
    "theory.channel_whittle_index": lambda: dict(p01=0.3, p11=0.6, max_elapsed=3),
    "theory.decompose_regret": lambda: dict(prior=prior(), num_pulls=1, policy_mapping="myopic",
                                            **SHORT, seed=0),
    "theory.discounted_spans": lambda: dict(bandit=BANDIT, policy="myopic", discounts=[0.5],
                                            starts=None),
    "theory.episode_bound": lambda: dict(total_states=4, num_pulls=1, horizon=10, mixing_time=2,
                                         as_printed=False),
    "theory.mixing_time": lambda: dict(chain=ARM, epsilon=0.25),
    "theory.reduce_arm": lambda: dict(arm=ARM, discount=1.0, label=None),
    "theory.regret_bound": lambda: dict(total_states=4, num_pulls=1, horizon=10, mixing_time=2,
                                        bias_span=1.0),
    "theory.stationary": lambda: dict(chain=ARM),
    "registry.policy_mapping": lambda: dict(name="whittle"),
    "registry.register_learner": lambda: dict(name="ucb1", make=len, title=None),
    "registry.register_mapping": lambda: dict(name="whittle", rule_or_maker=len, title=None),
    "registry.suited_learner": lambda: dict(num_arms=4, num_pulls=1, horizon=10),
    "registry.unregister_learner": lambda: dict(name="ucb1"),
    "registry.unregister_mapping": lambda: dict(name="whittle"),
    "zoo.load": lambda: dict(name="paper-frequentist"),
    "zoo.cohort": lambda: dict(num_arms=4, num_pulls=1, seed=0),
    "zoo.collapsing": lambda: dict(num_arms=4, num_pulls=1, seed=0),
    "zoo.random_controlled": lambda: dict(num_arms=2, num_pulls=1, seed=0, num_states=2),
    "zoo.random_dirichlet": lambda: dict(num_arms=2, num_pulls=1, seed=0, num_states=2),
    "zoo.random_near_deterministic": lambda: dict(num_arms=2, num_pulls=1, seed=0, num_states=3),
    "zoo.random_sticky": lambda: dict(num_arms=2, num_pulls=1, seed=0, num_states=2),
    "zoo.two_types": lambda: dict(num_arms=4, num_pulls=1),
}  # fmt: skip
# LiveAgent is made by its own functions, an Instance by the zoo's; the others take nothing.
ELSEWHERE = {"LiveAgent", "RestiveError", "zoo.Instance", "zoo.names", "zoo.qian_pair"}


def function_of(name):
    """Return the public function of a call."""
    place, _, last = name.partition(" ")[0].rpartition(".")
    return getattr(getattr(rs, place) if place else rs, last)


def test_every_public_function_is_here():
    public = {
        f"{place}{name}"
        for place, space in (
            ("", rs), ("policies.", rs.policies), ("theory.", rs.theory),
            ("registry.", rs.registry), ("zoo.", rs.zoo),
        )
        for name in space.__all__
        if callable(getattr(space, name))
    }  # fmt: skip
    assert {name.partition(" ")[0] for name in CALLS} | ELSEWHERE == public
    for name, call in CALLS.items():
        assert set(call()) <= set(inspect.signature(function_of(name)).parameters), name


@pytest.mark.parametrize("name", CALLS)
def test_wrong_arguments_get_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where a text is taken for a path
    function, leaks = function_of(name), []
    sound = CALLS[name]()
    if not name.startswith(("registry.register", "registry.unregister")):
        function(**sound)
    for argument in sound:
        for kind, wrong in WRONG.items():
            if (argument, kind) in OWN:
                continue
            try:
                function(**{**sound, argument: wrong})
            except rs.RestiveError as error:
                assert len(str(error)) > 8, (argument, kind)
            except Exception as error:  # whatever leaks
                leaks.append(f"{argument} = {kind}: {error!r:.120}")
    assert not leaks, "\n".join(leaks)


METHODS = {
    "select": lambda wrong: rs.whittle(BANDIT).select(wrong),
    "select of the optimum": lambda wrong: rs.optimal(BANDIT, max_elapsed=5).select(wrong),
    "select in turn": lambda wrong: rs.policies.round_robin(BANDIT).select(wrong),
    "select at random": lambda wrong: rs.policies.random_policy(BANDIT).select(wrong),
    "index": lambda wrong: rs.whittle(BANDIT).index(wrong),
    "rank": lambda wrong: rs.whittle(BANDIT).rank(wrong),
    "table": lambda wrong: rs.whittle(BANDIT).table(wrong),
    "pull": lambda wrong: rs.World(BANDIT).pull(wrong),
    "observe": lambda wrong: _asked().observe(wrong),
    "explain": lambda wrong: _asked().explain(wrong),
    "posterior": lambda wrong: _asked().posterior(wrong),
    "belief": lambda wrong: _asked().belief(wrong),
    "updated": lambda wrong: rs.BeliefState([0, 1], [1, 1]).updated(wrong, [1]),
    "from_toml": rs.RestlessBandit.from_toml,
}


def _asked():
    agent = rs.TSDE(prior(), 1, "myopic")
    agent.select()
    return agent


@pytest.mark.parametrize("name", METHODS)
def test_wrong_arguments_of_methods_get_a_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    leaks = []
    for kind, wrong in WRONG.items():
        try:
            METHODS[name](wrong)
        except rs.RestiveError as error:
            assert len(str(error)) > 8, kind
        except Exception as error:
            leaks.append(f"{kind}: {error!r:.120}")
    assert not leaks, "\n".join(leaks)


@pytest.mark.parametrize(
    ("call", "hint"),
    [
        (lambda: rs.evaluate("p.toml", "whittle"), r"load_problem\(path\)"),
        (lambda: rs.whittle(ARM), r"RestlessBandit\(\[arm\], num_pulls=1\)"),
        (lambda: rs.relaxation_bound(ARM), r"RestlessBandit\(\[arm\], num_pulls=1\)"),
        (lambda: rs.policies.whittle_index(BANDIT), r"take one: bandit\[0\]"),
        (lambda: rs.theory.belief_table(BANDIT), r"take one: bandit\[0\]"),
        (lambda: rs.whittle(BANDIT).select([1, 1, 1]), r"BeliefState\(last_state, elapsed\)"),
        (lambda: rs.TSDE(prior().arms[0], 1), r"IndependentPrior\(\[prior\] \* num_arms\)"),
        (lambda: rs.TSDE(list(prior().arms), 1), r"IndependentPrior\(priors\)"),
        (lambda: rs.TSDE(BANDIT, 1), r"dirichlet_prior\(like=bandit\)"),
    ],
)
def test_what_is_easily_confused_is_told_how_to_be_made(call, hint):
    with pytest.raises(rs.RestiveError, match=hint):
        call()


def test_an_agent_that_was_used_before_is_refused():
    agent = rs.TSDE(prior(), 1, "myopic")
    assert len(rs.simulate(BANDIT, agent, 3).arms) == 3
    with pytest.raises(rs.RestiveError, match=r"has acted before \(it is at time 4\)"):
        rs.simulate(BANDIT, agent, 3)


def test_an_agent_for_other_rewards_than_the_worlds_is_refused():
    rich = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.6, (0, 5)), ARM], 1)
    with pytest.raises(rs.RestiveError, match=r"arm 0: pays rewards \[0.0, 5.0\], and the agent's"):
        rs.simulate(rich, rs.TSDE(prior(), 1, "myopic"), 3)
    agent = rs.TSDE(rs.dirichlet_prior(like=rich, particles=64), 1, "myopic")
    assert len(rs.simulate(rich, agent, 3).arms) == 3


def test_a_dirichlet_prior_is_like_the_bandit():
    moved = rs.Arm([[0.5, 0.5], [0.1, 0.9]], [[0.9, 0.1], [0.4, 0.6]], [0, 2], [0, 1],
                   states=["ill", "well"])  # fmt: skip
    found = rs.dirichlet_prior(like=rs.RestlessBandit([moved, ARM], 1), counts=2.0)
    first, second = found.arms
    assert np.array_equal(first.active, np.full((2, 2), 2.0))
    assert np.array_equal(first.passive, np.full((2, 2), 2.0))
    assert second.passive is None
    assert first.rewards.tolist() == [0, 2]
    assert first.passive_rewards.tolist() == [0, 1]
    assert first.states == ("ill", "well")
    three = rs.dirichlet_prior(2, [0, 0.5, 1], controlled=True)
    assert three.arms[0].num_states == 3
    assert three.arms[0].passive is not None
