"""Results folders as pages: charts, and one HTML file that needs nothing else.

Start with `study_page`. `verdicts` makes sentences from intervals.
"""
