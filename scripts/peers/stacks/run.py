"""The work of scripts/bench-stacks: python run.py BINARIES COUNT"""

import concurrent.futures
import contextlib
import datetime
import http.client
import io
import json
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import zipfile

import boto3
from botocore.config import Config

CONNECTIONS = 8
DEVICES = 100
SENSORS = 50
QUEUE = "bench-notifications"
REGISTRATION = {
    "name": "bench",
    "on": {"key": "^DS#bench-.*#DSR#", "state": "reported"},
    "send": ["diff"],
    "to": {"sqs": {"queue": QUEUE}},
}
HERE = os.path.dirname(os.path.abspath(__file__))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def until(what, condition, seconds=120, every=0.05):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        result = condition()
        if result:
            return result
        time.sleep(every)
    sys.exit(f"bench-stacks: {what} took more than {seconds} s")


@contextlib.contextmanager
def process(arguments, **options):
    with tempfile.TemporaryFile() as log:
        child = subprocess.Popen(arguments, stdout=log, stderr=subprocess.STDOUT, **options)
        try:
            yield child
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read()[-3000:].decode(errors="replace"))
            raise
        finally:
            child.terminate()
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                child.kill()


def client(service, endpoint):
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
        config=Config(max_pool_connections=32, retries={"max_attempts": 5}),
    )


class Stack:
    """Where the work is done: the address of the HTTP API with its headers, the table, and clients for DynamoDB and SQS."""

    def __init__(self, http, headers, table, dynamodb, sqs):
        self.http, self.headers, self.table = http, headers, table
        self.dynamodb, self.sqs = client("dynamodb", dynamodb), client("sqs", sqs)
        self.notifications = self.sqs.create_queue(QueueName=QUEUE)["QueueUrl"]
        self.signals = self.sqs.create_queue(QueueName="antumbra-signals")["QueueUrl"]


def at(index):
    """A time for each signal and value, all of them different and in the past."""
    start = datetime.datetime(2026, 1, 31, tzinfo=datetime.timezone.utc)
    return (start + datetime.timedelta(milliseconds=index)).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def send_reports(stack, first, count):
    """Sends reports on several connections; returns the seconds of each."""
    target = urllib.parse.urlsplit(stack.http)

    def lane(number):
        connection = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
        taken = []
        for index in range(first + number, first + count, CONNECTIONS):
            values = {f"sensor{n}": {"value": index + n, "timestamp": at(index)} for n in range(10)}
            start = time.monotonic()
            connection.request(
                "PATCH",
                f"/v1/shadows/bench-{index % DEVICES}/reported",
                json.dumps(values),
                {"content-type": "application/json", **stack.headers},
            )
            response = connection.getresponse()
            body = response.read()
            if response.status != 200:
                sys.exit(f"bench-stacks: a report was answered with {response.status}: {body[:300]}")
            taken.append(time.monotonic() - start)
        return taken

    with concurrent.futures.ThreadPoolExecutor(CONNECTIONS) as pool:
        return [one for lane in pool.map(lane, range(CONNECTIONS)) for one in lane]


def receive(stack, count):
    """Receives notifications until there are so many."""
    received = 0

    def more():
        nonlocal received
        page = stack.sqs.receive_message(QueueUrl=stack.notifications, MaxNumberOfMessages=10, WaitTimeSeconds=1)
        messages = page.get("Messages", [])
        received += len(messages)
        if messages:
            entries = [{"Id": str(n), "ReceiptHandle": one["ReceiptHandle"]} for n, one in enumerate(messages)]
            stack.sqs.delete_message_batch(QueueUrl=stack.notifications, Entries=entries)
        return received >= count

    until(f"receiving {count} notifications", more, seconds=600, every=0)


def send_signals(stack, first, count):
    entries = [
        {"Id": str(index), "MessageBody": json.dumps({"sensor_id": f"bench-{index % SENSORS}", "data": index // SENSORS % 2, "ts": at(index)})}
        for index in range(first, first + count)
    ]
    batches = [entries[start : start + 10] for start in range(0, count, 10)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda batch: stack.sqs.send_message_batch(QueueUrl=stack.signals, Entries=batch), batches))


def readings(stack, sensor):
    """Number of stored readings of a sensor."""
    total, page = 0, {}
    while True:
        page = stack.dynamodb.query(
            TableName=stack.table,
            Select="COUNT",
            KeyConditionExpression="PK = :pk AND begins_with(SK, :sk)",
            ExpressionAttributeValues={":pk": {"S": f"SENSOR#bench-{sensor}"}, ":sk": {"S": "READ#"}},
            **({"ExclusiveStartKey": page["LastEvaluatedKey"]} if page else {}),
        )
        total += page["Count"]
        if "LastEvaluatedKey" not in page:
            return total


def work(stack, count):
    """Warms up with a tenth, then measures: reports, notifications and signals per second, and the median report."""
    few = max(DEVICES, count // 10) // CONNECTIONS * CONNECTIONS
    send_reports(stack, 0, few)
    receive(stack, few)
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        receiver = pool.submit(receive, stack, count)
        taken = sorted(send_reports(stack, few, count))
        reported = time.monotonic() - start
        receiver.result()
    notified = time.monotonic() - start
    # The last readings of all sensors tell that everything is stored.
    few = max(SENSORS, count // 10) // SENSORS * SENSORS
    count = count // SENSORS * SENSORS

    def stored(each):
        return until("storing signals", lambda: all(readings(stack, sensor) >= each for sensor in range(SENSORS)), 600, 0.2)

    send_signals(stack, 0, few)
    stored(few // SENSORS)
    start = time.monotonic()
    send_signals(stack, few, count)
    stored((few + count) // SENSORS)
    ingested = time.monotonic() - start
    return {"reports": count / reported, "median": taken[len(taken) // 2] * 1000, "notifications": count / notified, "signals": count / ingested}


@contextlib.contextmanager
def registrations():
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "bench.json"), "w") as file:
            json.dump(REGISTRATION, file)
        yield directory


def antumbra_local(binaries, count):
    with registrations() as directory, tempfile.TemporaryDirectory() as home:
        ready = os.path.join(home, "ready.json")
        arguments = [os.path.join(binaries, "antumbra"), "local", "--memory", "--ready-file", ready, "--registrations", directory]
        arguments += ["--dynamodb-port", "0", "--aws-port", "0", "--mqtt-port", "0", "--http-port", "0", "--auto-register", "true"]
        with process(arguments, cwd=home):
            until("the start of antumbra local", lambda: os.path.exists(ready) and os.path.getsize(ready))
            with open(ready) as file:
                addresses = json.load(file)
            headers = {"authorization": f"Bearer {addresses['token']}"}
            stack = Stack(addresses["http"], headers, "antumbra", addresses["dynamodb"], addresses["aws"])
            # Functions on ministack get the same tables and queues.
            names = stack.dynamodb.list_tables()["TableNames"]
            tables = [stack.dynamodb.describe_table(TableName=name)["Table"] for name in names]
            queues = [url.rsplit("/", 1)[1] for url in stack.sqs.list_queues()["QueueUrls"]]
            return work(stack, count), tables, queues


def zipped(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o755 << 16
            with open(path, "rb") as file:
                archive.writestr(entry, file.read(), zipfile.ZIP_DEFLATED)
    return data.getvalue()


@contextlib.contextmanager
def ministack():
    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": endpoint,
    }
    with process(["ministack"], env=environment):

        def answers():
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port), 1).close()
                return True

        until("the start of ministack", answers)
        yield endpoint


class Functions:
    """Functions of one kind on ministack, with their event sources and an HTTP API."""

    def __init__(self, endpoint, runtime, environment):
        self.endpoint, self.runtime, self.environment = endpoint, runtime, environment
        self.functions = client("lambda", endpoint)

    def create(self, name, archive, handler, variables):
        return self.functions.create_function(
            FunctionName=name,
            Runtime=self.runtime,
            Handler=handler,
            Role="arn:aws:iam::000000000000:role/bench",
            Code={"ZipFile": archive},
            Timeout=30,
            MemorySize=256,
            Environment={"Variables": {**self.environment, **variables}},
        )["FunctionArn"]

    def reads(self, name, source, batch, **options):
        self.functions.create_event_source_mapping(
            FunctionName=name, EventSourceArn=source, BatchSize=batch, FunctionResponseTypes=["ReportBatchItemFailures"], **options
        )

    def serves(self, arn):
        gateway = client("apigatewayv2", self.endpoint)
        api = gateway.create_api(Name="bench", ProtocolType="HTTP")
        integration = gateway.create_integration(
            ApiId=api["ApiId"], IntegrationType="AWS_PROXY", IntegrationUri=arn, PayloadFormatVersion="2.0"
        )["IntegrationId"]
        gateway.create_route(ApiId=api["ApiId"], RouteKey="ANY /{proxy+}", Target=f"integrations/{integration}")
        gateway.create_stage(ApiId=api["ApiId"], StageName="$default", AutoDeploy=True)
        return {"host": urllib.parse.urlsplit(api["ApiEndpoint"]).netloc}


def copied_tables(endpoint, tables):
    """Creates tables as they are described; returns the stream of the main table."""
    dynamodb = client("dynamodb", endpoint)
    stream = None
    for table in tables:
        definition = {key: table[key] for key in ["TableName", "AttributeDefinitions", "KeySchema", "StreamSpecification"] if table.get(key)}
        for kind in ["GlobalSecondaryIndexes", "LocalSecondaryIndexes"]:
            if table.get(kind):
                definition[kind] = [{key: index[key] for key in ["IndexName", "KeySchema", "Projection"]} for index in table[kind]]
        created = dynamodb.create_table(BillingMode="PAY_PER_REQUEST", **definition)["TableDescription"]
        if table["TableName"] == "antumbra":
            stream = created["LatestStreamArn"]
    return stream


def queue_arn(sqs, url):
    return sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def own_functions(binaries, tables, queues, count):
    with ministack() as endpoint, registrations() as directory:
        sqs = client("sqs", endpoint)
        urls = {}
        for queue in queues:
            attributes = {"FifoQueue": "true"} if queue.endswith(".fifo") else {}
            urls[queue] = sqs.create_queue(QueueName=queue, Attributes=attributes)["QueueUrl"]
        stream = copied_tables(endpoint, tables)
        queue = lambda name: urls[f"antumbra-{name}"]
        variables = {
            "AWS_ENDPOINT_URL": endpoint,
            "METRICS": "false",
            "TABLE": "antumbra",
            "UNDELIVERABLE_QUEUE_URL": queue("undeliverable"),
            "SPILL_QUEUE_URL": queue("spill.fifo"),
            "QUARANTINE_QUEUE_URL": queue("quarantine"),
            "REGISTRATIONS": directory,
        }
        more = {
            "AUTH": "none",
            "MESSAGES_TABLE": "antumbra-messages",
            "INBOUND_QUEUE_URL": queue("inbound"),
            "OUTBOUND_QUEUE_URL": queue("outbound"),
            "SIGNALS_QUEUE_URL": queue("signals"),
            "DELIVERIES_QUEUE_URL": queue("deliveries"),
            "DELIVERIES_FIFO_QUEUE_URL": queue("deliveries.fifo"),
            "DELIVERIES_DEAD_QUEUE_URL": queue("deliveries-dead"),
            "DELIVERIES_DEAD_FIFO_QUEUE_URL": queue("deliveries-dead.fifo"),
        }
        functions = Functions(endpoint, "provided.al2023", variables)

        def create(name, variables):
            return functions.create(name, zipped({"bootstrap": os.path.join(binaries, f"antumbra-{name}")}), "bootstrap", variables)

        headers = functions.serves(create("http-api", more))
        create("stream-listener", {})
        create("sensor-ingest", {"AUTO_REGISTER": "true"})
        functions.reads("stream-listener", stream, 100, StartingPosition="TRIM_HORIZON")
        functions.reads("sensor-ingest", queue_arn(sqs, queue("signals")), 10)
        return work(Stack(endpoint, headers, "antumbra", endpoint, endpoint), count)


def plain_handlers(count):
    with ministack() as endpoint:
        sqs, dynamodb = client("sqs", endpoint), client("dynamodb", endpoint)
        notifications = sqs.create_queue(QueueName=QUEUE)["QueueUrl"]
        signals = sqs.create_queue(QueueName="antumbra-signals")["QueueUrl"]
        stream = dynamodb.create_table(
            TableName="plain",
            BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ["PK", "SK"]],
            KeySchema=[{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        )["TableDescription"]["LatestStreamArn"]
        archive = zipped({"handlers.py": os.path.join(HERE, "handlers.py")})
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        functions = Functions(endpoint, version, {"AWS_ENDPOINT_URL": endpoint, "QUEUE_URL": notifications})
        headers = functions.serves(functions.create("report", archive, "handlers.report", {}))
        functions.create("listen", archive, "handlers.listen", {})
        functions.create("ingest", archive, "handlers.ingest", {})
        functions.reads("listen", stream, 100, StartingPosition="TRIM_HORIZON")
        functions.reads("ingest", queue_arn(sqs, signals), 10)
        return work(Stack(endpoint, headers, "plain", endpoint, endpoint), count)


def main(binaries, count):
    count = int(count) // CONNECTIONS * CONNECTIONS
    local, tables, queues = antumbra_local(binaries, count)
    rows = [("`antumbra local`", local)]
    rows.append(("ministack, functions of this project", own_functions(binaries, tables, queues, count)))
    rows.append(("ministack, plain Python handlers", plain_handlers(count)))
    from importlib.metadata import version

    print("| stack | reports a second | median report, ms | notifications a second | signals a second |")
    print("|---|---|---|---|---|")
    for name, figures in rows:
        cells = [f"{figures['reports']:.0f}", f"{figures['median']:.1f}", f"{figures['notifications']:.0f}", f"{figures['signals']:.0f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    for name, figures in rows[1:]:
        cells = [f"{local[what] / figures[what]:.1f}" for what in ["reports", "notifications", "signals"]]
        print(f"| `antumbra local` / {name} | {cells[0]} | | {cells[1]} | {cells[2]} |")
    print(f"\n{count} reports with 10 timestamped values of {DEVICES} devices on {CONNECTIONS} connections, and as many signals of {SENSORS} sensors.")
    print(f"{datetime.date.today()}, {os.cpu_count()} cores, ministack {version('ministack')}, Python {platform.python_version()}.")


if __name__ == "__main__":
    main(*sys.argv[1:])
