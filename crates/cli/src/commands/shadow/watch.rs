//! `antumbra shadow watch`: changes as they happen, from the table's stream.
//!
//! The stream has every change, locally and on AWS, and needs no other credentials than the table. MQTT topics
//! would need a registration and a broker, and leave out documents that are too large for a message.

use std::time::Duration;

use antumbra_dynamodb::streams::event::invocation;
use antumbra_dynamodb::streams::{Client, StreamFollower};
use antumbra_registration::{Change, DiffCell, Operation, Parts};
use antumbra_shadow::{Model, Pointer, Timestamp, View};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::notification::write_change;
use antumbra_wire::stream::{Record, StreamBatch, Tape};
use clap::Args;

use crate::connection::Connection;
use crate::error::CliError;
use crate::output::{BAD, CHANGED, FAINT, GOOD, STRONG, print_while_read, styled, table};
use crate::signals::Signals;

/// Pause between polls of an unchanged stream.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Device id; all devices by default.
    id: Option<String>,
    /// Shadow name; all names by default.
    #[arg(long)]
    name: Option<String>,
    /// Stop after this number of changes.
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
}

impl Watch {
    pub(crate) async fn run(self, connection: &Connection, json: bool) -> Result<(), CliError> {
        let sdk = connection.sdk_config().await;
        let table = connection.table();
        let stream = antumbra_dynamodb::stream_of(&antumbra_dynamodb::client(&sdk), table).await?;
        let none = || {
            CliError::invalid(format!(
                "the table {table} has no stream; enable one with new and old images"
            ))
        };
        let stream = stream.ok_or_else(none)?;
        let mut signals = Signals::listen().map_err(CliError::unavailable)?;
        let follower = StreamFollower::start(&Client::new(&sdk), &stream).await;
        let mut follower = follower.map_err(CliError::unavailable)?;
        anstream::eprintln!("{} {table}; stop with Ctrl-C", styled(FAINT, "watching"));
        let mut left = self.count;
        while left != Some(0) {
            let records = tokio::select! {
                records = follower.next() => records.map_err(CliError::unavailable)?,
                () = signals.next() => return Ok(()),
            };
            // One record at a time: a page can be longer than an event may be.
            for record in &records {
                let record = std::slice::from_ref(record);
                let event = invocation(&stream, record).map_err(CliError::unavailable)?;
                for text in self.changes(&event, json)? {
                    if left == Some(0) || !print_while_read(&text)? {
                        return Ok(());
                    }
                    left = left.map(|left| left - 1);
                }
            }
            if records.is_empty() {
                tokio::select! {
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                    () = signals.next() => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// Formats the changes in an event, in order.
    fn changes(&self, event: &[u8], json: bool) -> Result<Vec<String>, CliError> {
        let mut changes = Vec::new();
        let mut buffers = (Tape::default(), KeyBuffer::default());
        let mut batch = StreamBatch::default();
        for record in batch.read(event).map_err(CliError::unavailable)?.iter() {
            match record.map(|record| self.record(record, &mut buffers, json, &mut changes)) {
                Ok(Ok(())) => {}
                Ok(Err(undecodable)) | Err(undecodable) => {
                    let fault = &undecodable.fault;
                    anstream::eprintln!("{} {undecodable}: {fault}", styled(BAD, "skipped:"));
                }
            }
        }
        Ok(changes)
    }

    fn record(
        &self,
        record: Record<'_>,
        (tape, keys): &mut (Tape, KeyBuffer),
        json: bool,
        changes: &mut Vec<String>,
    ) -> Result<(), antumbra_wire::stream::Undecodable> {
        let key = keys.read(record);
        let Some(shadow) = key.item.shadow() else {
            return Ok(());
        };
        let matches =
            |wanted: &Option<String>, of: &str| wanted.as_deref().is_none_or(|it| it == of);
        if !matches(&self.id, shadow.id) || !matches(&self.name, shadow.name) {
            return Ok(());
        }
        let item = ItemChange::new(record, key, record.images(tape)?);
        let model = Model::default();
        for document in item.documents() {
            let diff = DiffCell::new(document.old, document.new, &model);
            let change = item.change(document, &diff);
            changes.push(if json { line(&change) } else { lines(&change) });
        }
        Ok(())
    }
}

fn line(change: &Change<'_>) -> String {
    let mut out = String::new();
    let parts = Parts {
        old: true,
        new: true,
        diff: true,
    };
    write_change(&mut out, change, parts);
    out
}

fn lines(change: &Change<'_>) -> String {
    let (name, state) = match change.shadow {
        Some(shadow) => (
            format!("{}/{}", shadow.id, shadow.name),
            shadow.state.as_str(),
        ),
        None => (change.key.to_owned(), ""),
    };
    let version = change.version.unwrap_or_default();
    let ended = match (change.operation, change.expired) {
        (Operation::Remove, true) => format!(", {}", styled(BAD, "expired")),
        (Operation::Remove, false) => format!(", {}", styled(BAD, "deleted")),
        _ => String::new(),
    };
    let time = change.timestamp.map(i128::from);
    let time = time.map_or(String::new(), |time| {
        Timestamp::from_nanoseconds(time).to_string()
    });
    let head = format!(
        "{}  {}  {state} version {version}{ended}",
        styled(FAINT, &time),
        styled(STRONG, &name)
    );
    let diff = change.diff.diff();
    let row = |style, word, pointer: Pointer<'_, '_>, text: String| {
        vec![
            format!("  {}", styled(style, word)),
            pointer.to_string(),
            text,
        ]
    };
    let updated = |old: View<'_>, new: View<'_>| format!("{} -> {}", old.to_json(), new.to_json());
    let mut rows: Vec<Vec<String>> = Vec::new();
    rows.extend(
        diff.added()
            .map(|(at, new)| row(GOOD, "added", at, new.to_json())),
    );
    rows.extend(
        diff.updated()
            .map(|(at, old, new)| row(CHANGED, "updated", at, updated(old, new))),
    );
    rows.extend(
        diff.removed()
            .map(|(at, old)| row(BAD, "removed", at, old.to_json())),
    );
    if rows.is_empty() {
        return head;
    }
    format!("{head}\n{}", table(&rows))
}
