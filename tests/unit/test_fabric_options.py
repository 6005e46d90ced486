"""What a node of an MLfabric job is told, and what is refused with one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from pslite_ext.config import Settings
from pslite_ext.fabric.options import (
    REPLICA,
    SCHEDULER,
    SERVER,
    SERVERS_MOST,
    Planning,
    Rule,
    feed_path,
    link_speed,
    mode_for,
    node_of,
    node_options,
    refuse_synchrony,
    refuse_update_rule,
    shared_settings,
    update_rule,
    with_mode,
)
from pslite_ext.fabric_words import divergence_bound, staleness
from pslite_ext.setting import SettingError
from pslite_ext.settings_table import REPLICAS_MOST

JOB = {
    "DMLC_ROLE": "worker",
    "DMLC_TASK_ID": "1",
    "DMLC_NUM_WORKER": "2",
    "DMLC_NUM_SERVER": "1",
    "DMLC_NUM_REPLICA": "1",
    "DMLC_PS_ROOT_URI": "127.0.0.1",
    "DMLC_PS_ROOT_PORT": "9000",
}


def settings(**changes: str) -> Settings:
    return Settings.from_environment({**JOB, **changes})


def test_a_node_is_told_its_part() -> None:
    assert node_of(settings()) == 1
    for role, node in (("server", SERVER), ("replica", REPLICA), ("scheduler", SCHEDULER)):
        assert node_of(settings(DMLC_ROLE=role)) == node
    told = {"MERCURY_FABRIC_UPDATE": "momentum:0.9"}
    options = node_options(settings(**told, DMLC_ROLE="scheduler"))
    assert (options["momentum"], options["weights"], options["replicas"]) == (0.9, (), 1)
    assert options["port"] == 9000
    assert (node_options(settings(**told))["momentum"], options["nesterov"]) == (-1, 0)
    assert node_options(settings())["port"] == 0


def test_what_comes_as_it_comes_has_no_order() -> None:
    with pytest.raises(SettingError, match="MERCURY_DETERMINISTIC is '1', and under MLfabric"):
        node_options(settings(MERCURY_DETERMINISTIC="1"))


def test_updates_travel_as_floats() -> None:
    assert node_options(settings())["wire"] == "float32"
    assert node_options(settings(MERCURY_WIRE="bf16"))["wire"] == "bf16"
    for word in ("fp16", "int8", "auto"):
        with pytest.raises(SettingError, match=f"'{word}'; .* allowed: float32, bf16$"):
            node_options(settings(MERCURY_WIRE=word))


def test_a_worker_may_ask_for_what_the_server_does() -> None:
    options = node_options(settings(), Rule(0.5, nesterov=True))
    assert (options["momentum"], options["nesterov"]) == (0.5, 1)
    with pytest.raises(SettingError, match="unset it"):
        refuse_update_rule(settings(MERCURY_FABRIC_UPDATE="sum"), "MXNet")
    refuse_update_rule(settings(), "MXNet")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"MERCURY_FABRIC_DELAY_BOUND": "-1"}, "DELAY_BOUND is '-1'; allowed: 1 to"),
        ({"MERCURY_FABRIC_DIVERGENCE_BOUND": "-0.5"}, "is '-0.5'; allowed: a number, 0 or more"),
        ({"DMLC_NUM_REPLICA": "9"}, "DMLC_NUM_REPLICA is '9'; allowed: 0 to 8"),
        ({"DMLC_NUM_SERVER": "17"}, "a job has 1 to 16 servers"),
        (
            {"DMLC_NUM_SERVER": "2", "MERCURY_FABRIC_FORWARDING": "whole"},
            "to several servers updates go packet by packet",
        ),
        (
            {"DMLC_NUM_SERVER": "2", "DMLC_ROLE": "server", "DMLC_TASK_ID": "2"},
            "the server's number: 0 to 1",
        ),
        ({"DMLC_NUM_REPLICA": "0", "DMLC_ROLE": "replica"}, "DMLC_NUM_REPLICA is 0: set it to 1"),
        (
            {"DMLC_NUM_REPLICA": "8", "DMLC_ROLE": "replica", "DMLC_TASK_ID": "8"},
            "DMLC_TASK_ID is '8'; of several replicas it is the replica's number: 0 to 7",
        ),
        ({"DMLC_TASK_ID": "2"}, "it is the worker's rank: 0 to 1"),
        ({"MERCURY_FABRIC_UPDATE": "momentum:1"}, "MERCURY_FABRIC_UPDATE is 'momentum:1'; allowed"),
    ],
)
def test_bad_input_is_one_clear_line(changes: dict[str, str], says: str) -> None:
    with pytest.raises(SettingError) as raised:
        node_options(settings(**changes))
    assert says in str(raised.value)
    assert "\n" not in str(raised.value)


def test_the_second_of_several_is_a_node_of_its_own() -> None:
    def nodes(role: str, count: int) -> list[int]:
        changes = {f"DMLC_NUM_{role.upper()}": str(count), "DMLC_ROLE": role}
        return [node_of(settings(**changes, DMLC_TASK_ID=str(i))) for i in range(count)]

    assert nodes("server", SERVERS_MOST) == [-1, *range(-4, -19, -1)]
    assert nodes("replica", REPLICAS_MOST) == [-2, *range(-19, -26, -1)]
    assert node_of(settings(DMLC_ROLE="replica", DMLC_TASK_ID="-1")) == REPLICA


def test_how_fast_a_card_is(tmp_path: Path) -> None:
    assert link_speed("127.0.0.1") == 0
    assert link_speed("192.0.2.1", tmp_path) == 0
    for said, speed in (("10000\n", 1e10), ("-1\n", 0), ("", 0)):
        (tmp_path / "lo").mkdir(exist_ok=True)
        (tmp_path / "lo" / "speed").write_text(said)
        assert link_speed("127.0.0.1", tmp_path) == speed


def test_what_all_must_agree_on() -> None:
    told = {"MERCURY_FABRIC_DELAY_BOUND": "5", "MERCURY_FABRIC_DIVERGENCE_BOUND": "2"}
    theirs = shared_settings(settings(**told), 0)
    assert theirs == "MERCURY_FABRIC_DELAY_BOUND=5\nMERCURY_FABRIC_DIVERGENCE_BOUND=2.0\n"
    ours = shared_settings(settings(), SCHEDULER).splitlines()
    assert len(ours) == 8
    assert "MERCURY_FABRIC_MODE=async" in ours
    assert "MERCURY_FABRIC_DELAY_BOUND=30" in ours
    weights = ["weighted:" + ",".join([weight] * 2000) for weight in ("0.125", "0.375")]
    texts = [shared_settings(settings(MERCURY_FABRIC_UPDATE=text), 0) for text in weights]
    assert texts[0] != texts[1]
    assert max(map(len, texts)) < 200


def test_update_rules() -> None:
    assert update_rule("sum", 3) == update_rule("momentum:0", 3) == Rule()
    assert update_rule("momentum:0.9", 3) == Rule(0.9)
    assert update_rule("nesterov:0.9", 3) == Rule(0.9, nesterov=True)
    assert update_rule("weighted:0.5", 3) == Rule(weights=(0.5, 0.5, 0.5))
    assert update_rule("weighted:1,-2,0", 3) == Rule(weights=(1.0, -2.0, 0.0))
    for bad in (
        "",
        "mean",
        "momentum",
        "momentum:-1",
        "nesterov:1",
        "weighted:1,2",
        "weighted:nan",
        "sum:1",
    ):
        with pytest.raises(SettingError):
            update_rule(bad, 3)


def test_who_waits_for_whom() -> None:
    assert [staleness(text) for text in ("async", "sync", "stale:1", "stale:20")] == [-1, 0, 1, 20]
    for bad in ("", "Sync", "stale", "stale:0", "stale:-1", "stale:x", "async:1", "stale:1000001"):
        with pytest.raises(SettingError, match="allowed: async, sync, stale:NUMBER"):
            staleness(bad)
    assert node_options(settings(MERCURY_FABRIC_MODE="stale:3"))["staleness"] == 3
    refuse_synchrony(settings(MERCURY_FABRIC_MODE="stale:3"))
    with pytest.raises(SettingError, match="'dist_sync'"):
        refuse_synchrony(settings(MERCURY_FABRIC_MODE="sync"))


def test_a_script_s_mode_is_the_job_s() -> None:
    assert mode_for(settings(), None) == "async"
    told = settings(MERCURY_FABRIC_MODE="stale:2")
    assert mode_for(told, None) == mode_for(told, "stale:2") == "stale:2"
    assert mode_for(settings(), "sync") == "sync"
    with pytest.raises(SettingError, match="is 'stale:2', and the script asks for 'async'"):
        mode_for(told, "async")
    with pytest.raises(SettingError, match="mode is 'slow'; allowed: async, sync, stale:NUMBER"):
        mode_for(settings(), "slow")


def test_the_scheduler_hears_of_a_script_s_mode() -> None:
    assert "MERCURY_FABRIC_MODE" not in shared_settings(settings(), 0)
    asking = with_mode(settings(), "stale:2")
    assert "MERCURY_FABRIC_MODE=stale:2\n" in shared_settings(asking, 0)
    assert node_options(asking)["staleness"] == 2


def test_divergence_bounds() -> None:
    assert divergence_bound("2.5") == 2.5
    for bad in ("", "x", "inf", "nan", "-1"):
        with pytest.raises(SettingError):
            divergence_bound(bad)


def test_a_feed_is_there_from_the_start(tmp_path: Path) -> None:
    assert feed_path(settings()) == ""
    with pytest.raises(SettingError, match="which does not exist"):
        feed_path(settings(MERCURY_FABRIC_FEED=str(tmp_path / "feed")))
    (tmp_path / "feed").touch()
    assert feed_path(settings(MERCURY_FABRIC_FEED=str(tmp_path / "feed")))


def test_a_planner_does_without_only_if_it_is_told_so() -> None:
    usual = node_options(settings(DMLC_ROLE="scheduler"))
    assert (usual["aggregators"], usual["as_they_come"]) == (4, 0)
    less = node_options(settings(DMLC_ROLE="scheduler"), planning=Planning(0, ordered=False))
    assert (less["aggregators"], less["as_they_come"]) == (0, 1)
