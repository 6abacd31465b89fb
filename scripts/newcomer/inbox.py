"""The inbox: messages from SQS, read over MQTT and HTTP."""
import json, uuid

from kit import aws_cli, check, eventually, has, mosquitto, quoted, same, unique


def sent(stack, thing, *positions):
    for position in positions:
        stack.send("antumbra-inbound", {"thingName": thing, "epochTime": position, "temperature": 72.5})
    def all_there():
        page = stack.get(f"/v1/messages/{thing}")
        same(len(page["messages"]), len(positions))
        return [message["messageId"] for message in page["messages"]]
    return eventually(all_there)


@check("a message from SQS is stored and announced over MQTT")
def _(world):
    stack, thing = world.main, unique("thing")
    with stack.device(version=4) as device:
        device.subscribe(f"notification/{thing}")
        aws_cli(stack.ready["aws"], "sqs", "send-message", "--queue-url", stack.queue("antumbra-inbound"),
                "--message-body", json.dumps({"thingName": thing, "epochTime": 1}))
        same(device.wait(f"notification/{thing}")["uuid"], thing)


@check("query, get, next, prev, list, devices and delete answer over MQTT 3.1.1 and 5")
def _(world):
    stack = world.main
    for version in [4, 5]:
        thing = unique("thing")
        ids = sent(stack, thing, 9, 10, 11)
        with stack.device(version=version) as device:
            same(device.ask("query", f"/{thing}"), {"newestMessageId": ids[2], "oldestMessageId": ids[0], "uuid": thing})
            same(device.ask("get", f"/{thing}/{ids[0]}")["body"]["epochTime"], 9)
            same(device.ask("next", f"/{thing}/{ids[0]}")["nextMessageId"], ids[1])
            same(device.ask("prev", f"/{thing}/{ids[1]}")["previousMessageId"], ids[0])
            has(device.ask("list", f"/{thing}", limit=2), ids[1])
            eventually(lambda: has(device.ask("devices", limit=400), thing))
            same(device.ask("delete", f"/{thing}/{ids[0]}"), {"messageId": ids[0], "uuid": thing})
            same(device.ask("get", f"/{thing}/{ids[0]}")["error"], "Message not available")
            same(device.ask("query", "/nobody"), {"error": "No messages available", "uuid": "nobody"})
            same(device.ask("next", f"/{thing}/{ids[2]}")["error"], "No newer messages available")


@check("a message for a device is put into the outbound queue, over MQTT and HTTP")
def _(world):
    stack, thing = world.main, unique("thing")
    with stack.device() as device:
        answer = device.ask("send", f"/{thing}", message={"hello": 1})
        assert "error" not in answer, answer
    has(stack.receive("antumbra-outbound", lambda body: thing in json.dumps(body)), thing)
    stack.write("POST", f"/v1/messages/{thing}", {"message": {"hello": 2}})
    has(stack.receive("antumbra-outbound", lambda body: thing in json.dumps(body)), "2")


@check("a malformed request gets an answer that says what is wrong")
def _(world):
    with world.main.device() as device:
        same(device.ask("list", "/nobody", limit="five")["code"], "BadRequest")
        device.subscribe("response/query/rejected")
        device.publish("request/query/nobody", "nonsense")
        same(device.wait("response/query/rejected")["code"], "BadRequest")


@check("MQTT 5 callers name a response topic and correlation data instead of a token")
def _(world):
    with world.main.device() as device:
        topic = f"response/mine/{uuid.uuid4().hex}"
        device.subscribe(topic)
        device.publish("request/query/nobody", "{}", ResponseTopic=topic, CorrelationData=b"42")
        same(device.wait(topic)["error"], "No messages available")


@check("mosquitto_pub and mosquitto_sub exchange an inbox request")
def _(world):
    import subprocess
    stack, token = world.main, uuid.uuid4().hex
    mosquitto("mosquitto_pub", stack, "-t", "nothing", "-m", "x")
    waiting = subprocess.Popen(["mosquitto_sub", "-h", "127.0.0.1", "-p", str(stack.port), "-t", f"response/query/{token}", "-C", "1", "-W", "40"],
                               stdout=subprocess.PIPE, text=True)
    while waiting.poll() is None:
        mosquitto("mosquitto_pub", stack, "-q", "1", "-t", "request/query/nobody", "-m", json.dumps({"token": token}))
        try:
            waiting.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
    same(json.loads(waiting.stdout.read()), {"error": "No messages available", "uuid": "nobody"})


@check("messages are read, listed newest first and deleted over HTTP, and their sources are listed")
def _(world):
    stack, thing = world.main, unique("thing")
    ids = sent(stack, thing, 1, 2, 3)
    newest = stack.get(f"/v1/messages/{thing}?newestFirst=true&limit=2")
    same([message["messageId"] for message in newest["messages"]], [ids[2], ids[1]])
    rest = stack.get(f"/v1/messages/{thing}?newestFirst=true&limit=2&cursor={quoted(newest['nextCursor'])}")
    same([message["messageId"] for message in rest["messages"]], [ids[0]])
    same(stack.get(f"/v1/messages/{thing}/{ids[0]}")["body"]["epochTime"], 1)
    stack.write("DELETE", f"/v1/messages/{thing}/{ids[0]}")
    same(stack.http("GET", f"/v1/messages/{thing}/{ids[0]}").status, 404)
    eventually(lambda: has(stack.get("/v1/messages?limit=1000"), thing))


@check("uuidKey and messageIdKey choose the fields locally, and numbers are in order")
def _(world):
    stack = world.stack("keys", registrations=[], variables={"uuidKey": "device.id", "messageIdKey": "n"})
    thing = unique("thing")
    for n in [10, 9, 100]:
        stack.send("antumbra-inbound", {"device": {"id": thing}, "n": n})

    def stored():
        page = stack.get(f"/v1/messages/{thing}?bodies=true")
        same([message["body"]["n"] for message in page["messages"]], [9, 10, 100])
    eventually(stored)


@check("a message that can never be stored is quarantined with the reason and can be moved back")
def _(world):
    stack, text = world.main, unique("no JSON")
    stack.send("antumbra-inbound", text)
    eventually(lambda: has(stack.antumbra("queues", "show", "antumbra-quarantine", "--json").stdout, text))
    page = stack.get("/v1/queues/quarantine")
    has(page, text)
    has(page, "NotJson")
    has(stack.get("/v1/queues"), "quarantine")


@check("the command sends, queries, gets, lists and deletes messages")
def _(world):
    stack, thing = world.main, unique("thing")
    body = json.dumps({"thingName": thing, "epochTime": 5})
    id = json.loads(stack.antumbra("messages", "send", thing, body).stdout)["messageId"]
    has(stack.antumbra("messages", "query", thing).stdout, id)
    has(stack.antumbra("messages", "get", thing, id).stdout, "epochTime")
    has(stack.antumbra("messages", "next", thing, "0").stdout, id)
    has(stack.antumbra("messages", "list", thing).stdout, id)
    stack.antumbra("messages", "delete", thing, id)
    stack.antumbra("messages", "get", thing, id, code=None)


@check("a message that is no JSON is refused by the command at once")
def _(world):
    import time
    start = time.monotonic()
    done = world.main.antumbra("messages", "send", "t2", "nojson", code=2)
    has(done.stderr, "JSON")
    assert time.monotonic() - start < 5, "it waited"
