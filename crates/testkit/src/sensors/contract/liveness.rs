//! Laws of `LivenessIndex`.

use antumbra_service::sensors::{
    CheckOutcome, Connection, EventDetail, LivenessIndex, SensorEvent, SensorId, Signal,
    SilenceTimeout, State, Value,
};
use antumbra_shadow::Timestamp;
use futures_util::future::join_all;

use super::Store;
use crate::all_pages;
use crate::sensors::sample::{at, id, record, registered, signal, state};

const HOUR: i64 = 3600;

/// Returns the due sensors of all shards, page by page.
async fn due<S: LivenessIndex>(store: &S, now: Timestamp, limit: usize) -> Vec<SensorId> {
    let mut found = Vec::new();
    for shard in 0..store.shards() {
        let next = async |cursor: Option<&_>| {
            let page = store.due(shard, now, limit, cursor).await;
            page.unwrap()
        };
        let rows = all_pages(limit, next).await;
        assert!(rows.iter().all(|id| id.shard(store.shards()) == shard));
        found.extend(rows);
    }
    found
}

async fn check<S: Store>(store: &S, now: i64) -> (CheckOutcome, Vec<SensorEvent>, State) {
    let old = state(store, "s").await;
    let checked = store.check(&id("s"), at(now)).await.unwrap();
    let new = state(store, "s").await;
    (checked, SensorEvent::between(Some(&old), &new), new)
}

async fn record_events<S: Store>(store: &S, signal: &Signal) -> (Vec<SensorEvent>, State) {
    let old = state(store, "s").await;
    record(store, signal).await;
    let new = state(store, "s").await;
    (SensorEvent::between(Some(&old), &new), new)
}

fn names(events: &[SensorEvent]) -> Vec<&'static str> {
    events
        .iter()
        .map(|event| event.event_type().as_str())
        .collect()
}

pub async fn no_sensor_is_lost_before_its_deadline<S: Store>(store: S) {
    registered(&store, "s").await;
    assert!(due(&store, at(HOUR - 1), 10).await.is_empty());
    assert_eq!(due(&store, at(HOUR), 10).await, [id("s")]);
    record_events(&store, &signal("s", 1, 1800, 1800)).await;

    // The index still contains noon plus one hour; a check corrects it.
    assert_eq!(due(&store, at(HOUR), 10).await, [id("s")]);
    let (checked, events, state) = check(&store, HOUR).await;
    assert_eq!((checked, events), (CheckOutcome::Rearmed, vec![]));
    assert_eq!(state.check_at, Some(at(1800 + HOUR)));
    assert!(due(&store, at(1800 + HOUR - 1), 10).await.is_empty());
    let just_before = at(1800 + HOUR).nanoseconds() - 1;
    let just_before = Timestamp::from_nanoseconds(just_before);
    let checked = store.check(&id("s"), just_before).await.unwrap();
    assert_eq!(checked, CheckOutcome::Rearmed);
    let (checked, ..) = check(&store, 1800 + HOUR).await;
    assert_eq!(checked, CheckOutcome::Lost);
}

pub async fn a_silent_sensor_is_lost_once<S: Store>(store: S) {
    registered(&store, "s").await;
    record_events(&store, &signal("s", 1, 10, 10)).await;
    let (checked, events, state) = check(&store, 10 + HOUR + 30).await;
    assert_eq!(checked, CheckOutcome::Lost);
    let lost = &events[0];
    assert_eq!((lost.sequence, lost.occurred_at), (1, at(10 + HOUR + 30)));
    let detail = EventDetail::ConnectionLost {
        last_seen: at(10),
        threshold: SilenceTimeout::default(),
        last_value: Some(Value::whole(1)),
    };
    assert_eq!(lost.detail, detail);
    assert_eq!((state.connection, state.check_at), (Connection::Lost, None));
    for later in [1, 1000] {
        let (checked, events, again) = check(&store, 10 + HOUR + 30 + later).await;
        assert_eq!(
            (checked, events, &again),
            (CheckOutcome::Gone, vec![], &state)
        );
    }
    assert!(due(&store, at(100 * HOUR), 10).await.is_empty());
    let unknown = store.check(&id("unknown"), at(0)).await.unwrap();
    assert_eq!(unknown, CheckOutcome::Gone);
}

pub async fn a_signal_restores_a_lost_sensor_before_it_changes_the_value<S: Store>(store: S) {
    registered(&store, "s").await;
    record_events(&store, &signal("s", 1, 0, 0)).await;
    check(&store, 2 * HOUR).await;
    let (events, state) = record_events(&store, &signal("s", 0, 3 * HOUR, 3 * HOUR)).await;
    assert_eq!(names(&events), ["connection.restored", "state.changed"]);
    assert_eq!((events[0].sequence, events[1].sequence), (2, 3));
    let detail = EventDetail::ConnectionRestored {
        lost_at: at(2 * HOUR),
        restored_at: at(3 * HOUR),
        outage_seconds: 3 * HOUR,
        value: Some(Value::whole(0)),
        value_changed: true,
    };
    assert_eq!(events[0].detail, detail);
    assert_eq!(
        (state.connection, state.lost_at),
        (Connection::Online, None)
    );

    // The next deadline is exact to the millisecond.
    assert_eq!(due(&store, at(3 * HOUR), 10).await, [id("s")]);
    let (checked, ..) = check(&store, 4 * HOUR - 1).await;
    assert_eq!(checked, CheckOutcome::Rearmed);
    let (checked, events, _) = check(&store, 4 * HOUR).await;
    assert_eq!((checked, events[0].sequence), (CheckOutcome::Lost, 4));

    let (events, _) = record_events(&store, &signal("s", 0, 5 * HOUR, 5 * HOUR)).await;
    assert_eq!(names(&events), ["connection.restored"]);
    assert_eq!(events[0].sequence, 5);
}

pub async fn a_stale_signal_restores_a_lost_sensor<S: Store>(store: S) {
    registered(&store, "s").await;
    record_events(&store, &signal("s", 1, 100, 0)).await;
    check(&store, 2 * HOUR).await;
    let (events, state) = record_events(&store, &signal("s", 0, 50, 3 * HOUR)).await;
    assert_eq!(names(&events), ["connection.restored"]);
    assert_eq!(state.value, Some(Value::whole(1)));
    assert_eq!(state.deadline, at(4 * HOUR));
}

pub async fn a_signal_from_before_the_loss_does_not_restore<S: Store>(store: S) {
    registered(&store, "s").await;
    record_events(&store, &signal("s", 1, 0, 100)).await;
    check(&store, 2 * HOUR).await;
    let (events, state) = record_events(&store, &signal("s", 0, 50, 50)).await;
    assert_eq!(names(&events), ["state.changed"]);
    assert_eq!((state.connection, state.check_at), (Connection::Lost, None));
    let (events, again) = record_events(&store, &signal("s", 1, 20, 20)).await;
    assert_eq!((events, again), (vec![], state));
}

pub async fn a_sensor_never_seen_is_reported_once<S: Store>(store: S) {
    registered(&store, "s").await;
    let (checked, ..) = check(&store, HOUR - 1).await;
    assert_eq!(checked, CheckOutcome::Rearmed);
    let (checked, events, _) = check(&store, HOUR).await;
    assert_eq!((checked, events[0].sequence), (CheckOutcome::Lost, 1));
    let detail = EventDetail::ConnectionNeverSeen {
        registered_at: at(0),
        threshold: SilenceTimeout::default(),
    };
    assert_eq!(events[0].detail, detail);
    let (checked, events, _) = check(&store, 2 * HOUR).await;
    assert_eq!((checked, events), (CheckOutcome::Gone, vec![]));

    let (events, _) = record_events(&store, &signal("s", 1, 3 * HOUR, 3 * HOUR)).await;
    assert_eq!(names(&events), ["connection.restored"]);
    let detail = EventDetail::ConnectionRestored {
        lost_at: at(HOUR),
        restored_at: at(3 * HOUR),
        outage_seconds: 2 * HOUR,
        value: Some(Value::whole(1)),
        value_changed: false,
    };
    assert_eq!((events[0].sequence, &events[0].detail), (2, &detail));
    let (events, _) = record_events(&store, &signal("s", 0, 3 * HOUR + 1, 3 * HOUR + 1)).await;
    assert_eq!(
        (names(&events), events[0].sequence),
        (vec!["state.changed"], 3)
    );
}

pub async fn due_sensors_are_paged_by_shard<S: Store>(store: S) {
    for n in 0..30 {
        registered(&store, &format!("s{n}")).await;
    }
    for limit in [1, 3, 1000] {
        let mut found = due(&store, at(HOUR), limit).await;
        found.sort();
        found.dedup();
        assert_eq!(found.len(), 30, "{limit} a page");
    }
    assert!(due(&store, at(HOUR - 1), 10).await.is_empty());
    // A cursor is valid only for its shard.
    let shards = store.shards();
    let mut other = None;
    for shard in 0..shards {
        let page = store.due(shard, at(HOUR), 1, None).await.unwrap();
        if let Some(cursor) = page.next {
            let rejected = store
                .due((shard + 1) % shards, at(HOUR), 1, Some(&cursor))
                .await;
            assert!(rejected.is_err());
            other = Some(cursor);
        }
    }
    assert!(other.is_some());
}

pub async fn a_shorter_silence_counts_from_the_last_contact<S: Store>(store: S) {
    let first = registered(&store, "s").await;
    let mut quick = first.sensor.clone();
    quick.silence_after = SilenceTimeout::seconds(60).unwrap();
    let second = store.change(&first, &quick, at(30)).await.unwrap();
    assert_eq!(
        state(&store, "s").await.deadline,
        at(60),
        "from its registration"
    );
    record_events(&store, &signal("s", 1, 50, 50)).await;
    assert_eq!(state(&store, "s").await.deadline, at(110));

    let mut slow = first.sensor.clone();
    slow.silence_after = SilenceTimeout::seconds(1000).unwrap();
    let third = store.change(&second, &slow, at(60)).await.unwrap();
    assert_eq!(state(&store, "s").await.deadline, at(1050));
    let (checked, _, state) = check(&store, 110).await;
    assert_eq!(
        (checked, state.check_at),
        (CheckOutcome::Rearmed, Some(at(1050)))
    );

    // Shorter than the current silence: the next check finds it lost.
    store.change(&third, &quick, at(500)).await.unwrap();
    assert_eq!(due(&store, at(500), 10).await, [id("s")]);
    let (checked, events, _) = check(&store, 500).await;
    assert_eq!(
        (checked, names(&events)),
        (CheckOutcome::Lost, vec!["connection.lost"])
    );
}

pub async fn a_changed_silence_timeout_does_not_affect_a_lost_sensor<S: Store>(store: S) {
    let first = registered(&store, "s").await;
    check(&store, HOUR).await;
    let mut quick = first.sensor.clone();
    quick.silence_after = SilenceTimeout::seconds(60).unwrap();
    store.change(&first, &quick, at(HOUR)).await.unwrap();
    let (checked, events, state) = check(&store, HOUR + 1).await;
    assert_eq!((checked, events), (CheckOutcome::Gone, vec![]));
    assert_eq!(state.check_at, None);
    assert!(due(&store, at(9 * HOUR), 10).await.is_empty());
    let (events, state) = record_events(&store, &signal("s", 1, 2 * HOUR, 2 * HOUR)).await;
    assert_eq!(names(&events), ["connection.restored"]);
    assert_eq!(state.deadline, at(2 * HOUR + 60));
}

pub async fn two_sweeps_at_once_lose_each_sensor_once<S: Store>(store: S) {
    for n in 0..20 {
        registered(&store, &format!("s{n}")).await;
    }
    let sweeps = (0..3).map(|_| async {
        let mut lost = 0;
        for sensor in due(&store, at(HOUR), 7).await {
            let checked = store.check(&sensor, at(HOUR)).await.unwrap();
            lost += usize::from(checked == CheckOutcome::Lost);
        }
        lost
    });
    let lost: usize = join_all(sweeps).await.into_iter().sum();
    assert_eq!(lost, 20);
    for n in 0..20 {
        assert_eq!(state(&store, &format!("s{n}")).await.sequence(), 1);
    }
}
