"""What was seen when: sightings of many arms, sorted by arm and step."""

from restive.logs.sightings.log import Block, Log, log_of, sorted_log
from restive.logs.sightings.sorter import Rows, SightingSorter

__all__ = ["Block", "Log", "Rows", "SightingSorter", "log_of", "sorted_log"]
