//! What the routes need of sensors.

use antumbra_service::notifications::BoxFuture;
use antumbra_service::paging::{Cursor, Page};
use antumbra_service::sensors::{
    Location, LocationPrefix, Reading, ReadingStore, RegisteredSensor, Sensor, SensorError,
    SensorId, SensorPatch, SensorStore, SensorWithState, Sensors, State, Version,
};
use antumbra_shadow::Timestamp;

type Outcome<'a, T> = BoxFuture<'a, Result<T, SensorError>>;

/// The use cases of sensors that the routes call; see [`Sensors`] for each.
#[allow(missing_docs)]
pub trait SensorService: Send + Sync {
    fn register(&self, sensor: Sensor) -> Outcome<'_, RegisteredSensor>;
    fn get<'a>(&'a self, id: &'a SensorId) -> Outcome<'a, RegisteredSensor>;
    fn state<'a>(&'a self, id: &'a SensorId) -> Outcome<'a, State>;
    fn update<'a>(
        &'a self,
        id: &'a SensorId,
        patch: SensorPatch,
        expected: Option<Version>,
    ) -> Outcome<'a, RegisteredSensor>;
    fn move_to<'a>(
        &'a self,
        id: &'a SensorId,
        location: Location,
        expected: Option<Version>,
    ) -> Outcome<'a, RegisteredSensor>;
    fn unregister<'a>(&'a self, id: &'a SensorId, expected: Option<Version>) -> Outcome<'a, ()>;
    fn in_place<'a>(
        &'a self,
        place: &'a LocationPrefix,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<SensorWithState>>;
    fn all<'a>(
        &'a self,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<SensorWithState>>;
    fn save<'a>(&'a self, id: &'a SensorId, readings: &'a [Reading]) -> Outcome<'a, ()>;
    fn latest<'a>(
        &'a self,
        id: &'a SensorId,
        most: Option<usize>,
    ) -> Outcome<'a, (RegisteredSensor, Vec<Reading>)>;
    fn between<'a>(
        &'a self,
        id: &'a SensorId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<Reading>>;
}

impl<S: SensorStore + ReadingStore> SensorService for Sensors<S> {
    fn register(&self, sensor: Sensor) -> Outcome<'_, RegisteredSensor> {
        Box::pin(self.register(sensor))
    }

    fn get<'a>(&'a self, id: &'a SensorId) -> Outcome<'a, RegisteredSensor> {
        Box::pin(self.get(id))
    }

    fn state<'a>(&'a self, id: &'a SensorId) -> Outcome<'a, State> {
        Box::pin(self.state(id))
    }

    fn update<'a>(
        &'a self,
        id: &'a SensorId,
        patch: SensorPatch,
        expected: Option<Version>,
    ) -> Outcome<'a, RegisteredSensor> {
        Box::pin(self.update(id, patch, expected))
    }

    fn move_to<'a>(
        &'a self,
        id: &'a SensorId,
        location: Location,
        expected: Option<Version>,
    ) -> Outcome<'a, RegisteredSensor> {
        Box::pin(self.move_to(id, location, expected))
    }

    fn unregister<'a>(&'a self, id: &'a SensorId, expected: Option<Version>) -> Outcome<'a, ()> {
        Box::pin(self.unregister(id, expected))
    }

    fn in_place<'a>(
        &'a self,
        place: &'a LocationPrefix,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<SensorWithState>> {
        Box::pin(self.in_place(place, limit, cursor))
    }

    fn all<'a>(
        &'a self,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<SensorWithState>> {
        Box::pin(self.all(limit, cursor))
    }

    fn save<'a>(&'a self, id: &'a SensorId, readings: &'a [Reading]) -> Outcome<'a, ()> {
        Box::pin(self.save(id, readings))
    }

    fn latest<'a>(
        &'a self,
        id: &'a SensorId,
        most: Option<usize>,
    ) -> Outcome<'a, (RegisteredSensor, Vec<Reading>)> {
        Box::pin(self.latest(id, most))
    }

    fn between<'a>(
        &'a self,
        id: &'a SensorId,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        cursor: Option<&'a Cursor>,
    ) -> Outcome<'a, Page<Reading>> {
        Box::pin(self.between(id, from, to, limit, cursor))
    }
}
