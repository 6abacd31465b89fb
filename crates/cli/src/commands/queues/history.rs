//! Redrive of batches that the history writer gave up, from their bucket.
//!
//! An object holds a whole event. It is recorded by the code of the function `history-writer`, and deleted when every change in
//! it is recorded. Recording a change again changes nothing but its expiry, so a redrive can stop anywhere and be repeated.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbHistory, FeedConfig, HistoryConfig};
use antumbra_history_writer::HistoryWriter;
use antumbra_local::progress::Progress;
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_shadow::Model;
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::connection::Connection;
use crate::error::CliError;
use crate::output::{self, BAD, FAINT, GOOD, STRONG, styled};
use crate::s3::Bucket;

/// Attempts to record a batch.
const ATTEMPTS: u32 = 5;
/// Time for an attempt.
const ATTEMPT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub(crate) struct BucketArguments {
    /// Days for which recorded changes are kept, HistoryDays of the deployment; needed to record the batches of a bucket.
    #[arg(long, value_name = "DAYS")]
    history_days: Option<u32>,
    /// Table of the history [default: that of the deployment]
    #[arg(long, value_name = "TABLE", env = "ANTUMBRA_HISTORY_TABLE")]
    history_table: Option<String>,
    /// Endpoint of S3, for the bucket of failed batches.
    #[arg(long, value_name = "URL", env = "ANTUMBRA_S3_URL")]
    s3_url: Option<String>,
}

/// Returns the name of a bucket that stands in place of a queue: `s3://NAME` or an ARN.
pub(super) fn bucket_name(queue: &str) -> Option<&str> {
    let arn = |text: &'_ str| text.split_once(":s3:::").map(|(_, name)| name.len());
    match queue.strip_prefix("s3://") {
        Some(name) => Some(name.trim_end_matches('/')),
        None => arn(queue).map(|length| &queue[queue.len() - length..]),
    }
}

/// An object that Lambda wrote.
#[derive(Deserialize)]
struct FailedBatch {
    /// The event, as JSON or as a text of JSON.
    payload: Box<RawValue>,
}

/// The records of an event.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

/// The origin of a record.
#[derive(Debug, PartialEq, Deserialize)]
struct Record {
    /// ARN of a stream.
    #[serde(rename = "eventSourceARN")]
    source: Option<String>,
}

impl Record {
    fn table(&self) -> Option<&str> {
        let (_, rest) = self.source.as_deref()?.split_once(":table/")?;
        rest.split('/').next()
    }
}

/// The event of an object, and its records.
fn event(object: &[u8]) -> Result<(String, Vec<Record>), String> {
    let text = |error: serde_json::Error| format!("not a batch of the history writer: {error}");
    let batch: FailedBatch = serde_json::from_slice(object).map_err(text)?;
    let payload = batch.payload.get();
    let event = match payload.starts_with('"') {
        true => serde_json::from_str(payload).map_err(text)?,
        false => payload.to_owned(),
    };
    let Event { records } = serde_json::from_str(&event).map_err(text)?;
    Ok((event, records))
}

/// Summary of a redrive.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    bucket: String,
    batches: usize,
    /// Changes in the batches.
    records: usize,
    /// Batches that were recorded and deleted.
    recorded: usize,
    /// Changes that were purged since, and dropped.
    purged: usize,
    failed: Vec<Failure>,
}

#[derive(Debug, Serialize)]
struct Failure {
    key: String,
    error: String,
}

impl BucketArguments {
    /// Records the batches of a bucket, or with `go` unset shows what it would do.
    pub(super) async fn redrive(
        &self,
        bucket: &str,
        limit: usize,
        go: bool,
        connection: &Connection,
        json: bool,
    ) -> Result<(), CliError> {
        let objects = Bucket::new(bucket, self.s3_url.as_deref(), connection.aws().await)?;
        let keys = objects.list(limit).await?;
        let writer = match (go, self.history_days) {
            (false, _) => None,
            (true, Some(days)) => Some(self.writer(connection, days).await?),
            (true, None) => {
                return Err(CliError::invalid(
                    "recorded changes expire after HistoryDays of the deployment: give it with --history-days, 30 if it was never set",
                ));
            }
        };
        let mut summary = Summary {
            bucket: bucket.to_owned(),
            batches: keys.len(),
            ..Summary::default()
        };
        let unit = if go {
            "batches recorded"
        } else {
            "batches read"
        };
        let progress = Progress::of(keys.len(), unit);
        for key in keys {
            let redriven = redrive_one(&objects, &key, writer.as_ref(), connection, &mut summary);
            match redriven.await {
                Ok(()) => progress.add(1),
                Err(error) => summary.failed.push(Failure { key, error }),
            }
        }
        drop(progress);
        output::print(&summary.text(go, json))?;
        match summary.failed.len() {
            0 => Ok(()),
            failed => Err(CliError::failed(format!(
                "{failed} batches could not be {}",
                if go { "recorded" } else { "read" }
            ))),
        }
    }

    /// The history writer with the settings of the table. Changes also reach a change feed that exists.
    async fn writer(&self, connection: &Connection, days: u32) -> Result<HistoryWriter, CliError> {
        let table = self.history_table.clone();
        let table = table.unwrap_or_else(|| connection.history_table());
        let config = HistoryConfig {
            table: table.clone(),
            days,
        };
        let history = DynamoDbHistory::connect(&connection.sdk_config().await, config);
        let settings = history
            .feed_settings()
            .await
            .map_err(|error| connection.explain_table(error.into(), &table, "--history-table"))?;
        let feed = settings.map(|settings| FeedConfig {
            days: settings.days,
            partitions: settings.partitions,
        });
        let model = connection.settings().await?.model(Model::default());
        Ok(HistoryWriter::new(
            history,
            feed,
            model,
            Arc::new(SystemClock),
        ))
    }
}

async fn redrive_one(
    objects: &Bucket,
    key: &str,
    writer: Option<&HistoryWriter>,
    connection: &Connection,
    summary: &mut Summary,
) -> Result<(), String> {
    let object = objects.get(key).await.map_err(|error| error.reason)?;
    let (event, records) = event(&object)?;
    summary.records += records.len();
    let mut tables = records.iter().filter_map(Record::table);
    if let Some(other) = tables.find(|table| !connection.is_of_deployment(table)) {
        let own = connection.table();
        return Err(format!(
            "its changes are of the table {other}, not of {own}; choose the deployment with --table"
        ));
    }
    let Some(writer) = writer else {
        return Ok(());
    };
    for _ in 0..ATTEMPTS {
        let deadline = SystemClock.now().after(ATTEMPT);
        let recorded = writer.record(event.as_bytes(), deadline).await;
        let recorded = recorded.map_err(|error| error.to_string())?;
        if recorded.resume_at.is_none() && recorded.unrecorded > 0 {
            let count = recorded.unrecorded;
            return Err(format!(
                "{count} changes cannot be read or have too long keys; all others are recorded, and the object stays"
            ));
        }
        if recorded.resume_at.is_none() {
            summary.purged += recorded.purged;
            summary.recorded += 1;
            return objects.delete(key).await.map_err(|error| error.reason);
        }
    }
    Err("not all changes could be recorded; repeat the redrive".to_owned())
}

impl Summary {
    fn text(&self, executed: bool, json: bool) -> String {
        if json {
            return output::json(self);
        }
        let mut text = format!(
            "{}  {} failed batches with {} changes",
            styled(STRONG, &self.bucket),
            self.batches,
            self.records
        );
        for Failure { key, error } in &self.failed {
            text.push_str(&format!("\n  {}  {key}: {error}", styled(BAD, "failed")));
        }
        if !executed && self.batches > 0 {
            text.push_str("\nnothing was recorded; use --go to record the changes");
        } else if self.batches > 0 {
            let recorded = styled(GOOD, "recorded and deleted");
            text.push_str(&format!("\n  {} {recorded}", self.recorded));
            if self.purged > 0 {
                let purged = format!("; {} changes were purged since", self.purged);
                text.push_str(&styled(FAINT, &purged));
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_are_distinguished_from_queue_names() {
        for (text, expected) in [
            ("s3://failed", Some("failed")),
            ("s3://failed/", Some("failed")),
            ("arn:aws:s3:::failed", Some("failed")),
            ("arn:aws-cn:s3:::failed", Some("failed")),
            ("antumbra-quarantine", None),
            ("arn:aws:sqs:us-east-1:000000000000:s3", None),
            ("https://sqs.us-east-1.amazonaws.com/0/q", None),
        ] {
            assert_eq!(bucket_name(text), expected, "{text}");
        }
    }

    #[test]
    fn events_are_read_from_objects() {
        let whole = r#"{"Records":[{"eventID":"1"},{"eventID":"2"}]}"#;
        let as_text = serde_json::to_string(whole).unwrap();
        for payload in [whole, &as_text] {
            let object = format!(r#"{{"version":"1.0","payload":{payload}}}"#);
            let (found, records) = event(object.as_bytes()).unwrap();
            assert_eq!((found.as_str(), records.len()), (whole, 2));
        }
        let source =
            "arn:aws:dynamodb:eu-west-1:123456789012:table/prod-r20261117080000/stream/2026";
        let record = Record {
            source: Some(source.to_owned()),
        };
        assert_eq!(record.table(), Some("prod-r20261117080000"));
        for wrong in ["", "{}", r#"{"payload":7}"#, r#"{"payload":"x"}"#] {
            let error = event(wrong.as_bytes()).unwrap_err();
            assert!(error.starts_with("not a batch"), "{error}");
        }
    }
}
