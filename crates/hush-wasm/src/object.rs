//! JavaScript objects and numbers.

use std::time::Duration;

use hush_protocol::wording::camel_case;
use js_sys::{Object, Reflect};
use serde::Serialize;
use serde_json::Value;
use wasm_bindgen::JsValue;

/// Returns a plain object with these members.
pub(crate) fn object<const N: usize>(members: [(&str, JsValue); N]) -> JsValue {
    let object = Object::new();
    for (name, value) in members {
        set(&object, name, &value);
    }
    object.into()
}

/// Sets a member of a plain object.
pub(crate) fn set(object: &JsValue, name: &str, value: &JsValue) {
    Reflect::set(object, &name.into(), value).expect("a plain object takes any member");
}

/// Returns `value` as JSON, for what is small and rarely asked for: its names are those of JavaScript.
pub(crate) fn json(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).expect("names and numbers always have a JSON form");
    in_camel_case(value).to_string()
}

fn in_camel_case(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            members.into_iter().map(|(name, value)| (camel_case(&name), in_camel_case(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(in_camel_case).collect(),
        value => value,
    }
}

/// Milliseconds for a timer.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
