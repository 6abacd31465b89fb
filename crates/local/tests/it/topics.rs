use antumbra_local::{clients::sdk_config, queues::queue_arn};
use aws_sdk_sns::{Client as Sns, types::MessageAttributeValue};
use aws_sdk_sqs::{Client as Sqs, types::Message};
use serde_json::{Value, json};

use crate::support::queues;

async fn subscribe(sns: &Sns, topic: &str, queue: &str, attributes: &[(&str, &str)]) -> String {
    let mut request = sns.subscribe().topic_arn(topic).protocol("sqs");
    request = request
        .endpoint(queue_arn(queue))
        .return_subscription_arn(true);
    for (name, value) in attributes {
        request = request.attributes(*name, *value);
    }
    request.send().await.unwrap().subscription_arn.unwrap()
}

async fn received(sqs: &Sqs, queue: &str) -> Vec<Message> {
    let request = sqs
        .receive_message()
        .queue_url(queue)
        .message_attribute_names("All");
    let request = request.max_number_of_messages(10);
    request.send().await.unwrap().messages.unwrap_or_default()
}

fn text(value: &str) -> MessageAttributeValue {
    let builder = MessageAttributeValue::builder().data_type("String");
    builder.string_value(value).build().unwrap()
}

#[tokio::test]
async fn a_topic_fans_out_raw_in_an_envelope_and_filtered() {
    let (queues, sqs) = queues().await;
    let sns = Sns::new(&sdk_config(queues.address()));
    let topic = sns
        .create_topic()
        .name("t")
        .send()
        .await
        .unwrap()
        .topic_arn
        .unwrap();
    for name in ["raw", "wrapped", "filtered"] {
        sqs.create_queue().queue_name(name).send().await.unwrap();
    }
    subscribe(&sns, &topic, "raw", &[("RawMessageDelivery", "true")]).await;
    subscribe(&sns, &topic, "wrapped", &[]).await;
    let policy = r#"{"state": ["desired"]}"#;
    subscribe(&sns, &topic, "filtered", &[("FilterPolicy", policy)]).await;

    for state in ["reported", "desired"] {
        let request = sns
            .publish()
            .topic_arn(&topic)
            .message(format!("m-{state}"));
        request
            .message_attributes("state", text(state))
            .send()
            .await
            .unwrap();
    }

    let raw = received(&sqs, &queues.queue_url("raw")).await;
    let mut bodies: Vec<_> = raw.iter().map(|m| m.body().unwrap()).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, ["m-desired", "m-reported"]);
    for message in &raw {
        let state = message.message_attributes().unwrap()["state"].string_value();
        assert_eq!(message.body().unwrap(), format!("m-{}", state.unwrap()));
    }
    let wrapped = received(&sqs, &queues.queue_url("wrapped")).await;
    assert_eq!(wrapped.len(), 2);
    let envelope: Value = serde_json::from_str(wrapped[0].body().unwrap()).unwrap();
    assert_eq!(envelope["Type"], "Notification");
    assert_eq!(envelope["TopicArn"], topic.as_str());
    assert!(envelope["Message"].as_str().unwrap().starts_with("m-"));
    let filtered = received(&sqs, &queues.queue_url("filtered")).await;
    assert_eq!(filtered.len(), 1);
    let envelope: Value = serde_json::from_str(filtered[0].body().unwrap()).unwrap();
    assert_eq!(envelope["Message"], "m-desired");
    let state = &envelope["MessageAttributes"]["state"];
    assert_eq!(state, &json!({"Type": "String", "Value": "desired"}));
    queues.stop().await;
}

#[tokio::test]
async fn raw_delivery_can_be_set_and_read() {
    let (queues, sqs) = queues().await;
    let sns = Sns::new(&sdk_config(queues.address()));
    let topic = sns
        .create_topic()
        .name("t")
        .send()
        .await
        .unwrap()
        .topic_arn
        .unwrap();
    sqs.create_queue().queue_name("q").send().await.unwrap();
    let subscription = subscribe(&sns, &topic, "q", &[]).await;
    for (raw, expected) in [("true", "hello"), ("false", "{")] {
        let switch = sns
            .set_subscription_attributes()
            .subscription_arn(&subscription);
        let switch = switch
            .attribute_name("RawMessageDelivery")
            .attribute_value(raw);
        switch.send().await.unwrap();
        let request = sns
            .get_subscription_attributes()
            .subscription_arn(&subscription);
        let attributes = request.send().await.unwrap().attributes.unwrap();
        assert_eq!(attributes["RawMessageDelivery"], raw);
        sns.publish()
            .topic_arn(&topic)
            .message("hello")
            .send()
            .await
            .unwrap();
        let messages = received(&sqs, &queues.queue_url("q")).await;
        assert!(messages[0].body().unwrap().starts_with(expected));
    }
    queues.stop().await;
}

#[tokio::test]
async fn a_fifo_topic_keeps_order_into_a_fifo_queue() {
    let (queues, sqs) = queues().await;
    let sns = Sns::new(&sdk_config(queues.address()));
    let topic = sns
        .create_topic()
        .name("t.fifo")
        .attributes("FifoTopic", "true");
    let topic = topic.send().await.unwrap().topic_arn.unwrap();
    let queue = sqs.create_queue().queue_name("q.fifo");
    let queue = queue.attributes(aws_sdk_sqs::types::QueueAttributeName::FifoQueue, "true");
    let queue = queue.send().await.unwrap().queue_url.unwrap();
    subscribe(&sns, &topic, "q.fifo", &[("RawMessageDelivery", "true")]).await;
    for (body, id) in [("1", "a"), ("1 again", "a"), ("2", "b")] {
        let request = sns.publish().topic_arn(&topic).message(body);
        let request = request.message_group_id("g").message_deduplication_id(id);
        request
            .message_attributes("k", text("v"))
            .send()
            .await
            .unwrap();
    }
    let messages = received(&sqs, &queue).await;
    let bodies: Vec<_> = messages.iter().map(|m| m.body().unwrap()).collect();
    assert_eq!(bodies, ["1", "2"]);
    queues.stop().await;
}
