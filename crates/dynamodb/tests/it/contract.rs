//! Contract of the shadow store, on DynamoDB.

use antumbra_dynamodb::DynamoDbShadows;
use antumbra_service::shadows::Layout;

use crate::store::Store;

pub(crate) async fn fresh(layout: Layout) -> DynamoDbShadows {
    Store::fresh(layout).await.shadows
}

antumbra_testkit::shadow_contract!(crate::contract::fresh);
