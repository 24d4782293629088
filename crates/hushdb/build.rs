//! The build script names the target for `hushdb version`. With the feature `page`, it writes `page.rs`, an array of the files that
//! `make page` made.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=HUSHDB_TARGET={}", std::env::var("TARGET").expect("cargo sets it"));
    #[cfg(feature = "page")]
    page::embed();
}

#[cfg(feature = "page")]
mod page {
    use std::{env, fs, path::Path};

    /// Writes the array of paths and contents. Stops the build if the files are missing.
    pub(super) fn embed() {
        println!("cargo::rerun-if-env-changed=HUSH_PAGE_DIR");
        let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
        let folder = env::var("HUSH_PAGE_DIR").unwrap_or_else(|_| format!("{root}/../../target/page"));
        println!("cargo::rerun-if-changed={folder}");
        let folder = fs::canonicalize(&folder).unwrap_or_default();
        if !folder.join("index.html").exists() {
            println!(
                "cargo::error=the page is not built: run `make page` first, or leave the feature `page` out"
            );
            std::process::exit(1)
        }
        let mut files = String::new();
        collect(&folder, &folder, &mut files);
        let out = env::var("OUT_DIR").expect("cargo sets it");
        let array = format!("static FILES: &[(&str, &[u8])] = &[\n{files}];\n");
        fs::write(format!("{out}/page.rs"), array).expect("cargo makes the folder");
    }

    fn collect(folder: &Path, root: &Path, files: &mut String) {
        let mut paths: Vec<_> =
            fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        for path in paths {
            if path.is_dir() {
                collect(&path, root, files);
            } else {
                println!("cargo::rerun-if-changed={}", path.display());
                let name = path.strip_prefix(root).expect("below it").to_str().expect("plain names");
                *files += &format!("    ({name:?}, include_bytes!({path:?})),\n");
            }
        }
    }
}
