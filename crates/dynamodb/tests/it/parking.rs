//! A client that is enabled at the very moment at which a delivery to it is parked: the delivery goes out,
//! whichever comes first.

use std::sync::{Arc, Mutex};

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries};
use antumbra_service::clients::{ClientId, ClientState, ClientStore as _, LinkStore as _, Mode};
use antumbra_service::clock::ManualClock;
use antumbra_service::deliveries::{
    Attempt, Deliver, Deliveries, Delivery, DeliveryContext, DeliveryStore, History as _,
    HttpAnswer, MessageDisposition, Policy, Post, PostError, Queues, Sender, Status, decode,
};
use antumbra_service::store::StoreError;
use antumbra_shadow::Timestamp;
use antumbra_testkit::RecordingChannel;

use crate::clients::{Desk, at};
use crate::deliveries::delivery;

/// When the client is enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// Before the turn, which then knows of it.
    Before,
    /// The turn has read that the client is disabled, and written nothing.
    Read,
    /// The turn has written that the delivery is parked.
    Recorded,
    /// After the turn.
    After,
}

type Enabler = Deliveries<DynamoDbClients, DynamoDbDeliveries>;

/// The ledger, with somebody who enables the client at a moment.
struct Watched<'a> {
    ledger: DynamoDbDeliveries,
    enabler: &'a Enabler,
    client: ClientId,
    moment: Mutex<Option<Moment>>,
}

impl Watched<'_> {
    async fn reached(&self, moment: Moment) {
        let due = {
            let mut waited_for = self.moment.lock().unwrap();
            waited_for.take_if(|due| *due == moment).is_some()
        };
        if due {
            self.enabler.enable(&self.client).await.unwrap();
        }
    }
}

impl DeliveryStore for &Watched<'_> {
    async fn standing(&self, delivery: &Delivery) -> Result<DeliveryContext, StoreError> {
        let standing = self.ledger.standing(delivery).await;
        self.reached(Moment::Read).await;
        standing
    }

    async fn record(
        &self,
        delivery: &Delivery,
        status: Status,
        attempts: &[Attempt],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let recorded = self.ledger.record(delivery, status, attempts, now).await;
        self.reached(Moment::Recorded).await;
        recorded
    }

    async fn note_failure(
        &self,
        client: &ClientId,
        weight: u32,
        open_until: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.ledger.note_failure(client, weight, open_until).await
    }

    async fn note_success(&self, client: &ClientId) -> Result<(), StoreError> {
        self.ledger.note_success(client).await
    }

    async fn claim_probe(
        &self,
        client: &ClientId,
        seen: Option<Timestamp>,
        until: Timestamp,
    ) -> Result<bool, StoreError> {
        self.ledger.claim_probe(client, seen, until).await
    }

    async fn disable(
        &self,
        client: &ClientId,
        reason: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.ledger.disable(client, reason, now).await
    }
}

/// An endpoint that answers this once, and 204 after it.
struct Endpoint {
    first: Mutex<Option<u16>>,
    ids: Mutex<Vec<String>>,
}

impl Endpoint {
    fn saying(first: u16) -> Endpoint {
        Endpoint {
            first: Mutex::new(Some(first)),
            ids: Mutex::default(),
        }
    }
}

impl Sender for &Endpoint {
    async fn post(&self, post: Post<'_>) -> Result<HttpAnswer, PostError> {
        self.ids.lock().unwrap().push(post.id.to_string());
        Ok(HttpAnswer {
            status: self.first.lock().unwrap().take().unwrap_or(204),
            retry_after: None,
        })
    }
}

/// Takes the turns of a delivery and of whatever is queued meanwhile, and enables the client at a moment.
async fn enabled_at(moment: Moment, endpoint: &Endpoint, disabled: bool) {
    let desk = Desk::fresh().await;
    let client = desk.client("watch", Mode::Every).await.id;
    let sensor = desk.sensor("door-7").await;
    desk.clients.link(&client, &sensor, at(1)).await.unwrap();
    if disabled {
        let off = ClientState::Disabled {
            reason: "asked for".to_owned(),
            since: at(2),
        };
        desk.clients.set_state(&client, &off, at(2)).await.unwrap();
    }
    let clock = Arc::new(ManualClock::new(at(1000)));
    let queue = Arc::new(RecordingChannel::default());
    let deliveries = DynamoDbDeliveries::new(desk.database.clone(), &desk.table);
    let queues = Queues {
        ordered: queue.clone(),
        unordered: Arc::new(RecordingChannel::default()),
    };
    let enabler = Deliveries::new(
        desk.clients.clone(),
        deliveries.clone(),
        queues,
        clock.clone(),
    );
    let watched = Watched {
        ledger: deliveries.clone(),
        enabler: &enabler,
        client: client.clone(),
        moment: Mutex::new(Some(moment)),
    };
    watched.reached(Moment::Before).await;
    let deliver = Deliver::new(&watched, endpoint, clock.clone(), Policy::default());
    let sent = delivery("watch", "door-7", 100, 17);
    let mut turn = 1;
    while let MessageDisposition::Again(_) = deliver.turn(&sent, turn).await {
        turn += 1;
    }
    watched.reached(Moment::After).await;
    let mut queued = queue.take_accepted();
    while let Some(message) = queued.pop() {
        let again = decode(&message.body).unwrap();
        let settled = deliver.turn(&again, 1).await;
        assert_eq!(
            settled,
            MessageDisposition::Done(Status::Delivered),
            "{moment:?}"
        );
        queued.extend(queue.take_accepted());
    }
    let record = deliveries.get(&sent.id).await.unwrap().unwrap();
    assert_eq!(record.status, Status::Delivered, "{moment:?}");
    let ids = endpoint.ids.lock().unwrap();
    assert!(ids.iter().all(|id| *id == sent.id.to_string()));
}

#[tokio::test]
async fn what_is_parked_while_its_client_is_enabled_goes_out() {
    for moment in [
        Moment::Before,
        Moment::Read,
        Moment::Recorded,
        Moment::After,
    ] {
        enabled_at(moment, &Endpoint::saying(204), true).await;
    }
}

/// The turn itself disables the client, as its endpoint is gone; somebody enables it at once.
#[tokio::test]
async fn what_a_gone_endpoint_parks_goes_out_once_it_is_enabled() {
    for moment in [Moment::Recorded, Moment::After] {
        enabled_at(moment, &Endpoint::saying(410), false).await;
    }
}
