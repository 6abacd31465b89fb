//! Readers of the change feed. They are stopped anywhere and continue from the last cursor that they kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_dynamodb::Feed;
use antumbra_service::history::feed::{FeedChange, FeedError, FeedFilter, FeedPage, FeedStart};
use tokio::time::Instant;

use super::until;
use crate::functions::Wiring;
use crate::world::{World, lock};

/// Time for which a reader runs at most.
const TIMEOUT: Duration = Duration::from_secs(25);
/// Longest pauses between two pages.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(200),
    Duration::from_secs(3),
    Duration::from_secs(30),
];
/// Longest time for which a reader waits for a change.
const WAIT: Duration = Duration::from_secs(1);
/// Pages that are received and lost with their reader, before it keeps the cursor.
const LOST_CURSORS: f64 = 0.2;
/// Time after which no number of the feed is open any more.
const RESERVATIONS_END: Duration = Duration::from_secs(45);
/// Pages after which a reader must be at the end.
const LAST_PAGES: usize = 1000;

/// A reader with everything that it received.
#[derive(Debug, Clone)]
pub(crate) struct Follower {
    /// Time from which it must have all changes, in milliseconds; `None` if it has not started.
    pub(crate) since: Option<u64>,
    /// In the order in which they came, again after a restart.
    pub(crate) received: Vec<FeedChange>,
    /// The cursor that it kept.
    start: FeedStart,
}

/// All readers of the feed. Clones are the same.
#[derive(Clone)]
pub(crate) struct Followers {
    world: Arc<World>,
    wiring: Wiring,
    all: Arc<Vec<Mutex<Follower>>>,
    /// Readers that follow.
    active: Arc<AtomicUsize>,
    over: Arc<AtomicUsize>,
}

impl Followers {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring) -> Followers {
        let follower = |_| {
            Mutex::new(Follower {
                since: None,
                received: Vec::new(),
                start: FeedStart::Oldest,
            })
        };
        Followers {
            world: Arc::clone(world),
            wiring: wiring.clone(),
            all: Arc::new((0..world.profile.followers).map(follower).collect()),
            active: Arc::default(),
            over: Arc::default(),
        }
    }

    pub(crate) fn all(&self) -> Vec<Follower> {
        self.all.iter().map(|one| lock(one).clone()).collect()
    }

    pub(crate) fn start(&self, began: Instant) {
        for number in 0..self.all.len() {
            let chance = &self.world.chance;
            // The first one reads everything from the start; others come later.
            let (moment, start) = match number {
                0 => (Duration::ZERO, FeedStart::Oldest),
                _ => {
                    let start = match chance.happens(0.5) {
                        true => FeedStart::Oldest,
                        false => FeedStart::Now,
                    };
                    (chance.within(self.world.profile.span), start)
                }
            };
            let followers = self.clone();
            self.active.fetch_add(1, Ordering::Relaxed);
            self.world.spawner.spawn(async move {
                until(began, moment).await;
                followers.follow(number, start).await;
                followers.active.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }

    async fn follow(&self, number: usize, start: FeedStart) {
        let world = &self.world;
        lock(&self.all[number]).start = start;
        let mut feed = None;
        while self.over.load(Ordering::Relaxed) == 0 {
            self.pause().await;
            let reader = feed.take().unwrap_or_else(|| self.feed());
            let limit = world.chance.between(1, 8) as usize;
            let wait = *world.chance.pick(&[Duration::ZERO, Duration::ZERO, WAIT]);
            let Some(page) = self.page(number, &reader, limit, wait).await else {
                continue;
            };
            let has_more = page.has_more;
            if world.draws_fault(LOST_CURSORS) {
                world.trace.step("cursor lost", || number.to_string());
                continue;
            }
            lock(&self.all[number]).start = FeedStart::parse(&page.cursor.0);
            feed = Some(reader).filter(|_| has_more || world.chance.happens(0.8));
        }
    }

    async fn pause(&self) {
        let chance = &self.world.chance;
        let [short, _, long] = PAUSES;
        // In bursts it reads after every few writes, and otherwise seldom.
        let (wait, often, pause) = match self.world.profile.aims.needs_bursts() {
            true => (long, 0.25, short),
            false => {
                let pause = *chance.pick(&PAUSES);
                (pause, 0.5, pause)
            }
        };
        if chance.happens(often) {
            let _ = tokio::time::timeout(wait, self.world.cloud.written()).await;
        }
        tokio::time::sleep(chance.within(pause)).await;
    }

    /// A reader without the memory of earlier ones, with a clock of its own.
    fn feed(&self) -> Feed {
        let skew = self.world.profile.skew;
        let ahead = self.world.chance.between(0, 2 * skew as u64) as i64 - skew;
        self.wiring.change_feed(self.world.clock.ahead(ahead))
    }

    /// Reads a page from the cursor that was kept; `None` if that fails.
    async fn page(
        &self,
        number: usize,
        feed: &Feed,
        limit: usize,
        wait: Duration,
    ) -> Option<FeedPage> {
        let world = &self.world;
        let (start, filter) = (lock(&self.all[number]).start.clone(), FeedFilter::default());
        let work = feed.read(&start, limit, wait, &filter);
        match world.run_crashing("follower", TIMEOUT, work).await? {
            Ok(page) => {
                let mut follower = lock(&self.all[number]);
                if start == FeedStart::Now {
                    // Without a cursor it starts anew, as if it had read nothing.
                    follower.received.clear();
                    follower.since = Some(world.clock.milliseconds());
                }
                follower.since.get_or_insert(0);
                follower.received.extend(page.changes.iter().cloned());
                world.trace.step("feed", || {
                    let ids = page.changes.iter().map(|change| &change.id[..]);
                    format!("{number} {:?} {}", ids.collect::<Vec<_>>(), page.cursor.0)
                });
                Some(page)
            }
            Err(FeedError::Store(_)) => None,
            Err(error) => {
                world.broken("cursors-stay-valid", format!("{start:?}: {error}"));
                None
            }
        }
    }

    /// Reads the feed from its start, without faults.
    pub(crate) async fn all_changes(&self) -> Vec<FeedChange> {
        let (feed, filter) = (self.feed(), FeedFilter::default());
        let (mut start, mut changes) = (FeedStart::Oldest, Vec::new());
        for _ in 0..LAST_PAGES {
            match feed.read(&start, 100, Duration::ZERO, &filter).await {
                Ok(page) if page.changes.is_empty() && !page.has_more => return changes,
                Ok(page) => {
                    changes.extend(page.changes);
                    start = FeedStart::parse(&page.cursor.0);
                }
                Err(error) => {
                    let seen = format!("{start:?}: {error}");
                    self.world.broken("cursors-stay-valid", seen);
                    return changes;
                }
            }
        }
        let seen = "a new reader of the feed does not reach its end".to_owned();
        self.world.broken("everything-settles", seen);
        changes
    }

    /// Reads up to the end, without faults.
    pub(crate) async fn finish(&self) {
        self.over.store(1, Ordering::Relaxed);
        while self.active.load(Ordering::Relaxed) > 0 {
            tokio::time::sleep(PAUSES[0]).await;
        }
        tokio::time::sleep(RESERVATIONS_END).await;
        for number in 0..self.all.len() {
            let feed = self.feed();
            let mut is_at_end = false;
            for _ in 0..LAST_PAGES {
                let page = self.page(number, &feed, 100, Duration::ZERO).await;
                let Some(page) = page else {
                    break;
                };
                lock(&self.all[number]).start = FeedStart::parse(&page.cursor.0);
                if page.changes.is_empty() && !page.has_more {
                    is_at_end = true;
                    break;
                }
            }
            if !is_at_end {
                let seen = format!("reader {number} of the feed does not reach its end");
                self.world.broken("everything-settles", seen);
            }
        }
    }
}
