"""What the arms may be, before any of them is seen (Section 2.1 of the paper)."""
