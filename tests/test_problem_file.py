"""Problem files: they read back equal, and every mistake in one is told with its place."""

import contextlib
import os
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from restive.studies.spec import study_from_toml
from strategies import arms

CHANNEL = "num_pulls = 1\n[[arm]]\np01 = 0.3\np11 = 0.7\n"


def refusal(text):
    """Return the message with which a text is refused."""
    with pytest.raises(rs.errors.ProblemError) as caught:
        rs.RestlessBandit.from_toml(text)
    return str(caught.value)


NAMES = st.none() | st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from("\"'\\\n\r\t\x00\x1f\x7f#[]="),
    max_size=12,
)


STATES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(
    lambda name: name.strip()
)


@st.composite
def named_bandits(draw):
    """Draw a bandit with names of any kind and with runs of equal arms."""
    found = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            arm = draw(arms(sizes=(1, 2, 3), spread=0.05))
        else:
            p01, p11 = draw(st.floats(0, 1)), draw(st.floats(0, 1))
            arm = rs.gilbert_elliott(p01, p11)
        paid = draw(st.none() | st.just(arm.rewards) | st.just(np.arange(arm.num_states) / 7))
        named = draw(st.none() | st.lists(STATES, min_size=3, max_size=3, unique=True))
        states = None if named is None else named[: arm.num_states]
        arm = rs.Arm(arm.active, arm.passive, arm.rewards, paid, draw(NAMES), states)
        found += [arm] * draw(st.integers(1, 3))
    return rs.RestlessBandit(found, draw(st.integers(1, len(found))))


@given(named_bandits())
def test_what_is_written_reads_back_equal(bandit):
    assert rs.RestlessBandit.from_toml(bandit.to_toml()) == bandit


def test_channels_and_repeats_are_written_short(paper_bandit):
    arm = rs.gilbert_elliott(0.3, 0.7, name="sky")
    text = rs.RestlessBandit([arm] * 5, 2).to_toml()
    assert text == 'num_pulls = 2\n\n[[arm]]\nname = "sky"\np01 = 0.3\np11 = 0.7\ncount = 5\n'
    assert paper_bandit.to_toml().count("[[arm]]") == 4


def test_every_key_of_the_format_is_read():
    bandit = rs.RestlessBandit.from_toml(
        """
        num_pulls = 2
        [[arm]]
        name = "downlink"
        p01 = 0.3
        p11 = 0.7
        rewards = [0.1, 0.9]
        count = 3
        [[arm]]
        active = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
        passive = [[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]]
        rewards = [0, 0.4, 1]
        """
    )
    channel = rs.gilbert_elliott(0.3, 0.7, [0.1, 0.9], name="downlink")
    assert bandit.num_pulls == 2
    assert bandit.arms[:3] == (channel,) * 3
    assert bandit.num_arms == 4
    last = bandit.arms[3]
    assert last.name is None
    assert last.active[0].tolist() == [0.9, 0.1, 0.0]
    assert last.passive[2].tolist() == [0.2, 0.3, 0.5]
    assert last.rewards.tolist() == [0, 0.4, 1]


def test_pay_always_is_short_for_the_same_rewards_while_not_pulled():
    bandit = rs.RestlessBandit.from_toml(
        """
        num_pulls = 1
        pay = "always"
        [[arm]]
        p01 = 0.3
        p11 = 0.7
        [[arm]]
        active = [[0.9, 0.1], [0.2, 0.8]]
        rewards = [1, 4]
        [[arm]]
        p01 = 0.3
        p11 = 0.7
        rewards = [0.5, 2]
        passive_rewards = [0, 1]
        """
    )
    paid = [arm.passive_rewards.tolist() for arm in bandit.arms]
    assert paid == [[0, 1], [1, 4], [0, 1]]
    assert 'pay = "always"' not in bandit.to_toml(), "one arm pays otherwise"
    text = rs.RestlessBandit(bandit.arms[:2], 1).to_toml()
    assert text.startswith('num_pulls = 1\npay = "always"\n\n[[arm]]\np01 = 0.3\np11 = 0.7\n')
    assert "passive_rewards" not in text
    pulled = rs.RestlessBandit.from_toml('pay = "pulled"\n' + CHANNEL)
    assert pulled == rs.RestlessBandit.from_toml(CHANNEL)


def test_repeated_arms_are_one_object_so_that_a_million_cost_nothing():
    bandit = rs.RestlessBandit.from_toml(CHANNEL + "count = 1_000_000\n")
    assert bandit.num_arms == 1_000_000
    assert bandit.arms[0] is bandit.arms[-1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num_pull = 1", "line 1: unknown key 'num_pull'; did you mean 'num_pulls'?"),
        (CHANNEL + "raewrds = [0, 1]", "unknown key 'raewrds'; did you mean 'rewards'?"),
        (CHANNEL + "Count = 3", "unknown key 'Count'; did you mean 'count'?"),
        (
            CHANNEL + "zzz = 3",
            "[[arm]] number 1, line 5: unknown key 'zzz'; known are name, count, p01",
        ),
        ("xyz = 3", "line 1: unknown key 'xyz'; known are num_pulls, pay, seen, states, arm"),
    ],
)
def test_unknown_keys_are_errors_with_a_suggestion(text, words):
    assert words in refusal(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[arm]]\np01 = 0.3\np11 = 0.7", "num_pulls is missing"),
        ("num_pulls = 1", "arm is missing: the file needs at least one [[arm]]"),
        ("num_pulls = 1\narm = []", "at least one arm"),
        ("num_pulls = 1\n[arm]\np01 = 0.3", "arm must be written as [[arm]], with two brackets"),
        (
            "num_pulls = 1\n[arm]\np01 = 0.3\n[arm]\np01 = 0.4",
            "line 4: [arm] is there twice; where there may be several, each must be written as",
        ),
        ("num_pulls = 1\narm = 3", "arm must be written as [[arm]]"),
        ("num_pulls = 1.5\n[[arm]]\np01 = 0.3\np11 = 0.7", "num_pulls must be a whole number"),
        ("num_pulls = true\n[[arm]]\np01 = 0.3\np11 = 0.7", "num_pulls must be a whole number"),
        ("num_pulls = 2\n[[arm]]\np01 = 0.3\np11 = 0.7", "the number of arms, 1, got 2"),
        (f"pay = 'never'\n{CHANNEL}", 'pay must be "pulled" or "always", got \'never\''),
        (f"pay = true\n{CHANNEL}", 'pay must be "pulled" or "always", got True'),
        ("num_pulls = = 2", "not valid TOML: Invalid value (at line 1"),
        ("num_pulls = 1\n[[arm]]\np01 = 0.3\np11 = 0.", "not valid TOML"),
        ("num_pulls = 1\n[[arm]]\np01 = 0.3\np11", "not valid TOML"),
        ("num_pulls = 1\n[[arm]]\np01 = 0.3\np01 = 0.3", "not valid TOML: Cannot overwrite"),
        ("", "num_pulls is missing"),
    ],
)
def test_a_file_that_is_no_problem_says_why(text, words):
    assert words in refusal(text)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ("p01 = 0.3", "p01 is given without p11"),
        ("p11 = 0.3", "p11 is given without p01"),
        ("p01 = 0.3\np11 = 0.7\nactive = [[1.0]]", "give p01 or active, not both"),
        ("p11 = 0.7\npassive = [[1.0]]", "give p11 or passive, not both"),
        ("rewards = [0, 1]", "needs p01 and p11, or active and rewards"),
        ("passive = [[1.0]]\nrewards = [1]", "needs p01 and p11, or active and rewards"),
        ("p01 = 1.5\np11 = 0.7", "p01 is 1.5, expected a probability in [0, 1]"),
        ("p01 = nan\np11 = 0.7", "p01 is nan, expected a probability in [0, 1]"),
        ("p01 = true\np11 = 0.7", "p01 must be a number, got True"),
        ("p01 = 1979-05-27\np11 = 0.7", "p01 must be a number"),
        ("p01 = [0.1]\np11 = 0.7", "p01 must be a number"),
        ("p01 = 0.3\np11 = 0.7\ncount = 0", "count must be a whole number of at least 1, got 0"),
        (
            "p01 = 0.3\np11 = 0.7\ncount = 2.0",
            "count must be a whole number of at least 1, got 2.0",
        ),
        (
            "p01 = 0.3\np11 = 0.7\ncount = true",
            "count must be a whole number of at least 1, got True",
        ),
        ("p01 = 0.3\np11 = 0.7\nrewards = [0, inf]", "rewards holds inf for state 1"),
        ("p01 = 0.3\np11 = 0.7\npassive_rewards = [0]", "passive_rewards must hold one number"),
        ("p01 = 0.3\np11 = 0.7\npassive_rewards = 'all'", "passive_rewards must be numbers"),
        ("p01 = 0.3\np11 = 0.7\nrewards = [0]", "rewards must hold one number per state, 2"),
        ("active = [[0.5, 0.4], [0, 1]]\nrewards = [0, 1]", "row 0 of active sums to 0.9"),
        ("active = [[0.5, 0.5]]\nrewards = [0, 1]", "active must be a square matrix"),
        ("active = [[0.5, 0.5], [1]]\nrewards = [0, 1]", "active must be numbers in a regular"),
        ("active = {a = 1}\nrewards = [0, 1]", "active must be numbers in a regular"),
        ("active = [[1.0]]", "rewards are missing, expected 1 numbers"),
        ("active = [[1.0]]\npassive = [[0.9]]\nrewards = [1]", "row 0 of passive sums to 0.9"),
    ],
)
def test_a_mistake_in_an_arm_names_the_arm_by_place_and_name(keys, words):
    first = "num_pulls = 1\n[[arm]]\np01 = 0.3\np11 = 0.7\ncount = 9\n[[arm]]\n"
    assert re.match(rf"\[\[arm]] number 2, line \d+: {re.escape(words)}", refusal(first + keys))
    named = refusal(f"{first}name = 'uplink'\n{keys}")
    assert re.match(rf"\[\[arm]] number 2 \('uplink'\), line \d+: {re.escape(words)}", named)


def test_all_mistakes_are_reported_at_once_in_the_order_of_their_lines():
    message = refusal(
        """
        stats = ["bad", "good"]
        num_pulls = 1.5
        pay = "never"
        [[arm]]
        p01 = 1.3
        p11 = -0.7
        rewards = [1]
        [[arm]]
        name = "uplink"
        active = [[0.5, 0.4], [0, 1]]
        passive = [[1, 0], [0, 2]]
        rewards = [0, 1]
        count = 0
        """
    )
    assert message.splitlines() == [
        "9 mistakes",
        "  line 2: unknown key 'stats'; did you mean 'states'?",
        "  line 3: num_pulls must be a whole number, got 1.5",
        '  line 4: pay must be "pulled" or "always", got \'never\'',
        "  [[arm]] number 1, line 6: p01 is 1.3, expected a probability in [0, 1]",
        "  [[arm]] number 1, line 7: p11 is -0.7, expected a probability in [0, 1]",
        "  [[arm]] number 1, line 8: rewards must hold one number per state, 2, got shape (1,)",
        "  [[arm]] number 2 ('uplink'), line 11: row 0 of active sums to 0.9, expected 1",
        "  [[arm]] number 2 ('uplink'), line 12: row 1 of passive holds 2, expected probabilities "
        "between 0 and 1",
        "  [[arm]] number 2 ('uplink'), line 14: count must be a whole number of at least 1, got 0",
    ]


def test_a_mistake_elsewhere_does_not_count_the_arms():
    """Five pulls of one arm would be a mistake; of arms that cannot be read nobody knows."""
    message = refusal("num_pulls = 5\n[[arm]]\np01 = 7\np11 = 0.5")
    assert message == "[[arm]] number 1, line 3: p01 is 7, expected a probability in [0, 1]"


def test_states_have_names_for_the_problem_or_for_an_arm():
    bandit = rs.RestlessBandit.from_toml(
        f"""states = ["bad", "good"]
        {CHANNEL}
        [[arm]]
        active = [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]]
        rewards = [0, 1, 2]
        states = ["dry", "damp", "wet"]
        """
    )
    assert [arm.states for arm in bandit] == [("bad", "good"), ("dry", "damp", "wet")]
    assert bandit.to_toml().count("states = ") == 2
    alike = rs.RestlessBandit([bandit[0]] * 3, 2)
    assert alike.to_toml().startswith('num_pulls = 2\nstates = ["bad", "good"]\n\n')


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"states = 3\n{CHANNEL}", "line 1: states must be a list of names, got 3"),
        (f"states = 'ab'\n{CHANNEL}", "line 1: states must be a list of names, got 'ab'"),
        (f"states = ['a', 'a']\n{CHANNEL}", "line 1: two states have the same name: ['a', 'a']"),
        (f"states = ['a', 2]\n{CHANNEL}", "line 1: a state's name must be text, got 2"),
        (
            f"states = ['a', 'b', 'c']\n{CHANNEL}",
            "[[arm]] number 1, line 3: has 2 states, the problem names 3 (a, b, c); give this arm "
            "states = [...] of its own",
        ),
        (
            f"{CHANNEL}states = ['a']",
            "[[arm]] number 1, line 5: states must hold one name for each of its 2 states, got 1",
        ),
    ],
)
def test_names_of_states_that_are_none(text, words):
    assert refusal(text) == words


def test_a_colon_in_a_name_does_not_garble_the_message():
    message = refusal("num_pulls = 1\n[[arm]]\nname = 'up: link'\np01 = 1.5\np11 = 0.7")
    assert message.startswith("[[arm]] number 1 ('up: link'), line 4: p01 is 1.5, expected")


def test_a_name_that_is_no_text_is_refused():
    assert refusal(CHANNEL + "name = 3") == "[[arm]] number 1, line 5: name must be text, got 3"


def test_a_slip_in_count_does_not_fill_the_memory():
    assert "at most 10,000,000, got 1000000000000" in refusal(CHANNEL + "count = 1_000_000_000_000")
    twice = CHANNEL + "count = 9_000_000\n[[arm]]\np01 = 0.3\np11 = 0.7\ncount = 9_000_000\n"
    assert "at most 10,000,000, got 18000000" in refusal(twice)


@pytest.mark.parametrize(
    "text",
    [
        f"num_pulls = 1\n[[arm]]\np01 = {'9' * 400}\np11 = 0.5",  # beyond what a float can hold
        f"num_pulls = {'9' * 5000}\n[[arm]]\np01 = 0.5\np11 = 0.5",  # beyond what python will read
        "num_pulls = " + "[" * 100_000,  # deeper than python can follow
        "num_pulls = 1\n[[arm]]\np01 = 0.5\np11 = 0.5\nrewards = " + "[" * 5000 + "]" * 5000,
    ],
    ids=["400 digits", "5000 digits", "open brackets", "deep brackets"],
)
def test_absurd_text_is_refused_like_any_other_mistake(text):
    refusal(text)


@given(st.text(max_size=80))
def test_no_text_raises_anything_but_a_problem_error(text):
    refusal(text)


@given(st.data())
def test_no_damage_to_a_good_text_raises_anything_but_a_problem_error(data):
    good = CHANNEL + "count = 2\nname = 'x'\n[[arm]]\nactive = [[0.5, 0.5], [1, 0]]\nrewards=[0, 1]"
    start = data.draw(st.integers(0, len(good)))
    stop = data.draw(st.integers(start, len(good)))
    put = data.draw(st.sampled_from(["", "[", "]", "=", "nan", "-1", "1e999", "'", "true", "\x00"]))
    with contextlib.suppress(rs.errors.ProblemError):
        rs.RestlessBandit.from_toml(good[:start] + put + good[stop:])


def test_load_names_the_file_and_the_place(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(CHANNEL.replace("0.7", "1.7"))
    with pytest.raises(rs.errors.ProblemError) as caught:
        rs.load_problem(path)
    assert str(caught.value).startswith(f"{path}: [[arm]] number 1, line 4: p11 is 1.7")


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path, paper_bandit):
    """As Notepad writes it, with its ends of lines."""
    path = tmp_path / "problem.toml"
    text = paper_bandit.to_toml().replace("\n", "\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert rs.load_problem(path) == paper_bandit


def test_load_reads_what_was_written(tmp_path, paper_bandit):
    path = tmp_path / "good.toml"
    path.write_text(paper_bandit.to_toml(), encoding="utf-8")
    assert rs.load_problem(path) == paper_bandit
    assert rs.load_problem(str(path)) == paper_bandit


def test_the_example_in_the_repository_is_the_instance_of_the_paper(paper_bandit, pytestconfig):
    assert rs.load_problem(pytestconfig.rootpath / "examples/paper_frequentist.toml") == (
        paper_bandit
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x89PNG\r\n\x1a\n\x00\x00", "not UTF-8 text (byte 0)"),
        (b"num_pulls = 1 # \xff", "not UTF-8 text (byte 16)"),
        (CHANNEL.encode("utf-16"), "not UTF-8 text"),
        (b"\x00\x00\x00", "not valid TOML"),
        (CHANNEL.encode()[:25], "not valid TOML"),
    ],
    ids=["png", "latin", "utf-16", "zeros", "truncated"],
)
def test_a_binary_or_truncated_file_is_told_as_such(tmp_path, content, words):
    path = tmp_path / "p.toml"
    path.write_bytes(content)
    with pytest.raises(rs.errors.ProblemError) as caught:
        rs.load_problem(path)
    assert str(caught.value).startswith(f"{path}: {words}")


def test_a_missing_file_and_a_folder_are_told_as_such(tmp_path):
    with pytest.raises(rs.errors.ProblemError, match=r"nothing\.toml: cannot be read: No such"):
        rs.load_problem(tmp_path / "nothing.toml")
    with pytest.raises(rs.errors.ProblemError, match="cannot be read: Is a directory"):
        rs.load_problem(tmp_path)


def test_numbers_that_python_writes_long_survive(tmp_path):
    rng = np.random.default_rng(7)
    arm = rs.Arm(rng.dirichlet(np.ones(7), 7), rng.dirichlet(np.ones(7), 7), rng.random(7))
    bandit = rs.RestlessBandit([arm, rs.gilbert_elliott(1e-300, 1 - 1e-16)], 1)
    assert rs.RestlessBandit.from_toml(bandit.to_toml()) == bandit


def test_what_never_ends_is_told_as_such(tmp_path):
    """A pipe that nobody writes to would be waited for, a device would fill the memory."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/null"):
        with pytest.raises(rs.errors.ProblemError, match="not a regular file"):
            rs.load_problem(path)
        with pytest.raises(rs.errors.ProblemError, match="not a regular file"):
            rs.load_study(path)


def test_line_ends_of_other_systems_are_line_ends(tmp_path, paper_bandit):
    path = tmp_path / "problem.toml"
    path.write_bytes(paper_bandit.to_toml().replace("\n", "\r\n").encode())
    assert rs.load_problem(path) == paper_bandit


@pytest.mark.parametrize("depth", [60, 200, 330, 470, 5000])
def test_tables_and_lists_that_are_nested_deeply(depth):
    """Deep enough for whatever walks them to fail, at some depth that TOML's reader still takes."""
    arm = "num_pulls = 1\n[[arm]]\np11 = 0.5\n"
    texts = (
        f"{arm}p01 = {'[' * depth}{']' * depth}",
        f"{arm}{'.'.join('a' * depth)} = 1",
        f"{arm}p01 = {'{a = ' * depth}1{'}' * depth}",
    )
    for text in texts:
        for read in (rs.RestlessBandit.from_toml, study_from_toml):
            with pytest.raises(rs.errors.ProblemError, match="nested too deeply"):
                read(text)


def test_who_loads_an_instance_of_the_zoo_as_a_file_is_told_how(tmp_path):
    with pytest.raises(rs.errors.ProblemError) as caught:
        rs.load_problem("paper-frequentist")
    hint = "; an instance of the zoo is zoo.load('paper-frequentist').bandit"
    assert str(caught.value).endswith(hint)
    for path in ("paper.toml", tmp_path / "paper", str(tmp_path)):
        with pytest.raises(rs.errors.ProblemError) as caught:
            rs.load_problem(path)
        assert "zoo" not in str(caught.value)


def test_rows_of_six_digits_are_taken_alike_in_python_problems_and_studies(tmp_path):
    rows = [[0.333333, 0.333333, 0.333333], [0.2, 0.3, 0.499999], [0.200001, 0.3, 0.5]]
    arm = f"active = {rows}\nrewards = [0, 0.5, 1]\n"
    direct = rs.Arm(rows, rewards=[0, 0.5, 1])
    path = tmp_path / "a.toml"
    path.write_text("num_pulls = 1\n" + 2 * f"[[arm]]\n{arm}")
    assert rs.load_problem(path).arms == (direct, direct)
    study = study_from_toml(
        'kind = "bayesian"\nhorizon = 9\nnum_pulls = 1\n[[prior.arm]]\ncount = 2\n'
        f"[[prior.arm.candidate]]\n{arm}"
    )
    prior = study.cases[0].settings.systems()[1]
    assert {arm for each in prior.arms for arm in each.candidates} == {direct}
