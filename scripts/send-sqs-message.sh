#!/usr/bin/env bash
# Sends a message to the inbound queue and waits until it is stored: send-sqs-message.sh THING; --local uses the local
# stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages send "$@"
