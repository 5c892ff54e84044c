"""The call centre of examples/call_centre: its world against closed forms, its rules by hand."""

import importlib
import json
import sys
from dataclasses import replace
from math import inf, isnan, nan, sqrt
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app

DOCS = Path(__file__).parent.parent / "docs"
FOLDER = str(Path(__file__).parent.parent / "examples" / "call_centre")
sys.path.insert(0, FOLDER)
try:
    import rules
    import study
    import world as centre
finally:
    sys.path.remove(FOLDER)

PERSUADABLE, MOTIVATED, LOST = centre.MAIN.types
TINY = replace(centre.MAIN, people=40, calls=3, weeks=12)


def played(world, rule_of, seed=0):
    people = centre.draw_people(world, seed)
    programme = centre.programme_of(world, people)
    return people, centre.run(world, people, seed, rule_of(programme, seed))


def copies(count, *types):
    """People who are all there from the first week to the last: so many of each type."""
    numbers = np.repeat(np.array(types), count, axis=0)
    total = len(numbers)
    zeros = np.zeros(total, dtype=np.int64)
    return centre.People(zeros, numbers[:, :2], numbers[:, 2:], zeros, np.full(total, 10**6))


def scripted(weeks):
    """Return a rule that calls whom a list says, week by week."""
    return lambda week, people, known: np.array(weeks[week], dtype=np.int64)


def known_of(**columns):
    """Return what is known, from columns in which people are given by their numbers."""
    count = len(columns["seen"])
    full = {name: np.zeros(count, dtype=np.int64) for name in ("kind", "joined", "bad_calls")}
    full |= {name: np.full(count, -1) for name in ("called", "state")}
    return centre.Known(**(full | {name: np.array(each) for name, each in columns.items()}))


# The world


def test_people_whom_nobody_calls_follow_their_chains():
    people, outcome = played(centre.MAIN, rules.nobody)
    p01, p11 = people.alone.T
    settled = p01 / (p01 + 1 - p11)
    weeks_there = people.leaves - people.joins
    analytic = (settled * weeks_there).sum()
    assert outcome.expected.sum() == pytest.approx(analytic, rel=1e-12)
    # a chain's sum over weeks has less than (1 + l) / (1 - l) times the variance of even draws
    memory = p11 - p01
    variance = weeks_there * settled * (1 - settled) * (1 + abs(memory)) / (1 - abs(memory))
    assert abs(outcome.engaged.sum() - analytic) < 4 * sqrt(variance.sum())


def test_two_types_called_in_turn_by_matrices():
    count, weeks, reach = 4000, 9, 0.7
    people = copies(count, PERSUADABLE, LOST)
    world = replace(centre.MAIN, calls=count, weeks=weeks, reach=reach, late=0)
    first, second = np.arange(count), np.arange(count, 2 * count)
    outcome = centre.run(world, people, 3, scripted([first, second] * weeks))
    analytic = np.zeros(weeks)
    for which, (p01, p11, q01, q11) in enumerate((PERSUADABLE, LOST)):
        good = p01 / (p01 + 1 - p11)
        for week in range(weeks):
            analytic[week] += count * good
            alone, called = ((1 - good) * up + good * stay for up, stay in ((p01, p11), (q01, q11)))
            mixed = reach * called + (1 - reach) * alone
            good = mixed if week % 2 == which else alone
    np.testing.assert_allclose(outcome.engaged, analytic, atol=4 * sqrt(count / 2))
    np.testing.assert_allclose(outcome.expected, analytic, atol=4 * sqrt(count / 2))
    # what is expected given the calls has the same mean as what is counted
    assert outcome.expected.sum() == pytest.approx(outcome.engaged.sum(), rel=0.02)


def test_whoever_is_reached_moves_by_their_own_chain_of_called_weeks():
    world = replace(centre.MAIN, calls=2, weeks=6, reach=1.0, late=0)
    outcome = centre.run(world, copies(1, PERSUADABLE, LOST), 1, scripted([[1, 0]] * 6))
    for week in range(5):
        states = {report.person: report.state for report in outcome.reports if report.week == week}
        hoped = PERSUADABLE[2:][states[0]] + LOST[2:][states[1]]
        assert outcome.expected[week + 1] == pytest.approx(hoped)
        assert outcome.engaged[week] == sum(states.values())


def test_types_are_mixed_by_kind_and_spread_by_betas():
    world = replace(centre.MAIN, people=40_000, joining=0.0, concentration=inf)
    people = centre.draw_people(world, 1)
    for kind, shares in enumerate(world.shares):
        of_kind = people.alone[people.kind == kind]
        assert len(of_kind) == pytest.approx(20_000, abs=4 * 100)
        for each, share in zip(world.types, shares, strict=True):
            found = (of_kind == each[:2]).all(axis=1).mean()
            assert found == pytest.approx(share, abs=4 * sqrt(0.25 / len(of_kind)))
    spread = centre.draw_people(
        replace(world, types=(PERSUADABLE,), shares=((1.0,),), concentration=20.0), 1
    )
    for drawn, mean in zip(spread.alone.T, PERSUADABLE[:2], strict=True):
        assert drawn.mean() == pytest.approx(mean, abs=0.002)
        assert drawn.var() == pytest.approx(mean * (1 - mean) / 21, rel=0.05)
    assert (spread.called >= spread.alone).all()  # a call never hurts


def test_people_join_evenly_and_leave_by_their_hazard():
    world = replace(centre.MAIN, people=20_000, leaving=0.02)
    people = centre.draw_people(world, 2)
    assert len(people.kind) == 26_000
    joined = np.bincount(people.joins, minlength=world.weeks)
    assert joined[0] == 20_000
    assert joined[1:].sum() == 6000
    assert set(joined[1:]) <= {101, 102}
    assert (people.leaves > people.joins).all()
    there = [(people.leaves[:20_000] > week).mean() for week in range(world.weeks)]
    np.testing.assert_allclose(there, 0.98 ** np.arange(world.weeks), atol=4 * sqrt(0.25 / 20_000))
    assert (centre.draw_people(replace(world, leaving=0.0), 2).leaves == world.weeks).all()


@pytest.mark.parametrize("late", [0, 1, 3])
def test_nobody_is_called_while_a_result_is_due(late):
    world, heard = replace(TINY, late=late, weeks=30, calls=20), []

    def eager(week, people, known):
        heard.extend((week, report) for report in known.news)
        return people[: world.calls]  # the same ones, as soon as they can be

    _, outcome = played(world, lambda programme, seed: eager)
    weeks_of = {}
    for report in outcome.reports:
        weeks_of.setdefault(report.person, []).append(report.week)
    gaps = np.concatenate([np.diff(weeks) for weeks in weeks_of.values()])
    assert gaps.min() == late + 1
    # every result comes once, just when its person can be called again
    assert all(week == report.week + late + 1 for week, report in heard)
    assert [report for _, report in heard] == [
        report for report in outcome.reports if report.week + late + 1 < world.weeks
    ]


def test_a_rule_that_breaks_the_rules_is_told():
    world = replace(TINY, late=1)
    people = centre.draw_people(world, 0)
    newcomer = world.people + world.newcomers - 1
    for script, complaint in (
        ([[0, 1, 2, 3]], "the rule calls 4 people; there are 3 calls a week"),
        ([[5, 5]], "twice"),
        ([[newcomer]], f"person {newcomer} cannot be called now"),
        ([[7], [7]], "person 7 cannot be called now: not here, or a result is due"),
    ):
        with pytest.raises(ValueError, match=complaint):
            centre.run(world, people, 0, scripted(script))


def test_luck_does_not_depend_on_who_is_called():
    world = replace(centre.MAIN, weeks=12, leaving=0.0, late=0)
    people = centre.draw_people(world, 4)
    both = [np.arange(900, 950)] * 2  # called at last, whoever was called before
    some, others = (
        centre.run(world, people, 4, scripted([np.arange(first, first + 50)] * 10 + both))
        for first in (0, 200)
    )
    for week in (10, 11):
        first, second = (
            [report for report in each.reports if report.week == week] for each in (some, others)
        )
        assert first == second
        assert len({report.state for report in first}) == 3  # good, bad and not reached


def test_rules_that_call_the_same_people_see_the_same():
    (_, first), (_, second) = (
        played(TINY, maker)
        for maker in (rules.in_turn, lambda programme, seed: rules.in_turn(programme, seed + 1))
    )
    assert first.reports == second.reports
    np.testing.assert_array_equal(first.engaged, second.engaged)
    _, elsewhere = played(TINY, rules.in_turn, seed=1)
    assert first.reports != elsewhere.reports


def test_calls_reach_people_and_records_are_wrong_at_their_rates():
    base = replace(centre.MAIN, people=10_000, calls=5000, weeks=8)
    right, flipped, some = (
        played(replace(base, wrong=wrong), rules.in_turn)[1] for wrong in (0.0, 1.0, 0.05)
    )
    states, opposite, noisy = (
        np.array([report.state for report in each.reports]) for each in (right, flipped, some)
    )
    reached = states != centre.NOBODY
    assert reached.mean() == pytest.approx(0.7, abs=4 * sqrt(0.21 / len(states)))
    np.testing.assert_array_equal(states[reached], 1 - opposite[reached])
    np.testing.assert_array_equal(reached, opposite != centre.NOBODY)
    share = (states != noisy).sum() / reached.sum()
    assert share == pytest.approx(0.05, abs=4 * sqrt(0.05 / reached.sum()))
    people = np.array([report.person for report in right.reports])
    wrong_about, right_about = (set(people[reached & (noisy == e)]) for e in (1 - states, states))
    assert wrong_about & right_about  # in another week
    # records are wrong, people are not
    np.testing.assert_array_equal(right.engaged, flipped.engaged)


def test_calls_of_late_take_away_from_the_effect_of_the_next():
    world = replace(centre.MAIN, calls=1, weeks=7, reach=1.0, late=0, tiring=0.5, tired_weeks=2)
    p01, p11, q01, q11 = PERSUADABLE
    calls = [[0], [0], [0], [0], [], [], [0]]
    outcome = centre.run(world, copies(1, PERSUADABLE), 5, scripted(calls))
    effects = [1, 0.5, 0.25, 0.25]  # calls of the two weeks before: none, 1, 2, 2
    for week, effect in enumerate(effects):
        alone, called = ((p01, q01), (p11, q11))[outcome.engaged[week]]
        assert outcome.expected[week + 1] == pytest.approx(alone + effect * (called - alone))


def test_a_shock_halves_p01_for_some_weeks():
    world = replace(centre.MAIN, weeks=8, shock_week=3, shock_weeks=2, shock_factor=0.5)
    nobody = scripted([[]] * world.weeks)
    outcome = centre.run(world, copies(1, PERSUADABLE), 0, nobody)
    p01, p11 = PERSUADABLE[:2]
    good = p01 / (p01 + 1 - p11)
    for week in range(world.weeks):
        assert outcome.expected[week] == pytest.approx(good)
        up = p01 / 2 if week in (3, 4) else p01
        good = (1 - good) * up + good * p11


def test_whoever_joins_during_a_shock_starts_as_if_there_had_been_none():
    world = replace(centre.MAIN, weeks=8, shock_week=0, shock_weeks=4, shock_factor=0.5)
    people = replace(copies(4000, PERSUADABLE), joins=np.full(4000, 3))
    outcome = centre.run(world, people, 0, scripted([[]] * world.weeks))
    p01, p11 = PERSUADABLE[:2]
    settled = p01 / (p01 + 1 - p11)
    after = (1 - settled) * p01 / 2 + settled * p11
    shares = [0, 0, 0, settled, after]
    np.testing.assert_allclose(outcome.expected[:5] / 4000, shares)
    np.testing.assert_allclose(outcome.engaged[:5] / 4000, shares, atol=4 * sqrt(0.2 / 4000))


def test_drawn_worlds_are_worlds_that_differ():
    worlds = [centre.world_named(f"drawn-{seed}") for seed in range(centre.DRAWN)]
    assert worlds == [centre.drawn_world(seed) for seed in range(centre.DRAWN)]
    assert len(set(worlds)) == centre.DRAWN
    for world in worlds:
        types = np.array(world.types)
        assert ((types > 0) & (types < 1)).all()
        assert (types[:, 2:] >= types[:, :2]).all()
        np.testing.assert_allclose(np.sum(world.shares, axis=1), 1)
        assert 1 <= world.calls < world.people
    with pytest.raises(SystemExit, match=r"no world 'mian'; try main, small"):
        centre.world_named("mian")


def test_numbers_that_make_no_world_are_refused():
    for wrong, complaint in (
        ({"shares": ((0.5, 0.5),)}, "a share of every type"),
        ({"shares": ((0.5, 0.5, 0.1),)}, "1 in all"),
        ({"late": -1}, "calls and late 0"),
        ({"weeks": 0}, "1 at least"),
    ):
        with pytest.raises(ValueError, match=complaint):
            replace(centre.MAIN, **wrong)


def test_the_history_is_of_other_people_each_called_six_weeks_running(monkeypatch):
    seeds, draw = [], centre.draw_people
    monkeypatch.setattr(centre, "draw_people", lambda w, seed: seeds.append(seed) or draw(w, seed))
    reports = centre.history(centre.MAIN, 0).reports
    assert min(seeds) > 1000  # not the study's people
    assert len(reports) == 500 * 6
    weeks_of = {}
    for report in reports:
        weeks_of.setdefault(report.person, []).append(report.week)
    assert len(weeks_of) == 500
    for person, weeks in weeks_of.items():
        assert weeks == list(range(person // 50 * 6, person // 50 * 6 + 6))


# Rules


PROGRAMME = centre.Programme(calls=2, weeks=10, kind=np.zeros(6, dtype=np.int64))
EVERYONE = np.arange(6)


def test_in_turn_calls_whoever_has_waited_longest():
    known = known_of(called=[4, 2, -1, 3, -1, -1], joined=[0, 0, 3, 0, 1, 5], seen=[-1] * 6)
    # waiting since 4, 2, 3, 3, 1, 5
    rule = rules.in_turn(PROGRAMME, 0)
    assert rule(6, EVERYONE, known).tolist() == [4, 1]
    assert rule(6, np.array([0, 2, 3, 5]), known).tolist() == [2, 3]


def test_worst_first_and_when_it_gives_up():
    known = known_of(
        state=[0, 1, -1, 0, 0, 1], seen=[3, 1, -1, 1, 2, 0], bad_calls=[1, 0, 0, 2, 1, 0]
    )
    everyone = replace(PROGRAMME, calls=6)
    bad_first, patience = (
        maker(everyone, 0)(4, EVERYONE, known).tolist()
        for maker in (rules.worst_first, rules.give_up)
    )
    assert bad_first == [3, 4, 0, 2, 5, 1]
    assert patience == [4, 0, 2, 5, 1, 3]
    assert rules.give_up(PROGRAMME, 0)(4, EVERYONE, known).tolist() == [4, 0]


def test_bad_calls_are_counted_without_a_break():
    known = known_of(seen=[-1] * 2)
    for week, state in enumerate([0, 0, -1, 0, 1, 0]):
        known.take_in([centre.Report(1, week, state)])
        counted = [1, 2, 2, 3, 0, 1][week]
        assert known.bad_calls.tolist() == [0, counted]
        if state != -1:
            assert (known.seen[1], known.state[1]) == (week, state)
    assert known.seen[0] == centre.NEVER


def test_whoever_was_called_of_late_rests():
    seen = {}

    def noting(programme, seed):
        rule = rules.rested(programme, seed)

        def note(week, people, known):
            called = rule(week, people, known)
            for k in called.tolist():
                assert week - seen.get(k, -99) > rules.REST
                seen[k] = week
            return called

        return note

    played(replace(TINY, people=60, calls=2, weeks=16), noting)
    assert len(seen) > rules.REST


def test_random_calls_anyone_alike():
    rule = rules.at_random(PROGRAMME, 1)
    called = np.concatenate([rule(0, np.array([1, 3, 4]), None) for _ in range(600)])
    np.testing.assert_allclose(np.bincount(called, minlength=5), [0, 400, 0, 400, 400], atol=60)


def test_the_oracle_ranks_by_whittles_index_of_each_persons_chains():
    types = (PERSUADABLE, MOTIVATED, LOST)
    oracle = rules.oracle(replace(PROGRAMME, calls=3), copies(1, *types))
    week = 9
    for state, seen in (([0, 0, 0], [8, 5, 2]), ([1, 0, 1], [8, 8, 8]), ([-1, 1, 0], [-1, 8, 3])):
        index = []
        for (p01, p11, q01, q11), last, when in zip(types, state, seen, strict=True):
            arm = rs.Arm(
                [[1 - q01, q01], [1 - q11, q11]], [[1 - p01, p01], [1 - p11, p11]], [0, 1], [0, 1]
            )
            table = rs.policies.whittle_index(arm, max_elapsed=400).index
            index.append(table[last, week - when - 1] if when >= 0 else table[0, -1])
        called = oracle(week, np.arange(3), known_of(state=state, seen=seen))
        assert called.tolist() == np.argsort(index)[::-1].tolist()


def test_the_oracle_adds_most():
    adds = {
        name: np.mean([study.play(centre.VARIANTS["small"], name, seed).adds for seed in range(3)])
        for name in ("oracle", "in turn", "random", "worst first", "give up after two")
    }
    assert adds["oracle"] > 2 * max(adds[name] for name in adds if name != "oracle")
    assert min(adds.values()) > 0


def test_a_learner_does_as_an_agent_that_is_shown_everything_in_time():
    world = replace(TINY, reach=1.0, late=0, joining=0.0, leaving=0.0, weeks=25)
    people = centre.draw_people(world, 6)
    programme = centre.programme_of(world, people)
    outcome = centre.run(world, people, 6, rules.tsde_flat(programme, 6))
    count = len(people.kind)
    agent = rs.TSDE(
        rules.flat_prior(programme), world.calls, horizon=world.weeks, seed=6,
        start=rs.BeliefState([1] * count, [rules.OLD] * count),
    )  # fmt: skip
    for week in range(world.weeks):
        reports = [report for report in outcome.reports if report.week == week]
        assert agent.select().tolist() == [report.person for report in reports]
        agent.observe([report.state for report in reports])


def test_learners_are_what_their_names_say(monkeypatch):
    programme = replace(PROGRAMME, kind=np.array([0, 1, 0, 1, 1, 0]))
    monkeypatch.setattr(rules, "learner", lambda name, prior, *rest, **more: (name, prior.pooled))
    made = {name: maker(programme, 0) for name, maker in rules.RULES.items()}
    assert made["TSDE flat"] == ("tsde", [])
    assert made["TSDE pooled"] == ("tsde", [[0, 2, 5], [1, 3, 4]])


def test_the_path_without_history_decides_as_a_live_agent_does(tmp_path):
    """Made by `live init`, fed week by week: late results, unreached, joining and leaving."""
    world = replace(TINY, people=24, weeks=14, leaving=0.02, late=1)
    people = centre.draw_people(world, 2)
    programme = centre.programme_of(world, people)
    names = [f"P{k}" for k in range(len(people.kind))]
    sheet = "arm,kind\n" + "".join(
        f"{name},{kind}\n" for name, kind in zip(names, people.kind, strict=True)
    )
    (tmp_path / "people.csv").write_text(sheet, encoding="utf-8")
    given = ["live", "init", str(tmp_path / "a.db"), "--states", "drifting,engaged", "--controlled",
             "--pay", "always", "--pulls", "3", "--arms", str(tmp_path / "people.csv"),
             "--clock", "given", "--rest", "1"]  # fmt: skip
    CliRunner().invoke(app, given, catch_exceptions=False)
    live = rs.LiveAgent.open(tmp_path / "a.db")
    rule = rules.no_history(programme, 0)

    def both(week, can, known):
        for report in known.news:
            result = "not-pulled" if report.state == centre.NOBODY else report.state
            live.record({names[report.person]: result}, tick=report.week)
        out = set(names) - {names[k] for k in can}
        count = min(world.calls, len(can))
        decided = live.decide(tick=week, num_pulls=count, unavailable=out).arms
        called = rule(week, can, known)
        assert sorted(decided) == sorted(names[k] for k in called)
        return called

    centre.run(world, people, 2, both)


@pytest.mark.parametrize("name", [*rules.RULES, *rules.TOLD])
def test_every_rule_can_play_every_kind_of_world(name):
    hard = replace(TINY, wrong=0.05, tiring=0.5, tired_weeks=8, shock_week=6, shock_weeks=3,
                   shock_factor=0.5, late=2, people=8, calls=6)  # fmt: skip
    year = study.play(hard, name, 0)  # more calls than people who can be called
    assert np.isfinite(year.adds)


# The study


def test_intervals_are_students():
    for count, quantile in ((2, 12.7062), (3, 4.30265), (4, 3.18245), (20, 2.09302)):
        assert study.student_quantile(count) == pytest.approx(quantile, rel=1e-4)
    mean, half_width = study.interval(np.array([1.0, 2.0, 3.0, 4.0]))
    assert mean == 2.5
    assert half_width == pytest.approx(3.18245 * sqrt(5 / 3) / 2, rel=1e-4)
    assert isnan(study.interval(np.array([1.0]))[1])


def test_words_follow_intervals():
    assert study.verdict(5, 4) == "better than in turn"
    assert study.verdict(-5, 4) == "worse than in turn"
    assert study.verdict(3, 4) == study.verdict(-3, 4) == "no difference shown"
    assert study.verdict(3, nan) == "no difference shown"


def test_the_command_writes_what_it_measured(tmp_path, capsys):
    arguments = ["--world", "small", "--rules", "random", "--jobs", "1", "--out", str(tmp_path)]
    study.main([*arguments, "--seeds", "3"])
    shown = capsys.readouterr().out
    assert shown.strip() == (tmp_path / "small.txt").read_text().strip()
    figures = json.loads((tmp_path / "small.json").read_text())
    adds = {
        name: np.array([study.play(centre.VARIANTS["small"], name, s).adds for s in range(3)])
        for name in ("in turn", "random")
    }
    for name, row in figures["rules"].items():
        assert row["adds_by_seed"] == adds[name].tolist()
        gaps = adds[name] - adds["in turn"]
        assert row["over_in_turn"] == gaps.mean()
        half_width = 4.30265 * gaps.std(ddof=1) / sqrt(3)
        assert row["over_in_turn_half_width"] == pytest.approx(half_width, rel=1e-4)
    assert "200 people, 5 calls a week, 60 weeks; 3 seeds" in shown
    assert f"{adds['random'].mean():,.0f} ±" in shown


# The page


def tables():
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module("call_centre_tables")
    finally:
        sys.path.remove(str(DOCS))


def test_the_page_says_what_the_figures_say():
    made = tables()
    text = made.PAGE.read_text(encoding="utf-8")
    figures = json.loads(made.STORED.read_text(encoding="utf-8"))
    assert made.page_text(text, figures) == text
    assert len(figures["main"]["adds"]) == len(study.NAMES)
    assert figures["main"]["seeds"] == 20
    share = {name: made.percent(figures["main"], name)[0] for name in made.OURS}
    assert [share[name] >= goal for name, goal in zip(made.OURS, (20, 35, 50), strict=True)]


def test_words_of_the_page_follow_intervals():
    made = tables()
    world = {"adds": {"in turn": [100, 110, 90], "a": [120, 131, 110], "b": [80, 91, 70],
                      "c": [90, 130, 90]}}  # fmt: skip
    assert made.verdict(world, "a", "in turn") == "better than “in turn”, by 20 ± 1"
    assert made.verdict(world, "b", "in turn") == "worse than “in turn”, by 20 ± 1"
    assert made.verdict(world, "c", "in turn").startswith("not told apart from “in turn” (+3 ±")
    mean, half = made.percent(world, "a")
    assert (round(mean, 1), round(half, 1)) == (20.3, 1.4)


@pytest.mark.parametrize(
    ("world", "name", "seed"),
    [
        ("main", "mean index, no history", 3),
        ("small", "mean index, law given", 2),
        ("tiring", "give up after two", 5),
    ],
)
def test_stored_seeds_come_again_to_the_bit(world, name, seed):
    stored = json.loads(tables().STORED.read_text(encoding="utf-8"))[world]["adds"][name]
    assert study.play(centre.world_named(world), name, seed).adds == stored[seed]
