//! Plain MQTT: on a scripted broker, and on that of the local stack.

use std::net::SocketAddr;
use std::time::Duration;

use antumbra_local::mqtt::{self as local, TopicFilter};
use antumbra_publish::{Broker, MqttChannel};
use antumbra_service::notifications::{Channel, Message};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

use crate::broker::{Answer, Scripted};
use crate::message::{letters, message, messages, reason};

fn channel(address: SocketAddr) -> MqttChannel {
    MqttChannel::new(Broker {
        host: address.ip().to_string(),
        port: address.port(),
        client_id: "publish".to_owned(),
    })
}

#[tokio::test]
async fn one_connection_serves_many_calls() {
    let broker = Scripted::start(|_| Answer::Acknowledge(0)).await;
    let channel = channel(broker.address);
    let mut messages = messages(4);
    messages[1].qos = 0;
    for pair in messages.chunks(2) {
        assert_eq!(letters(&channel.send(pair).await), "..");
    }
    let published = broker.published();
    let seen: Vec<_> = published
        .iter()
        .map(|each| (each.connection, each.payload.as_str(), each.qos))
        .collect();
    let expected = [(0, 0, 1), (0, 1, 0), (0, 2, 1), (0, 3, 1)];
    for (seen, (connection, n, qos)) in seen.iter().zip(expected) {
        assert_eq!(*seen, (connection, message(n).body.as_str(), qos));
    }
    assert_eq!(seen.len(), 4);
    assert_eq!(published[0].topic, "shadows/boiler");
}

#[tokio::test]
async fn refusals_are_told_apart() {
    for (answer, expected, word) in [
        (Answer::Acknowledge(0x10), ".", ""),
        (Answer::Acknowledge(0x87), "p", "NotAuthorized"),
        (Answer::Acknowledge(0x90), "p", "TopicNameInvalid"),
        (Answer::Acknowledge(0x97), "r", "QuotaExceeded"),
        (Answer::Acknowledge(0x80), "r", "UnspecifiedError"),
        (Answer::Disconnect(0x95), "p", "PacketTooLarge"),
        (Answer::Disconnect(0x8B), "r", "ServerShuttingDown"),
        (Answer::HangUp, "r", "closed"),
    ] {
        let broker = Scripted::start(move |_| answer).await;
        let results = channel(broker.address).send(&messages(1)).await;
        assert_eq!(letters(&results), expected, "{answer:?}: {results:?}");
        if expected != "." {
            assert!(reason(&results[0]).contains(word), "{results:?}");
        }
    }
}

#[tokio::test]
async fn a_broker_that_lets_nobody_in_is_permanent_and_a_busy_one_is_not() {
    for (code, expected) in [(0x87, "p"), (0x86, "p"), (0x89, "r"), (0x88, "r")] {
        let broker = Scripted::admitting(code, |_| Answer::Acknowledge(0)).await;
        let results = channel(broker.address).send(&messages(1)).await;
        assert_eq!(letters(&results), expected, "{code:#x}: {results:?}");
        assert_eq!(broker.published(), []);
    }
}

#[tokio::test]
async fn after_a_break_it_connects_again_and_sends_what_it_is_given() {
    let broker = Scripted::start(|published| match published.connection {
        0 if published.payload == message(1).body => Answer::HangUp,
        _ => Answer::Acknowledge(0),
    })
    .await;
    let channel = channel(broker.address);
    assert_eq!(letters(&channel.send(&messages(3)).await), ".rr");
    assert_eq!(letters(&channel.send(&messages(3)[1..]).await), "..");
    let published = broker.published();
    let seen: Vec<_> = published
        .iter()
        .map(|each| (each.connection, each.payload.as_str()))
        .collect();
    let body = |n| message(n).body;
    assert_eq!(
        seen,
        [
            (0, &*body(0)),
            (0, &*body(1)),
            (1, &*body(1)),
            (1, &*body(2))
        ]
    );
}

/// The channel has a runtime of its own here, which stands still between two calls, as that of a
/// Lambda function does: nobody sees the connection end when it ends.
#[test]
fn a_connection_that_ended_while_idle_costs_no_message() {
    let elsewhere = tokio::runtime::Runtime::new().unwrap();
    let here = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let broker = elsewhere.block_on(Scripted::start(|_| Answer::Acknowledge(0)));
    let (address, cut) = elsewhere.block_on(cuttable(broker.address));
    let channel = channel(address);
    let message = messages(1);
    assert_eq!(letters(&here.block_on(channel.send(&message))), ".");
    let (done, gone) = oneshot::channel();
    cut.blocking_send(done).unwrap();
    gone.blocking_recv().unwrap();
    assert_eq!(letters(&here.block_on(channel.send(&message))), ".");
    let published = broker.published();
    assert_eq!(published.len(), 2);
    assert_eq!(published[1].connection, 1);
}

/// Another way to a broker, whose connection can be cut; it says when it is.
async fn cuttable(broker: SocketAddr) -> (SocketAddr, mpsc::Sender<oneshot::Sender<()>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (cut, mut cutting) = mpsc::channel::<oneshot::Sender<()>>(1);
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = TcpStream::connect(broker).await.unwrap();
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                Some(done) = cutting.recv() => {
                    drop((near, far));
                    let _ = done.send(());
                }
            }
        }
    });
    (address, cut)
}

#[tokio::test]
async fn a_dead_or_silent_broker_is_to_be_tried_again() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    assert_eq!(letters(&channel(address).send(&messages(2)).await), "rr");

    let broker = Scripted::start(|_| Answer::Silence).await;
    let channel = channel(broker.address).with_patience(Duration::from_millis(50));
    let results = channel.send(&messages(2)).await;
    assert_eq!(letters(&results), "rr");
    assert!(reason(&results[0]).contains("no answer in 50ms"));
    // The connection with the unanswered message is not used again.
    assert_eq!(broker.published().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_leaves_nothing_behind() {
    let broker = Scripted::start(|published| match published.connection {
        0 => Answer::Silence,
        _ => Answer::Acknowledge(0),
    })
    .await;
    let channel = channel(broker.address);
    let first = [message(0)];
    tokio::select! {
        _ = channel.send(&first) => panic!("there was no answer"),
        () = until_published(&broker) => {}
    }
    assert_eq!(letters(&channel.send(&[message(1)]).await), ".");
    let last = broker.published().pop().unwrap();
    assert_eq!((last.connection, last.payload), (1, message(1).body));
}

/// The next message, or an end to the wait for one that does not come.
async fn next(heard: &mut local::Subscription) -> local::Message {
    let next = tokio::time::timeout(Duration::from_secs(10), heard.next());
    next.await.unwrap().unwrap()
}

async fn until_published(broker: &Scripted) {
    while broker.published().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_local_broker_hands_messages_on_in_order_and_again_after_a_restart() {
    let broker = local::start(0).await.unwrap();
    let address = broker.address();
    let mut heard = broker.subscribe(TopicFilter::new("shadows/#").unwrap());
    let channel = channel(address);
    let once = Message {
        qos: 0,
        ..message(10)
    };
    let mut sent = messages(10);
    assert_eq!(letters(&channel.send(&sent).await), "..........");
    assert_eq!(
        letters(&channel.send(std::slice::from_ref(&once)).await),
        "."
    );
    sent.push(once);
    for message in &sent {
        let got = next(&mut heard).await;
        assert_eq!(got.payload, message.body);
        assert_eq!(got.at_least_once, message.qos == 1);
    }

    broker.stop().await;
    assert_eq!(letters(&channel.send(&messages(2)).await), "rr");
    let broker = local::start(address.port()).await.unwrap();
    let mut heard = broker.subscribe(TopicFilter::new("shadows/#").unwrap());
    assert_eq!(letters(&channel.send(&messages(2)).await), "..");
    assert_eq!(next(&mut heard).await.payload, message(0).body);
    broker.stop().await;
}

#[tokio::test]
async fn an_answer_repeats_what_its_request_gave_it() {
    let broker = local::start(0).await.unwrap();
    let mut heard = broker.subscribe(TopicFilter::new("response/#").unwrap());
    let answer = |data: &str| Message {
        topic: Some("response/get/x".to_owned()),
        correlation_data: Some(data.to_owned()),
        ..message(0)
    };
    let results = channel(broker.address())
        .send(&[answer("not base64"), answer("AQID")])
        .await;
    assert_eq!(letters(&results), "p.");
    let said = next(&mut heard).await.properties.correlation_data;
    assert_eq!(said.as_deref(), Some(&[1, 2, 3][..]));
    broker.stop().await;
}
