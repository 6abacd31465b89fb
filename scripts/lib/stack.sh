# Functions for scripts that need a Python tool, the antumbra binary or a running local stack. Source it from a script in
# scripts/; it changes to the repository's root.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
script="$(basename "$0")"

fail() { printf '%s: %s\n' "$script" "$*" >&2; exit 1; }

# Prints the comment at the top of the script if the first argument is --help.
show_help() {
  [ "${1:-}" = --help ] || return 0
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "scripts/$script"
  exit 0
}

# install_python_tools NAME REQUIREMENT...: installs the packages into a cached virtual environment. Sets $venv.
install_python_tools() {
  local cache="${XDG_CACHE_HOME:-$HOME/.cache}/antumbra/$1"; shift
  venv="$cache/venv"
  [ "$(cat "$cache/installed" 2>/dev/null)" = "$*" ] && return 0
  python3 -c 'import venv, ensurepip' 2>/dev/null || fail 'python3 with venv is not installed (Debian: apt install python3-venv)'
  printf '== installing %s into %s\n' "$*" "$cache" >&2
  rm -rf "$cache"
  mkdir -p "$cache"
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet "$@" >&2 || fail "could not install $*"
  printf '%s' "$*" > "$cache/installed"
}

# build_antumbra [CARGO_ARGUMENT...]: builds the command unless BINARY names one. Sets $binary.
build_antumbra() {
  binary="${BINARY:-}"
  [ -z "$binary" ] || return 0
  command -v cargo >/dev/null || fail 'cargo is not installed, and BINARY is not set'
  cargo build --quiet --locked --package antumbra "$@"
  local profile=debug
  case " $* " in *' --release '*) profile=release ;; esac
  binary="${CARGO_TARGET_DIR:-target}/$profile/antumbra"
}

# build_tests CRATE...: builds the tests of the whole workspace, so that nothing is built with other features, and sets $tests to
# those of some crates, unless TESTS names them.
build_tests() {
  tests="${TESTS:-}"
  [ -n "$tests" ] || tests="$(cargo test --workspace --locked --no-run --message-format=json-render-diagnostics | python3 -c '
import json, sys
for line in sys.stdin:
    artifact = json.loads(line)
    target = artifact.get("target", {})
    is_test = artifact.get("executable") and target["kind"] == ["test"]
    if is_test and any(f"/crates/{crate}/tests/" in target["src_path"] for crate in sys.argv[1:]):
        print(artifact["executable"])
' "$@")"
  [ -n "$tests" ] || fail "the tests of $* were not built"
}

# start_stack [LOCAL_ARGUMENT...]: starts `antumbra local` in memory on free ports and waits until it is ready. Sets
# $home, a temporary directory with `ready.json` and `log`. The stack ends with the script.
start_stack() {
  home="${home:-$(mktemp -d)}"
  "$binary" local --memory --dynamodb-port 0 --aws-port 0 --mqtt-port 0 --http-port 0 \
    --ready-file "$home/ready.json" "$@" >"$home/log" 2>&1 &
  processes="$!"
  trap 'kill $processes 2>/dev/null || true; wait 2>/dev/null || true; rm -rf "$home"' EXIT
  for _ in $(seq 300); do
    [ -s "$home/ready.json" ] && return 0
    kill -0 "$processes" 2>/dev/null || break
    sleep 0.1
  done
  cat "$home/log" >&2
  fail 'the local stack did not start'
}

# field FILE NAME: prints a member of a JSON object.
field() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$1" "$2"; }

# address NAME: prints an address of the stack: dynamodb, aws, mqtt or http.
address() { field "$home/ready.json" "$1"; }
