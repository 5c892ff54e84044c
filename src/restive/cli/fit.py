"""`restive fit`: from a log to a decision."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from shlex import quote
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
    numbers,
    unpulled,
)
from restive.cli.progress import bar
from restive.cli.speech import flags_of, spoken
from restive.cli.tables import print_lines, print_table
from restive.cli.world import Controlled, Nouns, Pay, Seen, WorldFlags, asked_world, in_terminal
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.logs.decision import FitDecision
    from restive.logs.decision_words import Units
    from restive.logs.fitted import FittedLog

__all__ = ["fit"]


def fit(
    log: LogFile,
    time: Time = None,
    arm: ArmColumn = None,
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
    pulls: Annotated[
        int | None,
        typer.Option(min=1, help="Pulls in each step, from now on (default: the log's median)."),
    ] = None,
    unit: Unit = "pulls",
    reward: RewardWords = "reward",
    out: Annotated[Path, typer.Option(help="Folder to write to.")] = Path("fit"),
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Fit arms to a log: what to do, what it is worth, how sure.

    Writes problem.toml (for `restive plan`), prior.json (for an agent), arms.csv, fit.html and
    summary.html (a page for a manager).
    """
    from restive.arguments import checked_text
    from restive.logs.decision import decide
    from restive.logs.decision_words import units_of
    from restive.logs.fitting import fit_log, write_decision
    from restive.pages.looks import matplotlib_figures

    matplotlib_figures()  # the page needs it: told now, not after the work
    units = units_of(checked_text(unit, "--unit"), checked_text(reward, "--reward"), step, arm)
    with bar(f"reading {log.name}") as progress:
        found = load(
            log, time, arm, state, state_from, states, step, zone, by, pulled, same_step, skip_bad,
            progress,
        )  # fmt: skip
    # asked once the file is known to be right, and before anything takes long
    nouns = Nouns(units.arm, units.arms, units.pull, units.step)
    world = asked_world(controlled, pay, ask=in_terminal() and not as_json, nouns=nouns)
    with bar(f"fitting {log.name}") as progress:
        fitted = fit_log(
            found, rewards=numbers(rewards), passive_rewards=unpulled(world, found, rewards),
            controlled=world.controlled, seen=seen, seed=seed, progress=progress,
        )  # fmt: skip
        number = fitted.usual_pulls if pulls is None else pulls
        decision = decide(fitted, number, seed=seed, progress=progress)
        progress("writing", 0.0)
        paths = write_decision(fitted, decision, out, f"{log.name}, fitted", units)
    doubt_rows(found, number, seen, units)
    if as_json:
        print(json.dumps(_fit_data(fitted, world, decision), indent=2))
        return
    _print_decision(fitted, decision, units)
    _print_fit(fitted, units)
    # of arms that are always seen there is as much to learn however few are pulled
    if seen != "always" and (suited := _suited(found.num_arms, number, units)):
        print_lines([suited])
    _print_next(paths, fitted, decision, units)
    if pulls is None:
        own = "as in the log" if number == found.usual_pulls else "since the log does not tell"
        said = f"{units.pulls} a {units.step}: {number:,}, {own}; another number with --pulls"
        print_lines([said])
    if world.assumed:
        print_lines([world.assumed])


def _fit_data(fitted: FittedLog, world: WorldFlags, decision: FitDecision) -> dict[str, Any]:
    from restive.logs.forgetting_words import forgetting_data

    checks = [
        {key: finite(value) if isinstance(value, float) else value
         for key, value in asdict(check).items()}
        for check in fitted.checks
    ]  # fmt: skip
    data: dict[str, Any] = {
        "sightings": fitted.log.num_sightings,
        "arms": fitted.log.num_arms,
        "steps": fitted.log.num_steps,
        "span": fitted.log.span,
        "states": list(fitted.log.states),
        "controlled": world.controlled,
        "seen": fitted.seen,
        "pay": world.pay,
        "notes": list(fitted.notes),
        "kinds": [
            {"name": name, "arms": shape.num_arms, "shape": shape.to_data()}
            for name, shape in fitted.kind_shapes.items()
        ],
        "checks": checks,
        "decision": asdict(decision),
    }
    data["forgetting"] = forgetting_data(fitted.forgetting)
    if fitted.held_out is not None:
        found = fitted.held_out
        data["held_out"] = {
            "sightings": found.num_sightings,
            "log_chance": {"coin": found.coin, "chain": found.chain, "order_2": found.second},
            "chain_against_coin": asdict(found.chain_against_coin),
            "order_2_against_chain": asdict(found.second_against_chain),
        }
    return data


def _print_decision(fitted: FittedLog, decision: FitDecision, units: Units) -> None:
    """Print what was found as one would tell it: first of all, before any check."""
    from restive.logs.decision_words import headline, sentences

    print_lines([headline(fitted, decision, units), *sentences(fitted, decision, units), ""])


def _print_next(paths: list[Path], fitted: FittedLog, decision: FitDecision, units: Units) -> None:
    """Say what was written and what one does with it, in commands that run as they stand."""
    problem, prior, _, page, summary = paths
    lines = [
        "written: " + ", ".join(str(path) for path in paths),
        f"To read: {summary} (one page, for a manager), {page} (all of it).",
    ]
    if not decision.first:
        print_lines(lines)
        return
    print_lines([*lines, "Next: what each policy earns, today's list, or begin to run it:"])
    print(f"  restive plan {quote(str(problem))}")  # broken into lines it would not run
    print(f"  restive pick {quote(str(problem.parent))}")
    print(f"  {_begin(prior, fitted, decision)}{_nouns(units)}")


def _begin(prior: Path, fitted: FittedLog, decision: FitDecision) -> str:
    """Return the command that makes an agent which goes on where the log ends."""
    from restive.logs.forgetting_words import advised_learner

    words = ["restive live init agent.db --prior", quote(str(prior))]
    words.append(f"--pulls {decision.num_pulls}")
    if fitted.forgetting is not None and fitted.forgetting.forget_after is not None:
        words.append(f"--learner '{advised_learner(fitted)}'")
    if fitted.controlled and fitted.seen != "always":
        words.append("--missing as-not-pulled")
    log = fitted.log
    if period := log.calendar.rule.period:
        words.append(f"--clock {period} --start {log.label(log.num_steps).replace(' ', 'T')}")
        words += [f"--zone {log.calendar.rule.zone}"] if log.calendar.rule.zone else []
    return " ".join(words)


def _nouns(units: Units) -> str:
    """Return the option by which an agent goes on to speak as the fit did, as far as that is plain.

    An agent makes regular plurals by itself.
    """
    from restive.live.words import Words

    try:
        said = {
            "arm": units.arm, "arms": units.arms, "pull": units.pull, "tick": units.step,
            "reward": units.reward,
        }  # fmt: skip
        arms = Words(arm=units.arm).many("arm")
        plain = {"arm": "arm", "arms": arms, "pull": "pull", "tick": "step", "reward": "reward"}
        text = ",".join(f"{name}={word}" for name, word in said.items() if word != plain[name])
        known = not text or Words.from_text(text).items() <= said.items()
    except ProblemError:  # a word that no agent takes
        return ""
    return f" --words {quote(text)}" if text and known else ""


def _suited(num_arms: int, number: int, units: Units) -> str:
    """Say which learner suits so few looks; nothing where they are many."""
    from restive.arguments import plural
    from restive.learn.advice import learner_sentence

    nouns = (units.arm, plural(units.step))
    sentence = learner_sentence(num_arms, min(number, num_arms), nouns=nouns)
    pulls = units.pulls if number > 1 else units.pull
    return f"an agent of {number:,} {pulls} a {units.step}: {sentence}" if sentence else ""


def _print_fit(fitted: FittedLog, units: Units) -> None:
    from restive.logs.decision_words import seen_in_brief
    from restive.logs.forgetting_words import sentence_of_fit
    from restive.logs.page import check_rows, held_out_sentences, model_verdict

    found = check_rows(fitted.checks)
    print_lines([f"Can we trust this? {model_verdict(fitted)}"])
    print_table(
        f"checks of {seen_in_brief(fitted, units)}; at p = 0.01 or less one fails",
        ("check", "verdict", "finding", "p", "s.d. off"),
        [row[:5] for row in found],
        words=("check", "verdict"),
        prose=("finding",),
        drop=("s.d. off",),
    )
    advice = [f"{name}: {what}" for name, *_, what in found if what]
    if fitted.held_out is not None:
        advice = [*held_out_sentences(fitted.held_out), *advice]
    advice.insert(0, sentence_of_fit(fitted, units.arms))
    shapes = [f"kind {name}: {shape.sentence}" for name, shape in fitted.kind_shapes.items()]
    notes = [f"note: {spoken(note, flags_of(fit))}" for note in fitted.notes]
    print_lines([*shapes, *advice, *notes])
