//! Where clients, links and deliveries lie.

use std::collections::HashMap;

use antumbra_service::clients::ClientId;
use antumbra_service::deliveries::DeliveryId;
use antumbra_service::sensors::SensorId;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::shadows::{PARTITION_KEY, SORT_KEY};

/// An item, or a key.
pub(crate) type Item = HashMap<String, AttributeValue>;

pub(crate) const CLIENT: &str = "CLIENT#";
pub(crate) const SENSOR: &str = "SENSOR#";
pub(crate) const DELIVERY: &str = "DELIVERY#";
pub(crate) const INFO: &str = "CLIENTINFO";
pub(crate) const SECRETS: &str = "CLIENTSECRETS";
pub(crate) const SENSOR_INFO: &str = "SENSORINFO";
pub(crate) const SENSOR_STATE: &str = "STATE";
/// Where clients lie in the index of what is listed.
pub(crate) const CLIENTS: &str = "CLIENTS";

/// A client's partition.
pub(crate) fn client(id: &ClientId) -> String {
    format!("{CLIENT}{id}")
}

/// A sensor's partition.
pub(crate) fn sensor(id: &SensorId) -> String {
    format!("{SENSOR}{id}")
}

/// Where a sensor's deliveries lie in the index of what is listed.
pub(crate) fn deliveries_of(id: &SensorId) -> String {
    format!("DELIVERIES#{id}")
}

/// The sort key of a delivery.
pub(crate) fn delivery(id: &DeliveryId) -> String {
    format!("{DELIVERY}{}", id.order())
}

/// A primary key.
pub(crate) fn key(partition: String, sort: impl Into<String>) -> Item {
    Item::from([
        (PARTITION_KEY.to_owned(), AttributeValue::S(partition)),
        (SORT_KEY.to_owned(), AttributeValue::S(sort.into())),
    ])
}

/// A client's own item.
pub(crate) fn client_key(id: &ClientId) -> Item {
    key(client(id), INFO)
}

/// The item of a client's secrets.
pub(crate) fn secrets_key(id: &ClientId) -> Item {
    key(client(id), SECRETS)
}

/// A link, as it lies with the sensor.
pub(crate) fn link_key(client: &ClientId, of: &SensorId) -> Item {
    key(sensor(of), format!("{CLIENT}{client}"))
}

/// The same, as it lies with the client.
pub(crate) fn mirror_key(id: &ClientId, of: &SensorId) -> Item {
    key(client(id), format!("{SENSOR}{of}"))
}
