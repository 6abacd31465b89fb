#!/usr/bin/env bash
# Gets a message: send-get-message.sh THING ID; --local uses the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages get "$@"
