//! A million sensors with a silence of five minutes, in 128 shards, at five milliseconds a call: all due at once, and all back
//! within a minute. The largest of sixteen groups is simulated; the groups share nothing.
//!
//! The key of a shard in the index takes at most 1,000 write units a second: a shard has 7,800 sensors. Their signals after an
//! outage of all, within a minute, are 130 units a second. A sweep rearms 350 of them a second, with two units each, and
//! takes 23 seconds.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_liveness_sweep::{Report, Sweeper};
use antumbra_service::clock::{Clock, time_left};
use antumbra_service::liveness::{Limits, SweepGroup};
use antumbra_service::paging::{Cursor, open_cursor, seal_cursor};
use antumbra_service::sensors::{CheckOutcome, LivenessIndex, Page, SensorId, StoreError};
use antumbra_shadow::Timestamp;
use antumbra_testkit::progress::MemoryProgress;
use antumbra_testkit::sensors::sample::at;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

const SENSORS: usize = 1_000_000;
const SHARDS: u32 = 128;
const GROUPS: u32 = 16;
const CALL: Duration = Duration::from_millis(5);
/// Time that a sweep has after it has waited for its marker and for signals that the marker overtook.
const TIME: Duration = Duration::from_secs(55 - 10 - 5 - 2);
/// Write units a second that DynamoDB allows for one key of an index.
const WRITE_UNITS: u32 = 1_000;
/// Time in which all sensors return.
const RETURN_SECONDS: usize = 60;

/// The paused clock of the runtime.
#[derive(Clone, Copy)]
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        at(0).after(self.0.elapsed())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    /// All sensors are due, and send signals.
    Live,
    /// All sensors are due and silent.
    Silent,
    /// All sensors were lost. Each sends a signal, one after another, and is due from then on.
    Returning,
}

#[derive(Default)]
struct Counts {
    in_flight: usize,
    most_in_flight: usize,
    /// Write units of the index by shard and second.
    units: HashMap<(u32, u64), u32>,
    checked: HashSet<SensorId>,
}

#[derive(Clone)]
struct Fleet {
    /// The sensors of each shard, in the order in which they return.
    shards: Arc<Vec<Vec<SensorId>>>,
    situation: Situation,
    clock: VirtualClock,
    counts: Arc<Mutex<Counts>>,
}

fn shards() -> Arc<Vec<Vec<SensorId>>> {
    let mut shards = vec![Vec::new(); SHARDS as usize];
    for number in 0..SENSORS {
        let id = SensorId::new(format!("sensor-{number}")).unwrap();
        let shard = id.shard(SHARDS);
        shards[shard as usize].push(id);
    }
    Arc::new(shards)
}

/// The largest group, and its shards.
fn largest_group(shards: &[Vec<SensorId>]) -> (SweepGroup, Vec<u32>) {
    let groups = (0..GROUPS).map(|number| SweepGroup::new(number, GROUPS).unwrap());
    let of = |group: &SweepGroup| -> Vec<u32> {
        (0..SHARDS).filter(|shard| group.has(*shard)).collect()
    };
    let sensors = |group: &SweepGroup| -> usize {
        let shards = of(group)
            .into_iter()
            .map(|shard| shards[shard as usize].len());
        shards.sum()
    };
    assert_eq!(
        groups.clone().map(|group| sensors(&group)).sum::<usize>(),
        SENSORS
    );
    let largest = groups.max_by_key(sensors).unwrap();
    assert!(sensors(&largest) < SENSORS / GROUPS as usize * 11 / 10);
    (largest, of(&largest))
}

impl Fleet {
    fn new(shards: &Arc<Vec<Vec<SensorId>>>, situation: Situation) -> Fleet {
        let mut counts = Counts::default();
        if situation == Situation::Returning {
            for (shard, sensors) in (0..).zip(shards.iter()) {
                for number in 0..sensors.len() {
                    // The signal adds the sensor to the index.
                    let second = (number * RETURN_SECONDS / sensors.len()) as u64;
                    *counts.units.entry((shard, second)).or_default() += 1;
                }
            }
        }
        Fleet {
            shards: Arc::clone(shards),
            situation,
            clock: VirtualClock(Instant::now()),
            counts: Arc::new(Mutex::new(counts)),
        }
    }

    async fn call(&self) {
        {
            let mut counts = self.counts.lock().unwrap();
            counts.in_flight += 1;
            counts.most_in_flight = counts.most_in_flight.max(counts.in_flight);
        }
        tokio::time::sleep(CALL).await;
        self.counts.lock().unwrap().in_flight -= 1;
    }

    /// A write of a sensor that changes the index.
    async fn write(&self, id: &SensorId, units: u32) {
        self.call().await;
        let second = self.clock.0.elapsed().as_secs();
        let mut counts = self.counts.lock().unwrap();
        let shard = id.shard(SHARDS);
        *counts.units.entry((shard, second)).or_default() += units;
        counts.checked.insert(id.clone());
    }

    fn most_units(&self) -> u32 {
        let counts = self.counts.lock().unwrap();
        counts.units.values().copied().max().unwrap()
    }

    async fn sweep(&self, group: SweepGroup) -> Report {
        let sweeper = Sweeper::new(
            self.clone(),
            MemoryProgress::default(),
            None,
            Limits::default(),
            Arc::new(self.clock),
        );
        let deadline = self.clock.now().after(Duration::from_secs(55));
        sweeper.sweep(group, deadline).await.unwrap()
    }
}

impl LivenessIndex for Fleet {
    fn shards(&self) -> u32 {
        SHARDS
    }

    async fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorId>, StoreError> {
        self.call().await;
        let from = match cursor {
            None => 0,
            Some(cursor) => open_cursor(cursor).unwrap()[0].parse().unwrap(),
        };
        let sensors = &self.shards[shard as usize];
        let seconds = time_left(at(0), now).as_secs() as usize;
        let due = match self.situation {
            Situation::Returning => sensors.len() * seconds.min(RETURN_SECONDS) / RETURN_SECONDS,
            Situation::Live | Situation::Silent => sensors.len(),
        };
        let counts = self.counts.lock().unwrap();
        let found = sensors[..due].iter().enumerate().skip(from);
        let found = found.filter(|(_, id)| !counts.checked.contains(*id));
        let page: Vec<_> = found.take(limit).collect();
        let next = page.last().map(|(last, _)| last + 1);
        let next = next.filter(|next| *next < due && page.len() == limit);
        Ok(Page {
            rows: page.into_iter().map(|(_, id)| id.clone()).collect(),
            next: next.map(|next| seal_cursor(&[&next.to_string()])),
        })
    }

    async fn are_live(&self, ids: &[SensorId], _: Timestamp) -> Result<Vec<bool>, StoreError> {
        // A hundred keys a call; the calls of a page are made at once.
        self.call().await;
        Ok(vec![self.situation != Situation::Silent; ids.len()])
    }

    async fn rearm(&self, id: &SensorId) -> Result<CheckOutcome, StoreError> {
        // Moves its entry.
        self.write(id, 2).await;
        Ok(CheckOutcome::Rearmed)
    }

    async fn check(&self, id: &SensorId, _: Timestamp) -> Result<CheckOutcome, StoreError> {
        // Removes its entry.
        self.write(id, 1).await;
        Ok(CheckOutcome::Lost)
    }
}

#[tokio::test(start_paused = true)]
async fn a_million_sensors_are_swept_within_a_minute() {
    let shards = shards();
    let (group, own) = largest_group(&shards);
    let sensors: usize = own.iter().map(|shard| shards[*shard as usize].len()).sum();
    for situation in [Situation::Live, Situation::Silent] {
        let fleet = Fleet::new(&shards, situation);
        let report = fleet.sweep(group).await;
        assert!(report.finished);
        assert_eq!(report.checked, sensors);
        let expected = match situation {
            Situation::Silent => report.lost,
            _ => report.rearmed,
        };
        assert_eq!(expected, sensors);
        let (time, units) = (fleet.clock.0.elapsed(), fleet.most_units());
        eprintln!("{situation:?}: {sensors} of a group in {time:?}, {units} units/s at most");
        assert!(time < TIME, "{time:?}");
        assert!(units <= WRITE_UNITS, "{units}");
        // Concurrency is bounded: checks, and a page of each shard of the group.
        let most = fleet.counts.lock().unwrap().most_in_flight;
        let bound = Limits::default().at_once + (SHARDS / GROUPS) as usize;
        assert!(most <= bound, "{most}");
    }
}

/// Sweeps half a minute after the first return, and a minute later.
#[tokio::test(start_paused = true)]
async fn the_return_of_a_million_sensors_overloads_no_key_of_the_index() {
    let shards = shards();
    let (group, own) = largest_group(&shards);
    let sensors: usize = own.iter().map(|shard| shards[*shard as usize].len()).sum();
    let fleet = Fleet::new(&shards, Situation::Returning);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let first = fleet.sweep(group).await;
    let until = fleet.clock.0 + Duration::from_secs(90);
    tokio::time::sleep_until(until).await;
    let second = fleet.sweep(group).await;
    assert!(first.finished && second.finished);
    assert_eq!(first.rearmed + second.rearmed, sensors);
    let took = until.elapsed();
    let units = fleet.most_units();
    eprintln!("the return of {sensors} of a group: {units} units/s at most, swept in {took:?}");
    assert!(took < TIME, "{took:?}");
    assert!(units <= WRITE_UNITS, "{units}");
}
