//! Transitions of a state.

use antumbra_service::paging::{open_cursor, page_limit, seal_cursor};
use antumbra_service::sensors::reading_time::{from_milliseconds, milliseconds};
use antumbra_service::sensors::{
    CheckOutcome, Connection, Cursor, LivenessIndex, Outcome, OwnedReading, Page, Recorded,
    SensorId, Signal, State, StateStore, StoreError,
};
use antumbra_shadow::Timestamp;

use super::MemorySensors;

fn note_contact(state: &mut State, sent: Timestamp) {
    if state.connection == Connection::Lost {
        state.contacts += 1;
    }
    state.connection = Connection::Online;
    state.lost_at = None;
    state.last_seen = Some(sent);
    state.deadline = later(sent, state.silence_after.as_milliseconds());
    state.check_at = state.check_at.or(Some(sent));
}

fn set_value(state: &mut State, signal: &Signal) {
    let same = state.value.as_ref() == Some(signal.value());
    let is_switch = signal.value().other_switch_marks().is_some();
    let since = state.since.filter(|_| same);
    state.since = is_switch.then(|| since.unwrap_or(signal.moment().time()));
    state.changes += u64::from(!same);
    state.value = Some(signal.value().clone());
    state.moment = Some(signal.moment().clone());
}

pub(super) fn later(time: Timestamp, by_milliseconds: i64) -> Timestamp {
    from_milliseconds(milliseconds(time).saturating_add(by_milliseconds))
}

impl StateStore for MemorySensors {
    async fn record(&self, signal: &Signal) -> Result<Option<Recorded>, StoreError> {
        let mut inner = self.lock();
        let Some(kept) = inner.sensors.get(signal.sensor()) else {
            return Ok(None);
        };
        let before = &kept.state;
        let moment = before.moment.as_ref();
        let is_newer = moment.is_none_or(|moment| moment < signal.moment());
        let is_later = before.last_seen.is_none_or(|seen| seen < signal.sent());
        let at_once = before.last_seen == Some(signal.sent());
        let mut state = before.clone();
        if is_later || (is_newer && at_once) {
            note_contact(&mut state, signal.sent());
        }
        if is_newer {
            set_value(&mut state, signal);
        }
        let outcome = match (&before.value, is_newer) {
            (None, _) => Outcome::First,
            (Some(value), true) if value == signal.value() => Outcome::Same,
            (Some(_), true) => Outcome::Changed,
            (Some(_), false) if moment == Some(signal.moment()) => Outcome::Duplicate,
            (Some(_), false) => Outcome::Stale,
        };
        let owner = before.owner();
        if !is_newer || !(is_later || at_once) {
            inner.figures.rejected += 1;
        }
        if is_newer || is_later {
            inner.write(signal.sensor(), state);
        }
        Ok(Some(Recorded { outcome, owner }))
    }

    async fn save_readings(&self, readings: &[OwnedReading]) -> Vec<Result<(), StoreError>> {
        let mut inner = self.lock();
        inner.figures.readings += readings.len() as u64;
        if inner.keeps_readings {
            for OwnedReading { owner, reading } in readings {
                if let Some(kept) = inner.sensors.get_mut(&owner.sensor)
                    && kept.registered.generation == owner.generation
                {
                    kept.readings
                        .insert(reading.moment.clone(), reading.clone());
                }
            }
        }
        readings.iter().map(|_| Ok(())).collect()
    }
}

impl LivenessIndex for MemorySensors {
    fn shards(&self) -> u32 {
        self.shards
    }

    async fn due(
        &self,
        shard: u32,
        now: Timestamp,
        limit: usize,
        cursor: Option<&Cursor>,
    ) -> Result<Page<SensorId>, StoreError> {
        page_limit(limit)?;
        let start = cursor.map(|cursor| open(cursor, shard)).transpose()?;
        let inner = self.lock();
        let now = milliseconds(now);
        let empty = std::collections::BTreeSet::new();
        let due = inner.due.get(shard as usize).unwrap_or(&empty).iter();
        let mut due = due
            .take_while(|(check_at, _)| *check_at <= now)
            .filter(|entry| start.as_ref().is_none_or(|start| *entry > start));
        let rows: Vec<_> = due.by_ref().take(limit).cloned().collect();
        let next = rows.last().filter(|_| due.next().is_some());
        let seal = |(check_at, id): &(i64, SensorId)| {
            let texts = [shard.to_string(), check_at.to_string()];
            seal_cursor(&["due", &texts[0], &texts[1], id.as_str()])
        };
        Ok(Page {
            next: next.map(seal),
            rows: rows.into_iter().map(|(_, id)| id).collect(),
        })
    }

    async fn are_live(&self, ids: &[SensorId], now: Timestamp) -> Result<Vec<bool>, StoreError> {
        let inner = self.lock();
        let now = from_milliseconds(milliseconds(now));
        let is_live = |id| {
            let kept = inner.sensors.get(id);
            kept.is_some_and(|kept| kept.state.is_awaited() && kept.state.deadline > now)
        };
        Ok(ids.iter().map(is_live).collect())
    }

    async fn rearm(&self, id: &SensorId) -> Result<CheckOutcome, StoreError> {
        let mut inner = self.lock();
        let kept = inner.sensors.get(id);
        let Some(kept) = kept.filter(|kept| kept.state.is_awaited()) else {
            return Ok(CheckOutcome::Gone);
        };
        let mut state = kept.state.clone();
        state.check_at = Some(state.deadline);
        inner.write(id, state);
        Ok(CheckOutcome::Rearmed)
    }

    async fn check(&self, id: &SensorId, now: Timestamp) -> Result<CheckOutcome, StoreError> {
        let mut inner = self.lock();
        let now = from_milliseconds(milliseconds(now));
        let Some(kept) = inner.sensors.get(id) else {
            return Ok(CheckOutcome::Gone);
        };
        let mut state = kept.state.clone();
        if !state.is_awaited() {
            inner.figures.rejected += 1;
            if state.check_at.take().is_some() {
                inner.write(id, state);
            }
            return Ok(CheckOutcome::Gone);
        }
        if state.deadline > now {
            inner.figures.rejected += 1;
            state.check_at = Some(state.deadline);
            inner.write(id, state);
            return Ok(CheckOutcome::Rearmed);
        }
        state.connection = Connection::Lost;
        state.lost_at = Some(now);
        state.contacts += 1;
        state.check_at = None;
        inner.write(id, state);
        Ok(CheckOutcome::Lost)
    }
}

fn open(cursor: &Cursor, of: u32) -> Result<(i64, SensorId), StoreError> {
    let other = || StoreError::Invalid("the cursor belongs to another listing".to_owned());
    let parts = open_cursor(cursor).map_err(|_| other())?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts[..] {
        ["due", shard, check_at, id] if shard == of.to_string() => {
            let check_at = check_at.parse().map_err(|_| other())?;
            Ok((check_at, SensorId::new(id).map_err(|_| other())?))
        }
        _ => Err(other()),
    }
}
