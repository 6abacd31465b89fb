//! Bodies are returned over MQTT as they were stored, to the last digit.

use antumbra_wire::rules::Operation;

use crate::support::{Bench, event};

#[tokio::test]
async fn bodies_are_returned_as_they_were_written() {
    let digits = "12345678901234567890123456789012345678";
    let fraction = "0.00000000012345678901234567890123456789";
    let bench = Bench::fresh().await;
    for body in [
        r#"{"a":9007199254740993,"b":-9007199254740993}"#.to_owned(),
        format!(r#"{{"a":{digits},"b":{fraction}}}"#),
        r#"{"a":72,"b":72.50,"c":1e3,"d":0.0}"#.to_owned(),
        r#"{"a":null,"b":[],"c":{},"d":"","e":[null,{"f":[1,"2",true]}]}"#.to_owned(),
        r#"{"a":"\u0000\"\\ å 💡"}"#.to_owned(),
    ] {
        let id = body.len().to_string();
        bench.store("lamp", &id, &body).await;
        let topic = format!("request/get/lamp/{id}");
        let event = event(&topic, br#"{"token":"t"}"#);
        bench.handle(Operation::Get, &event).await.unwrap();
        let expected = format!(r#"{{"body":{body},"messageId":"{id}","uuid":"lamp"}}"#);
        assert_eq!(bench.take_responses()[0].1, expected);
    }
}
