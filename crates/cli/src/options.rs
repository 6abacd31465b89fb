//! Options of the whole command line, and the commands that use them. A command neither shows nor accepts the others.
//! Those before the command may stand in an alias for all commands that call services; `--local` for every command.

use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::error::CliError;

const JSON: &str = "json";
const TABLE: &[&str] = &["local", "endpoint_url", "region", "profile", "table", JSON];
const QUEUE: &[&str] = &["local", "aws_url", "region", "profile", JSON];
const BROKER: &[&str] = &["local", "region", "profile", "topic_prefix", JSON];

/// The options that commands use, by the beginning of their path; the longest one counts.
const USES: &[(&str, &[&[&str]])] = &[
    ("changes", &[TABLE, &["layout"]]),
    ("clients", &[TABLE, QUEUE]),
    ("completions", &[]),
    (
        "console",
        &[&["region", "profile", "table", "layout", JSON]],
    ),
    ("cost", &[&[JSON]]),
    ("demo", &[&["topic_prefix", JSON]]),
    ("doctor", &[TABLE, QUEUE, BROKER]),
    ("events", &[QUEUE]),
    ("import", &[TABLE, &["layout"]]),
    ("listen", &[&[JSON]]),
    ("local", &[&["layout", "topic_prefix", JSON]]),
    ("messages", &[BROKER]),
    ("messages send", &[BROKER, QUEUE, &["table"]]),
    ("mqtt", &[BROKER]),
    ("queues", &[QUEUE]),
    (
        "queues redrive",
        &[TABLE, QUEUE, &["layout", "topic_prefix"]],
    ),
    ("registrations", &[&[JSON]]),
    ("sensors", &[TABLE]),
    ("sensors signal", &[QUEUE, TABLE]),
    ("shadow", &[TABLE, &["layout"]]),
    ("token", &[&[JSON]]),
];

/// Returns the options that a command uses, or `None` if it is not listed.
fn used(path: &str) -> Option<Vec<&'static str>> {
    let is_prefix = |prefix: &str| {
        let rest = path.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    let found = USES.iter().filter(|(prefix, _)| is_prefix(prefix));
    let (_, groups) = found.max_by_key(|(prefix, _)| prefix.len())?;
    Some(
        groups
            .iter()
            .flat_map(|group| group.iter().copied())
            .collect(),
    )
}

/// Hides the options that commands do not use.
pub(crate) fn hide_unused(command: Command) -> Command {
    let options: Vec<clap::Arg> = command
        .get_arguments()
        .filter(|option| option.is_global_set())
        .cloned()
        .collect();
    hide_below(command, "", &options)
}

fn hide_below(command: Command, path: &str, options: &[clap::Arg]) -> Command {
    if !command.has_subcommands() {
        let used = used(path).unwrap_or_default();
        let is_unused = |option: &&clap::Arg| !used.contains(&option.get_id().as_str());
        // The command has this option already, so that it does not inherit the visible one.
        let hidden = options.iter().filter(is_unused);
        return command.args(hidden.map(|option| option.clone().hide(true)));
    }
    command.mut_subcommands(|below| {
        let path = format!("{path} {}", below.get_name());
        hide_below(below, path.trim_start(), options)
    })
}

/// Refuses options that the command does not use. Variables, and options before the command, may be meant for others.
pub(crate) fn refuse_unused(
    command: &Command,
    matches: &ArgMatches,
    words: &[OsString],
) -> Result<(), CliError> {
    let (mut path, mut leaf) = (Vec::new(), matches);
    while let Some((name, below)) = leaf.subcommand() {
        path.push(name);
        leaf = below;
    }
    let first = path.first().copied().unwrap_or_default();
    // The program's own name may be that of a command.
    let before: Vec<&OsString> = words
        .iter()
        .skip(1)
        .take_while(|word| *word != first)
        .collect();
    let path = path.join(" ");
    let used = used(&path).unwrap_or_default();
    for option in command.get_arguments().filter(|one| one.is_global_set()) {
        let id = option.get_id().as_str();
        let long = format!("--{}", option.get_long().unwrap_or(id));
        let is_given = leaf.value_source(id) == Some(ValueSource::CommandLine);
        let is_before = before.iter().any(|word| {
            let word = word.to_string_lossy();
            word == long || word.starts_with(&format!("{long}="))
        });
        let is_shared = id == "local" || (is_before && used.contains(&"local"));
        if is_given && !used.contains(&id) && !is_shared {
            return Err(CliError::invalid(format!(
                "{long} has no meaning for `antumbra {path}`; leave it out"
            )));
        }
    }
    Ok(())
}

/// Refuses variables with the prefix of the command that no option has: one is misspelt.
pub(crate) fn refuse_unknown_variables(
    command: &Command,
    variables: impl Iterator<Item = String>,
) -> Result<(), CliError> {
    let mut known = Vec::new();
    collect_variables(command, &mut known);
    let is_unknown = |name: &String| name.starts_with("ANTUMBRA_") && !known.contains(name);
    match variables.into_iter().find(is_unknown) {
        None => Ok(()),
        Some(name) => Err(CliError::invalid(format!(
            "the variable {name} is unknown; unset it, or correct its name (see --help)"
        ))),
    }
}

fn collect_variables(command: &Command, found: &mut Vec<String>) {
    let variables = command.get_arguments().filter_map(|one| one.get_env());
    found.extend(variables.filter_map(|name| Some(name.to_str()?.to_owned())));
    for below in command.get_subcommands() {
        collect_variables(below, found);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory as _;

    use super::*;
    use crate::Arguments;

    /// All commands without subcommands, by their path.
    fn leaves(command: &Command, path: &str, found: &mut Vec<(String, Command)>) {
        for below in command.get_subcommands() {
            let path = format!("{path} {}", below.get_name());
            leaves(below, path.trim_start(), found);
        }
        if !command.has_subcommands() {
            found.push((path.to_owned(), command.clone()));
        }
    }

    #[test]
    fn every_command_shows_exactly_the_options_that_it_uses() {
        let mut command = hide_unused(Arguments::command());
        let globals = command.get_arguments().filter(|one| one.is_global_set());
        let globals: BTreeSet<String> = globals.map(|one| one.get_id().to_string()).collect();
        command.build();
        let mut found = Vec::new();
        leaves(&command, "", &mut found);
        assert!(found.len() > 30, "{}", found.len());
        for (path, leaf) in found
            .iter()
            .filter(|(path, _)| !path.starts_with("help") && !path.contains(" help"))
        {
            let used = used(path).unwrap_or_else(|| panic!("{path} is not in USES"));
            let shown = leaf.get_arguments().filter(|one| !one.is_hide_set());
            let shown = shown.map(|one| one.get_id().as_str());
            let shown: BTreeSet<&str> = shown.filter(|id| globals.contains(*id)).collect();
            assert_eq!(shown, used.into_iter().collect(), "{path}");
        }
        for (path, _) in USES {
            let exists = found.iter().any(|(leaf, _)| leaf.starts_with(path));
            assert!(exists, "there is no {path}");
        }
    }

    #[test]
    fn misspelt_variables_are_refused() {
        let check = |name: &str| {
            let names = [name.to_owned(), "PATH".to_owned()];
            refuse_unknown_variables(&Arguments::command(), names.into_iter())
        };
        assert!(check("ANTUMBRA_TABLE").is_ok() && check("ANTUMBRA_MQTT_URL").is_ok());
        assert!(
            check("ANTUMBRA_TABEL")
                .unwrap_err()
                .reason
                .contains("ANTUMBRA_TABEL")
        );
    }

    fn checked(words: &[&str]) -> Result<(), String> {
        let command = hide_unused(Arguments::command());
        let matches = command.clone().get_matches_from(words);
        let words: Vec<OsString> = words.iter().map(Into::into).collect();
        refuse_unused(&command, &matches, &words).map_err(|error| error.reason)
    }

    #[test]
    fn options_without_a_meaning_are_refused() {
        let refused = [
            (
                &["antumbra", "cost", "--profile", "x"][..],
                "--profile has no meaning for `antumbra cost`; leave it out",
            ),
            (
                &["antumbra", "--table", "x", "local"],
                "--table has no meaning for `antumbra local`; leave it out",
            ),
            (
                &[
                    "antumbra",
                    "queues",
                    "show",
                    "a",
                    "--endpoint-url",
                    "http://a",
                ],
                "--endpoint-url has no meaning for `antumbra queues show`; leave it out",
            ),
        ];
        for (words, reason) in refused {
            assert_eq!(checked(words), Err(reason.to_owned()));
        }
        for accepted in [
            &[
                "antumbra",
                "--endpoint-url",
                "http://a",
                "queues",
                "show",
                "a",
            ][..],
            &["antumbra", "--local", "cost"],
            &["antumbra", "--table", "x", "shadow", "get", "lamp"],
            &[
                "antumbra",
                "local",
                "--layout",
                "combined",
                "--uuid-key",
                "device",
            ],
        ] {
            assert_eq!(checked(accepted), Ok(()));
        }
    }
}
