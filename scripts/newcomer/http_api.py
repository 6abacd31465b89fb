"""The HTTP API as a whole."""
import json

from kit import check, has, same


@check("health needs no token, everything else does, and errors are problem+json")
def _(world):
    stack = world.main
    same(stack.http("GET", "/health", token=False).json, {"status": "ok"})
    answer = stack.http("GET", "/v1/sensors", token=False)
    same((answer.status, answer.headers["content-type"].split(";")[0], answer.json["code"]), (401, "application/problem+json", "Unauthorized"))


@check("an answer of not found says what was not found")
def _(world):
    for path, word in [("/v1/shadows/nobody", "shadow"), ("/v1/sensors/nobody", "sensor"), ("/v1/clients/nobody", "client"), ("/v1/messages/nobody/1", "message")]:
        answer = world.main.http("GET", path)
        same(answer.status, 404)
        has(json.dumps(answer.json).lower(), word)


@check("the API serves its OpenAPI document")
def _(world):
    document = world.main.get("/v1/openapi.json")
    same(document["openapi"][:3], "3.1")


@check("JSON of the API is camelCase throughout")
def _(world):
    document = world.main.get("/v1/openapi.json")
    wrong = []

    def walk(schema, at):
        for name, child in (schema.get("properties") or {}).items():
            if "_" in name and name != "sensor_id":
                wrong.append(f"{at}.{name}")
            walk(child, f"{at}.{name}")
    for name, schema in document["components"]["schemas"].items():
        walk(schema, name)
    same(wrong, [])
