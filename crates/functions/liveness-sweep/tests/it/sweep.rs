//! One sweep: each sensor is found once, the rest is left to the next sweep, failures are reported.

use std::sync::Arc;
use std::time::Duration;

use antumbra_liveness_sweep::{Report, SweepError, Sweeper, queue_probe};
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::liveness::{Limits, QueueProbe, SweepGroup};
use antumbra_service::paging::Cursor;
use antumbra_service::sensors::{
    CheckOutcome, Connection, LivenessIndex, Page, SensorId, State, StateStore, StoreError,
};
use antumbra_shadow::Timestamp;
use antumbra_testkit::RecordingChannel;
use antumbra_testkit::progress::MemoryProgress;
use antumbra_testkit::sensors::MemorySensors;
use antumbra_testkit::sensors::sample::{at, record, registered, signal, state};
use futures_util::future::join_all;

const MINUTE: Duration = Duration::from_secs(60);

/// Checks take a millisecond each and fail for some sensors.
struct Slow {
    sensors: MemorySensors,
    clock: Arc<ManualClock>,
}

impl LivenessIndex for Slow {
    fn shards(&self) -> u32 {
        self.sensors.shards()
    }

    async fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorId>, StoreError> {
        self.sensors.due(shard, now, limit, cursor).await
    }

    async fn are_live(&self, ids: &[SensorId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        self.sensors.are_live(ids, now).await
    }

    async fn rearm(&self, id: &SensorId) -> Result<CheckOutcome, StoreError> {
        self.sensors.rearm(id).await
    }

    async fn check(&self, id: &SensorId, now: Timestamp) -> Result<CheckOutcome, StoreError> {
        self.clock.advance(Duration::from_millis(1));
        match id.as_str() {
            busy if busy.starts_with("busy") => Err(StoreError::Throttled),
            _ => self.sensors.check(id, now).await,
        }
    }
}

/// Without a queue, so that the watermark is the current time.
fn sweeper(sensors: &MemorySensors, clock: &Arc<ManualClock>) -> Sweeper<Slow, MemoryProgress> {
    let slow = Slow {
        sensors: sensors.clone(),
        clock: Arc::clone(clock),
    };
    let limits = Limits {
        at_once: 4,
        page: 10,
        page_period: Duration::ZERO,
    };
    let progress = MemoryProgress::default();
    Sweeper::new(slow, progress, None, limits, clock.clone())
}

fn clock(seconds: i64) -> Arc<ManualClock> {
    Arc::new(ManualClock::new(at(seconds)))
}

async fn run(sensors: &MemorySensors, clock: &Arc<ManualClock>) -> Report {
    let deadline = clock.now().after(MINUTE);
    sweeper(sensors, clock)
        .sweep(SweepGroup::ALL, deadline)
        .await
        .unwrap()
}

async fn state_of(sensors: &MemorySensors, name: &str) -> State {
    state(sensors, name).await
}

#[tokio::test]
async fn a_sensor_is_lost_exactly_at_its_deadline() {
    let sensors = MemorySensors::default();
    registered(&sensors, "a").await;
    record(&sensors, &signal("a", 1, 60, 60)).await;
    // Checked early, because it was registered before its first signal; rearmed for its deadline.
    let early = run(&sensors, &clock(3600)).await;
    assert_eq!((early.lost, early.rearmed), (0, 1));
    let almost = Arc::new(ManualClock::new(Timestamp::from_nanoseconds(
        at(3660).nanoseconds() - 1_000_000,
    )));
    assert_eq!(
        run(&sensors, &almost).await.checked,
        0,
        "not even looked at"
    );
    let due = run(&sensors, &clock(3660)).await;
    assert_eq!((due.lost, due.finished), (1, true));
    let lost = state_of(&sensors, "a").await;
    assert_eq!((lost.connection, lost.sequence()), (Connection::Lost, 1));
    assert_eq!(
        run(&sensors, &clock(9999)).await.checked,
        0,
        "once per outage"
    );
}

#[tokio::test]
async fn a_sensor_without_signals_is_lost_once() {
    let sensors = MemorySensors::default();
    registered(&sensors, "a").await;
    assert_eq!(run(&sensors, &clock(3599)).await.lost, 0);
    assert_eq!(run(&sensors, &clock(3600)).await.lost, 1);
    assert_eq!(run(&sensors, &clock(3660)).await.checked, 0);
    let state = state_of(&sensors, "a").await;
    assert_eq!(
        (state.connection, state.last_seen),
        (Connection::Lost, None)
    );
}

#[tokio::test]
async fn concurrent_sweeps_lose_each_sensor_once() {
    let sensors = MemorySensors::default();
    for n in 0..500 {
        registered(&sensors, &format!("s{n}")).await;
    }
    let clock = clock(4000);
    let reports = join_all((0..5).map(|_| run(&sensors, &clock))).await;
    assert_eq!(reports.iter().map(|report| report.lost).sum::<usize>(), 500);
    assert!(reports.iter().all(|report| report.finished));
}

#[tokio::test]
async fn unchecked_sensors_are_left_to_the_next_sweep() {
    let sensors = MemorySensors::default();
    for n in 0..1000 {
        registered(&sensors, &format!("s{n}")).await;
    }
    let clock = clock(4000);
    let mut lost = Vec::new();
    loop {
        let deadline = clock.now().after(Duration::from_millis(300));
        let report = sweeper(&sensors, &clock)
            .sweep(SweepGroup::ALL, deadline)
            .await
            .unwrap();
        lost.push(report.lost);
        if report.finished {
            break;
        }
        assert!(lost.len() < 10);
    }
    assert_eq!(lost.iter().sum::<usize>(), 1000);
    assert!(lost.len() > 2, "{lost:?}");
}

#[tokio::test]
async fn a_failed_check_blocks_no_other() {
    let sensors = MemorySensors::default();
    for name in ["a", "busy", "b"] {
        registered(&sensors, name).await;
    }
    let report = run(&sensors, &clock(4000)).await;
    assert_eq!((report.lost, report.failed, report.finished), (2, 1, false));
    let sensors = MemorySensors::default();
    registered(&sensors, "busy").await;
    let clock = clock(4000);
    let error = sweeper(&sensors, &clock)
        .sweep(SweepGroup::ALL, clock.now().after(MINUTE))
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "all 1 checks failed, one of them: throttled"
    );
}

fn unread() -> QueueProbe {
    let url = "https://sqs.eu-north-1.amazonaws.com/123456789012/antumbra-signals";
    queue_probe(
        Arc::new(RecordingChannel::default()),
        url,
        Duration::from_secs(10),
        Duration::ZERO,
    )
}

#[tokio::test]
async fn no_sensor_is_lost_while_the_queue_is_not_read() {
    use antumbra_service::liveness::IngestProgress as _;
    let sensors = MemorySensors::default();
    registered(&sensors, "a").await;
    registered(&sensors, "b").await;
    let progress = MemoryProgress::default();
    let clock = clock(4000);
    let sweeper = Sweeper::new(
        sensors.clone(),
        progress.clone(),
        Some(unread()),
        Limits::default(),
        clock.clone(),
    );
    let deadline = clock.now().after(MINUTE);
    let report = sweeper.sweep(SweepGroup::ALL, deadline).await.unwrap();
    assert_eq!(report, Report::default(), "never read: nothing is known");
    // Read until just before they were due, and then no more.
    progress.note("antumbra-signals", at(3599)).await.unwrap();
    for _ in 0..5 {
        let report = sweeper
            .sweep(SweepGroup::ALL, clock.now().after(MINUTE))
            .await
            .unwrap();
        assert_eq!((report.lost, report.checked), (0, 0));
        assert!(report.behind_milliseconds.unwrap() > 400_000);
    }
    // One of them had sent a signal in time; now it is processed.
    sensors.record(&signal("b", 1, 3590, 3590)).await.unwrap();
    progress.note("antumbra-signals", at(3600)).await.unwrap();
    let report = sweeper
        .sweep(SweepGroup::ALL, clock.now().after(MINUTE))
        .await
        .unwrap();
    assert_eq!((report.lost, report.rearmed), (1, 1));
    assert_eq!(state_of(&sensors, "b").await.connection, Connection::Online);
    progress.fail(true);
    let error = sweeper
        .sweep(SweepGroup::ALL, clock.now().after(MINUTE))
        .await
        .unwrap_err();
    assert!(matches!(error, SweepError::Progress(StoreError::Throttled)));
}
