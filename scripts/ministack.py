"""Parts of scripts/check-ministack.

    ministack.py templates INFRA CODE REGISTRATIONS OUT   copies the templates, with the gaps of ministack worked around
    ministack.py break TEMPLATE OUT                       adds a resource whose creation fails
    ministack.py proxy PORT TO_PORT CERTIFICATE KEY HOST  TLS in front of a port, with another host name in requests
    ministack.py operations OPENAPI URL                   calls every operation of the API, signed
    ministack.py logs NAME                                what the functions of a deployment logged
    ministack.py device PORT CA CERTIFICATE KEY THING     what a device may do by the policies of its certificate

CODE has a directory per binary with its bootstrap. The templates in infra/ stay as they are.
"""

import asyncio
import collections
import glob
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


done = collections.Counter()


def walk(value, change):
    """Applies a change to every object, inside first."""
    if isinstance(value, dict):
        value = {name: walk(member, change) for name, member in value.items()}
        return change(value)
    if isinstance(value, list):
        return [walk(member, change) for member in value]
    return value


def replaced(value, name, item):
    """A fragment of a loop for one item."""
    if value == {"Ref": name}:
        return item
    if isinstance(value, dict):
        return {replaced(key, name, item): replaced(member, name, item) for key, member in value.items()}
    if isinstance(value, list):
        return [replaced(member, name, item) for member in value]
    if isinstance(value, str):
        value = value.replace("${%s}" % name, item)
        return value.replace("&{%s}" % name, re.sub("[^A-Za-z0-9]", "", item))
    return value


def names(value):
    """A name that a loop made of a placeholder: `Ref` and `Fn::GetAtt` take text only without AWS::LanguageExtensions."""
    text = value.get("Fn::Sub") if len(value) == 1 else None
    return text if isinstance(text, str) and "${" not in text else value


def mapped(mappings):
    """Looks up Fn::FindInMap with literal keys, which a Ref may hold with AWS::LanguageExtensions only."""

    def change(value):
        keys = value.get("Fn::FindInMap") if len(value) == 1 else None
        if not keys or not all(isinstance(key, str) for key in keys):
            return value
        first, second, third = keys
        return mappings[first][second][third]

    return change


def expanded(section):
    """Expands Fn::ForEach, as AWS::LanguageExtensions does."""
    out = {}
    for key, value in section.items():
        if not key.startswith("Fn::ForEach::"):
            out[key] = value
            continue
        done["Fn::ForEach expanded"] += 1
        name, items, fragment = value
        for item in items:
            out.update(replaced(fragment, name, item))
    return out


def statements(value):
    """IAM of ministack asks for sqs:SendMessageBatch, which AWS does not have."""
    action = value.get("Action")
    if isinstance(action, list) and "sqs:SendMessage" in action:
        done["sqs:SendMessageBatch granted beside sqs:SendMessage"] += 1
        return {**value, "Action": action + ["sqs:SendMessageBatch"]}
    return value


def literals(value):
    """Numbers and booleans from parameters stay text in ministack."""
    for name, literal in [("MaximumConcurrency", 10), ("DeletionProtectionEnabled", False)]:
        if isinstance(value.get(name), dict):
            done[f"{name} as a literal"] += 1
            value = {**value, name: literal}
    return value


def environment(value):
    """Numbers in environment variables stay numbers in ministack."""

    def text(member):
        if isinstance(member, dict):
            return {key: text(inner) for key, inner in member.items()}
        if isinstance(member, list):
            return [text(inner) for inner in member]
        return str(member) if isinstance(member, int) else member

    if isinstance(value.get("Variables"), dict):
        return {**value, "Variables": text(value["Variables"])}
    return value


def resources(template, code, registrations):
    kept = {}
    for name, of in template.get("Resources", {}).items():
        properties = of.get("Properties", {})
        if of["Type"] == "AWS::IAM::RolePolicy":
            done["AWS::IAM::RolePolicy as AWS::IAM::Policy"] += 1
            of = {**of, "Type": "AWS::IAM::Policy"}
            rest = {key: value for key, value in properties.items() if key != "RoleName"}
            of["Properties"] = {**rest, "Roles": [properties["RoleName"]]}
        elif of["Type"] == "AWS::CloudWatch::Alarm" and "Metrics" in properties:
            done["alarms with metric math left out"] += 1
            continue
        elif of["Type"] == "AWS::Serverless::Function":
            binary = of["Metadata"]["BuildProperties"]["Binary"]
            properties["CodeUri"] = os.path.join(code, binary)
            of.pop("Metadata")
            variables = properties.get("Environment", {}).get("Variables", {})
            if "REGISTRATIONS" in variables:
                done["layers are not mounted: REGISTRATIONS names the directory"] += 1
                variables["REGISTRATIONS"] = registrations
                properties.pop("Layers", None)
        elif of["Type"] == "AWS::Serverless::LayerVersion":
            continue
        kept[name] = of
    template["Resources"] = kept


def templates(infra, code, registrations, out):
    import yaml

    for path in sorted(glob.glob(os.path.join(infra, "*.yaml"))):
        with open(path) as source:
            template = yaml.safe_load(source)
        if "AWSTemplateFormatVersion" not in template:
            continue
        file = os.path.basename(path).replace(".yaml", ".json")
        for section in ["Resources", "Outputs"]:
            template[section] = expanded(template.get(section, {}))
        conditions = template.get("Conditions", {})
        if "IsOwnStack" in conditions:
            done["Fn::Sub in a condition: the data stack's name is not compared"] += 1
            conditions["IsOwnStack"] = {"Fn::Equals": ["same", "same"]}
        kinds = template.get("Parameters", {}).get("StreamKinds", {}).get("Default", "").split(",")
        for name, condition in conditions.items():
            word = re.search(r'"Fn::Split": \["(\w+)"', json.dumps(condition))
            if word:
                done["Fn::Split in a condition: StreamKinds has its default"] += 1
                conditions[name] = {"Fn::Equals": ["listed", "listed" if word[1] in kinds else "left out"]}
        for profile in template.get("Mappings", {}).get("Profiles", {}).values():
            # Values of environment variables, except the retention of logs.
            for key, value in profile.items():
                if key != "LogDays" and type(value) is int:
                    profile[key] = str(value)
        resources(template, code, registrations)
        for change in [mapped(template.get("Mappings", {})), names, statements, literals, environment]:
            template = walk(template, change)
        transform = template.get("Transform")
        if transform:
            transform = transform if isinstance(transform, list) else [transform]
            transform = [one for one in transform if one != "AWS::LanguageExtensions"]
            template.pop("Transform")
            if transform:
                template["Transform"] = transform
        text = json.dumps(template, indent=1, default=str)
        for nested in ["iot", "api", "alarms", "dashboard"]:
            text = text.replace(f'"{nested}.yaml"', f'"{nested}.json"')
        with open(os.path.join(out, file), "w") as target:
            target.write(text)
    for gap, times in sorted(done.items()):
        print(f"gap   {gap} ({times} times)")


def broken(template, out):
    """ministack refuses alarms with metric math; this one comes after all tables and queues."""
    with open(template) as source:
        content = json.load(source)
    content["Resources"]["Broken"] = {
        "Type": "AWS::CloudWatch::Alarm",
        "DependsOn": list(content["Resources"]),
        "Properties": {
            "ComparisonOperator": "GreaterThanThreshold",
            "EvaluationPeriods": 1,
            "Threshold": 1,
            "Metrics": [{"Id": "sum", "Expression": "1 + 1", "ReturnData": True}],
        },
    }
    with open(out, "w") as target:
        json.dump(content, target)


async def copy(reader, writer, host=None):
    try:
        while data := await reader.read(65536):
            if host:
                # The first bytes are the request, whose host selects the service.
                data = re.sub(rb"(?i)(\r\nhost: )[^\r]*", rb"\g<1>" + host.encode(), data, count=1)
                host = None
            writer.write(data)
            await writer.drain()
    except (ConnectionError, ssl.SSLError):
        pass
    finally:
        writer.close()


def proxy(port, to_port, certificate, key, host):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)

    async def connected(reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", int(to_port))
        await asyncio.gather(copy(reader, inner_writer, host), copy(inner_reader, writer))

    async def serve():
        server = await asyncio.start_server(connected, "127.0.0.1", int(port), ssl=context)
        await server.serve_forever()

    asyncio.run(serve())


# Bodies of requests that the API accepts, by operation; others get an empty object, which the function itself judges.
BODIES = {
    "PATCH /v1/shadows/{id}/reported": {"led": "on"},
    "PATCH /v1/shadows/{id}/desired": {"led": "off"},
}


def operations(openapi, url):
    """Calls each operation. The API must pass it to the function, which answers with success or its own problem."""
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials

    credentials = botocore.credentials.Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    with open(openapi) as source:
        paths = json.load(source)["paths"]
    failed = calls = 0
    for path, methods in paths.items():
        for method in methods:
            if method not in ("get", "put", "post", "patch", "delete") or path == "/health":
                continue
            calls += 1
            target = url + re.sub(r"\{[^}]*\}", "check", path)
            body = None
            if method in ("put", "post", "patch"):
                body = json.dumps(BODIES.get(f"{method.upper()} {path}", {})).encode()
            headers = {"content-type": "application/json"} if body else {}
            request = botocore.awsrequest.AWSRequest(method.upper(), target, headers=headers, data=body)
            botocore.auth.SigV4Auth(credentials, "execute-api", "us-east-1").add_auth(request)
            # Python does not resolve names below .localhost.
            host = urllib.parse.urlsplit(target).netloc
            local = target.replace(host, "127.0.0.1:" + host.rsplit(":", 1)[-1], 1)
            signed = {**dict(request.headers), "Host": host}
            plain = urllib.request.Request(local, data=body, method=method.upper(), headers=signed)
            try:
                with urllib.request.urlopen(plain, timeout=60) as response:
                    status, kind = response.status, response.headers.get("content-type", "")
            except urllib.error.HTTPError as error:
                status, kind = error.code, error.headers.get("content-type", "")
            except OSError as error:
                status, kind = 0, str(error)
            # A response of the function, not of the gateway.
            if status >= 500 or status in (0, 403) or (status >= 400 and "problem+json" not in kind):
                failed += 1
                print(f"FAIL  {method.upper()} {path}: {status} {kind}")
    print(f"{'ok  ' if not failed else 'FAIL'}  {calls - failed} of {calls} operations answered by the function")
    return failed


def logs(name):
    """Reads what the functions of a deployment logged, also of messages that they quarantine: no member appears twice in a line."""
    import boto3

    sqs = boto3.client("sqs", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
    url = lambda queue: sqs.get_queue_url(QueueName=f"{name}-{queue}")["QueueUrl"]
    sources = ["inbound", "signals", "deliveries"]
    for queue in sources:
        sqs.send_message(QueueUrl=url(queue), MessageBody="not JSON")
    for _ in range(120):
        waiting = sqs.get_queue_attributes(QueueUrl=url("quarantine"), AttributeNames=["ApproximateNumberOfMessages"])
        if int(waiting["Attributes"]["ApproximateNumberOfMessages"]) >= len(sources):
            break
        time.sleep(0.5)

    def once(pairs):
        twice = [key for key, _ in pairs if [key for key, _ in pairs].count(key) > 1]
        if twice:
            raise ValueError(f"{twice[0]} twice")
        return dict(pairs)

    client, lines, functions, failed = boto3.client("logs"), 0, [], 0
    groups = client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=f"/aws/lambda/{name}-")
    for group in groups.build_full_result()["logGroups"]:
        found = client.get_paginator("filter_log_events").paginate(logGroupName=group["logGroupName"])
        found = found.build_full_result()["events"]
        texts = [text for event in found for text in event["message"].splitlines() if text.startswith("{")]
        lines += len(texts)
        functions += [group["logGroupName"].removeprefix(f"/aws/lambda/{name}-")] if texts else []
        for text in texts:
            try:
                json.loads(text, object_pairs_hook=once)
            except ValueError as fault:
                failed += 1
                print(f"FAIL  {group['logGroupName']}: {fault}: {text[:300]}")
    failed += not {"message-ingest", "sensor-ingest", "webhook-deliver"} <= set(functions)
    print(f"{'FAIL' if failed else 'ok  '}  {lines} lines of {', '.join(functions)}")
    return failed


class Device:
    """An MQTT 5 client with a certificate, which asks for one thing at a time."""

    def __init__(self, port, authority, certificate, key, client):
        context = ssl.create_default_context(cafile=authority)
        # The certificate of the listener is not for an address.
        context.check_hostname = False
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(socket.create_connection(("127.0.0.1", int(port)), 10))
        self.connected = self.ask(0x10, self.text("MQTT") + bytes([5, 2, 0, 60, 0]) + self.text(client)) == (0x20, 0)

    @staticmethod
    def text(text):
        return len(text.encode()).to_bytes(2, "big") + text.encode()

    def packet(self):
        def some(count):
            data = b""
            while len(data) < count:
                more = self.socket.recv(count - len(data))
                if not more:
                    raise ConnectionError
                data += more
            return data

        kind, length, shift = some(1)[0], 0, 0
        while True:
            byte = some(1)[0]
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return kind & 0xF0, some(length)

    def ask(self, kind, body):
        """Sends a packet; the kind of its acknowledgement and the reason code, or None if the connection ends."""
        # No packet here has more than 127 bytes.
        try:
            self.socket.sendall(bytes([kind, len(body)]) + body)
            while True:
                answer, content = self.packet()
                if answer == 0x20:
                    return answer, content[1]
                if answer == 0x40:
                    return answer, content[2] if len(content) > 2 else 0
                if answer == 0x90:
                    return answer, content[-1]
                if answer == 0xE0:
                    return None
        except (ConnectionError, OSError):
            return None

    def publishes(self, topic, payload="{}"):
        return self.ask(0x32, self.text(topic) + bytes([0, 1, 0]) + payload.encode()) in [(0x40, 0), (0x40, 16)]

    def subscribes(self, topic_filter):
        answer = self.ask(0x82, bytes([0, 1, 0]) + self.text(topic_filter) + bytes([1]))
        return answer is not None and answer[1] < 0x80

    def receives(self, topic, seconds):
        self.socket.settimeout(seconds)
        try:
            while True:
                kind, content = self.packet()
                length = int.from_bytes(content[:2], "big")
                if kind == 0x30 and content[2 : 2 + length].decode() == topic:
                    return True
        except (TimeoutError, ConnectionError, OSError):
            return False


def device(port, authority, certificate, key, thing):
    failed = 0

    def expect(what, actual, expected):
        nonlocal failed
        failed += actual != expected
        print(f"{'ok  ' if actual == expected else 'FAIL'}  {'may' if expected else 'may not'} {what}")

    def connect(client=thing):
        return Device(port, authority, certificate, key, client)

    expect("connect as another thing", connect("other").connected, False)
    lamp = connect()
    expect("connect as its thing", lamp.connected, True)
    for topic_filter in [f"shadow/{thing}/get/accepted", f"shadow/{thing}/update/delta", f"notification/{thing}", f"response/+/{thing}.1"]:
        expect(f"subscribe to {topic_filter}", lamp.subscribes(topic_filter), True)
    for operation in ["query/{}", "get/{}/1", "next/{}/0", "prev/{}/9", "delete/{}/1", "list/{}"]:
        topic = "request/" + operation.format(thing)
        expect(f"publish to {topic}", lamp.publishes(topic, '{"token": "' + thing + '.1"}'), True)
    expect(f"publish to shadow/{thing}/update", lamp.publishes(f"shadow/{thing}/update", '{"state": {"reported": {"led": "on"}}}'), True)
    # The function answers through the rule.
    expect(f"publish to shadow/{thing}/get", lamp.publishes(f"shadow/{thing}/get"), True)
    expect("receive the response", lamp.receives(f"shadow/{thing}/get/accepted", 30), True)
    for topic in ["shadow/other/update", f"shadow/{thing}/update/accepted", f"request/send/{thing}", "request/get/other/1", f"notification/{thing}"]:
        # A refused publish may end the connection.
        expect(f"publish to {topic}", connect().publishes(topic), False)
    for topic_filter in ["#", "shadow/+/get/accepted", "response/#", "notification/+"]:
        expect(f"subscribe to {topic_filter}", connect().subscribes(topic_filter), False)
    return failed


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    commands = {"templates": templates, "break": broken, "proxy": proxy, "operations": operations, "logs": logs, "device": device}
    sys.exit(1 if commands[command](*arguments) else 0)
