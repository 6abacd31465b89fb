//! The product's functions, wired as their `main.rs` do it, and run as Lambda runs them: instances that
//! stay warm for a while, each with a clock of its own, and vanish with their memory.

mod wiring;

use std::fmt::Display;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_service::clock::Clock;
use antumbra_service::notifications::BoxFuture;
use antumbra_shadow::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::clock::VirtualClock;
use crate::world::{World, lock};

pub(crate) use wiring::{Wiring, names};

/// Instances of a function that are kept.
const WARM: usize = 2;

/// An instance of a function.
pub(crate) trait Instance: Send + Sync {
    /// Handles an event.
    fn handle<'a>(&'a self, event: &'a [u8], deadline: Timestamp) -> BoxFuture<'a, Answered>;
}

/// What a handler came to: the JSON of its answer, or its error.
type Answered = Result<String, String>;
type Call<T> = for<'a> fn(&'a T, &'a [u8], Timestamp) -> BoxFuture<'a, Answered>;

/// An instance, and how its handler is called.
struct Called<T> {
    instance: T,
    call: Call<T>,
}

fn called<T: Send + Sync + 'static>(instance: T, call: Call<T>) -> Arc<dyn Instance> {
    Arc::new(Called { instance, call })
}

impl<T: Send + Sync> Instance for Called<T> {
    fn handle<'a>(&'a self, event: &'a [u8], deadline: Timestamp) -> BoxFuture<'a, Answered> {
        (self.call)(&self.instance, event, deadline)
    }
}

/// An answer as Lambda gets it.
fn json(answer: Result<impl Serialize, impl Display>) -> Answered {
    let answer = answer.map_err(|error| error.to_string())?;
    serde_json::to_string(&answer).map_err(|error| error.to_string())
}

type Make = Box<dyn Fn(VirtualClock) -> Arc<dyn Instance> + Send + Sync>;

/// A function.
pub(crate) struct Function {
    name: &'static str,
    timeout: Duration,
    make: Make,
    warm: Mutex<Vec<(VirtualClock, Arc<dyn Instance>)>>,
}

impl Function {
    pub(crate) fn new(name: &'static str, timeout: Duration, make: Make) -> Function {
        Function {
            name,
            timeout,
            make,
            warm: Mutex::default(),
        }
    }

    /// Calls it; `None` if there is no answer.
    pub(crate) async fn invoke(&self, world: &World, event: &[u8]) -> Option<String> {
        let (clock, instance) = self.instance(world);
        let deadline = clock.now().after(self.timeout);
        world.trace.step(self.name, || {
            String::from_utf8_lossy(&event[..event.len().min(200)]).into_owned()
        });
        let work = instance.handle(event, deadline);
        let done = world.invoke(self.name, self.timeout, work).await;
        let answer = match done {
            Some(Ok(answer)) => answer,
            Some(Err(error)) => {
                world
                    .trace
                    .step("error", || format!("{} {error}", self.name));
                return None;
            }
            None => {
                lock(&self.warm).retain(|(_, warm)| !Arc::ptr_eq(warm, &instance));
                return None;
            }
        };
        world
            .trace
            .step("answer", || format!("{} {answer}", self.name));
        Some(answer)
    }

    fn instance(&self, world: &World) -> (VirtualClock, Arc<dyn Instance>) {
        let mut warm = lock(&self.warm);
        if warm.len() < WARM || world.goes_wrong(world.profile.cold) {
            let skew = world.profile.skew;
            let ahead = world.chance.between(0, 2 * skew as u64) as i64 - skew;
            let clock = world.clock.ahead(ahead);
            warm.push((clock, (self.make)(clock)));
            if warm.len() > WARM {
                warm.remove(0);
            }
        }
        warm[world.chance.below(warm.len())].clone()
    }
}

/// What is to be handed over again, as Lambda reads it from an answer.
pub(crate) fn failures(answer: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let failed = answer["batchItemFailures"].as_array();
    failed
        .into_iter()
        .flatten()
        .map(|one| {
            one["itemIdentifier"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        })
        .collect()
}
