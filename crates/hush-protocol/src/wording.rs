//! Texts that name options. An error and its remedy are the same at every *door* (command line, Python, HTTP), but the
//! names of options differ. A text therefore has slots for options, and each process sets once how its door spells them
//! ([`speak`]).

use std::{
    cell::Cell,
    fmt::{self, Display, Formatter},
    sync::RwLock,
};

/// A function that spells a slot as a door does.
pub type Naming = fn(&Slot<'_>) -> String;

/// The spelling of the process.
static NAMING: RwLock<Naming> = RwLock::new(neutral);

thread_local! {
    /// Whether this thread works for a caller who came in by another door than the process's own.
    static IS_NEUTRAL: Cell<bool> = const { Cell::new(false) };
}

/// An item that every door spells in its own way. Names are those of the command line, without dashes.
#[derive(Clone, Copy)]
pub enum Slot<'a> {
    /// An option.
    Option(&'a str),
    /// An option without a value, switched on.
    Switch(&'a str),
    /// An option with a value.
    Setting(&'a str, &'a dyn Display),
    /// A command, with options.
    Command(&'a str, &'a [Slot<'a>]),
}

/// A text with slots: `{out}` is an option, `{force=true}` a switch, `{on-duplicate=last}` a setting, `{compact()}` a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording(pub &'static str);

/// Sets the spelling of slots for the whole process. Before the first call, texts are spelled as in [`neutrally`].
pub fn speak(naming: Naming) {
    *NAMING.write().unwrap_or_else(|poisoned| poisoned.into_inner()) = naming;
}

/// Calls `work`. During the call, this thread spells options as in JSON, in quotes. It is for a caller who came in by
/// another door than the process's own.
pub fn neutrally<T>(work: impl FnOnce() -> T) -> T {
    /// A guard that restores the spelling of the thread, also after a panic.
    struct Before(bool);

    impl Drop for Before {
        fn drop(&mut self) {
            IS_NEUTRAL.set(self.0);
        }
    }

    let _before = Before(IS_NEUTRAL.replace(true));
    work()
}

fn neutral(slot: &Slot<'_>) -> String {
    match slot {
        Slot::Option(name) => format!("'{name}'"),
        Slot::Switch(name) => format!("'{name}: true'"),
        Slot::Setting(name, value) => format!("'{name}: {value}'"),
        Slot::Command(name, options) => {
            options.iter().fold(format!("'{name}'"), |text, option| format!("{text} with {option}"))
        }
    }
}

/// Converts a name to camel case: `ca-cert` and `ca_cert` become `caCert`.
pub fn camel_case(name: &str) -> String {
    let mut words = name.split(['-', '_']);
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        name + &head.to_uppercase() + rest
    })
}

impl Display for Slot<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let own = if IS_NEUTRAL.get() {
            neutral
        } else {
            *NAMING.read().unwrap_or_else(|poisoned| poisoned.into_inner())
        };
        f.write_str(&own(self))
    }
}

impl Display for Wording {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.split('{');
        f.write_str(parts.next().unwrap_or_default())?;
        parts.try_for_each(|part| {
            let (slot, text) = part.split_once('}').unwrap_or((part, ""));
            let slot = match (slot.split_once('='), slot.strip_suffix("()")) {
                (Some((name, "true")), _) => Slot::Switch(name),
                (Some((name, value)), _) => return write!(f, "{}{text}", Slot::Setting(name, &value)),
                (_, Some(command)) => Slot::Command(command, &[]),
                _ => Slot::Option(slot),
            };
            write!(f, "{slot}{text}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shouted(slot: &Slot<'_>) -> String {
        neutral(slot).to_uppercase()
    }

    #[test]
    fn options_are_named_as_languages_do() {
        assert_eq!(["ca-cert", "key", "lookups_per_key"].map(camel_case), ["caCert", "key", "lookupsPerKey"]);
    }

    #[test]
    fn texts_are_in_words_of_the_door() {
        let text = Wording("{sign} it, {force=true} {on-duplicate=last}, or {compact()}");
        let command = Slot::Command("compact", &[Slot::Setting("longest", &51)]);
        let said = || format!("{text}; {command}");
        let neutral =
            "'sign' it, 'force: true' 'on-duplicate: last', or 'compact'; 'compact' with 'longest: 51'";
        assert_eq!(said(), neutral);
        speak(shouted);
        assert_eq!(
            (said(), neutrally(said)),
            (
                "'SIGN' it, 'FORCE: TRUE' 'ON-DUPLICATE: LAST', or 'COMPACT'; 'COMPACT' WITH 'LONGEST: 51'"
                    .into(),
                neutral.into()
            )
        );
        // After a panic, the former spelling is restored.
        let ended = std::panic::catch_unwind(|| neutrally(|| panic!("ended")));
        assert!(ended.is_err() && said().starts_with("'SIGN'"));
        speak(super::neutral);
    }
}
