"""Webhook clients and deliveries."""
import json, signal, time

from kit import Receiver, check, eventually, has, quoted, same, signature, unique


def linked(stack, receiver, mode=None, sensors=1):
    """A client with linked sensors, which have a first value."""
    client = unique("c")
    body = {"id": client, "name": "Night watch", "url": receiver.url, **({"mode": mode} if mode else {})}
    created = stack.write("POST", "/v1/clients", body, status=201)
    names = [unique("s") for _ in range(sensors)]
    for sensor in names:
        stack.register(sensor, address="Main street 1")
        stack.write("PUT", f"/v1/clients/{client}/sensors/{sensor}")
        signals(stack, sensor, 0)
    return client, names, created


def signals(stack, sensor, *values):
    all_signals = [{"sensor_id": sensor, "data": value} for value in values]
    for result in stack.write("POST", "/v1/signals", {"signals": all_signals})["results"]:
        same(result["status"], 200)


def history(stack, client, query=""):
    return stack.get(f"/v1/clients/{client}/deliveries{query}")["deliveries"]


@check("a change is posted to the client, signed as Standard Webhooks defines, in camelCase")
def _(world):
    stack, receiver = world.main, Receiver()
    client, [sensor], created = linked(stack, receiver)
    signals(stack, sensor, 1)
    body = receiver.wait(1)[0]
    same((body["type"], body["sensor"]["id"], body["sensor"]["address"], body["client"]["id"]), ("state.changed", sensor, "Main street 1", client))
    same((body["data"]["previous"], body["data"]["current"], body["sequence"]), (0, 1, 1))
    assert body["occurredAt"].endswith("Z") and body["data"]["since"].endswith("Z"), body
    assert "_" not in "".join(list(body) + list(body["data"])), body
    _, headers, raw = receiver.requests[0]
    expected, sent = signature(created["secret"], headers, raw)
    has(sent, expected)
    eventually(lambda: same(history(stack, client)[0]["status"], "delivered"))
    has(stack.antumbra("clients", "deliveries", client).stdout, "delivered")
    assert stack.get(f"/v1/sensors/{sensor}/deliveries")["deliveries"]


@check("the same value again causes no delivery")
def _(world):
    stack, receiver = world.main, Receiver()
    client, [sensor], _ = linked(stack, receiver)
    signals(stack, sensor, 1, 1, 1, 0)
    receiver.wait(1)
    time.sleep(1)
    assert len(receiver.bodies()) <= 2, receiver.bodies()


@check("a new client has the mode latest, in which a newer change cancels the older one's retries")
def _(world):
    stack, receiver = world.quick, Receiver(lambda number: 500 if number <= 1 else 204)
    client, [sensor], created = linked(stack, receiver)
    same(created["mode"], "latest")
    signals(stack, sensor, 1)
    receiver.wait(1)
    signals(stack, sensor, 0)

    def settled():
        same(sorted(one["status"] for one in history(stack, client)), ["delivered", "superseded"])
    eventually(settled)
    same(receiver.bodies()[-1]["data"]["current"], 0)


@check("the delays between attempts grow")
def _(world):
    stack, receiver = world.stack("growing", registrations=[], variables={"RETRY_FIRST_SECONDS": "1"}), Receiver(lambda number: 500)
    client, [sensor], _ = linked(stack, receiver)
    signals(stack, sensor, 1)
    receiver.wait(4)
    times = [moment for moment, _, _ in receiver.requests[:4]]
    delays = [later - earlier for earlier, later in zip(times, times[1:])]
    assert all(delay >= least for delay, least in zip(delays, [1, 2, 4])), delays


@check("mode every posts all changes of a sensor in order, also after failures")
def _(world):
    stack, receiver = world.quick, Receiver(lambda number: 500 if number <= 2 else 204)
    client, [sensor], _ = linked(stack, receiver, "every")
    signals(stack, sensor, 1, 0, 1, 0)
    def delivered():
        same([one["status"] for one in history(stack, client)], ["delivered"] * 4)
    eventually(delivered, 90)
    order = []
    for body in receiver.bodies():
        if body["sequence"] not in order:
            order.append(body["sequence"])
    same(order, [1, 2, 3, 4])


@check("a redelivery to an endpoint that is up again is sent at once, whatever the circuit")
def _(world):
    stack, receiver = world.main, Receiver(lambda number: 500)
    client, [sensor], _ = linked(stack, receiver)
    signals(stack, sensor, 1)
    receiver.wait(1)
    receiver.respond = lambda number: 204
    delivery = eventually(lambda: history(stack, client)[0])
    eventually(lambda: same(len(history(stack, client)[0]["attempts"]), 1))
    stack.write("POST", f"/v1/deliveries/{quoted(delivery['id'])}/redeliver")
    eventually(lambda: same(history(stack, client)[0]["status"], "delivered"), 20)
    signals(stack, sensor, 0)
    stack.write("POST", f"/v1/clients/{client}/redeliver?since=2026-01-01T00:00:00Z&delivered=true")
    has(stack.antumbra("clients", "show", client).stdout, "circuit")


@check("a client that answers 410 is disabled, its deliveries are held and released when it is enabled")
def _(world):
    stack, receiver = world.main, Receiver(lambda number: 410 if number == 1 else 204)
    client, [sensor], _ = linked(stack, receiver, "every")
    signals(stack, sensor, 1)
    eventually(lambda: same(stack.get(f"/v1/clients/{client}")["enabled"], False))
    signals(stack, sensor, 0)
    eventually(lambda: has([one["status"] for one in history(stack, client)], "held"))
    stack.write("POST", f"/v1/clients/{client}/enable")
    receiver.wait(2)


@check("a client is disabled and enabled over HTTP")
def _(world):
    stack, receiver = world.main, Receiver()
    client, [sensor], _ = linked(stack, receiver)
    stack.write("POST", f"/v1/clients/{client}/disable?reason=holidays")
    has(stack.get(f"/v1/clients/{client}"), "holidays")
    signals(stack, sensor, 1)
    eventually(lambda: same(history(stack, client)[0]["status"], "held"))
    same(receiver.bodies(), [])
    stack.write("POST", f"/v1/clients/{client}/enable")
    receiver.wait(1)


@check("a changed URL and a rotated secret are used by the next attempt; a test post arrives")
def _(world):
    stack, old, new = world.quick, Receiver(lambda number: 500), Receiver()
    client, [sensor], _ = linked(stack, old)
    signals(stack, sensor, 1)
    old.wait(1)
    secret = stack.write("POST", f"/v1/clients/{client}/rotate-secret?keepPreviousSeconds=0")["secret"]
    stack.write("PATCH", f"/v1/clients/{client}", {"url": new.url})
    new.wait(1)
    expected, sent = signature(secret, *new.requests[0][1:])
    has(sent, expected)
    stack.write("POST", f"/v1/clients/{client}/test")
    new.wait(2)


@check("links are listed both ways, and a client with links is deleted only with cascade")
def _(world):
    stack, receiver = world.main, Receiver()
    client, [sensor], _ = linked(stack, receiver)
    has(stack.get(f"/v1/clients/{client}/sensors"), sensor)
    has(stack.get(f"/v1/sensors/{sensor}/clients"), client)
    same(stack.http("DELETE", f"/v1/clients/{client}").status, 409)
    stack.write("DELETE", f"/v1/clients/{client}/sensors/{sensor}")
    same(stack.get(f"/v1/clients/{client}/sensors")["links"] if "links" in stack.get(f"/v1/clients/{client}/sensors") else [], [])
    stack.write("PUT", f"/v1/clients/{client}/sensors/{sensor}")
    stack.write("DELETE", f"/v1/clients/{client}?cascade=true")
    same(stack.http("GET", f"/v1/clients/{client}").status, 404)
    has(stack.get("/v1/clients"), "clients")


@check("deliveries of an unknown client are 404")
def _(world):
    same(world.main.http("GET", "/v1/clients/nobody/deliveries").status, 404)
    same(world.main.http("GET", "/v1/clients/nobody/sensors").status, 404)


@check("a retry that waits while the stack is killed comes after the restart")
def _(world):
    from kit import Stack
    receiver = Receiver(lambda number: 500 if number <= 2 else 204)
    stack = Stack(registrations=[], memory=False, variables={"RETRY_FIRST_SECONDS": "4", "RETRY_LONGEST_SECONDS": "6"})
    try:
        client, [sensor], _ = linked(stack, receiver)
        signals(stack, sensor, 1)
        receiver.wait(1)
        eventually(lambda: same(len(history(stack, client)[0]["attempts"]), 1))
        stack.stop(signal.SIGKILL)
        stack.start()
        eventually(lambda: same(history(stack, client)[0]["status"], "delivered"), 240)
    finally:
        stack.stop()


@check("`antumbra listen` verifies signatures and prints deliveries")
def _(world):
    import socket
    from kit import running
    stack = world.main
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client, sensor = unique("c"), unique("s")
    created = stack.write("POST", "/v1/clients", {"id": client, "name": "n", "url": f"http://127.0.0.1:{port}/"}, status=201)
    stack.register(sensor)
    stack.write("PUT", f"/v1/clients/{client}/sensors/{sensor}")
    with running("listen", "--port", str(port), "--secret", created["secret"]) as listening:
        eventually(lambda: has(listening.printed(), "listening"))
        signals(stack, sensor, 0, 1)
        eventually(lambda: has(listening.printed(), "verified"))
