//! `antumbra import …`: takes over shadows of other systems.
//!
//! A value is taken over with its time, and only if the table holds none that is as new. So an import can be
//! interrupted and repeated, and devices may report to the table while it runs: the table itself says what is done.

mod aws_iot;
mod godeviceshadow;

use std::time::Duration;

use antumbra_local::progress::Progress;
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::shadows::{ShadowStore, Shadows, Update};
use antumbra_shadow::{Document, Model, Timestamp, View};
use clap::{Args, Subcommand};
use futures_util::stream::{Stream, StreamExt as _};
use serde_json::json;

use crate::connection::{Connection, Service};
use crate::error::{CliError, ExitStatus};
use crate::output::{self, BAD, styled};

/// Shadows that are read and written at the same time.
const CONCURRENCY: usize = 8;
/// Errors that are shown one by one.
const MAX_SHOWN_ERRORS: usize = 20;
/// Retries of a write after conflicts and while DynamoDB throttles.
const RETRIES: u32 = 10;
/// Time that a value may lie in the future, as in the functions.
const MAX_FUTURE: Duration = Duration::from_secs(300);

#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    /// Import the shadows of a table of the Go library godeviceshadow, or of an export of it.
    ///
    /// Example: antumbra import godeviceshadow --from-table devices --dry-run
    Godeviceshadow(godeviceshadow::Import),
    /// Import named and unnamed shadows of AWS IoT Device Shadow.
    ///
    /// Example: antumbra import aws-iot-shadows @things.txt --source-region eu-west-1
    AwsIotShadows(aws_iot::Import),
}

impl ImportCommand {
    fn arguments(&self) -> &ImportArguments {
        match self {
            ImportCommand::Godeviceshadow(import) => &import.arguments,
            ImportCommand::AwsIotShadows(import) => &import.arguments,
        }
    }
}

/// Options of all imports.
#[derive(Debug, Args)]
struct ImportArguments {
    /// Show what would be imported, and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Endpoint of the service that is read.
    #[arg(long, value_name = "URL", value_parser = crate::connection::endpoint)]
    source_endpoint_url: Option<String>,
    /// AWS region of the source; by default that of the table.
    #[arg(long, value_name = "REGION")]
    source_region: Option<String>,
    /// Profile of the AWS configuration for the source; by default that for the table.
    #[arg(long, value_name = "PROFILE")]
    source_profile: Option<String>,
}

impl ImportArguments {
    /// Connects to the service that is read.
    async fn source(&self, target: &Connection, service: Service) -> Result<Connection, CliError> {
        let endpoint = self.source_endpoint_url.clone();
        let (region, profile) = (self.source_region.clone(), self.source_profile.clone());
        let source = target.source(endpoint, region, profile);
        source.check(service).await.map_err(of_source)?;
        Ok(source)
    }
}

/// Names the options of the source in an error.
fn of_source(error: CliError) -> CliError {
    let mut reason = error.reason;
    for (option, of_source) in [
        ("--endpoint-url", "--source-endpoint-url"),
        ("--aws-url", "--source-endpoint-url"),
        ("--region", "--source-region"),
        ("with --profile", "with --source-profile"),
    ] {
        reason = reason.replace(option, of_source);
    }
    CliError::new(error.status, reason)
}

pub(crate) async fn run(
    command: ImportCommand,
    connection: &Connection,
    json: bool,
) -> Result<String, CliError> {
    connection.check(Service::DynamoDb).await?;
    let dry_run = command.arguments().dry_run;
    let target = Target {
        connection,
        shadows: connection.shadows(!dry_run).await?,
        model: connection.settings().await?.model(Model::default()),
        dry_run,
    };
    let (summary, nouns) = match command {
        ImportCommand::Godeviceshadow(import) => {
            (import.run(&target).await?, ["items", "not of a shadow"])
        }
        ImportCommand::AwsIotShadows(import) => (
            import.run(&target).await?,
            ["shadows", "things without a shadow"],
        ),
    };
    summary.finish(nouns, target.dry_run, json)
}

/// One entry of a source.
enum Entry {
    /// A shadow's documents.
    Shadow { name: String, update: Box<Update> },
    /// A shadow that cannot be imported, and why.
    Invalid { name: String, reason: String },
    /// Something without a shadow.
    Empty,
}

impl Entry {
    fn new(name: String, update: Result<Update, String>) -> Entry {
        match update {
            Ok(update) => Entry::Shadow {
                name,
                update: Box::new(update.retries(RETRIES)),
            },
            Err(reason) => Entry::Invalid { name, reason },
        }
    }
}

enum Outcome {
    Imported,
    Unchanged,
    Failed { name: String, reason: String },
    Empty,
}

#[derive(Debug, Default)]
struct Summary {
    imported: usize,
    unchanged: usize,
    failed: usize,
    empty: usize,
}

/// Imports all entries. Those that cannot be imported do not stop the others; a failure of a service does.
async fn import<P: ShadowStore>(
    entries: impl Stream<Item = Result<Entry, CliError>>,
    target: &Target<'_, P>,
    progress: &Progress,
) -> Result<Summary, CliError> {
    let outcomes = entries.map(|entry| async move {
        match entry? {
            Entry::Shadow { name, update } => target.write(name, *update).await,
            Entry::Invalid { name, reason } => Ok(Outcome::Failed { name, reason }),
            Entry::Empty => Ok(Outcome::Empty),
        }
    });
    let mut outcomes = std::pin::pin!(outcomes.buffer_unordered(CONCURRENCY));
    let mut summary = Summary::default();
    while let Some(outcome) = outcomes.next().await {
        match outcome? {
            Outcome::Imported => summary.imported += 1,
            Outcome::Unchanged => summary.unchanged += 1,
            Outcome::Empty => summary.empty += 1,
            Outcome::Failed { name, reason } => {
                summary.failed += 1;
                if summary.failed <= MAX_SHOWN_ERRORS {
                    progress.clear();
                    anstream::eprintln!("{} {reason}", styled(BAD, &format!("{name}:")));
                }
            }
        }
    }
    Ok(summary)
}

/// The table that shadows are imported into.
struct Target<'a, P> {
    connection: &'a Connection,
    shadows: Shadows<P>,
    /// Model of the table's documents.
    model: Model,
    dry_run: bool,
}

impl<P: ShadowStore> Target<'_, P> {
    async fn write(&self, name: String, update: Update) -> Result<Outcome, CliError> {
        let written = match self.dry_run {
            true => self.shadows.would_write(&update).await,
            false => self.shadows.update(update).await.map(|done| done.written),
        };
        match written.map_err(CliError::from) {
            Ok(true) => Ok(Outcome::Imported),
            Ok(false) => Ok(Outcome::Unchanged),
            Err(error) if error.status == ExitStatus::Unavailable => {
                let CliError { status, reason } = self.connection.explain(error);
                let advice = "repeat the import, which continues";
                Err(CliError::new(status, format!("{reason}; {advice}")))
            }
            Err(CliError { reason, .. }) => Ok(Outcome::Failed { name, reason }),
        }
    }
}

impl Summary {
    /// The result of the command. `nouns` are the names of entries and of those that are empty.
    fn finish(self, nouns: [&str; 2], dry_run: bool, json: bool) -> Result<String, CliError> {
        let Summary {
            imported,
            unchanged,
            failed,
            empty,
        } = self;
        let [entries, empties] = nouns;
        let verb = if dry_run { "to import" } else { "imported" };
        let mut text = format!("{imported} {entries} {verb}, {unchanged} unchanged");
        if empty > 0 {
            text.push_str(&format!(", {empty} {empties}"));
        }
        if failed > 0 {
            return Err(CliError::failed(format!(
                "{text}, {failed} cannot be imported; correct them and repeat the import, which changes nothing else"
            )));
        }
        Ok(match json {
            true => output::json(&json!({
                "imported": imported, "unchanged": unchanged, "empty": empty, "dryRun": dry_run,
            })),
            false => text,
        })
    }
}

/// Rejects times in the future: no report could replace such a value for a long time.
fn check_time(time: Timestamp) -> Result<(), String> {
    match time > SystemClock.now().after(MAX_FUTURE) {
        true => Err(format!(
            "it has a value of {time}, which is in the future; correct the time in the source"
        )),
        false => Ok(()),
    }
}

/// The same for all timestamped values of a document.
fn check_times(document: &Document, model: &Model) -> Result<(), String> {
    fn check(view: View<'_>, model: &Model) -> Result<(), String> {
        model.time(view).map_or(Ok(()), check_time)?;
        view.children().try_for_each(|child| check(child, model))
    }
    let mut members = document.view().children();
    members.try_for_each(|member| check(member, model))
}
