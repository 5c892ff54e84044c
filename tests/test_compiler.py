"""Kernels that only kernels call say so instead of crashing."""

from __future__ import annotations

import pytest

from restive.kernels.compiler import JIT_DISABLED
from restive.kernels.world import top_arms


@pytest.mark.skipif(JIT_DISABLED, reason="without the compiler there are no wrappers to lack")
def test_a_part_of_kernels_cannot_be_called_from_python() -> None:
    with pytest.raises(TypeError, match="top_arms is a part of kernels"):
        top_arms(None, None)
