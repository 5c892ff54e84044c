"""The package on other Pythons, with the newest release of everything it needs.

    python tests/newest.py            the newest Python beside this one, the short list
    python tests/newest.py --whole    every Python that is found, the whole list
    python tests/newest.py --digits   what the list gives on this very Python (with --whole, too)

Each Python gets a fresh environment, in which the package is installed with its extras and without
constraints; then it must give the digits of this Python, as installed here. What is newer there
than in constraints.txt is named. Pythons are looked for on PATH, among those of pyenv and uv, and
in the environment variable PYTHONS (files, with a colon between them); of each minor version the
newest release is taken.
"""

import argparse
import contextlib
import difflib
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from importlib.metadata import metadata
from pathlib import Path

import numpy as np
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FOR_DEVELOPERS = {"docs", "dev"}
PLACES = (
    *os.environ.get("PATH", "").split(os.pathsep),
    *Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")).glob("versions/*/bin"),
    *Path.home().glob(".local/share/uv/python/*/bin"),
)


# What is done on each Python, and which digits are shown.


def restive(*words: object) -> str:
    """Run a command as people do; a warning about a line of ours is an error."""
    command = [sys.executable, "-W", "default", "-m", "restive", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or re.search(r"/restive/\S+:\d+: \w*Warning", done.stderr):
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done.stdout


def readme(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def show(name: str, *found: object) -> None:
    """Print numbers to their last bit, of many a digest."""
    for thing in found:
        if isinstance(thing, np.ndarray) and thing.size > 8:
            digest = hashlib.sha256(np.ascontiguousarray(thing).tobytes()).hexdigest()[:16]
            print(name, thing.shape, float(thing.sum()).hex(), digest)
        else:
            print(name, thing.tolist() if isinstance(thing, np.ndarray) else thing)


def show_cases(folder: str) -> None:
    import restive as rs

    for found in rs.load_results(folder):
        show(f"{folder}: {found.case.settings.learners[0]}", found.regret.mean)


def first_steps() -> None:
    """README's: a problem file, its plan, a list, two learners."""
    steps = README[README.index("## First steps") :].split("```sh\n")[1].split("```")[0]
    for line in steps.splitlines():
        restive(*line.split("#")[0].split()[1:])
    show("plan", restive("plan", "problem.toml", "--json"))
    show("pick", Path("picks.csv").read_text())
    show_cases("comparison")


def learning() -> None:
    """README's Python: an exact value, 1,000 steps of TSDE, a Bayesian regret."""
    names: dict = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in readme("python"):
            exec(compile(block, "README", "exec"), names)
    show("value", names["value"].average_reward)
    show("TSDE", names["agent"].posterior(0).mean().active, names["agent"].explain(0))
    show("regret", names["curve"].mean)


def live_file() -> None:
    Path("arms.csv").write_text("arm\n" + "".join(f"line {k}\n" for k in range(6)))
    by_hand = "--arms arms.csv --clock daily --start 2026-11-16 --by-hand"
    restive("live", "init", "lines.db", "--pulls", 2, "--levels", ".2,.5,.8", *by_hand.split())
    for day in range(3):
        name = f"day{day}.csv"
        restive("live", "next", "lines.db", "--date", f"2026-11-{16 + day}", "--out", name)
        header, *rows = Path(name).read_text().splitlines()
        place = header.split(",").index("outcome")
        for number, row in enumerate(rows):
            fields = row.split(",")
            fields[place] = str((day + number) % 2)
            rows[number] = ",".join(fields)
        show("live", *rows)
        Path(name).write_text("\n".join([header, *rows]) + "\n")
        restive("live", "record", "lines.db", name)
    show("live", restive("live", "explain", "lines.db", "line 0"))


def studies() -> None:
    """Run, continue on Dask's workers, report, export."""
    (study,) = re.findall(r'```toml title="study"\n(.*?)```', README, flags=re.DOTALL)
    Path("study.toml").write_text(study)
    restive("run", "study.toml", "--out", "results", "--replications", 20)
    restive("run", "study.toml", "--out", "results", "--replications", 40, "--executor", "dask",
            "--workers", 2)  # fmt: skip
    show_cases("results")
    restive("report", "results")
    assert "svg" in Path("results/report.html").read_text(encoding="utf-8")
    restive("export", "results", "--format", "parquet")
    restive("plan", "problem.toml", "--plot", "index.png")
    assert Path("index.png").read_bytes().startswith(b"\x89PNG")


def logs() -> None:
    log = ROOT / "examples" / "logs" / "outreach.csv"
    columns = "--time week_of --arm person --state outcome --states hung_up,listened --step 1w"
    restive("fit", log, *columns.split(), "--by", "region", "--pulls", 15, "--out", "fitted")
    for path in sorted(Path("fitted").glob("*.toml")) + sorted(Path("fitted").glob("*.json")):
        show(f"fit: {path.name}", path.read_text(encoding="utf-8"))


def service() -> None:
    """`restive serve` answers."""
    restive("live", "token", "lines.db", "looks", "--role", "read")
    command = [sys.executable, "-m", "restive", "serve", "lines.db", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stderr.readline()
            address = re.search(r"http://[^/\s]+", line)
            assert address, line + process.stderr.read()
            with urllib.request.urlopen(address[0] + "/healthz", timeout=60) as answer:
                show("serve", answer.status, json.load(answer))
        finally:
            process.terminate()


def environment() -> None:
    import gymnasium

    env = gymnasium.make("restive.gym:restive/Restless-v0", problem="satellite-urban-s")
    env.reset(seed=1)
    env.action_space.seed(1)
    rewards = [float(env.step(env.action_space.sample())[1]) for _ in range(200)]
    show("gym", np.array(rewards))


def database() -> None:
    """A live agent in PostgreSQL, where there is one."""
    import restive as rs
    from postgres_server import POSTGRES, Server

    if POSTGRES is None:
        return
    server = Server()
    try:
        place = server.new_place()
        with rs.LiveAgent.create(place, rs.grid_prior([0.2, 0.8], 4), num_pulls=2, seed=1) as live:
            for _ in range(5):
                decision = live.decide()
                live.record(dict.fromkeys(decision.arms, 1))
                show("postgres", decision.arms)
    finally:
        server.close()


SHORT = first_steps, learning, live_file
WHOLE = *SHORT, studies, logs, service, environment, database


def show_digits(whole: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for step in WHOLE if whole else SHORT:
            step()
            sys.stdout.flush()


# Pythons, environments, and what they are compared with.


def pythons() -> dict[tuple[int, int], tuple[Version, str]]:
    """By minor version: the newest released one that is found, and its file."""
    allowed = SpecifierSet(metadata("restive")["Requires-Python"])
    files = [str(path) for place in PLACES for path in sorted(Path(place).glob("python3.*"))]
    files = [name for name in files if re.search(r"/python3\.\d+$", name)]
    files += [name for name in os.environ.get("PYTHONS", "").split(os.pathsep) if name]
    found: dict[tuple[int, int], tuple[Version, str]] = {}
    for path in files:
        ask = "import platform, venv; print(platform.python_version())"
        done = subprocess.run([path, "-c", ask], capture_output=True, text=True, check=False)
        if done.returncode:  # a shim of pyenv for a version that is not in use
            continue
        version = Version(done.stdout.strip().rstrip("+"))
        minor = (version.major, version.minor)
        if allowed.contains(version, prereleases=False) and (
            minor not in found or found[minor][0] < version
        ):
            found[minor] = version, path
    return found


def installed(python: str, folder: Path, pip: Path) -> Path:
    """Return the Python of a fresh environment that holds the package and its extras."""
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", folder], check=True)
    extras = sorted({*metadata("restive").get_all("Provides-Extra")} - FOR_DEVELOPERS)
    made = folder / "bin" / "python"
    run_pip([made, pip], "install", "--no-compile", f"{ROOT}[{','.join(extras)}]")
    return made


def run_pip(pip: list, *words: object) -> None:
    quiet = ["--quiet", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *words, *quiet], check=True, env=clean_environment())


def clean_environment() -> dict[str, str]:
    left_out = {"PYTHONPATH", "PIP_CONSTRAINT"}
    return {name: value for name, value in os.environ.items() if name not in left_out}


def newer_releases(python: Path, minor: str) -> list[str]:
    """What an environment holds that is newer than its pin in constraints.txt."""
    ask = (
        "import json; from importlib.metadata import distributions as all_of;"
        "print(json.dumps({each.name: each.version for each in all_of()}))"
    )
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True)
    held = {canonicalize_name(name): text for name, text in json.loads(done.stdout).items()}
    newer = []
    for line in (ROOT / "constraints.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        pin = Requirement(line)
        version = held.get(canonicalize_name(pin.name))
        if version is None or (pin.marker and not pin.marker.evaluate({"python_version": minor})):
            continue
        if all(Version(version) > Version(each.version) for each in pin.specifier):
            newer.append(f"{pin.name} {version} (not {pin.specifier})")
    return newer


def digits(python: str | Path, whole: bool, environment: dict[str, str]) -> list[str]:
    command = [python, __file__, "--digits", *(["--whole"] if whole else [])]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{python}: failed after\n{done.stdout[-2000:]}")
    return done.stdout.splitlines()


def compare(whole: bool) -> int:
    """Return how many Pythons give other digits than this one."""
    found = pythons()
    here = sys.version_info[:2]
    others = {minor: python for minor, python in found.items() if whole or minor != here}
    if not whole:
        others = {minor: others[minor] for minor in sorted(others)[-1:]}
    if not others:
        print(f"there is only one Python here, {sys.version.split()[0]}: no other one was tried")
        return 0
    reference = digits(sys.executable, whole, dict(os.environ))
    home = Path(sys.prefix) / "newest"
    run_pip([sys.executable, "-m", "pip"], "install", "--upgrade", "--target", home / "pip", "pip")
    differing = 0
    for minor, (version, file) in sorted(others.items()):
        name = ".".join(map(str, minor))
        python = installed(file, home / name, home / "pip" / "pip")
        newer = newer_releases(python, name)
        print(f"Python {version}: newer than in constraints.txt:", ", ".join(newer) or "nothing")
        given = digits(python, whole, clean_environment())
        unlike = list(difflib.unified_diff(reference, given, "here", name, n=0, lineterm=""))
        differing += bool(unlike)
        print("\n".join(unlike) or f"Python {version}: {len(given)} lines of digits, all as here")
    return differing


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", action="store_true", help="every Python, the whole list")
    parser.add_argument("--digits", action="store_true", help="only show those of this Python")
    given = parser.parse_args()
    if given.digits:
        show_digits(given.whole)
    else:
        raise SystemExit(1 if compare(given.whole) else 0)
