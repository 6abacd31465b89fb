#!/usr/bin/env bash
# Prints the ids of the oldest and the newest message of a thing: send-query-message.sh THING; --local uses the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages query "$@"
