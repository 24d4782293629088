//! A relay of Oblivious HTTP (RFC 9458). It passes sealed requests of many clients on to one gateway, which sees the address of
//! the relay in place of theirs.

/// The most requests that a relay passes on at once. Each takes a thread and a connection.
pub const RELAYED_AT_ONCE: usize = 64;

/// The response of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// The HTTP status.
    pub status: u16,
    /// The content type, if the gateway names one.
    pub content_type: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The way to a gateway, which the program around the server supplies.
pub trait Uplink: Send + Sync {
    /// Returns the response of the gateway to a request for its keys. Nothing about the client goes with the request. Fails with
    /// the reason if the gateway does not answer.
    fn keys(&self) -> Result<Relayed, String>;

    /// Passes a sealed request on, and returns the response. Nothing about the client goes with the request. Fails with the
    /// reason if the gateway does not answer.
    fn pass_on(&self, sealed: &[u8]) -> Result<Relayed, String>;
}
