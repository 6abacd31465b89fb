//! `antumbra shadow watch`: changes as they happen.
//!
//! From the table's stream: it is there wherever the table is, locally and on AWS, with the credentials
//! every other command uses, and holds every change through whichever door it came. The MQTT topics would
//! need a registration and a broker, and are cut where a message is too large.

use std::time::Duration;

use antumbra_local::stream::invocation;
use antumbra_registration::{Change, DiffCell, Operation, Parts};
use antumbra_shadow::{Model, Timestamp, View};
use antumbra_wire::items::{ItemChange, KeyBuffer};
use antumbra_wire::notification::write_change;
use antumbra_wire::stream::{Record, StreamBatch, Tape};
use clap::Args;

use crate::connect::Connection;
use crate::error::CliError;
use crate::follow::Follower;
use crate::output::{BAD, CHANGED, FAINT, GOOD, STRONG, print_on, styled, table};
use crate::signals::Signals;

/// How long to wait when nothing had changed.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// The device's id; all devices without it.
    id: Option<String>,
    /// Only the shadow of this name.
    #[arg(long)]
    name: Option<String>,
    /// End after so many changes.
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
}

impl Watch {
    pub(crate) async fn run(self, connection: &Connection, json: bool) -> Result<(), CliError> {
        let sdk = connection.sdk_config().await;
        let table = connection.table();
        let stream = antumbra_dynamodb::stream_of(&antumbra_dynamodb::client(&sdk), table).await?;
        let none = || CliError::invalid(format!("the table {table} has no stream to watch"));
        let stream = stream.ok_or_else(none)?;
        let mut signals = Signals::listen().map_err(CliError::unavailable)?;
        let mut follower = Follower::begin(&sdk, stream.clone()).await?;
        anstream::eprintln!("{} {table}, Ctrl-C stops", styled(FAINT, "watching"));
        let mut left = self.count;
        while left != Some(0) {
            let records = tokio::select! {
                records = follower.next() => records?,
                () = signals.next() => return Ok(()),
            };
            // One at a time: a page may be longer than an event can be.
            for record in &records {
                let record = std::slice::from_ref(record);
                let event = invocation(&stream, record).map_err(CliError::unavailable)?;
                for text in self.told(&event, json)? {
                    if left == Some(0) || !print_on(&text)? {
                        return Ok(());
                    }
                    left = left.map(|left| left - 1);
                }
            }
            if records.is_empty() {
                tokio::select! {
                    () = tokio::time::sleep(PAUSE) => {}
                    () = signals.next() => return Ok(()),
                }
            }
        }
        Ok(())
    }

    /// What there is to say of the records of an event, in order.
    fn told(&self, event: &[u8], json: bool) -> Result<Vec<String>, CliError> {
        let mut told = Vec::new();
        let mut room = (Tape::default(), KeyBuffer::default());
        let mut batch = StreamBatch::default();
        for record in batch.read(event).map_err(CliError::unavailable)?.iter() {
            match record.map(|record| self.record(record, &mut room, json, &mut told)) {
                Ok(Ok(())) => {}
                Ok(Err(undecodable)) | Err(undecodable) => {
                    let fault = &undecodable.fault;
                    anstream::eprintln!("{} {undecodable}: {fault}", styled(BAD, "skipped:"));
                }
            }
        }
        Ok(told)
    }

    fn record(
        &self,
        record: Record<'_>,
        (tape, keys): &mut (Tape, KeyBuffer),
        json: bool,
        told: &mut Vec<String>,
    ) -> Result<(), antumbra_wire::stream::Undecodable> {
        let key = keys.read(record);
        let Some(shadow) = key.item.shadow() else {
            return Ok(());
        };
        let asked = |wanted: &Option<String>, of: &str| wanted.as_deref().is_none_or(|it| it == of);
        if !asked(&self.id, shadow.id) || !asked(&self.name, shadow.name) {
            return Ok(());
        }
        let item = ItemChange::new(record, key, record.images(tape)?);
        let model = Model::default();
        for document in item.documents() {
            let diff = DiffCell::new(document.old, document.new, &model);
            let change = item.change(document, &diff);
            told.push(if json { line(&change) } else { lines(&change) });
        }
        Ok(())
    }
}

/// Everything, on one line.
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
    let (whose, state) = match change.shadow {
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
        styled(STRONG, &whose)
    );
    let diff = change.diff.diff();
    let row = |style, word, pointer: &str, text: String| {
        vec![
            format!("  {}", styled(style, word)),
            pointer.to_owned(),
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
