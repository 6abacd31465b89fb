//! `antumbra shadow get --at`, `history` and `diff`: the past of shadows.

use std::sync::Arc;
use std::time::Duration;

use antumbra_dynamodb::{DynamoDbHistory, Feed, HistoryConfig, HistoryReader};
use antumbra_local::progress::width;
use antumbra_service::api;
use antumbra_service::clock::{Clock as _, SystemClock};
use antumbra_service::history::{ChangeQuery, DEFAULT_DAYS, StateAt};
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::shadows::ShadowId;
use antumbra_shadow::{Document, Kind, Timestamp};
use clap::{Args, Subcommand};

use super::{Part, ShadowArguments, render};
use crate::connection::Connection;
use crate::error::{CliError, ExitStatus};
use crate::input::Paging;
use crate::output::{self, BAD, CHANGED, FAINT, GOOD, STRONG, page, styled, table};

/// Commands that read the history table.
#[derive(Debug, Subcommand)]
pub(crate) enum PastCommand {
    /// List recorded changes of a shadow, newest first.
    ///
    /// Example: antumbra shadow history freezer-3 --path /temperature --from -2h --plot
    History {
        #[command(flatten)]
        shadow: ShadowArguments,
        #[command(flatten)]
        history: HistoryTable,
        /// JSON Pointer: only changes of the values there and below.
        #[arg(long, value_name = "POINTER", value_parser = pointer)]
        path: Option<String>,
        /// Changes at this time or later: RFC 3339, or back from now such as -10m.
        #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
        from: Option<Timestamp>,
        /// Changes at this time or earlier.
        #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
        to: Option<Timestamp>,
        /// Draw the numbers at the path.
        #[arg(long, requires = "path", conflicts_with = "json")]
        plot: bool,
        #[command(flatten)]
        paging: Paging,
    },
    /// Compare a shadow at two times.
    ///
    /// Example: antumbra shadow diff freezer-3 --from 2026-01-31T12:00:00Z --to -10m
    Diff {
        #[command(flatten)]
        shadow: ShadowArguments,
        #[command(flatten)]
        history: HistoryTable,
        /// Earlier time: RFC 3339, or back from now such as -10m.
        #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
        from: Timestamp,
        /// Later time; now by default.
        #[arg(long, value_name = "TIME", value_parser = moment, allow_hyphen_values = true)]
        to: Option<Timestamp>,
    },
}

#[derive(Debug, Clone, Args)]
pub(crate) struct HistoryTable {
    /// Table of the history [default: that of the deployment]
    #[arg(long, value_name = "TABLE", env = "ANTUMBRA_HISTORY_TABLE")]
    history_table: Option<String>,
}

impl HistoryTable {
    fn name(&self, connection: &Connection) -> String {
        let given = self.history_table.clone();
        given.unwrap_or_else(|| connection.history_table())
    }

    pub(super) async fn connect(&self, connection: &Connection) -> DynamoDbHistory {
        let config = HistoryConfig {
            table: self.name(connection),
            days: DEFAULT_DAYS,
        };
        DynamoDbHistory::connect(&connection.sdk_config().await, config)
    }

    async fn reader(&self, connection: &Connection) -> Result<HistoryReader, CliError> {
        let shadows = connection.shadows(false).await?;
        let history = self.connect(connection).await;
        Ok(history.reader(shadows.store().clone(), shadows.model().clone()))
    }

    pub(crate) async fn feed(&self, connection: &Connection) -> Result<Feed, CliError> {
        let reader = self.reader(connection).await?;
        Ok(reader.feed(Arc::new(SystemClock)))
    }

    /// Says in an error which table is missing.
    pub(crate) fn explain(&self, connection: &Connection, error: CliError) -> CliError {
        connection.explain_table(error, &self.name(connection), "--history-table")
    }
}

/// Parses an RFC 3339 time, or one before now such as `-90s`, `-10m`, `-2h`, `-3d`; for the argument parser.
pub(crate) fn moment(text: &str) -> Result<Timestamp, String> {
    before(text, SystemClock.now())
        .or_else(|| Timestamp::parse(text))
        .ok_or_else(|| "expected a time such as 2026-01-31T12:00:00Z, or -10m".to_owned())
}

fn before(text: &str, now: Timestamp) -> Option<Timestamp> {
    let ago = text.strip_prefix('-')?;
    let (number, unit) = ago.split_at_checked(ago.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 60 * 60,
        "d" => 24 * 60 * 60,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    let ago = Duration::from_secs(u64::from(number) * seconds).as_nanos() as i128;
    Some(Timestamp::from_nanoseconds(now.nanoseconds() - ago))
}

fn pointer(text: &str) -> Result<String, String> {
    match text.is_empty() || text.starts_with('/') {
        true => Ok(text.to_owned()),
        false => Err("expected a JSON Pointer such as /led".to_owned()),
    }
}

/// Shows a shadow as it was at a time.
pub(crate) async fn get_at(
    id: &ShadowId,
    at: Timestamp,
    part: Part,
    table: &HistoryTable,
    connection: &Connection,
    json: bool,
) -> Result<String, CliError> {
    let reader = table.reader(connection).await?;
    let state = reader.state_at(id, at, SystemClock.now()).await;
    match state.map_err(|error| table.explain(connection, error.into()))? {
        StateAt::Existed(shadow) => Ok(render::shadow(id, *shadow, part, json)),
        state => Err(unknown(id, &state, &at.to_string())),
    }
}

fn unknown(id: &ShadowId, state: &StateAt, at: &str) -> CliError {
    let reason = match state {
        StateAt::DidNotExist => format!(
            "the shadow {id} did not exist at {at}; `antumbra shadow history` shows when it was created"
        ),
        StateAt::BeforeRetention { since } => {
            format!("the history is kept since {since}, {at} is before that; choose a later time")
        }
        StateAt::Existed(_) | StateAt::NotRecorded => format!(
            "a change of the shadow {id} around {at} is not recorded; one of a moment ago is recorded soon, then try again"
        ),
    };
    CliError::new(ExitStatus::NotFound, reason)
}

pub(crate) async fn run(
    command: PastCommand,
    connection: &Connection,
    json: bool,
) -> Result<String, CliError> {
    let now = SystemClock.now();
    match command {
        PastCommand::History {
            shadow,
            history,
            path,
            from,
            to,
            plot,
            paging,
        } => {
            let query = ChangeQuery {
                shadow: shadow.id()?,
                from,
                to,
                path,
            };
            let reader = history.reader(connection).await?;
            let cursor = paging.cursor();
            let found = reader
                .changes(&query, paging.limit(), cursor.as_ref(), now)
                .await;
            let found = found.map_err(|error| history.explain(connection, error.into()))?;
            Ok(match plot {
                true => picture(&query, found),
                false => entries(&query.shadow, found, json),
            })
        }
        PastCommand::Diff {
            shadow,
            history,
            from,
            to,
        } => {
            let (id, to) = (shadow.id()?, to.unwrap_or(now));
            let reader = history.reader(connection).await?;
            let found = reader.difference(&id, [from, to], now).await;
            let found = found.map_err(|error| history.explain(connection, error.into()))?;
            let changed =
                found.map_err(|state| unknown(&id, &state, &format!("{from} or {to}")))?;
            let difference = api::ShadowDifference::new(&id, from, to, changed);
            if json {
                return Ok(output::json(&difference));
            }
            let title = format!("{}  {from} to {to}", styled(STRONG, &id.to_string()));
            Ok(match difference.changes.is_empty() {
                true => format!("{title}\n{}", styled(FAINT, "no difference")),
                false => format!("{title}\n{}", table(&rows(&difference.changes))),
            })
        }
    }
}

/// Formats changed values, one per row.
fn rows(changes: &[api::ValueChange]) -> Vec<Vec<String>> {
    let row = |change: &api::ValueChange| {
        let (style, word, text) = match (&change.old, &change.new) {
            (None, Some(new)) => (GOOD, "added", new.get().to_owned()),
            (Some(old), None) => (BAD, "removed", old.get().to_owned()),
            (Some(old), Some(new)) => (
                CHANGED,
                "updated",
                format!("{} -> {}", old.get(), new.get()),
            ),
            (None, None) => (FAINT, "", String::new()),
        };
        vec![
            format!("  {}", styled(FAINT, change.state)),
            styled(style, word),
            change.path.clone(),
            text,
        ]
    };
    changes.iter().map(row).collect()
}

fn entries(
    id: &ShadowId,
    found: Page<antumbra_service::history::RecordedChange>,
    json: bool,
) -> String {
    let found = api::HistoryPage::from(found);
    if json {
        return output::json(&found);
    }
    if found.entries.is_empty() {
        let none = format!("no recorded changes of {id}");
        return page(&[], found.next_cursor.map(Cursor).as_ref(), &none);
    }
    let mut lines = vec![styled(STRONG, &id.to_string())];
    lines.extend(found.entries.iter().flat_map(|one| entry(one, "")));
    if let Some(next) = &found.next_cursor {
        lines.push(format!("{} --cursor {next}", styled(FAINT, "next page:")));
    }
    lines.join("\n")
}

/// Formats a recorded change; a name stands before it where changes of several shadows are shown.
pub(crate) fn entry(entry: &api::HistoryEntry, name: &str) -> Vec<String> {
    let token = entry.client_token.as_ref();
    let token = token.map(|token| format!(", token {token}"));
    let operation = match entry.operation {
        "remove" => format!(", {}", styled(BAD, "deleted")),
        "insert" => format!(", {}", styled(GOOD, "created")),
        _ => String::new(),
    };
    let mut lines = vec![format!(
        "{}  {name}{} version {}{operation}{}",
        styled(FAINT, &entry.time.0.to_string()),
        entry.documents.join(" and "),
        entry.version,
        token.unwrap_or_default()
    )];
    if !entry.changes.is_empty() {
        lines.push(table(&rows(&entry.changes)));
    }
    if entry.incomplete {
        lines.push(styled(FAINT, "  more values changed than are shown"));
    }
    lines
}

/// Draws the numbers of one field.
fn picture(query: &ChangeQuery, found: Page<antumbra_service::history::RecordedChange>) -> String {
    let mut points = Vec::new();
    for change in &found.rows {
        let values = change
            .documents
            .iter()
            .filter_map(|document| document.values.as_ref());
        for leaf in values.flatten() {
            let number = leaf.new.as_deref().and_then(number);
            points.extend(number.map(|number| (change.time.nanoseconds(), number)));
        }
    }
    let title = styled(STRONG, &query.shadow.to_string());
    let path = query.path.as_deref().unwrap_or_default();
    let count = styled(FAINT, &format!("{path}  {} values", points.len()));
    let picture = crate::plot::draw(points, width());
    let picture = picture.unwrap_or_else(|| styled(FAINT, "no changes to a number"));
    let next = found
        .next
        .map(|Cursor(next)| format!("\n{} --cursor {next}", styled(FAINT, "next page:")));
    format!("{title}  {count}\n{picture}{}", next.unwrap_or_default())
}

/// The number of a value: itself, or the member `value` of a timestamped one.
fn number(json: &str) -> Option<f64> {
    let wrapped = Document::parse(&format!("{{\"v\":{json}}}")).ok()?;
    let value = wrapped.pointer("/v")?;
    let value = match value.kind() {
        Kind::Object => value.get("value")?,
        _ => value,
    };
    match value.kind() {
        Kind::Bool => value.as_bool().map(|on| f64::from(u8::from(on))),
        _ => value.as_number()?.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_count_back_from_now() {
        let now = Timestamp::parse("2026-01-31T12:00:00Z").unwrap();
        for (text, expected) in [
            ("-90s", Some("2026-01-31T11:58:30Z")),
            ("-10m", Some("2026-01-31T11:50:00Z")),
            ("-2h", Some("2026-01-31T10:00:00Z")),
            ("-1d", Some("2026-01-30T12:00:00Z")),
            ("-", None),
            ("-m", None),
            ("-1w", None),
            ("-1é", None),
            ("10m", None),
        ] {
            let expected = expected.and_then(Timestamp::parse);
            assert_eq!(before(text, now), expected, "{text}");
        }
        assert!(moment("2026-01-31T12:00:00Z").is_ok());
        assert!(moment("yesterday").is_err());
    }

    #[test]
    fn numbers_are_drawn_with_and_without_a_time() {
        for (json, expected) in [
            ("21.5", Some(21.5)),
            ("true", Some(1.0)),
            (r#"{"timestamp":1,"value":-3}"#, Some(-3.0)),
            (r#""on""#, None),
            ("null", None),
        ] {
            assert_eq!(number(json), expected, "{json}");
        }
    }
}
