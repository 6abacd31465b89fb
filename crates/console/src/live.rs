//! Changes as they happen, as fragments of pages.
//!
//! One reader per process follows the changes, and only while a page listens. It reads what the lists show once, and hands
//! it to all pages; each renders it with its own links and time zone.

mod parts;

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use antumbra_dynamodb::Feed;
use antumbra_service::history::feed::{ChangeDeduplicator, FeedChange, FeedFilter, FeedStart};
use antumbra_service::history::{DocumentChange, RecordedChange};
use antumbra_service::shadows::{DocumentSet, ShadowId};
use antumbra_wire::items::ItemKind;
use axum::response::sse::{Event as SseEvent, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::future::{Either, select};
use futures_util::stream::{self, BoxStream};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{self, Receiver};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::matches::Match;
use crate::pages::fleet::{FleetRow, read_rows};
use crate::pages::{changes, device, fleet};
use crate::state::{Console, lock};
use crate::view::View;

pub(crate) use parts::{Parts, live_text};

/// The event stream of a page.
pub(crate) const PATH: &str = "/events";

/// Time between updates of one row, or of one device.
const ROW_INTERVAL: Duration = Duration::from_millis(250);
/// Time without a listener after which the reader stops.
const IDLE: Duration = Duration::from_secs(10);
/// Pause before the changes are followed again after an error.
const AFTER_ERROR: Duration = Duration::from_secs(2);
/// Events that a slow page may be behind; then it reads its lists again.
const BEHIND: usize = 1024;
/// Changes that are kept for the page Live.
pub(crate) const RECENT: usize = 200;
/// Shadows that are read at once.
const AT_ONCE: usize = 50;
/// Time after which a change is in the feed. Changes shortly before a page began to listen are read from there.
const CATCH_UP: Duration = Duration::from_secs(3);
/// Changes that are read then.
const CAUGHT_UP: usize = 50;
/// Interval of comments that keep a connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A change of a shadow, as it was written.
#[derive(Debug, Clone)]
pub struct ShadowChange {
    /// The same each time the change appears.
    pub id: String,
    pub shadow: ShadowId,
    pub change: RecordedChange,
    /// The documents before and after, where they come with the change. Registrations are compared with them.
    pub documents: Vec<DocumentChange>,
}

impl From<FeedChange> for ShadowChange {
    fn from(change: FeedChange) -> ShadowChange {
        ShadowChange {
            id: change.id,
            shadow: change.shadow,
            change: change.change,
            documents: Vec::new(),
        }
    }
}

/// A change, and the registrations that match it if that is known.
#[derive(Debug, Clone)]
pub(crate) struct LiveChange {
    pub(crate) of: ShadowChange,
    pub(crate) matches: Option<Vec<Match>>,
}

/// A write or delete of an item that is not a shadow's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedItem {
    pub kind: ItemKind,
    /// Id in the partition key, such as a sensor, a client or the source of a message.
    pub owner: String,
}

/// A change that the console follows.
#[derive(Debug, Clone)]
pub enum FollowedChange {
    Shadow(ShadowChange),
    Item(ChangedItem),
}

/// Changes from now on, in order per shadow; or the reason why they cannot be followed.
pub type Changes = BoxStream<'static, Result<Vec<FollowedChange>, String>>;

/// A source of changes.
#[derive(Clone)]
pub struct Follow {
    /// Opens a stream of changes.
    pub open: Arc<dyn Fn() -> Changes + Send + Sync>,
    /// It has changes of items that are not shadows. Without them, pages of such items are read again every few seconds.
    pub has_items: bool,
}

/// Changes that one read of the feed returns.
const FEED_PAGE: usize = 500;
/// Time that one read of the feed waits for changes.
const FEED_WAIT: Duration = Duration::from_secs(15);

/// Follows the change feed of a deployment.
pub fn follow_feed(feed: Feed) -> Follow {
    let open = move || {
        let start = (feed.clone(), FeedStart::Now, ChangeDeduplicator::default());
        stream::unfold(start, |(feed, start, mut newer)| async move {
            let filter = FeedFilter::default();
            let read = feed.read(&start, FEED_PAGE, FEED_WAIT, &filter).await;
            match read {
                Ok(page) => {
                    let mut changes = page.changes;
                    changes.retain(|change| newer.is_new(change));
                    let changes = changes.into_iter().map(ShadowChange::from);
                    let changes = changes.map(FollowedChange::Shadow);
                    let next = FeedStart::parse(&page.cursor.0);
                    Some((Ok(changes.collect()), (feed, next, newer)))
                }
                // The reader opens another stream.
                Err(error) => Some((Err(error.to_string()), (feed, FeedStart::Now, newer))),
            }
        })
        .boxed()
    };
    Follow {
        open: Arc::new(open),
        has_items: false,
    }
}

/// News for open pages.
#[derive(Debug, Clone)]
enum News {
    Change(Arc<LiveChange>),
    /// A shadow as it is now.
    Row(Arc<FleetRow>),
    Items(Arc<[ChangedItem]>),
    /// Changes may have been missed.
    Missed,
    Stop,
}

/// The reader of changes, and the pages that listen.
pub(crate) struct Live {
    follow: Option<Follow>,
    news: broadcast::Sender<News>,
    is_running: AtomicBool,
    recent: Mutex<VecDeque<Arc<LiveChange>>>,
    open_pages: parts::OpenPages,
}

impl Live {
    pub(crate) fn new(follow: Option<Follow>) -> Live {
        Live {
            follow,
            news: broadcast::Sender::new(BEHIND),
            is_running: AtomicBool::new(false),
            recent: Mutex::default(),
            open_pages: parts::OpenPages::default(),
        }
    }

    /// Returns whether changes of other items than shadows are followed.
    fn has_items(&self) -> bool {
        self.follow.as_ref().is_some_and(|follow| follow.has_items)
    }

    /// The last changes that the reader saw, newest first.
    pub(crate) fn recent(&self) -> Vec<Arc<LiveChange>> {
        lock(&self.recent).iter().cloned().collect()
    }

    fn publish(&self, console: &Console, mut change: ShadowChange) {
        let documents = std::mem::take(&mut change.documents);
        let matches = (!documents.is_empty()).then(|| {
            let matcher = &console.matcher;
            matcher.matches(&console.services, documents, &change.shadow)
        });
        let of = change;
        let change = Arc::new(LiveChange { of, matches });
        let mut recent = lock(&self.recent);
        recent.push_front(Arc::clone(&change));
        recent.truncate(RECENT);
        drop(recent);
        let _ = self.news.send(News::Change(change));
    }

    /// Ends all event streams.
    pub(crate) fn stop(&self) {
        let _ = self.news.send(News::Stop);
    }

    /// Listens, and starts the reader if it does not run.
    fn listen(&self, console: &Arc<Console>) -> Receiver<News> {
        let receiver = self.news.subscribe();
        if let Some(follow) = &self.follow
            && !self.is_running.swap(true, Ordering::AcqRel)
        {
            tokio::spawn(read(Arc::downgrade(console), follow.clone()));
        }
        receiver
    }
}

/// Receives the changes from a task of its own. A read that waits for its turn in the embedded database must be polled, also while
/// shadows are read here: it could have the turn, and nobody else would get it.
fn received(follow: &Follow) -> mpsc::Receiver<Result<Vec<FollowedChange>, String>> {
    let mut changes = (follow.open)();
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Either::Left((Some(page), _)) =
            select(changes.next(), pin!(sender.closed())).await
        {
            if sender.send(page).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// Follows the changes until nobody listens.
async fn read(console: Weak<Console>, follow: Follow) {
    let mut changes = received(&follow);
    let mut rows = Rows::default();
    let mut idle_since: Option<Instant> = None;
    loop {
        let next = timeout(rows.wait(), changes.recv()).await;
        let Some(console) = console.upgrade() else {
            return;
        };
        let live = &console.live;
        match next {
            Ok(Some(Ok(page))) => {
                let mut items = Vec::new();
                for change in page {
                    match change {
                        FollowedChange::Shadow(change) => {
                            rows.changed(change.shadow.clone());
                            live.publish(&console, change);
                        }
                        FollowedChange::Item(item) => items.push(item),
                    }
                }
                if !items.is_empty() {
                    let _ = live.news.send(News::Items(items.into()));
                }
            }
            Ok(Some(Err(reason))) => {
                tracing::warn!(reason, "the changes cannot be followed; trying again");
                sleep(AFTER_ERROR).await;
                changes = received(&follow);
                let _ = live.news.send(News::Missed);
            }
            Ok(None) => {
                changes = received(&follow);
                let _ = live.news.send(News::Missed);
            }
            Err(_) => {}
        }
        rows.send_due(&console).await;
        let is_idle = live.news.receiver_count() == 0;
        idle_since = is_idle.then(|| idle_since.unwrap_or_else(Instant::now));
        if idle_since.is_some_and(|since| since.elapsed() > IDLE) {
            live.is_running.store(false, Ordering::Release);
            // A page that listened meanwhile saw a running reader.
            if live.news.receiver_count() == 0 || live.is_running.swap(true, Ordering::AcqRel) {
                return;
            }
        }
    }
}

/// Shadows that changed and were not read since, with the time from which they may be read.
#[derive(Default)]
struct Rows {
    due: HashMap<ShadowId, Instant>,
    sent: HashMap<ShadowId, Instant>,
}

impl Rows {
    fn changed(&mut self, shadow: ShadowId) {
        let now = Instant::now();
        let due = self
            .sent
            .get(&shadow)
            .map_or(now, |sent| *sent + ROW_INTERVAL);
        self.due.entry(shadow).or_insert(due);
    }

    /// Time until the next row is due.
    fn wait(&self) -> Duration {
        let next = self.due.values().min();
        next.map_or(IDLE, |due| due.saturating_duration_since(Instant::now()))
    }

    /// Reads the shadows that are due once, for all pages.
    async fn send_due(&mut self, console: &Console) {
        let now = Instant::now();
        self.sent.retain(|_, sent| *sent + ROW_INTERVAL > now);
        let due = self.due.iter().filter(|(_, due)| **due <= now);
        let due: Vec<ShadowId> = due.map(|(shadow, _)| shadow.clone()).collect();
        for shadows in due.chunks(AT_ONCE) {
            for shadow in shadows {
                self.due.remove(shadow);
                self.sent.insert(shadow.clone(), now);
            }
            match read_rows(console, shadows).await {
                Ok(rows) => {
                    for row in rows {
                        let _ = console.live.news.send(News::Row(Arc::new(row)));
                    }
                }
                Err(error) => tracing::warn!(%error, "changed shadows cannot be read"),
            }
        }
    }
}

/// The changes that a page shows.
enum Page {
    Fleet,
    Device(ShadowId),
    Live(changes::Filter),
}

/// `/events`: what changes on a page, while it is open.
pub(crate) async fn events(mut view: View) -> Response {
    if let Some(page) = view.get("page").and_then(parts::PartedPage::parse) {
        return parts::events(view, page);
    }
    let page = match view.get("page") {
        Some("device") => match device::shadow_of(&view) {
            Ok(shadow) => Page::Device(shadow),
            Err(invalid) => return invalid.to_string().into_response(),
        },
        Some("live") => Page::Live(changes::Filter::of(&view)),
        _ => Page::Fleet,
    };
    view.show_as(match &page {
        Page::Fleet => "/",
        Page::Device(_) => "/device",
        Page::Live(_) => "/live",
    });
    let receiver = view.console.live.listen(&view.console);
    let is_live = matches!(page, Page::Live(_));
    let listener = Listener {
        view,
        page,
        receiver,
        rendered: None,
        due: is_live.then(|| Instant::now() + CATCH_UP),
        ready: vec![SseEvent::default().event("ready").data("live")],
    };
    let events = stream::unfold(listener, |mut listener| async move {
        let event = listener.next().await?;
        Some((Ok::<_, Infallible>(event), listener))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

/// One open page.
struct Listener {
    view: View,
    page: Page,
    receiver: Receiver<News>,
    /// Time at which the state of a device was rendered last.
    rendered: Option<Instant>,
    /// Time at which Live reads the feed once, or the state of a device is rendered again.
    due: Option<Instant>,
    /// Events to send, last first.
    ready: Vec<SseEvent>,
}

impl Listener {
    async fn next(&mut self) -> Option<SseEvent> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Some(event);
            }
            let news = match self.due {
                // Also while news come without a pause.
                Some(at) if at <= Instant::now() => None,
                Some(at) => timeout_at(at, self.receiver.recv()).await.ok(),
                None => Some(self.receiver.recv().await),
            };
            let Some(news) = news else {
                self.due = None;
                self.read_due().await;
                continue;
            };
            let news = match news {
                Ok(News::Stop) | Err(RecvError::Closed) => return None,
                Ok(News::Missed) | Err(RecvError::Lagged(_)) => {
                    return Some(SseEvent::default().event("lagged").data("read again"));
                }
                Ok(news) => news,
            };
            self.view.now = self.view.console.now();
            match (&self.page, news) {
                (Page::Fleet, News::Row(row)) => {
                    if let Some(row) = fleet::live_row(&self.view, &row) {
                        self.push("fragment", row.into_string());
                    }
                }
                (Page::Device(shadow), News::Change(change)) if *shadow == change.of.shadow => {
                    let matches = change.matches.as_deref().unwrap_or_default();
                    let recorded = &change.of.change;
                    let entry = device::live_entry(&self.view, shadow, recorded, matches);
                    let next = self.rendered.map(|rendered| rendered + ROW_INTERVAL);
                    match next.filter(|next| *next > Instant::now()) {
                        Some(next) => self.due = Some(next),
                        None => self.read_due().await,
                    }
                    if let Some(entry) = entry {
                        self.push("entry", changes::into_list("timeline", entry));
                    }
                }
                (Page::Live(filter), News::Change(change)) if filter.keeps(&change.of) => {
                    let entry = changes::entry(&self.view, &change, false);
                    self.push("entry", entry.into_string());
                }
                _ => {}
            }
        }
    }

    async fn read_due(&mut self) {
        match &self.page {
            Page::Fleet => {}
            Page::Device(shadow) => self.device(&shadow.clone()).await,
            Page::Live(_) => self.read_feed().await,
        }
    }

    /// Sends what the feed has. The script leaves out what the page has.
    async fn read_feed(&mut self) {
        let latest = changes::of_feed(&self.view, &FeedStart::Now, CAUGHT_UP).await;
        let latest = latest.inspect_err(|error| {
            tracing::warn!(%error, "the newest changes cannot be read");
        });
        let (Page::Live(filter), Ok(latest)) = (&self.page, latest) else {
            return;
        };
        let latest: Vec<_> = latest.changes.into_iter().map(changes::unmatched).collect();
        self.view.now = self.view.console.now();
        let kept = latest
            .iter()
            .rev()
            .filter(|change| filter.keeps(&change.of));
        let entries = kept.map(|change| changes::entry(&self.view, change, false).into_string());
        for entry in entries.collect::<Vec<_>>() {
            self.push("entry", entry);
        }
    }

    /// Renders the state of a device.
    async fn device(&mut self, shadow: &ShadowId) {
        self.due = None;
        self.rendered = Some(Instant::now());
        self.view.now = self.view.console.now();
        let shadows = &self.view.console.services.shadows;
        let read = pin!(shadows.read(shadow, DocumentSet::Both)).await;
        let read = match read {
            Err(error) if error.is_not_found() => None,
            Err(_) => return,
            Ok(read) => Some(read),
        };
        let panel = device::state_panel(&self.view, read.as_ref(), None);
        self.push("fragment", panel.into_string());
    }

    fn push(&mut self, name: &str, html: String) {
        // A carriage return would end a line of the event.
        let html = html.replace('\r', "&#13;");
        self.ready
            .insert(0, SseEvent::default().event(name).data(html));
    }
}
