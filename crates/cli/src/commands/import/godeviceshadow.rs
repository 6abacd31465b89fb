//! Items of godeviceshadow's DynamoDB persistence, from the table or from an export of it.
//!
//! | attribute | type | holds |
//! |---|---|---|
//! | `PK` | S | `DS#{id}` |
//! | `SK` | S | `DSR#{name}`, `DSD#{name}` or `DSC#{name}`: reported, desired or both |
//! | `Version`, `TimeStamp` | N | version; time of the write in nanoseconds since 1970 |
//! | `ClientToken` | S | the writer, possibly empty |
//! | `Reported`, `Desired` | M or NULL | the models, with the names of Go's fields |
//!
//! A managed value is a map with a time in RFC 3339, under a name that the model chooses.

use std::collections::BTreeSet;
use std::io::Read;

use antumbra_dynamodb::TableScan;
use antumbra_local::progress::Progress;
use antumbra_service::shadows::id::DEFAULT_NAME;
use antumbra_service::shadows::{ClientToken, HeldValues, ShadowId, ShadowStore, Update};
use antumbra_shadow::{Document, Model, State, Timestamp, text};
use antumbra_wire::items::{ItemKind, PARTITION_KEY, SORT_KEY, ShadowItem};
use clap::Args;
use futures_util::stream::{self, Stream, StreamExt as _, TryStreamExt as _};
use serde_json::{Map, Value};

use super::{Entry, ImportArguments, Summary, Target, check_time, check_times, import, of_source};
use crate::connection::{Connection, Service};
use crate::error::CliError;

/// Go's zero time. The library leaves values with it where a desired value was acknowledged.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

#[derive(Debug, Args)]
#[group(id = "source", required = true, multiple = false)]
struct ItemSource {
    /// @FILE, or - for standard input: an export to S3 in DynamoDB JSON, unpacked, or the output of `aws dynamodb
    /// scan`.
    items: Option<String>,
    /// Table of godeviceshadow.
    #[arg(long, value_name = "TABLE")]
    from_table: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Import {
    #[command(flatten)]
    from: ItemSource,
    /// Names of the fields that hold the time of a value. They become `timestamp`.
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        default_value = "TimeStamp,Timestamp,timestamp"
    )]
    timestamp_fields: Vec<String>,
    /// New name of a field, as OLD=NEW; can be repeated.
    #[arg(long, value_name = "OLD=NEW", value_parser = renaming)]
    rename: Vec<(String, String)>,
    #[command(flatten)]
    pub(super) arguments: ImportArguments,
}

fn renaming(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((old, new)) if !old.is_empty() && !new.is_empty() => Ok((old.into(), new.into())),
        _ => Err("expected OLD=NEW".to_owned()),
    }
}

impl Import {
    pub(super) async fn run<P: ShadowStore>(
        self,
        target: &Target<'_, P>,
    ) -> Result<Summary, CliError> {
        let names = Names {
            timestamps: &self.timestamp_fields,
            renamed: &self.rename,
            model: target.model.clone(),
        };
        let progress = Progress::new("items read");
        let entry = |item: Result<Value, CliError>| {
            progress.add(1);
            Ok(names.entry(&item?))
        };
        let Some(table) = &self.from.from_table else {
            let items = read_items(self.from.items.as_deref().unwrap_or_default())?;
            return import(stream::iter(items).map(entry), target, &progress).await;
        };
        let service = Service::DynamoDb;
        let source = self.arguments.source(target.connection, service).await?;
        if table == target.connection.table() && source.is_same_place(target.connection) {
            return Err(CliError::invalid(
                "the source is the table itself; import into another one with --table",
            ));
        }
        let scan = TableScan::new(&source.sdk_config().await, table);
        let items = items(scan, &source, table);
        import(items.map(entry), target, &progress).await
    }
}

fn items(
    scan: TableScan,
    source: &Connection,
    table: &str,
) -> impl Stream<Item = Result<Value, CliError>> {
    let pages = stream::try_unfold(scan, async |mut scan| {
        let page = scan.next().await;
        let page = page.map_err(|error| {
            of_source(source.explain_table(error.into(), table, "--from-table"))
        })?;
        Ok::<_, CliError>(page.map(|items| (stream::iter(items.into_iter().map(Ok)), scan)))
    });
    pages.try_flatten()
}

/// Reads items one after the other: a file can be larger than memory.
fn read_items(argument: &str) -> Result<impl Iterator<Item = Result<Value, CliError>>, CliError> {
    let reader: Box<dyn Read> = match (argument, argument.strip_prefix('@')) {
        ("-", _) => Box::new(std::io::stdin().lock()),
        (_, Some(path)) => Box::new(std::fs::File::open(path).map_err(|fault| {
            CliError::invalid(format!("cannot read {path}: {fault}; check the path"))
        })?),
        _ => {
            return Err(CliError::invalid(format!(
                "{argument} is not @FILE or -; for a table, use --from-table"
            )));
        }
    };
    let values = serde_json::Deserializer::from_reader(std::io::BufReader::new(reader));
    let values = values.into_iter::<Value>().map(|value| {
        value.map_err(|fault| {
            CliError::invalid(format!(
                "the export is not JSON: {fault}; unpack it, and give lines of items"
            ))
        })
    });
    Ok(values.flat_map(|value| match value {
        Ok(value) => items_of(value).into_iter().map(Ok).collect(),
        Err(error) => vec![Err(error)],
    }))
}

/// The items of a line of an export, or of the output of a scan.
fn items_of(value: Value) -> Vec<Value> {
    let Value::Object(mut members) = value else {
        return vec![value];
    };
    match (members.remove("Item"), members.remove("Items")) {
        (Some(item), _) => vec![item],
        (None, Some(Value::Array(items))) => items,
        _ => vec![Value::Object(members)],
    }
}

/// Names of fields in the source and in shadows.
struct Names<'a> {
    timestamps: &'a [String],
    renamed: &'a [(String, String)],
    model: Model,
}

impl Names<'_> {
    fn entry(&self, item: &Value) -> Entry {
        let key = |name: &str| item.get(name)?.get("S")?.as_str();
        let (partition, sort) = (key(PARTITION_KEY), key(SORT_KEY));
        let (partition, sort) = (partition.unwrap_or_default(), sort.unwrap_or_default());
        let named = |item| {
            let kind = ItemKind::Shadow(item);
            let id = partition.strip_prefix(kind.partition_prefix())?;
            Some((id, sort.strip_prefix(kind.sort_prefix())?))
        };
        let Some((id, name)) = ShadowItem::ALL.into_iter().find_map(named) else {
            return Entry::Empty;
        };
        let name = if name.is_empty() { DEFAULT_NAME } else { name };
        let id = ShadowId::named(id, name).map_err(|fault| fault.to_string());
        let update = id.and_then(|id| self.update(id, item));
        Entry::new(format!("{partition} {sort}"), update)
    }

    fn update(&self, shadow: ShadowId, item: &Value) -> Result<Update, String> {
        let time = item
            .get("TimeStamp")
            .and_then(|time| time.get("N")?.as_str());
        let time = time.and_then(|time| time.parse().ok());
        let since = time.map(Timestamp::from_nanoseconds);
        let since =
            since.ok_or("it has no TimeStamp in nanoseconds; is it an item of godeviceshadow?")?;
        check_time(since)?;
        let held = |state: State, attribute: &str| match item.get(attribute) {
            None => Ok(Vec::new()),
            Some(value) if value.get("NULL").is_some() => Ok(Vec::new()),
            Some(value) => {
                let values = self.document(value);
                let values = values.map_err(|reason| format!("its {state} document: {reason}"))?;
                Ok::<_, String>(vec![HeldValues { since, values }])
            }
        };
        let reported = held(State::Reported, "Reported")?;
        let desired = held(State::Desired, "Desired")?;
        let mut update = Update::import(shadow, reported, desired);
        let token = item
            .get("ClientToken")
            .and_then(|token| token.get("S")?.as_str());
        // Tokens that are empty or too long are left out: they name the writer of a version that ends here.
        if let Some(token) = token.and_then(|token| ClientToken::new(token).ok()) {
            update = update.client_token(token);
        }
        Ok(update)
    }

    fn document(&self, value: &Value) -> Result<Document, String> {
        let mut json = String::new();
        self.write(value, &mut json)?;
        let document = Document::parse(&json).map_err(|fault| fault.to_string())?;
        check_times(&document, &self.model)?;
        Ok(document)
    }

    /// Writes a value of DynamoDB's JSON as plain JSON. Sets become arrays, bytes stay base64.
    fn write(&self, value: &Value, json: &mut String) -> Result<(), String> {
        let tagged = value.as_object().and_then(|members| members.iter().next());
        let (tag, value) = tagged.ok_or("it is not DynamoDB JSON")?;
        match (tag.as_str(), value) {
            ("NULL", _) => json.push_str("null"),
            ("BOOL", Value::Bool(flag)) => json.push_str(if *flag { "true" } else { "false" }),
            ("N", Value::String(number)) => json.push_str(number),
            ("S" | "B", Value::String(text)) => write_text(text, json),
            ("SS" | "BS" | "NS", Value::Array(elements)) => {
                // A set has no order; the array has the same one every time.
                let texts: BTreeSet<&str> = elements.iter().filter_map(Value::as_str).collect();
                list(texts, json, |text, json| {
                    match tag == "NS" {
                        true => json.push_str(text),
                        false => write_text(text, json),
                    }
                    Ok(())
                })?;
            }
            ("L", Value::Array(elements)) => {
                list(elements, json, |one, json| self.write(one, json))?;
            }
            ("M", Value::Object(members)) => self.members(members, json)?,
            _ => return Err(format!("it has an attribute of the unknown type {tag}")),
        }
        Ok(())
    }

    fn members(&self, members: &Map<String, Value>, json: &mut String) -> Result<(), String> {
        json.push('{');
        let start = json.len();
        for (name, value) in members {
            if self.was_never_set(value) {
                continue;
            }
            if json.len() > start {
                json.push(',');
            }
            write_text(self.name(name, members), json);
            json.push(':');
            self.write(value, json)?;
        }
        json.push('}');
        Ok(())
    }

    /// The name of a member in shadows.
    fn name<'n>(&'n self, name: &'n str, siblings: &Map<String, Value>) -> &'n str {
        let fields = &self.model.timestamp_fields;
        let target = fields.first().map_or(name, String::as_str);
        if self.timestamps.iter().any(|one| one == name) && !siblings.contains_key(target) {
            return target;
        }
        let renamed = self.renamed.iter().find(|(old, _)| old == name);
        renamed.map_or(name, |(_, new)| new.as_str())
    }

    fn was_never_set(&self, value: &Value) -> bool {
        let time = |name: &String| value.get("M")?.get(name)?.get("S")?.as_str();
        let mut times = self.timestamps.iter().filter_map(time);
        times.any(|time| time == ZERO_TIME)
    }
}

fn list<T>(
    elements: impl IntoIterator<Item = T>,
    json: &mut String,
    write: impl Fn(T, &mut String) -> Result<(), String>,
) -> Result<(), String> {
    json.push('[');
    for (position, element) in elements.into_iter().enumerate() {
        if position > 0 {
            json.push(',');
        }
        write(element, json)?;
    }
    json.push(']');
    Ok(())
}

fn write_text(plain: &str, json: &mut String) {
    json.push('"');
    text::escape_into(json, plain);
    json.push('"');
}
