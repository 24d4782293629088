#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hush_fuzz::wire::query_request(bytes));
