//! The tables' streams: they invoke the listener and the history writer, and are the record of all writes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use antumbra_dynamodb::MAIN;
use dynoxide::actions::get_records::Record;
use serde_json::{Map, Value, json};

use crate::functions::{Function, failures};
use crate::world::{World, lock};

/// Records of one call.
const BATCH: u64 = 12;
/// Maximum number of records until a shard splits.
const SPLIT: u64 = 15;
/// Maximum delay until the stream is read.
const POLL: Duration = Duration::from_millis(500);

/// Interval of checking whether a pause is over.
const PAUSED: Duration = Duration::from_secs(5);

/// A function that reads the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Listener,
    /// Reads the shadows of the main table.
    History,
}

const READERS: [Reader; 2] = [Reader::Listener, Reader::History];

#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) table: &'static str,
    pub(crate) sequence: String,
    /// Id of the stream record.
    pub(crate) id: String,
    pub(crate) partition: String,
    pub(crate) sort: String,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
    /// Time at which it was read, in milliseconds.
    pub(crate) at: u64,
    /// The record is unreadable.
    pub(crate) poisoned: bool,
    /// It was written before the history began.
    before_history: bool,
    text: String,
}

impl Change {
    /// The item's key as notifications have it.
    pub(crate) fn key(&self) -> String {
        format!("{}#{}", self.partition, self.sort)
    }

    /// Returns whether a reader gets the record, as its filter in production says.
    fn is_for(&self, reader: Reader) -> bool {
        reader == Reader::Listener || self.is_of_shadow() && !self.before_history
    }

    /// Returns whether the history writer can record it.
    pub(crate) fn is_recordable(&self) -> bool {
        !self.poisoned && !self.before_history
    }

    /// Returns whether the item is a document of a shadow, or both.
    pub(crate) fn is_of_shadow(&self) -> bool {
        is_of_shadow(&self.partition, &self.sort)
    }

    /// Returns whether only the times of a shadow's leaves were written: its version stays.
    pub(crate) fn is_of_times(&self) -> bool {
        let version = |image: &Option<Value>| image.as_ref()?.get("version")?.as_u64();
        self.partition.starts_with("DS#")
            && is_document(&self.old)
            && is_document(&self.new)
            && version(&self.old) == version(&self.new)
    }
}

fn is_of_shadow(partition: &str, sort: &str) -> bool {
    let kinds = ["DSR#", "DSD#", "DSC#"];
    partition.starts_with("DS#") && kinds.iter().any(|kind| sort.starts_with(kind))
}

/// Returns whether an image is an item that is not deleted. A deleted shadow leaves a tombstone.
pub(crate) fn is_document(image: &Option<Value>) -> bool {
    let image = image.as_ref();
    image.is_some_and(|image| image.get("deletedAt").is_none())
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
    shards: Vec<Shard>,
}

/// A shard. Several invocations of a reader read it at once: each item belongs to one lane.
struct Shard {
    table: &'static str,
    parent: Option<usize>,
    /// Number of records after which two other shards continue it, and the first of them.
    split: Option<(usize, usize)>,
    count: usize,
    /// The lanes of each reader.
    lanes: [Vec<Lane>; READERS.len()],
}

#[derive(Clone, Default)]
struct Lane {
    records: Vec<Arc<Change>>,
    /// Number of processed records.
    done: usize,
}

impl Shard {
    fn new(table: &'static str, parent: Option<usize>, of_listener: usize) -> Shard {
        // As deployed: one batch of a shard at a time, of the main table only.
        let of_history = usize::from(table == MAIN.name);
        Shard {
            table,
            parent,
            split: None,
            count: 0,
            lanes: [of_listener, of_history].map(|lanes| vec![Lane::default(); lanes]),
        }
    }

    fn is_done(&self, reader: Reader) -> bool {
        let mut lanes = self.lanes[reader as usize].iter();
        lanes.all(|lane| lane.done == lane.records.len())
    }
}

impl State {
    /// The shard of a new record.
    fn shard_of(&self, change: &Change) -> usize {
        let hash = hash(&change.partition);
        let is_root = |shard: &Shard| shard.table == change.table && shard.parent.is_none();
        let roots = self.shards.iter().enumerate();
        let roots: Vec<usize> = roots
            .filter(|(_, shard)| is_root(shard))
            .map(|(at, _)| at)
            .collect();
        let at = roots[hash % roots.len()];
        match self.shards[at].split {
            Some((after, child)) if self.shards[at].count >= after => {
                child + hash / roots.len() % 2
            }
            _ => at,
        }
    }

    fn add(&mut self, change: &Arc<Change>) {
        let at = self.shard_of(change);
        let shard = &mut self.shards[at];
        shard.count += 1;
        for reader in READERS {
            let lanes = &mut shard.lanes[reader as usize];
            if !lanes.is_empty() && change.is_for(reader) {
                let lane = hash(&change.key()) % lanes.len();
                lanes[lane].records.push(Arc::clone(change));
            }
        }
    }

    /// Returns whether a shard can be read: its parent was read to the end.
    fn is_ready(&self, shard: usize, reader: Reader) -> bool {
        let parent = self.shards[shard].parent;
        parent.is_none_or(|parent| self.shards[parent].is_done(reader))
    }
}

fn hash(text: &str) -> usize {
    text.bytes().fold(7_usize, |hash, byte| {
        hash.wrapping_mul(31).wrapping_add(usize::from(byte))
    })
}

impl Streams {
    pub(crate) fn new(tables: &[&'static str], world: &World) -> Streams {
        let profile = &world.profile;
        let mut shards = Vec::new();
        for table in tables {
            // As deployed: a shadow of the separate layout is two items.
            let lanes = match *table == MAIN.name && !profile.combined {
                true => 1,
                false => profile.parallelization,
            };
            for _ in 0..profile.stream_shards {
                let (parent, child) = (shards.len(), shards.len() + 1);
                shards.push(Shard::new(table, None, lanes));
                if world.chance.happens(profile.splits) {
                    let after = world.chance.between(1, SPLIT) as usize;
                    shards[parent].split = Some((after, child));
                    shards.extend([0, 1].map(|_| Shard::new(table, Some(parent), lanes)));
                }
            }
        }
        Streams(Arc::new(Mutex::new(State {
            reached: tables.iter().map(|table| (*table, 0)).collect(),
            shards,
            ..State::default()
        })))
    }

    /// All writes so far, in order.
    pub(crate) fn all(&self) -> Vec<Arc<Change>> {
        lock(&self.0).all.clone()
    }

    /// Returns whether all readers have processed everything.
    pub(crate) fn is_done(&self, world: &World) -> bool {
        self.read(world);
        let state = lock(&self.0);
        let is_done = |shard: &Shard| READERS.iter().all(|reader| shard.is_done(*reader));
        state.shards.iter().all(is_done)
    }

    /// Feeds a reader from every shard for as long as the run takes.
    pub(crate) fn feed(&self, world: &Arc<World>, reader: Reader, function: &Arc<Function>) {
        let lanes = |(at, shard): (usize, &Shard)| {
            let lanes = 0..shard.lanes[reader as usize].len();
            lanes.map(move |lane| (at, lane))
        };
        let shards = lock(&self.0)
            .shards
            .iter()
            .enumerate()
            .flat_map(lanes)
            .collect::<Vec<_>>();
        for place in shards {
            let (streams, function) = (self.clone(), Arc::clone(function));
            let world = Arc::clone(world);
            let spawner = world.spawner.clone();
            spawner.spawn(async move {
                let (mut attempts, reader) = (0, (reader, &*function));
                loop {
                    streams.poll(&world, place, reader, &mut attempts).await;
                }
            });
        }
    }

    async fn poll(
        &self,
        world: &World,
        (shard, lane): (usize, usize),
        (reader, function): (Reader, &Function),
        attempts: &mut u32,
    ) {
        if reader == Reader::History && world.is_history_paused() {
            tokio::time::sleep(PAUSED).await;
            return;
        }
        self.read(world);
        let (batch, waits): (Vec<Arc<Change>>, bool) = {
            let state = lock(&self.0);
            let most = world.chance.between(1, BATCH) as usize;
            let lane = &state.shards[shard].lanes[reader as usize][lane];
            let open = lane.records[lane.done..].iter();
            match state.is_ready(shard, reader) {
                true => (open.take(most).cloned().collect(), false),
                false => (Vec::new(), open.len() > 0),
            }
        };
        if batch.is_empty() {
            if !waits {
                world.cloud.written().await;
            }
            // Streams are polled at intervals, not notified.
            tokio::time::sleep(world.chance.within(POLL)).await;
            return;
        }
        let records: Vec<&str> = batch.iter().map(|change| change.text.as_str()).collect();
        let event = format!("{{\"Records\":[{}]}}", records.join(","));
        let response = function.invoke(world, event.as_bytes()).await;
        let done = match response.as_deref().map(failures) {
            None => 0,
            Some(failed) => match failed.first() {
                None => batch.len(),
                Some(resume) => {
                    let at = batch.iter().position(|change| change.sequence == *resume);
                    at.unwrap_or(0)
                }
            },
        };
        lock(&self.0).shards[shard].lanes[reader as usize][lane].done += done;
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
        for (table, mut position) in state.reached.clone() {
            for record in world.cloud.records(table, position) {
                position = stored(&record.dynamodb.sequence_number);
                let change = Arc::new(change(table, record, world));
                state.add(&change);
                state.all.push(change);
            }
            state.reached.insert(table, position);
        }
    }
}

/// The embedded DynamoDB counts from one, and shows numbers as long as DynamoDB's.
pub(crate) fn stored(sequence: &str) -> i64 {
    let shown: u128 = sequence.parse().unwrap_or_default();
    (shown % 100_000_000_000_000_000_000) as i64
}

fn change(table: &'static str, record: Record, world: &World) -> Change {
    let mut event = serde_json::to_value(&record).unwrap_or_default();
    let sequence = record.dynamodb.sequence_number;
    // The database's own id is another one in every run.
    let id = format!("{table}-{sequence}");
    event["eventID"] = json!(id);
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
    let poisoned = is_of_shadow(&partition, &sort)
        && new.is_some()
        && world.chance.happens(world.profile.poison);
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
        sequence,
        id,
        partition,
        sort,
        old,
        new,
        at: world.clock.milliseconds(),
        poisoned,
        before_history: world.clock.elapsed() < world.profile.history_begins,
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
