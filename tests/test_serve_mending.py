"""On the page, any result can be put right, whenever and however it came."""

import csv
import html
import io
import re

import pytest

import restive as rs
from live_cases import created
from restive.live.acts.recording import Batch
from restive.live.creating import rebuild_file
from serve_cases import Client, served
from test_serve import refused

OUTCOMES = {"good": 1, "bad": 0, "no_answer": "not-pulled", "wrong_number": "leave"}


class Desk:
    """Somebody at the page, with a token."""

    def __init__(self, app, live, role):
        secret = live.make_token(role, role)
        self.client = Client(app, secret, base_url="http://testserver")

    def sees(self, path="/"):
        return self.client.get(path).text

    def does(self, path, **fields):
        """Send a form; return what the page says then."""
        answer = self.client.post(path, data=fields)
        assert answer.status_code == 303
        page = self.sees(answer.headers["location"])
        return html.unescape(re.search(r"<output[^>]*>(.*?)</output>", page, re.S)[1])


@pytest.fixture
def office(tmp_path):
    clock = rs.Clock.given("2026-11-16", "P7D")
    with served(tmp_path / "a.db", clock=clock, outcomes=OUTCOMES, num_pulls=3) as (app, live):
        yield app, live, Desk(app, live, "act"), Desk(app, live, "admin")


def test_a_result_of_a_file_of_this_week_is_changed(office):
    _, live, desk, _ = office
    arms = live.decide(tick=0).arms
    live.record_batches([Batch(0, dict.fromkeys(arms, 0))], actor="file")
    assert desk.sees().count('action="/change"') == 3
    assert 'class="undo"' not in desk.sees()  # it is not the page's work
    said = desk.does("/change", arm=arms[1], tick=0, result="good")
    assert said == f"{arms[1]}: good now, and no longer bad."
    assert live.results() == {arms[0]: 0, arms[1]: 1, arms[2]: 0}
    rows = list(csv.DictReader(io.StringIO(desk.sees("/decisions/0.csv"))))
    assert [row["outcome"] for row in rows] == ["bad", "good", "bad"]  # what is in, is in it


def test_a_late_wrong_number_is_changed_by_whoever_typed_it(office):
    _, live, desk, _ = office
    gone, *_ = live.decide(tick=0).arms
    live.decide(tick=1)
    assert "is on no list any more" in desk.does("/record", arm=gone, tick=0, result="wrong_number")
    assert live.arm(gone).left == 1
    assert f'name="arm" value="{gone}"' in desk.sees().partition("Results of earlier")[2]
    said = desk.does("/change", arm=gone, tick=0, result="good")
    assert said == f"{gone}: good now, and no longer wrong number."
    assert live.arm(gone).left is None


def test_an_older_result_is_corrected_by_whoever_manages(office):
    _, live, desk, manager = office
    gone, other, third = live.decide(tick=0).arms
    live.record({gone: "wrong_number", other: "good", third: "good"})
    live.decide(tick=1)
    page = f"/arms/{gone}"
    assert "ask somebody who signs in with a managing token" in desk.sees(page)
    assert 'action="/correct"' not in desk.sees(page)
    body = {"arm": gone, "tick": 0, "result": "good", "back": "arm"}
    refused(desk.client.post("/correct", data=body), 403, "needs a token of role admin")
    assert 'action="/correct"' in manager.sees(page)
    said = manager.does("/correct", **body)
    assert said == (
        f"Corrected: {gone} in tick 0: good. {gone} is back, and can be on the next list. Lists "
        "that were made stay as they are; the next one knows it."
    )
    assert (live.results(0)[gone], live.arm(gone).left) == (1, None)
    assert live.status().corrections == 0  # a rebuild has taken it in
    assert live.decision(0).arms == (gone, other, third)
    assert (
        live.belief(gone)[1] == pytest.approx(live.belief(third)[1]) or gone in live.decision().arms
    )
    said = manager.does("/correct", arm=other, tick=0, result="wrong_number")
    assert f"{other} is on no list any more." in said
    assert live.arm(other).left == 1
    live.check()
    assert manager.does("/correct", arm="nobody", tick=0, result="good").startswith("there is no")


def test_corrections_that_wait_can_be_taken_in_on_the_page(office):
    _, live, desk, manager = office
    arm = live.decide(tick=0).arms[0]
    live.record({arm: "good"})
    live.decide(tick=1)
    live.correct({arm: "bad"}, 0, "a slip")
    assert "1 correction is noted and not counted yet" in desk.sees()
    assert 'action="/take-in"' not in desk.sees()
    assert 'action="/take-in"' in manager.sees()
    assert "the next one knows it" in manager.does("/take-in")
    assert live.results(0)[arm] == 0
    assert 'action="/take-in"' not in manager.sees()


def test_who_left_by_mistake_comes_back_and_names_differ_by_more_than_capitals(office):
    _, live, desk, manager = office
    live.decide(tick=0)
    manager.does("/join", name="Zoe", kind=live.kinds[0])
    live.decide(tick=1)
    assert "Yes, Zoe leaves" in manager.sees("/arms/Zoe")
    assert "leaves" not in desk.sees("/arms/Zoe").partition("<main>")[2].partition("Who joins")[0]
    manager.does("/leave", arm="Zoe", back="arm")
    live.decide(tick=2)
    assert "Zoe left in tick 1" in desk.sees("/arms/Zoe")
    said = manager.does("/join", name="Zoe", arm="Zoe", back="arm")
    assert said == "Zoe is back, and can be on the next list."
    assert live.arm("Zoe").left is None
    said = manager.does("/join", name="ZOE", kind=live.kinds[0])
    assert said.startswith("there is Zoe already. A new name must differ by more than capitals")
    assert manager.does("/record", arm="zoe", result="good").startswith(
        "arm 'zoe': there is no arm 'zoe'; did you mean 'Zoe'?"
    )


def test_undo_asks_before_it_takes_back_what_somebody_else_did(office):
    _, live, desk, manager = office
    arm = live.decide(tick=0).arms[0]
    desk.does("/record", arm=arm, tick=0, result="good")
    assert "did this, not you" not in desk.sees()
    assert "<span>act did this, not you.</span>" in manager.sees()
    live.decide(tick=1, actor="command line")
    assert 'class="undo"' not in desk.sees()


def test_a_file_that_was_rebuilt_into_another_is_only_looked_at(tmp_path):
    live = created(tmp_path / "old.db")
    live.decide()
    with served(None, agent=live) as (app, _):
        manager = Desk(app, live, "admin")
        assert manager.client.get("/readyz").status_code == 200
        arm = live.decision().arms[0]
        rebuild_file(live.path, tmp_path / "new.db")
        sentence = "old.db was rebuilt, and new.db goes on where it ended. Here you can only look."
        for path in ("/", "/arms", f"/arms/{arm}", "/known"):
            page = manager.sees(path)
            assert sentence in page
            assert "restive serve new.db" in page
            assert re.findall('action="([^"]*)"', page.partition("</nav>")[2]) in ([], ["/arms"])
        refused(manager.client.get("/readyz"), 503, sentence)
        said = manager.does("/record", arm=arm, result="1")
        assert "old.db: was rebuilt, and new.db goes on where it ended; nothing was changed" in said
        assert (
            "Use new.db from now on (old.db is written to again only if new.db is deleted)" in said
        )


def test_what_was_undone_after_a_rebuild_would_be_lost(tmp_path):
    """A rebuild remembers which files were recorded, so its results are not undone beneath that."""
    live = created(tmp_path / "old.db")
    arms = live.decide().arms
    live.record(dict.fromkeys(arms, 1), request="a file")
    live.close()
    rebuild_file(tmp_path / "old.db", tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        assert new.last_act() is None
        with pytest.raises(rs.errors.ProblemError, match="nothing to undo"):
            new.undo()
        assert set(new.results().values()) == {1}


def test_who_leaves_while_on_the_open_list_is_not_called(office):
    _, live, desk, manager = office
    gone, told, other = live.decide(tick=0).arms
    said = manager.does("/leave", arm=gone, back="arm")
    assert said == f"{gone} has left: no pull any more, though on this list."
    live.record({told: "good"})
    live.leave([told])
    page = desk.sees()
    card = re.search(rf"<tr[^>]*>(?:(?!</tr>).)*>{gone}</a>.*?</tr>", page, re.S)[0]
    assert "has left: no pull" in card
    assert "<button" not in card
    assert f'name="arm" value="{other}"' in page
    assert "Download the list (2 arms)" in page
    rows = list(csv.DictReader(io.StringIO(desk.sees("/decisions/0.csv"))))
    assert [(row["arm"], row["outcome"]) for row in rows] == [(told, "good"), (other, "")]
    answer = desk.client.get("/v1/decisions/0").json()
    assert (answer["arms"], answer["left"]) == ([gone, told, other], [gone])
    own = html.unescape(re.sub(r"<[^>]*>", "", desk.sees(f"/arms/{gone}")))
    assert f"{gone} left in tick 0: no pull, though {gone} is still on the list" in own
    assert "is on no list any more" not in own
    assert "is on the list for" not in own
    assert "is on no list any more" in desk.sees(f"/arms/{told}")
    live.decide(tick=1)
    assert "is on no list any more" in desk.sees(f"/arms/{gone}")


def test_after_a_wrong_number_that_was_none_the_pull_has_the_files_own_word(office):
    _, live, desk, manager = office
    gone, *others = live.decide(tick=0).arms
    live.record({gone: "wrong_number", others[0]: "no_answer"})
    said = manager.does("/join", name=gone, arm=gone, back="arm")
    assert said == (
        f"{gone} is back, and can be on the next list. Now put right what came of the pull in "
        "tick 0 (2026-11-16)."
    )
    page = desk.sees(f"/arms/{gone}") + desk.sees()
    assert "<b>not reached</b>" not in page
    assert "<b>no answer</b>" in page
    assert "2 no answer" in page
    live.record({others[1]: "unseen"})
    live.decide(tick=1)
    live.decide(tick=2)
    assert "3 of earlier ticks not here yet" in desk.sees()
