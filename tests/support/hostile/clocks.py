"""A collector that stops for a while, and a machine whose clock changes."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from support.hostile import doors
from support.hostile.attack import OPEN, Ground, Target, attack

_OFFSET = "clock-offset"
_LIBRARY = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* The wall clock runs ahead by the seconds that the first eight bytes of a file hold. */
static volatile long long *ahead(void) {
    static volatile long long *mapped;
    if (!mapped) {
        int file = open(getenv("CLOCK_OFFSET"), O_RDONLY);
        void *found = file < 0 ? MAP_FAILED : mmap(0, 8, PROT_READ, MAP_SHARED, file, 0);
        static long long none;
        mapped = found == MAP_FAILED ? &none : found;
        if (file >= 0) close(file);
    }
    return mapped;
}
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += *ahead();
    return failed;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    now->tv_sec = at.tv_sec;
    now->tv_usec = at.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *now) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    if (now) *now = at.tv_sec;
    return at.tv_sec;
}
"""


def _with_a_clock(folder: Path, scale: int) -> Mapping[str, str]:
    """Preload a library that shifts the C clock; needs a C compiler."""
    compiler = shutil.which("cc")
    assert compiler, "this attack compiles a library: it needs cc"
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_LIBRARY)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    (folder / _OFFSET).write_bytes(bytes(8))
    # With a PYTHONPATH of its own, the process is started anew instead of forked.
    return {
        "LD_PRELOAD": str(library),
        "CLOCK_OFFSET": str(folder / _OFFSET),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }


CLOCK = Ground("a clock that is set", prepare=_with_a_clock)


@attack(OPEN, holds=True)
def a_process_that_is_stopped(target: Target, scale: int) -> Iterator[str]:
    """SIGSTOP for six seconds, three times; at scale 10 for a minute each."""
    for _ in range(3):
        os.kill(target.pid, signal.SIGSTOP)
        time.sleep(6.0 * scale)
        os.kill(target.pid, signal.SIGCONT)
        yield _comes_back(target)


@attack(CLOCK)
def a_clock_that_is_set(target: Target, scale: int) -> Iterator[str]:
    """Move the clock by an hour to ten years, both ways."""
    hour, day = 3600, 86_400
    steps = (hour, -hour, day, -day, 400 * day, -400 * day, 3650 * day, -3650 * day, 0)
    for step in steps * scale:
        _set(target.folder / _OFFSET, step)
        time.sleep(3.0)
        yield doors.get(target.health, "/readyz")
        yield doors.get(target.http, "/api/v1/overview")


def _set(file: Path, seconds: int) -> None:
    """Write in place, because the collector maps the file."""
    with file.open("r+b") as opened:
        opened.write(struct.pack("q", seconds))


def _comes_back(target: Target) -> str:
    until = time.monotonic() + 10.0
    while time.monotonic() < until:
        if (answer := doors.get(target.health, "/readyz")) == "HTTP 200":
            return answer
        time.sleep(0.1)
    return answer if answer != "HTTP 503" else doors.NO_ANSWER
