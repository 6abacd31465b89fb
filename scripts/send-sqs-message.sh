#!/usr/bin/env bash
# Puts a message of a thing in the inbound queue and waits until it is in the inbox: send-sqs-message.sh THING; with --local against the local stack.
set -euo pipefail
exec ${ANTUMBRA:-cargo run --quiet --manifest-path "$(dirname "$0")/../Cargo.toml" --} messages send "$@"
