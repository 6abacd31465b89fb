//! AWS IoT: rules are those of the code, and the device policies restrict a device to its own topics.

use std::sync::LazyLock;

use antumbra_local::{ACCOUNT, REGION};
use antumbra_wire::rules::{SQL_VERSION, deployed_rules};
use serde_json::json;

use super::template::{Resource, Stack, text};

/// Maximum size of a policy, without white space.
const POLICY_BYTES: usize = 2048;
const THING: &str = "${iot:Connection.Thing.ThingName}";

fn of_kind(kind: &str) -> Vec<Resource> {
    let resources = Stack::deploy(&[]).resources();
    resources.into_iter().filter(|of| of.kind == kind).collect()
}

#[test]
fn deployed_rules_are_those_of_the_code() {
    let rules = of_kind("AWS::IoT::TopicRule");
    let permissions = of_kind("AWS::Lambda::Permission");
    let mut named = Vec::new();
    for rule in deployed_rules() {
        let deployed = rules
            .iter()
            .find(|of| of.properties["RuleName"] == rule.name);
        let deployed = deployed.unwrap_or_else(|| panic!("no rule {}", rule.name));
        let payload = &deployed.properties["TopicRulePayload"];
        assert_eq!(payload["Sql"], rule.sql(), "{}", rule.name);
        assert_eq!(payload["AwsIotSqlVersion"], SQL_VERSION, "{}", rule.name);
        let function = format!(
            "arn:aws:lambda:{REGION}:{ACCOUNT}:function:antumbra-{}:live",
            rule.function
        );
        let calls = json!([{"Lambda": {"FunctionArn": function}}]);
        assert_eq!(payload["Actions"], calls, "{}", rule.name);
        let queue = text(&payload["ErrorAction"]["Sqs"]["QueueUrl"]);
        assert!(queue.ends_with("/antumbra-undeliverable"), "{queue}");

        // Only this rule of this account may invoke the function.
        let allowed = json!({
            "Action": "lambda:InvokeFunction",
            "FunctionName": function,
            "Principal": "iot.amazonaws.com",
            "SourceAccount": ACCOUNT,
            "SourceArn": format!("{}.Arn", deployed.id),
        });
        let grants = permissions.iter().filter(|of| of.properties == allowed);
        assert_eq!(grants.count(), 1, "{}", rule.name);
        named.push(rule.name);
    }
    assert_eq!(rules.len(), named.len());
    let by_rules = |of: &&Resource| of.properties["Principal"] == "iot.amazonaws.com";
    assert_eq!(permissions.iter().filter(by_rules).count(), named.len());
}

/// Effects, actions and resources of the policies, with [`THING`] for the thing's name.
static GRANTS: LazyLock<Vec<(String, String, String)>> = LazyLock::new(|| {
    let policies = of_kind("AWS::IoT::Policy");
    let statements = policies.iter().flat_map(|policy| {
        policy.properties["PolicyDocument"]["Statement"]
            .as_array()
            .unwrap()
    });
    let mut grants = Vec::new();
    for statement in statements {
        let effect = text(&statement["Effect"]);
        let actions = match statement["Action"].as_array() {
            Some(actions) => actions.iter().map(text).collect(),
            None => vec![text(&statement["Action"])],
        };
        for resource in statement["Resource"].as_array().unwrap().iter().map(text) {
            let (_, resource) = resource.split_once(&format!(":{ACCOUNT}:")).unwrap();
            assert!(resource.contains(THING), "{resource}");
            for action in &actions {
                grants.push((effect.clone(), action.clone(), resource.to_owned()));
            }
        }
    }
    assert!(grants.len() > 10);
    grants
});

#[test]
fn a_device_connects_as_its_own_thing() {
    let policies = of_kind("AWS::IoT::Policy");
    let connect = &policies[0].properties["PolicyDocument"]["Statement"][0];
    assert_eq!(connect["Action"], "iot:Connect");
    let attached = json!({"Bool": {"iot:Connection.Thing.IsAttached": ["true"]}});
    assert_eq!(connect["Condition"], attached);
}

#[test]
fn only_health_needs_no_credentials() {
    for (mode, kind) in [("IAM", "AWS_IAM"), ("JWT", "JWT")] {
        let given = [
            ("AuthMode", mode),
            ("JwtIssuer", "https://issuer"),
            ("JwtAudience", "a"),
        ];
        let routes = Stack::deploy(&given).resources();
        let routes = routes
            .iter()
            .filter(|of| of.kind == "AWS::ApiGatewayV2::Route");
        let routes: Vec<(String, String)> = routes
            .map(|of| {
                (
                    text(&of.properties["RouteKey"]),
                    text(&of.properties["AuthorizationType"]),
                )
            })
            .collect();
        let expected = [("ANY /{proxy+}", kind), ("GET /health", "NONE")];
        let expected = expected.map(|(key, kind)| (key.to_owned(), kind.to_owned()));
        assert_eq!(routes, expected);
    }
}

#[test]
fn tokens_need_an_issuer_and_an_audience() {
    let violated = |given: &[(&str, &str)]| Stack::deploy(given).violated_rules();
    assert!(violated(&[]).is_empty());
    let jwt = ("AuthMode", "JWT");
    let (issuer, audience) = (("JwtIssuer", "https://issuer"), ("JwtAudience", "a,b"));
    assert_eq!(violated(&[jwt]).len(), 2);
    assert_eq!(
        violated(&[jwt, issuer]),
        ["AuthMode JWT needs JwtAudience."]
    );
    assert_eq!(
        violated(&[jwt, audience]),
        ["AuthMode JWT needs JwtIssuer."]
    );
    assert!(violated(&[jwt, issuer, audience]).is_empty());
}

/// Matches as AWS IoT does: `*` is any text, including levels.
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
    let has = |effect: &str| {
        let mut grants = GRANTS
            .iter()
            .filter(|grant| grant.0 == effect && grant.1 == action);
        grants.any(|(_, _, pattern)| matches(&pattern.replace(THING, thing), resource))
    };
    has("Allow") && !has("Deny")
}

#[test]
fn a_device_reaches_its_own_topics() {
    for (action, resource) in [
        ("iot:Connect", "client/lamp"),
        ("iot:Publish", "topic/request/query/lamp"),
        ("iot:Publish", "topic/request/get/lamp/1564669331-1-a"),
        ("iot:Publish", "topic/request/next/lamp/0"),
        ("iot:Publish", "topic/request/prev/lamp/9"),
        ("iot:Publish", "topic/request/delete/lamp/1"),
        ("iot:Publish", "topic/request/list/lamp"),
        ("iot:Publish", "topic/shadow/lamp/update"),
        ("iot:Publish", "topic/shadow/lamp/name/light/get"),
        (
            "iot:Publish",
            "topic/$aws/rules/antumbra_shadow_update/shadow/lamp/update",
        ),
        (
            "iot:Publish",
            "topic/$aws/rules/antumbra_shadow_named_update/shadow/lamp/name/light/update",
        ),
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
fn a_device_reaches_no_other_topics() {
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
        (
            "iot:Publish",
            "topic/$aws/rules/antumbra_shadow_update/shadow/victim/update",
        ),
        (
            "iot:Publish",
            "topic/$aws/rules/antumbra_shadow_update/shadow/victim/name/lamp/update",
        ),
        (
            "iot:Publish",
            "topic/$aws/rules/antumbra_message_send/request/send/lamp",
        ),
        ("iot:Publish", "topic/$aws/rules/other/shadow/lamp/update"),
        ("iot:Subscribe", "topicfilter/#"),
        ("iot:Subscribe", "topicfilter/response/#"),
        ("iot:Subscribe", "topicfilter/response/+/+"),
        ("iot:Subscribe", "topicfilter/response/get/lamp2.7"),
        ("iot:Subscribe", "topicfilter/response/get/victim.7"),
        ("iot:Subscribe", "topicfilter/notification/+"),
        ("iot:Subscribe", "topicfilter/shadow/+/get/accepted"),
        ("iot:Subscribe", "topicfilter/shadow/victim/#"),
        ("iot:Receive", "topic/response/get/victim.7"),
        ("iot:Subscribe", "topicfilter/response/+/lamp.dashboard.7"),
        ("iot:Receive", "topic/response/get/lamp.dashboard.7"),
        ("iot:Receive", "topic/response/get/lamp"),
        ("iot:Receive", "topic/response/get/rejected"),
        ("iot:Receive", "topic/shadow/victim/get/accepted"),
        ("iot:Receive", "topic/notification/victim"),
    ] {
        assert!(!may("lamp", action, resource), "{action} {resource}");
    }
}

#[test]
fn each_policy_fits_in_the_limit_of_aws_iot() {
    // The longest prefix, name, partition and region.
    let (prefix, name) = ("p".repeat(31) + "/", "n".repeat(31));
    let resources = Stack::deploy(&[("TopicPrefix", &prefix), ("Name", &name)]).resources();
    let policies = resources.iter().filter(|of| of.kind == "AWS::IoT::Policy");
    let mut count = 0;
    for policy in policies {
        let document = policy.properties["PolicyDocument"].to_string();
        assert!(document.contains(&prefix), "{}", policy.id);
        let document = document.replace("arn:aws:", "arn:aws-us-gov:");
        let bytes = document.replace(REGION, "ap-southeast-1").len();
        assert!(bytes <= POLICY_BYTES, "{}: {bytes}", policy.id);
        count += 1;
    }
    // A certificate can have ten.
    assert_eq!(count, 3);
}
