#!/bin/bash
# Four workers on the hosts of the file beside this one, a server beside each:
#   examples/ssh/launch.sh train.py
# (If lines say how many workers a host takes, slots=4, give their sum as -n.)
# Every host has this directory under the same path, with the same Python environment.
set -e
hosts=$(dirname "$0")/hosts
exec mercury launch -n "$(grep -cE '^[[:space:]]*[^#[:space:]]' "$hosts")" -s beside -H "$hosts" -- python "$@"
