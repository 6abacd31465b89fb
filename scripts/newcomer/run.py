"""Runs the checks: run.py BINARY REPOSITORY [PART_OF_A_NAME...]"""
import pathlib, re, shutil, signal, sys, tempfile, time, traceback

from kit import CHECKS, Missing, Stack

RULES = [
    {"name": "all-changes", "on": {"key": "^DS#noted"}, "send": ["old", "new", "diff"], "to": {"sqs": {"queue": "changes.fifo"}}},
    {"name": "too-warm", "on": {"key": "^DS#freezer", "pattern": {"old": {"temp": {"value": [{"numeric": ["<=", -15]}]}},
     "new": {"temp": {"value": [{"numeric": [">", -15]}]}}}}, "to": {"sns": {"topic": "arn:aws:sns:us-east-1:000000000000:alarms"}}},
    {"name": "indoor", "on": {"key": "^DS#hub", "leaf": {"path": "/circuits/*/sensors/indoor-*", "change": ["added", "updated"],
     "old": {"value": [{"numeric": ["<=", 20]}]}, "new": {"value": [{"numeric": [">", 20]}]}}}, "to": {"sqs": {"queue": "indoor"}}},
    {"name": "reached", "on": {"key": "^DS#valve", "state": "desired", "leaf": {"path": "/**", "change": ["acknowledged"]}}, "to": {"sqs": {"queue": "reached"}}},
    {"name": "bus", "on": {"key": "^DS#bus"}, "to": {"eventbridge": {"bus": "default", "detailType": "Changed"}}},
    {"name": "nowhere", "on": {"key": "^DS#lost"}, "to": {"sqs": {"queue": "arn:aws:sqs:us-east-1:000000000000:does-not-exist"}}},
    {"name": "lamps", "on": {"key": "^DS#lamp"}, "send": ["new"], "to": {"mqtt": {"topic": "lamps/${id}"}}},
]


class World:
    """The stacks of the checks, started when they are first needed."""
    def __init__(self):
        self.stacks = {}

    def stack(self, name, *arguments, **more):
        if name not in self.stacks:
            self.stacks[name] = Stack(*arguments, **more)
        return self.stacks[name]

    @property
    def main(self):
        """A stack with all defaults that keeps its data."""
        return self.stack("main", registrations=RULES, memory=False)

    @property
    def quick(self):
        """A stack whose retries take seconds."""
        variables = {"RETRY_FIRST_SECONDS": "1", "RETRY_LONGEST_SECONDS": "2"}
        return self.stack("quick", registrations=[], variables=variables)


def run_check(world, name, function):
    try:
        function(world)
        return "ok"
    except Missing as missing:
        return f"missing: needs {missing}"
    except Exception as fault:
        where = traceback.extract_tb(fault.__traceback__)[-1]
        reason = re.sub(r"\s+", " ", str(fault)) or type(fault).__name__
        return f"FAILED: {reason[:700]} ({pathlib.Path(where.filename).name}:{where.lineno})"


def main():
    Stack.binary, Stack.root, *parts = sys.argv[1:]
    Stack.home = pathlib.Path(tempfile.mkdtemp(prefix="newcomer-"))
    import shadows, history, registrations, inbox, sensors, deliveries, access, http_api, command, coverage, silence  # noqa: F401
    chosen = [(name, function) for name, function in CHECKS if not parts or any(part in name for part in parts)]
    world, failed, missing = World(), 0, 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    started = time.monotonic()
    try:
        for prepare in silence.PREPARE if any(function.__module__ == "silence" for _, function in chosen) else []:
            prepare(world)
        for name, function in chosen:
            result = run_check(world, name, function)
            failed += result.startswith("FAILED")
            missing += result.startswith("missing")
            word, _, reason = result.partition(":")
            print(f"{word:8}{name}{':' if reason else ''}{reason}", flush=True)
    finally:
        for stack in world.stacks.values():
            stack.stop()
        shutil.rmtree(Stack.home, ignore_errors=True)
    print(f"\n{len(chosen) - failed - missing} of {len(chosen)} behaviours are as documented, {failed} are not, {missing} could not be tried; {time.monotonic() - started:.0f} s")
    return 1 if failed or missing else 0


sys.exit(main())
