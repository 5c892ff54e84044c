"""Results folders as pages: charts, and one HTML file that needs nothing else."""

from restive.report.study import write_report

__all__ = ["write_report"]
