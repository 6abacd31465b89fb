//! The rules of one queue.

use antumbra_queues::queue::{
    Attributes, Chance, DEDUPLICATION_MS, InOrder, Message, NewMessage, Queue, Redrive,
};
use proptest::prelude::*;

fn new(body: &str, group: Option<&str>) -> NewMessage {
    NewMessage {
        body: body.to_owned(),
        group: group.map(str::to_owned),
        ..NewMessage::default()
    }
}

fn send(queue: &mut Queue, body: &str, group: Option<&str>, now: u64) {
    queue.send(format!("id-{body}"), new(body, group), now);
}

fn receive(queue: &mut Queue, max: usize, now: u64) -> Vec<Message> {
    queue.receive(max, None, now, &mut InOrder).messages
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages
        .iter()
        .map(|message| message.body.as_str())
        .collect()
}

#[test]
fn a_received_message_is_hidden_until_its_visibility_timeout() {
    let mut queue = Queue::new("q", Attributes::default());
    send(&mut queue, "a", None, 0);
    assert_eq!(bodies(&receive(&mut queue, 10, 0)), ["a"]);
    assert!(receive(&mut queue, 10, 29_999).is_empty());
    assert_eq!(queue.next_visible_ms(0), Some(30_000));
    let again = receive(&mut queue, 10, 30_000);
    assert_eq!((again[0].receives, again[0].first_receive_ms), (2, Some(0)));
}

#[test]
fn only_the_newest_receipt_deletes_or_changes_visibility() {
    let mut queue = Queue::new("q", Attributes::default());
    send(&mut queue, "a", None, 0);
    let first = receive(&mut queue, 1, 0)[0].receipt();
    let second = receive(&mut queue, 1, 30_000)[0].receipt();
    assert_eq!(queue.delete(first), None);
    assert!(!queue.change_visibility(first, 0, 30_000));
    assert!(queue.change_visibility(second, 5, 30_000));
    assert!(receive(&mut queue, 1, 34_999).is_empty());
    assert_eq!(queue.delete(second), Some(second.number));
    assert!(receive(&mut queue, 1, 99_999).is_empty());
}

#[test]
fn a_group_in_flight_is_held_back_and_others_are_not() {
    let mut queue = Queue::new("q.fifo", Attributes::default());
    for (body, group) in [("a1", "a"), ("a2", "a"), ("b1", "b"), ("a3", "a")] {
        send(&mut queue, body, Some(group), 0);
    }
    let first = receive(&mut queue, 2, 0);
    assert_eq!(
        bodies(&first),
        ["a1", "a2"],
        "several of one group come together"
    );
    assert_eq!(
        bodies(&receive(&mut queue, 10, 1)),
        ["b1"],
        "a is in flight"
    );
    queue.delete(first[1].receipt());
    assert!(
        receive(&mut queue, 10, 2).is_empty(),
        "a1 is still in flight"
    );
    queue.delete(first[0].receipt());
    assert_eq!(bodies(&receive(&mut queue, 10, 3)), ["a3"]);
}

#[test]
fn a_message_that_becomes_visible_again_comes_before_the_rest_of_its_group() {
    let mut queue = Queue::new("q.fifo", Attributes::default());
    send(&mut queue, "1", Some("g"), 0);
    send(&mut queue, "2", Some("g"), 0);
    let first = receive(&mut queue, 1, 0);
    assert!(queue.change_visibility(first[0].receipt(), 0, 10));
    assert_eq!(bodies(&receive(&mut queue, 10, 10)), ["1", "2"]);
}

#[test]
fn duplicates_are_dropped_for_five_minutes() {
    let mut queue = Queue::new("q.fifo", Attributes::default());
    let message = |body| NewMessage {
        deduplication_id: Some("d".to_owned()),
        ..new(body, Some("g"))
    };
    let first = queue.send("1".to_owned(), message("a"), 0);
    let again = queue.send("2".to_owned(), message("b"), DEDUPLICATION_MS - 1);
    assert_eq!(
        (again.id, again.number, again.duplicate),
        (first.id, first.number, true)
    );
    let later = queue.send("3".to_owned(), message("c"), DEDUPLICATION_MS);
    assert!(!later.duplicate);
}

#[test]
fn a_message_received_too_often_is_a_dead_letter_and_frees_its_group() {
    let redrive = Some(Redrive {
        dead_letter_queue: "dead.fifo".to_owned(),
        max_receive_count: 2,
    });
    let attributes = Attributes {
        redrive,
        ..Attributes::default()
    };
    let mut queue = Queue::new("q.fifo", attributes);
    send(&mut queue, "poison", Some("g"), 0);
    send(&mut queue, "next", Some("g"), 0);
    assert_eq!(bodies(&receive(&mut queue, 1, 0)), ["poison"]);
    assert_eq!(bodies(&receive(&mut queue, 1, 30_000)), ["poison"]);
    let third = queue.receive(1, None, 60_000, &mut InOrder);
    assert_eq!(bodies(&third.dead_letters), ["poison"]);
    assert_eq!(bodies(&third.messages), ["next"]);

    let mut dead = Queue::new("dead.fifo", Attributes::default());
    let stored = dead.accept_dead_letter(third.dead_letters[0].clone(), "q.fifo");
    assert_eq!(
        (stored.id.as_str(), stored.sent_ms, stored.receives),
        ("id-poison", 0, 0)
    );
    assert_eq!(stored.dead_letter_source.as_deref(), Some("q.fifo"));
}

#[test]
fn messages_end_with_their_retention_period() {
    let attributes = Attributes {
        retention_seconds: 60,
        ..Attributes::default()
    };
    let mut queue = Queue::new("q", attributes);
    send(&mut queue, "old", None, 0);
    send(&mut queue, "young", None, 1);
    let received = queue.receive(10, None, 60_000, &mut InOrder);
    assert_eq!(
        (received.expired, bodies(&received.messages)),
        (vec![0], vec!["young"])
    );
}

#[test]
fn a_delayed_message_is_counted_apart_and_received_after_its_delay() {
    let mut queue = Queue::new("q", Attributes::default());
    send(&mut queue, "now", None, 0);
    let late = NewMessage {
        delay_seconds: Some(9),
        ..new("late", None)
    };
    queue.send("2".to_owned(), late, 0);
    let counts = queue.counts(0);
    assert_eq!(
        (counts.visible, counts.in_flight, counts.delayed),
        (1, 0, 1)
    );
    assert_eq!(bodies(&receive(&mut queue, 10, 8_999)), ["now"]);
    let counts = queue.counts(8_999);
    assert_eq!(
        (counts.visible, counts.in_flight, counts.delayed),
        (0, 1, 1)
    );
    assert_eq!(bodies(&receive(&mut queue, 10, 9_000)), ["late"]);
}

/// Repeats every delivery and takes the last of the candidates.
struct Unkind;

impl Chance for Unkind {
    fn pick(&mut self, count: usize) -> usize {
        count - 1
    }

    fn deliver_again(&mut self) -> bool {
        true
    }
}

#[test]
fn an_unkind_standard_queue_reorders_and_repeats_but_not_within_one_receive() {
    let mut queue = Queue::new("q", Attributes::default());
    for body in ["a", "b", "c"] {
        send(&mut queue, body, None, 0);
    }
    let first = queue.receive(10, None, 0, &mut Unkind);
    assert_eq!(bodies(&first.messages), ["c", "b", "a"]);
    let again = queue.receive(10, None, 0, &mut Unkind);
    assert_eq!(again.messages.len(), 3);
    assert_eq!(
        queue.delete(first.messages[0].receipt()),
        None,
        "it was received again since"
    );
}

/// One step of a consumer or sender.
#[derive(Debug, Clone)]
enum Step {
    Send(u8),
    Receive(usize),
    Delete(usize),
    Release(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0u8..3).prop_map(Step::Send),
        (1usize..4).prop_map(Step::Receive),
        (0usize..8).prop_map(Step::Delete),
        (0usize..8).prop_map(Step::Release),
        (0u64..40_000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..120)
}

proptest! {
    /// A FIFO queue hands out a message only when every earlier message of its group was deleted or is
    /// handed out before it in the same receive; nothing is lost and nothing deleted comes back.
    #[test]
    fn fifo_queues_keep_order_within_groups_and_lose_nothing(steps in steps()) {
        let mut queue = Queue::new("q.fifo", Attributes::default());
        let (mut now, mut sent) = (0u64, 0u64);
        let mut live: Vec<(u64, String)> = Vec::new();
        let mut in_flight: Vec<Message> = Vec::new();
        for step in steps {
            match step {
                Step::Send(group) => {
                    let group = format!("g{group}");
                    send(&mut queue, &sent.to_string(), Some(&group), now);
                    live.push((sent, group));
                    sent += 1;
                }
                Step::Receive(max) => {
                    let messages = receive(&mut queue, max, now);
                    for (at, message) in messages.iter().enumerate() {
                        let group = message.group.clone().unwrap();
                        let earlier = live.iter().filter(|(n, g)| *n < message.number && *g == group);
                        for (number, _) in earlier {
                            let before = messages[..at].iter().any(|m| m.number == *number);
                            prop_assert!(before, "{number} before {}", message.number);
                        }
                        let in_flight = live.iter().any(|(n, _)| *n == message.number);
                        prop_assert!(in_flight, "a deleted message came back");
                    }
                    in_flight.extend(messages);
                }
                Step::Delete(at) if at < in_flight.len() => {
                    let message = in_flight.swap_remove(at);
                    if let Some(number) = queue.delete(message.receipt()) {
                        live.retain(|(n, _)| *n != number);
                    }
                }
                Step::Release(at) if at < in_flight.len() => {
                    queue.change_visibility(in_flight[at].receipt(), 0, now);
                }
                Step::Wait(ms) => now += ms,
                Step::Delete(_) | Step::Release(_) => {}
            }
        }
        let kept: Vec<u64> = queue.messages().map(|message| message.number).collect();
        let expected: Vec<u64> = live.iter().map(|(number, _)| *number).collect();
        prop_assert_eq!(kept, expected);
    }
}
