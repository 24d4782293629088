//! The orders of keys: each writes keys as bytes that sort as the keys do.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::{FromStr, from_utf8},
};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

/// An order of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SortOrder {
    /// The order of bytes, which for UTF-8 is that of code points.
    Bytes,
    /// The order of whole numbers, from -2^127 to 2^127 - 1.
    Number,
    /// The order of addresses: IPv4 before IPv6. An IPv4 address within IPv6 (`::ffff:192.0.2.1`) is the IPv4 address.
    Ip,
    /// The order of bytes that are written in hexadecimal, with or without `0x`.
    Hex,
}

/// The error for a text that names no [`SortOrder`].
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("expected one of: bytes, number, ip, hex")]
pub struct UnknownSortOrder;

impl FromStr for SortOrder {
    type Err = UnknownSortOrder;

    fn from_str(name: &str) -> Result<Self, UnknownSortOrder> {
        let all = [Self::Bytes, Self::Number, Self::Ip, Self::Hex];
        all.into_iter().find(|order| order.name() == name).ok_or(UnknownSortOrder)
    }
}

/// The byte in front of the four bytes of an IPv4 address, and of the sixteen bytes of an IPv6 address.
const V4: u8 = 4;
const V6: u8 = 6;

impl SortOrder {
    /// Returns the name of the order.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Number => "number",
            Self::Ip => "ip",
            Self::Hex => "hex",
        }
    }

    /// Returns what a key is, with an example.
    pub fn example(self) -> &'static str {
        match self {
            Self::Bytes => "text",
            Self::Number => "a whole number from -2^127 to 2^127 - 1, such as 1234",
            Self::Ip => "an IP address, such as 192.0.2.1",
            Self::Hex => "bytes in hexadecimal, such as 0x00ff",
        }
    }

    /// Returns the bytes by which a key is sorted, or `None` if the text is no key of this order.
    pub fn encode(self, text: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let trimmed = || from_utf8(text).ok().map(str::trim);
        let bytes = match self {
            Self::Bytes => text.to_vec(),
            Self::Number => {
                let number: i128 = trimmed()?.parse().ok()?;
                (number as u128 ^ 1 << 127).to_be_bytes().to_vec()
            }
            Self::Ip => encode_ip(trimmed()?.parse().ok()?),
            Self::Hex => {
                let text = trimmed()?;
                let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
                hex::decode(digits).ok()?
            }
        };
        Some(Zeroizing::new(bytes))
    }

    /// Returns the first and the last key of a network such as `192.0.2.0/24`, or of a single address. Returns `None` if the text
    /// is no network, or has bits of an address behind its length.
    pub fn encode_network(text: &[u8]) -> Option<[Vec<u8>; 2]> {
        let text = from_utf8(text).ok()?.trim();
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let given: IpAddr = address.parse().ok()?;
        let mapped = if given.is_ipv6() && given.to_canonical().is_ipv4() { 96 } else { 0 };
        let first = encode_ip(given);
        let bits = 8 * (first.len() as u32 - 1);
        let length = length.map_or(Some(bits), |length| length.checked_sub(mapped))?;
        let mut last = first.clone();
        for (at, byte) in last[1..].iter_mut().enumerate() {
            let fixed = length.saturating_sub(8 * at as u32).min(8);
            let free = (0xff_u32 >> fixed) as u8;
            if *byte & free != 0 {
                return None;
            }
            *byte |= free;
        }
        (length <= bits).then_some([first, last])
    }

    /// Returns the least key above `key`, or `None` if it is the greatest of its kind.
    pub fn next(self, key: &[u8]) -> Option<Vec<u8>> {
        let mut next = key.to_vec();
        let counted = match self {
            Self::Bytes | Self::Hex => {
                next.push(0);
                return Some(next);
            }
            Self::Number => &mut next[..],
            Self::Ip => &mut next[1..],
        };
        for byte in counted.iter_mut().rev() {
            *byte = byte.wrapping_add(1);
            if *byte != 0 {
                return Some(next);
            }
        }
        None
    }

    /// Returns a key as text, or `None` if the bytes are none of a key.
    pub fn decode(self, key: &[u8]) -> Option<String> {
        match self {
            Self::Bytes => Some(String::from_utf8_lossy(key).into_owned()),
            Self::Number => {
                let number = u128::from_be_bytes(key.try_into().ok()?) ^ 1 << 127;
                Some((number as i128).to_string())
            }
            Self::Ip => decode_ip(key).map(|address| address.to_string()),
            Self::Hex => Some(hex::encode(key)),
        }
    }
}

fn encode_ip(address: IpAddr) -> Vec<u8> {
    match address.to_canonical() {
        IpAddr::V4(address) => [&[V4], &address.octets()[..]].concat(),
        IpAddr::V6(address) => [&[V6], &address.octets()[..]].concat(),
    }
}

fn decode_ip(key: &[u8]) -> Option<IpAddr> {
    match *key {
        [V4, ref octets @ ..] => Some(Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).into()),
        [V6, ref octets @ ..] => Some(Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into()),
        _ => None,
    }
}

/// Returns the network from the address `first` to `last` as text, or `None` if they are no network.
pub(super) fn network_text(first: &[u8], last: &[u8]) -> Option<String> {
    let address = decode_ip(first)?;
    decode_ip(last)?;
    let free: u32 = first.iter().zip(last).map(|(a, b)| (a ^ b).count_ones()).sum();
    Some(format!("{address}/{}", 8 * (first.len() as u32 - 1) - free))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(order: SortOrder, keys: &[&str]) {
        let encoded: Vec<_> = keys.iter().map(|key| order.encode(key.as_bytes()).unwrap()).collect();
        assert!(encoded.is_sorted_by(|a, b| **a < **b), "{keys:?}");
        for (key, bytes) in keys.iter().zip(&encoded) {
            assert_eq!(order.decode(bytes).as_deref(), Some(*key));
        }
        for pair in encoded.windows(2) {
            let next = order.next(&pair[0]);
            assert!(next.is_none_or(|next| next > *pair[0] && next <= *pair[1]), "{keys:?}");
        }
    }

    #[test]
    fn bytes_sort_as_keys_do() {
        let least = i128::MIN.to_string();
        let greatest = i128::MAX.to_string();
        sorted(SortOrder::Number, &[&least, "-10", "-9", "0", "9", "10", "18446744073709551616", &greatest]);
        sorted(SortOrder::Ip, &["0.0.0.0", "9.0.0.255", "10.0.0.0", "255.255.255.255", "::", "2001:db8::1"]);
        sorted(SortOrder::Hex, &["", "00", "00ff", "01"]);
        sorted(SortOrder::Bytes, &["", "a", "aa", "b", "é"]);
        for (order, bad) in [
            (SortOrder::Number, "1.5"),
            (SortOrder::Ip, "1.2.3"),
            (SortOrder::Ip, "1.2.3.4/8"),
            (SortOrder::Hex, "0x0"),
        ] {
            assert_eq!(order.encode(bad.as_bytes()), None, "{bad}");
        }
        assert_eq!(SortOrder::Ip.encode(b"::ffff:1.2.3.4"), SortOrder::Ip.encode(b" 1.2.3.4\n"));
        assert_eq!(SortOrder::Hex.encode(b"0x00FF"), SortOrder::Hex.encode(b"00ff"));
    }

    #[test]
    fn an_order_has_a_name_an_example_and_a_next_key() {
        for (name, example, key, next) in [
            ("bytes", "text", "ab", "ab\0"),
            ("number", "1234", "255", "256"),
            ("number", "1234", "-1", "0"),
            ("ip", "192.0.2.1", "10.0.255.255", "10.1.0.0"),
            ("ip", "192.0.2.1", "::ff", "::100"),
            ("hex", "0x00ff", "0xff", "0xff00"),
        ] {
            let order: SortOrder = name.parse().unwrap();
            assert_eq!(order.name(), name);
            assert!(order.example().ends_with(example) && order.encode(example.as_bytes()).is_some());
            let [key, next] = [key, next].map(|key| order.encode(key.as_bytes()).unwrap());
            assert_eq!(order.next(&key), Some(next.to_vec()), "{name}");
        }
        for (order, last) in [
            (SortOrder::Number, "170141183460469231731687303715884105727"),
            (SortOrder::Ip, "255.255.255.255"),
        ] {
            assert_eq!(order.next(&order.encode(last.as_bytes()).unwrap()), None, "{last}");
        }
        assert_eq!("".parse::<SortOrder>(), Err(UnknownSortOrder));
    }

    #[test]
    fn networks_have_ends() {
        let ends = |text: &str| {
            let ends = SortOrder::encode_network(text.as_bytes())?;
            let shown = ends.each_ref().map(|end| SortOrder::Ip.decode(end).unwrap()).join("-");
            assert_eq!(network_text(&ends[0], &ends[1]).unwrap().split('/').count(), 2);
            Some(shown)
        };
        for (text, expected) in [
            ("10.0.0.0/8", "10.0.0.0-10.255.255.255"),
            ("0.0.0.0/0", "0.0.0.0-255.255.255.255"),
            ("1.2.3.4", "1.2.3.4-1.2.3.4"),
            ("1.2.3.128/25", "1.2.3.128-1.2.3.255"),
            ("2001:db8::/33", "2001:db8::-2001:db8:7fff:ffff:ffff:ffff:ffff:ffff"),
            ("::/0", "::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("::ffff:10.0.0.0/104", "10.0.0.0-10.255.255.255"),
        ] {
            assert_eq!(ends(text).as_deref(), Some(expected), "{text}");
        }
        for bad in ["10.0.0.1/8", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "x/8", "::ffff:10.0.0.0/95", ""] {
            assert_eq!(ends(bad), None, "{bad}");
        }
    }
}
