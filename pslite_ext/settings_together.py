"""What settings must be that no range says: one beside the others, or in words of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pslite_ext import fabric_words
from pslite_ext.setting import SettingError

SHARE_MOST = 1_000_000_000
SHARES_LENGTH_MOST = 2048  # it is told to all nodes


def check(values: Mapping[str, int | str]) -> None:
    check_elastic(values)
    check_shares(str(values["MERCURY_SERVER_SHARES"]), int(values["DMLC_NUM_SERVER"]))
    fabric_words.staleness(str(values[fabric_words.MODE]))
    fabric_words.divergence_bound(str(values[fabric_words.DIVERGENCE]))
    fabric_words.by_packets(str(values[fabric_words.FORWARDING]))


def check_elastic(values: Mapping[str, int | str]) -> None:
    """Of a job that goes on without workers, and with others."""
    least, most = int(values["MERCURY_MIN_WORKERS"]), int(values["MERCURY_MAX_WORKERS"])
    workers, van = int(values["DMLC_NUM_WORKER"]), values["DMLC_PS_VAN_TYPE"]
    if least > workers:
        raise SettingError(
            f"MERCURY_MIN_WORKERS is '{least}'; allowed: 0 to {workers}, as there are workers"
        )
    if least and van == "zmq":
        raise SettingError(f"MERCURY_MIN_WORKERS needs DMLC_PS_VAN_TYPE=mercury, which is '{van}'")
    if most and not least:
        raise SettingError(
            f"MERCURY_MAX_WORKERS is '{most}', and MERCURY_MIN_WORKERS (--min-workers) is not set: "
            "nobody joins a job that needs all of its workers"
        )
    if most and most < workers:
        raise SettingError(f"MERCURY_MAX_WORKERS is '{most}', and the job begins with {workers}")


def check_shares(text: str, servers: int) -> None:
    numbers = text.split(",") if text else []
    digits = all(re.fullmatch("[0-9]{1,10}", number) for number in numbers)
    if len(text) > SHARES_LENGTH_MOST:
        allowed = f"{SHARES_LENGTH_MOST} characters"
    elif not digits or any(int(number) > SHARE_MOST for number in numbers):
        allowed = f"numbers from 0 to {SHARE_MOST}, with commas"
    elif numbers and len(numbers) != servers:
        allowed = f"one number for each of the {servers} servers"
    elif numbers and not any(map(int, numbers)):
        allowed = "not only zeros"
    else:
        return
    raise SettingError(f"MERCURY_SERVER_SHARES is '{text}'; allowed: {allowed}")
