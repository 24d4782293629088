// Checks of the kernels of conformance.cu and conformance_hopper.cu against scalar code.
#include "conformance.hpp"

#include <cstring>
#include <string>

#include "check.hpp"

namespace {

const HushEmulation* options;

Words run(const std::string& kernel, Shape shape, const Words& in, size_t out_words) {
    Words out(out_words);
    CHECK(launch(kernel.c_str(), shape, *options, out.data(), in.data()) == HUSH_EMULATE_OK);
    return out;
}

int32_t value(const uint32_t* words, size_t byte, bool is_signed) {
    const uint8_t bits = static_cast<uint8_t>(words[byte / 4] >> 8 * (byte % 4));
    return is_signed ? static_cast<int8_t>(bits) : bits;
}

void check_mma(const std::string& types, bool a_signed, bool b_signed) {
    const Words in = random_words(320, 1);
    const Words out = run("conform_mma_" + types, {1, 32, 0}, in, 128);
    for (uint32_t row = 0; row < 16; row++) {
        for (uint32_t column = 0; column < 8; column++) {
            uint32_t sum = 0;
            for (uint32_t k = 0; k < 32; k++) {
                const uint32_t *a = &in[(row % 8 * 4 + k % 16 / 4) * 10], *b = &in[(column * 4 + k % 16 / 4) * 10 + 4];
                sum += 2 * static_cast<uint32_t>(value(a + row / 8 + k / 16 * 2, k % 4, a_signed) *
                                                 value(b + k / 16, k % 4, b_signed));
            }
            const uint32_t lane = row % 8 * 4 + column / 2, i = row / 8 * 2 + column % 2;
            CHECK(out[lane * 4 + i] == in[lane * 10 + 6 + i] + sum);
        }
    }
}

void check_ldmatrix(uint32_t matrices) {
    const uint32_t rows = 8 * matrices;
    const Words in = random_words(rows * 4, 2);
    const Words out = run("conform_ldmatrix_x" + std::to_string(matrices), {1, 32, rows * 16}, in, 32 * matrices);
    for (uint32_t lane = 0; lane < 32; lane++)
        for (uint32_t i = 0; i < matrices; i++)
            CHECK(out[lane * matrices + i] == in[((8 * i + lane / 4) * 5 + 3) % rows * 4 + lane % 4]);
}

void check_copies() {
    const Words in = random_words(1536, 3);
    const Words out = run("conform_cp_async", {1, 64, 3072}, in, in.size());
    for (uint32_t i = 0; i < in.size(); i++) CHECK(out[i] == in[i / 256 * 256 + (i + 4) % 256]);
    const Words loaded = run("conform_load_stream_16", {1, 64, 0}, Words(in.begin(), in.begin() + 256), 256);
    CHECK(std::memcmp(loaded.data(), in.data(), 1024) == 0);
}

void check_sums() {
    const Words in = random_words(256, 4);
    Words sums(8);
    for (uint32_t i = 0; i < 256; i++) sums[in[i] % 8] += in[i];
    CHECK(run("conform_red_add", {4, 64, 0}, in, 8) == sums);
    CHECK(run("conform_atomic_add", {4, 64, 0}, in, 8) == sums);
}

void check_shuffles() {
    const Words in = random_words(64, 5);
    const Words out = run("conform_shuffles", {1, 64, 0}, in, 64 * 12);
    for (uint32_t warp = 0; warp < 2; warp++) {
        const uint32_t* of = &in[32 * warp];
        uint32_t votes = 0;
        bool any = false;
        for (uint32_t lane = 0; lane < 32; lane++) {
            votes |= (of[lane] & 1) << lane;
            any |= of[lane] % 64 == 0;
        }
        for (uint32_t lane = 0; lane < 32; lane++) {
            const uint32_t expected[12] = {of[of[lane] % 32],
                                           of[lane ^ 5],
                                           of[lane + 3 < 32 ? lane + 3 : lane],
                                           of[lane >= 9 ? lane - 9 : lane],
                                           of[lane / 8 * 8 + of[lane] % 8],
                                           of[(lane ^ 12) / 8 > lane / 8 ? lane : lane ^ 12],
                                           of[lane % 16 + 3 < 16 ? lane + 3 : lane],
                                           of[lane % 4 == 3 ? lane - 3 : lane],
                                           of[lane ^ 1] ^ (lane ^ 1),
                                           votes,
                                           any ? 2u : 1u,
                                           of[lane < 16 ? lane ^ 3 : lane ^ 6]};
            for (uint32_t i = 0; i < 12; i++) CHECK(out[(32 * warp + lane) * 12 + i] == expected[i]);
        }
    }
}

// Checks byte permutations with selectors of all bits: the fourth bit of a nibble has no meaning.
void check_byte_permutations() {
    const Words in = random_words(192, 12);
    const Words out = run("conform_integers", {1, 64, 0}, in, 832);
    for (uint32_t i = 0; i < 64; i++) {
        const uint32_t* words = &in[3 * i];
        for (uint32_t byte = 0; byte < 4; byte++) {
            const uint32_t number = words[2] >> 4 * byte & 7;
            CHECK((out[13 * i + 3] >> 8 * byte & 255) == (words[number / 4] >> 8 * (number % 4) & 255));
        }
    }
}

void check_barriers() {
    const Words in = random_words(128, 6);
    const Words out = run("conform_barriers", {1, 128, 512}, in, 128);
    const auto word = [&](uint32_t thread) { return in[thread / 64 * 64 + (thread + 33) % 64]; };
    for (uint32_t thread = 0; thread < 128; thread++) CHECK(out[thread] == word((thread + 71) % 128) + word(thread));
}

// The row and the column of accumulator `i` of a thread.
struct Place {
    Place(uint32_t thread, uint32_t i)
        : row(thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8), column(i / 4 * 8 + thread % 4 * 2 + i % 2) {}
    uint32_t row, column;
};

void check_wgmma(const std::string& types, bool a_signed, uint32_t columns) {
    const Words a = random_words(64 * 32, 7), b = random_words(columns * 32, 8), d = random_words(64 * columns, 9);
    Words out(d.size());
    const std::string kernel = "conform_wgmma_" + types + "_n" + std::to_string(columns) + "_hopper";
    const Shape shape{1, 128, (64 + columns) * 128};
    CHECK(launch(kernel.c_str(), shape, *options, out.data(), reinterpret_cast<const uint8_t*>(a.data()),
                 reinterpret_cast<const uint8_t*>(b.data()), d.data()) == HUSH_EMULATE_OK);
    for (uint32_t at = 0; at < d.size(); at++) {
        const Place place(at / (columns / 2), at % (columns / 2));
        uint32_t sum = d[at];
        for (uint32_t k = 0; k < 128; k++)
            sum += static_cast<uint32_t>(value(&a[place.row * 32], k, a_signed) * value(&b[place.column * 32], k, false));
        CHECK(out[at] == sum);
    }
}

void check_wgmma_groups() {
    const Words a = random_words(64 * 32, 7), b = random_words(16 * 32, 8), d = random_words(128 * 16, 9);
    Words out(d.size());
    CHECK(launch("conform_wgmma_groups_hopper", {1, 128, 80 * 128}, *options, out.data(),
                 reinterpret_cast<const uint8_t*>(a.data()), reinterpret_cast<const uint8_t*>(b.data()),
                 d.data()) == HUSH_EMULATE_OK);
    for (uint32_t at = 0; at < d.size(); at++) {
        const Place place(at / 16, at % 8);
        uint32_t sum = d[at];
        for (uint32_t k = 0; k < 128; k++)
            if (k / 32 % 2 == at / 8 % 2)
                sum += static_cast<uint32_t>(value(&a[place.row * 32], k, true) * value(&b[place.column * 32], k, false));
        CHECK(out[at] == sum);
    }
}

void check_bulk_copies() {
    const uint32_t pieces = 11;
    const Words in = random_words(pieces * 256, 10);
    Words out(pieces * 128);
    CHECK(launch("conform_bulk_copy_hopper", {1, 160, 3 * 1024 + 48}, *options, out.data(), in.data(), pieces) == 0);
    for (uint32_t i = 0; i < out.size(); i++)
        CHECK(out[i] == in[i / 128 * 256 + i % 128] + in[i / 128 * 256 + 255 - i % 128]);
}

void check_clusters() {
    const Words in = random_words(4 * 128, 13);
    const Words out = run("conform_cluster_hopper", {4, 128, 3096}, in, in.size());
    for (uint32_t i = 0; i < out.size(); i++) {
        const uint32_t block = i / 128, thread = i % 128, *fetched = &in[block / 2 * 256];
        const uint32_t taken = in[(block ^ 1) * 128 + 127 - thread] * 9 + (block % 2 ^ 1);
        CHECK(out[i] == (taken ^ fetched[thread] ^ fetched[255 - thread] * 7));
    }
}

}  // namespace

void check_conformance(const HushEmulation& emulation) {
    options = &emulation;
    check_mma("s8u8", true, false);
    check_mma("u8u8", false, false);
    check_mma("u8s8", false, true);
    check_mma("s8s8", true, true);
    check_ldmatrix(4);
    check_ldmatrix(2);
    check_copies();
    check_sums();
    check_shuffles();
    check_byte_permutations();
    check_barriers();
    if (emulation.capability_major < 9) return;
    for (uint32_t columns = 8; columns <= 256; columns *= 2) {
        check_wgmma("s8u8", true, columns);
        check_wgmma("u8u8", false, columns);
    }
    check_wgmma_groups();
    check_bulk_copies();
    check_clusters();
    const Words in = random_words(512, 11);
    const Words out = run("conform_set_max_registers_hopper", {1, 512, 0}, in, 512);
    for (uint32_t i = 0; i < 512; i++) CHECK(out[i] == in[i] * (i < 128 ? 3 : 5));
}
