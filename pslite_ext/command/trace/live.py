"""`mercury trace live`: a page that follows a running job's trace directory.

On a terminal the page is drawn anew each time, elsewhere each look is one line. It ends with the
job, and at Ctrl-C, which is how one leaves it.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import shutil
import signal
import sys
import time
from collections.abc import Iterator

from pslite_ext.command.output import say
from pslite_ext.quantity import QuantityError, bytes_per_second
from tracer.errors import UsageError
from tracer.live.page import line, page
from tracer.live.watch import Picture, Watch
from tracer.output import json_text

OK, JOB_FAILED = 0, 1
KILLED_AFTER_S = 6.0  # without news, once some nodes have ended: the others were killed
# A second screen, so that what was there comes back; then, line by line, over what was there.
SECOND_SCREEN, FIRST_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
HOME, END_OF_LINE, END_OF_PAGE = "\x1b[H", "\x1b[K\n", "\x1b[J"


def live(options: argparse.Namespace) -> int:
    try:
        link = bytes_per_second(options.link) if options.link else 0.0
    except QuantityError as error:
        raise UsageError(f"--link: {error}") from None
    whole_page = sys.stdout.isatty() and not (options.lines or options.json or options.once)
    last = Picture("", "", "", 0, 0)
    fastest = link
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # bars, where only ASCII is understood
    if whole_page:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # the first screen comes back
        say(SECOND_SCREEN)
    try:
        for last, silent_s in _looks(options):
            busiest = max((max(one.to_server, one.to_worker) for one in last.links), default=0.0)
            fastest = link or max(fastest, busiest)
            if options.json:
                say(json_text(_as_dict(last), indent=None))
            elif whole_page:
                columns, rows = shutil.get_terminal_size()
                drawn = page(last, options.run, rows - 1, columns, fastest, silent_s)
                say(HOME + "".join(text + END_OF_LINE for text in drawn) + END_OF_PAGE)
            else:
                say(f"{time.strftime('%H:%M:%S')} {line(last, silent_s)}\n")
    except KeyboardInterrupt:
        pass
    finally:
        if whole_page:
            say(FIRST_SCREEN)
    if whole_page:
        say(line(last) + "\n")
    return JOB_FAILED if last.failure else OK


def _looks(options: argparse.Namespace) -> Iterator[tuple[Picture, float]]:
    """(what there is, for how many seconds nothing new has come), until the job is over."""
    watch = Watch(options.run)
    heard = time.monotonic()
    while True:
        new = watch.look()
        picture = watch.picture()
        if new or picture.step < 0:
            heard = time.monotonic()
        silent_s = time.monotonic() - heard
        yield picture, silent_s
        killed = watch.some_are_over and silent_s >= KILLED_AFTER_S
        if options.once or (picture.seen and (picture.over or killed)):
            return
        time.sleep(options.every)


def _as_dict(picture: Picture) -> dict[str, object]:
    return {
        **dataclasses.asdict(picture),
        "step": picture.step,
        "steps_per_s": picture.steps_per_s,
        "slow_worker": None if picture.slowest is None else picture.slowest.rank,
    }
