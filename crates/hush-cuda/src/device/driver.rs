//! A GPU behind its driver, which is loaded when the first GPU is opened.

use std::{
    collections::{HashMap, HashSet},
    ffi::{CString, c_int, c_void},
    sync::Mutex,
};

use cudarc::driver::{
    result::{self, ctx, device, module, primary_ctx},
    sys,
};

use super::{
    Arg, CudaError, DeviceInfo, Launch,
    calls::{self, failed, lock},
    copies::{downloads::Downloads, uploads::Uploads},
    modules,
    stream::{Event, Stream},
};

/// The lowest compute capability on which the kernels run.
const OLDEST: (u32, u32) = (8, 0);
/// The lowest CUDA version of a driver that loads the compiled kernels.
const OLDEST_DRIVER: (u32, u32) = (13, 0);
/// The largest upload in bytes for which the driver's own copy is used.
const SMALL_BYTES: usize = 64 << 10;
/// The dynamic shared memory that a block may have without a setting.
const DEFAULT_SHARED: u32 = 48 << 10;

/// A GPU: its context, its kernels, the main stream, which runs all work in order, and the streams of copies and branches.
pub(super) struct Gpu {
    info: DeviceInfo,
    /// The GPUs for which [`Gpu::reach`] was called.
    peers: Mutex<HashSet<sys::CUdevice>>,
    /// All kernels that the GPU can run.
    functions: Mutex<HashMap<&'static str, Function>>,
    modules: Vec<sys::CUmodule>,
    uploads: Mutex<Uploads>,
    downloads: Mutex<Downloads>,
    side: Stream,
    pub(super) main: Stream,
    /// The context, which is dropped last.
    context: Context,
}

/// The primary context of a GPU, retained until it is dropped.
struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

impl Context {
    fn retain(device: sys::CUdevice) -> Result<Self, CudaError> {
        // SAFETY: the handle is one of the driver's.
        let handle = unsafe { primary_ctx::retain(device) }.map_err(failed("cuDevicePrimaryCtxRetain"))?;
        Ok(Self { device, handle })
    }

    /// Makes the context current on this thread.
    fn enter(&self) -> Result<(), CudaError> {
        // SAFETY: it is retained.
        unsafe { ctx::set_current(self.handle) }.map_err(failed("cuCtxSetCurrent"))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained here. A failure has no effect: nothing uses the context any more.
        let _ = unsafe { primary_ctx::release(self.device) };
    }
}

/// A kernel, and the dynamic shared memory for which it is set.
#[derive(Clone, Copy)]
struct Function {
    handle: sys::CUfunction,
    shared: u32,
}

// SAFETY: the driver's handles may be used from any thread; each call makes the context current first.
unsafe impl Send for Gpu {}
// SAFETY: the reason above holds for shared references too, and the fields of this crate are behind locks.
unsafe impl Sync for Gpu {}

/// Returns the properties that the GPUs report.
pub(super) fn list() -> Result<Vec<DeviceInfo>, CudaError> {
    start()?;
    (0..count()?).map(|ordinal| describe(handle(ordinal)?)).collect()
}

/// Returns the CUDA version of the driver: major and minor.
pub(super) fn version() -> Result<(u32, u32), CudaError> {
    start()?;
    let mut version: c_int = 0;
    // SAFETY: the driver is loaded, and writes one number.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(failed("cuDriverGetVersion"))?;
    Ok((version as u32 / 1000, version as u32 % 1000 / 10))
}

/// Loads the driver and initialises it.
fn start() -> Result<(), CudaError> {
    // SAFETY: this loads the library, whose initialisers are the driver's own.
    if !unsafe { sys::is_culib_present() } {
        return Err(CudaError::NoDriver);
    }
    result::init().map_err(failed("cuInit"))
}

fn count() -> Result<usize, CudaError> {
    Ok(device::get_count().map_err(failed("cuDeviceGetCount"))? as usize)
}

fn handle(ordinal: usize) -> Result<sys::CUdevice, CudaError> {
    device::get(ordinal as c_int).map_err(failed("cuDeviceGet"))
}

fn describe(handle: sys::CUdevice) -> Result<DeviceInfo, CudaError> {
    use sys::CUdevice_attribute as A;
    let attribute = |attribute| -> Result<u32, CudaError> {
        // SAFETY: the handle is one of the driver's.
        let value = unsafe { device::get_attribute(handle, attribute) };
        Ok(value.map_err(failed("cuDeviceGetAttribute"))? as u32)
    };
    Ok(DeviceInfo {
        name: device::get_name(handle).map_err(failed("cuDeviceGetName"))?,
        capability: (
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // SAFETY: the handle is one of the driver's.
        memory_bytes: unsafe { device::total_mem(handle) }.map_err(failed("cuDeviceTotalMem"))?,
        l2_bytes: attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)? as usize,
        shared_per_block: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)? as usize,
        shared_per_multiprocessor: attribute(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?
            as usize,
    })
}

impl Gpu {
    pub(super) fn open(ordinal: usize) -> Result<Self, CudaError> {
        let (major, minor) = version()?;
        if (major, minor) < OLDEST_DRIVER {
            return Err(CudaError::OldDriver { major, minor });
        }
        let count = count()?;
        if ordinal >= count {
            return Err(CudaError::NoDevice { ordinal, count });
        }
        let device = handle(ordinal)?;
        let info = describe(device)?;
        if info.capability < OLDEST {
            let (major, minor) = info.capability;
            return Err(CudaError::TooOld { name: info.name, major, minor });
        }
        // If a later step fails, the values created from here on are dropped in the opposite order.
        let context = Context::retain(device)?;
        context.enter()?;
        let mut gpu = Self {
            info,
            peers: Mutex::default(),
            functions: Mutex::default(),
            modules: Vec::new(),
            uploads: Mutex::new(Uploads::new()?),
            downloads: Mutex::new(Downloads::new()?),
            side: Stream::beside()?,
            main: Stream::first()?,
            context,
        };
        gpu.load()?;
        Ok(gpu)
    }

    /// Loads all kernels. By default the driver loads a kernel at its first launch: in the middle of a batch, for which it first
    /// compiles text, and when tables may have taken all memory.
    fn load(&mut self) -> Result<(), CudaError> {
        let mut functions = lock(&self.functions);
        for image in modules::images_for(self.info.capability) {
            // SAFETY: images are whole cubins, or text that ends with a zero.
            let module = unsafe { module::load_data(image.as_ptr().cast()) }
                .map_err(failed(format!("cuModuleLoadData of {}", image.name())))?;
            self.modules.push(module);
            for &kernel in image.kernels() {
                let name = CString::new(kernel).map_err(|_| CudaError::NoKernel(kernel))?;
                // SAFETY: the module is loaded until drop.
                let handle = unsafe { module::get_function(module, name) }
                    .map_err(failed(format!("cuModuleGetFunction of {kernel}")))?;
                // SAFETY: the function belongs to the loaded module.
                unsafe { sys::cuFuncLoad(handle) }
                    .result()
                    .map_err(failed(format!("cuFuncLoad of {kernel}")))?;
                functions.insert(kernel, Function { handle, shared: DEFAULT_SHARED });
            }
        }
        Ok(())
    }

    pub(super) fn info(&self) -> &DeviceInfo {
        &self.info
    }

    pub(super) fn free_bytes(&self) -> Result<usize, CudaError> {
        self.enter()?;
        calls::free_bytes()
    }

    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, CudaError> {
        self.enter()?;
        calls::allocate(bytes)
    }

    pub(super) fn free(&self, address: u64) {
        // A failure is ignored: the device is lost, and the next call on it returns an error.
        let _ = self.enter();
        // SAFETY: it was allocated here, and nothing refers to it; the pool has waited for the work on it.
        let _ = unsafe { result::free_sync(address) };
    }

    pub(super) fn clear(&self, address: u64, bytes: usize) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: slices lie within allocated memory.
        unsafe { result::memset_d8_async(address, 0, bytes, self.main.handle()) }
            .map_err(failed("cuMemsetD8Async"))
    }

    pub(super) fn upload(&self, host: &[u8], address: u64) -> Result<(), CudaError> {
        self.enter()?;
        if host.len() > SMALL_BYTES {
            return lock(&self.uploads).upload(host, address, &self.main);
        }
        // SAFETY: the slice lies within an allocation. The driver copies from memory that is not pinned before it returns.
        unsafe { result::memcpy_htod_async(address, host, self.main.handle()) }
            .map_err(failed("cuMemcpyHtoDAsync"))
    }

    pub(super) fn download(
        &self,
        address: u64,
        bytes: usize,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), CudaError> {
        self.enter()?;
        // Recorded before the lock: while this thread waits for other downloads, other threads may queue more work.
        let ready = Event::after(&self.main)?;
        lock(&self.downloads).download(address, bytes, take, &ready)
    }

    pub(super) fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        self.enter()?;
        // SAFETY: slices lie within allocated memory.
        unsafe { result::memcpy_dtod_async(to, from, bytes, self.main.handle()) }
            .map_err(failed("cuMemcpyDtoDAsync"))
    }

    /// Makes all later work wait for the work that `peer` has queued so far.
    pub(super) fn wait_for(&self, peer: &Self) -> Result<(), CudaError> {
        peer.enter()?;
        let done = Event::after(&peer.main)?;
        self.enter()?;
        self.main.wait_event(&done)
    }

    /// Copies from the memory of `peer`, in the order of this device's work.
    pub(super) fn copy_from(&self, peer: &Self, from: u64, to: u64, bytes: usize) -> Result<(), CudaError> {
        self.reach(peer)?;
        // SAFETY: slices lie within memory allocated in these contexts, and the stream belongs to the current context.
        unsafe {
            result::memcpy_peer_async(
                self.context.handle,
                to,
                peer.context.handle,
                from,
                bytes,
                self.main.handle(),
            )
        }
        .map_err(failed("cuMemcpyPeerAsync"))
    }

    /// Returns whether this GPU and `peer` have NVLink between them: only there are atomic operations of one on the memory of the
    /// other native.
    pub(super) fn is_linked(&self, peer: &Self) -> bool {
        let mut is_native = 0;
        let attribute = sys::CUdevice_P2PAttribute::CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED;
        let (own, other) = (self.context.device, peer.context.device);
        // SAFETY: the handles are the driver's; the call writes one number.
        let answer = unsafe { sys::cuDeviceGetP2PAttribute(&mut is_native, attribute, own, other) };
        answer.result().is_ok() && is_native != 0
    }

    /// Sets this GPU to read the memory of `peer` directly, if it can. If it cannot, the driver copies by way of the host.
    fn reach(&self, peer: &Self) -> Result<(), CudaError> {
        self.enter()?;
        let own = self.context.device;
        let other = peer.context.device;
        if own == other || !lock(&self.peers).insert(other) {
            return Ok(());
        }
        let mut reaches = 0;
        // SAFETY: the handles are the driver's; the call writes one number.
        unsafe { sys::cuDeviceCanAccessPeer(&mut reaches, own, other) }
            .result()
            .map_err(failed("cuDeviceCanAccessPeer"))?;
        if reaches != 0 {
            // The driver refuses if there are too many peers, or if access was enabled before: copies are correct in any case.
            // SAFETY: both contexts are retained until drop.
            let _ = unsafe { sys::cuCtxEnablePeerAccess(peer.context.handle, 0) };
        }
        Ok(())
    }
    pub(super) fn launch(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch_on(&self.main, kernel, launch, args)
    }

    pub(super) fn launch_beside(
        &self,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.launch_on(&self.side, kernel, launch, args)
    }

    fn launch_on(
        &self,
        stream: &Stream,
        kernel: &'static str,
        launch: Launch,
        args: &[Arg<'_>],
    ) -> Result<(), CudaError> {
        self.enter()?;
        let function = self.function(kernel, launch.shared)?;
        let mut params: Vec<*mut c_void> = args.iter().map(|arg| arg.as_ptr() as *mut c_void).collect();
        let [x, y, z] = launch.grid;
        let block = (launch.block, 1, 1);
        // SAFETY: the pointers are valid for the call, which copies their targets; the step passes the arguments that the kernel
        // takes.
        let launched = unsafe {
            result::launch_kernel(function, (x, y, z), block, launch.shared, stream.handle(), &mut params)
        };
        launched.map_err(failed(format!("launch of {kernel} ({launch:?})")))
    }

    /// Returns the registers of a thread of the kernel.
    pub(super) fn registers(&self, kernel: &'static str) -> Result<u32, CudaError> {
        self.enter()?;
        let function = self.function(kernel, 0)?;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_NUM_REGS;
        // SAFETY: the function belongs to a loaded module.
        let registers = unsafe { result::function::get_function_attribute(function, attribute) };
        Ok(registers.map_err(failed(format!("registers of {kernel}")))? as u32)
    }

    pub(super) fn fork(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.side.wait_for(&self.main)
    }

    pub(super) fn join(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.main.wait_for(&self.side)
    }

    pub(super) fn finish_side(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.side.synchronize()
    }

    pub(super) fn synchronize(&self) -> Result<(), CudaError> {
        self.enter()?;
        self.main.synchronize()
    }

    /// Makes the context current on this thread.
    pub(super) fn enter(&self) -> Result<(), CudaError> {
        self.context.enter()
    }

    /// Returns the kernel, set for at least `shared` bytes of dynamic shared memory.
    fn function(&self, kernel: &'static str, shared: u32) -> Result<sys::CUfunction, CudaError> {
        let mut functions = lock(&self.functions);
        let function = functions.get_mut(kernel).ok_or(CudaError::NoKernel(kernel))?;
        if shared > function.shared {
            let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function belongs to a loaded module.
            unsafe { result::function::set_function_attribute(function.handle, attribute, shared as c_int) }
                .map_err(failed(format!("{shared} bytes of shared memory for {kernel}")))?;
            function.shared = shared;
        }
        Ok(function.handle)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // Failures have no effect: nothing uses the GPU any more.
        let _ = self.synchronize();
        for module in self.modules.drain(..) {
            // SAFETY: it was loaded here, and all work has ended.
            let _ = unsafe { module::unload(module) };
        }
    }
}
