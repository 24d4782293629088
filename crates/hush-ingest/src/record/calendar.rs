//! Dates and times as text (RFC 3339), from the counts that Parquet stores.

use std::fmt::Write;

/// The unit of a count of time: 1,000, 1,000,000 or 1,000,000,000 parts of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondFraction {
    Millis,
    Micros,
    Nanos,
}

impl SecondFraction {
    fn per_second(self) -> i64 {
        match self {
            Self::Millis => 1_000,
            Self::Micros => 1_000_000,
            Self::Nanos => 1_000_000_000,
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Millis => 3,
            Self::Micros => 6,
            Self::Nanos => 9,
        }
    }
}

/// Formats the date `days` after 1970-01-01, in the Gregorian calendar: `2024-02-29`.
pub(crate) fn date(days: i64) -> String {
    // Years here start on 1 March, so that a leap day is the last day of its year; eras are 400 years.
    const DAYS_PER_ERA: i64 = 146_097;
    let since_era_0 = days + 719_468;
    let era = since_era_0.div_euclid(DAYS_PER_ERA);
    let day_of_era = since_era_0.rem_euclid(DAYS_PER_ERA);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / (DAYS_PER_ERA - 1);
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March have 31, 30, 31, 30, 31 days, over and over: 153 days in five months.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = 400 * era + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Formats `count` parts of a second after midnight: `23:59:59`, with `.123456` if there is a fraction.
pub(crate) fn time(count: i64, fraction: SecondFraction) -> String {
    let seconds = count.div_euclid(fraction.per_second());
    let part = count.rem_euclid(fraction.per_second());
    let mut text = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if part != 0 {
        write!(text, ".{part:0digits$}", digits = fraction.digits()).expect("a String takes any text");
    }
    text
}

/// Formats `count` parts of a second after 1970-01-01T00:00:00: `2024-02-29T12:00:00Z`; `Z` only if `utc`.
pub(crate) fn timestamp(count: i64, fraction: SecondFraction, utc: bool) -> String {
    let per_day = 86_400 * fraction.per_second();
    let days = count.div_euclid(per_day);
    let rest = count.rem_euclid(per_day);
    format!("{}T{}{}", date(days), time(rest, fraction), if utc { "Z" } else { "" })
}

/// Parses a date. Returns the days after 1970-01-01; `None` if the date is invalid.
pub fn days_of(date: &str) -> Option<i64> {
    let (sign, digits) = date.strip_prefix('-').map_or((1, date), |digits| (-1, digits));
    let mut parts = digits.split('-').map(|part| part.parse::<i64>().ok());
    let year = sign * parts.next()??;
    let month = parts.next()??;
    let day = parts.next()??;
    if parts.next().is_some()
        || !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || year.abs() > 1 << 40
    {
        return None;
    }
    // As in [`date`], a year begins on 1 March.
    let year = year - i64::from(month <= 2);
    let month_from_march = (month + 9) % 12;
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = 365 * year_of_era + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = 146_097 * era + day_of_era - 719_468;
    // The conversion back refuses days that a month lacks.
    (self::date(days) == date).then_some(days)
}

/// Parses a time. Returns the nanoseconds after midnight; `None` if the time is invalid.
pub fn nanos_of_day(time: &str) -> Option<i64> {
    let (seconds, fraction) = time.split_once('.').unwrap_or((time, ""));
    let mut parts = seconds.split(':').map(|part| part.parse::<u32>().ok());
    let hours = parts.next()??;
    let minutes = parts.next()??;
    let seconds = parts.next()??;
    if parts.next().is_some() || hours > 99 || minutes > 59 || seconds > 60 || fraction.len() > 9 {
        return None;
    }
    let nanos: u32 = format!("{fraction:0<9}").parse().ok()?;
    let seconds = i64::from(3600 * hours + 60 * minutes + seconds);
    Some(1_000_000_000 * seconds + i64::from(nanos))
}

/// Parses a timestamp. Returns the nanoseconds after 1970-01-01T00:00:00; `None` if the timestamp is invalid.
pub fn nanos_of(timestamp: &str) -> Option<i128> {
    let (date, time) = timestamp.split_once('T')?;
    let time = nanos_of_day(time.strip_suffix('Z').unwrap_or(time))?;
    Some(86_400_000_000_000 * i128::from(days_of(date)?) + i128::from(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days_have_their_dates() {
        // Checked with `date -ud '1970-01-01 N days'`.
        for (days, text) in [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (19_782, "2024-02-29"),
            (47_541, "2100-03-01"),
            (-25_509, "1900-02-28"),
            (-719_162, "0001-01-01"),
            (2_932_896, "9999-12-31"),
        ] {
            assert_eq!(date(days), text);
            assert_eq!(days_of(text), Some(days));
        }
        for text in [
            "",
            "2024-02-30",
            "2023-02-29",
            "2024-13-01",
            "2024-1-01",
            "2024-01",
            "x-01-01",
            "9999999999999-01-01",
        ] {
            assert_eq!(days_of(text), None, "{text}");
        }
    }

    #[test]
    fn consecutive_days_are_consecutive_dates() {
        let mut expected = (1899, 12, 31);
        for days in -25_567..50_000 {
            let (mut year, mut month, mut day) = expected;
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let last = [31, 28 + i32::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1];
            day += 1;
            if day > last {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
            expected = (year, month, day);
            assert_eq!(date(days), format!("{year:04}-{month:02}-{day:02}"));
        }
    }

    #[test]
    fn times_are_read_back() {
        for count in [0, -1, 1, 1_709_208_000_123_456, -62_135_596_800_000_001, 253_402_300_800_000_000] {
            for utc in [true, false] {
                let text = timestamp(count, SecondFraction::Micros, utc);
                assert_eq!(nanos_of(&text), Some(1000 * i128::from(count)), "{text}");
            }
        }
        assert_eq!(nanos_of(&timestamp(i64::MIN, SecondFraction::Nanos, true)), Some(i64::MIN.into()));
        assert_eq!(
            nanos_of(&timestamp(i64::MAX, SecondFraction::Millis, false)),
            Some(1_000_000 * i128::from(i64::MAX))
        );
        assert_eq!(nanos_of_day("23:59:59.250"), Some(86_399_250_000_000));
        for text in ["", "12", "12:00", "12:60:00", "12:00:00.1234567890", "a:b:c", "12:00:00:00"] {
            assert_eq!(nanos_of_day(text), None, "{text}");
        }
    }

    #[test]
    fn timestamps_have_a_fraction_only_if_there_is_one() {
        assert_eq!(timestamp(0, SecondFraction::Millis, true), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(-1, SecondFraction::Micros, false), "1969-12-31T23:59:59.999999");
        assert_eq!(timestamp(1_709_208_000_001, SecondFraction::Millis, true), "2024-02-29T12:00:00.001Z");
        assert_eq!(timestamp(i64::MIN, SecondFraction::Nanos, true), "1677-09-21T00:12:43.145224192Z");
        assert_eq!(
            timestamp(i64::MAX, SecondFraction::Millis, true).len(),
            "292278994-08-17T07:12:55.807Z".len()
        );
        assert_eq!(time(86_399_999_000, SecondFraction::Micros), "23:59:59.999000");
    }
}
