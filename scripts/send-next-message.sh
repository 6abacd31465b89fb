#!/usr/bin/env bash
# Asks which message comes behind another: send-next-message.sh THING ID; with --local against the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages next "$@"
