//! Oblivious HTTP (RFC 9458): what clients, relays and servers of HushDB agree on beside the RFCs.
//!
//! A relay sees how long messages are, so that they are padded (RFC 9292 section 3.8): all to a multiple of [`PADDING`], and what
//! answers look-ups to what the answers take, whatever it is. What a relay sees is then the table and the count of look-ups.

/// Where a server's gateway is (RFC 9540 section 4): its key configuration for `GET`, sealed requests for `POST`.
pub const GATEWAY_PATH: &str = "/.well-known/ohttp-gateway";
/// The media type of key configurations.
pub const KEYS_TYPE: &str = "application/ohttp-keys";
/// The media type of a sealed request.
pub const REQUEST_TYPE: &str = "message/ohttp-req";
/// The media type of a sealed response.
pub const RESPONSE_TYPE: &str = "message/ohttp-res";
/// The problem type (RFC 9458 section 5.3) of a request that is sealed for a key that the gateway does not have.
pub const KEY_PROBLEM: &str = "https://iana.org/assignments/http-problem-types#ohttp-key";
/// The problem type (RFC 9458 section 6.5.2) of a sealed request whose `Date` a gateway does not take; the response has one that it
/// takes.
pub const DATE_PROBLEM: &str = "https://iana.org/assignments/http-problem-types#date";
/// The most bytes of key configurations.
pub const MAX_KEYS_BYTES: usize = 4096;
/// Messages have a multiple of so many bytes.
pub const PADDING: usize = 1024;
/// Bytes of a file that clients ask for at once: a sealed message is whole in memory on both sides.
pub const PIECE_BYTES: u64 = 4 << 20;
/// The most bytes of a message's fields.
const MAX_FIELD_BYTES: u64 = 32 << 10;

/// Returns the bytes that a message of `bytes` bytes has when it is padded.
pub const fn padded(bytes: usize) -> usize {
    bytes.saturating_add(PADDING - 1) / PADDING * PADDING
}

/// Looks whether a binary HTTP message (RFC 9292 section 3.1) can be read: one of known length, with fields of a sane length, which
/// take many times their bytes in memory.
pub fn check_message(message: &[u8]) -> Result<(), &'static str> {
    let mut rest = Varints(message);
    match rest.number()? {
        // A request: method, scheme, authority, path.
        0 => (0..4).try_for_each(|_| rest.skip(MAX_FIELD_BYTES))?,
        // A response: its status. Informational ones are not sent.
        1 if rest.number()? >= 200 => {}
        1 => return Err("it has an informational response"),
        _ => return Err("it is not a message of known length"),
    }
    for most in [MAX_FIELD_BYTES, u64::MAX, MAX_FIELD_BYTES] {
        // What is missing at the end is empty.
        if !rest.0.is_empty() {
            rest.skip(most)?;
        }
    }
    if rest.0.iter().all(|&byte| byte == 0) { Ok(()) } else { Err("it goes on after its end") }
}

/// Integers of QUIC (RFC 9000 section 16), and what they say the length of.
struct Varints<'a>(&'a [u8]);

impl Varints<'_> {
    fn number(&mut self) -> Result<u64, &'static str> {
        let truncated = "it ends in its midst";
        let first = *self.0.first().ok_or(truncated)?;
        let length = 1 << (first >> 6);
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(truncated)?;
        self.0 = rest;
        let value = bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte));
        Ok(value & (u64::MAX >> (66 - 8 * length)))
    }

    /// Passes a length and what it is of, if that has at most so many bytes.
    fn skip(&mut self, most: u64) -> Result<(), &'static str> {
        let length = self.number()?;
        if length > most {
            return Err("its fields are too long");
        }
        let length = usize::try_from(length).map_err(|_| "it ends in its midst")?;
        self.0 = self.0.get(length..).ok_or("it ends in its midst")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_padded_to_multiples() {
        assert_eq!([0, 1, 1024, 1025].map(padded), [0, 1024, 1024, 2048]);
        assert_eq!(padded(usize::MAX) % PADDING, 0);
    }

    #[test]
    fn integers_are_read_as_in_the_rfc() {
        // RFC 9000, appendix A.1.
        let examples: [(&[u8], u64); 4] = [
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0x7b, 0xbd], 15_293),
            (&[0x25], 37),
        ];
        for (bytes, value) in examples {
            assert_eq!(Varints(bytes).number(), Ok(value));
            assert!(Varints(&bytes[..bytes.len() - 1]).number().is_err());
        }
    }

    #[test]
    fn messages_that_cannot_be_read_are_refused() {
        // GET https "" "/", no fields, a body of two bytes, padding.
        let request = b"\x00\x03GET\x05https\x00\x01/\x00\x02ab\x00\x00\x00";
        assert_eq!(check_message(request), Ok(()));
        assert_eq!(check_message(&request[..14]), Ok(()), "truncated where RFC 9292 allows it");
        let response = b"\x01\x40\xc8\x00\x02ab\x00\x00";
        assert_eq!(check_message(response), Ok(()));
        for (bad, why) in [
            (&b""[..], "ends"),
            (b"\x02\x03GET\x05https\x00\x01/\x00", "known length"),
            (b"\x00\x03GET\x05https\x00\x09/", "ends"),
            (b"\x00\x03GET\x05https\x00\x01/\xff\xff\xff\xff\xff\xff\xff\xff", "too long"),
            (b"\x01\x40\x64\x00", "informational"),
            (b"\x01\x40\xc8\x00\x02ab\x00\x07", "after its end"),
            (b"\x01\x40\xc8\x00\xbf\xff\xff\xff", "ends"),
        ] {
            let said = check_message(bad).unwrap_err();
            assert!(said.contains(why), "{said}");
        }
        let long = [&b"\x01\x40\xc8\x80\x00\x80\x01"[..], &vec![1; 40_000]].concat();
        assert_eq!(check_message(&long), Err("its fields are too long"));
    }
}
