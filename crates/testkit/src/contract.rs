//! The laws of the shadow persistence, one test each.
//!
//! A law is a function over a fresh, empty store of either layout. [`crate::shadow_contract!`] makes a test of
//! each, twice. What a law says is its name and, where that is not enough, its documentation.

#![allow(missing_docs)]

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
/// `async fn(Layout) -> impl Persistence` that gives a fresh, empty store.
#[macro_export]
macro_rules! shadow_contract {
    ($fresh:path) => {
        $crate::shadow_contract! { @layouts $fresh;
            a_first_write_creates_version_one,
            a_write_of_the_stored_version_raises_it_by_one,
            a_write_of_another_version_is_a_conflict_and_changes_nothing,
            creating_over_an_existing_one_is_a_conflict,
            writing_the_same_twice_is_a_conflict,
            a_write_over_what_is_absent_is_a_conflict_and_creates_nothing,
            both_documents_are_written_together_or_not_at_all,
            a_conflict_of_both_speaks_of_reported,
            one_document_alone_is_written_where_they_lie_apart,
            both_documents_have_one_version_where_they_lie_together,
            a_write_of_nothing_is_invalid,
            a_version_no_document_can_have_is_invalid,
            an_empty_name_is_invalid_at_any_depth,
            a_name_without_end_is_invalid,
            a_timestamp_out_of_range_is_invalid,
            the_stamp_of_the_last_writer_is_kept_whole,
            documents_come_back_exactly,
            a_document_at_every_limit_is_kept,
            the_largest_item_fits_and_one_byte_more_does_not,
            keys_of_full_length_are_kept,
            names_that_look_alike_are_apart,
            what_is_absent_is_not_found,
            a_read_gives_what_was_asked_for_and_no_more,
            a_strong_read_sees_every_answered_write,
            what_was_read_does_not_change,
            many_are_read_in_the_order_asked,
            the_same_shadow_can_be_read_twice_at_once,
            a_delete_of_anything_always_succeeds,
            a_delete_of_a_version_is_conditional,
            both_documents_are_deleted_together_or_not_at_all,
            one_document_alone_is_deleted_where_they_lie_apart,
            a_delete_of_nothing_is_invalid,
            what_was_deleted_goes_on_from_its_version,
            what_was_deleted_long_ago_starts_again_at_one,
            of_what_was_deleted_only_the_version_is_read,
            what_is_created_has_a_version_above_the_floor,
            a_write_holds_the_other_document_fixed,
            the_times_of_leaves_are_kept_with_the_document,
            an_empty_batch_gives_nothing,
            different_shadows_are_independent,
            the_same_shadow_is_written_in_the_order_asked,
            the_same_shadow_is_deleted_in_the_order_asked,
            of_many_writers_of_one_version_one_wins,
            writers_who_read_again_all_get_through,
            a_snapshot_is_of_one_instant,
            nothing_is_listed_of_an_empty_store,
            a_listing_of_one_id_gives_its_documents_alone,
            a_listing_says_version_time_and_token,
            what_was_deleted_is_not_listed,
            a_listing_of_all_gives_each_document_once_whatever_the_page,
            a_listing_survives_changes_between_its_pages,
            a_cursor_serves_the_listing_it_came_from_alone,
            a_listing_nobody_can_give_is_invalid,
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
