//! Stream records are trimmed after a day, unless an earlier run has left them unread.

use std::path::Path;
use std::time::Duration;

use antumbra_dynamodb::{MAIN, MESSAGES};
use antumbra_local::dynamodb::{self, Storage, delete_read_records};
use aws_sdk_dynamodbstreams::types::ShardIteratorType;
use dynoxide::storage::Storage as Engine;

use crate::support::{Tables, eventually, tables, text};

/// Writes a different number each time, because an unchanged item leaves no record.
async fn put(here: &Tables, count: usize) {
    for at in 0..count {
        let number = format!("{at}{}", fastrand::u64(1..));
        here.put("s", &[("n", &number)]).await;
    }
}

/// Ages every record by two days.
fn age(path: &Path) {
    let engine = Engine::new(path.to_str().unwrap()).unwrap();
    let older = "UPDATE _stream_records SET created_at = created_at - 172800";
    engine.conn().execute_batch(older).unwrap();
}

fn kept(path: &Path, table: &str) -> usize {
    let engine = Engine::new(path.to_str().unwrap()).unwrap();
    let count = "SELECT COUNT(*) FROM _stream_records WHERE table_name = ?1";
    let count = engine.conn().query_row(count, [table], |row| row.get(0));
    count.unwrap()
}

/// Returns the stream of the main table, its shard and all sequence numbers.
async fn numbers(here: &Tables) -> (String, String, Vec<String>) {
    let stream = MAIN.ensure(&here.client).await.unwrap().stream_arn.unwrap();
    let described = here.streams.describe_stream().stream_arn(&stream);
    let described = described.send().await.unwrap().stream_description.unwrap();
    let shard = described.shards()[0].shard_id().unwrap().to_owned();
    let iterator = here.streams.get_shard_iterator().stream_arn(&stream);
    let iterator = iterator
        .shard_id(&shard)
        .shard_iterator_type(ShardIteratorType::TrimHorizon);
    let iterator = iterator.send().await.unwrap().shard_iterator.unwrap();
    let records = here.streams.get_records().shard_iterator(iterator);
    let records = records.send().await.unwrap().records.unwrap();
    let number = |record: &aws_sdk_dynamodbstreams::types::Record| {
        let change = record.dynamodb().unwrap();
        change.sequence_number().unwrap().to_owned()
    };
    (stream, shard, records.iter().map(number).collect())
}

#[tokio::test]
async fn stream_records_are_trimmed_after_a_day() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tables.db");
    let here = tables(Storage::File(path.clone())).await;
    MAIN.ensure(&here.client).await.unwrap();
    MESSAGES.ensure(&here.client).await.unwrap();
    let message = here.client.put_item().table_name(MESSAGES.name);
    let message = message.item("uuid", text("u"));
    message.item("messageId", text("m")).send().await.unwrap();
    put(&here, 150).await;
    assert_eq!(kept(&path, MAIN.name), 150);
    age(&path);
    put(&here, 200).await;
    assert_eq!(kept(&path, MAIN.name), 200);
    // The newest record determines the next sequence number.
    assert_eq!(kept(&path, MESSAGES.name), 1);
    let (_, _, numbers) = numbers(&here).await;
    assert_eq!(numbers.len(), 200);
    here.server.stop().await;
}

#[tokio::test]
async fn unread_stream_records_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tables.db");
    let file = Storage::File(path.clone());
    let here = tables(file.clone()).await;
    MAIN.ensure(&here.client).await.unwrap();
    put(&here, 10).await;
    let (stream, shard, before) = numbers(&here).await;
    here.server.stop().await;

    let read = |s: &str, h: &str| (s == stream && h == shard).then(|| before[5].clone());
    // None is a day old.
    assert_eq!(delete_read_records(&file, read).unwrap(), 0);
    age(&path);
    // No record has been read.
    assert_eq!(delete_read_records(&file, |_, _| None).unwrap(), 0);
    assert_eq!(delete_read_records(&file, read).unwrap(), 5);

    let here = tables(file.clone()).await;
    put(&here, 250).await;
    let (_, _, after) = numbers(&here).await;
    assert_eq!(after[..5], before[5..]);
    assert_eq!(after.len(), 255);
    here.server.stop().await;
    let read = |_: &str, _: &str| Some(after[254].clone());
    assert_eq!(delete_read_records(&file, read).unwrap(), 5);
}

#[tokio::test]
async fn expired_items_are_deleted() {
    let server = dynamodb::start_expiring(Storage::Memory, 0, Duration::from_millis(50)).await;
    let here = Tables::of(server.unwrap());
    MAIN.ensure(&here.client).await.unwrap();
    here.put("gone", &[("ttl", "1")]).await;
    here.put("stays", &[("ttl", "99999999999")]).await;
    let left = eventually("the expiry", async || {
        let found = here.client.scan().table_name(MAIN.name).send().await;
        found.unwrap().items.filter(|items| items.len() == 1)
    });
    assert_eq!(left.await[0]["SK"], text("stays"));
    here.server.stop().await;
}
