"""Bounded reads of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pandaeval_collector.base.errors import UserError
from pandaeval_collector.base.runtime.modules import ModuleLoadError
from pandaeval_collector.base.untrusted.user_files import TooLongError, read_given
from pandaeval_collector.scoring.custom.files import metrics_of
from pandaeval_lab.cases.files import read_suite


def test_a_file_is_read_up_to_its_size_limit(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"\xef\xbb\xbfabc")
    assert read_given(file, 6).decode("utf-8-sig") == "abc"
    with pytest.raises(TooLongError):
        read_given(file, 5)


def test_an_endless_device_as_cases_file_is_an_error(tmp_path: Path) -> None:
    endless = tmp_path / "cases.yaml"
    endless.symlink_to("/dev/zero")
    with pytest.raises(UserError, match="is a pipe or a device and no file"):
        read_suite(endless)


def test_metric_files_must_exist_be_regular_and_at_most_1_mib(tmp_path: Path) -> None:
    pipe, large = tmp_path / "pipe.yaml", tmp_path / "large.yaml"
    os.mkfifo(pipe)
    large.write_bytes(b" " * ((1 << 20) + 1))
    with pytest.raises(ModuleLoadError, match="is no file of its own"):
        metrics_of(str(pipe))
    with pytest.raises(ModuleLoadError, match="more than 1 MiB"):
        metrics_of(str(large))
    with pytest.raises(ModuleLoadError, match="there is no file"):
        metrics_of(str(tmp_path / "none.yaml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"name: {'x' * 101}\ncriteria: c\n", "at most 100 characters"),
        (
            "name: a\ncriteria: c\nlabels:\n" + "".join(f"  l{number}: 1\n" for number in range(101)),
            "at most 100 items",
        ),
        ("".join(f"- {{name: m{number}}}\n" for number in range(25)), "and 5 more$"),
    ],
)
def test_metric_files_over_the_limits_are_an_error_that_lists_at_most_20(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(ModuleLoadError, match=message):
        metrics_of(str(file))
