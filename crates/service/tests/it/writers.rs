//! Many writers at once on the store in memory.

use antumbra_memory::MemoryShadows;
use antumbra_service::shadows::Layout;
use antumbra_testkit::writers::{
    all_acknowledged_reports_are_kept, unconditional_reports_all_succeed, write_times_increase,
};

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

#[tokio::test(start_paused = true)]
async fn reports_without_an_expected_version_are_retried_until_they_succeed() {
    for layout in [Layout::Separate, Layout::Combined] {
        unconditional_reports_all_succeed(MemoryShadows::new(layout)).await;
    }
}

#[tokio::test]
async fn write_times_increase_whatever_the_clocks() {
    for seed in 0..20 {
        for layout in [Layout::Separate, Layout::Combined] {
            write_times_increase(MemoryShadows::new(layout), seed).await;
        }
    }
}
