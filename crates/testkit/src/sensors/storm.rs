//! Concurrent workers with duplicates and reordering, by a seed, and the checks of the result.

use std::collections::BTreeMap;

use antumbra_service::sensors::reading_time::milliseconds;
use antumbra_service::sensors::{
    EventDetail, Outcome, SensorEvent, SensorId, SensorStore, Signal, State, StateStore,
    StoreError, Value,
};
use futures_util::future::join_all;

use super::sample::{at, id, registered};

/// Old and new state of a write.
pub type Image = (Option<State>, State);

/// Parameters of a storm.
#[derive(Debug, Clone, Copy)]
pub struct Storm {
    pub seed: u64,
    pub sensors: usize,
    /// Number of different signals per sensor.
    pub signals: usize,
    pub workers: usize,
}

impl Storm {
    /// Registers the sensors and records their signals with all workers, each signal up to three times and out
    /// of order. Returns the signals and the number of outcomes of each kind.
    pub async fn blow<S: SensorStore + StateStore>(
        &self,
        store: &S,
    ) -> (Vec<Signal>, BTreeMap<&'static str, usize>) {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut signals = Vec::new();
        for n in 0..self.sensors {
            registered(store, &format!("s{n}")).await;
            signals.extend((0..self.signals).map(|k| some_signal(&mut random, n, k)));
        }
        let mut sent: Vec<(usize, &Signal)> = Vec::new();
        for (n, signal) in signals.iter().enumerate() {
            for _ in 0..random.usize(1..=3) {
                let late = if random.u8(..8) == 0 { 20 } else { 4 };
                sent.push((n % self.signals + random.usize(..late), signal));
            }
        }
        sent.sort_by_key(|(when, _)| *when);
        let sent = &sent;
        let workers = (0..self.workers).map(|worker| async move {
            let mut outcomes = Vec::new();
            for (_, signal) in sent.iter().skip(worker).step_by(self.workers) {
                outcomes.push(take_in(store, signal).await);
            }
            outcomes
        });
        let mut counted = BTreeMap::new();
        for outcome in join_all(workers).await.into_iter().flatten() {
            *counted.entry(outcome.as_str()).or_insert(0) += 1;
        }
        (signals, counted)
    }
}

/// Generates signals with two values, whose device time differs from the queue time by some seconds.
fn some_signal(random: &mut fastrand::Rng, sensor: usize, k: usize) -> Signal {
    let measured = 60 + k as i64 * 2;
    let sent = at(measured + random.i64(-9..=9));
    let numbered = random.bool().then_some(k as u64);
    let value = Value::whole(random.i64(0..=1));
    let message = format!("m-{sensor}-{k}");
    let measured = Some(at(measured)).filter(|_| random.u8(..10) > 0);
    Signal::new(
        id(&format!("s{sensor}")),
        value,
        measured,
        numbered,
        sent,
        &message,
    )
    .unwrap()
}

async fn take_in<S: StateStore>(store: &S, signal: &Signal) -> Outcome {
    for _ in 0..1000 {
        match store.record(signal).await {
            Ok(recorded) => return recorded.unwrap().outcome,
            Err(StoreError::Throttled | StoreError::Unavailable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    panic!("never taken in");
}

/// Asserts that the final state has the newest value and the latest contact, whatever the order was.
pub fn assert_end(signals: &[Signal], end: &State) {
    let ours: Vec<&Signal> = signals
        .iter()
        .filter(|s| *s.sensor() == end.sensor)
        .collect();
    let newest = ours.iter().max_by_key(|signal| signal.moment()).unwrap();
    assert_eq!(end.value.as_ref(), Some(newest.value()));
    assert_eq!(end.moment.as_ref(), Some(newest.moment()));
    let latest = ours.iter().map(|signal| signal.sent()).max();
    assert_eq!(end.last_seen, latest);
    let silence = end.silence_after.as_milliseconds();
    let deadline = latest.map(|latest| milliseconds(latest) + silence);
    assert_eq!(Some(milliseconds(end.deadline)), deadline);
}

/// Asserts that events are numbered without a gap, that each change starts from the previous value, and that
/// the last state counts them.
pub fn assert_history(images: &[Image]) -> usize {
    let mut last: BTreeMap<SensorId, (u64, State)> = BTreeMap::new();
    let mut happened = 0;
    for (old, new) in images {
        let before = last.get(&new.sensor);
        assert_eq!(
            before.map(|(_, state)| state),
            old.as_ref(),
            "images follow each other"
        );
        let mut sequence = before.map_or(0, |(sequence, _)| *sequence);
        for event in SensorEvent::between(old.as_ref(), new) {
            sequence += 1;
            happened += 1;
            assert_eq!(event.sequence, sequence, "no gap, none twice");
            if let EventDetail::StateChanged {
                previous, current, ..
            } = &event.detail
            {
                assert_ne!(previous, current);
            }
        }
        assert_eq!(new.sequence(), sequence);
        last.insert(new.sensor.clone(), (sequence, new.clone()));
    }
    happened
}
