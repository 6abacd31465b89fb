//! `antumbra registrations …`: checks registrations and explains their matches.

use std::path::{Path, PathBuf};

use antumbra_notify::files;
use antumbra_registration::Registrations;
use antumbra_wire::items::StreamKinds;
use clap::Subcommand;
use serde::Serialize;

use crate::error::CliError;
use crate::output::{BAD, FAINT, GOOD, STRONG, json, styled, table};

#[derive(Debug, Subcommand)]
pub(crate) enum RegistrationsCommand {
    /// Check all registrations, list their errors, and show which stream records they need.
    ///
    /// Example: antumbra registrations check --stream-kinds shadows,states,messages
    Check {
        #[command(flatten)]
        directory: Directory,
        /// Fail if registrations can match other records than those that a deployment with this StreamKinds lets through.
        #[arg(long, value_name = "KINDS")]
        stream_kinds: Option<StreamKinds>,
    },
    /// Explain for each record of a stream event which registrations match, and why the others do not.
    ///
    /// Example: antumbra registrations explain infra/events/stream-listener/changes.json
    Explain {
        /// DynamoDB stream event in the format of Lambda.
        event: PathBuf,
        #[command(flatten)]
        directory: Directory,
    },
    /// Print the JSON Schema of a registration.
    ///
    /// Example: antumbra registrations schema > registrations/registration.schema.json
    Schema,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Directory {
    /// Directory of registrations; those of a directory `examples` in it are loaded too [default: registrations]
    #[arg(long, value_name = "DIR", env = "REGISTRATIONS")]
    registrations: Option<PathBuf>,
}

/// The JSON Schema of registration files; tests compare it with the reader.
const SCHEMA: &str = include_str!("../../../../registrations/registration.schema.json");

pub(crate) fn run(command: RegistrationsCommand, as_json: bool) -> Result<String, CliError> {
    match command {
        RegistrationsCommand::Check {
            directory,
            stream_kinds,
        } => check(&directory, stream_kinds.as_ref(), as_json),
        RegistrationsCommand::Explain { event, directory } => explain(&event, &directory, as_json),
        RegistrationsCommand::Schema => Ok(SCHEMA.trim_end().to_owned()),
    }
}

impl Directory {
    pub(crate) fn path(&self) -> &Path {
        let given = self.registrations.as_deref();
        given.unwrap_or(Path::new("registrations"))
    }

    /// Returns `true` if no directory is given and the default one is missing.
    pub(crate) fn is_absent(&self) -> bool {
        self.registrations.is_none() && !self.path().exists()
    }

    pub(crate) fn load(&self) -> Result<Registrations, CliError> {
        load(self.read()?)
    }

    /// Reads names and texts of the files.
    fn read(&self) -> Result<Vec<(String, String)>, CliError> {
        let hint = match self.is_absent() {
            true => "; go to the directory that holds it, or name it with --registrations",
            false => "",
        };
        files::read_with_examples(self.path())
            .map_err(|error| CliError::invalid(format!("{error}{hint}")))
    }

    /// The same, with the shipped files in place of a missing default directory, for a stack that is started elsewhere
    /// than in the repository.
    pub(crate) fn read_or_built_in(&self) -> Result<Vec<(String, String)>, CliError> {
        let built_in = files::SHIPPED.map(|(name, text)| (name.to_owned(), text.to_owned()));
        match self.is_absent() {
            true => Ok(built_in.to_vec()),
            false => self.read(),
        }
    }
}

/// Loads registrations from names and texts of their files.
pub(crate) fn load(files: Vec<(String, String)>) -> Result<Registrations, CliError> {
    Registrations::load(files, &|name| std::env::var(name).ok())
        .map_err(|errors| CliError::invalid(errors.to_string().replace('\n', "\n       ")))
}

fn check(
    directory: &Directory,
    stream_kinds: Option<&StreamKinds>,
    as_json: bool,
) -> Result<String, CliError> {
    #[derive(Serialize)]
    struct Checked<'a> {
        name: &'a str,
        file: &'a str,
        enabled: bool,
        to: &'a str,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct All<'a> {
        registrations: Vec<Checked<'a>>,
        stream_kinds: String,
    }
    let registrations = directory.load()?;
    if let Some(kinds) = stream_kinds {
        kinds.check(&registrations).map_err(CliError::invalid)?;
    }
    let needed = StreamKinds::needed_by(&registrations).to_string();
    let all: Vec<Checked<'_>> = registrations
        .iter()
        .map(|(_, registration)| Checked {
            name: &registration.name,
            file: &registration.file,
            enabled: registration.enabled,
            to: registration.to.kind(),
        })
        .collect();
    if as_json {
        return Ok(json(&All {
            registrations: all,
            stream_kinds: needed,
        }));
    }
    let rows: Vec<Vec<String>> = all
        .iter()
        .map(|one| {
            let state = if one.enabled {
                styled(GOOD, "ok")
            } else {
                styled(FAINT, "off")
            };
            vec![
                state,
                one.name.to_owned(),
                one.to.to_owned(),
                styled(FAINT, one.file),
            ]
        })
        .collect();
    Ok(format!("{}\nThey need StreamKinds={needed}", table(&rows)))
}

fn explain(event: &PathBuf, directory: &Directory, as_json: bool) -> Result<String, CliError> {
    let registrations = directory.load()?;
    let bytes = std::fs::read(event)
        .map_err(|fault| CliError::invalid(format!("{}: {fault}", event.display())))?;
    let records = antumbra_notify::explain(&registrations, &bytes).map_err(CliError::invalid)?;
    if as_json {
        #[derive(Serialize)]
        struct All<'a> {
            records: &'a [antumbra_notify::ExplainedRecord],
        }
        return Ok(json(&All { records: &records }));
    }
    let mut lines = Vec::new();
    for record in &records {
        lines.push(format!(
            "{}  {}",
            styled(STRONG, &record.key),
            styled(FAINT, &record.operation)
        ));
        if let Some(fault) = &record.fault {
            lines.push(format!("  {}", styled(BAD, fault)));
        }
        let rows: Vec<Vec<String>> = record
            .registrations
            .iter()
            .map(|one| {
                let verdict = if one.unmet.is_none() {
                    styled(GOOD, "matches")
                } else {
                    styled(FAINT, "no")
                };
                vec![
                    format!("  {verdict}"),
                    one.name.clone(),
                    one.unmet.clone().unwrap_or_default(),
                ]
            })
            .collect();
        if !rows.is_empty() {
            lines.push(table(&rows));
        }
    }
    Ok(lines.join("\n"))
}
