//! The network of clients: the time in which TCP sends a request and its answer.
//!
//! TCP sends ten segments first (RFC 6928), and doubles its window with every round trip until the line is full. So a short message
//! takes one flight, and a longer one takes more, each of a round trip. A window falls back to ten segments when a connection is
//! idle (RFC 2861), so the next look-up of a person begins anew.

use std::fmt;

use hush_engine::Seconds;

use super::Offer;

/// The first window of a sender, in bytes: ten segments of 1,460.
const FIRST_WINDOW: f64 = 14_600.0;
/// The bytes of the head of a request, and of that of an answer.
const HEAD_BYTES: f64 = 300.0;
/// The round trips before the first request: one of TCP, one of TLS 1.3.
const HANDSHAKES: f64 = 2.0;

/// The network between a client and the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    /// The rate from a client to the server, in 10^6 bits a second.
    pub up: f64,
    /// The rate from the server to a client, in 10^6 bits a second.
    pub down: f64,
    /// The seconds of a round trip.
    pub rtt: f64,
}

/// The window of a sender when a message begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendWindow {
    /// Ten segments: the connection is new, or was idle.
    Cold,
    /// The line is full: look-ups follow one another.
    Warm,
}

impl Default for Network {
    /// Returns 32 Mbit/s both ways, and 40 ms.
    fn default() -> Self {
        Self { up: 32.0, down: 32.0, rtt: 40e-3 }
    }
}

impl Network {
    /// Returns the seconds from sending the first byte of a request to the last byte of its answer, without the server's.
    pub fn exchange_seconds(&self, up: f64, down: f64, window: SendWindow) -> f64 {
        let sent = |bytes: f64, megabits: f64| {
            let (flights, rest) = self.flights(bytes + HEAD_BYTES, megabits, window);
            f64::from(flights - 1) * self.rtt + rest / bytes_a_second(megabits)
        };
        self.rtt + sent(up, self.up) + sent(down, self.down)
    }

    /// Returns the flights of a request and of its answer, of a client that was idle.
    pub fn exchange_flights(&self, up: u64, down: u64) -> u32 {
        let flights =
            |bytes: u64, megabits| self.flights(bytes as f64 + HEAD_BYTES, megabits, SendWindow::Cold).0;
        flights(up, self.up) + flights(down, self.down)
    }

    /// Returns the flights of a look-up of a client that was idle: none in a table that is downloaded.
    pub fn look_up_flights(&self, offer: &Offer) -> u32 {
        if is_local(offer) { 0 } else { self.exchange_flights(offer.bytes_up, offer.bytes_down) }
    }

    /// Returns the seconds of a look-up of a client that is ready.
    pub fn look_up_seconds(&self, offer: &Offer, window: SendWindow) -> f64 {
        let sent = match is_local(offer) {
            true => 0.0,
            false => self.exchange_seconds(offer.bytes_up as f64, offer.bytes_down as f64, window),
        };
        offer.seconds + sent
    }

    /// Returns the seconds in which a client gets the table's hint, and sends keys so many times, if the table has them.
    pub fn setup_seconds(&self, offer: &Offer, keys: f64) -> f64 {
        let sent = |up: u64, down: u64| match up + down {
            0 => 0.0,
            _ => self.exchange_seconds(up as f64, down as f64, SendWindow::Cold),
        };
        keys * sent(offer.setup_bytes_up, 0) + sent(0, offer.setup_bytes_down)
    }

    /// Returns the seconds of the first look-up of a client: with handshakes, the list of tables, which has the description of the
    /// only one, keys and the hint.
    pub fn first_look_up_seconds(&self, offer: &Offer) -> f64 {
        HANDSHAKES * self.rtt
            + self.exchange_seconds(0.0, 0.0, SendWindow::Cold)
            + self.setup_seconds(offer, 1.0)
            + self.look_up_seconds(offer, SendWindow::Cold)
    }

    /// Returns the flights of a message, and the bytes that are left for the last one. A flight that fills the line is the last.
    fn flights(&self, bytes: f64, megabits: f64, window: SendWindow) -> (u32, f64) {
        let full = bytes_a_second(megabits) * self.rtt;
        let mut window = if window == SendWindow::Warm { full } else { FIRST_WINDOW };
        let mut left = bytes;
        let mut flights = 1;
        while window < full && left > window {
            left -= window;
            window *= 2.0;
            flights += 1;
        }
        (flights, left)
    }
}

/// Returns the bytes of the longest messages that take one flight, two, and so on.
pub(super) fn full_flights() -> impl Iterator<Item = f64> {
    (1..=8).map(|flights| FIRST_WINDOW * f64::from((1 << flights) - 1) - HEAD_BYTES)
}

/// Returns whether nothing is asked of a server: the table is downloaded.
fn is_local(offer: &Offer) -> bool {
    offer.bytes_up == 0
}

fn bytes_a_second(megabits: f64) -> f64 {
    megabits * 1e6 / 8.0
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} Mbit/s up, {} down and {} a round trip", self.up, self.down, Seconds(self.rtt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flights_double_until_the_line_is_full() {
        let fast = Network { up: 1e5, ..Network::default() };
        // Ten segments, and twice as many with each round trip.
        for (bytes, flights) in
            [(0.0, 1), (14_600.0, 1), (14_601.0, 2), (43_800.0, 2), (102_200.0, 3), (219e3, 4), (452e3, 5)]
        {
            assert_eq!(fast.flights(bytes, fast.up, SendWindow::Cold).0, flights, "{bytes}");
            assert_eq!(fast.flights(bytes, fast.up, SendWindow::Warm).0, 1, "{bytes}");
        }
        // 32 Mbit/s and 40 ms hold 160 kB: the fifth window fills the line, so the rest of a long message follows at its rate.
        let usual = Network::default();
        let long = usual.exchange_seconds(4e6, 0.0, SendWindow::Cold);
        let streamed = usual.exchange_seconds(4e6, 0.0, SendWindow::Warm);
        assert!(
            (1.0..1.2).contains(&streamed) && (streamed..streamed + 4.0 * usual.rtt).contains(&long),
            "{long}"
        );
    }

    #[test]
    fn longer_messages_and_slower_lines_take_longer() {
        for rtt in [1e-3, 20e-3, 60e-3, 300e-3] {
            let network = Network { rtt, ..Network::default() };
            let times: Vec<f64> = (0..60)
                .map(|step| network.exchange_seconds(1.3f64.powi(step), 100.0, SendWindow::Cold))
                .collect();
            assert!(times.is_sorted() && times[0] > rtt, "{times:?}");
            let slower = Network { up: 1.0, ..network };
            assert!(
                slower.exchange_seconds(1e5, 1.0, SendWindow::Cold)
                    > network.exchange_seconds(1e5, 1.0, SendWindow::Cold)
            );
        }
    }
}
