//! `antumbra messages …` as a process: the inbox through SQS and MQTT.

use std::net::TcpListener;
use std::process::Output;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use crate::process::{Home, Running, antumbra, command, text};

const NOTIFICATIONS: &str = include_str!("../../../../registrations/inbox-notifications.json");

fn home() -> Home {
    Home::new(&[("inbox-notifications.json", NOTIFICATIONS)])
}

fn messages(stack: &Running, arguments: &[&str]) -> Output {
    let mqtt = stack.addresses["mqtt"].as_str().unwrap();
    let mut all = vec!["messages", "--mqtt-url", mqtt, "--timeout", "60"];
    all.extend(arguments);
    antumbra(&all)
}

/// Sends a message and returns its id in the inbox.
fn send(stack: &Running, arguments: &[&str]) -> String {
    let aws = stack.addresses["aws"].as_str().unwrap();
    let mut all = vec!["send", "--json", "--aws-url", aws];
    all.extend(arguments);
    let sent = messages(stack, &all);
    assert!(sent.status.success(), "{}", text(&sent.stderr));
    let sent: Value = serde_json::from_slice(&sent.stdout).unwrap();
    sent["messageId"].as_str().unwrap().to_owned()
}

fn response(stack: &Running, arguments: &[&str]) -> Value {
    let output = messages(stack, arguments);
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn messages_are_sent_to_the_queue_and_read_over_mqtt() {
    let home = home();
    let stack = home.start();
    let none = messages(&stack, &["query", "testThing"]);
    assert_eq!(none.status.code(), Some(1));
    assert_eq!(
        text(&none.stdout),
        "{\n    \"error\": \"No messages available\",\n    \"uuid\": \"testThing\"\n}\n"
    );
    assert_eq!(text(&none.stderr), "error: No messages available\n");

    let body = r#"{"thingName":"testThing","epochTime":1,"t":72.50}"#;
    let first = send(&stack, &["testThing", body]);
    let second = send(&stack, &["testThing"]);
    assert!(first.starts_with("0000000001-"), "{first}");

    let got = messages(&stack, &["get", "testThing", &first, "--json"]);
    assert!(got.status.success());
    assert_eq!(
        text(&got.stdout),
        format!(
            "{{\"body\":{{\"epochTime\":1,\"t\":72.50,\"thingName\":\"testThing\"}},\"messageId\":\"{first}\",\"uuid\":\"testThing\"}}\n"
        )
    );
    let query = response(&stack, &["query", "testThing"]);
    assert_eq!(query["oldestMessageId"], first.as_str());
    assert_eq!(query["newestMessageId"], second.as_str());
    let next = response(&stack, &["next", "testThing", &first]);
    assert_eq!(next["nextMessageId"], second.as_str());
    let previous = response(&stack, &["prev", "testThing", &second]);
    assert_eq!(previous["previousMessageId"], first.as_str());
    let newest = ["list", "testThing", "--newest-first", "--limit", "1"];
    let listed = response(&stack, &newest);
    assert_eq!(listed["messageIds"], Value::from(vec![second.as_str()]));
    let devices = response(&stack, &["devices"]);
    assert_eq!(devices["devices"][0]["uuid"], "testThing");
    let key = ["--idempotency-key", "k"];
    let queued = ["send-to", "testThing", r#"{"led":"on"}"#, key[0], key[1]];
    let queued = response(&stack, &queued);
    assert_eq!(queued["idempotencyKey"], "k");

    let deleted = messages(&stack, &["delete", "testThing", &first]);
    assert!(deleted.status.success());
    let gone = messages(&stack, &["get", "testThing", &first]);
    assert_eq!(gone.status.code(), Some(1));
}

#[test]
fn invalid_requests_and_missing_brokers_are_reported() {
    let fails = |line: &str, code: i32, expected: &str| {
        let output = antumbra(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(code), "{line}");
        let errors = text(&output.stderr);
        assert!(errors.contains(expected), "{line}: {errors}");
    };
    fails("messages query lamp", 2, "no broker is given");
    fails("messages query a/b --local", 2, "'/'");
    fails("messages query lamp --mqtt-url localhost", 2, "mqtt://");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mqtt://{}", free.local_addr().unwrap());
    drop(free);
    let query = format!("messages query lamp --mqtt-url {url}");
    fails(&query, 6, "for the local stack, start `antumbra local`");
    // A server that accepts connections and sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let query = format!("messages query lamp --mqtt-url mqtt://{address} --timeout 1");
    fails(&query, 6, "the server does not speak MQTT");
    // AWS IoT is connected over TLS with the configured credentials.
    let query = format!("messages query lamp --iot-endpoint {address} --timeout 1");
    fails(&query, 6, "AWS IoT at 127.0.0.1");
}

/// A WebSocket proxy of a broker, as AWS IoT offers.
async fn web_sockets(broker: String) -> std::net::SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        #[expect(clippy::result_large_err, reason = "type of the library")]
        let mqtt = |request: &Request, mut response: Response| {
            let protocol = request.headers()["Sec-WebSocket-Protocol"].clone();
            assert_eq!(protocol, "mqtt");
            let headers = response.headers_mut();
            headers.insert("Sec-WebSocket-Protocol", protocol);
            Ok(response)
        };
        let stream = tokio_tungstenite::accept_hdr_async(stream, mqtt).await;
        let (mut to, mut from) = stream.unwrap().split();
        let broker = tokio::net::TcpStream::connect(broker).await.unwrap();
        let (mut read, mut write) = broker.into_split();
        tokio::spawn(async move {
            while let Some(Ok(message)) = from.next().await {
                if let Message::Binary(bytes) = message {
                    write.write_all(&bytes).await.unwrap();
                }
            }
        });
        // Split every packet: one byte, then the rest.
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = read.read(&mut bytes).await {
            for piece in [&bytes[..1], &bytes[1..count]] {
                let piece = Message::binary(piece.to_vec());
                if to.send(piece).await.is_err() {
                    return;
                }
            }
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_read_over_web_sockets() {
    let home = home();
    let stack = home.start();
    let broker = stack.addresses["mqtt"].as_str().unwrap();
    let broker = broker.strip_prefix("mqtt://").unwrap().to_owned();
    let url = format!("ws://{}/mqtt", web_sockets(broker).await);
    let output = tokio::task::spawn_blocking(move || {
        let mut command = command();
        command.args(["messages", "query", "lamp", "--json", "--mqtt-url", &url]);
        command.output().unwrap()
    });
    let output = output.await.unwrap();
    assert_eq!(
        text(&output.stdout),
        "{\"error\":\"No messages available\",\"uuid\":\"lamp\"}\n",
        "{}",
        text(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn scripts_send_the_requests_of_the_contract() {
    let scripts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts");
    let home = home();
    let stack = home.start();
    let run = |script: &str, arguments: &[&str]| {
        let mut command = command();
        let binary = env!("CARGO_BIN_EXE_antumbra");
        let mut process = std::process::Command::new(format!("{scripts}/{script}"));
        process
            .envs(
                command
                    .env("ANTUMBRA", binary)
                    .get_envs()
                    .filter_map(|(n, v)| Some((n, v?))),
            )
            .env(
                "ANTUMBRA_MQTT_URL",
                stack.addresses["mqtt"].as_str().unwrap(),
            )
            .env("ANTUMBRA_AWS_URL", stack.addresses["aws"].as_str().unwrap())
            .args(arguments)
            .args(["--json", "--timeout", "60"]);
        let output = process.output().unwrap();
        let response: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (output.status.code(), response)
    };
    let (code, sent) = run("send-sqs-message.sh", &["testThing"]);
    assert_eq!(code, Some(0), "{sent}");
    let id = sent["messageId"].as_str().unwrap();
    let (code, query) = run("send-query-message.sh", &["testThing"]);
    assert_eq!(
        (code, &query["oldestMessageId"]),
        (Some(0), &Value::from(id))
    );
    let (code, got) = run("send-get-message.sh", &["testThing", id]);
    assert_eq!(
        (code, &got["body"]["tempSensor1F"]),
        (Some(0), &Value::from("72"))
    );
    let (code, next) = run("send-next-message.sh", &["testThing", id]);
    assert_eq!(code, Some(1));
    assert_eq!(next["error"], "No newer messages available");
    let (code, _) = run("send-delete-message.sh", &["testThing", id]);
    assert_eq!(code, Some(0));
}
