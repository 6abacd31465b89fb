//! The target `clients`: sensor events to the delivery queues, one message per linked client.
//!
//! The plan has the events (pure); here the clients linked to each sensor are read, once per event, and every
//! delivery is recorded. The messages, which name the deliveries, are sent with all others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use antumbra_registration::RegistrationId;
use antumbra_service::clients::{LinkedClient, LinkedClients, Mode};
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Delivery, DeliveryMessage, NewDeliveries, Queues};
use antumbra_service::sensors::{SensorEvent, SensorId};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use futures_util::{StreamExt as _, stream};

use crate::dispatch_list::{Content, Entry};
use crate::plan::Plan;
use crate::retry::with_retries;

/// Maximum number of concurrent reads.
const CONCURRENT_READS: usize = 32;
/// Longest difference between the clock of the table and of the function that removed a link.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(10);
/// Maximum number of concurrent writes.
const CONCURRENT_WRITES: usize = 32;

#[derive(Clone)]
pub struct ClientsRoute {
    pub links: Arc<dyn LinkedClients>,
    pub deliveries: Arc<dyn NewDeliveries>,
    pub queues: Queues,
}

/// Indices of the channels of the two delivery queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueChannels {
    pub(crate) ordered: usize,
    pub(crate) unordered: usize,
}

/// A sensor event and the record it comes from.
#[derive(Debug)]
pub(crate) struct PendingDelivery {
    pub(crate) record: usize,
    pub(crate) registration: RegistrationId,
    pub(crate) event: SensorEvent,
    /// The time of the write, by the clock of the table.
    pub(crate) written: Option<Timestamp>,
}

/// Returns whether an event may have occurred while its client was linked.
///
/// An earlier attempt at the event may have recorded a delivery and been interrupted before it queued it. It is queued
/// although the link is removed: the function that sends it records it as skipped.
fn was_linked(client: &LinkedClient, pending: &PendingDelivery) -> bool {
    let occurred = pending.written.unwrap_or(pending.event.occurred_at);
    let is_before = |removed: Timestamp| occurred <= removed.after(CLOCK_DIFFERENCE);
    client.removed.is_none_or(is_before)
}

/// Records deliveries and adds their messages to the plan, up to the first that is not recorded by the deadline.
pub(crate) async fn add_deliveries(
    plan: &mut Plan<'_>,
    route: &ClientsRoute,
    channels: QueueChannels,
    deadline: Timestamp,
    clock: &dyn Clock,
) {
    let deliveries = std::mem::take(&mut plan.deliveries);
    let sensors: BTreeSet<&SensorId> = deliveries
        .iter()
        .map(|delivery| &delivery.event.sensor)
        .collect();
    let reads = sensors.into_iter().map(|sensor| async move {
        let read = || route.links.linked(sensor);
        (sensor, with_retries(deadline, clock, read).await)
    });
    let reads: Vec<_> = reads.collect();
    let linked: HashMap<&SensorId, Result<Vec<LinkedClient>, StoreError>> = stream::iter(reads)
        .buffer_unordered(CONCURRENT_READS)
        .collect()
        .await;
    let mut new = Vec::new();
    for pending in &deliveries {
        match &linked[&pending.event.sensor] {
            Ok(clients) => {
                let PendingDelivery { event, written, .. } = pending;
                let linked = clients.iter().filter(|client| was_linked(client, pending));
                new.extend(linked.map(|client| {
                    let delivery = Delivery::new(event, *written, &client.client);
                    (pending, client.mode, delivery)
                }));
            }
            Err(error) if error.is_retryable() => plan.unfinished.push(pending.record),
            Err(error) => plan.reject_delivery(pending, error.to_string()),
        }
    }
    // A delivery is recorded before it is queued: the function that sends it accepts no other.
    let adds = new.iter().map(|(pending, mode, delivery)| async move {
        let add = || route.deliveries.add(delivery, clock.now());
        let added = with_retries(deadline, clock, add).await;
        (*pending, *mode, DeliveryMessage::first(delivery), added)
    });
    let adds: Vec<_> = adds.collect();
    // In order, so that the messages of a sensor stay in order.
    let mut adds = stream::iter(adds).buffered(CONCURRENT_WRITES);
    while let Some((pending, mode, message, added)) = adds.next().await {
        match added {
            Ok(()) => plan.list.push(Entry {
                record: pending.record,
                registration: pending.registration,
                channel: match mode {
                    Mode::Every => channels.ordered,
                    Mode::Latest => channels.unordered,
                },
                content: Content::Message(Box::new(message.to_queue())),
                spilled: None,
            }),
            // Time is up. The stream continues from this record, so that no later delivery overtakes this one.
            Err(error) if error.is_retryable() => {
                plan.unfinished.push(pending.record);
                break;
            }
            Err(error) => plan.reject_delivery(pending, error.to_string()),
        }
    }
}
