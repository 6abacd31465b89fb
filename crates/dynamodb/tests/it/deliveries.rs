//! Deliveries: one read and one write per attempt, and a correct history with concurrent writers.

use antumbra_dynamodb::DynamoDbDeliveries;
use antumbra_service::clients::{ClientState, ClientStore as _, LinkStore as _, Mode};
use antumbra_service::deliveries::{
    Attempt, Delivery, DeliveryId, DeliveryStore as _, EventType, History as _, HistoryQuery,
    SensorRef, Status, Subject,
};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::Version;
use antumbra_shadow::Timestamp;
use antumbra_testkit::dynamodb::Reply;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::value::RawValue;

use crate::clients::{ClientFixture, at};

struct DeliveryFixture {
    base: ClientFixture,
    deliveries: DynamoDbDeliveries,
}

impl DeliveryFixture {
    async fn fresh() -> DeliveryFixture {
        let base = ClientFixture::fresh().await;
        DeliveryFixture {
            deliveries: DynamoDbDeliveries::new(base.database.clone(), &base.table),
            base,
        }
    }

    /// A client linked to a sensor that has this many changes and contacts.
    async fn linked(&self, client: &str, sensor: &str, changes: u64, contacts: u64) {
        let client = self.base.client(client, Mode::Latest).await;
        let sensor = self.base.sensor(sensor).await;
        self.base
            .clients
            .link(&client.id, &sensor, at(1))
            .await
            .unwrap();
        self.base
            .database
            .put_item()
            .table_name(&self.base.table)
            .item("PK", AttributeValue::S(format!("SENSOR#{sensor}")))
            .item("SK", AttributeValue::S("STATE".to_owned()))
            .item("changes", AttributeValue::N(changes.to_string()))
            .item("contacts", AttributeValue::N(contacts.to_string()))
            .send()
            .await
            .unwrap();
        self.base.endpoint.take_calls();
    }

    async fn status(&self, delivery: &Delivery) -> (Status, usize) {
        let record = self.deliveries.get(&delivery.id).await.unwrap().unwrap();
        (record.status, record.attempts.len())
    }
}

pub(crate) fn delivery(client: &str, sensor: &str, time: i128, sequence: u64) -> Delivery {
    let client = antumbra_service::clients::ClientId::new(client).unwrap();
    Delivery {
        id: DeliveryId::new(&client, at(time), sequence, sensor),
        event_type: EventType::StateChanged,
        sequence,
        number: 3,
        occurred_at: at(time),
        sensor: Some(SensorRef {
            id: SensorId::new(sensor).unwrap(),
            address: "Poznań".to_owned(),
        }),
        data: RawValue::from_string(r#"{"current":1.50}"#.to_owned()).unwrap(),
        round: 0,
        released: false,
    }
}

fn attempt(number: u32, status: u16) -> Attempt {
    Attempt {
        at: Timestamp::from_nanoseconds(i128::from(number) * 1_000_000_000),
        round: 0,
        number,
        status: Some(status),
        latency_ms: 12,
        error: (status == 0).then(|| "refused".to_owned()),
    }
}

#[tokio::test]
async fn a_first_attempt_costs_one_read_and_one_write() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let sent = delivery("watch", "door-7", 100, 17);
    let standing = fixture.deliveries.context(&sent).await.unwrap();
    let (client, secrets) = standing.client.unwrap();
    assert_eq!((client.id.as_str(), client.mode), ("watch", Mode::Latest));
    assert_eq!(secrets.previous, None);
    assert!(standing.linked);
    assert_eq!((standing.newest, standing.delivered_round), (Some(4), None));
    fixture
        .deliveries
        .record(&sent, Status::Delivered, &[attempt(1, 204)], at(101))
        .await
        .unwrap();
    assert_eq!(
        fixture.base.endpoint.take_operations(),
        ["BatchGetItem", "UpdateItem"]
    );
    let standing = fixture.deliveries.context(&sent).await.unwrap();
    assert_eq!(standing.delivered_round, Some(0));
    let record = fixture.deliveries.get(&sent.id).await.unwrap().unwrap();
    assert_eq!(record.delivery.data.get(), sent.data.get());
    assert_eq!(record.delivery.id, sent.id);
    assert_eq!(
        (record.status, record.updated),
        (Status::Delivered, at(101))
    );
    assert_eq!(record.attempts, [attempt(1, 204)]);
}

#[tokio::test]
async fn newest_number_is_counted_by_kind() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let lost = Delivery {
        event_type: EventType::ConnectionLost,
        ..delivery("watch", "door-7", 100, 17)
    };
    let standing = fixture.deliveries.context(&lost).await.unwrap();
    assert_eq!(standing.newest, Some(2));
    let stranger = delivery("nobody", "ghost", 100, 17);
    let standing = fixture.deliveries.context(&stranger).await.unwrap();
    assert_eq!(standing, Default::default());
}

#[tokio::test]
async fn every_attempt_is_stored_once_up_to_a_limit() {
    let fixture = DeliveryFixture::fresh().await;
    let sent = delivery("watch", "door-7", 100, 17);
    // The response to the second is lost, so the SDK writes it again.
    for turn in 1..=60 {
        if turn == 2 {
            let lost = [Reply::PassThenDisconnect];
            fixture.base.endpoint.script_next("UpdateItem", lost);
        }
        let attempt = attempt(turn, 500);
        fixture
            .deliveries
            .record(&sent, Status::Failed, &[attempt], at(100))
            .await
            .unwrap();
    }
    let record = fixture.deliveries.get(&sent.id).await.unwrap().unwrap();
    let turns: Vec<u32> = record
        .attempts
        .iter()
        .map(|attempt| attempt.number)
        .collect();
    assert_eq!(turns, (11..=60).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_success_is_final_and_an_old_round_does_not_change_a_new_one() {
    let fixture = DeliveryFixture::fresh().await;
    let sent = delivery("watch", "door-7", 100, 17);
    let record = async |delivery: &Delivery, status, turn| {
        let attempt = attempt(turn, 0);
        let recorded = fixture
            .deliveries
            .record(delivery, status, &[attempt], at(100))
            .await;
        recorded.unwrap();
    };
    record(&sent, Status::Delivered, 1).await;
    // A duplicate of the failed message.
    record(&sent, Status::Failed, 2).await;
    assert_eq!(fixture.status(&sent).await, (Status::Delivered, 2));
    let again = Delivery {
        round: 1,
        ..sent.clone()
    };
    fixture.deliveries.requeued(&again, at(200)).await.unwrap();
    assert_eq!(fixture.status(&sent).await, (Status::Pending, 2));
    record(&sent, Status::Dead, 3).await;
    assert_eq!(fixture.status(&sent).await, (Status::Pending, 3));
    record(&again, Status::Failed, 4).await;
    assert_eq!(fixture.status(&sent).await, (Status::Failed, 4));
    // The delivery was attempted before the note that it was queued arrives.
    fixture.deliveries.requeued(&again, at(201)).await.unwrap();
    assert_eq!(fixture.status(&sent).await, (Status::Failed, 4));
    fixture
        .deliveries
        .record(&sent, Status::Skipped, &[], at(300))
        .await
        .unwrap();
    assert_eq!(fixture.status(&sent).await, (Status::Failed, 4));
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
        let status = if sequence == 2 {
            Status::Held
        } else {
            Status::Delivered
        };
        fixture
            .deliveries
            .record(&sent, status, &[attempt(1, 200)], at(time))
            .await
            .unwrap();
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
    let client = || Subject::Client(antumbra_service::clients::ClientId::new("a").unwrap());
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
    let parked = HistoryQuery {
        status: Some(Status::Held),
        ..of(client())
    };
    assert_eq!(read(parked).await, pick(&[1]));
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
    let client = antumbra_service::clients::ClientId::new("watch").unwrap();
    let ledger = &fixture.deliveries;
    ledger.record_failure(&client, 1, None).await.unwrap();
    ledger
        .record_failure(&client, 4, Some(at(50)))
        .await
        .unwrap();
    let stored = fixture.base.clients.get(&client).await.unwrap();
    assert_eq!(
        (stored.circuit.failures, stored.circuit.open_until),
        (5, Some(at(50)))
    );
    assert_eq!(stored.version, Version(1));
    let claims = (0..8).map(|_| ledger.claim_probe(&client, Some(at(50)), at(65)));
    let claims = futures_util::future::join_all(claims).await;
    let won = claims.into_iter().filter(|claim| claim.clone().unwrap());
    assert_eq!(won.count(), 1);
    ledger.record_success(&client).await.unwrap();
    assert!(
        !ledger
            .claim_probe(&client, Some(at(65)), at(80))
            .await
            .unwrap()
    );
    assert!(ledger.claim_probe(&client, None, at(80)).await.unwrap());
    ledger.disable(&client, "gone", at(70)).await.unwrap();
    ledger.disable(&client, "gone again", at(71)).await.unwrap();
    let stored = fixture.base.clients.get(&client).await.unwrap();
    let off = ClientState::Disabled {
        reason: "gone".to_owned(),
        since: at(70),
    };
    assert_eq!((stored.state, stored.version), (off, Version(2)));
    // Nothing is stored for a deleted client.
    let nobody = antumbra_service::clients::ClientId::new("nobody").unwrap();
    ledger
        .record_failure(&nobody, 1, Some(at(1)))
        .await
        .unwrap();
    ledger.record_success(&nobody).await.unwrap();
    ledger.disable(&nobody, "gone", at(1)).await.unwrap();
    assert!(!ledger.claim_probe(&nobody, None, at(1)).await.unwrap());
    assert!(fixture.base.clients.get(&nobody).await.is_err());
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
