//! One seed, from nothing to its verdict.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use antumbra_dynamodb::{HISTORY, MAIN, MESSAGES, SECRETS, TableDefinition, client};
use antumbra_queues::queue::{Attributes, Queue, Redrive};
use antumbra_service::deliveries::{Delays, Policy};
use antumbra_service::shadows::ShadowId;
use tokio::time::Instant;

use crate::actors::clients::ClientActors;
use crate::actors::devices::Devices;
use crate::actors::followers::Followers;
use crate::actors::historians::Historians;
use crate::actors::inbox::InboxActors;
use crate::actors::lamps::Lamps;
use crate::actors::reports::ReportActors;
use crate::actors::sensors::SensorActors;
use crate::aim::{HELD, Intervention};
use crate::chance::Chance;
use crate::endpoint::Endpoints;
use crate::executor::Spawner;
use crate::feed::QueueFeed;
use crate::functions::{Function, Wiring, names};
use crate::invariants::Evidence;
use crate::profile::Profile;
use crate::stream::{Reader, Streams};
use crate::world::{Violation, World};

/// Tables with a stream.
const TABLES: [&str; 2] = [MAIN.name, MESSAGES.name];
/// Attempts of a delivery.
pub(crate) const MAX_ATTEMPTS: u32 = 6;
/// First pause of a client after failures.
pub(crate) const OPEN_FIRST: Duration = Duration::from_secs(10);
/// Maximum receive count of signals and inbox messages, as deployed.
const INPUT_RECEIVES: u32 = 60;
/// Maximum receive count of the deliveries queues, as deployed.
const RECEIVES: u32 = 1000;
/// The longest silence timeout of a sensor, and the time to detect silence.
const SILENCE: Duration = Duration::from_secs(400 + 200);
/// Time in which the schedule releases held deliveries, shorter than the timeout of a call.
const RELEASE_TIME: Duration = Duration::from_secs(1);
/// Time in which work begun during the faults ends.
const DRAIN_TIME: Duration = Duration::from_secs(70);
/// Concurrent deliveries per queue.
const DELIVERY_CONCURRENCY: usize = 6;
/// Time in which everything must settle without faults, and the interval of checking.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(4 * 3600);
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

#[derive(Debug, Clone)]
pub struct Outcome {
    /// The violated invariants.
    pub broken: Vec<Violation>,
    /// The steps, if they were requested.
    pub trace: Vec<String>,
    pub steps: u64,
    /// Hash of all steps.
    pub hash: u64,
    /// Invocations by function, and the number of those that were interrupted.
    pub invocations: BTreeMap<&'static str, (u64, u64)>,
}

/// Returns the name of the moments that a seed aims at, if it does.
pub fn aim(seed: u64) -> Option<String> {
    Profile::of(&Chance::new(seed)).aims.name()
}

pub fn run(seed: u64, traced: bool) -> Outcome {
    // Source of the jitter of the product and of the SDKs.
    fastrand::seed(seed);
    let spawner = Spawner::default();
    let chance = Chance::new(seed);
    let main = simulate(chance, spawner.clone(), traced);
    match spawner.run(seed ^ 0x5eed, main) {
        Ok(outcome) => outcome,
        Err(error) => panic!("no runtime: {error}"),
    }
}

async fn simulate(chance: Chance, spawner: Spawner, traced: bool) -> Outcome {
    let profile = Profile::of(&chance);
    let world = match World::new(chance, profile, spawner, traced) {
        Ok(world) => world,
        Err(error) => panic!("no database: {error}"),
    };
    let endpoints = Endpoints::new(&world);
    let wiring = Wiring::new(&world.sdk, &world.profile, policy(), endpoints.clone());
    let streams = Streams::new(&TABLES, &world);
    set_up(&world).await;

    let sensors = SensorActors::new(&world, &wiring);
    sensors.register(&wiring).await;
    let names_of = |known: &crate::actors::sensors::Known| known.id.clone();
    let registered: Vec<String> = sensors.memory().sensors.iter().map(names_of).collect();
    let clients = ClientActors::new(&world, &wiring);
    clients.create(&registered).await;
    let devices = Devices::new(&world, &wiring);
    let reports = ReportActors::new(&world, &wiring);
    let inbox = InboxActors::new(&world, &wiring, &streams);
    let lamps = Lamps::new(&world, &wiring);
    let followers = Followers::new(&world, &wiring);
    let historians = Historians::new(&world, &wiring);

    feed(&world, &wiring, &streams);
    let sweep = Arc::new(wiring.sweep());
    let sweeping = Sweeping::start(&world, &sweep);
    world.begin_faults(intervention(&world, &clients, &sensors, &sweep));
    let began = Instant::now();
    devices.start(began);
    reports.start(began);
    sensors.start(began);
    clients.start(began);
    clients.start_registrations(began, &sensors.memory().sensors);
    inbox.start(began);
    lamps.start(began);
    lamps.start_purges(began);
    followers.start(began);
    let shadows = devices.shadows().chain(reports.shadows());
    let shadows: Vec<ShadowId> = shadows.chain(lamps.shadows()).collect();
    historians.start(began, &shadows);
    tokio::time::sleep_until(began + world.profile.span).await;
    world.end_faults();
    // Work begun during the faults ends.
    tokio::time::sleep(DRAIN_TIME).await;
    clients.recover().await;
    for device in devices.names() {
        devices.report_desired(&device).await;
    }
    sensors.send_final_signals();
    let swept_until = sweeping.finish(&world).await;

    settle(&world, &streams).await;
    sweeping.stop();
    inbox.read_back().await;
    followers.finish().await;
    let evidence = Evidence {
        world: &world,
        changes: streams.all(),
        devices: &devices,
        reports: &reports,
        sensors: &sensors,
        inbox: &inbox,
        clients: &clients,
        lamps: &lamps,
        followers: &followers,
        historians: &historians,
        endpoints: &endpoints,
        swept_until,
    };
    evidence.check().await;
    let (steps, hash) = world.trace.summary();
    Outcome {
        broken: world.all_broken(),
        trace: world.trace.lines(),
        steps,
        hash,
        invocations: world.counts(),
    }
}

/// Actors that intervene when a call is aimed at.
fn intervention(
    world: &Arc<World>,
    clients: &ClientActors,
    sensors: &SensorActors,
    sweep: &Arc<Function>,
) -> Intervention {
    let (clients, sensors) = (clients.clone(), sensors.clone());
    let (world, sweep) = (Arc::clone(world), Arc::clone(sweep));
    Arc::new(move |function, about| {
        let (clients, sensors) = (clients.clone(), sensors.clone());
        let (world, sweep) = (Arc::clone(&world), Arc::clone(&sweep));
        let (of_sensors, about) = (function == "liveness-sweep", about.to_owned());
        Box::pin(async move {
            if of_sensors {
                return sensors.break_silence();
            }
            clients.intervene(&about).await;
            if about.contains(HELD) {
                let spawner = world.spawner.clone();
                spawner.spawn(async move { drop(sweep.invoke(&world, b"{}").await) });
                tokio::time::sleep(RELEASE_TIME).await;
            }
        })
    })
}

/// Starts all event sources except the schedule.
fn feed(world: &Arc<World>, wiring: &Wiring, streams: &Streams) {
    let listener = Arc::new(wiring.listener());
    streams.feed(world, Reader::Listener, &listener);
    streams.feed(world, Reader::History, &Arc::new(wiring.history_writer()));
    let deliver = Arc::new(wiring.webhook_deliver());
    let feed = |queue, function: Arc<Function>, concurrency| {
        let feed = QueueFeed {
            queue,
            batch: function.batch_size(queue),
            function,
            concurrency,
        };
        feed.start(world);
    };
    feed(names::SPILL, listener, 2);
    if world.profile.sensors > 0 {
        feed(wiring.signals, Arc::new(wiring.sensor_ingest()), 2);
    }
    if world.profile.sources > 0 {
        feed(names::INBOUND, Arc::new(wiring.message_ingest()), 2);
    }
    if world.profile.clients > 0 {
        feed(names::ORDERED, Arc::clone(&deliver), DELIVERY_CONCURRENCY);
        feed(names::UNORDERED, deliver, DELIVERY_CONCURRENCY);
    }
}

/// The schedule of the sweep.
struct Sweeping {
    over: Arc<AtomicBool>,
}

impl Sweeping {
    fn start(world: &Arc<World>, sweep: &Arc<Function>) -> Sweeping {
        let over = Arc::new(AtomicBool::new(world.profile.sensors == 0));
        let (world, is_over, sweep) = (Arc::clone(world), Arc::clone(&over), Arc::clone(sweep));
        let spawner = world.spawner.clone();
        spawner.clone().spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                tokio::time::sleep(sweep.period()).await;
                // Schedules invoke at least once.
                let twice = world.draws_fault(0.2);
                for _ in 0..1 + usize::from(twice) {
                    let (world, sweep) = (Arc::clone(&world), Arc::clone(&sweep));
                    spawner.spawn(async move {
                        sweep.invoke(&world, b"{}").await;
                    });
                }
            }
        });
        Sweeping { over }
    }

    /// Continues until all silent sensors had time to be found; returns the end in milliseconds.
    async fn finish(&self, world: &World) -> u64 {
        if world.profile.sensors > 0 {
            tokio::time::sleep(SILENCE).await;
        }
        world.clock.milliseconds()
    }

    /// Ends the schedule, which also queues due deliveries.
    fn stop(&self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

async fn set_up(world: &World) {
    let database = client(&world.sdk);
    // A stream of the history is the record of its writes for the invariants, and for stale reads.
    let history = TableDefinition {
        streamed: true,
        ..HISTORY
    };
    for table in [MAIN, MESSAGES, SECRETS, history] {
        if let Err(error) = table.ensure(&database).await {
            panic!("no table: {error}");
        }
    }
    let mut queues = world.cloud.queues();
    for (name, visibility, dead) in [
        (
            names::SIGNALS,
            60,
            Some((names::QUARANTINE, INPUT_RECEIVES)),
        ),
        (
            names::SIGNALS_FIFO,
            60,
            Some((names::QUARANTINE, INPUT_RECEIVES)),
        ),
        (
            names::INBOUND,
            60,
            Some((names::QUARANTINE, INPUT_RECEIVES)),
        ),
        (names::QUARANTINE, 60, None),
        (names::UNDELIVERABLE, 60, None),
        (names::SPILL, 180, None),
        (names::ORDERED, 180, Some((names::ORDERED_DEAD, RECEIVES))),
        (
            names::UNORDERED,
            180,
            Some((names::UNORDERED_DEAD, RECEIVES)),
        ),
        (names::ORDERED_DEAD, 180, None),
        (names::UNORDERED_DEAD, 180, None),
        (names::LEAVES, 60, None),
        (names::CHANGES_FIFO, 60, None),
        (names::CHANGES, 60, None),
    ] {
        let attributes = Attributes {
            visibility_seconds: visibility,
            redrive: dead.map(|(dead, max_receive_count): (&str, u32)| Redrive {
                dead_letter_queue: dead.to_owned(),
                max_receive_count,
            }),
            ..Attributes::default()
        };
        queues.insert(name.to_owned(), Queue::new(name, attributes));
    }
}

fn policy() -> Policy {
    Policy {
        max_attempts: MAX_ATTEMPTS,
        delays: Delays {
            first: Duration::from_secs(5),
            longest: Duration::from_secs(150),
            ..Delays::default()
        },
        open_first: OPEN_FIRST,
        open_longest: Duration::from_secs(60),
        ..Policy::default()
    }
}

/// Returns whether deliveries wait in the due index, or purges of shadows are not done.
fn is_background_work_left(streams: &Streams) -> bool {
    let mut entries = std::collections::BTreeSet::new();
    for change in streams.all() {
        let (partition, sort) = (change.partition.as_str(), change.sort.as_str());
        if partition.starts_with("DUE#")
            || partition.starts_with("DS#") && sort.starts_with("PURGE#")
        {
            let key = (change.partition.clone(), change.sort.clone());
            match change.new {
                Some(_) => entries.insert(key),
                None => entries.remove(&key),
            };
        }
    }
    !entries.is_empty()
}

/// Waits until nothing is left to do.
async fn settle(world: &World, streams: &Streams) {
    let began = Instant::now();
    while began.elapsed() < SETTLE_TIMEOUT {
        let queues = [
            names::SIGNALS,
            names::SIGNALS_FIFO,
            names::INBOUND,
            names::ORDERED,
            names::UNORDERED,
            names::SPILL,
        ];
        let idle = queues
            .iter()
            .all(|name| world.cloud.messages(name).is_empty());
        let due = world.profile.sensors > 0 && is_background_work_left(streams);
        if idle && !due && !world.is_busy() && streams.is_done(world) {
            return;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    let left = |name: &str| format!("{name}: {}", world.cloud.messages(name).len());
    let left = [
        names::SIGNALS,
        names::INBOUND,
        names::ORDERED,
        names::UNORDERED,
        names::SPILL,
    ]
    .map(left);
    world.broken("everything-settles", format!("still at work: {left:?}"));
}
