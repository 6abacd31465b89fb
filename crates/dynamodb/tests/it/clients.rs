//! Clients and links: versions, separate secrets, links on both sides or on neither.

use antumbra_dynamodb::DynamoDbClients;
use antumbra_service::access::IdRanges;
use antumbra_service::clients::{
    Circuit, Client, ClientError, ClientId, ClientPatch, ClientState, ClientStore, Link, LinkStore,
    LinkedClients, Mode, RequestKey, Rotation, Secret,
};
use antumbra_service::sensors::SensorId;
use antumbra_service::store::{StoreError, Version};
use antumbra_shadow::Timestamp;
use antumbra_testkit::all_pages;
use antumbra_testkit::dynamodb::{self, Endpoint, Reply};
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Value, json};

use crate::store::{Store, clients, text};

impl Store<DynamoDbClients> {
    /// Stores the part of a sensor that links check.
    pub(crate) async fn sensor(&self, id: &str) -> SensorId {
        let key = format!("SENSOR#{id}");
        self.put(&[("PK", &key), ("SK", "SENSORINFO")]).await;
        SensorId::new(id).unwrap()
    }

    pub(crate) async fn client(&self, id: &str, mode: Mode) -> Client {
        let client = new(id, mode);
        let (secret, request) = (Secret::random(), by("somebody"));
        self.create(&client, &secret, &request).await.unwrap();
        client
    }

    /// A client linked to this many sensors.
    async fn client_linked_to(&self, sensors: usize) -> Client {
        let client = self.client("watch", Mode::Every).await;
        for n in 0..sensors {
            let sensor = self.sensor(&format!("s{n}")).await;
            self.link(&client.id, &sensor, at(1)).await.unwrap();
        }
        client
    }

    async fn links(&self, client: &Client) -> Vec<Link> {
        self.of_client(&client.id, 100, None).await.unwrap().rows
    }

    /// A client's own item as DynamoDB's JSON.
    async fn client_item(&self, client: &ClientId) -> Value {
        let get = self.client.get_item().table_name(&self.table);
        let get = get.key("PK", text(&format!("CLIENT#{client}")));
        let found = get.key("SK", text("CLIENTINFO")).send().await.unwrap();
        let attributes = found.item.unwrap().into_iter().map(|(name, value)| {
            let value = match value {
                AttributeValue::S(text) => json!({ "S": text }),
                AttributeValue::N(number) => json!({ "N": number }),
                other => panic!("{other:?}"),
            };
            (name, value)
        });
        Value::Object(attributes.collect())
    }
}

pub(crate) fn at(seconds: i128) -> Timestamp {
    Timestamp::from_nanoseconds(seconds * 1_000_000_000)
}

const CONFLICT: ClientError = ClientError::Conflict {
    expected: Version(1),
    actual: Version(2),
};

fn rename(name: &str) -> ClientPatch {
    ClientPatch {
        name: Some(name.to_owned()),
        ..ClientPatch::default()
    }
}

fn set_mode(mode: Mode) -> ClientPatch {
    ClientPatch {
        mode: Some(mode),
        ..ClientPatch::default()
    }
}

pub(crate) fn disabled(reason: &str, since: i128) -> ClientState {
    ClientState::Disabled {
        reason: reason.to_owned(),
        since: at(since),
    }
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
    let store = clients().await;
    let (client, secret) = (new("watch", Mode::Every), Secret::random());
    let made = store.create(&client, &secret, &by("a")).await;
    made.unwrap();
    assert_eq!(store.get(&client.id).await.unwrap(), client);
    let secrets = store.secrets(&client.id).await.unwrap();
    assert_eq!((secrets.current, secrets.previous), (secret, None));
    let other = Secret::random();
    let again = store.create(&client, &other, &by("a")).await;
    assert_eq!(again, Err(ClientError::AlreadyExists));
    let nobody = ClientId::new("nobody").unwrap();
    assert_eq!(store.get(&nobody).await, Err(ClientError::NotFound));
    assert_eq!(store.secrets(&nobody).await, Err(ClientError::NotFound));
}

#[tokio::test]
async fn secrets_are_only_in_their_own_table() {
    let store = clients().await;
    let secret = Secret::random();
    let client = new("watch", Mode::Every);
    let made = store.create(&client, &secret, &by("a")).await;
    made.unwrap();
    for item in store.items().await {
        let holds = format!("{item:?}").contains(secret.reveal());
        assert!(!holds, "{:?}", item["SK"]);
    }
    assert_eq!(store.secrets(&client.id).await.unwrap().current, secret);
}

#[tokio::test]
async fn changes_require_the_expected_version() {
    let store = clients().await;
    let client = store.client("watch", Mode::Every).await;
    let patch = rename("Night watch");
    let renamed = store
        .update(&client.id, &patch, Some(Version(1)), at(1_700_000_001))
        .await
        .unwrap();
    assert_eq!(
        (renamed.version, renamed.name.as_str()),
        (Version(2), "Night watch")
    );
    assert_eq!(renamed.url, client.url);
    let late = store
        .update(&client.id, &rename("Other"), Some(Version(1)), at(2))
        .await;
    assert_eq!(late, Err(CONFLICT));
    let deleted = store.delete(&client.id, Some(Version(1)), false, at(40));
    assert_eq!(deleted.await, Err(CONFLICT));
    let nobody = ClientId::new("nobody").unwrap();
    let missing = store.update(&nobody, &patch, None, at(2)).await;
    assert_eq!(missing, Err(ClientError::NotFound));
}

#[tokio::test]
async fn an_update_whose_response_was_lost_does_not_conflict_with_itself() {
    let store = clients().await;
    let client = store.client("watch", Mode::Every).await;
    let patch = rename("Night watch");
    store.lose_response("UpdateItem");
    let updated = store
        .update(&client.id, &patch, Some(Version(1)), at(2))
        .await;
    assert_eq!(updated.unwrap().version, Version(2));
}

#[tokio::test]
async fn disabling_and_enabling_are_idempotent() {
    let store = clients().await;
    let client = store.client("watch", Mode::Every).await;
    let off = disabled("asked", 5);
    let stored = store.set_state(&client.id, &off, at(5)).await.unwrap();
    assert_eq!((stored.version, &stored.state), (Version(2), &off));
    let later = disabled("again", 9);
    let same = store.set_state(&client.id, &later, at(9)).await;
    assert_eq!(same.unwrap(), stored);
    let on = store
        .set_state(&client.id, &ClientState::Enabled, at(6))
        .await
        .unwrap();
    assert_eq!((on.version, on.state), (Version(3), ClientState::Enabled));
}

#[tokio::test]
async fn rotation_keeps_one_previous_secret_if_the_response_is_lost() {
    let store = clients().await;
    let client = store.client("watch", Mode::Every).await;
    let first = store.secrets(&client.id).await.unwrap().current;
    let (second, third) = (Secret::random(), Secret::random());
    store.lose_response("UpdateItem");
    let rotate = async |secret: &Secret, until, request: &str, now| {
        let rotation = rotation(secret, until, request, now);
        let rotated = store.rotate(&client.id, &rotation).await.unwrap();
        let stored = store.secrets(&client.id).await.unwrap();
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
    let after_fourth = (fourth.clone(), Some((third, at(300))));
    assert_eq!(rotated, after_fourth);
    // The rotation before was interrupted after its write, and its request is repeated.
    let fifth = Secret::random();
    assert_eq!(rotate(&fifth, 400, "r2", 999).await, after_fourth);
    let rotated = rotate(&fifth, 400, "r2", 1000).await;
    assert_eq!(rotated, (fifth, Some((fourth, at(400)))));
    let nobody = ClientId::new("nobody").unwrap();
    let rotation = rotation(&Secret::random(), 1, "r", 0);
    let missing = store.rotate(&nobody, &rotation).await;
    assert_eq!(missing, Err(ClientError::NotFound));
}

#[tokio::test]
async fn links_exist_on_both_sides_or_neither_and_only_between_existing_items() {
    let store = clients().await;
    let client = store.client("watch", Mode::Latest).await;
    let door = store.sensor("door-7").await;
    let ghost = SensorId::new("ghost").unwrap();
    let nobody = ClientId::new("nobody").unwrap();
    let before = store.items().await.len();
    assert_eq!(
        store.link(&client.id, &ghost, at(1)).await,
        Err(ClientError::NoSensor)
    );
    assert_eq!(
        store.link(&nobody, &door, at(1)).await,
        Err(ClientError::NotFound)
    );
    assert_eq!(store.items().await.len(), before);
    store.link(&client.id, &door, at(10)).await.unwrap();
    store.link(&client.id, &door, at(20)).await.unwrap();
    assert_eq!(store.items().await.len(), before + 2);
    let of_client = store.of_client(&client.id, 10, None).await.unwrap();
    let of_sensor = store.of_sensor(&door, 10, None).await.unwrap();
    assert_eq!(of_client, of_sensor);
    assert_eq!(of_client.rows.len(), 1);
    assert_eq!(of_client.rows[0].since, at(10));
    let linked = store.linked(&door).await.unwrap();
    assert_eq!(
        (&linked[0].client, linked[0].mode),
        (&client.id, Mode::Latest)
    );
    store.unlink(&client.id, &door, at(30)).await.unwrap();
    assert_eq!(store.items().await.len(), before + 1, "the removal is kept");
    let page = store.of_sensor(&door, 10, None).await.unwrap();
    assert_eq!(page.rows, []);
    assert_eq!(
        store.unlink(&client.id, &door, at(30)).await,
        Err(ClientError::NotLinked)
    );
}

/// The clients that a sensor's events may go to, and the times at which their links were removed.
async fn linked(store: &impl LinkedClients, sensor: &SensorId) -> Vec<(String, Option<Timestamp>)> {
    let linked = store.linked(sensor).await.unwrap().into_iter();
    linked
        .map(|one| (one.client.to_string(), one.removed))
        .collect()
}

#[tokio::test]
async fn removed_links_are_known_to_the_listener_until_they_are_made_again() {
    let store = clients().await;
    let door = store.sensor("door-7").await;
    for (id, time) in [("a", 1), ("b", 2), ("c", 3)] {
        let client = store.client(id, Mode::Every).await;
        store.link(&client.id, &door, at(time)).await.unwrap();
    }
    let [a, b] = ["a", "b"].map(|id| ClientId::new(id).unwrap());
    store.unlink(&a, &door, at(10)).await.unwrap();
    store.delete(&b, None, true, at(20)).await.unwrap();
    let expected = [("a", Some(at(10))), ("b", Some(at(20))), ("c", None)];
    let expected = expected.map(|(id, removed)| (id.to_owned(), removed));
    assert_eq!(linked(&*store, &door).await, expected);
    store.link(&a, &door, at(30)).await.unwrap();
    assert_eq!(linked(&*store, &door).await[0], ("a".to_owned(), None));
    let kept = store.items().await;
    let kept = kept
        .iter()
        .find(|item| item["SK"] == text("CLIENTREMOVED#b"));
    let two_days_later = at(20 + 2 * 24 * 3600).nanoseconds() / 1_000_000_000;
    assert_eq!(
        kept.unwrap()["ttl"],
        AttributeValue::N(two_days_later.to_string())
    );
}

#[tokio::test]
async fn a_new_mode_is_set_on_every_link() {
    let store = clients().await;
    let client = store.client_linked_to(60).await;
    let patch = set_mode(Mode::Latest);
    // If it is interrupted, the same call completes it.
    let mut calls = 0;
    store.endpoint.script(move |call| {
        calls += usize::from(call.operation == "TransactWriteItems");
        match (call.operation.as_str(), calls) {
            ("TransactWriteItems", 2..) => Reply::fail(400, "AccessDeniedException"),
            _ => Reply::Pass,
        }
    });
    let broken = store.update(&client.id, &patch, None, at(2)).await;
    assert!(matches!(
        broken,
        Err(ClientError::Store(StoreError::Unavailable(_)))
    ));
    store.endpoint.script(|_| Reply::Pass);
    store.update(&client.id, &patch, None, at(3)).await.unwrap();
    let links = store.links(&client).await;
    assert_eq!(links.len(), 60);
    for link in links {
        assert_eq!(link.mode, Mode::Latest);
        let linked = store.linked(&link.sensor).await.unwrap();
        assert_eq!(linked[0].mode, Mode::Latest);
    }
}

#[tokio::test]
async fn a_repeated_change_of_the_mode_completes_it_although_its_precondition_fails() {
    let store = clients().await;
    let client = store.client_linked_to(1).await;
    let patch = set_mode(Mode::Latest);
    let interrupted = [Reply::fail(400, "AccessDeniedException")];
    store
        .endpoint
        .script_next("TransactWriteItems", interrupted);
    let change = async || {
        let expected = Some(Version(1));
        store.update(&client.id, &patch, expected, at(2)).await
    };
    assert!(matches!(change().await, Err(ClientError::Store(_))));
    assert_eq!(store.links(&client).await[0].mode, Mode::Every);
    assert_eq!(change().await, Err(CONFLICT));
    assert_eq!(store.links(&client).await[0].mode, Mode::Latest);
}

#[tokio::test]
async fn links_end_in_the_mode_of_their_client_after_concurrent_changes() {
    let store = clients().await;
    let client = store.client_linked_to(8).await;
    for round in 0..20 {
        let change = |mode| {
            let patch = set_mode(mode);
            let (clients, id) = (&*store, &client.id);
            async move { clients.update(id, &patch, None, at(2)).await }
        };
        let (one, other) = tokio::join!(change(Mode::Latest), change(Mode::Every));
        assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
        let mode = store.get(&client.id).await.unwrap().mode;
        let links = store.links(&client).await;
        let modes: Vec<Mode> = links.iter().map(|link| link.mode).collect();
        assert_eq!(modes, vec![mode; 8], "round {round}");
    }
}

#[tokio::test]
async fn a_mode_that_was_overtaken_is_not_written_to_links() {
    let store = clients().await;
    let client = store.client_linked_to(1).await;
    // The response to the change shows a mode that another change has replaced.
    let mut changed = store.client_item(&client.id).await;
    changed["mode"] = json!({ "S": "latest" });
    store.endpoint.script_next(
        "UpdateItem",
        [Reply::Respond(200, json!({ "Attributes": changed }))],
    );
    let patch = set_mode(Mode::Latest);
    let updated = store.update(&client.id, &patch, None, at(2)).await;
    assert_eq!(updated.unwrap().mode, Mode::Latest);
    let links = store.links(&client).await;
    assert_eq!(links[0].mode, Mode::Every);
}

#[tokio::test]
async fn a_cascading_delete_of_another_version_removes_no_link() {
    let store = clients().await;
    let client = store.client_linked_to(1).await;
    // The client changes after the delete has read it.
    let read = store.client_item(&client.id).await;
    let patch = rename("Another name");
    let patched = store.update(&client.id, &patch, None, at(2)).await;
    assert_eq!(patched.unwrap().version, Version(2));
    let (table, response) = (store.table.clone(), json!({ "Item": read }));
    store.endpoint.script(move |call| {
        match call.operation == "GetItem" && call.body["TableName"] == table {
            true => Reply::Respond(200, response.clone()),
            false => Reply::Pass,
        }
    });
    let deleted = store.delete(&client.id, Some(Version(1)), true, at(40));
    assert_eq!(deleted.await, Err(CONFLICT));
    let links = store.links(&client).await;
    assert_eq!(links.len(), 1);
    assert!(store.secrets(&client.id).await.is_ok());
}

#[tokio::test]
async fn an_interrupted_cascading_delete_is_completed_by_the_same_call_or_by_a_new_client() {
    for new_client in [false, true] {
        let store = clients().await;
        let sensor = store.sensor("door").await;
        let before = store.items().await.len();
        let client = store.client("watch", Mode::Every).await;
        store.link(&client.id, &sensor, at(1)).await.unwrap();
        store
            .endpoint
            .script_next("Query", [Reply::fail(400, "AccessDeniedException")]);
        let deleted = store.delete(&client.id, None, true, at(40)).await;
        assert!(deleted.is_err());
        assert_eq!(store.get(&client.id).await, Err(ClientError::NotFound));
        assert_eq!(store.secrets(&client.id).await, Err(ClientError::NotFound));
        if new_client {
            store.client("watch", Mode::Every).await;
            let links = store.links(&client).await;
            assert_eq!(links, []);
        } else {
            store.delete(&client.id, None, true, at(40)).await.unwrap();
            // The task that settles held deliveries and the removal of the link remain.
            assert_eq!(store.items().await.len(), before + 2);
        }
    }
}

/// The caller of a long delete has stopped waiting, repeats it, and creates the client again.
#[tokio::test]
async fn a_late_cascading_delete_leaves_a_new_client_alone() {
    let store = clients().await;
    let client = store.client_linked_to(1).await;
    let (table, secret) = (store.table.clone(), Secret::random());
    let (again, new_secret) = (client.clone(), secret.clone());
    let meanwhile = move || async move {
        let endpoint = Endpoint::start().await;
        let clients = DynamoDbClients::new(dynamodb::client(&endpoint), table);
        let (id, sensor) = (&again.id, SensorId::new("s0").unwrap());
        clients.delete(id, None, true, at(50)).await.unwrap();
        let created = clients.create(&again, &new_secret, &by("new")).await;
        created.unwrap();
        clients.link(id, &sensor, at(60)).await.unwrap();
    };
    let (mut meanwhile, mut transactions) = (Some(meanwhile), 0);
    store.endpoint.script(move |call| {
        transactions += usize::from(call.operation == "TransactWriteItems");
        // The second transaction removes the link.
        if transactions == 2
            && let Some(meanwhile) = meanwhile.take()
        {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let calls = std::thread::spawn(move || runtime.block_on(meanwhile()));
            calls.join().unwrap();
        }
        Reply::Pass
    });
    store.delete(&client.id, None, true, at(40)).await.unwrap();
    let secrets = store.secrets(&client.id).await.unwrap();
    assert_eq!(secrets.current, secret);
    assert_eq!(store.links(&client).await.len(), 1);
}

#[tokio::test]
async fn a_corrupt_client_is_the_stores_fault() {
    let store = clients().await;
    let client = store.client("watch", Mode::Every).await;
    for name in ["mode", "state", "version", "created"] {
        let update = store.client.update_item().table_name(&store.table);
        let broken = update
            .key("PK", text("CLIENT#watch"))
            .key("SK", text("CLIENTINFO"))
            .update_expression("SET #name = :broken")
            .expression_attribute_names("#name", name)
            .expression_attribute_values(":broken", text("broken"));
        broken.send().await.unwrap();
        let found = store.get(&client.id).await;
        let unavailable = matches!(found, Err(ClientError::Store(StoreError::Unavailable(_))));
        assert!(unavailable, "{name}: {found:?}");
    }
}

#[tokio::test]
async fn a_client_with_links_is_deleted_only_with_them() {
    let store = clients().await;
    let door = store.sensor("door-7").await;
    let before = store.items().await.len();
    let client = store.client("watch", Mode::Every).await;
    store.link(&client.id, &door, at(1)).await.unwrap();
    assert_eq!(
        store.delete(&client.id, None, false, at(40)).await,
        Err(ClientError::HasLinks)
    );
    assert!(store.get(&client.id).await.is_ok());
    store.delete(&client.id, None, true, at(40)).await.unwrap();
    // The task that settles held deliveries and the removal of the link remain.
    assert_eq!(store.items().await.len(), before + 2);
    assert_eq!(
        store.delete(&client.id, None, true, at(40)).await,
        Err(ClientError::NotFound)
    );
}

#[tokio::test]
async fn listings_are_paged_and_reject_foreign_cursors() {
    let store = clients().await;
    for n in 0..7 {
        store.client(&format!("c{n}"), Mode::Every).await;
    }
    let all = all_pages(3, async |cursor| {
        store.list(&IdRanges::all(), 3, cursor).await.unwrap()
    })
    .await;
    let ids: Vec<&str> = all.iter().map(|client| client.id.as_str()).collect();
    assert_eq!(ids, ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);
    let page = store.list(&IdRanges::all(), 3, None).await.unwrap();
    let client = ClientId::new("c0").unwrap();
    let mixed = store.of_client(&client, 3, page.next.as_ref()).await;
    assert!(matches!(
        mixed,
        Err(ClientError::Store(StoreError::Invalid(_)))
    ));
}
