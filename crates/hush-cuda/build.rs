//! Feature `driver`: the images that `make cuda` left become an array, `kernels.rs`. Feature `emulator`: the same kernels, as
//! C++, become a static library.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "driver")]
    driver::embed();
    #[cfg(feature = "emulator")]
    emulator::compile();
}

#[cfg(feature = "driver")]
mod driver {
    use std::{env, fs, path::Path};

    use serde_json::Value;

    /// Writes the array of images. Stops if they are not there, or not of these sources.
    pub(super) fn embed() {
        println!("cargo::rerun-if-env-changed=HUSH_CUDA_DIR");
        println!("cargo::rerun-if-changed=kernels");
        let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
        let folder = env::var("HUSH_CUDA_DIR").unwrap_or_else(|_| format!("{root}/../../target/cuda"));
        let path = format!("{folder}/manifest.json");
        println!("cargo::rerun-if-changed={path}");
        let Ok(text) = fs::read(&path) else { stop("the CUDA kernels are not compiled") };
        let manifest: Value = serde_json::from_slice(&text).expect("make cuda writes JSON");
        if manifest["sources"].as_str() != Some(&fingerprint(Path::new("kernels"))) {
            stop("the CUDA kernels have changed since they were compiled");
        }
        let out = env::var("OUT_DIR").expect("cargo sets it");
        fs::write(format!("{out}/kernels.rs"), images(&manifest, &folder)).expect("cargo makes the folder");
    }

    fn stop(why: &str) -> ! {
        println!("cargo::error={why}: run `make cuda` first");
        std::process::exit(1)
    }

    /// FNV-1a of paths and contents of the kernel sources, as scripts/cuda computes it.
    fn fingerprint(kernels: &Path) -> String {
        let mut files = Vec::new();
        collect(kernels, kernels, &mut files);
        files.sort();
        let mut value = 0xcbf2_9ce4_8422_2325_u64;
        for file in files {
            let text = fs::read(kernels.join(&file)).expect("it was just listed");
            for byte in file.bytes().chain([0]).chain(text).chain([0]) {
                value = (value ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        format!("{value:016x}")
    }

    /// Adds the paths of kernel sources below `folder`, relative to `kernels`.
    fn collect(kernels: &Path, folder: &Path, files: &mut Vec<String>) {
        for entry in fs::read_dir(folder).expect("a folder of sources") {
            let path = entry.expect("a file of sources").path();
            if path.is_dir() {
                collect(kernels, &path, files);
            } else if path.extension().is_some_and(|kind| kind == "cu" || kind == "cuh") {
                let file = path.strip_prefix(kernels).expect("below it");
                files.push(file.to_str().expect("sources have plain names").to_string());
            }
        }
    }

    /// Returns the array. The driver reads text (PTX) up to a zero.
    fn images(manifest: &Value, folder: &str) -> String {
        let folder = fs::canonicalize(folder).expect("the manifest was in it");
        let mut images = String::new();
        for (name, targets) in manifest["modules"].as_object().expect("a table") {
            for (target, image) in targets.as_object().expect("a table") {
                let file = folder.join(image["file"].as_str().expect("a name"));
                println!("cargo::rerun-if-changed={}", file.display());
                let (target, bytes) = match target.as_str() {
                    "sm_90a" => ("Sm90a", format!("&Aligned(*include_bytes!({file:?})).0")),
                    "sm_80" => ("Sm80", format!("&Aligned(*include_bytes!({file:?})).0")),
                    "compute_80" => {
                        ("Compute80", format!("concat!(include_str!({file:?}), \"\\0\").as_bytes()"))
                    }
                    other => panic!("{other}: a target that src/device/modules.rs does not know"),
                };
                let kernels: Vec<_> = image["kernels"].as_object().expect("a table").keys().collect();
                let kernels = format!("kernels: &{kernels:?}");
                images += &format!(
                    "    Image {{ name: {name:?}, target: Target::{target}, {kernels}, bytes: {bytes} }},\n"
                );
            }
        }
        format!("pub(super) static IMAGES: &[Image] = &[\n{images}];\n")
    }
}

#[cfg(feature = "emulator")]
mod emulator {
    use std::{env, ffi::OsStr, fs, path::PathBuf};

    /// The environment variable that names sanitizers for the C++, with commas between them. scripts/sanitize.sh sets it.
    const SANITIZERS: &str = "HUSH_SANITIZERS";
    /// The libraries of sanitizers.
    const RUNTIMES: [(&str, &str); 3] = [("address", "asan"), ("undefined", "ubsan"), ("thread", "tsan")];

    /// Compiles `emulate/*.cpp` and `kernels/*.cu` into one library. All of it is linked: kernels are found through objects that
    /// register them, to which nothing refers.
    pub(super) fn compile() {
        println!("cargo::rerun-if-changed=emulate");
        println!("cargo::rerun-if-changed=kernels");
        let mut build = cc::Build::new();
        build.cpp(true).std("c++17").opt_level(2).flag("-xc++").flag_if_supported("-Wno-unknown-pragmas");
        // Kernels read vectors of words as such.
        build.flag("-fno-strict-aliasing");
        build.include("kernels").include("emulate");
        build.files(sources("emulate", "cpp")).files(sources("kernels", "cu"));
        println!("cargo::rerun-if-env-changed={SANITIZERS}");
        let sanitizers = env::var(SANITIZERS).unwrap_or_default();
        if !sanitizers.is_empty() {
            build.flag(format!("-fsanitize={sanitizers}"));
            build.flags(["-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1"]);
            if sanitizers.contains("undefined") {
                // The compiler takes long to optimize the checks that this sanitizer adds.
                build.opt_level(1);
            }
        }
        build.link_lib_modifier("+whole-archive").compile("hush_emulator");
        if cfg!(feature = "driver") && sanitizers.is_empty() {
            link_driver(&build);
        }
        for sanitizer in sanitizers.split_terminator(',') {
            let runtime = RUNTIMES.iter().find(|(name, _)| *name == sanitizer);
            println!("cargo::rustc-link-lib=dylib={}", runtime.expect("a sanitizer of g++").1);
        }
    }

    /// Makes a library with the interface of the CUDA driver over the emulator, in a folder by itself.
    fn link_driver(build: &cc::Build) {
        let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets it"));
        let folder = out.join("driver");
        fs::create_dir_all(&folder).expect("cargo makes the folder above");
        let mut command = build.get_compiler().to_command();
        command.args(["-shared", "-pthread", "-Wl,-Bsymbolic", "-o"]).arg(folder.join("libcuda.so"));
        command.args(sources("emulate/driver", "cpp"));
        command.args(["-xnone", "-Wl,--whole-archive"]).arg(out.join("libhush_emulator.a"));
        let status = command.arg("-Wl,--no-whole-archive").status().expect("it compiled the rest");
        assert!(status.success(), "the emulated driver is not to be linked");
        println!("cargo::rustc-env=HUSH_EMULATED_DRIVER={}", folder.display());
    }

    fn sources(folder: &str, kind: &str) -> Vec<PathBuf> {
        let files = fs::read_dir(folder).expect("a folder of sources");
        let mut files: Vec<_> = files.map(|entry| entry.expect("a file of sources").path()).collect();
        files.retain(|file| file.extension() == Some(OsStr::new(kind)));
        files.sort();
        files
    }
}
