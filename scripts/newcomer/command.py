"""The command: diagnoses, finding stacks, imports, everything else that is documented."""
import contextlib, json, os, pathlib, re, subprocess, tempfile, time

from kit import PATIENCE, Receiver, Stack, antumbra, aws_cli, check, environment, eventually, has, running, same, unique


def one_line(done, *parts):
    lines = done.stderr.strip().splitlines()
    same(len(lines), 1)
    for part in parts:
        has(lines[0], part)
    for debug in ["Some(", "Err(", "Error {"]:
        assert debug not in lines[0], lines[0]


@check("missing credentials, region, profile and table are told apart, each in one line")
def _(world):
    endpoint = world.main.ready["dynamodb"]
    one_line(antumbra("shadow", "get", "x", keys=False), "credentials")
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    one_line(antumbra("shadow", "get", "x", keys=False, variables=keys), "region")
    one_line(antumbra("shadow", "get", "x", "--profile", "nope"), "profile nope")
    one_line(antumbra("--endpoint-url", endpoint, "--table", "nope", "shadow", "get", "x"), "table nope")
    one_line(antumbra("--endpoint-url", "http://127.0.0.1:9", "shadow", "get", "x"), "nothing listens")
    one_line(antumbra("--aws-url", "http://127.0.0.1:9", "queues", "show", "antumbra-quarantine"), "nothing listens")


@check("errors under --json are JSON")
def _(world):
    done = world.main.antumbra("shadow", "get", "nobody", "--json", code=3)
    error = json.loads(done.stderr)
    same((error["kind"], error["exitCode"]), ("notFound", 3))
    has(error["error"], "nobody")


@check("--local finds a running stack on any ports from any directory, and by its name")
def _(world):
    stack, other = world.main, pathlib.Path(tempfile.mkdtemp(dir=Stack.home))
    stack.antumbra("shadow", "report", unique(), "{}", directory=other)
    done = antumbra("--local=nobody", "shadow", "list")
    one_line(done, "nobody")


@check("outside of the repository the stack starts with built-in registrations and says so")
def _(world):
    stack = Stack()
    try:
        eventually(lambda: has(stack.printed(), "built-in"))
        with stack.device() as device:
            device.shadow(unique(), "update", {"state": {"reported": {"a": 1}}})
    finally:
        stack.stop()


@check("the start prints which settings differ from the defaults; unknown variables are refused")
def _(world):
    stack = world.quick
    eventually(lambda: has(stack.printed(), "RETRY_FIRST_SECONDS"))
    done = subprocess.run([Stack.binary, "local", "--memory", "--dynamodb-port", "0", "--aws-port", "0", "--mqtt-port", "0", "--http-port", "0"],
                          cwd=Stack.home, env=environment(ANTUMBRA_NONSENSE="1"), capture_output=True, text=True, timeout=30)
    assert done.returncode != 0, done.stdout
    has(done.stderr, "ANTUMBRA_NONSENSE")


@check("options that mean nothing for a command are not offered by it")
def _(world):
    help_text = antumbra("local", "--help").stdout
    for option in ["--endpoint-url", "--profile", "--aws-url"]:
        assert option not in help_text, f"{option} in the help of local"
    help_text = antumbra("registrations", "check", "--help").stdout
    for option in ["--table", "--endpoint-url", "--layout"]:
        assert option not in help_text, f"{option} in the help of registrations check"
    assert "--layout" not in antumbra("mqtt", "publish", "--help").stdout


@check("completions are printed for a shell")
def _(world):
    has(antumbra("completions", "bash").stdout, "antumbra")


def repeat_until_it_ends(process, action):
    """A subscription takes a moment to begin, so the action is repeated."""
    end = time.monotonic() + PATIENCE
    while process.poll() is None:
        assert time.monotonic() < end, process.printed()
        action()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.3)


@check("`mqtt publish` needs no response, and `mqtt subscribe` shows messages")
def _(world):
    stack, topic = world.main, unique("topic")
    with running(f"--local={stack.name}", "mqtt", "subscribe", topic, "--count", "1") as subscriber:
        repeat_until_it_ends(subscriber, lambda: stack.antumbra("mqtt", "publish", topic, "hello"))
    has(subscriber.printed(), "hello")


@check("the doctor checks the stack and finds nothing wrong")
def _(world):
    stack = world.main
    done = stack.antumbra("doctor", "--json", "--registrations", str(stack.directory / "registrations"))
    checks = json.loads(done.stdout)["checks"]
    same([one["name"] for one in checks if one["status"] != "ok"], [])


@check("`shadow watch` shows changes as they happen")
def _(world):
    stack, lamp = world.main, unique()
    with running(f"--local={stack.name}", "shadow", "watch", lamp, "--count", "1") as watching:
        repeat_until_it_ends(watching, lambda: stack.antumbra("shadow", "report", lamp, json.dumps({"n": time.time()})))
    has(watching.printed(), lamp)


@check("a queue that does not exist is QueueDoesNotExist in boto3")
def _(world):
    sqs = world.main.aws("sqs")
    for call in [lambda: sqs.get_queue_url(QueueName="nope"), lambda: sqs.receive_message(QueueUrl=world.main.queue("nope"))]:
        try:
            call()
        except sqs.exceptions.QueueDoesNotExist:
            continue
        raise AssertionError("no error")


@check("the AWS CLI uses DynamoDB, SQS, SNS and AWS IoT of the stack")
def _(world):
    stack = world.main
    aws, dynamodb = stack.ready["aws"], stack.ready["dynamodb"]
    has(aws_cli(dynamodb, "dynamodb", "list-tables"), "antumbra-messages")
    has(aws_cli(dynamodb, "dynamodbstreams", "list-streams"), "stream/")
    queue = aws_cli(aws, "sqs", "create-queue", "--queue-name", "strangers")["QueueUrl"]
    aws_cli(aws, "sqs", "send-message", "--queue-url", queue, "--message-body", "hello")
    has(aws_cli(aws, "sqs", "receive-message", "--queue-url", queue, "--wait-time-seconds", "5"), "hello")
    aws_cli(aws, "sns", "create-topic", "--name", "strangers")
    topic = unique("topic")
    with stack.device(version=4) as device:
        device.subscribe(topic)
        aws_cli(aws, "iot-data", "publish", "--topic", topic, "--payload", '{"a":1}')
        device.wait(topic)


@check("messages of 1 MiB go through the queues, as on AWS")
def _(world):
    sqs = world.main.aws("sqs")
    url = sqs.create_queue(QueueName="large")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="x" * (1024 * 1024))
    same(len(sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"][0]["Body"]), 1024 * 1024)


@check("a profile takes its credentials from a credential_process")
def _(world):
    script, config = Stack.home / "credentials.sh", Stack.home / "aws-config"
    keys = {"Version": 1, "AccessKeyId": "PROCESSKEY", "SecretAccessKey": "b"}
    script.write_text(f"#!/bin/sh\necho '{json.dumps(keys)}'\n")
    script.chmod(0o700)
    config.write_text(f"[profile fleet]\nregion = us-east-1\ncredential_process = {script}\n")
    done = antumbra("--endpoint-url", world.main.ready["dynamodb"], "--profile", "fleet", "shadow", "report", unique(), "{}",
                    keys=False, variables={"AWS_CONFIG_FILE": str(config)})
    same((done.returncode, done.stderr), (0, ""))


@check("shadows of AWS IoT are imported with their times, twice without a change, and never over newer values")
def _(world):
    import http.server, threading
    thing = unique("thing")
    document = {"state": {"reported": {"led": "on", "fan": 1}}, "version": 3,
                "metadata": {"reported": {"led": {"timestamp": 1769860800}, "fan": {"timestamp": 1769860700}}}}

    class AwsIot(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            listing = self.path.startswith("/api/")
            found = listing or self.path == f"/things/{thing}/shadow"
            body = json.dumps({"results": []} if listing else document if found else {"message": "none"}).encode()
            self.send_response(200 if found else 404)
            if not found:
                self.send_header("x-amzn-errortype", "ResourceNotFoundException")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), AwsIot)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack, things = world.main, Stack.home / "things.txt"
    things.write_text(thing + "\n")
    run = lambda *more: antumbra(f"--local={stack.name}", "import", "aws-iot-shadows", f"@{things}", "--source-endpoint-url",
                                 f"http://127.0.0.1:{server.server_port}", *more)
    for more, text in [(["--dry-run"], "1 shadows to import"), ([], "1 shadows imported"), ([], "0 shadows imported, 1 unchanged")]:
        done = run(*more)
        same(done.returncode, 0)
        has(done.stdout, text)
    with stack.device() as device:
        times = device.shadow(thing, "get")["metadata"]["reported"]
        same((times["led"]["timestamp"], times["fan"]["timestamp"]), (1769860800, 1769860700))
    stack.write("PATCH", f"/v1/shadows/{thing}/reported", {"fan": 2})
    run()
    same(stack.get(f"/v1/shadows/{thing}")["reported"]["document"], {"led": "on", "fan": 2})


@check("a table of godeviceshadow is imported, with the times of its values")
def _(world):
    stack, device = world.main, unique("House")
    db = stack.aws("dynamodb")
    key = lambda name, kind: {"AttributeName": name, "KeyType": kind}
    db.create_table(TableName="devices", BillingMode="PAY_PER_REQUEST", KeySchema=[key("PK", "HASH"), key("SK", "RANGE")],
                    AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ["PK", "SK"]])
    value = {"M": {"TimeStamp": {"S": "2026-01-31T12:00:00Z"}, "Value": {"N": "21.5"}}}
    db.put_item(TableName="devices", Item={"PK": {"S": f"DS#{device}"}, "SK": {"S": "DSR#hub"}, "Version": {"N": "4"}, "TimeStamp": {"N": "1769860800000000000"},
                                           "ClientToken": {"S": ""}, "Reported": {"M": {"Sensors": {"M": {"indoor": value}}}}, "Desired": {"NULL": True}})
    run = lambda *more: stack.antumbra("import", "godeviceshadow", "--from-table", "devices", "--source-endpoint-url", stack.ready["dynamodb"], *more).stdout
    has(run("--dry-run"), "1 items to import")
    has(run(), "1 items imported")
    has(run(), "0 items imported, 1 unchanged")
    found = stack.get(f"/v1/shadows/{device}/name/hub")["reported"]["document"]
    same(found, {"Sensors": {"indoor": {"timestamp": "2026-01-31T12:00:00Z", "Value": 21.5}}})


@check("the bill of a fleet is estimated")
def _(world):
    has(antumbra("cost", "--devices", "10000", "--reports-per-minute", "1").stdout, "$")


@check("the demo shows what it should, and lets a fleet report to a running stack")
def _(world):
    done = antumbra("demo", timeout=180)
    same(done.returncode, 0)
    stack = Stack()
    try:
        stack.antumbra("demo", "--into-local", "--seconds", "5")
        assert len(stack.get("/v1/shadows")["shadows"]) >= 20
    finally:
        stack.stop()


@check("the command manages sensors")
def _(world):
    stack, city, sensor = world.main, unique("Gdańsk"), unique("s")
    run = lambda *arguments, **more: stack.antumbra("sensors", *arguments, **more).stdout
    run("register", sensor, city, "A", "2", "13", "--type", "gas")
    eventually(lambda: has(run("in", city, "A"), sensor))
    run("move", sensor, city, "B", "-1", "P13")
    eventually(lambda: has(run("in", city, "B", "-1"), sensor))
    run("update", sensor, "--silence", "600")
    has(run("show", sensor), "600")
    run("signal", sensor, "1")
    eventually(lambda: has(run("state", sensor, "--json"), '"value": 1'))
    run("read", sensor, "21.5", "--unit", "°C")
    has(run("latest", sensor), "21.5")
    has(run("between", sensor, "2026-01-01T00:00:00Z", "2036-01-01T00:00:00Z"), "21.5")
    eventually(lambda: has(run("list", "--prefix", sensor), sensor))
    run("unregister", sensor)
    run("show", sensor, code=3)
    run("purge")


@check("the command manages clients, links and deliveries")
def _(world):
    stack, receiver, client, sensor = world.main, Receiver(), unique("c"), unique("s")
    run = lambda *arguments: stack.antumbra("clients", *arguments).stdout
    has(run("create", "Night watch", "http://127.0.0.1:9/", "--id", client), "whsec_")
    run("update", client, "--url", receiver.url, "--mode", "every")
    has(run("list"), client)
    has(run("rotate-secret", client), "whsec_")
    stack.register(sensor)
    run("link", client, sensor)
    has(run("sensors", client), sensor)
    run("test", client)
    receiver.wait(1, "client.test")
    run("disable", client)
    for value in ["0", "1"]:
        stack.antumbra("sensors", "signal", sensor, value)
        eventually(lambda: same(stack.get(f"/v1/sensors/{sensor}/state").get("value"), int(value)))
    eventually(lambda: has(run("deliveries", client), "held"))
    run("enable", client)
    delivered = receiver.wait(1, "state.changed")[0]
    eventually(lambda: same("held" in run("deliveries", client), False))
    run("redeliver", delivered["id"])
    same(receiver.wait(2, "state.changed")[1]["id"], delivered["id"])
    run("unlink", client, sensor)
    run("delete", client)
    has(stack.antumbra("clients", "show", client, code=3).stderr, "no such client")


@check("the command reads the inbox backwards, lists sources, sends to devices and moves quarantined messages back")
def _(world):
    stack, thing = world.main, unique("thing")
    run = lambda *arguments: stack.antumbra("messages", *arguments).stdout
    ids = [json.loads(run("send", thing, json.dumps({"thingName": thing, "epochTime": n})))["messageId"] for n in (1, 2)]
    has(run("prev", thing, ids[1]), ids[0])
    eventually(lambda: has(run("devices", "--limit", "400"), thing))
    run("send-to", thing, json.dumps({"hello": thing}))
    has(stack.receive("antumbra-outbound", lambda body: thing in json.dumps(body)), thing)
    sensor = unique("later")
    stack.send("antumbra-signals", {"sensor_id": sensor, "data": 1})
    eventually(lambda: has(stack.antumbra("queues", "show", "antumbra-quarantine", "--json", "--limit", "1000").stdout, sensor))
    stack.register(sensor)

    def moved_back():
        # What was shown is hidden from a redrive for a moment.
        stack.antumbra("queues", "redrive", "antumbra-quarantine", "--go")
        same(stack.get(f"/v1/sensors/{sensor}/state").get("value"), 1)
    eventually(moved_back, 90)


@check("a layout that differs from that of the table is refused")
def _(world):
    one_line(antumbra("--endpoint-url", world.main.ready["dynamodb"], "--layout", "combined", "shadow", "report", unique(), "{}"), "separate")


@check("`antumbra local --json` prints its addresses as JSON, and names variables that it does not use")
def _(world):
    ports = [word for port in ["dynamodb", "aws", "mqtt", "http"] for word in (f"--{port}-port", "0")]
    with running("local", "--memory", "--json", "--name", unique("json"), *ports) as stack:
        ready = eventually(lambda: json.loads(stack.printed()))
        has(ready["dynamodb"], "http://127.0.0.1:")
    with running("local", "--memory", "--name", unique("named"), *ports, variables={"ANTUMBRA_TABLE": "other"}) as stack:
        eventually(lambda: has(stack.printed(), "ANTUMBRA_TABLE"))


@check("signals come from a real RabbitMQ, if the command has the feature")
def _(world):
    has(antumbra("local", "--help").stdout + (pathlib.Path(Stack.root) / "docs/sensors.md").read_text()
        + (pathlib.Path(Stack.root) / "docs/local-stack.md").read_text(), "--rabbitmq")
    assert os.access(pathlib.Path(Stack.root) / "scripts/check-rabbitmq", os.X_OK), "scripts/check-rabbitmq"
