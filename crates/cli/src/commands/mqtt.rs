//! `antumbra mqtt …`: what a device hears and says, over the local broker or AWS IoT.

use clap::{Args, Subcommand};
use tokio::time::{Duration, Instant};

use crate::commands::messages::Way;
use crate::connect::Connection;
use crate::error::CliError;
use crate::mqtt::Session;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct MqttArguments {
    #[command(flatten)]
    way: Way,
    #[command(subcommand)]
    command: MqttCommand,
}

#[derive(Debug, Subcommand)]
enum MqttCommand {
    /// Print what is published, a topic and its payload a line.
    ///
    /// Example: antumbra mqtt hear shadow/lamp-7/update/documents --local
    Hear {
        /// The topic, with + and # for any.
        topic: String,
        /// End after so many messages.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        count: u32,
    },
    /// Publish, and print what is published in answer.
    ///
    /// Example: antumbra mqtt publish shadow/lamp-7/get '{}' --hear shadow/lamp-7/get/accepted --local
    Publish {
        /// The topic.
        topic: String,
        /// The payload: a text, @FILE, or - for standard input.
        payload: String,
        /// Where the answer is published, with + and # for any.
        #[arg(long, value_name = "TOPIC")]
        hear: String,
    },
}

pub(crate) async fn run(
    arguments: MqttArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    let mut session = arguments.way.open(connection).await?;
    let count = match arguments.command {
        MqttCommand::Hear { topic, count } => {
            session.subscribe(&topic).await?;
            // A script that goes on to cause what it wants to hear waits for this.
            anstream::eprintln!("listening to {topic}");
            count
        }
        MqttCommand::Publish {
            topic,
            payload,
            hear,
        } => {
            let payload = crate::input::text(&payload)?;
            session.subscribe(&hear).await?;
            session.publish(&topic, &payload).await?;
            1
        }
    };
    for _ in 0..count {
        output::print(&next(&mut session, json).await?)?;
    }
    session.close().await;
    Ok(())
}

/// The next message; none in time is a failure.
async fn next(session: &mut Session, json: bool) -> Result<String, CliError> {
    loop {
        let soon = Instant::now() + Duration::from_secs(1);
        let Some(message) = session.next(soon).await? else {
            continue;
        };
        let payload = String::from_utf8_lossy(&message.payload).into_owned();
        return Ok(match json {
            true => serde_json::json!({ "topic": message.topic, "payload": payload }).to_string(),
            false => format!("{} {payload}", message.topic),
        });
    }
}
