//! Ingest watermark: an idle queue returns the marker, a queue without a reader does not, and
//! a queue that is behind delays the watermark by as much.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::liveness::{IngestProgress, QueueProbe, ingest_watermark};
use antumbra_service::notifications::Channel;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_testkit::{RecordingChannel, SendReply};

const WAIT: Duration = Duration::from_secs(10);

/// Times at which a marker is sent and read.
type Marker = (Timestamp, Option<Timestamp>);

/// A queue whose markers are read some time after they were sent, or never.
struct Queue {
    clock: Arc<ManualClock>,
    channel: Arc<RecordingChannel>,
    read_after: Arc<Mutex<Option<Duration>>>,
    markers: Arc<Mutex<Vec<Marker>>>,
    reads: Mutex<usize>,
}

impl Queue {
    fn new(clock: &Arc<ManualClock>, read_after: Option<Duration>) -> Queue {
        let queue = Queue {
            clock: Arc::clone(clock),
            channel: Arc::default(),
            read_after: Arc::new(Mutex::new(read_after)),
            markers: Arc::default(),
            reads: Mutex::default(),
        };
        let (clock, markers) = (Arc::clone(clock), Arc::clone(&queue.markers));
        let read_after = Arc::clone(&queue.read_after);
        queue.channel.reply(move |message| {
            assert_eq!(message.body, "marker");
            let now = clock.now();
            let read = read_after.lock().unwrap().map(|after| now.after(after));
            markers.lock().unwrap().push((now, read));
            SendReply::Accept
        });
        queue
    }

    fn probe(&self) -> QueueProbe {
        QueueProbe {
            queue: Arc::clone(&self.channel) as Arc<dyn Channel>,
            name: "signals".to_owned(),
            marker: "marker",
            wait: WAIT,
            settle: Duration::ZERO,
        }
    }

    async fn watermark(&self) -> Option<Timestamp> {
        let watermark = ingest_watermark(&self.probe(), self, &self.clock).await;
        watermark.unwrap()
    }
}

impl IngestProgress for Queue {
    async fn note(&self, _: &str, _: Timestamp) -> Result<(), StoreError> {
        unreachable!("the queue is its own reader")
    }

    async fn reached(&self, queue: &str) -> Result<Option<Timestamp>, StoreError> {
        assert_eq!(queue, "signals");
        *self.reads.lock().unwrap() += 1;
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
async fn an_idle_queue_returns_the_marker() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::from_millis(250)));
    let start = clock.now();
    let found = queue.watermark().await;
    assert_eq!(found, Some(start), "everything sent before the sweep is in");
    assert!(
        clock.now() <= start.after(seconds(1)),
        "and that is known at once"
    );
    assert!(*queue.reads.lock().unwrap() <= 4);
}

#[tokio::test]
async fn a_queue_that_was_never_read_has_no_watermark() {
    let clock = at_noon();
    let queue = Queue::new(&clock, None);
    let start = clock.now();
    assert_eq!(queue.watermark().await, None);
    assert!(clock.now() <= start.after(WAIT));
    assert!(*queue.reads.lock().unwrap() < 20);
}

#[tokio::test]
async fn a_paused_queue_stops_the_watermark() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::ZERO));
    let last = queue.watermark().await;
    *queue.read_after.lock().unwrap() = None;
    for _ in 0..5 {
        clock.advance(seconds(60));
        assert_eq!(queue.watermark().await, last);
    }
    // The queue is read again, including the messages sent in between.
    *queue.read_after.lock().unwrap() = Some(Duration::ZERO);
    let now = clock.now();
    assert_eq!(queue.watermark().await, Some(now));
}

#[tokio::test]
async fn the_watermark_lags_as_much_as_the_queue() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(seconds(90)));
    let mut found = Vec::new();
    for minute in 0..5 {
        let tick = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        let tick = tick.after(seconds(60 * minute));
        clock.advance(antumbra_service::clock::time_left(clock.now(), tick));
        found.push(queue.watermark().await);
    }
    let expected = [None, None, Some("12:00"), Some("12:01"), Some("12:02")];
    let expected = expected
        .map(|time| time.map(|time| Timestamp::parse(&format!("2026-01-31T{time}:00Z")).unwrap()));
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_queue_that_rejects_the_marker_keeps_its_watermark() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::ZERO));
    let last = queue.watermark().await;
    queue.channel.reply(|_| SendReply::deny("no such queue"));
    clock.advance(seconds(60));
    assert_eq!(queue.watermark().await, last);
}

#[tokio::test]
async fn messages_that_the_marker_overtook_are_waited_for() {
    let clock = at_noon();
    let queue = Queue::new(&clock, Some(Duration::ZERO));
    let start = clock.now();
    let probe = QueueProbe {
        settle: seconds(5),
        ..queue.probe()
    };
    assert_eq!(
        ingest_watermark(&probe, &queue, &clock).await.unwrap(),
        Some(start)
    );
    assert_eq!(clock.now(), start.after(seconds(5)));
}
