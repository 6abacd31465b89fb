//! Deliveries: counted attempts, places to wait, and a correct history with concurrent writers.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbClients, DynamoDbDeliveries};
use antumbra_service::clients::{
    Circuit, ClientId, ClientPatch, ClientState, ClientStore as _, LinkStore as _, Mode,
};
use antumbra_service::clock::{Clock as _, ManualClock, time_left};
use antumbra_service::deliveries::{
    Attempt, Claim, DUE_SHARDS, Deliveries, Delivery, DeliveryContext, DeliveryId, DeliveryMessage,
    DeliveryStore as _, DueIndex as _, DueTask, EventType, History as _, HistoryQuery,
    NewDeliveries as _, Queues, Saved, SensorRef, Status, Subject, Transition, Wait, queue_due,
};
use antumbra_service::sensors::{Generation, SensorId};
use antumbra_service::store::Version;
use antumbra_shadow::Timestamp;
use antumbra_testkit::dynamodb::Reply;
use antumbra_testkit::{RecordingChannel, SendReply};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::value::RawValue;

use crate::clients::{at, disabled};
use crate::store::{Store, clients, text};

struct DeliveryFixture {
    base: Store<DynamoDbClients>,
    deliveries: DynamoDbDeliveries,
}

impl DeliveryFixture {
    async fn fresh() -> DeliveryFixture {
        let base = clients().await;
        DeliveryFixture {
            deliveries: DynamoDbDeliveries::new(base.client.clone(), &base.table),
            base,
        }
    }

    /// A client linked to a sensor that has this many changes and contacts.
    async fn linked(&self, client: &str, sensor: &str, changes: u64, contacts: u64) {
        let client = self.base.client(client, Mode::Latest).await;
        let sensor = self.base.sensor(sensor).await;
        self.base.link(&client.id, &sensor, at(1)).await.unwrap();
        let put = self.base.client.put_item().table_name(&self.base.table);
        let put = put.item("PK", text(&format!("SENSOR#{sensor}")));
        let put = put.item("SK", text("STATE"));
        let put = put.item("generation", text("g-1"));
        let put = put.item("changes", AttributeValue::N(changes.to_string()));
        let put = put.item("contacts", AttributeValue::N(contacts.to_string()));
        put.send().await.unwrap();
        self.base.endpoint.take_calls();
    }

    async fn add(&self, sequence: u64) -> Delivery {
        let new = delivery("watch", "door-7", 100, sequence);
        self.deliveries.add(&new, at(100)).await.unwrap();
        new
    }

    async fn status(&self, delivery: &Delivery) -> (Status, usize) {
        let record = self.deliveries.get(&delivery.id).await.unwrap().unwrap();
        (record.status, record.attempts.len())
    }

    async fn context(&self, delivery: &Delivery) -> (DeliveryContext, DeliveryMessage) {
        let message = match self.deliveries.get(&delivery.id).await.unwrap() {
            Some(record) => record.message(),
            None => DeliveryMessage::first(delivery),
        };
        let context = self.deliveries.context(&message).await.unwrap();
        (context, message)
    }

    async fn claim(
        &self,
        context: &DeliveryContext,
        message: &DeliveryMessage,
        token: &str,
    ) -> bool {
        let record = context.record.as_ref().unwrap();
        let claim = Claim {
            record,
            message,
            attempt: record.progress.begun + 1,
            token,
            until: at(130),
            interrupted: None,
            now: at(100),
        };
        self.deliveries.claim(&claim).await.unwrap()
    }

    async fn save(
        &self,
        context: &DeliveryContext,
        message: &DeliveryMessage,
        claim: Option<(&str, Attempt)>,
        status: Status,
        wait: Option<Wait>,
    ) -> Saved {
        let transition = Transition {
            context,
            record: context.record.as_ref().unwrap(),
            message,
            claim: claim.as_ref().map(|(token, _)| *token),
            status,
            attempts: claim.iter().map(|(_, attempt)| attempt.clone()).collect(),
            wait,
            in_order: true,
            now: at(101),
        };
        self.deliveries.save(&transition).await.unwrap()
    }

    /// One attempt with its result.
    async fn attempt(&self, delivery: &Delivery, status: Status, wait: Option<Wait>) -> Saved {
        let (context, message) = self.context(delivery).await;
        assert!(self.claim(&context, &message, "token").await);
        let number = context.record.as_ref().unwrap().progress.begun + 1;
        let made = attempt(message.round, number, 500);
        self.save(&context, &message, Some(("token", made)), status, wait)
            .await
    }

    /// The tasks of the due index at a time.
    async fn due(&self, now: Timestamp) -> Vec<DueTask> {
        let mut tasks = Vec::new();
        for shard in 0..DUE_SHARDS {
            let entries = self.deliveries.due(shard, now, 100).await.unwrap();
            tasks.extend(entries.into_iter().map(|entry| entry.task));
        }
        tasks
    }
}

pub(crate) fn delivery(client: &str, sensor: &str, time: i128, sequence: u64) -> Delivery {
    let client = ClientId::new(client).unwrap();
    Delivery {
        id: DeliveryId::new(&client, at(time), sequence, sensor),
        event_type: EventType::StateChanged,
        sequence,
        number: 3,
        occurred_at: at(time),
        sensor: Some(SensorRef {
            id: SensorId::new(sensor).unwrap(),
            address: "Poznań".to_owned(),
            generation: Generation::new("g-1").unwrap(),
        }),
        data: RawValue::from_string(r#"{"current":1.50}"#.to_owned()).unwrap(),
    }
}

fn attempt(round: u32, number: u32, status: u16) -> Attempt {
    Attempt {
        at: at(i128::from(number)),
        round,
        number,
        status: Some(status),
        latency_ms: 12,
        error: None,
    }
}

#[tokio::test]
async fn an_attempt_costs_one_read_and_two_writes() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let sent = fixture.add(17).await;
    // The stream is read again after a crash.
    fixture.deliveries.add(&sent, at(105)).await.unwrap();
    fixture.base.endpoint.take_calls();
    let message = DeliveryMessage::first(&sent);
    let context = fixture.deliveries.context(&message).await.unwrap();
    let (client, secrets) = context.client.as_ref().unwrap();
    assert_eq!((client.id.as_str(), client.mode), ("watch", Mode::Latest));
    assert_eq!(secrets.previous, None);
    assert!(context.linked);
    assert_eq!((context.newest, context.deferred), (Some(4), 0));
    assert_eq!(context.generation, Generation::new("g-1").ok());
    assert!(fixture.claim(&context, &message, "token").await);
    let claim = Some(("token", attempt(0, 1, 204)));
    let saved = fixture.save(&context, &message, claim, Status::Delivered, None);
    assert_eq!(saved.await, Saved::Applied(None));
    assert_eq!(
        fixture.base.operations(),
        ["BatchGetItem", "UpdateItem", "UpdateItem"]
    );
    let record = fixture.deliveries.get(&sent.id).await.unwrap().unwrap();
    assert_eq!(record.progress.delivered_round, Some(0));
    assert_eq!(record.delivery.data.get(), sent.data.get());
    assert_eq!(record.delivery.id, sent.id);
    assert_eq!(
        (record.status, record.updated),
        (Status::Delivered, at(101))
    );
    assert_eq!(record.attempts, [attempt(0, 1, 204)]);
}

#[tokio::test]
async fn newest_number_is_counted_by_kind() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let lost = Delivery {
        event_type: EventType::ConnectionLost,
        ..delivery("watch", "door-7", 100, 17)
    };
    fixture.deliveries.add(&lost, at(100)).await.unwrap();
    assert_eq!(fixture.context(&lost).await.0.newest, Some(2));
    let stranger = delivery("nobody", "ghost", 100, 17);
    let (context, _) = fixture.context(&stranger).await;
    assert!(context.record.is_none() && context.client.is_none() && !context.linked);
}

#[tokio::test]
async fn an_attempt_is_claimed_once_and_counted_also_if_it_is_interrupted() {
    let fixture = DeliveryFixture::fresh().await;
    let sent = fixture.add(1).await;
    let (context, message) = fixture.context(&sent).await;
    let tokens: Vec<String> = (0..6).map(|n| format!("token-{n}")).collect();
    let claims = tokens
        .iter()
        .map(|token| fixture.claim(&context, &message, token));
    let claims = futures_util::future::join_all(claims).await;
    assert_eq!(claims.iter().filter(|won| **won).count(), 1);
    let record = fixture.deliveries.get(&sent.id).await.unwrap().unwrap();
    assert_eq!(record.progress.begun, 1);
    assert_eq!(record.progress.claimed_until, Some(at(130)));
    // A lost response does not lose the claim.
    let other = fixture.add(2).await;
    let (context, message) = fixture.context(&other).await;
    let lost = [Reply::PassThenDisconnect];
    fixture.base.endpoint.script_next("UpdateItem", lost);
    assert!(fixture.claim(&context, &message, "token").await);
    // Without the claim nothing but a success is recorded.
    let late = |status| Some(("other", attempt(0, 1, status)));
    let failed = fixture.save(&context, &message, late(500), Status::Failed, None);
    assert_eq!(failed.await, Saved::Changed);
    let success = fixture.save(&context, &message, late(204), Status::Delivered, None);
    assert_eq!(success.await, Saved::Applied(None));
    assert_eq!(fixture.status(&other).await, (Status::Delivered, 1));
}

#[tokio::test]
async fn the_newest_attempts_are_kept() {
    let fixture = DeliveryFixture::fresh().await;
    let sent = fixture.add(17).await;
    for number in 1..=60 {
        if number == 2 {
            // The response to the result is lost, so the SDK writes it again.
            let lost = [Reply::Pass, Reply::PassThenDisconnect];
            fixture.base.endpoint.script_next("UpdateItem", lost);
        }
        let wait = Some(Wait::InQueue(at(100)));
        let saved = fixture.attempt(&sent, Status::Failed, wait).await;
        assert_eq!(saved, Saved::Applied(None));
    }
    let record = fixture.deliveries.get(&sent.id).await.unwrap().unwrap();
    let numbers: Vec<u32> = record.attempts.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (11..=60).collect::<Vec<_>>());
    assert_eq!(record.progress.begun, 60);
}

#[tokio::test]
async fn a_success_settles_a_released_delivery_but_not_one_requested_by_hand() {
    let fixture = DeliveryFixture::fresh().await;
    for (sequence, manual, expected) in [(1, false, Status::Delivered), (2, true, Status::Pending)]
    {
        let sent = fixture.add(sequence).await;
        let (context, message) = fixture.context(&sent).await;
        assert!(fixture.claim(&context, &message, "token").await);
        // Queued again while the attempt is made.
        let again = context.record.as_ref().unwrap().next_round(manual);
        fixture.deliveries.requeued(&again, at(100)).await.unwrap();
        let claim = Some(("token", attempt(0, 1, 204)));
        let saved = fixture.save(&context, &message, claim, Status::Delivered, None);
        assert_eq!(saved.await, Saved::Applied(None));
        assert_eq!(fixture.status(&sent).await, (expected, 1), "{manual}");
        // The record that it was queued arrives once more, and late.
        fixture.deliveries.requeued(&again, at(101)).await.unwrap();
        assert_eq!(fixture.status(&sent).await, (expected, 1), "{manual}");
        let record = fixture.deliveries.get(&sent.id).await.unwrap().unwrap();
        assert_eq!(record.progress.delivered_round, Some(0));
    }
}

#[tokio::test]
async fn later_deliveries_wait_behind_a_deferred_one_and_follow_it() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let (one, two, three) = (
        fixture.add(1).await,
        fixture.add(2).await,
        fixture.add(3).await,
    );
    // Without a deferred delivery, none can wait behind it.
    let (context, message) = fixture.context(&two).await;
    let saved = fixture.save(
        &context,
        &message,
        None,
        Status::Pending,
        Some(Wait::Behind),
    );
    assert_eq!(saved.await, Saved::Changed);
    let due = Some(Wait::Due(at(200)));
    let saved = fixture.attempt(&one, Status::Failed, due).await;
    assert_eq!(saved, Saved::Applied(None));
    for waiting in [&two, &three] {
        let (context, message) = fixture.context(waiting).await;
        assert_eq!(context.oldest_deferred, Some(one.id.order()));
        let saved = fixture.save(
            &context,
            &message,
            None,
            Status::Pending,
            Some(Wait::Behind),
        );
        assert_eq!(saved.await, Saved::Applied(None));
    }
    assert!(fixture.due(at(199)).await.is_empty());
    assert_eq!(fixture.due(at(201)).await.len(), 1);
    let mut settled = &one;
    for next in [&two, &three] {
        let Saved::Applied(Some(message)) = fixture.attempt(settled, Status::Dead, None).await
        else {
            panic!("nothing follows {}", settled.sequence);
        };
        assert_eq!((&message.id, message.queued), (&next.id, 1));
        // It is in the due index as well, in case it is not queued.
        let due = fixture.due(at(201)).await;
        let is_next = |task: &DueTask| matches!(task, DueTask::Queue(record, _) if record.delivery.id == next.id);
        assert!(due.iter().any(is_next), "{due:?}");
        settled = next;
    }
    let last = fixture.attempt(settled, Status::Delivered, None).await;
    assert_eq!(last, Saved::Applied(None));
    let (context, _) = fixture.context(&three).await;
    assert_eq!((context.deferred, context.oldest_deferred), (0, None));
    // The remaining index entries belong to deliveries that no longer wait.
    let rest = fixture.due(at(300)).await;
    assert!(
        rest.iter().all(|task| matches!(task, DueTask::Nothing)),
        "{rest:?}"
    );
}

#[tokio::test]
async fn held_deliveries_are_found_without_reading_the_history() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let client = ClientId::new("watch").unwrap();
    for sequence in 0..40 {
        let sent = fixture.add(sequence).await;
        if sequence % 10 == 0 {
            let (context, message) = fixture.context(&sent).await;
            let held = fixture.save(&context, &message, None, Status::Held, Some(Wait::Held));
            assert_eq!(held.await, Saved::Applied(None));
        }
    }
    fixture.base.endpoint.take_calls();
    let held = fixture.deliveries.held(&client, 3).await.unwrap();
    assert_eq!(fixture.base.operations(), ["Query", "BatchGetItem"]);
    let sequence = |record: &antumbra_service::deliveries::DeliveryRecord| record.delivery.sequence;
    let sequences: Vec<_> = held
        .iter()
        .map(|one| one.record.as_ref().map(sequence))
        .collect();
    assert_eq!(sequences, [Some(0), Some(10), Some(20)]);
    // The first one is attempted meanwhile.
    let first = delivery("watch", "door-7", 100, 0);
    fixture.attempt(&first, Status::Delivered, None).await;
    let held = fixture.deliveries.held(&client, 1).await.unwrap();
    assert!(held[0].record.is_none());
    fixture
        .deliveries
        .remove_held(&client, &held[0])
        .await
        .unwrap();
    let held = fixture.deliveries.held(&client, 10).await.unwrap();
    assert_eq!(held.len(), 3);
    // Enabling a client, or deleting it, leaves a task to release them.
    let disabled = disabled("requested", 1);
    let clients = &*fixture.base;
    clients.set_state(&client, &disabled, at(1)).await.unwrap();
    assert!(fixture.due(at(300)).await.is_empty());
    clients
        .set_state(&client, &ClientState::Enabled, at(2))
        .await
        .unwrap();
    let due = fixture.due(at(300)).await;
    assert!(
        matches!(&due[..], [DueTask::Release(id)] if *id == client),
        "{due:?}"
    );
    clients.delete(&client, None, true).await.unwrap();
    assert_eq!(fixture.due(at(300)).await.len(), 2);
}

/// Each call takes 20 ms, as on AWS: a page of held deliveries would take longer than a second.
#[tokio::test]
async fn enabling_a_client_takes_half_a_second_and_loses_nothing() {
    for mode in [Mode::Every, Mode::Latest] {
        let fixture = DeliveryFixture::fresh().await;
        fixture.linked("watch", "door-7", 4, 2).await;
        let client = ClientId::new("watch").unwrap();
        let patch = ClientPatch {
            mode: Some(mode),
            ..ClientPatch::default()
        };
        let changed = fixture.base.update(&client, &patch, None, at(1));
        changed.await.unwrap();
        for sequence in 0..60 {
            let sent = fixture.add(sequence).await;
            let (context, message) = fixture.context(&sent).await;
            let held = fixture.save(&context, &message, None, Status::Held, Some(Wait::Held));
            held.await;
        }
        let clock = Arc::new(ManualClock::new(at(200)));
        let channel = Arc::new(RecordingChannel::default());
        let passing = clock.clone();
        channel.reply(move |_| {
            passing.advance(Duration::from_millis(20));
            SendReply::Accept
        });
        let queues = Queues {
            ordered: channel.clone(),
            unordered: channel.clone(),
        };
        let deliveries = Deliveries::new(
            fixture.base.clone(),
            fixture.deliveries.clone(),
            queues.clone(),
            clock.clone(),
        );
        fixture.base.endpoint.hold_until(0);
        let released = deliveries.enable(&client).await.unwrap();
        let taken = time_left(at(200), clock.now());
        assert!(taken < Duration::from_secs(1), "{mode:?}: {taken:?}");
        assert!(!released.finished && released.queued < 60, "{released:?}");
        let (clients, store) = (&*fixture.base, &fixture.deliveries);
        let rest = queue_due(clients, store, &queues, &*clock, at(300)).await;
        assert_eq!((released.queued + rest.released, rest.failed), (60, 0));
        assert!(store.held(&client, 1).await.unwrap().is_empty());
        let ids: Vec<_> = channel
            .accepted()
            .iter()
            .map(|one| one.id.clone())
            .collect();
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), 60);
        // Those of one sensor follow each other in mode `every`.
        let at_once = fixture.base.endpoint.most_at_once();
        match mode {
            Mode::Every => assert!(at_once == 1 && ids.is_sorted(), "{at_once}: {ids:?}"),
            Mode::Latest => assert!(at_once > 1, "{at_once}"),
        }
    }
}

#[tokio::test]
async fn histories_are_read_per_client_and_per_sensor_in_pages() {
    let fixture = DeliveryFixture::fresh().await;
    let mut all = Vec::new();
    for (client, sensor, time, sequence) in [
        ("a", "s1", 100, 1),
        ("a", "s1", 100, 2),
        ("a", "s2", 101, 1),
        ("b", "s1", 100, 1),
        ("a", "s1", 103, 3),
    ] {
        let sent = delivery(client, sensor, time, sequence);
        fixture.deliveries.add(&sent, at(time)).await.unwrap();
        let (status, wait) = match sequence {
            2 => (Status::Held, Some(Wait::Held)),
            _ => (Status::Delivered, None),
        };
        fixture.attempt(&sent, status, wait).await;
        all.push(sent.id.to_string());
    }
    let read = async |query: HistoryQuery| {
        let mut ids = Vec::new();
        let mut cursor = None;
        loop {
            let page = fixture
                .deliveries
                .list(&query, cursor.as_ref())
                .await
                .unwrap();
            assert!(page.rows.len() <= query.limit);
            ids.extend(page.rows.iter().map(|row| row.delivery.id.to_string()));
            cursor = page.next;
            if cursor.is_none() {
                return ids;
            }
        }
    };
    let of = |subject| HistoryQuery {
        limit: 2,
        oldest_first: true,
        ..HistoryQuery::of(subject)
    };
    let client = || Subject::Client(ClientId::new("a").unwrap());
    let sensor = || Subject::Sensor(SensorId::new("s1").unwrap());
    let pick = |places: &[usize]| places.iter().map(|at| all[*at].clone()).collect::<Vec<_>>();
    assert_eq!(read(of(client())).await, pick(&[0, 1, 2, 4]));
    assert_eq!(read(of(sensor())).await, pick(&[0, 3, 1, 4]));
    let newest = HistoryQuery {
        oldest_first: false,
        ..of(client())
    };
    assert_eq!(read(newest).await, pick(&[4, 2, 1, 0]));
    let part = |subject| HistoryQuery {
        from: Some(at(101)),
        to: Some(at(103)),
        ..of(subject)
    };
    assert_eq!(read(part(client())).await, pick(&[2]));
    assert_eq!(read(part(sensor())).await, Vec::<String>::new());
    let held = HistoryQuery {
        status: Some(Status::Held),
        ..of(client())
    };
    assert_eq!(read(held).await, pick(&[1]));
    let page = fixture.deliveries.list(&of(client()), None).await.unwrap();
    let mixed = fixture
        .deliveries
        .list(&of(sensor()), page.next.as_ref())
        .await;
    assert!(mixed.is_err());
}

#[tokio::test]
async fn one_of_many_claims_the_probe_and_a_success_closes_the_circuit() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 1, 1).await;
    let client = ClientId::new("watch").unwrap();
    let store = &fixture.deliveries;
    store
        .record_failure(&client, 1, None, at(40))
        .await
        .unwrap();
    store
        .record_failure(&client, 4, Some(at(50)), at(41))
        .await
        .unwrap();
    let stored = fixture.base.get(&client).await.unwrap();
    assert_eq!(
        (stored.circuit.failures, stored.circuit.open_until),
        (5, Some(at(50)))
    );
    assert_eq!(stored.circuit.failing_since, Some(at(40)));
    assert_eq!(stored.version, Version(1));
    let claims = (0..8).map(|_| store.claim_probe(&client, Some(at(50)), at(51), at(65)));
    let claims = futures_util::future::join_all(claims).await;
    let won = claims.into_iter().filter(|claim| claim.clone().unwrap());
    assert_eq!(won.count(), 1);
    let circuit = async || fixture.base.get(&client).await.unwrap().circuit;
    let probed = circuit().await;
    assert_eq!(
        (probed.open_until, probed.probing_since),
        (Some(at(65)), Some(at(51)))
    );
    store.record_success(&client).await.unwrap();
    assert_eq!(circuit().await, Circuit::default());
    assert!(
        !store
            .claim_probe(&client, Some(at(65)), at(66), at(80))
            .await
            .unwrap()
    );
    let probe = store.claim_probe(&client, None, at(66), at(80)).await;
    assert!(probe.unwrap());
    assert_eq!(circuit().await.probing_since, Some(at(66)));
    let failed = store.record_failure(&client, 1, Some(at(90)), at(67)).await;
    failed.unwrap();
    let open = circuit().await;
    assert_eq!((open.open_until, open.probing_since), (Some(at(90)), None));
    // An endpoint that the client has left does not disable it.
    let moved = antumbra_service::clients::Client {
        url: "https://former.example/".to_owned(),
        ..stored.clone()
    };
    assert!(!store.disable(&moved, "gone", at(69)).await.unwrap());
    assert!(store.disable(&stored, "gone", at(70)).await.unwrap());
    assert!(store.disable(&stored, "gone again", at(71)).await.unwrap());
    let stored = fixture.base.get(&client).await.unwrap();
    let off = disabled("gone", 70);
    assert_eq!((stored.state.clone(), stored.version), (off, Version(2)));
    // Nothing is stored for a deleted client.
    let nobody = ClientId::new("nobody").unwrap();
    store
        .record_failure(&nobody, 1, Some(at(1)), at(1))
        .await
        .unwrap();
    store.record_success(&nobody).await.unwrap();
    let deleted = antumbra_service::clients::Client {
        id: nobody.clone(),
        ..stored
    };
    assert!(!store.disable(&deleted, "gone", at(1)).await.unwrap());
    assert!(
        !store
            .claim_probe(&nobody, None, at(1), at(1))
            .await
            .unwrap()
    );
    assert!(fixture.base.get(&nobody).await.is_err());
}

#[tokio::test]
async fn no_key_condition_of_a_history_has_an_empty_value() {
    let fixture = DeliveryFixture::fresh().await;
    let (from, to) = (Some(at(1)), Some(at(9)));
    for subject in [
        Subject::Client("watch".parse().unwrap()),
        Subject::Sensor(SensorId::new("door-7").unwrap()),
    ] {
        for (from, to) in [(None, None), (from, None), (None, to), (from, to)] {
            let query = HistoryQuery {
                from,
                to,
                ..HistoryQuery::of(subject.clone())
            };
            fixture.deliveries.list(&query, None).await.unwrap();
            for call in fixture.base.endpoint.take_calls() {
                let values = call.body["ExpressionAttributeValues"].as_object().unwrap();
                for (name, value) in values {
                    assert_ne!(value["S"], "", "{name} of {query:?}");
                }
            }
        }
    }
}
