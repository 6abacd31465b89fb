//! `antumbra changes follow` and `antumbra shadow watch`: changes as they happen, from the change feed.

use std::time::Duration;

use antumbra_dynamodb::Feed;
use antumbra_service::access::IdRanges;
use antumbra_service::api::FeedEntry;
use antumbra_service::history::feed::{
    ChangeDeduplicator, FeedChange, FeedError, FeedFilter, FeedStart, Pattern,
};
use antumbra_shadow::Timestamp;
use clap::{Args, Subcommand};

use super::shadow::HistoryTable;
use super::shadow::past;
use crate::connection::Connection;
use crate::error::CliError;
use crate::output::{FAINT, STRONG, print_while_read, styled};
use crate::signals::Signals;

/// Changes of one read.
const PAGE: usize = 100;
/// Longest wait of one read.
const WAIT: Duration = Duration::from_secs(20);

#[derive(Debug, Subcommand)]
pub(crate) enum ChangesCommand {
    /// Print the changes of all shadows as they happen, until Ctrl-C.
    ///
    /// They are read from the change feed, about a second after they were made.
    ///
    /// Example: antumbra changes follow --since 1h --prefix freezer- --pattern '{"new":{"door":["open"]}}'
    Follow(Follow),
}

#[derive(Debug, Args)]
pub(crate) struct Follow {
    /// Begin with the changes since then: 30m, 1h, 2d, or RFC 3339; from now on by default.
    #[arg(long, value_name = "TIME", value_parser = since, allow_hyphen_values = true)]
    since: Option<Timestamp>,
    /// Start of the device ids; all devices by default.
    #[arg(long, default_value = "", hide_default_value = true)]
    prefix: String,
    /// Pattern of changes, as in registrations; old and new hold the changed values only.
    #[arg(long, value_name = "JSON", value_parser = pattern)]
    pattern: Option<Pattern>,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Device id; all devices by default.
    id: Option<String>,
    /// Shadow name; all names by default.
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
struct Output {
    /// Stop after this number of changes.
    #[arg(long, value_name = "COUNT")]
    count: Option<u64>,
    #[command(flatten)]
    history: HistoryTable,
}

fn since(text: &str) -> Result<Timestamp, String> {
    let ago = |_| past::moment(&format!("-{text}"));
    past::moment(text)
        .or_else(ago)
        .map_err(|_| "expected 30m, 1h, 2d or a time such as 2026-01-31T12:00:00Z".to_owned())
}

fn pattern(text: &str) -> Result<Pattern, String> {
    Pattern::of_change(text).map_err(|error| error.to_string())
}

impl Follow {
    pub(crate) async fn run(self, connection: &Connection, json: bool) -> Result<(), CliError> {
        let filter = FeedFilter {
            ids: IdRanges::starting_with(self.prefix),
            name: None,
            pattern: self.pattern,
        };
        self.output
            .print(self.since, &filter, connection, json)
            .await
    }
}

impl Watch {
    pub(crate) async fn run(self, connection: &Connection, json: bool) -> Result<(), CliError> {
        let filter = FeedFilter {
            ids: self.id.map_or_else(IdRanges::all, IdRanges::one),
            name: self.name,
            pattern: None,
        };
        self.output.print(None, &filter, connection, json).await
    }
}

impl Output {
    /// Prints changes until a signal, the last one, or until nobody reads them any more.
    async fn print(
        self,
        since: Option<Timestamp>,
        filter: &FeedFilter,
        connection: &Connection,
        json: bool,
    ) -> Result<(), CliError> {
        let explain = |error: FeedError| match error {
            FeedError::Store(error) => self.history.explain(connection, error.into()),
            error => CliError::invalid(error.to_string()),
        };
        let mut signals = Signals::listen().map_err(CliError::unavailable)?;
        let feed: Feed = self.history.feed(connection).await?;
        let start = since.map_or(FeedStart::Now, FeedStart::Since);
        let first = feed.read(&start, PAGE, Duration::ZERO, filter);
        let mut page = first.await.map_err(explain)?;
        let table = connection.table();
        anstream::eprintln!("{} {table}; stop with Ctrl-C", styled(FAINT, "watching"));
        let (mut left, mut newer) = (self.count, ChangeDeduplicator::default());
        loop {
            for change in page.changes {
                if since.is_some_and(|since| change.change.time < since) || !newer.is_new(&change) {
                    continue;
                }
                if left == Some(0) || !print_while_read(&text(change, json))? {
                    return Ok(());
                }
                left = left.map(|left| left - 1);
            }
            if left == Some(0) {
                return Ok(());
            }
            let start = FeedStart::parse(&page.cursor.0);
            page = tokio::select! {
                page = feed.read(&start, PAGE, WAIT, filter) => page.map_err(explain)?,
                () = signals.next() => return Ok(()),
            };
        }
    }
}

fn text(change: FeedChange, json: bool) -> String {
    let name = change.shadow.to_string();
    let entry = FeedEntry::from(change);
    match json {
        // A change always has a JSON form.
        true => serde_json::to_string(&entry).unwrap_or_default(),
        false => past::entry(&entry.change, &format!("{}  ", styled(STRONG, &name))).join("\n"),
    }
}
