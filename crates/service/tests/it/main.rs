//! The use cases through their public doors.

mod dispatch;
mod parent_faults;
mod updates;
