"""`fit_log`: fit a log, check it and predict its later part; `write_fit`: the files of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from restive.arguments import checked_path, checked_seed, checked_text, shown, silent
from restive.errors import AssumptionError, ProblemError, RestiveError
from restive.files import replacing
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.logs.checks import Check, check_log
from restive.logs.counts import count_log
from restive.logs.decision import FitDecision
from restive.logs.decision_words import Units, units_of
from restive.logs.fitted import FittedLog, fit_arms
from restive.logs.forgetting import advised_forgetting
from restive.logs.forgetting_words import length_in_words
from restive.logs.held_out import held_out
from restive.logs.kind_priors import AnyArmPrior
from restive.logs.log import Log
from restive.logs.page import fit_page
from restive.logs.prior_file import write_prior
from restive.logs.summary_page import summary_page
from restive.problem.arm import checked_seen
from restive.problem.problem_file import problem_to_toml

__all__ = ["fit_log", "refuse_unlike_pulls", "require_seen", "write_decision", "write_fit"]

Progress = Callable[[str, float], None]

PLAN_ALONE = """\
# For `restive plan` alone: each arm is what it is on average, as if that were known. Lists come
# from prior.json, which has what else each arm may be: restive pick FOLDER, or restive live.

"""
FORGET = "run an agent that forgets: how long to remember is said beside the checks"


def fit_log(
    log: Log,
    *,
    prior: AnyArmPrior | Mapping[str, AnyArmPrior] | None = None,
    rewards: ArrayLike | None = None,
    passive_rewards: ArrayLike | None = None,
    controlled: bool = False,
    seen: str = "pulled",
    checks: bool = True,
    seed: int = 0,
    progress: Progress = silent,
) -> FittedLog:
    """Fit a log: what each arm is like, where it was last seen, and whether chains describe it.

    Parameters
    ----------
    log
        From `load_log`.
    prior
        What an arm may be: an `ArmPrior` or anything else with `given(evidence)`, for all arms or
        by kind. By default it is estimated, kind by kind, from the log itself.
    rewards
        Reward [S] of each state; by default from 0, the worst, to 1 in equal steps.
    passive_rewards
        Reward [S] of each state while an arm is not pulled; by default what `prior` says, or none.
    controlled
        Whether a pulled arm moves by another chain than one that is not pulled. Then only sightings
        of pulled arms are used. By default both move alike, and all sightings are used.
    seen
        "pulled", or "always" if arms are seen in every step, pulled or not. Then sightings of arms
        that were not pulled count too, also where pulls change how arms move; moves over steps
        without a row do not. The log must say who was pulled if `controlled`.
    checks
        Whether to check the log and to predict its later part.
    seed
        Names the luck of the checks.
    progress
        Called with what is being done and the share of it that is done.

    Examples
    --------
    >>> import restive as rs
    >>> steps = [t // 2 for t in range(60)]
    >>> columns = {"arm": ["a", "b"] * 30, "step": steps, "state": [0, 1, 1] * 20}
    >>> log = rs.load_log(columns, time="step", arm="arm", state="state")
    >>> rs.fit_log(log, checks=False)
    FittedLog(60 sightings of 2 arms; 0 of 0 checks hold)
    """
    if not isinstance(log, Log):
        raise ProblemError(f"fit_log needs a log, from load_log, got {log!r:.60}")
    if not isinstance(controlled, bool):
        raise ProblemError(f"controlled must be True or False, got {controlled!r:.60}")
    require_seen(prior, seen)
    seed = checked_seed(seed)
    fitted = fit_arms(
        log,
        prior,
        rewards,
        controlled,
        progress=progress,
        passive_rewards=passive_rewards,
        seen=seen,
    )
    if not checks:
        return fitted
    advice = advised_forgetting(fitted, partial(progress, "remembering"))
    fitted = replace(fitted, forgetting=advice)
    if prior is None and advice is not None and advice.forget_after is not None:
        fitted = _forgetful(fitted, progress)
    found = check_log(fitted, seed, progress=lambda share: progress("checking", share))
    refuse_unlike_pulls(found)
    foretold = held_out(
        log, prior, rewards, controlled, lambda share: progress("predicting", share), seen
    )
    fitted = replace(fitted, checks=found, held_out=foretold)
    return (
        fitted
        if fitted.forgetting is None
        else _remembering(fitted, fitted.forgetting.forget_after)
    )


def _remembering(fitted: FittedLog, forget_after: float | None) -> FittedLog:
    """Return a fit whose prior holds what an agent with that memory still would."""
    if forget_after is None:
        return fitted
    log, always = fitted.log, fitted.seen == "always"
    recent = count_log(
        log, pulled_only=fitted.controlled and not always, by_mode=fitted.by_mode,
        next_only=always, since=log.num_steps - int(forget_after),
    )  # fmt: skip
    length = length_in_words(log.calendar.rule, forget_after)
    note = (
        f"the prior for an agent holds what was seen of each arm in the last {length}; all else is "
        "of the whole log"
    )
    checks = tuple(
        replace(check, advice=check.advice and FORGET) if check.name == "drift" else check
        for check in fitted.checks
    )
    return replace(fitted, checks=checks, recent=recent, notes=(*fitted.notes, note))


def _forgetful(fitted: FittedLog, progress: Progress) -> FittedLog:
    """Return a fit with which an agent can forget: on points, where kinds had Dirichlet laws."""
    log, own = fitted.log, fitted.population
    rough = [isinstance(law, DirichletArmPrior) for law in fitted.kind_priors]
    if own is None or fitted.seen == "always" or not any(rough):
        return fitted
    laws = dict(zip(log.kinds, own.points, strict=True))
    notes = (
        *fitted.notes,
        "kinds have weights of points, since their arms change and an agent cannot forget under a "
        "Dirichlet law",
    )
    again = fit_arms(
        log, laws, fitted.rewards, fitted.controlled, progress=progress,
        passive_rewards=fitted.passive_rewards, seen=fitted.seen,
    )  # fmt: skip
    advice = advised_forgetting(again, partial(progress, "remembering"))
    if advice is None or advice.forget_after is None:
        return replace(fitted, forgetting=advice)  # a change is one under any law
    return replace(again, forgetting=advice, notes=notes, kind_shapes=fitted.kind_shapes)


def require_seen(prior: Any, seen: Any) -> None:
    """Raise unless `seen` is known and priors are of arms that are seen so."""
    checked_seen(seen, "the log")
    for own in prior.values() if isinstance(prior, Mapping) else (prior,):
        like = own.arms[0] if isinstance(own, IndependentPrior) else own
        of = getattr(getattr(like, "typical", None), "seen", seen)
        if of != seen:
            raise ProblemError(
                f"the prior is of arms with seen = {of!r} and the log is fitted with seen = "
                f"{seen!r}: pass seen={of!r} (--seen {of}), or another prior"
            )


def refuse_unlike_pulls(checks: tuple[Check, ...]) -> None:
    """Sightings of arms that were not pulled count only if those move like pulled ones."""
    for check in checks:
        if check.name == "pulls" and check.verdict == "fails":
            raise AssumptionError(
                f"pulled and unpulled arms do not move alike ({check.finding}, p <= "
                f"{check.p:.3f}), so sightings of arms that were not pulled cannot be used: fit "
                "with controlled = True (--controlled), which uses those of pulled arms only"
            )


def write_fit(
    fitted: FittedLog,
    folder: str | PathLike[str],
    num_pulls: int | None = None,
    title: str = "Fitted log",
    *,
    unit: str = "pulls",
    reward: str = "reward",
    arm: str = "arm",
    seed: int = 0,
) -> list[Path]:
    """Write a fitted log into a folder; return the files.

    Parameters
    ----------
    fitted
        From `fit_log`.
    folder
        Made if it is not there; files in it are replaced.
    num_pulls
        Pulls a step of the problem; by default as many as the log has, `fitted.usual_pulls`.
    title
        The pages'.
    unit, reward, arm
        What pages call pulls, a reward of 1, and an arm: "calls", "adherent patients", "person".
    seed
        Names the luck of the worlds in which ways of choosing arms are compared.

    Returns
    -------
    problem.toml, the bandit of posterior means; prior.json, for an agent; arms.csv, the table with
    where each arm was last seen; fit.html, the page; summary.html, a page for a manager.
    """
    if not isinstance(fitted, FittedLog):
        raise ProblemError(f"write_fit needs what fit_log returns, got {shown(fitted)}")
    decision = fitted.decision(num_pulls, seed=seed)
    units = units_of(
        checked_text(unit, "unit"), checked_text(reward, "reward"), column=checked_text(arm, "arm")
    )
    return write_decision(fitted, decision, folder, title, units)


def write_decision(
    fitted: FittedLog, decision: FitDecision, folder: str | PathLike[str], title: str, units: Units
) -> list[Path]:
    """Write the files of a fit that was decided on; see `write_fit`."""
    into = checked_path(folder, "folder")
    texts = {
        "problem.toml": PLAN_ALONE + problem_to_toml(fitted.problem(decision.num_pulls)),
        "fit.html": fit_page(fitted, title, decision, units),
        "summary.html": summary_page(fitted, decision, units, title),
    }
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RestiveError(f"{into}: cannot be made: {error.strerror or error}") from None
    names = ("problem.toml", "prior.json", "arms.csv", "fit.html", "summary.html")
    paths = {name: into / name for name in names}
    for name, text in texts.items():
        with replacing(paths[name]) as temporary:
            temporary.write_text(text, encoding="utf-8")
    write_prior(fitted, paths["prior.json"], decision.num_pulls)
    fitted.arms.to_csv(paths["arms.csv"], fitted.log.states)
    return list(paths.values())
