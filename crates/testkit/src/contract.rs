//! The contract of `ShadowStore`, one function per law.
//!
//! Each takes a new, empty store. [`crate::shadow_contract!`] makes two tests of each, one per layout.

mod batch;
mod concurrent;
mod delete;
mod exact;
mod list;
mod read;
mod write;

pub use batch::*;
pub use concurrent::*;
pub use delete::*;
pub use exact::*;
pub use list::*;
pub use read::*;
pub use write::*;

#[doc(hidden)]
pub use antumbra_service::shadows::Layout;

/// Makes a `#[tokio::test]` of every law for both layouts. Takes the full path of an
/// `async fn(Layout) -> impl ShadowStore` that creates an empty store.
#[macro_export]
macro_rules! shadow_contract {
    ($fresh:path) => {
        $crate::shadow_contract! { @layouts $fresh;
            the_first_write_creates_version_one,
            a_write_raises_the_version_by_one,
            a_write_with_another_version_is_a_conflict,
            creating_an_existing_document_is_a_conflict,
            repeating_a_write_is_a_conflict,
            updating_an_absent_document_is_a_conflict,
            both_documents_are_written_together_or_not_at_all,
            a_conflict_of_both_documents_names_reported,
            the_separate_layout_writes_one_document_alone,
            the_combined_layout_has_one_version,
            an_empty_write_is_invalid,
            an_impossible_version_is_invalid,
            an_empty_member_name_is_invalid_at_any_depth,
            an_overlong_member_name_is_invalid,
            a_timestamp_out_of_range_is_invalid,
            the_last_writer_is_stored,
            documents_round_trip_exactly,
            a_document_at_every_limit_is_stored,
            an_item_of_the_maximum_size_fits,
            keys_of_maximum_length_are_stored,
            similar_names_are_distinct,
            an_absent_shadow_is_not_found,
            a_read_returns_only_the_requested_documents,
            a_strong_read_sees_every_completed_write,
            a_snapshot_does_not_change_after_the_read,
            reads_return_results_in_request_order,
            one_batch_may_read_a_shadow_twice,
            an_unconditional_delete_always_succeeds,
            a_delete_with_a_version_is_conditional,
            both_documents_are_deleted_together_or_not_at_all,
            the_separate_layout_deletes_one_document_alone,
            a_delete_can_require_a_version_of_the_other_document,
            an_empty_delete_is_invalid,
            a_recreated_document_continues_its_versions,
            an_expired_tombstone_restarts_versions_at_one,
            a_document_is_created_again_only_later_than_it_was_deleted,
            only_the_version_of_a_deleted_document_is_read,
            a_created_document_has_at_least_the_minimum_version,
            a_write_can_require_a_version_of_the_other_document,
            leaf_times_are_stored_with_the_document,
            times_alone_are_written_without_a_new_version,
            an_empty_batch_returns_no_results,
            different_shadows_are_independent,
            writes_to_one_shadow_keep_their_order,
            deletes_of_one_shadow_keep_their_order,
            one_of_many_concurrent_writers_wins,
            concurrent_writers_that_retry_all_succeed,
            a_snapshot_is_consistent,
            an_empty_store_lists_nothing,
            a_listing_of_one_id_contains_only_its_documents,
            a_listing_contains_version_time_and_token,
            deleted_documents_are_not_listed,
            a_listing_contains_each_document_once,
            a_listing_tolerates_changes_between_pages,
            a_cursor_is_valid_only_for_its_own_listing,
            an_invalid_limit_or_cursor_is_rejected,
            shadows_are_listed_by_prefix_in_order,
            shadows_are_listed_within_prefixes,
            deleted_shadows_are_not_listed_by_prefix,
            shadows_of_any_name_are_listed_by_prefix,
            a_cursor_of_a_prefix_is_valid_only_for_it,
        }
    };
    (@layouts $fresh:path; $($law:ident,)*) => {
        mod separate {
            $(
                #[tokio::test]
                async fn $law() {
                    $crate::contract::$law($fresh($crate::contract::Layout::Separate).await).await;
                }
            )*
        }
        mod combined {
            $(
                #[tokio::test]
                async fn $law() {
                    $crate::contract::$law($fresh($crate::contract::Layout::Combined).await).await;
                }
            )*
        }
    };
}
