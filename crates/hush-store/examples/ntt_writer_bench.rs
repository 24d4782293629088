use hush_ops::ntt_tiling::NttTiling;
use hush_store::ntt_tiles::NttTileWriter;
fn main() {
    let t = NttTiling::new(4096, 2, 256, 64).unwrap();
    let mut st = vec![1u64; t.bytes() / 8];
    let bytes = unsafe { st.align_to_mut::<u8>().1 };
    let polys: Vec<u32> = (0..16 * 16 * t.poly_words() as u32).collect();
    for _ in 0..3 {
        let w = NttTileWriter::new(t, bytes);
        let s = std::time::Instant::now();
        for tile in 0..t.tiles() {
            for r in (0..256).step_by(16) {
                w.write(tile, r..r + 16, &polys);
            }
        }
        println!("{:.2} GB/s", t.bytes() as f64 / s.elapsed().as_secs_f64() / 1e9);
    }
}
