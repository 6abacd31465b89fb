//! Clients and links: versions, separate secrets, links on both sides or on neither.

use antumbra_dynamodb::{DynamoDbClients, MAIN};
use antumbra_service::clients::{
    Circuit, Client, ClientError, ClientId, ClientPatch, ClientState, ClientStore, LinkStore,
    LinkedClients, Mode, RequestKey, Rotation, Secret,
};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use antumbra_testkit::dynamodb::{Endpoint, Reply, TestTable};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

pub(crate) struct ClientFixture {
    pub(crate) clients: DynamoDbClients,
    pub(crate) endpoint: Endpoint,
    pub(crate) database: aws_sdk_dynamodb::Client,
    pub(crate) table: String,
}

impl ClientFixture {
    pub(crate) async fn fresh() -> ClientFixture {
        let table = TestTable::create(MAIN).await;
        ClientFixture {
            clients: DynamoDbClients::new(table.client.clone(), &table.name),
            endpoint: table.endpoint,
            database: table.client,
            table: table.name,
        }
    }

    /// Stores the part of a sensor that links check.
    pub(crate) async fn sensor(&self, id: &str) -> SensorId {
        let text = |text: String| AttributeValue::S(text);
        self.database
            .put_item()
            .table_name(&self.table)
            .item("PK", text(format!("SENSOR#{id}")))
            .item("SK", text("SENSORINFO".to_owned()))
            .send()
            .await
            .unwrap();
        SensorId::new(id).unwrap()
    }

    pub(crate) async fn client(&self, id: &str, mode: Mode) -> Client {
        let client = new(id, mode);
        self.clients
            .create(&client, &Secret::random(), &by("somebody"))
            .await
            .unwrap();
        client
    }

    /// A client's own item as DynamoDB's JSON.
    async fn client_item(&self, client: &ClientId) -> Value {
        let get = self.database.get_item().table_name(&self.table);
        let found = get
            .key("PK", AttributeValue::S(format!("CLIENT#{client}")))
            .key("SK", AttributeValue::S("CLIENTINFO".to_owned()));
        let item = found.send().await.unwrap().item.unwrap();
        let attributes = item.into_iter().map(|(name, value)| {
            let value = match value {
                AttributeValue::S(text) => json!({ "S": text }),
                AttributeValue::N(number) => json!({ "N": number }),
                other => panic!("{other:?}"),
            };
            (name, value)
        });
        Value::Object(attributes.collect())
    }

    async fn count(&self) -> usize {
        let found = self.database.scan().table_name(&self.table).send().await;
        found.unwrap().items().len()
    }
}

pub(crate) fn at(seconds: i128) -> Timestamp {
    Timestamp::from_nanoseconds(seconds * 1_000_000_000)
}

fn by(request: &str) -> RequestKey {
    RequestKey {
        by: request.to_owned(),
        until: at(1000),
    }
}

fn rotation(secret: &Secret, previous_until: i128, request: &str, now: i128) -> Rotation {
    Rotation {
        secret: secret.clone(),
        previous_until: at(previous_until),
        requested: by(request),
        now: at(now),
    }
}

fn new(id: &str, mode: Mode) -> Client {
    Client {
        id: ClientId::new(id).unwrap(),
        name: format!("The {id}"),
        url: "https://hooks.example/in".to_owned(),
        mode,
        state: ClientState::Enabled,
        circuit: Circuit::default(),
        version: Version(1),
        created: at(1_700_000_000),
        updated: at(1_700_000_000),
    }
}

#[tokio::test]
async fn a_client_is_created_once_and_read_back() {
    let fixture = ClientFixture::fresh().await;
    let (client, secret) = (new("watch", Mode::Every), Secret::random());
    let made = fixture.clients.create(&client, &secret, &by("a")).await;
    made.unwrap();
    assert_eq!(fixture.clients.get(&client.id).await.unwrap(), client);
    let secrets = fixture.clients.secrets(&client.id).await.unwrap();
    assert_eq!((secrets.current, secrets.previous), (secret, None));
    let other = Secret::random();
    let again = fixture.clients.create(&client, &other, &by("a")).await;
    assert_eq!(again, Err(ClientError::AlreadyExists));
    let nobody = ClientId::new("nobody").unwrap();
    assert_eq!(
        fixture.clients.get(&nobody).await,
        Err(ClientError::NotFound)
    );
    assert_eq!(
        fixture.clients.secrets(&nobody).await,
        Err(ClientError::NotFound)
    );
}

#[tokio::test]
async fn secrets_are_only_in_their_own_item() {
    let fixture = ClientFixture::fresh().await;
    let secret = Secret::random();
    let client = new("watch", Mode::Every);
    let made = fixture.clients.create(&client, &secret, &by("a")).await;
    made.unwrap();
    let found = fixture
        .database
        .scan()
        .table_name(&fixture.table)
        .send()
        .await;
    for item in found.unwrap().items() {
        let holds = format!("{item:?}").contains(secret.reveal());
        let own = item["SK"].as_s().unwrap() == "CLIENTSECRETS";
        assert_eq!(holds, own, "{:?}", item["SK"]);
    }
}

#[tokio::test]
async fn changes_require_the_expected_version() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    let rename = |name: &str| ClientPatch {
        name: Some(name.to_owned()),
        ..ClientPatch::default()
    };
    let patch = rename("Night watch");
    let renamed = fixture
        .clients
        .update(&client.id, &patch, Some(Version(1)), at(1_700_000_001))
        .await
        .unwrap();
    assert_eq!(
        (renamed.version, renamed.name.as_str()),
        (Version(2), "Night watch")
    );
    assert_eq!(renamed.url, client.url);
    let late = fixture
        .clients
        .update(&client.id, &rename("Other"), Some(Version(1)), at(2))
        .await;
    let conflict = ClientError::Conflict {
        expected: Version(1),
        actual: Version(2),
    };
    assert_eq!(late, Err(conflict.clone()));
    assert_eq!(
        fixture
            .clients
            .delete(&client.id, Some(Version(1)), false)
            .await,
        Err(conflict)
    );
    let nobody = ClientId::new("nobody").unwrap();
    let missing = fixture.clients.update(&nobody, &patch, None, at(2)).await;
    assert_eq!(missing, Err(ClientError::NotFound));
}

#[tokio::test]
async fn an_update_whose_response_was_lost_does_not_conflict_with_itself() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    let patch = ClientPatch {
        name: Some("Night watch".to_owned()),
        ..ClientPatch::default()
    };
    fixture
        .endpoint
        .script_next("UpdateItem", [Reply::PassThenDisconnect]);
    let updated = fixture
        .clients
        .update(&client.id, &patch, Some(Version(1)), at(2))
        .await;
    assert_eq!(updated.unwrap().version, Version(2));
}

#[tokio::test]
async fn disabling_and_enabling_are_idempotent() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    let off = ClientState::Disabled {
        reason: "asked".to_owned(),
        since: at(5),
    };
    let disabled = fixture
        .clients
        .set_state(&client.id, &off, at(5))
        .await
        .unwrap();
    assert_eq!((disabled.version, &disabled.state), (Version(2), &off));
    let later = ClientState::Disabled {
        reason: "again".to_owned(),
        since: at(9),
    };
    let same = fixture.clients.set_state(&client.id, &later, at(9)).await;
    assert_eq!(same.unwrap(), disabled);
    let on = fixture
        .clients
        .set_state(&client.id, &ClientState::Enabled, at(6))
        .await
        .unwrap();
    assert_eq!((on.version, on.state), (Version(3), ClientState::Enabled));
}

#[tokio::test]
async fn rotation_keeps_one_previous_secret_if_the_response_is_lost() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    let first = fixture.clients.secrets(&client.id).await.unwrap().current;
    let (second, third) = (Secret::random(), Secret::random());
    fixture
        .endpoint
        .script_next("UpdateItem", [Reply::PassThenDisconnect]);
    let rotate = async |secret: &Secret, until, request: &str, now| {
        let rotation = rotation(secret, until, request, now);
        let rotated = fixture.clients.rotate(&client.id, &rotation).await.unwrap();
        let stored = fixture.clients.secrets(&client.id).await.unwrap();
        assert_eq!(rotated, stored);
        (rotated.current, rotated.previous)
    };
    let rotated = rotate(&second, 100, "r2", 10).await;
    let after_second = (second.clone(), Some((first, at(100))));
    assert_eq!(rotated, after_second);
    // While the rotation is remembered, repeating its request changes nothing.
    assert_eq!(rotate(&third, 150, "r2", 999).await, after_second);
    let rotated = rotate(&third, 200, "r2", 1000).await;
    assert_eq!(rotated, (third.clone(), Some((second, at(200)))));
    let fourth = Secret::random();
    let rotated = rotate(&fourth, 300, "r3", 20).await;
    assert_eq!(rotated, (fourth, Some((third, at(300)))));
    let nobody = ClientId::new("nobody").unwrap();
    let rotation = rotation(&Secret::random(), 1, "r", 0);
    let missing = fixture.clients.rotate(&nobody, &rotation).await;
    assert_eq!(missing, Err(ClientError::NotFound));
}

#[tokio::test]
async fn links_exist_on_both_sides_or_neither_and_only_between_existing_items() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Latest).await;
    let door = fixture.sensor("door-7").await;
    let ghost = SensorId::new("ghost").unwrap();
    let nobody = ClientId::new("nobody").unwrap();
    let before = fixture.count().await;
    assert_eq!(
        fixture.clients.link(&client.id, &ghost, at(1)).await,
        Err(ClientError::NoSensor)
    );
    assert_eq!(
        fixture.clients.link(&nobody, &door, at(1)).await,
        Err(ClientError::NotFound)
    );
    assert_eq!(fixture.count().await, before);
    fixture
        .clients
        .link(&client.id, &door, at(10))
        .await
        .unwrap();
    fixture
        .clients
        .link(&client.id, &door, at(20))
        .await
        .unwrap();
    assert_eq!(fixture.count().await, before + 2);
    let of_client = fixture
        .clients
        .of_client(&client.id, 10, None)
        .await
        .unwrap();
    let of_sensor = fixture.clients.of_sensor(&door, 10, None).await.unwrap();
    assert_eq!(of_client, of_sensor);
    assert_eq!(of_client.rows.len(), 1);
    assert_eq!(of_client.rows[0].since, at(10));
    let linked = fixture.clients.linked(&door).await.unwrap();
    assert_eq!(
        (&linked[0].client, linked[0].mode),
        (&client.id, Mode::Latest)
    );
    fixture.clients.unlink(&client.id, &door).await.unwrap();
    assert_eq!(fixture.count().await, before);
    assert_eq!(
        fixture.clients.unlink(&client.id, &door).await,
        Err(ClientError::NotLinked)
    );
}

#[tokio::test]
async fn a_new_mode_is_set_on_every_link() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    for n in 0..60 {
        let sensor = fixture.sensor(&format!("s{n}")).await;
        fixture
            .clients
            .link(&client.id, &sensor, at(1))
            .await
            .unwrap();
    }
    let patch = ClientPatch {
        mode: Some(Mode::Latest),
        ..ClientPatch::default()
    };
    // If it is interrupted, the same call completes it.
    let mut calls = 0;
    fixture.endpoint.script(move |call| {
        calls += usize::from(call.operation == "TransactWriteItems");
        match (call.operation.as_str(), calls) {
            ("TransactWriteItems", 2..) => Reply::fail(400, "AccessDeniedException"),
            _ => Reply::Pass,
        }
    });
    let broken = fixture
        .clients
        .update(&client.id, &patch, None, at(2))
        .await;
    assert!(matches!(
        broken,
        Err(ClientError::Store(StoreError::Unavailable(_)))
    ));
    fixture.endpoint.script(|_| Reply::Pass);
    fixture
        .clients
        .update(&client.id, &patch, None, at(3))
        .await
        .unwrap();
    let links = fixture
        .clients
        .of_client(&client.id, 100, None)
        .await
        .unwrap();
    assert_eq!(links.rows.len(), 60);
    for link in links.rows {
        assert_eq!(link.mode, Mode::Latest);
        let linked = fixture.clients.linked(&link.sensor).await.unwrap();
        assert_eq!(linked[0].mode, Mode::Latest);
    }
}

#[tokio::test]
async fn links_end_in_the_mode_of_their_client_after_concurrent_changes() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    for n in 0..8 {
        let sensor = fixture.sensor(&format!("s{n}")).await;
        fixture
            .clients
            .link(&client.id, &sensor, at(1))
            .await
            .unwrap();
    }
    for round in 0..20 {
        let change = |mode| {
            let patch = ClientPatch {
                mode: Some(mode),
                ..ClientPatch::default()
            };
            let (clients, id) = (&fixture.clients, &client.id);
            async move { clients.update(id, &patch, None, at(2)).await }
        };
        let (one, other) = tokio::join!(change(Mode::Latest), change(Mode::Every));
        assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
        let mode = fixture.clients.get(&client.id).await.unwrap().mode;
        let links = fixture
            .clients
            .of_client(&client.id, 100, None)
            .await
            .unwrap();
        let modes: Vec<Mode> = links.rows.iter().map(|link| link.mode).collect();
        assert_eq!(modes, vec![mode; 8], "round {round}");
    }
}

#[tokio::test]
async fn a_mode_that_was_overtaken_is_not_written_to_links() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    let sensor = fixture.sensor("door").await;
    fixture
        .clients
        .link(&client.id, &sensor, at(1))
        .await
        .unwrap();
    // The response to the change shows a mode that another change has replaced.
    let mut changed = fixture.client_item(&client.id).await;
    changed["mode"] = json!({ "S": "latest" });
    fixture.endpoint.script_next(
        "UpdateItem",
        [Reply::Respond(200, json!({ "Attributes": changed }))],
    );
    let patch = ClientPatch {
        mode: Some(Mode::Latest),
        ..ClientPatch::default()
    };
    let updated = fixture
        .clients
        .update(&client.id, &patch, None, at(2))
        .await;
    assert_eq!(updated.unwrap().mode, Mode::Latest);
    let links = fixture
        .clients
        .of_client(&client.id, 10, None)
        .await
        .unwrap();
    assert_eq!(links.rows[0].mode, Mode::Every);
}

#[tokio::test]
async fn a_cascading_delete_of_another_version_removes_no_link() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    let sensor = fixture.sensor("door").await;
    fixture
        .clients
        .link(&client.id, &sensor, at(1))
        .await
        .unwrap();
    // The client changes after the delete has read it.
    let read = fixture.client_item(&client.id).await;
    let patch = ClientPatch {
        name: Some("Another name".to_owned()),
        ..ClientPatch::default()
    };
    let patched = fixture
        .clients
        .update(&client.id, &patch, None, at(2))
        .await;
    assert_eq!(patched.unwrap().version, Version(2));
    let responses = json!({ "Responses": { &fixture.table: [read] } });
    fixture
        .endpoint
        .script_next("BatchGetItem", [Reply::Respond(200, responses)]);
    let deleted = fixture
        .clients
        .delete(&client.id, Some(Version(1)), true)
        .await;
    let conflict = ClientError::Conflict {
        expected: Version(1),
        actual: Version(2),
    };
    assert_eq!(deleted, Err(conflict));
    let links = fixture
        .clients
        .of_client(&client.id, 10, None)
        .await
        .unwrap();
    assert_eq!(links.rows.len(), 1);
    assert!(fixture.clients.secrets(&client.id).await.is_ok());
}

#[tokio::test]
async fn an_interrupted_cascading_delete_is_completed_by_the_same_call_or_by_a_new_client() {
    for new_client in [false, true] {
        let fixture = ClientFixture::fresh().await;
        let sensor = fixture.sensor("door").await;
        let before = fixture.count().await;
        let client = fixture.client("watch", Mode::Every).await;
        fixture
            .clients
            .link(&client.id, &sensor, at(1))
            .await
            .unwrap();
        fixture
            .endpoint
            .script_next("Query", [Reply::fail(400, "AccessDeniedException")]);
        let deleted = fixture.clients.delete(&client.id, None, true).await;
        assert!(deleted.is_err());
        assert_eq!(
            fixture.clients.get(&client.id).await,
            Err(ClientError::NotFound)
        );
        assert_eq!(
            fixture.clients.secrets(&client.id).await,
            Err(ClientError::NotFound)
        );
        if new_client {
            fixture.client("watch", Mode::Every).await;
            let links = fixture
                .clients
                .of_client(&client.id, 10, None)
                .await
                .unwrap();
            assert_eq!(links.rows, []);
        } else {
            fixture
                .clients
                .delete(&client.id, None, true)
                .await
                .unwrap();
            // The task that settles held deliveries remains.
            assert_eq!(fixture.count().await, before + 1);
        }
    }
}

#[tokio::test]
async fn a_corrupt_client_is_the_stores_fault() {
    let fixture = ClientFixture::fresh().await;
    let client = fixture.client("watch", Mode::Every).await;
    for name in ["mode", "state", "version", "created"] {
        let update = fixture.database.update_item().table_name(&fixture.table);
        let broken = update
            .key("PK", AttributeValue::S("CLIENT#watch".to_owned()))
            .key("SK", AttributeValue::S("CLIENTINFO".to_owned()))
            .update_expression("SET #name = :broken")
            .expression_attribute_names("#name", name)
            .expression_attribute_values(":broken", AttributeValue::S("broken".to_owned()));
        broken.send().await.unwrap();
        let found = fixture.clients.get(&client.id).await;
        let unavailable = matches!(found, Err(ClientError::Store(StoreError::Unavailable(_))));
        assert!(unavailable, "{name}: {found:?}");
    }
}

#[tokio::test]
async fn a_client_with_links_is_deleted_only_with_them() {
    let fixture = ClientFixture::fresh().await;
    let door = fixture.sensor("door-7").await;
    let before = fixture.count().await;
    let client = fixture.client("watch", Mode::Every).await;
    fixture
        .clients
        .link(&client.id, &door, at(1))
        .await
        .unwrap();
    assert_eq!(
        fixture.clients.delete(&client.id, None, false).await,
        Err(ClientError::HasLinks)
    );
    assert!(fixture.clients.get(&client.id).await.is_ok());
    fixture
        .clients
        .delete(&client.id, None, true)
        .await
        .unwrap();
    // The task that settles held deliveries remains.
    assert_eq!(fixture.count().await, before + 1);
    assert_eq!(
        fixture.clients.delete(&client.id, None, true).await,
        Err(ClientError::NotFound)
    );
}

#[tokio::test]
async fn listings_are_paged_and_reject_foreign_cursors() {
    let fixture = ClientFixture::fresh().await;
    for n in 0..7 {
        fixture.client(&format!("c{n}"), Mode::Every).await;
    }
    let mut ids = Vec::new();
    let mut cursor = None;
    loop {
        let page = fixture.clients.list(3, cursor.as_ref()).await.unwrap();
        assert!(page.rows.len() <= 3);
        ids.extend(page.rows.into_iter().map(|client| client.id.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(ids, ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);
    let page = fixture.clients.list(3, None).await.unwrap();
    let client = ClientId::new("c0").unwrap();
    let mixed = fixture
        .clients
        .of_client(&client, 3, page.next.as_ref())
        .await;
    assert!(matches!(
        mixed,
        Err(ClientError::Store(StoreError::Invalid(_)))
    ));
}
