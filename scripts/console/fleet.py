"""A local stack with a fleet: shadows with a past, sensors, webhook clients, messages and failed messages."""

import datetime
import http.client
import json
import math
import pathlib
import re
import subprocess
import tempfile
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FREEZER = "House A#Kitchen#Freezer"
BUSY = "House A#Attic#Gateway"
BUSY_FIELDS = 500
BUSY_CHANGES = 10_000
HOSTILE = "<script>alert(1)</script>#\u202eevil#<img src=x onerror=alert(1)>"
# Names that try to break out of a page or to widen it, at the limits of their lengths.
LONG_SHADOW = "W" * 500 + "#" + "\u202e" + "M" * 400
HOSTILE_CITY = "<svg onload=alert(4)>\u202e" + "W" * 70
HOSTILE_SOURCE = "'><img src=x onerror=alert(5)>" + "W" * 90
HOSTILE_CLIENT = "<script>alert(6)<\u2215script>\u202e" + "W" * 220
LONG_SENSOR = "sensor-" + "w" * 57
REGISTRATIONS = {
    "freezer-too-warm": {
        "description": "One alert when the freezer warms past -15 degrees.",
        "on": {
            "key": "^DS#House A#Kitchen#Freezer#DSR#",
            "state": "reported",
            "pattern": {
                "old": {"temp": {"value": [{"numeric": ["<=", -15]}]}},
                "new": {"temp": {"value": [{"numeric": [">", -15]}]}},
            },
        },
        "send": ["old", "new"],
        "to": {"sqs": {"queue": "house-a-alerts"}},
    },
    "basement-lights": {
        "on": {"key": "^DS#House A#Basement#.*#DSR#", "state": "reported", "operations": ["insert", "modify"], "changes": "value"},
        "to": {"sqs": {"queue": "house-a-lights.fifo"}},
    },
    "firmware-audit": {
        "enabled": False,
        "on": {"state": "reported", "pattern": {"diff": {"updated": {"/firmware": {"new": [{"exists": True}]}}}}},
        "to": {"eventbridge": {"bus": "default", "detailType": "Firmware Changed"}},
    },
}


def quoted(text):
    return urllib.parse.quote(text, safe="")


class Receiver(BaseHTTPRequestHandler):
    """A webhook: deliveries to /broken fail."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(503 if self.path == "/broken" else 204)
        self.end_headers()

    def log_message(self, *_):
        pass


class Stack:
    def __init__(self, binary, repository):
        self.binary = binary
        self.home = pathlib.Path(tempfile.mkdtemp())
        registrations = self.home / "registrations"
        registrations.mkdir()
        for shipped in (repository / "registrations").glob("*.json"):
            if shipped.name != "registration.schema.json":
                (registrations / shipped.name).write_text(shipped.read_text())
        for name, rule in REGISTRATIONS.items():
            (registrations / f"{name}.json").write_text(json.dumps({"name": name, **rule}, indent=2))
        self.receiver = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
        threading.Thread(target=self.receiver.serve_forever, daemon=True).start()
        self.start()

    def start(self, http_port="0"):
        ready, self.log = self.home / "ready.json", self.home / "log"
        ready.unlink(missing_ok=True)
        ports = [part for name in ("dynamodb", "aws", "mqtt") for part in (f"--{name}-port", "0")]
        command = [self.binary, "local", "--memory", *ports, "--http-port", http_port, "--ready-file", ready, "--token", "fleet"]
        command += ["--registrations", self.home / "registrations", "--webhook-allow", "http://127.0.0.1"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self.log.open("w"), stderr=subprocess.STDOUT, cwd=self.home)
        deadline = time.monotonic() + 60
        while not ready.exists() or not ready.stat().st_size:
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the local stack did not start:\n{self.log.read_text()}")
            time.sleep(0.05)
        self.addresses = json.loads(ready.read_text())
        self.http = self.addresses["http"].removeprefix("http://")
        self.aws = self.addresses["aws"].removeprefix("http://")

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def start_again(self):
        """Starts an empty stack on the same port."""
        self.start(self.http.rsplit(":", 1)[1])

    def close(self):
        self.stop()
        self.receiver.shutdown()

    def login_url(self):
        """The newest URL that the stack printed."""
        deadline = time.monotonic() + 10
        while True:
            found = re.findall(r"http://\S+/login\?token=[\w-]+", self.log.read_text())
            if found:
                return found[-1]
            if time.monotonic() > deadline:
                raise SystemExit(f"the local stack printed no URL of the console:\n{self.log.read_text()}")
            time.sleep(0.05)

    def api(self, method, path, body=None):
        headers = {"authorization": "Bearer fleet", "content-type": "application/json"}
        connection = http.client.HTTPConnection(self.http)
        connection.request(method, path, json.dumps(body) if body is not None else None, headers)
        response = connection.getresponse()
        text = response.read().decode()
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {text}")
        return json.loads(text) if text else None

    def sqs(self, operation, body):
        connection = http.client.HTTPConnection(self.aws)
        headers = {"x-amz-target": f"AmazonSQS.{operation}", "content-type": "application/x-amz-json-1.0"}
        connection.request("POST", "/", json.dumps(body), headers)
        response = connection.getresponse()
        text = response.read().decode()
        if response.status >= 300:
            raise RuntimeError(f"{operation}: {response.status} {text}")
        return json.loads(text)

    def report(self, shadow, document):
        return self.api("PATCH", f"/v1/shadows/{quoted(shadow)}/reported", document)

    def newest_version(self, shadow):
        """The version of the newest change that is recorded."""
        return self.api("GET", f"/v1/shadows/{quoted(shadow)}/history?limit=1")["entries"][0]["version"]

    def until(self, what, condition, missing, seconds=240):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise SystemExit(f"{what}: not within {seconds} s: {', '.join(missing)}")
            time.sleep(0.2)


def fill(stack, devices):
    """Fills the stack. Returns when everything that follows from the writes has happened."""
    def temperature(value):
        return {"value": value, "unit": "°C", "timestamp": datetime.datetime.now(datetime.UTC).isoformat()}

    stack.api("PATCH", f"/v1/shadows/{quoted(FREEZER)}/desired", {"mode": "eco", "firmware": "3.0"})
    for at in range(60):
        stack.report(FREEZER, {"temp": temperature(-18 + (at * 7 % 13) / 2), "door": {"value": "open" if at % 9 == 0 else "closed"}, "firmware": f"2.{at // 20}"})
    stack.report(LONG_SHADOW, {"W" * 300: {"W" * 300: {"value": "W" * 1000, "unit": "W" * 100}}})
    stack.report(HOSTILE, {"<b>name</b>": "</td><script>alert(2)</script>", "long": "x" * 300_000, "\u202ertl": "</textarea>"})
    stack.report(BUSY, {f"field{at:04}": {"value": at} for at in range(BUSY_FIELDS)})
    for at in range(BUSY_CHANGES):
        # Never the value that the field has.
        stack.report(BUSY, {f"field{at % 7:04}": {"value": BUSY_FIELDS + at}})
    rooms = ["Kitchen", "Basement", "Attic", "Hall", "Garage"]
    for start in range(0, devices, 100):
        reports = []
        for number in range(start, min(start + 100, devices)):
            shadow = f"House {chr(66 + number // 20000)}#{rooms[number % 5]}#Device {number:06}"
            reports.append({"id": shadow, "reported": {"temp": {"value": number % 40, "unit": "°C"}, "firmware": "1.8.2"}})
        stack.api("POST", "/v1/reports", {"reports": reports})
    hook = f"http://127.0.0.1:{stack.receiver.server_port}"
    clients = [("night-watch", "Night watch", "/ok"), ("facility-desk", "Facility desk", "/broken"), ("dash-1", "Old dashboard", "/ok")]
    for client, name, path in clients:
        stack.api("POST", "/v1/clients", {"id": client, "name": name, "url": hook + path, "mode": "every"})
    for floor in range(-1, 5):
        for room in range(1, 9):
            sensor = {"id": f"door-{floor}{room:02}", "type": "temp" if room == 8 else "lock", "silenceAfterSeconds": 20 if room == 3 and floor > 1 else 3600}
            place = {"city": "Poznań", "building": "A" if room < 8 else "B", "floor": str(floor), "room": f"{floor}{room:02}"}
            stack.api("POST", "/v1/sensors", {**sensor, "location": place})
    stack.api("POST", "/v1/clients", {"id": "hostile", "name": HOSTILE_CLIENT, "url": f"{hook}/{'W' * 900}", "mode": "latest"})
    place = {"city": HOSTILE_CITY, "building": HOSTILE_CITY, "floor": HOSTILE_CITY, "room": HOSTILE_CITY}
    stack.api("POST", "/v1/sensors", {"id": LONG_SENSOR, "type": "lock", "location": place})
    stack.api("PUT", f"/v1/clients/hostile/sensors/{LONG_SENSOR}")
    now = time.time()
    for sensor in ("door-201", "door-208"):
        past = [{"value": round(19 + 3 * math.sin(at / 14) + (at * 7 % 5) / 4, 1), "unit": "°C", "time": now - 86000 + 300 * at} for at in range(285) if not 120 < at < 140]
        switched = [{"value": int(at % 31 < 3), "time": now - 86000 + 300 * at} for at in range(285) if not 120 < at < 140]
        stack.api("POST", f"/v1/sensors/{sensor}/readings", {"readings": past if sensor == "door-208" else switched})
    watched = [f"door-{floor}01" for floor in range(0, 4)]
    for sensor in watched:
        for client in ("night-watch", "facility-desk"):
            stack.api("PUT", f"/v1/clients/{client}/sensors/{sensor}")
    for at in range(12):
        signals = [{"sensor_id": f"door-{floor}{room:02}", "data": (at + room) % 2} for floor in range(-1, 4) for room in range(1, 8)]
        stack.api("POST", "/v1/signals", {"signals": signals})
    stack.api("POST", "/v1/signals", {"signals": [{"sensor_id": LONG_SENSOR, "data": 1}]})
    stack.api("POST", "/v1/clients/dash-1/disable?reason=410%20Gone")
    stack.api("POST", "/v1/clients/night-watch/test")
    inbound = stack.sqs("GetQueueUrl", {"QueueName": "antumbra-inbound"})["QueueUrl"]
    for at in range(40):
        thing = ["testThing", "gateway-03", "meter-0091"][at % 3]
        message = {"thingName": thing, "epochTime": 1794844259 + at, "tempSensor1F": "72.50", "pulses": 9007199254740993}
        stack.sqs("SendMessage", {"QueueUrl": inbound, "MessageBody": json.dumps(message)})
    stack.sqs("SendMessage", {"QueueUrl": inbound, "MessageBody": json.dumps({"thingName": HOSTILE_SOURCE, "epochTime": 1794844259, "W" * 500: "W" * 5000})})
    for text in ["{", "no JSON <script>alert(3)</script>", "[1,2]", "{", "{"]:
        stack.sqs("SendMessage", {"QueueUrl": inbound, "MessageBody": text})

    missing = []

    def settled():
        queues = {queue["name"]: queue["messages"] for queue in stack.api("GET", "/v1/queues")["queues"]}
        deliveries = stack.api("GET", "/v1/clients/night-watch/deliveries")["deliveries"]
        found = {
            "quarantined messages": (queues["quarantine"], 5),
            "sources of messages": (len(stack.api("GET", "/v1/messages")["sources"]), 4),
            "deliveries": (sum(delivery["status"] == "delivered" for delivery in deliveries), 5),
            "lost sensors": (len(stack.api("GET", "/v1/sensors?connection=LOST")["sensors"]), 2),
            "recorded changes": (len(stack.api("GET", f"/v1/shadows/{quoted(FREEZER)}/history")["entries"]), 61),
            "changes of the busy device": (stack.newest_version(BUSY), BUSY_CHANGES),
        }
        missing[:] = [f"{count} of {least} {name}" for name, (count, least) in found.items() if count < least]
        return not missing

    stack.until("the fleet is filled", settled, missing)
