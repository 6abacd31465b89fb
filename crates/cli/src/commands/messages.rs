//! `antumbra messages …`: the inbox, over MQTT requests and responses.

mod request;
mod send;

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::connection::Connection;
use crate::error::CliError;
use crate::mqtt::{Broker, Session, new_client_id};
use crate::output;

use request::InboxRequest;
use send::SendMessage;

#[derive(Debug, Args)]
pub(crate) struct MessagesArguments {
    #[command(flatten)]
    broker: BrokerArguments,
    #[command(subcommand)]
    command: MessagesCommand,
}

#[derive(Debug, Args)]
pub(crate) struct BrokerArguments {
    /// Data endpoint of AWS IoT (`aws iot describe-endpoint --endpoint-type iot:Data-ATS`). Connects over
    /// WebSockets with the AWS credentials.
    #[arg(
        long,
        global = true,
        value_name = "HOST",
        env = "ANTUMBRA_IOT_ENDPOINT"
    )]
    iot_endpoint: Option<String>,
    /// MQTT broker: mqtt://host:port, or a ws:// or wss:// URL.
    #[arg(long, global = true, value_name = "URL", env = "ANTUMBRA_MQTT_URL")]
    mqtt_url: Option<String>,
    /// Seconds to wait for the response.
    #[arg(long, global = true, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=300))]
    timeout: u64,
}

#[derive(Debug, Subcommand)]
enum MessagesCommand {
    /// Send a message to the inbound queue, and wait until it is in the inbox.
    ///
    /// Example: antumbra messages send testThing --local
    Send(SendMessage),
    #[command(flatten)]
    Request(InboxRequest),
}

impl BrokerArguments {
    async fn broker(&self, connection: &Connection) -> Result<Broker, CliError> {
        let local = connection.local_broker();
        match (self.mqtt_url.as_deref().or(local), &self.iot_endpoint) {
            (Some(url), _) => Broker::parse(url)
                .map_err(|fault| CliError::invalid(format!("--mqtt-url {url}: {fault}"))),
            (None, Some(endpoint)) => Ok(Broker::Aws {
                endpoint: endpoint.clone(),
                sdk: Box::new(connection.aws().await),
            }),
            (None, None) => Err(CliError::invalid(
                "no broker is given; use --local, --iot-endpoint HOST or --mqtt-url URL",
            )),
        }
    }

    pub(crate) fn is_given(&self, connection: &Connection) -> bool {
        self.mqtt_url.is_some() || self.iot_endpoint.is_some() || connection.is_local()
    }

    pub(crate) async fn open(
        &self,
        connection: &Connection,
        client_id: &str,
    ) -> Result<Session, CliError> {
        let broker = self.broker(connection).await?;
        let timeout = Duration::from_secs(self.timeout);
        Session::open(&broker, client_id, &connection.topic_prefix(), timeout).await
    }
}

/// Prints the response. An error response is a failure.
pub(crate) async fn run(
    arguments: MessagesArguments,
    connection: &Connection,
    json: bool,
) -> Result<(), CliError> {
    let MessagesArguments { broker, command } = arguments;
    let client_id = new_client_id();
    let response = match command {
        MessagesCommand::Send(message) => {
            message.check()?;
            let session = match message.waits() {
                true => Some(broker.open(connection, &client_id).await?),
                false => None,
            };
            message.run(connection, session).await?
        }
        MessagesCommand::Request(request) => {
            let request = request.prepare(&client_id)?;
            request
                .send(broker.open(connection, &client_id).await?)
                .await?
        }
    };
    match json {
        true => output::print(&response)?,
        false => output::print(&indent(&response))?,
    }
    match error_of(&response) {
        Some(reason) => Err(CliError::failed(reason)),
        None => Ok(()),
    }
}

fn error_of(response: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Response {
        error: Option<String>,
    }
    let response: Response = serde_json::from_str(response).ok()?;
    response.error
}

/// Indents JSON without changing its numbers.
fn indent(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut rest = json.chars().filter(|c| *c != '\n').peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    };
    while let Some(c) = rest.next() {
        if quoted {
            out.push(c);
            quoted = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        match c {
            '"' => {
                quoted = true;
                out.push(c);
            }
            '{' | '[' if rest.peek().is_some_and(|next| matches!(next, '}' | ']')) => {
                out.push(c);
                out.extend(rest.next());
            }
            '{' | '[' => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_indented_as_the_contract_shows_them() {
        let response =
            r#"{"body":{"t":72.50,"l":[1,{}],"e":[]},"messageId":"a\"{,:b\\","uuid":"x"}"#;
        let expected = r#"{
    "body": {
        "t": 72.50,
        "l": [
            1,
            {}
        ],
        "e": []
    },
    "messageId": "a\"{,:b\\",
    "uuid": "x"
}"#;
        assert_eq!(indent(response), expected);
    }

    #[test]
    fn error_responses_are_recognized() {
        let error = r#"{"error":"No messages available","uuid":"a"}"#;
        assert_eq!(error_of(error).as_deref(), Some("No messages available"));
        assert_eq!(error_of(r#"{"messageId":"1","uuid":"a"}"#), None);
    }
}
