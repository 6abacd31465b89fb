"""Checks of the console with a real browser. scripts/check-console describes them."""

import argparse
import http.client
import pathlib
import sys
import time
import urllib.parse

from browser import Browser
from fleet import BUSY, FREEZER, HOSTILE, HOSTILE_CITY, HOSTILE_SOURCE, LONG_SENSOR, LONG_SHADOW, Stack, fill
from png import shrink
from sheets import write_sheets

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
FREEZER_QUERY = urllib.parse.quote(FREEZER, safe="")
HOSTILE_QUERY = urllib.parse.quote(HOSTILE, safe="")
# Name, path, and a click that selects something.
PAGES = [
    ("fleet", "/", None),
    ("device", f"/device?id={FREEZER_QUERY}", None),
    ("device-at", f"/device?id={FREEZER_QUERY}&at=-10s&range=1h&from=-1h&same=1", None),
    ("device-hostile", f"/device?id={HOSTILE_QUERY}", None),
    ("device-10000-changes", f"/device?id={urllib.parse.quote(BUSY, safe='')}", None),
    ("live", "/live", None),
    ("registrations", f"/registrations?name=freezer-too-warm&shadow={FREEZER_QUERY}", None),
    ("sensors", "/sensors?city=Pozna%C5%84&building=A&id=door-201", None),
    ("deliveries", "/deliveries?client=facility-desk", "tbody td:first-child a[href*='delivery=']"),
    ("deliveries-new", "/deliveries?new=1", None),
    ("inbox", "/inbox?source=testThing", None),
    ("queues", "/queues?queue=quarantine&read=1&plan=1", None),
]
# Pages with content that tries to break out of them or to widen them.
HOSTILE_PAGES = [
    ("Fleet", {"prefix": "W" * 400}),
    ("Fleet", {"prefix": HOSTILE, "open": "1"}),
    ("device", {"id": LONG_SHADOW}),
    ("device", {"id": LONG_SHADOW, "at": "-1s", "from": "-1h", "edit": "1"}),
    ("device", {"id": "\u202e" + "W" * 900, "at": "W" * 900, "path": "/" + "W" * 900}),
    ("live", {"prefix": LONG_SHADOW, "pattern": "{" + "W" * 900}),
    ("registrations", {"name": HOSTILE, "shadow": LONG_SHADOW}),
    ("sensors", {}),
    ("sensors", {"city": HOSTILE_CITY}),
    ("sensors", {"city": HOSTILE_CITY, "building": HOSTILE_CITY, "id": LONG_SENSOR}),
    ("sensors", {"id": HOSTILE + "W" * 900}),
    ("deliveries", {"client": "hostile"}),
    ("deliveries", {"client": "hostile", "sensor": LONG_SENSOR, "status": "W" * 300}),
    ("deliveries", {"client": "W" * 900, "delivery": "W" * 900}),
    ("inbox", {"source": HOSTILE_SOURCE}),
    ("inbox", {"source": "W" * 900, "message": "W" * 900}),
    ("queues", {"queue": "quarantine", "reason": "W" * 900, "message": HOSTILE, "read": "1"}),
]
NAVIGATION = ["Fleet", "Live", "Registrations", "Sensors", "Deliveries", "Inbox", "Queues"]
PAGE_BYTES = 60 * 1024
FIRST_BYTE_SECONDS = 0.050
LIVE_SECONDS = 0.300
STREAMS = 50
IDLE_SHARE = 0.05
# Width of a window of 1280 pixels at 200 % zoom.
ZOOMED_WIDTH = 640
# Signals, deliveries and messages pass through queues before they are in the table.
QUEUED_SECONDS = 3.0
# Time bar and chart are drawn again some seconds after a change.
REDRAWN_SECONDS = 8.0
# Queues are counted every five seconds.
COUNTED_SECONDS = 8.0

results = []


def check(name, holds, figure=""):
    results.append(bool(holds))
    print(f"{'ok  ' if holds else 'FAIL'}  {name}{f': {figure}' if figure != '' else ''}", flush=True)


def attempt(name, action, on_failure=None):
    """Runs steps that end in an error if the page is not as expected."""
    try:
        figure = action()
        check(name, True, figure if figure is not None else "")
    except (RuntimeError, AssertionError, OSError) as error:
        check(name, False, error)
        if on_failure:
            on_failure(name)


def expect(holds, what):
    if not holds:
        raise AssertionError(what)


class Check:
    def __init__(self, stack, browser, axe, screenshots):
        self.stack, self.browser, self.axe, self.screenshots = stack, browser, axe, screenshots
        self.base = f"http://{stack.http}"

    def open(self, path):
        self.browser.open(self.base + path)

    def every_page(self):
        """Appearance and accessibility, in light and dark, wide and narrow."""
        browser = self.browser
        for scheme in ("light", "dark"):
            for width in (1280, 360):
                browser.scheme(scheme)
                browser.size(width)
                for name, path, click in PAGES:
                    self.open(path)
                    if click:
                        # In one step: a live update may replace the element in between.
                        browser.script("document.querySelector(arguments[0]).click()", click)
                        browser.wait("the selection", "return document.querySelector('aside') !== null")
                    label = f"{name}, {scheme}, {width} px"
                    browser.screenshot(self.screenshots / f"{name}-{scheme}-{width}.png")
                    self.fits(label)
                    self.accessible(label)
        browser.scheme("light")
        browser.size(ZOOMED_WIDTH)
        for name, path, _ in PAGES:
            self.open(path)
            self.fits(f"{name}, 200 % zoom")
        # A script in the content of a device would have opened a dialog, and each step after it would have failed.
        check("nothing of hostile content runs", browser.script("return document.querySelectorAll('main script, main img').length") == 0)
        hosts = browser.requested_hosts() - {self.stack.http}
        check("no request to another host", not hosts, ", ".join(hosts))
        errors = browser.errors()
        check("no error in the browser's console", not errors, "; ".join(errors[:3]))

    def fits(self, label):
        inner, outer = self.browser.script("return [document.documentElement.scrollWidth, window.innerWidth]")
        check(f"{label}: no horizontal scrolling", inner <= outer, "" if inner <= outer else f"{inner} > {outer}")

    def accessible(self, label):
        self.browser.script(self.axe)
        found = self.browser.script_async(
            "const done = arguments[0]; axe.run().then((found) => done([found.passes.length, found.violations"
            ".filter((one) => ['serious', 'critical'].includes(one.impact))"
            ".map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 200)}`)]))"
        )
        check(f"{label}: axe-core", found[0] > 0 and not found[1], "; ".join(found[1]))

    def hostile_pages(self):
        """Content and URLs that try to break out of the pages or to widen them."""
        browser = self.browser
        for width in (1280, 360):
            browser.size(width)
            for number, (page, query) in enumerate(HOSTILE_PAGES):
                path = "/" if page == "Fleet" else f"/{page}"
                self.open(f"{path}?{urllib.parse.urlencode(query)}")
                browser.screenshot(self.screenshots / f"hostile-{number:02}-{page}-{width}.png")
                self.fits(f"hostile {page} {number}, {width} px")
                added = browser.script("return document.querySelectorAll('main script, main img, main svg[onload], [onerror]').length")
                check(f"hostile {page} {number}, {width} px: only text", added == 0 and browser.script("return document.querySelector('h1, h2') !== null"))
        browser.errors()

    def empty_pages(self):
        """Every page of a stack that is empty."""
        browser = self.browser
        for scheme, width in (("light", 1280), ("dark", 360)):
            browser.scheme(scheme)
            browser.size(width)
            for name in NAVIGATION:
                self.open("/" if name == "Fleet" else f"/{name.lower()}")
                browser.screenshot(self.screenshots / f"empty-{name.lower()}-{width}.png")
                self.fits(f"empty {name}, {scheme}, {width} px")
                self.accessible(f"empty {name}, {scheme}, {width} px")
        browser.scheme("light")
        browser.size(1280)

        def appears():
            self.open("/")
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            self.stack.report("first-1", {"led": {"value": "on"}})
            browser.wait("the first shadow", "return document.querySelector('tbody')?.innerText.includes('first-1')", 3)

        def device_comes_and_goes():
            self.open("/device?id=lamp-8")
            expect("does not exist" in browser.text(), "it exists")
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            self.stack.report("lamp-8", {"led": {"value": "on"}})
            gone = "return document.body.innerText.includes('does not exist')"
            browser.wait("its state", f"return document.querySelector('#state') !== null && !document.querySelector('#state').hidden && !({gone[7:]})", 3)
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            self.stack.api("DELETE", "/v1/shadows/lamp-8")
            browser.wait("it is gone", gone, 3)

        attempt("the first shadow appears on an empty Fleet", appears)
        attempt("a device appears on its page, and disappears", device_comes_and_goes)

    def other_pages_of_the_list(self):
        """Changes of shadows on other pages of the list are not new shadows."""
        browser = self.browser

        def bar():
            self.open("/")
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            expect(browser.script("return document.querySelector('a[rel=next]') !== null"), "there is one page only")
            self.stack.report("zzz", {"led": {"value": time.time()}})
            # A shadow of this page, after the other one.
            first = browser.script("return new URL(document.querySelector('tbody a').href).searchParams.get('id')")
            self.stack.report(first, {"led": {"value": "seen-7302"}})
            browser.wait("the change", "return document.querySelector('tbody').innerText.includes('seen-7302')", 3)
            expect(browser.script("return document.querySelector('#held').hidden"), "the bar counts a shadow of another page")

        def filtered():
            self.open("/?open=1&prefix=zzz")
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            browser.script("window.marked = true")
            self.stack.report("zzz", {"led": {"value": time.time()}})
            self.stack.api("PATCH", "/v1/shadows/zzz-2/desired", {"led": {"value": "on"}})
            browser.wait("the shadow that passes the filter", "return document.querySelector('tbody')?.innerText.includes('zzz-2')", 3)
            expect(browser.script("return window.marked === undefined"), "the page was not read again")

        attempt("changes on other pages of the list are not counted", bar)
        attempt("a filtered list shows what passes the filter", filtered)

    def stopped(self):
        """A page that is open while the stack stops and starts again."""
        browser, stack = self.browser, self.stack
        note = "document.querySelector('#lost')?.innerText"

        def lost():
            self.open("/")
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            stack.stop()
            browser.wait("the note", f"return {note}?.includes('Reconnecting')", 10)
            expect(browser.script("return document.querySelector('.dot.ok') === null"), "the page says that it is live")

        def logged_out():
            stack.start_again()
            browser.wait("the note says what to do", f"return {note}?.includes('press Enter in its terminal')", 15)
            self.open("/sensors")
            expect("Open the console from your terminal" in browser.text(), "the page opens without a session")

        def comes_back():
            browser.open(stack.login_url())
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            stack.stop()
            stack.start_again()
            browser.wait("the note says what to do", f"return {note}?.includes('press Enter in its terminal')", 15)
            url = stack.login_url()
            # As another tab does.
            browser.script_async("const done = arguments[1]; fetch(arguments[0]).then(() => done())", url)
            browser.wait("the page is live again", "return document.querySelector('.dot.ok') !== null && document.querySelector('#lost') === null", 10)

        attempt("a page says that the stack stopped", lost)
        attempt("a page of the time before says how to log in", logged_out)
        attempt("a page is live again after a login in another tab", comes_back)
        browser.errors()

    def navigation(self):
        browser = self.browser
        browser.scheme("light")
        browser.size(1280)

        def by_mouse():
            self.open("/")
            for name in NAVIGATION:
                browser.click(browser.link(name))
                browser.wait(name, f"return document.title.startsWith('{name}')")

        def by_keys():
            for name in reversed(NAVIGATION):
                browser.keys("g", name[0].lower())
                browser.wait(name, f"return document.title.startsWith('{name}')")

        def by_tab():
            self.open("/")
            for _ in range(12):
                browser.keys("Tab")
                if browser.script("return document.activeElement.textContent.trim() === 'Sensors'"):
                    browser.keys("Enter")
                    browser.wait("Sensors", "return document.title.startsWith('Sensors')")
                    return
            raise AssertionError("Tab does not reach the page Sensors")

        def rows():
            self.open("/sensors?city=Pozna%C5%84&building=A")
            browser.keys("j")
            browser.keys("j")
            browser.keys("k")
            browser.keys("Enter")
            browser.wait("a sensor opens", "return location.search.includes('id=')")
            browser.keys("Escape")
            browser.wait("Escape closes it", "return !location.search.includes('id=')")
            browser.keys("/")
            expect(browser.script("return document.activeElement.name") == "id", "/ does not focus the filter")
            browser.keys("Escape")
            browser.keys("?")
            browser.wait("the help opens", "return document.querySelector('dialog[open]') !== null")
            browser.keys("Escape")

        def parameter(name):
            return browser.script("return new URLSearchParams(location.search).get(arguments[0])", name)

        def until_parameter(what, name, condition):
            browser.wait(what, f"const value = new URLSearchParams(location.search).get('{name}'); return {condition}")

        def device_keys():
            self.open(f"/device?id={FREEZER_QUERY}")
            browser.keys("[")
            until_parameter("[ opens the previous change", "at", "value !== null")
            newer = parameter("at")
            browser.keys("[")
            until_parameter("[ opens the one before", "at", f"value < '{newer}'")
            browser.keys("]")
            until_parameter("] opens the next change", "at", f"value === '{newer}'")
            browser.keys("n")
            until_parameter("N goes back to now", "at", "value === null")
            browser.keys("t")
            until_parameter("T shows exact times", "time", "value === 'exact'")
            browser.keys("t")
            until_parameter("T shows ages", "time", "value === null")
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            browser.keys("p")
            browser.wait("P pauses", "return document.querySelector('#timebar [data-pause]').getAttribute('aria-pressed') === 'true'")
            browser.script("document.querySelector('#timebar').dataset.before = '1'")
            browser.keys("p")
            browser.wait("P resumes", "return document.querySelector('.dot.ok') !== null")
            browser.wait("the time bar is read again", "return !('before' in document.querySelector('#timebar').dataset)")
            expect(browser.script("return document.querySelector('#timebar .dot.ok') !== null"), "the time bar is not live after P")
            focused = "return document.activeElement.getAttribute('href')"
            browser.keys("j")
            first = browser.script(focused)
            browser.keys("j")
            expect(browser.script(focused) != first, "J does not step on")
            browser.keys("k")
            expect(browser.script(focused) == first, "K does not step back")
            browser.keys("e")
            until_parameter("E edits", "edit", "value === '1'")

        def fleet_and_live_keys():
            self.open("/")
            browser.keys("p")
            until_parameter("P pauses", "live", "value === '0'")
            browser.keys("p")
            until_parameter("P resumes", "live", "value === null")
            browser.keys("j")
            browser.keys("Enter")
            browser.wait("Enter opens the device", "return location.pathname === '/device'")
            self.open("/live")
            browser.keys("j")
            browser.keys("Enter")
            until_parameter("Enter selects a change", "change", "value !== null")
            browser.keys("Escape")
            until_parameter("Escape closes it", "change", "value === null")
            browser.keys("p")
            browser.wait("P pauses", "return document.querySelector('[data-pause]').textContent === 'Resume'")

        def press(*selectors):
            """Steps with Tab to an element of each selector, and presses Enter on it."""
            for selector in selectors:
                step_to(selector)
                browser.keys("Enter")

        def step_to(selector, steps=150):
            for _ in range(steps):
                if browser.script("return document.activeElement.matches(arguments[0])", selector):
                    return
                browser.keys("Tab")
            raise AssertionError(f"Tab does not reach {selector}")

        def edit_keys():
            self.open("/live")
            browser.keys("g", "f")
            browser.wait("Fleet", "return document.title.startsWith('Fleet')")
            browser.keys("/", *"House A#Kitchen#F", "Enter")
            until_parameter("the filter", "prefix", "value === 'House A#Kitchen#F'")
            browser.keys("j", "Enter")
            browser.wait("the device", "return location.pathname === '/device'")
            browser.keys("e")
            until_parameter("E edits", "edit", "value === '1'")
            step_to("textarea[name=patch]")
            browser.keys("Control+a", *'{"mode":"keys"}')
            press("#edit .primary")
            browser.wait("it is written", "return document.querySelector('.toast')?.innerText.includes('Written')")
            browser.wait("the new state", "return document.querySelector('#state').innerText.includes('keys')")

        def bench_keys():
            self.open("/")
            browser.keys("g", "r")
            browser.wait("Registrations", "return document.title.startsWith('Registrations')")
            browser.keys("/", *FREEZER, "Enter")
            browser.wait("a result", "return document.querySelector('.bench-col a.pick') !== null")
            step_to("#pick")
            browser.keys("Down")
            press(".bench-col form:first-of-type button")
            until_parameter("a change", "change", "value !== null")
            press(".bench-col a.pick")
            browser.wait("a deciding line", "return document.querySelector('.code .n, .code .y') !== null")

        def redeliver_keys():
            self.open("/")
            browser.keys("g", "d")
            browser.wait("Deliveries", "return document.title.startsWith('Deliveries')")
            press("#clients a[href*='client=facility-desk']")
            until_parameter("the client", "client", "value === 'facility-desk'")
            press("#deliveries [data-row] a")
            until_parameter("the delivery", "delivery", "value !== null")
            press("form[action='/deliveries/redeliver'] button")
            browser.wait("the toast", "return document.querySelector('.toast')?.innerText.includes('Queued:')")

        def redrive_keys():
            self.open("/")
            browser.keys("g", "q")
            browser.wait("Queues", "return document.title.startsWith('Queues')")
            press("a.tile[href*='queue=quarantine']")
            until_parameter("the queue", "queue", "value === 'quarantine'")
            press("#contents a.btn")
            until_parameter("the messages", "read", "value !== null")
            press("a[href*='plan=1']")
            browser.wait("the dry run", "return document.body.innerText.includes('Nothing has been moved yet')")
            browser.keys("Escape")
            until_parameter("Escape closes the dry run", "plan", "value === null")
            press("a[href*='plan=1']", "form[action='/queues/redrive'] .primary")
            browser.wait("the toast", "return document.querySelector('.toast')?.innerText.includes('Redriven')")

        attempt("keyboard alone: filter, open a device, edit desired", edit_keys)
        attempt("keyboard alone: test bench", bench_keys)
        attempt("keyboard alone: redeliver", redeliver_keys)
        attempt("keyboard alone: redrive after its dry run", redrive_keys)
        attempt("keys of a device", device_keys)
        attempt("keys of Fleet and Live", fleet_and_live_keys)
        attempt("navigation by mouse", by_mouse)
        attempt("navigation by keyboard: G and a letter", by_keys)
        attempt("navigation by keyboard: Tab and Enter", by_tab)
        attempt("rows, filter and help by keyboard", rows)

    def without_script(self):
        """Every page and its forms in a browser that runs no scripts."""
        browser = self.browser
        browser.size(1280)

        def fill(selector, text):
            browser.focus(selector)
            browser.set_attribute(selector, "value", text)
            browser.keys("Enter")

        def until_html(what, text, seconds=10.0):
            deadline = time.monotonic() + seconds
            while text not in browser.html():
                expect(time.monotonic() < deadline, f"{what}: not within {seconds} s")
                time.sleep(0.05)

        def pages():
            for name, path, _ in PAGES:
                self.open(path)
                html = browser.html()
                expect("<h1" in html and "Not live" in html or "data-live" not in html, f"{name} is not complete")

        def fleet():
            self.open("/")
            fill("input[name=prefix]", "House A#Attic")
            until_html("the filter", "shadow list --prefix")

        def device():
            self.open(f"/device?id={FREEZER_QUERY}")
            fill("#timebar input[name=at]", "-10s")
            until_html("a past state", "Back to now")
            fill("#diff input[name=from]", "-1h")
            until_html("the difference", "the same")

        def bench():
            self.open("/registrations")
            fill("#shadow", FREEZER)
            until_html("recorded changes", 'id="pick"')

        def write():
            self.open("/deliveries?client=night-watch")
            browser.focus("form[action='/deliveries/test'] button")
            browser.keys("Enter")
            until_html("the test", "Queued:")

        def read_queue():
            self.open("/queues?queue=quarantine")
            browser.focus("#contents a.btn")
            browser.keys("Enter")
            until_html("the messages", "by reason")

        browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
        for name, action in [("all pages", pages), ("filter of Fleet", fleet), ("time and difference of a device", device), ("test bench", bench), ("a write", write), ("messages of a queue", read_queue)]:
            attempt(f"without script: {name}", action)
        browser.devtools("Emulation.setScriptExecutionDisabled", value=False)

    def live(self):
        browser = self.browser

        def visible(path, marker, report):
            self.open(path)
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            took = []
            for at in range(5):
                text = marker(at)
                start = time.time()
                report(at)
                written = time.time()
                condition = f"return document.body.innerText.includes({text!r}) && Date.now()"
                seen, _ = browser.wait(f"{text} is visible", condition, 5)
                # The write itself is not part of it: the response may come after the change is visible.
                took.append(max(seen / 1000 - written, 0))
                expect(seen / 1000 >= start - 1, "clocks differ")
            slowest = max(took)
            expect(slowest <= LIVE_SECONDS, f"{slowest * 1000:.0f} ms")
            return f"{slowest * 1000:.0f} ms at most after the response to the write"

        def value(at, base):
            return {"temp": {"value": base + at, "unit": "°C"}}

        shadow = "House A#Kitchen#Kettle"
        self.stack.report(shadow, value(0, 0))
        path = f"/device?id={urllib.parse.quote(shadow, safe='')}"
        attempt("a live change on Fleet", lambda: visible("/?prefix=House+A%23Kitchen%23Kettle", lambda at: f"{410 + at}", lambda at: self.stack.report(shadow, value(at, 410))))
        attempt("a live change on Device", lambda: visible(path, lambda at: f"{510 + at}", lambda at: self.stack.report(shadow, value(at, 510))))

        def redrawn():
            self.open(path)
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            drawn = "[document.querySelector('#timebar .plot svg').getAttribute('aria-label'), document.querySelector('#chart path.series').getAttribute('d')]"
            before = browser.script(f"return {drawn}")
            self.stack.report(shadow, value(0, 700))
            browser.wait("another chart", f"const now = {drawn}; return now[0] !== {before[0]!r} && now[1] !== {before[1]!r}", REDRAWN_SECONDS)
            expect(browser.script("return document.querySelector('#timebar .dot.ok') !== null"), "the time bar is not live any more")

        attempt("time bar and chart of a device are drawn again", redrawn)
        attempt("a live change on Live", lambda: visible("/live", lambda at: f"{610 + at}", lambda at: self.stack.report(shadow, value(at, 610))))

    def live_parts(self):
        """Changes on the pages that are read again."""
        browser, stack = self.browser, self.stack

        def appears(path, act, condition, seconds):
            self.open(path)
            browser.wait("the page is live", "return document.querySelector('#live.dot.ok') !== null")
            act()
            _, took = browser.wait("the change", condition, seconds)
            return f"{took * 1000:.0f} ms after the response to the write"

        def inbound(body):
            url = stack.sqs("GetQueueUrl", {"QueueName": "antumbra-inbound"})["QueueUrl"]
            stack.sqs("SendMessage", {"QueueUrl": url, "MessageBody": body})

        def in_part(part, text):
            return f"return document.getElementById({part!r})?.innerText.includes({text!r})"

        signal = {"signals": [{"sensor_id": "door-402", "data": 1}]}
        deliveries = "return document.querySelectorAll('#deliveries [data-row]').length"
        attempt("a live signal on Sensors", lambda: appears(
            "/sensors?city=Pozna%C5%84&building=A&id=door-402", lambda: stack.api("POST", "/v1/signals", signal), in_part("sensor", "ONLINE"), QUEUED_SECONDS))

        def delivery():
            self.open("/deliveries?client=night-watch")
            before = browser.script(deliveries)
            return appears("/deliveries?client=night-watch", lambda: stack.api("POST", "/v1/clients/night-watch/test"), f"{deliveries} > {before}", QUEUED_SECONDS)

        attempt("a live delivery on Deliveries", delivery)
        body = '{"thingName":"testThing","epochTime":1999999999,"marker":"live-7302"}'
        attempt("a live message on Inbox", lambda: appears("/inbox?source=testThing", lambda: inbound(body), in_part("messages", "live-7302"), QUEUED_SECONDS))

        def counted():
            self.open("/queues?queue=quarantine")
            number = "document.querySelector('.tile[aria-current] b').textContent"
            before = browser.script(f"return {number}")
            return appears("/queues?queue=quarantine", lambda: inbound("{"), f"return {number} !== {before!r}", COUNTED_SECONDS)

        attempt("a live count on Queues", counted)

        def held_back():
            self.open("/deliveries?client=night-watch")
            browser.wait("the page is live", "return document.querySelector('#live.dot.ok') !== null")
            browser.script("document.querySelector('#deliveries [data-row] a').focus()")
            stack.api("POST", "/v1/clients/night-watch/test")
            browser.wait("new rows wait", "return document.querySelector('#deliveries .held-back') !== null", QUEUED_SECONDS)
            expect(browser.script("return document.activeElement.closest('#deliveries') !== null"), "the focus is lost")

        attempt("rows do not move under the focus", held_back)

        def send():
            self.open("/inbox?source=testThing")
            browser.click(browser.find("form[action='/inbox/send'] button"))
            browser.wait("it is sent", "return document.body.innerText.includes('is in the outbound queue')")
            browser.wait("it waits", "return document.getElementById('outbound').innerText.includes('message waits')", COUNTED_SECONDS)

        attempt("a message to a device", send)

    def use(self):
        """The slider, the test bench, a redelivery and a redrive."""
        browser = self.browser

        def slider():
            self.open(f"/device?id={FREEZER_QUERY}")
            element = browser.find("input[type=range]")
            browser.script("arguments[0].focus()", {"element-6066-11e4-a52e-4f735466cecf": element})
            browser.keys("Home")
            browser.wait("a past state", "return new URLSearchParams(location.search).get('at') !== null", 5)

        def bench():
            self.open("/registrations")
            browser.type(browser.find("#shadow"), FREEZER)
            browser.click(browser.find(".bench-col form button"))
            browser.wait("recorded changes", "return document.querySelector('#pick') !== null")
            browser.click(browser.find("#pick option[value^='reported@']"))
            browser.click(browser.find(".bench-col form button"))
            browser.wait("a reported change", "return document.querySelector('#pick').value.startsWith('reported@')")
            browser.click(browser.link("freezer-too-warm"))
            browser.wait("a deciding line", "return document.querySelector('.code .n, .code .y') !== null")
            browser.type(browser.find("#draft"), '{"new":{"temp":{"value":[{"exists":true}]}}}')
            browser.click(browser.find("#draft ~ div button"))
            browser.wait("the draft is tried", "return document.body.innerText.includes('In the last 24 h')")
            expect("Matches." in browser.text(), "the draft does not match")

        def typed():
            self.open("/registrations?name=freezer-too-warm&shadow=" + FREEZER_QUERY)
            browser.type(browser.find("#old"), '{"temp":{"value":-20}}')
            browser.type(browser.find("#new"), '{"temp":{"value":3}}')
            browser.click(browser.find(".bench-col form .primary"))
            browser.wait("it matches", "return document.body.innerText.includes('freezer-too-warm.json matches') || document.querySelector('.bench-col .when.ok') !== null")

        def older():
            self.open("/live")
            newest = browser.script("return document.querySelector('#stream li').id")
            browser.click(browser.find("#older"))
            browser.wait("earlier changes", "return location.search.includes('before=') && document.querySelector('#stream li') !== null")
            expect(browser.script("return document.getElementById(arguments[0]) === null", newest), "the newest change is on the page before")
            browser.click(browser.link("Newest changes"))
            browser.wait("the newest", "return !location.search.includes('before=')")

        def paused():
            self.open("/live")
            browser.wait("the page is live", "return document.querySelector('.dot.ok') !== null")
            browser.keys("p")
            self.stack.report("House A#Kitchen#Kettle", {"temp": {"value": time.time()}})
            browser.wait("it waits", "return document.querySelector('#paused')?.innerText.includes('1 change is waiting')")
            browser.click(browser.find("#paused button"))
            browser.wait("it is shown", "return document.querySelector('#paused') === null && document.querySelector('#stream li').innerText.includes('Kettle')")

        def new_client():
            self.open("/deliveries")
            browser.click(browser.link("New client"))
            browser.type(browser.find("#name"), "Cold chain audit")
            browser.type(browser.find("#url"), f"http://127.0.0.1:{self.stack.receiver.server_port}/ok")
            browser.type(browser.find("#client-id"), "cold-chain")
            browser.click(browser.find("form[action^='/deliveries/create'] .primary"))
            browser.wait("the secret", "return document.body.innerText.includes('whsec_')")
            browser.screenshot(self.screenshots / "client-created.png")
            browser.click(browser.find("#new [data-close]"))
            browser.wait("the list", "return location.search.includes('client=cold-chain')")
            expect("whsec_" not in browser.text(), "the secret is shown again")

        def conflict():
            self.open(f"/device?id={FREEZER_QUERY}&edit=1")
            self.stack.api("PATCH", f"/v1/shadows/{FREEZER_QUERY}/desired", {"mode": "boost"})
            browser.type(browser.find("textarea[name=patch]"), '{"mode":"normal"}')
            browser.click(browser.find("#edit .primary"))
            browser.wait("the conflict", "return document.body.innerText.includes('Your text is kept')")
            # The browser reports the status of a page that is a conflict.
            errors = browser.errors()
            expect(all("status of 422" in error for error in errors), "; ".join(errors))
            browser.click(browser.find("button[form=edit-form]"))
            browser.wait("it is applied", "return document.querySelector('.toast')?.innerText.includes('Written')")

        def redeliver():
            self.open("/deliveries?client=facility-desk")
            browser.click(browser.find("tbody td:first-child a[href*='delivery=']"))
            browser.click(browser.find("form[action='/deliveries/redeliver'] button"))
            browser.wait("the toast", "return document.querySelector('.toast') !== null")
            expect("Queued:" in browser.text(), "it was not queued")

        def send_test():
            self.open("/deliveries")
            browser.click(browser.find("form[action='/deliveries/test'] button"))
            browser.wait("the toast", "return document.querySelector('.toast')?.innerText.includes('test delivery')")

        def redrive():
            self.open("/queues?queue=quarantine")
            browser.click(browser.link("Read the messages"))
            browser.click(browser.link("Redrive all"))
            browser.wait("the dry run", "return document.body.innerText.includes('Nothing has been moved yet')")
            browser.click(browser.find("form[action='/queues/redrive'] .primary"))
            browser.wait("the toast", "return document.querySelector('.toast')?.innerText.includes('Redriven')")

        for name, action in [
            ("the time slider opens a past state", slider),
            ("the bench explains a recorded change and tries a draft", bench),
            ("the bench explains a typed change", typed),
            ("earlier changes in Live", older),
            ("a paused stream counts what waits", paused),
            ("a new client and its secret", new_client),
            ("a conflict of edits", conflict),
            ("a delivery is redelivered", redeliver),
            ("a test is sent", send_test),
            ("a redrive after its dry run", redrive),
        ]:
            attempt(name, action, lambda name: browser.screenshot(self.screenshots / f"failed-{name.replace(' ', '-')}.png"))
        errors = self.browser.errors()
        check("no error in the browser's console while using it", not errors, "; ".join(errors[:3]))

    def figures(self):
        cookie = "; ".join(f"{one['name']}={one['value']}" for one in self.browser.call("GET", "/cookie"))
        for name, path, _ in PAGES:
            # Reading messages waits for more of them, and happens only on request.
            path = path.split("&read=")[0]
            times, whole, size = [], [], 0
            for _ in range(7):
                connection = http.client.HTTPConnection(self.stack.http)
                connection.connect()
                start = time.perf_counter()
                connection.request("GET", path, headers={"cookie": cookie, "accept-encoding": "zstd"})
                response = connection.getresponse()
                times.append(time.perf_counter() - start)
                expect(response.status == 200, f"{path} answers {response.status}")
                size = len(response.read())
                whole.append(time.perf_counter() - start)
                connection.close()
            median, last = sorted(times)[len(times) // 2], sorted(whole)[len(whole) // 2]
            check(f"{name}: compressed size", size <= PAGE_BYTES, f"{size / 1024:.1f} KB")
            check(f"{name}: first byte", median <= FIRST_BYTE_SECONDS, f"{median * 1000:.1f} ms, the last after {last * 1000:.1f} ms (medians of {len(times)})")
        self.idle(cookie)

    def idle(self, cookie):
        """The cost of open pages when nothing happens."""
        self.open("/queues")
        streams = []
        headers = {"cookie": cookie, "accept": "text/event-stream", "sec-fetch-site": "same-origin"}
        for number in range(STREAMS):
            connection = http.client.HTTPConnection(self.stack.http)
            page = NAVIGATION[number % len(NAVIGATION)].lower()
            connection.request("GET", f"/events?page={page}", headers=headers)
            response = connection.getresponse()
            expect(response.status == 200, f"an event stream answers {response.status}")
            streams.append((connection, response))

        def used():
            fields = pathlib.Path(f"/proc/{self.stack.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / 100

        time.sleep(3)
        start, before = time.monotonic(), used()
        time.sleep(20)
        with_streams = (used() - before) / (time.monotonic() - start)
        for connection, _ in streams:
            connection.close()
        time.sleep(3)
        start, before = time.monotonic(), used()
        time.sleep(20)
        without = (used() - before) / (time.monotonic() - start)
        cost = with_streams - without
        check(f"{STREAMS} idle event streams", cost < IDLE_SHARE, f"{cost * 100:.1f} % of a core ({with_streams * 100:.1f} % with them, {without * 100:.1f} % without)")

    def images(self, directory):
        """The two screenshots of the README."""
        directory.mkdir(parents=True, exist_ok=True)
        browser = self.browser
        browser.scheme("light")
        for name, path, height in [
            ("console-sensors", "/sensors?city=Pozna%C5%84&building=A&id=door-201", 700),
            ("console-registrations", f"/registrations?name=freezer-too-warm&shadow={FREEZER_QUERY}", 860),
        ]:
            browser.size(1280, height)
            self.open(path)
            if name == "console-registrations":
                # A change that one line of the registration decides.
                browser.click(browser.find("#pick option:nth-of-type(2)"))
                browser.click(browser.find(".bench-col form button"))
                browser.wait("the change", "return location.search.includes('change=')")
                browser.script("scrollTo(0, 0)")
            browser.screenshot(directory / f"{name}.png", whole=False)
            shrink(directory / f"{name}.png")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("axe")
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--screenshots", type=pathlib.Path, default=REPOSITORY / "target" / "console")
    parser.add_argument("--images", action="store_true")
    parser.add_argument("--design", type=pathlib.Path)
    arguments = parser.parse_args()
    arguments.screenshots.mkdir(parents=True, exist_ok=True)
    stack = Stack(arguments.binary, REPOSITORY)
    browser = None
    try:
        browser = Browser()
        # Before the stack is filled, which may take longer than the ten minutes of a URL.
        browser.open(stack.login_url())
        print(f"== filling the stack with {arguments.devices} devices", flush=True)
        fill(stack, arguments.devices)
        one = Check(stack, browser, pathlib.Path(arguments.axe).read_text(), arguments.screenshots)
        attempt("the printed URL opens the console", lambda: browser.wait("Fleet", "return document.title.startsWith('Fleet')") and None)
        if arguments.images:
            one.images(REPOSITORY / "docs" / "images")
        one.every_page()
        write_sheets(browser, arguments.screenshots, [name for name, _, _ in PAGES], arguments.design)
        one.navigation()
        one.without_script()
        one.live()
        one.live_parts()
        one.use()
        one.figures()
        one.hostile_pages()
        one.other_pages_of_the_list()
        one.stopped()
        one.empty_pages()
    finally:
        if browser:
            browser.close()
        stack.close()
    failed = results.count(False)
    print(f"{len(results)} checks, {failed} failed; screenshots in {arguments.screenshots}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
