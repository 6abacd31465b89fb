//! Values of arguments: texts from files, times and pages.

use std::io::Read as _;

use antumbra_service::paging::Cursor;
use antumbra_shadow::Timestamp;
use clap::Args;

use crate::error::CliError;

/// Returns the argument itself, with `@FILE` the text of a file, with `-` all of standard input.
pub(crate) fn text(argument: &str) -> Result<String, CliError> {
    let unreadable = |source: &str, fault: std::io::Error| {
        CliError::invalid(format!("cannot read {source}: {fault}"))
    };
    match (argument, argument.strip_prefix('@')) {
        ("-", _) => {
            let mut text = String::new();
            std::io::stdin()
                .read_to_string(&mut text)
                .map_err(|fault| unreadable("standard input", fault))?;
            Ok(text)
        }
        (_, Some(path)) => std::fs::read_to_string(path).map_err(|fault| unreadable(path, fault)),
        _ => Ok(argument.to_owned()),
    }
}

/// Parses an RFC 3339 time; for the argument parser.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "expected a time such as 2026-01-31T12:00:00Z".to_owned())
}

/// The page of a listing.
#[derive(Debug, Args)]
pub(crate) struct Paging {
    /// Maximum number of entries.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Cursor that an earlier page ended with.
    #[arg(long)]
    cursor: Option<String>,
}

impl Paging {
    pub(crate) fn limit(&self) -> usize {
        self.limit as usize
    }

    pub(crate) fn cursor(&self) -> Option<Cursor> {
        self.cursor.clone().map(Cursor)
    }
}
