//! How far the queue was read: an idle queue brings the marker back, one that nobody reads does not, and
//! one that is behind holds back by as much as it is behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::liveness::{IngestProgress, QueueProbe, ingest_watermark};
use antumbra_service::notifications::{BoxFuture, Channel, ChannelLimits, Message, SendError};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;

const WAIT: Duration = Duration::from_secs(10);

/// A queue whose messages are read so much after they were sent, or never.
struct Queue {
    clock: Arc<ManualClock>,
    read_after: Mutex<Option<Duration>>,
    refuses: Mutex<bool>,
    /// When markers were sent, and when each is read.
    markers: Mutex<Vec<(Timestamp, Option<Timestamp>)>>,
    looks: Mutex<usize>,
}

impl Queue {
    fn new(clock: &Arc<ManualClock>, read_after: Option<Duration>) -> Arc<Queue> {
        Arc::new(Queue {
            clock: Arc::clone(clock),
            read_after: Mutex::new(read_after),
            refuses: Mutex::default(),
            markers: Mutex::default(),
            looks: Mutex::default(),
        })
    }

    fn gauge(self: &Arc<Queue>) -> QueueProbe {
        QueueProbe {
            queue: Arc::clone(self) as Arc<dyn Channel>,
            name: "signals".to_owned(),
            marker: "marker",
            wait: WAIT,
            settle: Duration::ZERO,
        }
    }
}

impl Channel for Queue {
    fn limits(&self) -> ChannelLimits {
        ChannelLimits {
            batch_count: 10,
            batch_bytes: 1000,
            message_bytes: 1000,
        }
    }

    fn send<'a>(&'a self, messages: &'a [Message]) -> BoxFuture<'a, Vec<Result<(), SendError>>> {
        Box::pin(async move {
            assert_eq!(messages.len(), 1);
            assert_eq!(messages[0].body, "marker");
            if *self.refuses.lock().unwrap() {
                return vec![Err(SendError::Permanent("no such queue".to_owned()))];
            }
            let now = self.clock.now();
            let read = self
                .read_after
                .lock()
                .unwrap()
                .map(|after| now.after(after));
            self.markers.lock().unwrap().push((now, read));
            vec![Ok(())]
        })
    }
}

impl IngestProgress for Queue {
    async fn note(&self, _: &str, _: Timestamp) -> Result<(), StoreError> {
        unreachable!("the queue is its own reader")
    }

    async fn reached(&self, queue: &str) -> Result<Option<Timestamp>, StoreError> {
        assert_eq!(queue, "signals");
        *self.looks.lock().unwrap() += 1;
        let now = self.clock.now();
        let markers = self.markers.lock().unwrap();
        let read = markers
            .iter()
            .filter(|(_, read)| read.is_some_and(|read| read <= now));
        Ok(read.map(|(sent, _)| *sent).max())
    }
}

fn at_noon() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(
        Timestamp::parse("2026-01-31T12:00:00Z").unwrap(),
    ))
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test]
async fn an_idle_queue_brings_the_marker_back() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::from_millis(250)));
    let start = clock.now();
    let found = ingest_watermark(&queue.gauge(), &*queue, &clock)
        .await
        .unwrap();
    assert_eq!(found, Some(start), "everything sent before the sweep is in");
    assert!(
        clock.now() <= start.after(seconds(1)),
        "and that is known at once"
    );
    assert!(*queue.looks.lock().unwrap() <= 4);
}

#[tokio::test]
async fn a_queue_that_was_never_read_says_nothing() {
    let clock = at_noon();
    let queue = Queue::new(&clock, None);
    let start = clock.now();
    assert_eq!(
        ingest_watermark(&queue.gauge(), &*queue, &clock)
            .await
            .unwrap(),
        None
    );
    assert!(clock.now() <= start.after(WAIT));
    assert!(*queue.looks.lock().unwrap() < 20);
}

#[tokio::test]
async fn a_paused_queue_stops_the_horizon_where_it_was_paused() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::ZERO));
    let last = ingest_watermark(&queue.gauge(), &*queue, &clock)
        .await
        .unwrap();
    *queue.read_after.lock().unwrap() = None;
    for _ in 0..5 {
        clock.advance(seconds(60));
        assert_eq!(
            ingest_watermark(&queue.gauge(), &*queue, &clock)
                .await
                .unwrap(),
            last
        );
    }
    // Read again from now on; what was sent in between is read too.
    *queue.read_after.lock().unwrap() = Some(Duration::ZERO);
    let now = clock.now();
    assert_eq!(
        ingest_watermark(&queue.gauge(), &*queue, &clock)
            .await
            .unwrap(),
        Some(now)
    );
}

#[tokio::test]
async fn a_queue_that_is_behind_holds_back_by_as_much() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(seconds(90)));
    let mut found = Vec::new();
    for minute in 0..5 {
        let tick = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let tick = tick.after(seconds(60 * minute));
        clock.advance(antumbra_service::clock::time_left(clock.now(), tick));
        found.push(
            ingest_watermark(&queue.gauge(), &*queue, &clock)
                .await
                .unwrap(),
        );
    }
    let expected = [None, None, Some("12:00"), Some("12:01"), Some("12:02")];
    let expected = expected
        .map(|time| time.map(|time| Timestamp::parse(&format!("2026-01-31T{time}:00Z")).unwrap()));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_queue_that_takes_nothing_leaves_what_is_known() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::ZERO));
    let last = ingest_watermark(&queue.gauge(), &*queue, &clock)
        .await
        .unwrap();
    *queue.refuses.lock().unwrap() = true;
    clock.advance(seconds(60));
    assert_eq!(
        ingest_watermark(&queue.gauge(), &*queue, &clock)
            .await
            .unwrap(),
        last
    );
}

#[tokio::test]
async fn what_the_marker_overtook_is_waited_for() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::ZERO));
    let start = clock.now();
    let gauge = QueueProbe {
        settle: seconds(5),
        ..queue.gauge()
    };
    assert_eq!(
        ingest_watermark(&gauge, &*queue, &clock).await.unwrap(),
        Some(start)
    );
    assert_eq!(clock.now(), start.after(seconds(5)));
}
