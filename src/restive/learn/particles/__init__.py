"""The posterior of an arm whose rows have Dirichlet priors, as weighted particles."""
