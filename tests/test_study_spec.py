"""Studies as TOML: what is read, what its hash depends on, and how mistakes are told."""

import hashlib
import json
import math
import re
import tomllib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from restive.measure import zoo
from restive.problem.toml_text import toml_of
from restive.studies import toml_tables as tables_module
from restive.studies.runner import run_study
from restive.studies.spec import load_study, study_from_data, study_from_toml
from study_cases import BAYESIAN, CONTINUOUS, FREQUENTIST, JOINT, changed_text

CANDIDATES = """
kind = "bayesian"
horizon = 30
num_pulls = 2

[[prior.arm]]
count = 3
[[prior.arm.candidate]]
p01 = 0.1
p11 = 0.9
weight = 3
[[prior.arm.candidate]]
p01 = 0.4
p11 = 0.6
[[prior.arm]]
[[prior.arm.candidate]]
active = [[0.9, 0.1], [0.2, 0.8]]
passive = [[0.5, 0.5], [0.4, 0.6]]
rewards = [0.0, 0.5]
"""
ZOO = """
kind = "frequentist"
policy_mappings = ["whittle", "best-fixed"]
horizon = 100
problem.zoo = "paper-frequentist"
prior.zoo = "paper-frequentist"
"""
SWEPT = """
kind = "bayesian"
policy_mappings = ["myopic", "whittle"]
horizon = 20
num_pulls = 1

[prior]
levels = [0.2, 0.8]
num_arms = 3

[sweep]
num_pulls = [1, 2]
prior.levels = [[0.3, 0.7], [0.1, 0.5, 0.9], [0.5]]
"""


TEXT = st.text(st.characters(codec="utf-8"), max_size=5)


def refused(text, folder=None):
    """Return the message with which a text is refused."""
    with pytest.raises(rs.RestiveError) as caught:
        study_from_toml(text) if folder is None else study_from_toml(text, folder)
    return str(caught.value)


# ---------------------------------------------------------------- what is read


def test_an_inline_problem_and_a_grid():
    study = study_from_toml(FREQUENTIST, title="small")
    assert (study.title, study.replications) == ("small", 30)
    assert [case.mapping for case in study.cases] == ["myopic", "whittle"]
    assert [case.name for case in study.cases] == ["0000-tsde-myopic", "0001-tsde-whittle"]
    bandit, prior, num_pulls = study.cases[0].settings.systems()
    arms = [rs.gilbert_elliott(0.2, 0.8), *[rs.gilbert_elliott(0.5, 0.2)] * 2]
    assert bandit == rs.RestlessBandit(arms, 1)
    assert num_pulls == 1
    grid = rs.grid_prior([0.2, 0.5, 0.8], 3)
    assert [arm.candidates for arm in prior.arms] == [arm.candidates for arm in grid.arms]


def test_candidates_with_weights_and_counts():
    (case,) = study_from_toml(CANDIDATES).cases
    bandit, prior, num_pulls = case.settings.systems()
    assert bandit is None
    assert (prior.num_arms, num_pulls) == (4, 2)
    channels = (rs.gilbert_elliott(0.1, 0.9), rs.gilbert_elliott(0.4, 0.6))
    for arm in prior.arms[:3]:
        assert arm.candidates == channels
        assert arm.weights.tolist() == [0.75, 0.25]
    odd = rs.Arm([[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.4, 0.6]], [0, 0.5])
    assert prior.arms[3].candidates == (odd,)


def test_a_joint_prior():
    study = study_from_toml(JOINT)
    _, prior, _ = study.cases[0].settings.systems()
    assert isinstance(prior, rs.JointPrior)
    assert prior.weights.tolist() == [0.5, 0.25, 0.25]
    assert prior.bandits[1].arms == (rs.gilbert_elliott(0.3, 0.6), rs.gilbert_elliott(0.2, 0.7))


def test_instances_of_the_zoo():
    study = study_from_toml(ZOO)
    assert [case.mapping for case in study.cases] == ["whittle", "best_fixed"]
    bandit, prior, num_pulls = study.cases[0].settings.systems()
    known = rs.zoo.load("paper-frequentist")
    assert bandit == known.bandit
    assert num_pulls == known.num_pulls
    assert prior.num_arms == known.prior.num_arms
    other, _, _ = study_from_toml("num_pulls = 3\n" + ZOO).cases[0].settings.systems()
    assert other == rs.RestlessBandit(known.bandit.arms, 3)


def test_a_prior_of_the_zoo_says_how_many_are_pulled():
    text = 'kind = "bayesian"\nhorizon = 10\nprior.zoo = "paper-bayesian"'
    _, prior, num_pulls = study_from_toml(text).cases[0].settings.systems()
    assert (prior.num_arms, num_pulls) == (8, 3)


LEARNERS = """
kind = "bayesian"
learners = ["tsde", "epsilon-greedy", {name = "epsilon_greedy", epsilon = 0.25}]
policy_mappings = ["myopic", "whittle"]
horizon = 20
num_pulls = 1
prior.levels = [0.2, 0.8]
prior.num_arms = 3
"""
INSTANCES = """
learners = ["tsde", "ucb1"]
horizon = 30
[sweep]
instance = ["paper-bayesian", "paper-frequentist"]
"""


def test_learners_with_and_without_options():
    study = study_from_toml(LEARNERS)
    assert [case.title for case in study.cases] == [
        f"{learner}, {mapping}"
        for learner in ("tsde", "epsilon_greedy", "epsilon_greedy(epsilon=0.25)")
        for mapping in ("myopic", "whittle")
    ]
    assert len({case.name for case in study.cases}) == 6
    assert study.cases[4].settings.learner().epsilon == 0.25
    (only,) = study_from_toml(changed_text(LEARNERS, learners='["ucb1"]')).cases[:1]
    assert only.title == "ucb1, myopic"


@pytest.mark.parametrize(
    ("learners", "place", "words"),
    [
        ("[]", "learners (line 1)", "at least one item"),
        ('"tsde"', "learners (line 1)", "must be a list, got 'tsde'; write [\"tsde\"]"),
        ("[3]", "learners[0] (line 1)", "must be text, got 3"),
        ('[["tsde"]]', "learners[0] (line 1)", "must be text"),
        ('["tsde", "ucb"]', "learners[1] (line 1)", "did you mean 'ucb1'?"),
        ('["tsde", {name = "tsde"}]', "learners (line 1)", "named twice"),
        ("[{epsilon = 0.1}]", "learners[0] (line 1)", "needs a name"),
        ('[{name = "epsilon_greedy", epsilom = 0.1}]', "learners[0] (line 1)", "mean 'epsilon'?"),
        ('[{name = "epsilon_greedy", epsilon = nan}]', "learners[0] (line 1)", "got nan"),
        ('[{name = "epsilon_greedy", epsilon = true}]', "learners[0] (line 1)", "got True"),
        ('[{name = "epsilon_greedy", epsilon = 07:32:00}]', "learners[0] (line 1)", "epsilon"),
    ],
)
def test_learners_that_are_none(learners, place, words):
    message = refused(changed_text(LEARNERS, learners=learners))
    assert message.startswith(f"{place}: ")
    assert words in message


def test_an_instance_says_kind_problem_prior_and_horizon():
    (case,) = study_from_toml('instance = "paper-frequentist"').cases
    known = rs.zoo.load("paper-frequentist")
    bandit, prior, num_pulls = case.settings.systems()
    assert (bandit, num_pulls) == (known.bandit, known.num_pulls)
    assert prior.num_arms == known.prior.num_arms
    assert case.settings.horizon == known.horizon
    assert case.settings.kind == "frequentist"
    (other,) = study_from_toml('instance = "paper-bayesian"\nhorizon = 7').cases
    assert (other.settings.kind, other.settings.horizon) == ("bayesian", 7)


def test_instances_can_be_swept():
    study = study_from_toml(INSTANCES)
    assert [case.title for case in study.cases] == [
        f"instance {name}, {learner}, whittle"
        for name in ("paper-bayesian", "paper-frequentist")
        for learner in ("tsde", "ucb1")
    ]
    assert [case.settings.kind for case in study.cases] == ["bayesian"] * 2 + ["frequentist"] * 2


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ('instance = "paper"', "instance (line 1)", "did you mean 'paper-"),
        ("instance = 3", "instance (line 1)", "must be text, got 3"),
        ('seed = 1\ninstance = "paper-bayesian"\nkind = "bayesian"', "kind (line 3)", "not both"),
        ('instance = "paper-bayesian"\n[prior]\nlevels = [0.5]', "prior (line 2)", "not both"),
        ('[sweep]\ninstance = ["paper-bayesian", "x"]', "sweep.instance[1] (line 2)", "unknown"),
        ("[sweep]\nlearners = [['tsde'], ['ucb1']]", "sweep.learners (line 2)", "be swept"),
    ],
)
def test_instances_that_are_none(text, place, words):
    told = [line.strip() for line in refused(text).splitlines()]
    assert [line for line in told if line.startswith(f"{place}: ") and words in line], told


def test_sweeps_are_crossed():
    study = study_from_toml(SWEPT)
    assert len(study.cases) == 2 * 3 * 2
    assert [case.number for case in study.cases] == list(range(12))
    found = [
        (s.num_pulls, s.prior.levels, s.policy_mappings) for s in (c.settings for c in study.cases)
    ]
    levels = [[0.3, 0.7], [0.1, 0.5, 0.9], [0.5]]
    assert found == [
        (pulls, row, [mapping])
        for pulls in (1, 2)
        for row in levels
        for mapping in ("myopic", "whittle")
    ]
    assert study.cases[0].title == "num_pulls 1, levels [0.3, 0.7], myopic"
    assert len({case.title for case in study.cases}) == len({case.name for case in study.cases})


def test_values_of_the_last_point_are_not_kept_beside_the_sweep():
    study = study_from_toml(SWEPT.replace("[sweep]", "[sweep]\nseed = [0, 1]"))
    assert study.data["sweep"] == {
        "num_pulls": [1, 2],
        "prior": {"levels": [[0.3, 0.7], [0.1, 0.5, 0.9], [0.5]]},
        "seed": [0, 1],
    }
    assert study.data.keys().isdisjoint({"num_pulls", "seed"})
    assert study.data["prior"] == {"num_arms": 3}
    assert (
        "prior"
        not in study_from_toml(
            SWEPT.replace("num_arms = 3", "").replace(
                'kind = "bayesian"', 'kind = "frequentist"\nproblem.zoo = "paper-frequentist"'
            )
        ).data
    )
    base = SWEPT.replace("levels = [0.2, 0.8]\n", "").replace("num_pulls = 1\n", "")
    other = study_from_toml(base)  # the values that the sweep overrides are of no matter
    assert other.hash == study_from_toml(SWEPT).hash


def test_labels_show_the_values_or_the_legend_does(pytestconfig):
    study = load_study(pytestconfig.rootpath / "examples" / "studies" / "channels.toml")
    assert study.cases[0].title == "levels [0.3, 0.4, 0.5, 0.6, 0.7], myopic"
    assert study.cases[3].title == "levels [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9], whittle"
    assert study.legend == ()
    long = [round(0.01 * i, 2) for i in range(1, 20)]
    longer = [round(0.01 * i, 2) for i in range(1, 60)]
    text = SWEPT.replace("[0.5]]", f"{long}, {longer}]")
    study = study_from_toml(text)
    assert study.cases[4].point == "num_pulls 1, levels #3"
    assert study.legend[0] == f"levels #3 is {long}"
    assert study.legend[1].startswith("levels #4 is [0.01, ")
    assert study.legend[1].endswith("...")
    assert len(study.legend) == 2
    unnamed = "[{num_pulls = 1, arm = [{p01 = 0.2, p11 = 0.5, count = 2}]}]"
    text = FROM_FILE + f"sweep.problem = {unnamed}"
    assert study_from_toml(text).legend[0].startswith('problem #1 is {"num_pulls": 1, "arm": ')


def test_whole_tables_can_be_swept():
    text = """
kind = "frequentist"
horizon = 10
prior.levels = [0.2, 0.5, 0.8]
[sweep]
problem = [
  {name = "two", num_pulls = 1, arm = [{p01 = 0.2, p11 = 0.5, count = 2}]},
  {zoo = "paper-frequentist"},
]
"""
    study = study_from_toml(text)
    assert [case.title for case in study.cases] == [
        "problem two, whittle",
        "problem paper-frequentist, whittle",
    ]
    assert [case.settings.systems()[1].num_arms for case in study.cases] == [2, 4]


def test_swept_keys_whose_last_words_are_the_same_are_told_apart():
    names = '["paper-frequentist", "satellite-urban-l"]'
    study = study_from_toml(
        'kind = "frequentist"\nhorizon = 10\n[problem]\nzoo = "paper-frequentist"\n[prior]\n'
        'zoo = "paper-frequentist"\n[sweep]\n'
        f"problem.zoo = {names}\nprior.zoo = {names}\n"
    )
    assert len({case.title for case in study.cases}) == 4


def test_the_keys_of_labels_are_no_columns_of_tables():
    """An export has a column per label beside its own `case`, `time`, `arm`, ..."""
    table = "{count = 2, candidate = [{p01 = 0.2, p11 = 0.5}]}"
    study = study_from_toml(
        f'kind = "bayesian"\nhorizon = 5\nnum_pulls = 1\n[sweep]\nprior.arm = [[{table}]]'
    )
    own = {"case", "time", "arm", "weight", "replication", "replications"}
    assert not own & set(study.cases[0].labels)


# ---------------------------------------------------------------- files


def write_channels(folder):
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.2, 0.7, name="up")] * 3, 2)
    (folder / "channels.toml").write_text(bandit.to_toml())
    return bandit


FROM_FILE = 'kind = "frequentist"\nhorizon = 10\nprior.levels = [0.2, 0.7]\n'


def test_a_problem_from_a_file_is_looked_for_beside_the_study_and_taken_in(tmp_path, monkeypatch):
    (tmp_path / "studies").mkdir()
    bandit = write_channels(tmp_path / "studies")
    path = tmp_path / "studies" / "mine.toml"
    path.write_text(FROM_FILE + 'problem.file = "channels.toml"')
    monkeypatch.chdir(tmp_path)
    study = load_study("studies/mine.toml")
    assert study.title == "mine"
    assert study.cases[0].settings.systems()[0] == bandit
    (tmp_path / "studies" / "channels.toml").unlink()
    assert "file" not in study.data["problem"]
    again = study_from_data(json.loads(json.dumps(study.data)))
    assert again.hash == study.hash
    assert again.cases[0].settings.systems()[0] == bandit


def test_the_manifest_is_whole_without_the_problems_file(tmp_path):
    bandit = write_channels(tmp_path)
    path = tmp_path / "mine.toml"
    path.write_text(FROM_FILE + 'replications = 3\nproblem.file = "channels.toml"')
    run_study(load_study(path), tmp_path / "out", executor="serial")
    (tmp_path / "channels.toml").unlink()
    path.unlink()
    (found,) = rs.load_results(tmp_path / "out")
    assert found.case.settings.systems()[0] == bandit


def test_files_can_be_swept_and_are_taken_in(tmp_path):
    bandit = write_channels(tmp_path)
    other = rs.RestlessBandit(bandit.arms[:2], 1)
    (tmp_path / "two.toml").write_text(other.to_toml())
    text = FROM_FILE + '[sweep]\nproblem.file = ["channels.toml", "two.toml"]'
    study = study_from_toml(text, tmp_path)
    assert [case.settings.systems()[0] for case in study.cases] == [bandit, other]
    assert len({case.title for case in study.cases}) == 2
    changed = rs.RestlessBandit(bandit.arms, 1)
    (tmp_path / "channels.toml").write_text(changed.to_toml())
    assert study_from_toml(text, tmp_path).hash != study.hash
    for name in ("channels.toml", "two.toml"):
        (tmp_path / name).unlink()
    again = study_from_data(json.loads(json.dumps(study.data)))
    assert again.hash == study.hash
    assert [case.settings.systems()[0] for case in again.cases] == [bandit, other]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ('"gone.toml"', "gone.toml: cannot be read: No such file"),
        ('"folder"', "folder: cannot be read: Is a directory"),
        ('"latin.toml"', "latin.toml: not UTF-8 text"),
        ('"wrong.toml"', "wrong.toml: line 1: num_pulls must be between 1 and"),
        ("3", "file must be text, got 3"),
        ('""', "cannot be read: Is a directory"),
        ('"a\\u0000b"', ""),
    ],
)
def test_a_problems_file_that_is_no_good(tmp_path, name, words):
    (tmp_path / "folder").mkdir()
    (tmp_path / "latin.toml").write_bytes(b"num_pulls = 1 # \xe9t\xe9")
    (tmp_path / "wrong.toml").write_text("num_pulls = 5\n[[arm]]\np01 = 0.3\np11 = 0.7")
    message = refused(FROM_FILE + f"problem.file = {name}", tmp_path)
    assert message.startswith("problem (line 4): ")
    assert words in message


def test_a_file_is_not_given_beside_arms():
    text = FROM_FILE + "[problem]\nfile = 'a.toml'\nnum_pulls = 2"
    assert "problem (line 4): give file or num_pulls, not both" in refused(text)


def test_the_path_of_the_study_is_told(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text("horizon = 0")
    with pytest.raises(rs.errors.ProblemError, match=re.escape(f"{path}: ")):
        load_study(path)


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"title = '\xff'", "not UTF-8 text (byte 9)"),
        (b"horizon = = 3", "not valid TOML"),
        (b"a = " + b"[" * 100_000, "brackets or tables are nested too deeply"),
        (b"horizon = 1" + b"0" * 5000, "not valid TOML"),
        (b"horizon = 1\nhorizon = 2", "not valid TOML: Cannot overwrite"),
        (b"", "kind: is missing"),
        (b"\xef\xbb\xbf", "kind: is missing"),
        (b"\xef\xbb\xbfseed = 1\r\nhorizon = 0\r\n", "horizon (line 2): must be at least 1"),
        (b"\xef\xbb\xbf# \xff", "not UTF-8 text (byte 5)"),
        (b"\xef\xbb\xbf\xef\xbb\xbf", "not valid TOML"),
        (b"\x00", "not valid TOML"),
    ],
)
def test_a_file_that_is_no_study(tmp_path, contents, words):
    path = tmp_path / "study.toml"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(rs.errors.ProblemError) as caught:
        load_study(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert words in str(caught.value)


def test_a_folder_is_no_study(tmp_path):
    with pytest.raises(rs.errors.ProblemError, match="cannot be read: Is a directory"):
        load_study(tmp_path)


# ---------------------------------------------------------------- the hash

TEXTS = {"inline": FREQUENTIST, "grid": BAYESIAN, "candidates": CANDIDATES, "joint": JOINT,
         "continuous": CONTINUOUS,
         "zoo": ZOO, "swept": SWEPT, "learners": LEARNERS, "instances": INSTANCES}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_study_that_goes_through_json_is_the_same(text):
    study = study_from_toml(text)
    again = study_from_data(json.loads(json.dumps(study.data)))
    assert again.hash == study.hash
    assert again.data == study.data
    assert [case.title for case in again.cases] == [case.title for case in study.cases]
    assert [case.settings.to_json() for case in again.cases] == [
        case.settings.to_json() for case in study.cases
    ]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_a_study_that_is_written_as_toml_is_the_same(text):
    study = study_from_toml(text, title='a "b"\n\x7f\\é')
    again = study_from_toml(study.to_toml())
    assert again == study


@given(st.data())
def test_any_data_is_written_as_toml_that_reads_back_equal(draw):
    values = st.recursive(
        st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=12,
    )
    data = draw.draw(st.dictionaries(TEXT, values, max_size=4))
    assert tomllib.loads(toml_of(data)) == data


def shuffled(data, rng):
    """Return equal data with the keys of every table in another order."""
    if isinstance(data, dict):
        keys = [list(data)[i] for i in rng.permutation(len(data))]
        return {key: shuffled(data[key], rng) for key in keys}
    return [shuffled(item, rng) for item in data] if isinstance(data, list) else data


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_the_order_of_keys_changes_neither_hash_nor_cases(text):
    study = study_from_toml(text)
    rng = np.random.default_rng(4)
    for _ in range(5):
        other = study_from_data(shuffled(study.data, rng))
        assert other.hash == study.hash
        assert [case.settings.to_json() for case in other.cases] == [
            case.settings.to_json() for case in study.cases
        ]
        assert [case.name for case in other.cases] == [case.name for case in study.cases]


def test_title_and_replications_do_not_change_the_hash_but_everything_else_does():
    study = study_from_toml(BAYESIAN)
    for same in ('title = "other"', "replications = 5", "doubling = false", 'baseline = "auto"'):
        text = BAYESIAN.replace("replications = 30", "")
        assert study_from_toml(f"{same}\n{text}").hash == study.hash
    found = {study.hash}
    for change in (
        ("seed = 7", "seed = 8"),
        ("horizon = 40", "horizon = 41"),
        ("times = 8", "times = 9"),
        ("times = 8", "times = 8\ndoubling = true"),
        ("times = 8", "times = 8\nposterior = true"),
        ("times = 8", "times = 8\nbaseline = 'coupled'"),
        ("times = 8", "times = 8\nmixing_time = 3"),
        ("times = 8", "times = 8\nmax_elapsed = 90"),
        ("num_pulls = 1", "num_pulls = 2"),
        ("num_arms = 3", "num_arms = 4"),
        ("0.8]", "0.81]"),
        ('["best_fixed", "whittle"]', '["whittle", "best_fixed"]'),
        ('["best_fixed", "whittle"]', '["whittle"]'),
    ):
        found.add(study_from_toml(BAYESIAN.replace(*change)).hash)
    assert len(found) == 14


def test_the_hash_is_the_same_on_every_machine():
    """Digest of JSON with sorted keys: if it changes, no folder of an older run can be resumed."""
    study = study_from_toml(ZOO)
    assert study.data == {
        "kind": "frequentist",
        "learners": ["tsde"],
        "policy_mappings": ["whittle", "best_fixed"],
        "horizon": 100,
        "seed": 0,
        "times": 50,
        "baseline": "auto",
        "doubling": False,
        "posterior": False,
        "problem": {"zoo": "paper-frequentist"},
        "prior": {"zoo": "paper-frequentist"},
    }
    text = json.dumps(study.data, sort_keys=True, separators=(",", ":"))
    assert study.hash == hashlib.sha256(text.encode()).hexdigest()


# ---------------------------------------------------------------- mistakes

# (what is replaced, by what, how the place begins, words of the message)
MISTAKES = [
    ("horizon = 40", "", "horizon", "is missing: give the number of steps, as horizon = "),
    ("horizon = 40", "horizon = true", "horizon (line 4)", "must be a whole number, got True"),
    ("horizon = 40", "horizon = 40.0", "horizon (line 4)", "must be a whole number, got 40.0"),
    ("horizon = 40", 'horizon = "40"', "horizon (line 4)", "must be a whole number, got '40'"),
    ("horizon = 40", "horizon = [[40]]", "horizon (line 4)", "must be a whole number"),
    ("horizon = 40", "horizon = 0", "horizon (line 4)", "must be at least 1, got 0"),
    ("horizon = 40", f"horizon = {10**16}", "horizon (line 4)", "at most 1,000,000,000,000,000"),
    ("horizon = 40", "horizon = 1979-05-27", "horizon (line 4)", "must be a whole number"),
    ("seed = 7", "seed = -1", "seed (line 6)", "must be at least 0, got -1"),
    ("seed = 7", f"seed = {2**63}", "seed (line 6)", "at most 9,223,372,036,854,775,807, got"),
    ("seed = 7", "sede = 7", "sede (line 6)", "unknown key; did you mean 'seed'?"),
    ("seed = 7", "swep.seed = [7]", "swep (line 6)", "unknown key; did you mean 'sweep'?"),
    ("posterior = true", "posterior = 1", "posterior (line 7)", "boolean, got 1"),
    ("times = 8", "times = 1", "times (line 5)", "times must be at least 2, got 1"),
    ("times = 8", "times = []", "times (line 5)", "list of whole numbers"),
    ("times = 8", "times = [1, 5]", "times (line 5)", "to the horizon, 40"),
    ("times = 8", "times = [1, 9, 5, 40]", "times (line 5)", "must rise from at least 1"),
    ("times = 8", "times = [0, 40]", "times (line 5)", "must rise from at least 1"),
    ("times = 8", "times = [20, 20, 40]", "times (line 5)", "must rise from at least 1"),
    ("times = 8", "times = [20, 40, 60]", "times (line 5)", "to the horizon, 40"),
    ("times = 8", f"times = [{2**63}, 40]", "times (line 5)", "times must"),
    ("times = 8", f"times = [{2**70}, 40]", "times (line 5)", "times must"),
    ("times = 8", "times = [20.0, 40.0]", "times[0] (line 5)", "must be a whole number, got 20.0"),
    ("times = 8", "times = [true, 40]", "times[0] (line 5)", "must be a whole number, got True"),
    ("times = 8", "times = 'all'", "times (line 5)", "got 'all'"),
    ('"myopic", "whittle"', "", "policy_mappings (line 3)", "at least one item"),
    ('"myopic", "whittle"', '"whitle"', "policy_mappings (line 3)", "did you mean 'whittle'?"),
    ('"myopic", "whittle"', '"whittle", 3', "policy_mappings[1] (line 3)", "valid string, got 3"),
    ('"myopic", "whittle"', '"best-fixed", "best_fixed"', "policy_mappings (line 3)", "twice"),
    ('"frequentist"', '"frequentish"', "kind (line 2)", "'bayesian' or 'frequentist'"),
    ("num_pulls = 1", "num_pulls = 4", "problem", "between 1 and"),
    ("num_pulls = 1", "", "problem (line 10)", "the arms need num_pulls"),
    ("num_pulls = 1", "num_puls = 1", "problem.num_puls (line 11)", "did you mean 'num_pulls'?"),
    ("p01 = 0.2", "p01 = 1.2", "problem.arm[0] (line 12): p01", "1.2"),
    ("p01 = 0.2", "p01 = nan", "problem.arm[0] (line 12)", "p01"),
    ("p01 = 0.2", "p1 = 0.2", "problem.arm[0] (line 12): unknown key 'p1'", "did you mean"),
    ("count = 2", "count = true", "problem.arm[1] (line 15)", "count must be a whole number"),
    ("count = 2", f"count = {10**12}", "problem", "10,000,000, got 1000000000001"),
    ("levels = [0.2, 0.5, 0.8]", "levels = []", "prior", "levels must be"),
    (
        "levels = [0.2, 0.5, 0.8]",
        "levels = [0.1, 2]",
        "prior.levels[1] (line 21)",
        "from 0 to 1, got 2",
    ),
    ("levels = [0.2, 0.5, 0.8]", "levels = [nan]", "prior.levels[0] (line 21)", "got nan"),
    ("levels = [0.2, 0.5, 0.8]", "levels = ['a']", "prior.levels[0] (line 21)", "got 'a'"),
    ("levels = [0.2, 0.5, 0.8]", "levels = [true]", "prior.levels[0] (line 21)", "got True"),
    ("levels = [0.2, 0.5, 0.8]", "levels = [[0.5]]", "prior.levels[0] (line 21)", "got [0.5]"),
    ("levels = [0.2, 0.5, 0.8]", "levels = 0.5", "prior.levels (line 21)", "got 0.5"),
    ("levels = [0.2, 0.5, 0.8]", "level = [0.5]", "prior.level (line 21)", "mean 'levels'?"),
    ("levels = [0.2, 0.5, 0.8]", "levels = [0.5]\nnum_arms = 2", "prior", "the problem has 3 arms"),
    ("levels = [0.2, 0.5, 0.8]", "", "prior (line 20)", "needs levels = [...], beta = ..."),
    (
        "levels = [0.2, 0.5, 0.8]",
        "levels = [0.5]\nzoo = 'paper-bayesian'",
        "prior (line 20)",
        "give zoo or levels, not both",
    ),
    ("levels = [0.2, 0.5, 0.8]", "zoo = 'paper'", "prior.zoo (line 21)", "did you mean 'paper-"),
    ("levels = [0.2, 0.5, 0.8]", "zoo = 3", "prior.zoo (line 21)", "valid string, got 3"),
]


@pytest.mark.parametrize(
    ("old", "new", "place", "words"), MISTAKES, ids=[f"{m[2]}: {m[1]}" for m in MISTAKES]
)
def test_a_mistake_is_told_with_its_place(old, new, place, words):
    assert FREQUENTIST.count(old) == 1
    message = refused(FREQUENTIST.replace(old, new))
    lines = [line.strip() for line in message.splitlines()]
    told = [line for line in lines if line.startswith(place) and words in line]
    assert told, message
    if "is missing" not in words:
        assert re.match(r"[\w.\[\]]+ \(line \d+\): ", told[0])
    assert len(message) < 1000


CANDIDATE_MISTAKES = [
    ("weight = 3", "weight = -3", "prior.arm[0].candidate[0] (line 8)", "got -3"),
    ("weight = 3", "weight = nan", "prior.arm[0].candidate[0] (line 8)", "got nan"),
    ("weight = 3", "weight = inf", "prior.arm[0].candidate[0] (line 8)", "got inf"),
    ("weight = 3", "weight = true", "prior.arm[0].candidate[0] (line 8)", "got True"),
    ("weight = 3", f"weight = 1{'0' * 400}", "prior.arm[0].candidate[0] (line 8)", "weight"),
    ("weight = 3", "wight = 3", "prior.arm[0].candidate[0] (line 8): unk", "mean 'weight'?"),
    ("weight = 3", "count = 3", "prior.arm[0].candidate[0] (line 8)", "larger weight"),
    ("rewards = [0.0, 0.5]", "", "prior.arm[1].candidate[0] (line 16)", "rewards"),
    ("count = 3", "count = 0", "prior.arm[0].count (line 7)", "must be at least 1"),
    ("count = 3", f"count = {10**15}", "prior.arm[0]", ""),
    ("count = 3", "cuont = 3", "prior.arm[0].cuont (line 7)", "did you mean 'count'?"),
    ("p01 = 0.4", "rewards = [1, 0]\np01 = 0.4", "prior.arm[0]", "rewards are known"),
    ("num_pulls = 2", "num_pulls = 5", "num_pulls (line 4)", "there are 4 arms"),
]


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    CANDIDATE_MISTAKES,
    ids=[f"{m[2]}: {m[1][:30]}" for m in CANDIDATE_MISTAKES],
)
def test_a_mistake_in_candidates_is_told_with_its_place(old, new, place, words):
    assert CANDIDATES.count(old) == 1
    message = refused(CANDIDATES.replace(old, new))
    told = [line.strip() for line in message.splitlines()]
    told = [line for line in told if line.startswith(place) and words in line]
    assert told, message
    assert re.match(r"[\w.\[\]]+ \(line \d+\): ", told[0])


def test_candidates_whose_weights_are_all_zero():
    text = CANDIDATES.replace("weight = 3", "weight = 0").replace("0.6\n", "0.6\nweight = 0\n", 1)
    message = refused(text)
    assert message.startswith("prior.arm[0] (line 6): ")
    assert "not all zero" in message


@pytest.mark.parametrize("weight", ["0", "-1", "nan", "inf", "true", "'a'", "[1]"])
def test_weights_of_systems_are_positive_numbers(weight):
    message = refused(JOINT.replace("weight = 2", f"weight = {weight}"))
    assert message.startswith("prior.bandit[0].weight (line 12): ")


def test_systems_of_a_joint_prior_agree():
    extra = "[[prior.bandit.arm]]\np01 = 0.1\np11 = 0.2\n"
    message = refused(JOINT + extra)
    assert message.startswith("prior")
    assert "bandit 2 has 3 arms" in message


def test_all_mistakes_are_told_at_once():
    text = """
kind = "bayesian"
horizon = -5
sede = 3
policy_mappings = ["whitle"]
times = "all"

[prior]
num_arms = "three"
levles = [0.2]

[[prior.arm]]
cuont = 2
[[prior.arm.candidate]]
p01 = 7
p11 = 0.5
"""
    message = refused(text)
    for place, line in (
        ("horizon", 3),
        ("sede", 4),
        ("policy_mappings", 5),
        ("times", 6),
        ("prior.num_arms", 9),
        ("prior.levles", 10),
        ("prior.arm[0].cuont", 13),
        ("prior.arm[0].candidate[0]", 14),
    ):
        assert f"\n  {place} (line {line}): " in message
    assert re.match(r"\d+ mistakes\n", message)


@pytest.mark.parametrize("times", ["'a'", "[1, 2.5]", "true", "1.5", "{}"])
def test_one_mistake_in_times_is_told_once(times):
    message = refused(FREQUENTIST.replace("times = 8", f"times = {times}"))
    assert message.startswith("times")
    assert "\n" not in message


@pytest.mark.parametrize("times", ["1", "[5, 5, 40]", "[0, 40]", "[]", "[1, true]"])
def test_a_wrong_horizon_does_not_hide_wrong_times(times):
    text = FREQUENTIST.replace("times = 8", f"times = {times}")
    message = refused(text.replace("horizon = 40", "horizon = 0"))
    assert message.startswith("2 mistakes\n  horizon (line 4): must be at least 1, got 0\n  times")
    assert "horizon" not in refused(text.replace("horizon = 40", "")).splitlines()[2][:10]


def test_every_key_beside_an_instance_is_told_and_other_mistakes_too():
    message = refused(
        'instance = "paper-bayesian"\nkind = "bayesian"\nseed = -1\n[prior]\nlevels = [0.5]\n'
    )
    assert message.splitlines() == [
        "3 mistakes",
        "  kind (line 2): give instance or kind, not both",
        "  prior (line 4): give instance or prior, not both",
        "  seed (line 3): must be at least 0, got -1",
    ]
    assert refused('instance = "paper-bayesian"\nprior.levels = [0.5]\n') == (
        "prior (line 2): give instance or prior, not both"
    )


@pytest.mark.parametrize("wrong", ["horizon = 0", "sede = 3", "times = 1", "replications = 0"])
def test_what_does_not_go_together_is_told_beside_other_mistakes(wrong):
    key = wrong.split()[0]
    lines = [line for line in BAYESIAN.splitlines() if not line.startswith(f"{key} =")]
    text = "\n".join([wrong, *lines]).replace("num_pulls = 1", "num_pulls = 4")
    message = refused(text)
    assert message.startswith("2 mistakes\n")
    assert f"{key} (line 1): " in message
    assert "num_pulls" in message
    assert "is 4, but there are 3 arms" in message


def test_what_is_missing_says_what_to_give():
    message = refused("")
    assert "kind: is missing: give kind = 'bayesian' or 'frequentist', or instance" in message
    assert "prior: is missing: give [prior] with levels" in message
    assert "horizon: is missing: give" in message


def test_files_of_one_name_are_told_apart_as_the_message_says(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_channels(tmp_path / folder)
    files = '["a/channels.toml", "b/channels.toml"]'
    message = refused(FROM_FILE + f"[sweep]\nproblem.file = {files}", tmp_path)
    assert "a table [[sweep.problem]] for each, with file = ... and name = ..." in message
    tables = [f'[[sweep.problem]]\nfile = "{f}/channels.toml"\nname = "{f}"\n' for f in "ab"]
    study = study_from_toml(FROM_FILE + "".join(tables), tmp_path)
    assert [case.point for case in study.cases] == ["problem a", "problem b"]


@pytest.mark.parametrize(
    ("sweep", "words"),
    [
        ("title = ['a', 'b']", "sweep.title (line 8): cannot be swept"),
        ("replications = [1, 2]", "sweep.replications (line 8): cannot be swept"),
        ("policy_mappings = [['myopic']]", "sweep.policy_mappings (line 8): cannot be swept"),
        ("sweep = [1]", "sweep.sweep (line 8): cannot be swept"),
        ("horizon = []", "sweep.horizon (line 8): must be a list of one value or more, got []"),
        ("horizon = 5", "sweep.horizon (line 8)"),
        ("horizon = 'ab'", "sweep.horizon (line 8)"),
        ("horizon = [5, true]", "sweep.horizon[1] (line 8): must be a whole number, got True"),
        ("horizon = [5, [6]]", "sweep.horizon[1] (line 8): must be a whole number, got [6]"),
        ("horizont = [5]", "sweep.horizont[0] (line 8): unknown key; did you mean 'horizon'?"),
        ("prior.level = [[0.5]]", "sweep.prior.level[0] (line 8): unknown key; did you mean"),
        ("horizon.x = [1]", "sweep.horizon.x"),
        ("prior.levels.x = [1]", "sweep.prior.levels.x"),
        ("prior.levels.x.y = [1]", "sweep.prior.levels.x.y"),
        ("num_pulls = [1, 2, 3]", "num_pulls"),
        ("prior = [{}, 3]", "sweep.prior[1] (line 8): must be a table, got 3"),
        ("prior = {}", ""),
        ("problem.zoo = ['x']", "sweep.problem.zoo[0] (line 8): unknown instance 'x'"),
    ],
)
def test_sweeps_that_cannot_be(sweep, words):
    text = 'kind = "bayesian"\nhorizon = 50\nnum_pulls = 1\n[prior]\nlevels = [0.2, 0.8]\n'
    text += f"num_arms = 2\n[sweep]\n{sweep}"
    if sweep == "prior = {}":  # nothing is swept
        assert len(study_from_toml(text).cases) == 1
    else:
        assert words in refused(text)


@pytest.mark.parametrize(
    "sweep", ["sweep = 3\n", "sweep = [1, 2]\n", "sweep = 'a'\n", "[[sweep]]\nhorizon = [1]\n"]
)
def test_a_sweep_that_is_no_table(sweep):
    text = BAYESIAN + sweep if sweep.startswith("[[") else sweep + BAYESIAN
    assert refused(text).startswith("sweep")


def test_mistakes_in_the_sweep_do_not_hide_others():
    message = refused("horizont = 3\n" + BAYESIAN + "[sweep]\ntitle = ['a']\nseed = 3\n")
    for place in ("horizont (line 1)", "sweep.title", "sweep.seed"):
        assert place in message


def test_too_many_points(monkeypatch):
    many = ", ".join(map(str, range(1, 102)))
    message = refused(BAYESIAN + f"[sweep]\nseed = [{many}]\nmixing_time = [{many}]\n")
    assert "10,201 points, more than 10,000" in message
    monkeypatch.setattr("restive.studies.spec.MOST_CASES", 10)
    message = refused(BAYESIAN + "[sweep]\nseed = [1, 2, 3, 4, 5, 6]\n")  # of two mappings
    assert "12 cases, more than 10" in message


def test_lines_are_those_of_an_editor():
    """Separators that only Python takes for the end of a line are none."""
    text = '# a\u2028b\n# c\ntitle = "x\u2029y\x85z"\nhorizon = true\n'
    assert "horizon (line 4): " in refused(text)


def test_lines_after_a_matrix_over_several_lines():
    text = """
kind = "bayesian"
horizon = 5
num_pulls = 1
[[prior.arm]]
[[prior.arm.candidate]]
active = [
  [0.5, 0.5],
  [0.2, 0.8]
]
rewards = [0, 1]
[[prior.arm]]
cuont = 1
[[prior.arm.candidate]]
p01 = 3
p11 = 0.2
"""
    message = refused(text)
    assert "prior.arm[1].cuont (line 13): " in message
    assert "prior.arm[1].candidate[0] (line 14): " in message


def test_keys_that_are_named_like_types_are_told():
    assert "int (line 1): unknown key" in refused("int = 3\n" + BAYESIAN)


def test_a_frequentist_study_needs_a_truth():
    text = FREQUENTIST[: FREQUENTIST.index("[problem]")] + "[prior]\nlevels = [0.5]\n"
    assert "a frequentist study needs the truth, in [problem]" in refused(text)


def test_an_instance_without_a_truth_is_no_problem():
    text = ZOO.replace('problem.zoo = "paper-frequentist"', 'problem.zoo = "paper-bayesian"')
    assert "has no fixed truth; use kind = 'bayesian'" in refused(text)


# ---------------------------------------------------------------- anything at all

SCALARS = (
    st.booleans()
    | st.integers(-3, 60)
    | st.sampled_from([2**31, 2**63 - 1, 2**63, 10**15, 10**40, -(10**40)])
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.sampled_from(["", "whittle", "optimal", "bayesian", "frequentist", "exact", "\u2028", "a"])
    | st.dates()
    | st.times()
    | st.datetimes()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["p01", "p11", "active", "rewards", "weight", "count", "arm", "candidate", "bandit",
             "levels", "num_arms", "num_pulls", "zoo", "file", "name", "x", "", "int", "horizon"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip
TOP = st.sampled_from(
    ["kind", "instance", "learners", "policy_mappings", "horizon", "seed", "times", "num_pulls",
     "baseline", "doubling", "posterior", "mixing_time", "max_elapsed", "problem", "prior",
     "title", "replications", "sweep", "y"]
)  # fmt: skip


def toml(value):
    """Return a value as TOML."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{value}"
    if isinstance(value, bool | str | int):
        return json.dumps(value, ensure_ascii=False)
    return value.isoformat()


def paths_of(data, path=()):
    """Return the paths of all values in a study."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        if isinstance(value, dict | list):
            yield from paths_of(value, (*path, key))
        else:
            yield (*path, key)


def read_or_refused(data):
    """Read a study as data and as text: it is a study, or a RestiveError says why not."""
    text = "\n".join(f"{json.dumps(key)} = {toml(value)}" for key, value in data.items())
    try:
        study = study_from_toml(text)
    except rs.RestiveError:
        return
    assert study_from_data(json.loads(json.dumps(study.data))).hash == study.hash


@given(st.dictionaries(TOP, VALUES, max_size=6))
def test_garbage_is_refused(data):
    read_or_refused(data)


@given(st.data())
def test_a_study_with_one_value_replaced_by_garbage(draw):
    study = study_from_toml(draw.draw(st.sampled_from(list(TEXTS.values()))))
    data = json.loads(json.dumps(study.data))
    *path, last = draw.draw(st.sampled_from([path for path in paths_of(data) if path]))
    place = data
    for key in path:
        place = place[key]
    place[last] = draw.draw(VALUES)
    read_or_refused(data)


@given(st.dictionaries(TOP, VALUES | st.dictionaries(TOP, VALUES, max_size=2), max_size=3))
def test_a_sweep_of_garbage(sweep):
    read_or_refused(study_from_toml(BAYESIAN).data | {"sweep": sweep})


@pytest.mark.parametrize("levels", ["[0.5, 0.2, 0.5]", "[0, -0.0]", f"{[0.25] * 200}"])
def test_equal_levels_are_refused_at_once(levels):
    """200 of them would be 40,000 candidates that are one."""
    with pytest.raises(rs.errors.ProblemError) as caught:
        study_from_toml(BAYESIAN.replace("[0.2, 0.5, 0.8]", levels))
    assert re.fullmatch(
        r"prior\.levels\[\d\] \(line 11\): \S+ is listed already, as levels\[0\]; give each once",
        str(caught.value),
    )


def test_a_study_that_is_no_table():
    with pytest.raises(rs.errors.ProblemError, match="a study is a table, got 3"):
        study_from_data(3)


# ---------------------------------------------------------------- many cases


def counted(monkeypatch, owner, name):
    """Count the calls of a function."""
    calls = []
    real = getattr(owner, name)

    def call(*words, **options):
        calls.append(words)
        return real(*words, **options)

    monkeypatch.setattr(owner, name, call)
    return calls


def test_a_table_that_many_points_share_is_checked_and_made_once(monkeypatch):
    """Else a study of a thousand cases takes minutes to load."""
    grids = counted(monkeypatch, tables_module, "grid_prior")
    arms = counted(monkeypatch, tables_module, "read_arm")
    bandits = counted(monkeypatch, tables_module, "RestlessBandit")
    study = study_from_toml(
        f"{FREQUENTIST}[sweep]\nseed = {list(range(20))}\nhorizon = [5, 6]\n"
        'problem.name = ["a", "b"]\n'
    )
    assert len(study.cases) == 2 * 20 * 2 * 2
    assert len(grids) == 2  # to check its levels, and as the prior
    assert len(arms) == 2 * 2  # two tables of arms, under two names
    assert len(bandits) == 2
    assert study.cases[0].settings.systems() == study.cases[1].settings.systems()


def test_an_instance_is_made_once(monkeypatch):
    made = []
    zoo._made.cache_clear()
    monkeypatch.setitem(
        zoo._ZOO, "random-sticky", lambda: made.append(1) or zoo.random_sticky(num_arms=3)
    )
    try:
        study = study_from_toml(
            f'learners = ["tsde", "ucb1"]\n[sweep]\ninstance = ["random-sticky"]\n'
            f"seed = {list(range(20))}\n"
        )
        assert len(study.cases) == 40
        assert [case.settings.num_arms for case in study.cases] == [3] * 40
    finally:
        zoo._made.cache_clear()
    assert made == [1]


def test_points_that_share_a_wrong_table_are_checked_once(monkeypatch):
    arms = counted(monkeypatch, tables_module, "read_arm")
    text = FREQUENTIST.replace("p01 = 0.2", "p01 = 2.0")
    with pytest.raises(rs.errors.ProblemError, match=r"problem\.arm") as caught:
        study_from_toml(f"{text}[sweep]\nseed = {list(range(20))}\n")
    assert str(caught.value).count("\n") == 0
    assert len(arms) <= 2


def test_swept_tables_do_not_leak_from_point_to_point():
    study = study_from_toml(
        f"{FREQUENTIST}[sweep]\nproblem.num_pulls = [1, 2]\nprior.levels = [[0.2, 0.5], [0.8]]\n"
    )
    found = [
        (case.settings.problem.num_pulls, case.settings.prior.levels)
        for case in study.cases
        if case.mapping == "myopic"
    ]
    assert sorted(found) == [(1, [0.2, 0.5]), (1, [0.8]), (2, [0.2, 0.5]), (2, [0.8])]
