//! Devices whose shadows are deleted, purged and created again, with documents of which a report changes only a small part.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_dynamodb::DynamoDbShadows;
use antumbra_service::clock::Clock as _;
use antumbra_service::history::purged_until;
use antumbra_service::shadows::{Delete, ShadowId, Shadows};
use antumbra_shadow::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{moments, until};
use crate::functions::Wiring;
use crate::world::{World, lock};

/// Things that are done to each shadow; one in eight has many, so that entries with the document come in turn.
const ACTIONS: [u64; 8] = [10, 10, 10, 10, 10, 10, 10, 45];
/// Bursts of a run that needs them: in each, every shadow has up to this many changes within this time.
const BURSTS: usize = 10;
const BURST_ACTIONS: u64 = 4;
const BURST_TIME: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of a value that seldom changes.
const MANUAL: usize = 2000;

/// All lamps. Clones are the same.
#[derive(Clone)]
pub(crate) struct Lamps {
    world: Arc<World>,
    shadows: Arc<Shadows<DynamoDbShadows>>,
    count: Arc<AtomicU64>,
    /// Reported numbers that were accepted.
    accepted: Arc<Mutex<Vec<(ShadowId, u64)>>>,
    purged: Arc<Mutex<Vec<(ShadowId, Timestamp)>>>,
}

impl Lamps {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring) -> Lamps {
        Lamps {
            world: Arc::clone(world),
            shadows: Arc::new(wiring.shadows(world.clock)),
            count: Arc::default(),
            accepted: Arc::default(),
            purged: Arc::default(),
        }
    }

    /// Shadows whose purge was accepted, and the times up to which their past is purged.
    pub(crate) fn purged(&self) -> Vec<(ShadowId, Timestamp)> {
        lock(&self.purged).clone()
    }

    /// Their shadows: one or two of each lamp.
    pub(crate) fn shadows(&self) -> Vec<ShadowId> {
        let names = ["main", "night"];
        let shadow =
            |number: usize| ShadowId::named(format!("lamp-{}", number / 2), names[number % 2]).ok();
        (0..self.world.profile.lamps).filter_map(shadow).collect()
    }

    pub(crate) fn accepted(&self) -> Vec<(ShadowId, u64)> {
        lock(&self.accepted).clone()
    }

    pub(crate) fn start(&self, began: Instant) {
        let bursts = match self.world.profile.aims.needs_bursts() {
            true => moments(&self.world, BURSTS),
            false => Vec::new(),
        };
        for shadow in self.shadows() {
            let most = *self.world.chance.pick(&ACTIONS);
            let count = self.world.chance.between(1, most) as usize;
            let of_bursts = bursts.iter().flat_map(|burst| {
                let count = self.world.chance.between(0, BURST_ACTIONS);
                (0..count).map(|_| *burst + self.world.chance.within(BURST_TIME))
            });
            let moments = moments(&self.world, count).into_iter().chain(of_bursts);
            for moment in moments.collect::<Vec<_>>() {
                let (lamps, shadow) = (self.clone(), shadow.clone());
                self.world.spawner.spawn(async move {
                    until(began, moment).await;
                    lamps.act(&shadow).await;
                });
            }
        }
    }

    /// Purges of operators.
    pub(crate) fn start_purges(&self, began: Instant) {
        let shadows = self.shadows();
        for moment in moments(&self.world, self.world.profile.purges) {
            let (lamps, shadow) = (self.clone(), self.world.chance.pick(&shadows).clone());
            self.world.spawner.spawn(async move {
                until(began, moment).await;
                lamps.purge(shadow).await;
            });
        }
    }

    /// Purges a shadow as the HTTP API does.
    async fn purge(&self, shadow: ShadowId) {
        let work = async {
            let delete = Delete::whole(shadow.clone());
            let deleted = self.shadows.delete_timed(delete).await.ok()?;
            let now = self.world.clock.now();
            let until = purged_until(deleted, now);
            let queued = self.shadows.store().queue_purge(&shadow, until, now).await;
            queued.ok().map(|()| until)
        };
        let done = self.world.invoke("operator", TIMEOUT, work).await;
        if let Some(until) = done.flatten() {
            lock(&self.purged).push((shadow, until));
        }
    }

    async fn act(&self, shadow: &ShadowId) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let world = &self.world;
        match world.chance.below(10) {
            0 => {
                let work = self.shadows.delete_shadow(shadow, None, None, None);
                world.invoke("device", TIMEOUT, work).await;
            }
            1 | 2 => {
                let desired = json!({"color": number});
                let work = self.shadows.desire(shadow, &desired);
                world.invoke("application", TIMEOUT, work).await;
            }
            kind => {
                let mut reported = json!({"hours": number, "levels": [number % 3, number % 2]});
                if kind == 3 {
                    let page = (b'a' + (number % 26) as u8) as char;
                    reported["manual"] = Value::from(page.to_string().repeat(MANUAL));
                }
                let work = self.shadows.report(shadow, &reported);
                let done = world.invoke("device", TIMEOUT, work).await;
                if matches!(done, Some(Ok(_))) {
                    lock(&self.accepted).push((shadow.clone(), number));
                }
            }
        }
    }
}
