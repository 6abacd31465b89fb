#!/usr/bin/env bash
# Deletes a message: send-delete-message.sh THING ID; --local uses the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages delete "$@"
