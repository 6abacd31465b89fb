// Live updates, keyboard, time slider, copy buttons. Every page works without this file, except live updates.
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // Ages ----------------------------------------------------------------------
  const age = (then) => {
    const distance = (Date.now() - then) / 1000;
    const seconds = Math.floor(Math.abs(distance));
    if (seconds < 1) return "now";
    const text = seconds < 60 ? `${seconds} s` : seconds < 3600 ? `${Math.floor(seconds / 60)} min`
      : seconds < 86400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} d`;
    return distance >= 0 ? `${text} ago` : `in ${text}`;
  };
  const isAge = /^(now|in \d+ (s|min|h|d)|\d+ (s|min|h|d) ago)$/;
  const grow = () => {
    if (document.hidden) return;
    for (const time of all("time[datetime]")) {
      if (isAge.test(time.textContent)) time.textContent = age(Date.parse(time.dateTime));
    }
  };
  setInterval(grow, 5000);

  // Live updates ----------------------------------------------------------------
  const holder = one("[data-events]");
  const dots = () => all("[data-live]");
  const show = (isLive, text) => {
    for (const dot of dots()) {
      dot.className = isLive ? "dot ok" : "dot hollow mute";
      dot.textContent = isLive ? dot.dataset.live : text;
    }
  };
  let source = null, paused = false, lostSince = 0, opened = 0, waiting = [];
  // Entries of a list. Beyond it the oldest go, and "Older" with them: it would leave a gap.
  const limit = 1000;

  const parse = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content.firstElementChild;
  };
  const tint = (element) => {
    element.classList.add("fresh");
    element.addEventListener("animationend", () => element.classList.remove("fresh"), { once: true });
  };
  const held = (count, word) => {
    const bar = one("#held");
    if (!bar) return;
    bar.hidden = count === 0;
    one("span", bar).textContent = `${count} new ${word}${count === 1 ? "" : "s"}`;
  };

  // A fragment replaces the element with its id; focus and selection stay.
  const unknown = new Set();
  let showing = 0;
  // New rows of a list are shown together, or counted while somebody reads there.
  const showUnknown = () => {
    showing = 0;
    if (isRead(one("[data-rows]"))) held(unknown.size, "shadow"); else refresh();
  };
  const replace = (html) => {
    const fresh = parse(html);
    const old = fresh && document.getElementById(fresh.id);
    if (!fresh) return;
    if (!old) {
      // The filter of the page leaves the row out.
      if ("leftOut" in fresh.dataset) return;
      if (!one("[data-rows]")) return reload();
      unknown.add(fresh.id);
      showing ||= setTimeout(showUnknown, 500);
      return;
    }
    // The shadow came or went: more of the page is another.
    if (old.hidden !== fresh.hidden) return reload();
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    if (old.hasAttribute("aria-current")) fresh.setAttribute("aria-current", old.getAttribute("aria-current"));
    old.replaceWith(fresh);
    if (focused !== null) all("a", fresh).find((link) => link.getAttribute("href") === focused)?.focus();
    if (fresh.tagName === "TR") tint(fresh);
  };

  // Parts: their rows are replaced where they are; rows that came or went wait while somebody reads there.
  const withoutAges = (element) => {
    const copy = element.cloneNode(true);
    for (const part of all("time, [data-aging]", copy)) part.textContent = "";
    for (const part of [copy, ...all("[class]", copy)]) {
      part.classList.remove("fresh");
      if (!part.classList.length) part.removeAttribute("class");
    }
    return copy.outerHTML;
  };
  const isTypedIn = (element) => element.contains(document.activeElement)
    && document.activeElement.matches("input, textarea, select, button, summary");
  const put = (fresh, old) => {
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    const open = all("details", old).map((one) => one.open);
    all("details", fresh).forEach((one, at) => { if (at < open.length) one.open = open[at]; });
    old.replaceWith(fresh);
    copyable(fresh);
    if (focused !== null) {
      const links = [fresh, ...all("a", fresh)];
      links.find((link) => link.getAttribute("href") === focused)?.focus({ preventScroll: true });
    }
  };
  const swap = (html) => {
    const fresh = parse(html);
    const old = fresh && document.getElementById(fresh.id);
    if (!fresh) return;
    if (!old) return reload();
    if (withoutAges(old) === withoutAges(fresh)) {
      const aged = all("[data-aging]", fresh);
      return all("[data-aging]", old).forEach((one, at) => one.replaceWith(aged[at]));
    }
    const rows = all("[data-row]", old), freshRows = all("[data-row]", fresh);
    const known = new Map(rows.map((row) => [row.id, row]));
    const isChanged = (row) => !known.has(row.id) || withoutAges(known.get(row.id)) !== withoutAges(row);
    const changed = freshRows.filter(isChanged);
    const isRead = rows.length > 0 && (old.matches(":hover") || old.contains(document.activeElement));
    if (isTypedIn(old) && !rows.length) return;
    if (!isRead && !isTypedIn(old)) {
      put(fresh, old);
      return changed.forEach(tint);
    }
    const added = freshRows.filter((row) => !known.has(row.id)).length;
    const gone = rows.length + added - freshRows.length;
    for (const row of changed) {
      const shown = known.get(row.id);
      if (!shown || isTypedIn(shown)) continue;
      const copy = row.cloneNode(true);
      put(copy, shown);
      tint(copy);
    }
    const bar = one(":scope > .held-back", old);
    if (!added && !gone) return bar?.remove();
    const text = [added ? `${added} new` : "", gone ? `${gone} gone` : ""].filter(Boolean).join(", ");
    const show = make("button", { className: "btn small", type: "button", textContent: "Show", onclick: () => put(fresh, old) });
    const note = make("div", { className: "held-back", role: "status" }, make("span", { textContent: `${old.dataset.part}: ${text}` }), show);
    if (bar) bar.replaceWith(note); else old.prepend(note);
  };
  const reload = () => {
    if (!document.activeElement?.matches("input, textarea, select")) location.reload();
  };

  // An entry goes to the top of its list, unless somebody reads there; in the stream, above those that are not newer.
  const written = (entry) => Date.parse(one("time", entry)?.dateTime);
  const insert = (list, entry) => {
    const isStream = list.id === "stream";
    const below = isStream ? [...list.children].find((other) => !(written(other) > written(entry))) ?? null : list.firstChild;
    list.insertBefore(entry, below);
    tint(entry);
    while (list.children.length > limit) {
      list.lastElementChild.remove();
      if (isStream) one("#older")?.remove();
    }
  };
  const isRead = (list) => list.matches(":hover") || list.contains(document.activeElement)
    || list.getBoundingClientRect().top < 0;
  const add = (html) => {
    const entry = parse(html);
    const list = entry && document.getElementById(entry.dataset.into);
    if (!list) return;
    if (entry.id && (document.getElementById(entry.id) || waiting.some((other) => other.id === entry.id))) return;
    const previous = document.getElementById("none-yet");
    if (previous) previous.remove();
    if (list.id !== "stream") {
      redraw();
      return insert(list, entry);
    }
    const behind = one("#behind"), seconds = (Date.now() - written(entry)) / 1000;
    if (behind && seconds >= 0 && seconds < 30) behind.textContent = `, ${seconds.toFixed(1)} s behind`;
    if (!paused && !isRead(list)) return insert(list, entry);
    waiting.push(entry);
    if (waiting.length > limit) waiting.shift();
    if (paused) return pausedNote();
    held(waiting.length, "change");
  };
  const release = () => {
    const list = one("#stream");
    for (const entry of waiting.splice(0)) {
      if (!document.getElementById(entry.id)) insert(list, entry);
    }
    held(0, "change");
  };
  one("#held a")?.addEventListener("click", (event) => {
    if (!waiting.length) return;
    event.preventDefault();
    release();
    scrollTo(0, 0);
  });

  // What changed while nobody listened: the lists of the page, read again. A new stream sends parts by itself, and a page with
  // parts may have read the messages of a queue, which happens on request only.
  const refresh = async (parts = "[data-rows], #state, #timeline, #stream, #timebar, #chart") => {
    if (one("[data-part]")) return;
    const response = await fetch(location.href, { headers: { accept: "text/html" } }).catch(() => null);
    if (!response?.ok) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const part of all(parts)) {
      const fresh = part.id ? page.getElementById(part.id) : page.querySelector("[data-rows]");
      if (!fresh || part.contains(document.activeElement)) continue;
      part.replaceWith(document.adoptNode(fresh));
      if (!("rows" in fresh.dataset)) continue;
      for (const id of unknown) { const row = document.getElementById(id); if (row) tint(row); }
      unknown.clear();
      // The list may end with another row now.
      const { events } = page.querySelector("[data-events]").dataset;
      if (holder.dataset.events !== events) { holder.dataset.events = events; connect(); }
    }
    slide();
    if (source) show(!paused && !lostSince, paused ? "Paused" : "Not live");
  };
  // The time bar and the chart of a device are drawn from its recorded changes. While it changes they are read again, which
  // takes at most a tenth of the time.
  let isRedrawing = false;
  const redraw = async () => {
    if (isRedrawing) return;
    isRedrawing = true;
    const pass = (milliseconds) => new Promise((done) => { setTimeout(done, milliseconds); });
    await pass(3000);
    const start = Date.now();
    if (source) await refresh("#timebar, #chart");
    await pass(9 * (Date.now() - start));
    isRedrawing = false;
  };

  const lost = () => {
    if (!lostSince || Date.now() - lostSince < 3000) return;
    let note = one("#lost");
    if (!note) {
      note = make("div", { id: "lost", className: "note warn", role: "status" });
      note.append(make("div"), make("button", { className: "btn small", type: "button", textContent: "Reconnect", onclick: connect }));
      holder.prepend(note);
    }
    const since = `Not live: the connection was lost ${age(lostSince)}. Values are as of then.`;
    one("div", note).textContent = isLoggedOut
      ? `${since} The console was started again: press Enter in its terminal and open the URL that it prints.`
      : `${since} Reconnecting; no change is lost.`;
  };
  setInterval(lost, 1000);

  // The browser opens a stream again unless the server refused it. Then the reason is asked for, and the page tries later.
  let isLoggedOut = false;
  const refused = async (stream) => {
    const asking = new AbortController();
    const response = await fetch(stream.url, { signal: asking.signal }).catch(() => null);
    isLoggedOut = response?.status === 401;
    asking.abort();
    lost();
    setTimeout(() => { if (source === stream) connect(); }, 3000);
  };

  const connect = () => {
    if (!holder || !holder.dataset.events || (paused && !isStreaming()) || document.hidden) return;
    source?.close();
    source = new EventSource(holder.dataset.events);
    source.addEventListener("ready", () => {
      if (opened++ > 0) refresh();
      lostSince = 0;
      isLoggedOut = false;
      one("#lost")?.remove();
      show(!paused, "Paused");
    });
    source.addEventListener("fragment", (event) => replace(event.data));
    source.addEventListener("entry", (event) => add(event.data));
    source.addEventListener("part", (event) => swap(event.data));
    source.addEventListener("reload", reload);
    source.addEventListener("lagged", () => one("[data-part]") ? connect() : refresh());
    source.onerror = ({ target }) => {
      lostSince ||= Date.now();
      show(false, "Not live");
      if (target === source && target.readyState === EventSource.CLOSED) refused(target);
    };
  };
  const disconnect = (text) => {
    source?.close();
    source = null;
    show(false, text);
  };
  // The stream goes on while it is paused, so that the note can count; other pages are read again afterwards.
  const isStreaming = () => one("#stream") !== null;
  let pausedAt = "";
  const pausedNote = () => {
    let note = one("#paused");
    if (!note) {
      note = make("div", { id: "paused", className: "note info", role: "status" });
      const resume = make("button", { className: "btn small", type: "button", textContent: "Resume" });
      resume.dataset.pause = "";
      note.append(make("div"), resume);
      holder.prepend(note);
    }
    const count = waiting.length === 1 ? "1 change is waiting" : `${waiting.length} changes are waiting`;
    one("div", note).textContent = `Paused at ${pausedAt}.${isStreaming() ? ` ${count}.` : ""}`;
  };
  const pause = () => {
    paused = !paused;
    pausedAt = new Date().toLocaleTimeString("en-GB");
    if (paused) pausedNote(); else one("#paused")?.remove();
    for (const button of all("[data-pause]")) {
      if (button.closest("#paused")) continue;
      button.setAttribute("aria-pressed", paused);
      button.textContent = paused ? "Resume" : "Pause";
    }
    if (isStreaming()) {
      show(!paused, "Paused");
      return paused || release();
    }
    if (paused) disconnect("Paused"); else connect();
  };
  // Browsers allow six connections per host: a hidden page gives its own back.
  document.addEventListener("visibilitychange", () => document.hidden ? disconnect("Hidden") : (grow(), connect()));
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => event.persisted && connect());
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-pause]");
    if (button) pause();
  });
  connect();

  // Time slider -------------------------------------------------------------------
  const slide = () => {
    for (const button of all("[data-pause]")) button.hidden = false;
    const slider = one("[data-slider]");
    if (!slider || slider.dataset.ready) return;
    slider.dataset.ready = "1";
    const from = Number(slider.dataset.from), to = Number(slider.dataset.to);
    const time = () => new Date(from + (to - from) * slider.value / slider.max);
    slider.addEventListener("input", () => {
      const text = time().toLocaleTimeString("en-GB");
      slider.setAttribute("aria-valuetext", text);
      const field = one("input[name=at]");
      if (field) field.value = text;
    });
    slider.addEventListener("change", () => {
      const url = new URL(slider.dataset.slider, location.href);
      if (Number(slider.value) < Number(slider.max)) url.searchParams.set("at", time().toISOString());
      location.href = url.href;
    });
  };
  slide();

  // Copy ---------------------------------------------------------------------------
  const copyable = (root) => {
    for (const button of all("[data-copy]", root)) {
      button.hidden = false;
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
    }
  };
  copyable(document);

  // Toast ---------------------------------------------------------------------------
  const toast = one("#toast");
  if (toast) setTimeout(() => toast.remove(), 6000);

  // Keyboard --------------------------------------------------------------------------
  const pages = { f: "/", l: "/live", r: "/registrations", s: "/sensors", d: "/deliveries", i: "/inbox", q: "/queues" };
  const rows = () => all("tbody tr td:first-child a, .stream > li > a, a.pick, a.tile, .timeline > li > .line > a, "
    + ".timeline > li > details > summary, .timeline details[open] > ol > li > .line > a")
    .filter((link) => link.offsetParent !== null);
  const step = (by) => {
    const links = rows();
    const at = links.indexOf(document.activeElement);
    const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(Math.max(at + by, 0), links.length - 1)];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  const isOn = () => localStorage.getItem("antumbra-keys") !== "off";
  const help = () => {
    const existing = one("dialog");
    if (existing) return existing.close();
    const entry = (keys, text) => [make("dt", {}, ...keys.map((key) => make("kbd", { textContent: key }))), make("dd", { textContent: text })];
    const toggle = make("input", { type: "checkbox", checked: isOn() });
    toggle.addEventListener("change", () => localStorage.setItem("antumbra-keys", toggle.checked ? "on" : "off"));
    const dialog = make("dialog", { className: "panel" },
      make("header", {}, make("h2", { textContent: "Shortcuts" }),
        make("label", { className: "push soft" }, toggle, " Single-key shortcuts on")),
      make("div", { className: "body" }, make("dl", { className: "kv" },
        ...entry(["G", "F"], "Fleet; L Live, R Registrations, S Sensors, D Deliveries, I Inbox, Q Queues"),
        ...entry(["/"], "Filter"),
        ...entry(["J", "K"], "Next and previous row; Enter opens it, Escape closes it"),
        ...entry(["[", "]"], "Previous and next change of a device; N back to now"),
        ...entry(["E"], "Edit desired"),
        ...entry(["P"], "Pause or resume live updates"),
        ...entry(["T"], "Ages or exact times"))));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  };
  let isGo = false;
  document.addEventListener("keydown", (event) => {
    // On some keyboards [ and ] need AltGr, which counts as Ctrl and Alt.
    const isPlain = !(event.ctrlKey || event.metaKey || event.altKey) || event.getModifierState("AltGraph");
    if (!isPlain) return;
    const isTyping = event.target.closest?.("input:not([type=checkbox]):not([type=range]), textarea, select");
    if (event.key === "Escape") {
      if (isTyping) return event.target.blur();
      return one("[data-close], [aria-label^='Close']")?.click();
    }
    if (isTyping) return;
    if (event.key === "?") { event.preventDefault(); return help(); }
    if (!isOn() || one("dialog")) return;
    const key = event.key.toLowerCase();
    if (isGo) {
      isGo = false;
      if (pages[key]) { event.preventDefault(); location.href = pages[key]; }
      return;
    }
    if (key === "g") { isGo = true; setTimeout(() => { isGo = false; }, 1500); return; }
    if (key === "j" || key === "k") { event.preventDefault(); return step(key === "j" ? 1 : -1); }
    const target = one(`[aria-keyshortcuts="${CSS.escape(key)}"]`);
    if (!target) return;
    event.preventDefault();
    if (target.matches("input, textarea, select")) { target.focus(); target.select?.(); } else target.click();
  });
})();
