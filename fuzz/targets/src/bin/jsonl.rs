#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| hush_fuzz::ingest::jsonl(bytes));
