"""The package as a whole: what is public, that it is documented, and what is imported when."""

import ast
import importlib
import inspect
import json
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest

import restive as rs
from log_cases import log_of

ROOT = Path(rs.__file__).parent
NAMESPACES = ("types", "policies", "theory", "registry", "zoo")
PUBLIC = {  # by the name that users write
    (f"{space}.{name}" if space else name): getattr(getattr(rs, space) if space else rs, name)
    for space in ("", *NAMESPACES)
    for name in (getattr(rs, space) if space else rs).__all__
    if name != "__version__"
}


def test_signatures_name_what_stands_there_by_default():
    """A lambda's address says nothing to who asks help()."""
    for name, found in PUBLIC.items():
        if inspect.isfunction(found):
            assert "<" not in str(inspect.signature(found)), name
    assert "progress: 'Progress' = silent" in str(inspect.signature(rs.fit_log))


def test_who_looks_around_in_a_log_sees_what_is_meant_for_people():
    log = log_of([0, 0], [0, 1], [1, 0])
    assert {"arms", "num_sightings", "usual_pulls", "span"} <= set(dir(log))
    assert not {"block", "blocks", "code_column", "step_column", "starts"} & set(dir(log))


def loaded_after(code):
    """Return which heavy modules a fresh interpreter has loaded after running `code`."""
    script = f"""
import sys
{code}
import json
heavy = ["numpy", "numba", "matplotlib", "scipy", "rich", "pydantic", "jinja2"]
print("LOADED", json.dumps([name for name in heavy if name in sys.modules]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.rsplit("LOADED", 1)[1])


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_after("import restive") == []


def test_help_loads_neither_numba_nor_numpy():
    found = loaded_after(
        "sys.argv = ['restive', '--help']\n"
        "from restive.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    assert not {"numba", "numpy", "matplotlib", "scipy"} & set(found)


def test_help_of_a_command_loads_neither_numba_nor_numpy():
    found = loaded_after(
        "sys.argv = ['restive', 'plan', '--help']\n"
        "from restive.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code"
    )
    assert not {"numba", "numpy", "matplotlib", "scipy"} & set(found)


def test_stating_and_reading_a_problem_needs_no_numba():
    found = loaded_after(
        "import restive as rs\n"
        "bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)], 1)\n"
        "assert rs.RestlessBandit.from_toml(bandit.to_toml()) == bandit"
    )
    assert "numba" not in found
    assert "matplotlib" not in found


def test_numbers_need_no_matplotlib():
    found = loaded_after(
        "import restive as rs\n"
        "bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 2, 1)\n"
        "rs.relaxation_bound(bandit)\nrs.evaluate(bandit, rs.whittle(bandit))"
    )
    assert "numba" in found
    assert "matplotlib" not in found


def test_every_public_name_can_be_imported():
    assert len(set(rs.__all__)) == len(rs.__all__)
    for name in rs.__all__:
        assert getattr(rs, name) is not None
    assert set(dir(rs)) == set(rs.__all__)
    namespace = {}
    exec("from restive import *", namespace)
    assert set(rs.__all__) <= set(namespace)


def test_there_are_about_forty_names_at_the_root():
    assert len(rs.__all__) - len({"__version__", "errors", *NAMESPACES}) <= 42


@pytest.mark.parametrize("space", ["__init__", *NAMESPACES])
def test_a_stub_says_where_each_name_lives(space):
    """Type checkers and the package itself read it."""
    tree = ast.parse((ROOT / f"{space}.pyi").read_text())
    module = rs if space == "__init__" else getattr(rs, space)
    imports = [line for line in tree.body if isinstance(line, ast.ImportFrom)]
    homes = {alias.name: line.module for line in imports for alias in line.names}
    assert all(alias.asname == alias.name for line in imports for alias in line.names)
    assert set(homes) == set(module.__all__) - {"__version__"}
    for name, home in homes.items():
        found = getattr(module, name)
        assert inspect.ismodule(found) or getattr(importlib.import_module(home), name) is found
        assert getattr(found, "__module__", home) == home, f"{name} is defined elsewhere"


def test_what_calls_return_is_public():
    classes = {thing for thing in PUBLIC.values() if inspect.isclass(thing)} | {rs.zoo.Instance}
    for name in (name for name in PUBLIC if inspect.isfunction(PUBLIC[name])):
        returned = typing.get_type_hints(PUBLIC[name])["return"]
        for kind in (returned, *typing.get_args(returned)):
            if getattr(kind, "__module__", "").startswith("restive"):
                assert kind in classes, name


def test_namespaces_are_modules():
    from restive.theory import mixing_time
    from restive.types import Agent

    assert Agent is rs.types.Agent
    assert mixing_time is rs.theory.mixing_time
    assert all(getattr(rs, space).__doc__ for space in NAMESPACES)


def test_type_checkers_know_every_name(tmp_path):
    program = tmp_path / "program.py"
    names = [name for name in PUBLIC if not inspect.ismodule(PUBLIC[name])]
    program.write_text("import restive as rs\n" + "".join(f"rs.{name}\n" for name in names))
    options = ["--strict", "--disallow-any-expr", "--no-error-summary"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", str(tmp_path), str(program)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    unknown = [line for line in done.stdout.splitlines() if "attr-defined" in line]
    assert not unknown


def test_namespaces_show_their_names_and_nothing_else():
    for space in (rs, *(getattr(rs, name) for name in NAMESPACES)):
        assert sorted(dir(space)) == sorted(space.__all__)
        for name in space.__all__:
            assert getattr(space, name) is not None
    with pytest.raises(AttributeError, match=r"module 'restive.types' has no attribute 'Agnet'"):
        _ = rs.types.Agnet


@pytest.mark.parametrize("space", NAMESPACES)
def test_namespaces_are_imported_like_modules(space):
    name = getattr(rs, space).__all__[0]
    script = f"import restive.{space}\nfrom restive.{space} import {name}"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'restive' has no attribute 'whitle'"):
        _ = rs.whitle


def modules():
    """Return the names of all modules but the one that runs on import."""
    found = [info.name for info in pkgutil.walk_packages([str(ROOT)], "restive.")]
    return ["restive", *(name for name in found if not name.endswith("__main__"))]


@pytest.mark.parametrize("name", modules())
def test_every_module_says_what_it_is_for_and_exports_what_it_has(name):
    module = importlib.import_module(name)
    assert module.__doc__
    for exported in getattr(module, "__all__", []):
        assert hasattr(module, exported)


@pytest.mark.parametrize("name", PUBLIC)
def test_everything_public_has_a_docstring(name):
    thing = PUBLIC[name]
    assert inspect.getdoc(thing)
    if inspect.isclass(thing):
        for field, member in vars(thing).items():
            if not field.startswith("_") and (
                inspect.isfunction(member) or isinstance(member, property)
            ):
                assert inspect.getdoc(member), f"{name}.{field}"


@pytest.mark.parametrize("name", [name for name in PUBLIC if inspect.isfunction(PUBLIC[name])])
def test_every_parameter_of_a_public_function_is_annotated(name):
    signature = inspect.signature(PUBLIC[name])
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty, parameter
    assert signature.return_annotation is not inspect.Signature.empty


ORDER = (
    "bandit", "prior", "num_pulls", "policy", "agent_or_policy", "policy_mapping", "horizon",
)  # fmt: skip
OPTIONS = {
    "discount", "max_elapsed", "max_states", "mixing_time", "progress", "relaxation",
    "replications", "seed", "start", "starts", "threads", "times",
}  # fmt: skip
NO_OPTIONS = {  # there it is a size, or a quantity of a formula
    "theory.belief_table", "theory.channel_whittle_index", "theory.episode_bound",
    "theory.regret_bound",
}  # fmt: skip


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if inspect.isfunction(PUBLIC[name]) or name == "World"]
)
def test_arguments_come_in_one_order_and_options_by_name(name):
    parameters = inspect.signature(PUBLIC[name]).parameters
    given = [each.name for each in parameters.values() if each.kind != each.KEYWORD_ONLY]
    main = [ORDER.index(parameter) for parameter in given if parameter in ORDER]
    assert main == sorted(main)
    for parameter in parameters.values():
        if parameter.name in OPTIONS and name not in NO_OPTIONS:
            assert parameter.kind == inspect.Parameter.KEYWORD_ONLY, parameter


def test_every_error_is_a_restive_error_and_wrong_values_are_value_errors():
    assert issubclass(rs.errors.ProblemError, ValueError)
    assert issubclass(rs.errors.AssumptionError, ValueError)
    for error in (rs.errors.ProblemError, rs.errors.AssumptionError, rs.errors.TooLargeError):
        assert issubclass(error, rs.RestiveError)


def imported(path):
    """Return the top-level names of the packages that a file imports anywhere."""
    names = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "")
    return {name.split(".")[0] for name in names}


def test_only_kernels_import_numba():
    users = {path.relative_to(ROOT) for path in ROOT.rglob("*.py") if "numba" in imported(path)}
    assert {path.parts[:2] for path in users} == {("kernels", "jit")}


def test_no_kernel_function_has_more_than_seven_parameters():
    many = []
    for path in (ROOT / "kernels").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
                many += [f"{path.name}: {node.name}"] if len(given) > 7 else []
    assert not many


def test_who_looks_for_a_name_in_the_wrong_module_is_told_the_right_one():
    import restive as rs

    for space, name, home in (
        (rs, "whittle_index", "restive.policies.whittle_index"),
        (rs.policies, "whittle", "restive.whittle"),
        (rs, "ProblemError", "restive.errors.ProblemError"),
        (rs.types, "mixing_time", "restive.theory.mixing_time"),
    ):
        with pytest.raises(AttributeError) as caught:
            getattr(space, name)
        assert str(caught.value).endswith(f"has no attribute {name!r}; did you mean {home}?")
    with pytest.raises(AttributeError, match=r"^module 'restive' has no attribute 'nothing'$"):
        _ = rs.nothing


def test_the_version_is_that_of_the_installed_package():
    from importlib.metadata import version

    assert version("restive") == rs.__version__


def test_kernels_compile_where_no_cache_can_be_written(tmp_path):
    """A read-only install and no cache folder: numba refuses to cache, restive must still run."""
    script = """
import numba.core.caching as caching
def refuse(*args, **kwargs):
    raise RuntimeError("cannot cache function: no locator available for file")
caching.FunctionCache.__init__ = refuse
import restive as rs
print(rs.theory.mixing_time(rs.gilbert_elliott(0.1, 0.9)))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "7\n"
