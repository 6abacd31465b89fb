//! The `antumbra` command.

mod commands;
mod connect;
mod error;
mod follow;
mod input;
mod mqtt;
mod output;
mod progress;
mod queue;
mod signals;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use commands::clients::ClientsArguments;
use commands::demo::DemoArguments;
use commands::listen::ListenArguments;
use commands::local::LocalArguments;
use commands::messages::MessagesArguments;
use commands::mqtt::MqttArguments;
use commands::queues::QueuesArguments;
use commands::registrations::RegistrationsCommand;
use commands::sensors::SensorsCommand;
use commands::shadow::ShadowCommand;
use connect::Connection;
use error::CliError;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Device shadows, notifications and sensors on AWS serverless, and on this machine.
#[derive(Debug, Parser)]
#[command(name = "antumbra", version, max_term_width = 100)]
struct Arguments {
    #[command(flatten)]
    connection: Connection,
    /// Print JSON instead of text for people.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run everything on this machine: DynamoDB, SQS, SNS, an MQTT broker and the functions.
    ///
    /// Example: antumbra local --memory
    Local(LocalArguments),
    /// Take a tour: a small fleet on a stack in memory, every step shown and checked, in under a minute.
    ///
    /// Example: antumbra demo
    Demo(DemoArguments),
    /// Say who is told of sensors, and look at what they were told.
    ///
    /// Example: antumbra clients list
    Clients(ClientsArguments),
    /// Receive webhooks, verify their signatures and print them.
    ///
    /// Example: antumbra listen --port 9000 --secret whsec_...
    Listen(ListenArguments),
    /// Read the inbox over MQTT, and put messages in its queue.
    ///
    /// Example: antumbra messages query testThing --local
    Messages(MessagesArguments),
    /// Hear and say over MQTT what a device does.
    ///
    /// Example: antumbra mqtt hear shadow/lamp-7/update/documents --local
    Mqtt(MqttArguments),
    /// Look at what was put aside, and put it back where it came from.
    ///
    /// Example: antumbra queues show antumbra-quarantine
    Queues(QueuesArguments),
    /// Check registrations and explain what they match.
    ///
    /// Example: antumbra registrations check
    #[command(subcommand)]
    Registrations(RegistrationsCommand),
    /// Register sensors, find them by place, and look at what they measured and last said.
    ///
    /// Example: antumbra sensors in Poznań A 2
    #[command(subcommand)]
    Sensors(SensorsCommand),
    /// Look at and change device shadows.
    ///
    /// Example: antumbra shadow get lamp-7
    #[command(subcommand)]
    Shadow(ShadowCommand),
    /// Print a completion script for a shell.
    ///
    /// Example: antumbra completions bash > /etc/bash_completion.d/antumbra
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            anstream::eprintln!("{}", output::error(&failure));
            failure.exit_code()
        }
    }
}

async fn run(arguments: Arguments) -> Result<(), CliError> {
    match arguments.command {
        Command::Demo(demo) => commands::demo::run(demo, arguments.json).await?,
        Command::Local(local) => commands::local::run(local).await?,
        Command::Clients(clients) => {
            let output = commands::clients::run(clients, &arguments.connection, arguments.json)
                .await
                .map_err(|failure| arguments.connection.explained(failure))?;
            output::print(&output)?;
        }
        Command::Listen(listen) => commands::listen::run(listen, arguments.json).await?,
        Command::Messages(messages) => {
            commands::messages::run(messages, &arguments.connection, arguments.json).await?;
        }
        Command::Mqtt(mqtt) => {
            commands::mqtt::run(mqtt, &arguments.connection, arguments.json).await?;
        }
        Command::Queues(queues) => {
            commands::queues::run(queues, &arguments.connection, arguments.json).await?;
        }
        Command::Registrations(command) => {
            let output = commands::registrations::run(command, arguments.json)?;
            output::print(&output)?;
        }
        Command::Sensors(SensorsCommand::Signal(signal)) => {
            let output = signal.run(&arguments.connection, arguments.json).await?;
            output::print(&output)?;
        }
        Command::Sensors(SensorsCommand::Act(command)) => {
            let sensors = arguments.connection.sensors().await;
            let output = commands::sensors::run(command, &sensors, arguments.json)
                .await
                .map_err(|failure| arguments.connection.explained(failure))?;
            output::print(&output)?;
        }
        Command::Shadow(ShadowCommand::Watch(watch)) => {
            watch
                .run(&arguments.connection, arguments.json)
                .await
                .map_err(|failure| arguments.connection.explained(failure))?;
        }
        Command::Shadow(ShadowCommand::Act(command)) => {
            let shadows = arguments.connection.shadows().await;
            let output = commands::shadow::run(command, &shadows, arguments.json)
                .await
                .map_err(|failure| arguments.connection.explained(failure))?;
            output::print(&output)?;
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "antumbra", &mut script);
            output::print(String::from_utf8_lossy(&script).trim_end())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_make_sense() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_that_is_one() {
        let mut seen = 0;
        look(&Arguments::command(), &mut seen);
        assert!(seen > 40, "{seen}");
    }

    fn look(command: &clap::Command, seen: &mut usize) {
        for command in command.get_subcommands() {
            let about = command.get_long_about().map(ToString::to_string);
            let about = about.unwrap_or_default();
            let example = about.split("Example: ").nth(1);
            let example = example.unwrap_or_else(|| panic!("{} has none", command.get_name()));
            let typed = words(example.split(" > ").next().unwrap_or(example));
            let understood = Arguments::try_parse_from(&typed);
            assert!(understood.is_ok(), "{example}: {understood:?}");
            *seen += 1;
            look(command, seen);
        }
    }

    /// What a shell makes of a line.
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
