//! What the deployment says of AWS IoT Core is what the code says, and a device's policy keeps it to itself.

use antumbra_wire::rules::{MESSAGE_RULES, SHADOW_RULES, SQL_VERSION};

const TEMPLATE: &str = include_str!("../../../../infra/iot.yaml");
/// Bytes of a policy, without white space.
const POLICY_BYTES: usize = 2048;
const THING: &str = "${iot:Connection.Thing.ThingName}";

#[test]
fn every_rule_is_deployed_as_the_code_has_it_and_no_other() {
    let rules = || MESSAGE_RULES.iter().chain(&SHADOW_RULES);
    for rule in rules() {
        let name = format!("RuleName: {}\n", rule.name);
        let (_, resource) = TEMPLATE.split_once(&name).unwrap();
        let resource = resource.split("Type: AWS::IoT::TopicRule").next().unwrap();
        assert!(
            resource.contains(&format!("  {}\n", rule.sql)),
            "{}",
            rule.name
        );
        let function: String = rule.function.split('-').map(capital).collect();
        assert!(
            resource.contains(&format!("FunctionArn: {{ Ref: {function}Arn }}")),
            "{}",
            rule.name
        );
        assert!(resource.contains("ErrorAction:"), "{}", rule.name);
        assert!(resource.contains("SourceAccount:"), "{}", rule.name);
        assert!(resource.contains("SourceArn:"), "{}", rule.name);
    }
    let count = |text: &str| TEMPLATE.matches(text).count();
    assert_eq!(count("Type: AWS::IoT::TopicRule"), rules().count());
    assert_eq!(count("Type: AWS::Lambda::Permission"), rules().count());
    assert_eq!(
        count(&format!("AwsIotSqlVersion: \"{SQL_VERSION}\"")),
        rules().count()
    );
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

/// What a device may do: action and resource, with the thing's name in place.
fn allowed(thing: &str) -> Vec<(String, String)> {
    let (_, policy) = TEMPLATE.split_once("Type: AWS::IoT::Policy").unwrap();
    let (policy, _) = policy.split_once("Outputs:").unwrap();
    let mut action = "";
    let mut allowed = Vec::new();
    for line in policy.lines().map(str::trim) {
        if let Some(of) = line.strip_prefix("Action: ") {
            action = of;
        } else if let Some((_, resource)) = line.split_once(":${AWS::AccountId}:") {
            let resource = resource.trim_end_matches("\" }").replace("${!", "${");
            assert!(resource.contains(THING), "{resource}");
            allowed.push((action.to_owned(), resource.replace(THING, thing)));
        }
    }
    assert!(allowed.len() > 10);
    allowed
}

/// As AWS IoT matches resources: a `*` is any text, levels and all.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .any(|at| matches(rest, &text[at..]))
        }),
    }
}

fn may(thing: &str, action: &str, resource: &str) -> bool {
    allowed(thing)
        .iter()
        .any(|(of, pattern)| of == action && matches(pattern, resource))
}

#[test]
fn a_device_reaches_itself() {
    for (action, resource) in [
        ("iot:Connect", "client/lamp"),
        ("iot:Publish", "topic/request/query/lamp"),
        ("iot:Publish", "topic/request/get/lamp/1564669331-1-a"),
        ("iot:Publish", "topic/request/next/lamp/0"),
        ("iot:Publish", "topic/request/delete/lamp/1"),
        ("iot:Publish", "topic/request/list/lamp"),
        ("iot:Publish", "topic/shadow/lamp/update"),
        ("iot:Publish", "topic/shadow/lamp/name/light/get"),
        ("iot:Subscribe", "topicfilter/notification/lamp"),
        ("iot:Subscribe", "topicfilter/response/+/lamp.7"),
        ("iot:Receive", "topic/response/get/lamp.7"),
        ("iot:Receive", "topic/shadow/lamp/update/delta"),
        ("iot:Receive", "topic/shadow/lamp/name/light/get/accepted"),
    ] {
        assert!(may("lamp", action, resource), "{action} {resource}");
    }
}

#[test]
fn a_device_reaches_nobody_else() {
    for (action, resource) in [
        ("iot:Connect", "client/victim"),
        ("iot:Connect", "client/lamp2"),
        ("iot:Publish", "topic/request/get/victim/1"),
        ("iot:Publish", "topic/request/get/victim/lamp/1"),
        ("iot:Publish", "topic/request/get/lamp2/1"),
        ("iot:Publish", "topic/request/query/lamp2"),
        ("iot:Publish", "topic/request/query/victim"),
        ("iot:Publish", "topic/request/delete/victim/lamp"),
        ("iot:Publish", "topic/request/send/lamp"),
        ("iot:Publish", "topic/request/devices"),
        ("iot:Publish", "topic/response/get/victim.7"),
        ("iot:Publish", "topic/notification/lamp"),
        ("iot:Publish", "topic/shadow/victim/update"),
        ("iot:Publish", "topic/shadow/victim/name/lamp/update"),
        ("iot:Publish", "topic/shadow/lamp/update/accepted"),
        ("iot:Publish", "topic/shadow/lamp2/update"),
        ("iot:Subscribe", "topicfilter/#"),
        ("iot:Subscribe", "topicfilter/response/#"),
        ("iot:Subscribe", "topicfilter/response/+/+"),
        ("iot:Subscribe", "topicfilter/response/get/lamp2.7"),
        ("iot:Subscribe", "topicfilter/response/get/victim.7"),
        ("iot:Subscribe", "topicfilter/notification/+"),
        ("iot:Subscribe", "topicfilter/shadow/+/get/accepted"),
        ("iot:Subscribe", "topicfilter/shadow/victim/#"),
        ("iot:Receive", "topic/response/get/victim.7"),
        ("iot:Receive", "topic/response/get/lamp"),
        ("iot:Receive", "topic/response/get/rejected"),
        ("iot:Receive", "topic/shadow/victim/get/accepted"),
        ("iot:Receive", "topic/notification/victim"),
    ] {
        assert!(!may("lamp", action, resource), "{action} {resource}");
    }
}

#[test]
fn the_policy_fits() {
    // The longest partition and region there are, and an account.
    let prefix = "arn:aws-us-gov:iot:ap-southeast-1:123456789012:".len();
    let statements = 4 * r#"{"Effect":"Allow","Action":"iot:Subscribe","Resource":[]},"#.len();
    let frame = r#"{"Version":"2012-10-17","Statement":[]}"#.len();
    let condition = r#","Condition":{"Bool":{"iot:Connection.Thing.IsAttached":["true"]}}"#.len();
    let resources: usize = allowed(THING)
        .iter()
        .map(|(_, resource)| prefix + resource.len() + r#""",""#.len())
        .sum();
    let bytes = frame + statements + condition + resources;
    assert!(bytes <= POLICY_BYTES, "{bytes}");
}

/// The queues let a delivery through oftener than it has turns, as the local ones do.
#[test]
fn deliveries_are_received_oftener_than_they_have_turns() {
    let template = include_str!("../../../../infra/data.yaml");
    for turns in 1..=20 {
        let receives = turns + antumbra_service::deliveries::SPARE_RECEIVES;
        let row = format!("    \"{turns}\": {{ Count: {receives} }}\n");
        assert!(template.contains(&row), "{row}");
    }
    let found =
        r#"maxReceiveCount: { "Fn::FindInMap": [Receives, { Ref: DeliveryTurns }, Count] }"#;
    assert_eq!(template.matches(found).count(), 2);
}
