use std::time::{Duration, Instant};

use antumbra_local::queues::{Queues, definitions};
use aws_sdk_sqs::{
    Client,
    types::{Message, QueueAttributeName, SendMessageBatchRequestEntry},
};

use crate::support::{queues, soon};

async fn make(client: &Client, name: &str, attributes: &[(QueueAttributeName, &str)]) -> String {
    let mut request = client.create_queue().queue_name(name);
    for (attribute, value) in attributes {
        request = request.attributes(attribute.clone(), *value);
    }
    request.send().await.unwrap().queue_url.unwrap()
}

async fn make_fifo(client: &Client, name: &str) -> String {
    make(client, name, &[(QueueAttributeName::FifoQueue, "true")]).await
}

async fn receive(client: &Client, queue: &str, wait: i32) -> Vec<Message> {
    let request = client.receive_message().queue_url(queue);
    let request = request.max_number_of_messages(10).wait_time_seconds(wait);
    request.send().await.unwrap().messages.unwrap_or_default()
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message.body().unwrap())
        .collect()
}

async fn delete(client: &Client, queue: &str, message: &Message) {
    let request = client.delete_message().queue_url(queue);
    let request = request.receipt_handle(message.receipt_handle().unwrap());
    request.send().await.unwrap();
}

async fn release(client: &Client, queue: &str, message: &Message) {
    let request = client.change_message_visibility().queue_url(queue);
    let request = request.receipt_handle(message.receipt_handle().unwrap());
    request.visibility_timeout(0).send().await.unwrap();
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
    let url = client
        .get_queue_url()
        .queue_name("antumbra-inbound")
        .send()
        .await
        .unwrap();
    assert_eq!(url.queue_url.unwrap(), queues.queue_url("antumbra-inbound"));
    queues.stop().await;
}

#[tokio::test]
async fn fifo_keeps_order_and_drops_duplicates() {
    let (queues, client) = queues().await;
    let queue = make_fifo(&client, "q.fifo").await;
    let send = |group: &'static str, body: &'static str, id: &'static str| {
        let request = client.send_message().queue_url(&queue).message_body(body);
        request
            .message_group_id(group)
            .message_deduplication_id(id)
            .send()
    };
    let first = send("g", "1", "d1").await.unwrap();
    let again = send("g", "1 again", "d1").await.unwrap();
    assert_eq!(first.message_id, again.message_id);
    send("g", "2", "d2").await.unwrap();
    send("h", "other", "d3").await.unwrap();

    let received = receive(&client, &queue, 0).await;
    assert_eq!(
        bodies(&received),
        ["1", "2", "other"],
        "one receive may return several messages of a group, in order"
    );
    assert!(
        receive(&client, &queue, 0).await.is_empty(),
        "both groups are in flight"
    );
    release(&client, &queue, &received[0]).await;
    assert!(
        receive(&client, &queue, 0).await.is_empty(),
        "2 is still in flight"
    );
    release(&client, &queue, &received[1]).await;
    let received = receive(&client, &queue, 0).await;
    assert_eq!(bodies(&received), ["1", "2"], "again in order");
    delete(&client, &queue, &received[0]).await;
    release(&client, &queue, &received[1]).await;
    assert_eq!(bodies(&receive(&client, &queue, 0).await), ["2"]);
    queues.stop().await;
}

#[tokio::test]
async fn a_delayed_message_is_received_after_its_delay() {
    let (queues, client) = queues().await;
    let queue = make(&client, "q", &[]).await;
    let sent = Instant::now();
    let request = client.send_message().queue_url(&queue).message_body("late");
    request.delay_seconds(1).send().await.unwrap();
    assert!(receive(&client, &queue, 0).await.is_empty());
    assert_eq!(bodies(&receive(&client, &queue, 20).await), ["late"]);
    assert!(sent.elapsed() >= Duration::from_secs(1));
    queues.stop().await;
}

#[tokio::test]
async fn a_batch_can_fail_in_part() {
    let (queues, client) = queues().await;
    let queue = make_fifo(&client, "q.fifo").await;
    let entry = |id: &str| {
        SendMessageBatchRequestEntry::builder()
            .id(id)
            .message_body(id)
    };
    let good = entry("good")
        .message_group_id("g")
        .message_deduplication_id("1");
    let bad = entry("bad").message_deduplication_id("2");
    let batch = client.send_message_batch().queue_url(&queue);
    let batch = batch
        .entries(good.build().unwrap())
        .entries(bad.build().unwrap());
    let response = batch.send().await.unwrap();
    assert_eq!(response.successful()[0].id(), "good");
    assert_eq!(response.failed()[0].id(), "bad");
    assert!(response.failed()[0].sender_fault());
    assert_eq!(bodies(&receive(&client, &queue, 0).await), ["good"]);
    queues.stop().await;
}

#[tokio::test]
async fn stopping_does_not_wait_for_polls() {
    let (queues, client) = queues().await;
    let queue = make(&client, "q", &[]).await;
    let mut poll = client
        .receive_message()
        .queue_url(&queue)
        .wait_time_seconds(20);
    poll = poll.max_number_of_messages(1);
    let poll = tokio::spawn(poll.send());
    let in_flight = client.get_queue_url().queue_name("q").send();
    in_flight.await.unwrap();
    let stopped = Instant::now();
    soon("the stop", Queues::stop(queues)).await;
    assert!(stopped.elapsed() < Duration::from_secs(10));
    poll.abort();
}
