"""Objects that show themselves: short reprs, tables in notebooks, data frames and pictures."""

import builtins
import inspect
import sys
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest

import restive as rs
from log_cases import log_of
from restive.logs.decision import Estimate

NAMES = ("bad", "good")


@pytest.fixture(scope="module")
def bandit():
    return rs.RestlessBandit(
        [
            rs.gilbert_elliott(0.3, 0.7, name="sky", states=NAMES),
            rs.gilbert_elliott(0.2, 0.6, states=NAMES),
            rs.Arm([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]], rewards=[0, 0.5, 2]),
        ],
        num_pulls=1,
    )


@pytest.fixture(scope="module")
def prior():
    return rs.grid_prior([0.1, 0.5, 0.9], num_arms=3, states=NAMES)


@pytest.fixture(scope="module")
def curve(prior):
    return rs.bayesian_regret(prior, 1, horizon=40, replications=5, seed=3)


@pytest.fixture(scope="module")
def trajectory(bandit):
    return rs.simulate(bandit, rs.whittle(bandit), 60, seed=2)


def test_reprs_are_one_short_line(bandit, prior, curve, trajectory):
    agent = rs.TSDE(prior, 1, seed=7)
    other = rs.RestlessBandit([rs.gilbert_elliott(0.1, 0.7, states=NAMES), *bandit[1:]], 1)
    joint = rs.JointPrior([bandit, other])
    whittle = rs.policies.whittle_index(bandit[0])
    shown = {
        repr(agent): "Agent(tsde, 3 arms, 1 pull, whittle, time 1, seed 7)",
        repr(agent.task): "Task(3 arms, 1 pull, whittle, no horizon)",
        repr(rs.World(bandit, seed=5)): "World(3 arms, 1 pull, time 1, seed 5)",
        repr(prior.arms[0]): "ArmPrior(9 candidates of 2 states)",
        repr(prior): "IndependentPrior(3 arms, ArmPrior(9 candidates of 2 states))",
        repr(joint): "JointPrior(2 systems of 3 arms)",
        repr(rs.whittle(bandit)): "IndexPolicy(whittle, 3 arms, 1 pull)",
        repr(rs.optimal(bandit)): "OptimalPolicy(optimal, 3 arms, 1 pull)",
        repr(rs.policies.best_index(bandit)): "BestIndexPolicy(best_index, 3 arms, 1 pull)",
        repr(rs.policies.round_robin(bandit)): "RoundRobinPolicy(round_robin, 3 arms, 1 pull)",
        repr(rs.policies.random_policy(bandit)): "RandomPolicy(random, 3 arms, 1 pull)",
        repr(whittle): f"WhittleIndex(2 states, {whittle.index.shape[1]} ages, indexable, limit "
        f"{whittle.limit:.6g})",
        repr(curve): f"RegretCurve(tsde, whittle: {curve.mean[-1]:.4g} ± "
        f"{curve.upper[-1] - curve.mean[-1]:.2g} (95%) at t = 40, 5 replications, seed 3)",
        repr(trajectory): f"Trajectory(60 steps, 1 pull of 3 arms, "
        f"{trajectory.rewards.mean():.4g} per step, seed 2)",
        repr(rs.zoo.load("paper-frequentist")): "Instance(paper-frequentist: 4 arms, 2 pulls)",
    }
    assert list(shown) == list(shown.values())
    size = 50
    large = rs.Arm(np.full((size, size), 1 / size), rewards=np.zeros(size), name="large")
    assert repr(large) == "Arm(50 states, name='large')"
    assert repr(rs.zoo.load("calls-8").bandit[0]) == "Arm(2 states, seen='always')"


def all_objects(folder):
    """Objects of all public classes, with many arms and long names where there can be."""
    rng = np.random.default_rng(0)

    def arm(size, k):
        laws = rng.dirichlet(np.ones(size), (2, size))
        states = [f"a state with the name {s}" for s in range(size)]
        return rs.Arm(*laws, *rng.random((2, size)), f"the very long name of arm {k}", states)

    long = "x" * 120
    large = rs.RestlessBandit([arm(2 + k % 4, k) for k in range(40)], 7)
    small = rs.RestlessBandit([rs.gilbert_elliott(*rng.random(2)) for _ in range(3)], 1)
    prior, continuous = rs.grid_prior([0.2, 0.7], 3), rs.beta_prior(3)
    three = rs.DirichletArmPrior(np.ones((3, 3)), np.ones((3, 3)), [0, 0.5, 1])
    evidence = rs.Evidence(3)
    evidence.add(0, 2, 1, 12345)
    agent = rs.TSDE(prior, 1, seed=2**63)
    arms = agent.select()
    agent.observe([0])
    options = {"horizon": 20, "replications": 3, "seed": 2**63}
    learner = {"name": "epsilon_greedy", "epsilon": 0.123456789}
    log = log_of(*np.indices((20, 50)).reshape(2, -1), rng.integers(0, 2, 1000), states=[long, "b"])
    fitted = rs.fit_log(log, checks=False)
    rs.write_fit(fitted, folder / "fit")
    study = folder / "study.toml"
    study.write_text(f"""
        title = "{long}"
        kind = "frequentist"
        policy_mappings = ["myopic", "whittle"]
        horizon = 20
        replications = 2
        problem.zoo = "paper-frequentist"
        prior.levels = [0.1, 0.5]
        [sweep]
        seed = [1, 2]
        """)
    ledger = rs.run_study(study, folder / "results")
    results = rs.load_results(folder / "results")
    with rs.LiveAgent.create(folder / f"{long}.live", rs.grid_prior([0.2, 0.7], 30), 20) as live:
        decision = live.decide()
        yield live.explain(decision.arms[0])
        yield rs.registry.suited_learner(2000, 50, 60)
        yield from (live, decision, live.record(dict.fromkeys(decision.arms, 0)))
    yield from (
        *large[:4],
        large,
        small,
        rs.RestlessBandit(large[:2], 1),
        prior,
        prior.arms[0],
        continuous,
        three,
    )
    yield from (continuous.arms[0], rs.IndependentPrior([prior.arms[0], three] * 20), evidence)
    yield from (rs.IndependentPrior([three]), three.given(evidence), rs.JointPrior([large]))
    yield from (rs.BeliefState(np.zeros(n, int), np.full(n, 9)) for n in (1, 15, 1000))
    tried = np.array([10.0, 1e12])
    yield rs.types.ForgettingAdvice(tried, tried, 1e12, 0.1, -1e-9, 0.2, 0.1, 0.05, 12.3, 10**9)
    estimate = Estimate(-1.2345e-9, -1e12, 1e12)
    nothing = rs.types.FitDecision(9, 0, 0, {}, None, None, None, True, (), None, "too many " * 30)
    yield from (nothing, replace(nothing, gain=estimate, num_pulls=10**9, shows_gain=False))
    yield from (agent, agent.episode, agent.posterior(0), agent.explain(int(arms[0])))
    yield from (
        rs.World(large, seed=2**63),
        rs.BatchWorld(large, [2**63] * 3),
        rs.simulate(large, "random", 9, seed=2**63),
    )
    yield from (rs.evaluate(small, name) for name in ("best_fixed", "whittle", "round_robin"))
    yield rs.evaluate(large, "myopic", steps=5, replications=2)
    yield from (rs.whittle(large), rs.policies.best_index(small), rs.optimal(small))
    yield from (
        rs.policies.round_robin(large),
        rs.policies.random_policy(large),
        rs.policies.whittle_index(large[3]),
    )
    yield from (rs.theory.reduce_arm(large[3]), rs.registry.policy_mapping("lp_priority"))
    yield from (rs.bayesian_regret(prior, 1, learner=learner, **options), log, fitted)
    yield from rs.compare(small, ["tsde", learner], **options)
    yield rs.theory.bounds_for(prior, 1, 10**12, 1e9)
    yield rs.theory.decompose_regret(rs.grid_prior([0.2, 0.7], 2), 1, horizon=20, replications=2)
    yield from (
        rs.replay_log(log, 3, ["random"], worlds=20),
        rs.load_prior(folder / "fit" / "prior.json"),
    )
    yield from (rs.load_study(study), ledger, results, *results, results[0].regret)
    yield rs.zoo.load("channels-16-drift").bandit
    yield from (rs.zoo.load("outreach-cohort"), rs.Clock("calendar", "2026-01-05", "week"))


def test_every_repr_fits_on_a_line(tmp_path):
    found = set()
    for one in all_objects(tmp_path):
        assert len(repr(one)) <= 100, type(one)
        assert "\n" not in repr(one), type(one)
        found |= set(type(one).__mro__)
    public = {getattr(space, name) for space in (rs, rs.types) for name in space.__all__}
    classes = {thing for thing in public if inspect.isclass(thing)} - {rs.RestiveError}
    assert classes <= found


def test_a_bandit_is_a_sequence_of_its_arms(bandit):
    assert len(bandit) == bandit.num_arms == 3
    assert bandit[0] is bandit.arms[0]
    assert bandit[-1] is bandit.arms[2]
    assert bandit[:2] == bandit.arms[:2]
    assert list(bandit) == list(bandit.arms)
    assert rs.RestlessBandit(bandit, 2) == rs.RestlessBandit(bandit.arms, 2)
    with pytest.raises(IndexError):
        bandit[3]


@pytest.mark.parametrize("name", ["whittle", "best-fixed", "myopic"])
def test_a_policy_can_be_evaluated_by_its_name(bandit, name):
    named, made = rs.evaluate(bandit, name), rs.registry.policy_mapping(name)(bandit)
    assert named == rs.evaluate(bandit, made)


def test_whatever_takes_a_policy_takes_its_name(bandit):
    made = {
        "whittle": rs.whittle(bandit), "best-fixed": rs.policies.best_fixed(bandit),
        "round_robin": rs.policies.round_robin(bandit), "random": rs.policies.random_policy(bandit),
    }  # fmt: skip
    for name, policy in made.items():
        named, given = (rs.simulate(bandit, one, 40, seed=3) for one in (name, policy))
        assert named.arms.tobytes() == given.arms.tobytes()
        if name != "random":
            assert rs.evaluate(bandit, name) == rs.evaluate(bandit, policy)
            spans = [rs.theory.discounted_spans(bandit, one, [0.5]) for one in (name, policy)]
            assert spans[0] == spans[1]
    for call in (rs.evaluate, lambda *words: rs.simulate(*words, 5)):
        with pytest.raises(rs.errors.ProblemError, match="unknown policy 'rondom'; did you mean"):
            call(bandit, "rondom")
    with pytest.raises(rs.errors.ProblemError, match=r"no joint chain.*simulate\(bandit, 'random'"):
        rs.evaluate(bandit, "random")


def test_a_seed_that_is_drawn_is_shown_and_gives_the_same_again(bandit, prior):
    first, second = (rs.TSDE(prior, 1, seed=None) for _ in range(2))
    assert first.seed != second.seed  # wrongly so once in 2^32
    assert f"seed {first.seed})" in repr(first)
    world = rs.World(bandit, seed=None)
    again = rs.World(bandit, seed=world.seed)
    assert [world.pull([0])[0][0] for _ in range(60)] == [again.pull([0])[0][0] for _ in range(60)]
    found = rs.bayesian_regret(prior, 1, horizon=20, replications=3, seed=None)
    same = rs.bayesian_regret(prior, 1, horizon=20, replications=3, seed=found.seed)
    assert found.samples.tobytes() == same.samples.tobytes()
    (compared,) = rs.compare(
        rs.RestlessBandit(bandit[:2], 1), ["tsde", "ucb1"], horizon=20, replications=3, seed=None
    )
    assert len({curve.seed for curve in compared.curves}) == 1, "all learners meet the same worlds"
    drawn = rs.simulate(bandit, rs.myopic(bandit), 50, seed=None)
    repeated = rs.simulate(bandit, rs.myopic(bandit), 50, seed=drawn.seed)
    assert drawn.states.tobytes() == repeated.states.tobytes()


class Cells(HTMLParser):
    """The cells of a table."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.tags = [], set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_notebooks_show_tables_with_all_text_escaped(bandit, prior, curve):
    evil = "<script>alert(1)</script>"
    named = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7, name=evil, states=["a", evil])], 1)
    agent = rs.TSDE(rs.grid_prior([0.1, 0.9], 1, states=["a", evil]), 1)
    agent.select()
    for shown in (named, agent.posterior(0), agent.explain(0)):
        html = shown._repr_html_()
        assert "script" not in Cells(html).tags
        assert "&lt;script&gt;" in html
    rows = Cells(bandit._repr_html_()).rows
    assert rows[1][:4] == ["arm 0 ('sky')", "1", "bad, good", "0, 1"]
    assert len(rows) == 4
    many = rs.RestlessBandit([rs.gilbert_elliott(0.1 + 0.001 * k, 0.5) for k in range(90)], 1)
    assert len(Cells(many._repr_html_()).rows) == 21
    assert "and 70 more" in many._repr_html_()
    shown = Cells(curve._repr_html_()).rows
    assert shown[0][:2] == ["time", "regret"]
    assert float(shown[-1][1]) == pytest.approx(curve.mean[-1], rel=1e-5)


def test_curves_and_index_tables_as_data_frames(bandit, curve):
    frame = curve.to_pandas()
    assert frame["time"].tolist() == curve.times.tolist()
    assert frame["regret"].tolist() == curve.mean.tolist()
    assert frame["upper"].tolist() == curve.upper.tolist()
    index = rs.policies.whittle_index(bandit[0])
    frame = index.to_pandas().set_index(["last_state_name", "elapsed"])
    assert frame.loc[("good", 2), "index"] == index.index[1, 1]
    assert frame.loc[("bad", 1), "upper"] == index.upper[0, 0]
    assert len(frame) == index.index.size
    policy = rs.whittle(bandit)
    frame = policy.to_pandas().set_index(["arm", "last_state", "elapsed"])
    for k in range(3):
        table = policy.table(k)
        assert frame.loc[(k, 1, 3), "index"] == table[1, 2]
    assert frame.loc[(0, 1, 3), "name"] == "sky"
    assert len(frame) == sum(policy.table(k).size for k in range(3))


def test_a_trajectory_as_a_data_frame_has_a_row_per_pull(bandit):
    wide = rs.RestlessBandit(bandit, 2)
    found = rs.simulate(wide, rs.whittle(wide), 40, seed=4)
    frame = found.to_pandas()
    assert len(frame) == 80
    assert frame.groupby("time")["reward"].sum().tolist() == pytest.approx(found.rewards.tolist())
    for row in frame.itertuples():
        pulled = found.arms[row.time - 1].tolist().index(row.arm)
        assert row.state == found.states[row.time - 1, pulled]
        assert row.state_name == bandit[row.arm].state_name(row.state)
        assert row.last_state == found.last_state[row.time - 1, row.arm]
        assert row.elapsed == found.elapsed[row.time - 1, row.arm]


def test_posteriors_comparisons_and_results_as_data_frames(prior, bandit, tmp_path):
    agent = rs.TSDE(prior, 1, seed=1)
    agent.select()
    agent.observe(["bad"])
    posterior = agent.posterior(0)
    frame = posterior.to_pandas().set_index(["from", "to"])
    assert frame.loc[("bad", "good"), "mean"] == posterior.mean().active[0, 1]
    assert frame.loc[("good", "good"), "high"] == posterior.quantile(0.95).active[1, 1]
    (compared,) = rs.compare(rs.RestlessBandit(bandit[:2], 1), ["tsde"], horizon=20, replications=3)
    assert compared.to_pandas()["regret"].tolist() == [compared.curves[0].mean[-1]]
    from restive.studies.spec import study_from_toml

    study = study_from_toml(
        "kind = 'bayesian'\nhorizon = 20\nreplications = 3\nnum_pulls = 1\n"
        "policy_mappings = ['myopic', 'whittle']\nprior.levels = [0.2, 0.8]\nprior.num_arms = 2\n"
    )
    rs.run_study(study, tmp_path / "out")
    results = rs.load_results(tmp_path / "out")
    frame = results.to_pandas()
    for number, found in enumerate(results):
        own = frame[frame["case"] == number]
        assert own["regret"].tolist() == found.regret.mean.tolist()
        assert set(own["mapping"]) == {found.case.mapping}
        assert found.to_pandas()["regret"].tolist() == found.regret.mean.tolist()
    assert str(results).splitlines()[0].startswith("CaseSummary(myopic: regret ")
    assert repr(results) == "Results(2 cases)"
    assert repr(study) == "Study('study', 2 cases, 3 replications)"
    assert len(Cells(results._repr_html_()).rows) == 3
    lines = results.plot().get_lines()
    assert [line.get_label() for line in lines] == ["myopic", "whittle"]
    assert not type(results)().plot().get_lines()  # axes even where there is nothing to draw


def test_without_pandas_the_error_names_the_extra(curve, trajectory, monkeypatch):
    real = builtins.__import__

    def no_pandas(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    for shown in (curve, trajectory):
        with pytest.raises(rs.RestiveError, match=r"pip install 'restive\[io\]'"):
            shown.to_pandas()


def test_whittle_indices_are_drawn_with_the_names_of_the_states(bandit):
    index = rs.policies.whittle_index(bandit[0])
    axes = index.plot()
    bad, good, _ = axes.get_lines()
    assert [line.get_label() for line in (bad, good)] == ["last seen: bad", "last seen: good"]
    drawn = good.get_ydata()
    assert drawn[:3].tolist() == index.index[1, :3].tolist()
    assert index.plot(ax=axes) is axes
    drawn = rs.whittle(bandit).plot()
    assert [ax.get_title() for ax in drawn] == ["arm 0 ('sky')", "arm 1", "arm 2"]
    (line, *_) = drawn[2].get_lines()
    assert line.get_ydata()[0] == rs.policies.whittle_index(bandit[2]).index[0, 0]
    assert line.get_label() == "last seen: state 0"


def test_a_trajectory_is_drawn_arm_by_arm_with_pulls_states_and_beliefs(bandit, trajectory):
    drawn_arms = trajectory.plot(steps=25)
    assert [ax.get_title(loc="left") for ax in drawn_arms] == ["arm 0 ('sky')", "arm 1", "arm 2"]
    times = np.arange(36, 61)
    for k, axes in enumerate(drawn_arms):
        belief, pulls = axes.get_lines()
        assert belief.get_xdata().tolist() == times.tolist()
        for t, drawn in zip(times, belief.get_ydata(), strict=True):
            s, n = trajectory.last_state[t - 1, k], trajectory.elapsed[t - 1, k]
            law = bandit[k].active[s] @ np.linalg.matrix_power(bandit[k].passive, n - 1)
            assert drawn == pytest.approx(law @ bandit[k].rewards)
        mine = [t for t in times if k in trajectory.arms[t - 1]]
        assert pulls.get_xdata().tolist() == mine
        seen = [bandit[k].rewards[trajectory.states[t - 1, 0]] for t in mine]
        assert pulls.get_ydata().tolist() == seen
    assert [label.get_text() for label in drawn_arms[0].get_yticklabels()] == ["bad", "good"]
    assert len(trajectory.plot(arms=[2])) == 1
    for arms in ([], [3], [0, 0]):
        with pytest.raises(rs.errors.ProblemError, match="arms to draw"):
            trajectory.plot(arms=arms)
    with pytest.raises(rs.errors.ProblemError, match="steps must be at least 1"):
        trajectory.plot(steps=0)


def test_a_posterior_is_drawn_with_the_names_of_the_states(prior):
    agent = rs.TSDE(prior, 1)
    agent.select()
    axes = agent.posterior(0).plot()
    assert axes.get_xlabel() == "p01: from bad to good"


def test_pictures_show_themselves_where_somebody_looks(bandit, monkeypatch):
    """A figure of pyplot appears below a notebook's cell; elsewhere none is kept open."""
    import matplotlib

    assert "matplotlib.pyplot" not in sys.modules or matplotlib.pyplot.get_fignums() == []
    index = rs.policies.whittle_index(bandit[0])
    with matplotlib.rc_context({"backend": "agg"}):
        monkeypatch.setitem(sys.modules, "ipykernel", object())
        axes = index.plot()
        import matplotlib.pyplot as plt

        assert plt.figure(plt.get_fignums()[-1]) is axes.figure
        plt.close(axes.figure)
