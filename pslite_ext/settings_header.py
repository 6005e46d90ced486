"""Writes the struct in which the native core has its settings; CMake runs this.

python -m pslite_ext.settings_header process/settings.h
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pslite_ext.setting import Setting
from pslite_ext.settings_table import DERIVED, TABLE

HEADING = """\
// The settings that the core takes: made from pslite_ext/settings_table.py when it is built.
//
// Thread-safety: plain values.
#pragma once

#include <cstdint>
#include <string>

namespace mercury {
"""


def header() -> str:
    rows = [setting for setting in (*TABLE, *DERIVED) if setting.core]
    lines = [HEADING, "struct Settings {"]
    lines += [f"  {_type(row)} {row.field} = {_default(row)};" for row in rows]
    lines += [
        "};",
        "",
        "struct SettingRow {",
        "  const char* name;",
        "  int64_t Settings::*number;  // or null, if it is a text",
        "  std::string Settings::*text;",
        "  int64_t least, most;  // of a number",
        "  bool shared;          // all nodes must agree",
        "};",
        "inline constexpr SettingRow kSettingRows[] = {",
    ]
    for row in rows:
        member = f"&Settings::{row.field}"
        number, text = (member, "nullptr") if row.is_number else ("nullptr", member)
        shared = str(row.shared).lower()
        lines.append(f'    {{"{row.name}", {number}, {text}, {row.least}, {row.most}, {shared}}},')
    return "\n".join([*lines, "};", "", "}  // namespace mercury", ""])


def _type(row: Setting) -> str:
    return "int64_t" if row.is_number else "std::string"


def _default(row: Setting) -> str:
    if row.is_number:
        return str(row.least if row.default is None else row.default)
    return json.dumps(row.default or "")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(header())
