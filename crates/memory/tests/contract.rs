//! The laws of the shadow persistence, in memory.

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::Layout;

async fn fresh(layout: Layout) -> MemoryShadows {
    MemoryShadows::new(layout)
}

antumbra_testkit::shadow_contract!(crate::fresh);
