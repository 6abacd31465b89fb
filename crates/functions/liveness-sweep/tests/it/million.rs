//! A million sensors with a silence of five minutes, all due at once, at five milliseconds a call. One of sixteen groups is
//! simulated; the groups are of the same size and share nothing.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use antumbra_liveness_sweep::Sweeper;
use antumbra_service::clock::Clock;
use antumbra_service::liveness::{Limits, SweepGroup};
use antumbra_service::paging::{Cursor, open_cursor, seal_cursor};
use antumbra_service::sensors::{
    CheckOutcome, DEFAULT_SHARDS, LivenessIndex, Page, SensorId, StoreError,
};
use antumbra_shadow::Timestamp;
use antumbra_testkit::progress::MemoryProgress;
use antumbra_testkit::sensors::sample::at;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

const SENSORS: usize = 1_000_000;
const GROUPS: u32 = 16;
const CALL: Duration = Duration::from_millis(5);
/// Time that a sweep has after it has waited for its marker and for signals that the marker overtook.
const TIME: Duration = Duration::from_secs(55 - 10 - 5 - 2);

/// The paused clock of the runtime.
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        at(0).after(self.0.elapsed())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// The sensors of each shard.
struct Fleet {
    shards: Vec<Vec<SensorId>>,
    live: bool,
}

thread_local! {
    static IN_FLIGHT: RefCell<(usize, usize)> = const { RefCell::new((0, 0)) };
}

impl Fleet {
    fn new(live: bool) -> Fleet {
        let mut shards = vec![Vec::new(); DEFAULT_SHARDS as usize];
        for number in 0..SENSORS {
            let id = SensorId::new(format!("sensor-{number}")).unwrap();
            let shard = id.shard(DEFAULT_SHARDS);
            shards[shard as usize].push(id);
        }
        Fleet { shards, live }
    }

    async fn call(&self) {
        IN_FLIGHT.with_borrow_mut(|(now, most)| {
            *now += 1;
            *most = (*most).max(*now);
        });
        tokio::time::sleep(CALL).await;
        IN_FLIGHT.with_borrow_mut(|(now, _)| *now -= 1);
    }
}

impl LivenessIndex for Fleet {
    fn shards(&self) -> u32 {
        DEFAULT_SHARDS
    }

    async fn due(
        &self,
        shard: u32,
        _: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorId>, StoreError> {
        self.call().await;
        let from = match cursor {
            None => 0,
            Some(cursor) => open_cursor(cursor).unwrap()[0].parse().unwrap(),
        };
        let sensors = &self.shards[shard as usize];
        let until = sensors.len().min(from + limit);
        Ok(Page {
            rows: sensors[from..until].to_vec(),
            next: (until < sensors.len()).then(|| seal_cursor(&[&until.to_string()])),
        })
    }

    async fn are_live(&self, ids: &[SensorId], _: Timestamp) -> Result<Vec<bool>, StoreError> {
        // A hundred keys a call; the calls of a page are made at once.
        self.call().await;
        Ok(vec![self.live; ids.len()])
    }

    async fn rearm(&self, _: &SensorId) -> Result<CheckOutcome, StoreError> {
        self.call().await;
        Ok(CheckOutcome::Rearmed)
    }

    async fn check(&self, _: &SensorId, _: Timestamp) -> Result<CheckOutcome, StoreError> {
        self.call().await;
        Ok(CheckOutcome::Lost)
    }
}

#[tokio::test(start_paused = true)]
async fn a_million_sensors_are_swept_within_a_minute() {
    for live in [true, false] {
        let fleet = Fleet::new(live);
        let groups: Vec<usize> = (0..GROUPS)
            .map(|number| {
                let group = SweepGroup::new(number, GROUPS).unwrap();
                let shards = (0..DEFAULT_SHARDS).filter(|shard| group.has(*shard));
                shards.map(|shard| fleet.shards[shard as usize].len()).sum()
            })
            .collect();
        assert_eq!(groups.iter().sum::<usize>(), SENSORS);
        let (largest, sensors) = groups.iter().enumerate().max_by_key(|of| of.1).unwrap();
        assert!(*sensors < SENSORS / GROUPS as usize * 11 / 10, "{groups:?}");

        let group = SweepGroup::new(largest as u32, GROUPS).unwrap();
        let began = Instant::now();
        let clock = Arc::new(VirtualClock(began));
        let deadline = clock.now().after(Duration::from_secs(55));
        let sweeper = Sweeper::new(
            fleet,
            MemoryProgress::default(),
            None,
            Limits::default(),
            clock,
        );
        let report = sweeper.sweep(group, deadline).await.unwrap();
        assert!(report.finished);
        assert_eq!(report.checked, *sensors);
        let expected = if live { report.rearmed } else { report.lost };
        assert_eq!(expected, *sensors);
        assert!(began.elapsed() < TIME, "{:?}", began.elapsed());
    }
    // Concurrency is bounded: checks, and a page of each shard of the group.
    let most = IN_FLIGHT.with_borrow(|(_, most)| *most);
    let bound = Limits::default().at_once + (DEFAULT_SHARDS / GROUPS) as usize;
    assert!(most <= bound, "{most}");
}
