//! Reads and evaluates the templates in `infra/`: parameters, conditions, loops, references between resources and
//! nested stacks.
//!
//! It supports only what the templates use; anything else fails the test.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use antumbra_local::{ACCOUNT, REGION};
use serde_json::{Map, Value, json};

/// Template of everything that has no state.
const ROOT: &str = "template.yaml";
/// Template of the stack that is deployed first, with the tables and queues.
const DATA: &str = "data.yaml";

/// A stack: a template, and the values of its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Stack {
    template: Value,
    parameters: Map<String, Value>,
    name: String,
    /// The stack whose exports this one imports.
    data: Option<Rc<Stack>>,
    /// Nested stacks, created on demand.
    children: RefCell<BTreeMap<String, Rc<Stack>>>,
}

/// A deployed resource with evaluated properties.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) properties: Value,
    /// `DeletionPolicy` and others.
    pub(crate) attributes: Value,
}

/// A file of `infra/`, cached.
fn read(name: &str) -> Value {
    static READ: Mutex<BTreeMap<String, Value>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let file = read.entry(name.to_owned());
    file.or_insert_with(|| parse(name)).clone()
}

fn parse(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../infra");
    let path = folder.join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut template: Value =
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    for section in ["Resources", "Outputs"] {
        if let Some(members) = template.get_mut(section).and_then(Value::as_object_mut) {
            *members = expand_loops(std::mem::take(members));
        }
    }
    template
}

/// Expands each `Fn::ForEach` of a section as the transform `AWS::LanguageExtensions` does.
fn expand_loops(section: Map<String, Value>) -> Map<String, Value> {
    let mut expanded = Map::new();
    for (name, value) in section {
        if !name.starts_with("Fn::ForEach::") {
            assert!(expanded.insert(name.clone(), value).is_none(), "{name}");
            continue;
        }
        let identifier = value[0].as_str().unwrap();
        for item in value[1].as_array().unwrap() {
            let fragment = replace_identifier(&value[2], identifier, item.as_str().unwrap());
            for (name, value) in fragment.as_object().unwrap() {
                let twice = expanded.insert(name.clone(), value.clone());
                assert!(twice.is_none(), "{name}");
            }
        }
    }
    expanded
}

/// Replaces `${Identifier}`, `&{Identifier}` (without other characters than letters and digits) and
/// `Ref: Identifier` by an item of the loop's collection.
fn replace_identifier(fragment: &Value, identifier: &str, item: &str) -> Value {
    let replace = |text: &str| {
        let alphanumeric: String = item.chars().filter(char::is_ascii_alphanumeric).collect();
        text.replace(&format!("${{{identifier}}}"), item)
            .replace(&format!("&{{{identifier}}}"), &alphanumeric)
    };
    match fragment {
        Value::String(text) => json!(replace(text)),
        Value::Array(items) => {
            let items = items.iter();
            items
                .map(|value| replace_identifier(value, identifier, item))
                .collect()
        }
        Value::Object(_) if *fragment == json!({"Ref": identifier}) => json!(item),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let value = replace_identifier(value, identifier, item);
                (replace(name), value)
            });
            Value::Object(members.collect())
        }
        plain => plain.clone(),
    }
}

impl Stack {
    /// Both stacks of a deployment; a parameter goes to each template that declares it.
    pub(crate) fn deploy(given: &[(&str, &str)]) -> Stack {
        let name = given.iter().find(|(parameter, _)| *parameter == "Name");
        let name = name.map_or("antumbra", |(_, name)| name);
        let [root, data] = [ROOT, DATA].map(read);
        for (parameter, _) in given {
            let is_declared = |template: &Value| template["Parameters"].get(parameter).is_some();
            assert!(
                is_declared(&root) || is_declared(&data),
                "no parameter {parameter}"
            );
        }
        let of_template = |template: Value| {
            let declared = template["Parameters"].clone();
            let given = given.iter();
            let given = given.filter(|(parameter, _)| declared.get(parameter).is_some());
            let given = given.map(|(parameter, value)| (*parameter, json!(value)));
            Stack::of(template, given)
        };
        let data = Stack {
            name: format!("{name}-data"),
            ..of_template(data)
        };
        Stack {
            name: name.to_owned(),
            data: Some(Rc::new(data)),
            ..of_template(root)
        }
    }

    /// The data stack alone, under any name.
    pub(crate) fn deploy_data_as(name: &str, given: &[(&str, &str)]) -> Stack {
        let given = given.iter().map(|(name, value)| (*name, json!(value)));
        Stack {
            name: name.to_owned(),
            ..Stack::of(read(DATA), given)
        }
    }

    /// Descriptions of the assertions about parameters that do not hold: CloudFormation would refuse the deployment.
    pub(crate) fn violated_rules(&self) -> Vec<String> {
        let rules = self.template["Rules"].as_object().unwrap().values();
        let applying = rules.filter(|rule| self.truth(&rule["RuleCondition"]));
        let assertions = applying.flat_map(|rule| rule["Assertions"].as_array().unwrap());
        let violated = assertions.filter(|assertion| !self.truth(&assertion["Assert"]));
        violated
            .map(|assertion| text(&assertion["AssertDescription"]))
            .collect()
    }

    /// Names of the exports.
    pub(crate) fn exports(&self) -> BTreeSet<String> {
        let outputs = self.template["Outputs"].as_object().unwrap().values();
        let deployed = outputs.filter(|output| self.is_deployed(output));
        let names = deployed.map(|output| self.value(&output["Export"]["Name"]));
        names.map(|name| text(&name)).collect()
    }

    fn of<N: Into<String>>(template: Value, given: impl IntoIterator<Item = (N, Value)>) -> Stack {
        let declared = template["Parameters"].as_object().cloned();
        let declared = declared.unwrap_or_default();
        let mut parameters = Map::new();
        for (name, of) in &declared {
            if let Some(default) = of.get("Default") {
                parameters.insert(name.clone(), default.clone());
            }
        }
        for (name, value) in given {
            let name = name.into();
            assert!(declared.contains_key(&name), "no parameter {name}");
            parameters.insert(name, value);
        }
        for (name, of) in &declared {
            let value = parameters
                .get_mut(name)
                .unwrap_or_else(|| panic!("parameter {name} has no value"));
            let list = of["Type"].as_str().unwrap().contains("List");
            if let (true, Some(text)) = (list, value.as_str()) {
                *value = text.split(',').map(str::trim).map(Value::from).collect();
            }
        }
        Stack {
            template,
            parameters,
            name: String::new(),
            data: None,
            children: RefCell::default(),
        }
    }

    /// The resources of this stack, its nested stacks and the data stack.
    pub(crate) fn resources(&self) -> Vec<Resource> {
        let data = self.data.iter();
        let mut resources: Vec<Resource> = data.flat_map(|data| data.resources()).collect();
        for (id, of) in self.template["Resources"].as_object().unwrap() {
            if !self.is_deployed(of) {
                continue;
            }
            if is_stack(of) {
                resources.extend(self.child(id).resources());
                continue;
            }
            let mut attributes = of.clone();
            attributes.as_object_mut().unwrap().remove("Properties");
            resources.push(Resource {
                id: id.clone(),
                kind: of["Type"].as_str().unwrap().to_owned(),
                properties: self.value(&of["Properties"]),
                attributes,
            });
        }
        resources
    }

    /// SAM's `Globals` for functions.
    pub(crate) fn globals(&self) -> Value {
        self.value(&self.template["Globals"]["Function"])
    }

    /// Evaluated properties of a resource of this stack.
    fn properties(&self, id: &str) -> Value {
        let of = self.resource(id);
        self.value(&of["Properties"])
    }

    fn resource(&self, id: &str) -> &Value {
        let of = self.template["Resources"].get(id);
        of.unwrap_or_else(|| panic!("no resource {id}"))
    }

    fn is_deployed(&self, resource: &Value) -> bool {
        match resource.get("Condition") {
            Some(name) => self.condition(name.as_str().unwrap()),
            None => true,
        }
    }

    fn child(&self, id: &str) -> Rc<Stack> {
        if let Some(child) = self.children.borrow().get(id) {
            return Rc::clone(child);
        }
        let properties = &self.resource(id)["Properties"];
        let location = properties.get("Location");
        let location = location.or(properties.get("TemplateURL")).unwrap();
        let template = read(location.as_str().unwrap());
        let given = match properties.get("Parameters") {
            Some(given) => self.value(given),
            None => json!({}),
        };
        let given = given.as_object().unwrap();
        for (name, value) in given {
            // Parameters of nested stacks are strings.
            assert!(
                !value.is_array() && !value.is_object(),
                "{id}: {name} is {value}"
            );
        }
        let child = Rc::new(Stack::of(template, given.clone()));
        let mut children = self.children.borrow_mut();
        children.insert(id.to_owned(), Rc::clone(&child));
        child
    }

    fn condition(&self, name: &str) -> bool {
        let of = self.template["Conditions"].get(name);
        self.truth(of.unwrap_or_else(|| panic!("no condition {name}")))
    }

    fn truth(&self, expression: &Value) -> bool {
        let (function, arguments) = single(expression).unwrap_or_else(|| panic!("{expression}"));
        let each = || arguments.as_array().unwrap().iter();
        match function {
            "Condition" => self.condition(arguments.as_str().unwrap()),
            "Fn::Equals" => {
                let sides: Vec<Value> = each().map(|side| self.value(side)).collect();
                assert_eq!(sides.len(), 2, "{expression}");
                text(&sides[0]) == text(&sides[1])
            }
            "Fn::Not" => !each().any(|one| self.truth(one)),
            "Fn::And" => each().all(|one| self.truth(one)),
            "Fn::Or" => each().any(|one| self.truth(one)),
            _ => panic!("{expression}"),
        }
    }

    /// The value of an expression; `null` stands for `AWS::NoValue`.
    pub(crate) fn value(&self, expression: &Value) -> Value {
        match expression {
            Value::Array(items) => {
                let values = items.iter().map(|item| self.value(item));
                values.filter(|value| !value.is_null()).collect()
            }
            Value::Object(members) => match single(expression) {
                Some((function, arguments)) if is_function(function) => {
                    self.call(function, arguments)
                }
                _ => {
                    let values = members
                        .iter()
                        .map(|(name, of)| (name.clone(), self.value(of)));
                    let values = values.filter(|(_, value)| !value.is_null());
                    Value::Object(values.collect())
                }
            },
            plain => plain.clone(),
        }
    }

    fn call(&self, function: &str, arguments: &Value) -> Value {
        let argument = |index: usize| {
            let argument = arguments.get(index);
            argument.unwrap_or_else(|| panic!("{function} {arguments}"))
        };
        match function {
            "Ref" => self.reference(&text(&self.value(arguments))),
            "Fn::GetAtt" => match arguments {
                Value::String(path) => {
                    let (id, attribute) = path.split_once('.').unwrap();
                    self.attribute(id, attribute)
                }
                _ => {
                    let id = text(&self.value(argument(0)));
                    self.attribute(&id, argument(1).as_str().unwrap())
                }
            },
            "Fn::Sub" => match arguments {
                Value::String(text) => self.substitute(text, &Value::Null),
                _ => self.substitute(argument(0).as_str().unwrap(), argument(1)),
            },
            "Fn::If" => match self.condition(argument(0).as_str().unwrap()) {
                true => self.value(argument(1)),
                false => self.value(argument(2)),
            },
            "Fn::Join" => {
                let parts = self.value(argument(1));
                let parts: Vec<String> = parts.as_array().unwrap().iter().map(text).collect();
                json!(parts.join(argument(0).as_str().unwrap()))
            }
            "Fn::Split" => {
                let whole = text(&self.value(argument(1)));
                let parts = whole.split(argument(0).as_str().unwrap());
                parts.map(Value::from).collect()
            }
            "Fn::Select" => {
                let index: usize = text(argument(0)).parse().unwrap();
                self.value(argument(1))[index].clone()
            }
            "Fn::FindInMap" => {
                let [map, first, second] =
                    [0, 1, 2].map(|index| text(&self.value(argument(index))));
                let found = &self.template["Mappings"][&map][&first][&second];
                assert!(!found.is_null(), "{function} {arguments}");
                found.clone()
            }
            "Fn::ImportValue" => self.import(&text(&self.value(arguments))),
            _ => panic!("{function} is not understood"),
        }
    }

    /// The output that the data stack exports under this name.
    fn import(&self, name: &str) -> Value {
        let data = self.data.as_ref().unwrap();
        let outputs = data.template["Outputs"].as_object().unwrap();
        let mut deployed = outputs.values().filter(|output| data.is_deployed(output));
        let output = deployed.find(|output| text(&data.value(&output["Export"]["Name"])) == name);
        let output = output.unwrap_or_else(|| panic!("no export {name}"));
        data.value(&output["Value"])
    }

    /// Replaces `${name}` and `${name.attribute}`; `${!name}` is a literal `${name}`.
    fn substitute(&self, text_: &str, given: &Value) -> Value {
        let mut out = String::new();
        let mut rest = text_;
        while let Some((before, after)) = rest.split_once("${") {
            let (name, after) = after.split_once('}').unwrap();
            out.push_str(before);
            match name.strip_prefix('!') {
                Some(literal) => out.push_str(&format!("${{{literal}}}")),
                None => {
                    let value = match (given.get(name), name.split_once('.')) {
                        (Some(given), _) => self.value(given),
                        (None, Some((id, attribute))) => self.attribute(id, attribute),
                        (None, None) => self.reference(name),
                    };
                    out.push_str(&text(&value));
                }
            }
            rest = after;
        }
        json!(out + rest)
    }

    fn reference(&self, name: &str) -> Value {
        match name {
            "AWS::NoValue" => return Value::Null,
            "AWS::Region" => return json!(REGION),
            "AWS::AccountId" => return json!(ACCOUNT),
            "AWS::Partition" => return json!("aws"),
            "AWS::URLSuffix" => return json!("amazonaws.com"),
            "AWS::StackName" => return json!(self.name),
            _ => {}
        }
        if let Some(value) = self.parameters.get(name) {
            return value.clone();
        }
        // SAM's names for the resources that it makes of a function.
        if let Some(function) = name.strip_suffix(".Alias") {
            let arn = text(&self.attribute(function, "Arn"));
            let alias = text(&self.globals()["AutoPublishAlias"]);
            return json!(format!("{arn}:{alias}"));
        }
        let kind = self.resource(name)["Type"].as_str().unwrap();
        let properties = self.properties(name);
        let named = |property: &str| match properties.get(property) {
            Some(given) => given.clone(),
            None => json!(name),
        };
        match kind {
            "AWS::DynamoDB::Table" => named("TableName"),
            "AWS::SQS::Queue" => {
                let queue = text(&named("QueueName"));
                json!(format!(
                    "https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/{queue}"
                ))
            }
            "AWS::SNS::Topic" => self.attribute(name, "TopicArn"),
            "AWS::Serverless::Function" => named("FunctionName"),
            "AWS::IAM::Role" => named("RoleName"),
            "AWS::Logs::LogGroup" => named("LogGroupName"),
            _ => json!(name),
        }
    }

    fn attribute(&self, id: &str, attribute: &str) -> Value {
        if id.ends_with(".Version") {
            return json!(format!("{id}.{attribute}"));
        }
        let of = self.resource(id);
        if is_stack(of) {
            let output = attribute.strip_prefix("Outputs.").unwrap();
            let child = self.child(id);
            let outputs = &child.template["Outputs"];
            let output = outputs.get(output);
            let output = output.unwrap_or_else(|| panic!("no output {id}.{attribute}"));
            return child.value(&output["Value"]);
        }
        let name = || text(&self.reference(id));
        let last = |url: String| url.rsplit('/').next().unwrap_or_default().to_owned();
        let arn = |service: &str, rest: String| {
            json!(format!("arn:aws:{service}:{REGION}:{ACCOUNT}:{rest}"))
        };
        match (of["Type"].as_str().unwrap(), attribute) {
            ("AWS::DynamoDB::Table", "Arn") => arn("dynamodb", format!("table/{}", name())),
            ("AWS::DynamoDB::Table", "StreamArn") => {
                arn("dynamodb", format!("table/{}/stream/label", name()))
            }
            ("AWS::SQS::Queue", "Arn") => arn("sqs", last(name())),
            ("AWS::SQS::Queue", "QueueName") => json!(last(name())),
            ("AWS::SQS::Queue", "QueueUrl") => json!(name()),
            ("AWS::S3::Bucket", "Arn") => {
                let name = text(&self.parameters["Name"]);
                json!(format!("arn:aws:s3:::{name}-failed-history"))
            }
            ("AWS::SNS::Topic", "TopicArn") => {
                let properties = self.properties(id);
                arn(
                    "sns",
                    properties.get("TopicName").map_or(id.to_owned(), text),
                )
            }
            ("AWS::Serverless::Function", "Arn") => arn("lambda", format!("function:{}", name())),
            ("AWS::Logs::LogGroup", "Arn") => arn("logs", format!("log-group:{}:*", name())),
            ("AWS::IAM::Role", "Arn") => json!(format!("arn:aws:iam::{ACCOUNT}:role/{}", name())),
            _ => json!(format!("{id}.{attribute}")),
        }
    }
}

/// A value as text, as CloudFormation converts it.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        other => panic!("{other} has no text"),
    }
}

fn single(expression: &Value) -> Option<(&str, &Value)> {
    let members = expression.as_object()?;
    let (name, of) = members.iter().next()?;
    (members.len() == 1).then_some((name, of))
}

fn is_function(name: &str) -> bool {
    name == "Ref" || name.starts_with("Fn::")
}

fn is_stack(resource: &Value) -> bool {
    matches!(
        resource["Type"].as_str(),
        Some("AWS::CloudFormation::Stack" | "AWS::Serverless::Application")
    )
}
