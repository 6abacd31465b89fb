//! The tables' streams: what feeds the listener from them, and the truth about what was written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dynoxide::actions::get_records::{GetRecordsRequest, Record};
use dynoxide::actions::get_shard_iterator::encode_shard_iterator;
use dynoxide::streams::shard_id;
use serde_json::{Map, Value, json};

use crate::functions::{Function, failures};
use crate::world::{World, lock};

/// Records of one call.
const BATCH: u64 = 12;
/// Maximum delay until the stream is read.
const POLL: Duration = Duration::from_millis(500);

#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) table: &'static str,
    pub(crate) sequence: String,
    pub(crate) partition: String,
    pub(crate) sort: String,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
    /// Time at which it was read, in milliseconds.
    pub(crate) at: u64,
    /// The record is unreadable.
    pub(crate) poisoned: bool,
    text: String,
}

impl Change {
    /// The item's key as notifications have it.
    pub(crate) fn key(&self) -> String {
        format!("{}#{}", self.partition, self.sort)
    }
}

/// All streams. Clones are the same.
#[derive(Clone)]
pub(crate) struct Streams(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Number of table changes at the last read.
    writes: u64,
    /// Position in each table's stream.
    reached: BTreeMap<&'static str, i64>,
    all: Vec<Arc<Change>>,
    shards: BTreeMap<(&'static str, usize), Shard>,
}

#[derive(Default)]
struct Shard {
    records: Vec<Arc<Change>>,
    /// Number of processed records.
    done: usize,
}

impl Streams {
    pub(crate) fn new(tables: &[&'static str], shards: usize) -> Streams {
        let of_table = |table: &&'static str| {
            let table = *table;
            (0..shards).map(move |shard| ((table, shard), Shard::default()))
        };
        Streams(Arc::new(Mutex::new(State {
            writes: 0,
            reached: tables.iter().map(|table| (*table, 0)).collect(),
            all: Vec::new(),
            shards: tables.iter().flat_map(of_table).collect(),
        })))
    }

    /// Everything that was written so far, in order.
    pub(crate) fn all(&self) -> Vec<Arc<Change>> {
        lock(&self.0).all.clone()
    }

    /// Returns whether the listener has processed everything.
    pub(crate) fn is_done(&self, world: &World) -> bool {
        self.read(world);
        let state = lock(&self.0);
        let mut shards = state.shards.values();
        shards.all(|shard| shard.done == shard.records.len())
    }

    /// Feeds the listener from every shard for as long as the run takes.
    pub(crate) fn feed(&self, world: &Arc<World>, listener: &Arc<Function>) {
        let shards: Vec<_> = lock(&self.0).shards.keys().copied().collect();
        for shard in shards {
            let (streams, listener) = (self.clone(), Arc::clone(listener));
            let world = Arc::clone(world);
            let spawner = world.spawner.clone();
            spawner.spawn(async move {
                let mut attempts = 0;
                loop {
                    streams.turn(&world, shard, &listener, &mut attempts).await;
                }
            });
        }
    }

    async fn turn(
        &self,
        world: &World,
        shard: (&'static str, usize),
        listener: &Function,
        attempts: &mut u32,
    ) {
        self.read(world);
        let batch: Vec<Arc<Change>> = {
            let state = lock(&self.0);
            let Some(shard) = state.shards.get(&shard) else {
                return;
            };
            let most = world.chance.between(1, BATCH) as usize;
            let open = shard.records[shard.done..].iter();
            open.take(most).cloned().collect()
        };
        if batch.is_empty() {
            world.cloud.written().await;
            // Streams are polled at intervals, not notified.
            tokio::time::sleep(world.chance.within(POLL)).await;
            return;
        }
        let records: Vec<&str> = batch.iter().map(|change| change.text.as_str()).collect();
        let event = format!("{{\"Records\":[{}]}}", records.join(","));
        let answer = listener.invoke(world, event.as_bytes()).await;
        let done = match answer.as_deref().map(failures) {
            None => 0,
            Some(failed) => match failed.first() {
                None => batch.len(),
                Some(resume) => {
                    let at = batch.iter().position(|change| change.sequence == *resume);
                    at.unwrap_or(0)
                }
            },
        };
        if let Some(shard) = lock(&self.0).shards.get_mut(&shard) {
            shard.done += done;
        }
        *attempts = if done == 0 { *attempts + 1 } else { 0 };
        if done < batch.len() {
            let wait = 100 << (*attempts).min(6);
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
    }

    pub(crate) fn read(&self, world: &World) {
        let mut state = lock(&self.0);
        let writes = world.cloud.writes();
        if state.writes == writes {
            return;
        }
        state.writes = writes;
        let State {
            reached,
            all,
            shards,
            ..
        } = &mut *state;
        let count = shards.len() / reached.len().max(1);
        for (table, position) in reached {
            let request = GetRecordsRequest {
                shard_iterator: encode_shard_iterator(table, &shard_id(table), *position),
                limit: None,
            };
            let Ok(read) = world.cloud.database().get_records(request) else {
                continue;
            };
            for record in read.records {
                *position = stored(&record.dynamodb.sequence_number);
                let change = Arc::new(change(table, record, world));
                let hash = change.partition.bytes().fold(7_usize, |hash, byte| {
                    hash.wrapping_mul(31).wrapping_add(usize::from(byte))
                });
                if let Some(shard) = shards.get_mut(&(*table, hash % count)) {
                    shard.records.push(Arc::clone(&change));
                }
                all.push(change);
            }
        }
    }
}

/// The embedded DynamoDB counts from one, and shows numbers as long as DynamoDB's.
fn stored(sequence: &str) -> i64 {
    let shown: u128 = sequence.parse().unwrap_or_default();
    (shown % 100_000_000_000_000_000_000) as i64
}

fn change(table: &'static str, record: Record, world: &World) -> Change {
    let mut event = serde_json::to_value(&record).unwrap_or_default();
    event["eventSourceARN"] = json!(format!(
        "arn:aws:dynamodb:us-east-1:000000000000:table/{table}/stream/1"
    ));
    let images = &event["dynamodb"];
    let image = |name: &str| images.get(name).filter(|i| !i.is_null()).map(item);
    let keys = item(&images["Keys"]);
    let text = |name: &str| keys[name].as_str().unwrap_or_default().to_owned();
    let (partition, sort) = match table {
        "antumbra" => (text("PK"), text("SK")),
        _ => (text("uuid"), text("messageId")),
    };
    let (old, new) = (image("OldImage"), image("NewImage"));
    let poisoned =
        partition.starts_with("DS#") && new.is_some() && world.chance.happens(world.profile.poison);
    if poisoned {
        event["dynamodb"]["NewImage"] = json!({"version": {"X": "what is this?"}});
    }
    world.trace.step("written", || {
        let none = Value::Null;
        let (old, new) = (old.as_ref().unwrap_or(&none), new.as_ref().unwrap_or(&none));
        let poisoned = if poisoned { "POISONED" } else { "" };
        format!("{table} {partition} {sort} {poisoned} {new} <- {old}")
    });
    Change {
        table,
        sequence: record.dynamodb.sequence_number,
        partition,
        sort,
        old,
        new,
        at: world.clock.milliseconds(),
        poisoned,
        text: event.to_string(),
    }
}

/// Plain JSON of DynamoDB's.
pub(crate) fn item(image: &Value) -> Value {
    let members = image.as_object().into_iter().flatten();
    let members = members.map(|(name, typed)| (name.clone(), value(typed)));
    Value::Object(members.collect::<Map<String, Value>>())
}

fn value(typed: &Value) -> Value {
    let Some((kind, inner)) = typed.as_object().and_then(|typed| typed.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "N" => {
            let text = inner.as_str().unwrap_or_default();
            serde_json::from_str(text).unwrap_or(Value::Null)
        }
        "M" => item(inner),
        "L" => Value::Array(inner.as_array().into_iter().flatten().map(value).collect()),
        "NULL" => Value::Null,
        _ => inner.clone(),
    }
}
