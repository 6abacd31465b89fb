"""What the checks before have used: every operation of the HTTP API and every command."""
import re

from kit import Stack, antumbra, check, has, same


@check("every documented HTTP operation was called")
def _(world):
    document = world.main.get("/v1/openapi.json")
    missing = []
    for path, methods in document["paths"].items():
        pattern = re.compile("^" + re.sub(r"\{[^}]+\}", "[^/]+", path) + "$")
        for method in methods:
            if not any(called == method.upper() and pattern.match(route) for called, route in Stack.routes):
                missing.append(f"{method.upper()} {path}")
    same(missing, [])


def commands(*words):
    """The commands below these words, as the help lists them."""
    text = antumbra(*words, "--help").stdout
    section = re.search(r"^Commands:\n((?:  .*\n|\n)+)", text, re.M)
    names = re.findall(r"^  ([a-z][a-z-]*)", section.group(1), re.M) if section else []
    below = [name for name in names if name != "help"]
    return [command for name in below for command in commands(*words, name)] if below else [words]


@check("every command was run, and has an example in its help")
def _(world):
    all_commands = commands()
    assert len(all_commands) > 50, all_commands
    same([" ".join(command) for command in all_commands if not any(run[:len(command)] == command for run in Stack.commands)], [])
    for command in all_commands:
        has(antumbra(*command, "--help").stdout, "Example: antumbra " + " ".join(command))
