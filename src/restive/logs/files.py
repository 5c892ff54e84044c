"""What `restive fit` writes."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from restive.arguments import checked_path
from restive.errors import RestiveError
from restive.files import replacing
from restive.logs.fit import FittedLog
from restive.logs.page import fit_page
from restive.logs.prior_file import write_prior
from restive.problem_file import problem_to_toml

__all__ = ["write_fit"]


def write_fit(
    fitted: FittedLog, folder: str | PathLike[str], num_pulls: int = 1, title: str = "Fitted log"
) -> list[Path]:
    """Write a fitted log into a folder; return the files.

    Parameters
    ----------
    fitted
        From `fit_log`.
    folder
        Made if it is not there; files in it are replaced.
    num_pulls
        Pulls a step of the problem.
    title
        The page's.

    Returns
    -------
    problem.toml, the bandit of posterior means; prior.json, for an agent; arms.csv, the table with
    where each arm was last seen; fit.html, the page.
    """
    into = checked_path(folder, "folder")
    problem = problem_to_toml(fitted.problem(num_pulls))
    whole_page = fit_page(fitted, title)
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RestiveError(f"{into}: cannot be made: {error.strerror or error}") from None
    names = ("problem.toml", "prior.json", "arms.csv", "fit.html")
    paths = [into / name for name in names]
    with replacing(paths[0]) as temporary:
        temporary.write_text(problem, encoding="utf-8")
    write_prior(fitted, paths[1])
    fitted.arms.to_csv(paths[2])
    with replacing(paths[3]) as temporary:
        temporary.write_text(whole_page, encoding="utf-8")
    return paths
