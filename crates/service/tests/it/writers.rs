//! Many writers at once on the store in memory.

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::Layout;
use antumbra_testkit::writers::all_acknowledged_reports_are_kept;

#[tokio::test]
async fn of_one_shadow() {
    for seed in 0..10 {
        for layout in [Layout::Separate, Layout::Combined] {
            all_acknowledged_reports_are_kept(MemoryShadows::new(layout), 1, 12, seed).await;
        }
    }
}

#[tokio::test]
async fn of_many_shadows() {
    for seed in 0..10 {
        for layout in [Layout::Separate, Layout::Combined] {
            all_acknowledged_reports_are_kept(MemoryShadows::new(layout), 20, 12, seed).await;
        }
    }
}
