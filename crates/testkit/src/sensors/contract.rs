//! The contract of the sensor ports, one function per law.
//!
//! Each takes a new, empty store. [`crate::sensor_contract!`] makes a test of each.

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

/// A store that implements all sensor ports.
pub trait Store: SensorStore + ReadingStore + StateStore + LivenessIndex {}

impl<S: SensorStore + ReadingStore + StateStore + LivenessIndex> Store for S {}

/// Makes a `#[tokio::test]` of every law. Takes the full path of an `async fn() -> impl Store` that creates
/// an empty store.
#[macro_export]
macro_rules! sensor_contract {
    ($fresh:path) => {
        $crate::sensor_contract! { @laws $fresh;
            a_registered_sensor_is_found,
            a_second_registration_is_refused,
            a_sensor_may_have_no_location,
            sensors_are_filtered_by_id_type_and_connection,
            the_latest_readings_are_paged_newest_first,
            one_of_many_concurrent_registrations_succeeds,
            an_unregistered_sensor_is_not_found,
            a_change_requires_the_version_that_was_read,
            copied_attributes_of_the_state_follow_a_change,
            an_id_cannot_change,
            unregistering_deletes_the_state,
            a_sensor_registered_again_has_no_history,
            another_registration_with_the_same_version_is_not_changed,
            sensors_are_listed_by_location,
            floor_two_is_not_floor_twenty_one,
            two_sensors_in_one_room_are_both_listed,
            location_parts_may_contain_any_character,
            a_moved_sensor_is_listed_at_its_new_location,
            rows_contain_the_latest_state,
            pages_contain_each_sensor_once_in_order,
            a_sensor_that_moves_between_pages_hides_no_other,
            all_sensors_are_listed_by_id,
            a_cursor_is_valid_only_for_its_own_listing,
            an_invalid_page_request_is_rejected,
            a_saved_reading_is_the_latest,
            the_latest_readings_are_newest_first,
            readings_of_unknown_sensors_are_rejected,
            two_readings_in_one_second_are_two,
            a_repeated_reading_is_stored_once,
            readings_sort_correctly_for_any_utc_offset,
            readings_are_typed_and_exact,
            many_readings_are_saved_at_once,
            readings_between_two_times_are_paged,
            the_first_signal_is_a_baseline,
            an_unchanged_value_updates_only_the_contact,
            a_different_value_is_a_change,
            a_late_signal_is_stale_but_counts_as_contact,
            a_newer_value_sent_earlier_does_not_move_the_contact_back,
            a_duplicate_signal_is_recorded_once,
            a_signal_of_an_unknown_sensor_is_not_recorded,
            a_state_records_since_when_it_holds,
            non_binary_values_are_counted,
            signals_of_one_millisecond_are_one_write_each,
            readings_of_signals_are_stored_once,
            no_sensor_is_lost_before_its_deadline,
            a_silent_sensor_is_lost_once,
            a_signal_restores_a_lost_sensor_before_it_changes_the_value,
            a_stale_signal_restores_a_lost_sensor,
            a_signal_from_before_the_loss_does_not_restore,
            a_sensor_never_seen_is_reported_once,
            due_sensors_are_paged_by_shard,
            a_shorter_silence_counts_from_the_last_contact,
            a_changed_silence_timeout_does_not_affect_a_lost_sensor,
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
