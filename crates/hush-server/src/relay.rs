//! A relay of Oblivious HTTP (RFC 9458): passes sealed requests of many clients on to one gateway, which sees the relay's address
//! in place of theirs.

/// Requests that a relay passes on at once. Each takes a thread and a connection.
pub const RELAYED_AT_ONCE: usize = 64;

/// The response of a gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// The HTTP status.
    pub status: u16,
    /// The content type, if it said one.
    pub content_type: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// The way to a gateway: the program around the server has one.
pub trait Uplink: Send + Sync {
    /// Returns the gateway's keys. Nothing about the client goes with the request.
    fn keys(&self) -> Result<Relayed, String>;

    /// Passes a sealed request on. Nothing about the client goes with it.
    fn pass_on(&self, sealed: &[u8]) -> Result<Relayed, String>;
}
