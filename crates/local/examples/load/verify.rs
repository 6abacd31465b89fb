//! Checks that every change, reading and delivery was received.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use antumbra_service::sensors::Value;
use antumbra_shadow::Timestamp;
use aws_sdk_sqs::types::QueueAttributeName;

use crate::home::{Home, sensor};
use crate::received::Received;
use crate::send::{Sent, device};

/// Time without progress after which missing messages count as lost; longer than a delivery stays hidden whose invocation is
/// throttled three times in a row.
const PATIENCE: Duration = Duration::from_secs(600);
/// Maximum number of faults that are printed.
const MAX_PRINTED_FAULTS: usize = 10;

/// Waits until everything has arrived or nothing arrives any more, and returns the faults.
pub(crate) async fn everything(
    home: &Home,
    sent: &Arc<Sent>,
    notified: &Received,
    delivered: &Received,
) -> Vec<String> {
    until_received(notified, sent.reports()).await;
    let occurred = occurred(home, sent).await;
    until_received(delivered, occurred.iter().sum()).await;

    let mut faults = notified.faults();
    faults.extend(delivered.faults());
    faults.extend(notifications(sent, notified));
    for (at, occurred) in occurred.iter().enumerate() {
        let received = delivered.count(sensor(at).as_str());
        if received != *occurred {
            let name = sensor(at);
            faults.push(format!("{name}: {occurred} changes, {received} deliveries"));
        }
    }
    faults.extend(readings(home, sent).await);
    for queue in ["antumbra-undeliverable", "antumbra-quarantine"] {
        let count = waiting(home, queue).await;
        if count != "0" {
            faults.push(format!("{count} messages in {queue}"));
        }
    }
    let more = faults.len().saturating_sub(MAX_PRINTED_FAULTS);
    faults.truncate(MAX_PRINTED_FAULTS);
    if more > 0 {
        faults.push(format!("and {more} more"));
    }
    faults
}

/// Checks that every report caused a notification.
pub(crate) fn notifications(sent: &Sent, notified: &Received) -> Vec<String> {
    let mut faults = Vec::new();
    for (at, version) in sent.versions.iter().enumerate() {
        let version = version.load(Ordering::Relaxed);
        let (name, received) = (device(at), notified.count(device(at).id()));
        if received != version {
            faults.push(format!(
                "{name}: {version} reports, {received} notifications"
            ));
        }
    }
    faults
}

/// Waits for a count as long as it grows.
pub(crate) async fn until_received(received: &Received, expected: u64) {
    let (mut there, mut since) = (received.total(), Instant::now());
    while there < expected && since.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(20)).await;
        let now = received.total();
        if now != there {
            (there, since) = (now, Instant::now());
        }
    }
}

/// Number of changes of each sensor's state, once all its signals are stored.
async fn occurred(home: &Home, sent: &Sent) -> Vec<u64> {
    all_readings(home, sent).await;
    let sensors = home.sensors();
    let mut occurred = Vec::new();
    for at in 0..sent.signals.len() {
        let state = sensors.state(&sensor(at)).await.unwrap();
        occurred.push(state.sequence());
    }
    occurred
}

/// Waits until every signal is a reading, and returns the faults that remain.
pub(crate) async fn all_readings(home: &Home, sent: &Sent) -> Vec<String> {
    let patience = Instant::now() + PATIENCE;
    loop {
        let faults = readings(home, sent).await;
        if faults.is_empty() || Instant::now() >= patience {
            return faults;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Checks that every signal is a reading and the last one is the state.
async fn readings(home: &Home, sent: &Sent) -> Vec<String> {
    let sensors = home.sensors();
    let (from, to) = (
        Timestamp::from_nanoseconds(0),
        Timestamp::parse("9999-01-01T00:00:00Z").unwrap(),
    );
    let mut faults = Vec::new();
    for (at, spoken) in sent.signals.iter().enumerate() {
        let spoken = spoken.load(Ordering::Relaxed);
        let (id, mut kept, mut cursor) = (sensor(at), 0, None);
        loop {
            let (_, page) = sensors
                .between(&id, from, to, 1000, cursor.as_ref())
                .await
                .unwrap();
            kept += page.rows.len() as u64;
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        if kept != spoken {
            faults.push(format!("{id}: {spoken} signals, {kept} readings"));
        }
        let state = sensors.state(&id).await.unwrap();
        let last = spoken
            .checked_sub(1)
            .map(|last| Value::whole((last % 2) as i64));
        if state.value != last {
            faults.push(format!("{id}: its state is not its last signal"));
        }
    }
    faults
}

async fn waiting(home: &Home, queue: &str) -> String {
    let request = home.sqs().get_queue_attributes();
    let request = request.queue_url(home.stack.queue_url(queue));
    let name = QueueAttributeName::ApproximateNumberOfMessages;
    let response = request.attribute_names(name.clone()).send().await.unwrap();
    let attributes = response.attributes.unwrap_or_default();
    attributes.get(&name).cloned().unwrap_or_default()
}
