//! The pattern of sensor ids.

use antumbra_sensor_ingest::IdPattern;

#[test]
fn the_whole_id_must_match() {
    let locks: IdPattern = "^[A-Za-z0-9]{1,16}$".parse().unwrap();
    for (id, allowed) in [
        ("xa7v9Dfadr7H", true),
        ("0123456789aBcDeF", true),
        ("0123456789aBcDeF0", false),
        ("a-b", false),
        ("", false),
        ("a\n", false),
    ] {
        assert_eq!(locks.allows(id), allowed, "{id:?}");
    }
    let either: IdPattern = "a|b".parse().unwrap();
    assert!(either.allows("b") && !either.allows("ab") && !either.allows("b1"));
    assert!("(".parse::<IdPattern>().is_err());
    assert!("a)|(b".parse::<IdPattern>().is_err());
}
