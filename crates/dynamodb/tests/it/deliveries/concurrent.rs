//! Attempts, redeliveries and releases that meet.

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::{Delivery, DueTask, History as _, Saved, Status, Wait};
use antumbra_testkit::dynamodb::Reply;
use serde_json::{Value, json};

use super::fixture::{DeliveryFixture, attempt};
use crate::clients::at;

impl DeliveryFixture {
    async fn read_response(&self, delivery: &Delivery) -> Value {
        let (client, order) = (delivery.id.client(), delivery.id.order());
        let key = json!({
            "PK": { "S": format!("CLIENT#{client}") },
            "SK": { "S": format!("DELIVERY#{order}") },
        });
        let read = json!({ "TableName": self.base.table, "Key": key });
        let (status, response) = self.base.endpoint.call("GetItem", &read).await;
        assert_eq!(status, 200, "{response}");
        response
    }

    /// Two deliveries of a sensor that were held and released. The first failed since and is due later.
    async fn released(&self) -> [Delivery; 2] {
        self.linked("watch", "door-7", 4, 2).await;
        let deliveries = [self.add(1).await, self.add(2).await];
        for held in &deliveries {
            let (context, message) = self.context(held).await;
            let saved = self.wait(&context, &message, Wait::Held).await;
            assert_eq!(saved, Saved::Applied(None));
        }
        for held in &deliveries {
            let record = self.deliveries.get(&held.id).await.unwrap().unwrap();
            let released = record.next_round(false);
            self.deliveries.requeued(&released, at(100)).await.unwrap();
        }
        let due = Some(Wait::Due(at(200)));
        self.attempt(&deliveries[0], Status::Failed, due).await;
        deliveries
    }
}

#[tokio::test]
async fn later_deliveries_wait_for_a_redelivery_that_was_requested_during_an_attempt() {
    for is_followed in [false, true] {
        let fixture = DeliveryFixture::fresh().await;
        fixture.linked("watch", "door-7", 4, 2).await;
        let (one, two) = (fixture.add(1).await, fixture.add(2).await);
        let due = Some(Wait::Due(at(200)));
        fixture.attempt(&one, Status::Failed, due).await;
        if is_followed {
            let (context, message) = fixture.context(&two).await;
            let saved = fixture.wait(&context, &message, Wait::Behind).await;
            assert_eq!(saved, Saved::Applied(None));
        }
        let (context, message) = fixture.context(&one).await;
        assert!(fixture.claim(&context, &message, "token").await);
        let again = context.record.as_ref().unwrap().next_round(true);
        fixture.deliveries.requeued(&again, at(100)).await.unwrap();
        let success = Some(("token", attempt(0, 2, 204)));
        let saved = fixture.save(&context, &message, success, Status::Delivered, None);
        assert_eq!(saved.await, Saved::Applied(None), "the new round is open");
        let (context, _) = fixture.context(&one).await;
        assert_eq!(context.deferred, 1 + u32::from(is_followed));
        assert_eq!(context.oldest_deferred, Some(one.id.order()));
        let last = fixture.attempt(&one, Status::Delivered, None).await;
        let next = match last {
            Saved::Applied(next) => next.map(|message| message.id),
            Saved::Changed => panic!("not recorded"),
        };
        assert_eq!(next, is_followed.then(|| two.id.clone()));
        assert_eq!(fixture.status(&one).await, (Status::Delivered, 3));
    }
}

#[tokio::test]
async fn an_attempt_that_fails_after_a_redelivery_was_requested_is_recorded_once() {
    for write in [Reply::Pass, Reply::PassThenDisconnect] {
        let fixture = DeliveryFixture::fresh().await;
        let sent = fixture.add(1).await;
        let (context, message) = fixture.context(&sent).await;
        assert!(fixture.claim(&context, &message, "token").await);
        let again = context.record.as_ref().unwrap().next_round(true);
        fixture.deliveries.requeued(&again, at(100)).await.unwrap();
        fixture.base.endpoint.script_next("UpdateItem", [write]);
        let failure = Some(("token", attempt(0, 1, 500)));
        let wait = Some(Wait::Due(at(200)));
        let saved = fixture.save(&context, &message, failure, Status::Failed, wait);
        assert_eq!(saved.await, Saved::Changed);
        let record = fixture.deliveries.get(&sent.id).await.unwrap().unwrap();
        assert_eq!(record.attempts, [attempt(0, 1, 500)]);
        let progress = (record.status, record.progress.round, record.progress.begun);
        assert_eq!(progress, (Status::Pending, 1, 0));
    }
}

#[tokio::test]
async fn a_released_delivery_does_not_wait_behind_one_that_was_settled_meanwhile() {
    let fixture = DeliveryFixture::fresh().await;
    let [one, two] = fixture.released().await;
    let (context, message) = fixture.context(&two).await;
    assert_eq!(context.oldest_deferred, Some(one.id.order()));
    let settled = fixture.attempt(&one, Status::Delivered, None).await;
    assert_eq!(settled, Saved::Applied(None));
    let saved = fixture.wait(&context, &message, Wait::Behind).await;
    assert_eq!(saved, Saved::Changed);
}

#[tokio::test]
async fn a_settled_delivery_wakes_one_that_began_to_wait_behind_it_meanwhile() {
    let fixture = DeliveryFixture::fresh().await;
    let [one, two] = fixture.released().await;
    let before = fixture.read_response(&two).await;
    let (context, message) = fixture.context(&one).await;
    assert!(fixture.claim(&context, &message, "token").await);
    let (behind, behind_message) = fixture.context(&two).await;
    let saved = fixture.wait(&behind, &behind_message, Wait::Behind).await;
    assert_eq!(saved, Saved::Applied(None));
    // The first one has read the second one before it waited.
    let stale = [Reply::Respond(200, before)];
    fixture.base.endpoint.script_next("GetItem", stale);
    let success = Some(("token", attempt(1, 2, 204)));
    let saved = fixture.save(&context, &message, success, Status::Delivered, None);
    let Saved::Applied(Some(next)) = saved.await else {
        panic!("nothing follows");
    };
    assert_eq!(next.id, two.id);
    let due = fixture.due(at(201)).await;
    let is_next =
        |task: &DueTask| matches!(task, DueTask::Queue(record, _) if record.delivery.id == two.id);
    assert!(due.iter().any(is_next), "{due:?}");
}

#[tokio::test]
async fn a_delivery_that_is_held_again_in_its_round_stays_in_the_list() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let client = ClientId::new("watch").unwrap();
    let sent = fixture.add(1).await;
    let (context, message) = fixture.context(&sent).await;
    fixture.wait(&context, &message, Wait::Held).await;
    // The client was enabled before the record, so the delivery is attempted.
    let (context, message) = fixture.context(&sent).await;
    assert!(fixture.claim(&context, &message, "token").await);
    let listed = fixture.deliveries.held(&client, 10).await.unwrap();
    assert!(listed[0].record.is_none());
    let gone = Some(("token", attempt(0, 1, 410)));
    let held = fixture.save(&context, &message, gone, Status::Held, Some(Wait::Held));
    assert_eq!(held.await, Saved::Applied(None));
    let store = &fixture.deliveries;
    store.remove_held(&client, &listed[0]).await.unwrap();
    let listed = store.held(&client, 10).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(listed[0].record.is_some());
}
