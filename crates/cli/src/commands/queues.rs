//! `antumbra queues …`: undeliverable, quarantined and dead-lettered messages, and their redrive.

mod client;
mod redrive;
mod render;
mod route;

use clap::{Args, Subcommand};

use crate::connection::Connection;
use crate::error::CliError;
use client::QueueClient;
use redrive::RedriveArguments;

#[derive(Debug, Args)]
pub(crate) struct QueuesArguments {
    #[command(subcommand)]
    command: QueuesCommand,
}

#[derive(Debug, Subcommand)]
enum QueuesCommand {
    /// Show the messages of a queue and the reasons why they are there. The messages stay.
    ///
    /// Example: antumbra queues show antumbra-quarantine
    Show {
        /// Queue name, URL or ARN.
        queue: String,
        /// Maximum number of messages.
        #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        /// Show the body of each message.
        #[arg(long)]
        bodies: bool,
    },
    /// Move messages back to their source. Shows the plan; --go executes it.
    ///
    /// Quarantined messages and dead letters go back to their queue, notifications to the target of their
    /// registration, and failed stream records are read again from their stream. Failed MQTT requests stay:
    /// their senders have repeated them.
    ///
    /// Example: antumbra queues redrive antumbra-quarantine --go
    Redrive(RedriveArguments),
}

pub(crate) async fn run(
    arguments: QueuesArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    let sqs = aws_sdk_sqs::Client::new(&connection.aws().await);
    match arguments.command {
        QueuesCommand::Show {
            queue,
            limit,
            bodies,
        } => {
            let queue = QueueClient::open(&sqs, &queue).await?;
            let messages = queue.peek(limit as usize).await?;
            crate::output::print(&render::messages(&queue, &messages, bodies, json))
        }
        QueuesCommand::Redrive(arguments) => {
            let queue = QueueClient::open(&sqs, arguments.queue()).await?;
            let done = arguments.run(&queue, connection).await?;
            crate::output::print(&render::redrive(&queue, &done, json))?;
            match done.failed() {
                0 => Ok(()),
                failed => Err(CliError::failed(format!(
                    "{failed} messages could not be moved"
                ))),
            }
        }
    }
}
