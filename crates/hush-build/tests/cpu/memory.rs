//! Tables whose files are in memory of this process, and tables that are mapped: both answer the same, and whoever changes files
//! under them harms the one that is mapped alone.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    time::UNIX_EPOCH,
};

use hush_engine::{Backends, Engine, EngineError, MemoryChoice, Silent, open};
use hush_protocol::{Protocol, facts::DB_FILE};
use hush_store::snapshot::{Snapshot, Verify};

use crate::{
    answers::BY_COLUMNS,
    tables::{Folder, Wanted, here, on_cpu},
};

fn in_memory(memory: MemoryChoice) -> Backends {
    on_cpu(2).with_memory(memory)
}

fn opened(folder: &Folder, memory: MemoryChoice, verify: Verify) -> Arc<dyn Engine> {
    open(&folder.table(), verify, &in_memory(memory), &Silent).unwrap()
}

/// Returns the database of a table that was written long ago: the system's clock of files has coarse steps.
fn old_db(folder: &Folder) -> PathBuf {
    let path = folder.table().join(DB_FILE);
    File::open(&path).unwrap().set_modified(UNIX_EPOCH).unwrap();
    path
}

/// Writes other bytes into a file, which is then as long and as old as before.
fn spoil(path: &Path) {
    let modified = fs::metadata(path).unwrap().modified().unwrap();
    let content: Vec<u8> = fs::read(path).unwrap().into_iter().map(|byte| byte ^ 0x55).collect();
    fs::write(path, content).unwrap();
    File::open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn tables_in_memory_and_mapped_answer_the_same() {
    let cpu = on_cpu(2);
    let others = [Protocol::Simple, Protocol::Double, Protocol::Hybrid, Protocol::Onion, Protocol::Tfhe];
    for protocol in BY_COLUMNS.into_iter().chain(others) {
        let folder = Folder::with_table(&cpu, Wanted::by_index(protocol, 40, 33, 8));
        for verify in [Verify::Full, Verify::Header] {
            let [mapped, resident] =
                [MemoryChoice::Mapped, MemoryChoice::Resident].map(|memory| opened(&folder, memory, verify));
            folder.ask([&*mapped, &*resident], 2);
            assert_eq!((mapped.damaged(), resident.damaged()), (None, None));
        }
    }
}

#[test]
fn parts_in_memory_and_mapped_answer_the_same() {
    let cpu = on_cpu(2);
    for protocol in [Protocol::Colpack, Protocol::Hybrid, Protocol::Onion] {
        let folder = Folder::with_table(&cpu, Wanted::by_index(protocol, 40, 300, 8));
        let [mapped, resident] = [MemoryChoice::Mapped, MemoryChoice::Resident].map(|memory| {
            let backends = in_memory(memory);
            here::head(&folder, &here::Here::open(&folder, &[1, 2], &backends), &backends)
        });
        folder.ask([&*mapped, &*resident], 2);
    }
}

#[test]
fn a_mapped_table_whose_file_shrinks_fails_by_name_and_others_answer() {
    let cpu = on_cpu(2);
    let of = || Folder::with_table(&cpu, Wanted::by_index(Protocol::Colpack, 40, 300, 8));
    let (cut, whole) = (of(), of());
    let path = old_db(&cut);
    let [mapped, resident] =
        [MemoryChoice::Mapped, MemoryChoice::Resident].map(|memory| opened(&cut, memory, Verify::Full));
    let other = opened(&whole, MemoryChoice::Mapped, Verify::Full);
    let asked = cut.some(&*mapped, 2);
    asked.check(&asked.answers(&*mapped).unwrap());
    File::options().write(true).open(&path).unwrap().set_len(0).unwrap();
    match asked.answers(&*mapped) {
        Err(EngineError::Damaged { reason }) => assert!(reason.contains(path.to_str().unwrap()), "{reason}"),
        other => panic!("{:?}", other.map(|_| ())),
    }
    assert!(mapped.damaged().is_some());
    // What is in memory is not the file's any more, and what is another's never was.
    asked.check(&asked.answers(&*resident).unwrap());
    assert_eq!((resident.damaged(), other.damaged()), (None, None));
    let asked = whole.some(&*other, 2);
    asked.check(&asked.answers(&*other).unwrap());
}

#[test]
fn a_mapped_table_whose_file_is_written_to_fails_before_it_answers() {
    let cpu = on_cpu(2);
    let folder = Folder::with_table(&cpu, Wanted::by_index(Protocol::Simple, 40, 33, 8));
    let path = old_db(&folder);
    let [mapped, resident] =
        [MemoryChoice::Mapped, MemoryChoice::Resident].map(|memory| opened(&folder, memory, Verify::Full));
    fs::write(&path, vec![0; fs::metadata(&path).unwrap().len() as usize]).unwrap();
    assert!(mapped.damaged().unwrap().contains(path.to_str().unwrap()));
    let asked = folder.some(&*mapped, 2);
    assert!(matches!(asked.answers(&*mapped), Err(EngineError::Damaged { .. })));
    asked.check(&asked.answers(&*resident).unwrap());
    assert_eq!(resident.damaged(), None);
}

/// Nothing of the base is read again: what is on disk is spoiled by then, in a way that nobody sees without reading.
#[test]
fn the_next_epoch_shares_the_memory_of_the_base() {
    let cpu = on_cpu(2);
    let wanted = Wanted { room: Some(5), ..Wanted::by_index(Protocol::Colpack, 40, 300, 8) };
    let mut folder = Folder::with_table(&cpu, wanted);
    let before = opened(&folder, MemoryChoice::Resident, Verify::Full);
    folder.apply(&cpu, BTreeMap::from([(3, Some(vec![9; 300]))])).unwrap();
    spoil(&folder.table().join(DB_FILE));
    assert!(Snapshot::open(&folder.table(), Verify::Full).is_err());
    let after = opened(&folder, MemoryChoice::Resident, Verify::Header);
    assert_ne!(before.served().epoch, after.served().epoch);
    let asked = folder.asked(&*after, vec![2, 3, 4]);
    asked.check(&asked.answers(&*after).unwrap());
    // Both gone, it has to be read.
    drop((before, after));
    let error = open(&folder.table(), Verify::Full, &in_memory(MemoryChoice::Resident), &Silent).err();
    assert!(error.unwrap().to_string().contains("checksum"));
}
