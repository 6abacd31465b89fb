//! Redrive of a queue: order, limits and interruptions.

use std::sync::Mutex;

use antumbra_notify::redrive::{RedriveOptions, RedriveOutcome, peek, plan, redrive};
use antumbra_service::redrive::{Attribute, FailedMessage, FailedQueue, QueueError};
use antumbra_shadow::Timestamp;

/// A queue in memory. Received messages stay hidden until they are released.
#[derive(Default)]
struct FakeQueue {
    fifo: bool,
    messages: Mutex<Vec<FailedMessage>>,
    hidden: Mutex<Vec<String>>,
    /// Messages that were sent to their source.
    sent: Mutex<Vec<FailedMessage>>,
    /// Bodies that the source rejects.
    rejects: Vec<&'static str>,
    /// Deletes fail, as if the process ended.
    interrupted: Mutex<bool>,
}

impl FakeQueue {
    fn of(bodies: &[(&'static str, &str)], fifo: bool) -> FakeQueue {
        let message = |(at, (body, group)): (usize, &(&str, &str))| FailedMessage {
            id: format!("m{at}"),
            receipt: format!("r{at}"),
            body: (*body).to_owned(),
            dead_letter_of: Some("work".to_owned()),
            group: Some((*group).to_owned()),
            sent_milliseconds: 1,
            ..FailedMessage::default()
        };
        FakeQueue {
            fifo,
            messages: Mutex::new(bodies.iter().enumerate().map(message).collect()),
            ..FakeQueue::default()
        }
    }

    fn bodies(messages: &Mutex<Vec<FailedMessage>>) -> Vec<String> {
        let messages = messages.lock().unwrap();
        messages
            .iter()
            .map(|message| message.body.clone())
            .collect()
    }
}

impl FailedQueue for FakeQueue {
    fn is_fifo(&self) -> bool {
        self.fifo
    }

    async fn receive(&self) -> Result<Vec<FailedMessage>, QueueError> {
        let mut hidden = self.hidden.lock().unwrap();
        let messages = self.messages.lock().unwrap();
        let visible = messages.iter().filter(|one| !hidden.contains(&one.receipt));
        let received: Vec<FailedMessage> = visible.take(3).cloned().collect();
        hidden.extend(received.iter().map(|one| one.receipt.clone()));
        Ok(received)
    }

    async fn receive_counted(&self) -> Result<Vec<FailedMessage>, QueueError> {
        self.receive().await
    }

    async fn release(&self, receipts: &[String]) -> Result<(), QueueError> {
        let mut hidden = self.hidden.lock().unwrap();
        hidden.retain(|one| !receipts.contains(one));
        Ok(())
    }

    async fn delete(&self, receipt: &str) -> Result<(), QueueError> {
        if *self.interrupted.lock().unwrap() {
            return Err(QueueError::NoConnection);
        }
        self.messages
            .lock()
            .unwrap()
            .retain(|one| one.receipt != receipt);
        Ok(())
    }

    async fn send(&self, message: &FailedMessage, _: &str) -> Result<(), QueueError> {
        if self.rejects.contains(&message.body.as_str()) {
            return Err(QueueError::Failed("rejected".to_owned()));
        }
        self.sent.lock().unwrap().push(message.clone());
        Ok(())
    }
}

const LATER: Timestamp = Timestamp::from_nanoseconds(1_000_000_000);

#[tokio::test]
async fn all_messages_are_moved_and_new_ones_stay() {
    let queue = FakeQueue::of(
        &[("a", ""), ("b", ""), ("c", ""), ("d", ""), ("new", "")],
        false,
    );
    queue.messages.lock().unwrap()[3].sent_milliseconds = 1000;
    queue.messages.lock().unwrap()[4].sent_milliseconds = 1001;
    let done = redrive(&queue, &RedriveOptions::default(), None, LATER, |_| true).await;
    assert_eq!(done.unwrap().rows.values().sum::<usize>(), 4);
    assert_eq!(FakeQueue::bodies(&queue.sent), ["a", "b", "c", "d"]);
    assert_eq!(FakeQueue::bodies(&queue.messages), ["new"]);
    assert!(
        queue
            .hidden
            .lock()
            .unwrap()
            .iter()
            .all(|receipt| receipt != "r4")
    );
    assert_eq!(
        peek(&queue, 10, usize::MAX).await.unwrap().messages.len(),
        1
    );
}

#[tokio::test]
async fn a_message_that_stays_blocks_its_fifo_group_only() {
    let mut queue = FakeQueue::of(
        &[
            ("a1", "a"),
            ("b1", "b"),
            ("a2", "a"),
            ("b2", "b"),
            ("a3", "a"),
        ],
        true,
    );
    queue.rejects = vec!["a2"];
    let done = redrive(&queue, &RedriveOptions::default(), None, LATER, |_| true).await;
    let done = done.unwrap();
    assert_eq!(done.failed(), 1);
    assert!(
        done.rows
            .keys()
            .any(|(_, _, outcome)| *outcome == RedriveOutcome::Failed("rejected".to_owned()))
    );
    assert_eq!(FakeQueue::bodies(&queue.sent), ["a1", "b1", "b2"]);
    assert_eq!(FakeQueue::bodies(&queue.messages), ["a2", "a3"]);
}

#[tokio::test]
async fn an_interrupted_redrive_is_repeated_with_the_same_origin() {
    let queue = FakeQueue::of(&[("a", "")], false);
    *queue.interrupted.lock().unwrap() = true;
    let options = RedriveOptions::default();
    assert!(
        redrive(&queue, &options, None, LATER, |_| true)
            .await
            .is_err()
    );
    *queue.interrupted.lock().unwrap() = false;
    // The visibility timeout ends.
    queue.hidden.lock().unwrap().clear();
    redrive(&queue, &options, None, LATER, |_| true)
        .await
        .unwrap();
    let sent = queue.sent.lock().unwrap();
    let origins: Vec<_> = sent
        .iter()
        .map(|one| one.attribute("antumbra-origin"))
        .collect();
    assert_eq!(origins, [Some("1-m0"), Some("1-m0")]);
}

#[tokio::test]
async fn the_limit_is_kept() {
    let queue = FakeQueue::of(&[("a", ""), ("b", ""), ("c", ""), ("d", "")], false);
    let options = RedriveOptions {
        limit: 2,
        ..RedriveOptions::default()
    };
    redrive(&queue, &options, None, LATER, |_| true)
        .await
        .unwrap();
    assert_eq!(FakeQueue::bodies(&queue.sent), ["a", "b"]);
    assert_eq!(queue.messages.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn a_reason_selects_messages() {
    let queue = FakeQueue::of(&[("a", ""), ("b", ""), ("c", "")], false);
    let other = Attribute::text("NotText".to_owned());
    {
        let message = &mut queue.messages.lock().unwrap()[1];
        message.dead_letter_of = None;
        message.attributes.insert("reason".to_owned(), other);
    }
    let options = RedriveOptions {
        reason: Some("NotText".to_owned()),
        to: Some("antumbra-inbound".to_owned()),
        ..RedriveOptions::default()
    };
    let peeked = peek(&queue, 10, usize::MAX).await.unwrap().messages;
    let planned: usize = plan(&peeked, &options).rows.values().sum();
    assert_eq!(planned, 1);
    redrive(&queue, &options, None, LATER, |_| true)
        .await
        .unwrap();
    assert_eq!(FakeQueue::bodies(&queue.sent), ["b"]);
    assert_eq!(FakeQueue::bodies(&queue.messages), ["a", "c"]);
}
