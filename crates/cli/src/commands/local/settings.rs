//! Settings of the functions as options: one for each variable, derived from the functions themselves.

use std::collections::BTreeSet;

use antumbra_local::stack::{self, Settings};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

/// The page that describes every variable; tests compare it with the functions.
const PAGE: &str = include_str!("../../../../../docs/configuration.md");

/// Variables that options of the connection set: `--layout` and `--topic-prefix`.
const ELSEWHERE: [&str; 2] = ["COMBINED", "TOPIC_PREFIX"];

/// Values of all variables that were given, in the environment or as options.
#[derive(Debug, Clone, Default)]
pub(super) struct SettingsOptions(pub(super) Settings);

/// Names of all variables that users set, without repetition.
fn variables() -> Vec<String> {
    let all: BTreeSet<String> = stack::variables().into_values().flatten().collect();
    all.into_iter()
        .filter(|name| !stack::is_own(name))
        .collect()
}

/// Variables of the environment that the command ignores: those that the stack sets itself, and the table of other
/// commands. `AWS_ENDPOINT_URL` and `REGISTRATIONS` are set by the stack and yet read elsewhere.
pub(super) fn unused_variables() -> Vec<String> {
    let all = stack::variables().into_values().flatten();
    let own = all.filter(|name| stack::is_own(name));
    let own = own.chain(["ANTUMBRA_TABLE".to_owned()]);
    let unused = own.filter(|name| !["AWS_ENDPOINT_URL", "REGISTRATIONS"].contains(&name.as_str()));
    let set = unused.filter(|name| std::env::var_os(name).is_some());
    set.collect::<BTreeSet<_>>().into_iter().collect()
}

impl Args for SettingsOptions {
    fn augment_args(command: Command) -> Command {
        let options = variables()
            .into_iter()
            .filter(|name| !ELSEWHERE.contains(&name.as_str()));
        options.fold(command, |command, name| command.arg(option(name)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SettingsOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<SettingsOptions, clap::Error> {
        let given = variables().into_iter().filter_map(|name| {
            let value = match ELSEWHERE.contains(&name.as_str()) {
                true => std::env::var(&name).ok(),
                false => matches.get_one::<String>(&name).cloned(),
            };
            Some((name, value?))
        });
        Ok(SettingsOptions(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// `--uuid-key` for `uuidKey`, `--data` for `DATA`.
fn option(variable: String) -> Arg {
    let help = help(&variable);
    // The parser keeps names for as long as the process runs.
    let variable: &'static str = variable.leak();
    Arg::new(variable)
        .long(&*long(variable).leak())
        .env(variable)
        .value_name("VALUE")
        .allow_hyphen_values(true)
        .hide_short_help(true)
        .help(help)
        .help_heading("Settings of the functions")
}

pub(super) fn long(variable: &str) -> String {
    let is_upper = variable.chars().all(|c| !c.is_ascii_lowercase());
    let characters = variable.chars().flat_map(|c| match c {
        '_' => vec!['-'],
        c if c.is_ascii_uppercase() && !is_upper => vec!['-', c.to_ascii_lowercase()],
        c => vec![c.to_ascii_lowercase()],
    });
    characters.collect()
}

/// The description of a variable, with its default.
fn help(variable: &str) -> String {
    let Some((meaning, default)) = described(variable) else {
        return String::new();
    };
    let default = stack::default(variable).map_or(default, str::to_owned);
    format!("{meaning} [default: {default}]")
}

/// Meaning and default in the first row of the page with this variable.
fn described(variable: &str) -> Option<(String, String)> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `"));
    rows.into_iter().find_map(|row| {
        let mut cells = row.trim_matches(['|', ' ']).split(" | ");
        let (names, default, meaning) = (cells.next()?, cells.next()?, cells.next()?);
        let names: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        let at = names.iter().position(|name| *name == variable)?;
        let defaults: Vec<&str> = default.split(", ").collect();
        let default = match defaults.len() == names.len() {
            true => defaults[at],
            false => default,
        };
        Some((sentence(meaning), plain(default)))
    })
}

/// Begins with a capital, unless the first word is a value.
fn sentence(markdown: &str) -> String {
    let text = plain(markdown);
    match text.split_at_checked(1) {
        Some((first, rest)) if !markdown.starts_with('`') => first.to_uppercase() + rest,
        _ => text,
    }
}

/// Markdown without code marks and links.
fn plain(markdown: &str) -> String {
    let text = markdown.replace('`', "");
    let mut parts = text.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(')').map_or(part, |(_, rest)| rest));
    rest.fold(first, |text, part| text + part).replace('[', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_named_after_variables() {
        assert_eq!(long("uuidKey"), "uuid-key");
        assert_eq!(long("SENSOR_ID_PATTERN"), "sensor-id-pattern");
    }

    #[test]
    fn every_variable_has_a_description_and_a_default() {
        for variable in variables() {
            let help = help(&variable);
            let (meaning, default) = help.split_once(" [default: ").unwrap_or_default();
            assert!(
                !meaning.is_empty() && default.len() > 1,
                "{variable}: {help}"
            );
            assert!(!help.contains(['`', '(']) || !help.contains("]("), "{help}");
        }
        assert_eq!(help("ID_FIELD"), "Fields of the merge rules [default: id]");
        let help = help("MESSAGE_RETENTION_DAYS");
        assert_eq!(help, "Days until messages expire [default: 30]");
    }
}
