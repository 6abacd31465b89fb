#!/usr/bin/env bash
# Asks for a message: send-get-message.sh THING ID; with --local against the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages get "$@"
