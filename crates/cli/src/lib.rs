//! The `antumbra` command.

mod commands;
mod connection;
mod error;
mod input;
mod mqtt;
mod options;
mod output;
mod plot;
mod s3;
mod send_message;
mod signals;
mod stacks;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches as _, Parser, Subcommand};

use commands::changes::ChangesCommand;
use commands::clients::ClientsArguments;
use commands::console::ConsoleArguments;
use commands::cost::CostArguments;
use commands::demo::DemoArguments;
use commands::doctor::DoctorArguments;
use commands::events::EventsArguments;
use commands::import::ImportCommand;
use commands::listen::ListenArguments;
use commands::local::LocalArguments;
use commands::messages::MessagesArguments;
use commands::mqtt::MqttArguments;
use commands::queues::QueuesArguments;
use commands::registrations::RegistrationsCommand;
use commands::sensors::SensorsCommand;
use commands::shadow::ShadowCommand;
use commands::token::TokenArguments;
use connection::{Connection, Service};
use error::CliError;

/// Device shadows, notifications and sensors on AWS serverless and on this machine.
#[derive(Debug, Parser)]
#[command(name = "antumbra", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the whole stack on this machine: DynamoDB, SQS, SNS, an MQTT broker and all functions.
    ///
    /// Example: antumbra local --memory
    Local(LocalArguments),
    /// Show a tour: a small fleet on an in-memory stack, every step checked; or let a fleet report to the running local stack.
    ///
    /// Example: antumbra demo --into-local
    Demo(DemoArguments),
    /// Follow the changes of all shadows.
    ///
    /// Example: antumbra changes follow --since 1h
    #[command(subcommand)]
    Changes(ChangesCommand),
    /// Manage webhook clients and inspect their deliveries.
    ///
    /// Example: antumbra clients list
    Clients(ClientsArguments),
    /// Open the console for a deployment on AWS: web pages on this machine, with your AWS credentials.
    ///
    /// Example: antumbra console --region eu-central-1
    Console(ConsoleArguments),
    /// Estimate the monthly bill of a fleet on AWS.
    ///
    /// Example: antumbra cost --devices 10000 --reports-per-minute 1
    Cost(CostArguments),
    /// Show the events of a bus of the local EventBridge. The events stay.
    ///
    /// Example: antumbra events --local
    Events(EventsArguments),
    /// Import shadows of AWS IoT Device Shadow or of godeviceshadow.
    ///
    /// Example: antumbra import aws-iot-shadows @things.txt --dry-run
    #[command(subcommand)]
    Import(ImportCommand),
    /// Receive webhooks, verify their signatures and print them.
    ///
    /// Example: antumbra listen --port 9000 --secret whsec_...
    Listen(ListenArguments),
    /// Read the inbox over MQTT and send messages to its queue.
    ///
    /// Example: antumbra messages query testThing --local
    Messages(MessagesArguments),
    /// Check configuration, credentials, tables, queues, broker and versions, and say how to fix what is wrong.
    ///
    /// Example: antumbra doctor --local
    Doctor(DoctorArguments),
    /// Subscribe to and publish MQTT messages.
    ///
    /// Example: antumbra mqtt subscribe shadow/lamp-7/update/documents --local
    Mqtt(MqttArguments),
    /// Show undeliverable, quarantined and dead-lettered messages and move them back to their source.
    ///
    /// Example: antumbra queues show antumbra-quarantine
    Queues(QueuesArguments),
    /// Check registrations and explain what they match.
    ///
    /// Example: antumbra registrations check
    #[command(subcommand)]
    Registrations(RegistrationsCommand),
    /// Manage sensors and show their states and readings.
    ///
    /// Example: antumbra sensors in Poznań A 2
    #[command(subcommand)]
    Sensors(SensorsCommand),
    /// Read and change device shadows.
    ///
    /// Example: antumbra shadow get lamp-7
    #[command(subcommand)]
    Shadow(ShadowCommand),
    /// Explain what a token, a grant or a role may do with the HTTP API.
    ///
    /// Example: antumbra token --grant 'shadows:read:House%20A#'
    Token(TokenArguments),
    /// Print a completion script for a shell.
    ///
    /// Example: antumbra completions bash > /etc/bash_completion.d/antumbra
    Completions {
        /// Shell.
        shell: clap_complete::Shell,
    },
}

/// Runs the command with the arguments of the process, and prints its result or its error.
///
/// The runtime starts here and not in the program, because the code of futures is generated in the crate that polls them.
#[tokio::main]
pub async fn main() -> ExitCode {
    // Before parsing: errors of the parser are JSON too.
    let as_json = std::env::args_os().any(|argument| argument == "--json");
    let result = match parse(std::env::args_os()) {
        Ok(Ok(arguments)) => run(arguments).await,
        Ok(Err(error)) => Err(error),
        Err(error) if error.use_stderr() && !is_help(&error) => Err(CliError::from(&error)),
        // Help and version.
        Err(error) => error.exit(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = error.with_advice();
            anstream::eprintln!("{}", output::error(&error, as_json));
            error.exit_code()
        }
    }
}

/// Reads the arguments, and refuses options that the command does not use.
fn parse(
    words: impl IntoIterator<Item = std::ffi::OsString>,
) -> Result<Result<Arguments, CliError>, clap::Error> {
    let command = options::hide_unused(Arguments::command());
    let words: Vec<_> = words.into_iter().collect();
    let matches = command.clone().try_get_matches_from(&words)?;
    let arguments = Arguments::from_arg_matches(&matches)?;
    let mut checked = options::refuse_unused(&command, &matches, &words);
    if matches!(arguments.command, Command::Local(_)) {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        checked = checked.and_then(|()| options::refuse_unknown_variables(&command, names));
    }
    Ok(checked.map(|()| arguments))
}

/// Returns `true` for the help that is shown in place of a missing command.
fn is_help(error: &clap::Error) -> bool {
    error.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
}

async fn run(arguments: Arguments) -> Result<(), CliError> {
    let Arguments {
        mut connection,
        json,
        command,
    } = arguments;
    match &command {
        Command::Demo(demo) if demo.into_local => connection.use_local()?,
        _ => connection.find_stack()?,
    }
    // Errors of DynamoDB name the endpoint.
    let explain = |error| connection.explain(error);
    let text = match command {
        Command::Demo(demo) => {
            return commands::demo::run(demo, &connection, json).await;
        }
        Command::Local(local) => {
            return commands::local::run(local, &connection, json).await;
        }
        Command::Console(console) => {
            return commands::console::run(console, &connection, json).await;
        }
        Command::Listen(listen) => return commands::listen::run(listen, json).await,
        Command::Messages(messages) => {
            return commands::messages::run(messages, &connection, json).await;
        }
        Command::Mqtt(mqtt) => return commands::mqtt::run(mqtt, &connection, json).await,
        Command::Doctor(doctor) => return commands::doctor::run(doctor, &connection, json).await,
        Command::Events(events) => return commands::events::run(events, &connection, json).await,
        Command::Queues(queues) => return commands::queues::run(queues, &connection, json).await,
        Command::Shadow(ShadowCommand::Watch(watch)) => {
            connection.check(Service::DynamoDb).await?;
            return watch.run(&connection, json).await;
        }
        Command::Changes(ChangesCommand::Follow(follow)) => {
            connection.check(Service::DynamoDb).await?;
            return follow.run(&connection, json).await;
        }
        Command::Clients(clients) => {
            connection.check(Service::DynamoDb).await?;
            let text = commands::clients::run(clients, &connection, json).await;
            text.map_err(explain)?
        }
        Command::Cost(cost) => commands::cost::run(&cost, json)?,
        Command::Token(token) => commands::token::run(&token, json)?,
        Command::Import(import) => commands::import::run(import, &connection, json).await?,
        Command::Registrations(command) => commands::registrations::run(command, json)?,
        Command::Sensors(SensorsCommand::Signal(signal)) => signal.run(&connection, json).await?,
        Command::Sensors(SensorsCommand::Stored(command)) => {
            connection.check(Service::DynamoDb).await?;
            let sensors = connection.sensors().await;
            let missing = command.missing();
            let text = commands::sensors::run(command, &sensors, json).await;
            text.map_err(|error| explain(error.or_missing(missing)))?
        }
        Command::Shadow(ShadowCommand::Stored(command)) => {
            connection.check(Service::DynamoDb).await?;
            match command.run_at(&connection, json).await {
                Some(text) => text?,
                None => {
                    let shadows = connection.shadows(command.writes()).await?;
                    let missing = command.missing();
                    let text = commands::shadow::run(command, &shadows, json).await;
                    text.map_err(|error| explain(error.or_missing(missing)))?
                }
            }
        }
        Command::Shadow(ShadowCommand::Purge(purge)) => {
            connection.check(Service::DynamoDb).await?;
            purge.run(&connection, json).await.map_err(explain)?
        }
        Command::Shadow(ShadowCommand::Past(command)) => {
            connection.check(Service::DynamoDb).await?;
            commands::shadow::past::run(command, &connection, json).await?
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            let mut command = options::hide_unused(Arguments::command());
            clap_complete::generate(shell, &mut command, "antumbra", &mut script);
            String::from_utf8_lossy(&script).trim_end().to_owned()
        }
    };
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_consistent() {
        options::hide_unused(Arguments::command()).debug_assert();
    }

    #[test]
    fn every_command_has_a_valid_example() {
        let mut seen = 0;
        check_examples(&Arguments::command(), &mut seen);
        assert!(seen > 40, "{seen}");
    }

    fn check_examples(command: &clap::Command, seen: &mut usize) {
        for command in command.get_subcommands() {
            let about = command.get_long_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let example = about.split("Example: ").nth(1);
            let example =
                example.unwrap_or_else(|| panic!("{} has no example", command.get_name()));
            let typed = words(example.split(" > ").next().unwrap_or(example));
            let understood = parse(typed.into_iter().map(Into::into));
            assert!(matches!(understood, Ok(Ok(_))), "{example}: {understood:?}");
            *seen += 1;
            check_examples(command, seen);
        }
    }

    /// Splits a line as a shell does.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for c in line.trim().chars() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                (c, Some(_)) => words.last_mut().unwrap().push(c),
                ('\'' | '"', None) => quote = Some(c),
                (' ', None) => words.push(String::new()),
                (c, None) => words.last_mut().unwrap().push(c),
            }
        }
        words
    }
}
