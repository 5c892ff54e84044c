"""`restive plan`: its tables, its JSON, the files it writes, and how it refuses."""

import csv
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import restive as rs
from restive.cli import app, main
from restive.plan.summary import plan_bandit
from restive.problem.arm import replaced_seen

POLICIES = ["best_fixed", "myopic", "whittle", "lp_priority", "best_index", "optimal"]
SMALL = """
num_pulls = 1
[[arm]]
name = "up"
p01 = 0.3
p11 = 0.6
count = 2
[[arm]]
active = [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]]
passive = [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]]
rewards = [0.0, 0.4, 1.0]
"""
FIXED_IS_BEST = """
num_pulls = 1
[[arm]]
active = [[0.5, 0.5], [0.02, 0.98]]
passive = [[0.7, 0.3], [0.3, 0.7]]
rewards = [0, 1]
count = 3
"""
MYOPIC_TRAP = "num_pulls = 2\n" + "".join(
    f"[[arm]]\np01 = {p01}\np11 = {p11}\n"
    for p01, p11 in [(0.6, 0.6), (0.5, 0.9), (0.9, 0.2), (0.6, 0.6)]
)


@pytest.fixture
def small(tmp_path):
    """Return the path of a small problem with two kinds of arms."""
    path = tmp_path / "small.toml"
    path.write_text(SMALL)
    return path


def run(*words):
    """Run the command in this process; its output, once it has ended well."""
    result = CliRunner().invoke(app, ["plan", *map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def run_json(*words):
    """Run the command in this process; its JSON."""
    return json.loads(run("--json", *words))


def test_the_tables_of_the_instance_of_the_paper(pytestconfig):
    out = run(pytestconfig.rootpath / "examples/paper_frequentist.toml")
    assert "4 arms, 2 pulled each step" in out
    assert "no policy exceeds 1.128368" in out
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    table = {row[0]: row[1:] for row in rows if row}
    assert table["0"] == ["", "2", "0.500000", "2", "yes", "0.625000"]
    assert table["best_fixed"][:3] == ["1.000000", "0", "88.62%"]
    assert table["myopic"][:3] == ["1.091217", "0", "96.71%"]
    assert table["whittle"][:3] == ["1.119088", "0", "99.18%"]
    assert table["lp_priority"][0] == "1.119664"
    assert table["optimal"][0] == "1.119694"
    assert table["best_fixed"][3] == "exact: fixed arms"
    assert table["whittle"][3].startswith("exact: joint chain, ")


def test_the_json_holds_what_the_library_says(small):
    found = run_json(small)
    bandit = rs.load_problem(small)
    assert found["format"] == "restive-plan-1"
    assert (found["num_arms"], found["num_pulls"]) == (3, 1)
    assert found["relaxation_bound"] == rs.relaxation_bound(bandit)
    channel, other = found["arms"]
    assert channel == {
        "arms": "0-1",
        "name": "up",
        "count": 2,
        "num_states": 2,
        "states": None,
        "stationary_reward": pytest.approx(3 / 7),
        "own_reward": 0,
        "mixing_time": rs.theory.mixing_time(bandit.arms[0]),
        "settled_elapsed": rs.theory.belief_table(bandit.arms[0]).shape[1],
        "indexable": True,
        "limiting_index": rs.policies.whittle_index(bandit.arms[0]).limit,
        "seen": "pulled",
    }
    assert (other["arms"], other["name"], other["num_states"]) == ("2", None, 3)
    assert [policy["policy"] for policy in found["policies"]] == POLICIES
    for policy in found["policies"]:
        value = rs.evaluate(bandit, rs.registry.policy_mapping(policy["policy"])(bandit))
        assert policy["average_reward"] == value.average_reward
        assert policy["stderr"] == 0
        assert policy["bias_span"] == value.bias_span
        assert policy["share_of_bound"] == value.average_reward / found["relaxation_bound"]
        assert policy["method"].startswith(value.method)
        assert policy["pulls_add"] == value.average_reward
        best = rs.policies.best_index(bandit)
        chosen = f"{best.chosen} was chosen, before {best.runners_up[0].name} ("
        assert policy["note"].startswith(chosen if policy["policy"] == "best_index" else "")
    assert found["own_reward"] == 0
    assert found["hint"] == ""


def test_arms_that_pay_always_are_shown_with_what_they_earn_by_themselves(small, tmp_path):
    path = tmp_path / "always.toml"
    path.write_text('pay = "always"' + FIXED_IS_BEST)
    bandit = rs.load_problem(path)
    found = run_json(path)
    own = rs.theory.reduce_arm(bandit.arms[0]).own_reward
    assert [arm["own_reward"] for arm in found["arms"]] == [own]
    assert found["own_reward"] == pytest.approx(3 * own)
    most = found["relaxation_bound"] - found["own_reward"]
    for policy in found["policies"]:
        value = rs.evaluate(bandit, policy["policy"]).average_reward
        assert policy["average_reward"] == pytest.approx(value, abs=1e-9)
        assert policy["pulls_add"] == pytest.approx(value - found["own_reward"])
        assert policy["share_of_bound"] == pytest.approx((value - found["own_reward"]) / most)
    out = run(path)
    for heading in ("always pulled", "by itself", "pulls add", "of the most: what pulls add, as"):
        assert heading in out
        assert heading not in run(small)
    line = f"the arms earn {found['own_reward']:.6f} by themselves, pulls add at most {most:.6f}"
    assert line in " ".join(out.split())
    assert "of the bound" in run(small)
    assert "of the bound" not in out


def test_pulls_that_can_add_nothing_have_no_share(tmp_path):
    """Channels pay the same pulled or not: J is what they earn by themselves, whoever is pulled."""
    path = tmp_path / "idle.toml"
    path.write_text('pay = "always"\nnum_pulls = 1\n[[arm]]\np01 = 0.3\np11 = 0.6\ncount = 3')
    found = run_json(path)
    assert found["relaxation_bound"] == pytest.approx(found["own_reward"], abs=1e-12)
    assert found["own_reward"] == pytest.approx(9 / 7)
    for policy in found["policies"]:
        assert policy["average_reward"] == pytest.approx(9 / 7, abs=1e-9)
        assert policy["share_of_bound"] is None
    assert "pulls add at most 0.000000" in " ".join(run(path).split())


@pytest.mark.parametrize(
    ("text", "hinted"),
    [
        (FIXED_IS_BEST, True),
        ('pay = "always"' + FIXED_IS_BEST, False),  # the question is the right one
        (FIXED_IS_BEST.replace("num_pulls = 1", "num_pulls = 3"), False),  # all are pulled
        (FIXED_IS_BEST.replace("[0.7, 0.3], [0.3, 0.7]", "[0.5, 0.5], [0.02, 0.98]"), False),
        (SMALL, False),  # a fixed set is not best
    ],
    ids=["hint", "pays always", "no choice", "pulls do not matter", "other policies are better"],
)
def test_a_question_that_looks_wrong_is_pointed_out_in_one_line(tmp_path, text, hinted):
    path = tmp_path / "problem.toml"
    path.write_text(text)
    words = "if arms also count while not pulled, set passive_rewards"
    assert (words in run_json(path)["hint"]) == hinted
    assert (words in " ".join(run(path).split())) == hinted


BEST_FIRST = """
num_pulls = 1
pay = "always"
states = ["ok", "worn", "broken"]
[[arm]]
count = 4
active = [[1, 0, 0], [1, 0, 0], [0.9, 0, 0.1]]
passive = [[0.8, 0.2, 0], [0, 0.8, 0.2], [0, 0, 1]]
rewards = [1, 0.7, 0]
"""


def test_states_that_are_listed_best_first_are_pointed_out(tmp_path):
    """Arms begin in the last state, so those of this file begin broken."""
    path = tmp_path / "machines.toml"
    path.write_text(BEST_FIRST)
    words = "state 'broken' pays less than 'ok', but is taken for the best"
    assert words in run_json(path)["hint"]
    assert " ".join(run(path).split()).count(f"note: {words}") == 1
    path.write_text(BEST_FIRST.replace("rewards = [1, 0.7, 0]", "rewards = [0, 0.7, 0]"))
    assert "taken for the best" not in run_json(path)["hint"]


def test_arms_that_earn_nothing_by_themselves_are_said_to(tmp_path, small):
    """They pay always, but stay broken until somebody comes."""
    path = tmp_path / "machines.toml"
    path.write_text(BEST_FIRST)
    assert "The arms earn 0 by themselves: all of that comes from pulls." in run(path)
    assert "by themselves" not in run(small)


def test_the_schema_is_the_same_for_every_problem(small, tmp_path):
    """Where there is no number there is null, never NaN or Infinity, which are no JSON."""
    trap = tmp_path / "trap.toml"
    trap.write_text(MYOPIC_TRAP)
    plain, odd = run_json(small), run_json(trap)
    assert plain.keys() == odd.keys()
    for kind in ("arms", "policies"):
        keys = {frozenset(entry) for entry in plain[kind] + odd[kind]}
        assert len(keys) == 1
    myopic = next(policy for policy in odd["policies"] if policy["policy"] == "myopic")
    assert myopic["bias_span"] is None
    assert myopic["note"].startswith("J depends on the start: 1.4444")


def test_a_value_that_depends_on_the_start_is_said_below_the_table(tmp_path):
    path = tmp_path / "trap.toml"
    path.write_text(MYOPIC_TRAP)
    assert re.search(
        r"^myopic: J depends on the start: 1\.4444\d\d to 1\.5503\d\d$", run(path), re.M
    )


def test_beyond_max_states_values_are_simulated_and_the_optimum_says_why_not(small):
    found = run_json(small, "--max-states", 10, "--seed", 3)
    by_name = {policy["policy"]: policy for policy in found["policies"]}
    assert by_name["best_fixed"]["stderr"] == 0
    assert by_name["whittle"]["stderr"] > 0
    assert by_name["whittle"]["method"].startswith("simulation: 64 runs")
    assert by_name["whittle"]["bias_span"] is None
    assert by_name["optimal"]["average_reward"] is None
    assert "joint states" in by_name["optimal"]["note"]
    text = run(small, "--max-states", 10, "--seed", 3)
    assert "optimal: the optimum needs" in " ".join(text.split())
    assert "± is the standard error of J where it was simulated." in text
    why = "the policy reaches more than 10 joint states of 3 arms, which take"
    assert found["simulated"].startswith(why)
    assert f"J was simulated: {why}" in " ".join(text.split())
    assert run_json(small)["simulated"] == ""
    assert "standard error" not in run(small)
    again = run_json(small, "--max-states", 10, "--seed", 3)
    assert again == found
    other = run_json(small, "--max-states", 10, "--seed", 4)
    assert other["policies"][2]["average_reward"] != by_name["whittle"]["average_reward"]


def test_the_index_table_as_csv_holds_the_indices_of_the_library(small, tmp_path):
    path = tmp_path / "indices.csv"
    run(small, "--index-table", path)
    bandit = rs.load_problem(small)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "arms", "name", "last_state", "last_state_name", "elapsed", "whittle", "whittle_upper",
        "myopic", "lp_priority", "best_index",
    ]  # fmt: skip
    names = ("myopic", "lp_priority", "best_index")
    policies = {name: rs.registry.policy_mapping(name)(bandit) for name in names}
    for arms, k in (("0-1", 0), ("2", 2)):
        index = rs.policies.whittle_index(bandit.arms[k])
        mine = [row for row in rows if row["arms"] == arms]
        assert len(mine) == index.index.size
        for row in mine:
            s, n = int(row["last_state"]), int(row["elapsed"])
            assert float(row["whittle"]) == index.index[s, n - 1]
            assert float(row["whittle_upper"]) == index.upper[s, n - 1]
            for name, policy in policies.items():
                table = policy.table(k)
                assert float(row[name]) == table[s, min(n, table.shape[1]) - 1]
            assert row["name"] == (bandit.arms[k].name or "")
            assert row["last_state_name"] == row["last_state"]


def test_names_in_the_index_table_are_no_formulas(tmp_path):
    path = tmp_path / "named.toml"
    path.write_text(
        "num_pulls = 1\n[[arm]]\nname = '=1+1'\nstates = ['-low', 'high']\np01 = 0.3\np11 = 0.6\n"
    )
    run(path, "--index-table", tmp_path / "i.csv")
    with (tmp_path / "i.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["name"] for row in rows} == {"'=1+1"}
    assert {row["last_state_name"] for row in rows} == {"'-low", "high"}
    shown = run(path)
    assert "-low, high" in shown


def test_the_index_table_as_npz_holds_the_indices_of_the_library(small, tmp_path):
    path = tmp_path / "indices.npz"
    run(small, "--index-table", path)
    bandit = rs.load_problem(small)
    with np.load(path) as file:
        assert file["kind_of_arm"].tolist() == [0, 0, 1]
        for kind, k in ((0, 0), (1, 2)):
            index = rs.policies.whittle_index(bandit.arms[k])
            assert np.array_equal(file[f"whittle_{kind}"], index.index)
            assert np.array_equal(file[f"whittle_upper_{kind}"], index.upper)
            assert np.array_equal(file[f"myopic_{kind}"], rs.myopic(bandit).table(k))
            assert np.array_equal(
                file[f"lp_priority_{kind}"], rs.policies.lp_priority(bandit).table(k)
            )
            assert np.array_equal(
                file[f"best_index_{kind}"], rs.policies.best_index(bandit).table(k)
            )


def test_index_tables_of_slow_arms_are_as_long_as_asked_for(tmp_path):
    path = tmp_path / "slow.toml"
    path.write_text("num_pulls = 1\n[[arm]]\np01 = 1e-5\np11 = 0.99999\n[[arm]]\np01=0.3\np11=0.6")
    table = tmp_path / "indices.npz"
    found = run_json(path, "--max-elapsed", 30, "--index-table", table)
    assert found["arms"][0]["settled_elapsed"] is None
    with np.load(table) as file:
        assert file["whittle_0"].shape == (2, 30)


def test_the_plot_is_a_picture_that_can_be_read(small, tmp_path):
    png, svg, pdf = (tmp_path / f"plot.{suffix}" for suffix in ("png", "svg", "pdf"))
    run(small, "--plot", png)
    with Image.open(png) as image:
        image.load()
        assert image.width > 600
        assert image.height > 300
        assert len(image.convert("RGB").getcolors(1 << 24)) > 20
    run(small, "--plot", svg)
    drawing = ET.parse(svg).getroot()
    assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(drawing.iter("{http://www.w3.org/2000/svg}path"))) > 20
    run(small, "--plot", pdf)
    assert pdf.read_bytes().startswith(b"%PDF")


def test_many_kinds_of_arms_do_not_hide_the_answer(tmp_path):
    path = tmp_path / "many.toml"
    arms = "".join(f"[[arm]]\np01 = {0.1 + k / 100}\np11 = 0.6\n" for k in range(45))
    path.write_text("num_pulls = 3\n" + arms)
    shown = run(path, "--max-states", 1)
    assert " 35 more kinds of arms: --json and --index-table FILE have them all" in shown
    assert len(shown.splitlines()) < 45
    assert shown.index("Recommended") < shown.index("45 arms") < shown.index("average reward")


def test_an_arm_that_is_always_seen_has_no_limiting_index(tmp_path):
    path, seen = tmp_path / "seen.toml", 'p01 = 0.1\np11 = 0.6\nseen = "always"\n'
    path.write_text(f"num_pulls = 1\n[[arm]]\n{seen}[[arm]]\np01 = 0.2\np11 = 0.6\n")
    rows = [line for line in run(path).splitlines() if "│ always │" in line]
    assert rows[0].split("│")[-2].strip() == "-"
    path.write_text(f"num_pulls = 1\n[[arm]]\n{seen}[[arm]]\n{seen}")
    assert "limiting index" not in run(path)


def test_few_looks_are_no_worry_where_arms_are_always_seen(tmp_path):
    path = tmp_path / "seen.toml"
    arms = "num_pulls = 1\n[[arm]]\np01 = 0.1\np11 = 0.6\ncount = 30\n"
    path.write_text(arms)
    assert "each arm is seen once in 30 steps" in run(path)
    path.write_text(arms + 'seen = "always"\n')
    assert "is seen once in" not in run(path)


def test_many_kinds_of_arms_are_drawn_in_a_picture_of_bounded_size(tmp_path):
    path = tmp_path / "many.toml"
    arms = "".join(f"[[arm]]\np01 = {0.1 + k / 100}\np11 = 0.6\n" for k in range(40))
    path.write_text("num_pulls = 3\n" + arms)
    plot = tmp_path / "many.png"
    from restive.plan.summary import plot_indices

    plot_indices(rs.load_problem(path), plot)
    with Image.open(plot) as image:
        assert image.width * image.height < 10_000_000


def test_files_already_there_are_replaced(small, tmp_path):
    path = tmp_path / "indices.csv"
    path.write_text("old")
    run(small, "--index-table", path)
    assert path.read_text().startswith("arms,name")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["indices.csv", "small.toml"]


@pytest.mark.parametrize("name", ["[/red] x", "[bold]up", "a [b] c", "a\nb", "\u4f60\u597d"])
def test_any_name_is_printed_as_it_is(tmp_path, name):
    path = tmp_path / "named.toml"
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.6, name=name)], 1)
    path.write_text(bandit.to_toml(), encoding="utf-8")
    out = run(path)
    for line in name.splitlines():
        assert line in out


def refused(capsys, monkeypatch, *words):
    """Run the command as the shell would; its one line on stderr."""
    monkeypatch.setattr(sys, "argv", ["restive", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    assert err.startswith("restive: ")
    assert err.rstrip("\n").count("\n") == err.count("\n  "), "one line, and one for each mistake"
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "cannot be read: No such file or directory"),
        ("num_pulls = = 1", "not valid TOML: Invalid value (at line 1"),
        ("num_pul = 1", "unknown key 'num_pul'; did you mean 'num_pulls'?"),
        ("num_pulls = 1\n[[arm]]\np01 = 0.3\np12 = 0.7", "unknown key 'p12'; did you mean"),
        ("num_pulls = 9\n[[arm]]\np01 = 0.3\np11 = 0.7", "num_pulls must be between 1 and"),
    ],
)
def test_a_wrong_file_is_one_line_on_stderr_and_status_two(
    capsys, monkeypatch, tmp_path, text, words
):
    path = tmp_path / "bad.toml"
    if text is not None:
        path.write_text(text)
    line = refused(capsys, monkeypatch, "plan", path)
    assert line.startswith(f"restive: {path}: ")
    assert words in line


@pytest.mark.parametrize("key", ["problem.zoo = 'large'", "prior.beta = {}", "instance = 'large'"])
def test_a_study_is_said_to_be_one_and_a_problem_where_a_study_is_wanted_too(
    capsys, monkeypatch, tmp_path, key
):
    study, problem = tmp_path / "study.toml", tmp_path / "problem.toml"
    study.write_text(f"horizon = 9\n{key}\n")
    line = refused(capsys, monkeypatch, "plan", study)
    assert "this is a study, not a problem: `restive run` takes it, in Python" in line
    problem.write_text("num_pulls = 1\n[[arm]]\np01 = 0.3\np11 = 0.6")
    line = refused(capsys, monkeypatch, "run", problem, "--check")
    assert f"{problem}: this is a problem, not a study: `restive plan` takes it" in line


def test_an_instance_of_the_zoo_is_said_to_be_one(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    line = refused(capsys, monkeypatch, "plan", "paper-frequentist")
    assert "restive zoo paper-frequentist --toml > paper-frequentist.toml writes one" in line
    assert "cannot be read" in refused(capsys, monkeypatch, "plan", "paper-frequentis")


def test_the_arms_that_are_always_seen_are_told_from_others(tmp_path):
    path = tmp_path / "mixed.toml"
    matrices = "active = [[0.5, 0.5], [0.1, 0.9]]\nrewards = [0, 1]\n"
    path.write_text(f"num_pulls = 1\n[[arm]]\n{matrices}seen = 'always'\n[[arm]]\n{matrices}")
    assert [arm["seen"] for arm in run_json(path)["arms"]] == ["always", "pulled"]
    shown = run(path)
    assert re.search(r"^│ 0 .* always ", shown, re.M)
    assert re.search(r"^│ 1 .* pulled ", shown, re.M)
    path.write_text(f"num_pulls = 1\n[[arm]]\n{matrices}")
    shown = run(path)
    assert "1 arm, 1 pulled each step" in shown
    assert "seen" not in shown.split("average reward")[0]


@pytest.mark.parametrize(
    ("arm", "words"),
    [
        ("p01 = 0.0\np11 = 1.0", "the passive chain has 2 closed classes, {0}, {1}"),
        ("p01 = 1e-9\np11 = 0.999999999", "mixes too slowly"),
    ],
)
def test_a_problem_that_cannot_be_solved_is_one_line_on_stderr_and_status_two(
    capsys, monkeypatch, tmp_path, arm, words
):
    path = tmp_path / "hard.toml"
    path.write_text(f"num_pulls = 1\n[[arm]]\n{arm}\n")
    assert words in refused(capsys, monkeypatch, "plan", path)


@pytest.mark.parametrize(
    ("option", "name", "words"),
    [
        ("--index-table", "indices.txt", "can be written as .csv, .npz; got '.txt'"),
        ("--index-table", "indices", "can be written as .csv, .npz; got no ending"),
        ("--index-table", "nowhere/indices.csv", "cannot be written: No such file or directory"),
        ("--index-table", "nowhere/indices.npz", "cannot be written: No such file or directory"),
        ("--plot", "plot.bmp", "can be written as .png, .svg, .pdf; got '.bmp'"),
        ("--plot", "plot", "can be written as .png, .svg, .pdf; got no ending"),
        ("--plot", "nowhere/plot.png", "cannot be written: No such file or directory"),
        ("--plot", "small.toml/plot.png", "cannot be written: Not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_told_and_leaves_nothing(
    capsys, monkeypatch, small, tmp_path, option, name, words
):
    target = tmp_path / name
    line = refused(capsys, monkeypatch, "plan", small, option, target)
    assert line.startswith(f"restive: {target}: ")
    assert words in line
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_a_folder_in_the_place_of_the_file_is_told_and_leaves_nothing(
    capsys, monkeypatch, small, tmp_path
):
    target = tmp_path / "indices.csv"
    target.mkdir()
    line = refused(capsys, monkeypatch, "plan", small, "--index-table", target)
    assert "cannot be written: Is a directory" in line
    assert sorted(path.name for path in tmp_path.iterdir()) == ["indices.csv", "small.toml"]


def test_writing_that_fails_halfway_leaves_the_old_file(monkeypatch, small, tmp_path):
    path = tmp_path / "indices.npz"
    path.write_text("old")

    def fail(file, **arrays):
        file.write(b"half of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises(rs.RestiveError, match=r"indices\.npz: cannot be written: No space left"):
        run(small, "--index-table", path)
    assert path.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["indices.npz", "small.toml"]


def shell(*words, **options):
    """Run the installed command."""
    return subprocess.run(
        [sys.executable, "-m", "restive", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_the_installed_command_plans_and_refuses(small, tmp_path):
    done = shell("plan", small, "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    assert json.loads(done.stdout)["format"] == "restive-plan-1"
    gone = shell("plan", tmp_path / "gone.toml")
    assert gone.returncode == 2
    assert gone.stdout == ""
    expected = f"restive: {tmp_path / 'gone.toml'}: cannot be read: No such file or directory\n"
    assert gone.stderr == expected


def test_help_version_and_unknown_commands():
    assert shell("--version").stdout == f"restive {rs.__version__}\n"
    assert "plan" in shell("--help").stdout
    wrong = shell("plam")
    assert wrong.returncode == 2
    assert "Traceback" not in wrong.stderr


def test_a_reader_that_goes_away_is_no_traceback(small):
    words = [sys.executable, "-m", "restive", "plan", str(small), "--json"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert "Traceback" not in err


def test_what_seeing_is_worth_is_told_where_arms_are_not_seen():
    """Two bounds by linear programs are in test_always_seen; outreach's are known."""
    plan = plan_bandit(rs.load_problem("examples/outreach.toml"))
    seeing = plan.seeing
    best = max(policy.average_reward for policy in plan.policies if policy.average_reward)
    assert seeing.best == best
    assert seeing.bound == pytest.approx(3.738827839, abs=1e-9)
    assert seeing.added == pytest.approx(3.738827839 / best - 1, abs=1e-9)
    assert plan.relaxation_bound == pytest.approx(3.674997, abs=1e-6)
    assert plan.to_json()["seeing"]["bound"] == seeing.bound
    simulated = plan_bandit(rs.load_problem("examples/outreach.toml"), max_states=1).seeing
    assert simulated.half_width > 0
    assert abs(simulated.added - seeing.added) < 3 * simulated.half_width + 0.01
    arms = [rs.gilbert_elliott(0.3, 0.6, seen="always")] * 2
    assert plan_bandit(rs.RestlessBandit(arms, 1)).seeing is None
    for name, now, seen in (("collapsing", 22.15, 25.94), ("outreach-cohort", 15.78, 18.73)):
        bandit = rs.zoo.load(name).bandit
        shown = [replaced_seen(arm, "always") for arm in bandit.arms]
        bounds = (
            rs.relaxation_bound(bandit),
            rs.relaxation_bound(rs.RestlessBandit(shown, bandit.num_pulls)),
        )
        assert bounds == pytest.approx((now, seen), abs=0.005), name


def test_advice_on_the_command_line_names_options_and_is_true(capsys, monkeypatch, tmp_path):
    path = tmp_path / "two.toml"
    path.write_text(
        'num_pulls = 1\nstates = ["broken", "fine"]\n[[arm]]\nactive = [[0.2, 0.8], [0.1, 0.9]]\n'
        "passive = [[1, 0], [0, 1]]\nrewards = [0, 1]\n[[arm]]\np01 = 0.3\np11 = 0.7\n"
    )
    line = refused(capsys, monkeypatch, "plan", path)
    assert "2 closed classes, {broken}, {fine}" in line
    assert line.rstrip().endswith("pass --discount below 1, and --max-elapsed")
    assert "0.888889" in run(path, "--discount", "0.95", "--max-elapsed", "20")
