"""Settings: the table, its checks, its documentation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pslite_ext import _core, settings_header
from pslite_ext.config import TABLE, SettingError, Settings, wanted_van
from pslite_ext.errors import InvalidArgumentError
from pslite_ext.setting import Setting
from pslite_ext.settings_table import DERIVED

GOOD = {
    "DMLC_ROLE": "worker",
    "DMLC_PS_ROOT_URI": "127.0.0.1",
    "DMLC_PS_ROOT_PORT": "9000",
    "DMLC_NUM_WORKER": "2",
    "DMLC_NUM_SERVER": "3",
}


def settings(**changes: str) -> Settings:
    return Settings.from_environment({**GOOD, **changes})


def test_options_are_what_was_told_and_what_follows_of_it() -> None:
    options = settings(MERCURY_LANES=" 2 ", MERCURY_TRACE_STEPS="3:5").options()
    assert options["DMLC_NUM_SERVER"] == 3
    assert options["MERCURY_LANES"] == 2
    assert (options["trace_from_step"], options["trace_to_step"]) == (3, 5)
    assert options["DMLC_NODE_HOST"] == "127.0.0.1"
    assert "MERCURY_POLICY" not in options, "a default is not told"
    known = {s.name for s in (*TABLE, *DERIVED) if s.core}
    assert known >= {*options}


def test_the_core_s_struct_has_every_setting_that_it_takes() -> None:
    text = settings_header.header()
    for setting in (*TABLE, *DERIVED):
        assert (f'{{"{setting.name}", ' in text) == setting.core
    assert "  int64_t split_bytes = 4000000;" in text
    assert '  std::string policy = "priority";' in text


def test_the_core_says_what_policies_there_are() -> None:
    for policy in _core.policies():
        settings(MERCURY_POLICY=policy)
    with pytest.raises(SettingError, match="'p4'; allowed: priority, fifo, wfbp"):
        settings(MERCURY_POLICY="p4")


def test_the_scheduler_listens_on_the_address_that_others_are_told() -> None:
    options = settings(DMLC_ROLE="scheduler").options()
    assert (options["DMLC_NODE_HOST"], options["DMLC_NODE_PORT"]) == ("127.0.0.1", 9000)
    assert settings(DMLC_ROLE="scheduler", DMLC_USE_KUBERNETES="1").host == "0.0.0.0"
    six = settings(DMLC_ROLE="scheduler", DMLC_USE_KUBERNETES="1", DMLC_PS_ROOT_URI="fd00::5")
    assert six.host == "::"


@pytest.mark.parametrize("setting", [s for s in TABLE if s.is_number], ids=lambda s: s.name)
def test_every_number_has_a_range(setting: Setting) -> None:
    for bad in (setting.least - 1, setting.most + 1, "x", "1.5"):
        with pytest.raises(SettingError, match=setting.name) as raised:
            setting.read({setting.name: str(bad)})
        assert setting.allowed in str(raised.value)
    assert setting.read({setting.name: str(setting.most)}) == setting.most
    assert setting.read({setting.name: f" {setting.least} "}) == setting.least


@pytest.mark.parametrize("host", ["a..b", "x" * 64])
def test_a_host_that_has_no_name_is_refused(host: str) -> None:
    with pytest.raises(SettingError, match=f"ROOT_URI is '{host}', which is not a host name"):
        settings(DMLC_PS_ROOT_URI=host)


def test_token_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("secret\n")
    assert settings(MERCURY_JOB_TOKEN_FILE=str(file)).token == "secret"
    assert settings(MERCURY_JOB_TOKEN_FILE=str(file), MERCURY_JOB_TOKEN="other").token == "other"
    file.write_text("\n")
    with pytest.raises(SettingError, match="empty"):
        settings(MERCURY_JOB_TOKEN_FILE=str(file))
    file.write_bytes(b"\xff")
    with pytest.raises(SettingError, match="which is not UTF-8 text"):
        settings(MERCURY_JOB_TOKEN_FILE=str(file))
    with pytest.raises(SettingError, match="MERCURY_JOB_TOKEN is not UTF-8 text"):
        settings(MERCURY_JOB_TOKEN=os.fsdecode(b"\xff"))


@pytest.mark.parametrize("token", ["one\ntwo", "one\rtwo", "one\u2028two"])
def test_a_token_is_one_line(tmp_path: Path, token: str) -> None:
    with pytest.raises(SettingError, match="MERCURY_JOB_TOKEN has several lines") as raised:
        settings(MERCURY_JOB_TOKEN=token)
    assert "two" not in str(raised.value)
    file = tmp_path / "token"
    file.write_bytes(token.encode())
    with pytest.raises(SettingError, match="TOKEN_FILE is '.*', which has several lines"):
        settings(MERCURY_JOB_TOKEN_FILE=str(file))


def test_the_token_is_in_nothing_that_is_shown() -> None:
    assert "secret" not in repr(settings(MERCURY_JOB_TOKEN="secret"))


def test_a_setting_error_is_a_value_error_of_ours() -> None:
    with pytest.raises(ValueError, match="DMLC_ROLE") as raised:
        settings(DMLC_ROLE="")
    assert isinstance(raised.value, InvalidArgumentError)


def test_wanted_van() -> None:
    for value in ("", "p3", "ibverbs"):
        assert wanted_van({"DMLC_PS_VAN_TYPE": value}) == ""
    assert wanted_van({}) == ""
    for value in ("zmq", "mercury"):
        assert wanted_van({"DMLC_PS_VAN_TYPE": value}) == value
    for value in ("Mercury", "ZMQ", "tcp"):
        with pytest.raises(SettingError, match="DMLC_PS_VAN_TYPE"):
            wanted_van({"DMLC_PS_VAN_TYPE": value})


def test_the_wire_s_words_are_the_core_s() -> None:
    assert settings(MERCURY_WIRE="bf16").values["MERCURY_WIRE"] == "bf16"
    with pytest.raises(SettingError, match="MERCURY_WIRE is 'bf17'; allowed: float32, bf16"):
        settings(MERCURY_WIRE="bf17")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"SERVER_SHARES": "x"}, "SHARES is 'x'; allowed: numbers from 0 to 1000000000, with c"),
        ({"SERVER_SHARES": "1,2000000000,1"}, "allowed: numbers from 0 to 1000000000"),
        ({"SERVER_SHARES": "1,2"}, "'1,2'; allowed: one number for each of the 3 servers"),
        ({"SERVER_SHARES": "0,0,0"}, "'0,0,0'; allowed: not only zeros"),
        ({"SERVER_SHARES": "1," * 1100}, "allowed: 2048 characters"),
        ({"MIN_WORKERS": "3"}, "MERCURY_MIN_WORKERS is '3'; allowed: 0 to 2, as there are workers"),
        ({"MAX_WORKERS": "3"}, r"is '3', and MERCURY_MIN_WORKERS \(--min-workers\) is not set"),
        ({"MAX_WORKERS": "1", "MIN_WORKERS": "1"}, "is '1', and the job begins with 2"),
        ({"FABRIC_MODE": "stale:-1"}, "MODE is 'stale:-1'; allowed: async, sync, stale:NUMBER"),
        ({"FABRIC_DIVERGENCE_BOUND": "nan"}, "BOUND is 'nan'; allowed: a number, 0 or more"),
        ({"FABRIC_FORWARDING": "x"}, "FORWARDING is 'x'; allowed: packets, whole"),
    ],
)
def test_what_no_range_says_is_refused_before_a_node_starts(
    changes: dict[str, str], says: str
) -> None:
    with pytest.raises(SettingError, match=says):
        settings(**{f"MERCURY_{name}": value for name, value in changes.items()})


def test_who_goes_on_without_workers_needs_packets() -> None:
    for van in ("mercury", "zmq"):
        told = {"DMLC_PS_VAN_TYPE": van, "MERCURY_MIN_WORKERS": "1", "MERCURY_MAX_WORKERS": "4"}
        if van == "mercury":
            settings(**told, MERCURY_SERVER_SHARES="0,2,1000000000")
            continue
        with pytest.raises(SettingError, match="needs DMLC_PS_VAN_TYPE=mercury, which is 'zmq'"):
            settings(**told)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(SettingError, match="MERCURY_POLICYY .*did you mean MERCURY_POLICY?"):
        settings(MERCURY_POLICYY="fifo")
    with pytest.raises(SettingError, match="`mercury settings` lists all"):
        settings(MERCURY_XQ="")
    settings(MERCURY_STOCK_PYTHON="python3", MERCURIAL="hg")


def test_kubernetes_may_have_a_service_of_the_name() -> None:
    service = {
        "MERCURY_SERVICE_HOST": "10.0.0.1",
        "MERCURY_SERVICE_PORT": "9091",
        "MERCURY_SERVICE_PORT_CONTROL": "9091",
        "MERCURY_PORT": "tcp://10.0.0.1:9091",
        "MERCURY_PORT_9091_TCP_ADDR": "10.0.0.1",
    }
    settings(**service)
    settings(**{name.replace("MERCURY", "MERCURY_JOB_7"): text for name, text in service.items()})
    with pytest.raises(SettingError, match="MERCURY_POLICYY"):
        settings(**service, MERCURY_POLICYY="fifo")
    with pytest.raises(SettingError, match="MERCURY_PORT"):
        settings(MERCURY_PORT="9091")
