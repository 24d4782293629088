#include "image.hpp"

#include <elf.h>

#include <cstring>

namespace hush_emulate {
namespace {

// The constant EM_CUDA, which not every elf.h has.
constexpr unsigned cuda_machine = 190;

template <class T>
const T* at(const void* image, size_t offset) {
    return reinterpret_cast<const T*>(static_cast<const char*>(image) + offset);
}

/// Returns the names of the global functions in the symbol tables.
std::set<std::string> functions(const void* image) {
    std::set<std::string> names;
    const Elf64_Ehdr* header = at<Elf64_Ehdr>(image, 0);
    if (header->e_machine != cuda_machine) return names;
    const Elf64_Shdr* sections = at<Elf64_Shdr>(image, header->e_shoff);
    for (size_t i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_SYMTAB) continue;
        const char* strings = at<char>(image, sections[sections[i].sh_link].sh_offset);
        const Elf64_Sym* symbols = at<Elf64_Sym>(image, sections[i].sh_offset);
        for (size_t j = 0; j < sections[i].sh_size / sizeof(Elf64_Sym); j++)
            if (ELF64_ST_TYPE(symbols[j].st_info) == STT_FUNC && ELF64_ST_BIND(symbols[j].st_info) == STB_GLOBAL)
                names.insert(strings + symbols[j].st_name);
    }
    return names;
}

/// Returns the words after `.entry`, up to the list of arguments.
std::set<std::string> entries(const char* text) {
    static constexpr char mark[] = ".entry ";
    std::set<std::string> names;
    while ((text = std::strstr(text, mark)) != nullptr) {
        text += sizeof mark - 1;
        names.emplace(text, std::strcspn(text, "("));
    }
    return names;
}

}  // namespace

std::set<std::string> kernels_of(const void* image) {
    if (std::memcmp(image, ELFMAG, SELFMAG) == 0) return functions(image);
    return entries(static_cast<const char*>(image));
}

}  // namespace hush_emulate
