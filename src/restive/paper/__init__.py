"""The paper's experiments (Section 6) in one command, each claim checked against the data.

OUT/reproduction.json      that this is a reproduction; its theory section's numbers
OUT/bayesian/, frequentist/    results folders of the two studies
OUT/claims.json            the claims with their verdicts
OUT/figure-2.png, .svg, figure-3.png, .svg
OUT/report.html            everything on one page

Start with `runs`; `claims` has the verdicts, `page` and `theory_section` what is shown.
`comparison_study` is the study behind `restive compare`, the same for any learners and instances.

May import studies and what that may import.
"""
