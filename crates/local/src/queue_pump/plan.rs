//! Decides which messages are deleted after an invocation. Pure.

use crate::batch_response::BatchResult;

/// Positions of the messages to delete. A response that names a message which is not in the batch is invalid as a
/// whole: nothing is deleted.
pub(crate) fn done(ids: &[&str], result: &BatchResult) -> Vec<usize> {
    let failed = match result {
        BatchResult::Success => &[][..],
        BatchResult::Invalid => return Vec::new(),
        BatchResult::Failures(failed) => failed,
    };
    if !failed.iter().all(|id| ids.contains(&id.as_str())) {
        return Vec::new();
    }
    let done = |&position: &usize| !failed.iter().any(|id| id == ids[position]);
    (0..ids.len()).filter(done).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn successful_messages_are_deleted() {
        let failures =
            |ids: &[&str]| BatchResult::Failures(ids.iter().map(ToString::to_string).collect());
        let cases: &[(BatchResult, &[usize])] = &[
            (BatchResult::Success, &[0, 1, 2]),
            (BatchResult::Invalid, &[]),
            (failures(&["b"]), &[0, 2]),
            (failures(&["c", "a", "a"]), &[1]),
            (failures(&["a", "b", "c"]), &[]),
            (failures(&["b", "stranger"]), &[]),
        ];
        for (result, expected) in cases {
            assert_eq!(&done(&["a", "b", "c"], result), expected, "{result:?}");
        }
    }
}
