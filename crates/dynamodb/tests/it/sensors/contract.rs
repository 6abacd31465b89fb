//! Contract of the sensor ports, on DynamoDB.

use antumbra_dynamodb::DynamoDbSensors;

use super::Store;

pub(crate) async fn fresh() -> DynamoDbSensors {
    Store::fresh().await.sensors
}

antumbra_testkit::sensor_contract!(crate::sensors::contract::fresh);
