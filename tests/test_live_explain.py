"""Why somebody is on the list: every number against another way to it."""

import json

import numpy as np
import pytest

import restive as rs
from live_cases import PRIORS, created, memory_of, reply
from restive.errors import ProblemError
from restive.live.creating import rebuild_file

WORDS = {"arm": "patient", "pull": "call", "tick": "week", "reward": "adherent weeks"}


def lived(path, kind="equal", ticks=7, **options):
    """Return an agent with a decision that waits for results."""
    clock = rs.Clock.given("2026-11-16", "P7D")
    given = {"states": ["hung_up", "listened"], "num_arms": 9, "num_pulls": 3, **options}
    live = created(path, kind, clock=clock, words=WORDS, **given)
    for tick in range(ticks):
        arms = live.decide(tick=tick).arms
        live.record({name: reply(tick, name) for name in arms})
    live.decide(tick=ticks)
    return live


def chance_and_ends(live, name):
    """Chance of each state by each chain, from matrices alone: mean, and a 90% interval."""
    row, found = live.arm(name), live.posterior(name)
    since = live.tick - row.last_tick
    laws = np.array([
        active[row.last_state] @ np.linalg.matrix_power(passive, since - 1)
        for active, passive in zip(found.active, found.passive, strict=True)
    ])  # fmt: skip
    ends = []
    for state in range(laws.shape[1]):
        order = np.argsort(laws[:, state], kind="stable")
        summed = np.cumsum(found.weights[order])
        ends.append([laws[order[np.searchsorted(summed, q - 1e-12)], state] for q in (0.05, 0.95)])
    return found.weights @ laws, np.array(ends)


@pytest.mark.parametrize("kind", PRIORS)
def test_what_is_believed_and_how_sure_follow_from_the_chains(tmp_path, kind):
    live = lived(tmp_path / "a.db", kind)
    looked_at = 0
    for row in live.arms(limit=9):
        if row.last_state is None:
            continue
        why = live.explain(row.name)
        mean, ends = chance_and_ends(live, row.name)
        np.testing.assert_allclose(list(why.belief.values()), mean, atol=1e-9)
        np.testing.assert_allclose(list(why.low.values()), ends[:, 0], atol=1e-9)
        np.testing.assert_allclose(list(why.high.values()), ends[:, 1], atol=1e-9)
        assert list(why.belief) == ["hung_up", "listened"]
        assert why.expected == pytest.approx(mean[1])
        assert why.elapsed == live.tick - row.last_tick
        assert why.last_state == ["hung_up", "listened"][row.last_state]
        looked_at += 1
    assert looked_at >= 4


@pytest.mark.parametrize("audit", [0, 1])
def test_ranks_and_rivals_are_those_of_whoever_could_be_chosen(tmp_path, audit):
    live = lived(tmp_path / "a.db", audit_pulls=audit)
    gone, away = (row.name for row in live.arms(by="index")[:2])
    live.leave([gone])
    chosen = live.decide(tick=8, unavailable=[away])
    index = dict(zip([row.name for row in live.arms(limit=9)],
                     [row.index for row in live.arms(limit=9)], strict=True))  # fmt: skip
    ranked = [name for name in index if name not in (gone, away, *chosen.audit)]
    order = sorted(ranked, key=lambda name: (-index[name], int(name)))
    on = [name for name in order if name in chosen.arms]
    assert order[: len(on)] == on, "the list is the head of the order"
    for name in order:
        why = live.explain(name)
        assert (why.listed, why.audit, why.available) == (name in on, False, True)
        assert (why.index, why.rank) == (index[name], order.index(name) + 1)
        assert (why.num_ranked, why.num_listed) == (len(order), 3 - audit)
        assert why.rival == (order[len(on)] if why.listed else on[-1])
        assert why.rival_index == index[why.rival]
        assert (
            f"Rank {why.rank} of {len(order)} patients who can be on it; {3 - audit} are on the "
            "list by rank." in str(why)
        )
        first = "First not on the list" if why.listed else "Last on the list"
        assert f"{first}: {why.rival}, with {why.rival_index:.3f}." in str(why)
    for name in (gone, away, *chosen.audit):
        why = live.explain(name)
        assert (why.rank, why.rival, why.available) == (None, None, name in chosen.audit)
    assert f"{gone} left in week 7 (2027-01-04)." in str(live.explain(gone))
    assert f"{away} was said to be unavailable." in str(live.explain(away))
    for name in chosen.audit:
        assert "It was drawn evenly among all patients" in str(live.explain(name))


@pytest.mark.parametrize("audit", [0, 1])
def test_a_week_in_which_nobody_can_be_called_is_explained(tmp_path, audit):
    live = created(tmp_path / "a.db", audit_pulls=audit)
    names = [row.name for row in live.arms()]
    assert live.decide(unavailable=names).arms == ()
    assert f"{names[0]} was said to be unavailable." in str(live.explain(names[0]))
    live.leave(names[1:])
    live.decide()
    for name in names:
        why = live.explain(name)
        assert why.listed == (name == names[0])
        assert (f"{name} left in" in str(why)) == (name != names[0])


def test_who_came_back_after_the_list_was_not_unavailable(tmp_path):
    live = created(tmp_path / "a.db")
    name = live.arms()[0].name
    live.leave([name])
    live.decide()
    live.come_back([name])
    said = str(live.explain(name))
    assert f"{name} had left when the list was made, and can be on the next one." in said
    assert "unavailable" not in said


@pytest.mark.parametrize("seed", range(4))
def test_waiting_is_what_the_index_table_says(tmp_path, seed):
    live = lived(tmp_path / "a.db", ticks=7 + 2 * seed, seed=seed)
    agent = memory_of(live).agent
    policy, state = agent.sampled_policy, agent.belief_state
    waits = []
    for row in live.arms(limit=9):
        why, k = live.explain(row.name), int(row.name)
        table = policy.table(k)[state.last_state[k]]
        rival = (why.rival_index, -int(why.rival))
        ages = [n for n in range(state.elapsed[k], len(table) + 1) if (table[n - 1], -k) > rival]
        expected = None if why.listed or not ages else int(ages[0] - state.elapsed[k])
        assert why.waits == expected
        waits.append(why.waits)
        mean = rs.Arm(agent.posterior(k).mean().active, rewards=[0, 1])
        at_mean = rs.registry.policy_mapping("whittle").table(mean)
        age = min(state.elapsed[k], at_mean.shape[1])
        assert why.index_at_mean == at_mean[state.last_state[k], age - 1]
        if expected:
            weeks = f"{expected} week{'s' * (expected > 1)}"
            assert f"If nothing else changes, {row.name} is on it in {weeks}." in str(why)
        elif not why.listed:
            assert f"Waiting alone does not lift {row.name} that far" in str(why)
    assert any(waits) == (seed in (1, 3)), "so that both sentences are looked at"


def test_it_reads_well_and_results_since_are_told(tmp_path):
    live = lived(tmp_path / "a.db")
    name = next(name for name in live.decision().arms if len(live.history(name)) == 3)
    before = live.explain(name)
    seen = [(row["tick"], row["label"], row["state"]) for row in live.history(name)[:-1]]
    assert [(one.tick, one.date, one.state) for one in before.last] == [
        (tick, date, ["hung_up", "listened"][state]) for tick, date, state in seen
    ]
    lines = str(before).splitlines()
    assert lines[0] == f"{name} is on the list for week 7 (2027-01-04)."
    told = ", ".join(f"{one.state} ({one.date})" for one in reversed(before.last))
    ago = f"{before.elapsed} week{'s' * (before.elapsed > 1)} ago"
    assert lines[1] == f"Seen 2 times, last {ago}: {told}."
    chance, low, high = (d["listened"] for d in (before.belief, before.low, before.high))
    sure = f"(90% sure: {low:.0%} to {high:.0%})"
    assert lines[2] == f"Believed when the list was made: listened {chance:.0%} {sure}."
    assert lines[3] == f"A call is expected to bring {before.expected:.2f} adherent weeks."
    assert lines[4] == (
        f"Priority {before.index:.3f} under the possibility that is tried now, "
        f"{before.index_at_mean:.3f} for what is believed on average."
    )
    live.record({name: "listened"})
    after = live.explain(name)
    assert after.belief == before.belief
    assert after.rank == before.rank
    assert after.result == "listened"
    assert str(after).endswith("Since the list was made its result has come in: listened.")
    assert json.loads(json.dumps(after.to_json()))["last"][0]["date"] == before.last[0].date
    live.undo()
    assert live.explain(name) == before
    live.snapshot()
    with rs.LiveAgent.open(live.path) as again:
        assert again.explain(name) == before


def test_who_left_by_a_result_is_told_in_the_words_for_it(tmp_path):
    settings = {"outcomes": {"good": 1, "no_answer": "unseen", "wrong_number": "leave"}}
    live = lived(tmp_path / "a.db", **settings)
    gone, away, other = live.decision().arms
    live.record({gone: "wrong_number", away: "no_answer"})
    live.leave([away])
    results = [live.explain(name).result for name in (gone, away, other)]
    assert results == ["wrong number", "no answer", None]
    assert live.left_with([gone, away, other]) == {gone: 7}
    rebuild_file(live.path, tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        assert new.explain(gone).result == "wrong number"
        new.correct({gone: "good"}, 7, "it was the right one")
        assert new.left_with([gone]) == {}
    (tmp_path / "new.db").unlink()
    live.undo()
    live.record({other: "wrong_number"})
    live.undo()
    assert live.left_with([gone, away, other]) == {gone: 7}
    both = lived(tmp_path / "b.db", outcomes={"moved": "leave", "wrong_number": "leave"})
    first = both.decision().arms[0]
    both.record({first: "moved"})
    assert both.explain(first).result == "moved or wrong number", "which of them is not kept"


def test_after_a_rebuild_it_tells_what_is_known_now(tmp_path):
    live = lived(tmp_path / "a.db")
    name = next(name for name in live.decision().arms if len(live.history(name)) == 3)
    before, last = live.explain(name), live.history(name)[1]
    assert (before.rebuilt, before.to_json()["rebuilt"]) == (False, False)
    other = 1 - last["state"]
    live.correct({name: other}, tick=last["tick"], note="mixed up")
    assert live.explain(name) == before, "a correction counts after a rebuild"
    rebuild_file(live.path, tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        why = new.explain(name)
        assert (why.rebuilt, why.to_json()["rebuilt"], why.listed) == (True, True, True)
        assert why.last_state == ["hung_up", "listened"][other] != before.last_state
        mean, ends = chance_and_ends(new, name)
        np.testing.assert_allclose(list(why.belief.values()), mean, atol=1e-9)
        assert abs(why.belief["listened"] - before.belief["listened"]) > 0.01
        lines = str(why).splitlines()
        assert lines[0] == str(before).splitlines()[0]
        assert lines[1].startswith("The list was made before a correction or a rebuild took in all")
        sure = f"(90% sure: {ends[1, 0]:.0%} to {ends[1, 1]:.0%})"
        assert lines[3] == f"Believed now: listened {mean[1]:.0%} {sure}."
        new.decide(tick=8)
        later = new.explain(name)
        assert not later.rebuilt, "this list was made after it"
        assert "Believed when the list was made:" in str(later)


def test_those_who_were_never_seen_or_before_the_file_began(tmp_path):
    live = lived(tmp_path / "a.db", ticks=0)
    assert "Never seen yet, so what we believe is what patients of kind 'all' are like." in str(
        live.explain("0")
    )
    live.join(["new"], {"new": (1, 3)})
    with pytest.raises(ProblemError, match="patient 'new' joins with the next decision"):
        live.explain("new")
    live.decide(tick=1)
    assert "Last seen 4 weeks ago, before this file began: listened." in str(live.explain("new"))


def test_what_cannot_be_explained(tmp_path):
    live = created(tmp_path / "a.db")
    with pytest.raises(ProblemError, match="nothing has been decided yet, so there is no list"):
        live.explain("0")
    live.decide()
    with pytest.raises(ProblemError, match="there is no arm 'x'"):
        live.explain("x")


def test_a_rule_without_ranks_says_so(tmp_path):
    live = created(
        tmp_path / "a.db", num_arms=3, num_pulls=1, policy_mapping="optimal", max_elapsed=6
    )
    live.decide()
    why = live.explain("0")
    assert (why.index, why.rank, why.rival) == (None, None, None)
    assert "nobody has a rank of his own" in str(why)


def test_a_mean_index_and_arms_that_pay_anyway_are_told_as_such(tmp_path):
    base = rs.spread_prior(1, passive_rewards=(0, 1), points=8, controlled=True).arms[0]
    clock = rs.Clock.given("2026-11-16", "P7D")
    live = rs.LiveAgent.create(
        tmp_path / "a.db", rs.IndependentPrior([base] * 5), 2, learner="mean_index",
        missing="as-not-pulled", clock=clock, words=WORDS,
    )  # fmt: skip
    for tick in range(4):
        live.record({name: reply(tick, name) for name in live.decide(tick=tick).arms})
    name = live.decide(tick=4).arms[0]
    why, row, found = live.explain(name), live.arm(name), live.posterior(name)
    age, mean = live.tick - row.last_tick, 0.0
    for active, passive, weight in zip(found.active, found.passive, found.weights, strict=True):
        table = rs.policies.whittle_index(rs.Arm(active, passive, [0, 1], [0, 1])).index
        mean += weight * table[row.last_state, min(age, table.shape[1]) - 1]
    assert why.averaged
    assert why.index == pytest.approx(mean, abs=1e-9)
    assert f"Priority {mean:.3f} on average over all that {name} may be." in str(why)
    assert why.expected == why.expected_without == pytest.approx(list(why.belief.values())[1])
    assert (
        f"This week is expected to bring {why.expected:.2f} adherent weeks with a call or without; "
        "what a call changes shows in the weeks after." in str(why)
    )


def test_after_a_forgetting_it_tells_what_is_known_now_and_the_lists_own_numbers(tmp_path):
    live = lived(tmp_path / "a.db")
    name = next(name for name in live.decision().arms if len(live.history(name)) == 3)
    before = live.explain(name)
    assert not before.known_now
    last = live.history(name)[1]["tick"] + 1
    live.forget(last, [name])
    after = live.explain(name)
    listed, made = live.decision(), live.decision().arms.index(name)
    assert (after.known_now, after.rebuilt, after.listed) == (True, False, True)
    assert after.listed_expected == listed.expected[made] == before.expected
    assert after.listed_index == listed.index[made] == before.index
    assert after.belief != before.belief
    lines = str(after).splitlines()
    assert lines[1].startswith("The list was made before something was forgotten and stays as it")
    assert lines[2] == (
        f"When the list was made: {before.expected:.2f} adherent weeks expected of a call, "
        f"priority {before.index:.3f}."
    )
    assert "; none of this counts any more." in lines[3]
    assert "when the list was made" not in str(after)
    assert f"By what is known now, rank {after.rank} of" in str(after)
    live.undo()
    assert live.explain(name) == before
    live.remember(9)
    assert live.explain(name).lines[1].startswith("The list was made before the memory was changed")
    live.decide(tick=8)
    assert not live.explain(name).known_now, "this list knows it"


def test_late_results_are_known_now_and_were_not_when_the_list_was_made(tmp_path):
    live = lived(tmp_path / "a.db")
    first, second, *_ = live.decision().arms
    live.decide(tick=8)
    before = live.explain(first)
    live.record({first: "listened"}, 7)
    after = live.explain(first)
    assert (before.known_now, after.known_now) == (False, True)
    assert "The list was made before results of earlier weeks came and stays" in after.lines[1]
    live.undo()
    assert live.explain(first) == before
    live.record({second: "not-pulled"}, 7)
    assert live.explain(first) == before, "nothing was learned"


def test_who_leaves_after_the_list_was_made_was_ranked_in_it(tmp_path):
    live = lived(tmp_path / "a.db")
    on = live.decision().arms[0]
    off = next(row.name for row in live.arms() if row.name not in live.decision().arms)
    other = next(name for name in live.decision().arms if name != on)
    before = live.explain(other)
    live.leave([on, off])
    assert live.explain(other) == before
    lines = live.explain(on).lines
    assert lines[:2] == (
        f"{on} left in week 7 (2027-01-04).",
        "The list for week 7 (2027-01-04) was made before that.",
    )
    assert "is on the list" not in str(live.explain(on))


def test_resting_and_being_away_are_told_apart(tmp_path):
    live = lived(tmp_path / "a.db", ticks=7, rest=3)
    rests = live.decision().arms[0]
    live.record({rests: "unseen"})
    away = next(row.name for row in live.arms(by="index") if row.name not in live.decision().arms)
    live.decide(tick=8, unavailable=[away])
    why = live.explain(rests)
    assert (why.available, why.rests) == (False, True)
    assert f"{rests} rests after a call without a result." in why.lines
    why = live.explain(away)
    assert (why.available, why.rests) == (False, False)
    assert f"{away} was said to be unavailable." in why.lines
