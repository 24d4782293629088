"""The parameter sets (docs/reference/file-formats.md, Parameter sets)."""

import dataclasses
import functools

from ring import Gadget, Ring


@dataclasses.dataclass(frozen=True)
class Lwe:
    n: int
    ring_degree: int  # of the public matrix


@dataclasses.dataclass(frozen=True)
class Switch:
    """The small ring of short answers: its degree, the rank of the module over it, and the parameters of its key."""

    degree: int
    rank: int
    primes: tuple[int, ...]
    gadget: Gadget
    response: tuple[int, int]


@dataclasses.dataclass(frozen=True)
class Tlwe:
    """The words of a query for private key switching: the entries of their secret, and the bits of their modulus."""

    n: int
    bits: int


@dataclasses.dataclass(frozen=True)
class Rlwe:
    """An RLWE parameter set. Gadgets of evaluation keys are set if a client uploads keys; the fold's gadget, if there is a fold."""

    name: str
    degree: int
    kept: tuple[int, ...]
    dropped: int | None
    plaintext_bits: int
    fold: Gadget
    response: tuple[int, int]
    key_dropped: int
    levels: tuple[Gadget, ...] = ()
    square: Gadget = Gadget(0, 0, 0)
    pack: Gadget = Gadget(0, 0, 0)
    selector_dropped: int = 0
    query_dropped: int = 0
    switch: Switch | None = None
    tlwe: Tlwe | None = None

    @functools.cached_property
    def kept_ring(self) -> Ring:
        """The ring modulo Q_1."""
        return Ring(self.degree, self.kept)

    @functools.cached_property
    def full_ring(self) -> Ring:
        """The ring modulo Q_e: the kept primes, then the dropped one."""
        return Ring(self.degree, self.kept + ((self.dropped,) if self.dropped else ()))

    @functools.cached_property
    def small_ring(self) -> Ring:
        """The ring modulo Q_s, of short answers."""
        return Ring(self.switch.degree, self.switch.primes)

    @property
    def key_context(self) -> str:
        """The context from which, with a seed, secrets and keys are derived."""

        def text(gadget: Gadget) -> str:
            return f"{gadget.width},{gadget.digits},{gadget.dropped}"

        small, tlwe = self.switch, self.tlwe
        return (
            f"{self.name}; degree {self.degree}; kept {list(self.kept)}; dropped {self.dropped or 1}; "
            f"levels {' '.join(map(text, self.levels))}; square {text(self.square)}; pack {text(self.pack)}; "
            f"key bits dropped {self.key_dropped}; error 3.2; ternary secrets; order of rows 1"
            + (f"; switched to {small.rank} of degree {small.degree}; primes {list(small.primes)}" if small else "")
            + (f"; by {text(small.gadget)}" if small else "")
            + (f"; private key switching from {tlwe.n} entries modulo 2^{tlwe.bits} by 1 digits" if tlwe else "")
        )


@dataclasses.dataclass(frozen=True)
class Column:
    """A parameter set of column packing: LWE and RLWE have the same secret."""

    ring: Rlwe
    rotation_bits: int = 46
    conjugation_dropped: int = 10

    @property
    def lwe(self) -> Lwe:
        return Lwe(self.ring.degree, self.ring.degree)


@dataclasses.dataclass(frozen=True)
class Pack:
    """A parameter set of packing by evaluation keys."""

    lwe: Lwe
    ring: Rlwe


LWE = {"LWE_N1280_STD3_2_RING256": Lwe(1280, 256)}

FINE, COARSE, PACKING = Gadget(19, 4, 18), Gadget(23, 3, 25), Gadget(30, 2, 33)
ONION_M31 = Rlwe(
    name="ONION_M31",
    degree=4096,
    kept=(2147377153, 2147352577),
    dropped=2147295233,
    plaintext_bits=22,
    levels=3 * (FINE,) + 9 * (COARSE,),
    square=COARSE,
    fold=Gadget(18, 2, 27),
    pack=Gadget(20, 2, 22),
    key_dropped=3,
    selector_dropped=41,
    query_dropped=41,
    response=(32, 24),
)
TFHE_KEYS = Gadget(10, 4, 12)
TFHE_COMPACT = Rlwe(
    name="TFHE_COMPACT",
    degree=2048,
    kept=(533463041,),
    dropped=8380417,
    plaintext_bits=4,
    levels=11 * (TFHE_KEYS,),
    square=TFHE_KEYS,
    fold=Gadget(8, 2, 13),
    key_dropped=0,
    selector_dropped=36,
    query_dropped=28,
    response=(12, 8),
    switch=Switch(degree=512, rank=2, primes=(66551809,), gadget=Gadget(7, 2, 12), response=(12, 8)),
)
INSECURE_PRIVKS_N256 = Rlwe(
    name="INSECURE_PRIVKS_N256",
    degree=256,
    kept=(531628033,),
    dropped=8380417,
    plaintext_bits=2,
    fold=Gadget(7, 2, 15),
    key_dropped=0,
    response=(11, 6),
    tlwe=Tlwe(n=64, bits=24),
)
RING = {preset.name: preset for preset in (ONION_M31, TFHE_COMPACT, INSECURE_PRIVKS_N256)}

PACK_M31 = dataclasses.replace(
    ONION_M31,
    name="PACK_M31",
    plaintext_bits=18,
    levels=12 * (PACKING,),
    square=PACKING,
    pack=Gadget(26, 1, 37),
    selector_dropped=48,
    query_dropped=48,
    response=(20, 12),
)
PACK = {
    "PACK_M31": Pack(Lwe(1280, 256), PACK_M31),
    "INSECURE_PACK_N256": Pack(
        Lwe(64, 32),
        dataclasses.replace(
            PACK_M31, name="INSECURE_PACK_N256", degree=256, levels=8 * (PACKING,), selector_dropped=44, query_dropped=44
        ),
    ),
}

COLPACK = Rlwe(
    name="COLPACK_N2048_Q52",
    degree=2048,
    kept=(67104769, 67084289),
    dropped=None,
    plaintext_bits=8,
    fold=Gadget(24, 1, 28),
    response=(18, 12),
    key_dropped=6,
)
COLUMN = {
    "COLPACK_N2048_Q52": Column(COLPACK),
    "INSECURE_COLPACK_N256": Column(dataclasses.replace(COLPACK, name="INSECURE_COLPACK_N256", degree=256)),
}
