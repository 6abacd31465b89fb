//! Pages that are read again when something on them changed: registrations, sensors, deliveries, the inbox and queues.
//!
//! Whatever can change on such a page is in *parts*, elements with an id. One reader for all tabs with the same URL reads the
//! page again after a change, renders its parts once, and sends those that differ to the tabs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use maud::Markup;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver};
use tokio::time::{Instant, sleep_until};

use super::{ChangedItem, KEEP_ALIVE, News, ROW_INTERVAL, ShadowChange};
use crate::pages::{deliveries, inbox, queues, registrations, sensors};
use crate::state::lock;
use crate::view::View;

/// Time between reads if changes cannot be followed.
pub(crate) const POLL: Duration = Duration::from_secs(5);
/// Time between reads if they can: some texts depend on the clock alone, such as the time to the next attempt.
const SLOW_POLL: Duration = Duration::from_secs(30);
/// Share of the time that reading may take: a page that takes long to read is read less often.
const READ_SHARE: u32 = 10;
/// Updates that a slow tab may be behind; then it reads the page again.
const BEHIND: usize = 16;

/// The parts of a page, by the ids of their elements.
pub(crate) type Parts = Vec<(&'static str, Markup)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PartedPage {
    Registrations,
    Sensors,
    Deliveries,
    Inbox,
    Queues,
}

impl PartedPage {
    pub(super) fn parse(name: &str) -> Option<PartedPage> {
        Some(match name {
            "registrations" => PartedPage::Registrations,
            "sensors" => PartedPage::Sensors,
            "deliveries" => PartedPage::Deliveries,
            "inbox" => PartedPage::Inbox,
            "queues" => PartedPage::Queues,
            _ => return None,
        })
    }

    fn path(self) -> &'static str {
        match self {
            PartedPage::Registrations => registrations::PATH,
            PartedPage::Sensors => sensors::PATH,
            PartedPage::Deliveries => deliveries::PATH,
            PartedPage::Inbox => inbox::PATH,
            PartedPage::Queues => queues::PATH,
        }
    }

    async fn parts(self, view: &View) -> Parts {
        match self {
            PartedPage::Registrations => registrations::parts(view).await,
            PartedPage::Sensors => sensors::parts(view).await,
            PartedPage::Deliveries => deliveries::parts(view).await,
            PartedPage::Inbox => inbox::parts(view).await,
            PartedPage::Queues => queues::parts(view).await,
        }
    }

    /// Returns whether a change of an item may change the page.
    fn shows(self, view: &View, item: &ChangedItem) -> bool {
        match self {
            PartedPage::Sensors => sensors::shows(view, item),
            PartedPage::Deliveries => deliveries::shows(item),
            PartedPage::Inbox => inbox::shows(item),
            PartedPage::Registrations => registrations::shows(item),
            PartedPage::Queues => false,
        }
    }

    fn shows_shadow(self, view: &View, change: &ShadowChange) -> bool {
        self == PartedPage::Registrations && registrations::shows_shadow(view, change)
    }

    /// Time between reads when nothing is known to have changed.
    fn interval(self, view: &View) -> Duration {
        // No item changes when a message enters a queue.
        let is_of_queues = matches!(self, PartedPage::Queues | PartedPage::Inbox);
        match view.console.live.has_items() && !is_of_queues {
            true => SLOW_POLL,
            false => POLL,
        }
    }
}

/// The text beside the dot that says whether a page is live.
pub(crate) fn live_text(view: &View) -> &'static str {
    match view.console.live.has_items() {
        true => "Live",
        false => "Live, every 5 s",
    }
}

/// News for the tabs of a page.
#[derive(Debug, Clone)]
enum Update {
    Parts(Arc<[Arc<str>]>),
    /// Parts came or went.
    OtherParts,
    Stop,
}

/// A page that is open in a tab.
struct OpenPage {
    updates: broadcast::Sender<Update>,
    /// The parts as they were rendered last.
    latest: Mutex<Vec<Rendered>>,
}

#[derive(Debug, Clone)]
struct Rendered {
    id: &'static str,
    html: Arc<str>,
    /// The HTML without the texts of times.
    steady: String,
}

/// The pages that are open in tabs, by session and URL.
#[derive(Default)]
pub(super) struct OpenPages(Mutex<HashMap<String, Arc<OpenPage>>>);

impl OpenPages {
    /// Joins the tabs of a page. Returns its reader, which has to be started, if this is the first.
    fn join(&self, key: &str) -> (Arc<OpenPage>, Receiver<Update>, bool) {
        let mut pages = lock(&self.0);
        let is_first = !pages.contains_key(key);
        let page = pages.entry(key.to_owned()).or_insert_with(|| {
            Arc::new(OpenPage {
                updates: broadcast::Sender::new(BEHIND),
                latest: Mutex::default(),
            })
        });
        (Arc::clone(page), page.updates.subscribe(), is_first)
    }

    /// Forgets a page that no tab shows. Returns whether none does.
    fn leave(&self, key: &str) -> bool {
        let mut pages = lock(&self.0);
        let is_left = pages
            .get(key)
            .is_none_or(|page| page.updates.receiver_count() == 0);
        if is_left {
            pages.remove(key);
        }
        is_left
    }
}

/// The event stream of a tab.
pub(super) fn events(mut view: View, page: PartedPage) -> Response {
    view.show_as(page.path());
    let console = Arc::clone(&view.console);
    let key = view.key();
    let (open, updates, is_first) = console.live.open_pages.join(&key);
    let latest: Vec<Arc<str>> = lock(&open.latest)
        .iter()
        .map(|part| Arc::clone(&part.html))
        .collect();
    if is_first {
        let news = console.live.listen(&console);
        tokio::spawn(read(view, page, key, open, news));
    }
    let ready = SseEvent::default().event("ready").data("live");
    let mut waiting = vec![ready];
    waiting.extend(latest.iter().map(|html| part(html)));
    waiting.reverse();
    let events = stream::unfold((updates, waiting), |(mut updates, mut waiting)| async {
        if waiting.is_empty() {
            match updates.recv().await {
                Ok(Update::Stop) | Err(RecvError::Closed) => return None,
                Ok(Update::Parts(parts)) => {
                    waiting.extend(parts.iter().rev().map(|html| part(html)));
                }
                Ok(Update::OtherParts) => {
                    waiting.push(SseEvent::default().event("reload").data("other parts"));
                }
                Err(RecvError::Lagged(_)) => {
                    waiting.push(SseEvent::default().event("lagged").data("read again"));
                }
            }
        }
        let event = waiting.pop()?;
        Some((Ok::<_, Infallible>(event), (updates, waiting)))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

fn part(html: &str) -> SseEvent {
    // A carriage return would end a line of the event.
    let html = html.replace('\r', "&#13;");
    SseEvent::default().event("part").data(html)
}

/// Reads a page again after changes, while a tab shows it.
async fn read(
    mut view: View,
    page: PartedPage,
    key: String,
    open: Arc<OpenPage>,
    mut news: Receiver<News>,
) {
    let console = Arc::clone(&view.console);
    // Something may have changed since the page was sent. Where reads cost money, the next one shows it.
    let mut due = match console.live.has_items() {
        true => Instant::now(),
        false => Instant::now() + POLL,
    };
    let mut earliest = due;
    let mut is_changed = false;
    loop {
        tokio::select! {
            () = open.updates.closed() => {
                if console.live.open_pages.leave(&key) {
                    return;
                }
            }
            news = news.recv() => {
                let concerns = match news {
                    Ok(News::Stop) | Err(RecvError::Closed) => {
                        let _ = open.updates.send(Update::Stop);
                        lock(&console.live.open_pages.0).remove(&key);
                        return;
                    }
                    Ok(News::Items(items)) => items.iter().any(|item| page.shows(&view, item)),
                    Ok(News::Change(change)) => page.shows_shadow(&view, &change.of),
                    Ok(News::Row(_)) => false,
                    Ok(News::Missed) | Err(RecvError::Lagged(_)) => true,
                };
                if concerns {
                    due = due.min(earliest);
                    is_changed = true;
                }
            }
            () = sleep_until(due) => {
                let start = Instant::now();
                view.now = console.now();
                publish(&open, page.parts(&view).await);
                let pause = start.elapsed() * READ_SHARE;
                earliest = start + pause.max(ROW_INTERVAL);
                // The last attempts of clients are read at most every five seconds: after a change, look again then.
                let interval = match std::mem::take(&mut is_changed) {
                    true => POLL,
                    false => page.interval(&view),
                };
                due = start + interval.max(pause);
            }
        }
    }
}

/// Sends the parts that differ from those before.
fn publish(open: &OpenPage, parts: Parts) {
    let rendered = parts.into_iter().map(|(id, html)| {
        let html = html.into_string();
        Rendered {
            id,
            steady: steady(&html),
            html: html.into(),
        }
    });
    let rendered: Vec<Rendered> = rendered.collect();
    let mut latest = lock(&open.latest);
    let ids = |parts: &[Rendered]| parts.iter().map(|part| part.id).collect::<Vec<_>>();
    let is_other = !latest.is_empty() && ids(&latest) != ids(&rendered);
    let known: HashMap<&str, &str> = latest
        .iter()
        .map(|part| (part.id, part.steady.as_str()))
        .collect();
    let changed = rendered
        .iter()
        .filter(|part| known.get(part.id) != Some(&part.steady.as_str()));
    let changed: Arc<[Arc<str>]> = changed.map(|part| Arc::clone(&part.html)).collect();
    *latest = rendered;
    drop(latest);
    let update = match is_other {
        true => Update::OtherParts,
        false if changed.is_empty() => return,
        false => Update::Parts(changed),
    };
    let _ = open.updates.send(update);
}

/// The HTML without the texts of times, which grow older in the browser.
fn steady(html: &str) -> String {
    let mut steady = String::with_capacity(html.len());
    let mut rest = html;
    while let Some(start) = rest.find("<time") {
        let (before, time) = rest.split_at(start);
        let text = time.find('>').map_or(time.len(), |end| end + 1);
        let end = time.find("</time>").unwrap_or(time.len()).max(text);
        steady.push_str(before);
        steady.push_str(&time[..text]);
        rest = &time[end..];
    }
    steady.push_str(rest);
    steady
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_times_are_no_change() {
        let html = |age: &str, time: &str| {
            format!("<td><time datetime=\"{time}\">{age}</time> x</td><time>{age}</time>")
        };
        assert_eq!(
            steady(&html("now", "12:00")),
            steady(&html("3 s ago", "12:00"))
        );
        assert_ne!(steady(&html("now", "12:00")), steady(&html("now", "12:01")));
        assert_eq!(steady("<b>a</b><time"), "<b>a</b><time");
        assert_eq!(steady("plain"), "plain");
    }
}
