"""A headless Chromium, driven over the WebDriver protocol with the standard library alone."""

import base64
import json
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Right": "\ue014", "Left": "\ue012", "End": "\ue010", "Home": "\ue011", "Down": "\ue015"}
CONTROL = "\ue009"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Browser:
    """One window. Its log of the network holds every request that a page made."""

    def __init__(self):
        driver, browser = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("chromium-browser")
        self.profile = tempfile.mkdtemp()
        port = free_port()
        self.driver = subprocess.Popen([driver, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--disable-component-update",
            "--no-first-run",
            f"--user-data-dir={self.profile}",
        ]
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": browser, "args": arguments},
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
        }
        deadline = time.monotonic() + 30
        while True:
            try:
                answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}}, session=False)
                break
            except (urllib.error.URLError, ConnectionError):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
        self.session = answer["sessionId"]

    def call(self, method, path, body=None, session=True):
        url = f"{self.base}/session/{self.session}{path}" if session else self.base + path
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(url, data=data, method=method, headers={"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise RuntimeError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height=900):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def scheme(self, scheme):
        feature = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", features=feature)

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def url(self):
        return self.call("GET", "/url")

    def script(self, text, *arguments):
        return self.call("POST", "/execute/sync", {"script": text, "args": list(arguments)})

    def script_async(self, text, *arguments):
        return self.call("POST", "/execute/async", {"script": text, "args": list(arguments)})

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def link(self, text):
        return self.call("POST", "/element", {"using": "partial link text", "value": text})[ELEMENT]

    def click(self, element):
        self.call("POST", f"/element/{element}/click")

    def type(self, element, text):
        self.call("POST", f"/element/{element}/clear")
        self.call("POST", f"/element/{element}/value", {"text": text})

    def keys(self, *keys):
        """Presses keys one after the other, wherever the focus is."""
        actions = []
        for key in keys:
            held, key = [CONTROL] if key.startswith("Control+") else [], key.removeprefix("Control+")
            pressed = [*held, KEYS.get(key, key)]
            actions += [{"type": "keyDown", "value": one} for one in pressed] + [{"type": "keyUp", "value": one} for one in reversed(pressed)]
        self.call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def point(self, x, y):
        """Moves the mouse."""
        self.devtools("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def node(self, selector):
        """Finds an element without a script of the page."""
        document = self.devtools("DOM.getDocument", depth=0)["root"]["nodeId"]
        found = self.devtools("DOM.querySelector", nodeId=document, selector=selector)["nodeId"]
        if not found:
            raise RuntimeError(f"no element {selector}")
        return found

    def focus(self, selector):
        self.devtools("DOM.focus", nodeId=self.node(selector))

    def set_attribute(self, selector, name, value):
        self.devtools("DOM.setAttributeValue", nodeId=self.node(selector), name=name, value=value)

    def html(self):
        """Returns the page, also if another one replaces it between the two calls."""
        for left in reversed(range(10)):
            document = self.devtools("DOM.getDocument", depth=0)["root"]["nodeId"]
            try:
                return self.devtools("DOM.getOuterHTML", nodeId=document)["outerHTML"]
            except RuntimeError as error:
                if "Could not find node" not in str(error) or not left:
                    raise

    def text(self):
        return self.script("return document.body.innerText")

    def wait(self, what, condition, seconds=10.0):
        """Waits until a script returns something true, and returns it with the time that it took."""
        start = time.monotonic()
        while True:
            found = self.script(condition)
            took = time.monotonic() - start
            if found:
                return found, took
            if took > seconds:
                raise RuntimeError(f"{what}: not within {seconds} s")
            time.sleep(0.01)

    def screenshot(self, path, whole=True):
        parameters = {"format": "png"}
        if whole:
            metrics = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            height = min(metrics["height"], 6000)
            parameters |= {"captureBeyondViewport": True}
            parameters["clip"] = {"x": 0, "y": 0, "width": metrics["width"], "height": height, "scale": 1}
        image = self.devtools("Page.captureScreenshot", **parameters)
        pathlib.Path(path).write_bytes(base64.b64decode(image["data"]))

    def log(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def requested_hosts(self):
        """The hosts of all requests since the last call."""
        hosts = set()
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if url.startswith(("http:", "https:", "ws:", "wss:")):
                    hosts.add(url.split("/")[2])
        return hosts

    def errors(self):
        """What the browser's console said since the last call."""
        return [entry["message"] for entry in self.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
