"""Agents that operators run for months: durable, exact, and open to an auditor.

Start with `agent`. A live agent is its `journal`; `memory` is a pure function of the events in it.

May import logs, learn and what these may import.
"""
