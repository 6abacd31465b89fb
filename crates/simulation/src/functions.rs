//! The product's functions, built as their `main.rs` does, and run as Lambda runs them: instances stay warm
//! for a while, have clocks of their own, and disappear with their memory.

mod wiring;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_lambda_kit::functions::{EventSource, spec};
use antumbra_lambda_kit::{Handler, Invocation};
use antumbra_queues::queue::NewMessage;
use antumbra_service::clock::Clock;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::clock::VirtualClock;
use crate::world::{World, lock};

pub(crate) use wiring::{Wiring, names};

/// Warm instances of a function.
const WARM: usize = 2;
/// Longest start of an invocation, with a warm instance and with a new one.
const WARM_START: Duration = Duration::from_millis(30);
const COLD_START: Duration = Duration::from_secs(3);
/// Pause before the first retry of an asynchronous invocation; the second takes twice as long.
const RETRY_DELAY: Duration = Duration::from_secs(60);

type Build = Box<dyn Fn(VirtualClock) -> Arc<dyn Handler> + Send + Sync>;

pub(crate) struct Function {
    name: &'static str,
    timeout: Duration,
    build: Build,
    warm: Mutex<Vec<(VirtualClock, Arc<dyn Handler>)>>,
}

impl Function {
    pub(crate) fn new(name: &'static str, build: Build) -> Function {
        Function {
            name,
            timeout: spec(name).timeout,
            build,
            warm: Mutex::default(),
        }
    }

    /// Messages of a queue per invocation, as in production.
    pub(crate) fn batch_size(&self, queue: &str) -> usize {
        match spec(self.name).event_source {
            EventSource::Queues(queues) => {
                let own = |(name, _): &&(&str, u32)| name.strip_prefix("antumbra-") == Some(queue);
                let found = queues.iter().find(own).or(queues.first());
                found.map_or(1, |(_, batch_size)| *batch_size as usize)
            }
            EventSource::Streams { batch_size, .. } => batch_size as usize,
            _ => 1,
        }
    }

    /// Period of the function's schedule, as in production.
    pub(crate) fn period(&self) -> Duration {
        match spec(self.name).event_source {
            EventSource::Schedule { period } => period,
            _ => Duration::ZERO,
        }
    }

    /// Invokes the function; `None` if it fails or is interrupted.
    pub(crate) async fn invoke(&self, world: &World, event: &[u8]) -> Option<String> {
        let (clock, instance) = self.instance(world);
        world.trace.step(self.name, || {
            String::from_utf8_lossy(&event[..event.len().min(200)]).into_owned()
        });
        let work = instance.handle(Invocation {
            event: Bytes::copy_from_slice(event),
            deadline: clock.now().after(self.timeout),
            request_id: "invocation".to_owned(),
        });
        let response = match world.invoke(self.name, self.timeout, work).await {
            Some(Ok(response)) => String::from_utf8_lossy(&response.payload).into_owned(),
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
            .step("response", || format!("{} {response}", self.name));
        Some(response)
    }

    /// Invokes the function as a rule does: late, so that invocations overtake each other, and again after an error.
    /// Returns whether it succeeded; otherwise the event is in the queue for failed invocations.
    pub(crate) async fn invoke_asynchronously(&self, world: &World, event: &Value) -> bool {
        let EventSource::Rules(settings) = spec(self.name).event_source else {
            return false;
        };
        world.begin_work();
        let text = event.to_string();
        let began = world.clock.elapsed();
        let mut calls = 0;
        let succeeded = loop {
            let longest = *world
                .chance
                .pick(&[WARM_START, WARM_START, WARM_START, COLD_START]);
            tokio::time::sleep(world.chance.within(longest)).await;
            if world.clock.elapsed() - began > settings.max_event_age {
                break false;
            }
            calls += 1;
            if self.invoke(world, text.as_bytes()).await.is_some() {
                break true;
            }
            if calls > settings.max_retries {
                break false;
            }
            tokio::time::sleep(RETRY_DELAY * calls).await;
        };
        if !succeeded {
            let failed = json!({"requestContext": {"approximateInvokeCount": calls}, "requestPayload": event});
            let queue = settings.on_failure.trim_start_matches("antumbra-");
            let message = NewMessage {
                body: failed.to_string(),
                ..NewMessage::default()
            };
            world.cloud.send(queue, message);
        }
        world.end_work();
        succeeded
    }

    fn instance(&self, world: &World) -> (VirtualClock, Arc<dyn Handler>) {
        let mut warm = lock(&self.warm);
        if warm.len() < WARM || world.draws_fault(world.profile.cold) {
            let skew = world.profile.skew;
            let ahead = world.chance.between(0, 2 * skew as u64) as i64 - skew;
            let clock = world.clock.ahead(ahead);
            warm.push((clock, (self.build)(clock)));
            if warm.len() > WARM {
                warm.remove(0);
            }
        }
        warm[world.chance.below(warm.len())].clone()
    }
}

pub(crate) fn failures(response: &str) -> Vec<String> {
    let response: Value = serde_json::from_str(response).unwrap_or_default();
    let failed = response["batchItemFailures"].as_array();
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
