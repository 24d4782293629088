//! Looks a key up, privately:
//! `cargo run -p hush-client --features http --example look_up -- http://127.0.0.1:7700 alice@example.org`

#![allow(clippy::print_stdout)]

use std::{env, error::Error, fs};

use hush_client::{
    Wanted,
    http::{HttpClient, HttpOptions, TlsOptions},
};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let (Some(url), Some(key)) = (args.next(), args.next()) else {
        return Err("usage: look_up URL KEY [TABLE]".into());
    };
    // Whom to trust and who asks, for a server that wants to know.
    let ca_cert = env::var_os("HUSHDB_CA_CERT").map(fs::read).transpose()?;
    let token =
        env::var("HUSHDB_TOKEN").ok().filter(|text| !text.is_empty()).map(|text| text.parse()).transpose()?;
    let options =
        HttpOptions { token, tls: TlsOptions { ca_cert, ..TlsOptions::default() }, ..HttpOptions::default() };

    let client = HttpClient::connect(&url, options)?;
    let mut table = client.open(args.next().as_deref())?;
    let found = table.lookup(&[Wanted::Key(key.into_bytes())])?;
    match &found[0] {
        Some(value) => println!("{}", String::from_utf8_lossy(value)),
        None => println!("not found"),
    }
    Ok(())
}
