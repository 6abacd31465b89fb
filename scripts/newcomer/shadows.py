"""Shadows over HTTP, MQTT, the command and DynamoDB."""
import json, threading, time, uuid

from kit import aws_cli, check, eventually, has, mosquitto, quoted, same, unique


def reported(stack, shadow):
    return stack.get(f"/v1/shadows/{quoted(shadow)}")["reported"]["document"]


@check("a report is read back over HTTP, the command and DynamoDB")
def _(world):
    stack, lamp = world.main, unique("My House#Lamp")
    stack.write("PATCH", f"/v1/shadows/{quoted(lamp)}/reported", {"led": "on", "n": 1})
    same(reported(stack, lamp)["led"], "on")
    has(stack.antumbra("shadow", "get", lamp, "--json").stdout, '"led": "on"')
    item = aws_cli(stack.ready["dynamodb"], "dynamodb", "get-item", "--table-name", "antumbra", "--key",
                   json.dumps({"PK": {"S": f"DS#{lamp}"}, "SK": {"S": "DSR#main"}}))
    same(item["Item"]["reported"]["M"]["led"]["S"], "on")


@check("a late value does not replace a newer one")
def _(world):
    stack, lamp = world.main, unique()
    for value, second in [(1, 30), (2, 10)]:
        stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"t": {"value": value, "timestamp": f"2026-01-31T12:00:{second}Z"}})
    same(reported(stack, lamp)["t"]["value"], 1)


@check("values with Unix seconds of Python's time.time() are timestamped values")
def _(world):
    stack, lamp = world.main, unique()
    now = time.time()
    for value, moment in [(1, now - 1.5), (2, now - 1.75)]:
        stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"t": {"value": value, "timestamp": moment}})
    same(reported(stack, lamp)["t"]["value"], 1)


@check("20 updates published in order with mosquitto_pub end in the last one's state")
def _(world):
    stack, lamp = world.main, unique()
    lines = "".join(json.dumps({"state": {"reported": {"led": n}}}) + "\n" for n in range(1, 21))
    mosquitto("mosquitto_pub", stack, "-q", "1", "-l", "-t", f"shadow/{lamp}/update", stdin=lines)
    eventually(lambda: same(reported(stack, lamp)["led"], 20))
    time.sleep(1)
    same(reported(stack, lamp)["led"], 20)


@check("off and on published back to back end in on, in 20 tries")
def _(world):
    stack, lamps = world.main, [unique() for _ in range(20)]
    update = lambda led: json.dumps({"state": {"reported": {"led": led}}})
    with stack.device() as device:
        for lamp in lamps:
            device.client.publish(f"shadow/{lamp}/update", update("off"), qos=1)
            device.client.publish(f"shadow/{lamp}/update", update("on"), qos=1)
        eventually(lambda: [has(stack.http("GET", f"/v1/shadows/{lamp}").text, '"on"') for lamp in lamps])
    time.sleep(1)
    same([reported(stack, lamp)["led"] for lamp in lamps], ["on"] * 20)


@check("200 updates without a version are never rejected because of a version")
def _(world):
    stack, lamp = world.main, unique()
    with stack.device() as device:
        device.subscribe(f"shadow/{lamp}/update/rejected", f"shadow/{lamp}/update/accepted")
        for n in range(200):
            device.client.publish(f"shadow/{lamp}/update", json.dumps({"state": {"reported": {"led": n}}}), qos=1)
        topics = [device.received.get(timeout=60).topic for _ in range(200)]
    same(sum(topic.endswith("rejected") for topic in topics), 0)
    same(reported(stack, lamp)["led"], 199)


@check("20 clients with 50 unconditional reports each to one shadow over HTTP get no 409")
def _(world):
    import http.client, urllib.parse
    stack, lamp = world.main, unique()
    url, statuses = urllib.parse.urlparse(stack.ready["http"]), []

    def client(number):
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        for n in range(50):
            connection.request("PATCH", f"/v1/shadows/{lamp}/reported", json.dumps({f"c{number}": n}),
                               {"authorization": f"Bearer {stack.ready['token']}", "content-type": "application/json"})
            response = connection.getresponse()
            response.read()
            statuses.append(response.status)
    clients = [threading.Thread(target=client, args=(n,)) for n in range(20)]
    [one.start() for one in clients]
    [one.join() for one in clients]
    same((len(statuses), set(statuses)), (1000, {200}))
    same(reported(stack, lamp), {f"c{n}": 49 for n in range(20)})


@check("one entity tag works for GET, PATCH and DELETE of a shadow")
def _(world):
    stack, lamp = world.main, unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "on"})
    tag = stack.http("GET", f"/v1/shadows/{lamp}").headers["etag"]
    patched = stack.http("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "off"}, {"if-match": tag})
    same(patched.status, 200)
    same(stack.http("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "x"}, {"if-match": tag}).status, 412)
    same(stack.http("DELETE", f"/v1/shadows/{lamp}", None, {"if-match": tag}).status, 412)
    tag = stack.http("GET", f"/v1/shadows/{lamp}").headers["etag"]
    same(stack.http("DELETE", f"/v1/shadows/{lamp}", None, {"if-match": tag}).status, 204)


@check("an unquoted If-Match is answered with how to write it")
def _(world):
    stack, lamp = world.main, unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "on"})
    answer = stack.http("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "off"}, {"if-match": "3"})
    same(answer.status, 400)
    has(answer.json["detail"], '"3"')
    assert 'not "3"' not in answer.json["detail"], answer.json["detail"]


@check("a conditional read of another version is refused, an unchanged one is 304")
def _(world):
    stack, lamp = world.main, unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "on"})
    tag = stack.http("GET", f"/v1/shadows/{lamp}").headers["etag"]
    same(stack.http("GET", f"/v1/shadows/{lamp}", headers={"if-match": '"r9.d9"'}).status, 412)
    same(stack.http("GET", f"/v1/shadows/{lamp}", headers={"if-none-match": tag}).status, 304)


@check("shadows named reported, desired, delta and name are written, read and deleted over HTTP")
def _(world):
    stack, lamp = world.main, unique()
    for name in ["reported", "desired", "delta", "name", "a/b"]:
        path = f"/v1/shadows/{lamp}/name/{quoted(name)}"
        stack.write("PATCH", f"{path}/reported", {"name": name})
        same(stack.get(path)["reported"]["document"], {"name": name})
        same(stack.get(f"{path}/delta")["delta"] if "delta" in stack.get(f"{path}/delta") else {}, {})
        stack.write("DELETE", path)
        same(stack.http("GET", path).status, 404)


@check("both documents are written in one request over HTTP")
def _(world):
    stack, lamp = world.main, unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}", {"reported": {"fan": 1}, "desired": {"fan": 2}})
    shadow = stack.get(f"/v1/shadows/{lamp}")
    same((shadow["reported"]["version"], shadow["desired"]["version"], shadow["delta"]), (1, 1, {"fan": 2}))
    named = f"/v1/shadows/{lamp}/name/night"
    stack.write("PATCH", named, {"reported": {"a": 1}, "desired": {"b": 1}})
    stack.write("PATCH", f"{named}/desired", {"c": 1})
    same(stack.get(named)["desired"]["document"], {"b": 1, "c": 1})
    stack.write("DELETE", f"{named}/desired")
    stack.write("DELETE", f"{named}/reported")
    same(stack.http("GET", named).status, 404)


@check("one document of a shadow is deleted alone over HTTP")
def _(world):
    stack, lamp = world.main, unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}", {"reported": {"fan": 1}, "desired": {"fan": 2}})
    stack.write("DELETE", f"/v1/shadows/{lamp}/desired")
    assert "desired" not in stack.get(f"/v1/shadows/{lamp}")
    same(stack.get(f"/v1/shadows/{lamp}/delta").get("delta", {}), {})
    stack.write("DELETE", f"/v1/shadows/{lamp}/reported")
    same(stack.http("GET", f"/v1/shadows/{lamp}").status, 404)


@check("many shadows are reported in one request, each with its own result")
def _(world):
    stack, lamp = world.main, unique()
    many = [{"id": f"{lamp}-{n}", "reported": {"n": n}} for n in range(3)] + [{"id": "", "reported": {}}]
    results = stack.write("POST", "/v1/reports", {"reports": many})["results"]
    same([result["status"] for result in results], [200, 200, 200, 400])


@check("shadows are listed by the start of their id, page by page")
def _(world):
    stack, lamp = world.main, unique("listed")
    for n in range(5):
        stack.write("PATCH", f"/v1/shadows/{lamp}-{n}/reported", {"n": n})

    def listed():
        found, cursor = [], ""
        while True:
            page = stack.get(f"/v1/shadows?prefix={lamp}&limit=2{cursor}")
            assert page["shadows"], "an empty page"
            found += [shadow["id"] for shadow in page["shadows"]]
            if "nextCursor" not in page:
                return same(found, [f"{lamp}-{n}" for n in range(5)])
            cursor = "&cursor=" + quoted(page["nextCursor"])
    eventually(listed)
    has(stack.antumbra("shadow", "list", "--prefix", lamp).stdout, f"{lamp}-4")


@check("the time zone of a device stays until a writer names another one")
def _(world):
    stack, lamp = world.main, unique()
    stack.antumbra("shadow", "report", lamp, '{"led":"on"}', "--tz", "Europe/Stockholm")
    stack.antumbra("shadow", "desire", lamp, '{"led":"off"}', "--tz", "Europe/Oslo")
    with stack.device() as device:
        device.shadow(lamp, "update", {"state": {"reported": {"fan": 1}}})
    stack.antumbra("shadow", "report", lamp, '{"led":"off"}')
    shadow = json.loads(stack.antumbra("shadow", "get", lamp, "--json").stdout)
    same((shadow["reported"]["tz"], shadow["desired"]["tz"]), ("Europe/Stockholm", "Europe/Oslo"))


@check("an unknown time zone is refused")
def _(world):
    done = world.main.antumbra("shadow", "report", unique(), "{}", "--tz", "Mars/Phobos", code=2)
    has(done.stderr, "Mars/Phobos")
    same(world.main.http("PATCH", f"/v1/shadows/{unique()}/reported?tz=Mars/Phobos", {}).status, 400)


@check("deleting a shadow that does not exist is reported as such")
def _(world):
    has(world.main.antumbra("shadow", "delete", "neverwas", code=3).stderr, "neverwas")
    same(world.main.http("DELETE", "/v1/shadows/neverwas", None, {"if-match": '"r1.d0"'}).status in (404, 412), True)


@check("a shadow is deleted on condition of its version, also with one document")
def _(world):
    stack, lamp = world.main, unique()
    stack.antumbra("shadow", "report", lamp, '{"led":"on"}')
    stack.antumbra("shadow", "delete", lamp, "--expected", "9", code=4)
    stack.antumbra("shadow", "delete", lamp, "--expected", "1")
    stack.antumbra("shadow", "get", lamp, code=3)


@check("a report removes the desired values that it reaches, and not the others")
def _(world):
    stack, lamp = world.main, unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}/desired", {"led": "on", "fan": 1.0, "list": [{"v": 1}, {"v": 2}]})
    done = stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "on", "fan": 1})
    same(sorted(one if isinstance(one, str) else one.get("pointer") for one in done["acknowledged"]), ["/fan", "/led"])
    same(list(stack.get(f"/v1/shadows/{lamp}")["desired"]["document"]), ["list"])


@check("positions of an array are acknowledged from its end")
def _(world):
    stack, lamp = world.main, unique()
    desired = lambda: stack.get(f"/v1/shadows/{lamp}")["desired"]["document"].get("list")
    stack.write("PATCH", f"/v1/shadows/{lamp}/desired", {"list": [{"value": 1}, {"value": 2}]})
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"list": [{"value": 7}, {"value": 2}]})
    same(desired(), [{"value": 1}])
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"list": [{"value": 1}, {"value": 2}]})
    same((desired(), stack.get(f"/v1/shadows/{lamp}")["delta"]), (None, {}))


@check("over MQTT desired values stay, and are cleared if the update asks for it")
def _(world):
    stack, lamp = world.main, unique()
    with stack.device() as device:
        device.shadow(lamp, "update", {"state": {"desired": {"led": "on"}}})
        device.shadow(lamp, "update", {"state": {"reported": {"led": "on"}}})
        same(stack.get(f"/v1/shadows/{lamp}")["desired"]["document"], {"led": "on"})
        device.shadow(lamp, "update", {"state": {"reported": {"led": "on"}}, "acknowledge": True})
        same(stack.get(f"/v1/shadows/{lamp}")["desired"]["document"], {})


@check("get, update and delete over MQTT answer as AWS IoT Device Shadow does, in MQTT 3.1.1 and 5")
def _(world):
    stack = world.main
    for version in [4, 5]:
        lamp = unique()
        with stack.device(version=version) as device:
            same(device.shadow(lamp, "get", outcome="rejected")["code"], 404)
            done = device.shadow(lamp, "update", {"state": {"desired": {"led": "on"}, "reported": {"led": "off"}}})
            assert done["metadata"]["reported"]["led"]["timestamp"] > 1_700_000_000, done
            found = device.shadow(lamp, "get")
            same(found["state"], {"desired": {"led": "on"}, "reported": {"led": "off"}, "delta": {"led": "on"}})
            same(device.shadow(lamp, "update", {"state": {"reported": {"led": "x"}}, "version": 99}, "rejected")["code"], 409)
            device.shadow(lamp, "delete")
            same(device.shadow(lamp, "get", outcome="rejected")["code"], 404)


@check("delta and documents reach a device whichever way the change came")
def _(world):
    stack, lamp = world.main, unique()
    with stack.device() as device:
        device.subscribe(f"shadow/{lamp}/update/delta", f"$aws/things/{lamp}/shadow/update/documents")
        stack.write("PATCH", f"/v1/shadows/{lamp}/desired", {"led": "on"})
        same(device.wait(f"shadow/{lamp}/update/delta")["state"], {"led": "on"})
        stack.antumbra("shadow", "report", lamp, '{"fan":1}')
        document = device.wait(f"$aws/things/{lamp}/shadow/update/documents", lambda body: body["current"]["state"].get("reported"))
        same(document["current"]["state"]["reported"], {"fan": 1})


@check("an array is one value over MQTT, and its elements are matched over HTTP")
def _(world):
    stack, lamp = world.main, unique()
    element = lambda id, value, second: {"id": id, "value": value, "timestamp": f"2026-01-31T12:00:{second}Z"}
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"list": [element("a", 1, 30), element("b", 1, 30)]})
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"list": [element("a", 2, 40)]})
    same([one["value"] for one in reported(stack, lamp)["list"]], [2, 1])
    with stack.device() as device:
        device.shadow(lamp, "update", {"state": {"reported": {"list": [element("b", 3, 50)]}}})
    same([one["value"] for one in reported(stack, lamp)["list"]], [3])


@check("numbers keep all of their digits")
def _(world):
    stack, lamp = world.main, unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", '{"n":12345678901234567890.5}', json_body=False)
    has(stack.http("GET", f"/v1/shadows/{lamp}").text, "12345678901234567890.5")


@check("the combined layout works over HTTP, MQTT and the command")
def _(world):
    stack = world.stack("combined", "--layout", "combined", registrations=[])
    lamp = unique()
    stack.write("PATCH", f"/v1/shadows/{lamp}", {"reported": {"fan": 1}, "desired": {"fan": 2}})
    item = stack.aws("dynamodb").get_item(TableName="antumbra", Key={"PK": {"S": f"DS#{lamp}"}, "SK": {"S": "DSC#main"}})["Item"]
    same((item["reported"]["M"]["fan"]["N"], item["desired"]["M"]["fan"]["N"]), ("1", "2"))
    with stack.device() as device:
        same(device.shadow(lamp, "get")["state"]["delta"], {"fan": 2})
        device.shadow(lamp, "update", {"state": {"reported": {"led": 1}}})
    has(stack.antumbra("shadow", "get", lamp, "--json").stdout, '"led": 1')


@check("several names of timestamp fields hold for every writer")
def _(world):
    stack = world.stack("fields", registrations=[], variables={"TIMESTAMP_FIELDS": "timestamp,ts"})
    lamp = unique()
    value = lambda n, field, second: {"t": {"value": n, field: f"2026-01-31T12:00:{second}Z"}}
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", value(1, "ts", 30))
    stack.antumbra("shadow", "report", lamp, json.dumps(value(2, "ts", 10)))
    with stack.device() as device:
        device.shadow(lamp, "update", {"state": {"reported": value(3, "timestamp", 20)}})
    same(reported(stack, lamp)["t"]["value"], 1)
