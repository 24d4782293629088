//! Writes the bindings of a library that was built: `uniffi-bindgen generate LIBRARY --language kotlin --out-dir DIR`.

fn main() {
    uniffi::uniffi_bindgen_main();
}
