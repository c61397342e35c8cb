"""The size limit of YAML counts merged maps in full."""

from __future__ import annotations

import pytest

from pandaeval_collector.base.untrusted.yaml_text import BadTextError, parse


@pytest.mark.parametrize(("keys", "times", "depth"), [(3, 3, 8), (3, 3, 10), (2, 10, 5)])
def test_merged_maps_count_towards_the_limit_each_time(keys: int, times: int, depth: int) -> None:
    """Merging drops nodes. A new node at the same memory address must not get the size of a dropped node."""
    lines = ["n0: &n0 {" + ", ".join(f"k{key}: {key}" for key in range(keys)) + "}"]
    maps = (", ".join([f"*n{level - 1}"] * times) for level in range(1, depth))
    lines += [f"n{level}: &n{level} {{<<: [{merged}]}}" for level, merged in enumerate(maps, 1)]
    with pytest.raises(BadTextError, match="it has more than 5000 values and keys"):
        parse("\n".join(lines), most=5000)
