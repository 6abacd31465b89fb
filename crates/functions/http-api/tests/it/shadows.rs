//! `/v1/shadows`, route by route.

use serde_json::json;

use crate::support::TestApi;

const LAMP: &str = "/v1/shadows/lamp-7";

#[tokio::test]
async fn a_report_and_a_desire_are_merged_and_read_back() {
    let api = TestApi::start().await;
    let desired = api
        .patch(&format!("{LAMP}/desired"), r#"{"led":"on","fan":2}"#)
        .await;
    assert_eq!(desired.ok(200)["version"], 1);
    let response = api
        .patch(&format!("{LAMP}/reported"), r#"{"led":"on","watt":4.50}"#)
        .await;
    assert_eq!(response.header("etag"), Some("\"1\""));
    let reported = response.ok(200);
    assert_eq!(reported["id"], "lamp-7");
    assert_eq!(reported["name"], "main");
    assert_eq!(reported["written"], true);
    assert_eq!(reported["acknowledged"], json!(["/led"]));
    assert_eq!(reported["verdicts"][0]["pointer"], "/led");
    assert_eq!(reported["verdicts"][0]["verdict"], "added");

    let response = api.get(LAMP).await;
    assert_eq!(response.header("etag"), Some("\"r1.d2\""));
    assert_eq!(response.header("cache-control"), Some("private, no-cache"));
    let shadow = response.ok(200);
    assert_eq!(
        shadow["reported"]["document"],
        json!({"led": "on", "watt": 4.5})
    );
    assert_eq!(shadow["reported"]["version"], 1);
    assert_eq!(shadow["reported"]["timestamp"], "2026-01-31T12:00:00Z");
    assert_eq!(shadow["desired"]["document"], json!({"fan": 2}));
    assert_eq!(shadow["delta"], json!({"fan": 2}));

    let delta = api.get(&format!("{LAMP}/delta")).await.ok(200);
    assert_eq!(delta["delta"], json!({"fan": 2}));
    assert_eq!(delta["reportedVersion"], 1);
    assert_eq!(delta["desiredVersion"], 2);

    let again = api
        .patch(&format!("{LAMP}/reported"), r#"{"led":"on"}"#)
        .await;
    assert_eq!(again.ok(200)["written"], false);
    api.delete(LAMP).await.ok(204);
    api.get(LAMP).await.problem(404, "NotFound");
    api.get(&format!("{LAMP}/delta"))
        .await
        .problem(404, "NotFound");
    api.delete(LAMP).await.ok(204);
}

#[tokio::test]
async fn named_shadows_are_separate() {
    let api = TestApi::start().await;
    let path = "/v1/shadows/lamp-7/light";
    api.patch(&format!("{path}/reported"), r#"{"led":1}"#)
        .await
        .ok(200);
    api.patch(&format!("{path}/desired"), r#"{"led":2}"#)
        .await
        .ok(200);
    assert_eq!(api.get(path).await.ok(200)["name"], "light");
    let delta = api.get(&format!("{path}/delta")).await.ok(200);
    assert_eq!(delta["delta"], json!({"led": 2}));
    api.get(LAMP).await.problem(404, "NotFound");
    api.delete(path).await.ok(204);
    api.get(path).await.problem(404, "NotFound");
}

#[tokio::test]
async fn numbers_are_exact() {
    let api = TestApi::start().await;
    let document = r#"{"big":9007199254740993,"long":12345678901234567890123456789012345678,"small":0.000000000000000000000000000000000000012345}"#;
    api.patch(&format!("{LAMP}/reported"), document)
        .await
        .ok(200);
    let response = api.get(LAMP).await;
    for digits in ["9007199254740993", "12345678901234567890123456789012345678"] {
        assert!(response.text.contains(digits), "{}", response.text);
    }
    let exact = "1.2345e-38";
    assert!(
        response.text.contains(exact) || response.text.contains("000012345"),
        "{}",
        response.text
    );
    let rejected = api
        .patch(
            &format!("{LAMP}/reported"),
            r#"{"n":123456789012345678901234567890123456789}"#,
        )
        .await;
    rejected.problem(400, "Invalid");
}

#[tokio::test]
async fn any_text_is_a_device_id() {
    let api = TestApi::start().await;
    for (path, id) in [
        ("My%20House%23Basement%23Lamp", "My House#Basement#Lamp"),
        ("a%2Fb", "a/b"),
        ("a%252Fb", "a%2Fb"),
        ("Pozna%C5%84", "Poznań"),
        ("%3F%26%3D%2B+", "?&=++"),
        ("%00%0A", "\0\n"),
        ("reported", "reported"),
    ] {
        let path = format!("/v1/shadows/{path}");
        let document = json!({"id": id}).to_string();
        let updated = api.patch(&format!("{path}/reported"), &document).await;
        assert_eq!(updated.ok(200)["id"], id);
        assert_eq!(
            api.get(&path).await.ok(200)["reported"]["document"]["id"],
            id
        );
        api.delete(&path).await.ok(204);
    }
}

#[tokio::test]
async fn options_of_an_update_are_in_the_query() {
    let api = TestApi::start().await;
    let reported = |query: &str| format!("{LAMP}/reported?{query}");
    api.patch(&reported(""), r#"{"a":1,"b":2}"#).await.ok(200);
    api.patch(
        &reported("mode=ClientIsMaster&clientToken=job-1&tz=Europe/Stockholm"),
        r#"{"a":1}"#,
    )
    .await
    .ok(200);
    let shadow = api.get(LAMP).await.ok(200);
    assert_eq!(shadow["reported"]["document"], json!({"a": 1}));
    assert_eq!(shadow["reported"]["clientToken"], "job-1");
    assert_eq!(shadow["reported"]["tz"], "Europe/Stockholm");
    api.patch(&format!("{LAMP}/desired"), r#"{"a":1}"#)
        .await
        .ok(200);
    let kept = api
        .patch(&reported("ignoreDesired=true"), r#"{"a":1}"#)
        .await;
    assert_eq!(kept.ok(200)["acknowledged"], json!([]));
    for query in [
        "mode=Other",
        "mode=",
        "tz=nowhere!",
        "clientToken=",
        "a=b",
        "mode=Patch&mode=Patch",
        "ignoreDesired=perhaps",
    ] {
        api.patch(&reported(query), "{}")
            .await
            .problem(400, "InvalidQuery");
    }
}

#[tokio::test]
async fn conditional_writes_require_the_version() {
    let api = TestApi::start().await;
    let path = format!("{LAMP}/reported");
    let with = |name: &'static str, value: &'static str, body: &'static str| {
        api.request("PATCH", &path)
            .header(name, value)
            .json(body)
            .send()
    };
    with("if-match", "*", r#"{"a":0}"#)
        .await
        .problem(412, "PreconditionFailed");
    with("if-match", "\"1\"", r#"{"a":0}"#)
        .await
        .problem(412, "PreconditionFailed");
    with("if-none-match", "*", r#"{"a":1}"#).await.ok(200);
    with("if-none-match", "*", r#"{"a":0}"#)
        .await
        .problem(412, "PreconditionFailed");
    with("if-match", "\"1\"", r#"{"a":2}"#).await.ok(200);
    with("if-match", "\"1\"", r#"{"a":0}"#)
        .await
        .problem(412, "PreconditionFailed");
    with("if-match", "W/\"2\"", r#"{"a":0}"#)
        .await
        .problem(412, "PreconditionFailed");
    with("if-match", "\"02\"", r#"{"a":0}"#)
        .await
        .problem(412, "PreconditionFailed");
    with("if-match", "\"1\", \"2\"", r#"{"a":3}"#).await.ok(200);
    let response = with("if-match", "*", r#"{"a":4}"#).await;
    assert_eq!(response.header("etag"), Some("\"4\""));
    with("if-match", "4", r#"{"a":0}"#)
        .await
        .problem(400, "InvalidHeader");
    with("if-none-match", "\"4\"", r#"{"a":0}"#)
        .await
        .problem(400, "InvalidHeader");
    assert_eq!(api.get(LAMP).await.ok(200)["reported"]["document"]["a"], 4);
}

#[tokio::test]
async fn a_zone_stays_until_a_writer_names_another() {
    let api = TestApi::start().await;
    let (reported, desired) = (format!("{LAMP}/reported"), format!("{LAMP}/desired"));
    let zones = async || {
        let shadow = api.get(LAMP).await.ok(200);
        ["reported", "desired"].map(|part| shadow[part]["tz"].clone())
    };
    api.patch(&format!("{reported}?tz=Asia/Tokyo"), r#"{"a":1}"#)
        .await
        .ok(200);
    api.patch(&format!("{desired}?tz=Europe/Oslo"), r#"{"a":2,"b":3}"#)
        .await
        .ok(200);
    // The second acknowledges a desired value.
    for report in [r#"{"c":1}"#, r#"{"a":2}"#] {
        api.patch(&reported, report).await.ok(200);
        assert_eq!(zones().await, ["Asia/Tokyo", "Europe/Oslo"]);
    }
    api.patch(&desired, r#"{"b":4}"#).await.ok(200);
    assert_eq!(zones().await, ["Asia/Tokyo", "Europe/Oslo"]);
    api.patch(&format!("{reported}?tz=UTC"), r#"{"c":2}"#)
        .await
        .ok(200);
    assert_eq!(zones().await, ["UTC", "Europe/Oslo"]);
}

#[tokio::test]
async fn conditional_deletes_require_the_version() {
    let api = TestApi::start().await;
    let with = |value: &'static str| api.request("DELETE", LAMP).header("if-match", value).send();
    with("*").await.problem(412, "PreconditionFailed");
    api.patch(&format!("{LAMP}/reported"), r#"{"a":1}"#)
        .await
        .ok(200);
    with("\"r2.d0\"").await.problem(412, "PreconditionFailed");
    with("\"1\"").await.problem(412, "PreconditionFailed");
    with("\"r1.d0\"").await.ok(204);
    api.patch(&format!("{LAMP}/reported"), r#"{"a":1}"#)
        .await
        .ok(200);
    api.patch(&format!("{LAMP}/desired"), r#"{"b":1}"#)
        .await
        .ok(200);
    with("\"r1.d0\"").await.problem(412, "PreconditionFailed");
    with("*").await.ok(204);
    api.get(LAMP).await.problem(404, "NotFound");
    let sent_request = api
        .request("DELETE", LAMP)
        .header("if-none-match", "*")
        .send();
    sent_request.await.problem(400, "InvalidHeader");
}

#[tokio::test]
async fn if_none_match_returns_not_modified() {
    let api = TestApi::start().await;
    api.patch(&format!("{LAMP}/reported"), r#"{"a":1}"#)
        .await
        .ok(200);
    for path in [LAMP.to_owned(), format!("{LAMP}/delta")] {
        let tag = api.get(&path).await.header("etag").unwrap().to_owned();
        for same in [tag.clone(), format!("\"x\", W/{tag}"), "*".to_owned()] {
            let response = api
                .request("GET", &path)
                .header("if-none-match", &same)
                .send()
                .await;
            assert_eq!(
                (response.status, response.text.as_str()),
                (304, ""),
                "{same}"
            );
            assert_eq!(response.header("etag"), Some(tag.as_str()));
        }
        let response = api
            .request("GET", &path)
            .header("if-none-match", "\"r9.d0\"")
            .send()
            .await;
        response.ok(200);
    }
}
