//! Deliveries: counted attempts, places to wait, and a correct history with concurrent writers.

mod concurrent;
mod fixture;
mod waiting;

use antumbra_service::clients::{Circuit, ClientId, ClientStore as _, Mode};
use antumbra_service::deliveries::{
    Delivery, DeliveryMessage, DeliveryStore as _, EventType, History as _, HistoryQuery,
    NewDeliveries as _, Saved, Status, Subject, Wait,
};
use antumbra_service::sensors::{Generation, SensorId};
use antumbra_service::store::Version;
use antumbra_testkit::all_pages;
use antumbra_testkit::dynamodb::Reply;

use crate::clients::{at, disabled};

pub(crate) use fixture::delivery;
use fixture::{DeliveryFixture, attempt};

#[tokio::test]
async fn an_attempt_reads_twice_at_once_and_writes_twice() {
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
    let mut calls = fixture.base.operations();
    calls.sort_unstable();
    assert_eq!(
        calls,
        ["BatchGetItem", "GetItem", "UpdateItem", "UpdateItem"]
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
            let lost = [Reply::PassThenDisconnect];
            let endpoint = &fixture.base.endpoint;
            endpoint.script_next("TransactWriteItems", lost);
        }
        let wait = Some(Wait::Due(at(100)));
        let saved = fixture.attempt(&sent, Status::Failed, wait).await;
        assert!(matches!(saved, Saved::Applied(Some(_))), "{saved:?}");
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
        let next = async |cursor: Option<&_>| {
            let page = fixture.deliveries.list(&query, cursor).await;
            page.unwrap()
        };
        let rows = all_pages(query.limit, next).await.into_iter();
        rows.map(|row| row.delivery.id.to_string())
            .collect::<Vec<_>>()
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
    let others = [
        of(sensor()),
        part(client()),
        HistoryQuery {
            to: Some(at(103)),
            ..of(client())
        },
        HistoryQuery {
            status: Some(Status::Delivered),
            ..of(client())
        },
        HistoryQuery {
            oldest_first: false,
            ..of(client())
        },
    ];
    for other in others {
        let mixed = fixture.deliveries.list(&other, page.next.as_ref()).await;
        assert!(mixed.is_err(), "{other:?}");
    }
    for subject in [client(), sensor()] {
        let reversed = HistoryQuery {
            from: Some(at(104)),
            to: Some(at(103)),
            ..of(subject)
        };
        let refused = fixture.deliveries.list(&reversed, None).await.err();
        let reason = refused.unwrap().to_string();
        assert!(reason.contains("from is after to"), "{reason}");
    }
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
