//! Numbers for people.

use std::fmt;

/// A number of bytes in binary units.
pub(crate) struct Bytes(pub(crate) usize);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
        let log = self.0.max(1).ilog2() / 10;
        match log {
            0 => write!(f, "{} B", self.0),
            _ => {
                let unit = (log as usize).min(UNITS.len());
                write!(f, "{:.2} {}", self.0 as f64 / (1u64 << (10 * unit)) as f64, UNITS[unit - 1])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (3 << 19, "1.50 MiB"),
            (1 << 50, "1024.00 TiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }
}
