//! The reader of the negative vectors (`vectors/negative`), a module of the tests that need them.

#![allow(dead_code, reason = "no program needs all of it")]

use std::{collections::HashMap, fs, path::Path, sync::Arc};

use serde_json::{Map, Value};

/// An input and its verdict.
pub(crate) struct Negative {
    /// The name of the vector, for messages.
    pub(crate) name: String,
    /// The bytes that the decoder reads.
    pub(crate) input: Vec<u8>,
    /// Whether the input is valid.
    pub(crate) is_valid: bool,
    /// A word for why the verdict is as it is.
    pub(crate) reason: String,
    /// The word of the code of the error, if programs tell the error apart.
    code: Option<String>,
    /// The descriptor of the table that the input belongs to. Empty if the format needs none.
    pub(crate) descriptor: Vec<u8>,
    /// Files by their hash, but for the input.
    pub(crate) blobs: Arc<HashMap<String, Vec<u8>>>,
    context: Map<String, Value>,
}

impl Negative {
    /// Returns a number of the context, or `None` if the vector has none of this name.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.context.get(name)?.as_u64()?.try_into().ok()
    }

    /// Returns a text of the context, or `None` if the vector has none of this name.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.context.get(name)?.as_str()
    }

    /// Compares what a decoder made of the input with the verdict, and the code with that of the vector if both are known.
    ///
    /// # Panics
    /// If they differ.
    pub(crate) fn check(&self, is_valid: bool, code: Option<&str>, said: &str) {
        assert_eq!(is_valid, self.is_valid, "{}: {said}", self.name);
        if let (Some(code), Some(expected)) = (code, &self.code) {
            assert_eq!(code, expected, "{}: {said}", self.name);
        }
    }
}

/// Returns the vectors of a format.
pub(crate) fn negatives(format: &str) -> Vec<Negative> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("vectors/negative"));
    let folder = folder.into_iter().find(|folder| folder.exists()).expect("the folder of the vectors");
    let text = fs::read_to_string(folder.join(format!("{format}.json"))).expect("a file of the format");
    let file: Value = serde_json::from_str(&text).expect("negative vectors");
    let texts = &file["texts"];
    let blobs = file["blobs"].as_object().expect("files by their hash").iter();
    let blobs: Arc<HashMap<_, _>> =
        Arc::new(blobs.map(|(hash, own)| (hash.clone(), octets(own, texts))).collect());
    let word = |value: &Value| value.as_str().map(str::to_owned);
    let vector = |own: &Value| {
        let mut context = file["context"].as_object().expect("a context").clone();
        context.extend(own["context"].as_object().cloned().unwrap_or_default());
        let is_valid = own["verdict"] == "valid";
        Negative {
            name: format!("{format}: {}", own["name"].as_str().expect("a name")),
            input: octets(&own["input"], texts),
            is_valid,
            reason: word(&own["reason"]).expect("a reason"),
            code: word(&own["code"]).or_else(|| if is_valid { None } else { word(&file["code"]) }),
            descriptor: context.get("descriptor").map_or(Vec::new(), |pieces| octets(pieces, texts)),
            blobs: blobs.clone(),
            context,
        }
    };
    file["vectors"].as_array().expect("a list of vectors").iter().map(vector).collect()
}

/// Returns the bytes that a list of pieces describes.
fn octets(pieces: &Value, texts: &Value) -> Vec<u8> {
    let piece = |piece: &Value| {
        let times = piece["times"].as_u64().unwrap_or(1) as usize;
        match (piece.as_str(), piece["hex"].as_str(), piece["text"].as_str()) {
            (Some(text), ..) => text.as_bytes().to_vec(),
            (_, Some(digits), _) => hex::decode(digits).expect("hexadecimal digits").repeat(times),
            (.., Some(text)) => text.repeat(times).into_bytes(),
            _ => changed(texts[piece["of"].as_str().expect("a piece")].as_str(), &piece["replace"])
                .into_bytes(),
        }
    };
    pieces.as_array().expect("a list of pieces").iter().flat_map(piece).collect()
}

/// Returns a text in which each text of `changes` at an odd place gives way, once, to the one behind it.
fn changed(text: Option<&str>, changes: &Value) -> String {
    let changes: Vec<&str> = changes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    changes.chunks_exact(2).fold(text.expect("a text of the file").to_owned(), |text, change| {
        assert!(text.contains(change[0]), "{} is in the text", change[0]);
        text.replacen(change[0], change[1], 1)
    })
}
