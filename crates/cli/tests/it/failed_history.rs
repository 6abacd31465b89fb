//! Redrive of the batches that the history writer gave up, from a stand-in of S3 that checks each signature.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::process::{Home, Running, command, text, wait_for};

const BUCKET: &str = "failed-history";
/// Keys of one page of a listing.
const PAGE: usize = 2;
const EMPTY_HASH: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

type Objects = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A request without a body.
struct Request {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
}

impl Request {
    fn read(stream: &TcpStream) -> Option<Request> {
        let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
        let first = lines.next()?;
        let mut words = first.split(' ');
        let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let headers = lines.take_while(|line| !line.is_empty()).map(|line| {
            let (name, value) = line.split_once(": ").unwrap();
            (name.to_lowercase(), value.to_owned())
        });
        Some(Request {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: headers.collect(),
        })
    }

    /// Computes the signature as S3 documents it.
    fn is_signed(&self) -> bool {
        let header = |name: &str| self.headers.get(name).cloned().unwrap_or_default();
        let authorization = header("authorization");
        let part = |name: &str| {
            let mut parts = authorization.split([' ', ',']);
            let found = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        let (scope, signed) = (part("Credential"), part("SignedHeaders"));
        let scope: Vec<&str> = scope.split('/').collect();
        let ["local", date, region, "s3", "aws4_request"] = scope[..] else {
            return false;
        };
        let required = ["host", "x-amz-content-sha256", "x-amz-date"];
        let names: Vec<&str> = signed.split(';').collect();
        if !required.iter().all(|name| names.contains(name)) {
            return false;
        }
        let canonical_headers: String = names
            .iter()
            .map(|name| format!("{name}:{}\n", header(name)))
            .collect();
        let mut query: Vec<&str> = self
            .query
            .split('&')
            .filter(|one| !one.is_empty())
            .collect();
        query.sort_unstable();
        let content = header("x-amz-content-sha256");
        let canonical = [
            &self.method,
            &self.path,
            &query.join("&"),
            &canonical_headers,
            &signed,
            &content,
        ]
        .map(String::as_str)
        .join("\n");
        let time = header("x-amz-date");
        let scope = format!("{date}/{region}/s3/aws4_request");
        let to_sign = format!(
            "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
            hash(canonical.as_bytes())
        );
        let secret = "local";
        let key = generate_signing_key(secret, SystemTime::now(), region, "s3");
        let expected = calculate_signature(key, to_sign.as_bytes());
        content == EMPTY_HASH && time.starts_with(date) && part("Signature") == expected
    }
}

fn respond(request: &Request, objects: &Objects) -> (u16, Vec<u8>) {
    if !request.is_signed() {
        let error = "<Error><Code>SignatureDoesNotMatch</Code></Error>";
        return (403, error.into());
    }
    let Some(key) = request.path.strip_prefix(&format!("/{BUCKET}/")) else {
        return (404, "<Error><Code>NoSuchBucket</Code></Error>".into());
    };
    let mut objects = objects.lock().unwrap();
    match (request.method.as_str(), key) {
        ("GET", "") => {
            let mut query = form_urlencoded::parse(request.query.as_bytes());
            let token = query.find(|(name, _)| name == "continuation-token");
            let after = token.map_or_else(String::new, |(_, token)| token.into_owned());
            let mut keys = objects.keys().filter(|key| **key > after);
            let page: Vec<&String> = keys.by_ref().take(PAGE).collect();
            let mut xml = "<ListBucketResult>".to_owned();
            for key in &page {
                xml += &format!("<Contents><Key>{key}</Key></Contents>");
            }
            if keys.next().is_some() {
                let token = page.last().unwrap();
                xml += &format!("<NextContinuationToken>{token}</NextContinuationToken>");
            }
            (200, (xml + "</ListBucketResult>").into())
        }
        ("GET", key) => match objects.get(key) {
            Some(object) => (200, object.clone()),
            None => (404, "<Error><Code>NoSuchKey</Code></Error>".into()),
        },
        ("DELETE", key) => {
            objects.remove(key);
            (204, Vec::new())
        }
        _ => (405, Vec::new()),
    }
}

/// Starts the stand-in; returns its URL.
fn serve(objects: Objects) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Some(request) = Request::read(&stream) else {
                continue;
            };
            let (status, body) = respond(&request, &objects);
            let head = format!(
                "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let mut stream = stream;
            let _ = stream.write_all(&[head.as_bytes(), &body].concat());
        }
    });
    url
}

/// An object as Lambda writes it: one change of a shadow, which the stack has not seen.
fn batch(id: &str, number: usize, as_text: bool) -> Vec<u8> {
    batch_of("antumbra", id, number, as_text)
}

fn batch_of(table: &str, id: &str, number: usize, as_text: bool) -> Vec<u8> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let nanoseconds = now.unwrap().as_nanos();
    let event = json!({"Records": [{
        "eventID": format!("{number:032}"),
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "dynamodb": {
            "ApproximateCreationDateTime": (nanoseconds / 1_000_000_000) as u64,
            "Keys": {"PK": {"S": format!("DS#{id}")}, "SK": {"S": "DSR#main"}},
            "NewImage": {
                "PK": {"S": format!("DS#{id}")},
                "SK": {"S": "DSR#main"},
                "reported": {"M": {"led": {"S": "on"}}},
                "version": {"N": "1"},
                "timestamp": {"N": nanoseconds.to_string()},
            },
            "SequenceNumber": format!("{number:021}"),
            "SizeBytes": 100,
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
        "eventSourceARN": format!("arn:aws:dynamodb:us-east-1:000000000000:table/{table}/stream/2026-01-31T00:00:00.000"),
    }]});
    let payload = match as_text {
        true => Value::from(event.to_string()),
        false => event,
    };
    json!({"version": "1.0", "DDBStreamBatchInfo": {"batchSize": 1}, "payload": payload})
        .to_string()
        .into_bytes()
}

fn redrive(running: &Running, s3: &str, arguments: &[&str]) -> (String, i32) {
    let dynamodb = running.addresses["dynamodb"].as_str().unwrap();
    let bucket = format!("arn:aws:s3:::{BUCKET}");
    let mut command = command();
    command.args(["--endpoint-url", dynamodb, "queues", "redrive"]);
    command.args([&bucket, "--s3-url", s3]).args(arguments);
    let output = command.output().unwrap();
    let printed = text(&output.stdout) + &text(&output.stderr);
    (printed, output.status.code().unwrap())
}

#[test]
fn failed_batches_are_recorded_and_deleted() {
    let home = Home::new(&[]);
    let running = home.start();
    // A change, so that there is a feed.
    let report = ["shadow", "report", "lamp", r#"{"led":"on"}"#];
    assert!(running.run(&report).status.success());
    let history = |id: &str| {
        let output = running.run(&["shadow", "history", id, "--json"]);
        let page: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        page["entries"].as_array().map_or(0, Vec::len)
    };
    wait_for("the history", || (history("lamp") == 1).then_some(()));

    let objects: Objects = Arc::default();
    let url = serve(Arc::clone(&objects));
    let key =
        |number: usize| format!("aws/lambda/id/shardId-0/2026/11/17/2026-11-17T10.00.00-{number}");
    for number in 0..5 {
        let object = batch(&format!("lost-{number}"), number, number % 2 == 0);
        objects.lock().unwrap().insert(key(number), object);
    }
    objects.lock().unwrap().insert(key(9), b"{}".to_vec());

    let (planned, code) = redrive(&running, &url, &[]);
    assert_eq!(code, 1, "{planned}");
    assert!(
        planned.contains("6 failed batches with 5 changes"),
        "{planned}"
    );
    assert!(
        planned.contains("not a batch of the history writer"),
        "{planned}"
    );
    assert!(planned.contains("use --go"), "{planned}");
    assert_eq!(objects.lock().unwrap().len(), 6, "nothing was recorded");
    assert_eq!(history("lost-0"), 0);

    let again = objects.lock().unwrap().clone();
    for _ in 0..2 {
        let (done, code) = redrive(&running, &url, &["--go", "--history-days", "30"]);
        assert_eq!(code, 1, "{done}");
        assert!(done.contains("5 recorded and deleted"), "{done}");
        assert!((0..5).all(|number| history(&format!("lost-{number}")) == 1));
        let left: Vec<String> = objects.lock().unwrap().keys().cloned().collect();
        assert_eq!(left, [key(9)], "an object of another kind stays");
        // The same again, as after a delete that failed.
        *objects.lock().unwrap() = again.clone();
    }
    let feed = [
        "changes", "follow", "--since", "1h", "--prefix", "lost-4", "--count", "1",
    ];
    let followed = running.run(&feed);
    let followed = text(&followed.stdout);
    assert!(followed.contains("lost-4/main"), "{followed}");
}

#[test]
fn a_bucket_that_cannot_be_read_is_named() {
    let home = Home::new(&[]);
    let running = home.start();
    let url = serve(Arc::default());
    let (refused, code) = redrive(
        &running,
        &format!("{url}/nowhere"),
        &["--go", "--history-days", "30"],
    );
    assert_ne!(code, 0, "{refused}");
    assert!(refused.contains("NoSuchBucket"), "{refused}");
}

#[test]
fn batches_of_another_deployment_and_changes_that_cannot_be_recorded_stay() {
    let home = Home::new(&[]);
    let running = home.start();
    let objects: Objects = Arc::default();
    let url = serve(Arc::clone(&objects));
    let unreadable = String::from_utf8(batch("odd", 2, false)).unwrap();
    // A shadow without a version.
    let unreadable = unreadable.replace("\"version\":{\"N\":\"1\"}", "\"version\":{\"N\":\"x\"}");
    let all = [
        ("1-other", batch_of("prod", "other", 0, true)),
        (
            "2-restored",
            batch_of("antumbra-r20261117080000", "restored", 1, false),
        ),
        ("3-unreadable", unreadable.into_bytes()),
    ];
    let all = all.map(|(key, object)| (key.to_owned(), object));
    *objects.lock().unwrap() = all.into_iter().collect();
    let (refused, code) = redrive(&running, &url, &["--go"]);
    assert_ne!(code, 0, "{refused}");
    assert!(refused.contains("give it with --history-days"), "{refused}");
    let (done, code) = redrive(&running, &url, &["--go", "--history-days", "30"]);
    assert_eq!(code, 1, "{done}");
    let other = "its changes are of the table prod, not of antumbra";
    assert!(done.contains(other), "{done}");
    assert!(done.contains("1 changes cannot be read"), "{done}");
    let left: Vec<String> = objects.lock().unwrap().keys().cloned().collect();
    assert_eq!(left, ["1-other", "3-unreadable"]);
}
