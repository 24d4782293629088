//! The hint: resumed, verified, and never kept when wrong.

use std::{
    fs::{self, File},
    sync::mpsc,
    thread,
    time::{Duration, SystemTime},
};

use hush_client::http::{HintCache, HttpClient, HttpError, HttpOptions};
use hush_he::params::DEFAULT_LWE;
use tempfile::tempdir;

use super::{
    files, open, options, sample,
    sample::Sample,
    server::{Reply, Request, Server},
};

fn is_hint(request: &Request) -> bool {
    request.path.starts_with("/v1/blobs/")
}

/// Returns a server of `sample` that answers the first requests for the hint with `faults` in turn.
fn faulty(sample: &Sample, faults: Vec<Reply>) -> Server {
    let (sample, mut faults) = (sample.clone(), faults.into_iter());
    Server::start(move |request| {
        let fault = if is_hint(request) { faults.next() } else { None };
        fault.unwrap_or_else(|| sample.reply(request))
    })
}

#[test]
fn a_hint_is_downloaded_once() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![]);
    let first = open(&server.url(), cache.path()).unwrap();
    assert!(first.stats().setup_bytes_down > sample.hint.len() as u64);
    let second = open(&server.url(), cache.path()).unwrap();
    assert!(second.stats().setup_bytes_down < sample.hint.len() as u64);
    assert_eq!(server.requests("/v1/blobs/").len(), 1);
    assert_eq!(files(cache.path()), [sample.hint_name()]);
}

#[test]
fn a_cut_download_goes_on_where_it_stopped() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let cut = Reply { cut: Some(5000), ..Reply::new(200, sample.hint.as_slice()) };
    let server = faulty(&sample, vec![cut]);
    let table = open(&server.url(), cache.path()).unwrap();
    let requests = server.requests("/v1/blobs/");
    let ranges: Vec<_> = requests.iter().map(|request| request.header("range")).collect();
    assert_eq!(ranges, [None, Some("bytes=5000-")]);
    let other = server.requests("/v1/tables");
    assert_eq!(other.len(), 2, "list and descriptor are fetched once");
    assert!(table.stats().setup_bytes_down < sample.hint.len() as u64 + 5000);
}

#[test]
fn another_process_goes_on_where_one_gave_up() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let cuts = [3000, 0, 0].map(|cut| {
        let (range, rest) =
            (format!("bytes 3000-{}/{}", sample.hint.len() - 1, sample.hint.len()), &sample.hint[3000..]);
        match cut {
            0 => Reply { cut: Some(0), ..Reply::new(206, rest) }.with("Content-Range", range),
            cut => Reply { cut: Some(cut), ..Reply::new(200, sample.hint.as_slice()) },
        }
    });
    let server = faulty(&sample, cuts.into());
    let error = open(&server.url(), cache.path()).err().unwrap();
    assert!(matches!(error, HttpError::Interrupted { present: 3000, .. }), "{error}");
    assert_eq!(files(cache.path()), [format!("{}.part", sample.hint_name())]);
    open(&server.url(), cache.path()).unwrap();
    assert_eq!(server.requests("/v1/blobs/").last().unwrap().header("range"), Some("bytes=3000-"));
    assert_eq!(files(cache.path()), [sample.hint_name()]);
}

#[test]
fn a_server_without_ranges_sends_all_of_it_again() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let cut = Reply { cut: Some(5000), ..Reply::new(200, sample.hint.as_slice()) };
    let whole = Reply::new(200, sample.hint.as_slice());
    open(&faulty(&sample, vec![cut, whole]).url(), cache.path()).unwrap();
    assert_eq!(fs::read(cache.path().join(sample.hint_name())).unwrap(), sample.hint);
}

#[test]
fn a_damaged_part_is_thrown_away() {
    let sample = sample(1);
    for length in [sample.hint.len() / 2, sample.hint.len(), sample.hint.len() + 1] {
        let cache = tempdir().unwrap();
        let part = cache.path().join(format!("{}.part", sample.hint_name()));
        fs::write(part, vec![0x55; length]).unwrap();
        let server = faulty(&sample, vec![]);
        open(&server.url(), cache.path()).unwrap();
        assert_eq!(server.requests("/v1/blobs/").last().unwrap().header("range"), None);
        assert_eq!(fs::read(cache.path().join(sample.hint_name())).unwrap(), sample.hint);
        assert_eq!(files(cache.path()).len(), 1);
    }
}

#[test]
fn a_damaged_cached_hint_is_downloaded_again() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let path = cache.path().join(sample.hint_name());
    let mut damaged = sample.hint.clone();
    damaged[1000] ^= 1;
    for content in [&damaged[..], &sample.hint[..100], &[]] {
        fs::write(&path, content).unwrap();
        let server = faulty(&sample, vec![]);
        open(&server.url(), cache.path()).unwrap();
        assert_eq!(server.requests("/v1/blobs/").len(), 1);
        assert_eq!(fs::read(&path).unwrap(), sample.hint);
    }
}

#[test]
fn a_wrong_hint_is_refused_and_not_kept() {
    let sample = sample(1);
    let mut other = sample.hint.clone();
    other[7] ^= 0x80;
    let longer = [&sample.hint[..], b"x"].concat();
    for wrong in [other, longer, sample.hint[1..].to_vec()] {
        let cache = tempdir().unwrap();
        let server = faulty(&sample, vec![Reply::new(200, wrong)]);
        let error = open(&server.url(), cache.path()).err().unwrap();
        assert!(matches!(error, HttpError::HintMismatch), "{error}");
        assert!(files(cache.path()).is_empty());
    }
}

#[test]
fn two_at_once_download_one_hint() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![]);
    let (sender, opened) = mpsc::channel();
    for _ in 0..4 {
        let (url, cache, sender) = (server.url(), cache.path().to_owned(), sender.clone());
        thread::spawn(move || sender.send(open(&url, &cache).unwrap()).unwrap());
    }
    // Tables stay open: whoever waits for a download does not wait for the table of another client.
    let tables: Vec<_> = (0..4).map(|_| opened.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
    assert_eq!(tables.len(), 4);
    assert_eq!(server.requests("/v1/blobs/").len(), 1);
    assert_eq!(files(cache.path()), [sample.hint_name()]);
}

#[test]
fn a_hint_that_is_too_long_is_not_downloaded() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let (server, bytes) = (faulty(&sample, vec![]), sample.hint.len() as u64);
    let open = |max_hint_bytes| {
        let options = HttpOptions { max_hint_bytes, ..options(cache.path()) };
        HttpClient::connect(&server.url(), options).unwrap().open(None)
    };
    let error = open(bytes - 1).err().unwrap();
    assert!(error.to_string().ends_with(&format!("'max-hint: {bytes}'")), "{error}");
    assert!(server.requests("/v1/blobs/").is_empty());
    open(bytes).unwrap();
}

#[test]
fn hints_that_nobody_uses_go_when_one_is_stored() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let write = |name: &str, content: &[u8], days: u64| {
        let path = cache.path().join(name);
        fs::write(&path, content).unwrap();
        let modified = SystemTime::now() - Duration::from_secs(days * 24 * 3600);
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    };
    let [old, part, young] = ["a".repeat(64), format!("{}.part", "b".repeat(64)), "c".repeat(64)];
    for (name, days) in [(old.as_str(), 61), (&part, 61), (&young, 59), ("notes", 61)] {
        write(name, b"x", days);
    }
    write(&sample.hint_name(), &sample.hint, 61);
    let server = faulty(&sample, vec![]);
    open(&server.url(), cache.path()).unwrap();
    assert_eq!(files(cache.path()).len(), 5, "nothing was stored");

    let other = Sample::new(2, DEFAULT_LWE);
    open(&faulty(&other, vec![]).url(), cache.path()).unwrap();
    let mut left = files(cache.path());
    left.sort();
    let mut expected = [young, "notes".into(), sample.hint_name(), other.hint_name()];
    expected.sort();
    assert_eq!(left, expected);
}

#[test]
fn without_a_cache_nothing_is_left() {
    let (sample, cache) = (sample(1), tempdir().unwrap());
    let server = faulty(&sample, vec![Reply { cut: Some(10), ..Reply::new(200, sample.hint.as_slice()) }]);
    let options = HttpOptions { cache: HintCache::Off, ..options(cache.path()) };
    HttpClient::connect(&server.url(), options).unwrap().open(None).unwrap();
    assert!(files(cache.path()).is_empty());
    assert_eq!(server.requests("/v1/blobs/").len(), 2);
}

#[test]
fn a_table_that_changes_before_its_hint_is_fetched_is_opened_all_the_same() {
    let (old, new, cache) = (sample(1), sample(2), tempdir().unwrap());
    let mut descriptors = 0;
    let server = Server::start(move |request| {
        descriptors += usize::from(request.path == "/v1/tables/sample");
        if descriptors == 1 && !is_hint(request) { old.reply(request) } else { new.reply(request) }
    });
    let table = open(&server.url(), cache.path()).unwrap();
    assert_eq!(table.table().descriptor(), &sample(2).descriptor);
}
