//! The step `send_words`: the words of an answer are rounded and packed.

use super::*;

/// The shape of `send_words`, which turns the remaining words into an answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SendWords {
    /// The words that are rounded.
    pub rows: usize,
    /// The bytes of the packed words.
    pub bytes: usize,
}

impl StepKind for SendWords {
    fn work(&self, batch: usize) -> Work {
        let operand_bytes = (batch * (size_of::<u32>() * self.rows + self.bytes)) as f64;
        Work { operand_bytes, ..Work::default() }
    }

    fn sample<'b, B: Steps>(&self, make: &Maker<'_, 'b, B>) -> Made<'b> {
        let backend = make.backend;
        let words = make.folded(self.rows, make.batch)?;
        // If pieces have different widths, the sample has their mean for all.
        let bits = (8 * self.bytes).checked_div(self.rows).unwrap_or(1).clamp(1, 32) as u32;
        let sent = [SentRows { rows: 0..self.rows, bits }];
        Ok(Box::new(move || backend.send_words(&words, &sent, Rounding::HalfEven).map(drop)))
    }
}

/// Checks that `words` are whole queries, that the rows of every piece are among theirs, and that widths are 1..=32.
pub(crate) fn check<W: WordStore>(words: &LweBatch<W>, sent: &[SentRows]) -> Result<SendWords, OpsError> {
    let step = "send_words";
    OpsError::check_shape(step, "words of all queries", words.batch() * words.rows, words.words.len())?;
    for SentRows { rows, bits } in sent {
        OpsError::check_shape(step, "end of the rows", rows.end.min(words.rows), rows.end)?;
        OpsError::check_shape(step, "start of the rows", rows.start.min(rows.end), rows.start)?;
        OpsError::check_shape(step, "bits", (*bits).clamp(1, u32::BITS) as usize, *bits as usize)?;
    }
    let rows = sent.iter().map(|sent| sent.rows.len()).sum();
    Ok(SendWords { rows, bytes: sent.iter().map(SentRows::bytes).sum() })
}

/// Returns the bytes of each query that are sent.
pub(crate) fn reference(words: &LweBatch, sent: &[SentRows], rounding: Rounding) -> Vec<Vec<u8>> {
    (0..words.batch()).map(|query| rounding.pack(&words.words[words.range(query)], sent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::BatchWords;

    #[test]
    fn rows_that_are_sent_are_there() {
        let words = |words: usize| LweBatch { rows: 4, words: BatchWords::from(vec![0; words]) };
        let sent = |start, end, bits| [SentRows { rows: start..end, bits }];
        for good in [sent(0, 4, 1), sent(4, 4, 32), sent(1, 3, 18)] {
            assert!(check(&words(8), &good).is_ok(), "{good:?}");
        }
        assert!(check(&words(0), &sent(0, 4, 1)).is_ok());
        assert!(check(&words(6), &sent(0, 4, 1)).is_err());
        for bad in [sent(0, 5, 1), sent(3, 2, 1), sent(0, 4, 0), sent(0, 4, 33)] {
            assert!(check(&words(8), &bad).is_err(), "{bad:?}");
        }
    }
}
