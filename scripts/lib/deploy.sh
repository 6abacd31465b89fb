# shellcheck shell=bash disable=SC2034,SC2154
# Functions for scripts/deploy, package, undeploy and restore. Runs on bash 3.2, which macOS has: no associative arrays, no
# mapfile, no arrays that may be empty. `grep -q` reads from a here-string: in a pipe it would end its writer, which counts as a
# failure. Uses only commands that the AWS CLI has in versions 1 and 2.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
script="$(basename "$0")"

fail() { printf '%s: %s\n' "$script" "$*" >&2; exit 1; }
say() { printf '\n== %s\n' "$*"; }

# Prints the comment at the top of the script if an argument is --help.
show_help() {
  case " $* " in *' --help '*) ;; *) return 0 ;; esac
  sed -n '2,/^[^#]/s/^# \{0,1\}//p' "scripts/$script"
  exit 0
}

# Asks unless $yes is set. Without a terminal the answer is no.
confirm() {
  [ -z "${yes:-}" ] || return 0
  local answer=''
  printf '%s [y/N] ' "$1"
  read -r answer || true
  case "$answer" in y | Y | yes) return 0 ;; *) return 1 ;; esac
}

# at_least VERSION MINIMUM: compares versions number by number.
at_least() {
  awk -v have="$1" -v need="$2" 'BEGIN {
    count = split(need, n, "."); split(have, h, ".")
    for (i = 1; i <= count; i++) { if (h[i] + 0 > n[i] + 0) exit 0; if (h[i] + 0 < n[i] + 0) exit 1 }
  }'
}

# Prints the first version number in the output of a command.
version_of() { "$@" 2>&1 | sed -n 's/^[^0-9]*\([0-9][0-9]*\.[0-9.]*[0-9]\).*/\1/p' | head -n 1; }

# elf_machine FILE: prints the architecture for which an executable was built, as Lambda names it.
elf_machine() {
  local head
  head="$(od -An -tx1 -N20 "$1" 2>/dev/null | tr -d ' \n')"
  case "$head" in 7f454c46*) ;; *) echo 'not an ELF file'; return 0 ;; esac
  # Little-endian e_machine at byte 18.
  case "${head#????????????????????????????????????}" in
    3e00) echo x86_64 ;;
    b700) echo arm64 ;;
    *) echo "ELF machine ${head#????????????????????????????????????}" ;;
  esac
}

# check_bootstraps DIRECTORY ARCHITECTURE: every function of the template was built, for the architecture that is deployed.
check_bootstraps() {
  local wanted built=0 file machine
  wanted="$(grep -c 'Type: AWS::Serverless::Function' infra/template.yaml)"
  for file in "$1"/*/bootstrap; do
    [ -f "$file" ] || continue
    machine="$(elf_machine "$file")"
    [ "$machine" = "$2" ] || fail "$file is for $machine, but Architecture is $2; build it again"
    built=$((built + 1))
  done
  [ "$built" -eq "$wanted" ] || fail "$built of $wanted functions were built in $1"
}

# Tables of NAME-data that a restore replaces: the logical id, and the end of the name after NAME and suffix.
tables='Table
MessagesTable -messages
SecretsTable -secrets'

# table_names NAME: prints the names of all tables but the history.
table_names() { printf '%s\n' "$tables" | while IFS=' ' read -r _ end; do printf '%s\n' "$1$end"; done; }

# all_table_names NAME SUFFIX: prints these names and that of the history, which has no suffix and need not exist.
all_table_names() { table_names "$1$2" && printf '%s\n' "$1-history"; }

# tables_to_import NAME: prints all tables but the history as a list of resources to import.
tables_to_import() {
  local logical end all=''
  while IFS=' ' read -r logical end; do all="$all${all:+,}$(table_to_import "$logical" "$1$end")"; done <<END
$tables
END
  printf '%s' "$all"
}

sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi | cut -d' ' -f1; }

# code_hash DIRECTORY REGISTRATIONS PARAMETERS: prints a hash over bootstraps or zips, registrations with the grants of IAM
# callers, and parameters, one per line. SAM publishes a new version of a function only for changed code, so this hash stands for all of it.
code_hash() {
  local file
  {
    for file in "$1"/*/bootstrap "$1"/*.zip; do
      [ ! -f "$file" ] || { printf 'code %s ' "${file#"$1"/}"; sha256 <"$file"; }
    done
    find "$2" -maxdepth 2 -type f -name '*.json' ! -path "$2/examples/*" | LC_ALL=C sort | while IFS= read -r file; do
      printf 'registration %s ' "${file#"$2"/}"; sha256 <"$file"
    done
    printf '%s\n' "$3" | grep -v '^CodeHash=' | LC_ALL=C sort
  } | sha256
}

# Parameters are lines of NAME=VALUE; of several lines with one name the last counts.

# parameter NAME DEFAULT: prints a value of $parameters.
parameter() {
  local line
  line="$(printf '%s\n' "$parameters" | grep "^$1=" | tail -n 1 || true)"
  if [ -n "$line" ]; then printf '%s\n' "${line#*=}"; else printf '%s\n' "$2"; fi
}

# merged LINES...: prints each name once, with its last value.
merged() {
  printf '%s\n' "$@" | awk -F= 'NF > 1 { if (!($1 in value)) order[++count] = $1; value[$1] = $0 }
    END { for (i = 1; i <= count; i++) print value[order[i]] }'
}

# configured ENVIRONMENT: prints the parameters of infra/samconfig.toml for an environment.
configured() {
  awk -v section="[$1.deploy.parameters]" '
    /^\[/ { inside = ($0 == section) }
    inside && /^parameter_overrides *=/ { sub(/^[^=]*= *"/, ""); sub(/" *$/, ""); gsub(/\\"/, ""); gsub(/ +/, "\n"); print }
  ' infra/samconfig.toml
}

# deployed STACK: prints the parameters of a deployed stack.
deployed() {
  aws cloudformation describe-stacks --stack-name "$1" --query 'Stacks[0].Parameters[].[ParameterKey,ParameterValue]' \
    --output text 2>/dev/null | awk -F'\t' 'NF { print $1 "=" $2 }' || true
}

# stack_status STACK: prints the status, or nothing if there is no such stack.
stack_status() {
  aws cloudformation describe-stacks --stack-name "$1" --query 'Stacks[0].StackStatus' --output text 2>/dev/null || true
}

# is_deployed STACK: the stack exists, though its last update may have failed and been rolled back.
is_deployed() {
  case "$(stack_status "$1")" in
    CREATE_COMPLETE | UPDATE_COMPLETE | UPDATE_ROLLBACK_COMPLETE | IMPORT_COMPLETE | IMPORT_ROLLBACK_COMPLETE) ;;
    *) return 1 ;;
  esac
}

# only_of TEMPLATE LINES: prints the parameters that the template declares.
only_of() {
  local declared
  declared="$(awk '/^Parameters:/ { on = 1; next } /^[A-Z]/ { on = 0 } on && /^  [A-Za-z]+:/ { sub(/:.*/, ""); sub(/^  /, ""); print }' "$1")"
  printf '%s\n' "$2" | while IFS= read -r line; do
    if grep -qx "${line%%=*}" <<<"$declared"; then printf '%s\n' "$line"; fi
  done
}

# sam_deploy ENVIRONMENT PARAMETERS ARGUMENT...: runs `sam deploy` in infra/ with these parameters.
sam_deploy() {
  local environment="$1" lines="$2" name value first=1
  shift 2
  # The environment's own bucket, or the one that SAM manages.
  if ! awk -v section="[$environment.deploy.parameters]" '/^\[/ { inside = ($0 == section) } inside && /^s3_bucket/ { found = 1 }
    END { exit !found }' infra/samconfig.toml; then
    set -- "$@" --resolve-s3
  fi
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    name="${line%%=*}" value="$(printf '%s' "${line#*=}" | sed 's/"/\\"/g')"
    if [ -n "$first" ]; then set -- "$@" --parameter-overrides; first=''; fi
    set -- "$@" "$name=\"$value\""
  done <<END
$lines
END
  (cd infra && sam deploy --config-env "$environment" --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND \
    --no-fail-on-empty-changeset "$@")
}
export SAM_CLI_ENABLE_LANGUAGE_EXTENSIONS=1 SAM_CLI_TELEMETRY="${SAM_CLI_TELEMETRY:-0}"

# check_account: credentials and region. Sets $account and $region.
check_account() {
  local caller
  command -v aws >/dev/null || fail 'the AWS CLI is not installed, https://docs.aws.amazon.com/cli/'
  caller="$(aws sts get-caller-identity --query '[Account,Arn]' --output text 2>&1)" ||
    fail "invalid credentials: $(printf '%s' "$caller" | tail -n 1). Log in (aws configure) or set AWS_PROFILE."
  account="${caller%%[[:space:]]*}"
  region="${AWS_REGION:-${AWS_DEFAULT_REGION:-$(aws configure get region || true)}}"
  [ -n "$region" ] || fail 'no region: set AWS_REGION, or aws configure set region'
  export AWS_REGION="$region" AWS_DEFAULT_REGION="$region"
  printf '== account  %s (%s)\n== region   %s\n' "$account" "${caller#*[[:space:]]}" "$region"
}

# A stack whose creation failed can only be deleted. Its tables and queues went with it.
remove_failed_creation() {
  case "$(stack_status "$1")" in
    ROLLBACK_COMPLETE | ROLLBACK_FAILED | REVIEW_IN_PROGRESS | DELETE_FAILED) ;;
    *) return 0 ;;
  esac
  printf 'the creation of %s failed before: deleting what is left of the stack\n' "$1"
  aws cloudformation delete-stack --stack-name "$1"
  aws cloudformation wait stack-delete-complete --stack-name "$1" || fail "$1 could not be deleted"
}

# update_stack STACK PARAMETERS [TEMPLATE]: updates parameters of a stack and keeps all others, and its template unless one is
# given.
update_stack() {
  local stack="$1" changes="$2" line key
  if [ -n "${3:-}" ]; then set -- --template-body "file://$3"; else set -- --use-previous-template; fi
  set -- "$@" --parameters
  while IFS= read -r line; do
    [ -n "$line" ] || continue
    key="${line%%=*}"
    if grep -q "^$key=" <<<"$changes"; then
      set -- "$@" "ParameterKey=$key,ParameterValue=${line#*=}"
    else
      set -- "$@" "ParameterKey=$key,UsePreviousValue=true"
    fi
  done <<END
$(merged "$(deployed "$stack")" "$changes")
END
  aws cloudformation update-stack --stack-name "$stack" --capabilities CAPABILITY_IAM CAPABILITY_AUTO_EXPAND "$@" >/dev/null
  aws cloudformation wait stack-update-complete --stack-name "$stack" || fail "the update of $stack failed; its events say why"
}

# import_data NAME PARAMETERS RESOURCES: takes existing resources (a JSON list) into the data stack. An import cannot create
# others or add outputs, so that a new stack has neither until its next update.
import_data() {
  local stack="$1-data" line change=import-data template=infra/data.yaml
  local resources="$3" lines="$2"
  set --
  while IFS= read -r line; do
    [ -z "$line" ] || set -- "$@" "ParameterKey=${line%%=*},ParameterValue=${line#*=}"
  done <<END
$lines
END
  if [ -z "$(stack_status "$stack")" ]; then
    template="$(mktemp)"
    awk -v imported=" $(grep -o '"LogicalResourceId":"[A-Za-z]*"' <<<"$resources" | cut -d'"' -f4 | tr '\n' ' ')" '
      /^[A-Z]/ { section = $1; kept = section != "Outputs:" }
      section == "Resources:" && /^  [A-Za-z]/ { name = $1; sub(/:.*/, "", name); kept = index(imported, " " name " ") }
      kept' infra/data.yaml >"$template"
  fi
  aws cloudformation create-change-set --stack-name "$stack" --change-set-name "$change" --change-set-type IMPORT \
    --template-body "file://$template" --resources-to-import "$resources" --parameters "$@" >/dev/null
  [ "$template" = infra/data.yaml ] || rm -f "$template"
  aws cloudformation wait change-set-create-complete --stack-name "$stack" --change-set-name "$change" ||
    fail "the import into $stack was refused: aws cloudformation describe-change-set --stack-name $stack --change-set-name $change"
  aws cloudformation execute-change-set --stack-name "$stack" --change-set-name "$change"
  aws cloudformation wait stack-import-complete --stack-name "$stack" || fail "the import into $stack failed; its events say why"
}

# table_to_import LOGICAL_ID TABLE: prints an element of the list for import_data.
table_to_import() {
  printf '{"ResourceType":"AWS::DynamoDB::Table","LogicalResourceId":"%s","ResourceIdentifier":{"TableName":"%s"}}' "$1" "$2"
}

# table_kept TABLE: prints the size of a table, if it exists, and what it costs a month.
table_kept() {
  aws dynamodb describe-table --table-name "$1" --query 'Table.[TableSizeBytes,ItemCount]' --output text 2>/dev/null |
    awk -v table="$1" '{ gigabytes = $1 / 1e9
      printf "  table %s: %d items, %.3f GB, about $%.2f a month for storage and $%.2f for point-in-time recovery\n",
        table, $2, gigabytes, gigabytes * 0.25, gigabytes * 0.20 }' || true
}

# The queues of a deployment: logical ids in infra/data.yaml and names without the prefix.
queues='InboundQueue inbound
OutboundQueue outbound
SignalsQueue signals
DeliveriesQueue deliveries
DeliveriesFifoQueue deliveries.fifo
DeliveriesDeadQueue deliveries-dead
DeliveriesDeadFifoQueue deliveries-dead.fifo
QuarantineQueue quarantine
UndeliverableQueue undeliverable
SpillQueue spill.fifo'
