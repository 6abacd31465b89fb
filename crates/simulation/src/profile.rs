//! The load and the faults of a seed.
//!
//! Every seed leaves out most faults and exaggerates some, so that rare ones occur together too.

use std::time::Duration;

use crate::aim::Aims;
use crate::chance::Chance;
use crate::functions::names;

/// Probabilities of the failures of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Throttled; nothing was done.
    pub(crate) throttled: f64,
    /// Failed with a 500; nothing was done.
    pub(crate) failed: f64,
    /// Never arrived.
    pub(crate) lost_before: f64,
    /// Executed, but the response is lost.
    pub(crate) lost_after: f64,
    /// Arrived when the caller had given up.
    pub(crate) late: f64,
    /// Batches of which some entries fail.
    pub(crate) partial: f64,
    /// Writes that DynamoDB rejects because of a concurrent one.
    pub(crate) conflict: f64,
    /// Reads that return an earlier state, without a request for consistency.
    pub(crate) stale: f64,
    /// Messages that a standard queue delivers late.
    pub(crate) late_messages: f64,
}

/// Services, and the event sources of queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    DynamoDb,
    Sqs,
    Iot,
    /// The event sources of queues.
    Feeds,
}

/// An outage of a service or of the event sources, from this time after the start.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    pub(crate) service: Service,
    /// Only calls of this queue.
    pub(crate) queue: Option<&'static str>,
    pub(crate) from: Duration,
    pub(crate) until: Duration,
}

/// Longest outage of a service, and of the event sources.
const OUTAGE: Duration = Duration::from_secs(120);
const PAUSE: Duration = Duration::from_secs(600);
/// Longest pause of the history writer: longer than a purge takes.
const HISTORY_PAUSE: Duration = Duration::from_secs(3600);

impl Outage {
    fn of(chance: &Chance, span: Duration) -> Outage {
        let from = chance.within(span);
        let (service, queue, longest) = *chance.pick(&[
            (Service::DynamoDb, None, OUTAGE),
            (Service::Sqs, None, OUTAGE),
            (Service::Sqs, Some(names::QUARANTINE), OUTAGE),
            (Service::Sqs, Some(names::UNDELIVERABLE), OUTAGE),
            (Service::Iot, None, OUTAGE),
            (Service::Feeds, None, PAUSE),
            (Service::Feeds, None, PAUSE),
        ]);
        let until = from + chance.within(longest);
        Outage {
            service,
            queue,
            from,
            until: until.min(span),
        }
    }
}

/// Shortest and longest outage of a target that is suspended, in seconds: five invocations fail until it is.
const TARGET_OUTAGE: (u64, u64) = (160, 600);

/// Targets of registrations, by the service and queue of their calls.
const TARGETS: [(Service, Option<&str>); 5] = [
    (Service::Sqs, Some(names::CHANGES)),
    (Service::Sqs, Some(names::CHANGES_FIFO)),
    (Service::Sqs, Some(names::ORDERED)),
    (Service::Sqs, Some(names::UNORDERED)),
    (Service::Iot, None),
];

impl Outage {
    /// An outage of one target, long enough to suspend it.
    fn of_target(chance: &Chance) -> Outage {
        let (service, queue) = *chance.pick(&TARGETS);
        let from = chance.within(Duration::from_secs(60));
        let (shortest, longest) = TARGET_OUTAGE;
        Outage {
            service,
            queue,
            from,
            until: from + Duration::from_secs(chance.between(shortest, longest)),
        }
    }

    /// Registrations whose target it affects.
    pub(crate) fn registrations(&self) -> &'static [&'static str] {
        match (self.service, self.queue) {
            (Service::Sqs, Some(names::CHANGES)) => &["in-any-order"],
            (Service::Sqs, Some(names::CHANGES_FIFO)) => &["in-order"],
            (Service::Sqs, Some(names::ORDERED | names::UNORDERED)) => &["sensor-clients"],
            (Service::Iot, _) => &[
                "mqtt",
                "shadow-delta",
                "shadow-documents",
                "inbox-notifications",
            ],
            _ => &[],
        }
    }
}

/// Load and faults of a seed.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pub(crate) faults: Faults,
    /// Outages of services.
    pub(crate) outages: Vec<Outage>,
    /// Outage of one target for so long that it is suspended.
    pub(crate) target_outage: Option<Outage>,
    /// Calls with aimed faults.
    pub(crate) aims: Aims,
    /// Invocations of event sources that are throttled.
    pub(crate) throttled_invocations: f64,
    /// Functions that end in the middle, by invocation.
    pub(crate) crash: f64,
    /// Deleted messages that a standard queue delivers again.
    pub(crate) duplicated: f64,
    /// Invocations that get a new instance, without the memory of earlier ones.
    pub(crate) cold: f64,
    /// Webhook requests whose response is lost, and those with the response 500.
    pub(crate) posts_lost: f64,
    pub(crate) posts_failed: f64,
    pub(crate) poison: f64,
    /// Maximum difference between clocks, in milliseconds.
    pub(crate) skew: i64,
    /// Both documents of a shadow in one item.
    pub(crate) combined: bool,
    pub(crate) stream_shards: usize,
    /// Concurrent invocations per shard, where order per item is enough.
    pub(crate) parallelization: usize,
    /// Shards that are replaced by two others.
    pub(crate) splits: f64,
    pub(crate) live_shards: u32,
    /// Partitions of the change feed, and its readers.
    pub(crate) feed_partitions: u32,
    pub(crate) followers: usize,
    pub(crate) devices: usize,
    /// Devices that report in bursts.
    pub(crate) meters: usize,
    /// Shadows that are deleted and created again.
    pub(crate) lamps: usize,
    /// Purges of these shadows.
    pub(crate) purges: usize,
    /// Time during which the history writer is not invoked, after the start.
    pub(crate) history_pause: Option<[Duration; 2]>,
    /// Time after the start at which the history begins: changes from before have no entry.
    pub(crate) history_begins: Duration,
    pub(crate) sensors: usize,
    /// The first sensor is unregistered and registered again.
    pub(crate) returning_sensors: bool,
    pub(crate) clients: usize,
    pub(crate) sources: usize,
    /// Signals come through a FIFO queue.
    pub(crate) ordered_signals: bool,
    /// Duration of the phase with faults.
    pub(crate) span: Duration,
}

impl Profile {
    pub(crate) fn of(chance: &Chance) -> Profile {
        let calm = chance.happens(0.25);
        let some = |most: f64| match !calm && chance.happens(0.4) {
            true => most * chance.between(1, 100) as f64 / 100.0,
            false => 0.0,
        };
        let faults = Faults {
            throttled: some(0.15),
            failed: some(0.1),
            lost_before: some(0.1),
            lost_after: some(0.15),
            late: some(0.05),
            partial: some(0.3),
            conflict: some(0.1),
            stale: match chance.happens(0.5) {
                true => chance.between(1, 50) as f64 / 100.0,
                false => 0.0,
            },
            late_messages: some(0.2),
        };
        let (crash, throttled_invocations) = (some(0.4), some(0.3));
        let (duplicated, posts_lost, posts_failed) = (some(0.2), some(0.2), some(0.4));
        let poison = match chance.happens(0.3) {
            true => 0.05,
            false => 0.0,
        };
        let part = |often: f64, most: u64| match chance.happens(often) {
            true => chance.between(1, most) as usize,
            false => 0,
        };
        let aims = match some(1.0) > 0.0 {
            true => Aims::of(chance),
            false => Aims::default(),
        };
        let (devices, meters) = (part(0.6, 3), part(0.5, 2));
        let target_outage = chance.happens(0.2).then(|| Outage::of_target(chance));
        let aims = match calm && target_outage.is_some() && chance.aside().happens(0.5) {
            true => Aims::of_spill(),
            false => aims,
        };
        let of_deliveries = |out: &Outage| out.registrations() == ["sensor-clients"];
        let needs_clients = target_outage.as_ref().is_some_and(of_deliveries);
        let keys = aims.needed_keys();
        let devices = match target_outage.is_some() && !needs_clients {
            true => devices.max(keys),
            false => devices,
        };
        let needed_sensors = match needs_clients {
            true => keys,
            false => usize::from(aims.needs_sensors()),
        };
        let sensors = part(0.7, 3).max(needed_sensors);
        let (sources, lamps) = (part(0.5, 2), part(0.4, 3));
        let lamps = lamps.max(aims.needed_shadows());
        let least = target_outage
            .as_ref()
            .map_or(120, |out| out.until.as_secs() + aims.needed_seconds());
        let span = Duration::from_secs(chance.between(least, least.max(900)));
        // Seeds without purges are those from before there were any.
        let aside = chance.aside();
        let purges = match lamps > 0 && sensors > 0 && aside.happens(0.5) {
            true => aside.between(1, 3) as usize,
            false => 0,
        };
        let history_pause = (purges > 0 && aside.happens(0.5)).then(|| {
            let from = aside.within(span);
            [from, from + aside.within(HISTORY_PAUSE)]
        });
        let history_begins = match lamps > 0 && aside.happens(0.25) {
            true => aside.within(span),
            false => Duration::ZERO,
        };
        let outages = match some(1.0) > 0.0 {
            true => chance.between(1, 4),
            false => 0,
        };
        let outages = (0..outages).map(|_| Outage::of(chance, span));
        Profile {
            faults,
            outages: outages.collect(),
            target_outage,
            throttled_invocations,
            crash,
            duplicated,
            cold: 0.05 + some(0.5),
            posts_lost,
            posts_failed,
            poison,
            skew: chance.between(0, 2) as i64 * 300,
            combined: chance.happens(0.4),
            stream_shards: chance.between(1 + u64::from(aims.needs_bursts()), 2) as usize,
            parallelization: chance.between(1, 4) as usize,
            splits: *chance.pick(&[0.0, 0.5]),
            live_shards: chance.between(1, 2) as u32,
            feed_partitions: match aims.needs_bursts() {
                true => 1,
                false => chance.between(1, 3) as u32,
            },
            followers: match devices + meters + lamps {
                0 => 0,
                _ => chance.between(1, 2) as usize,
            },
            devices,
            meters,
            lamps,
            purges,
            history_pause,
            history_begins,
            sensors,
            returning_sensors: chance.happens(0.3),
            clients: match sensors {
                0 => 0,
                _ => chance.between(u64::from(aims.needs_clients() || needs_clients), 3) as usize,
            },
            sources,
            ordered_signals: chance.happens(0.3),
            aims,
            span,
        }
    }

    /// Time from the start within which actors act.
    pub(crate) fn acting_span(&self) -> Duration {
        match &self.target_outage {
            Some(outage) if self.aims.rests_after_outage() => outage.until,
            _ => self.span,
        }
    }

    /// Returns whether the seed has no random faults.
    pub(crate) fn is_calm(&self) -> bool {
        self.is_calm_apart_from_target() && self.target_outage.is_none()
    }

    /// Returns whether the seed has no random faults, except that one target may be out.
    pub(crate) fn is_calm_apart_from_target(&self) -> bool {
        let others = [self.duplicated, self.posts_lost, self.posts_failed];
        self.is_sweep_undisturbed() && others.iter().all(|often| *often == 0.0)
    }

    /// Returns whether no fault can delay a sweep: messages and sweeps may still come twice, and instances restart.
    pub(crate) fn is_sweep_undisturbed(&self) -> bool {
        let Faults {
            throttled,
            failed,
            lost_before,
            lost_after,
            late,
            partial,
            conflict,
            stale: _,
            late_messages,
        } = self.faults;
        let calls = [
            throttled,
            failed,
            lost_before,
            lost_after,
            late,
            partial,
            conflict,
            late_messages,
            self.throttled_invocations,
            self.crash,
        ];
        calls.iter().all(|often| *often == 0.0)
            && self.outages.is_empty()
            && self.aims.is_harmless()
    }
}
