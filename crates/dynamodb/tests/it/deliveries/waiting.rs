//! Places to wait: behind a deferred delivery, and with a disabled client.

use std::sync::Arc;
use std::time::Duration;

use antumbra_service::clients::{ClientId, ClientPatch, ClientState, ClientStore as _, Mode};
use antumbra_service::clock::{Clock as _, ManualClock, time_left};
use antumbra_service::deliveries::{
    Deliveries, DueTask, History as _, Queues, Saved, Status, Wait, queue_due,
};
use antumbra_service::liveness::SweepGroup;
use antumbra_testkit::{RecordingChannel, SendReply};

use super::fixture::{DeliveryFixture, delivery};
use crate::clients::{at, disabled};

#[tokio::test]
async fn later_deliveries_wait_behind_a_deferred_one_and_follow_it() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let (one, two, three) = (
        fixture.add(1).await,
        fixture.add(2).await,
        fixture.add(3).await,
    );
    // Without a deferred delivery, none can wait behind it.
    let (context, message) = fixture.context(&two).await;
    let saved = fixture.wait(&context, &message, Wait::Behind);
    assert_eq!(saved.await, Saved::Changed);
    let due = Some(Wait::Due(at(200)));
    let saved = fixture.attempt(&one, Status::Failed, due).await;
    let Saved::Applied(Some(message)) = saved else {
        panic!("{saved:?}");
    };
    // The message that ends the wait is the one that the schedule would queue.
    assert_eq!((&message.id, message.queued), (&one.id, 1));
    for waiting in [&two, &three] {
        let (context, message) = fixture.context(waiting).await;
        assert_eq!(context.oldest_deferred, Some(one.id.order()));
        let saved = fixture.wait(&context, &message, Wait::Behind);
        assert_eq!(saved.await, Saved::Applied(None));
    }
    assert!(fixture.due(at(199)).await.is_empty());
    assert_eq!(fixture.due(at(201)).await.len(), 1);
    let mut settled = &one;
    for next in [&two, &three] {
        let Saved::Applied(Some(message)) = fixture.attempt(settled, Status::Dead, None).await
        else {
            panic!("nothing follows {}", settled.sequence);
        };
        assert_eq!((&message.id, message.queued), (&next.id, 1));
        // It is in the due index as well, in case it is not queued.
        let due = fixture.due(at(201)).await;
        let is_next = |task: &DueTask| matches!(task, DueTask::Queue(record, _) if record.delivery.id == next.id);
        assert!(due.iter().any(is_next), "{due:?}");
        settled = next;
    }
    let last = fixture.attempt(settled, Status::Delivered, None).await;
    assert_eq!(last, Saved::Applied(None));
    let (context, _) = fixture.context(&three).await;
    assert_eq!((context.deferred, context.oldest_deferred), (0, None));
    // The remaining index entries belong to deliveries that no longer wait.
    let rest = fixture.due(at(300)).await;
    assert!(
        rest.iter().all(|task| matches!(task, DueTask::Nothing)),
        "{rest:?}"
    );
}

#[tokio::test]
async fn held_deliveries_are_found_without_reading_the_history() {
    let fixture = DeliveryFixture::fresh().await;
    fixture.linked("watch", "door-7", 4, 2).await;
    let client = ClientId::new("watch").unwrap();
    for sequence in 0..40 {
        let sent = fixture.add(sequence).await;
        if sequence % 10 == 0 {
            let (context, message) = fixture.context(&sent).await;
            let held = fixture.wait(&context, &message, Wait::Held);
            assert_eq!(held.await, Saved::Applied(None));
        }
    }
    fixture.base.endpoint.take_calls();
    let held = fixture.deliveries.held(&client, 3).await.unwrap();
    assert_eq!(fixture.base.operations(), ["Query", "BatchGetItem"]);
    let sequence = |record: &antumbra_service::deliveries::DeliveryRecord| record.delivery.sequence;
    let sequences: Vec<_> = held
        .iter()
        .map(|one| one.record.as_ref().map(sequence))
        .collect();
    assert_eq!(sequences, [Some(0), Some(10), Some(20)]);
    // The first one is attempted meanwhile.
    let first = delivery("watch", "door-7", 100, 0);
    fixture.attempt(&first, Status::Delivered, None).await;
    let held = fixture.deliveries.held(&client, 1).await.unwrap();
    assert!(held[0].record.is_none());
    fixture
        .deliveries
        .remove_held(&client, &held[0])
        .await
        .unwrap();
    let held = fixture.deliveries.held(&client, 10).await.unwrap();
    assert_eq!(held.len(), 3);
    // Enabling a client, or deleting it, leaves a task to release them.
    let disabled = disabled("requested", 1);
    let clients = &*fixture.base;
    clients.set_state(&client, &disabled, at(1)).await.unwrap();
    assert!(fixture.due(at(300)).await.is_empty());
    clients
        .set_state(&client, &ClientState::Enabled, at(2))
        .await
        .unwrap();
    let due = fixture.due(at(300)).await;
    assert!(
        matches!(&due[..], [DueTask::Release(id)] if *id == client),
        "{due:?}"
    );
    clients.delete(&client, None, true, at(100)).await.unwrap();
    assert_eq!(fixture.due(at(300)).await.len(), 2);
}

/// Each call takes 20 ms, as on AWS: a page of held deliveries would take longer than a second.
#[tokio::test]
async fn enabling_a_client_takes_half_a_second_and_loses_nothing() {
    for mode in [Mode::Every, Mode::Latest] {
        let fixture = DeliveryFixture::fresh().await;
        fixture.linked("watch", "door-7", 4, 2).await;
        let client = ClientId::new("watch").unwrap();
        let patch = ClientPatch {
            mode: Some(mode),
            ..ClientPatch::default()
        };
        let changed = fixture.base.update(&client, &patch, None, at(1));
        changed.await.unwrap();
        for sequence in 0..60 {
            let sent = fixture.add(sequence).await;
            let (context, message) = fixture.context(&sent).await;
            let held = fixture.wait(&context, &message, Wait::Held);
            held.await;
        }
        let clock = Arc::new(ManualClock::new(at(200)));
        let channel = Arc::new(RecordingChannel::default());
        let passing = clock.clone();
        channel.reply(move |_| {
            passing.advance(Duration::from_millis(20));
            SendReply::Accept
        });
        let queues = Queues {
            ordered: channel.clone(),
            unordered: channel.clone(),
        };
        let deliveries = Deliveries::new(
            fixture.base.clone(),
            fixture.deliveries.clone(),
            queues.clone(),
            clock.clone(),
        );
        fixture.base.endpoint.hold_until(0);
        let released = deliveries.enable(&client).await.unwrap();
        let taken = time_left(at(200), clock.now());
        assert!(taken < Duration::from_secs(1), "{mode:?}: {taken:?}");
        assert!(!released.finished && released.queued < 60, "{released:?}");
        let (clients, store) = (&*fixture.base, &fixture.deliveries);
        let rest = queue_due(clients, store, &queues, SweepGroup::ALL, &*clock, at(300)).await;
        assert_eq!((released.queued + rest.released, rest.failed), (60, 0));
        assert!(store.held(&client, 1).await.unwrap().is_empty());
        let ids: Vec<_> = channel
            .accepted()
            .iter()
            .map(|one| one.id.clone())
            .collect();
        let different: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(different.len(), 60);
        // Those of one sensor follow each other in mode `every`. Four shards are read at once.
        let at_once = fixture.base.endpoint.most_at_once();
        match mode {
            Mode::Every => assert!(at_once <= 4 && ids.is_sorted(), "{at_once}: {ids:?}"),
            Mode::Latest => assert!(at_once > 4, "{at_once}"),
        }
    }
}

#[tokio::test]
async fn a_test_that_was_not_queued_is_queued_by_the_schedule() {
    let fixture = DeliveryFixture::fresh().await;
    let client = fixture.base.client("watch", Mode::Latest).await.id;
    let clock = Arc::new(ManualClock::new(at(200)));
    let channel = Arc::new(RecordingChannel::default());
    channel.reply_next([SendReply::Throttle]);
    let queues = Queues {
        ordered: channel.clone(),
        unordered: channel.clone(),
    };
    let (clients, store) = (&*fixture.base, &fixture.deliveries);
    let deliveries = Deliveries::new(
        fixture.base.clone(),
        store.clone(),
        queues.clone(),
        clock.clone(),
    );
    // Its outcome does not matter: the caller may not see it.
    let _ = deliveries.test(&client).await;
    assert_eq!(channel.accepted().len(), 0);
    clock.advance(Duration::from_secs(60));
    let summary = queue_due(clients, store, &queues, SweepGroup::ALL, &*clock, at(300)).await;
    assert_eq!((summary.queued, summary.failed), (1, 0));
    assert_eq!(channel.accepted().len(), 1);
}
