"""Kernels that only kernels call say so instead of crashing."""

from __future__ import annotations

import pytest

from restive.kernels.world import top_arms


def test_a_part_of_kernels_cannot_be_called_from_python() -> None:
    with pytest.raises(TypeError, match="top_arms is a part of kernels"):
        top_arms(None, None)
