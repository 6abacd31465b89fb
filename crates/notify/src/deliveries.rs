//! The target `clients`: sensor events to the delivery queues, one message per linked client.
//!
//! The plan has the events (pure); here the clients linked to each sensor are read, once per event. The messages are
//! sent with all others.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use antumbra_registration::RegistrationId;
use antumbra_service::clients::{LinkedClient, LinkedClients, Mode};
use antumbra_service::clock::Clock;
use antumbra_service::deliveries::{Delivery, Queues, queue_message};
use antumbra_service::sensors::{SensorEvent, SensorId};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use futures_util::{StreamExt as _, stream};

use crate::dispatch_list::{Content, Entry};
use crate::plan::Plan;
use crate::retry::read_with_retries;

const CONCURRENT_READS: usize = 8;

#[derive(Clone)]
#[allow(missing_docs)]
pub struct ClientsRoute {
    pub links: Arc<dyn LinkedClients>,
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
        (sensor, read_with_retries(deadline, clock, read).await)
    });
    let reads: Vec<_> = reads.collect();
    let linked: HashMap<&SensorId, Result<Vec<LinkedClient>, StoreError>> = stream::iter(reads)
        .buffer_unordered(CONCURRENT_READS)
        .collect()
        .await;
    for delivery in &deliveries {
        match &linked[&delivery.event.sensor] {
            Ok(clients) => {
                for client in clients {
                    let PendingDelivery { event, written, .. } = delivery;
                    let message = queue_message(&Delivery::new(event, *written, &client.client));
                    plan.list.push(Entry {
                        record: delivery.record,
                        registration: delivery.registration,
                        channel: match client.mode {
                            Mode::Every => channels.ordered,
                            Mode::Latest => channels.unordered,
                        },
                        content: Content::Message(Box::new(message)),
                        spilled: None,
                    });
                }
            }
            Err(error) if error.is_retryable() => plan.unfinished.push(delivery.record),
            Err(error) => plan.reject_delivery(delivery, error.to_string()),
        }
    }
}
