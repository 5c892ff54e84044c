"""Results folders as pages: one HTML file that needs nothing else.

Start with `study_page`. `charts` and `forests` are its pictures, `ranking` compares learners,
`verdicts` makes sentences from intervals, and `numbers` writes a number with its error. HTML is in
the templates of the same names.
"""
