//! The console on the port of the HTTP API: its pages, and the changes that it follows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use antumbra_console::{
    ChangedItem, Changes, Console, DEVICE_CHANGES, Follow, FollowedChange, Options, Place,
    ShadowChange, system_zone,
};
use antumbra_dynamodb::MAIN;
use antumbra_dynamodb::streams::event::invocation;
use antumbra_dynamodb::streams::{Client, Record, StreamFollower};
use antumbra_http_api::Services;
use antumbra_service::history::{ChangedDocument, DocumentChange, RecordedChange};
use antumbra_service::shadows::{ShadowId, Version};
use antumbra_shadow::{Document, Model, Patch, State, Timestamp};
use antumbra_wire::items::{ItemChange, ItemKey, ItemKind, KeyBuffer};
use antumbra_wire::stream::{StreamBatch, Tape};
use aws_types::SdkConfig;
use futures_util::StreamExt as _;
use futures_util::stream;

/// Pause between polls of an unchanged stream, while a page is open.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of the values of a change that pages show.
const CHANGE_BYTES: usize = 64 * 1024;

pub(super) fn console(
    services: Arc<Services>,
    sdk: SdkConfig,
    streams: Vec<String>,
    address: SocketAddr,
) -> Arc<Console> {
    let model = services.shadows.model().clone();
    let open = move || {
        let of = |arn: &String| changes(sdk.clone(), arn.clone(), model.clone());
        stream::select_all(streams.iter().map(of)).boxed()
    };
    let follow = Follow {
        open: Arc::new(open),
        has_items: true,
    };
    Console::new(Options {
        services,
        place: Place {
            name: "local".to_owned(),
            account: None,
            table: MAIN.name.to_owned(),
            options: "--local".to_owned(),
            registrations: None,
        },
        write: true,
        port: address.port(),
        zone: system_zone(),
        follow: Some(follow),
        device_changes: DEVICE_CHANGES,
    })
}

/// Follows the stream of a table. Locally a third reader costs nothing, and it is faster than the feed.
fn changes(sdk: SdkConfig, arn: String, model: Model) -> Changes {
    let client = Client::new(&sdk);
    let start = async move {
        let follower = StreamFollower::start(&client, &arn).await;
        (follower.map_err(|error| error.to_string()), arn, model)
    };
    stream::once(start)
        .flat_map(|(follower, arn, model)| match follower {
            Err(reason) => stream::once(async { Err(reason) }).boxed(),
            Ok(follower) => stream::unfold((follower, arn, model), next).boxed(),
        })
        .boxed()
}

type Following = (StreamFollower, String, Model);

async fn next(
    (mut follower, arn, model): Following,
) -> Option<(Result<Vec<FollowedChange>, String>, Following)> {
    loop {
        let page = match follower.next().await {
            Ok(records) if records.is_empty() => {
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            }
            Ok(records) => records
                .iter()
                .flat_map(|record| record_changes(&arn, record, &model))
                .collect(),
            Err(error) => return Some((Err(error.to_string()), (follower, arn, model))),
        };
        return Some((Ok(page), (follower, arn, model)));
    }
}

/// The change in a record. Records that cannot be decoded and those of unknown items have none.
fn record_changes(arn: &str, record: &Record, model: &Model) -> Vec<FollowedChange> {
    let Ok(event) = invocation(arn, std::slice::from_ref(record)) else {
        return Vec::new();
    };
    let mut changes = Vec::new();
    let (mut batch, mut tape, mut keys) = (
        StreamBatch::default(),
        Tape::default(),
        KeyBuffer::default(),
    );
    let Ok(records) = batch.read(&event) else {
        return changes;
    };
    for record in records.iter().flatten() {
        // As in the feed.
        let id = record.event_id().into_owned();
        let key = keys.read(record);
        if key.item.shadow().is_none() {
            if let ItemKey::Known(kind, owner, _) = key.item {
                let owner = owner.to_owned();
                changes.push(FollowedChange::Item(ChangedItem { kind, owner }));
            }
            continue;
        }
        let Ok(images) = record.images(&mut tape) else {
            continue;
        };
        let change = shadow_change(id, &ItemChange::new(record, key, images), model);
        changes.extend(change.map(FollowedChange::Shadow));
    }
    changes
}

fn shadow_change(id: String, item: &ItemChange<'_>, model: &Model) -> Option<ShadowChange> {
    let recorded = item.recorded()?;
    let kind = ItemKind::Shadow(recorded.key.item);
    let (partition, sort) = (
        kind.partition(&recorded.key.id),
        kind.sort(&recorded.key.name),
    );
    let [before, after] = recorded.documents;
    let pairs = [
        (State::Reported, before.reported, after.reported),
        (State::Desired, before.desired, after.desired),
    ];
    let time = Timestamp::from_nanoseconds(recorded.key.time.into());
    let version = Version(i64::try_from(recorded.version).unwrap_or(i64::MAX));
    let (mut changed, mut documents) = (Vec::new(), Vec::new());
    for (state, old, new) in pairs {
        if old == new {
            continue;
        }
        let none = Document::default();
        let values = values(
            old.as_ref().unwrap_or(&none),
            new.as_ref().unwrap_or(&none),
            model,
        );
        changed.push(ChangedDocument { state, values });
        documents.push(DocumentChange {
            key: format!("{partition}#{sort}"),
            state,
            time,
            version,
            operation: recorded.operation,
            client_token: recorded.client_token.clone(),
            old,
            new,
        });
    }
    // A write of times alone is no change.
    if changed.is_empty() {
        return None;
    }
    Some(ShadowChange {
        id,
        shadow: ShadowId::named(recorded.key.id, recorded.key.name).ok()?,
        change: RecordedChange {
            time,
            version,
            operation: recorded.operation,
            client_token: recorded.client_token,
            documents: changed,
        },
        documents,
    })
}

fn values(
    old: &Document,
    new: &Document,
    model: &Model,
) -> Option<Vec<antumbra_shadow::PatchedLeaf>> {
    let patch = Patch::between(old, new, model, CHANGE_BYTES)?;
    patch.leaves(model, CHANGE_BYTES).ok().flatten()
}
