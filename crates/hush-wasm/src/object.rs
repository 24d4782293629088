//! JavaScript objects and numbers.

use std::time::Duration;

use js_sys::{Object, Reflect};
use serde::Serialize;
use wasm_bindgen::JsValue;

/// A plain object with these members.
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

/// `value` as JSON, for what is small and rarely asked for.
pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("names and numbers always have a JSON form")
}

/// Milliseconds for a timer.
pub(crate) fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
