"""Runs built functions under the Lambda runtime interface emulator against a local stack, and measures them.

Used by scripts/invoke-local, scripts/check-infra and scripts/bench-cold-start. The environment of a function is that of
infra/template.yaml, with the tables and queues of the local stack, so a variable that the template lacks is missing here
too. Messages to MQTT, queues and webhooks pass through recorders here and are part of the outcome.
"""

import argparse
import contextlib
import fnmatch
import http.client
import http.server
import json
import os
import pathlib
import platform
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.parse
import zlib

import boto3
import samcli
import yaml
from samcli.lib.cfn_language_extensions.sam_integration import expand_language_extensions
from samtranslator.translator.transform import transform

ROOT = pathlib.Path(__file__).resolve().parent.parent
EVENTS = ROOT / "infra" / "events"
# Placeholder in an expected outcome that matches anything.
ANY = "<any>"
START_SECONDS = 20
ANSWER_SECONDS = 70
# Most megabytes and most times the duration of a bare function, of functions that do not reach the goals.
LIMITS = {"stream-listener": (3.75, 2.6), "http-api": (3.8, 2.3), "shadow-requests": (3.0, 2.2)}
# Variables that Lambda sets for every function.
AWS_VARIABLES = {
    "PATH": "/usr/bin:/bin",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "256",
}


def template(name):
    return yaml.safe_load((ROOT / "infra" / name).read_text())


def serverless_functions():
    """Logical ids and resources of the functions, without the loops beside them."""
    for logical, resource in template("template.yaml")["Resources"].items():
        if isinstance(resource, dict) and resource["Type"] == "AWS::Serverless::Function":
            yield logical, resource


def logical_id(function):
    return "".join(word.capitalize() for word in function.split("-"))


class Stack:
    """Addresses of the local stack."""

    def __init__(self, dynamodb, aws):
        self.dynamodb = dynamodb
        self.aws = aws


def serve(answer):
    """Serves POST requests on a free port; `answer(request, body)` returns status, headers and content."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            status, headers, content = answer(self, self.rfile.read(int(self.headers.get("content-length", 0))))
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


class Recorder:
    """Forwards the requests of a function to the local stack and records them."""

    def __init__(self, target):
        target = urllib.parse.urlparse(target)
        self.seen = []

        def forward(request, body):
            onward = http.client.HTTPConnection(target.hostname, target.port, timeout=ANSWER_SECONDS)
            headers = {k: v for k, v in request.headers.items() if k.lower() != "host"}
            onward.request("POST", request.path, body, headers)
            answer = onward.getresponse()
            content = answer.read()
            self.seen.append((request.path, request.headers.get("x-amz-target", ""), body))
            own = ("content-length", "transfer-encoding", "connection")
            return answer.status, [(k, v) for k, v in answer.getheaders() if k.lower() not in own], content

        self.server, self.url = serve(forward)

    def published(self):
        """Published MQTT messages, in order."""
        for path, _, body in self.seen:
            if path.startswith("/topics/"):
                topic = urllib.parse.unquote(path.removeprefix("/topics/").split("?")[0])
                yield {"topic": topic, "payload": as_json(body.decode())}

    def sent(self):
        """Messages sent to queues, in order."""
        for _, operation, body in self.seen:
            if operation == "AmazonSQS.SendMessageBatch":
                batch = json.loads(body)
                for entry in batch["Entries"]:
                    message = {
                        "queue": batch["QueueUrl"].rsplit("/", 1)[1],
                        "body": as_json(entry["MessageBody"]),
                    }
                    attributes = entry.get("MessageAttributes") or {}
                    if "reason" in attributes:
                        message["reason"] = attributes["reason"]["StringValue"]
                    yield message


class Receiver:
    """A webhook endpoint."""

    def __init__(self):
        self.posts = []

        def accept(request, body):
            signed = "webhook-signature" in request.headers
            identity = request.headers.get("webhook-id")
            self.posts.append({"id": identity, "signed": signed, "body": as_json(body.decode())})
            return 204, [], b""

        _, url = serve(accept)
        self.url = f"{url}/"


class Settings:
    """A table with default settings, which some functions read before their first poll.

    It responds without parsing requests: an HTTP server of Python would add a quarter of a millisecond to each start.
    """

    def __init__(self):
        item = {"layout": "separate", "timestampFields": "timestamp", "idField": "id"}
        content = json.dumps({"Item": {name: {"S": value} for name, value in item.items()}})
        headers = f"content-type: application/x-amz-json-1.0\r\ncontent-length: {len(content)}"
        self.response = f"HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{content}".encode()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.respond, daemon=True).start()

    def respond(self):
        """One connection at a time, with one request: a JSON object."""
        while True:
            connection = self.listener.accept()[0]
            with connection:
                seen = b""
                while not seen.endswith(b"}") and (more := connection.recv(65536)):
                    seen += more
                connection.sendall(self.response)
                # The function is ended, or closes the connection.
                with contextlib.suppress(ConnectionError):
                    connection.recv(1)


def as_json(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def environment(function, sqs, iot):
    """The environment that the template sets, with the local stack's names, and the function's timeout."""
    whole = template("template.yaml")
    resource = dict(serverless_functions()).get(logical_id(function))
    if not resource:
        sys.exit(f"infra/template.yaml has no function {function}")
    defaults = {name: given.get("Default", "") for name, given in whole["Parameters"].items()}
    local = {
        "IotEndpoint": iot,
        # Limit of the emulated SQS.
        "QueueBytes": "262144",
        # As in the local stack: webhooks may go to this machine, and signals may have any scalar value.
        "WebhookAllow": "http://localhost, http://127.0.0.0/8",
        "SensorData": "scalar",
        # The emulated queue has no delay.
        "GraceSeconds": "1",
    }
    values = {**defaults, **local, "AWS::Region": "us-east-1", "AWS::URLSuffix": "amazonaws.com", "AWS::AccountId": "000000000000"}

    def resolve(value):
        if not isinstance(value, dict):
            return str(value)
        (function, argument), = value.items()
        if function == "Ref":
            return str(values[argument])
        if function == "Fn::Sub":
            text = re.sub(r"\$\{([^}]+)\}", lambda match: str(values[match.group(1)]), argument)
            return text.replace("https://sqs.us-east-1.amazonaws.com", sqs)
        if function == "Fn::If":
            # Every condition of a variable says that a parameter differs from its default.
            return resolve(argument[2])
        if function == "Fn::FindInMap":
            mapping, first, second = argument
            return str(whole["Mappings"][mapping][resolve(first)][second])
        sys.exit(f"infra/template.yaml: {function} in a variable is not understood")

    variables = {
        **whole["Globals"]["Function"]["Environment"]["Variables"],
        **resource["Properties"]["Environment"]["Variables"],
    }
    resolved = {name: resolve(value) for name, value in variables.items()}
    if "REGISTRATIONS" in resolved:
        # On AWS a layer is mounted there.
        resolved["REGISTRATIONS"] = str(ROOT / "registrations")
    return resolved, int(resource["Properties"]["Timeout"])


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def emulator():
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return pathlib.Path(samcli.__file__).parent / "local" / "rapid" / f"aws-lambda-rie-{machine}"


def invoke(function, event, bootstrap, stack, logs):
    """Starts the function, invokes it with the event, and returns its response and the messages it sent."""
    sqs, iot = Recorder(stack.aws), Recorder(stack.aws)
    variables, timeout = environment(function, sqs.url, iot.url)
    front, runtime = free_port(), free_port()
    command = [
        emulator(), "--runtime-interface-emulator-address", f"127.0.0.1:{front}",
        "--runtime-api-address", f"127.0.0.1:{runtime}", "--log-level", "error", bootstrap,
    ]
    process = subprocess.Popen(
        command, stdout=logs, stderr=logs,
        env={
            **AWS_VARIABLES,
            "AWS_LAMBDA_FUNCTION_NAME": f"antumbra-{function}",
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout),
            "AWS_ENDPOINT_URL_DYNAMODB": stack.dynamodb,
            "AWS_ENDPOINT_URL_SQS": sqs.url,
            "AWS_ENDPOINT_URL_SNS": stack.aws,
            **variables,
        },
    )
    try:
        answer = post(front, event, process)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        sqs.server.shutdown()
        iot.server.shutdown()
    outcome = {"answer": readable(answer)}
    # Order is guaranteed per topic and per queue, not across them.
    if published := sorted(iot.published(), key=lambda message: message["topic"]):
        outcome["published"] = published
    if sent := sorted(sqs.sent(), key=lambda message: message["queue"]):
        outcome["sent"] = sent
    return outcome


def post(port, event, process):
    until = time.monotonic() + START_SECONDS
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
            connection.connect()
            break
        except ConnectionRefusedError:
            if process.poll() is not None or time.monotonic() > until:
                sys.exit("the runtime interface emulator did not start")
            time.sleep(0.02)
    connection.request("POST", "/2015-03-31/functions/function/invocations", event.encode())
    return connection.getresponse().read().decode()


def readable(answer):
    """The response as JSON, with the body of an HTTP response as JSON, without its length."""
    answer = as_json(answer)
    if isinstance(answer, dict) and isinstance(answer.get("body"), str):
        answer["body"] = as_json(answer["body"])
        answer.get("headers", {}).pop("content-length", None)
    return answer


def matches(expected, actual):
    if expected == ANY:
        return True
    if isinstance(expected, str) and isinstance(actual, str) and ANY in expected:
        return re.fullmatch(".*".join(map(re.escape, expected.split(ANY))), actual, re.DOTALL) is not None
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(matches(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(matches, expected, actual))
    return type(expected) is type(actual) and expected == actual


def bootstrap_of(function, directory):
    for path in (directory / logical_id(function) / "bootstrap", directory / f"antumbra-{function}" / "bootstrap",
                 directory / f"antumbra-{function}"):
        if path.is_file():
            return path
    sys.exit(f"no bootstrap of {function} in {directory}: run `sam build` in infra/, or pass --bootstraps")


def stack_of(options):
    if options.ready_file:
        ready = json.loads(pathlib.Path(options.ready_file).read_text())
        return Stack(ready["dynamodb"], ready["aws"])
    return Stack(options.dynamodb, options.aws)


def event_of(path, receiver):
    """The text of an event, with the webhook endpoint and the current time filled in."""
    now = str(time.time_ns() // 1_000_000)
    return pathlib.Path(path).read_text().replace("${RECEIVER}", receiver).replace("${NOW_MILLISECONDS}", now)


def put_items(stack, path):
    """Puts the items that an event refers to into the main table, if there are any."""
    for item in json.loads(path.read_text()) if path.exists() else []:
        boto3.client("dynamodb", endpoint_url=stack.dynamodb).put_item(TableName="antumbra", Item=item)


def run_one(options):
    text = event_of(options.event, options.receiver)
    bootstrap = bootstrap_of(options.function, pathlib.Path(options.bootstraps))
    outcome = invoke(options.function, text, bootstrap, stack_of(options), sys.stderr)
    for kind in ("published", "sent"):
        for message in outcome.get(kind, []):
            place = message.get("topic") or message.get("queue")
            print(kind, place, json.dumps(message.get("payload", message.get("body"))), file=sys.stderr)
    print(json.dumps(outcome["answer"], indent=2, ensure_ascii=False))
    if isinstance(outcome["answer"], dict) and "errorType" in outcome["answer"]:
        sys.exit(1)


def run_all(options):
    """Runs every event in the order of `sequence`, because an event may need what earlier ones stored."""
    sequence = [line for line in (EVENTS / "sequence").read_text().splitlines() if line and not line.startswith("#")]
    there = {str(path.relative_to(EVENTS).with_suffix("")) for path in EVENTS.glob("*/*.json")
             if not path.name.endswith((".answer.json", ".items.json"))}
    if there != set(sequence):
        sys.exit(f"infra/events/sequence and the files beside it differ: {sorted(there ^ set(sequence))}")
    if missing := set(functions_of_template()) - {name.split("/")[0] for name in sequence}:
        sys.exit(f"functions without an event: {sorted(missing)}")
    stack, receiver, failed = stack_of(options), Receiver(), 0
    for name in sequence:
        if options.only and not fnmatch.fnmatch(name, options.only):
            continue
        function = name.split("/")[0]
        event = event_of(EVENTS / f"{name}.json", receiver.url)
        bootstrap = bootstrap_of(function, pathlib.Path(options.bootstraps))
        put_items(stack, EVENTS / f"{name}.items.json")
        with open(options.logs, "ab") if options.logs else open(os.devnull, "wb") as logs:
            outcome = invoke(function, event, bootstrap, stack, logs)
        ids = re.findall(r'\\"id\\": ?\\"([^"\\]+)\\"', event) if function == "webhook-deliver" else []
        if posted := [post for post in receiver.posts if post["id"] in ids]:
            outcome["posted"] = posted
        answer = EVENTS / f"{name}.answer.json"
        if options.write and not (answer.exists() and matches(json.loads(answer.read_text()), outcome)):
            answer.write_text(json.dumps(outcome, indent=2, ensure_ascii=False) + "\n")
        expected = json.loads(answer.read_text())
        if matches(expected, outcome):
            print(f"ok   {name}")
        else:
            failed += 1
            print(f"FAIL {name}\n  expected {json.dumps(expected)}\n  got      {json.dumps(outcome)}")
    if failed:
        sys.exit(f"{failed} events were answered otherwise")


def functions_of_template():
    for logical, _ in serverless_functions():
        yield re.sub(r"(?<!^)(?=[A-Z])", "-", logical).lower()


def zipped(path):
    """Compressed size of the file, as in SAM's zip except for some hundred bytes of headers."""
    packer = zlib.compressobj(wbits=-15)
    return len(packer.compress(path.read_bytes()) + packer.flush())


def first_poll(binary, variables):
    """Seconds from the start of a process to its first question for work, after which it is ended."""
    with socket.socket() as runtime:
        runtime.bind(("127.0.0.1", 0))
        runtime.listen()
        runtime.settimeout(START_SECONDS)
        api = "127.0.0.1:%d" % runtime.getsockname()[1]
        variables = {**AWS_VARIABLES, "AWS_LAMBDA_FUNCTION_NAME": "function", "AWS_LAMBDA_FUNCTION_VERSION": "1",
                     "AWS_LAMBDA_RUNTIME_API": api, **variables}
        quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
        began = time.perf_counter()
        process = os.posix_spawn(binary, [str(binary)], variables, file_actions=quiet)
        try:
            connection, seen = runtime.accept()[0], b""
            while b"/runtime/invocation/next" not in seen:
                more = connection.recv(4096)
                if not more:
                    sys.exit(f"{binary} does not poll for events")
                seen += more
            took = time.perf_counter() - began
            connection.close()
        except TimeoutError:
            sys.exit(f"{binary} does not poll for events within {START_SECONDS} seconds")
        finally:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
    return took


def run_bench(options):
    """Sizes, and cold starts in rounds in which each has its turn; the minima are compared."""
    directory = pathlib.Path(options.bootstraps)
    nowhere = "https://sqs.us-east-1.amazonaws.com", "data-ats.iot.us-east-1.amazonaws.com"
    table = {"AWS_ENDPOINT_URL_DYNAMODB": Settings().url}
    contestants = {name: (bootstrap_of(name, directory), {**environment(name, *nowhere)[0], **table})
                   for name in functions_of_template()}
    contestants["hello"] = (pathlib.Path(options.hello), {})
    times = {name: [] for name in contestants}
    for _ in range(options.rounds):
        for name, (binary, variables) in contestants.items():
            times[name].append(first_poll(binary, variables))
    bare = min(times["hello"])
    table = ["| function | zipped, MB | to the first poll, ms: least, median | against a bare function |", "|---|---|---|---|"]
    failed = []
    for name, (binary, _) in contestants.items():
        size, ratio = zipped(binary) / 1e6, min(times[name]) / bare
        middle = statistics.median(times[name])
        table.append(f"| `{name}` | {size:.2f} | {min(times[name]) * 1e3:.1f}, {middle * 1e3:.1f} | {ratio:.2f} |")
        most_megabytes, most_times = LIMITS.get(name, (options.most_megabytes, options.most_times))
        if size > most_megabytes:
            failed.append(f"{name} is {size:.2f} MB zipped, the gate is {most_megabytes}")
        if ratio > most_times:
            failed.append(f"{name} takes {ratio:.2f} times as long as a bare function, the gate is {most_times}")
    table += ["", f"`hello` is the bare function. Least of {options.rounds} rounds on {circumstances()}."]
    print("\n".join(table))
    if options.write:
        write_into_docs(table)
    if failed:
        sys.exit("\n".join(failed))


def circumstances():
    """When, on what and with what was measured."""
    def version(*command):
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return re.search(r"\d+(\.\d+)+", output).group()

    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    machine = f"{os.cpu_count()} processors ({model.group(1) if model else platform.machine()})"
    tools = {
        "Rust": version("rustc", "--version"),
        "cargo-lambda": version("cargo", "lambda", "--version"),
        "zig": version(sys.executable, "-m", "ziglang", "version"),
        "the SAM CLI": samcli.__version__,
    }
    return f"{time.strftime('%Y-%m-%d')}, {machine}, " + ", ".join(f"{name} {number}" for name, number in tools.items())


def write_into_docs(table):
    page = ROOT / "docs/performance.md"
    text = page.read_text()
    start, end = "<!-- functions: written by scripts/check-infra -->\n", "<!-- end of functions -->\n"
    if text.count(start) != 1 or text.count(end) != 1:
        print("docs/performance.md has no markers for the table", file=sys.stderr)
        return
    before, rest = text.split(start)
    page.write_text(before + start + "\n".join(table) + "\n" + end + rest.split(end)[1])


def expand(path, parameters):
    """A template with its loops expanded, and the root as AWS transforms it."""
    account = {"AWS::Region": "us-east-1", "AWS::Partition": "aws", "AWS::AccountId": "123456789012", "AWS::URLSuffix": "amazonaws.com"}
    result = expand_language_extensions(yaml.safe_load(path.read_text()), {**account, **parameters}, enabled=True)
    expanded = json.loads(json.dumps(result.expanded_template, default=str))
    if "AWS::Serverless-2016-10-31" not in str(expanded.get("Transform")):
        return expanded
    del expanded["Transform"]
    for resource in expanded["Resources"].values():
        # Where `sam package` puts it.
        place = {"AWS::Serverless::Function": "CodeUri", "AWS::Serverless::LayerVersion": "ContentUri"}.get(resource["Type"])
        if place:
            resource["Properties"][place] = {"Bucket": "packages", "Key": "code"}
    return transform(expanded, parameters, type("NoPolicies", (), {"load": lambda self: {}})())


def run_expand(options):
    """Writes the templates as AWS expands them with these parameters, as JSON."""
    parameters = dict(parameter.split("=", 1) for parameter in options.parameter)
    for path in map(pathlib.Path, options.templates):
        pathlib.Path(options.directory, path.stem + ".json").write_text(json.dumps(expand(path, parameters)))


def run_versions(options):
    """Checks that another hash publishes a new version of each function, and that the alias refers to it."""
    def versions(code_hash):
        resources = expand(ROOT / "infra" / "template.yaml", {"CodeHash": code_hash})["Resources"]
        published = {name for name, resource in resources.items() if resource["Type"] == "AWS::Lambda::Version"}
        aliases = [resource["Properties"]["FunctionVersion"] for resource in resources.values()
                   if resource["Type"] == "AWS::Lambda::Alias"]
        if {alias["Fn::GetAtt"][0] for alias in aliases} != published or len(published) != len(list(functions_of_template())):
            sys.exit("not every function has a version that its alias refers to")
        return published

    first, second = options.hashes
    if versions(first) & versions(second):
        sys.exit("a function keeps its version although the hash changed")
    if versions(first) != versions(first):
        sys.exit("a function gets a new version although nothing changed")
    print(f"{len(versions(first))} functions get new versions")


def main():
    parser = argparse.ArgumentParser(prog="invoke-local", description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("invoke", help="one event")
    one.add_argument("function", help="such as message-get")
    one.add_argument("event", help="a file, such as infra/events/message-get/get.json")
    one.add_argument("--receiver", default="http://127.0.0.1:9000/", help="replaces ${RECEIVER} in the event")
    one.set_defaults(run=run_one)
    every = commands.add_parser("check", help="all events")
    every.add_argument("--only", help="only events whose name matches, such as 'http-api/*'")
    every.add_argument("--write", action="store_true", help="write the outcomes that differ; put <any> where they always will")
    every.add_argument("--logs", help="file for the logs of the functions")
    every.set_defaults(run=run_all)
    bench = commands.add_parser("bench", help="sizes and cold starts")
    bench.add_argument("hello", help="the bare function")
    bench.add_argument("--rounds", type=int, default=21)
    bench.add_argument("--write", action="store_true", help="write the table into docs/performance.md, between its markers")
    bench.add_argument("--most-megabytes", type=float, default=3)
    bench.add_argument("--most-times", type=float, default=2)
    bench.set_defaults(run=run_bench)
    expand = commands.add_parser("expand", help="expand templates")
    expand.add_argument("directory", help="for the expanded templates")
    expand.add_argument("templates", nargs="+")
    expand.add_argument("--parameter", action="append", default=[], help="NAME=VALUE")
    expand.set_defaults(run=run_expand)
    versions = commands.add_parser("versions", help="check that another hash publishes new versions")
    versions.add_argument("hashes", nargs=2)
    versions.set_defaults(run=run_versions)
    for command in (one, every, bench):
        command.add_argument("--bootstraps", default=str(ROOT / "infra/.aws-sam/build"))
    for command in (one, every):
        command.add_argument("--ready-file", help="ready file of the local stack")
        command.add_argument("--dynamodb", default="http://127.0.0.1:8000")
        command.add_argument("--aws", default="http://127.0.0.1:4566")
    options = parser.parse_args()
    options.run(options)


main()
