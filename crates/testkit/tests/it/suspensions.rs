//! The suspensions in memory keep the contract.

use antumbra_testkit::suspensions::{MemorySuspensions, contract};

#[tokio::test]
async fn memory_keeps_the_contract() {
    contract(&MemorySuspensions::default()).await;
}
