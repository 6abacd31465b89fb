"""Registrations: what is sent where, and what happens to what cannot be sent."""
import json, signal, time

from kit import Stack, antumbra, aws_cli, check, eventually, has, mosquitto, same, unique


@check("a change is sent with old, new and diff to a FIFO queue, in order")
def _(world):
    stack, lamp = world.main, unique("noted")
    for n in range(5):
        stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"n": n})
    mine = lambda body: body["shadow"]["id"] == lamp
    messages = [stack.receive("changes.fifo", mine) for _ in range(5)]
    same([message["version"] for message in messages], [1, 2, 3, 4, 5])
    same((messages[1]["old"], messages[1]["new"], messages[1]["diff"]["updated"]), ({"n": 0}, {"n": 1}, {"/n": {"old": 0, "new": 1}}))


@check("a pattern on old and new sends a transition once, to an SNS topic and the queue that subscribes to it")
def _(world):
    stack = world.main
    sns, sqs = stack.aws("sns"), stack.aws("sqs")
    sns.create_topic(Name="alarms")
    sqs.create_queue(QueueName="alarms-box")
    sns.subscribe(TopicArn="arn:aws:sns:us-east-1:000000000000:alarms", Protocol="sqs",
                  Endpoint="arn:aws:sqs:us-east-1:000000000000:alarms-box", Attributes={"RawMessageDelivery": "true"})
    freezer = unique("freezer")
    for value in [-18, -12, -11]:
        stack.write("PATCH", f"/v1/shadows/{freezer}/reported", {"temp": {"value": value}})
    same(stack.receive("alarms-box", lambda body: body["shadow"]["id"] == freezer)["version"], 2)
    try:
        stack.receive("alarms-box", lambda body: body["shadow"]["id"] == freezer, seconds=3)
    except AssertionError:
        return
    raise AssertionError("sent twice")


@check("a leaf condition selects changed values by a path with wildcards and by old and new value")
def _(world):
    stack, hub = world.main, unique("hub")
    for value in [18, 19, 21]:
        measured = lambda value: {"value": value, "timestamp": time.time()}
        sensors = {"indoor-12": measured(value), "outdoor-1": measured(99)}
        stack.write("PATCH", f"/v1/shadows/{hub}/reported", {"circuits": {"c1": {"sensors": sensors}}})
    body = stack.receive("indoor", lambda body: body["shadow"]["id"] == hub)
    same(body["version"], 3)
    has(body["matched"], "/circuits/c1/sensors/indoor-12")


@check("an acknowledged desired value is told from a withdrawn one")
def _(world):
    stack, valve = world.main, unique("valve")
    stack.write("PATCH", f"/v1/shadows/{valve}/desired", {"open": True, "level": 3})
    stack.write("PATCH", f"/v1/shadows/{valve}/desired", {"level": None})
    stack.write("PATCH", f"/v1/shadows/{valve}/reported", {"open": True})
    body = stack.receive("reached", lambda body: body["shadow"]["id"] == valve)
    has(body["matched"], "/open")
    same(body["version"], 3)


@check("a first report of 300 KB is delivered, and says which parts were left out")
def _(world):
    stack, lamp = world.main, unique("noted")
    big = Stack.home / "big.json"
    big.write_text(json.dumps({f"k{n}": "x" * 3000 for n in range(100)}))
    stack.antumbra("shadow", "report", lamp, f"@{big}")
    body = stack.receive("changes.fifo", lambda body: body["shadow"]["id"] == lamp)
    same(body["version"], 1)
    # On AWS and here a message may have 1 MiB, in which the new state and the diff have room.
    has(body["diff"], "k99")
    has(body["new"], "k99")


@check("an edit by another program that changes only the version sends no change")
def _(world):
    stack, lamp = world.main, unique("noted")
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"n": 1})
    stack.receive("changes.fifo", lambda body: body["shadow"]["id"] == lamp)
    stack.aws("dynamodb").update_item(TableName="antumbra", Key={"PK": {"S": f"DS#{lamp}"}, "SK": {"S": "DSR#main"}},
                                      UpdateExpression="SET version = :v", ExpressionAttributeValues={":v": {"N": "2"}})
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"n": 2})
    body = stack.receive("changes.fifo", lambda body: body["shadow"]["id"] == lamp)
    same((body["version"], body["diff"]["updated"]), (3, {"/n": {"old": 1, "new": 2}}))


@check("an MQTT target publishes to the topic of the device")
def _(world):
    stack, lamp = world.main, unique("lamp")
    with stack.device(version=4) as device:
        device.subscribe(f"lamps/{lamp}")
        stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "on"})
        same(device.wait(f"lamps/{lamp}")["new"], {"led": "on"})


@check("an EventBridge target works locally: the queue of the bus gets every event, and the command shows them")
def _(world):
    stack, shadow = world.main, unique("bus")
    stack.write("PATCH", f"/v1/shadows/{shadow}/reported", {"led": "on"})
    eventually(lambda: has(stack.antumbra("events", "--json").stdout, shadow))
    # What the command has shown is hidden for a moment.
    event = stack.receive("antumbra-events-default", lambda body: body["detail"]["shadow"]["id"] == shadow, seconds=60)
    same((event["detail-type"], event["detail"]["diff"]["added"]), ("Changed", {"/led": "on"}))
    answer = stack.aws("events").put_events(Entries=[{"Source": "mine", "DetailType": "Test", "Detail": "{}"}])
    same(answer["FailedEntryCount"], 0)


@check("a notification that cannot be sent is in the undeliverable queue with the reason, and can be sent again")
def _(world):
    stack, shadow = world.main, unique("lost")
    stack.aws("sqs").delete_queue(QueueUrl=stack.queue("does-not-exist"))
    stack.write("PATCH", f"/v1/shadows/{shadow}/reported", {"led": "on"})

    def shown():
        text = stack.antumbra("queues", "show", "antumbra-undeliverable", "--json").stdout
        has(text, shadow)
        has(text, "nowhere")
    eventually(shown)
    page = stack.get("/v1/queues/undeliverable")
    has(page, shadow)
    stack.aws("sqs").create_queue(QueueName="does-not-exist")

    def sent_again():
        # What was shown is hidden from a redrive for a moment.
        stack.write("POST", "/v1/queues/undeliverable/redrive")
        same(stack.receive("does-not-exist", lambda body: body["shadow"]["id"] == shadow, seconds=3)["version"], 1)
    eventually(sent_again, 90)


@check("a changed registration is taken over while the stack runs, and a wrong one changes nothing")
def _(world):
    stack, shadow = world.main, unique("later")
    folder = stack.directory / "registrations"
    rule = {"name": "later", "on": {"key": "^DS#later"}, "to": {"sqs": {"queue": "later"}}}
    (folder / "later.json").write_text(json.dumps(rule))
    eventually(lambda: has(stack.printed(), "later"))

    def sent():
        stack.write("PATCH", f"/v1/shadows/{shadow}/reported", {"at": time.time()})
        stack.receive("later", seconds=3)
    eventually(sent)
    (folder / "wrong.json").write_text('{"name": "wrong"}')
    eventually(lambda: has(stack.printed(), "wrong"))
    stack.write("PATCH", f"/v1/shadows/{shadow}/reported", {"at": 0})
    stack.receive("later", lambda body: body["shadow"]["id"] == shadow)
    (folder / "wrong.json").unlink()
    before = stack.printed().count("reloaded")
    (folder / "later.json").unlink()
    stack.process.send_signal(signal.SIGHUP)
    eventually(lambda: same(stack.printed().count("reloaded") > before, True))
    assert stack.process.poll() is None, "SIGHUP ended the stack"


@check("registrations are checked, explained and listed")
def _(world):
    stack = world.main
    folder = str(stack.directory / "registrations")
    has(antumbra("registrations", "check", "--registrations", folder).stdout, "all-changes")
    schema = json.loads(antumbra("registrations", "schema").stdout)
    has(schema, "leaf")
    listed = stack.get("/v1/registrations")["registrations"]
    assert any(one["name"] == "all-changes" for one in listed), listed
    same(stack.get("/v1/registrations/all-changes")["name"], "all-changes")


@check("the example in the help of explain runs as it is printed")
def _(world):
    import re, shlex
    help_text = antumbra("registrations", "explain", "--help").stdout
    example = re.search(r"Example: (antumbra .*)", help_text).group(1)
    done = antumbra(*shlex.split(example)[1:], directory=Stack.root)
    same((done.returncode, done.stderr), (0, ""))
