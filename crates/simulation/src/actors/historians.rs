//! Readers of the past: they ask for states at a time while devices report and functions fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clock::Clock as _;
use antumbra_service::history::StateAt;
use antumbra_service::shadows::ShadowId;
use antumbra_shadow::Timestamp;
use tokio::time::Instant;

use super::{moments, until};
use crate::functions::Wiring;
use crate::world::{World, lock};

/// Questions of a run.
const QUESTIONS: u64 = 12;
const TIMEOUT: Duration = Duration::from_secs(25);
/// Age of a time before which nothing is written any more: longer than a call takes, and than clocks differ.
const SETTLED: Duration = Duration::from_secs(20);
/// Greatest age of the times that are asked for.
const AGE: Duration = Duration::from_secs(300);

/// The state of a shadow at a time, as it was answered.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) shadow: ShadowId,
    pub(crate) at: Timestamp,
    pub(crate) state: StateAt,
}

/// All readers of the past. Clones are the same.
#[derive(Clone)]
pub(crate) struct Historians {
    world: Arc<World>,
    wiring: Wiring,
    answers: Arc<Mutex<Vec<Answer>>>,
}

impl Historians {
    pub(crate) fn new(world: &Arc<World>, wiring: &Wiring) -> Historians {
        Historians {
            world: Arc::clone(world),
            wiring: wiring.clone(),
            answers: Arc::default(),
        }
    }

    pub(crate) fn answers(&self) -> Vec<Answer> {
        lock(&self.answers).clone()
    }

    pub(crate) fn start(&self, began: Instant, shadows: &[ShadowId]) {
        if shadows.is_empty() {
            return;
        }
        let count = self.world.chance.between(0, QUESTIONS) as usize;
        for moment in moments(&self.world, count) {
            let (historians, shadow) = (self.clone(), self.world.chance.pick(shadows).clone());
            self.world.spawner.spawn(async move {
                until(began, moment).await;
                let ago = SETTLED + historians.world.chance.within(AGE);
                let now = historians.world.clock.now().nanoseconds();
                let at = Timestamp::from_nanoseconds(now - ago.as_nanos() as i128);
                historians.ask(shadow, at).await;
            });
        }
    }

    async fn ask(&self, shadow: ShadowId, at: Timestamp) {
        let reader = self.wiring.history_reader();
        let now = self.world.clock.now();
        let work = reader.state_at(&shadow, at, now);
        let done = self.world.run_crashing("historian", TIMEOUT, work).await;
        if let Some(Ok(state)) = done {
            let answer = Answer { shadow, at, state };
            lock(&self.answers).push(answer);
        }
    }

    /// Asks without faults; a failure is a violation.
    pub(crate) async fn must_answer(&self, shadow: &ShadowId, at: Timestamp) -> Option<StateAt> {
        let reader = self.wiring.history_reader();
        let now = self.world.clock.now();
        match reader.state_at(shadow, at, now).await {
            Ok(state) => Some(state),
            Err(error) => {
                let seen = format!("{shadow} at {at}: {error}");
                self.world.broken("states-equal-the-reference-model", seen);
                None
            }
        }
    }
}
