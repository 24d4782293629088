//! The hint: found, resumed, verified, never kept when wrong.

use std::{sync::Arc, time::Duration};

use hush_client::session::{SessionError, SessionOptions};

use super::{
    driver::{Driver, Memory},
    message::{Reply, Request},
    open, sample,
    sample::Sample,
};

const BLOBS: &str = "/v1/blobs/";

fn hash(sample: &Sample) -> [u8; 32] {
    sample.descriptor.hint.as_ref().unwrap().blake3
}

/// Returns a server of `sample` that answers the first requests for the hint with `faults` in turn.
fn faulty(sample: &Sample, faults: Vec<Reply>) -> Driver {
    let (sample, mut faults) = (sample.clone(), faults.into_iter());
    Driver::new(move |request: &Request| {
        let fault = if request.path.starts_with(BLOBS) { faults.next() } else { None };
        fault.unwrap_or_else(|| sample.reply(request))
    })
}

fn ranges(driver: &Driver) -> Vec<Option<String>> {
    driver.asked(BLOBS).iter().map(|request| request.header("range").map(str::to_owned)).collect()
}

#[test]
fn a_hint_is_downloaded_once_for_all_who_share_a_host() {
    let sample = sample(1);
    let mut first = faulty(&sample, vec![]);
    let session = open(&mut first).unwrap();
    assert!(session.stats().setup_bytes_down > sample.hint.len() as u64);
    assert_eq!(first.host.hint(hash(&sample)).unwrap(), sample.hint);
    let mut second = faulty(&sample, vec![]);
    second.host = first.host.clone();
    assert!(open(&mut second).unwrap().stats().setup_bytes_down < sample.hint.len() as u64);
    assert!(second.asked(BLOBS).is_empty());
}

#[test]
fn a_host_that_has_to_look_first_is_asked_again() {
    let sample = sample(1);
    let mut driver = faulty(&sample, vec![]);
    open(&mut driver).unwrap();
    let paths =
        |driver: &Driver| driver.requests.iter().map(|request| request.path.clone()).collect::<Vec<_>>();
    let mut late = faulty(&sample, vec![]);
    late.host = Arc::new(Memory::late(3));
    open(&mut late).unwrap();
    assert_eq!(paths(&late), paths(&driver), "no request more");
    assert_eq!(late.waits, [Duration::ZERO; 3]);
    assert_eq!(late.host.events()[..3], vec![format!("needs {}", hex::encode(hash(&sample))); 3]);
}

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let sample = sample(1);
    let cut = |bytes| Reply { cut: Some(bytes), ..Reply::new(200, sample.hint.as_slice()) };
    let mut driver = faulty(&sample, vec![cut(5000)]);
    open(&mut driver).unwrap();
    assert_eq!(ranges(&driver), [None, Some("bytes=5000-".into())]);

    let mut driver = faulty(&sample, vec![cut(3000)]);
    driver.options.retry.attempts = 1;
    let error = open(&mut driver).err().unwrap();
    let bytes = sample.hint.len();
    assert_eq!(
        error.to_string(),
        format!(
            "the download broke off after 3000 of {bytes} bytes (connection reset): run it again to go on from there"
        )
    );
    open(&mut driver).unwrap();
    assert_eq!(ranges(&driver), [None, Some("bytes=3000-".into())]);
    let expected = [format!("HintStart {{ bytes: {bytes}, present: 3000 }}"), "HintEnd".into()];
    assert!(expected.iter().all(|event| driver.host.events().contains(event)));
}

#[test]
fn a_download_goes_on_while_there_is_progress() {
    let sample = sample(1);
    let bytes = sample.hint.len();
    let cut = |bytes| Reply { cut: Some(bytes), ..Reply::new(200, sample.hint.as_slice()) };
    // Parts of a few bytes, more of them than there are attempts.
    let part = |start: usize| {
        let range = format!("bytes {start}-{}/{bytes}", bytes - 1);
        Reply { cut: Some(100), ..Reply::new(206, &sample.hint[start..]).with("content-range", range) }
    };
    let mut faults = vec![cut(1000)];
    faults.extend((0..20).map(|at| part(1000 + 100 * at)));
    let mut driver = faulty(&sample, faults);
    open(&mut driver).unwrap();
    assert_eq!(driver.asked(BLOBS).len(), 22);
    assert_eq!(ranges(&driver).last().unwrap().as_deref(), Some("bytes=3000-"));

    // The same bytes again and again are none.
    let mut driver = faulty(&sample, (0..99).map(|at| cut(4000 + at % 2)).collect());
    let error = open(&mut driver).err().unwrap().to_string();
    assert!(error.starts_with(&format!("the download broke off after 4001 of {bytes} bytes")), "{error}");
    assert_eq!(driver.asked(BLOBS).len(), 1 + 5);

    // Nor does it take for ever byte by byte.
    let mut faults = vec![cut(1000)];
    faults.extend((1000..1300).map(|start| Reply { cut: Some(1), ..part(start) }));
    let mut driver = faulty(&sample, faults);
    driver.host = Arc::new(Memory::ticking(Duration::from_secs(30)));
    let error = open(&mut driver).err().unwrap();
    assert!(matches!(error, SessionError::Interrupted { present: 1001..1300, .. }), "{error}");
}

#[test]
fn a_short_body_and_an_unmet_range_are_asked_for_again() {
    let sample = sample(1);
    let mut driver = faulty(&sample, vec![Reply::new(200, &sample.hint[..4000])]);
    open(&mut driver).unwrap();
    assert_eq!(ranges(&driver), [None, Some("bytes=4000-".into())]);

    let mut driver = faulty(&sample, vec![Reply::problem(416, "range_not_satisfiable", "no")]);
    driver.host.put_hint(hash(&sample), &[7; 100]);
    open(&mut driver).unwrap();
    assert_eq!(ranges(&driver), [Some("bytes=100-".into()), None]);
}

#[test]
fn a_damaged_part_is_thrown_away() {
    let sample = sample(1);
    for length in [sample.hint.len() / 2, sample.hint.len(), sample.hint.len() + 1] {
        let mut driver = faulty(&sample, vec![]);
        driver.host.put_hint(hash(&sample), &vec![0x55; length]);
        open(&mut driver).unwrap();
        assert_eq!(ranges(&driver).last().unwrap(), &None);
        assert_eq!(driver.host.hint(hash(&sample)).unwrap(), sample.hint);
    }
}

#[test]
fn a_wrong_hint_is_refused_and_not_kept() {
    let sample = sample(1);
    let mut other = sample.hint.clone();
    other[7] ^= 0x80;
    let longer = [&sample.hint[..], b"x"].concat();
    let stated = Reply { stated_length: Some(1 << 60), ..Reply::new(200, "") };
    for wrong in [Reply::new(200, other), Reply::new(200, longer), stated] {
        let mut driver = faulty(&sample, vec![wrong]);
        let error = open(&mut driver).err().unwrap();
        assert!(matches!(error, SessionError::HintMismatch), "{error}");
        assert!(driver.host.hint(hash(&sample)).is_none());
    }
}

#[test]
fn a_hint_that_is_too_long_is_not_asked_for() {
    let sample = sample(1);
    let bytes = sample.hint.len() as u64;
    let mut driver = faulty(&sample, vec![]);
    driver.options = SessionOptions { max_hint_bytes: bytes - 1, ..SessionOptions::default() };
    let error = open(&mut driver).err().unwrap();
    assert!(matches!(error, SessionError::HintTooLong { .. }), "{error}");
    assert!(driver.asked(BLOBS).is_empty());
}

#[test]
fn a_cache_that_cannot_be_used_says_why() {
    let mut driver = faulty(&sample(1), vec![]);
    driver.host = Arc::new(Memory::broken());
    let error = open(&mut driver).err().unwrap();
    assert!(matches!(error, SessionError::Cache(_)));
    assert_eq!(error.to_string(), "the disk is full of eels");
}
