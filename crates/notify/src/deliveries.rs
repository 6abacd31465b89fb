//! The target `clients`: what occurred at sensors, to the deliveries queues, one message per client.
//!
//! The plan says what occurred (pure); here the links of each sensor are looked up, once per event, and
//! the messages made. They go out with all others, by the same rules of order, retry and parking.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use antumbra_registration::RegistrationId;
use antumbra_service::backoff;
use antumbra_service::clients::{LinkedClient, LinkedClients, Mode};
use antumbra_service::clock::{Clock, time_left};
use antumbra_service::deliveries::{Delivery, Queues, queue_message};
use antumbra_service::notifications::{Message, Outbox};
use antumbra_service::sensors::SensorEvent;
use antumbra_service::sensors::SensorId;
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use futures_util::{StreamExt as _, stream};

use crate::plan::Plan;

/// Sensors whose links are looked up at the same time.
const AT_ONCE: usize = 8;

/// How to reach linked clients.
#[derive(Clone)]
pub struct ClientsRoute {
    /// Who is linked to a sensor.
    pub links: Arc<dyn LinkedClients>,
    /// Where deliveries go.
    pub queues: Queues,
}

/// The channels of the two queues, by their place among all channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) ordered: usize,
    pub(crate) unordered: usize,
}

/// Something that occurred, and which record told of it.
#[derive(Debug)]
pub(crate) struct PendingDelivery {
    pub(crate) record: usize,
    pub(crate) registration: RegistrationId,
    pub(crate) event: SensorEvent,
    /// When the state was written, by the clock of the table.
    pub(crate) written: Option<Timestamp>,
}

/// A message to a client.
struct Addressed {
    record: usize,
    registration: RegistrationId,
    channel: usize,
    message: Message,
}

/// The plan with the messages to clients behind its own.
pub(crate) struct DispatchList<'p, 'l> {
    plan: &'p Plan<'l>,
    addressed: Vec<Addressed>,
    /// Records whose links could not be looked up in time.
    pub(crate) undone: Vec<usize>,
    /// Positions of what can never be addressed, with the reason.
    pub(crate) refused: Vec<(usize, String)>,
}

impl<'p, 'l> DispatchList<'p, 'l> {
    /// Looks up who is to be told.
    pub(crate) async fn of(
        plan: &'p Plan<'l>,
        route: Option<(&ClientsRoute, Places)>,
        deadline: Timestamp,
        clock: &dyn Clock,
    ) -> DispatchList<'p, 'l> {
        let mut all = DispatchList {
            plan,
            addressed: Vec::new(),
            undone: Vec::new(),
            refused: Vec::new(),
        };
        let Some((route, places)) = route else {
            return all;
        };
        let sensors: BTreeSet<&SensorId> =
            plan.to_tell.iter().map(|told| &told.event.sensor).collect();
        let looks: Vec<_> = sensors
            .into_iter()
            .map(|sensor| look(route, sensor, deadline, clock))
            .collect();
        let linked: HashMap<&SensorId, Result<Vec<LinkedClient>, StoreError>> = stream::iter(looks)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        for (position, told) in plan.to_tell.iter().enumerate() {
            match &linked[&told.event.sensor] {
                Ok(clients) => {
                    for client in clients {
                        all.addressed.push(Addressed {
                            record: told.record,
                            registration: told.registration,
                            channel: match client.mode {
                                Mode::Every => places.ordered,
                                Mode::Latest => places.unordered,
                            },
                            message: queue_message(&Delivery::new(
                                &told.event,
                                told.written,
                                &client.client,
                            )),
                        });
                    }
                }
                Err(error) if error.is_retryable() => all.undone.push(told.record),
                Err(error) => all.refused.push((position, error.to_string())),
            }
        }
        all
    }

    /// The record that caused a message.
    pub(crate) fn record_of(&self, index: usize) -> usize {
        match self.addressed(index) {
            Some(addressed) => addressed.record,
            None => self.plan.record_of(index),
        }
    }

    /// The registration that asked for a message.
    pub(crate) fn registration_of(&self, index: usize) -> RegistrationId {
        match self.addressed(index) {
            Some(addressed) => addressed.registration,
            None => self.plan.registration_of(index),
        }
    }

    fn addressed(&self, index: usize) -> Option<&Addressed> {
        self.addressed.get(index.checked_sub(self.plan.len())?)
    }
}

impl Outbox for DispatchList<'_, '_> {
    fn len(&self) -> usize {
        self.plan.len() + self.addressed.len()
    }

    fn channel(&self, index: usize) -> usize {
        match self.addressed(index) {
            Some(addressed) => addressed.channel,
            None => self.plan.channel(index),
        }
    }

    fn key(&self, index: usize) -> &str {
        match self.addressed(index) {
            Some(addressed) => &addressed.message.key,
            None => self.plan.key(index),
        }
    }

    fn bytes(&self, index: usize) -> usize {
        match self.addressed(index) {
            Some(addressed) => addressed.message.bytes(),
            None => self.plan.bytes(index),
        }
    }

    fn message(&self, index: usize) -> Message {
        match self.addressed(index) {
            Some(addressed) => addressed.message.clone(),
            None => self.plan.message(index),
        }
    }
}

async fn look<'s>(
    route: &ClientsRoute,
    sensor: &'s SensorId,
    deadline: Timestamp,
    clock: &dyn Clock,
) -> (&'s SensorId, Result<Vec<LinkedClient>, StoreError>) {
    (sensor, linked(route, sensor, deadline, clock).await)
}

/// Tries again until the deadline.
async fn linked(
    route: &ClientsRoute,
    sensor: &SensorId,
    deadline: Timestamp,
    clock: &dyn Clock,
) -> Result<Vec<LinkedClient>, StoreError> {
    let mut failures = 0;
    loop {
        let left = time_left(clock.now(), deadline);
        let looked = tokio::time::timeout(left, route.links.linked(sensor)).await;
        let error = match looked {
            Ok(Ok(clients)) => return Ok(clients),
            Ok(Err(error)) if !error.is_retryable() => return Err(error),
            Ok(Err(error)) => error,
            Err(_) => return Err(StoreError::Unavailable("no answer in time".to_owned())),
        };
        failures += 1;
        let pause: Duration = backoff::delay(failures, fastrand::f64());
        if clock.now().after(pause) >= deadline {
            return Err(error);
        }
        clock.sleep(pause).await;
    }
}
