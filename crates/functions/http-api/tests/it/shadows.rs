//! `/v1/shadows`, route by route.

use std::time::Duration;

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
    api.clock.advance(Duration::from_secs(1));
    let response = api
        .patch(&format!("{LAMP}/reported"), r#"{"led":"on","watt":4.50}"#)
        .await;
    assert_eq!(response.header("etag"), Some("\"r1.d2\""));
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
    assert_eq!(shadow["reported"]["timestamp"], "2026-01-31T12:00:01Z");
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
    let path = "/v1/shadows/lamp-7/name/light";
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
async fn tags_are_parsed_as_rfc_9110_defines_them() {
    let api = TestApi::start().await;
    let path = format!("{LAMP}/reported");
    api.patch(&path, r#"{"a":1}"#).await.ok(200);
    let with = |tags: &'static str, body: &'static str| {
        let request = api.request("PATCH", &path).header("if-match", tags);
        request.json(body).send()
    };
    for tags in ["*", "\"1\"", "\"3\" ,\"1\",\"\"", "W/\"1\", \"1\""] {
        // This changes nothing, so the version stays 1.
        with(tags, r#"{"a":1}"#).await.ok(200);
    }
    for tags in ["\"3\"", "\"3\" ,\"r2.d1\",\"\"", "W/\"1\", \"4\""] {
        let refused = with(tags, r#"{"a":2}"#).await;
        refused.problem(412, "PreconditionFailed");
    }
    for malformed in [
        "",
        "3",
        "\"3",
        "\"3\" \"4\"",
        "\"3\",",
        "*, \"3\"",
        "\"a b\"",
    ] {
        let refused = with(malformed, r#"{"a":2}"#).await;
        refused.problem(400, "InvalidHeader");
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
    assert_eq!(response.header("etag"), Some("\"r4.d0\""));
    let unquoted = with("if-match", "4", r#"{"a":0}"#).await;
    assert_eq!(
        unquoted.problem(400, "InvalidHeader")["detail"],
        r#"if-match takes * or entity tags in double quotes, as the header etag shows them, such as "3"; received: 4"#
    );
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

#[tokio::test]
async fn one_entity_tag_serves_reads_updates_and_deletes() {
    let api = TestApi::start().await;
    let tag_of = |response: &crate::support::Response| {
        assert!(response.status < 300, "{}", response.text);
        response.header("etag").unwrap().to_owned()
    };
    let patch = |document: &str, tag: &str| {
        api.request("PATCH", &format!("{LAMP}{document}"))
            .header("if-match", tag)
            .json(r#"{"a":2}"#)
            .send()
    };
    let created = api
        .patch(&format!("{LAMP}/desired"), r#"{"a":1,"b":1}"#)
        .await;
    let first = tag_of(&created);
    assert_eq!(first, r#""r0.d1""#);
    assert_eq!(tag_of(&api.get(LAMP).await), first);
    // A document that the tag calls missing is created.
    let reported = tag_of(&patch("/reported", &first).await);
    assert_eq!(reported, r#""r1.d1""#);
    patch("/reported", &first)
        .await
        .problem(412, "PreconditionFailed");
    // Of a document's route the tag names the version of that document.
    let desired = tag_of(&patch("/desired", &first).await);
    assert_eq!(desired, r#""r1.d2""#);
    assert_eq!(tag_of(&api.get(LAMP).await), desired);
    assert_eq!(tag_of(&api.get(&format!("{LAMP}/delta")).await), desired);
    let delete =
        |path: String, tag: &str| api.request("DELETE", &path).header("if-match", tag).send();
    delete(LAMP.to_owned(), &reported)
        .await
        .problem(412, "PreconditionFailed");
    delete(format!("{LAMP}/desired"), &reported)
        .await
        .problem(412, "PreconditionFailed");
    delete(format!("{LAMP}/desired"), &desired).await.ok(204);
    let left = api.get(LAMP).await;
    assert!(left.ok(200).get("desired").is_none());
    delete(LAMP.to_owned(), &tag_of(&left)).await.ok(204);
    api.get(LAMP).await.problem(404, "NotFound");
}

#[tokio::test]
async fn a_read_fails_if_if_match_names_another_version() {
    let api = TestApi::start().await;
    let read = |tag: &'static str| api.request("GET", LAMP).header("if-match", tag).send();
    read("*").await.problem(404, "NotFound");
    api.patch(&format!("{LAMP}/reported"), r#"{"a":1}"#)
        .await
        .ok(200);
    for tag in ["*", r#""r1.d0""#, r#""r2.d0", "r1.d0""#] {
        read(tag).await.ok(200);
    }
    for tag in [r#""r2.d0""#, r#"W/"r1.d0""#] {
        read(tag).await.problem(412, "PreconditionFailed");
    }
    read("r1.d0").await.problem(400, "InvalidHeader");
}

#[tokio::test]
async fn every_shadow_name_has_routes() {
    let api = TestApi::start().await;
    for name in ["reported", "desired", "delta", "name", "history", "main"] {
        let path = format!("{LAMP}/name/{name}");
        let document = json!({"n": name}).to_string();
        for part in ["reported", "desired"] {
            let merged = api.patch(&format!("{path}/{part}"), &document).await;
            assert_eq!(merged.ok(200)["name"], name);
        }
        let shadow = api.get(&path).await.ok(200);
        assert_eq!(shadow["name"], name);
        assert_eq!(shadow["reported"]["document"]["n"], name);
        let delta = api.get(&format!("{path}/delta")).await.ok(200);
        assert_eq!(
            (&delta["name"], &delta["delta"]),
            (&json!(name), &json!({}))
        );
    }
    for name in ["reported", "desired", "delta", "name", "history"] {
        let path = format!("{LAMP}/name/{name}");
        api.delete(&path).await.ok(204);
        api.get(&path).await.problem(404, "NotFound");
    }
    assert_eq!(api.get(LAMP).await.ok(200)["name"], "main");
}

#[tokio::test]
async fn both_documents_change_in_one_write() {
    let api = TestApi::start().await;
    let body =
        r#"{"reported":{"led":"on","n":12345678901234567890.5},"desired":{"fan":2,"led":"on"}}"#;
    let response = api.patch(LAMP, body).await;
    assert_eq!(response.header("etag"), Some("\"r1.d1\""));
    let result = response.ok(200);
    assert_eq!(result["written"], true);
    assert_eq!(result["reported"]["version"], 1);
    assert_eq!(result["desired"]["version"], 1);
    assert_eq!(result["reported"]["verdicts"][0]["pointer"], "/led");
    assert_eq!(result["desired"]["verdicts"][0]["pointer"], "/fan");
    assert_eq!(result["acknowledged"], json!(["/led"]));
    let shadow = api.get(LAMP).await;
    assert!(shadow.text.contains("12345678901234567890.5"));
    assert_eq!(shadow.ok(200)["desired"]["document"], json!({"fan": 2}));

    // A failed condition of one document changes neither.
    let with = |tag: &'static str, body: &'static str| {
        api.request("PATCH", LAMP)
            .header("if-match", tag)
            .json(body)
            .send()
    };
    for stale in [r#""r1.d0""#, r#""r0.d1""#, r#""r2.d0""#, r#""1""#] {
        with(stale, r#"{"reported":{"a":1},"desired":{"a":2}}"#)
            .await
            .problem(412, "PreconditionFailed");
        with(stale, r#"{"desired":{"a":2}}"#)
            .await
            .problem(412, "PreconditionFailed");
    }
    let exists = api.request("PATCH", LAMP).header("if-none-match", "*");
    exists
        .json(r#"{"desired":{"a":2}}"#)
        .send()
        .await
        .problem(412, "PreconditionFailed");
    assert_eq!(api.get(LAMP).await.header("etag"), Some("\"r1.d1\""));
    let changed = with("\"r1.d1\"", r#"{"desired":{"a":2}}"#).await;
    assert_eq!(changed.header("etag"), Some("\"r1.d2\""));
    assert_eq!(with("*", r#"{"reported":{"a":3}}"#).await.status, 200);
    for invalid in ["{}", "[]", r#"{"reported":1}"#, r#"{"led":1}"#] {
        api.patch(LAMP, invalid).await.problem(400, "Invalid");
    }
}

#[tokio::test]
async fn one_document_is_deleted_alone() {
    let api = TestApi::start().await;
    api.patch(LAMP, r#"{"reported":{"a":1},"desired":{"b":1}}"#)
        .await
        .ok(200);
    api.delete(&format!("{LAMP}/reported")).await.ok(204);
    let shadow = api.get(LAMP).await.ok(200);
    assert!(shadow.get("reported").is_none());
    assert_eq!(shadow["desired"]["document"], json!({"b": 1}));
    api.delete(&format!("{LAMP}/reported")).await.ok(204);
    let gone = api
        .request("DELETE", &format!("{LAMP}/reported"))
        .header("if-match", "*");
    gone.send().await.problem(412, "PreconditionFailed");
}

#[tokio::test]
async fn many_shadows_are_updated_in_one_request() {
    let api = TestApi::start().await;
    let body = json!({"reports": [
        {"id": "lamp-7", "reported": {"led": 1}},
        {"id": "lamp-7", "name": "light", "reported": {"led": 1}, "desired": {"fan": 1}},
        {"id": "", "reported": {}},
        {"id": "lamp-7", "reported": {"led": 2}, "mode": "ClientIsMaster"},
        {"id": "lamp-8"},
        {"id": "lamp-8", "reported": [1]},
        {"id": "lamp-8", "reported": {"a": 1}, "tz": "nowhere!"},
    ]});
    let done = api.post("/v1/reports", &body.to_string()).await.ok(200);
    let results = done["results"].as_array().unwrap();
    let statuses: Vec<u64> = results
        .iter()
        .map(|result| result["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [200, 200, 400, 200, 400, 400, 400], "{done}");
    assert_eq!(results[0]["result"]["reported"]["version"], 1);
    assert_eq!(results[1]["result"]["desired"]["version"], 1);
    assert_eq!(results[3]["result"]["reported"]["version"], 2);
    assert_eq!(results[2]["error"]["code"], "Invalid");
    assert_eq!(
        api.get(LAMP).await.ok(200)["reported"]["document"]["led"],
        2
    );
    api.get("/v1/shadows/lamp-8").await.problem(404, "NotFound");
    let many = json!({"reports": vec![json!({"id": "x", "reported": {}}); 101]});
    api.post("/v1/reports", &many.to_string())
        .await
        .problem(400, "Invalid");
}

#[tokio::test]
async fn shadows_are_listed_by_prefix() {
    let api = TestApi::start().await;
    assert_eq!(api.get("/v1/shadows").await.ok(200), json!({"shadows": []}));
    for path in ["lamp-7", "lamp-7/name/light", "lamp-8", "fan%231"] {
        let path = format!("/v1/shadows/{path}");
        api.patch(&path, r#"{"reported":{"a":1},"desired":{"a":2}}"#)
            .await
            .ok(200);
    }
    let all = api.get("/v1/shadows").await.ok(200);
    let ids = |page: &serde_json::Value| {
        let shadows = page["shadows"].as_array().unwrap().iter();
        let names = shadows.map(|shadow| format!("{}/{}", shadow["id"], shadow["name"]));
        names.collect::<Vec<_>>().join(" ").replace('"', "")
    };
    assert_eq!(ids(&all), "fan#1/main lamp-7/light lamp-7/main lamp-8/main");
    let first = api.get("/v1/shadows?prefix=lamp-&limit=2").await.ok(200);
    assert_eq!(ids(&first), "lamp-7/light lamp-7/main");
    let cursor = first["nextCursor"].as_str().unwrap();
    let next = format!("/v1/shadows?prefix=lamp-&limit=2&cursor={cursor}");
    let second = api.get(&next).await.ok(200);
    assert_eq!(ids(&second), "lamp-8/main");
    assert!(second.get("nextCursor").is_none());
    let other = format!("/v1/shadows?prefix=fan&cursor={cursor}");
    api.get(&other).await.problem(400, "Invalid");
    api.get("/v1/shadows?limit=0")
        .await
        .problem(400, "InvalidQuery");
    let one = api.get("/v1/shadows?prefix=fan%23").await.ok(200);
    assert_eq!(ids(&one), "fan#1/main");
}
