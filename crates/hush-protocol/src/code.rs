//! Errors as data: every error of a server and of a client has a [`Code`]. Each door (the command line, HTTP, the other
//! languages) has its own wording for it.

/// A kind of errors that programs distinguish. In other languages, each is a class of exceptions with the name of the
/// variant. `docs/reference/clients.md` explains them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the page for programmers in other languages has it")]
pub enum ErrorKind {
    OptionError,
    InputError,
    ConnectionFailed,
    TimedOut,
    NotAllowed,
    NoSuchTable,
    ServerBusy,
    Untrusted,
    Other,
}

/// The action that resolves an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Correct the call, or the request.
    Caller,
    /// Inform the operator of the server.
    Operator,
    /// Set this option, or change its value. The name is that of the command line, without dashes.
    Option(&'static str),
    /// Wait for the time in `Retry-After`, then ask again with new queries. Clients do this by themselves.
    Wait,
    /// Ask again.
    Again,
    /// Fetch the table's descriptor again, because the table may have changed.
    FetchDescriptor,
    /// Upload the evaluation keys, and make new queries.
    UploadKeys,
    /// Fetch the gateway's key again, and seal the request with it.
    FetchGatewayKey,
    /// Seal the request again, with the date of the response if it has one.
    SealAnew,
}

/// Defines [`Code`]. Each line is a variant, its word, the status if servers send the code, its kind, remedy and title.
macro_rules! codes {
    ($($code:ident = $word:literal $($status:literal)?, $kind:ident, $remedy:expr, $title:literal;)*) => {
        /// The code of an error, for programs. Words, titles and statuses are part of the API.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $title] $code,)*
        }

        impl Code {
            /// All codes, those that servers send first.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// Returns the word that stands for the code on the wire and in programs.
            pub fn word(self) -> &'static str { match self { $(Self::$code => $word),* } }

            /// Returns the HTTP status, or `None` for an error that only clients have.
            pub fn status(self) -> Option<u16> { match self { $(Self::$code => None$(.or(Some($status)))?),* } }

            /// Returns the kind of the error.
            pub fn kind(self) -> ErrorKind { match self { $(Self::$code => ErrorKind::$kind),* } }

            /// Returns the action that resolves the error.
            pub fn remedy(self) -> Remedy {
                use Remedy::*;
                match self { $(Self::$code => $remedy),* }
            }

            /// Returns the title, which is the same for every occurrence of the error.
            pub fn title(self) -> &'static str { match self { $(Self::$code => $title),* } }
        }
    };
}

codes! {
    InvalidRequest = "invalid_request" 400, Other, Caller, "Invalid request";
    Unauthorized = "unauthorized" 401, NotAllowed, Option("token"), "No valid token";
    Forbidden = "forbidden" 403, NotAllowed, Option("token"), "Not allowed";
    UnknownTable = "unknown_table" 404, NoSuchTable, Option("table"), "Unknown table";
    NotFound = "not_found" 404, Other, FetchDescriptor, "Not found";
    MethodNotAllowed = "method_not_allowed" 405, Other, Caller, "Method not allowed";
    Timeout = "timeout" 408, TimedOut, Again, "Request timed out";
    EpochGone = "epoch_gone" 410, Other, FetchDescriptor, "Epoch is gone";
    KeyMismatch = "key_mismatch" 400, Other, Again, "Keys do not match their hash";
    KeyNotFound = "key_not_found" 428, Other, UploadKeys, "Keys are not here";
    KeyPreset = "key_preset" 400, Other, FetchDescriptor, "Keys of another parameter set";
    TooLarge = "too_large" 413, Other, Caller, "Request too large";
    UnsupportedMediaType = "unsupported_media_type" 415, Other, Caller, "Unsupported content type";
    UnsupportedVersion = "unsupported_version" 415, Other, Caller, "Unsupported format version";
    RangeNotSatisfiable = "range_not_satisfiable" 416, Other, Again, "Range not satisfiable";
    Misdirected = "misdirected" 421, Other, Operator, "Not a name of this server";
    OhttpKey = "ohttp_key" 400, Other, FetchGatewayKey, "Another key of the gateway";
    OhttpDate = "ohttp_date" 400, Other, SealAnew, "Date not acceptable";
    OhttpReplay = "ohttp_replay" 409, Other, SealAnew, "Answered before";
    BadGateway = "bad_gateway" 502, ConnectionFailed, Wait, "The gateway does not answer";
    Throttled = "throttled" 429, ServerBusy, Wait, "Too many requests";
    Warming = "warming" 503, ServerBusy, Wait, "Still loading";
    Overloaded = "overloaded" 503, ServerBusy, Wait, "Overloaded";
    PartUnavailable = "part_unavailable" 503, ServerBusy, Wait, "A part does not answer";
    DeviceLost = "device_lost" 503, Other, Operator, "Device is lost";
    TableFailed = "table_failed" 503, Other, Operator, "Table failed to load";
    Refused = "refused" 409, Other, Caller, "Cannot be done";
    Internal = "internal" 500, Other, Operator, "Internal error";

    Url = "url", OptionError, Caller, "Not the URL of a server";
    Options = "options", OptionError, Caller, "Invalid option or argument";
    BadKey = "bad_key", OptionError, Caller, "Not a key of this table";
    KeyTooLong = "key_too_long", OptionError, Caller, "Key too long";
    WrongLookup = "wrong_lookup", OptionError, Caller, "A key for a table by position, or a position for a table by key";
    IndexOutOfRange = "index_out_of_range", OptionError, Caller, "Position not in the table";
    TokenInTheOpen = "token_in_the_open", OptionError, Caller, "A token would go where others can read it";
    Input = "input", InputError, Caller, "Unreadable records, or a folder that holds no table";
    Unreachable = "unreachable", ConnectionFailed, Again, "No connection, or it broke off";
    Tls = "tls", ConnectionFailed, Option("ca-cert"), "No secure connection";
    Proxy = "proxy", ConnectionFailed, Operator, "A proxy answered in place of the server";
    Relay = "relay", ConnectionFailed, Operator, "The relay, or what came through it, is of no use";
    Interrupted = "interrupted", ConnectionFailed, Again, "The download of a hint broke off";
    Moved = "moved", Other, Caller, "The server has another URL";
    NotHushdb = "not_hushdb", Other, Caller, "The answer is not one of this API";
    NoTables = "no_tables", NoSuchTable, Operator, "The server has no tables";
    ChooseTable = "choose_table", NoSuchTable, Option("table"), "Several tables, and none was named";
    Weak = "weak", Untrusted, Operator, "Less than 128 bits of security";
    Insecure = "insecure", Untrusted, Operator, "A parameter set for tests";
    OtherEpoch = "other_epoch", Untrusted, Option("epoch"), "Another epoch than the accepted one";
    NotSigned = "not_signed", Untrusted, Operator, "No signature of the trusted publisher";
    OtherPublisher = "other_publisher", Untrusted, Operator, "Signed by another publisher";
    OtherName = "other_name", Untrusted, Option("trust"), "Signed under another name";
    OlderTable = "older_table", Untrusted, Again, "Older than a table that was seen before";
    HintTooLong = "hint_too_long", Other, Option("max-hint"), "The hint is longer than allowed";
    HintMismatch = "hint_mismatch", Other, Again, "The hint is not the one that the descriptor names";
    BadAnswer = "bad_answer", Other, Operator, "The answer, or the descriptor, does not follow the protocol";
    KeysNotKept = "keys_not_kept", Other, Operator, "The server did not keep the evaluation keys";
    Closed = "closed", Other, Caller, "The table or the server was closed";
    Aborted = "aborted", Other, Caller, "The caller gave the call up";
    NoRandomness = "no_randomness", Other, Caller, "The machine has no source of randomness";
    Cache = "cache", Other, Caller, "The cache, or the memory for a hint, cannot be used";
    Wasm = "wasm", Other, Again, "The WebAssembly module cannot be loaded";
    ClientFailed = "client_failed", Other, Caller, "The program itself failed";
}

impl Code {
    /// Returns the code of an HTTP error with `status`. `word` is the code in the problem document, if there is one. A word
    /// that is unknown, or belongs to another status, is ignored, and the status alone determines the code.
    pub fn of_refusal(status: u16, word: Option<&str>) -> Self {
        Self::ALL
            .iter()
            .copied()
            .find(|code: &Self| Some(code.word()) == word && code.status() == Some(status))
            .unwrap_or(match status {
                401 => Self::Unauthorized,
                403 => Self::Forbidden,
                429 => Self::Throttled,
                503 => Self::Overloaded,
                _ => Self::Refused,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_what_its_word_and_its_status_say() {
        for (status, word, code) in [
            (428, Some("key_not_found"), Code::KeyNotFound),
            (404, Some("key_not_found"), Code::Refused),
            (428, Some("new_in_a_later_version"), Code::Refused),
            (503, Some("new_in_a_later_version"), Code::Overloaded),
            (503, None, Code::Overloaded),
            (404, Some("url"), Code::Refused),
        ] {
            assert_eq!(Code::of_refusal(status, word), code, "{status} {word:?}");
        }
        for &code in Code::ALL {
            let Some(status) = code.status() else { continue };
            assert_eq!(Code::of_refusal(status, Some(code.word())), code);
        }
    }
}
