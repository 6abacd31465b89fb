"""Sensors: registry, readings, signals."""
import json, re, threading, time

from kit import Stack, check, eventually, has, on_terminal, quoted, same, unique


def state(stack, sensor):
    return stack.get(f"/v1/sensors/{sensor}/state")


def readings(stack, sensor, query=""):
    return stack.get(f"/v1/sensors/{sensor}/readings{query}")["readings"]


@check("the same sensor registered twice is refused, also with the same data")
def _(world):
    stack, sensor = world.main, unique("s")
    body = {"id": sensor, "location": {"city": "Poznań", "building": "A", "floor": "2", "room": "13"}}
    stack.write("POST", "/v1/sensors", body, status=201)
    answer = stack.http("POST", "/v1/sensors", body)
    same((answer.status, answer.json["code"]), (409, "AlreadyRegistered"))
    has(stack.antumbra("sensors", "register", sensor, code=4).stderr, "already registered")
    key = {"idempotency-key": unique()}
    other = unique("s")
    first = stack.http("POST", "/v1/sensors", {"id": other}, key)
    same(stack.http("POST", "/v1/sensors", {"id": other}, key).status, first.status)


@check("of 12 identical registrations at once exactly one is answered with 201")
def _(world):
    stack = world.main
    for _ in range(3):
        sensor, statuses = unique("s"), []
        threads = [threading.Thread(target=lambda: statuses.append(stack.http("POST", "/v1/sensors", {"id": sensor}).status)) for _ in range(12)]
        [one.start() for one in threads]
        [one.join() for one in threads]
        same(sorted(statuses), [201] + [409] * 11)


@check("a sensor has an id and an address and no location")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.register(sensor, address="Main street 1")
    same(stack.get(f"/v1/sensors/{sensor}")["address"], "Main street 1")
    stack.antumbra("sensors", "register", unique("s"), "--address", "Main street 2")


@check("the sensor and its latest readings come in one request, newest first")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.register(sensor, address="here")
    for second in [10, 12, 11]:
        stack.write("POST", f"/v1/sensors/{sensor}/readings", {"readings": [{"value": second, "unit": "ppm", "time": f"2026-01-31T12:00:{second}Z"}]})
    found = stack.get(f"/v1/sensors/{sensor}/readings?limit=2")
    same((found["sensor"]["id"], found["sensor"]["address"]), (sensor, "here"))
    same([reading["value"] for reading in found["readings"]], [12, 11])
    rest = stack.get(f"/v1/sensors/{sensor}/readings?limit=2&cursor={quoted(found['nextCursor'])}")
    same([reading["value"] for reading in rest["readings"]], [10])
    between = readings(stack, sensor, "?from=2026-01-31T12:00:11Z&to=2026-01-31T12:01:00Z")
    same([reading["value"] for reading in between], [11, 12])
    has(stack.antumbra("sensors", "latest", sensor).stdout, "12")


@check("sensors are listed by city, building, floor and room; floor 2 is not floor 21")
def _(world):
    stack, city = world.main, unique("Łódź #")
    ids = [unique("s") for _ in range(3)]
    for sensor, floor, room in [(ids[0], "2", "13"), (ids[1], "21", "13"), (ids[2], "2", "13")]:
        stack.register(sensor, location={"city": city, "building": "A", "floor": floor, "room": room})
    base = f"/v1/locations/{quoted(city)}"
    found = lambda path: sorted(sensor["id"] for sensor in stack.get(f"{base}{path}/sensors")["sensors"])
    eventually(lambda: same(found(""), sorted(ids)))
    same((found("/A"), found("/A/2"), found("/A/2/13")), (sorted(ids), sorted([ids[0], ids[2]]), sorted([ids[0], ids[2]])))
    moved = stack.write("POST", f"/v1/sensors/{ids[0]}/move", {"city": city, "building": "A", "floor": "-1", "room": "P"})
    eventually(lambda: same((found("/A/2"), found("/A/-1")), ([ids[2]], [ids[0]])))


@check("sensors are listed by type, start of the id and connection, and no page is empty")
def _(world):
    stack, prefix = world.main, unique("typed")
    for n in range(6):
        stack.register(f"{prefix}-{n}", type="gas" if n % 3 == 0 else "lock")
    eventually(lambda: same(len(stack.get(f"/v1/sensors?prefix={prefix}")["sensors"]), 6))
    found, cursor = [], ""
    while True:
        page = stack.get(f"/v1/sensors?prefix={prefix}&type=gas&limit=1{cursor}")
        assert page["sensors"] or "nextCursor" not in page, "an empty page with a next one"
        found += [sensor["id"] for sensor in page["sensors"]]
        if "nextCursor" not in page:
            break
        cursor = "&cursor=" + quoted(page["nextCursor"])
    same(found, [f"{prefix}-0", f"{prefix}-3"])
    same(stack.get(f"/v1/sensors?prefix={prefix}&connection=LOST")["sensors"], [])


@check("a sensor is updated, replaced and unregistered; an unknown one is 404 everywhere")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.write("PUT", f"/v1/sensors/{sensor}", {"type": "gas"})
    stack.write("PUT", f"/v1/sensors/{sensor}", {"type": "lock"})
    stack.write("PATCH", f"/v1/sensors/{sensor}", {"silenceAfterSeconds": 120})
    found = stack.get(f"/v1/sensors/{sensor}")
    same((found["type"], found["silenceAfterSeconds"]), ("lock", 120))
    stack.write("DELETE", f"/v1/sensors/{sensor}")
    for path in ["", "/state", "/readings", "/deliveries", "/clients"]:
        same((path, stack.http("GET", f"/v1/sensors/{sensor}{path}").status), (path, 404))


@check("a signal from SQS becomes the state, and one more field is kept with the reading")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.register(sensor)
    stack.send("antumbra-signals", {"sensor_id": sensor, "data": 1, "battery": 80})
    eventually(lambda: same(state(stack, sensor).get("value"), 1))
    same(readings(stack, sensor)[0]["fields"], {"battery": 80})


@check("data other than 0 and 1 is quarantined from SQS and refused over HTTP, unless DATA=scalar")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.register(sensor)
    for data in [2, "1", True]:
        stack.send("antumbra-signals", {"sensor_id": sensor, "data": data})
    results = stack.write("POST", "/v1/signals", {"signals": [{"sensor_id": sensor, "data": data} for data in [2, "1", True, 0]]})["results"]
    same([result["status"] for result in results], [400, 400, 400, 200])

    def quarantined():
        text = stack.antumbra("queues", "show", "antumbra-quarantine", "--json", "--limit", "100", code=None).stdout
        assert text.count(sensor) >= 3, text[:300]
    eventually(quarantined)
    same(state(stack, sensor)["value"], 0)
    scalar = world.stack("scalar", registrations=[], variables={"DATA": "scalar"})
    scalar.register(sensor)
    scalar.send("antumbra-signals", {"sensor_id": sensor, "data": 21.5})
    eventually(lambda: same(state(scalar, sensor).get("value"), 21.5))


@check("a saved reading is typed, is a contact and becomes the state")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.register(sensor)
    stack.write("POST", f"/v1/sensors/{sensor}/readings", {"readings": [{"value": 21.5, "unit": "°C"}]})
    found = state(stack, sensor)
    same((found["value"], found["connection"].upper()), (21.5, "ONLINE"))
    stack.antumbra("sensors", "read", sensor, "text")
    same([type(reading["value"]) for reading in readings(stack, sensor)], [str, float])


@check("60 alternating signals with ts and seq are 60 transitions in the right order")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.register(sensor)
    signals = [{"sensor_id": sensor, "data": n % 2, "ts": f"2026-01-31T12:{n // 60:02}:{n % 60:02}Z", "seq": n} for n in range(61)]
    for n in range(0, 61, 10):
        stack.write("POST", "/v1/signals", {"signals": signals[n:n + 10]})
    same((state(stack, sensor)["sequence"], state(stack, sensor)["value"]), (60, 0))


@check("600 signals through SQS into 20 sensors are all kept as readings")
def _(world):
    stack, prefix = world.main, unique("many")
    sqs, start = stack.aws("sqs"), time.monotonic()
    for n in range(20):
        stack.register(f"{prefix}-{n}")
    for base in range(0, 600, 10):
        entries = [{"Id": str(n), "MessageBody": json.dumps({"sensor_id": f"{prefix}-{(base + n) % 20}", "data": (base + n) // 20 % 2,
                    "ts": 1769860800 + (base + n) // 20})} for n in range(10)]
        sqs.send_message_batch(QueueUrl=stack.queue("antumbra-signals"), Entries=entries)

    def all_there():
        counts = [len(readings(stack, f"{prefix}-{n}", "?limit=1000")) for n in range(20)]
        same(counts, [30] * 20)
    eventually(all_there, 120)
    same({state(stack, f"{prefix}-{n}")["value"] for n in range(20)}, {1})


@check("AUTO_REGISTER and SENSOR_ID_PATTERN hold locally")
def _(world):
    stack = world.stack("pattern", registrations=[], variables={"AUTO_REGISTER": "true", "SENSOR_ID_PATTERN": "^[A-Za-z0-9]{1,16}$"})
    stack.send("antumbra-signals", {"sensor_id": "xa7v9Dfadr7H", "data": 1})
    stack.send("antumbra-signals", {"sensor_id": "not-alphanumeric", "data": 1})
    eventually(lambda: same(state(stack, "xa7v9Dfadr7H")["value"], 1))
    eventually(lambda: has(stack.antumbra("queues", "show", "antumbra-quarantine", "--json").stdout, "not-alphanumeric"))
    same(stack.http("GET", "/v1/sensors/not-alphanumeric").status, 404)


@check("a signal to an unknown sensor says so, and so does a silence below the sweep's period")
def _(world):
    stack = world.main
    done = stack.antumbra("sensors", "signal", unique("nobody"), "1", code=None)
    assert done.returncode != 0 or "not registered" in done.stdout + done.stderr, done.stdout + done.stderr
    done = stack.antumbra("sensors", "register", unique("s"), "--silence", "5")
    has(done.stdout + done.stderr, "60")


@check("the command shows readings as a picture")
def _(world):
    stack, sensor = world.main, unique("s")
    stack.register(sensor)
    for second in range(10, 40):
        stack.write("POST", f"/v1/sensors/{sensor}/readings", {"readings": [{"value": second, "time": f"2026-01-31T12:00:{second}Z"}]})
    plot = stack.antumbra("sensors", "latest", sensor, "--most", "30", "--plot")
    assert len(plot.stdout.splitlines()) > 5, plot.stdout
    stack.antumbra("sensors", "between", sensor, "2026-01-31T12:00:00Z", "2026-01-31T12:01:00Z", "--plot")


@check("many sensors are imported from lines of JSON, twice without an error")
def _(world):
    stack, prefix = world.main, unique("bulk")
    file = Stack.home / "sensors.jsonl"
    file.write_text("".join(json.dumps({"id": f"{prefix}-{n}", "address": "x"}) + "\n" for n in range(20)))
    for _ in range(2):
        has(stack.antumbra("sensors", "import", f"@{file}").stdout, "20 sensors")


@check("a long import shows a bar on a terminal and lines of JSON elsewhere")
def _(world):
    stack, count = world.main, 3000
    file = Stack.home / "many.jsonl"
    def write(prefix):
        file.write_text("".join(json.dumps({"id": f"{prefix}-{n}", "address": "x"}) + "\n" for n in range(count)))
    write(unique("bar"))
    shown = on_terminal(f"--local={stack.name}", "sensors", "import", f"@{file}")
    bars = re.findall(r"\r(\[[#.]+\] \d+ of 3000 lines imported, \d+ s left)\x1b\[K", shown)
    assert len(bars) > 1 and all(len(bar) < 100 for bar in bars), shown
    # It disappears before the result is printed.
    has(shown.rpartition("\r\x1b[K")[2], "3000 sensors")
    write(unique("lines"))
    lines = [json.loads(line) for line in stack.antumbra("sensors", "import", f"@{file}").stderr.splitlines()]
    same((lines[-1]["progress"], lines[-1]["done"], lines[-1]["total"]), ("lines imported", count, count))
