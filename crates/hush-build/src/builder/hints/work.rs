//! The work of a crew's member: doing tasks.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::PathBuf, sync::Arc};

use hush_cpu::Cpu;
use hush_engine::Silent;
use hush_he::entities::PublicMatrix;
use hush_protocol::{
    facts::DB_FILE,
    keyword::{FilterKind, KeyDigest},
};
use hush_store::snapshot::{SECOND_DB_FILE, State, segment_file};
use prost::{Message, bytes::Bytes};

use super::{
    download::DownloadWorker,
    hint::HintSource,
    product::worker,
    task::{BlockTask, FilterTask, HintTask, HintTaskKind, Task},
    words::WHOLE,
};
use crate::builder::{
    BuildError,
    layout::filter_block::{FilterBlock, FilterSize, Seeds, SlotSymbol},
};

/// Does a task for a [`Crew`](crate::builder::Crew). The task has to come from a trusted build: it determines how much memory is
/// allocated.
///
/// # Errors
/// [`BuildError::Crew`] if the task is malformed, or this machine does not see the table's folder; the errors of the computation.
pub fn work(task: Bytes, cpu: &Cpu) -> Result<Vec<Bytes>, BuildError> {
    match Task::decode(task).ok().and_then(|task| task.what) {
        Some(HintTaskKind::Hint(task)) => task.done(cpu),
        Some(HintTaskKind::Filters(task)) if task.symbol_bytes == 1 => task.done::<u8>(cpu),
        Some(HintTaskKind::Filters(task)) => task.done::<u32>(cpu),
        None => Err(BuildError::Crew("this is no task of a build".into())),
    }
}

impl HintTask {
    fn done(self, cpu: &Cpu) -> Result<Vec<Bytes>, BuildError> {
        let dir = PathBuf::from(OsStr::from_bytes(&self.folder));
        let none = || {
            let shown = dir.display();
            BuildError::Crew(format!(
                "{shown} has no table of which this is to be computed: every node has to see it there"
            ))
        };
        let state = State::read(&dir).ok_or_else(none)?;
        let params = state.descriptor.params()?;
        let segment = self.segment as usize;
        let seed = state.descriptor.public_seed();
        let matrix = |shape| PublicMatrix::new(seed, shape);
        let plan = params.segments().get(segment).and_then(|segment| segment.hint()).ok_or_else(none)?;
        let path = |name| dir.join(segment_file(segment, name));
        let source = match &plan.second {
            Some(second) if !self.is_first => {
                HintSource::open(cpu, matrix(second.matrix), second.tiling.rows(), &path(SECOND_DB_FILE))?
            }
            _ => HintSource::open(cpu, matrix(plan.matrix), plan.rows, &path(DB_FILE))?,
        };
        let worker = match self.is_first {
            true => Box::new(DownloadWorker { source, bits: WHOLE }),
            false => worker(&plan.product, source, seed, cpu)?,
        };
        worker.contents(self.start as usize..self.end as usize, &Silent)
    }
}

impl FilterTask {
    fn done<S: SlotSymbol>(self, cpu: &Cpu) -> Result<Vec<Bytes>, BuildError> {
        let none = || BuildError::Crew("these are no filters".into());
        let kind: FilterKind = self.kind.parse().map_err(|_| none())?;
        let size = FilterSize {
            kind,
            slots: self.slots as usize,
            base_columns: self.base_columns.map(|columns| columns as usize),
        };
        let block = |block: BlockTask| {
            let (digests, rest) = block.digests.as_chunks();
            let seeds = match (size.base_columns, block.seeds[..].first()) {
                (Some(_), _) => Seeds::OfKeys(block.seeds.to_vec()),
                (None, Some(seed)) => Seeds::OfBlock(*seed),
                (None, None) => Seeds::Any,
            };
            if !rest.is_empty() || size.base_columns.is_some() && block.seeds.len() != digests.len() {
                return Err(none());
            }
            let digests = Arc::new(digests.iter().map(KeyDigest::from_bytes).collect());
            let values = S::from_bytes(&block.values);
            let block = FilterBlock { digests, seeds, values, size: block.size as usize };
            let (seed, slots) = cpu.install(|| block.solve(size, cpu))?;
            Ok([Bytes::copy_from_slice(&[seed]), S::to_bytes(&slots).into()])
        };
        let solved = self.blocks.into_iter().map(block).collect::<Result<Vec<_>, BuildError>>()?;
        Ok(solved.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Checks that blocks solved by [`work`] equal blocks solved directly.
    fn check<S: SlotSymbol + PartialEq>(
        size: FilterSize,
        cpu: &Cpu,
        seeds: impl Fn(usize) -> Seeds,
        symbol: fn(usize) -> S,
    ) {
        let key = |key: usize| KeyDigest::new(&[7; 32], &key.to_le_bytes()).unwrap();
        let block = |number: usize| {
            let keys = size.slots * 3 / 4 - 7 * number;
            let digests: Vec<_> = (0..keys).map(|own| key(1000 * number + own)).collect();
            let values = (0..3 * keys).map(symbol).collect();
            FilterBlock { seeds: seeds(keys), digests: Arc::new(digests), values, size: 3 }
        };
        let blocks: Vec<_> = (0..4).map(block).collect();
        let expected = blocks.iter().flat_map(|block| {
            let (seed, slots) = block.solve(size, cpu).unwrap();
            [vec![seed], S::to_bytes(&slots)]
        });
        let task = Task::filters(size, &blocks).to_bytes();
        assert!(work(task, cpu).unwrap().iter().map(|bytes| bytes.to_vec()).eq(expected));
    }

    #[test]
    fn filters_are_the_same_as_tasks() {
        let cpu = Cpu::new(2).unwrap();
        for kind in [FilterKind::Fuse3, FilterKind::Band128] {
            let base = FilterSize { kind, slots: 512, base_columns: None };
            check::<u8>(base, &cpu, |_| Seeds::Any, |at| (at * 31) as u8);
            check::<u32>(base, &cpu, |_| Seeds::Any, |at| (at * 0x9e37_79b9) as u32);
        }
        let base = FilterSize { kind: FilterKind::Band64, slots: 512, base_columns: None };
        check::<u8>(base, &cpu, |_| Seeds::OfBlock(3), |at| at as u8);
        let beside = FilterSize { base_columns: Some(2048), ..base };
        check::<u8>(
            beside,
            &cpu,
            |keys| Seeds::OfKeys((0..keys).map(|key| (key % 5) as u8).collect()),
            |at| (at * 77) as u8,
        );
    }

    #[test]
    fn what_is_no_task_is_refused() {
        let cpu = Cpu::new(1).unwrap();
        let filter = FilterSize { kind: FilterKind::Band64, slots: 64, base_columns: Some(128) };
        let short = FilterBlock::<u8> {
            digests: Arc::new(vec![KeyDigest::new(&[0; 32], b"key").unwrap()]),
            seeds: Seeds::OfKeys(Vec::new()),
            values: vec![0],
            size: 1,
        };
        let nowhere = Task::hint(Path::new("/nowhere"), 0, false, &(0..1));
        for (task, why) in [
            (Bytes::from_static(b"\xff"), "no task"),
            (Bytes::new(), "no task"),
            (nowhere.to_bytes(), "/nowhere has no table"),
            (Task::filters(filter, &[short]).to_bytes(), "no filters"),
        ] {
            let refused = work(task, &cpu).unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
