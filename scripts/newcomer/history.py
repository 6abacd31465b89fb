"""The past of shadows and the change feed."""
import datetime, json, subprocess, time

from kit import check, eventually, has, quoted, running, same, unique


def reports(stack, shadow, *documents, path=""):
    """Writes documents and returns the moment after each; all are recorded then."""
    moments = []
    for document in documents:
        stack.write("PATCH", f"/v1/shadows/{shadow}{path}/reported", document)
        moments.append(datetime.datetime.now(datetime.timezone.utc).isoformat().replace("+00:00", "Z"))
        time.sleep(0.05)
    recorded = lambda: same(len(entries(stack, shadow, path)), len(documents))
    eventually(recorded)
    return moments


def entries(stack, shadow, path="", query=""):
    return stack.get(f"/v1/shadows/{shadow}{path}/history{query}")["entries"]


@check("the state of a shadow at a time is read over HTTP and with the command, and a time before it is told apart")
def _(world):
    stack, freezer = world.main, unique("freezer")
    first, second = reports(stack, freezer, {"temp": -18, "door": "closed"}, {"temp": -12})
    state = lambda moment: stack.get(f"/v1/shadows/{freezer}?at={moment}")["reported"]["document"]
    same((state(first), state(second)), ({"temp": -18, "door": "closed"}, {"temp": -12, "door": "closed"}))
    has(stack.antumbra("shadow", "get", freezer, "--at", first, "--json").stdout, "-18")
    answer = stack.http("GET", f"/v1/shadows/{freezer}?at=2026-01-31T12:00:00Z")
    assert (answer.status, answer.json["code"]) in [(404, "DidNotExist"), (410, "BeforeRetention")], answer.text
    has(stack.antumbra("shadow", "get", freezer, "--at", "-1d", code=3).stderr, "did not exist")


@check("the past of a shadow and of one value is listed newest first, page by page")
def _(world):
    stack, freezer = world.main, unique("freezer")
    reports(stack, freezer, {"temp": -18, "door": "closed"}, {"temp": -12}, {"door": "open"})
    changed = lambda query: [[change["path"] for change in entry["changes"]] for entry in entries(stack, freezer, query=query)]
    same(changed(""), [["/door"], ["/temp"], ["/door", "/temp"]])
    same(changed("?path=/temp"), [["/temp"], ["/temp"]])
    page = stack.get(f"/v1/shadows/{freezer}/history?limit=2")
    rest = stack.get(f"/v1/shadows/{freezer}/history?limit=2&cursor={quoted(page['nextCursor'])}")
    same((len(page["entries"]), len(rest["entries"])), (2, 1))
    has(stack.antumbra("shadow", "history", freezer, "--path", "/temp").stdout, "-18 -> -12")
    assert len(stack.antumbra("shadow", "history", freezer, "--path", "/temp", "--plot").stdout.splitlines()) > 3
    night = "/name/night"
    reports(stack, freezer, {"a": 1}, path=night)
    same(len(entries(stack, freezer, night)), 1)


@check("a shadow is compared at two times")
def _(world):
    stack, freezer = world.main, unique("freezer")
    first, second = reports(stack, freezer, {"temp": -18}, {"temp": -12})
    changes = stack.get(f"/v1/shadows/{freezer}/diff?from={first}&to={second}")["changes"]
    same([(one["path"], one["old"], one["new"]) for one in changes], [("/temp", -18, -12)])
    first, second = reports(stack, freezer, {"a": 1}, {"a": 2}, path="/name/night")
    changes = stack.get(f"/v1/shadows/{freezer}/name/night/diff?from={first}&to={second}")["changes"]
    same([one["new"] for one in changes], [2])
    has(stack.antumbra("shadow", "diff", freezer, "--from", "-1h").stdout, "-12")


@check("the changes of all shadows are followed from a cursor, by prefix and pattern, and nothing is left out")
def _(world):
    stack, prefix = world.main, unique("followed")
    cursor = stack.get("/v1/changes?cursor=now")["cursor"]
    for n in range(5):
        stack.write("PATCH", f"/v1/shadows/{prefix}-{n % 2}/reported", {"n": n})
    found, seen = [], cursor

    def all_found():
        nonlocal seen
        page = stack.get(f"/v1/changes?cursor={quoted(seen)}&prefix={prefix}&wait=2")
        seen = page["cursor"]
        found.extend(change["changes"][0]["new"] for change in page["changes"])
        same(sorted(found), [0, 1, 2, 3, 4])
    eventually(all_found)
    pattern = quoted(json.dumps({"new": {"n": [{"numeric": [">", 2]}]}}))
    page = stack.get(f"/v1/changes?cursor={quoted(cursor)}&prefix={prefix}&pattern={pattern}")
    same(sorted(change["changes"][0]["new"] for change in page["changes"]), [3, 4])
    answer = stack.http("GET", "/v1/changes?cursor=nonsense")
    same(answer.status, 400)
    followed = stack.antumbra("changes", "follow", "--since", "1h", "--prefix", prefix, "--count", "5", "--json").stdout
    same([json.loads(line)["id"] for line in followed.splitlines()].count(f"{prefix}-0"), 3)


@check("the local API serves the changes as server-sent events")
def _(world):
    stack, lamp = world.main, unique("events")
    command = ["curl", "--silent", "--no-buffer", "--max-time", "20", "--header", "accept: text/event-stream",
               "--header", f"authorization: Bearer {stack.ready['token']}", f"{stack.ready['http']}/v1/changes?prefix={lamp}"]
    events = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        time.sleep(1)
        stack.write("PATCH", f"/v1/shadows/{lamp}/reported", {"n": 1})
        lines = iter(events.stdout.readline, "")
        data = next(line for line in lines if line.startswith("data:"))
        same(json.loads(data.removeprefix("data:"))["id"], lamp)
    finally:
        events.kill()
        events.wait()


@check("a purge deletes a shadow and its past, over HTTP and with the command")
def _(world):
    stack, owners = world.main, [unique("owner") for _ in range(2)]
    for owner in owners:
        reports(stack, owner, {"name": "Ada"})
    stack.write("DELETE", f"/v1/shadows/{owners[0]}?purge=true", status=204)
    has(stack.antumbra("shadow", "purge", owners[1], "--json").stdout, '"purged": true')
    for owner in owners:
        same(stack.http("GET", f"/v1/shadows/{owner}").status, 404)
        # The past goes in the background; the command has waited for it.
        eventually(lambda: same("Ada" in json.dumps(entries(stack, owner)), False), 150)
