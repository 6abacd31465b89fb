//! The wire protocols of SQS and SNS, with the SDKs. The rules of queues are tested in `antumbra-queues`.

use std::time::{Duration, Instant};

use antumbra_local::clients::sdk_config;
use antumbra_local::queues::{Queues, definitions, queue_arn};
use aws_sdk_sns::{Client as Sns, types::MessageAttributeValue};
use aws_sdk_sqs::{
    Client as Sqs,
    types::{Message, QueueAttributeName, SendMessageBatchRequestEntry},
};
use serde_json::{Value, json};

use crate::support::{queues, soon};

async fn make(client: &Sqs, name: &str) -> String {
    let mut request = client.create_queue().queue_name(name);
    if name.ends_with(".fifo") {
        request = request.attributes(QueueAttributeName::FifoQueue, "true");
    }
    request.send().await.unwrap().queue_url.unwrap()
}

async fn receive(client: &Sqs, queue: &str) -> Vec<Message> {
    let request = client.receive_message().queue_url(queue);
    let request = request.max_number_of_messages(10);
    let request = request.message_attribute_names("All");
    request.send().await.unwrap().messages.unwrap_or_default()
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|one| one.body().unwrap()).collect()
}

/// A topic, and queues subscribed to it with these attributes.
struct Topic {
    queues: Queues,
    sqs: Sqs,
    sns: Sns,
    arn: String,
}

impl Topic {
    async fn start() -> Topic {
        let (queues, sqs) = queues().await;
        let sns = Sns::new(&sdk_config(queues.address()));
        let created = sns.create_topic().name("t").send().await.unwrap();
        let arn = created.topic_arn.unwrap();
        Topic {
            queues,
            sqs,
            sns,
            arn,
        }
    }

    async fn subscribe(&self, queue: &str, attributes: &[(&str, &str)]) -> String {
        make(&self.sqs, queue).await;
        let request = self.sns.subscribe().topic_arn(&self.arn).protocol("sqs");
        let request = request.endpoint(queue_arn(queue));
        let mut request = request.return_subscription_arn(true);
        for (name, value) in attributes {
            request = request.attributes(*name, *value);
        }
        request.send().await.unwrap().subscription_arn.unwrap()
    }

    async fn publish(&self, message: &str, state: &str) {
        let state = MessageAttributeValue::builder()
            .data_type("String")
            .string_value(state);
        let request = self.sns.publish().topic_arn(&self.arn).message(message);
        let request = request.message_attributes("state", state.build().unwrap());
        request.send().await.unwrap();
    }

    async fn received(&self, queue: &str) -> Vec<Message> {
        receive(&self.sqs, &self.queues.queue_url(queue)).await
    }
}

#[tokio::test]
async fn the_queues_of_the_product_are_created_once() {
    let (queues, client) = queues().await;
    definitions::ensure_all(&client).await.unwrap();
    definitions::ensure_all(&client).await.unwrap();
    let listed = client.list_queues().send().await.unwrap();
    let mut names: Vec<_> = listed
        .queue_urls()
        .iter()
        .filter_map(|url| url.rsplit('/').next())
        .collect();
    names.sort_unstable();
    let mut expected: Vec<_> = definitions::QUEUES.iter().map(|queue| queue.name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    let url = client.get_queue_url().queue_name("antumbra-inbound");
    let url = url.send().await.unwrap().queue_url.unwrap();
    assert_eq!(url, queues.queue_url("antumbra-inbound"));
    queues.stop().await;
}

#[tokio::test]
async fn a_batch_can_fail_in_part() {
    let (queues, client) = queues().await;
    let queue = make(&client, "q.fifo").await;
    let mut batch = client.send_message_batch().queue_url(&queue);
    for (id, group) in [("good", Some("g")), ("bad", None)] {
        let entry = SendMessageBatchRequestEntry::builder()
            .id(id)
            .message_body(id);
        let entry = entry.message_deduplication_id(id);
        let entry = entry.set_message_group_id(group.map(str::to_owned));
        batch = batch.entries(entry.build().unwrap());
    }
    let response = batch.send().await.unwrap();
    assert_eq!(response.successful()[0].id(), "good");
    assert_eq!(response.failed()[0].id(), "bad");
    assert!(response.failed()[0].sender_fault());
    assert_eq!(bodies(&receive(&client, &queue).await), ["good"]);
    queues.stop().await;
}

#[tokio::test]
async fn stopping_does_not_wait_for_polls() {
    let (queues, client) = queues().await;
    let queue = make(&client, "q").await;
    let poll = client.receive_message().queue_url(&queue);
    let poll = tokio::spawn(poll.wait_time_seconds(20).send());
    let in_flight = client.get_queue_url().queue_name("q").send();
    in_flight.await.unwrap();
    let stopped = Instant::now();
    soon("the stop", Queues::stop(queues)).await;
    assert!(stopped.elapsed() < Duration::from_secs(10));
    poll.abort();
}

#[tokio::test]
async fn a_topic_fans_out_raw_in_an_envelope_and_filtered() {
    let topic = Topic::start().await;
    let raw = [("RawMessageDelivery", "true")];
    topic.subscribe("raw", &raw).await;
    topic.subscribe("wrapped", &[]).await;
    let policy = [("FilterPolicy", r#"{"state": ["desired"]}"#)];
    topic.subscribe("filtered", &policy).await;
    topic.publish("m-reported", "reported").await;
    topic.publish("m-desired", "desired").await;

    let raw = topic.received("raw").await;
    let mut texts = bodies(&raw);
    texts.sort_unstable();
    assert_eq!(texts, ["m-desired", "m-reported"]);
    for message in &raw {
        let state = message.message_attributes().unwrap()["state"].string_value();
        assert_eq!(message.body().unwrap(), format!("m-{}", state.unwrap()));
    }
    let envelope = |message: &Message| -> Value {
        let envelope: Value = serde_json::from_str(message.body().unwrap()).unwrap();
        assert_eq!(envelope["Type"], "Notification");
        assert_eq!(envelope["TopicArn"], topic.arn.as_str());
        envelope
    };
    let wrapped = topic.received("wrapped").await;
    assert_eq!(wrapped.len(), 2);
    let text = envelope(&wrapped[0])["Message"].to_string();
    assert!(text.starts_with("\"m-"), "{text}");
    let filtered = topic.received("filtered").await;
    assert_eq!(filtered.len(), 1);
    let envelope = envelope(&filtered[0]);
    assert_eq!(envelope["Message"], "m-desired");
    let state = &envelope["MessageAttributes"]["state"];
    assert_eq!(state, &json!({"Type": "String", "Value": "desired"}));
    topic.queues.stop().await;
}

#[tokio::test]
async fn raw_delivery_can_be_set_and_read() {
    let topic = Topic::start().await;
    let arn = topic.subscribe("q", &[]).await;
    for (raw, expected) in [("true", "hello"), ("false", "{")] {
        let switch = topic.sns.set_subscription_attributes();
        let switch = switch.subscription_arn(&arn).attribute_value(raw);
        let switch = switch.attribute_name("RawMessageDelivery");
        switch.send().await.unwrap();
        let request = topic.sns.get_subscription_attributes();
        let found = request.subscription_arn(&arn).send().await.unwrap();
        assert_eq!(found.attributes.unwrap()["RawMessageDelivery"], raw);
        topic.publish("hello", "any").await;
        let messages = topic.received("q").await;
        assert!(bodies(&messages)[0].starts_with(expected));
    }
    topic.queues.stop().await;
}
