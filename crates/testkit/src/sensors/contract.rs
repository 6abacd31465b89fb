//! The laws of the ports of sensors, one test each.
//!
//! A law is a function over a fresh, empty store. [`crate::sensor_contract!`] makes a test of each. What
//! a law says is its name and, where that is not enough, its documentation.

#![allow(missing_docs)]

mod liveness;
mod places;
mod readings;
mod registry;
mod states;

pub use liveness::*;
pub use places::*;
pub use readings::*;
pub use registry::*;
pub use states::*;

use antumbra_service::sensors::{LivenessIndex, ReadingStore, SensorStore, StateStore};

/// A store that keeps all of it.
pub trait Store: SensorStore + ReadingStore + StateStore + LivenessIndex {}

impl<S: SensorStore + ReadingStore + StateStore + LivenessIndex> Store for S {}

/// Makes a `#[tokio::test]` of every law. Takes the full path of an `async fn() -> impl Store` that gives
/// a fresh, empty store.
#[macro_export]
macro_rules! sensor_contract {
    ($fresh:path) => {
        $crate::sensor_contract! { @laws $fresh;
            a_registered_sensor_comes_back,
            the_same_again_changes_nothing_and_other_data_is_refused,
            of_many_who_register_at_once_one_does,
            what_is_not_registered_is_not_found,
            a_change_is_of_the_version_that_was_read,
            a_change_of_copies_reaches_the_state,
            an_id_cannot_change,
            what_is_unregistered_is_gone_with_its_state,
            an_id_registered_again_starts_anew,
            a_stranger_with_the_same_version_is_not_changed,
            sensors_are_listed_by_place,
            floor_two_is_not_floor_twenty_one,
            two_sensors_in_one_room_are_both_listed,
            parts_may_hold_anything,
            a_moved_sensor_is_listed_where_it_is,
            rows_tell_the_latest_state,
            pages_give_each_sensor_once_and_in_order,
            a_sensor_that_moves_while_pages_are_turned_hides_no_other,
            all_sensors_are_listed_by_id_wherever_they_are,
            a_cursor_serves_the_listing_it_came_from_alone,
            a_page_nobody_can_give_is_invalid,
            a_saved_reading_is_the_latest,
            the_latest_readings_come_newest_first_with_the_sensor,
            readings_of_strangers_are_refused,
            two_readings_in_one_second_are_two,
            the_same_reading_again_is_one,
            any_offset_sorts_right,
            readings_are_typed_and_exact,
            many_readings_are_saved_at_once,
            readings_between_two_times_come_in_pages,
            the_first_signal_is_a_baseline,
            the_same_value_changes_nothing_but_the_contact,
            another_value_is_a_change,
            a_late_signal_is_stale_and_heard,
            a_newer_value_that_was_sent_earlier_counts_without_contact,
            a_duplicate_is_one,
            a_signal_of_a_stranger_is_nobodys,
            a_switch_knows_since_when,
            other_values_are_counted_too,
            signals_of_one_millisecond_are_one_write_each,
            readings_of_signals_are_kept_once,
            nobody_is_lost_before_the_deadline,
            a_silent_sensor_is_lost_once,
            a_lost_sensor_that_speaks_is_restored_before_it_changes,
            a_stale_signal_restores_too,
            a_signal_from_before_the_loss_does_not_restore,
            a_sensor_never_seen_is_told_once_and_greeted,
            what_is_due_comes_in_pages_by_shard,
            a_shorter_silence_counts_from_the_last_contact,
            a_changed_silence_of_a_lost_sensor_is_forgotten,
            two_sweeps_at_once_lose_each_sensor_once,
        }
    };
    (@laws $fresh:path; $($law:ident,)*) => {
        $(
            #[tokio::test]
            async fn $law() {
                $crate::sensors::contract::$law($fresh().await).await;
            }
        )*
    };
}
