"""From a log to a decision."""
