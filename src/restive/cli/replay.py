"""`restive replay`: what other policies would have earned in a log."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.cli.log_options import (
    ArmColumn,
    AsJson,
    By,
    LogFile,
    Pulled,
    Rewards,
    RewardWords,
    SameStep,
    Seed,
    SkipBad,
    State,
    StateFrom,
    States,
    Step,
    Time,
    Unit,
    Zone,
    doubt_rows,
    finite,
    load,
    names,
    numbers,
    unpulled,
)
from restive.cli.progress import bar
from restive.cli.speech import flags_of, spoken
from restive.cli.tables import print_lines, print_table
from restive.cli.world import Controlled, Pay, Seen, asked_world

if TYPE_CHECKING:
    from restive.logs.decision_words import Units
    from restive.logs.replay import Replay

__all__ = ["replay"]


def replay(
    log: LogFile,
    pulls: Annotated[int, typer.Option(min=1, help="Arms that policies pull each step.")],
    time: Time = None,
    arm: ArmColumn = None,
    policies: Annotated[
        str,
        typer.Option(
            help="Names with commas; learners as tsde, tsde:myopic, tsde(forget_after=300)."
        ),
    ] = "whittle,myopic,best_fixed,round_robin,random",
    prior: Annotated[
        Path | None, typer.Option(help="Priors of the kinds: a prior.json of `restive fit`.")
    ] = None,
    state: State = None,
    state_from: StateFrom = None,
    states: States = None,
    step: Step = None,
    zone: Zone = None,
    by: By = None,
    pulled: Pulled = None,
    same_step: SameStep = "error",
    skip_bad: SkipBad = False,
    rewards: Rewards = None,
    pay: Pay = None,
    controlled: Controlled = None,
    seen: Seen = "pulled",
    split: Annotated[
        float, typer.Option(help="Share of the steps to fit on; policies play on the rest.")
    ] = 0.5,
    random_pulls: Annotated[
        bool,
        typer.Option("--random-pulls", help="The pulls in the log were drawn evenly at random."),
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Print figures even if the model missed the log's own.")
    ] = False,
    worlds: Annotated[
        int, typer.Option(min=20, help="Number of worlds drawn from the model.")
    ] = 200,
    unit: Unit = "pulls",
    reward: RewardWords = "reward",
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Estimate what other policies would have earned in a log.

    Arms are fitted on the earlier part of the log; policies play on the later part.
    """
    from restive.arguments import checked_text
    from restive.logs.decision_words import units_of
    from restive.logs.prior_file import load_prior
    from restive.logs.replay import replay_log
    from restive.logs.replay_words import replay_sentence

    units = units_of(checked_text(unit, "--unit"), checked_text(reward, "--reward"), step, arm)
    world = asked_world(controlled, pay, ask=False)
    kinds: Any = None if prior is None else load_prior(prior)
    with bar(f"replaying {log.name}") as progress:
        found = load(
            log, time, arm, state, state_from, states, step, zone, by, pulled, same_step, skip_bad,
            progress,
        )  # fmt: skip
        played = replay_log(
            found,
            pulls,
            names(policies),
            prior=None if kinds is None else kinds.kinds,
            rewards=numbers(rewards),
            passive_rewards=unpulled(world, found, rewards),
            controlled=world.controlled,
            seen=seen,
            split=split,
            random_pulls=random_pulls,
            anyway=anyway,
            worlds=worlds,
            seed=seed,
            progress=progress,
        )
    doubt_rows(found, pulls, seen, units)
    if kinds is not None and kinds.log.get("span") == found.span:
        note = "the prior was fitted on this log, the part that policies play on included"
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps(_replay_data(played), indent=2))
    else:
        _print_replay(played, units, world.pays_always and seen != "always")
        print_lines(["", replay_sentence(played, units)])


def _replay_data(played: Replay) -> dict[str, Any]:
    from restive.logs.forgetting_words import forgetting_data

    return {
        "from": played.log.label(played.split),
        "steps": played.num_steps,
        "num_pulls": played.num_pulls,
        "logged": {"per_step": played.logged_per_step, "pulls_per_step": played.logged_pulls},
        "calibration": None
        if played.calibration is None
        else {
            **asdict(played.calibration),
            "low": played.calibration.low,
            "high": played.calibration.high,
            "holds": played.calibration.holds,
        },
        "policies": [
            {
                key: finite(value) if isinstance(value, float) else value
                for key, value in asdict(p).items()
            }
            for p in played.policies
        ],
        "notes": list(played.notes),
        "shows_gain": not played.whole.is_guessed,
        "forgetting": forgetting_data(played.forgetting),
    }


def _print_replay(played: Replay, units: Units, pulled_alone: bool) -> None:
    """Print the table; `pulled_alone` says that what the log earned is of pulled arms alone."""
    from restive.arguments import counted
    from restive.logs.forgetting_words import sentence_of_fit

    if played.calibration is not None:
        print_lines([f"calibration: {played.calibration.sentence}"])
    refused: dict[str, list[str]] = {}  # policies by why
    for p in played.policies:
        if p.kind == "refused":
            refused.setdefault(p.note, []).append(p.policy)
    rows = []
    for p in played.policies:
        if p.kind == "refused" and len(refused[p.note]) > 1:  # a line for all of them
            continue
        known = isfinite(p.per_step)
        ends = "" if not known or p.low == p.high else f"{p.low:.4f} to {p.high:.4f}"
        rows.append([p.policy, f"{p.per_step:.4f}" if known else "-", ends, p.kind, p.note])
    logged = (
        f"{played.logged_per_step:.4f} a {units.step} with {played.logged_pulls:.1f} {units.pulls}"
    )
    earned = f"the log earned {logged}"
    if pulled_alone:
        earned = f"pulled arms of the log earned {logged}; below, all arms count, pulled or not"
    print_table(
        f"{counted(played.num_steps, units.step)} from {played.log.label(played.split)}, "
        f"{played.num_pulls:,} {units.pull if played.num_pulls == 1 else units.pulls} a "
        f"{units.step}; {earned}",
        ("policy", f"reward a {units.step}", "95%", "known how", "note"),
        rows,
        words=("policy", "known how"),
        prose=("note",),
    )
    notes = [f"note: {spoken(note, flags_of(replay))}" for note in played.notes]
    for why, who in refused.items():
        if len(who) > 1:
            notes.append(f"refused, by matched pulls, for {', '.join(who)}: {why}")
    print_lines([sentence_of_fit(played.whole, units.arms), *notes])
