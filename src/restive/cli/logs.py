"""`restive fit` and `restive replay`: from a log to a decision."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from math import isfinite
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.cli.progress import bar
from restive.cli.speech import flags_of, spoken
from restive.cli.tables import print_lines, print_table
from restive.cli.world import Controlled, Pay, Seen, WorldFlags, asked_world, in_terminal
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.logs.decision import FitDecision
    from restive.logs.decision_words import Units
    from restive.logs.fitted import FittedLog
    from restive.logs.log import Log
    from restive.logs.replay import Replay

__all__ = ["fit", "replay"]

MANY_TIMES = 2  # as many pulls in a log as are asked for: its rows may be something else

LogFile = Annotated[
    Path, typer.Argument(metavar="LOG", help="CSV or Parquet file, a row per sighting.")
]
# Both are needed; a message that lists the columns helps more than one that says "missing option".
Time = Annotated[
    str | None,
    typer.Option(help="Column of times: numbers, or dates (needed).", show_default=False),
]
ArmColumn = Annotated[
    str | None, typer.Option("--arm", help="Column of arms (needed).", show_default=False)
]
State = Annotated[
    str | None, typer.Option(help="Column of states: numbers from 0, the worst, or names.")
]
StateFrom = Annotated[
    str | None, typer.Option(help='Instead of --state: good where this holds, as in "delay < 15".')
]
States = Annotated[
    str | None,
    typer.Option(help="Names of the states, worst first, with commas; or a number of quantiles."),
]
Step = Annotated[str | None, typer.Option(help="Length of a step: 1d, 2w, 6h, 15min, or a number.")]
Zone = Annotated[
    str | None, typer.Option(help="Time zone whose days count, such as Europe/Berlin.")
]
By = Annotated[str | None, typer.Option(help="Column of kinds of arms.")]
Pulled = Annotated[
    str | None, typer.Option(help="Column that says which arms were pulled (default: all).")
]
SameStep = Annotated[
    str, typer.Option(help="If an arm has several rows in one step: error, last or worst.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip rows that cannot be used.")]
Rewards = Annotated[
    str | None, typer.Option(help="Reward of each state, with commas (default: 0 to 1).")
]
Unit = Annotated[str, typer.Option(help='What a pull is called, in the plural: "calls".')]
RewardWords = Annotated[
    str, typer.Option("--reward", help='What a reward of 1 is: "adherent patients".')
]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


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
    from restive.arguments import checked_text, counted
    from restive.learn.advice import learner_sentence
    from restive.logs.decision import decide
    from restive.logs.decision_words import units_of
    from restive.logs.fitting import fit_log, write_decision
    from restive.pages.looks import matplotlib_figures

    matplotlib_figures()  # the page needs it: told now, not after the work
    units = units_of(checked_text(unit, "--unit"), checked_text(reward, "--reward"), step)
    with bar(f"reading {log.name}") as progress:
        found = _load(
            log, time, arm, state, state_from, states, step, zone, by, pulled, same_step, skip_bad,
            progress,
        )  # fmt: skip
    # asked once the file is known to be right, and before anything takes long
    world = asked_world(controlled, pay, ask=in_terminal() and not as_json)
    with bar(f"fitting {log.name}") as progress:
        fitted = fit_log(
            found, rewards=_numbers(rewards), passive_rewards=_unpulled(world, found, rewards),
            controlled=world.controlled, seen=seen, seed=seed, progress=progress,
        )  # fmt: skip
        number = fitted.usual_pulls if pulls is None else pulls
        decision = decide(fitted, number, seed=seed, progress=progress)
        progress("writing", 0.0)
        paths = write_decision(fitted, decision, out, f"{log.name}, fitted", units)
    _doubt_rows(found, number, seen, units)
    if as_json:
        print(json.dumps(_fit_data(fitted, world, decision), indent=2))
        return
    _print_decision(fitted, decision, units)
    _print_fit(fitted)
    if suited := learner_sentence(found.num_arms, min(number, found.num_arms)):
        print_lines([f"an agent of {counted(number, 'pull')} a step: {suited}"])
    _print_next(paths, fitted, decision, units)
    if pulls is None:
        own = "as in the log" if number == found.usual_pulls else "since the log does not tell"
        said = f"{units.pulls} a {units.step}: {number:,}, {own}; another number with --pulls"
        print_lines([said])
    if world.assumed:
        print_lines([world.assumed])


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

    units = units_of("pulls", checked_text(reward, "--reward"), step)
    world = asked_world(controlled, pay, ask=False)
    kinds: Any = None if prior is None else load_prior(prior)
    with bar(f"replaying {log.name}") as progress:
        found = _load(
            log, time, arm, state, state_from, states, step, zone, by, pulled, same_step, skip_bad,
            progress,
        )  # fmt: skip
        played = replay_log(
            found,
            pulls,
            _names(policies),
            prior=None if kinds is None else kinds.kinds,
            rewards=_numbers(rewards),
            passive_rewards=_unpulled(world, found, rewards),
            controlled=world.controlled,
            seen=seen,
            split=split,
            random_pulls=random_pulls,
            anyway=anyway,
            worlds=worlds,
            seed=seed,
            progress=progress,
        )
    _doubt_rows(found, pulls, seen, units)
    if kinds is not None and kinds.log.get("span") == found.span:
        note = "the prior was fitted on this log, the part that policies play on included"
        print(f"note: {note}", file=sys.stderr)
    if as_json:
        print(json.dumps(_replay_data(played), indent=2))
    else:
        _print_replay(played, units, world.pays_always and seen != "always")
        print_lines(["", replay_sentence(played, units)])


def _load(
    path: Path, time: str | None, arm: str | None, state: str | None, state_from: str | None,
    states: str | None, step: str | None, zone: str | None, by: str | None, pulled: str | None,
    same_step: str, skip_bad: bool, progress: Any,
) -> Log:  # fmt: skip
    from restive.logs.reading import load_log

    if time is None or arm is None or (state is None and state_from is None):
        raise ProblemError(_which_columns(path, time, arm, state or state_from))
    named: int | list[str] | None = None
    if states is not None:
        named = int(states) if states.strip().isdigit() else _names(states)
    return load_log(
        path, time=time, arm=arm, state=state, state_from=state_from, states=named, step=step,
        zone=zone, by=by, pulled=pulled, same_step=same_step, skip_bad=skip_bad,
        progress=lambda share: progress("reading", share),
    )  # fmt: skip


def _doubt_rows(log: Log, pulls: int, seen: str, units: Units) -> None:
    """Say on stderr where rows may not all be pulls, as a row for everyone in each step is not."""
    if log.has_pulled or seen == "always" or log.usual_pulls < MANY_TIMES * pulls:
        return
    note = (
        f"the log has {log.usual_pulls:,} {units.pulls} a {units.step}, and this is for {pulls:,}; "
        f"if not all rows were {units.pulls}, name the column that tells with --pulled"
    )
    print(f"note: {note}", file=sys.stderr)


def _which_columns(path: Path, time: str | None, arm: str | None, state: str | None) -> str:
    """Say which columns must be named, and which there are."""
    from restive.logs.reading.file import open_log_file

    missing = [
        flag
        for flag, given in (
            ("--time (when)", time),
            ("--arm (which arm)", arm),
            ("--state or --state-from (what was seen)", state),
        )
        if given is None
    ]
    header = open_log_file(path).header
    return f"{path}: say which column is which: {', '.join(missing)}; there are {', '.join(header)}"


def _names(text: str) -> list[str]:
    """Return what stands between commas; those in brackets are part of a name."""
    from restive.learn.learner_text import names_in

    named = names_in(text)
    if not named:
        raise ProblemError(f"expected names separated by commas, got {text!r}")
    return named


def _numbers(text: str | None) -> list[float] | None:
    if text is None:
        return None
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProblemError(f"--rewards must be numbers separated by commas, got {text!r}") from None


def _unpulled(world: WorldFlags, log: Log, rewards: str | None) -> Any:
    """What arms pay while they are not pulled."""
    from restive.logs.fitted import log_rewards

    return log_rewards(log, _numbers(rewards)) if world.pays_always else None


def _finite(value: float) -> float | None:
    return value if isfinite(value) else None


def _fit_data(fitted: FittedLog, world: WorldFlags, decision: FitDecision) -> dict[str, Any]:
    from restive.logs.forgetting_words import forgetting_data

    checks = [
        {key: _finite(value) if isinstance(value, float) else value
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
    problem, _, arms, page, summary = paths
    lines = [
        "written: " + ", ".join(str(path) for path in paths),
        f"To read: {summary} (one page, for a manager), {page} (all of it).",
    ]
    if decision.gain is None:
        print_lines(lines)
        return
    print_lines([*lines, "Next: what each policy earns, today's list, or begin to run it:"])
    file, table = quote(str(problem)), quote(str(arms))
    print(f"  restive plan {file}")  # a command that is broken into lines would not run
    print(f"  restive pick {file} --sightings {table}")
    print(f"  {_begin(paths[1], fitted, decision)}{_nouns(units)}")


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

    An agent has a noun for one pull, and the regular plural of that.
    """
    from restive.live.words import Words

    pull = f"{units.pulls[:-3]}y" if units.pulls.endswith("ies") else units.pulls[:-1]
    try:
        regular = not pull.endswith("e") and Words(pull=pull).many("pull") == units.pulls
        said = {"pull": pull if regular else "pull", "tick": units.step, "reward": units.reward}
        plain = {"pull": "pull", "tick": "step", "reward": "reward"}
        text = ",".join(f"{name}={word}" for name, word in said.items() if word != plain[name])
        known = not text or Words.from_text(text).items() <= said.items()
    except ProblemError:  # a word that no agent takes
        return ""
    return f" --words {quote(text)}" if text and known else ""


def _print_fit(fitted: FittedLog) -> None:
    from restive.logs.forgetting_words import sentence_of_fit
    from restive.logs.page import check_rows, held_out_sentences, model_verdict

    found = check_rows(fitted.checks)
    print_lines([f"Can we trust this? {model_verdict(fitted)}"])
    print_table(
        f"checks of {fitted.log.in_brief}; at p = 0.01 or less one fails",
        ("check", "verdict", "finding", "p", "s.d. off"),
        [row[:5] for row in found],
        words=("check", "verdict"),
        prose=("finding",),
        drop=("s.d. off",),
    )
    advice = [f"{name}: {what}" for name, *_, what in found if what]
    if fitted.held_out is not None:
        advice = [*held_out_sentences(fitted.held_out), *advice]
    advice.insert(0, sentence_of_fit(fitted))
    shapes = [f"kind {name}: {shape.sentence}" for name, shape in fitted.kind_shapes.items()]
    notes = [f"note: {spoken(note, flags_of(fit))}" for note in fitted.notes]
    print_lines([*shapes, *advice, *notes])


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
                key: _finite(value) if isinstance(value, float) else value
                for key, value in asdict(p).items()
            }
            for p in played.policies
        ],
        "notes": list(played.notes),
        "forgetting": forgetting_data(played.forgetting),
    }


def _print_replay(played: Replay, units: Units, pulled_alone: bool) -> None:
    """Print the table; `pulled_alone` says that what the log earned is of pulled arms alone."""
    from restive.arguments import counted

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
    logged = f"{played.logged_per_step:.4f} a {units.step} with {played.logged_pulls:.1f} pulls"
    earned = f"the log earned {logged}"
    if pulled_alone:
        earned = f"pulled arms of the log earned {logged}; below, all arms count, pulled or not"
    print_table(
        f"{counted(played.num_steps, units.step)} from {played.log.label(played.split)}, "
        f"{counted(played.num_pulls, 'pull')} a {units.step}; {earned}",
        ("policy", f"reward a {units.step}", "95%", "known how", "note"),
        rows,
        words=("policy", "known how"),
        prose=("note",),
    )
    notes = [f"note: {spoken(note, flags_of(replay))}" for note in played.notes]
    for why, names in refused.items():
        if len(names) > 1:
            notes.append(f"refused, by matched pulls, for {', '.join(names)}: {why}")
    print_lines([played.forgetting_sentence, *notes])
