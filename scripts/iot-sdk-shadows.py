"""The shadow client of the AWS IoT Device SDK v2 for Python against the local stack.

Called by check-iot-sdk with the stack's ready file. Everything the SDK sends and gets is what it sends to and
gets from AWS; only the connection goes without TLS, to a port on this machine.
"""

import json
import queue
import sys
import threading
from urllib.parse import urlparse

from awscrt import io, mqtt
from awsiot import iotshadow

TIMEOUT = 20
THING = "sdk-lamp"


def connect(address, client_id):
    group = io.EventLoopGroup(1)
    bootstrap = io.ClientBootstrap(group, io.DefaultHostResolver(group))
    connection = mqtt.Connection(
        client=mqtt.Client(bootstrap),
        host_name=address.hostname,
        port=address.port,
        client_id=client_id,
        clean_session=True,
    )
    connection.connect().result(TIMEOUT)
    return connection


class Shadow:
    """One shadow through the SDK: what it receives goes to queues, one per kind."""

    KINDS = ["get", "update", "delete"]

    def __init__(self, connection, name=None):
        self.client = iotshadow.IotShadowClient(connection)
        self.name = name
        self.received = {}
        self.word = "NamedShadow" if name else "Shadow"
        for kind in self.KINDS:
            for outcome in ["accepted", "rejected"]:
                method = f"subscribe_to_{kind}_{self.snake()}_{outcome}"
                request = f"{kind.capitalize()}{self.word}SubscriptionRequest"
                self.subscribe(method, request, f"{kind}/{outcome}")
        self.subscribe(f"subscribe_to_{self.snake()}_delta_updated_events",
                       f"{self.word}DeltaUpdatedSubscriptionRequest", "delta")
        self.subscribe(f"subscribe_to_{self.snake()}_updated_events",
                       f"{self.word}UpdatedSubscriptionRequest", "documents")

    def snake(self):
        return "named_shadow" if self.name else "shadow"

    def of_this(self, **more):
        names = {"thing_name": THING}
        if self.name:
            names["shadow_name"] = self.name
        return names | more

    def subscribe(self, method, request, kind):
        self.received[kind] = queue.Queue()
        request = getattr(iotshadow, request)(**self.of_this())
        future, _ = getattr(self.client, method)(
            request=request, qos=mqtt.QoS.AT_LEAST_ONCE, callback=self.received[kind].put)
        future.result(TIMEOUT)

    def request(self, kind, outcome, token, **members):
        word = f"{kind.capitalize()}{self.word}Request"
        request = getattr(iotshadow, word)(**self.of_this(client_token=token, **members))
        publish = getattr(self.client, f"publish_{kind}_{self.snake()}")
        publish(request=request, qos=mqtt.QoS.AT_LEAST_ONCE).result(TIMEOUT)
        answer = self.next(f"{kind}/{outcome}")
        check(answer.client_token, token)
        return answer

    def next(self, kind):
        try:
            return self.received[kind].get(timeout=TIMEOUT)
        except queue.Empty:
            raise SystemExit(f"nothing on {kind} of {self.name or 'the unnamed shadow'}")

    def silent(self):
        left = {kind: received.qsize() for kind, received in self.received.items() if received.qsize()}
        if left:
            raise SystemExit(f"{self.name or 'the unnamed shadow'}: nobody expected {left}")


def check(actual, expected):
    if actual != expected:
        raise SystemExit(f"expected {expected!r}, got {actual!r}")


def exercise(shadow):
    state = iotshadow.ShadowState

    missing = shadow.request("get", "rejected", "t-1")
    check(missing.code, 404)

    reported = shadow.request("update", "accepted", "t-2", state=state(reported={"color": "red", "level": 1}))
    check((reported.version, reported.state.reported), (1, {"color": "red", "level": 1}))
    check(sorted(reported.metadata.reported), ["color", "level"])
    first = shadow.next("documents")
    check((first.current.version, first.current.state.reported), (1, {"color": "red", "level": 1}))

    desired = shadow.request("update", "accepted", "t-3", state=state(desired={"color": "blue"}))
    check((desired.version, desired.state.desired), (2, {"color": "blue"}))
    delta = shadow.next("delta")
    check((delta.version, delta.state, delta.client_token), (2, {"color": "blue"}, "t-3"))
    check(list(delta.metadata), ["color"])
    second = shadow.next("documents")
    check((second.previous.version, second.current.version), (1, 2))
    check(second.current.state.desired, {"color": "blue"})

    whole = shadow.request("get", "accepted", "t-4")
    check((whole.version, whole.state.delta), (2, {"color": "blue"}))

    done = shadow.request("update", "accepted", "t-5", state=state(reported={"color": "blue"}), version=2)
    check(done.version, 3)
    check(shadow.next("documents").current.version, 3)

    late = shadow.request("update", "rejected", "t-6", state=state(reported={"color": "green"}), version=2)
    check((late.code, late.message), (409, "Version conflict"))

    empty = shadow.request("update", "rejected", "t-7")
    check((empty.code, empty.message), (400, "Missing required node: state"))

    gone = shadow.request("delete", "accepted", "t-8")
    check(gone.version, 3)
    again = shadow.request("update", "accepted", "t-9", state=state(reported={"color": "red"}))
    check(again.version, 4)
    check(shadow.next("documents").current.version, 4)
    shadow.request("delete", "accepted", "t-10")
    shadow.silent()


def main():
    ready = json.load(open(sys.argv[1]))
    record = sys.argv[3] if sys.argv[2:3] == ["--record"] else None
    address = urlparse(ready["mqtt"])

    transcript, lock = [], threading.Lock()

    def note(topic, payload, **_):
        with lock:
            transcript.append({"topic": topic, "payload": json.loads(payload) if payload else None})

    recorder = connect(address, "recorder")
    recorder.subscribe(topic="$aws/things/+/shadow/#", qos=mqtt.QoS.AT_LEAST_ONCE, callback=note)[0].result(TIMEOUT)
    device = connect(address, THING)
    for name in [None, "light"]:
        exercise(Shadow(device, name))
    device.disconnect().result(TIMEOUT)
    recorder.disconnect().result(TIMEOUT)
    check(any(message["topic"].endswith("/light/update/delta") for message in transcript), True)
    if record:
        with open(record, "w") as file:
            lines = ",\n".join("  " + json.dumps(message, sort_keys=True) for message in transcript)
            file.write(f"[\n{lines}\n]\n")
    print(f"the SDK saw what it should, in {len(transcript)} messages")


main()
