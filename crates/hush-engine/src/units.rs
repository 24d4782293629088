//! Numbers as people read them.

use std::fmt;

/// A number of bytes in binary units.
pub struct Bytes(pub usize);

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

/// A time in seconds, shown with three digits.
pub struct Seconds(pub f64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.0 {
            seconds if seconds < 1e-3 => (seconds * 1e6, "µs"),
            seconds if seconds < 1.0 => (seconds * 1e3, "ms"),
            seconds => (seconds, "s"),
        };
        let digits = if number < 10.0 { 2 } else { usize::from(number < 100.0) };
        write!(f, "{number:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_units() {
        for (seconds, text) in
            [(1.5e-6, "1.50 µs"), (0.0123, "12.3 ms"), (0.25, "250 ms"), (1.0, "1.00 s"), (321.0, "321 s")]
        {
            assert_eq!(Seconds(seconds).to_string(), text);
        }
    }

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
