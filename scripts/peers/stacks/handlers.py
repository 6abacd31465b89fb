"""Plain Python handlers for the work of scripts/bench-stacks, as a user might write them with boto3.

They keep what a correct handler must: reports are merged by the time of each value and written under a condition, changes are sent
in batches of ten, signals update the state only if they are newer.
"""

import base64
import json
import os
from decimal import Decimal

import boto3
from boto3.dynamodb.types import TypeDeserializer
from botocore.exceptions import ClientError

endpoint = os.environ["AWS_ENDPOINT_URL"]
table = boto3.resource("dynamodb", endpoint_url=endpoint).Table("plain")
sqs = boto3.client("sqs", endpoint_url=endpoint)
deserialize = TypeDeserializer().deserialize


def merged(stored, sent):
    """The stored document with what is newer in the sent one."""
    result = dict(stored)
    for name, value in sent.items():
        old = result.get(name)
        both = isinstance(value, dict) and isinstance(old, dict)
        if both and "timestamp" in value and "timestamp" in old:
            if value["timestamp"] > old["timestamp"]:
                result[name] = value
        elif both:
            result[name] = merged(old, value)
        else:
            result[name] = value
    return result


def report(event, context):
    """PATCH /v1/shadows/{id}/reported"""
    device = event["rawPath"].split("/")[3]
    body = event["body"]
    if event.get("isBase64Encoded"):
        body = base64.b64decode(body)
    sent = json.loads(body, parse_float=Decimal)
    key = {"PK": f"DS#{device}", "SK": "DSR#main"}
    while True:
        stored = table.get_item(Key=key, ConsistentRead=True).get("Item", {"version": 0, "reported": {}})
        version = int(stored["version"])
        item = {**key, "version": version + 1, "reported": merged(stored["reported"], sent)}
        condition = "version = :version" if version else "attribute_not_exists(PK)"
        values = {"ExpressionAttributeValues": {":version": version}} if version else {}
        try:
            table.put_item(Item=item, ConditionExpression=condition, **values)
            return {"statusCode": 200, "headers": {"content-type": "application/json"}, "body": json.dumps({"version": version + 1})}
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise


def listen(event, context):
    """Sends what changed in each record of the stream to a queue."""
    entries = []
    for record in event["Records"]:
        change = record["dynamodb"]
        if not change["Keys"]["PK"]["S"].startswith("DS#"):
            continue
        old = deserialize({"M": change.get("OldImage", {})}).get("reported", {})
        new = deserialize({"M": change.get("NewImage", {})}).get("reported", {})
        diff = {name: {"old": old.get(name), "new": value} for name, value in new.items() if old.get(name) != value}
        body = json.dumps({"key": change["Keys"]["PK"]["S"], "diff": diff}, default=str)
        entries.append({"Id": str(len(entries)), "MessageBody": body})
    for start in range(0, len(entries), 10):
        sqs.send_message_batch(QueueUrl=os.environ["QUEUE_URL"], Entries=entries[start : start + 10])
    return {"batchItemFailures": []}


def ingest(event, context):
    """Stores a batch of signals as states and readings."""
    failures = []
    for record in event["Records"]:
        signal = json.loads(record["body"])
        sensor, time = f"SENSOR#{signal['sensor_id']}", signal["ts"]
        try:
            try:
                table.update_item(
                    Key={"PK": sensor, "SK": "STATE"},
                    UpdateExpression="SET #v = :v, #t = :t",
                    ConditionExpression="attribute_not_exists(#t) OR #t < :t",
                    ExpressionAttributeNames={"#v": "value", "#t": "at"},
                    ExpressionAttributeValues={":v": signal["data"], ":t": time},
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                    raise
            table.put_item(Item={"PK": sensor, "SK": f"READ#{time}#{record['messageId']}", "value": signal["data"]})
        except ClientError:
            failures.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failures}
