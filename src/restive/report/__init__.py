"""Results folders as pages: charts, and one HTML file that needs nothing else."""

from restive.report.study_page import write_report

__all__ = ["write_report"]
