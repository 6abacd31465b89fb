"""Stacks, clients and receivers for the checks."""
import base64, contextlib, fcntl, hashlib, hmac, http.server, itertools, json, os, pathlib, pty, queue, re, select, shutil, signal
import struct, subprocess, tempfile, termios, threading, time, urllib.parse, uuid

import boto3, botocore
import paho.mqtt.client as paho
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
PATIENCE = 40  # seconds for what happens soon, on a busy machine

CHECKS = []


class Missing(Exception):
    """A program that the check needs is not installed."""


def check(name):
    """Adds a check. Its name is the behaviour, in words that a user knows."""
    def add(function):
        CHECKS.append((name, function))
        return function
    return add


def same(actual, expected):
    assert actual == expected, f"expected {expected!r}, got {actual!r}"


def has(text, part):
    text = text if isinstance(text, str) else json.dumps(text)
    assert part in text, f"expected {part!r} in {text[:600]!r}"


def eventually(probe, seconds=PATIENCE):
    """Repeats a probe until it raises nothing, and returns its result."""
    end = time.monotonic() + seconds
    while True:
        try:
            return probe()
        except (AssertionError, LookupError, ValueError) as fault:
            if time.monotonic() > end:
                raise AssertionError(f"still after {seconds} s: {fault}") from fault
        time.sleep(0.2)


class Answer:
    def __init__(self, status, headers, text):
        self.status, self.headers, self.text = status, headers, text

    @property
    def json(self):
        return json.loads(self.text)


class Stack:
    """A running `antumbra local` in a directory of its own."""
    binary = root = None
    home = None
    routes = set()
    commands = set()

    def __init__(self, *arguments, registrations=None, variables=None, memory=True, directory=None):
        self.directory = directory or pathlib.Path(tempfile.mkdtemp(dir=Stack.home))
        self.name = "s" + uuid.uuid4().hex[:8]
        self.variables = variables or {}
        self.arguments = list(arguments) + (["--memory"] if memory else [])
        if registrations is not None:
            folder = self.directory / "registrations"
            folder.mkdir(exist_ok=True)
            for file in (pathlib.Path(Stack.root) / "registrations").glob("*.json"):
                shutil.copy(file, folder)
            for rule in registrations:
                (folder / f"{rule['name']}.json").write_text(json.dumps(rule))
        self.start()

    def start(self):
        ready = self.directory / "ready.json"
        ready.unlink(missing_ok=True)
        self.log = open(self.directory / "log", "ab")
        Stack.commands.add(("local",))
        command = [Stack.binary, "local", "--name", self.name, "--ready-file", str(ready)]
        for port in ["dynamodb", "aws", "mqtt", "http"]:
            command += [f"--{port}-port", "0"]
        self.process = subprocess.Popen(command + self.arguments, cwd=self.directory, env=environment(**self.variables),
                                        stdout=self.log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        def is_up():
            if self.process.poll() is not None:
                raise RuntimeError("the stack did not start: " + self.printed())
            assert ready.exists() and ready.read_text()
        eventually(is_up, 60)
        self.ready = json.loads(ready.read_text())
        self.clients = {}
        self.port = int(self.ready["mqtt"].rsplit(":", 1)[1])

    def printed(self):
        return (self.directory / "log").read_text()

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()

    def aws(self, service):
        if service not in self.clients:
            self.clients[service] = self.connect(service)
        return self.clients[service]

    def connect(self, service):
        endpoint = self.ready["dynamodb"] if service.startswith("dynamodb") else self.ready["aws"]
        return boto3.client(service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b",
                            config=botocore.config.Config(retries={"max_attempts": 2}))

    def queue(self, name):
        return f"{self.ready['aws']}/000000000000/{name}"

    def send(self, name, body, **more):
        body = body if isinstance(body, str) else json.dumps(body)
        return self.aws("sqs").send_message(QueueUrl=self.queue(name), MessageBody=body, **more)

    def receive(self, name, wanted=lambda body: True, seconds=PATIENCE):
        """Receives and deletes messages until one is wanted; returns its body."""
        sqs, end = self.aws("sqs"), time.monotonic() + seconds
        while time.monotonic() < end:
            found = sqs.receive_message(QueueUrl=self.queue(name), WaitTimeSeconds=1, MaxNumberOfMessages=1)
            for message in found.get("Messages", []):
                sqs.delete_message(QueueUrl=self.queue(name), ReceiptHandle=message["ReceiptHandle"])
                body = json.loads(message["Body"]) if message["Body"].startswith("{") else message["Body"]
                if wanted(body):
                    return body
        raise AssertionError(f"no such message in {name} after {seconds} s")

    def http(self, method, path, body=None, headers=None, token=True, json_body=True):
        """One request with curl. `token` is that of the stack, none if False, or another one."""
        self.record(method, path)
        command = ["curl", "--silent", "--show-error", "--include", "--max-time", "30", "--request", method, self.ready["http"] + path]
        sent = dict(headers or {})
        if token:
            sent["authorization"] = f"Bearer {self.ready['token'] if token is True else token}"
        if body is not None:
            sent.setdefault("content-type", "application/json")
            command += ["--data-binary", json.dumps(body) if json_body else body]
        for name, value in sent.items():
            command += ["--header", f"{name}: {value}"]
        done = subprocess.run(command, capture_output=True)
        assert done.returncode == 0, f"curl: {done.stderr.decode()}"
        head, _, text = done.stdout.decode().partition("\r\n\r\n")
        lines = head.split("\r\n")
        fields = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
        return Answer(int(lines[0].split()[1]), {name.lower(): value for name, value in fields.items()}, text)

    def record(self, method, path):
        Stack.routes.add((method, path.split("?")[0]))

    def get(self, path, **more):
        answer = self.http("GET", path, **more)
        assert answer.status == 200, f"GET {path}: {answer.status} {answer.text}"
        return answer.json

    def write(self, method, path, body=None, status=(200, 201, 202, 204), **more):
        answer = self.http(method, path, body, **more)
        allowed = status if isinstance(status, tuple) else (status,)
        assert answer.status in allowed, f"{method} {path}: {answer.status} {answer.text}"
        return answer.json if answer.text.startswith("{") else answer

    def antumbra(self, *arguments, code=0, directory=None):
        done = antumbra(f"--local={self.name}", *arguments, directory=directory)
        assert code is None or done.returncode == code, f"antumbra {' '.join(arguments)}: exit code {done.returncode}, {done.stdout}{done.stderr}"
        return done

    def register(self, sensor, **more):
        return self.write("POST", "/v1/sensors", {"id": sensor, **more}, status=201)

    def device(self, **more):
        return Device(self.port, **more)


def environment(**more):
    keep = {name: os.environ[name] for name in ["PATH", "HOME", "LANG", "TMPDIR"] if name in os.environ}
    return {**keep, "XDG_STATE_HOME": str(Stack.home / "state"), "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null",
            "AWS_SHARED_CREDENTIALS_FILE": "/dev/null", "WEBHOOK_ALLOW": "http://127.0.0.1", **more}


def words(arguments):
    """The words of a command line before its first option: the command, perhaps with arguments."""
    plain = [argument for argument in arguments if not argument.startswith("--local")]
    while plain and plain[0].startswith("--"):
        plain = plain[2:]
    return tuple(itertools.takewhile(lambda word: not word.startswith("-"), plain))


@contextlib.contextmanager
def running(*arguments, variables=None):
    """A command that runs until the block ends, or by itself; its output is a file."""
    Stack.commands.add(words(arguments))
    path = Stack.home / unique("output")
    with open(path, "wb") as output:
        process = subprocess.Popen([Stack.binary, *arguments], env=environment(**KEYS, **(variables or {})), cwd=Stack.home, stdout=output,
                                   stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        process.printed = path.read_text
        try:
            yield process
        finally:
            process.terminate()
            process.wait()


def antumbra(*arguments, directory=None, variables=None, keys=True, timeout=60):
    extra = KEYS if keys else {}
    done = subprocess.run([Stack.binary, *arguments], cwd=directory or Stack.home, env=environment(**extra, **(variables or {})),
                          capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    if done.returncode == 0 and "--help" not in arguments:
        Stack.commands.add(words(arguments))
    return done


def on_terminal(*arguments, timeout=120):
    """What a command prints on a terminal of 100 columns, with its control characters."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    process = subprocess.Popen([Stack.binary, *arguments], cwd=Stack.home, env=environment(TERM="xterm", **KEYS), stdin=subprocess.DEVNULL,
                               stdout=terminal, stderr=terminal)
    os.close(terminal)
    printed, end = b"", time.monotonic() + timeout
    try:
        while time.monotonic() < end:
            if select.select([controller], [], [], 1)[0]:
                printed += os.read(controller, 65536)
        process.kill()
    except OSError:  # the command has ended
        pass
    os.close(controller)
    assert process.wait() == 0, printed.decode()
    return printed.decode()


def aws_cli(endpoint, *arguments):
    variables = environment(AWS_ACCESS_KEY_ID="a", AWS_SECRET_ACCESS_KEY="b", AWS_DEFAULT_REGION="us-east-1", AWS_PAGER="")
    done = subprocess.run(["aws", "--endpoint-url", endpoint, "--output", "json", *arguments], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"aws {' '.join(arguments)}: {done.stderr}"
    return json.loads(done.stdout) if done.stdout.strip() else None


def mosquitto(program, stack, *arguments, stdin=None):
    if not shutil.which(program):
        raise Missing(f"{program} (Debian: apt install mosquitto-clients)")
    done = subprocess.run([program, "-h", "127.0.0.1", "-p", str(stack.port), *arguments], input=stdin, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, f"{program}: {done.stderr}"
    return done.stdout


class Device:
    """A device with paho-mqtt."""
    def __init__(self, port, version=5, client_id=None):
        self.received = queue.Queue()
        self.version = version
        acknowledged = queue.Queue()
        protocol = paho.MQTTv5 if version == 5 else paho.MQTTv311
        self.client = paho.Client(paho.CallbackAPIVersion.VERSION2, client_id=client_id or uuid.uuid4().hex, protocol=protocol)
        self.client.on_message = lambda _c, _u, message: self.received.put(message)
        self.client.on_subscribe = lambda *_: acknowledged.put(True)
        self.acknowledged = acknowledged
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.disconnect()
        self.client.loop_stop()

    def subscribe(self, *topics):
        for topic in topics:
            self.client.subscribe(topic, qos=1)
            self.acknowledged.get(timeout=PATIENCE)
        return self

    def publish(self, topic, payload, **properties):
        text = payload if isinstance(payload, (str, bytes)) else json.dumps(payload)
        options = None
        if properties:
            options = Properties(PacketTypes.PUBLISH)
            for name, value in properties.items():
                setattr(options, name, value)
        self.client.publish(topic, text, qos=1, properties=options).wait_for_publish(PATIENCE)

    def wait(self, topic, wanted=lambda payload: True, seconds=PATIENCE):
        """Waits for a message on a topic; others are dropped."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with contextlib.suppress(queue.Empty):
                message = self.received.get(timeout=1)
                payload = json.loads(message.payload or b"null")
                if message.topic == topic and wanted(payload):
                    return payload
        raise AssertionError(f"no such message on {topic} after {seconds} s")

    def ask(self, operation, path="", **payload):
        """An inbox request with a token."""
        token = uuid.uuid4().hex
        self.subscribe(f"response/{operation}/{token}")
        self.publish(f"request/{operation}{path}", {"token": token, **payload})
        return self.wait(f"response/{operation}/{token}")

    def shadow(self, thing, operation, payload=None, outcome="accepted"):
        """A request to a shadow over MQTT, told apart by its client token."""
        token = uuid.uuid4().hex
        self.subscribe(f"shadow/{thing}/{operation}/{outcome}")
        self.publish(f"shadow/{thing}/{operation}", {**(payload or {}), "clientToken": token})
        return self.wait(f"shadow/{thing}/{operation}/{outcome}", lambda body: body.get("clientToken") == token)


class Receiver:
    """A webhook endpoint. `respond` returns the status, from the number of the request."""
    def __init__(self, respond=lambda number: 204):
        self.requests = []
        self.respond = respond
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append((time.monotonic(), dict(self.headers), body))
                status = outer.respond(len(outer.requests))
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def bodies(self, kind=None):
        all_bodies = [json.loads(body) for _, _, body in self.requests]
        return [body for body in all_bodies if kind in (None, body["type"])]

    def wait(self, count, kind=None, seconds=PATIENCE):
        def enough():
            found = self.bodies(kind)
            assert len(found) >= count, f"{len(found)} of {count} deliveries"
            return found
        return eventually(enough, seconds)


def signature(secret, headers, body):
    """The signature as Standard Webhooks defines it."""
    fields = {name.lower(): value for name, value in headers.items()}
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{fields['webhook-id']}.{fields['webhook-timestamp']}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode(), fields["webhook-signature"]


def quoted(text):
    return urllib.parse.quote(text, safe="")


def unique(prefix="n"):
    return f"{prefix}-{uuid.uuid4().hex[:10]}"
