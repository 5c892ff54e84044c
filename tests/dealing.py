"""How tests are dealt to processes: files that share something costly go to one process, whole.

This is what the mark `xdist_group` is for, which pytest-xdist 3.8 overlooks under pytest 9.2.
"""

from pathlib import PurePath

from xdist.scheduler import LoadScopeScheduling

TOGETHER = {  # by what they share
    "a reproduction of the paper, and a browser that shows it": [
        "test_reproduction",
        "test_browser",
    ],
    "a server, and a browser on its pages": ["test_serve_page"],
    "a server that is asked nonsense": ["test_serve_fuzz"],
    "a PostgreSQL server": ["test_live_postgres"],
    "a Dask cluster": ["test_executors"],
    "a copy of the package whose cache is attacked": ["test_cache"],
    "loops compiled in memory": ["test_particles", "test_calibration", "test_continuous_prior"],
    "comparisons": ["test_comparison"],
    "theory's decompositions": ["test_theory"],
}
SHARED = {file: what for what, files in TOGETHER.items() for file in files}


class Dealer(LoadScopeScheduling):
    """Deals the groups first, the largest before the smaller ones, and then test by test."""

    def _split_scope(self, nodeid: str) -> str:
        return SHARED.get(PurePath(nodeid.partition("::")[0]).stem, nodeid)
