"""`restive init`: a problem file to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from restive.errors import RestiveError

__all__ = ["TEMPLATE", "init"]

TEMPLATE = """\
# A problem for restive: arms that change by themselves, and how many you can pull in each step.
# You see the state of an arm, and earn its reward, only when you pull it (but see pay and seen).
# Change what is below, then run:  restive plan {name}

num_pulls = 2                 # arms pulled in each step

# What the states are called, from the worst to the best (optional).
states = ["bad", "good"]

# If arms also pay while they are not pulled, as patients and machines do:
# pay = "always"

# If you see every arm in every step, pulled or not, as with sensors or people who report (some arms
# only: write it in their [[arm]]):
# seen = "always"

# An arm with two states. p01 and p11 are the chances that it is good in the next step:
# p01 if it is bad now, p11 if it is good now. The good state pays 1, the bad one 0.
[[arm]]
name = "downlink"             # optional: shown in tables and messages
p01 = 0.3
p11 = 0.7

[[arm]]
p01 = 0.2
p11 = 0.5
rewards = [0.0, 1.5]          # optional: what each state pays
count = 3                     # optional: this many arms like this one

# An arm with any number of states. Row i holds the chances to move from state i to each state:
# `active` in a step in which it is pulled, `passive` in one in which it is not (optional).
# [[arm]]
# name = "relay"
# states = ["down", "slow", "fast"]
# active = [[0.5, 0.4, 0.1], [0.2, 0.5, 0.3], [0.05, 0.15, 0.8]]
# passive = [[0.8, 0.15, 0.05], [0.5, 0.4, 0.1], [0.2, 0.4, 0.4]]
# rewards = [0.0, 0.5, 1.0]
"""


def init(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The file to write, such as problem.toml.")
    ] = Path("problem.toml"),
) -> None:
    """Write a problem file with comments, for you to change."""
    from restive.files import replacing, require_target

    require_target(file, (".toml",))
    if file.exists():
        raise RestiveError(f"{file} exists already; name another file: restive init NAME.toml")
    with replacing(file) as temporary:
        temporary.write_text(TEMPLATE.format(name=file), encoding="utf-8")
    print(f"{file} is written; change it, then: restive plan {file}")
