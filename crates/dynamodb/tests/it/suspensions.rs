//! Records of failing targets.

use antumbra_dynamodb::{DynamoDbSuspensions, MAIN, TableDefinition};
use antumbra_testkit::dynamodb::{Endpoint, address, client, table_name};

#[tokio::test]
async fn suspensions_keep_the_contract() {
    let endpoint = Endpoint::start(address()).await;
    let database = client(&endpoint);
    let name = table_name();
    let table = TableDefinition {
        name: &name,
        ..MAIN
    };
    table.ensure(&database).await.unwrap();
    antumbra_testkit::suspensions::contract(&DynamoDbSuspensions::new(database, &name)).await;
}
