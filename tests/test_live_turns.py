"""Processes on one file: all come to their turn.

Which one is served is chance, so only what chance cannot do is asserted: RESTIVE_TURNS=20 runs them
for 20 seconds and prints rounds and waits.
"""

import json
import os
import subprocess
import sys

from live_cases import created

SECONDS = float(os.environ.get("RESTIVE_TURNS", "1"))
PROCESSES = 4
PROGRAM = """
import json, sys
from time import monotonic
import restive as rs
live = rs.LiveAgent.open(sys.argv[1])
print("open", flush=True)
sys.stdin.readline()
end, waits = monotonic() + float(sys.argv[2]), []
while monotonic() < end:
    began = monotonic()
    decision = live.decide()
    live.record(dict.fromkeys(decision.arms, 1), decision.tick)
    waits.append(monotonic() - began)
print(json.dumps([len(waits), max(waits)]))
"""


def test_processes_that_write_without_a_pause_all_have_their_turns(tmp_path):
    take_turns(tmp_path / "a.db")


def take_turns(path):
    created(path, num_arms=100, num_pulls=20).close()
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path), str(SECONDS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(PROCESSES)
    ]  # fmt: skip
    for one in programs:
        assert one.stdout.readline() == "open\n"
    for one in programs:
        one.stdin.write("go\n")
        one.stdin.flush()
    found = [json.loads(one.communicate()[0]) for one in programs]
    print(found)
    assert [one.returncode for one in programs] == [0] * PROCESSES
    rounds = [count for count, _ in found]
    assert min(rounds) > 0
