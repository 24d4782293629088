//! An input, piece by piece: the first bytes choose, the rest is for the decoder.

/// The rest of an input. At its end there are zeros.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    pub(crate) fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// At most `length` bytes.
    pub(crate) fn take(&mut self, length: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        head
    }

    /// Returns the bytes whose number is in front of them.
    pub(crate) fn piece(&mut self) -> &'a [u8] {
        let length = self.word();
        self.take(usize::from(length))
    }

    pub(crate) fn rest(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }
}

/// `bytes`, cut or filled up with zeros to `length`.
pub(crate) fn fitted(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut fitted = bytes[..length.min(bytes.len())].to_vec();
    fitted.resize(length, 0);
    fitted
}
