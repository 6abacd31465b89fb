//! Permissions of a function's role, and those that the deployment itself needs: logs, traces, event sources, failure
//! destinations.

use std::collections::BTreeSet;

use serde_json::Value;

use super::functions::{Function, on_failure};
use super::template::{Resource, text};

/// An action on a resource.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Permission {
    pub(crate) action: String,
    pub(crate) resource: String,
}

impl Permission {
    pub(crate) fn new(action: &str, resource: impl Into<String>) -> Permission {
        Permission {
            action: action.to_owned(),
            resource: resource.into(),
        }
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {}", self.action, self.resource)
    }
}

/// Permissions of a function's role, one for each action and resource of each statement.
pub(crate) fn granted(resources: &[Resource], function: &Function) -> Vec<Permission> {
    let arn = text(&function.properties["Role"]);
    let role_name = arn.rsplit('/').next().unwrap();
    let is_role = |resource: &&Resource| {
        let named = resource.properties.get("RoleName").map(text);
        resource.kind == "AWS::IAM::Role" && named.as_ref().unwrap_or(&resource.id) == role_name
    };
    let role = resources.iter().find(is_role);
    let role = role.unwrap_or_else(|| panic!("no role {role_name}"));
    assert_eq!(
        role.properties.get("ManagedPolicyArns"),
        None,
        "{role_name}"
    );
    let trusted = &role.properties["AssumeRolePolicyDocument"]["Statement"];
    let lambda = serde_json::json!([{
        "Effect": "Allow",
        "Principal": {"Service": "lambda.amazonaws.com"},
        "Action": "sts:AssumeRole",
    }]);
    assert_eq!(*trusted, lambda, "who may be {role_name}");
    assert_eq!(function.properties.get("Policies"), None, "{role_name}");

    let inline = role.properties["Policies"].as_array().unwrap().iter();
    let attached = resources.iter().filter(|resource| {
        resource.kind == "AWS::IAM::RolePolicy"
            && text(&resource.properties["RoleName"]) == role_name
    });
    inline
        .chain(attached.map(|policy| &policy.properties))
        .flat_map(|policy| each(&policy["PolicyDocument"]["Statement"]))
        .flat_map(|statement| permissions(&statement))
        .collect()
}

fn permissions(statement: &Value) -> Vec<Permission> {
    assert_eq!(statement["Effect"], "Allow", "{statement}");
    for other in ["NotAction", "NotResource", "Condition", "Principal"] {
        assert_eq!(statement.get(other), None, "{statement}");
    }
    let actions = each(&statement["Action"]);
    let on = |action: &Value| {
        let action = text(action);
        let resources = each(&statement["Resource"]).into_iter();
        resources.map(move |resource| Permission::new(&action, text(&resource)))
    };
    actions.iter().flat_map(on).collect()
}

/// A single value or a list.
fn each(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        one => vec![one.clone()],
    }
}

/// Permissions that AWS needs on behalf of the function because of the template.
pub(crate) fn needed_by_template(
    resources: &[Resource],
    function: &Function,
) -> BTreeSet<Permission> {
    let mut needed = BTreeSet::new();
    let mut need = |actions: &[&str], resource: &str| {
        needed.extend(
            actions
                .iter()
                .map(|action| Permission::new(action, resource)),
        );
    };
    let log = text(&function.properties["LoggingConfig"]["LogGroup"]);
    let group = resources.iter().find(|resource| {
        resource.kind == "AWS::Logs::LogGroup" && text(&resource.properties["LogGroupName"]) == log
    });
    assert!(group.is_some(), "no log group {log}");
    let (region, account) = (antumbra_local::REGION, antumbra_local::ACCOUNT);
    need(
        &["logs:CreateLogStream", "logs:PutLogEvents"],
        &format!("arn:aws:logs:{region}:{account}:log-group:{log}:*"),
    );
    if function.properties["Tracing"] == "Active" {
        let actions = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"];
        need(&actions, "*");
    }
    for source in &function.sources {
        let arn = || source.arn().unwrap();
        match &source.kind[..] {
            "DynamoDB" => need(
                &[
                    "dynamodb:DescribeStream",
                    "dynamodb:GetRecords",
                    "dynamodb:GetShardIterator",
                    "dynamodb:ListStreams",
                ],
                // The name of a stream is the time of its creation.
                &arn().replace("/stream/label", "/stream/*"),
            ),
            "SQS" => need(
                &[
                    "sqs:DeleteMessage",
                    "sqs:GetQueueAttributes",
                    "sqs:ReceiveMessage",
                ],
                &arn(),
            ),
            "MQ" => {
                need(&["mq:DescribeBroker"], &arn());
                let access = source.properties["SourceAccessConfigurations"].as_array();
                let secret = access.unwrap().iter().find(|of| of["Type"] == "BASIC_AUTH");
                need(
                    &["secretsmanager:GetSecretValue"],
                    &text(&secret.unwrap()["URI"]),
                );
                need(
                    &[
                        "ec2:CreateNetworkInterface",
                        "ec2:DeleteNetworkInterface",
                        "ec2:DescribeNetworkInterfaces",
                        "ec2:DescribeSecurityGroups",
                        "ec2:DescribeSubnets",
                        "ec2:DescribeVpcs",
                    ],
                    "*",
                );
            }
            // These invoke the function by resource policy.
            "Schedule" | "ScheduleV2" | "HttpApi" | "Api" => {}
            other => panic!("{other} calls {}", function.name),
        }
        match source.on_failure() {
            Some(bucket) if bucket.contains(":s3:") => {
                need(&["s3:ListBucket"], &bucket);
                need(&["s3:PutObject"], &format!("{bucket}/*"));
            }
            Some(queue) => need(&["sqs:SendMessage"], &queue),
            None => {}
        }
    }
    if let Some(queue) = function
        .properties
        .get("EventInvokeConfig")
        .and_then(on_failure)
    {
        need(&["sqs:SendMessage"], &queue);
    }
    needed
}

/// Missing and superfluous permissions. A wildcard that is wider than the need counts as superfluous.
pub(crate) fn faults(needed: &BTreeSet<Permission>, granted: &[Permission]) -> Vec<String> {
    let mut faults = Vec::new();
    for need in needed.iter().filter(|need| !granted.contains(need)) {
        faults.push(format!("not allowed, but needed: {need}"));
    }
    for (index, grant) in granted.iter().enumerate() {
        if !needed.contains(grant) {
            faults.push(format!("allowed, but not needed: {grant}"));
        }
        if granted[..index].contains(grant) {
            faults.push(format!("allowed twice: {grant}"));
        }
    }
    faults
}
