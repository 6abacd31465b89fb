#!/usr/bin/env bash
# Prints the id of the next newer message: send-next-message.sh THING ID; --local uses the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages next "$@"
