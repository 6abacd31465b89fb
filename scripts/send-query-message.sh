#!/usr/bin/env bash
# Asks which messages of a thing there are: send-query-message.sh THING; with --local against the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages query "$@"
