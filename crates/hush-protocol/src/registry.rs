//! The list of all protocols, one line each. This is the only file that names every page.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use crate::{
    any_page::{AnyPage, erased},
    colpack::Colpack,
    colpack_s::ColpackS,
    column_page::ColumnPacked,
    double::Double,
    double_pack::DoublePack,
    download::Download,
    exppack_d::ExppackD,
    exppack_s::ExppackS,
    frodo::Frodo,
    hybrid::Hybrid,
    lwe_page::OverLwe,
    onion::Onion,
    pack_page::Packed,
    page::Page,
    ring_page::OverRing,
    simple::Simple,
    tfhe::Tfhe,
    tfhe_privks::TfhePrivks,
};

/// An operation on the page of a protocol, generic over the type of the page.
pub trait Visitor {
    /// The result of a visit.
    type Output;

    /// Executes the operation for the page `P`.
    fn visit<P: Page>(self) -> Self::Output;
}

/// Declares protocols, one line each: `Name => page`. `where test` marks a page that only tests have.
macro_rules! pages {
    ($($name:ident => $page:ty $(where $cfg:meta)?,)*) => {
        /// A protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Protocol {
            $(#[doc = concat!("[`", stringify!($name), "`].")] $(#[cfg($cfg)])? $name,)*
        }

        impl Protocol {
            /// All protocols.
            pub const ALL: &[Protocol] = &[$($(#[cfg($cfg)])? Protocol::$name,)*];

            /// Calls `visitor` with the page of this protocol.
            pub fn visit<V: Visitor>(self, visitor: V) -> V::Output {
                match self {
                    $($(#[cfg($cfg)])? Protocol::$name => visitor.visit::<$page>(),)*
                }
            }
        }
    };
}

pages! {
    Frodo => OverLwe<Frodo>,
    Simple => OverLwe<Simple>,
    Double => OverLwe<Double>,
    Onion => OverRing<Onion>,
    Tfhe => OverRing<Tfhe>,
    TfhePrivks => OverRing<TfhePrivks>,
    ExppackS => Packed<ExppackS>,
    ExppackD => Packed<ExppackD>,
    DoublePack => Packed<DoublePack>,
    Hybrid => Packed<Hybrid>,
    ColpackS => ColumnPacked<ColpackS>,
    Colpack => ColumnPacked<Colpack>,
    Download => Download,
    Toy => OverLwe<crate::toy::Toy> where test,
}

impl Protocol {
    /// Returns the protocol's page with its type erased, for uses that need no backend.
    pub fn page(self) -> &'static dyn AnyPage {
        struct Erase;
        impl Visitor for Erase {
            type Output = &'static dyn AnyPage;

            fn visit<P: Page>(self) -> Self::Output {
                erased::<P>()
            }
        }
        self.visit(Erase)
    }

    /// Returns the name used on the command line, in descriptors and on the wire.
    pub fn name(self) -> &'static str {
        self.page().name()
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Protocol {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Protocol::ALL.iter().copied().find(|protocol| protocol.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = Protocol::ALL.iter().map(|protocol| protocol.name()).collect();
            format!("unknown protocol '{name}': use {}", names.join(", "))
        })
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
