//! `antumbra messages send`: sends a message to the inbound queue.

use std::time::{SystemTime, UNIX_EPOCH};

use antumbra_lambda_kit::functions::queues;
use antumbra_service::inbox::Source;
use aws_sdk_sqs::Client;
use clap::Args;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::connection::Connection;
use crate::error::CliError;
use crate::input::text;
use crate::mqtt::Session;
use crate::send_message::send_message;

#[derive(Debug, Args)]
pub(crate) struct SendMessage {
    /// Thing that the message comes from.
    thing: String,
    /// JSON, @FILE, or - for standard input; it must name the thing. A sample reading by default.
    message: Option<String>,
    /// Queue name or URL [default: that of the deployment]
    #[arg(long, env = "ANTUMBRA_INBOUND_QUEUE")]
    queue: Option<String>,
    /// Do not wait until the message is in the inbox.
    #[arg(long)]
    no_wait: bool,
}

impl SendMessage {
    pub(crate) fn waits(&self) -> bool {
        !self.no_wait
    }

    /// Rejects a name that the inbox would reject.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        Source::new(self.thing.as_str()).map_err(CliError::invalid)?;
        if self.message.as_deref() == Some("-") {
            // Standard input can be read only once.
            return Ok(());
        }
        // The inbox quarantines other texts, and nothing would arrive. Its rules for objects are those of the deployment.
        match serde_json::from_str::<Value>(&self.text()?) {
            Ok(Value::Object(_)) => Ok(()),
            Ok(_) => Err(CliError::invalid("the message must be a JSON object")),
            Err(fault) => Err(CliError::invalid(format!(
                "the message is not JSON: {fault}; write @FILE for the text of a file"
            ))),
        }
    }

    /// Sends the message and returns its ids, after the inbox has stored it if the command waits.
    pub(crate) async fn run(
        self,
        connection: &Connection,
        session: Option<Session>,
    ) -> Result<String, CliError> {
        let topic = format!("notification/{}", self.thing);
        let mut session = session;
        if let Some(session) = &mut session {
            session.subscribe(&topic).await?;
        }
        let client = Client::new(&connection.aws().await);
        let queue = self.queue.clone();
        let queue = queue.unwrap_or_else(|| connection.queue(queues::INBOUND));
        let id = send_message(&client, &queue, &self.text()?, &self.thing).await?;
        let Some(mut session) = session else {
            let sent = json!({ "sqsMessageId": id, "uuid": self.thing });
            return Ok(sent.to_string());
        };
        loop {
            let soon = Instant::now() + std::time::Duration::from_secs(1);
            let Some(message) = session.next(soon).await? else {
                continue;
            };
            // A message id ends with the SQS message id.
            let is_ours = |notification: Value| {
                notification["messageId"]
                    .as_str()
                    .is_some_and(|m| m.ends_with(&id))
            };
            if serde_json::from_slice(&message.payload).is_ok_and(is_ours) {
                session.close().await;
                return Ok(String::from_utf8_lossy(&message.payload).into_owned());
            }
        }
    }

    fn text(&self) -> Result<String, CliError> {
        if let Some(message) = &self.message {
            return text(message);
        }
        // A system clock before 1970 is wrong anyway.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let reading = json!({
            "thingName": self.thing,
            "epochTime": now.as_secs().to_string(),
            "tempSensor1F": "72",
            "tempSensor2F": "70",
        });
        Ok(reading.to_string())
    }
}
