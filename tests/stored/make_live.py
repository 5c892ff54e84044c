"""Make the file of a live agent that every later version must open: `python make_live.py OUT`.

Run by the version whose format it keeps; never again for that version.
"""

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import restive as rs


def make(path: Path) -> dict[str, object]:
    candidates = [
        rs.Arm([[1 - a, a], [0.3, 0.7]], [[0.8, 0.2], [1 - b, b]], [0, 1])
        for a in (0.3, 0.6)
        for b in (0.4, 0.8)
    ]
    laws = [rs.ArmPrior(candidates), rs.grid_prior([0.2, 0.8], 1).arms[0]]
    now = datetime(2026, 11, 16, tzinfo=UTC)
    moments = iter(now + timedelta(minutes=i) for i in range(100_000))
    live = rs.LiveAgent.create(
        path, rs.IndependentPrior([laws[k % 2] for k in range(6)]), 3, clock=rs.Clock.given(),
        seed=11, audit_pulls=1, missing="as-not-pulled", names=list("ABCDEF"),
        outcomes={"listened": 1}, now=lambda: next(moments),
    )  # fmt: skip
    for tick in (0, 1, 2, 5, 6, 7, 8):
        decision = live.decide(tick=tick, request=f"tick {tick}", skip=tick == 5)
        first, second, third = decision.arms
        live.record({first: tick % 2, second: 1})
        if tick == 2:
            live.join({"G": "0", "H": "1"}, {"H": (0, 4)})
            live.leave(["A"])
            live.snapshot()
        if tick == 5:
            live.record({third: 0}, tick)
        if tick == 6:
            live.record({}, instead={next(n for n in "BCDEFGH" if n not in decision.arms): 1})
        if tick == 7:
            live.record({live.decision(6).arms[2]: 0}, 6)
            live.note("kept for later versions")
            live.correct({first: 0}, 7, "a slip")
    following = live.decide(tick=9).arms
    found = {
        "decisions": {str(t): live.decision(t).arms for t in (0, 1, 2, 5, 6, 7, 8)},
        "results": {str(t): live.results(t) for t in (0, 1, 2, 5, 6, 7, 8)},
        "next": following,
        "posteriors": {n: live.posterior(n).weights.tolist() for n in "BCDEFGH"},
    }
    live.close()
    return found


if __name__ == "__main__":
    out = Path(sys.argv[1])
    out.with_suffix(".json").write_text(json.dumps(make(out), indent=1) + "\n")
