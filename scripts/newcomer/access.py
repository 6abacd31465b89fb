"""Grants and the console."""
import json, re, subprocess

from kit import Stack, antumbra, check, eventually, has, running, same, unique


@check("a token with grants may do what they cover; a refusal names the missing grant; lists leave out the rest")
def _(world):
    stack = world.stack("grants", "--grant", "shadows:write:acme#", "--grant", "changes:read:acme#", registrations=[])
    for shadow in ["acme%23lamp", "other%23lamp"]:
        stack.write("PATCH", f"/v1/shadows/{shadow}/reported", {"led": "on"})
    limited = stack.ready["limitedToken"]["token"]
    status = lambda method, path, body=None: stack.http(method, path, body, token=limited).status
    same(status("GET", "/v1/shadows/acme%23lamp"), 200)
    same(status("PATCH", "/v1/shadows/acme%23lamp/desired", {"led": "off"}), 200)
    same(status("DELETE", "/v1/shadows/acme%23lamp?purge=true"), 403)
    same(status("GET", "/v1/sensors"), 403)
    answer = stack.http("GET", "/v1/shadows/other%23lamp", token=limited)
    same((answer.status, answer.json["code"]), (403, "Forbidden"))
    has(answer.json["detail"], "shadows:read")

    def listed():
        page = stack.get("/v1/shadows", token=limited)
        same([shadow["id"] for shadow in page["shadows"]], ["acme#lamp"])
        changes = stack.get("/v1/changes?cursor=oldest&limit=1000", token=limited)["changes"]
        same({change["id"] for change in changes}, {"acme#lamp"})
    eventually(listed)


@check("the command explains tokens, grants and roles")
def _(world):
    stack = world.stack("grants", "--grant", "shadows:write:acme#", "--grant", "changes:read:acme#", registrations=[])
    has(antumbra("token", stack.ready["limitedToken"]["token"]).stdout, 'shadows whose id starts with "acme#"')
    has(antumbra("token", "--grant", "queues:read").stdout, "list_queues")
    grants = Stack.home / "iam-grants.json"
    role = "arn:aws:iam::111122223333:role/dashboard"
    grants.write_text(json.dumps({role: ["shadows:read"]}))
    has(antumbra("token", "--iam-grants", str(grants), "--role", role).stdout, "read shadows")
    done = antumbra("token", "--grant", "shadows:fly")
    assert done.returncode != 0 and "fly" in done.stderr, done.stderr


def browse(url, jar):
    """One page with curl, which keeps the cookie: status and text."""
    command = ["curl", "--silent", "--show-error", "--location", "--max-time", "30", "--cookie", str(jar), "--cookie-jar", str(jar), "--write-out", "\n%{http_code}", url]
    text, _, status = subprocess.run(command, capture_output=True, text=True, check=True).stdout.rpartition("\n")
    return int(status), text


PAGES = ["/", "/live", "/registrations", "/sensors", "/deliveries", "/inbox", "/queues"]


@check("the console opens with its URL, once, and shows every page; without a login it shows none")
def _(world):
    stack, lamp, jar = Stack(), unique("lamp"), Stack.home / unique("cookies")
    try:
        stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "on"})
        same(browse(stack.ready["http"] + "/", Stack.home / unique("cookies"))[0], 401)
        same(browse(stack.ready["console"], jar)[0], 200)
        same(browse(stack.ready["console"], Stack.home / unique("cookies"))[0], 401)
        for page in PAGES:
            same((page, browse(stack.ready["http"] + page, jar)[0]), (page, 200))
        eventually(lambda: has(browse(stack.ready["http"] + "/", jar)[1], lamp))
        link = re.search(rf'href="(/[^"]*{lamp}[^"]*)"', browse(stack.ready["http"] + "/", jar)[1]).group(1)
        has(browse(stack.ready["http"] + link, jar)[1], "led")
    finally:
        stack.stop()


@check("`antumbra console` serves the same pages for tables elsewhere, and writes only on request")
def _(world):
    stack, lamp, jar = world.main, unique("lamp"), Stack.home / unique("cookies")
    stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"led": "on"})
    endpoints = {"AWS_ENDPOINT_URL_DYNAMODB": stack.ready["dynamodb"], "AWS_ENDPOINT_URL_SQS": stack.ready["aws"]}
    with running("console", "--port", "0", "--registrations", str(stack.directory / "registrations"), variables=endpoints) as console:
        [url] = eventually(lambda: re.findall(r"http://\S+/login\?token=\S+", console.printed()) or same(console.printed(), "a URL"))
        has(console.printed(), "read-only")
        same(browse(url, jar)[0], 200)
        base = url.split("/login")[0]
        for page in PAGES:
            same((page, browse(base + page, jar)[0]), (page, 200))
        has(browse(f"{base}/?q={lamp}", jar)[1] + browse(base + "/", jar)[1], lamp)
