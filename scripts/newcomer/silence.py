"""Silence and dead deliveries, which take minutes: prepared first, checked last."""
import time

from deliveries import history, linked, signals
from kit import Receiver, check, eventually, has, same, unique

PREPARE = []
PREPARED = {}


def prepare(function):
    PREPARE.append(function)
    return function


@prepare
def silent_sensors(world):
    stack, receiver = world.main, Receiver()
    client = unique("c")
    stack.write("POST", "/v1/clients", {"id": client, "name": "n", "url": receiver.url, "mode": "every"}, status=201)
    sensors = {name: unique(name) for name in ["seen", "never", "reading", "busy"]}
    for sensor in sensors.values():
        stack.register(sensor, silenceAfterSeconds=2 if sensor != sensors["busy"] else 3600)
        stack.write("PUT", f"/v1/clients/{client}/sensors/{sensor}")
    stack.send("antumbra-signals", {"sensor_id": sensors["seen"], "data": 1})
    stack.send("antumbra-signals", {"sensor_id": sensors["busy"], "data": 1})
    PREPARED.update(receiver=receiver, sensors=sensors, start=time.time())


@prepare
def failing_endpoints(world):
    for name, sensors in [("one", 1), ("six", 6)]:
        receiver = Receiver(lambda number: 500)
        client, linked_sensors, _ = linked(world.quick, receiver, sensors=sensors)
        for sensor in linked_sensors:
            signals(world.quick, sensor, 1)
        PREPARED[name] = (client, receiver)


def of(sensor, kind):
    found = [body for body in PREPARED["receiver"].bodies(kind) if body["sensor"]["id"] == PREPARED["sensors"][sensor]]
    assert found, f"no {kind} of {sensor}"
    return found


@check("a sensor that falls silent is lost once, and one that was never heard is never_seen")
def _(world):
    eventually(lambda: of("seen", "connection.lost"), 150)
    eventually(lambda: of("never", "connection.never_seen"), 150)
    body = of("seen", "connection.lost")[0]
    same((body["data"]["lastState"], body["data"]["thresholdSeconds"]), (1, 2))
    same(len(of("seen", "connection.lost")), 1)
    same([body for body in PREPARED["receiver"].bodies() if body["sensor"]["id"] == PREPARED["sensors"]["busy"]], [])
    has(world.main.get(f"/v1/sensors?connection=LOST&limit=1000"), PREPARED["sensors"]["seen"])


@check("a sensor that only saves readings is heard")
def _(world):
    stack, sensor = world.main, PREPARED["sensors"]["reading"]
    stack.write("POST", f"/v1/sensors/{sensor}/readings", {"readings": [{"value": 1}]})
    same(stack.get(f"/v1/sensors/{sensor}/state")["connection"].upper(), "ONLINE")


@check("a lost sensor that speaks is restored before its change, and the outage counts from the last contact")
def _(world):
    stack, sensor = world.main, PREPARED["sensors"]["seen"]
    silent_for = time.time() - PREPARED["start"]
    stack.send("antumbra-signals", {"sensor_id": sensor, "data": 0})
    restored = eventually(lambda: of("seen", "connection.restored"))[0]
    changed = eventually(lambda: of("seen", "state.changed"))[0]
    assert restored["sequence"] < changed["sequence"], (restored, changed)
    outage = restored["data"]["outageSeconds"]
    assert abs(outage - silent_for) < 15, f"outageSeconds is {outage}, silence was {silent_for:.0f} s"
    assert restored["data"]["lostAt"].endswith("Z"), restored


@check("a failing endpoint gets ten posts, then the delivery is dead and in the dead-letter queue")
def _(world):
    stack, (client, receiver) = world.quick, PREPARED["one"]

    def dead():
        [delivery] = history(stack, client)
        same((delivery["status"], len(delivery["attempts"])), ("dead", 10))
    # A circuit that is open costs time, and no attempt: the last pauses are 5 and 8 minutes.
    eventually(dead, 1200)
    same(len(receiver.requests), 10)
    same(len({body["id"] for body in receiver.bodies()}), 1)
    has(stack.antumbra("queues", "show", "antumbra-deliveries-dead", "--json").stdout, client)
    has(stack.get("/v1/queues/dead-letters"), client)


@check("six notifications to one failing client lose no attempt to its open circuit: none is dead before its tenth post")
def _(world):
    stack, (client, receiver) = world.quick, PREPARED["six"]

    def counted():
        found = history(stack, client)
        same(len(found), 6)
        same([one["id"] for one in found if one["status"] == "dead" and len(one["attempts"]) < 10], [])
        # Every attempt is a post, and every post an attempt.
        same(sum(len(one["attempts"]) for one in found), len(receiver.requests))
        assert all(one["attempts"] for one in found), "a delivery without an attempt"
    eventually(counted)
