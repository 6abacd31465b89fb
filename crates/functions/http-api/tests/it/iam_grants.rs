//! Grants of roles and users, by the ARN of a caller.

use antumbra_http_api::IamGrants;

const ROLE: &str = "arn:aws:iam::111122223333:role/dashboard";

#[test]
fn session_names_and_paths_do_not_identify_a_caller() {
    let grants = IamGrants::parse(&format!(r#"{{"{ROLE}": ["*"]}}"#)).unwrap();
    for arn in [
        ROLE,
        "arn:aws:iam::111122223333:role/teams/web/dashboard",
        "arn:aws:sts::111122223333:assumed-role/dashboard",
        "arn:aws:sts::111122223333:assumed-role/dashboard/anna",
        "arn:aws:sts::111122223333:assumed-role/dashboard/operator",
    ] {
        assert!(!grants.of_arn(arn).is_empty(), "{arn}");
    }
    for arn in [
        "arn:aws:iam::444455556666:role/dashboard",
        "arn:aws:sts::111122223333:assumed-role/other/dashboard",
        "arn:aws:iam::111122223333:user/dashboard",
        "arn:aws:iam::111122223333:root",
        "arn:aws:sts::111122223333:federated-user/dashboard",
        "nonsense",
        "",
    ] {
        assert!(grants.of_arn(arn).is_empty(), "{arn}");
    }
}

#[test]
fn unlisted_callers_have_no_grants() {
    let grants = format!(r#"{{"{ROLE}": ["shadows:read", "sensors:read:a:"]}}"#);
    let grants = IamGrants::parse(&grants).unwrap();
    assert_eq!(grants.of_arn(ROLE).iter().count(), 2);
    assert!(
        grants
            .of_arn("arn:aws:iam::111122223333:role/other")
            .is_empty()
    );
    assert!(IamGrants::parse("{}").unwrap().of_arn(ROLE).is_empty());
}

#[test]
fn one_mistake_rejects_the_file() {
    let sessions = ROLE
        .replace("iam::", "sts::")
        .replace("role/", "assumed-role/");
    for text in [
        "",
        "[]",
        r#"{"dashboard": []}"#,
        &format!(r#"{{"{ROLE}": "shadows:read"}}"#),
        &format!(r#"{{"{ROLE}": ["shadows:rea"]}}"#),
        &format!(r#"{{"{ROLE}": [], "{ROLE}": ["*"]}}"#),
        &format!(r#"{{"{ROLE}": [], "{sessions}": ["*"]}}"#),
    ] {
        assert!(IamGrants::parse(text).is_err(), "{text}");
    }
}
