//! Event sources of queues, like Lambda's event source mappings.

use std::sync::Arc;
use std::time::Duration;

use antumbra_queues::queue::{Chance, Message};
use serde_json::{Value, json};

use crate::cloud::receipt_handle;
use crate::functions::{Function, failures};
use crate::profile::Service;
use crate::world::World;

/// Delay until a deleted message is delivered again.
const REDELIVERY_DELAY: Duration = Duration::from_secs(40);
/// Longest time for which an event source collects messages after the first one.
const COLLECTING: Duration = Duration::from_millis(500);
/// Interval of checking whether an outage is over.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A queue and the function that it invokes.
#[derive(Clone)]
pub(crate) struct QueueFeed {
    pub(crate) queue: &'static str,
    pub(crate) function: Arc<Function>,
    pub(crate) batch: usize,
    /// Concurrent invocations.
    pub(crate) concurrency: usize,
}

impl QueueFeed {
    /// Feeds for as long as the run takes.
    pub(crate) fn start(self, world: &Arc<World>) {
        for _ in 0..self.concurrency {
            let (feed, world) = (self.clone(), Arc::clone(world));
            let spawner = world.spawner.clone();
            spawner.spawn(async move {
                loop {
                    feed.poll(&world).await;
                }
            });
        }
    }

    async fn poll(&self, world: &World) {
        if world.cloud.is_out(Service::Feeds, "") {
            tokio::time::sleep(CHECK_INTERVAL).await;
            return;
        }
        let now = world.clock.milliseconds();
        let most = world.chance.between(1, self.batch as u64) as usize;
        let (messages, wait) = self.receive(world, most, now);
        if messages.is_empty() {
            let changed = world.cloud.queued();
            match wait {
                Some(until) => {
                    let wait = Duration::from_millis(until.saturating_sub(now).max(1));
                    let _ = tokio::time::timeout(wait, changed).await;
                }
                None => changed.await,
            }
            if world.profile.aims.collects_messages() {
                tokio::time::sleep(world.chance.within(COLLECTING)).await;
            }
            return;
        }
        if world.draws_fault(world.profile.throttled_invocations) {
            // The messages come back after their visibility timeout, and the receive counts.
            world.trace.step("throttled", || self.queue.to_owned());
            return;
        }
        let batch = world.record_receipt(&messages);
        let event = event(self.queue, &messages);
        let response = self
            .function
            .invoke(world, event.to_string().as_bytes())
            .await;
        let Some(response) = response else {
            return;
        };
        let failed = failures(&response);
        let now = world.clock.milliseconds();
        let mut queues = world.cloud.queues();
        let Some(queue) = queues.get_mut(self.queue) else {
            return;
        };
        for message in messages {
            if failed.contains(&message.id) {
                continue;
            }
            world.record_processed(&message, batch);
            let receipt = message.receipt();
            if !queue.is_fifo() && world.draws_fault(world.profile.duplicated) {
                let later = world.chance.within(REDELIVERY_DELAY);
                queue.change_visibility(receipt, later.as_secs(), now);
            } else {
                queue.delete(receipt);
            }
        }
        drop(queues);
        world.cloud.touch();
    }

    /// Receives messages, and returns the time of the next receive if there are none.
    fn receive(&self, world: &World, most: usize, now: u64) -> (Vec<Message>, Option<u64>) {
        let mut queues = world.cloud.queues();
        let Some(queue) = queues.get_mut(self.queue) else {
            return (Vec::new(), None);
        };
        let mut chance = Duplicating(world);
        let received = queue.receive(most, None, now, &mut chance);
        let wait = queue.next_visible_ms(now);
        let redrive = queue.attributes().redrive.clone();
        let target = redrive.and_then(|redrive| queues.get_mut(&redrive.dead_letter_queue));
        if let Some(target) = target {
            for dead in received.dead_letters {
                world
                    .trace
                    .step("dead-letter", || format!("{} {}", self.queue, dead.body));
                target.accept_dead_letter(dead, self.queue);
            }
        }
        (received.messages, wait)
    }
}

/// A queue that delivers some messages to two receivers at once.
struct Duplicating<'a>(&'a World);

impl Chance for Duplicating<'_> {
    fn pick(&mut self, count: usize) -> usize {
        self.0.chance.below(count)
    }

    fn deliver_again(&mut self) -> bool {
        let often = self.0.profile.duplicated;
        self.0.draws_fault(often)
    }
}

fn event(queue: &str, messages: &[Message]) -> Value {
    let record = |message: &Message| {
        let mut attributes = json!({
            "SentTimestamp": message.sent_ms.to_string(),
            "ApproximateReceiveCount": message.receives.to_string(),
        });
        if let Some(group) = &message.group {
            attributes["MessageGroupId"] = json!(group);
            attributes["SequenceNumber"] = json!(format!("{:020}", message.number));
        }
        json!({
            "messageId": message.id,
            "receiptHandle": receipt_handle(message),
            "body": message.body,
            "attributes": attributes,
            "messageAttributes": {},
            "md5OfBody": "",
            "eventSource": "aws:sqs",
            "eventSourceARN": format!("arn:aws:sqs:us-east-1:000000000000:{queue}"),
            "awsRegion": "us-east-1",
        })
    };
    let records: Vec<Value> = messages.iter().map(record).collect();
    json!({"Records": records})
}
