//! Oblivious HTTP (RFC 9458): the conventions of HushDB's clients, relays and servers beyond the RFCs.
//!
//! A relay sees the length of messages, so they are padded (RFC 9292 section 3.8). Every message is padded to a multiple of
//! [`PADDING`]. Every response to look-ups, even an error, is padded to the length of the answers. A relay then learns only
//! the table and the number of look-ups.

/// The path of a server's gateway (RFC 9540 section 4). `GET` returns its key configuration, `POST` takes sealed requests.
pub const GATEWAY_PATH: &str = "/.well-known/ohttp-gateway";
/// The media type of key configurations.
pub const KEYS_TYPE: &str = "application/ohttp-keys";
/// The media type of a sealed request.
pub const REQUEST_TYPE: &str = "message/ohttp-req";
/// The media type of a sealed response.
pub const RESPONSE_TYPE: &str = "message/ohttp-res";
/// The problem type (RFC 9458 section 5.3) of a request that was sealed with a key that the gateway does not have.
pub const KEY_PROBLEM: &str = "https://iana.org/assignments/http-problem-types#ohttp-key";
/// The problem type (RFC 9458 section 6.5.2) of a sealed request whose `Date` the gateway does not accept. The response has
/// a `Date` that it accepts.
pub const DATE_PROBLEM: &str = "https://iana.org/assignments/http-problem-types#date";
/// The most bytes of key configurations.
pub const MAX_KEYS_BYTES: usize = 4096;
/// The unit of message lengths, in bytes: every message is a multiple of it.
pub const PADDING: usize = 1024;
/// The bytes of a file that a client requests at a time. A sealed message is held whole in memory on both sides.
pub const PIECE_BYTES: u64 = 4 << 20;
/// The most bytes of a message's fields.
const MAX_FIELD_BYTES: u64 = 32 << 10;

/// Returns the length of a message of `bytes` bytes after padding.
pub const fn padded(bytes: usize) -> usize {
    bytes.saturating_add(PADDING - 1) / PADDING * PADDING
}

/// Checks that a binary HTTP message (RFC 9292 section 3.1) can be read. It must have a known length, and fields of limited
/// length, because fields take many times their bytes in memory.
pub fn check_message(message: &[u8]) -> Result<(), &'static str> {
    let mut rest = Varints(message);
    match rest.number()? {
        // A request: method, scheme, authority, path.
        0 => (0..4).try_for_each(|_| rest.skip(MAX_FIELD_BYTES))?,
        // A response: its status. HushDB sends no informational responses.
        1 if rest.number()? >= 200 => {}
        1 => return Err("it has an informational response"),
        _ => return Err("it is not a message of known length"),
    }
    for most in [MAX_FIELD_BYTES, u64::MAX, MAX_FIELD_BYTES] {
        // Missing sections at the end count as empty.
        if !rest.0.is_empty() {
            rest.skip(most)?;
        }
    }
    if rest.0.iter().all(|&byte| byte == 0) { Ok(()) } else { Err("it goes on after its end") }
}

/// A reader of QUIC integers (RFC 9000 section 16) and of the byte strings whose lengths they give.
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

    /// Skips a length and the bytes that follow it. Fails if the length exceeds `most`.
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
