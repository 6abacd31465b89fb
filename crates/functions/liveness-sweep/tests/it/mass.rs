//! A hundred thousand sensors, of which forty thousand vanish at once, and twenty thousand that return.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use antumbra_liveness_sweep::Sweeper;
use antumbra_service::clock::{Clock, ManualClock};
use antumbra_service::liveness::{Limits, SweepGroup};
use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::sensors::{Connection, EventType, SensorEvent, StateStore};
use antumbra_testkit::progress::MemoryProgress;
use antumbra_testkit::sensors::MemorySensors;
use antumbra_testkit::sensors::sample::{NOON_MS, at, registered, signal};
use futures_util::future::join;

const SENSORS: usize = 100_000;
const VANISH: usize = 40_000;
const HOURS: i64 = 3;

#[tokio::test]
async fn a_silent_fleet_is_lost_once_and_no_other_sensor_is() {
    let sensors = MemorySensors::default().without_readings();
    let clock = Arc::new(ManualClock::new(at(0)));
    let lost: Arc<Mutex<BTreeMap<String, i64>>> = Arc::default();
    let (found, time) = (Arc::clone(&lost), Arc::clone(&clock));
    sensors.watch(move |_, new| {
        if new.connection == Connection::Lost {
            let late = milliseconds(time.now()) - milliseconds(new.deadline);
            let again = found.lock().unwrap().insert(new.sensor.to_string(), late);
            assert_eq!(again, None, "once");
        }
    });
    let names: Vec<String> = (0..SENSORS).map(|n| format!("s{n}")).collect();
    for name in &names {
        registered(&sensors, name).await;
    }
    let before = sensors.figures();
    let started = Instant::now();
    let mut messages = 0;
    for minute in 1..=HOURS * 60 {
        // Every sensor sends a signal twice an hour, evenly spread; some fall silent in minute 65.
        for (n, name) in names
            .iter()
            .enumerate()
            .skip((minute % 30) as usize)
            .step_by(30)
        {
            if n >= VANISH || minute < 65 {
                let sent = minute * 60 - 30;
                sensors.record(&signal(name, 1, sent, sent)).await.unwrap();
                messages += 1;
            }
        }
        let now = milliseconds(clock.now());
        clock.advance(Duration::from_millis(
            (NOON_MS + minute * 60_000 - now) as u64,
        ));
        let sweeper = || {
            let progress = MemoryProgress::default();
            Sweeper::new(
                sensors.clone(),
                progress,
                None,
                Limits::default(),
                clock.clone(),
            )
        };
        let deadline = clock.now().after(Duration::from_secs(50));
        let (one, two) = (sweeper(), sweeper());
        let (one, two) = join(
            one.sweep(SweepGroup::ALL, deadline),
            two.sweep(SweepGroup::ALL, deadline),
        )
        .await;
        assert!(one.unwrap().finished && two.unwrap().finished);
    }
    let after = sensors.figures();
    let lost = lost.lock().unwrap();
    assert_eq!(lost.len(), VANISH);
    assert!(
        lost.keys()
            .all(|name| name[1..].parse::<usize>().unwrap() < VANISH)
    );
    let latest = *lost.values().max().unwrap();
    assert!(
        lost.values().all(|late| (0..=60_000).contains(late)),
        "{latest}"
    );

    // Cost of the index: a check rearms a sensor, which moves it (two writes), about once per silence timeout; a
    // lost sensor leaves the index.
    let index = after.index_writes - before.index_writes;
    let periods = (SENSORS as i64 * HOURS) as f64;
    let per_period = index as f64 / periods;
    eprintln!(
        "{SENSORS} sensors over {HOURS} h, {VANISH} vanish: {} found lost, none early, late by {:.1} s at \
         most; {messages} messages, {index} index writes, {per_period:.2} per sensor and period of \
         silence, {:.3} per message; {:.1} s of work",
        lost.len(),
        latest as f64 / 1000.0,
        index as f64 / f64::from(messages),
        started.elapsed().as_secs_f64(),
    );
    assert!(per_period <= 3.0, "{per_period}");
}

/// Events of each sensor, with their sequence numbers.
type Events = BTreeMap<String, Vec<(EventType, u64)>>;

/// All sensors are lost, and send again within a minute, while two sweeps run every second. Their signals come twice. The
/// states cause the events of each sensor once, without a gap.
#[tokio::test]
async fn every_sensor_of_a_mass_return_is_restored_once() {
    const RETURNING: usize = 20_000;
    let sensors = MemorySensors::default().without_readings();
    let events: Arc<Mutex<Events>> = Arc::default();
    let seen = Arc::clone(&events);
    sensors.watch(move |old, new| {
        let mut seen = seen.lock().unwrap();
        for event in SensorEvent::between(old, new) {
            let of = seen.entry(event.sensor.to_string()).or_default();
            of.push((event.event_type(), event.sequence));
        }
    });
    let names: Vec<String> = (0..RETURNING).map(|n| format!("s{n}")).collect();
    for name in &names {
        registered(&sensors, name).await;
        sensors.record(&signal(name, 1, 1, 1)).await.unwrap();
    }
    let sweep = async |second: i64| {
        let clock = Arc::new(ManualClock::new(at(second)));
        let progress = MemoryProgress::default();
        let limits = Limits {
            page_period: Duration::ZERO,
            ..Limits::default()
        };
        let sweeper = Sweeper::new(sensors.clone(), progress, None, limits, clock);
        let deadline = at(second).after(Duration::from_secs(50));
        let (one, two) = join(
            sweeper.sweep(SweepGroup::ALL, deadline),
            sweeper.sweep(SweepGroup::ALL, deadline),
        )
        .await;
        let (one, two) = (one.unwrap(), two.unwrap());
        assert!(one.finished && two.finished);
        one.lost + two.lost
    };
    assert_eq!(sweep(2 * 3600).await, RETURNING);
    let before = sensors.figures();
    for second in 0..60 {
        let sent = 3 * 3600 + second;
        for name in names.iter().skip(second as usize).step_by(60) {
            for _ in 0..2 {
                sensors.record(&signal(name, 1, sent, sent)).await.unwrap();
            }
        }
        assert_eq!(sweep(sent).await, 0);
    }
    let events = events.lock().unwrap();
    assert_eq!(events.len(), RETURNING);
    let expected = [
        (EventType::ConnectionLost, 1),
        (EventType::ConnectionRestored, 2),
    ];
    assert!(events.values().all(|of| *of == expected));
    // The return adds a sensor to the index, and the next sweep moves it to its deadline.
    let index = sensors.figures().index_writes - before.index_writes;
    assert_eq!(index, 3 * RETURNING as u64);
}
