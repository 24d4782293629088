//! The file of `plan --machines`: which machines there are.

use std::{
    error::Error,
    fs,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use hush_engine::planner::{Cluster, Machine, MachineKind, Transport};
use serde::Deserialize;
use toml::Spanned;

use crate::commands::wishes::{parse_bytes, parse_seconds, read_machine};

/// 10^6 bits, in bytes.
const MBIT: f64 = 1e6 / 8.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    ray: Ray,
    machine: Vec<Spanned<Kind>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ray {
    call: Option<Spanned<String>>,
    copy: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Kind {
    name: Spanned<String>,
    count: Spanned<usize>,
    cores: Spanned<usize>,
    memory: Spanned<String>,
    network: Spanned<f64>,
    profile: Option<Spanned<PathBuf>>,
    speed: Option<Spanned<f64>>,
    price_hour: Option<Spanned<f64>>,
    #[serde(default)]
    heads: bool,
}

/// The machines of a file. Those without a profile of their own have that which `default` gives, asked for once, if at all.
///
/// # Errors
/// The file, line and field that are wrong, and why; or that of `default`.
pub(super) fn read(
    path: &Path,
    default: impl FnOnce() -> Result<Arc<Machine>, Box<dyn Error>>,
) -> Result<Cluster, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let reader = Reader { path, text: &text };
    let file: File = toml::from_str(&text).map_err(|error| reader.broken(&error))?;
    let (mut default, mut known) = (Some(default), None);
    let mut kinds: Vec<MachineKind> = Vec::new();
    for kind in &file.machine {
        let kind = kind.get_ref();
        if kinds.iter().any(|other| other.name == *kind.name.get_ref()) {
            return Err(reader.wrong(&kind.name, "name", "another machine is called so").into());
        }
        if kind.heads && kinds.iter().any(|other| other.heads) {
            return Err(reader.wrong(&kind.name, "heads", "heads run on machines of one kind").into());
        }
        let profile = match &kind.profile {
            Some(own) => {
                let own_path = path.parent().unwrap_or(Path::new(".")).join(own.get_ref());
                read_machine(&own_path).map_err(|error| reader.wrong(own, "profile", &error))?
            }
            None => match (&known, default.take()) {
                (None, Some(default)) => known.insert(default()?).clone(),
                (known, _) => known.clone().expect("asked for before"),
            },
        };
        kinds.push(reader.kind(kind, profile)?);
    }
    if !kinds.iter().any(|kind| !kind.heads) {
        return Err(format!("{}: no [[machine]] is for parts", path.display()).into());
    }
    Ok(Cluster { kinds, transport: reader.transport(&file.ray)? })
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn kind(&self, kind: &Kind, profile: Arc<Machine>) -> Result<MachineKind, String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name = kind.name.get_ref();
        if name.is_empty() || !name.chars().all(is_word) {
            return Err(self.wrong(&kind.name, "name", "a name has letters, digits, and any of -_."));
        }
        if let (Some(_), Some(speed)) = (&kind.profile, &kind.speed) {
            return Err(self.wrong(speed, "speed", "a machine with a profile is as fast as that says"));
        }
        Ok(MachineKind {
            name: name.clone(),
            count: self.some(&kind.count, "count")?,
            cores: self.some(&kind.cores, "cores")?,
            memory: parse_bytes(kind.memory.get_ref())
                .map_err(|error| self.wrong(&kind.memory, "memory", &error))?,
            network: MBIT * self.positive(&kind.network, "network")?,
            profile,
            speed: kind.speed.as_ref().map_or(Ok(1.0), |speed| self.positive(speed, "speed"))?,
            price_hour: kind.price_hour.as_ref().map(|price| self.price(price)).transpose()?,
            heads: kind.heads,
        })
    }

    fn transport(&self, ray: &Ray) -> Result<Transport, String> {
        let measured = Transport::default();
        let seconds = |text: &Spanned<String>| {
            parse_seconds(text.get_ref()).map_err(|error| self.wrong(text, "call", &error))
        };
        let bytes = |text: &Spanned<String>| {
            let bytes = parse_bytes(text.get_ref()).map_err(|error| self.wrong(text, "copy", &error));
            bytes.map(|bytes| bytes as f64)
        };
        Ok(Transport {
            call: ray.call.as_ref().map_or(Ok(measured.call), seconds)?,
            copy: ray.copy.as_ref().map_or(Ok(measured.copy), bytes)?,
        })
    }

    fn some(&self, number: &Spanned<usize>, field: &str) -> Result<usize, String> {
        match *number.get_ref() {
            0 => Err(self.wrong(number, field, "it is a number above 0")),
            some => Ok(some),
        }
    }

    fn positive(&self, number: &Spanned<f64>, field: &str) -> Result<f64, String> {
        let found = Some(*number.get_ref()).filter(|number| number.is_finite() && *number > 0.0);
        found.ok_or_else(|| self.wrong(number, field, "it is a number above 0"))
    }

    fn price(&self, price: &Spanned<f64>) -> Result<f64, String> {
        let found = Some(*price.get_ref()).filter(|price| price.is_finite() && *price >= 0.0);
        found.ok_or_else(|| self.wrong(price, "price-hour", "a price is a number"))
    }

    fn wrong<T>(&self, value: &Spanned<T>, field: &str, why: &str) -> String {
        self.at(value.span(), &format!("{field}: {why}"))
    }

    /// What is no TOML, or has other fields.
    fn broken(&self, error: &toml::de::Error) -> String {
        let message = error.message().trim().replace('\n', ", ");
        let Some(span) = error.span() else { return format!("{}: {message}", self.path.display()) };
        let start = self.text[..span.start].rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[start..].lines().next().unwrap_or_default();
        // The field, where the line has one and the message does not name it.
        match line.split_once('=') {
            Some((field, _)) if !message.contains("field `") => {
                self.at(span, &format!("{}: {message}", field.trim()))
            }
            _ => self.at(span, &message),
        }
    }

    fn at(&self, span: Range<usize>, what: &str) -> String {
        let line = 1 + self.text[..span.start].matches('\n').count();
        format!("{}, line {line}: {what}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "\
[ray]
call = \"2ms\"
copy = \"1G\"

[[machine]]
name = \"large\"
count = 3
cores = 16
memory = \"64G\"
network = 10000
price-hour = 0.8

[[machine]]
name = \"small\"
count = 2
cores = 8
memory = \"32G\"
network = 10000
speed = 0.5
";

    fn reference() -> Result<Arc<Machine>, Box<dyn Error>> {
        Ok(Arc::new(Machine::reference().clone()))
    }

    fn read_text(text: &str) -> Result<Cluster, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("machines.toml");
        fs::write(&path, text).unwrap();
        read(&path, reference)
            .map_err(|error| error.to_string().replace(&format!("{}", path.display()), "FILE"))
    }

    #[test]
    fn machines_are_read() {
        let Cluster { kinds, transport } = read_text(GOOD).unwrap();
        assert_eq!(transport, Transport { call: 2e-3, copy: (1u64 << 30) as f64 });
        let facts: Vec<_> = kinds
            .iter()
            .map(|kind| (&kind.name[..], kind.count, kind.cores, kind.memory >> 30, kind.speed))
            .collect();
        assert_eq!(facts, [("large", 3, 16, 64, 1.0), ("small", 2, 8, 32, 0.5)]);
        assert!(kinds.iter().all(|kind| kind.network == 1.25e9 && !kind.heads));
        assert_eq!([kinds[0].price_hour, kinds[1].price_hour], [Some(0.8), None]);
    }

    #[test]
    fn what_is_wrong_is_named_by_line_and_field() {
        for (from, to, error) in [
            (
                "cores = 16",
                "cores = \"16\"",
                "FILE, line 8: cores: invalid type: string \"16\", expected usize",
            ),
            ("cores = 16", "cores = 0", "FILE, line 8: cores: it is a number above 0"),
            ("cores = 16\n", "", "FILE, line 5: missing field `cores`"),
            ("cores = 16", "core = 16", "FILE, line 8: unknown field `core`, expected one of"),
            ("memory = \"64G\"", "memory = \"much\"", "FILE, line 9: memory: a number of bytes is like"),
            ("speed = 0.5", "speed = -1", "FILE, line 19: speed: it is a number above 0"),
            ("speed = 0.5", "profile = \"none.json\"", "FILE, line 19: profile: "),
            ("\"small\"", "\"large\"", "FILE, line 14: name: another machine is called so"),
            ("\"small\"", "\"a b\"", "FILE, line 14: name: a name has letters"),
            ("\"2ms\"", "\"2\"", "FILE, line 2: call: a time is like"),
            ("count = 2", "count 2", "FILE, line 15: "),
            ("[[machine]]\nname = \"large\"", "[machine]\nname = \"large\"", "FILE, line "),
        ] {
            let refused = read_text(&GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(refused.starts_with(error), "{to}: {refused}");
        }
        let heads = GOOD.replace("cores", "heads = true\ncores");
        assert!(read_text(&heads).unwrap_err().contains("heads: heads run on machines of one kind"));
        assert!(read_text("machine = []").unwrap_err().contains("no [[machine]] is for parts"));
    }
}
